r"""A program in fractions with rows and columns that are alike taken together, as `fairopt.program.reduction` does in floats.

Classes are those of the fractions: numbers that differ by 10^-30 are not alike.

>>> import fairopt as fo
>>> notion, three = fo.NOTIONS["drfh"](), fo.Instance([[4], [4], [8]], [[1], [1], [2]])
>>> whole = notion.in_fractions(three.exact, notion.formulate(three, sharing="rdm", integral=False))
>>> reduction = ExactReduction.of(whole)
>>> reduction.program.n_pairs, reduction.program.bounds, reduction.program.utilities
(4, array([8, 8], dtype=object), array([1/16, 1/16, 1/8, 1/8], dtype=object))
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance import IntArray
from fairopt.instance.exact_merging import coded
from fairopt.instance.fractions import ExactArray, rational, rationals
from fairopt.program.exact import ExactProgram
from fairopt.program.goals import Equalize, Leximin, Total
from fairopt.program.limits import Limits
from fairopt.program.reduction import Classes, Reduction
from fairopt.program.solution import Solution

__all__ = ["ExactReduction"]


@dataclass(frozen=True, slots=True, eq=False)
class ExactReduction:
    """A program in fractions over classes, and the way back.

    Attributes
    ----------
    whole, program : ExactProgram
    classes : Classes
    place : int array (classes of columns,)
        The column of ``program`` of each class.
    """

    whole: ExactProgram
    program: ExactProgram
    classes: Classes
    place: IntArray

    @classmethod
    def of(cls, program: ExactProgram) -> ExactReduction | None:
        """Reduce a leximin, an equal level or a total; None for other goals, and if no columns are alike."""
        names, goal = program.program, program.goal
        if not isinstance(goal, Leximin | Equalize | Total) or program.kept is not None or not names.down_closed:
            return None
        limits = names.limits
        matrix = sp.csr_array((1 + coded(program.data), limits.matrix.indices, limits.matrix.indptr), shape=limits.matrix.shape)
        numbered = replace(
            names,
            utilities=coded(program.utilities),
            limits=Limits(matrix, coded(program.bounds), limits.kinds, limits.keys),
            goal=type(goal)(coded(goal.weights)),
        )
        classes = Classes.of(numbered)
        if not classes.together:
            return None
        users, rows, pairs = (np.unique(each, return_index=True)[1] for each in (classes.users, classes.limits, classes.pairs))
        size = np.bincount(classes.users)
        weights: Any = goal.weights[users]
        weights = weights if isinstance(goal, Total) else weights * rationals(size)
        floats = Reduction.over(names, classes, np.array([float(value) for value in weights]))
        within = floats.program.limits.matrix
        column = np.full(names.n_pairs, -1)
        column[pairs] = floats.place
        sums: dict[tuple[int, int], Any] = {}
        of_entries = classes.limits[program.rows].tolist(), column[program.columns].tolist(), program.data.tolist()
        for row, at, value in zip(*of_entries, strict=True):
            if at >= 0:
                sums[row, at] = sums.get((row, at), rational(0)) + value
        entries = zip(np.repeat(np.arange(rows.size), np.diff(within.indptr)).tolist(), within.indices.tolist(), strict=True)
        order = np.argsort(floats.place)
        reduced = ExactProgram(
            floats.program,
            program.instance,
            program.utilities[pairs[order]],
            _array([sums[entry] for entry in entries]),
            program.bounds[rows] * rationals(np.bincount(classes.limits)),
            type(goal)(weights),
        )
        return cls(program, reduced, classes, floats.place)

    def spread(self, solution: Solution) -> Solution:
        """Return a solution of the whole program."""
        classes = self.classes
        size = rationals(np.bincount(classes.pairs))

        def all_limits(prices: ExactArray | None) -> ExactArray | None:
            return None if prices is None else prices[classes.limits]

        return replace(
            solution,
            x=(solution.x[self.place] / size)[classes.pairs],
            stages=tuple(
                replace(stage, users=np.flatnonzero(np.isin(classes.users, stage.users)), prices=all_limits(stage.prices))
                for stage in solution.stages
            ),
            prices=all_limits(solution.prices),
        )


def _array(values: list[Any]) -> ExactArray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
