r"""Bins of levels: as much as possible in the lowest bin, then in the next one, ... (the programs of geometric and equal binning).

Bins end at T[1] < T[2] < ... . Of a level, min(level, T[b]) - T[b-1] lies in bin b. *In turn*, bin by bin:

    G[b] = max sum over n of min(level[n], T[b])
           subject to  A x <= b,  sum over n of min(level[n], T[c]) >= G[c] for all bins c < b

*In one program*, a unit in a bin is worth the fraction ``part`` of one in the bin below: max sum over b of part^b (what lies in bin b).
Where ``part`` is small enough, it decides as the bins in turn.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import NOTHING, REACHED
from fairopt.scheduling.baselines.baseline import Case
from fairopt.scheduling.baselines.filling_pairs import equal_parts, filled_pairs
from fairopt.scheduling.baselines.level_programs import LevelProgram

__all__ = ["bins_in_one", "bins_in_turn", "first_end", "geometric_ends"]

_MOST_BINS = 2_000


def first_end(case: Case, first: float, name: str) -> float:
    """Return the end of the first bin: what was asked for (0: the smallest level of single-pass water-filling, which all can reach).

    Raises
    ------
    Unsupported
        Not everybody who has the tasks for it can reach it.
    """
    if not first:
        level = case.levels(filled_pairs(case, equal_parts(case)))
        return float(level[level > 0].min(initial=np.inf)) if (level > 0).any() else 0.0
    program = LevelProgram.of(case, first)
    y = _in_bin(program, np.array([1.0]), np.zeros(0), np.zeros(program.members.size))
    level = (program.levels @ y)[program.members]
    if (np.minimum(level, 1.0) < np.minimum(case.level_of_all_tasks[program.members] / first, 1.0) * (1 - REACHED)).any():
        raise Unsupported(
            f'the first bin of "{name}" ends at the level {first:g}, which not everybody can reach at once; give at most the smallest '
            "level of the exact answer, or leave first out"
        )
    return first


def geometric_ends(case: Case, first: float, ratio: float, name: str) -> FloatArray:
    """Return the ends first, ratio first, ratio^2 first, ..., up to the largest level that anybody could have alone.

    Raises
    ------
    Unsupported
        There are too many.
    """
    highest = float(LevelProgram.of(case, first).alone.max(initial=1.0))
    number = int(np.ceil(np.log(highest) / np.log(ratio))) + 1
    if number > _MOST_BINS:
        raise Unsupported(f'"{name}" would have {number:,} bins, more than {_MOST_BINS:,}; give a larger ratio')
    return first * np.power(float(ratio), np.arange(number))


def bins_in_turn(case: Case, ends: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the tasks of the columns, (pairs,), and G of each bin that changes something."""
    program = LevelProgram.of(case, float(ends[0]))
    scaled, totals = ends / ends[0], np.zeros(0)
    y, floor, held = np.zeros(program.columns.size), np.zeros(program.members.size), np.zeros(0)
    kept: list[int] = []  # bins that not everybody could fill
    for b, end in enumerate(scaled):
        y = _in_bin(program, scaled[[*kept, b]], held, floor)
        level = (program.levels @ y)[program.members]
        total = float(np.minimum(level, end).sum())
        if totals.size and total <= totals[-1] * (1 + NOTHING):  # nobody rises above the bin before
            break
        totals = np.append(totals, total)
        most = np.minimum(program.alone[program.members], end)
        if not kept and total >= most.sum() * (1 - REACHED):
            floor = np.minimum(level, most)
        else:
            kept.append(b)
        held = np.minimum(level[:, None], scaled[kept]).sum(axis=0)  # what this point has, so that the next program has a point
    return program.tasks(y), totals * ends[0]


def bins_in_one(case: Case, ends: FloatArray, part: float) -> FloatArray:
    """Return the tasks of the columns, (pairs,), of the one program."""
    program = LevelProgram.of(case, float(ends[0]))
    members, columns, number = program.members, program.columns.size, ends.size
    widths = np.diff(ends / ends[0], prepend=0.0)
    rows = sp.hstack([-program.levels[members], *([sp.eye_array(members.size)] * number)])  # what lies in bins is at most the level
    goal = np.concatenate([np.zeros(columns), np.repeat(part ** np.arange(number), members.size)])
    upper = np.concatenate([np.ones(columns), np.repeat(widths, members.size)])
    return program.tasks(program.feasible(program.largest(goal, rows, np.zeros(members.size), upper)))


def _in_bin(program: LevelProgram, ends: FloatArray, totals: FloatArray, floor: FloatArray) -> FloatArray:
    """Return y that fills the last of some bins, where those before it keep their totals.

    Columns are y, then m[n,b] <= min(level[n], T[b]) of each of the bins. Below ``floor`` no level falls: bins that everybody filled.
    """
    members, columns, number = program.members, program.columns.size, ends.size
    n, own = members.size, program.levels[members]
    none = sp.csr_array((n, n))
    blocks = [[-own, *(sp.eye_array(n) if j == k else none for j in range(number))] for k in range(number)]
    rows = [*map(sp.hstack, blocks), sp.hstack([-own, sp.csr_array((n, n * number))])]
    bounds = [np.zeros(n * number), -floor * (1 - NOTHING)]
    sums = sp.hstack([sp.csr_array((number, columns)), sp.kron(sp.eye_array(number), np.ones((1, n)))], format="csr")
    if number > 1:
        rows.append(-sums[:-1])
        bounds.append(-totals * (1 - NOTHING))
    upper = np.concatenate([np.ones(columns), np.repeat(ends, n)])
    return program.feasible(program.largest(sums[[-1]].toarray()[0], sp.vstack(rows), np.concatenate(bounds), upper))
