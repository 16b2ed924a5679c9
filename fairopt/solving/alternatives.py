"""The best of a union of polytopes in fractions: which alternatives, by branch and cut in floats; the point, and its proof, in fractions.

    maximise preference x   where of every clause at least one alternative holds, and all limits hold

The answer in floats says which alternative of each clause holds. With these, the program is linear, and is solved in fractions. That
nothing is better is then proved by enumeration in fractions. Without clauses the program is a relaxation, and its optimum a bound: where
that is no better than the point, or nothing is feasible, that part is done. Else a clause that its optimum breaks is chosen, and each of
its alternatives is a part of its own. Every bound is proved by prices (`fairopt.certificate.exact_largest`). Where this takes too many
programs, the point is exact, and that it is the best is the word of branch and cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairopt.certificate.exact_largest import prove_largest
from fairopt.errors import NoSolution
from fairopt.instance.fractions import objects, rational
from fairopt.program import Disjunctive, Solution
from fairopt.program.exact import ExactProgram
from fairopt.program.goals import AlternativeRow, ExactDisjunctive
from fairopt.solvers import largest_exactly
from fairopt.solvers.backend import Deadline

__all__ = ["best_alternative"]

_MOST = 2_000  # programs of the enumeration
Choice = dict[int, int]  # of a clause, which of its alternatives


def best_alternative(program: ExactProgram, near: Solution, deadline: Deadline) -> Solution:
    """Return the best point in rationals: without a gap, if it is proved that none is better, else with the gap of branch and cut.

    Parameters
    ----------
    program : ExactProgram
        Its goal is `ExactDisjunctive`.
    near : Solution
        The answer in floats.

    Raises
    ------
    NoSolution
        At the deadline, or where the alternatives that hold in floats have no point in fractions.
    """
    search = _Search(program, deadline)
    found = search.best({k: search.chosen(k, near, program.program.goal) for k in range(len(search.clauses))})
    if found is None:
        raise NoSolution("no allocation in fractions satisfies all alternatives that hold in floats; leave exact out")
    value, point = found
    open_parts: list[Choice] = [{}]
    proved = True
    while open_parts:
        part = open_parts.pop()
        if search.programs >= _MOST:
            proved = False
            break
        bound = search.best(part)
        if bound is None or bound[0] <= value:
            continue
        broken = [
            k for k in range(len(search.clauses)) if k not in part and not any(search.holds(rows, bound[1]) for rows in search.clauses[k])
        ]
        if not broken:
            value, point = bound
            continue
        k = min(broken, key=lambda clause: len(search.clauses[clause]))
        open_parts += [part | {k: each} for each in range(len(search.clauses[k]))]
    x = objects(point[: program.n_pairs])
    gap = None if proved else float("inf") if near.gap is None else near.gap
    return Solution(x, programs_solved=search.programs, gap=gap)


class _Search:
    """The programs of the parts."""

    def __init__(self, program: ExactProgram, deadline: Deadline) -> None:
        assert isinstance(program.goal, ExactDisjunctive)
        self.clauses, self.deadline, self.programs = program.goal.clauses, deadline, 0
        levels = list(program.goal.auxiliary_upper)
        self.cost = [*program.goal.preference.tolist(), *[rational(0)] * len(levels)]
        self.entries = list(zip(program.rows.tolist(), program.columns.tolist(), program.data.tolist(), strict=True))
        self.right = program.bounds.tolist()
        for k, most in enumerate(levels):
            self.entries.append((len(self.right), program.n_pairs + k, rational(1)))
            self.right.append(most)

    def best(self, part: Choice) -> tuple[Any, list[Any]] | None:
        """Return the largest value and a point with it, where these alternatives hold; None where there is none."""
        entries, right = list(self.entries), list(self.right)
        for k, each in part.items():
            for row in self.clauses[k][each]:
                for sign, side in ((-1, row.lower), (1, row.upper)):
                    if not _endless(side):
                        pairs = zip(row.columns.tolist(), row.values.tolist(), strict=True)
                        entries += [(len(right), column, sign * rational(value)) for column, value in pairs]
                        right.append(sign * rational(side))
        self.programs += 1
        found = largest_exactly(self.cost, entries, right, self.deadline)
        if found is None:
            return None
        point, prices = found
        prove_largest(self.cost, entries, right, point.tolist(), prices.tolist())
        return sum((c * z for c, z in zip(self.cost, point.tolist(), strict=True)), rational(0)), point.tolist()

    def holds(self, rows: Sequence[AlternativeRow], point: Sequence[Any]) -> bool:
        """Do all rows of an alternative hold?"""
        for row in rows:
            value = sum((rational(a) * point[j] for j, a in zip(row.columns.tolist(), row.values.tolist(), strict=True)), rational(0))
            if not (_endless(row.lower) or value >= rational(row.lower)) or not (_endless(row.upper) or value <= rational(row.upper)):
                return False
        return True

    def chosen(self, k: int, near: Solution, goal: Any) -> int:
        """Return the alternative of a clause that the answer in floats breaks least."""
        assert isinstance(goal, Disjunctive)
        point = near.x if near.auxiliary is None else np.concatenate([near.x, near.auxiliary])
        broken = []
        for alternative in goal.clauses[k]:
            value = np.asarray(alternative.matrix @ point)
            broken.append(float(np.maximum(np.maximum(alternative.lower - value, value - alternative.upper), 0.0).max(initial=0.0)))
        return int(np.argmin(broken))


def _endless(side: Any) -> bool:
    """Is it no bound?"""
    return isinstance(side, float) and not np.isfinite(side)
