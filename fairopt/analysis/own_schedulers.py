"""Schedules, and schedulers of one's own: functions of an instance.

>>> import numpy as np
>>> def halves(instance):
...     return instance.rates * 0.5 / instance.n_users
>>> made(Instance([[8]], [[1], [2]]), OwnScheduler("halves", halves, {}), "rdm").tasks_per_user
array([2., 1.])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairopt.allocation import GIVEN, Allocation
from fairopt.analysis.rerun import given
from fairopt.certificate import allocation_excess
from fairopt.errors import FairoptError, InvalidInstance, Unsupported
from fairopt.instance import FloatArray, Instance
from fairopt.instance.tolerances import CERTIFIED
from fairopt.models import Notion, Sharing, default_sharing
from fairopt.scheduling import schedule
from fairopt.specs import OwnScheduler

__all__ = ["feasible_tasks", "made", "tasks_of"]


def made(
    instance: Instance, plan: Mapping[str, Any] | OwnScheduler | Allocation, sharing: Sharing | None, notion: str | Notion = GIVEN
) -> Allocation:
    """Return the allocation of a plan of `fairopt.specs.read_schedule`; ``notion`` may name one to compare a scheduler of one's own with.

    Raises
    ------
    InvalidInstance
        If a scheduler of one's own returns no tasks. Whether they exceed a limit, the certificate of the allocation says.
    """
    if isinstance(plan, Allocation):
        return plan
    if isinstance(plan, OwnScheduler):
        answer = _asked(plan, instance)
        if isinstance(answer, Allocation) and answer.instance == instance:
            return answer
        return given(instance, tasks_of(plan.name, answer, instance), sharing or default_sharing(instance), notion)
    return schedule(instance, sharing=sharing, **plan)


def tasks_of(name: str, answer: Any, instance: Instance) -> FloatArray:
    """Return the tasks, (users, servers), that a scheduler has returned."""
    try:
        tasks = np.array(answer.tasks if isinstance(answer, Allocation) else answer, float)
    except (TypeError, ValueError):
        tasks = np.full((), np.nan)
    shape = (instance.n_users, instance.n_servers)
    if tasks.shape != shape or not np.isfinite(tasks).all():
        found = type(answer).__name__ if not tasks.shape else f"tasks of shape {tasks.shape}"
        raise InvalidInstance(f"the scheduler {name} returned {found}; return finite numbers, (users, servers) = {shape}")
    return tasks


def feasible_tasks(scheduler: OwnScheduler, instance: Instance) -> FloatArray:
    """Return the tasks that a scheduler returns, which exceed no limit."""
    name, sharing = scheduler.name, default_sharing(instance)
    tasks = tasks_of(name, _asked(scheduler, instance), instance)
    excess = allocation_excess(instance, tasks, sharing)
    if excess > CERTIFIED or (tasks < 0).any():
        raise InvalidInstance(f"the scheduler {name} exceeds a limit of the instance by a part of {excess:.2g}; return what fits")
    return tasks


def _asked(scheduler: OwnScheduler, instance: Instance) -> Any:
    try:
        return scheduler(instance)
    except FairoptError:
        raise
    except Exception as error:
        raise Unsupported(f"the scheduler {scheduler.name} failed with {type(error).__name__}: {error}") from error
