"""How a notion follows a tree of queues: which rules it takes, and the goal that its leximin becomes.

The rules of a tree are options of every notion that equalises a share:

* ``guarantees="surplus"``: what is left after the guarantees is divided by weights, on top of them (KAI, Kueue). ``"clamp"``: a user or
  queue whose guarantee exceeds its part by weight waits until its siblings have caught up (YARN's Fair Scheduler).
* ``queue_share="dominant"``: the share of a queue is the dominant share of what its users hold together, as in H-DRF; ``"sum"``: the sum of
  their shares. The default is "dominant" for drf and drfh and "sum" for the others.
* ``tree="filling"``: users inside a queue rise together while the queue rises, as in schedulers. ``"nested"``: fairness among queues first,
  and inside them second (`fairopt.program.nested`); shares of queues are sums.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, safe_ratio
from fairopt.instance.tree import Tree
from fairopt.models.counting import Counting
from fairopt.program.queue_limits import Row, guarantee_rows, stack_rows
from fairopt.program.tree_filling import Part, TreeFilling

__all__ = [
    "OPTIONS_OF_TREES",
    "Guarantees",
    "QueueShare",
    "Reading",
    "check_limits_alone",
    "check_nested",
    "check_no_queues",
    "tree_filling",
]

Guarantees: TypeAlias = Literal["surplus", "clamp"]
QueueShare: TypeAlias = Literal["dominant", "sum"]
Reading: TypeAlias = Literal["filling", "nested"]
OPTIONS_OF_TREES = ("guarantees", "queue_share", "tree")


def check_no_queues(name: str, instance: Instance) -> None:
    """Refuse queues, guarantees and weights of 0 for a notion that does not support them."""
    if instance.queues:
        raise Unsupported(
            f'"{name}" does not support queues, and the instance has {len(instance.queues)}; use "drfh", "tsf" or another notion that '
            "equalises a share, or leave the queues out"
        )
    check_limits_alone(name, instance)


def check_limits_alone(name: str, instance: Instance, *, guarantees: bool = False) -> None:
    """Refuse what is more than limits of queues, for a notion that equalises no share: weights, tiers and orders of queues, and guarantees.

    With ``guarantees`` they are allowed: the notion keeps them as rows (`fairopt.solving.kept_guarantees`).
    """
    use = 'use "drfh", "tsf" or another notion that equalises a share'
    promised = np.flatnonzero(instance.guarantees > 0)
    if promised.size and not guarantees:
        raise Unsupported(f'"{name}" does not support guarantees, and user "{instance.users[promised[0]]}" has one; {use}')
    if (instance.weights == 0).any():
        user = instance.users[int(np.flatnonzero(instance.weights == 0)[0])]
        raise Unsupported(f'"{name}" needs weights > 0, and that of user "{user}" is 0; {use}, or leave the user out')
    what = "guarantees and limits" if guarantees else "limits"
    for queue in instance.queues:
        if not guarantees and (queue.guarantee or any(quota.guarantee for quota in queue.quotas)):
            raise Unsupported(f'"{name}" takes the {what} of queues, but no guarantees, and queue "{queue.name}" has one; {use}')
        if queue.weight != 1 or queue.tier:
            which = "tiers" if queue.tier else "weights"
            raise Unsupported(f'"{name}" takes the {what} of queues, but not their {which}, and queue "{queue.name}" has one; {use}')
        if queue.order != "fair":
            raise Unsupported(
                f'"{name}" takes the {what} of queues, but not their order, and queue "{queue.name}" has the order "{queue.order}"; {use}'
            )


def check_nested(name: str, instance: Instance) -> None:
    """Refuse what the nested reading of a tree does not support: guarantees, tiers, weights of 0, an order of first come, first served."""
    for queue in instance.queues:
        what = "a guarantee" if any(each.guarantee for each in queue.everywhere_and_on_groups) else "a tier" if queue.tier else ""
        what = what or ("the weight 0" if queue.weight == 0 else f'the order "{queue.order}"' if queue.order != "fair" else "")
        if what:
            raise Unsupported(f'tree="nested" supports only weights > 0 and limits, and queue "{queue.name}" has {what}; leave tree out')
    if instance.guarantees.any() or (instance.weights == 0).any():
        user = instance.users[int(np.flatnonzero((instance.guarantees > 0) | (instance.weights == 0))[0])]
        raise Unsupported(
            f'tree="nested" supports only weights > 0 and limits, and user "{user}" has a guarantee or the weight 0; leave tree out'
        )


def tree_filling(
    instance: Instance,
    share: FloatArray,
    users: IntArray,
    servers: IntArray,
    guarantees: Guarantees,
    parts: FloatArray | None,
    last: BoolArray | None = None,
    counting: Counting | None = None,
) -> TreeFilling:
    """Return the goal of filling the tree of an instance.

    Parameters
    ----------
    share : array (users,) or (users, servers)
        Of one task. With ``parts`` it must not depend on the server.
    users, servers : int arrays (pairs,)
    parts : array (users, resources) or None
        With ``queue_share="dominant"``, the parts of the cluster that a task takes, as they count; None: the share of a queue is a sum.
    last : bool array (users,), optional
        Who comes after all others; default: nobody.
    counting : Counting, optional
        What counts, which guarantees are measured by, too.
    """
    tree = instance.tree
    weights = instance.weights if instance.weights.ndim == 1 else np.ones(instance.n_users, dtype=instance.weights.dtype)
    takes = None
    if parts is not None:
        known = share < np.inf
        takes = safe_ratio(parts, np.where(known, share, 1)[:, None])
        takes[~(takes < np.inf) | ~known[:, None]] = 0
    open_to = _inside(tree, 0)
    stages = _stages(instance, tree)
    filling = [
        part
        for number in range(1, max(int(stage.max(initial=0)) for stage in stages) + 1)
        if (part := _guarantees(instance, tree, weights, stages, number, users, servers, counting)) is not None
    ]
    tiers = tree.tiers[tree.user_node]
    surplus = (weights > 0) & open_to[tree.user_node]
    behind = np.zeros(instance.n_users, bool) if last is None else last
    for those, who in ((surplus & ~behind, ""), (surplus & behind, " of users who demand nothing that counts")):
        for tier in sorted(set(tiers[those].tolist()), reverse=True):
            title = f"the surplus{who}" if (tiers == tier).all() else f"the surplus of tier {tier}{', ' + who[4:] if who else ''}"
            filling.append(Part(title, those & (tiers == tier)))
    return TreeFilling(weights, tree, takes, guarantees == "clamp", tuple(filling))


def _stages(instance: Instance, tree: Tree) -> tuple[IntArray, IntArray]:
    """Return the part of the guarantee of each node, (nodes,), and each user, (users,), from 1; 0 of those without a guarantee.

    It is the longest chain of guaranteed nodes that ends at the node.
    """
    of_users = (instance.guarantees > 0).astype(np.int64)
    of_nodes, below = np.zeros(tree.n_nodes, np.int64), np.zeros(tree.n_nodes, np.int64)
    np.maximum.at(below, tree.user_node, of_users)
    for node in tree.order:
        guaranteed = any(value > 0 for quota in tree.queues[node - 1].everywhere_and_on_groups for value in quota.guarantee.values())
        of_nodes[node] = below[node] + 1 if guaranteed else 0
        below[tree.parent[node]] = max(below[tree.parent[node]], below[node], of_nodes[node])
    return of_nodes, of_users


def _guarantees(
    instance: Instance,
    tree: Tree,
    weights: FloatArray,
    stages: tuple[IntArray, IntArray],
    number: int,
    users: IntArray,
    servers: IntArray,
    counting: Counting | None,
) -> Part | None:
    """Return the part in which the guarantees of a number are met, None where there are none."""
    total, kind = instance.total_capacity, instance.demands_by_kind.dtype
    node_rates, rising = np.zeros(tree.n_nodes, dtype=kind), np.zeros(instance.n_users, bool)
    rows, owners = list[Row](), list[int]()
    everywhere = np.ones(instance.n_servers, bool)
    own = stages[1] == number
    user_rates = np.zeros(instance.n_users, dtype=kind)
    of_kinds = _largest(instance.guarantees[own, None, None] * safe_ratio(instance.demands_by_kind[own], total), counting)
    user_rates[own] = of_kinds.min(axis=1, where=of_kinds > 0, initial=np.inf)  # where a task takes least
    user_rates[~(user_rates < np.inf)] = 0  # who can run nowhere
    for n in np.flatnonzero(own):
        mine = np.zeros(instance.n_users, bool)
        mine[n] = True
        if instance.demands_by_kind.shape[1] > 1:
            rows.append(Row(f"guaranteed tasks of {instance.users[n]}", mine, everywhere, -1, instance.guarantees[n]))
        else:
            rows += [
                Row(f"guaranteed {instance.resources[r]} of {instance.users[n]}", mine, everywhere, int(r), need)
                for r, need in enumerate((instance.guarantees[n] * instance.demands[n]).tolist())
                if need > 0
            ]
        owners += [tree.n_nodes + int(n)] * (len(rows) - len(owners))
    rising |= own
    for node in np.flatnonzero(stages[0] == number):
        queue = tree.queues[node - 1]
        amount = np.zeros(instance.n_resources, dtype=kind)
        named = np.zeros(instance.n_resources, bool)
        for quota in queue.everywhere_and_on_groups:
            for name, value in quota.guarantee.items():
                r = instance.resources.index(name)
                amount[r] += value
                named[r] |= value > 0
        node_rates[node] = _largest(np.where(total > 0, safe_ratio(amount, total), 0), counting)
        if not node_rates[node] > 0:
            continue
        inside = _inside(tree, int(node))
        rising |= inside[tree.user_node] & (weights > 0) & (instance.demands_by_kind[:, :, named] > 0).any(axis=(1, 2)) & ~own
        rows += guarantee_rows(instance, tree, int(node))
        owners += [int(node)] * (len(rows) - len(owners))
    if not rows:
        return None
    limits = stack_rows(instance.kinds, rows, users, servers)
    keys = limits.keys[:, 0]
    limits = replace(limits, keys=np.column_stack([np.arange(len(limits)), np.full(len(limits), -1)]))
    stated = tuple(rows[key] for key in keys)
    title = f"the guarantees of stage {number}" if max(each.max(initial=0) for each in stages) > 1 else "the guarantees"
    names, whose = tuple(row.name for row in stated), np.array(owners, np.int64)[keys]
    return Part(title, rising, node_rates, user_rates, limits, names, stated, whose, instance.differs_by_server)


def _largest(parts: FloatArray, counting: Counting | None) -> FloatArray:
    """Return the largest of parts of the cluster, (..., resources), as they count; where nothing that counts is among them, as they are."""
    largest = parts.max(axis=-1)
    if counting is None:
        return np.asarray(largest)
    counted = counting.weigh(parts).max(axis=-1)
    return np.asarray(np.where(counted > 0, counted, largest))


def _inside(tree: Tree, top: int) -> BoolArray:
    """Return which nodes are a node or below it with weights > 0 all the way from it, (nodes,)."""
    inside = np.zeros(tree.n_nodes, bool)
    inside[top] = True
    for layer in reversed(tree.layers):
        below = layer[inside[tree.parent[layer]]]
        inside[below] = tree.weights[below] > 0
    return inside
