"""Which rows across servers add up limits of servers: limits of a resource on some servers that hold for all users alike.

Such a row takes of each pair on its servers, in proportion, as much of the resource as the pair itself does. So it is a sum of the rows of
this resource on these servers, and what is known of them, such as their products in a Newton step, is known of it.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import ROUNDING
from fairopt.program import ScaledColumns

__all__ = ["combinations"]


def combinations(columns: ScaledColumns, A: FloatArray, row: IntArray, slot: IntArray, place: IntArray, across: sp.csr_array) -> FloatArray:
    """Return G, (rows across, slots, servers): a row with entries is the sum of G[k, r, i] A[r] over slots r and servers i; else G[k] = 0.

    ``row``, ``slot`` and ``place`` are those of a `ScaledProgram`; places of limits across servers come after the servers.
    """
    n_servers, n_slots = columns.servers.size, A.shape[0]
    G = np.zeros((across.shape[0], n_slots, n_servers))
    for k, (start, end) in enumerate(zip(across.indptr[:-1], across.indptr[1:], strict=True)):
        pair, own = across.indices[start:end], across.data[start:end]
        if not own.size:
            continue
        server = columns.server[pair]
        here = np.bincount(server, minlength=n_servers)  # entries on each server
        there = np.flatnonzero(here)
        for j in np.flatnonzero(place == server[0]):
            slot_of, bound = _limits_of_resource(columns, int(columns.program.limits.keys[row[j], 1]), row, slot, place)
            if (slot_of[there] < 0).any():
                continue
            takes = A[slot_of[server], pair] * bound[server]
            part = own[0] / takes[0] if takes[0] > 0 else 0.0
            if (np.abs(own - part * takes) > ROUNDING * own).any():
                continue
            users = np.bincount(columns.server, weights=A[slot_of[columns.server], np.arange(columns.n_columns)] > 0, minlength=n_servers)
            if (here[there] == users[there]).all():
                G[k, slot_of[there], there] = part * bound[there]
                break
    return G


def _limits_of_resource(
    columns: ScaledColumns, resource: int, row: IntArray, slot: IntArray, place: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return the slot of the limit of a resource on each server, -1 where there is none, and its bound, (servers,)."""
    limits, n_servers = columns.program.limits, columns.servers.size
    same = (limits.keys[row, 1] == resource) & (place < n_servers)
    slot_of, bound = np.full(n_servers, -1), np.zeros(n_servers)
    slot_of[place[same]], bound[place[same]] = slot[same], limits.bounds[row[same]]
    return slot_of, bound
