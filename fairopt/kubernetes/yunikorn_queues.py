"""The queues of YuniKorn: its ``queues.yaml``, alone or in the ConfigMap ``yunikorn-configs``.

``guaranteed`` is the guarantee and ``max`` the limit; a ``max`` of nothing at all is none. YuniKorn serves the queue that uses the smallest
part of what it is guaranteed, or of its maximum (its own, that of a queue above, or the whole cluster) where nothing is guaranteed, and by
preemption no queue falls below its guarantee. So the weight of a queue is the dominant share of its guarantee, else that of its maximum, in
the meaning "clamp": of 20 cores, a queue that is guaranteed 10 and one without a guarantee have 10 each. A leaf queue is FIFO unless its
``application.sort.policy`` says ``fair``: then it has the order "listed", by the creation of applications. A ``priority.offset`` is a tier.

A pod names its queue by a label or an annotation. One that names none, or one that does not exist, is where the placement rules put it; a
queue that these make has the limits of the nearest ``childtemplate``. Queues are named by their path without the root: ``lab.ann``.

Limits of a user (``limits``) hold where all that the user has in the queue belongs to one owner; others are named.

Source: YuniKorn, Partition and Queue Configuration; Sorting Policies; App & Queue Priorities; Placement rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairopt.clusters.account import Account
from fairopt.clusters.fields import Fields, Seen
from fairopt.clusters.json_export import Part
from fairopt.instance.queues import Order, Queue
from fairopt.instance.tree import MOST_LEVELS, too_deep
from fairopt.kubernetes.amounts import in_units, quantity
from fairopt.kubernetes.reading import CONFIGURATION
from fairopt.kubernetes.records import Pod
from fairopt.kubernetes.scheduler_queues import Cluster, SchedulerQueues, made, marked
from fairopt.kubernetes.yunikorn_fields import LIMIT, PARTITION, PROPERTY, QUEUE, TEMPLATE
from fairopt.wording import brief, joined, named, plural

__all__ = ["YuniKorn"]

_MARKS = ("yunikorn.apache.org/queue", "queue")
_APPLICATIONS = ("yunikorn.apache.org/app-id", "applicationId", "spark-app-selector")
_USER, _USER_INFO = "yunikorn.apache.org/username", "yunikorn.apache.org/user.info"
_ROOT, _DEFAULT = "root", "default"
_EVERYONE = "*"
_DOT = "_dot_"  # a dot in the name of a user, in the queue that is named after the user
_POLICY, _OFFSET = "application.sort.policy", "priority.offset"
_ORDERS: dict[str, Order] = {"fifo": "listed", "stateaware": "listed", "fair": "fair"}


@dataclass(frozen=True, slots=True)
class _Limit:
    """What each of some users may hold in a queue together with everything below it; ``*`` stands for every user without a limit."""

    users: tuple[str, ...]
    amounts: Mapping[str, float]


class YuniKorn(SchedulerQueues):
    """Queues of YuniKorn."""

    name = "YuniKorn"
    meaning = "clamp"
    excess = "YuniKorn refuses such a configuration, and keeps the one that it has"

    def __init__(self, parts: Sequence[Part], cluster: Cluster, account: Account) -> None:
        self._cluster, self._account = cluster, account
        self.queues = []
        self._seen = Seen()
        self._most: dict[str, Mapping[str, float]] = {"": {}}  # of each queue, with those of the queues above
        self._templates: dict[str, Part] = {}
        self._limits: dict[str, list[_Limit]] = {}
        self._groups: set[str] = set()  # queues with limits of groups
        self._offsets: dict[str, tuple[int, bool]] = {}  # of each queue: its offset, and whether it is a fence
        self._unsorted: set[str] = set()  # queues whose children are not sorted by priority
        self._orders: dict[str, Order] = {}
        self._known: set[str] = set()
        self._parents: set[str] = set()
        partition = self._partition(parts)
        self._rules = partition.get("placementrules").items()
        self._read_limits("", partition)
        listed = partition["queues"].items()
        if len(listed) == 1 and listed[0]["name"].text().lower() == _ROOT:
            self._see(QUEUE, listed[0], _ROOT)
            if listed[0].get("resources").value:
                account.note("the root queue has resources, which YuniKorn refuses: they do not count")
            self._read_limits("", listed[0])
            self._read_properties("", listed[0])
            self._read_template("", listed[0])
            listed = listed[0].get("queues").items()
        for each in listed:
            self._read(each, "", 1)
        self._take_tiers()
        self._leaves = {queue.name.lower(): queue.name for queue in self.queues if queue.name not in self._parents}
        for note in self._seen.notes():
            account.note(note)
        if self._groups:
            account.note(f"limits of groups in {joined(sorted(map(named, self._groups)), 3)} are left out: an instance has limits of users")

    @staticmethod
    def reads(kind: str, group: str) -> bool:
        """Return whether an object is a configuration of YuniKorn."""
        return (kind, group) == CONFIGURATION

    # The configuration

    def _partition(self, parts: Sequence[Part]) -> Part:
        """Return the partition that Kubernetes has."""
        if len(parts) > 1:
            parts[1].refuse(f"there are queues of YuniKorn in {parts[0].place}, too; give one configuration")
        partitions = parts[0]["partitions"].items()
        if not partitions:
            parts[0].refuse("there is no partition; list the queues of the partition default")
        first = next((each for each in partitions if each.get("name").value == _DEFAULT), partitions[0])
        for each in partitions:
            if each.key != first.key:
                self._account.leave_out("partition", each.place, "Kubernetes has one partition of YuniKorn, default")
        self._seen.see(PARTITION, first.value)
        return first

    def _read(self, part: Part, parent: str, level: int) -> None:
        """Read a queue and those in it."""
        name = part["name"].text()
        path = f"{parent}.{name}" if parent else name
        if "." in name or not name.strip():
            part["name"].refuse(f'the name of this queue is "{brief(name)}"; give it a name without "."')
        if path.lower() in self._known:
            part["name"].refuse(f'the queue "{path}" is listed twice; list it once')
        self._known.add(path.lower())
        if level > MOST_LEVELS:
            part["name"].refuse(too_deep(path, level))
        self._see(QUEUE, part, path)
        children = part.get("queues").items()
        leaf = not children and not _true(part.get("parent"))
        if not leaf:
            self._parents.add(path)
        policy = self._read_properties(path, part)
        self._read_template(path, part)
        self.queues.append(self._queue(part, path, parent, policy if leaf else ""))
        self._read_limits(path, part)
        for each in children:
            self._read(each, path, level + 1)

    def _queue(self, part: Part, path: str, parent: str, policy: str) -> Queue:
        """Return a queue; of a parent, the policy is empty."""
        resources = part.get("resources")
        guarantee, limit = self._amounts(resources.get("guaranteed")), self._amounts(resources.get("max"))
        if not any(limit.values()):
            limit = {}  # YuniKorn ignores a maximum of nothing
        above = self._most[parent]
        self._most[path] = dict(above) | {resource: min(amount, above.get(resource, amount)) for resource, amount in limit.items()}
        weight = self._share(guarantee) or self._share({**self._cluster.total, **self._most[path]}) or 1.0
        order: Order = _ORDERS.get(policy, "listed") if policy else "fair"
        return made(part, path, parent or None, weight, guarantee if any(guarantee.values()) else {}, limit, order=order)

    def _amounts(self, part: Part) -> dict[str, float]:
        found = {}
        for key, each in part.entries().items():
            resource = "cpu" if key == "vcore" else key
            if resource in found:
                each.refuse("vcore and cpu are the same resource; give one of them")
            found[resource] = in_units(resource, quantity(each))
        return found

    def _share(self, amounts: Mapping[str, float]) -> float:
        total = self._cluster.total
        return max((amount / total[resource] for resource, amount in amounts.items() if total.get(resource)), default=0.0)

    def _read_properties(self, path: str, part: Part) -> str:
        """Read the properties of a queue; return the policy of a leaf."""
        properties = part.get("properties")
        self._seen.see(PROPERTY, {key: each.value for key, each in properties.entries().items()})
        offset = str(properties.get(_OFFSET).value or 0)
        if not offset.removeprefix("-").isdecimal() or len(offset) > 11:
            properties.get(_OFFSET).refuse(f'the {_OFFSET} is "{brief(offset)}"; give a whole number')
        self._offsets[path] = int(offset), str(properties.get("priority.policy").value or "").lower() == "fence"
        above = path.rpartition(".")[0]
        own = properties.get("application.sort.priority").value
        if str(own or "").lower() == "disabled" or (own is None and path and above in self._unsorted):
            self._unsorted.add(path)
        return _policy(properties)

    def _read_template(self, path: str, part: Part) -> None:
        if part.get("childtemplate").value:
            self._templates[path] = part["childtemplate"]
            self._see(TEMPLATE, part["childtemplate"], path)
            _policy(part["childtemplate"].get("properties"))

    def _read_limits(self, path: str, part: Part) -> None:
        for each in part.get("limits").items():
            self._seen.see(LIMIT, each.value)
            users = tuple(user.text() for user in each.get("users").items())
            amounts = self._amounts(each.get("maxresources"))
            if each.get("groups").items() and amounts:
                self._groups.add(path or _ROOT)
            if users and amounts:
                self._limits.setdefault(path, []).append(_Limit(users, amounts))

    def _see(self, fields: Fields, part: Part, path: str) -> None:
        if not isinstance(part.value, dict):
            part.refuse(f'expected a mapping that describes the queue "{path}"')
        self._seen.see(fields, part.value)

    # Priorities

    def _take_tiers(self) -> None:
        """Make tiers of the offsets of leaf queues: added up to the next fence, and fences compared first."""
        ranks = {queue.name: self._rank(queue.name) for queue in self.queues if queue.name not in self._parents}
        if not any(any(rank) for rank in ranks.values()):
            return
        length = max(map(len, ranks.values()))
        padded = {path: rank + (0,) * (length - len(rank)) for path, rank in ranks.items()}
        ordered = sorted({(0,) * length, *padded.values()})
        zero = ordered.index((0,) * length)
        self.queues = [
            replace(queue, tier=ordered.index(padded[queue.name]) - zero) if queue.name in padded else queue for queue in self.queues
        ]
        self._account.note(
            "priority.offset of YuniKorn is a tier: here guarantees come first, but YuniKorn serves a queue of a higher priority before "
            "them; offsets within a fence also count against queues outside of it that have the same priority"
        )

    def _rank(self, path: str) -> tuple[int, ...]:
        """Return the sums of offsets of a leaf in each scope, the outermost first."""
        scopes = [0]
        while path:
            offset, fence = self._offsets[path]
            above = path.rpartition(".")[0]
            if fence and path in self._parents:
                scopes.insert(0, 0)
            scopes[0] += 0 if above in self._unsorted else offset
            path = above
        return tuple(scopes)

    # Pods

    def queue_of(self, pod: Part, namespace: str) -> str | None:
        """Return the queue that a pod names, or that the placement rules give it."""
        given = _without_root(marked(pod, _MARKS))
        if not self._rules:
            return self._leaves.get((given or _DEFAULT).lower())
        for rule in self._rules:
            path = self._placed(rule, pod, namespace)
            if path is None:
                continue
            if path.lower() in self._leaves:
                return self._leaves[path.lower()]
            below_leaf = any(each.lower() in self._leaves for each in _upwards(path))
            if _true(rule.get("create")) and path not in self._parents and not below_leaf:
                return self._create(path)
        return None if given else self._leaves.get(_DEFAULT)

    def _placed(self, rule: Part, pod: Part, namespace: str) -> str | None:
        """Return the path that a placement rule gives, without the root; None if it gives none."""
        kind = rule["name"].text().lower()
        value = rule.get("value").text("")
        if rule.get("filter").value:
            self._account.note(f'the filter of the placement rule "{brief(kind)}" is not read: the rule counts for all users')
        if kind == "provided":
            path = marked(pod, _MARKS)
        elif kind == "fixed":
            path = value
        elif kind == "user":
            path = _user(pod).replace(".", _DOT)
            if not path:
                self._account.note('the placement rule "user" does not count for pods that name no user')
        elif kind == "tag" and value.lower() == "namespace":
            path = namespace
        else:
            self._account.note(f'the placement rule "{brief(kind)}" with the value "{brief(value)}" is not read')
            return None
        above = rule.get("parent")
        if path and above.value and path == _without_root(path):  # a path from the root has no other queue above
            outer = self._placed(above, pod, namespace)
            return None if outer is None else f"{outer}.{path}"
        return _without_root(path) or None

    def _create(self, path: str) -> str:
        """Add a queue that a placement rule makes, in the queues above that exist."""
        steps = path.split(".")
        parent = next((".".join(steps[:n]) for n in range(len(steps) - 1, 0, -1) if ".".join(steps[:n]) in self._parents), "")
        template = next((self._templates[each] for each in _upwards(parent) if each in self._templates), Part(None, "childtemplate"))
        self.queues.append(self._queue(template, path, parent, _policy(template.get("properties"))))
        self._leaves[path.lower()] = path
        return path

    def in_turn(self, pods: Sequence[Pod]) -> list[Pod]:
        """Return pods in the order in which their applications were created."""
        if not any(queue.order == "listed" for queue in self.queues):
            return list(pods)
        created: dict[str, str] = {}
        for pod in pods:
            time = pod.part["metadata"].get("creationTimestamp").text("")
            application = self._application(pod)
            created[application] = min(created.get(application, time), time)
        self._account.note(
            "leaf queues without the policy fair serve applications first come, first served (order listed), by their creation; "
            "pods of one shape are one user, which stands where the first of them does"
        )
        return sorted(pods, key=lambda pod: created[self._application(pod)])

    @staticmethod
    def _application(pod: Pod) -> str:
        return f"{pod.space}/{marked(pod.part, _APPLICATIONS) or pod.name}"

    def order_in(self, queue: str) -> Order:
        """Return the order of the owners, and of the shapes of an owner, in a queue."""
        if len(self._orders) < len(self.queues):
            self._orders = {each.name: each.order for each in self.queues}
        return self._orders.get(queue, "fair")

    def limits_of(self, pods: Sequence[Pod], above: Sequence[str | None]) -> dict[tuple[str, str | None], dict[str, float]]:
        """Return the limits of users, for each owner in a queue to which all belongs that the user has below the limit."""
        found: dict[tuple[str, str | None], dict[str, float]] = {}
        loose = 0
        users = [_user(pod.part) for pod in pods]
        for path, limits in self._limits.items():
            inside = [n for n, queue in enumerate(above) if queue is not None and (not path or f"{queue}.".startswith(f"{path}."))]
            stated = {user for limit in limits for user in limit.users}
            of_user: dict[str, set[tuple[str, str | None]]] = {}
            of_owner: dict[tuple[str, str | None], set[str]] = {}
            for n in inside:
                of_user.setdefault(users[n], set()).add((pods[n].owner, above[n]))
            for n, queue in enumerate(above):
                of_owner.setdefault((pods[n].owner, queue), set()).add(users[n])
            for user, owners in of_user.items():
                own = [limit for limit in limits if user in limit.users or (user and user not in stated and _EVERYONE in limit.users)]
                if not own:
                    continue
                owner = next(iter(owners))
                if len(owners) > 1 or len(of_owner[owner]) > 1:
                    loose += 1
                    continue
                limit = found.setdefault(owner, {})
                for resource, amount in own[0].amounts.items():
                    limit[resource] = min(limit.get(resource, amount), amount)
        if loose:
            self._account.note(
                f"{plural(loose, 'limit')} of single users left out: what the user has is not all that one owner has in one queue; "
                f"--users label:{_USER} takes users as owners"
            )
        return found


def _upwards(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition(".")[0]
    yield ""


def _policy(properties: Part) -> str:
    """Return the policy of a queue by its properties, or by those of its template."""
    policy = str(properties.get(_POLICY).value or "fifo").lower()
    if policy not in _ORDERS:
        properties.get(_POLICY).refuse(f'there is no policy "{brief(policy)}"; the policies are fifo and fair')
    return policy


def _true(part: Part) -> bool:
    return str(part.value).lower() == "true"


def _without_root(path: str) -> str:
    return path.removeprefix(f"{_ROOT}.")


def _user(pod: Part) -> str:
    """Return the user of a pod; empty if it does not say it."""
    info = marked(pod, (_USER_INFO,))
    try:
        value: Any = json.loads(info) if info else {}
    except (ValueError, RecursionError):
        value = {}
    user = value.get("user") if isinstance(value, dict) else None
    return user if isinstance(user, str) else marked(pod, (_USER,))
