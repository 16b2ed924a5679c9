"""Queues and the server of PBS: which jobs cannot start, what chunks have by default, and limits of what runs at once.

Limits of all jobs (``o:PBS_ALL``), of each user (``u:``), group (``g:``) and project (``p:``) of a queue or of the server become named
limits: ``max_run`` (jobs), ``max_run_res`` (amounts), their older forms (``max_running``, ``max_user_run``, ``max_user_res``, ...), and
``resources_available`` (what all jobs hold together). A limit of ``PBS_GENERIC`` is for each who has none of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairopt.clusters.json_export import Part
from fairopt.clusters.kind_limits import Counts
from fairopt.clusters.pbs.jobs import Job
from fairopt.clusters.pbs.reading import is_true, parsed, read_listing, text_of
from fairopt.clusters.pbs.syntax import amount, chunks, renamed, run_limits

__all__ = ["Holder", "attributes_of", "holders", "limits_of"]

_ALL, _GENERIC = "PBS_ALL", "PBS_GENERIC"
_OF_JOBS = {"max_run": "", "max_running": "o", "max_user_run": "u", "max_group_run": "g"}
_OF_AMOUNTS = {"max_run_res": "", "max_user_res": "u", "max_group_res": "g", "resources_available": "o"}
_KINDS = {"u": "user", "g": "group", "p": "project"}
_NOT_HELD = ("walltime", "cput", "pcput", "min_walltime", "max_walltime", "mpiprocs", "ompthreads", "nice", "file", "place", "select")


@dataclass(frozen=True, slots=True)
class Holder:
    """A queue, or the server: its limits by resource (empty: jobs) and kind of who is limited (o, u, g, p), then by name.

    Attributes
    ----------
    title : str
        For names of limits: "queue/short", "server".
    bounds : dict
    defaults : dict
        What a chunk has that does not state it.
    partition : str
    why : str
        Why none of its jobs can start; else empty.
    """

    title: str
    bounds: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    partition: str = ""
    why: str = ""


def holders(path: str | os.PathLike[str], kind: str) -> dict[str, Holder]:
    """Return the queues, or the server, of an answer; ``kind`` is "Queue" or "Server"."""
    return {name: _holder(f"queue/{name}" if kind == "Queue" else "server", part) for name, part in read_listing(path, kind).items()}


def _holder(title: str, part: Part) -> Holder:
    bounds: dict[tuple[str, str], dict[str, float]] = {}
    for attribute, scope in _OF_JOBS.items():
        if part.get(attribute).value is not None:
            _read(bounds, part.get(attribute), "", scope)
    for attribute, scope in _OF_AMOUNTS.items():
        for resource, each in _entries(part, attribute):
            if resource not in _NOT_HELD and (attribute != "resources_available" or amount(text_of(each), resource) is not None):
                _read(bounds, each, resource, scope)
    why = ""
    if text_of(part.get("queue_type"), "").lower().startswith("r"):
        why = "in a routing queue, where jobs do not start"
    elif title != "server" and not is_true(part.get("started"), True):
        why = "its queue is stopped, so it could not start"
    defaults = {resource: text_of(each) for resource, each in _entries(part, "default_chunk")}
    return Holder(title, bounds, defaults, text_of(part.get("partition"), ""), why)


def attributes_of(part: Part) -> dict[str, Any]:
    """Return what a queue or the server says under the names of its attributes, without resources (``max_run_res.ncpus``)."""
    found: dict[str, Any] = {}
    for name, each in part.entries().items():
        attribute, dot, resource = name.partition(".")
        if dot and isinstance(found.get(attribute, {}), dict):
            found[attribute] = found.get(attribute, {}) | {resource: each.value}
        else:
            found[name] = each.value
    return found


def _entries(part: Part, attribute: str) -> Iterator[tuple[str, Part]]:
    """Yield the resources of an attribute, which are a mapping or in its name (``max_run_res.ncpus``)."""
    for resource, each in part.get(attribute).entries().items():
        if each.value is not None:
            yield resource, each
    for name, each in part.entries().items():
        if name.startswith(f"{attribute}.") and each.value is not None:
            yield name.removeprefix(f"{attribute}."), each


def _read(bounds: dict[tuple[str, str], dict[str, float]], part: Part, resource: str, scope: str) -> None:
    text = text_of(part).strip()
    listed = parsed(part, run_limits) if text.startswith("[") else [(scope or "o", _GENERIC if scope in _KINDS else _ALL, text)]
    for kind, name, value in listed:
        bound = amount(value, resource)
        if bound is None:
            part.refuse(f'"{value[:40]}" is not an amount such as 8 or 16gb')
        own = bounds.setdefault((resource, kind), {})
        own[name] = min(bound, own.get(name, bound))


def limits_of(job: Job, holder: Holder, tasks: float, demanded: Mapping[str, float]) -> list[Counts]:
    """Return the limits of a queue or a server in which the tasks of a job count.

    Parameters
    ----------
    tasks : float
        How many tasks the job is.
    demanded : mapping
        What its tasks demand; what else it asks for is in ``job.wide``.
    """
    found = []
    for (resource, kind), bounds in holder.bounds.items():
        whose = "" if kind == "o" else job.whose[_KINDS[kind]]
        bound = bounds.get(whose or _ALL, bounds.get(_GENERIC) if whose else None)
        if bound is None:
            continue
        name = renamed(resource)
        title = f"{holder.title}{f' of {_KINDS[kind]} {whose}' if whose else ''} {name or 'jobs'}"
        if not resource:
            found.append(Counts(title, bound, amount=1 / tasks))
        elif name == "nodect":
            found.append(Counts(title, bound, amount=sum(chunk.number for chunk in chunks(job.select)) / tasks))
        elif name in demanded:
            found.append(Counts(title, bound, name))
        elif name in job.wide:
            found.append(Counts(title, bound, amount=job.wide[name] / tasks))
    return found
