"""Packing whole tasks into identical servers: whether totals of the users fit, and if not, a valid limit that they violate.

Totals y[n] are the tasks of user n on all servers of a group. Tried in order, until one decides:

1. greedy packings by several orders (`first_fit`);
2. the LP over patterns, the whole numbers of tasks p that fit one server (Gilmore and Gomory 1961, 1965), in its dual form
   max pi @ y with pi @ p <= 1 for all p (`by_patterns`). Where it needs more servers than there are, pi @ y <= servers is a valid limit
   that y violates;
3. branch and cut (`pack`): over the patterns found so far; over all patterns that leave no more free than the servers do together, where
   these can be listed; over the single servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import FITS
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import HighsModel, Outcome, Status, solved
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["Group", "by_patterns", "first_fit", "pack", "trimmed"]


Known = Mapping[str, object]  # the results so far, for the error at a time limit


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Identical servers.

    Attributes
    ----------
    columns : int array (servers, users)
        Columns of the program.
    sizes : array (limits of one server, users)
        Parts of each limit that a task takes.
    most : array (users,)
        The largest number of tasks on one server.
    """

    columns: IntArray
    sizes: FloatArray
    most: FloatArray


def first_fit(group: Group, y: FloatArray) -> FloatArray | None:
    """Pack totals by first fit in one of several orders, (servers, users); None where none of them does it."""
    servers, users = group.columns.shape
    rng = np.random.default_rng(0)
    orders = [np.argsort(-group.sizes.max(axis=0), kind="stable"), np.argsort(-group.sizes.sum(axis=0), kind="stable")]
    orders += [rng.permutation(users) for _ in range(SETTINGS.random_orders)]
    for order in orders:
        left, free = y.copy(), np.ones((servers, group.sizes.shape[0]))
        packed = np.zeros((servers, users))
        for n in order[y[order] > 0]:
            size = group.sizes[:, n]
            with np.errstate(divide="ignore"):
                room = np.where(size > 0, (free + FITS) / size, np.inf).min(axis=1)
            take = np.minimum(np.floor(room), group.most[n])
            take = np.clip(left[n] - np.cumsum(take) + take, 0.0, take)
            packed[:, n], left[n] = take, left[n] - take.sum()
            free -= take[:, None] * size
        if not left.any():
            return packed
    return None


def by_patterns(
    group: Group, y: FloatArray, patterns: FloatArray, deadline: Deadline, known: Known, by: float
) -> tuple[FloatArray | None, FloatArray]:
    """Return the prices of a limit that totals, whole or not, violate, (users,), or None if patterns show none; and all patterns."""
    servers, users = group.columns.shape
    while True:
        rows = sp.csc_array(patterns)
        model = HighsModel(y, np.zeros(users), np.full(users, np.inf), rows, np.full(len(patterns), -np.inf), np.ones(len(patterns)))
        prices = np.maximum(_run(model, deadline, known).x, 0.0)
        if prices @ y <= servers * (1 + by):
            return None, patterns
        best = _best_pattern(group, prices, deadline, known)
        worth = max(float(prices @ best), 1.0) * (1 + FITS)
        if prices @ y > servers * worth * (1 + by):
            return np.asarray(prices / worth), patterns
        if worth <= 1 + 1e-8 or (patterns == best).all(axis=1).any():
            return None, patterns
        patterns = np.vstack([patterns, best])


def pack(group: Group, y: FloatArray, patterns: FloatArray, deadline: Deadline, known: Known) -> FloatArray | None:
    """Pack totals by branch and cut, (servers, users); None where they do not fit."""
    wanted = np.flatnonzero(y > 0)
    part = Group(group.columns[:, wanted], group.sizes[:, wanted], group.most[wanted])
    fits = (patterns @ group.sizes.T <= 1 + FITS).all(axis=1)
    packed = _of_patterns(part, y[wanted], np.unique(patterns[np.ix_(fits, wanted)], axis=0), deadline, known)
    if packed is None:
        full = _full_patterns(part, y[wanted])
        packed = _by_servers(part, y[wanted], deadline, known) if full is None else _of_patterns(part, y[wanted], full, deadline, known)
    if packed is None:
        return None
    whole = np.zeros(group.columns.shape)
    whole[:, wanted] = packed
    return whole


