"""The state of a tree of queues besides the state of progressive filling: plain arrays for ``fairopt.solvers.filling.kernel``.

Nodes and leaves are *places* of one array: first the nodes, the root at 0, then the leaves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray, safe_ratio
from fairopt.program.filling import Filling, Kind, Queues

__all__ = ["CHANGED", "LEVEL", "QueueState"]

CHANGED, LEVEL = range(2)  # positions in `marks`


class QueueState(NamedTuple):
    """Arrays only, contiguous and writable: steps are compiled anew for arrays of another kind.

    P places, N users, A accounts, S entries (pairs of a user and an account that counts it, on one row of servers or on all those of the
    account), R rows of servers.
    """

    dominant: bool
    parts: FloatArray  # (N, resources), or (N, 1) if not dominant
    parent: IntArray  # (P,) -1 of the root
    depth: IntArray  # (P,) 0 of the root
    weight: FloatArray  # (P,)
    listed: BoolArray  # (nodes,) do the children come one after the other, in the order of their places?
    tier: IntArray  # (N,)
    lowest_tier: int  # of users who do not come last
    has_last: bool  # does somebody come last? Then shares are kept a second time, as they are where all resources count once:
    plain_worth: FloatArray  # (N,) share of one task there
    plain_parts: FloatArray  # (N, resources) there; (N, 1) if not dominant
    plain_usage: FloatArray  # (P, resources)
    plain_usage_lost: FloatArray  # (P, resources)
    plain_share: FloatArray  # (P,)
    promised: FloatArray  # (P,) tasks guaranteed to a leaf; of a node, the largest part of the cluster in its guarantees
    closed: IntArray  # (P,) of leaves: depth of the deepest place on the way with weight 0; 0: there is none
    children_from: IntArray  # (nodes + 1,) first position of each node in `children`
    children: IntArray  # children of the nodes, in the order in which ties are broken
    upwards: IntArray  # (P - 1,) all places but the root, children before parents
    given_from: IntArray  # (nodes + 1,) first position of each node in `given`
    given: IntArray  # accounts of the guarantees of the nodes, those of a resource together; only those that users can add to
    total: FloatArray  # (resources of accounts,) of the cluster
    leaf: IntArray  # (N,) place of the leaf
    running: IntArray  # (P,) tasks below
    usage: FloatArray  # (P, resources) parts of the cluster, or the sum of shares in column 0
    usage_lost: FloatArray  # (P, resources) rounding error of usage, for the compensated sum
    share: FloatArray  # (P,)
    kind: IntArray  # (A,)
    level: IntArray  # (A,) depth of the node of a guarantee; 0 for a limit
    amount: FloatArray  # (A,) of what queues keep: what the users that count may hold now
    keeping: IntArray  # (A,) which keeping an account of kept parts belongs to; -1 for others
    keeping_from: IntArray  # (keepings + 1,) first account of each keeping; the last of its accounts is the root's
    above: IntArray  # (A,) account above, in the same keeping
    keeps: FloatArray  # (A,) what the queue of such an account keeps; of the root, the capacity
    asked: FloatArray  # (A,) what the queue keeps as it says, not scaled to the capacity
    of_server: FloatArray  # (R, resources of accounts) capacity of one server of the row
    counted: FloatArray  # (A,) scratch: what counts below the queue of such an account
    everywhere: BoolArray  # (A,) does the account count all rows, and each task the same on all?
    rows: BoolArray  # (A, R)
    held: FloatArray  # (A,) usage
    held_lost: FloatArray  # (A,)
    holders: IntArray  # (A,) tasks that count
    resource: IntArray  # (A,)
    accounts_from: IntArray  # (N + 1,) first entry of each user
    accounts: IntArray  # (S,) account of each entry
    on_row: IntArray  # (S,) the row of servers that an entry is about; -1: all that its account counts
    adds: FloatArray  # (S,) what a task adds
    user_of: IntArray  # (S,)
    at: IntArray  # (S,) for a guarantee on some rows: a task of the user fits on none of their servers before this one
    members_from: IntArray  # (A + 1,) first position of each account in `members`
    members: IntArray  # (S,) entries of each account, those that add most first
    barred_to: IntArray  # (A,) the entries of a limit or of kept parts before this position add more than what is left
    barred: IntArray  # (N,) number of such limits that count all rows
    barred_on: IntArray  # (N, R) number of such limits that count the row, among those that do not count all; (1, 1) if there are none
    eligible: BoolArray  # (N, R) without limits
    again: BoolArray  # (N,) tasks of the user may fit on rows where a limit was in the way
    need: IntArray  # (P,) depth of the deepest unmet guarantee that a task below adds to; 0: none; -1: no task can be placed
    top: IntArray  # (P,) highest tier of the users below with this need
    measure: FloatArray  # (P,) scratch: use / guarantee, or share / weight
    value: IntArray  # (N,) the same as `need` for users: -1 if no task can be placed
    tied: IntArray  # (P,) scratch
    kept: BoolArray  # (R,) scratch
    marks: IntArray  # CHANGED, LEVEL

    @classmethod
    def begin(cls, filling: Filling, queues: Queues, rank: IntArray) -> QueueState:
        """Return the state with no tasks. ``rank`` is the rank of each user in ties; a queue has the rank of its first user."""
        n, rows = filling.eligibility.shape
        nodes, accounts = queues.parent.size, queues.amounts.size
        parent = np.concatenate([queues.parent, queues.leaf_parent]).astype(np.int64)
        weight = np.concatenate([queues.weights, queues.leaf_weights])
        depth, closed = np.zeros(parent.size, np.int64), np.zeros(parent.size, np.int64)
        for place in _downwards(parent):
            if place:
                depth[place] = depth[parent[place]] + 1
                closed[place] = depth[place] if weight[place] == 0 else closed[parent[place]]
        leaf = queues.leaf + nodes
        first = np.full(parent.size, np.iinfo(np.int64).max)
        np.minimum.at(first, leaf, rank)
        for place in reversed(_downwards(parent)):
            if place:
                first[parent[place]] = min(first[parent[place]], first[place])
        below = np.arange(1, parent.size)
        children = below[np.lexsort((below, first[below], parent[below]))]
        everywhere = np.asarray(queues.rows[:, filling.counts > 0].all(axis=1))
        user, account, on_row, adds = _entries(queues)
        by_account = np.lexsort((user, -adds, account))
        by_row = np.isin(np.arange(accounts), account[on_row >= 0])
        everywhere &= ~(by_row & (queues.kinds == Kind.GUARANTEE))
        groups = bool((~everywhere & (queues.kinds != Kind.GUARANTEE)).any()) or bool((by_row & (queues.kinds != Kind.GUARANTEE)).any())
        given, parts_given = _given(queues, np.unique(account))
        width = 1 if queues.parts is None else queues.parts.shape[1]
        has_last = queues.last is not None and bool(queues.last.any())
        return cls(
            dominant=queues.parts is not None,
            parts=np.zeros((n, 1)) if queues.parts is None else np.ascontiguousarray(queues.parts),
            parent=parent,
            depth=depth,
            weight=weight,
            listed=queues.listed,
            tier=np.ascontiguousarray(queues.tiers),
            lowest_tier=queues.lowest_tier,
            has_last=has_last,
            plain_worth=np.zeros(n) if queues.plain_worths is None else np.ascontiguousarray(queues.plain_worths),
            plain_parts=np.zeros((n, 1)) if queues.plain_parts is None else np.ascontiguousarray(queues.plain_parts),
            plain_usage=np.zeros((parent.size, width) if has_last else (1, 1)),
            plain_usage_lost=np.zeros((parent.size, width) if has_last else (1, 1)),
            plain_share=np.zeros(parent.size if has_last else 1),
            promised=np.concatenate([parts_given, queues.leaf_guarantees]),
            closed=closed,
            children_from=_starts(parent[1:], nodes),
            children=children,
            upwards=np.array(_downwards(parent)[:0:-1], np.int64),
            given_from=_starts(queues.nodes[given], nodes),
            given=given,
            total=np.array(queues.totals),
            leaf=leaf,
            running=np.zeros(parent.size, np.int64),
            usage=np.zeros((parent.size, width)),
            usage_lost=np.zeros((parent.size, width)),
            share=np.zeros(parent.size),
            kind=queues.kinds,
            level=np.where(queues.kinds == Kind.GUARANTEE, depth[queues.nodes], 0),
            amount=queues.amounts.copy(),
            keeping=queues.keeping,
            keeping_from=_starts(queues.keeping[queues.keeping >= 0], int(queues.keeping.max(initial=-1)) + 1)
            + int((queues.keeping < 0).sum()),
            above=queues.above,
            keeps=queues.amounts.copy(),
            asked=queues.asked,
            of_server=np.array(queues.of_server, order="C"),
            counted=np.zeros(accounts, queues.amounts.dtype),
            everywhere=everywhere,
            rows=np.ascontiguousarray(queues.rows),
            held=np.zeros(accounts),
            held_lost=np.zeros(accounts),
            holders=np.zeros(accounts, np.int64),
            resource=queues.resources,
            accounts_from=_starts(user, n),
            accounts=np.ascontiguousarray(account),
            on_row=np.ascontiguousarray(on_row),
            adds=np.ascontiguousarray(adds),
            user_of=np.ascontiguousarray(user),
            at=np.zeros(account.size, np.int64),
            members_from=_starts(account, accounts),
            members=by_account,
            barred_to=_starts(account, accounts)[:-1].copy(),
            barred=np.zeros(n, np.int64),
            barred_on=np.zeros((n, rows) if groups else (1, 1), np.int64),
            eligible=filling.eligibility.copy(),
            again=np.zeros(n, bool),
            need=np.full(parent.size, -1),
            top=np.zeros(parent.size, np.int64),
            measure=np.zeros(parent.size),
            value=np.full(n, -1),
            tied=np.zeros(parent.size, np.int64),
            kept=np.zeros(rows, bool),
            marks=np.array([1, 0]),
        )


def _entries(queues: Queues) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return user, account, row of servers (-1: all) and what a task adds, of each entry, by user and then by account."""
    user, account = np.nonzero(queues.counted.T & (queues.demands[:, queues.resources] > 0))
    adds = queues.demands[user, queues.resources[account]]
    if queues.by_row is None:
        return user, account, np.full(user.size, -1), adds
    accounts, users, rows, amounts = queues.by_row
    user, account, adds = np.append(user, users), np.append(account, accounts), np.append(adds, amounts)
    on_row = np.append(np.full(user.size - users.size, -1), rows)
    order = np.lexsort((on_row, account, user))
    return user[order], account[order], on_row[order], adds[order]


