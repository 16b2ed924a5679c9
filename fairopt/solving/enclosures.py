"""Alpha-fair goals and trade-offs with the digits asked for: a feasible allocation in fractions, and its proved distance to the optimum.

From an answer in floats `fairopt.solvers` finds a point and prices with twice the digits. `fairopt.certificate.enclosure` derives a proved
bound on their distance from the optimum. If the bound is larger than asked for, more digits are tried.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import chain

from fairopt.errors import CertificateError, NoSolution
from fairopt.instance.tolerances import CERTIFIED
from fairopt.program import Solution
from fairopt.program.exact import ExactProgram
from fairopt.solvers import candidates, points_near, polishes
from fairopt.solvers.backend import Deadline
from fairopt.solving.policy import find

__all__ = ["DIGITS", "answer_in_floats", "enclose", "in_floats_above", "is_enclosed"]

DIGITS = 30  # asked for, if no number is given
_STEPS = (0, 1, 4, 16)  # of digits beyond twice those asked for; a step has as many as are asked for, and at least ``DIGITS``
_GUARD_DIGITS = 16  # of the arithmetic of the proof, beyond those of the point


def is_enclosed(program: ExactProgram) -> bool:
    """Is the goal one whose optimum is irrational in general?"""
    return program.goal.has_gradient


def answer_in_floats(program: ExactProgram, deadline: Deadline) -> Solution:
    """Return the answer in floats, to start from."""
    floats = program.program
    return find(floats, candidates(floats, None), CERTIFIED, deadline).solution


def enclose(program: ExactProgram, digits: int, deadline: Deadline, near: Solution | None = None) -> tuple[Solution, Fraction]:
    """Return a solution in rationals, and the relative distance that the optimal utility of any user has at most from it: 0, or 10^-digits.

    ``near`` is the answer in floats, where it is known.

    Raises
    ------
    NoSolution
        At the deadline, or where fewer digits can be proved; ``known`` has the ``radius`` that can.
    """
    from fairopt.certificate.enclosure import proved_radius

    near = near or answer_in_floats(program, deadline)
    best: tuple[Fraction, Solution] | None = None
    for steps in _STEPS:
        wanted = 2 * digits + steps * max(digits, DIGITS)
        for point in _points(program, near, wanted, deadline):
            try:
                radius = proved_radius(program, point, wanted + _GUARD_DIGITS)
            except CertificateError:
                continue
            if best is None or radius < best[0]:
                best = radius, point
            if radius <= Fraction(1, 10**digits):
                return point, radius
    proved = (
        "nothing could be proved of what was found" if best is None else f"only a relative distance of {float(best[0]):.1e} could be proved"
    )
    raise NoSolution(
        f"{digits} digits of the optimum are not found: {proved}; ask for fewer digits, or leave exact out",
        {} if best is None else {"radius": best[0]},
    )


def _points(program: ExactProgram, near: Solution, digits: int, deadline: Deadline) -> list[Solution]:
    """Return points near the optimum, from an answer in floats, or from a polish of it that shows which pairs and limits count.

    Raises
    ------
    NoSolution
        At the deadline, or where none of them does.
    """
    last: NoSolution | None = None
    for start in chain([near], (polished for _, polished in polishes(program.program, near, deadline))):
        try:
            return points_near(program, start, digits, deadline)
        except NoSolution as error:
            last = last or error
            if deadline.left == 0.0:
                break
    assert last is not None
    raise last


def in_floats_above(radius: Fraction) -> float:
    """Return a float that is not below a positive fraction."""
    return math.nextafter(float(radius), math.inf)
