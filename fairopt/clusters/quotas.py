"""What a scheduler promises each queue: what its tasks hold, and what it is guaranteed and does not use now.

Of each resource on each group of servers, let h[v] be what the tasks of queue v hold, and g[v] what it needs to keep its guarantee: its
own, or the sum of those in it where that is more. From the root, which has what the servers have, each queue divides its part P among its
children:

    wanted[c] = max(h[c], g[c])
    P[c] = wanted[c]                                              where these fit into P
    P[c] = g[c] + (wanted[c] - g[c]) (P - sum g) / sum (wanted - g)    else: who holds more than its guarantee borrows the rest

Where nobody's guarantee is larger than what it holds, P = h. Where guarantees exceed what there is, P = h as well.
A guarantee on several groups lies where the queue's tasks are, and the part that they do not use in proportion to what is left there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["promised"]

_Amounts: TypeAlias = npt.NDArray[np.int64]


def promised(
    parents: Sequence[int],
    held: _Amounts,
    capacity: _Amounts,
    guarantees: Iterable[tuple[int, int, npt.NDArray[np.bool_], int]],
) -> tuple[_Amounts, list[int]]:
    """Return what each queue is promised, (queues, groups, resources), and the queues that do not use all of it now.

    Parameters
    ----------
    parents : sequence of int
        The parent of each queue, before it; -1 for the root.
    held : int array (queues, groups, resources)
    capacity : int array (groups, resources)
    guarantees : iterable of (queue, resource, groups, amount)

    >>> everywhere = np.array([True])
    >>> promised([-1, -1], np.array([[[2]], [[14]]]), np.array([[16]]), [(0, 0, everywhere, 6)])[0].ravel().tolist()
    [6, 10]
    """
    parts = np.array(held, np.int64)
    needs = np.zeros_like(parts)
    unused = []
    for v, r, groups, amount in guarantees:
        needs[v, :, r] = np.maximum(needs[v, :, r], _spread(amount, parts[v, :, r], np.where(groups, capacity[:, r], 0)))
        if amount > parts[v, groups, r].sum():
            unused.append(v)
    if not unused:
        return parts, []
    children: dict[int, list[int]] = {}
    for v, above in enumerate(parents):
        children.setdefault(above, []).append(v)
    for v in reversed(range(len(parents))):
        if v in children:
            needs[v] = np.maximum(needs[v], needs[children[v]].sum(axis=0))
    if (needs[children.get(-1, [])].sum(axis=0) > capacity).any():
        return parts, []
    found = np.zeros_like(parts)
    for v in (-1, *range(len(parents))):  # a parent comes before its children
        own: list[int] = children.get(v, [])
        if own:
            found[own] = _divided(capacity if v < 0 else found[v], parts[own], needs[own])
    return found, list(dict.fromkeys(unused))


def _spread(amount: int, held: _Amounts, room: _Amounts) -> _Amounts:
    """Return where a guarantee lies, (groups,): on what is held, then in proportion to what is left."""
    here = np.where(room > 0, held, 0)
    if here.sum() >= amount:
        return _shared(amount, here)
    return np.asarray(here + _shared(min(amount, int(room.sum())) - int(here.sum()), np.maximum(room - here, 0)), np.int64)


def _shared(amount: int, weights: _Amounts) -> _Amounts:
    """Divide a whole amount in proportion to weights, none above its weight: the largest fractions are rounded up."""
    total = int(weights.sum())
    if total == 0 or amount <= 0:
        return np.zeros_like(weights)
    exact = [int(weight) * amount for weight in weights.tolist()]
    found = np.array([each // total for each in exact], np.int64)
    order = sorted(range(len(exact)), key=lambda k: -(exact[k] % total))
    for k in order[: amount - int(found.sum())]:
        found[k] += 1
    return found


def _divided(whole: _Amounts, held: _Amounts, needs: _Amounts) -> Any:
    """Divide what a queue is promised among its children, (children, groups, resources)."""
    wanted = np.maximum(held, needs)
    more, left = wanted - needs, np.maximum(whole - needs.sum(axis=0), 0)
    found = wanted.copy()
    for g, r in np.argwhere(wanted.sum(axis=0) > whole).tolist():
        found[:, g, r] = needs[:, g, r] + _shared(int(left[g, r]), more[:, g, r])
    return found
