"""The result of an import: the instance, the tasks that run now, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.clusters.running import Running
from fairopt.instance import FloatArray, Instance, safe_ratio
from fairopt.results import result
from fairopt.show.equality import ComparesItself
from fairopt.wording import plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Import", "LeftOut"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A record that was left out: its kind, its place, and the reason.

    Attributes
    ----------
    what : str
        "pod", "node", "job", "row".
    where : str
        File and place in it, and the name of the record.
    why : str
    number : float
        How many nodes, pods or jobs the record stands for.
    """

    what: str
    where: str
    why: str
    number: float = 1.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Import(ComparesItself):
    """An instance from the exports of a cluster.

    Attributes
    ----------
    kind : str
        "kubernetes", "slurm", "pbs", "htcondor", "yarn", "ray", "openb", "google2011", "swf" or "gavel".
    instance : Instance
        An owner is a queue, with a user for each shape of its tasks, ``owner/shape``. Rows of servers have the names of their nodes as
        ``hosts``, users their ``owners``. Without queues in the export, and if every owner has
        one shape of task, each owner is a user and there is no tree.
    current : Allocation or None
        The tasks that run now, as a given allocation; None if the exports do not say where they run.
    owners : tuple of str
        The owner of each user.
    held : array (users,)
        Number of running tasks.
    units : dict
        Unit of each resource.
    summary : dict
        What was read: numbers by kind of record.
    left_out : tuple of LeftOut
    notes : tuple of str
        Where the instance is an approximation or a relaxation of the cluster, and how.
    queues : dict
        Names of the queues of each owner, whose weights are its weight; empty if there is no tree.
    question : mapping
        The arguments of the import, as plain data.
    running : tuple of Running
        What runs, by name, with what stops together and what must go on; empty if the export says no names.
    """

    kind: str
    instance: Instance
    current: Allocation | None
    owners: tuple[str, ...]
    held: FloatArray
    units: dict[str, str] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    queues: dict[str, tuple[str, ...]] = field(default_factory=dict)
    question: Mapping[str, Any] = field(default_factory=dict)
    running: tuple[Running, ...] = ()

    @property
    def options(self) -> dict[str, Any]:
        """What a guarantee means in this system, for ``fairopt.solve(imported.instance, "drfh", **imported.options)``.

        ``{"guarantees": "surplus"}`` or ``{"guarantees": "clamp"}``, and ``only``, the resources that count in shares, where the quotas of
        others are unlimited; empty if nothing is guaranteed.
        """
        return {word: self.summary[word] for word in ("guarantees", "only") if word in self.summary}

    @property
    def notion(self) -> str:
        """The notion that measures shares as this system does, such as "drfh:guarantees=surplus:only=nvidia.com/gpu"."""
        return ":".join(["drfh", *(f"{word}={value}" for word, value in self.options.items())])

    @property
    def why_left_out(self) -> dict[tuple[str, str], tuple[float, str]]:
        """Number and first place of what was left out, by (what, why), in order of appearance."""
        groups: dict[tuple[str, str], tuple[float, str]] = {}
        for each in self.left_out:
            number, where = groups.get((each.what, each.why), (0.0, each.where))
            groups[each.what, each.why] = (number + each.number, where)
        return groups

    def with_instance(self, instance: Instance, **more: Any) -> Import:
        """Return the import with another instance of the same users and servers, and other fields."""
        from fairopt.analysis.rerun import given

        current = None if self.current is None else given(instance, self.current.tasks, self.current.sharing)
        return replace(self, instance=instance, current=current, **more)

    def to_frame(self, allocations: Mapping[str, Allocation] | None = None) -> pd.DataFrame:
        """Return one row per owner: weight, users, tasks, and the dominant shares of what it asks for, holds, and gets in allocations.

        The weight of an owner is that of its queue among the queues beside it (of several queues: their sum). Its dominant share is the
        largest part of any resource of the whole cluster that all its users take together. Where a task takes different amounts on
        different servers, it counts with what it takes where it runs, and while it waits with the least.

        Parameters
        ----------
        allocations : mapping, optional
            Allocations of the instance, by the names of their columns: ``{"drfh": fairopt.solve(imported.instance, "drfh")}``.
        """
        import pandas as pd

        instance = self.instance
        names = list(dict.fromkeys(self.owners))
        position = {name: j for j, name in enumerate(names)}
        owner = np.array([position[name] for name in self.owners])

        def of_owner(per_user: FloatArray) -> FloatArray:
            return np.asarray(np.bincount(owner, weights=per_user, minlength=len(names)), float)

        def dominant(taken: FloatArray) -> FloatArray:
            used = np.column_stack([of_owner(amounts) for amounts in taken.T])
            return np.asarray(safe_ratio(used, instance.total_capacity).max(axis=1))

        weight = {queue.name: queue.weight for queue in instance.queues}
        columns: dict[str, Any] = {
            "weight": [sum(weight[queue] for queue in self.queues[name]) for name in names] if self.queues else of_owner(instance.weights),
            "users": np.bincount(owner, minlength=len(names)),
            "tasks": of_owner(instance.tasks),
            "running": of_owner(self.held),
            "asks": dominant(_taken(instance, instance.tasks)),
            "holds": dominant(_taken(instance, self.held, self.current)),
        }
        for name, allocation in (allocations or {}).items():
            columns[name] = dominant(_taken(allocation.instance, allocation.tasks_per_user, allocation))
        return pd.DataFrame(columns, index=pd.Index(names, name="owner"))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: what was read, the owners, what was left out and why, and notes."""
        instance = self.instance
        owners = self.to_frame().reset_index().to_dict("records")
        capacity, asked = instance.total_capacity, _taken(instance, instance.tasks).sum(axis=0)
        held = _taken(instance, self.held, self.current).sum(axis=0)
        found = {
            "kind": self.kind,
            "summary": dict(self.summary),
            "users": instance.n_users,
            "servers": int(instance.counts.sum()),
            "server_rows": instance.n_servers,
            "resources": {
                name: {
                    "unit": self.units.get(name, ""),
                    "capacity": float(capacity[r]),
                    "asked": float(asked[r]),
                    "held": float(held[r]),
                }
                for r, name in enumerate(instance.resources)
            },
            "owners": [
                {"name": owner["owner"]} | {key: None if value == np.inf else value for key, value in owner.items()} for owner in owners
            ],
            "options": self.options,
            "notion": self.notion,
            "current": self.current is not None,
            "left_out": [
                {"what": what, "why": why, "number": number, "first": first} for (what, why), (number, first) in self.why_left_out.items()
            ],
            "notes": list(self.notes),
        }
        return result("import", self.question, self.units, found)

    def current_csv(self) -> str | None:
        """Return the running tasks as CSV for ``fairopt plan --allocation`` and ``compare --allocation``; None if ``current`` is None.

        The columns are user, server and tasks, and gang, protected and name where the export says the names of what runs: then a row is
        about one host.
        """
        from fairopt.tables.csv_files import to_csv  # which needs yaml: ``import fairopt`` stays light
        from fairopt.tables.spreadsheets import cell

        held = self._current()
        return None if held is None else to_csv(held[0], ([cell(user), cell(server), *rest] for user, server, *rest in held[1]))

    def current_frame(self) -> pd.DataFrame | None:
        """Return the running tasks as a frame with the same columns; None if ``current`` is None."""
        import pandas as pd

        held = self._current()
        return None if held is None else pd.DataFrame(held[1], columns=held[0])

    def _current(self) -> tuple[list[str], list[tuple[Any, ...]]] | None:
        """Return the columns and the rows of what runs."""
        if self.current is None:
            return None
        columns = ["user", "server", "tasks"]
        if self.running:
            rows = [(e.user, e.server, e.tasks, e.gang, "yes" if e.protected else "", "|".join(e.names)) for e in self.running]
            return [*columns, "gang", "protected", "name"], rows
        instance, tasks = self.current.instance, self.current.tasks
        pairs = [(int(n), int(i)) for n, i in np.argwhere(tasks > 0)] or [(0, 0)]  # a table without rows cannot be read back
        return columns, [(instance.users[n], instance.servers[i], float(tasks[n, i])) for n, i in pairs]

    def __repr__(self) -> str:
        instance = self.instance
        parts = [
            f"{plural(len(set(self.owners)), 'owner')}, {plural(instance.n_users, 'user')}",
            plural(_finite(instance.tasks).sum(), "task"),
            f"{plural(self.held.sum(), 'task')} running",
            f"{plural(instance.counts.sum(), 'server')} in {plural(instance.n_servers, 'row')}",
        ]
        if self.left_out:
            parts.append(f"{plural(sum(each.number for each in self.left_out), 'record')} left out")
        return f"Import({self.kind}: {', '.join(parts)})"


def _taken(instance: Instance, tasks: FloatArray, placed: Allocation | None = None) -> FloatArray:
    """Return what the tasks of users take of each resource, (users, resources): where they run, if that is known, else the least."""
    by_kind = instance.demands_by_kind
    if placed is None or by_kind.shape[1] == 1:
        return np.asarray(_finite(tasks)[:, None] * by_kind.min(axis=1))
    return np.asarray(
        sum(placed.tasks[:, instance.kind_of == kind].sum(axis=1)[:, None] * by_kind[:, kind] for kind in range(by_kind.shape[1]))
    )


def _finite(tasks: FloatArray) -> FloatArray:
    return np.where(np.isfinite(tasks), tasks, 0.0)
