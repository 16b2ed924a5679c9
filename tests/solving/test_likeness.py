"""What an answer says of a program much like its own: prices and tasks on the merged rows of that program."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.allocation import Optimum
from fairopt.program import LimitKind
from fairopt.solvers.backend import Deadline
from fairopt.solving.likeness import likeness_of
from fairopt.solving.posing import pose


@pytest.mark.parametrize("timed", [False, True])
def test_prices_and_tasks_of_merged_rows(timed: bool) -> None:
    """Two servers alike, of which one row stands for two, and a third; users A and B alike. Resources are divided, or time is.

    The price of a unit of a resource is the same on servers alike. A row of three servers has three times the time of one, and a unit of
    its time is worth three times as much. What all limits cost is the first level, at which all stop.
    """
    servers, users = ["s", "t", "u"], ["A", "B", "C"]
    cluster = fo.Instance(
        [[4, 8], [4, 8], [9, 6]],
        [[1, 2], [1, 2], [3, 1]],
        counts=[1, 2, 1],
        users=users,
        servers=servers,
        rates=[[4, 4, 3], [4, 4, 3], [1, 1, 3]] if timed else None,
    )
    allocation = fo.solve(cluster, "max-min")
    question = allocation.question
    assert isinstance(question, Optimum)
    posed = pose(cluster, question, "tdm" if timed else "rdm", Deadline(None))
    assert posed.program.servers == ("s", "u")
    found = likeness_of(allocation, posed.program, posed.merging)
    assert found.prices is not None
    assert found.tasks is not None
    limits, levels = posed.program.limits, [level for level in allocation.levels if level.prices is not None]
    np.testing.assert_allclose(found.prices @ limits.bounds, [level.value for level in levels][: len(found.prices)], rtol=1e-12)
    assert not found.prices[:, limits.kinds == LimitKind.TASKS].any()
    np.testing.assert_allclose(posed.program.per_user(found.tasks), [allocation.tasks_per_user[:2].sum(), allocation.tasks_per_user[2]])


def test_of_other_servers_only_the_number_of_levels_is_known() -> None:
    """Prices and tasks are those of servers by their names; users who are new have no tasks."""
    cluster = fo.Instance([[4], [9]], [[1], [1]], eligibility=[[True, False], [False, True]], users=["A", "B"], servers=["s", "t"])
    allocation = fo.solve(cluster, "max-min")
    question = allocation.question
    assert isinstance(question, Optimum)
    for changed, known in (
        (cluster.replace(servers=["s", "v"]), None),
        (cluster.replace(users=["A", "C"]), [4, 0]),
        (cluster, [4, 9]),
    ):
        posed = pose(changed, question, "rdm", Deadline(None))
        found = likeness_of(allocation, posed.program, posed.merging)
        assert found.several_levels
        assert (found.tasks is None) == (known is None)
        if found.tasks is not None and known is not None:
            np.testing.assert_allclose(found.tasks, known, rtol=1e-12)


def test_a_goal_without_levels_has_one_row_of_prices() -> None:
    """Two users of weights 1 and 2 share 12 cpu: each cpu costs 3 / 12. In an equilibrium of servers nothing has a price."""
    cluster = fo.Instance([[12]], [[1], [1]], weights=[1, 2], tasks=[np.inf, 20])
    for notion in ("proportional", "psdsf"):
        allocation = fo.solve(cluster, notion)
        question = allocation.question
        assert isinstance(question, Optimum)
        posed = pose(cluster, question, "rdm", Deadline(None))
        found = likeness_of(allocation, posed.program, posed.merging)
        assert not found.several_levels
        if notion == "psdsf":
            assert found.prices is None
        else:
            assert found.prices is not None
            np.testing.assert_allclose(found.prices, [np.where(posed.program.limits.of_servers, 0.25, 0.0)], rtol=1e-12)
