"""The tree of an instance for progressive filling: its queues, and an account for each guarantee and each limit."""

from __future__ import annotations

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance, IntArray, safe_ratio
from fairopt.models import Notion
from fairopt.program.filling import Kind, Measure, Queues
from fairopt.program.queue_limits import Row, guarantees_of, limit_rows

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
    accounts: list[tuple[Kind, int, Row]] = [(Kind.LIMIT, 0, row) for row in limit_rows(instance)]
    for node in range(1, tree.n_nodes):
        accounts += [(Kind.GUARANTEE, node, row) for row in guarantees_of(instance, tree, node)]
    rows = [row for _, _, row in accounts]
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
        kinds=np.array([int(kind) for kind, _, _ in accounts], np.int64),
        nodes=np.array([node for _, node, _ in accounts], np.int64),
        resources=np.array([row.resource for row in rows], np.int64),
        amounts=np.array([row.bound for row in rows], seen.capacities.dtype),
        rows=np.array([row.servers for row in rows], bool).reshape(-1, instance.n_servers),
        counted=np.array([row.users[leaf] for row in rows], bool).reshape(-1, leaf.size),
    )
