"""An answer in floats that fails its check, checked in fractions where its program is small.

Prices of very different sizes leave a solver too few digits to prove an answer that is right. In fractions a small program takes less than
a second (`fairopt.solvers.rational`). If users have the same there, up to the digits of a solver, then the point and the prices in
fractions, rounded to floats, take the place of the answer, and the certificate is computed from them alone.

An alpha-fair goal or a trade-off magnifies ratios: at alpha = 20, what a user with three times as much pays is 10^-9 of what the poorest
pays. Where rules tie their tasks to one another, their costs are differences of large prices, of which floats keep no digit. Rationals
near the answer, and a proof of their distance from the optimum (`fairopt.certificate.enclosure`), take its place then. The proof needs
nothing of the answer in floats.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from fairopt.certificate import Certificate, limit_excess
from fairopt.certificate.exact import prove
from fairopt.instance import FloatArray, Instance, safe_ratio
from fairopt.instance.fractions import ExactArray, from_rationals
from fairopt.models import Notion
from fairopt.program import Program, Solution, Stage
from fairopt.program.exact import ExactProgram
from fairopt.program.guarantees import Floors
from fairopt.solvers import EXACT_GOALS, seconds_of_a_level
from fairopt.solvers.backend import Deadline
from fairopt.solving.enclosures import enclose, in_floats_above, is_enclosed
from fairopt.solving.fractions import ENGINE, ENGINES, fraction
from fairopt.solving.kept_rows import exactly_within_kept
from fairopt.solving.policy import Found

__all__ = ["in_small_fractions", "is_small"]

log = logging.getLogger(__name__)

_LONGEST = 60.0  # seconds that an answer may be expected to take, from its size and digits, to be tried
_MOST_WORK = 1e7  # steps after which it is given up: the same on every machine, however busy that is
_MOST_NUMBERS = 3_000  # pairs and limits
_NEAR = 1e-6  # of the largest utility: an answer that differs by more is not right
_DIGITS = 12  # of what users have, that are proved where the optimum is irrational
_OF_PYTHON = 1e-5  # seconds that a level takes for each of them, beside its system of equations


def is_small(program: Program) -> bool:
    """Has a program an answer in fractions, and is it small?"""
    solved = (type(program.goal) in EXACT_GOALS or program.goal.has_gradient) and not (
        program.integral or program.is_separate or program.goal.is_equilibrium
    )
    return solved and program.n_pairs + len(program.limits) <= _MOST_NUMBERS


def in_small_fractions(found: Found, notion: Notion, instance: Instance, deadline: Deadline) -> Found:
    """Return the answer in fractions, where the program is small and users have the same in it, or nearly one; else what was found.

    Parameters
    ----------
    found : Found
        Whose program is that of the notion on the instance.
    """
    program = found.program
    if not is_small(program):
        return found
    try:
        exact = notion.exactly.in_fractions(instance.exact, program)
        levels = max(len(found.solution.stages), 1)
        seconds = levels * (seconds_of_a_level(exact) + _OF_PYTHON * (program.n_pairs + len(program.limits)))
        if seconds > min(_LONGEST, deadline.left):
            return found
        within = deadline.within(_MOST_WORK)
        if is_enclosed(exact):
            return _enclosed(found, exact, within)
        exact, solution = exactly_within_kept(exact, within)
        prove(exact, solution)
    except Exception as error:  # a notion of the user's own need not work in fractions
        log.info("no answer in fractions: %s", error)
        return found
    program, answer = exact.program, in_floats(solution)
    has, right = (program.per_user(program.utilities * x) for x in (found.solution.x, answer.x))
    if not (np.abs(has - right) <= _NEAR * right.max(initial=0.0)).all():
        log.info("fractions give users other tasks")
        return found
    rounding = _rounding(exact, solution, answer)
    certificate = Certificate(limit_excess(program, answer.x), rounding, 0.0)
    log.info("proved in fractions; rounding changed users by %.1e", rounding)
    return _instead(replace(found, program=program), answer, certificate, ENGINE)


def _enclosed(found: Found, exact: ExactProgram, deadline: Deadline) -> Found:
    """Return floats near rationals whose distance from the optimum is proved, in parts of what each user has.

    Raises
    ------
    NoSolution
        At the deadline, after too much work, or where fewer digits can be proved.
    """
    solution, radius = enclose(exact, _DIGITS, deadline, found.solution)
    answer = in_floats(solution)
    distance = (0.0 if radius == 0 else in_floats_above(radius)) + _rounding(exact, solution, answer)
    certificate = Certificate(limit_excess(exact.program, answer.x), 0.0, distance, distance=distance)
    log.info("users are proved to have what they have at the optimum, up to %.1e of it", distance)
    return _instead(found, answer, certificate, ENGINES[type(exact.goal)])


def _rounding(exact: ExactProgram, solution: Solution, answer: Solution) -> float:
    """Return by what part of what a user has in fractions it has something else in floats, at most."""
    program = exact.program
    proved, has = _floats(exact.per_user(exact.utilities * solution.x)), program.per_user(program.utilities * answer.x)
    return float(safe_ratio(np.abs(has - proved), proved).max(initial=0.0))


def _instead(found: Found, answer: Solution, certificate: Certificate, engine: str) -> Found:
    """Return what was found with another answer."""
    answer = replace(answer, iterations=found.solution.iterations + answer.iterations)
    return replace(found, solution=answer, certificate=certificate, finished_by=engine, engines=(*found.engines, engine))


def in_floats(solution: Solution) -> Solution:
    """Return the nearest floats to a solution in rationals."""
    return replace(
        solution,
        x=_floats(solution.x),
        stages=_stages(solution.stages),
        prices=None if solution.prices is None else _floats(solution.prices),
        parts=tuple(map(_floats, solution.parts)),
        extra_bounds=tuple(None if bounds is None else _floats(bounds) for bounds in solution.extra_bounds),
        promised=None if solution.promised is None else _floors(solution.promised),
        raised={part: _stages(stages) for part, stages in solution.raised.items()},
    )


def _floors(floors: Floors) -> Floors:
    """Return how far guarantees are met, in floats, without the fillings that prove it."""
    asks, most, units, parts = (
        tuple(float(fraction(each)) for each in values) for values in (floors.asks, floors.most, floors.units, floors.parts)
    )
    return Floors(floors.promises, asks, most, units, parts, _stages(floors.stages))


def _stages(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    return tuple(
        replace(stage, value=float(fraction(stage.value)), prices=None if stage.prices is None else _floats(stage.prices))
        for stage in stages
    )


def _floats(values: ExactArray) -> FloatArray:
    return from_rationals(values).astype(np.float64)
