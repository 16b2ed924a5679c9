"""Whose weight decides what a user or a queue gets.

A weight counts among siblings, the users and queues right inside one queue. It has no effect where no sibling takes part: then the weight
of the queue around them decides, or of the nearest queue above in which somebody else takes part.

>>> from fairopt.instance.queues import Queue
>>> lab = Instance(
...     [[8]], [[1]] * 3, users=["ann", "ben", "cara"], queues=[Queue("research"), Queue("vision", parent="research")],
...     queue_of=["vision", "research", "research"])
>>> [lab.tree.name(node) for node in deciding_nodes(lab, user=0)]
['vision']
>>> list(deciding_nodes(lab, user=1)), list(deciding_nodes(lab, node=1))
([None], [])
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairopt.instance.instance import BoolArray, Instance
from fairopt.instance.tree import Tree
from fairopt.wording import named

__all__ = ["deciding_nodes", "weight_without_effect", "why_without_effect"]


def deciding_nodes(instance: Instance, *, user: int | None = None, node: int = 0) -> Iterator[int | None]:
    """Yield the nodes from a user, or from a queue, up to the root whose weights have an effect; None stands for the user itself.

    A node's weight has an effect if a sibling of it takes part: a user who can run a task, has tasks, and has a positive weight, in the
    same tier as a user of the node, or a queue with such a user; but not in a queue that serves one after the other. A user or a queue of
    weight 0 decides itself: with more weight it would take part. Nothing is yielded for who can run no task.
    """
    tree, weights = instance.tree, instance.weights
    part = _takes_part(instance)
    counts = part & (weights > 0) if weights.ndim == 1 else part
    tiers = tree.tiers[tree.user_node]
    at: int | None = node
    own = _below(tree, node)
    if user is not None:
        at, own = None, np.arange(instance.n_users) == user
    while at != 0 and (own & part).any():
        around = int(tree.user_node[user] if at is None else tree.parent[at])
        weight = instance.weights[user] if at is None else tree.weights[at]
        rivals = counts & ~own & tree.open_below(around) & np.isin(tiers, tiers[own & part])
        if (rivals.any() and not tree.listed[around]) or not np.any(weight):
            yield at
        at, own = around, _below(tree, around)


def _below(tree: Tree, node: int) -> BoolArray:
    """Return the users below a node, (users,), without the table of all nodes, which is large."""
    at, above = tree.user_node, np.maximum(tree.parent, 0)
    found = at == node
    for _ in range(int(tree.depth.max())):
        at = above[at]
        found |= at == node
    return np.asarray(found)


def _takes_part(instance: Instance) -> BoolArray:
    return np.asarray(instance.servable & ~instance.zero_demand & (instance.tasks > 0))


def weight_without_effect(instance: Instance, *, user: int | None = None, node: int = 0) -> str:
    """Return why the weight of a user, or of a queue, has no effect, and which weight decides; "" where it has one.

    >>> from fairopt.instance.queues import Queue
    >>> lab = Instance([[8]], [[1], [1]], users=["ann", "ben"], queues=[Queue("vision")], queue_of=["vision", None])
    >>> print(weight_without_effect(lab, user=0))
    the weight of ann has no effect in the tree, because ann is alone in the queue vision; the weight of the queue vision counts instead
    >>> weight_without_effect(lab, user=1)
    ''
    """
    why = why_without_effect(instance, user=user, node=node)
    return f"the weight of {_name(instance, instance.tree, user, node)} has no effect in the tree, because {why}" if why else ""


def why_without_effect(instance: Instance, *, user: int | None = None, node: int = 0) -> str:
    """Return the reason alone: "ann is alone in the queue vision; the weight of the queue vision counts instead"."""
    tree = instance.tree
    deciding = next(deciding_nodes(instance, user=user, node=node), 0)
    if deciding == (None if user is not None else node):
        return ""
    around = int(tree.user_node[user]) if user is not None else int(tree.parent[node])
    name = _name(instance, tree, user, node)
    where = f"in the queue {named(tree.name(around))}" if around else "in the cluster"
    alone = tree.users_of(around).size + tree.children(around).size == 1
    why = f"{name} is alone {where}" if alone else f"nobody else {where} competes with it"
    why = f'the order {where} is "listed"' if tree.listed[around] and not alone else why
    own = np.arange(instance.n_users) == user if user is not None else _below(tree, node)
    if not (own & _takes_part(instance)).any():
        why = f"{name} has no task that can run" if user is not None else f"no user below {name} has a task that can run"
    then = f"the weight of the queue {named(tree.name(deciding))} counts instead" if deciding else "no weight changes what it gets"
    return f"{why}; {then}"


def _name(instance: Instance, tree: Tree, user: int | None, node: int) -> str:
    return named(instance.users[user]) if user is not None else f"the queue {named(tree.name(node))}"
