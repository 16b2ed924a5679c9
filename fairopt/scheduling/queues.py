"""The tree of an instance for progressive filling: its queues, and accounts for guarantees, for limits and for what queues keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, safe_ratio
from fairopt.instance.keeping import Keeping
from fairopt.models import Notion
from fairopt.program.filling import Kind, Measure, Queues
from fairopt.program.kept_parts import KeptParts
from fairopt.program.queue_limits import guarantees_of, limit_rows

__all__ = ["queues_of"]


def queues_of(
    instance: Instance, seen: Instance, chosen: Notion, leaf: IntArray | None = None, demands: FloatArray | None = None
) -> Queues | None:
    """Return the tree of an instance, None for a flat list of users.

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
    demands : array (users, resources), optional
        Demands of the users of ``seen``, in the resources of the instance; default: those of the leaves.

    Raises
    ------
    Unsupported
        The criterion has no share that can be compared between queues.
    """
    if not instance.is_tree:
        return None
    if getattr(chosen, "tree", "filling") != "filling":
        raise Unsupported('a greedy schedule fills a tree of queues; tree="nested" is a reading of exact allocations, so leave tree out')
    if chosen.criterion(seen).measure is not Measure.OWN:
        raise Unsupported(
            f'queues, guarantees and weights of 0 are followed by one share of each user, and the shares of "{chosen.name}" differ between '
            'servers; use a criterion such as "drfh", or leave them out'
        )
    tree = instance.tree
    leaf = np.arange(instance.n_users) if leaf is None else leaf
    demands = instance.demands if demands is None else demands
    accounts = [_Account(Kind.LIMIT, 0, row.resource, row.bound, row.servers, row.users) for row in limit_rows(instance)]
    for node in range(1, tree.n_nodes):
        for row in guarantees_of(instance, tree, node):
            accounts.append(_Account(Kind.GUARANTEE, node, row.resource, row.bound, row.servers, row.users))
    kept = KeptParts.of(instance)
    for number, keeping in enumerate(() if kept is None else kept.keepings):
        accounts += _of_keeping(keeping, number, len(accounts))
    share = getattr(chosen, "queue_share", None) or getattr(chosen, "default_queue_share", "sum")
    return Queues(
        parent=tree.parent,
        weights=tree.weights,
        leaf=leaf,
        leaf_parent=tree.user_node,
        leaf_weights=instance.weights if instance.weights.ndim == 1 else np.ones(instance.n_users),
        leaf_tiers=tree.tiers[tree.user_node],
        leaf_guarantees=instance.guarantees,
        parts=safe_ratio(seen.demands, seen.total_capacity) if share == "dominant" else None,
        demands=demands,
        totals=instance.total_capacity,
        of_server=instance.capacities,
        kinds=np.array([int(each.kind) for each in accounts], np.int64),
        nodes=np.array([each.node for each in accounts], np.int64),
        resources=np.array([each.resource for each in accounts], np.int64),
        amounts=np.array([each.amount for each in accounts], seen.capacities.dtype),
        asked=np.array([each.asked for each in accounts], seen.capacities.dtype),
        keeping=np.array([each.keeping for each in accounts], np.int64),
        above=np.array([each.above for each in accounts], np.int64),
        rows=np.array([each.rows for each in accounts], bool).reshape(-1, instance.n_servers),
        counted=np.array([each.users[leaf] for each in accounts], bool).reshape(-1, leaf.size),
    )


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
