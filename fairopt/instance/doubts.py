"""What is allowed in an instance and yet implausible: most often two units of one resource, or two spellings of one name.

Each kind is one sentence, with the first few names. `fairopt.load` logs them as warnings, and commands print them once, on stderr.

* *A task that no server holds*: on each server where the user may run, a task takes more of some resource than one server has. Exact
  allocations divide such a task.
* *A resource of which almost nothing can be used*: whoever fills a server alone, and wherever, uses less than 1 % of it, because another
  resource ends first. This depends on the sizes of tasks alone: few tasks and low limits raise no doubt, and neither does a resource that
  nobody demands. Users whose tasks are too large do not count.
* *A speed of 0*: the user cannot run there.
* *A weight without effect*: other than 0 and 1, of a user or a queue without siblings. A queue without users is no sibling.
* *Names that differ in case or in spaces only*, and names that begin or end with a space.

Where tasks have rates on servers, capacities do not say what a server holds, and the first two are left out.

>>> lab = Instance([[8, 1024]], [[1, 64000], [2, 64]], users=["vision", "chem"], resources=["gpu", "memory"])
>>> for sentence in doubts(lab):
...     print(sentence)
no server holds a whole task of vision: memory 64,000 of at most 1,024; are the units the same? Exact allocations divide such a task
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from fairopt.instance.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.rivals import why_without_effect
from fairopt.instance.tolerances import FITS
from fairopt.instance.units import bare_amount
from fairopt.wording import figure, joined, named, percent, printable

__all__ = ["doubts"]

_MOST = 5  # names in a list
_LITTLE = 0.01  # part of a server that is little
_AT_ONCE = 1_000_000  # pairs of users and servers that are looked at together


def doubts(instance: Instance, told: Collection[str] = ()) -> tuple[str, ...]:
    """Return what is implausible in an instance, a sentence for each kind; ``told``: names whose weights are not to be spoken of."""
    found = []
    if instance.rates_per_server is None:
        too_large = _too_large(instance)
        found += [*_of_large_tasks(instance, np.flatnonzero(too_large)), *_of_little_use(instance, ~too_large)]
    return (*found, *_of_speeds(instance), *_of_weights(instance, told), *_of_names(instance))


# Amounts -------------------------------------------------------------------------------------------------------------------------


def _too_large(instance: Instance) -> BoolArray:
    """Return whose tasks are too large for every server where they may run, (users,)."""
    there = np.flatnonzero(instance.counts > 0)
    large = np.zeros(instance.n_users, bool)
    capacities, demands = instance.capacities[there], instance.demands_by_kind[:, :, : instance.n_server_resources] * (1 - FITS)
    fits_everywhere = (demands <= capacities.min(axis=0, initial=np.inf)).all(axis=(1, 2))
    for users in _parts(np.flatnonzero(instance.servable & (instance.tasks > 0) & ~fits_everywhere), there.size):
        fits = instance.eligibility[np.ix_(users, there)]
        for r in range(instance.n_server_resources):
            fits &= capacities[:, r] >= demands[users, :, r][:, instance.kind_of[there]]
        large[users] = ~fits.any(axis=1)
    of_cluster = instance.demands_by_kind[:, :, instance.n_server_resources :].min(axis=1)
    beyond = (of_cluster * (1 - FITS) > instance.shared_capacity).any(axis=1)
    return np.asarray(large | (beyond & instance.servable & (instance.tasks > 0)))


def _of_large_tasks(instance: Instance, users: IntArray) -> Iterator[str]:
    """Yield a sentence on users whose tasks no server holds, with the amounts of the first."""
    if not users.size:
        return
    n = int(users[0])
    of_servers = instance.capacities[instance.eligibility[n] & (instance.counts > 0)].max(axis=0)
    largest = np.concatenate([of_servers, instance.shared_capacity])
    asked = instance.demands_by_kind[n].min(axis=0)  # wherever that is least
    excess = np.divide(asked, largest, out=np.zeros(largest.size), where=largest > 0)
    r = int(excess.argmax())
    resource = instance.resources[r]
    asks, has = (bare_amount(float(each[r]), resource, instance.units.get(resource, ""), 6) for each in (asked, largest))
    why = f"{named(resource)} {asks} of at most {has}" if excess[r] > 1 else "each lacks some of what it needs"
    whose = "" if users.size == 1 else f"of {named(instance.users[n])}, "
    names = joined([named(instance.users[k]) for k in users.tolist()], _MOST)
    holds = "the cluster has too little for" if r >= of_servers.size else "no server holds"
    yield f"{holds} a whole task of {names}: {whose}{why}; are the units the same? Exact allocations divide such a task"


def _of_little_use(instance: Instance, users: BoolArray) -> Iterator[str]:
    """Yield a sentence on the resources that can only be used to a small part, because others end before."""
    there = np.flatnonzero(instance.counts > 0)
    asking = np.flatnonzero(users & instance.servable & ~instance.zero_demand)
    demanded = (instance.demands_by_kind[asking, :, : instance.n_server_resources] > 0).any(axis=(0, 1))
    most: FloatArray = np.zeros(instance.n_server_resources)
    for some in _parts(asking, there.size):
        eligible = instance.eligibility[np.ix_(some, there)]
        ends_first: FloatArray = np.zeros(eligible.shape)  # the part of a server that one task takes, of the resource that ends first
        of_one = []
        for r in range(instance.n_server_resources):
            capacity = np.broadcast_to(instance.capacities[there, r], eligible.shape)
            taken = np.zeros(eligible.shape)
            demands = instance.demands_by_kind[some, :, r][:, instance.kind_of[there]]
            np.divide(demands, capacity, out=taken, where=eligible & (capacity > 0))
            np.maximum(ends_first, taken, out=ends_first)
            of_one.append(taken)
        for r, taken in enumerate(of_one):
            most[r] = max(most[r], np.divide(taken, ends_first, out=taken, where=ends_first > 0).max(initial=0.0))
        if (most >= _LITTLE)[demanded].all():
            return
    little = np.flatnonzero((most > 0) & (most < _LITTLE)).tolist()
    if little:
        names = joined([named(instance.resources[r]) for r in little], _MOST)
        yield (
            f"{names} {'is' if len(little) == 1 else 'are'} used to {percent(float(most[little].max()))} at most, whoever fills a server "
            "alone; do servers and users have the same unit?"
        )


def _parts(users: IntArray, servers: int) -> Iterator[IntArray]:
    """Yield users, so many at once that the pairs of them and of the servers are not too many."""
    step = max(_AT_ONCE // max(servers, 1), 1)
    for start in range(0, users.size, step):
        yield users[start : start + step]


def _of_speeds(instance: Instance) -> Iterator[str]:
    """Yield a sentence on users with a speed of 0 on some servers, with the servers of the first."""
    if instance.speeds_given is None:
        return
    nowhere = instance.speeds_given == 0
    users = np.flatnonzero(nowhere.any(axis=1)).tolist()
    if users:
        names = joined([named(instance.users[n]) for n in users], _MOST)
        whose = "its" if len(users) == 1 else f"{named(instance.users[users[0]])}'s"
        servers = joined([named(instance.servers[i]) for i in np.flatnonzero(nowhere[users[0]])], _MOST)
        yield f"{names} cannot run on some servers: {whose} speed on {servers} is 0"


# Weights -------------------------------------------------------------------------------------------------------------------------


def _of_weights(instance: Instance, told_of: Collection[str]) -> Iterator[str]:
    """Yield a sentence on users and queues that have a weight and no sibling."""
    tree = instance.tree
    inside = np.bincount(tree.user_node, minlength=tree.n_nodes)  # users below each node
    children = inside.copy()  # users in each node, and queues in it that have users
    for node in tree.order:
        inside[tree.parent[node]] += inside[node]
        children[tree.parent[node]] += inside[node] > 0
    single = children == 1
    alone: list[tuple[str, float, dict[str, int]]] = []  # its name, its weight, and which user or node it is
    if instance.weights.ndim == 1:
        users = np.flatnonzero((instance.weights != 0) & (instance.weights != 1) & single[tree.user_node]).tolist()
        alone += [(named(instance.users[n]), instance.weights[n], {"user": n}) for n in users if instance.users[n] not in told_of]
    queues = np.flatnonzero((tree.weights != 0) & (tree.weights != 1) & (inside > 0) & single[tree.parent]).tolist()
    alone += [
        (f"the queue {named(tree.name(node))}", tree.weights[node], {"node": node}) for node in queues if tree.name(node) not in told_of
    ]
    if not alone:
        return
    if len(alone) == 1:
        (name, weight, which) = alone[0]
        yield f"the weight {figure(float(weight), 6)} of {name} has no effect, because {why_without_effect(instance, **which)}"
    else:
        who = joined([name for name, *_ in alone], 3)
        yield f"the weights of {who} have no effect: each is alone in its queue, so the queue's weight counts"


# Names ---------------------------------------------------------------------------------------------------------------------------


def _of_names(instance: Instance) -> Iterator[str]:
    """Yield sentences on names that differ in case or spaces only, and on names with a space at an end."""
    queues = [queue.name for queue in instance.queues]
    for kind, names in (("user", instance.users), ("server", instance.servers), ("queue", queues), ("resource", instance.resources)):
        groups: dict[str, list[str]] = {}
        for name in names:
            groups.setdefault(" ".join(name.split()).casefold(), []).append(name)
        alike = [_quoted(group) for group in groups.values() if len(group) > 1]
        if alike:
            yield f"the {kind}s {joined(alike, _MOST)} differ in case or spaces only; is each meant to be one of its own?"
        spaced = [group[0] for group in groups.values() if len(group) == 1 and group[0] != group[0].strip()]
        if spaced:
            which = f"the name of the {kind}" if len(spaced) == 1 else f"names of {kind}s"
            yield f"a space begins or ends {which} {_quoted(spaced)}; remove it"


def _quoted(names: Sequence[str]) -> str:
    return joined([f'"{printable(name)}"' for name in names], _MOST)
