"""An answer in floats that fails its check, checked in fractions where its program is small.

Prices of very different sizes leave a solver too few digits to prove an answer that is right. In fractions a small program takes less than
a second (`fairopt.solvers.rational`). If users have the same there, up to the digits of a solver, then the point and the prices in
fractions, rounded to floats, take the place of the answer, and the certificate is computed from them alone.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fairopt.certificate import certify
from fairopt.instance import FloatArray, Instance
from fairopt.instance.fractions import ExactArray, from_rationals
from fairopt.models import Notion
from fairopt.program import Program, Solution, Stage
from fairopt.program.guarantees import Floors, alone_in
from fairopt.program.tree_filling import TreeFilling
from fairopt.solvers import EXACT_GOALS, seconds_of_a_level
from fairopt.solvers.backend import Deadline
from fairopt.solving.fractions import ENGINE, fraction
from fairopt.solving.kept_rows import within_kept
from fairopt.solving.policy import Found

__all__ = ["in_small_fractions", "is_small"]

log = logging.getLogger(__name__)

_MOST_SECONDS = 10.0
_MOST_NUMBERS = 3_000  # pairs and limits
_NEAR = 1e-6  # of the largest utility: an answer that differs by more is not right
_OF_PYTHON = 1e-5  # seconds that a level takes for each of them, beside its system of equations


def is_small(program: Program) -> bool:
    """Has a program an answer in fractions, and is it small?"""
    solved = type(program.goal) in EXACT_GOALS and not (program.integral or program.is_separate or program.goal.is_equilibrium)
    return solved and program.n_pairs + len(program.limits) <= _MOST_NUMBERS


def in_small_fractions(found: Found, notion: Notion, instance: Instance, deadline: Deadline) -> Found:
    """Return the answer in fractions, where the program is small and users have the same in it; else what was found.

    Parameters
    ----------
    found : Found
        Whose program is that of the notion on the instance.
    """
    program = found.program
    if not is_small(program):
        return found
    try:
        exact = notion.in_fractions(instance.exact, program)
        levels = max(len(found.solution.stages), 1)
        seconds = levels * (seconds_of_a_level(exact) + _OF_PYTHON * (program.n_pairs + len(program.limits)))
        if seconds > min(_MOST_SECONDS, deadline.left):
            return found
        exact, solution = within_kept(exact, Deadline(min(_MOST_SECONDS, deadline.left)))
    except Exception as error:  # a notion of the user's own need not work in fractions
        log.info("no answer in fractions: %s", error)
        return found
    answer = in_floats(solution)
    if solution.promised is not None:
        answer = replace(answer, promised=_floors_in_floats(exact.program, exact.program.goal_as(TreeFilling), solution.promised))
    has, should = (program.per_user(program.utilities * x) for x in (found.solution.x, answer.x))
    if not (np.abs(has - should) <= _NEAR * should.max(initial=0.0)).all():
        log.info("in fractions users have something else")
        return found
    certificate = certify(exact.program, answer)
    log.info("in fractions: the answer leaves an error of %.1e", certificate.worst)
    if not certificate.worst < found.certificate.worst:
        return found
    answer = replace(answer, iterations=found.solution.iterations + answer.iterations)
    return replace(
        found, solution=answer, certificate=certificate, finished_by=ENGINE, engines=(*found.engines, ENGINE), program=exact.program
    )


def in_floats(solution: Solution) -> Solution:
    """Return the nearest floats to a solution in rationals."""
    return replace(
        solution,
        x=_floats(solution.x),
        stages=_stages(solution.stages),
        prices=None if solution.prices is None else _floats(solution.prices),
        parts=tuple(map(_floats, solution.parts)),
        extra_bounds=tuple(None if bounds is None else _floats(bounds) for bounds in solution.extra_bounds),
        raised={part: _stages(stages) for part, stages in solution.raised.items()},
    )


def _floors_in_floats(program: Program, goal: TreeFilling, floors: Floors) -> Floors:
    """Return how far guarantees are met together, and what proves it, in floats.

    In fractions a node alone is filled over all columns; in floats over those of its users, and with the limits that have one of them.
    """
    asks, most, units, parts = (
        tuple(float(fraction(each)) for each in values) for values in (floors.asks, floors.most, floors.units, floors.parts)
    )
    return replace(
        floors,
        asks=asks,
        most=most,
        units=units,
        parts=parts,
        stages=_stages(floors.stages),
        alone={owner: _alone_in_floats(program, goal, owner, each) for owner, each in floors.alone.items()},
        asked={owner: _alone_in_floats(program, goal, owner, each) for owner, each in floors.asked.items()},
        counted={key: (_floats(best), _stages((stage,))[0]) for key, (best, stage) in floors.counted.items()},
        points=tuple(None if each is None else _floats(each) for each in floors.points),
        seen=tuple(map(_floats, floors.seen)),
    )


def _alone_in_floats(program: Program, goal: TreeFilling, owner: int, solution: Solution) -> Solution:
    columns = alone_in(program, goal, owner)[1]
    kept = np.diff(sp.csr_array(program.limits.matrix[:, columns]).indptr) > 0

    def own(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        size = kept.size
        return tuple(
            each if each.prices is None else replace(each, prices=np.append(each.prices[:size][kept], each.prices[size:]))
            for each in stages
        )

    whole = in_floats(solution)
    return replace(
        whole,
        x=whole.x[columns],
        stages=own(whole.stages),
        parts=tuple(point[columns] for point in whole.parts),
        raised={part: own(stages) for part, stages in whole.raised.items()},
    )


def _stages(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    return tuple(
        replace(stage, value=float(fraction(stage.value)), prices=None if stage.prices is None else _floats(stage.prices))
        for stage in stages
    )


def _floats(values: ExactArray) -> FloatArray:
    return from_rationals(values).astype(np.float64)