def _given(queues: Queues, used: IntArray) -> tuple[IntArray, FloatArray]:
    """Return the accounts of guarantees, by node and resource, and for each node the largest part of the cluster in its guarantees.

    Amounts of 0, resources that the cluster lacks, and accounts that no user can add to (not in ``used``) are left out.
    """
    r, nodes = queues.resources, queues.parent.size
    counts = (queues.kinds == Kind.GUARANTEE) & np.isin(np.arange(r.size), used) & (queues.amounts > 0) & (queues.totals[r] > 0)
    accounts = np.flatnonzero(counts)
    accounts = accounts[np.lexsort((accounts, r[accounts], queues.nodes[accounts]))]
    amounts = np.zeros((nodes, queues.totals.size), queues.amounts.dtype)
    np.add.at(amounts, (queues.nodes[accounts], r[accounts]), queues.amounts[accounts])
    return accounts, safe_ratio(amounts, queues.totals).max(axis=1, initial=0)


def _downwards(parent: IntArray) -> list[int]:
    """Return the places, parents before children."""
    children: dict[int, list[int]] = {}
    for place, above in enumerate(parent.tolist()):
        children.setdefault(above, []).append(place)
    order = [0]
    for place in order:
        order += children.get(place, [])
    return order


def _starts(keys: IntArray, number: int) -> IntArray:
    """Return the first position of each key in a sorted list of keys, and the end."""
    starts: IntArray = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=number))]).astype(np.int64)
    return starts
