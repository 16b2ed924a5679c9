"""Nodes that a filling fills as it would fill them alone: worked out by hand, and against the fillings alone of random trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instances import instance_in_queues
from support.one_by_one import held_alone

import fairopt as fo
from fairopt.instance import FloatArray
from fairopt.program import Program, TreeFilling
from fairopt.program.promises import counted
from fairopt.program.share_limits import ShareLimits, during
from fairopt.program.undisturbed import Undisturbed, stop_times
from fairopt.solvers.backend import Deadline

NEVER = Deadline(None)


def filled(instance: fo.Instance, guarantees: str = "surplus") -> tuple[Program, TreeFilling, list[FloatArray], frozenset[int]]:
    """Return the program, its goal, the ends of the parts that meet guarantees, and the undisturbed nodes of a filling without floors."""
    program = fo.formulate(instance, "drfh", guarantees=guarantees)
    goal = program.goal_as(TreeFilling)
    found = fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=NEVER)
    undisturbed = Undisturbed.before(goal.tree)
    for number, part in enumerate(goal.parts):
        if not part.guarantees or part.extra is None:
            continue
        of_part = during(program, part, found.bounds_of_part(number))
        shares = program.per_user(found.parts[number] * program.utilities)
        stages = [stage for stage in found.stages if stage.part == number]
        able = program.per_user(of_part.largest() * program.utilities) > 0
        undisturbed = undisturbed.after(part, ShareLimits.of(of_part), shares, stop_times(stages, able.size), able, 1e-9)
    return program, goal, list(found.parts), undisturbed.owners


def lab(gpus: float, mine: float, others: float) -> fo.Instance:
    """A lab with two groups, of which one is guaranteed GPUs too, and another queue; ``others`` are the tasks of its only user."""
    queues = [
        fo.Queue("lab", guarantee={"gpu": 6}),
        fo.Queue("vision", parent="lab", guarantee={"gpu": 2}),
        fo.Queue("rest", guarantee={"gpu": 4}),
    ]
    users: dict[str, Any] = {"users": ["ann", "bob", "eve"], "queue_of": ["vision", "lab", "rest"]}
    return fo.Instance([[gpus]], [[1], [1], [1]], tasks=[mine, np.inf, others], resources=["gpu"], queues=queues, **users)


def test_guarantees_that_fit_are_undisturbed() -> None:
    """10 GPUs, and guarantees of 6 and 4: ann stops at the 2 of her queue, or at the one task that she has; the others at theirs."""
    for tasks in (np.inf, 1):
        _, goal, _, owners = filled(lab(10, tasks, np.inf))
        assert {goal.tree.name(owner) for owner in owners} == {"lab", "vision", "rest"}


def test_a_queue_that_servers_stop_is_disturbed() -> None:
    """Of 5 GPUs, the first part gives 2 to ann and 3 to eve, and the lab could have more than the 2. Alone it could have 5."""
    program, goal, _, owners = filled(lab(5, np.inf, np.inf))
    assert {goal.tree.name(owner) for owner in owners} == {"vision"}
    promises, _, most = held_alone(program, goal)
    alone = {promise.name: value for promise, value in zip(promises, most, strict=True)}
    assert alone["guaranteed gpu of lab"] == pytest.approx(5)
    assert alone["guaranteed gpu of vision"] == pytest.approx(2)


def test_a_queue_is_disturbed_by_a_limit_that_it_shares() -> None:
    """The limit of 5 of the queue above both stops them, and each could have its guarantee alone."""
    queues = [
        fo.Queue("all", limit={"gpu": 5}),
        fo.Queue("A", parent="all", guarantee={"gpu": 4}),
        fo.Queue("B", parent="all", guarantee={"gpu": 4}),
        fo.Queue("C", guarantee={"gpu": 1}),
    ]
    pool = fo.Instance([[20]], [[1], [1], [1]], resources=["gpu"], queues=queues, queue_of=["A", "B", "C"])
    _, goal, _, owners = filled(pool)
    assert {goal.tree.name(owner) for owner in owners} == {"C"}


@pytest.mark.parametrize("seed", range(60))
def test_who_is_undisturbed_holds_what_it_could_hold_alone(seed: int) -> None:
    """In random trees with guarantees of groups of servers, limits, clamps and users with guarantees of their own."""
    instance = instance_in_queues(seed)
    if not isinstance(fo.formulate(instance, "drfh").goal, TreeFilling):
        pytest.skip("a tree that needs no filling")
    program, goal, ends, owners = filled(instance, "clamp" if seed % 3 == 0 else "surplus")
    if not owners:
        return
    promises, _, most = held_alone(program, goal)
    for promise, could in zip(promises, most, strict=True):
        if promise.owner in owners:
            assert counted(program, goal, promise, ends[promise.part]) >= could * (1 - 1e-8)
