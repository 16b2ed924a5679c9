"""A point at which every user has a given level, by the path to the largest t at which all have t times that level.

Levels that were found one after the other, on parts of the program, need one point that has all of them. With the levels L,

    maximise t   subject to   A x <= b,   W x >= L t,   x >= 0.

If t = 1 is reached, all of them can be had at once; who stops it does not matter. Nobody is settled and no limit is held, so that this
path is as short as that to a first level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairopt.instance import FloatArray
from fairopt.solvers.backend import Deadline, final_levels
from fairopt.solvers.interior_point.path import Face, LevelCertificate, LevelPath, solve_level
from fairopt.solvers.interior_point.steps import Point
from fairopt.solvers.large.settings import SETTINGS
from fairopt.solvers.leximin.levels import Course
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.layouts import lay_out
from fairopt.solvers.structure.scaling import ScaledProgram

__all__ = ["Placed", "place"]


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Where such a path ended.

    Attributes
    ----------
    x : array (pairs,)
    t : float
        Everybody has its level times this.
    steps : int
    """

    x: FloatArray
    t: float
    steps: int


def place(part: ScaledProgram, bounds: FloatArray, levels: FloatArray, deadline: Deadline, enough: float = 1.0) -> Placed:
    """Return a point at which everybody has its level.

    Parameters
    ----------
    part : ScaledProgram
    bounds : array (slots, servers)
        What the limits have.
    levels : array (users,)
        Each divided by its user's reach; > 0.
    enough : float
        A smaller t may do: then the point is the first that has it, or that of the last step.

    Raises
    ------
    NoSolution
        At the deadline.
    """
    none = np.zeros(part.n_users, bool)
    full = np.zeros(bounds.shape, bool)
    course = Course(~none, np.zeros(part.n_users), levels)
    face = Face(course, bounds, none, full, np.zeros(part.n_pairs), 0.0)
    path = LevelPath.on(face, lay_out(replace(part, cap=np.full(part.n_users, np.inf)), NUMPY))
    point, known = _start(path, levels), final_levels(part.program, ())
    if enough == 1:
        end = solve_level(path, SETTINGS.exact_placing, deadline, known, start=point)
        return _placed(path, end.reached, end.steps)
    reached, steps = path.proved(point), 0
    try:
        while reached.level < enough and steps < SETTINGS.steps_of_placing:
            if deadline.left == 0.0:
                raise deadline.passed(known)
            point, steps = path.newton_step(point, reached), steps + 1
            reached = path.proved(point)
    except np.linalg.LinAlgError:  # the last point is what there is
        pass
    return _placed(path, reached, steps)


def _placed(path: LevelPath, reached: LevelCertificate, steps: int) -> Placed:
    return Placed(path.pairs.numbers(reached.x), float(reached.level), steps)


def _start(path: LevelPath, levels: FloatArray) -> Point:
    """Half of every limit, divided evenly among those who can use the server."""
    pairs, scaled = path.pairs, path.pairs.scaled
    slice_ = 0.5 / np.bincount(scaled.server)
    x = pairs.eligible(pairs.lay(pairs.numbers(pairs.room()) * slice_[scaled.server]), 1.0)
    level = pairs.arrays.numpy(pairs.rows(x))
    t = 0.5 * float((level / levels).min())
    return Point(pairs.point(x, pairs.bounds - pairs.use(x), pairs.arrays.floats(level - levels * t)), path.even_prices(), t)
