"""Simulations: event by event as on paper in fractions, what must hold at any time, and the two ends that `schedule` and `solve` know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_simulation import Reference
from strategies import instances, traces

import fairopt as fo

CRITERIA = ("drfh", "cdrf", "tsf", "psdsf", "rpsdsf")
PLACEMENTS = ("first-fit", "best-fit", "worst-fit", "joint")
SERVER_FIRST = ("random-round-robin", "random-server")


def decimal(instance: fo.Instance) -> fo.Instance:
    """Tenths, which are no binary numbers; no limits on tasks, which the trace has."""
    return instance.replace(capacities=instance.capacities / 10, tasks=None)


# Whole tasks ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("placement", PLACEMENTS)
@settings(max_examples=25)
@given(data=st.data(), instance=instances(whole=True, max_servers=3, max_users=3))
def test_event_by_event_as_in_fractions(criterion: str, placement: str, data: st.DataObject, instance: fo.Instance) -> None:
    """Each task starts at the same time on the same server: several shapes, constraints, users and servers that come and go."""
    cluster = decimal(instance)
    trace = data.draw(traces(cluster))
    expected = Reference(trace, cluster, criterion, placement).simulate()
    found = fo.simulate(trace, cluster, f"{criterion}:{placement}")
    assert found.task_start is not None
    assert found.task_server is not None
    started = np.flatnonzero(np.isfinite(found.task_start))
    actual = {int(t): (found.task_start[t], int(found.task_server[t])) for t in started}
    assert actual == {task: (float(when), server) for task, (when, server) in expected.items()}
