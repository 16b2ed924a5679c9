"""The leximins of the depths of a tree in fractions: worked by hand."""

# mypy: disable-error-code="arg-type"
# (fractions where the types say floats)

from __future__ import annotations

from fractions import Fraction

import numpy as np

import fairopt as fo
from fairopt.certificate.exact import prove
from fairopt.instance.fractions import from_rationals
from fairopt.solvers.backend import Deadline
from fairopt.solvers.rational.nested import solve_nested

F = Fraction


def test_owners_first_in_thirds() -> None:
    """A has tasks for x, of 2 GPUs, and for y, of 20; B runs on y and C on x. Then it is fair inside A.

    Depth 1: S[A] / 2 = S[B] = S[C] = t needs 4 t <= 22 and t <= 2 on x for C: so C is settled at 2 with all of x, and A and B share y,
    3 t = 20. Depth 2: A has 40/3, all of it on y, where only its second user runs; the first one has nothing.
    """
    instance = fo.Instance(
        [[2], [20]],
        np.ones((4, 1)),
        eligibility=[[1, 0], [0, 1], [0, 1], [1, 0]],
        queues=[fo.Queue("A", weight=2)],
        queue_of=["A", "A", None, None],
        resources=["gpu"],
    )
    notion = fo.NOTIONS["drfh"]().changed(tree="nested")
    program = notion.in_fractions(instance.exact, notion.formulate(instance, sharing="rdm", integral=False))
    solution = solve_nested(program, Deadline(None))
    prove(program, solution)
    assert from_rationals(program.per_user(solution.x)).tolist() == [0, F(40, 3), F(20, 3), 2]
    assert [stage.part for stage in solution.stages] == [1, 1, 2, 2]
