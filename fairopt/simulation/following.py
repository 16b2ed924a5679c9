r"""Exact allocations whose weights follow the usage: KAI's fairness over time.

Among the children of a node that have tasks, each with the part W of their weights, and with the usage U, the part of the cluster that it
has had,

    w = max(0, W + k (W - U)),      U[u](now) = integral of s[u](v) 2^(-(now - v) / h) dv / integral of 2^(-(now - v) / h) dv,

and the allocation is that of the notion under the weights w, computed again at every event and after each ``period``. s is the dominant
share, h the half-life; k says how much the past counts. A weight of 0 gets nothing beyond a guarantee. Where demands differ by server, a
task has the share that it has on its server. KAI gives what is guaranteed first: ``guarantees="surplus"``.

``usage="resource"``, as in KAI: each resource r has a usage U[u,r] of its own, the part of it that u has had, and so a weight w[u,r]. A
stream whose tasks need a resource of which its user has the weight 0 gets nothing. That is for users beside each other, as a queue has one
weight for all resources, and for demands and speeds that are the same on all servers.

With usage from before the simulation the second integral is that of a cluster that has always been there, h / ln 2.

Source: KAI Scheduler, documentation, Time Aware fairness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray, IntArray, safe_ratio
from fairopt.instance.by_server import refuse_by_server
from fairopt.instance.tolerances import NOTHING
from fairopt.models import Notion
from fairopt.simulation.baselines.options import UNKNOWN, Known
from fairopt.simulation.baselines.siblings import Siblings
from fairopt.simulation.baselines.usage import FadingUsage, fading
from fairopt.simulation.fluid import Optimum
from fairopt.simulation.keeping import State, part_of, prefixed
from fairopt.simulation.repeated import Repeated
from fairopt.simulation.streams import Streams

__all__ = ["Following", "FollowingOptimum", "following_weights"]


@dataclass(frozen=True, slots=True)
class Following:
    """A notion whose weights follow the usage.

    Attributes
    ----------
    notion : Notion
    strength : float
        k, >= 0.
    half_life : float
        Seconds; inf: nothing fades.
    period : float or None
        Seconds; None: a hundredth of the half-life, and of an infinite one a thousandth of the time over which jobs are submitted.
    by_resource : bool
        Whether each resource has a usage, and a weight, of its own.
    known : Known
        The usage at the beginning.
    """

    notion: Notion
    strength: float
    half_life: float
    period: float | None
    by_resource: bool = False
    known: Known = UNKNOWN


def following_weights(siblings: Siblings, usage: FloatArray, strength: float, active: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the weights of users, (users,), and of nodes, (nodes,), that follow the usage of nodes and users, (nodes + users,).

    They are 0 for users who are not ``active``, and for queues without such users.

    >>> from fairopt.instance.tree import Tree
    >>> two = Siblings(Tree.of((), [None, None]), np.ones(2))
    >>> users, nodes = following_weights(two, np.array([1.0, 0.8, 0.2]), 0.5, np.ones(2, bool))
    >>> users.round(2).tolist(), nodes.tolist()
    ([0.35, 0.65], [1.0])
    """
    part = siblings.parts(active)
    followed = np.where(part > 0, np.maximum(part + strength * (part - usage[1:]), 0.0), 0.0)
    followed[followed <= NOTHING] = 0.0
    return followed[siblings.n_queues :], np.append(1.0, followed[: siblings.n_queues])


