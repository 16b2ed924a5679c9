"""Completion in the shell: identifiers of fairopt, and the names in the instance file on the command line.

In a list, completion goes on after each comma; what stands before it is kept, and is not offered again. A file that cannot be read
offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import typer

import fairopt as fo
from fairopt.formats import source_of

__all__ = [
    "changes",
    "criteria",
    "generators",
    "listed_notions",
    "listed_placements",
    "listed_schedules",
    "listed_simulated",
    "names_of_users_and_queues",
    "notions",
    "placements",
    "properties",
    "queues",
    "resources",
    "schedules",
    "servers",
    "simulated",
    "solvers",
    "trials",
    "users",
    "words",
]

Completer: TypeAlias = Callable[[typer.Context, str], list[str]]

_FIELDS = {
    "users": ("weight", "tasks", "demand.", "guarantee", "queue", "requires", "parallelism"),
    "servers": ("count", "capacity."),
    "queues": ("weight", "guarantee.", "limit.", "lending_limit.", "parent", "tier", "order"),
}


def words(known: Callable[[], Iterable[str]], *, listed: bool = False) -> Completer:
    """Return a completer of fixed words; ``listed``: of a list of them with commas.

    >>> words(lambda: ["drf", "drfh", "psdsf"])(None, "dr"), words(lambda: ["drfh", "psdsf"], listed=True)(None, "drfh,")
    (['drf', 'drfh'], ['drfh,psdsf'])
    """

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        before, _, own = incomplete.rpartition(",") if listed else ("", "", incomplete)
        given = set(before.split(","))
        start = f"{before}," if before else ""
        return [f"{start}{word}" for word in known() if word.startswith(own) and (word not in given or not listed)]

    return complete


def _schedules() -> list[str]:
    return [f"{criterion}:{placement}" for criterion in _criteria() for placement in (*fo.PLACEMENTS, *fo.BASELINES)]


def _criteria() -> list[str]:
    """Return the notions that equalise a share, and the criteria that are no notions."""
    some = fo.Instance([[1.0]], [[1.0]])
    found = []
    for name in fo.NOTIONS:
        try:
            fo.NOTIONS[name]().criterion(some)
        except (fo.FairoptError, TypeError):
            continue
        found.append(name)
    return [*found, *(name for name in fo.CRITERIA if name not in found)]


def _properties() -> Iterable[str]:
    from fairopt.analysis.properties import CHECKS

    return CHECKS


def _trials() -> Iterable[str]:
    from fairopt.reproduction.reproducing import EXPERIMENTS

    return EXPERIMENTS


def _instance(ctx: typer.Context) -> fo.Instance | None:
    """Return the instance on the command line so far."""
    path = ctx.params.get("file") or ctx.params.get("cluster")
    if path is None:  # an option that still lacks its value leaves the words before it unread
        path = next((word for word in ctx.args if Path(word).exists()), None)
    if path is None:
        return None
    try:
        from fairopt.formats.document import instance_from  # slow to import

        return instance_from(source_of(Path(path), ctx.params.get("changes") or ()))  # fo.load may have something to say
    except (fo.FairoptError, OSError):
        return None


def _of_instance(names: Callable[[fo.Instance], Iterable[str]]) -> Completer:
    """Return a completer of names in the instance."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        instance = _instance(ctx)
        return [] if instance is None else [name for name in names(instance) if name.startswith(incomplete)]

    return complete


def _names_of_queues(instance: fo.Instance) -> list[str]:
    return [queue.name for queue in instance.queues]


def changes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return paths of ``--set``, a step at a time: users., users.vision., users.vision.weight=."""
    instance = _instance(ctx)
    if instance is None or "=" in incomplete:
        return []
    names = {"users": instance.users, "servers": instance.servers, "queues": _names_of_queues(instance)}
    kinds = [f"{kind}." for kind, own in names.items() if own]
    found = [kind for kind in kinds if kind.startswith(incomplete)]
    for kind in kinds if not found or len(found) == 1 else ():
        found = [f"{kind}{name}." for name in names[kind[:-1]] if f"{kind}{name}.".startswith(incomplete)] or found
    for kind, own in names.items():
        for name in own:
            start = f"{kind}.{name}."
            if incomplete.startswith(start) or found == [start]:
                found = [f"{start}{end}" for field in _FIELDS[kind] for end in _ends(field, instance)]
    return [path for path in found if path.startswith(incomplete)]


def _ends(field: str, instance: fo.Instance) -> list[str]:
    return [f"{field}{resource}=" for resource in instance.resources] if field.endswith(".") else [f"{field}="]


notions = words(lambda: fo.NOTIONS)
listed_notions = words(lambda: fo.NOTIONS, listed=True)
solvers = words(lambda: fo.SOLVERS)
placements = words(lambda: fo.PLACEMENTS)
listed_placements = words(lambda: fo.PLACEMENTS, listed=True)
criteria = words(_criteria)
schedules = words(_schedules)
listed_schedules = words(_schedules, listed=True)
properties = words(_properties, listed=True)
trials = words(_trials)
generators = words(lambda: fo.GENERATORS)
users = _of_instance(lambda instance: instance.users)
queues = _of_instance(_names_of_queues)
names_of_users_and_queues = _of_instance(lambda instance: [*instance.users, *_names_of_queues(instance)])
resources = _of_instance(lambda instance: instance.resources)
servers = _of_instance(lambda instance: instance.servers)


def _simulated() -> list[str]:
    """Return schedulers of simulations."""
    from fairopt.simulation.schedulers import schedulers

    return [*dict.fromkeys([*(each.example for each in schedulers() if each.kind != "own"), *_schedules()])]


simulated = words(_simulated)
"""Completes one scheduler of a simulation."""

listed_simulated = words(_simulated, listed=True)
"""Completes a list of them."""
