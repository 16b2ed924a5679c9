"""Named limits of a cluster, for the streams of a log: whose tasks count, and how full the limits were.

A limit selects users of the cluster. A stream counts as the users of its owner with its demand; if none has it, as all users of its owner,
who must then count alike. An owner whom the cluster does not list counts where a limit names no users. A limit of each user is one of each
owner of the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.limits import Limit
from fairopt.instance.selections import Selection
from fairopt.instance.tolerances import NOTHING
from fairopt.simulation.stream_limits import LimitUse, by_streams, explicit

__all__ = ["StreamLimits"]


@dataclass(frozen=True, slots=True, eq=False)
class StreamLimits:
    """The named limits of a cluster over streams.

    Attributes
    ----------
    limits : tuple of Limit
    users : tuple of str
        Those of the cluster.
    counts_as : tuple of tuples of int (streams,)
        The users of the cluster that each stream counts as.
    owners : tuple of str
    owner : int array (streams,)
    labels : tuple of str (streams,)
    """

    limits: tuple[Limit, ...]
    users: tuple[str, ...]
    counts_as: tuple[tuple[int, ...], ...]
    owners: tuple[str, ...]
    owner: IntArray
    labels: tuple[str, ...]

    @classmethod
    def of(
        cls,
        cluster: Instance,
        users_of: Sequence[Sequence[int]],
        owners: Sequence[str],
        owner: IntArray,
        labels: Sequence[str],
        demands: FloatArray,
    ) -> StreamLimits:
        """Return the limits; ``users_of`` are the users of the cluster that each owner has, ``demands`` those of streams, by kind.

        Raises
        ------
        InvalidInstance, Unsupported
            A limit names users, and the log has none of the cluster's; or it counts users of an owner differently, and a job is like none.
        """
        limits = tuple(explicit(cluster))
        counts_as = []
        for n, demand in zip(owner.tolist() if limits else (), demands, strict=False):
            same = [u for u in users_of[n] if np.allclose(cluster.demands_by_kind[u], demand, rtol=NOTHING, atol=0.0)]
            counts_as.append(tuple(same or users_of[n]))
        found = cls(limits, cluster.users, tuple(counts_as), tuple(owners), owner, tuple(labels))
        for selection in cluster.selections:
            found._check(selection, any(users_of))
        return found

    def _check(self, selection: Selection, knows_somebody: bool) -> None:
        limit = selection.limit
        if (limit.users is not None or limit.amounts is not None) and not knows_somebody:
            raise InvalidInstance(
                f'limit "{limit.name}" is of users of the cluster, and the log has none of them; name the owners of the log there, or '
                "leave the limit out"
            )
        for s, users in enumerate(self.counts_as):
            kinds = {_counts(selection, u): u for u in users}
            if len(kinds) > 1:
                one, other = (self.users[u] for u in sorted(kinds.values())[:2])
                raise Unsupported(
                    f'limit "{limit.name}" counts users "{one}" and "{other}" differently, both are of "{self.owners[self.owner[s]]}", and '
                    "some jobs of the log have the demand of neither; let it count them alike"
                )

    def at(self, active: IntArray) -> list[Limit]:
        """Return the limits over these streams."""
        return [limit for derived in self._derived(active) for limit in derived]

    def _derived(self, active: IntArray) -> list[list[Limit]]:
        if not self.limits:
            return []
        labels: dict[str, list[str]] = {name: [] for name in self.users}
        owners: dict[int, list[str]] = {}
        for s in active.tolist():
            owners.setdefault(int(self.owner[s]), []).append(self.labels[s])
            for u in self.counts_as[s]:
                labels[self.users[u]].append(self.labels[s])
        whose = [(self.owners[n], streams) for n, streams in owners.items()]
        return [by_streams([limit], labels, whose) for limit in self.limits]

    def use(
        self, instance: Instance, stream: IntArray, row: IntArray, tasks: FloatArray, begin: IntArray, stop: IntArray, number: int
    ) -> FloatArray:
        """Return how full each limit is at samples, (samples, limits), as `LimitUse.over_time` does; ``instance`` has all streams."""
        counts = np.broadcast_to(instance.counts, (number, instance.n_servers))
        every = np.arange(self.owner.size)
        selections, found = iter(instance.selections), np.zeros((number, len(self.limits)))
        for k, derived in enumerate(self._derived(every)):
            use = LimitUse([next(selections) for _ in derived], every, instance)
            found[:, k] = use.over_time(stream, row, tasks, begin, stop, counts).max(axis=1, initial=0.0)
        return found


def _counts(selection: Selection, user: int) -> Any:
    """Return what tells apart how a limit counts a user: whether it does, and its amounts."""
    if not selection.users[user] or selection.amounts is None:
        return bool(selection.users[user])
    if isinstance(selection.amounts, tuple):
        mine = selection.amounts[0] == user
        return tuple(selection.amounts[1][mine].tolist()), tuple(selection.amounts[2][mine].tolist())
    return float(selection.amounts[user])
