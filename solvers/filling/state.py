"""The state of progressive filling: plain arrays, read and changed by the compiled steps of ``fairopt.solvers.filling.kernel``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program.filling import Measure
from fairopt.solvers.filling.settings import SETTINGS

__all__ = ["BLOCKED_BY", "ROUND_AT", "ROUND_LENGTH", "State"]

ROUND_AT, ROUND_LENGTH, BLOCKED_BY = range(3)  # positions in `progress`


class State(NamedTuple):
    """The data that the steps read and change: arrays only, so filling can be stopped and resumed. N users, S single servers, R rows."""

    rule: int  # how the server is chosen
    measure: int
    random_ties: bool
    first_block: bool
    start: IntArray  # (R + 1,) first server of each row
    row: IntArray  # (S,)
    capacity: FloatArray  # (R, M), as fractions of an average server
    demand: FloatArray  # (N, 1 or R, M)
    eligible: BoolArray  # (N, R)
    wanted: IntArray  # (N,) tasks still to be placed; 0: the user is finished
    worth: FloatArray  # (N, 1 or R) share of one task
    cost: FloatArray  # (N, 1 or R) what a unit of work takes there, in parts of the most that it takes anywhere
    order: IntArray  # (N,) user of each leaf of the tree
    leaf: IntArray  # (N,) inverse of order
    rows_by_worth: IntArray  # (N or 1, R) rows, ascending by worth
    rank: IntArray  # (N,) the user's task fits on no row before this position in rows_by_worth
    rank_server: IntArray  # (N,) and on no server of that row before this one
    first: IntArray  # (N,) the user's task fits on no server before this one
    found: IntArray  # (N,) server with the smallest residual share, as of the last computation of the user's share
    segment: IntArray  # first server of each run of servers that are scored together; the last entry is S
    begun: IntArray  # (R,) servers of the row from this one on are empty
    used: FloatArray  # (S, M)
    lost: FloatArray  # (S, M) rounding error of used, for the compensated sum
    total: IntArray  # (N,) x[n]
    tasks: IntArray  # (N, R)
    tree: FloatArray  # (2 * leaves,) smallest share in the subtree of each node
    tied: IntArray  # (N,) scratch
    shares: FloatArray  # (N,) scratch
    free: FloatArray  # (resources that are scored, S) capacity - used
    inverse: FloatArray  # (resources that are scored, S) 1 / free; 0 if free is 0
    ratio: FloatArray  # (resources that are scored,) scratch
    scores: FloatArray  # (servers scored together,) scratch
    open: IntArray  # (S,) servers of the current round
    fits: IntArray  # (S,) scratch: servers that a task fits on
    progress: IntArray  # ROUND_AT, ROUND_LENGTH, BLOCKED_BY

    @classmethod
    def begin(cls, **given: Any) -> State:
        """Return the state before the first step."""
        n, s, m = len(given["wanted"]), len(given["row"]), given["capacity"].shape[1]
        rows = given["eligible"].shape[1]
        leaves = 1 << max(n - 1, 0).bit_length()
        order = np.asarray(given["order"])
        held, scored = given.pop("held"), given.pop("scored")
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
        free = np.ascontiguousarray((np.asarray(given["capacity"])[np.asarray(given["row"])] - used).T[:scored])
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
            ratio=np.zeros(scored),
            scores=np.zeros(SETTINGS.block),
            open=np.arange(s),
            fits=np.zeros(s, np.int64),
            progress=np.array([0, 0, -1]),
        )


def _already(
    held: IntArray, *, row: IntArray, demand: FloatArray, worth: FloatArray, measure: int, eligible: BoolArray, **_: Any
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return x[n], x[n,row], the usage of each server, and initial shares for the tree, given the tasks that already run."""
    tasks = np.zeros(eligible.shape, np.int64)
    np.add.at(tasks.T, row, held.T)
    one = demand.shape[1] == 1
    used = np.stack([((demand[:, :, r] if one else demand[:, row, r]) * held).sum(axis=0) for r in range(demand.shape[2])], axis=1)
    # A share on a server is computed when its user is the lowest. Until then the tree needs only a lower bound.
    parts = np.multiply(tasks, worth, out=np.zeros(tasks.shape), where=tasks > 0)  # worth may be inf where no task can run
    share = parts.sum(axis=1) if measure == Measure.OWN else np.zeros(len(held))
    return held.sum(axis=1), tasks, used, share


def _segments(start: IntArray, each_row: bool) -> IntArray:
    """Return the borders of runs of rows: a large row is a run, and neighbouring small rows are one (unless demands depend on the row)."""
    large = (np.diff(start) >= SETTINGS.small_row) | each_row
    borders: IntArray = np.unique(start[np.concatenate([[True], large[1:] | large[:-1], [True]])])
    return borders
