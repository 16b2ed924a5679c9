r"""Rational solutions of linear equations near a solution in floats, and the way from there to a vertex.

The equations A z = b of an active set are often underdetermined (a user's tasks may lie on one server or another), so "the" solution is a
choice. `Tableau` eliminates columns in the order of their sizes in the float solution, the largest first. The columns left over are free:
they take simple fractions near their floats, mostly 0, and the others follow. As the large columns are those that follow, they stay
positive. `Tableau.vertex` then moves the free columns to 0 one by one, as a simplex method crosses over from an interior point to a
vertex, and keeps z >= 0.

All of it is elimination in sparse rows: the systems of active sets are forests with a few more edges, and stay sparse.

>>> tableau = Tableau.of([{0: fmpq(1), 1: fmpq(1)}], [fmpq(1)], [0.333333333333, 0.666666666667])
>>> tableau.near()
[1/3, 2/3]
>>> tableau.vertex(tableau.near())
[0, 1]
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import fmpq

from fairopt.solvers.rational.settings import SETTINGS

__all__ = ["Tableau", "fraction", "rational", "simplest"]


def rational(value: Fraction) -> fmpq:
    """Return a Fraction as a number of flint."""
    return fmpq(value.numerator, value.denominator)


def fraction(value: fmpq) -> Fraction:
    """Return a number of flint as a Fraction."""
    return Fraction(int(value.p), int(value.q))


def simplest(value: float | Fraction, part: int = SETTINGS.near) -> Fraction:
    """Return the fraction with the smallest denominator within a relative distance of 1 / part.

    >>> simplest(0.3333333333333)
    Fraction(1, 3)
    """
    given = Fraction(value)
    if given == 0:
        return given
    room = abs(given) / part
    return _between(given - room, given + room)


def _between(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction with the smallest denominator in [low, high], by the continued fractions of both ends."""
    if low < 0 < high:
        return Fraction(0)
    if high <= 0:
        return -_between(-high, -low)
    whole: list[int] = []
    while True:
        floor = low.numerator // low.denominator
        if floor == low:
            break
        if high >= floor + 1:
            floor += 1
            break
        whole.append(floor)
        low, high = 1 / (high - floor), 1 / (low - floor)
    result = Fraction(floor)
    for part in reversed(whole):
        result = part + 1 / result
    return result


@dataclass(slots=True)
class Tableau:
    """Equations in the form z[pivot] + sum over free columns of a z = b, a row for each pivot.

    Attributes
    ----------
    rows : list of dicts from a free column to a
    right : list of b
    pivots : list of columns
    near_to : the float solution, a value for each column
    """

    rows: list[dict[int, fmpq]]
    right: list[fmpq]
    pivots: list[int]
    near_to: list[float]

    @classmethod
    def of(cls, rows: Sequence[dict[int, fmpq]], right: Sequence[fmpq], near_to: Sequence[float]) -> Tableau | None:
        """Eliminate; None where the equations contradict each other."""
        work = [dict(row) for row in rows]
        b = list(right)
        members: list[set[int]] = [set() for _ in near_to]  # the rows in which a column stands
        for k, row in enumerate(work):
            for column in row:
                members[column].add(k)
        of_pivot: dict[int, int] = {}
        done: set[int] = set()
        for column in sorted(range(len(near_to)), key=lambda j: -abs(near_to[j])):
            able = members[column] - done
            if not able:
                continue
            k = min(able, key=lambda j: (len(work[j]), j))
            _normalise(work, b, k, column)
            for other in list(members[column]):
                if other != k:
                    _subtract(work, b, members, other, k, column)
            of_pivot[column] = k
            done.add(k)
            if len(done) == len(work):
                break
        if any(b[k] != 0 for k in range(len(work)) if k not in done):
            return None
        pivots = list(of_pivot)
        reduced = [{j: a for j, a in work[of_pivot[column]].items() if j != column} for column in pivots]
        return cls(reduced, [b[of_pivot[column]] for column in pivots], pivots, list(near_to))

    @property
    def free(self) -> list[int]:
        """The columns that no equation fixes."""
        fixed = set(self.pivots)
        return [j for j in range(len(self.near_to)) if j not in fixed]

    def near(self) -> list[fmpq]:
        """Return the solution whose free columns are simple fractions near their floats, 0 where these are tiny."""
        largest = max((abs(value) for value in self.near_to), default=0.0)
        z = [fmpq(0)] * len(self.near_to)
        for j in self.free:
            if abs(self.near_to[j]) > SETTINGS.nothing * largest:
                z[j] = rational(simplest(self.near_to[j]))
        return self.completed(z)

    def completed(self, z: list[fmpq]) -> list[fmpq]:
        """Return z with the pivots that its free columns imply."""
        z = list(z)
        for row, b, pivot in zip(self.rows, self.right, self.pivots, strict=True):
            z[pivot] = b - sum((a * z[j] for j, a in row.items() if z[j] != 0), fmpq(0))
        return z

    def vertex(self, z: list[fmpq], columns: Sequence[int] | None = None, any_sign: Container[int] = ()) -> list[fmpq]:
        """Return a vertex of {z >= 0}, reached from a point in it by pivots. The tableau is changed.

        Parameters
        ----------
        z : list
            A solution of the equations, >= 0.
        columns : sequence, optional
            The free columns that are moved to 0; default: all of them.
        any_sign : container of columns
            That need not stay >= 0.
        """
        z = list(z)
        for free in self.free if columns is None else columns:
            if z[free] == 0:
                continue
            steps = []  # lowering the free column by t raises the pivot of each row by a t
            for k, row in enumerate(self.rows):
                a = row.get(free)
                if a is not None and a < 0 and self.pivots[k] not in any_sign:
                    steps.append((max(z[self.pivots[k]], fmpq(0)) / -a, k))
            least, leaving = min(steps, default=(z[free], -1))
            step = min(least, z[free])
            for k, row in enumerate(self.rows):
                if free in row:
                    z[self.pivots[k]] += row[free] * step
            z[free] -= step
            if step == least and leaving >= 0 and z[free] != 0:
                self._exchange(leaving, free)
        return z

    def _exchange(self, k: int, entering: int) -> None:
        """Make a free column the pivot of row k; its pivot becomes free."""
        row, leaving = self.rows[k], self.pivots[k]
        scale = 1 / row.pop(entering)
        row = {j: a * scale for j, a in row.items()}
        row[leaving] = scale
        self.rows[k], self.right[k], self.pivots[k] = row, self.right[k] * scale, entering
        for other, each in enumerate(self.rows):
            factor = each.pop(entering, None) if other != k else None
            if factor is not None:
                for j, a in row.items():
                    value = each.get(j, fmpq(0)) - factor * a
                    if value == 0:
                        each.pop(j, None)
                    else:
                        each[j] = value
                self.right[other] -= factor * self.right[k]


def _normalise(work: list[dict[int, fmpq]], b: list[fmpq], k: int, column: int) -> None:
    scale = 1 / work[k][column]
    if scale != 1:
        for j in work[k]:
            work[k][j] *= scale
        b[k] *= scale


def _subtract(work: list[dict[int, fmpq]], b: list[fmpq], members: list[set[int]], other: int, k: int, column: int) -> None:
    """Subtract row k from another, so that the column vanishes there."""
    target = work[other]
    factor = target[column]
    for j, a in work[k].items():
        value = target.get(j)
        if value is None:
            target[j] = -factor * a
            members[j].add(other)
        else:
            value -= factor * a
            if value == 0:
                del target[j]
                members[j].discard(other)
            else:
                target[j] = value
    b[other] -= factor * b[k]
