r"""Linear programs of levels in which users who differ only in weights and limits of their own are one: a *class* of users.

Users of a class have the same servers, of which a task takes the same, and a task is worth the same to them. So only the sum of their tasks
on a server, X[c,i] = sum of x[n,i] over the class, matters to all others. With phi[c] the sum of the weights of the class, its members have
the levels s[n] together if and only if

    sum_i u[c,i] X[c,i] >= sum_n phi[n] s[n] = phi[c] s[c],         s[c] the mean of the levels, by weight,

and they divide X in proportion to phi[n] s[n]. So the course of a class, s[c] >= S[c] + rate[c] t, is the mean of those of its members,
also where some of them are settled and others rise, and the LP of a level needs one row and one set of columns for a class. Prices are
those of the limits of servers as before; a unit of level of a user costs phi[n] / phi[c] of what it costs the class.

Who is settled, and why, is decided for single users: caps, proofs and the certificate are about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.aggregation import number_distinct
from fairopt.program import Leximin, Limits, Program, Stage
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.levels import Course, Proof
from fairopt.solvers.via_highs.level_points import Point
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.level_programs import LevelPrograms

__all__ = ["ClassPrograms", "UserClasses", "classes_of"]

_MAGNITUDE = 10  # powers of 2 of a weight: in one class with a much larger one, a weight would be lost in rounding


@dataclass(frozen=True, slots=True, eq=False)
class UserClasses:
    """The classes of the users of a program.

    Attributes
    ----------
    program : Program
        Of the classes, each named after its first user.
    of_user : int array (users,)
        Class of each user; of a user without a column any.
    of_pair : int array (pairs,)
        The column of its class that each pair is part of.
    part : array (users,)
        phi[n] / phi[c]; 0 of a user without a column.
    rows : int array
        Positions of the limits of the classes among those of the users.
    """

    program: Program
    of_user: IntArray
    of_pair: IntArray
    part: FloatArray
    rows: IntArray

    @classmethod
    def of(cls, problem: LevelProblem, weights: FloatArray) -> UserClasses | None:
        """Return the classes of a problem; None where users have limits of their own that are rows."""
        program, limits = problem.program, problem.program.limits
        if not limits.of_servers[problem.rows].all() or not program.n_pairs:
            return None
        shared = sp.csr_array(limits.matrix[problem.rows])
        members = program.members
        of_member = classes_of(program, shared, weights)
        number = int(of_member.max()) + 1
        of_user = np.zeros(len(program.users), np.int64)
        of_user[members] = of_member
        _, place = np.unique(of_member, return_index=True)
        first = members[place]

        begin = np.searchsorted(program.pair_users, np.arange(of_user.size))  # of the pairs of each user
        pairs = np.bincount(program.pair_users, minlength=of_user.size)
        size = pairs[first]
        start = np.cumsum(size) - size  # of the columns of each class
        columns = np.repeat(begin[first] - start, size) + np.arange(size.sum())
        total = np.bincount(of_member, weights=weights[members]).astype(np.float64)
        small = replace(
            program,
            users=tuple(program.users[n] for n in first),
            pair_users=np.repeat(np.arange(number), size),
            pair_servers=program.pair_servers[columns],
            utilities=program.utilities[columns],
            limits=Limits(
                sp.csr_array(shared[:, columns]), limits.bounds[problem.rows], limits.kinds[problem.rows], limits.keys[problem.rows]
            ),
            goal=Leximin(total),
        )
        of_pair = np.arange(program.n_pairs) + (start[of_user] - begin)[program.pair_users]
        part = np.where(pairs > 0, weights / total[of_user], 0.0)
        return cls(small, of_user, of_pair, part, problem.rows)

    @property
    def number(self) -> int:
        """Number of classes."""
        return len(self.program.users)

    def mean(self, values: FloatArray) -> FloatArray:
        """Return the mean of the values of each class, by weight, (classes,)."""
        return np.bincount(self.of_user, weights=self.part * values, minlength=self.number).astype(np.float64)

    def course(self, course: Course) -> Course:
        """Return the course of the classes; one rises as long as one of its users does."""
        return Course(self.mean(course.rising.astype(np.float64)) > 0, self.mean(course.start), self.mean(course.rate))

    def levels(self, of_classes: FloatArray, wanted: FloatArray) -> FloatArray:
        """Return the levels of users, (users,): what the classes have, divided as the levels ``wanted`` ask for."""
        mean = self.mean(wanted)
        ratio = np.divide(of_classes, mean, out=np.zeros(mean.size), where=mean > 0)
        levels = np.where(mean[self.of_user] > 0, wanted * ratio[self.of_user], of_classes[self.of_user])
        return np.where(self.part > 0, levels, 0.0)

    def divided(self, x: FloatArray, of_classes: FloatArray, levels: FloatArray, pair_users: IntArray) -> FloatArray:
        """Return the tasks of users, (pairs,), where the classes have x and reach the mean of the ``levels``."""
        has = of_classes[self.of_user]
        share = np.divide(self.part * levels, has, out=np.zeros(levels.size), where=has > 0)
        return np.asarray(x[self.of_pair] * share[pair_users])


def classes_of(program: Program, shared: sp.csr_array, weights: FloatArray) -> IntArray:
    """Return the number of the class of each user with a column, in order of first appearance, (members,).

    ``shared`` (limits, pairs) is what a task takes of the limits that count. Weights of a class are of one order of magnitude.

    >>> import fairopt as fo
    >>> program = fo.formulate(fo.Instance([[9], [4]], [[1], [2], [1]], tasks=[5, 5, 2]), "max-min")
    >>> classes_of(program, program.limits.matrix[:2], program.goal.weights)
    array([0, 1, 0])
    """
    members, users = program.members, program.pair_users
    begin = np.searchsorted(users, members)
    rank = np.arange(users.size) - np.repeat(begin, np.diff(np.append(begin, users.size)))  # of each pair among those of its user
    place = np.cumsum(np.diff(users, prepend=-1) > 0) - 1
    by_pair = sp.csr_array(shared.T)
    entries = np.diff(by_pair.indptr)
    pair = np.repeat(np.arange(users.size), entries)
    column = np.arange(pair.size) - by_pair.indptr[pair]
    table = np.full((members.size, int(rank.max()) + 1, 2 + 2 * int(entries.max(initial=0))), -1.0)
    table[place, rank, 0], table[place, rank, 1] = program.pair_servers, program.utilities
    table[place[pair], rank[pair], 2 + 2 * column], table[place[pair], rank[pair], 3 + 2 * column] = by_pair.indices, by_pair.data
    magnitude = np.frexp(weights[members])[1] // _MAGNITUDE
    return number_distinct([table.reshape(members.size, -1), magnitude[:, None]])


class ClassPrograms:
    """The linear programs of classes, asked and answered as those of all users are (`LevelPrograms`)."""

    def __init__(self, problem: LevelProblem, classes: UserClasses, deadline: Deadline) -> None:
        goal = classes.program.goal
        assert isinstance(goal, Leximin)
        self.problem, self.classes = problem, classes
        self.of_classes = LevelPrograms(LevelProblem.of(classes.program, goal), deadline, problem.program)
        self._last: tuple[Course | None, Course] = (None, Course.together(np.zeros(classes.number, bool)))

    @property
    def iterations(self) -> int:
        """Of all programs."""
        return self.of_classes.iterations

    @property
    def programs(self) -> int:
        """Number of programs."""
        return self.of_classes.programs

    def prepare(self, course: Course, t_unit: float, cap: None = None) -> None:
        """Make the model that of this course."""
        self.of_classes.prepare(self._course(course), t_unit)

    def solve(self, course: Course, cap: None, known: Sequence[Stage]) -> Point:
        """Solve the present model; ``known`` is what is final."""
        return self._of_users(course, self.of_classes.solve(self._course(course), None, known))

    def sharper(self, course: Course, point: Point) -> Point:
        """Solve again for prices of more digits."""
        return self._of_users(course, self.of_classes.sharper(self._course(course), point))

    def proof(self, course: Course, point: Point, cap: FloatArray | None) -> Proof:
        """Return what the multipliers of an LP prove, where no user can pass its ``cap``, if there are caps."""
        of_classes, q, spent = self.of_classes.prices(point)
        prices = np.zeros(len(self.problem.program.limits))
        prices[self.classes.rows] = of_classes
        return Proof.of(course, prices, q[self.classes.of_user] * self.classes.part, spent, cap)

    def _course(self, course: Course) -> Course:
        """Return the course of the classes; a step asks for it twice."""
        if self._last[0] is not course:
            self._last = course, self.classes.course(course)
        return self._last[1]

    def _of_users(self, course: Course, point: Point) -> Point:
        classes = self.classes
        levels = classes.levels(point.levels, course.at(point.t))
        return replace(point, x=classes.divided(point.x, point.levels, levels, self.problem.program.pair_users), levels=levels)
