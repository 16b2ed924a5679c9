"""What an answer says of the program of a question much like it: its prices and its tasks, on the merged rows of that program."""

from __future__ import annotations

import numpy as np

from fairopt.allocation import Allocation
from fairopt.instance import FloatArray, Instance
from fairopt.instance.aggregation import Merging
from fairopt.program import LimitKind, Program
from fairopt.program.all_pairs import AllPairs
from fairopt.program.likeness import Likeness

__all__ = ["likeness_of"]


def likeness_of(allocation: Allocation, program: Program, merging: Merging | None) -> Likeness:
    """Return what an allocation says of a program, whose rows come from an instance by a ``merging`` (None: of single servers)."""
    own = [level.prices for level in allocation.levels] if allocation.levels else [allocation.prices]
    tables = [prices for prices in own if prices is not None and prices.any()]
    several = len(tables) > 1
    if not tables or merging is None or isinstance(program, AllPairs) or not _same_servers(merging.original, allocation.instance):
        return Likeness(several)
    prices = np.array([_prices(program, table, merging, allocation.sharing) for table in tables])
    return Likeness(several, prices, _tasks(program, allocation, merging))


def _same_servers(one: Instance, other: Instance) -> bool:
    return one.servers == other.servers and one.resources == other.resources


def _prices(program: Program, table: FloatArray, merging: Merging, sharing: str) -> FloatArray:
    """Return prices of the limits of servers, (limits,), from a table of those of the rows that were given: of a merged row the first."""
    limits, part = program.limits, merging.server_part.astype(float)
    rows = limits.of_kinds(LimitKind.CAPACITY if sharing == "rdm" else LimitKind.TIME)
    groups, first = np.unique(merging.server_group, return_index=True)
    merged = np.zeros((len(program.servers), table.shape[1]))
    merged[groups] = table[first] if sharing == "rdm" else table[first] / part[first, None]  # a server's time is a part of the row's
    prices, keys = np.zeros(len(limits)), limits.keys[rows]
    prices[rows] = merged[keys[:, 0], np.maximum(keys[:, 1], 0)]
    return prices


def _tasks(program: Program, allocation: Allocation, merging: Merging) -> FloatArray:
    """Return the tasks of users who are in both, by their names, on the pairs of the program, (pairs,)."""
    names = merging.original.users
    position = {name: n for n, name in enumerate(allocation.instance.users)}
    before = np.array([position.get(name, -1) for name in names], np.int64)
    known = np.flatnonzero(before >= 0)
    table = np.zeros((len(program.users), len(program.servers)))
    np.add.at(table, (merging.user_group[known, None], merging.server_group[None, :]), allocation.tasks[before[known]])
    return np.asarray(table[program.pair_users, program.pair_servers])
