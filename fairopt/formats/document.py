"""The schema of instance files.

::

    title: two kinds of machine           # optional, as is description
    resources: [cpu, memory]              # optional; default: what the servers have, in order of appearance
    units: {memory: GiB}                  # optional: for messages, tables and exports
    servers:
      - name: A
        capacity: {cpu: 9, memory: 12}    # of one server; a resource left out is 0
        count: 8                          # optional: identical servers that this entry stands for
        hosts: cn[1-7,12]                 # optional: their names, all or none; or a list
        attributes: {gpu_model: V100, cores: 4, ssd: true}    # optional: what "requires" can ask for
    shared: {ansys: 10}                   # optional: resources of the whole cluster, which no server has
    users:
      - name: alice
        demand: {cpu: 1, memory: 2}       # of one task, shared resources included; a resource left out is 0
        weight: 2                         # optional; or {cpu: 1, memory: 2}, then for every user
        tasks: 100                        # optional; left out: no limit
        queue: vision                     # optional: the queue that it is in; left out: the root
        owner: lab                        # optional: whose tasks they are; left out: the queue's, or those of alice
        guarantee: 3                      # optional: tasks that it gets first
        servers: [A]                      # optional: the only servers that it may use
        requires: "gpu_model in V100|T4; cores >= 4"          # optional: see fairopt.instance.requirements
        on:                               # optional: where its tasks take other amounts, or are slower
          - {servers: gpu_model = V100, demand: {cpu: 2}, speed: 0.9}    # by conditions or names
        rates: {A: 3}                     # optional, for all users or none: tasks on one server alone; left out: 0
    queues:                               # optional: a tree; the order does not matter
      - name: research
        weight: 2                         # optional, among its siblings; 0: nothing beyond its guarantee
        guarantee: {cpu: 8}               # optional: what it gets first, as far as it asks for it
        limit: {cpu: 40}                  # optional: what its users hold together at most
        lending_limit: {cpu: 4}           # optional: as much of its guarantee is lent while it is idle; left out: all
        tier: 1                           # optional: the rest of the cluster goes to the highest tier first
      - name: vision
        parent: research                  # optional; left out: the root
        order: listed                     # optional: first come, first served in the order of the file; left out: fair
        quotas:                           # optional: guarantees and limits on groups of servers
          - {on: gpu_model = V100, guarantee: {cpu: 4}}       # the language of "requires", or servers: [A]
    rules:                                # optional: linear conditions of any sign on tasks, see fairopt.Rule
      - "x[alice] >= 2 * x['vision', 'ssd = true']"
    limits:                               # optional: what some users hold together, wherever they are in the tree
      - name: big-memory                  # of all that it selects together
        bound: 8                          # of the resource; without resource and amounts, a number of tasks
        resource: memory                  # optional; or amounts: {alice: 2}, what a task of alice counts
        users: [alice]                    # optional: these users only
        queues: [vision]                  # optional: users below these queues only
        servers: gpu_model = V100         # optional: these servers only, by conditions or names
        each: user                        # optional: a limit for each user, queue or server, not one for all

Numbers may have a unit: ``memory: 256GiB``, ``cpu: 500m``, ``weight: 1/3`` (:mod:`fairopt.instance.quantities` lists the units). They are
kept as they are written: 0.1 is 1/10, and 1/3 is no rounded number, for ``solve(..., exact=True)``. A byte unit means bytes, and if one
amount of a resource has one, then all of its amounts but 0 must have one. Where ``units`` names a byte unit of the resource, numbers are in
this unit, and amounts with a byte unit are converted to it: 1TiB is 1024 with ``units: {memory: GiB}``.

Nothing is converted by guess: numbers must be numbers, and names must be text. An unknown key, resource, server or attribute is an error.
JSON, tables and frames are read through the same schema.

>>> from fairopt.formats.syntax import Parsed
>>> text = '''
... servers:
...   - {name: A, capacity: {cpu: 9, memory: 18}, attributes: {ssd: true}}
...   - {name: B, capacity: {cpu: 9}}
... users:
...   - {name: alice, demand: {cpu: 1, memory: 4}}
...   - {name: bob, demand: {cpu: 3}, requires: ssd != true}
... '''
>>> instance_from(Parsed("cluster.yaml", text)).rates
array([[4.5, 0. ],
       [0. , 3. ]])
>>> instance_from(Parsed("cluster.yaml", text.replace("cpu: 3", "cpus: 3")))
Traceback (most recent call last):
fairopt.errors.InvalidInstance: cluster.yaml, line 7: user "bob", demand, cpus: there is no resource "cpus" (did you mean "cpu"?)
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from fairopt.errors import InvalidInstance
from fairopt.files.limits import check_array
from fairopt.formats.as_written import AsWritten
from fairopt.formats.document_limits import limit_of, rules_of
from fairopt.formats.document_on import by_server
from fairopt.formats.document_queues import no_queue, queues_of
from fairopt.formats.entries import ENTRIES, Document, On, Queue, Quota, Server, User
from fairopt.formats.messages import Source, check_known, check_unique, keep_invalid, mistakes_of, refuse
from fairopt.formats.units import with_plain_numbers
from fairopt.instance import BoolArray, FloatArray, Instance
from fairopt.instance.hosts import Hosts, misplaced, named_by
from fairopt.instance.requirements import Attributes
from fairopt.instance.shared import CLUSTER
from fairopt.tables import Mistakes
from fairopt.wording import brief, contrast

__all__ = ["instance_from", "instance_of"]


_MOST_UNKNOWN = 100  # keys
_MOST_RESOURCES = 10_000


class _Data:
    """Plain data that was in no file."""

    def __init__(self, data: object) -> None:
        self.data = copy.deepcopy(data)

    def place(self, path: tuple[object, ...]) -> str:
        """Return what messages call it."""
        return "the data"

    def literal(self, path: tuple[object, ...]) -> str | None:
        """Return nothing: a value is as it is."""
        return None


def instance_of(data: object) -> Instance:
    """Return the instance of plain data, such as `fairopt.Instance.to_dict` gives.

    Raises
    ------
    InvalidInstance
        The message has the part of the data.
    """
    if not isinstance(data, Mapping):
        raise InvalidInstance(f"the data is a {type(data).__name__}, not a mapping; give what Instance.to_dict returns")
    return instance_from(_Data(dict(data)))


def instance_from(source: Source) -> Instance:
    """Return the instance that a document describes.

    Parameters
    ----------
    source : Source
        The document is its ``data``; for messages, it knows the place of each part.

    Raises
    ------
    InvalidInstance
    """
    mistakes = mistakes_of(source)
    document, data = _read(source, mistakes)
    servers, users = document.servers, document.users
    numbers = AsWritten(data)
    check_unique(source, ("servers",), (s.name for s in servers), ("name",), mistakes)
    check_unique(source, ("users",), (u.name for u in users), ("name",), mistakes)
    check_unique(source, ("queues",), (q.name for q in document.queues), ("name",), mistakes)
    check_unique(source, ("limits",), (limit.name for limit in document.limits), ("name",), mistakes)

    resources, shared = document.resources, document.shared
    if resources is None:
        resources = list(dict.fromkeys(r for s in servers for r in s.capacity))
    check_unique(source, ("resources",), resources, (), mistakes)
    of_servers = [r for r in resources if r not in shared]
    resources = [*of_servers, *shared]
    if not resources:
        mistakes.refuse()
        refuse(source, ("servers",), "no server has a resource; give each a capacity such as {cpu: 9, memory: 12}")

    if len(resources) > _MOST_RESOURCES:
        refuse(source, (), f"there are {len(resources):,} resources, and an instance has {_MOST_RESOURCES:,} at most; leave out the others")
    for what, number, of_bytes in (("users and resources", len(resources), 8), ("users and servers", len(servers), 1)):
        check_array(source.place(()), what, len(users), number, of_bytes=of_bytes)
    check_array(source.place(()), "servers and resources", len(servers), len(resources))
    check_array(source.place(()), "queues and users", len(document.queues), len(users), of_bytes=1)

    column = {name: j for j, name in enumerate(resources)}
    capacities = np.zeros((len(servers), len(of_servers)))
    for i, server in enumerate(servers):
        with mistakes:
            check_known(source, ("servers", i, "capacity"), server.capacity, column, "resource")
            for name, amount in server.capacity.items():
                if name in shared:
                    if amount:
                        path = ("servers", i, "capacity", name)
                        refuse(source, path, f"{brief(name)} is shared by the whole cluster, so no server has any; remove one")
                    continue
                capacities[i, column[name]] = amount
                numbers.keep("capacities", (i, column[name]), "servers", i, "capacity", name)
    demands = np.zeros((len(users), len(resources)))
    for n, user in enumerate(users):
        with mistakes:
            check_known(source, ("users", n, "demand"), user.demand, column, "resource")
            for name, amount in user.demand.items():
                demands[n, column[name]] = amount
                numbers.keep("demands", (n, column[name]), "users", n, "demand", name)
            endless = user.rates is None and user.tasks == math.inf and not any(user.demand.values())
            if endless and not document.limits:  # limits may bound it
                refuse(
                    source,
                    ("users", n),
                    "demands nothing and has no task limit, so it could run any number of tasks; give it a demand > 0 or a number of tasks",
                )

    with mistakes:
        hosts = _hosts(source, servers)
    attributes = Attributes([server.attributes for server in servers])
    with mistakes:
        queues = queues_of(source, document, column, attributes, numbers)
    limits = [
        limit_of(source, ("limits", k), document, limit, column, attributes, numbers, mistakes) for k, limit in enumerate(document.limits)
    ]
    known = dict.fromkeys(queue.name for queue in document.queues)
    for n, user in enumerate(users):
        with mistakes:
            if user.queue is not None and user.queue not in known:
                refuse(source, ("users", n, "queue"), no_queue(user.queue, known))
        with mistakes:
            if user.guarantee > user.tasks:
                more, all_of_it = contrast(user.guarantee, user.tasks)
                refuse(source, ("users", n, "guarantee"), f"{more} tasks are guaranteed, but it has {all_of_it}; raise or lower one")
    with mistakes:
        weights = _weights(source, users, resources, numbers)
    with mistakes:
        rates = _rates(source, servers, users, numbers)
    eligibility = _eligibility(source, servers, users, attributes, mistakes)
    with mistakes:
        check_known(source, ("units",), document.units, column, "resource")
    mistakes.refuse()
    of_tasks, speeds = by_server(source, document, numbers.exact("demands", demands), column, attributes, numbers, mistakes)
    rules = rules_of(source, document, resources, queues, mistakes)
    mistakes.refuse()
    try:
        return Instance(
            numbers.exact("capacities", capacities),
            of_tasks,
            speeds=speeds,
            weights=numbers.exact("weights", weights),
            eligibility=eligibility,
            counts=np.array([s.count for s in servers], float),
            tasks=numbers.of_users("tasks", "tasks", [u.tasks for u in users]),
            rates=None if rates is None else numbers.exact("rates", rates),
            parallelism=numbers.of_users("parallelism", "parallelism", [u.parallelism for u in users]),
            guarantees=numbers.of_users("guarantees", "guarantee", [u.guarantee for u in users]),
            queues=queues,
            queue_of=[u.queue for u in users],
            limits=[limit for limit in limits if limit is not None],
            shared={name: numbers.at("shared", name, given=amount) for name, amount in shared.items()},
            hosts=hosts,
            attributes=[s.attributes for s in servers],
            owners=[u.owner for u in users],
            units=document.units,
            rules=rules,
            users=[u.name for u in users],
            servers=[s.name for s in servers],
            resources=resources,
        )
    except InvalidInstance as error:
        refuse(source, (), str(error))


def _read(source: Source, mistakes: Mistakes) -> tuple[Document, Any]:
    """Return a document that the schema has accepted, and its data. Values that it has not accepted are mistakes, and others stand in."""
    models: dict[str, type[BaseModel]] = {"": Document, **ENTRIES, "quotas": Quota, "on": On}
    try:
        data, left_out = _few_unknown(_with_a_server(with_plain_numbers(source, mistakes)))
    except InvalidInstance as error:
        mistakes.add(str(error))
        mistakes.refuse()
        raise
    try:
        return Document.model_validate(data), data
    except ValidationError as error:
        keep_invalid(source, error, models, mistakes, left_out)
        mended = _mended(data, error)
    try:
        return Document.model_validate(mended), mended
    except ValidationError:  # without these, nothing else can be looked at
        mistakes.refuse()
        raise


def _with_a_server(data: object) -> object:
    """Return data with a row for the cluster where no server has anything, as all resources are shared."""
    if isinstance(data, dict) and data.get("shared") and "servers" not in data:
        return {**data, "servers": [{"name": CLUSTER, "capacity": {}}]}
    return data


def _mended(data: Any, error: ValidationError) -> Any:
    """Return data without the values that are wrong, so that the others can be looked at."""
    copies: dict[tuple[Any, ...], Any] = {(): _copy(data)}
    for each in error.errors(include_url=False, include_context=False):
        path = tuple(each["loc"])
        path = (*path[:3], *path[4:]) if path[:1] == ("users",) and path[2:3] == ("weight",) else path
        for depth in range(1, len(path)):
            if path[:depth] not in copies:
                above = copies[path[: depth - 1]]
                try:
                    copies[path[:depth]] = above[path[depth - 1]] = _copy(above[path[depth - 1]])
                except (LookupError, TypeError):
                    return None
        place = copies[path[:-1]] if len(path) > 2 else None
        if not isinstance(place, dict) or path[-1] not in place:
            return None
        if path[-1] == "count":
            place.pop("hosts", None)  # which would be too few or too many
        if path[-2] in ("capacity", "demand", "rates", "weight"):
            place[path[-1]] = 1.0
        else:
            del place[path[-1]]
    return copies[()]


def _copy(data: Any) -> Any:
    return data.copy() if isinstance(data, dict | list) else data


def _hosts(source: Source, servers: list[Server]) -> Hosts | None:
    """Return the hosts of each row of servers, or None when none is named."""
    if not any(server.hosts for server in servers):
        return None
    hosts: list[tuple[str, ...]] = []
    before = 0
    for i, server in enumerate(servers):
        try:
            hosts.append(named_by(server.hosts, before))
        except ValueError as error:
            refuse(source, ("servers", i, "hosts"), str(error))
        before += len(hosts[-1])
    for i, why in misplaced(tuple(hosts), [server.count for server in servers], [server.name for server in servers]):
        refuse(source, ("servers", i, "hosts"), why)
    return tuple(hosts)


def _few_unknown(data: object) -> tuple[object, int]:
    """Return the data with the first few unknown keys, and the number of those left out: pydantic would describe each for one message."""
    left_out, room = 0, _MOST_UNKNOWN

    def few(entry: object, model: type[BaseModel]) -> object:
        nonlocal left_out, room
        if not isinstance(entry, dict):
            return entry
        unknown = [key for key in entry if key not in model.model_fields]
        drop = set(unknown[room:])
        left_out += len(drop)
        room -= len(unknown) - len(drop)
        if model is Queue and isinstance(quotas := entry.get("quotas"), list):
            entry = entry | {"quotas": [few(quota, Quota) for quota in quotas]}
        if model is User and isinstance(overrides := entry.get("on"), list):
            entry = entry | {"on": [few(each, On) for each in overrides]}
        return {key: value for key, value in entry.items() if key not in drop} if drop else entry

    if not isinstance(data, dict):
        return data, 0
    lists: dict[object, object] = {}
    for name, model in ENTRIES.items():
        if isinstance(entries := data.get(name), list):
            lists[name] = [few(entry, model) for entry in entries]
    whole = few(data, Document)  # last: pydantic lists what is wrong inside before the keys that are unknown outside
    return ({**whole, **lists} if isinstance(whole, dict) and left_out else data), left_out


def _weights(source: Source, users: list[User], resources: list[str], numbers: AsWritten) -> FloatArray:
    """Return the weights, one per user or, as soon as one user gives them so, per user and resource."""
    detailed = next((u for u in users if isinstance(u.weight, dict)), None)
    if detailed is None:
        for n in range(len(users)):
            numbers.keep("weights", (n,), "users", n, "weight")
        return np.array([u.weight for u in users], float)
    rows, known = [], dict.fromkeys(resources)
    for n, user in enumerate(users):
        if not isinstance(user.weight, dict):
            path = ("users", n, "weight") if "weight" in user.model_fields_set else ("users", n)
            refuse(
                source, path, f'has one weight for all resources, but "{detailed.name}" has one per resource; give all users the same kind'
            )
        check_known(source, ("users", n, "weight"), user.weight, known, "resource")
        missing = [r for r in resources if r not in user.weight]
        if missing:
            refuse(source, ("users", n, "weight"), f'gives no weight for "{missing[0]}"; give one for every resource (1 is neutral)')
        rows.append([user.weight[r] for r in resources])
        for j, r in enumerate(resources):
            numbers.keep("weights", (n, j), "users", n, "weight", r)
    return np.array(rows, float)


def _rates(source: Source, servers: list[Server], users: list[User], numbers: AsWritten) -> FloatArray | None:
    """Return the rates, or None when no user gives any."""
    giver = next((u for u in users if u.rates is not None), None)
    if giver is None:
        return None
    column = {server.name: i for i, server in enumerate(servers)}
    check_array(source.place(()), "users and servers", len(users), len(servers))
    rates = np.zeros((len(users), len(servers)))
    for n, user in enumerate(users):
        if user.rates is None:
            refuse(source, ("users", n), f'gives no rates, but user "{giver.name}" does; give rates for all users or for none')
        check_known(source, ("users", n, "rates"), user.rates, column, "server")
        for name, rate in user.rates.items():
            rates[n, column[name]] = rate
            numbers.keep("rates", (n, column[name]), "users", n, "rates", name)
    return rates


def _eligibility(source: Source, servers: list[Server], users: list[User], attributes: Attributes, mistakes: Mistakes) -> BoolArray | None:
    """Return where users may run by "servers" and "requires", or None when nobody is restricted."""
    if all(u.servers is None and u.requires is None for u in users):
        return None
    column = {server.name: i for i, server in enumerate(servers)}
    allowed = np.ones((len(users), len(servers)), bool)
    for n, user in enumerate(users):
        with mistakes:
            if user.servers is not None:
                check_known(source, ("users", n, "servers"), user.servers, column, "server")
                check_unique(source, ("users", n, "servers"), user.servers)
                allowed[n] = False
                allowed[n, [column[name] for name in user.servers]] = True
        if user.requires is not None:
            with mistakes:
                try:
                    allowed[n] &= attributes.where(user.requires)
                except InvalidInstance as error:
                    refuse(source, ("users", n, "requires"), str(error))
    return allowed
