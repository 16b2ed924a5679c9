"""The tree of an instance for progressive filling: its queues, and accounts for guarantees, for limits and for what queues keep.

Named limits and resources of the cluster are accounts, too. A flat list of users with these is a tree of one node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, safe_ratio
from fairopt.instance.by_server import counted_amounts
from fairopt.instance.keeping import Keeping
from fairopt.models import Notion, ShareNotion
from fairopt.models.share_notion import dominant_share, share_of_work
from fairopt.program.filling import Kind, Measure, Queues
from fairopt.program.kept_parts import KeptParts
from fairopt.program.queue_limits import Row, guarantees_of, limit_rows

__all__ = ["queues_of", "server_limits"]


def queues_of(
    instance: Instance, seen: Instance, chosen: Notion, leaf: IntArray | None = None, held: Instance | None = None
) -> Queues | None:
    """Return the tree of an instance, None for a flat list without named limits, resources of the cluster and users who come last.

    Parameters
    ----------
    instance : Instance
        Its users are the leaves of the tree.
    seen : Instance
        The instance as the placement sees it. Its users are those that are filled.
    chosen : Notion
        Its option ``queue_share`` says what the share of a queue is.
    leaf : int array (users,), optional
        The leaf of each user of ``seen``; default: each user is a leaf.
    held : Instance, optional
        The users of ``seen``, with their demands in the resources of the instance; default: the instance.

    Raises
    ------
    Unsupported
        The criterion has no share that can be compared between queues.
    """
    share = getattr(chosen, "queue_share", None) or getattr(chosen, "default_queue_share", "sum")
    share = "sum" if seen.differs_by_server else share  # of work: no task has one part of the cluster
    counting = chosen.counting(seen) if isinstance(chosen, ShareNotion) else None
    measured = isinstance(chosen, ShareNotion) and (chosen.counts_resources or (share == "dominant" and instance.is_tree))
    last = counting.last if counting is not None and measured and counting.last.any() else None
    if not (instance.is_tree or instance.limits or instance.shared_capacity.size or last is not None):
        return None
    if getattr(chosen, "tree", "filling") != "filling":
        raise Unsupported('a greedy schedule fills a tree of queues; tree="nested" is a reading of exact allocations, so leave tree out')
    if chosen.criterion(seen).measure is not Measure.OWN:
        what = "queues, guarantees and weights of 0 are" if instance.is_tree else "named limits and resources of the cluster are"
        raise Unsupported(
            f'{what} followed by one share of each user, and the shares of "{chosen.name}" differ between '
            'servers; use a criterion such as "drfh", or leave them out'
        )
    tree = instance.tree
    leaf = np.arange(instance.n_users) if leaf is None else leaf
    held = instance if held is None else held
    kept = KeptParts.of(instance)
    columns = _Columns(instance, held.demands_by_kind[:, 0], leaf)
    accounts, entries = _of_limits(instance, columns, leaf, held)
    everywhere, everybody = np.ones(instance.n_servers, bool), np.ones(instance.n_users, bool)
    for r, amount in enumerate(instance.shared_capacity, instance.n_server_resources):
        accounts.append(_counted(_Account(Kind.LIMIT, 0, r, amount, everywhere, everybody), len(accounts), held, leaf, entries))
    for node in range(1, tree.n_nodes):
        for row in guarantees_of(instance, tree, node):
            account = _Account(Kind.GUARANTEE, node, row.resource, row.bound, row.servers, row.users)
            accounts.append(_worked(account, len(accounts), held, leaf, entries))
    for number, keeping in enumerate(() if kept is None else kept.keepings):
        for account in _of_keeping(keeping, number, len(accounts)):
            accounts.append(_counted(account, len(accounts), held, leaf, entries))
    plain_parts = safe_ratio(seen.demands, seen.total_capacity) if share == "dominant" else None
    return Queues(
        parent=tree.parent,
        weights=tree.weights,
        listed=tree.listed,
        leaf=leaf,
        leaf_parent=tree.user_node,
        leaf_weights=instance.weights if instance.weights.ndim == 1 else np.ones(instance.n_users),
        leaf_tiers=tree.tiers[tree.user_node],
        leaf_guarantees=instance.guarantees,
        parts=plain_parts if counting is None or plain_parts is None else counting.weigh(plain_parts),
        demands=columns.demands,
        totals=np.append(instance.total_capacity, np.ones(columns.more, instance.capacities.dtype)),
        of_server=np.hstack([instance.capacities, np.zeros((instance.n_servers, columns.beyond_servers), instance.capacities.dtype)]),
        kinds=np.array([int(each.kind) for each in accounts], np.int64),
        nodes=np.array([each.node for each in accounts], np.int64),
        resources=np.array([each.resource for each in accounts], np.int64),
        amounts=np.array([each.amount for each in accounts], seen.capacities.dtype),
        asked=np.array([each.asked for each in accounts], seen.capacities.dtype),
        keeping=np.array([each.keeping for each in accounts], np.int64),
        above=np.array([each.above for each in accounts], np.int64),
        rows=np.array([each.rows for each in accounts], bool).reshape(-1, instance.n_servers),
        counted=np.array([each.users[leaf] for each in accounts], bool).reshape(-1, leaf.size),
        by_row=_together(entries, columns.demands.dtype),
        last=last,
        plain_parts=None if last is None else plain_parts,
        plain_worths=None if last is None else _plain_worths(seen, chosen),
    )


def _plain_worths(seen: Instance, chosen: Notion) -> FloatArray:
    """Return the share of a task of each user where all resources count once, (users,)."""
    assert isinstance(chosen, ShareNotion)
    if not chosen.counts_resources:
        return np.asarray(chosen.criterion(seen).per_task)
    return share_of_work(seen, None) if seen.differs_by_server else dominant_share(seen, seen.total_capacity)


def server_limits(instance: Instance, leaf: IntArray | None = None, held: Instance | None = None) -> tuple[FloatArray, FloatArray] | None:
    """Return the named limits of each server as resources of servers, which no placement looks at; None if there are none.

    They are the bounds, (servers, limits), inf where a limit does not count, and what a task counts, (users, 1 or servers, limits);
    ``leaf`` and ``held`` as in `queues_of`.
    """
    selections = [selection for selection in instance.selections if selection.limit.each == "server"]
    if not selections:
        return None
    leaf = np.arange(instance.n_users) if leaf is None else leaf
    held = instance if held is None else held
    bounds, columns = [], []
    for selection in selections:
        bound = np.full(instance.n_servers, np.inf, instance.capacities.dtype)
        bound[selection.servers] = selection.limit.bound
        if selection.resource >= 0:
            by_kind = held.demands_by_kind[:, :, selection.resource]
            each = selection.users[leaf][:, None] * (by_kind if by_kind.shape[1] == 1 else by_kind[:, held.kind_of])
        else:
            each = selection.per_task(instance.kinds)[leaf]
        bounds.append(bound)
        columns.append(each if each.ndim == 2 else each[:, None])
    width = max(column.shape[1] for column in columns)
    return np.stack(bounds, axis=1), np.stack([np.broadcast_to(column, (leaf.size, width)) for column in columns], axis=2)


_Entries: TypeAlias = tuple[IntArray, IntArray, IntArray, FloatArray]
"""Of accounts in which a task counts differently from row to row, as in `Queues.by_row`."""


def _of_limits(instance: Instance, columns: _Columns, leaf: IntArray, held: Instance) -> tuple[list[_Account], list[_Entries]]:
    """Return the accounts of limits of queues and named limits, but those of each server, and the entries of those that count by row."""
    accounts: list[_Account] = []
    entries: list[_Entries] = []
    order = np.argsort(leaf, kind="stable")
    for row in limit_rows(instance):
        selection = row.selection
        if selection is not None and selection.limit.each == "server":
            continue
        if selection is None or not isinstance(selection.amounts, tuple):
            account = _Account(Kind.LIMIT, 0, columns.of(row), row.bound, row.servers, row.users)
            accounts.append(_counted(account, len(accounts), held, leaf, entries))
            continue
        owners, servers, amounts = selection.amounts
        mine = row.users[owners] & row.servers[servers]
        first, number = np.searchsorted(leaf[order], owners[mine]), np.bincount(leaf, minlength=instance.n_users)[owners[mine]]
        place = np.repeat(np.arange(number.size), number)
        user = order[np.arange(place.size) - np.repeat(np.cumsum(number) - number - first, number)]
        entries.append((np.full(user.size, len(accounts)), user, servers[mine][place], amounts[mine][place]))
        accounts.append(_Account(Kind.LIMIT, 0, 0, row.bound, row.servers, np.zeros(instance.n_users, bool)))
    return accounts, entries


def _counted(account: _Account, number: int, held: Instance, leaf: IntArray, entries: list[_Entries]) -> _Account:
    """Return the account; where what a task counts differs from row to row, add its entries, and let it count nobody otherwise."""
    r = account.resource
    if r >= held.n_resources or held.demands_by_kind.shape[1] == 1:
        return account
    each = held.demands_by_kind[:, :, r][:, held.kind_of]
    users, rows = np.nonzero(account.users[leaf][:, None] & account.rows & (each > 0).astype(bool))
    entries.append((np.full(users.size, number), users, rows, each[users, rows]))
    return account._replace(users=np.zeros(account.users.size, bool))


def _worked(account: _Account, number: int, held: Instance, leaf: IntArray, entries: list[_Entries]) -> _Account:
    """Return the account of a guarantee; where demands or speeds differ by server, work counts (`counted_amounts`), row by row."""
    if not held.differs_by_server:
        return account
    own, r = account.users[leaf], account.resource
    taken = np.broadcast_to(held.demands_by_kind[:, :, r][:, held.kind_of], held.eligibility.shape)
    each = counted_amounts(held, own, account.rows, r)
    each = np.where(each > 0, each, taken)  # of who may not run there: the guarantee is one of its queue all the same
    users, rows = np.nonzero(own[:, None] & account.rows & (taken > 0).astype(bool))
    entries.append((np.full(users.size, number), users, rows, each[users, rows]))
    return account._replace(users=np.zeros(account.users.size, bool))


def _together(entries: list[_Entries], dtype: Any) -> _Entries | None:
    if not entries:
        return None
    account, users, rows, counted = (np.concatenate([entry[j] for entry in entries]) for j in range(4))
    return account, users, rows, counted.astype(dtype)


class _Columns:
    """What a task of each user adds to accounts: its demands, and behind them what else named limits count."""

    def __init__(self, instance: Instance, demands: FloatArray, leaf: IntArray) -> None:
        self.demands, self.leaf, self.instance, self.more = demands, leaf, instance, 0
        self._of: dict[int, int] = {}

    @property
    def beyond_servers(self) -> int:
        """How many columns are about no server: resources of the cluster, and what named limits count."""
        return self.instance.shared_capacity.size + self.more

    def of(self, row: Row) -> int:
        """Return the column that a row counts."""
        if row.resource >= 0:
            return row.resource
        assert row.selection is not None
        amounts = row.selection.amounts
        key = 0 if amounts is None else id(row.selection)
        if key not in self._of:
            self._of[key] = self.demands.shape[1]
            added = np.ones(self.leaf.size, self.demands.dtype) if amounts is None else amounts[self.leaf]
            self.demands = np.hstack([self.demands, added[:, None]])
            self.more += 1
        return self._of[key]


class _Account(NamedTuple):
    """An account of `fairopt.program.filling.Queues`; ``users`` are leaves."""

    kind: Kind
    node: int
    resource: int
    amount: Any
    rows: BoolArray
    users: BoolArray
    keeping: int = -1
    above: int = -1
    asked: Any = 0


def _of_keeping(keeping: Keeping, number: int, first: int) -> Iterator[_Account]:
    """Yield the accounts of what queues keep of a resource on a group of servers; ``first`` is the position of the first of them."""
    last = len(keeping.nodes)
    for k in range(last + 1):
        amount, asked = (keeping.kept[k], keeping.asked[k]) if k < last else (keeping.capacity, 0)
        users = keeping.nearest == (k if k < last else -1)
        above = -1 if k == last else first + (keeping.above[k] if keeping.above[k] >= 0 else last)
        yield _Account(Kind.KEPT, 0, keeping.resource, amount, keeping.servers, users, number, above, asked)
