"""What guaranteed nodes would hold alone, read off one filling of all of them, against fillings of each alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instances import instance_in_queues
from support.one_by_one import held_alone

import fairopt as fo
from fairopt.program import TreeFilling
from fairopt.program.filled_together import FilledTogether, even_slices, on_large_servers
from fairopt.program.promises import promises_of
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.tree import promised_alone

NEVER = Deadline(None)


def test_large_servers_hold_all_guarantees() -> None:
    """Guarantees of 4 and 6 of 5 GPUs: on large servers both are met. In the cluster as it is there is room for the 4 alone."""
    queues = [fo.Queue("A", guarantee={"gpu": 4}), fo.Queue("B", guarantee={"gpu": 6})]
    pool = fo.Instance([[3], [2]], [[1], [1]], resources=["gpu"], queues=queues, queue_of=["A", "B"])
    program = fo.formulate(pool, "drfh")
    goal = program.goal_as(TreeFilling)
    large = on_large_servers(program, goal)
    found = fo.SOLVERS["highs"]().solve(large, tolerance=1e-8, deadline=NEVER)
    assert large.per_user(found.x) == pytest.approx([4, 6])
    first, second = promises_of(goal)
    filled = FilledTogether(program, found.parts, {first.owner, second.owner})
    of_all = filled.point(second, large=True)
    assert of_all is not None
    assert program.per_user(of_all) == pytest.approx([0, 6])
    assert filled.point(first, large=False) == pytest.approx([4 * 3 / 5, 4 * 2 / 5, 0, 0])
    assert filled.point(second, large=False) is None
    assert FilledTogether(program, found.parts, {second.owner}).point(first, large=True) is None


def test_slices_follow_the_room() -> None:
    """A share of 1 is all 4 GPUs: three parts of it where there is three times the room, and nothing for who has no room."""
    program = fo.formulate(fo.Instance([[2], [2]], [[1], [1]]), "drfh")
    assert even_slices(program, np.array([3.0, 1.0, 0.0, 0.0])) == pytest.approx([3, 1, 0, 0])


def test_who_has_no_room_beside_what_queues_keep_rises_on_large_servers_alone() -> None:
    """The keeper keeps 3 GPUs and the inner queue 1, so that bob of the lab can have none of the 4.

    On large servers ann and bob divide the 4 CPUs of the lab. As servers are, ann can have all of them, and eve as many: of 6, each gets 3.
    """
    queues = [
        fo.Queue("keeper", guarantee={"gpu": 4}, lending_limit={"gpu": 1}),
        fo.Queue("lab", guarantee={"cpu": 4}),
        fo.Queue("inner", parent="lab", guarantee={"gpu": 1}, lending_limit={"gpu": 0}),
        fo.Queue("rest", guarantee={"cpu": 4}),
        fo.Queue("team", parent="rest", guarantee={"cpu": 1}),
    ]
    users: dict[str, Any] = {"users": ["ann", "bob", "eve"], "queue_of": ["inner", "lab", "team"]}
    pool = fo.Instance([[6, 4]], [[1, 0], [1, 1], [1, 0]], resources=["cpu", "gpu"], queues=queues, **users)
    program = fo.formulate(pool, "drfh")
    promises, _, most = promised_alone(program, program.goal_as(TreeFilling), 1e-8, NEVER)
    assert {promise.name: value for promise, value in zip(promises, most, strict=True)} == pytest.approx(
        {"guaranteed cpu of lab": 4, "guaranteed cpu of rest": 4, "guaranteed cpu of team": 1}
    )
    assert fo.solve(pool, solver="highs").tasks_per_user == pytest.approx([3, 0, 3])


def test_nothing_is_promised_to_who_can_hold_nothing_of_it() -> None:
    """Ann has no server, and zoe, whose weight is 0, rises for no guarantee. So nobody rises for that of the lab."""
    queues = [fo.Queue("lab", guarantee={"cpu": 2}), fo.Queue("inner", parent="lab", guarantee={"gpu": 1})]
    users: dict[str, Any] = {"users": ["ann", "zoe"], "queue_of": ["inner", "lab"], "weights": [1, 0]}
    eligibility = [[False], [True]]
    pool = fo.Instance([[4, 4]], [[0, 1], [1, 0]], resources=["cpu", "gpu"], queues=queues, eligibility=eligibility, **users)
    program = fo.formulate(pool, "drfh")
    assert promised_alone(program, program.goal_as(TreeFilling), 1e-8, NEVER) == ((), [], [])


@pytest.mark.parametrize("seed", range(40))
def test_what_is_read_off_is_what_each_holds_alone(seed: int) -> None:
    """Units and the most that each could hold, in random trees whose guarantees may exceed the cluster."""
    instance = instance_in_queues(seed)
    program = fo.formulate(instance, "drfh", guarantees="clamp" if seed % 3 == 0 else "surplus")
    if not isinstance(program.goal, TreeFilling):
        pytest.skip("a tree that needs no filling")
    goal = program.goal_as(TreeFilling)
    _, units, most = promised_alone(program, goal, 1e-8, NEVER)
    _, each_unit, each_most = held_alone(program, goal)
    assert units == pytest.approx(each_unit, rel=1e-7)
    assert most == pytest.approx(each_most, rel=1e-7)
