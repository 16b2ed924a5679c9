"""The course of a filling by its definition, against the one that engines follow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from instances import instance_in_queues

import fairopt as fo
from fairopt.certificate.tree_course import Course
from fairopt.program import Limits, Program, TreeFilling
from fairopt.program.share_limits import ShareLimits
from fairopt.solving import notion_of


@pytest.mark.parametrize("options", [{}, {"guarantees": "clamp"}, {"queue_share": "sum"}, {"guarantees": "clamp", "queue_share": "sum"}])
@pytest.mark.parametrize("seed", range(12))
def test_both_courses_are_one(seed: int, options: dict[str, Any]) -> None:
    """At each level of an answer: who rises, at which rates, and when the rates change next."""
    instance = instance_in_queues(seed)
    if not instance.is_tree:
        return
    program = notion_of("drfh", **options).formulate(instance, sharing="rdm", integral=False)
    found = fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=fo.solvers.backend.Deadline(None))
    goal = program.goal_as(TreeFilling)
    shares = goal.nothing()
    most = program.per_user(program.largest() * program.utilities)
    for number, part in enumerate(goal.parts):
        of_part = _with(program, part.limits(found.bounds_of_part(number)))
        able = program.per_user(of_part.largest() * program.utilities) > 0
        on_shares = ShareLimits.of(of_part)
        mine, theirs = Course(goal, part, shares, able, on_shares), goal.course(part, shares, able, most, on_shares)
        for stage in [stage for stage in found.stages if stage.part == number]:
            assert (mine.rising == theirs.rising).all()
            np.testing.assert_allclose(mine.rate, theirs.rate, rtol=1e-9, atol=1e-12)
            assert mine.change() == pytest.approx(theirs.event()[0], rel=1e-9)
            theirs.advance(stage.value)
            theirs.stop(stage.users)
            mine.stop(stage.value, stage.users)
            np.testing.assert_allclose(mine.shares.users, theirs.shares.users, rtol=1e-9, atol=1e-15)
            np.testing.assert_allclose(mine.shares.nodes, theirs.shares.nodes, rtol=1e-9, atol=1e-15)
        shares = theirs.shares


def _with(program: Program, extra: Limits | None) -> Program:
    """The program with more limits."""

    return program if extra is None else replace(program, limits=Limits.stack([program.limits, extra]))