def _of_patterns(group: Group, y: FloatArray, patterns: FloatArray, deadline: Deadline, known: Known) -> FloatArray | None:
    """Return a packing in which every server's tasks are at most one of these patterns, (servers, users), or None if there is none."""
    servers, users = group.columns.shape
    number = len(patterns)
    rows = sp.csc_array(np.vstack([patterns.T, np.ones((1, number))]))
    lower, upper = np.r_[y, -np.inf], np.r_[np.full(users, np.inf), float(servers)]
    most = np.full(number, float(servers))
    outcome = _run(HighsModel(np.zeros(number), np.zeros(number), most, rows, lower, upper, np.arange(number)), deadline, known)
    if outcome.status is Status.INFEASIBLE:
        return None
    used = np.repeat(patterns, np.round(outcome.x).astype(int), axis=0)
    packed = np.zeros((servers, users))
    packed[: len(used)] = used
    return trimmed(packed, y)


def _full_patterns(group: Group, y: FloatArray) -> FloatArray | None:
    """Return all patterns that leave no more free than all servers do together, (patterns, users); None if there are too many.

    Every packing consists of such patterns: what the totals leave free of a limit is the sum of what the servers leave free.
    """
    order = np.argsort(-group.sizes.max(axis=0), kind="stable")
    most = np.minimum(group.most, y)
    spare = group.columns.shape[0] - group.sizes @ y + FITS
    rest = group.sizes @ most  # what those still to come can take
    patterns, free = np.zeros((1, y.size)), np.ones((1, spare.size))
    for n in order:
        size = group.sizes[:, n]
        rest = rest - most[n] * size
        with np.errstate(divide="ignore"):
            room = np.where(size > 0, (free + FITS) / size, np.inf).min(axis=1)
        options = np.minimum(np.floor(room), most[n]).astype(int) + 1
        if options.sum() > min(SETTINGS.most_patterns, SETTINGS.most_entries / y.size):
            return None
        of = np.repeat(np.arange(len(patterns)), options)
        taken = np.arange(of.size) - np.repeat(np.cumsum(options) - options, options)
        free = free[of] - taken[:, None] * size
        patterns = patterns[of]
        patterns[:, n] = taken
        enough = (free - rest <= spare).all(axis=1)
        patterns, free = patterns[enough], free[enough]
    return patterns


def _best_pattern(group: Group, prices: FloatArray, deadline: Deadline, known: Known) -> FloatArray:
    """Return the tasks of one server that are worth most, (users,)."""
    limits, users = group.sizes.shape
    upper = np.full(limits, 1 + FITS)
    model = HighsModel(prices, np.zeros(users), group.most, sp.csc_array(group.sizes), np.full(limits, -np.inf), upper, np.arange(users))
    return np.asarray(np.round(_run(model, deadline, known).x))


def _by_servers(group: Group, y: FloatArray, deadline: Deadline, known: Known) -> FloatArray | None:
    """Return a packing by branch and cut over single servers, (servers, users), or None if there is none."""
    servers, users = group.columns.shape
    rows = sp.vstack(
        [sp.kron(sp.eye_array(servers), sp.csr_array(group.sizes)), sp.kron(np.ones((1, servers)), sp.eye_array(users))], format="csc"
    )
    limits = servers * group.sizes.shape[0]
    lower, upper = np.r_[np.full(limits, -np.inf), y], np.r_[np.ones(limits), y]
    number = servers * users
    model = HighsModel(
        np.zeros(number), np.zeros(number), np.tile(group.most, servers), sp.csc_array(rows), lower, upper, np.arange(number)
    )
    outcome = _run(model, deadline, known)
    return None if outcome.status is Status.INFEASIBLE else np.asarray(np.round(outcome.x).reshape(servers, users))


def _run(model: HighsModel, deadline: Deadline, known: Known) -> Outcome:
    """Solve; raise NoSolution where time is up."""
    if deadline.left == 0.0:
        raise deadline.passed(known)
    outcome = model.run(deadline.left)
    return outcome if outcome.status is Status.INFEASIBLE else solved(outcome, deadline, known)


def trimmed(packed: FloatArray, y: FloatArray) -> FloatArray:
    """Return as many tasks as wanted, (servers, users), of a packing of as many or more."""
    too_many = np.maximum(np.cumsum(packed, axis=0) - y, 0.0)
    return np.asarray(np.clip(packed - too_many, 0.0, packed))
