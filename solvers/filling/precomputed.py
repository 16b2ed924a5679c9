r"""Whole tasks of one pool on arrays: precomputed DRF, and the task-by-task filling that it approximates.

One task of user n takes the share w[n] of the pool. Let w* = max_n w[n]. In one turn of a *cycle*, user n gets w* / w[n] tasks, so a user
with w[n] = w* gets one task. The pool has room for k turns,

    k = min_r R[r] / sum_n (w* / w[n]) d[n,r].

Precomputed DRF gives floor(k w* / w[n]) tasks at once (Metin, section 3.4, algorithm 1), with O(N M) operations in all. All numbers are
rounded down, so the tasks fit. The remaining resources may serve the cycle of the users with w[n] < w*, and so on (section 6.1).

A quotient that is whole in exact arithmetic may be computed just below the whole number, and the floor would lose a task. The sum over n
has nonnegative terms, so its relative error is below (N + 8) eps, and so is the relative error of the quotient. This error is added before
the floor. (The paper reports that k'/w[n], with k' = k w*, is less accurate than k w*/w[n] "presumably for numerical reasons". With this
correction both agree.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairopt.instance import FloatArray
from fairopt.program.filling import Criterion, Filling
from fairopt.solvers.filling.placements import FirstFit
from fairopt.solvers.filling.progressive_filling import fill
from fairopt.solvers.filling.settings import SETTINGS

__all__ = ["Cycle", "Ties", "fill_lowest_first", "precompute"]

Ties = Literal["index", "largest-demand"]


@dataclass(frozen=True, slots=True, eq=False)
class Cycle:
    """One cycle of precomputed DRF.

    Attributes
    ----------
    turns : float
        k, the number of turns that fit.
    tasks : array (users,)
        Tasks given: floor(k w* / w[n]), at most the task limit; 0 for users outside the cycle.
    left : array (resources,)
        Free resources of the pool after the cycle.
    """

    turns: float
    tasks: FloatArray
    left: FloatArray


def precompute(capacity: FloatArray, demands: FloatArray, share: FloatArray, tasks: FloatArray, most: int | None = 1) -> list[Cycle]:
    """Return the cycles of precomputed DRF: the first cycle, then further cycles as long as a whole turn fits.

    Parameters
    ----------
    capacity : array (resources,)
    demands : array (users, resources)
    share : array (users,)
        w[n], the share of one task; users with w[n] = 0 take no part.
    tasks : array (users,)
        Task limit of each user. A cycle gives no more; the resources of further tasks stay free.
    most : int or None
        Largest number of cycles; None: no limit.

    >>> first, second = precompute(np.array([35.0]), np.array([[2.0], [10]]), np.array([2 / 35, 10 / 35]), np.full(2, np.inf), None)
    >>> first.turns, first.tasks, second.tasks
    (1.75, array([8., 1.]), array([4., 0.]))
    """
    left = capacity.astype(float)
    wanted = np.floor(tasks)
    rank = np.argsort(-share, kind="stable")
    rank = rank[(share[rank] > 0) & (wanted[rank] > 0)]  # descending, from w* on
    cycles: list[Cycle] = []
    while rank.size and (most is None or len(cycles) < most):
        first = _first_cycle(left, demands[rank], share[rank]) if cycles else 0
        if first == rank.size:
            break
        rank = rank[first:]
        ratio = share[rank[0]] / share[rank]
        turns = _turns(left, ratio @ demands[rank])
        given = np.zeros(share.size)
        given[rank] = np.minimum(_whole(turns * ratio), wanted[rank])
        wanted = wanted - given
        left = np.maximum(left - given @ demands, 0.0)
        cycles.append(Cycle(float(turns), given, left))
        rank = rank[(share[rank] < share[rank[0]]) & (wanted[rank] > 0)]
    return cycles


def fill_lowest_first(
    capacity: FloatArray,
    demands: FloatArray,
    share: FloatArray,
    tasks: FloatArray,
    held: FloatArray | None = None,
    *,
    ties: Ties = "index",
    go_on: bool = True,
) -> FloatArray:
    """Fill task by task, always for the user with the lowest share x[n] w[n]; return x, (users,). Filling starts from ``held``.

    Parameters
    ----------
    ties : {"index", "largest-demand"}
        Among users with equal shares, the first user is served, or the user with the largest w[n].
    go_on : bool
        Continue with the other users if the task of the lowest does not fit. False: algorithm 1 of Ghodsi et al. as printed.

    >>> fill_lowest_first(np.array([9.0, 18]), np.array([[1.0, 4], [3, 1]]), np.array([2 / 9, 1 / 3]), np.full(2, np.inf))
    array([3., 2.])
    """
    order = np.arange(share.size) if ties == "index" else np.argsort(-share, kind="stable")
    given = None if held is None else held.astype(np.int64)[:, None]
    filling = Filling(
        capacities=capacity[None, :],
        counts=np.ones(1, np.int64),
        demands=demands[:, None, :],
        eligibility=np.ones((share.size, 1), bool),
        tasks=np.where(share > 0, np.minimum(tasks, SETTINGS.endless), 0).astype(np.int64),
        criterion=Criterion(share),
        order=order,
        held=given,
    )
    return fill(filling, FirstFit(), random_ties=False, seed=0, first_block=not go_on).tasks[:, 0].astype(float)


def _first_cycle(left: FloatArray, demands: FloatArray, share: FloatArray) -> int:
    """Return how many of these users, from w* down, must be removed until a whole turn of the cycle of the others fits."""
    below = np.cumsum((demands / share[:, None])[::-1], axis=0)[::-1]  # one turn of users j, j + 1, ... takes share[j] * below[j]
    starts = np.flatnonzero(np.concatenate([[True], share[1:] < share[:-1]]))  # users with equal shares are removed together
    for_a_turn = share[starts, None] * below[starts]
    turns = np.divide(left, for_a_turn, out=np.full(for_a_turn.shape, np.inf), where=for_a_turn > 0).min(axis=1)
    whole = np.flatnonzero(turns * (1 + _rounding(share.size)) >= 1)
    return int(starts[whole[0]]) if whole.size else share.size


def _turns(left: FloatArray, for_a_turn: FloatArray) -> float:
    needed = for_a_turn > 0
    return float((left[needed] / for_a_turn[needed]).min())


def _whole(quotient: FloatArray) -> FloatArray:
    return np.floor(quotient * (1 + _rounding(quotient.size)))


def _rounding(terms: int) -> float:
    return (terms + 8) * float(np.finfo(float).eps)
