"""A small program whose answer in floats fails its check, solved in fractions and taken back to floats.

Prices of very different sizes leave a solver too few digits to prove an answer that is right. In fractions a small program takes less than
a second (`fairopt.solvers.rational`), and its point and prices, rounded to floats, are an answer like that of any engine: the certificate is
computed from them alone.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from fairopt.certificate import certify
from fairopt.instance import FloatArray, Instance
from fairopt.instance.fractions import ExactArray, from_rationals
from fairopt.models import Notion
from fairopt.program import Equilibrium, Solution
from fairopt.solvers import EXACT_GOALS, seconds_of_a_level
from fairopt.solvers.backend import Deadline
from fairopt.solving.fractions import ENGINE, fraction, within_kept
from fairopt.solving.policy import Found

__all__ = ["in_small_fractions"]

log = logging.getLogger(__name__)

_MOST_SECONDS = 10.0
_MOST_NUMBERS = 3_000  # pairs and limits
_OF_PYTHON = 1e-5  # seconds that a level takes for each of them, beside its system of equations


def in_small_fractions(found: Found, notion: Notion, instance: Instance, deadline: Deadline) -> Found:
    """Return the answer by fractions where the program is small, and it leaves smaller residuals; else what was found.

    Parameters
    ----------
    found : Found
        Whose program is that of the notion on the instance.
    """
    program = found.program
    small = program.n_pairs + len(program.limits) <= _MOST_NUMBERS
    if program.integral or program.is_separate or not small or isinstance(program.goal, Equilibrium) or type(program.goal) not in EXACT_GOALS:
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
    stages = tuple(
        replace(stage, value=float(fraction(stage.value)), prices=None if stage.prices is None else _floats(stage.prices))
        for stage in solution.stages
    )
    prices = None if solution.prices is None else _floats(solution.prices)
    return replace(solution, x=_floats(solution.x), stages=stages, prices=prices, parts=tuple(map(_floats, solution.parts)))


def _floats(values: ExactArray) -> FloatArray:
    return from_rationals(values).astype(np.float64)
