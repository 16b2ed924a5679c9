"""What progressive filling keeps while it runs: plain arrays, read and changed by the compiled steps of ``filling_kernel``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program.filling import Measure

__all__ = ["BLOCK", "BLOCKED_BY", "ROUND_AT", "ROUND_LENGTH", "State"]

BLOCK = 1024  # servers that are scored together
_SMALL = 64  # rows of fewer servers are scored together
ROUND_AT, ROUND_LENGTH, BLOCKED_BY = range(3)  # what `progress` holds


class State(NamedTuple):
    """All that the steps read and change; arrays only, so that they can be stopped and resumed. S single servers, R rows of them."""

    rule: int  # how a server is chosen
    measure: int
    random_ties: bool
    first_block: bool
    start: IntArray  # (R + 1,) first server of each row
    row: IntArray  # (S,)
    capacity: FloatArray  # (R, M), in parts of an average server
    demand: FloatArray  # (N, 1 or R, M)
    eligible: BoolArray  # (N, R)
    wanted: IntArray  # (N,) tasks still to be placed; 0: out
    worth: FloatArray  # (N, 1 or R) share of a task
    order: IntArray  # (N,) user of each leaf of the tree
    leaf: IntArray  # (N,) its inverse
    rows_by_worth: IntArray  # (N or 1, R) rows from the smallest worth
    rank: IntArray  # (N,) position in rows_by_worth, up to which nothing fits
    rank_server: IntArray  # (N,) and in the row
    first: IntArray  # (N,) servers below it do not fit
    found: IntArray  # (N,) server of the smallest residual share, since the user's share was last computed
    segment: IntArray  # first server of each run of servers that are scored together, and their number
    begun: IntArray  # (R,) servers of the row from here on are empty
    used: FloatArray  # (S, M)
    lost: FloatArray  # (S, M) what rounding took from it
    total: IntArray  # (N,) x[n]
    tasks: IntArray  # (N, R)
    tree: FloatArray  # (2 * leaves,) smallest share below each node
    tied: IntArray  # (N,) scratch
    shares: FloatArray  # (N,) scratch
    free: FloatArray  # (M, S) capacity - used
    inverse: FloatArray  # (M, S) 1 / free, 0 where nothing is
    ratio: FloatArray  # (M,) scratch
    scores: FloatArray  # (BLOCK,) scratch
    open: IntArray  # (S,) servers of the round
    progress: IntArray  # see above

    @classmethod
    def begin(cls, **given: Any) -> State:
        """Fill in what every filling starts with."""
        n, s, m = len(given["wanted"]), len(given["row"]), given["capacity"].shape[1]
        rows = given["eligible"].shape[1]
        leaves = 1 << max(n - 1, 0).bit_length()
        order = np.asarray(given["order"])
        held = given.pop("held")
        total, tasks, used, share = (
            _already(held, **given)
            if held is not None
            else (np.zeros(n, np.int64), np.zeros((n, rows), np.int64), np.zeros((s, m)), np.zeros(n))
        )
        leaf = np.empty(n, np.int64)
        leaf[order] = np.arange(n)
        tree = np.full(2 * leaves, np.inf)
        tree[leaves : leaves + n] = np.where(np.asarray(given["wanted"]) > 0, share, np.inf)[order]
        for node in range(leaves - 1, 0, -1):
            tree[node] = min(tree[2 * node], tree[2 * node + 1])
        free = np.ascontiguousarray((np.asarray(given["capacity"])[np.asarray(given["row"])] - used).T)
        begun = np.array(given["start"])[:-1]
        busy = np.flatnonzero(used.any(axis=1))
        np.maximum.at(begun, np.asarray(given["row"])[busy], busy + 1)
        integers: dict[str, Any] = {name: np.zeros(n, np.int64) for name in ("rank", "rank_server", "first", "found", "tied")}
        return cls(
            **given,
            **integers,
            leaf=leaf,
            segment=_segments(np.asarray(given["start"]), given["demand"].shape[1] > 1),
            begun=begun,
            used=used,
            lost=np.zeros((s, m)),
            total=total,
            tasks=tasks,
            tree=tree,
            shares=np.zeros(n),
            free=free,
            inverse=np.divide(1.0, free, out=np.zeros_like(free), where=free > 0),
            ratio=np.zeros(m),
            scores=np.zeros(BLOCK),
            open=np.arange(s),
            progress=np.array([0, 0, -1]),
        )


def _already(
    held: IntArray, *, row: IntArray, demand: FloatArray, worth: FloatArray, measure: int, eligible: BoolArray, **_: Any
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return x[n], x[n,row], the usage of each server, and shares from which the tree can start, of tasks that run already."""
    tasks = np.zeros(eligible.shape, np.int64)
    np.add.at(tasks.T, row, held.T)
    one = demand.shape[1] == 1
    used = np.stack([((demand[:, :, r] if one else demand[:, row, r]) * held).sum(axis=0) for r in range(demand.shape[2])], axis=1)
    # A share in the eyes of a server is computed when its user is the lowest; until then any lower bound does.
    parts = np.multiply(tasks, worth, out=np.zeros(tasks.shape), where=tasks > 0)  # a share may be inf where nothing can run
    share = parts.sum(axis=1) if measure == Measure.OWN else np.zeros(len(held))
    return held.sum(axis=1), tasks, used, share


def _segments(start: IntArray, each_row: bool) -> IntArray:
    """Return where runs of rows begin, and the last ends: large rows alone, small ones together (unless tasks differ from row to row)."""
    large = (np.diff(start) >= _SMALL) | each_row
    borders: IntArray = np.unique(start[np.concatenate([[True], large[1:] | large[:-1], [True]])])
    return borders
