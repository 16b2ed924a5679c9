"""How far guarantees are met together, as engines compute it: asks, parts, and limits that are raised."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.program import Program, Solution, TreeFilling
from fairopt.program.promises import promises_of
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin import floors
from fairopt.solvers.leximin.agents import AgentPrograms


def solved(instance: fo.Instance) -> tuple[Program, Solution]:
    """The program, and the answer of HiGHS."""
    program = fo.formulate(instance, "drfh")
    return program, fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=Deadline(None))


def test_nothing_is_asked_where_guarantees_are_met() -> None:
    """Two queues hold what they are guaranteed, and one has all its tasks."""
    queues = [fo.Queue("a", guarantee={"gpu": 3}), fo.Queue("b", guarantee={"gpu": 4})]
    instance = fo.Instance([[8]], [[1], [1]], queues=queues, queue_of=["a", "b"], resources=["gpu"], tasks=[np.inf, 1])
    assert solved(instance)[1].promised is None


def test_no_floors_where_all_hold_what_they_could_alone() -> None:
    """Of 9 guaranteed GPUs there are 4 where the users may run."""
    queues = [fo.Queue("a", guarantee={"gpu": 9})]
    instance = fo.Instance([[4], [5]], [[1], [1]], eligibility=[[1, 0], [0, 1]], queues=queues, queue_of=["a", None], resources=["gpu"])
    promised = solved(instance)[1].promised
    assert promised is not None
    assert promised.promises == ()
    assert list(promised.alone) == [1]


def test_the_parts_of_resources() -> None:
    """8 gpu and 8 cpu: a has asked for 4 and 8, b for 8 cpu, c for 8 gpu; the parts are 2/3 of gpu and 1/2 of cpu."""
    instance = fo.Instance(
        [[8, 8]],
        [[1, 0], [0, 1], [0, 1], [1, 0]],
        queues=[fo.Queue("a", guarantee={"gpu": 4, "cpu": 8}), fo.Queue("b", guarantee={"cpu": 8}), fo.Queue("c", guarantee={"gpu": 8})],
        queue_of=["a", "a", "b", "c"],
        resources=["gpu", "cpu"],
    )
    program, found = solved(instance)
    promised = found.promised
    assert promised is not None
    assert [promise.name for promise in promised.promises] == [promise.name for promise in promises_of(program.goal_as(TreeFilling))]
    assert promised.asks == pytest.approx((4, 8, 8, 8))
    assert promised.units == pytest.approx((4, 8, 8, 8))
    assert promised.parts == pytest.approx((2 / 3, 1 / 2, 1 / 2, 2 / 3))


def test_a_limit_is_raised_to_what_inner_guarantees_gave() -> None:
    """A is guaranteed 2 on the first server, and its user 3: one must be beyond the limit, wherever it is. Both limits are raised by a part
    of their capacities, 2 and 4."""
    queue = fo.Queue("A", quotas=[fo.Quota(["x"], guarantee={"gpu": 2})])
    instance = fo.Instance([[4], [4]], [[1]], guarantees=[3], servers=["x", "y"], queues=[queue], queue_of=["A"], resources=["gpu"])
    program = fo.formulate(instance, "drfh")
    goal = program.goal_as(TreeFilling)
    shares, x = np.array([3 / 8]), np.array([3.0, 0.0])
    bounds, stages, point = floors.bounds_of_part(
        program, goal, goal.parts[1], shares, x, lambda agents: AgentPrograms(agents, Deadline(None))
    )
    assert bounds.sum() == pytest.approx(3)
    assert (bounds - [2, 0]) / [4, 4] == pytest.approx([1 / 8, 1 / 8])
    assert len(stages) == 1
    assert point == pytest.approx([2.5, 0.5])
