"""The leximins of the depths of a tree, one after another."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Nested, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import HighsModel, Outcome, Status
from fairopt.solvers.via_highs.nested import solve_nested


def owners(**changes: object) -> fo.Instance:
    """A has tasks for x, which has 2 GPUs, and for y, which has 20; B runs on y and C on x."""
    instance = fo.Instance(
        [[2], [20]],
        np.ones((4, 1)),
        eligibility=[[1, 0], [0, 1], [0, 1], [1, 0]],
        queues=[fo.Queue("A")],
        queue_of=["A", "A", None, None],
        resources=["gpu"],
    )
    return instance.replace(**changes)


@pytest.mark.parametrize("small", [False, True])
def test_owners_first(small: bool) -> None:
    """A leaves x to C, because it can have as much on y: 10, 10, 2. Both units of columns prove it."""
    program = fo.formulate(owners(), "drfh", tree="nested")
    assert isinstance(program.goal, Nested)
    found = solve_nested(program, program.goal, Deadline(None), small)
    assert np.bincount(program.pair_users, weights=found.x) == pytest.approx([0, 10, 10, 2], abs=1e-9)
    certificate = certify(program, found)
    assert certificate.worst <= 1e-9


def test_a_wrong_answer_is_not_certified() -> None:
    """The filling of the same tree, 10.33 for A and B, is not the nested leximin."""
    program = fo.formulate(owners(), "drfh", tree="nested")
    assert isinstance(program.goal, Nested)
    found = solve_nested(program, program.goal, Deadline(None))
    x = np.array([2 / 3, 29 / 3, 31 / 3, 4 / 3])
    assert certify(program, Solution(x, found.stages)).worst > 0.01


def test_what_nested_does_not_know_is_refused() -> None:
    """Guarantees, tiers and weights of 0, each by name."""
    for queue, what in (
        (fo.Queue("A", guarantee={"gpu": 1}), "has a guarantee"),
        (fo.Queue("A", tier=1), "has a tier"),
        (fo.Queue("A", weight=0), "has the weight 0"),
    ):
        with pytest.raises(fo.Unsupported, match=f'queue "A" {what}'):
            fo.solve(owners(queues=[queue]), "drfh", tree="nested")
    with pytest.raises(fo.Unsupported, match='user "user-2" has a guarantee or the weight 0'):
        fo.solve(owners(weights=[1, 0, 1, 1]), "drfh", tree="nested")


def test_final_levels_are_told_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is up in the second program: the level of the first one is final."""
    program = fo.formulate(owners(), "drfh", tree="nested")
    assert isinstance(program.goal, Nested)
    first = solve_nested(program, program.goal, Deadline(None)).stages[0]
    run, runs = HighsModel.run, itertools.count()

    def late(model: HighsModel, time_limit: float) -> Outcome:
        outcome = run(model, time_limit)
        return outcome if next(runs) < 2 else replace(outcome, status=Status.TIME_LIMIT)  # a program is run, and refined

    monkeypatch.setattr(HighsModel, "run", late)
    with pytest.raises(fo.NoSolution, match="1 level was final by then") as caught:
        solve_nested(program, program.goal, Deadline(60))
    assert caught.value.known["levels"] == [first.value]


def test_a_depth_that_leaves_somebody_nothing() -> None:
    """Weights over five orders, and what a queue keeps from its depth is out of reach by rounding: the limit is used up by b, so a has 0.

    The queue has the most shares with b = 1 and c = 4: 1/2 and 8/9 of the memory and of the gpu, and no memory is left for a.
    """
    pool = fo.Instance(
        [[6, 9, 4]],
        [[2, 1, 1], [0, 1, 2], [1, 2, 0]],
        users=["a", "b", "c"],
        resources=["cpu", "gpu", "memory"],
        weights=[0.001, 100, 1],
        queues=[fo.Queue("q", limit={"memory": 2})],
        queue_of=["q"] * 3,
        limits=[fo.Limit("few", 5), fo.Limit("cores", 1, resource="cpu", users=["a"])],
    )
    assert fo.solve(pool, "drfh", tree="nested").tasks_per_user == pytest.approx([0, 1, 4], abs=1e-7)
