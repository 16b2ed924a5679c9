"""The loop over the parts of a filling, with plain linear programs of SciPy's as its engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference.leximin import OneLevel

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Program, Stage, TreeFilling
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.tree import TreeGoal, solve_tree


def filled(instance: fo.Instance, **options: Any) -> tuple[np.ndarray, float, list[OneLevel], tuple[Stage, ...]]:
    """Return the tasks of each user, the worst residual, the solvers of the parts and the stages."""
    program = fo.formulate(instance, "drfh", **options)
    assert isinstance(program.goal, TreeFilling)
    made: list[OneLevel] = []

    def solver_of(of_part: Program, _: TreeGoal) -> OneLevel:
        made.append(OneLevel(of_part, of_part.utilities))
        return made[-1]

    found = solve_tree(program, program.goal, lambda _: solver_of, 1e-9, Deadline(None))
    tasks = np.bincount(program.pair_users, weights=found.x, minlength=instance.n_users)
    return tasks, certify(program, found).worst, made, found.stages


def two_pools() -> fo.Instance:
    """A and B share a server of 12, C has one of 30; A and C are in a queue."""
    return fo.Instance(
        [[12], [30]],
        [[1], [1], [1]],
        eligibility=[[1, 0], [1, 0], [0, 1]],
        queues=[fo.Queue("q")],
        queue_of=["q", None, "q"],
        resources=["gpu"],
    )


def test_rates_change_when_a_sibling_stops() -> None:
    """A and C rise at half of B's rate: 4, 8, 4 fill the first server; then C has the whole rate of its queue, and rises to 30."""
    tasks, worst, _, stages = filled(two_pools())
    assert tasks == pytest.approx([4, 8, 30])
    assert worst <= 1e-12
    assert [stage.users.tolist() for stage in stages] == [[0, 1], [2]]


def test_guarantees_that_fit_take_no_program() -> None:
    """Both guarantees are reached at t = 1, which the even slices show; the surplus takes one program a level."""
    queues = [fo.Queue("a", guarantee={"gpu": 2}), fo.Queue("b", weight=3, guarantee={"gpu": 2})]
    instance = fo.Instance([[8]], [[1], [1]], queues=queues, queue_of=["a", "b"], resources=["gpu"])
    tasks, worst, made, stages = filled(instance)
    assert tasks == pytest.approx([3, 5])
    assert worst <= 1e-12
    assert [plain.asked for plain in made] == [0, 1]
    assert [(stage.part, stage.prices is None) for stage in stages] == [(0, True), (1, False)]


def test_siblings_wait_under_a_clamp() -> None:
    """The first waits with its 2 until the second has three times as much: 2, 6."""
    queues = [fo.Queue("a", guarantee={"gpu": 2}), fo.Queue("b", weight=3, guarantee={"gpu": 2})]
    instance = fo.Instance([[8]], [[1], [1]], queues=queues, queue_of=["a", "b"], resources=["gpu"])
    tasks, worst, _, _ = filled(instance, guarantees="clamp")
    assert tasks == pytest.approx([2, 6])
    assert worst <= 1e-12


def test_guarantees_that_even_slices_do_not_fit_take_no_program() -> None:
    """One server of 8 that both may use, one of 8 for the second alone; guaranteed are 5 and 7.

    Half of the second's 7 would be on the first server, with the 5 of the other. Where users go on as far as there is room, the second has
    most on its own server.
    """
    queues = [fo.Queue("a", guarantee={"gpu": 5}), fo.Queue("b", guarantee={"gpu": 7})]
    instance = fo.Instance([[8], [8]], [[1], [1]], eligibility=[[1, 0], [1, 1]], queues=queues, queue_of=["a", "b"], resources=["gpu"])
    tasks, worst, made, _ = filled(instance)
    assert tasks == pytest.approx([7, 9])
    assert worst <= 1e-12
    assert [plain.asked for plain in made] == [0, 1]


def test_a_met_guarantee_of_a_parent_stops_nobody_twice() -> None:
    """What is guaranteed to the child is all that its parent is guaranteed: in the parent's part nobody rises, and no time passes."""
    queues = [fo.Queue("a", guarantee={"gpu": 3}), fo.Queue("b", "a", guarantee={"gpu": 3})]
    instance = fo.Instance([[8]], [[1], [1], [1]], queues=queues, queue_of=["b", "b", None], resources=["gpu"])
    tasks, worst, made, stages = filled(instance)
    assert tasks == pytest.approx([2.75, 2.75, 2.5])
    assert worst <= 1e-12
    assert [stage.part for stage in stages] == [0, 2]
    assert len(made) == 2
