"""What a user, or a queue for its users, declares instead of the truth: the lies of `fairopt.analysis.properties.strategy_proofness`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.instance import FloatArray, Instance
from fairopt.instance.by_server import as_given
from fairopt.instance.units import bare_amount
from fairopt.wording import figure, joined, plural

__all__ = ["Joint", "Lie", "lie_about", "with_row"]


@dataclass(frozen=True, slots=True, eq=False)
class Lie:
    """What user n declares; a field that is None is declared truthfully.

    ``demand`` is by kind of server, (kinds, resources); ``rates`` and ``speeds`` are (servers,).
    """

    n: int
    demand: FloatArray | None = None
    servers: np.ndarray | None = None
    tasks: Any = None
    rates: FloatArray | None = None
    speeds: FloatArray | None = None

    def told(self, instance: Instance) -> Instance:
        """Return the instance as declared."""
        changes: dict[str, Any] = {}
        if self.demand is not None:
            changes["demands"] = as_given(with_row(instance.demands_by_kind, self.n, self.demand), instance.kind_of)
        if self.servers is not None:
            placement = np.ones(instance.eligibility.shape, bool) if instance.placement is None else instance.placement
            changes["eligibility"] = with_row(placement, self.n, self.servers)
        if self.tasks is not None:
            changes["tasks"] = with_row(instance.tasks, self.n, self.tasks)
        if self.rates is not None:
            changes["rates"] = with_row(np.asarray(instance.rates_per_server), self.n, self.rates)
        if self.speeds is not None:
            changes["speeds"] = with_row(instance.speeds, self.n, self.speeds)
        return instance.replace(**changes)

    def words(self, instance: Instance) -> str:
        """Say what is declared."""
        parts = []
        if self.demand is not None:
            own = instance.demands_by_kind[self.n]
            for k, r in np.argwhere(self.demand != own):
                resource = instance.resources[r]
                true = bare_amount(own[k, r], resource, instance.units.get(resource, ""), 6)
                there = [instance.servers[i] for i in np.flatnonzero(instance.kind_of == k)]
                where = f" on {joined(there, 3)}" if len(own) > 1 else ""
                parts.append(f"a task takes {instance.amount(self.demand[k, r], resource, 6)}{where} instead of {true}")
        if self.speeds is not None:
            speeds = instance.speeds[self.n]
            changed = self.speeds != speeds
            for said, true in dict.fromkeys(zip(self.speeds[changed].tolist(), speeds[changed].tolist(), strict=True)):
                there = [instance.servers[i] for i in np.flatnonzero((self.speeds == said) & (speeds == true))]
                parts.append(f"a task does {figure(said, 6)} of the work on {joined(there, 3)} instead of {figure(true, 6)}")
        if self.rates is not None:
            own = np.asarray(instance.rates_per_server)[self.n]
            for i in np.flatnonzero(self.rates != own):
                parts.append(f"it runs {plural(self.rates[i], 'task')} on {instance.servers[i]} instead of {figure(own[i], 6)}")
        if self.servers is not None:
            hidden = np.flatnonzero(instance.eligibility[self.n] & ~self.servers)
            claimed = np.flatnonzero(~instance.eligibility[self.n] & self.servers)
            if hidden.size:
                parts.append(f"it may not run on {joined([instance.servers[i] for i in hidden], 3)}")
            if claimed.size:
                parts.append(f"it may run on {joined([instance.servers[i] for i in claimed], 3)} too")
        if self.tasks is not None:
            parts.append(f"it has {plural(self.tasks, 'task')} instead of {figure(instance.tasks[self.n], 6)}")
        return joined(parts, 6)


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """What the queue at a node declares for users below it, and how that is said."""

    node: int
    lies: tuple[Lie, ...]
    said: str

    def told(self, instance: Instance) -> Instance:
        """Return the instance as declared."""
        for lie in self.lies:
            instance = lie.told(instance)
        return instance


def lie_about(n: int, about: str, row: np.ndarray, position: Any, value: Any) -> Lie:
    """Return the lie that one number (or some) of what the user declares, its demand, servers, rates or speeds, is another one."""
    return Lie(n, **{about: with_row(row, position, value)})


def with_row(array: np.ndarray, position: Any, value: Any) -> np.ndarray:
    """Return a copy of an array with another value at a position."""
    changed = array.copy()
    changed[position] = value
    return changed
