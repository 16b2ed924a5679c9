"""More weight as a change that `fairopt.explain` tries: of the user or queue itself, and of the queues above it whose weights decide.

In a tree a weight counts among siblings. Where nobody else takes part beside a user, its own weight has no effect, and that of the nearest
queue that has rivals is tried (`fairopt.instance.rivals`).

>>> import fairopt as fo
>>> lab = fo.Instance([[10]], [[1], [1]], users=["a", "b"], queues=[fo.Queue("qa", weight=3), fo.Queue("qb")], queue_of=["qa", "qb"])
>>> [(change.words, change.kind) for change in weights_of_user(fo.solve(lab), 0)]
[('weight 4 instead of 3 of the queue qa', 'weight of a queue')]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.explanation import Gain, number
from fairopt.analysis.explanation.changes import Change, step, step_of, with_queue
from fairopt.analysis.measures import takes_part
from fairopt.instance.rivals import deciding_nodes, weight_without_effect
from fairopt.wording import figure, joined, named

__all__ = ["OF_WEIGHTS", "follows_tree", "idle_weight", "more_weight", "weights_of_queue", "weights_of_user"]

OF_WEIGHTS = ("weight", "weight of a queue")  # kinds of changes
_OF_QUEUE = " of the queue "


def follows_tree(allocation: Allocation) -> bool:
    """Say whether weights count among the siblings of a tree of queues."""
    return bool(allocation.instance.queues) and allocation.equalizes


def idle_weight(allocation: Allocation, *, user: int | None = None, node: int = 0) -> list[str]:
    """Return why the weight of a user in a queue, or of a queue, has no effect; nothing where it has one, or nothing stops them."""
    tree = allocation.instance.tree
    own = tree.below[node] if user is None else np.arange(allocation.instance.n_users) == user
    stopped = (own & takes_part(allocation.instance) & ~allocation.as_known.complete).any()
    if not stopped or not follows_tree(allocation) or (user is not None and not tree.user_node[user]):
        return []
    reason = weight_without_effect(allocation.instance, user=user, node=node)
    return [f"{reason[0].upper()}{reason[1:]}."] if reason else []


def weights_of_user(allocation: Allocation, user: int) -> list[Change]:
    """Return more weight of the user, if that has an effect, and of the queues around it whose weights have one, the nearest first."""
    if not follows_tree(allocation):
        return [_of_user(allocation, user)]
    nodes = deciding_nodes(allocation.instance, user=user)
    return [_of_user(allocation, user) if node is None else _of_queue(allocation, node, "weight of a queue") for node in nodes]


def weights_of_queue(allocation: Allocation, node: int) -> list[Change]:
    """Return more weight of the queue, or where that has no effect, of the nearest queue above whose weight has one."""
    deciding = next(deciding_nodes(allocation.instance, node=node), None)
    if deciding is None:
        return []
    return [_of_queue(allocation, deciding, "weight" if deciding == node else "weight of a queue")]


def _of_user(allocation: Allocation, user: int) -> Change:
    instance = allocation.instance
    weights = allocation.as_known.instance.weights.copy()
    before = np.atleast_1d(weights[user]).copy()
    more = np.where(before > 0, step(before), 1)
    weights[user] = (before + more)[0] if weights.ndim == 1 else before + more
    words = f"weight {figure(number(before[0] + more[0]))} instead of {figure(number(before[0]))}"
    if weights.ndim == 2:
        after, now = (joined([figure(number(weight)) for weight in each]) for each in (before + more, before))
        words = f"weights {after} instead of {now}"
    return Change(words, "weight", lambda: instance.replace(weights=weights), hint=1.0)


def _of_queue(allocation: Allocation, node: int, kind: str) -> Change:
    instance, queue = allocation.instance, allocation.as_known.instance.queues[node - 1]
    more = queue.weight + (step_of(queue.weight) if queue.weight > 0 else 1)
    whose = "" if kind == "weight" else f"{_OF_QUEUE}{named(queue.name)}"
    words = f"weight {figure(more)} instead of {figure(queue.weight)}{whose}"
    return Change(words, kind, lambda: with_queue(instance, node, queue, weight=more), hint=1.0)


def more_weight(found: Sequence[Gain]) -> Iterator[str]:
    """Yield a sentence on the weights of which more would give nothing.

    >>> own = Gain("weight 2 instead of 1", "weight", by_solving=0.0)
    >>> of_queue = Gain("weight 4 instead of 3 of the queue qa", "weight of a queue", by_solving=0.0)
    >>> for each in ([own], [of_queue], [own, of_queue]):
    ...     print(*more_weight(each))
    More weight would give it nothing.
    More weight of the queue qa would give it nothing.
    More weight of its own or of the queue qa would give it nothing.
    """
    vain = [gain for gain in found if gain.by_solving is not None and gain.by_solving <= 0]
    whose = [f"{_OF_QUEUE}{gain.change.partition(_OF_QUEUE)[2]}" for gain in vain if gain.kind != "weight"]
    if len(found) > 1 and any(gain.kind == "weight" for gain in vain):
        whose = [" of its own", *whose]
    if vain:
        yield f"More weight{' or'.join(whose)} would give it nothing."