class FollowingOptimum(Optimum):
    """The exact allocation under weights that follow the usage, recomputed at every event and after each period."""

    def __init__(self, streams: Streams, following: Following) -> None:
        super().__init__(streams, following.notion)
        self.following, self.base = following, streams
        self.period = streams.period(following.half_life) if following.period is None else following.period
        self.siblings = Siblings(*streams.weighted_tree)
        self.nodes = np.asarray(self.siblings.tree.weights, float)
        instance, queues = streams.instance, self.siblings.n_queues
        if following.by_resource and queues:
            raise Unsupported("a queue has one weight for all resources; leave :usage=resource out, or simulate users without queues")
        if following.by_resource:
            refuse_by_server(instance, ":usage=resource gives each resource a weight, for one demand on all servers", "leave it out")
        part = safe_ratio(instance.demands_by_kind, instance.total_capacity)
        part[instance.demands_by_kind == 0] = 0.0
        if not following.by_resource:
            part = part.max(axis=2, keepdims=True)
        self.part = part[:, instance.kind_of[self.first]]  # that a task has of each measure of usage, (streams, groups, measures)
        self.measures = self.part.shape[2]
        self.had = np.zeros((streams.owner.size, self.measures))
        self.usage = FadingUsage((len(streams.users) + queues) * self.measures, following.half_life)  # of users, then of queues themselves
        past = following.known.past
        if past is not None:
            if following.by_resource:
                raise Unsupported("usage from before is one number for each owner, not one for each resource; leave :usage=resource out")
            if not math.isfinite(following.half_life):
                raise Unsupported("weights that follow usage from before need a half-life, over which it is a part; give half_life=7d")
            billing = following.known.billed(streams.instance)
            self.usage.begin(np.concatenate(past.faded(following.half_life)) / billing)
        self.began: float | None = -math.inf if past is not None else None

    def at(self, jobs: IntArray, counts: FloatArray, now: float = -np.inf) -> tuple[FloatArray, FloatArray]:
        """Return the tasks of each stream and the usage of each row of servers from now on."""
        if self.began is None and np.isfinite(now):
            self.began = now
        active = np.zeros(len(self.base.users), bool)
        active[self.base.job_owner[jobs]] = True
        used = self.usage.at(now).reshape(-1, self.measures)
        found = [self._weights(used[:, r], now, active) for r in range(self.measures)]
        users, nodes = found[0]
        if self.following.by_resource:
            users = np.stack([weights for weights, _ in found], axis=1)
            needs = self.base.instance.demands_by_kind.max(axis=1) > 0
            stopped = (needs & (users[self.base.owner] <= 0)).any(axis=1)
            users = np.where(users > 0, users, 1.0)  # 0 is of streams that are stopped, or of a resource that nobody needs
        else:
            stopped = users[self.base.owner] <= 0
        if not (np.array_equal(users, self.streams.weights) and np.array_equal(nodes, self.nodes)):
            self.key = None  # the weights are others: the allocation is not that of before
            self._weigh(users, nodes)
        if self.streams.tree is None:
            jobs = jobs[~stopped[self.base.stream[jobs]]]
        found_tasks = super().at(jobs, counts, now)
        rate = np.zeros((self.usage.rate.size // self.measures, self.measures))
        np.add.at(rate, self.base.owner, self.had)
        self.usage.rate = rate.ravel()
        return found_tasks

    def again(self, now: float, unfinished: bool) -> float:
        """Return when the allocation is to be computed again though nothing happens; inf: not before the next event."""
        return now + self.period if unfinished and self.x.any() else np.inf

    def state(self) -> State:
        """Return the state, for `restore`."""
        began = np.nan if self.began is None else self.began
        more = {"began": began, "weights": self.streams.weights, "nodes": self.nodes, "had": self.had}
        return super().state() | prefixed("usage", self.usage.state()) | more

    def restore(self, state: State) -> None:
        """Go back to a state."""
        super().restore(state)
        self.usage.restore(part_of(state, "usage"))
        began = float(state["began"])
        self.began = None if math.isnan(began) else began
        self.had = state["had"]
        self._weigh(state["weights"], state["nodes"])

    def _weights(self, used: FloatArray, now: float, active: BoolArray) -> tuple[FloatArray, FloatArray]:
        began, half_life = self.began, self.following.half_life
        if began is None or not np.isfinite(now):
            whole = 0.0
        elif math.isinf(began):
            whole = half_life / math.log(2)
        else:
            whole = fading(now - began, half_life)[1]
        users, queues = used[: len(self.base.users)], used[len(self.base.users) :]
        usage = np.concatenate([self.siblings.of_nodes(users, queues), users])
        usage = usage / whole if whole > 0 else np.zeros(usage.size)
        return following_weights(self.siblings, usage, self.following.strength, active)

    def _weigh(self, users: FloatArray, nodes: FloatArray) -> None:
        self.nodes, owners = nodes, self.base.owners
        if owners is not None and owners.is_tree:
            queues = [replace(queue, weight=float(weight)) for queue, weight in zip(owners.queues, nodes[1:], strict=True)]
            owners = owners.replace(weights=users, queues=queues)
        self.streams = replace(self.base, weights=users, owners=owners)

    def _repeated(self, counts: FloatArray) -> Repeated | None:
        return None if self.following.by_resource else super()._repeated(counts)  # it has one weight of each user

    def _take(self, tasks: FloatArray, counts: FloatArray) -> None:
        super()._take(tasks, counts)
        self.had = np.einsum("ng,ngr->nr", tasks, self.part)

    def _clear(self) -> None:
        super()._clear()
        self.had = np.zeros(self.had.shape)
