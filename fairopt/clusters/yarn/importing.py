"""A YARN cluster, from the ResourceManager's REST answers to ``/ws/v1/cluster/nodes``, ``.../apps`` and ``.../scheduler``.

**Nodes**: used + available memory, virtual cores and every other resource type, such as ``yarn.io/gpu``. A node in the state RUNNING or
NEW accepts work; one that is lost, unhealthy, shut down, rebooted or being decommissioned offers nothing.

**Applications** that have not ended. A task is a container: those that run (``runningContainers``), each with the same part of what is
allocated, as the answer does not distinguish them; and those that wait, if the answer has ``resourceRequests`` (of these, the requests for
any node, ``*``). Containers of a running application are taken as equal, which is approximate if they differ.

**Where**: the answer does not say on which node a container runs, so the current allocation is known only if all nodes are alike. A
container with a node label runs on the nodes with that label, and one without a label on the nodes without, and, with the answer to
``/ws/v1/cluster/get-node-labels``, on those of partitions that are not exclusive. Containers that run have the labels of the partitions in
which their application uses something (``resourceUsagesByPartition``).

**Queues**: with the answer about the scheduler, or the file in which its queues are written, its queues are those of the instance, in
their tree (:mod:`fairopt.clusters.yarn.queues`); else every owner is a queue of weight 1.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.assembly import Demand, Nodes, assemble
from fairopt.clusters.fields import Seen
from fairopt.clusters.imported import Import
from fairopt.clusters.json_export import Part, read_json
from fairopt.clusters.queue_tree import Forest
from fairopt.clusters.running import Name
from fairopt.clusters.shapes import SOMEWHERE, Tasks, natural
from fairopt.clusters.yarn.fields import NODE, see_application
from fairopt.clusters.yarn.largest import too_large
from fairopt.clusters.yarn.queues import Queues, finder, queues_of
from fairopt.clusters.yarn.resources import Offer, add, amounts_of, one_or_more, shared_labels
from fairopt.clusters.yarn.users import OfOneUser
from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray
from fairopt.instance.queues import Queue
from fairopt.wording import joined, named, plural

__all__ = ["import_yarn"]

_OPEN = ("RUNNING", "NEW")
_CLOSED = ("DECOMMISSIONED", "DECOMMISSIONING", "LOST", "REBOOTED", "SHUTDOWN", "UNHEALTHY")
_ACTIVE = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")
_ENDED = ("FINISHED", "FAILED", "KILLED", "FINISHING")


@keeps_question
def import_yarn(
    nodes: str | os.PathLike[str],
    apps: str | os.PathLike[str],
    queues: str | os.PathLike[str] | None = None,
    *,
    labels: str | os.PathLike[str] | None = None,
    users: str = "queue",
    weights: Mapping[str, float] | None = None,
    demand: Demand = "shapes",
    lenient: bool = False,
) -> Import:
    """Make an instance of a YARN cluster.

    Parameters
    ----------
    nodes, apps : path
        What the ResourceManager answers, as JSON.
    queues : path, optional
        Its answer about the scheduler, ``/ws/v1/cluster/scheduler``, or ``capacity-scheduler.xml`` or ``fair-scheduler.xml``: the tree of
        queues with weights, guarantees and limits. The result says what a guarantee means in that scheduler (`Import.options`).
    labels : path, optional
        Its answer about node labels, ``/ws/v1/cluster/get-node-labels``: containers without label may run in partitions that are not
        exclusive, too. Default: every partition is exclusive.
    users : {"queue", "user"}
        The owner of an application. With ``queues``, users are queues inside those of YARN.
    weights : mapping, optional
        Weight by owner; default 1.
    demand : {"shapes", "mean"}
        A user for each queue and shape, or one for each queue with the mean of its containers (approximate).
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
    >>> node = {"id": "h1:1", "state": "RUNNING", "usedMemoryMB": 4096, "availMemoryMB": 4096, "usedVirtualCores": 2,
    ...         "availableVirtualCores": 6}
    >>> app = {"id": "application_1_1", "state": "RUNNING", "queue": "etl", "user": "ada", "runningContainers": 2, "allocatedMB": 4096,
    ...        "allocatedVCores": 2}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "nodes.json").write_text(json.dumps({"nodes": {"node": [node]}}))
    ...     _ = Path(folder, "apps.json").write_text(json.dumps({"apps": {"app": [app]}}))
    ...     imported = import_yarn(Path(folder, "nodes.json"), Path(folder, "apps.json"))
    >>> imported.instance.capacities, imported.instance.demands, imported.current.tasks
    (array([[8., 8.]]), array([[1., 2.]]), array([[2.]]))
    """
    if users not in ("queue", "user"):
        raise InvalidInstance(f'users is "{users}"; give "queue" or "user"')
    account = Account(lenient)
    listed = account.unique(account.read(_records(nodes, "nodes", "node"), _node, "node"), "node")
    offered = []
    for node in listed:
        if node.state in _OPEN:
            offered.append(node)
        else:
            account.leave_out("node", f"{node.part.place} ({node.name})", f"{node.state.lower()}: offers nothing")
    found = account.unique(account.read(_records(apps, "apps", "app"), lambda part: _app(part, users), "application"), "application")
    account.summary |= {"nodes": len(listed), "applications": len(found)}
    account.summary |= {f"applications {state}": number for state, number in Counter(app.state for app in found).items()}

    seen = Seen()
    for node in offered:
        seen.see(NODE, node.part.value)
    groups: list[tuple[_App, _Containers]] = []
    for app in found:
        if app.state in _ACTIVE:
            see_application(seen, app.part)
        if app.state in _ENDED:
            account.leave_out("application", app.where, f"ended ({app.state.lower()}): holds nothing and asks for nothing")
        elif not app.containers:
            account.leave_out("application", app.where, "has no container, and the answer does not say what it asks for")
        else:
            groups += [(app, containers) for containers in app.containers]
    for note in seen.notes():
        account.note(note)
    groups.sort(key=lambda group: natural(group[0].name))  # by submission, which queues of the policy FIFO follow
    if any(containers.running for _, containers in groups):
        account.note("the containers of a running application are taken as equal, because the answer has only their sum")
    amounts = [node.amounts for node in offered] + [containers.amounts for _, containers in groups]
    resources = list(dict.fromkeys(["cpu", "memory", *(r for each in amounts for r, amount in each.items() if amount)]))
    offers = [Offer(node.name, node.labels, {r: node.amounts.get(r, 0.0) for r in resources}) for node in offered]
    forest, queue_of = None, dict[str, str]()
    if queues is not None:
        told = queues_of(queues, offers, account)
        queue_of = _queues_meant(told.forest, [app for app, _ in groups], account)
        groups = _startable(groups, told, queue_of, offers, account)
        forest = _tree(told, groups, queue_of, users, account)
    asked = list(dict.fromkeys(containers.label for _, containers in groups))
    row = {label: j for j, label in enumerate(asked)}
    shared = set(_shared(labels, offered, asked, account))
    return assemble(
        "yarn",
        Nodes([node.name for node in offered], _table([node.amounts for node in offered], resources)),
        Tasks(
            owner=[queue_of.get(app.queue, app.owner) if users == "queue" else app.owner for app, _ in groups],
            demands=_table([containers.amounts for _, containers in groups], resources),
            number=np.array([containers.number for _, containers in groups], float),
            allowed=np.array(
                [[label in node.labels if label else shared.issuperset(node.labels) for node in offered] for label in asked], bool
            ).reshape(len(asked), len(offered)),
            place=np.array([row[containers.label] for _, containers in groups], int),
            where=[app.where for app, _ in groups],
            running=[(j, SOMEWHERE, containers.number) for j, (_, containers) in enumerate(groups) if containers.running],
            names=[Name(app.name, app.name) for app, containers in groups if containers.running],
            queue=[_lowest(app, queue_of, users) for app, _ in groups] if forest else None,
        ),
        account,
        units={"cpu": "virtual cores", "memory": "GiB"} | dict.fromkeys(resources[2:], ""),
        forest=forest,
        own_weights=weights,
        demand=demand,
        what="container",
    )


def _table(amounts: Sequence[Mapping[str, float]], resources: Sequence[str]) -> FloatArray:
    return np.array([[each.get(resource, 0.0) for resource in resources] for each in amounts], float).reshape(-1, len(resources))


def _shared(path: str | os.PathLike[str] | None, nodes: Sequence[_Node], asked: Sequence[str], account: Account) -> Sequence[str]:
    """Return the labels of nodes on which containers without label may run."""
    labels = {label for node in nodes for label in node.labels}
    if path is not None:
        found = shared_labels(path)
        if labels.intersection(found) and "" in asked:
            account.note(
                f"containers without label may run in {joined(sorted(labels.intersection(found)), 3)}, which is not exclusive; "
                "YARN lets them use only what containers with that label leave, and here they are equal"
            )
        return found
    if labels and "" in asked:
        account.note(
            "containers without label run only on nodes without label, as if every partition were exclusive; the answer to "
            "/ws/v1/cluster/get-node-labels says which are (labels=FILE or --labels FILE)"
        )
    return ()


def _queues_meant(forest: Forest, apps: Sequence[_App], account: Account) -> dict[str, str]:
    """Return the queue that applications mean by a name; a queue that the scheduler does not have is noted."""
    found, queue_of = finder(forest), dict[str, str]()
    for name in dict.fromkeys(app.queue for app in apps):
        known = found(name)
        queue_of[name] = known or name
        if known is None:
            account.note_of(
                "queue", name, "is named by applications, and the scheduler has no such queue: it is in the root, with weight 1"
            )
    return queue_of


def _startable(
    groups: Sequence[tuple[_App, _Containers]], told: Queues, queue_of: Mapping[str, str], offers: Sequence[Offer], account: Account
) -> list[tuple[_App, _Containers]]:
    """Return the containers that run or may start in their queue; the others are left out."""
    kept, by_path = [], {queue.name: queue for queue in told.forest.queues}
    for app, each in groups:
        why = "" if each.running else too_large(each.amounts, each.label, queue_of[app.queue], by_path, told.largest, offers)
        if why:
            account.leave_out("container", app.where, why, each.number)
        else:
            kept.append((app, each))
    return kept


def _tree(told: Queues, groups: Sequence[tuple[_App, _Containers]], queue_of: Mapping[str, str], users: str, account: Account) -> Forest:
    """Return the queues of the scheduler, with those of users in them, or with the limits of users."""
    forest, apps = told.forest, [app for app, _ in groups]
    of_one_user = _with_room(told.users, groups, queue_of, account)
    known_queues = {queue.name for queue in forest.queues}
    more = [Queue(name) for name in dict.fromkeys(queue_of[app.queue] for app in apps) if name not in known_queues]
    parents = {queue.parent for queue in forest.queues}
    working: dict[str, set[str]] = {}
    for app in apps:
        working.setdefault(queue_of[app.queue], set()).add(app.user)
    divided = {name for name, each in of_one_user.items() if users == "user" and each.divides(len(working.get(name, ())))}
    listed = [queue.name for queue in forest.queues if queue.order == "listed" and queue.name not in divided | parents]
    if listed:
        account.note(
            f"{joined([named(name) for name in listed], 3)}: first come, first served (order listed), by the numbers of applications; "
            "applications of one shape are one user, which stands where the first of them does"
        )
    above = []
    for queue in forest.queues:
        own, number = of_one_user.get(queue.name), len(working.get(queue.name, ()))
        if queue.name in divided:
            queue = replace(queue, order="fair")
        if own is not None and users == "queue" and number and own.limits_anything:
            queue = own.limited(queue, number)
        above.append(queue)
    _note_users(of_one_user, working, users, account)
    if users == "user":
        theirs: dict[tuple[str, str], list[_Containers]] = {}
        for app, each in groups:
            theirs.setdefault((queue_of[app.queue], app.owner), []).append(each)
        for (name, user), containers in theirs.items():
            made = Queue(f"{name}/{user}", name, order="listed" if name in listed else "fair")
            own = told.users.get(name)
            room = [(each.label, each.amounts) for each in containers]
            more.append(own.with_room_for(room).limited(made) if own is not None else made)
    return replace(forest, queues=(*above, *more))


def _with_room(
    of_one_user: Mapping[str, OfOneUser], groups: Sequence[tuple[_App, _Containers]], queue_of: Mapping[str, str], account: Account
) -> dict[str, OfOneUser]:
    """Return what one user may hold in each queue, with room for the largest container of those who work there."""
    found, larger = dict(of_one_user), 0.0
    inside: dict[str, list[_Containers]] = {}
    for app, each in groups:
        inside.setdefault(queue_of[app.queue], []).append(each)
    for name, own in of_one_user.items():
        theirs = inside.get(name, [])
        larger += sum(each.number for each in theirs if own.with_room_for([(each.label, each.amounts)]) != own)
        found[name] = own.with_room_for((each.label, each.amounts) for each in theirs)
    if larger:
        account.note(
            f"{plural(larger, 'container is', 'containers are')} larger than what one user may hold in the queue: a user who is below "
            "its limit gets the next container, so one of them is within the limit"
        )
    return found


def _note_users(of_one_user: Mapping[str, OfOneUser], working: Mapping[str, set[str]], users: str, account: Account) -> None:
    """Say in which queues users have limits, and where an instance has them only together."""
    limited = [named(name) for name, own in of_one_user.items() if own.limits_anything and name in working]
    if limited:
        account.note(
            f"one user holds at most user-limit-factor times the capacity of {joined(limited, 3)}, also while the rest is idle (of a queue "
            "without capacity, one container); the factor -1 means no limit"
        )
    several = [named(name) for name, own in of_one_user.items() if own.limits_anything and len(working.get(name, ())) > 1]
    if several and users == "queue":
        account.note(
            f"several users work in {joined(several, 3)}: here their limits hold for all together, a relaxation; --users user has each"
        )
    divided = [named(name) for name, own in of_one_user.items() if own.least_percent < 100 and len(working.get(name, ())) > 1]
    if divided:
        how = "here they come in the order of the queue" if users == "queue" else "here they are equal as far as their percentage allows it"
        account.note(f"minimum-user-limit-percent divides {joined(divided, 3)} among users; {how} (--users user takes users as owners)")


def _lowest(app: _App, queue_of: Mapping[str, str], users: str) -> str:
    return f"{queue_of[app.queue]}/{app.owner}" if users == "user" else queue_of[app.queue]


@dataclass(frozen=True, slots=True)
class _Node:
    part: Part
    name: str
    state: str
    amounts: Mapping[str, float]  # by resource: virtual cores, GiB, others
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Containers:
    number: float
    amounts: Mapping[str, float]  # of one
    label: str
    running: bool


@dataclass(frozen=True, slots=True)
class _App:
    part: Part
    name: str
    owner: str
    user: str
    queue: str
    state: str
    containers: tuple[_Containers, ...]

    @property
    def where(self) -> str:
        return f"{self.part.place} ({self.name})"


def _records(path: str | os.PathLike[str], outer: str, inner: str) -> list[Part]:
    command = f"curl http://RESOURCEMANAGER:8088/ws/v1/cluster/{outer} > {outer}.json"
    export = read_json(path, command)
    if not isinstance(export.value, dict) or outer not in export.value:
        export.refuse(f'there is no "{outer}" in this answer: not an export of {outer}, or of an unknown version; {command}')
    listed = export.get(outer).get(inner)
    if not listed.value:
        listed.refuse(f"the list is empty; export it again: {command}")
    return [listed] if isinstance(listed.value, dict) else listed.items()  # a list of one may be written without the list


def _node(part: Part) -> _Node:
    state = part["state"].text()
    if state not in (*_OPEN, *_CLOSED):
        part["state"].refuse(f'there is no state "{state}" of a node; the version of this export may be newer')
    labels = part.get("nodeLabels")
    return _Node(
        part,
        part["id"].text(),
        state,
        _others(part)
        | {
            "cpu": part["usedVirtualCores"].number() + part["availableVirtualCores"].number(),
            "memory": (part["usedMemoryMB"].number() + part["availMemoryMB"].number()) / 1024,
        },
        tuple(each.text() for each in labels.items()) if not isinstance(labels.value, str) else tuple(filter(None, [labels.value])),
    )


def _app(part: Part, users: str) -> _App:
    state = part["state"].text()
    if state not in (*_ACTIVE, *_ENDED):
        part["state"].refuse(f'there is no state "{state}" of an application; the version of this export may be newer')
    part.get("elapsedTime").number(0.0)
    containers: list[_Containers] = []
    if state in _ACTIVE:
        label = _label(part.get("appNodeLabelExpression"))
        containers += _held(part, label)
        for request in one_or_more(part.get("resourceRequests")):
            number = request["numContainers"].number()
            if number and request.get("resourceName").text("*") == "*":
                capability = request["capability"]
                capability["vCores"], capability["memory"]
                own = _label(request.get("nodeLabelExpression")) or label
                containers.append(_Containers(number, amounts_of(capability), own, False))
    return _App(
        part,
        part["id"].text(),
        part[users].text() or f"(no {users})",
        part.get("user").text(""),
        part.get("queue").text("") or "(no queue)",
        state,
        tuple(containers),
    )


def _others(part: Part) -> dict[str, float]:
    """Return what a node has, in every resource type that the answer names."""
    used, left = part.get("usedResource"), part.get("availableResource")
    return add(amounts_of(used), amounts_of(left)) if used.value and left.value else amounts_of(part.get("totalResource"))


def _held(part: Part, label: str) -> list[_Containers]:
    """Return the containers of an application that run, by the partition in which they do; taken as equal in each partition."""
    running, cores, memory = (_known(part.get(key)) for key in ("runningContainers", "allocatedVCores", "allocatedMB"))
    if not running:
        return []
    used = {}
    for each in one_or_more(part.get("resourceInfo").get("resourceUsagesByPartition")):
        amounts = amounts_of(each.get("used"))
        if any(amounts.values()):
            used[_label(each.get("partitionName"))] = amounts
    if not used:
        if not (cores or memory):
            part.get("allocatedMB").refuse(f"{running:g} containers run, but nothing is allocated to them; export all fields")
        used = {label: {"cpu": cores, "memory": memory / 1024}}
    numbers = _divided(running, [amounts["memory"] or amounts["cpu"] for amounts in used.values()])
    return [
        _Containers(number, {resource: amount / number for resource, amount in amounts.items()}, each, True)
        for number, (each, amounts) in zip(numbers, used.items(), strict=True)
    ]


def _divided(whole: float, parts: Sequence[float]) -> list[float]:
    """Divide a number of containers in proportion to what partitions hold: at least one each, by largest remainders.

    >>> _divided(4, [12, 4]), _divided(1, [5])
    ([3.0, 1.0], [1.0])
    """
    exact = [whole * part / (sum(parts) or 1) for part in parts]
    numbers = [max(1.0, float(int(number + 1e-9))) for number in exact]
    while sum(numbers) < whole:
        neediest = max(range(len(parts)), key=lambda i: exact[i] - numbers[i])
        numbers[neediest] += 1
    return numbers


def _label(part: Part) -> str:
    text = part.text("").strip()
    return "" if text in ("<DEFAULT_PARTITION>", "<Not set>") else text


def _known(part: Part) -> float:
    return 0.0 if part.value == -1 else part.number(0.0)  # -1: not known (yet)
