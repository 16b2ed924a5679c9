"""Licences in an export to Slurm: what accounts and users hold of them, as ``GrpTRES=license/NAME``.

A licence is a resource of the cluster, or a named limit ``license/NAME`` of an import. `fairopt.slurm.exporting` has the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fairopt.clusters.amounts import enlarged
from fairopt.clusters.holdings import Holder
from fairopt.instance import FloatArray, Instance
from fairopt.slurm.licenses import PREFIX

__all__ = ["LicenseUse", "licenses_of"]


@dataclass(frozen=True, slots=True, eq=False)
class LicenseUse:
    """A licence of an instance.

    Attributes
    ----------
    key : str
        Its TRES.
    amounts : array (users,)
        What a task takes of it.
    bounds : mapping
        How much a queue may have, by name; of the whole cluster under "".
    written : tuple of str
        The resource, or the named limits, that say so.
    """

    key: str
    amounts: FloatArray
    bounds: Mapping[str, float]
    written: tuple[str, ...]

    def held(self, holder: Holder, tasks: FloatArray, headroom: float) -> int:
        """Return the limit of a holder: what it holds with these tasks, (users,), times the headroom, within its bounds."""
        held = enlarged(1, float(self.amounts[holder.users] @ tasks[holder.users]))
        own = self.bounds.get(holder.queue.name, np.inf) if holder.queue else np.inf
        return min(enlarged(held, headroom), max(held, int(min(own, self.bounds[""]))))


def licenses_of(instance: Instance, keys: Mapping[str, str]) -> tuple[LicenseUse, ...]:
    """Return the licences of which a task takes the same on all servers; ``keys`` are names in Slurm that the caller gives to resources."""
    found: list[LicenseUse] = []
    for name, amount in () if instance.differs_by_server else instance.shared.items():
        bounds = {queue.name: queue.limit[name] for queue in instance.queues if name in queue.limit}
        key = keys.get(name) or f"{PREFIX}{name.removeprefix(PREFIX)}"
        found.append(LicenseUse(key, instance.demands[:, instance.resources.index(name)], bounds | {"": amount}, (name,)))
    named = {limit.name: limit for limit in instance.limits if limit.name.startswith(PREFIX) and limit.amounts is not None}
    for name, limit in named.items():
        by_server = any(isinstance(amount, Mapping) for amount in limit.amounts.values())
        if " of " in name or by_server or limit.each is not None or limit.servers is not None:
            continue
        of_queues = {queue.name: named[own] for queue in instance.queues if (own := f"{name} of {queue.name}".replace(".", "_")) in named}
        amounts = np.array([float(limit.amounts.get(user, 0.0)) for user in instance.users])
        written = (name, *(each.name for each in of_queues.values()))
        found.append(LicenseUse(name, amounts, {queue: each.bound for queue, each in of_queues.items()} | {"": limit.bound}, written))
    return tuple(found)
