"""Rules that say no more than the least utility of users, by hand."""

from __future__ import annotations

import pytest

import fairopt as fo
from fairopt.program import Feature
from fairopt.program.own_floors import OwnFloors

LAB = fo.Instance([[6], [6]], [[1], [1], [1]], users=["a", "b", "c"], servers=["s", "t"], eligibility=[[1, 1], [1, 0], [1, 1]])


@pytest.mark.parametrize(
    ("rules", "least"),
    [
        (["x[a] >= 2"], [2, 0, 0]),
        (["x[a] >= 2", "3 * x[a] >= 9", "x[c] >= 1"], [3, 0, 1]),
        (["x[b, s] >= 1"], [0, 1, 0]),  # s is all that b has
        (["x[a] >= -1", "x[b] >= 2"], [0, 2, 0]),  # the first asks for nothing
        (["x[a, s] >= 1"], None),
        (["x[a] <= 3"], None),
        (["x[a] >= 2 * x[b]"], None),
        (["x[a] + x[b] >= 2"], None),
        (["x[a] >= 2", "2 * x[a, s] + x[a, t] >= 2"], None),
    ],
)
def test_by_hand(rules: list[str], least: list[float] | None) -> None:
    """Of two rules for a user the one that asks for more counts; any other rule, and nobody has such numbers."""
    program = fo.formulate(LAB.replace(rules=rules), "proportional")
    floors = OwnFloors.of(program)
    assert (floors is None) == (least is None)
    assert (Feature.FLOORS in program.features(), Feature.RULES in program.features()) == (least is not None, least is None)
    if floors is not None:
        assert floors.least.tolist() == least
        for user, row in enumerate(floors.row.tolist()):
            assert (row >= 0) == (floors.least[user] > 0)
            if row >= 0:
                assert set(program.pair_users[program.limits.matrix[[row]].indices].tolist()) == {user}


def test_tasks_of_different_worth() -> None:
    """Least tasks are no least utility where a task is worth more on one server; the same amount of utility is."""
    utility = [[1, 2], [1, 1], [1, 1]]
    assert OwnFloors.of(fo.formulate(LAB.replace(rules=["x[a] >= 2"]), "proportional", utility=utility)) is None
    floors = OwnFloors.of(fo.formulate(LAB.replace(rules=["x[a, s] + 2 * x[a, t] >= 4"]), "proportional", utility=utility))
    assert floors is not None
    assert floors.least.tolist() == [4, 0, 0]


def test_a_leximin_has_rules() -> None:
    """Only engines of alpha-fair goals know floors."""
    assert Feature.RULES in fo.formulate(LAB.replace(rules=["x[a] >= 2"]), "max-min").features()
