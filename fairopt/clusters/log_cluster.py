"""The cluster of a log from its hosts alone, where no import is there.

>>> cluster = cluster_of_hosts([("n2", {"cpu": 8.0}, ""), ("n1", {"cpu": 8.0}, ""), ("n3", {"cpu": 8.0, "gpu": 2.0}, "")])
>>> cluster.servers, cluster.hosts, cluster.capacities.tolist()
(('n1 +1', 'n3'), (('n1', 'n2'), ('n3',)), [[8.0, 0.0], [8.0, 2.0]])
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from fairopt.clusters.shapes import natural
from fairopt.instance import Instance

__all__ = ["cluster_of_hosts"]

_FIRST = ("cpu", "memory", "gpu")


def cluster_of_hosts(hosts: Iterable[tuple[str, Mapping[str, float], Hashable]]) -> Instance | None:
    """Return a cluster of hosts in the order of their names, those that are alike in a row; None if they have nothing to share.

    Parameters
    ----------
    hosts : iterable of (name, what it has by resource, what else tells it from others)
    """
    listed = sorted(hosts, key=lambda host: natural(host[0]))
    names = {resource for _, offers, _ in listed for resource, amount in offers.items() if amount}
    resources = [*(each for each in _FIRST if each in names), *sorted(names - set(_FIRST))]
    if not resources:
        return None
    alike: dict[tuple[tuple[float, ...], Hashable], list[str]] = {}
    for name, offers, kind in listed:
        alike.setdefault((tuple(offers.get(each, 0.0) for each in resources), kind), []).append(name)
    return Instance(
        np.array([amounts for amounts, _ in alike], float),
        np.ones((1, len(resources))),
        counts=[len(own) for own in alike.values()],
        hosts=list(alike.values()),
        users=["nobody"],
        servers=[own[0] if len(own) == 1 else f"{own[0]} +{len(own) - 1}" for own in alike.values()],
        resources=resources,
    )
