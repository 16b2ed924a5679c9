r"""Exact prices of an alpha-fair optimum from the pieces at which each user buys: Newton's method on the few pieces of the dual function.

Servers with the same price vector p[l] form piece l, with capacities C[l]. A user of one piece demands t[n] = (phi[n] / y)^(1/alpha) at
y = p[l].d[n]; the few users S that are split between pieces pay the same at each of their pieces. So

    sum over n of l of t[n] d[n,r]  +  sum over s of z[s,l] d[s,r]  =  C[l,r]         for limits with a price
    p[l].d[s] = p[k].d[s]                                                             for pieces l, k of s
    sum over l of z[s,l] = t[s]

has as many equations as unknowns p and z: some dozens, whatever the number of users and servers.

>>> pieces = Pieces(np.array([[1.0, 0.0]]), np.array([[3.0, 9.0]]), [])
>>> exact_prices(pieces, np.array([[1.0, 2.0], [2.0, 1.0]]), np.ones(2), np.zeros(2, int), 1.0).round(12)
array([[0.66666667, 0.        ]])
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fairopt.instance import FloatArray, IntArray
from fairopt.solvers.large.settings import SETTINGS

__all__ = ["Pieces", "SplitUser", "exact_prices"]


class SplitUser(NamedTuple):
    """A user, or a group of one shape, who buys at several pieces.

    Attributes
    ----------
    demand : array (resources,)
    phi : float
    pieces : int array (two or more,)
    amounts : array (two or more,)
        Approximate tasks at each of these pieces.
    """

    demand: FloatArray
    phi: float
    pieces: IntArray
    amounts: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Prices (pieces, resources), where zeros stay 0; total capacities of each piece; the split users."""

    prices: FloatArray
    capacity: FloatArray
    split: list[SplitUser]


def exact_prices(pieces: Pieces, demands: FloatArray, phi: FloatArray, piece: IntArray, alpha: float) -> FloatArray | None:
    """Return the prices at which supply equals demand; None if Newton's method does not converge.

    Parameters
    ----------
    pieces : Pieces
    demands : array (users, resources)
        Of the users that are not split.
    phi : array (users,)
    piece : int array (users,)
    alpha : float
    """
    p, split = pieces.prices.copy(), pieces.split
    priced = p > 0
    for _ in range(SETTINGS.steps_of_prices + sum(one.pieces.size for one in split)):
        table, lacks = _equations(replace(pieces, split=split), p, demands, phi, piece, alpha)
        if float(np.abs(lacks).max()) <= SETTINGS.exact:
            return p
        try:
            change = np.linalg.lstsq(table, lacks, rcond=None)[0]
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(change).all():
            return None
        amounts = np.concatenate([np.empty(0), *(one.amounts for one in split)])
        of_prices, of_amounts = np.split(change, [change.size - amounts.size])
        to_prices, to_amounts = _way(p[priced], of_prices), _way(amounts, of_amounts)
        length = min(1.0, SETTINGS.part_of_the_way * to_prices, to_amounts)
        p[priced] += length * of_prices
        if not (p[priced] > 0).all():  # a price that falls to a tenth in each step ends in 0
            return None
        amounts = amounts + length * of_amounts
        ends = np.cumsum([one.amounts.size for one in split])[:-1].astype(int)
        split = [one._replace(amounts=own) for one, own in zip(split, np.split(amounts, ends), strict=True)] if split else []
        if length < 1 and length == to_amounts:  # a user whose amount at a piece would become negative does not buy there
            split, alone = _without_least(split)
            if alone is not None:
                demands, phi = np.concatenate([demands, alone.demand[None]]), np.append(phi, alone.phi)
                piece = np.append(piece, alone.pieces[0])
    return None


def _way(values: FloatArray, changes: FloatArray) -> float:
    """Return how far a step can go until a value is 0."""
    falls = changes < 0
    return float((-values[falls] / changes[falls]).min(initial=np.inf))


def _without_least(split: list[SplitUser]) -> tuple[list[SplitUser], SplitUser | None]:
    """Return the split users without the smallest part of all, and the user that is then no longer split."""
    least = min(range(len(split)), key=lambda s: float((split[s].amounts / split[s].amounts.sum()).min()))
    one = split[least]
    keep = np.arange(one.pieces.size) != one.amounts.argmin()
    one = one._replace(pieces=one.pieces[keep], amounts=one.amounts[keep])
    others = split[:least] + split[least + 1 :]
    return (others, one) if one.pieces.size == 1 else ([*others, one], None)


def _equations(
    pieces: Pieces, p: FloatArray, demands: FloatArray, phi: FloatArray, piece: IntArray, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Return the Jacobian and the residuals; the unknowns are the prices that are not 0, then the amounts."""
    (n_pieces, m), priced = p.shape, p > 0
    cost = np.einsum("nr,nr->n", demands, p[piece])
    t = (phi / cost) ** (1 / alpha)
    used: FloatArray = np.stack([np.bincount(piece, weights=t * column, minlength=n_pieces) for column in demands.T], axis=1)
    number = int(priced.sum())
    column = np.full(p.shape, -1)
    column[priced] = np.arange(number)
    n_amounts = sum(one.amounts.size for one in pieces.split)
    supply = np.zeros((p.size, number + n_amounts))
    falls = t / cost / alpha
    for r in range(m):
        for c in range(m):
            slope = -np.bincount(piece, weights=falls * demands[:, r] * demands[:, c], minlength=n_pieces)
            rows = np.flatnonzero(priced[:, c])
            supply[rows * m + r, column[rows, c]] = slope[rows]
    more, lacks, start = [], [], number
    for one in pieces.split:
        z = one.amounts
        own = start + np.arange(z.size)
        start += z.size
        for place, at in zip(own, one.pieces, strict=True):
            supply[at * m + np.arange(m), place] += one.demand
        used[one.pieces] += z[:, None] * one.demand
        costs = p[one.pieces] @ one.demand
        slopes = np.zeros((z.size, number + n_amounts))
        for j, at in enumerate(one.pieces):
            some = priced[at]
            slopes[j, column[at, some]] = one.demand[some] / costs[0]
        ties = slopes[1:] - slopes[0]
        wanted = (one.phi / costs[0]) ** (1 / alpha)
        total = slopes[0] * (wanted / alpha)
        total[own] = 1.0
        more += [ties, total[None] / wanted]
        lacks += [1 - costs[1:] / costs[0], np.array([1 - z.sum() / wanted])]
    keep = priced.ravel()
    size = pieces.capacity.ravel()[keep]
    table = np.concatenate([supply[keep] / size[:, None], *more])
    return table, np.concatenate([1 - used.ravel()[keep] / size, *lacks])
