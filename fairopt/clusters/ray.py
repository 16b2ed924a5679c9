"""A Ray cluster, from the listings of its state API: logical resources of nodes, tasks, actors and placement groups.

**Nodes.** ``resources_total``: CPUs, GPUs, memory in GiB and custom resources. A dead node offers nothing. The resources ``node:ADDRESS``
and ``accelerator_type:NAME`` stand for where a task may run, and are no amounts.

**Work.** A task that runs or waits for a node, an actor that is alive or waits, and each bundle of a placement group is one task with its
``required_resources``. The task that creates an actor is not counted beside the actor, nor are the tasks that run in it. What runs in a
placement group uses what the group has reserved; so the group counts, and if groups are not listed, what runs in them counts. Bundles need
not start together here, nor lie as their strategy says: a relaxation. Resources are logical: what asks for nothing is left out.
An actor without ``num_cpus`` needs 1 CPU to be placed and holds none while it runs, so it is left out, too. A part of
a GPU, or of another accelerator that Ray hands out by piece, lies on one of them (:mod:`fairopt.clusters.parts`).

**Where.** Label selectors and those to fall back to, custom resources and accelerator types. Ray does not list affinities to nodes.

**Owners.** The namespace of an actor; tasks and placement groups have none, so they have that of the actors of their job, if these agree.
An anonymous namespace (a random UUID) is no owner: then it is the job. Or the job itself, or a key of its metadata.

**Blocked tasks.** A task that waits in ``ray.get`` gives its CPUs back, but is listed as running: what is held may exceed a node.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.assembly import Demand, Nodes, assemble
from fairopt.clusters.fields import Seen
from fairopt.clusters.imported import Import
from fairopt.clusters.json_export import Part
from fairopt.clusters.parts import Parts
from fairopt.clusters.ray_fields import ACTOR, JOB, NODE, TASK, see_groups
from fairopt.clusters.ray_records import Node, Work, meets, read_actor, read_bundles, read_listing, read_node, read_task
from fairopt.clusters.running import Name, of_several
from fairopt.clusters.shapes import SOMEWHERE, Tasks
from fairopt.errors import InvalidInstance
from fairopt.instance.fractions import fraction_of
from fairopt.wording import plural

__all__ = ["import_ray"]

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_DEFAULT_HELD = "asks for nothing while it runs (num_cpus is 0, or not given, and then it needs 1 CPU to be placed)"
_DEFAULT_WAITS = "asks for nothing once it runs (num_cpus is 0, or not given, and then it waits for 1 free CPU)"
_UNITS = {"cpu": "CPUs", "gpu": "GPUs", "memory": "GiB"}
_CARDS = {"gpu": "GPU", "TPU": "TPU", "NPU": "NPU", "HPU": "HPU", "RBLN": "RBLN", "neuron_cores": "neuron core"}  # handed out by piece


@keeps_question
def import_ray(
    nodes: str | os.PathLike[str],
    tasks: str | os.PathLike[str] | None = None,
    actors: str | os.PathLike[str] | None = None,
    placement_groups: str | os.PathLike[str] | None = None,
    jobs: str | os.PathLike[str] | None = None,
    *,
    users: str = "namespace",
    weights: Mapping[str, float] | None = None,
    demand: Demand = "shapes",
    lenient: bool = False,
) -> Import:
    """Make an instance of a Ray cluster.

    Parameters
    ----------
    nodes, tasks, actors, placement_groups, jobs : path
        ``ray list nodes --format json --detail --limit 10000``, and the same for ``tasks``, ``actors``, ``placement-groups`` and ``jobs``;
        or the answers to ``/api/v0/nodes?detail=true&limit=10000`` and so on. Of tasks, actors and placement groups at least one.
    users : str
        Owners: "namespace", "job", or "metadata:KEY", a key of the metadata of jobs, which needs ``jobs``.
    weights : mapping, optional
        Weight by owner.
    demand : {"shapes", "mean"}
        A user for each owner and shape (exact), or one for each owner with the mean of its tasks (approximate).
    lenient : bool
        Leave bad records out and count them, instead of refusing the export.

    Raises
    ------
    InvalidInstance
        With the file and the place in it: what is wrong, and what to do.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> node = {"node_id": "9ef4", "state": "ALIVE", "resources_total": {"CPU": 8.0, "GPU": 2.0, "memory": "16.000 GiB"}}
    >>> actor = {"actor_id": "569b", "state": "ALIVE", "job_id": "01", "ray_namespace": "vision", "node_id": "9ef4",
    ...          "required_resources": {"CPU": 1.0, "GPU": 0.5}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, record in (("nodes", node), ("actors", actor)):
    ...         _ = Path(folder, name + ".json").write_text(json.dumps([record]))
    ...     imported = import_ray(Path(folder, "nodes.json"), actors=Path(folder, "actors.json"))
    >>> imported.instance.users, imported.instance.resources, imported.instance.demands, imported.held
    (('vision',), ('cpu', 'gpu', 'memory'), array([[1. , 0.5, 0. ]]), array([1.]))
    """
    kind, _, key = users.partition(":")
    if (kind, bool(key)) not in (("namespace", False), ("job", False), ("metadata", True)):
        raise InvalidInstance(f'users is "{users}"; give "namespace", "job" or "metadata:KEY"')
    if key and jobs is None:
        raise InvalidInstance(f'owners by "{users}" are in the metadata of jobs; give jobs, from: ray list jobs --format json --detail')
    if tasks is None and actors is None and placement_groups is None:
        raise InvalidInstance("nothing says what runs; give tasks, actors or placement groups")
    account = Account(lenient)
    read = account.unique(account.read(read_listing(nodes, "nodes", account), read_node, "node"), "node")
    offered = []
    for node in read:
        if node.closed:
            account.leave_out("node", f"{node.part.place} ({node.shown})", f"{node.closed}: offers nothing")
        else:
            offered.append(node)
    names = _names(offered)
    seen = Seen()
    for node in read:
        seen.see(NODE, node.part.value)

    found: list[Work] = []
    if actors is not None:
        found += account.unique(account.read(read_listing(actors, "actors", account), read_actor, "actor"), "actor")
    if tasks is not None:
        listed = read_listing(tasks, "tasks", account)
        found += account.unique(account.read(listed, lambda part: read_task(part, actors is not None), "task"), "task")
        if actors is None:
            account.note("actors are not listed: what those hold that run is not counted")
    if placement_groups is not None:
        listed = read_listing(placement_groups, "placement-groups", account)
        see_groups(seen, listed)
        groups = account.read(listed, read_bundles, "placement group")
        found += account.unique((bundle for bundles in groups for bundle in bundles), "bundle")
    account.summary |= {"nodes": len(read)}
    account.summary |= {f"{what}s {state}": n for (what, state), n in sorted(Counter((each.kind, each.state) for each in found).items())}
    kept = [each for each in found if _counts(each, placement_groups is not None, account)]
    known = {node.name for node in read}
    kept = [each for each in kept if _is_known(each, known, nodes, account)]
    of_jobs = read_listing(jobs, "jobs", account) if jobs is not None else []
    for each in kept:
        if each.kind != "bundle":
            seen.see(ACTOR if each.kind == "actor" else TASK, each.part.value)
    for part in of_jobs:
        seen.see(JOB, part.value)
    for note in seen.notes():
        account.note(note)
    owner_of = _owners(found, kind, key, of_jobs)
    kept = _on_cards(kept, account)
    index = {node.name: i for i, node in enumerate(offered)}
    bundles = sum(each.kind == "bundle" for each in kept)
    if bundles:
        account.note(
            f"{plural(bundles, 'bundle')} of placement groups, which need not start together or lie as their strategy says: a relaxation"
        )
    lost = sum(each.node in known and each.node not in index for each in kept)
    if lost:
        account.note(f"{plural(lost, 'task')} on nodes that offer nothing: asked for, but not held")

    others = sorted({name for each in kept for name in each.request} - set(_UNITS))
    has_gpus = any("gpu" in offers for offers in [*(node.offers for node in offered), *(each.request for each in kept)])
    resources = ["cpu", *(["gpu"] if has_gpus else []), "memory", *others]
    constraints = list(dict.fromkeys((each.marks, each.selectors) for each in kept))
    row = {each: j for j, each in enumerate(constraints)}
    running = [
        (j, index.get(each.node, SOMEWHERE), 1.0) for j, each in enumerate(kept) if each.holds and (not each.node or each.node in index)
    ]
    return assemble(
        "ray",
        Nodes(names, np.array([[node.offers.get(r, 0.0) for r in resources] for node in offered])),
        Tasks(
            owner=[owner_of(each) for each in kept],
            demands=np.array([[each.request.get(r, 0.0) for r in resources] for each in kept]).reshape(-1, len(resources)),
            number=np.ones(len(kept)),
            allowed=np.array([[_may_run(node, marks, any_of) for node in offered] for marks, any_of in constraints], bool).reshape(
                len(constraints), len(offered)
            ),
            place=np.array([row[each.marks, each.selectors] for each in kept], int),
            where=[each.where for each in kept],
            running=running,
            names=of_several(
                [Name(kept[j].name, kept[j].name.rpartition("/")[0] if kept[j].kind == "bundle" else "") for j, _, _ in running]
            ),
        ),
        account,
        units={r: _UNITS.get(r, "") for r in resources},
        own_weights=weights,
        demand=demand,
    )


def _name(work: Work) -> Name:
    """Return the name of what runs; the bundles of a placement group stop together."""
    return Name(work.name, work.name.rpartition("/")[0] if work.kind == "bundle" else "")


def _names(nodes: Sequence[Node]) -> list[str]:
    """Return the names of nodes, with the beginning of their number where several have one name."""
    several = {name for name, n in Counter(node.shown for node in nodes).items() if n > 1}
    names = [f"{node.shown}/{node.name[:8]}" if node.shown in several else node.shown for node in nodes]
    return names if len(set(names)) == len(names) else [node.name for node in nodes]


def _counts(work: Work, has_groups: bool, account: Account) -> bool:
    """Return whether work is demand, and say why not."""
    why = work.why
    if not why and work.group and has_groups:
        why = "runs in a placement group, whose bundles count"
    if not why and work.kind == "actor" and not any(work.request.values()):
        why = _DEFAULT_HELD if work.holds else _DEFAULT_WAITS
    if why:
        account.leave_out(work.kind, work.where, why)
    elif work.group:
        account.note("placement groups are not listed: what runs in them counts, not what they reserve")
    return not why


def _is_known(work: Work, known: set[str], nodes: str | os.PathLike[str], account: Account) -> bool:
    if work.node and work.node not in known:
        account.bad(
            work.kind, work.part.get("node_id").place, f'runs on node "{work.node}", which {nodes} does not list; export both again'
        )
        return False
    return True


def _on_cards(found: Sequence[Work], account: Account) -> list[Work]:
    """Return work with what it takes of cards instead of what it asks for."""
    parts = {name: Parts() for name in _CARDS}
    kept = []
    for work in found:
        taken = {name: float(parts[name].taken(fraction_of(amount))) for name, amount in work.request.items() if name in _CARDS}
        kept.append(replace(work, request=work.request | taken) if taken else work)
    for name, card in _CARDS.items():
        for note in parts[name].notes(card):
            account.note(note)
    return kept


def _owners(found: Sequence[Work], kind: str, key: str, jobs: Sequence[Part]) -> Callable[[Work], str]:
    """Return who owns what."""
    if key:
        metadata: dict[str, Any] = {}
        for part in jobs:
            value = part.get("metadata").get(key).text("") or f"(no {key})"
            metadata |= {name: value for name in (part.get("job_id").text(""), part.get("submission_id").text("")) if name}
        return lambda work: metadata.get(work.job, f"(no {key})")
    of_job: dict[str, set[str]] = {}
    for work in found:
        if work.namespace:
            of_job.setdefault(work.job, set()).add(work.namespace)

    def owner(work: Work) -> str:
        spaces = {work.namespace} if work.namespace else of_job.get(work.job, set())
        namespace = min(spaces) if len(spaces) == 1 and kind == "namespace" else ""
        return f"job {work.job or '(none)'}" if not namespace or _UUID.fullmatch(namespace) else namespace

    return owner


def _may_run(node: Node, marks: tuple[str, ...], any_of: tuple[Any, ...]) -> bool:
    return set(marks) <= node.marks and (not any_of or any(meets(node.labels, selector) for selector in any_of))
