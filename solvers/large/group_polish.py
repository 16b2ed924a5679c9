r"""The last digits of an answer in groups: prices that are the same for a group wherever it is, and tasks that fill all that has a price.

The price vectors of servers are a few, the pieces of the dual function (`fairopt.solvers.large.groups`). A group that is split between
servers of two pieces l and m pays the same at both: (p[l] - p[m]).v = 0. There is one such group less than there are prices, and prices
have no unit; so these equations, which are taken to be exact, determine all prices.

At an optimum with prices p, only pairs that are the cheapest of their group are used, limits with a price are full, and all levels are t =
p.c / sum of q. These are linear equations B y = b in the pairs that are used, far fewer than pairs. From y we take the step dy = Y B'z, Y
the diagonal matrix of y, with B Y B'z = b - B y: the changes are the least in parts of what pairs have. Of B Y B' the part of the servers
is block diagonal; what is left is dense, of the size of the groups, and singular, as the equations add up to p.c = t sum of q.

>>> y = polished(np.array([[1.0, 1.1]]), np.array([[2.0]]), np.array([1.0]), np.array([[2.0], [2.0]]), np.array([[1.0], [1.0]]))
>>> y.round(12)
array([[1., 1.]])
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.solvers.large.settings import SETTINGS

__all__ = ["pieces_of_groups", "polished", "tied"]


def tied(vertices: FloatArray, piece: IntArray, y: FloatArray, take: FloatArray) -> FloatArray:
    """Return prices near ``vertices`` (pieces, resources) at which groups that are split between pieces pay the same at all of them.

    Parameters
    ----------
    vertices : array (pieces, resources)
        Some are 0, and stay so.
    piece : int array (servers,)
    y : array (groups, servers)
    take : array (groups, resources)
    """
    held = np.stack([y[:, piece == k].sum(axis=1) for k in range(len(vertices))], axis=1)
    some = vertices.ravel() > 0
    there = pieces_of_groups(held, take @ vertices.T, int(np.count_nonzero(some)) - 1)
    rows = []
    for group in np.flatnonzero(there.sum(axis=1) > 1):
        first, *others = np.flatnonzero(there[group])
        for other in others:
            row = np.zeros_like(vertices)
            row[first], row[other] = vertices[first] * take[group], -vertices[other] * take[group]
            rows.append(row.ravel() / (vertices[first] @ take[group]))
    if not rows:
        return vertices
    table, change = np.array(rows), np.zeros(vertices.size)
    change[some] = np.linalg.lstsq(table[:, some], -table.sum(axis=1), rcond=SETTINGS.rank)[0]
    return np.asarray(vertices * (1 + change.reshape(vertices.shape))) if np.abs(change).max() < SETTINGS.close else vertices


def pieces_of_groups(held: FloatArray, cost: FloatArray, ties: int) -> BoolArray:
    """Return the pieces at which each group buys, (groups, pieces): the one where it has most, and at most ``ties`` others of all groups.

    There are no more independent ties than free prices. But until an interior point is at the very end of its path, a group next to a
    boundary between two pieces has a small part of its tasks at the dearer one. The ties kept are those with the smallest
    difference of costs in relation to that part.

    Parameters
    ----------
    held : array (groups, pieces)
        Tasks of a group at the servers of a piece.
    cost : array (groups, pieces)
        Cost of a task at the prices of a piece.
    ties : int

    Examples
    --------
    >>> pieces_of_groups(np.array([[0.7, 0.3], [1.0, 1e-5]]), np.array([[1.0, 1.0], [1.0, 1.1]]), 1)
    array([[ True,  True],
           [ True, False]])
    """
    part = held / np.maximum(held.sum(axis=1), np.finfo(float).tiny)[:, None]
    main = held.argmax(axis=1)
    each = np.arange(main.size)
    doubt = np.full(held.shape, np.inf)
    np.divide(np.abs(cost / cost[each, main][:, None] - 1), part, out=doubt, where=part > SETTINGS.split)
    doubt[each, main] = -1.0
    surest = np.argsort(doubt, axis=None, kind="stable")[: main.size + ties]
    there = np.zeros(held.size, bool)
    there[surest] = np.isfinite(doubt.ravel()[surest])
    return there.reshape(held.shape)


def polished(y: FloatArray, take: FloatArray, weight: FloatArray, capacity: FloatArray, prices: FloatArray) -> FloatArray | None:
    """Return such tasks near ``y``; None where there are none.

    Parameters
    ----------
    y : array (groups, servers)
        Units of share.
    take : array (groups, resources)
        What a unit of share takes.
    weight : array (groups,)
        A group's share at level 1.
    capacity, prices : arrays (servers, resources)
    """
    cost = take @ prices.T
    cheapest = cost.min(axis=1)
    level = float((prices * capacity).sum()) / float(cheapest @ weight)
    used = cost <= cheapest[:, None] * (1 + SETTINGS.cheapest)
    y = np.where(used, np.maximum(y, SETTINGS.least_use * weight[:, None] * level / used.sum(axis=1)[:, None]), 0.0)
    full = prices > SETTINGS.priced * prices.max()
    system = _System(y, take, full)
    for _ in range(SETTINGS.steps):
        dy = system.step(weight * level - y.sum(axis=1), np.where(full, capacity - y.T @ take, 0.0))
        if not np.isfinite(dy).all():
            return None
        y = y + dy
        if y.min() < 0:
            return None
    return y if (y.T @ take <= capacity * (1 + 1e-12)).all() else None


class _System:
    """B Y B' of groups and of limits, factorised."""

    def __init__(self, y: FloatArray, take: FloatArray, full: np.ndarray) -> None:
        groups, resources = take.shape
        self.y, self.take = y, take
        blocks = np.einsum("gi,gr,gs->irs", y, take, take, optimize=True) * full[:, :, None] * full[:, None, :]
        diagonal = np.arange(resources)
        blocks[:, diagonal, diagonal] = np.where(full, blocks[:, diagonal, diagonal] * (1 + SETTINGS.rank), 1.0) + np.finfo(float).tiny
        self.inverse = np.linalg.inv(blocks)
        root = np.linalg.cholesky(self.inverse)
        between = (y[:, :, None] * take[:, None, :]) * full
        self.between = between.reshape(groups, -1)
        half = np.einsum("gir,irs->gis", between, root, optimize=True).reshape(groups, -1)
        # In units in which the part of the groups is 1.
        self.scale = 1 / np.sqrt(y.sum(axis=1))
        half *= self.scale[:, None]
        values, self.vectors = np.linalg.eigh(np.eye(groups) - half @ half.T)
        self.values = np.where(values > SETTINGS.rank * groups, values, np.inf)

    def step(self, of_groups: FloatArray, of_limits: FloatArray) -> FloatArray:
        """Return the change of y for what the equations lack."""
        inner = np.einsum("irs,is->ir", self.inverse, of_limits)
        right = self.scale * (of_groups - self.between @ inner.ravel())
        z = self.scale * (self.vectors @ ((self.vectors.T @ right) / self.values))
        p = np.einsum("irs,is->ir", self.inverse, of_limits - (z @ self.between).reshape(of_limits.shape))
        return np.asarray(self.y * (z[:, None] + self.take @ p.T))
