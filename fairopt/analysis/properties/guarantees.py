"""Guarantees: every queue and every user holds what it is guaranteed, as far as it asks for it.

`fairopt.allocation.promises` computes how much of a queue's guarantee is missing: what its users ask for in addition, within its
guarantees and as if its servers were large enough, if they keep their tasks. A user with a guarantee of its own misses the tasks that it
lacks.
For whole tasks, less than one task does not count as missing.

The violation is the least number of missing tasks: the amount, divided by the largest demand of the queue's users. The witness names the
siblings of the queue, and of the queues above it, that hold more of the resource there than they are guaranteed, and says what the queue
could hold alone: its guarantee filled in the empty cluster (`fairopt.program.guarantees`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from fairopt.allocation import Allocation
from fairopt.allocation.promises import Guaranteed
from fairopt.analysis.explanation import number
from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.verdict import Verdict, Witness, does_not_apply, holds, violated
from fairopt.analysis.rerun import notion_of_allocation
from fairopt.errors import FairoptError
from fairopt.instance import BoolArray, FloatArray, Instance
from fairopt.instance.fractions import rounding
from fairopt.instance.keeping import keepings_of
from fairopt.instance.tolerances import REACHED
from fairopt.solving.alone import tasks_alone
from fairopt.wording import figure, joined, named, plural

__all__ = ["NAME", "check", "could_hold_alone", "held_beyond"]

NAME = "guarantees"
_HOLDERS = 3  # named in a witness
_Lacking: TypeAlias = tuple[float | Fraction, Callable[[], Witness]]
"""How many tasks are missing, and what makes the witness."""


def check(case: Case) -> Verdict:
    """Compare what queues and users hold with what they are guaranteed."""
    instance = case.instance
    of_queues = any(queue.guarantee or any(quota.guarantee for quota in queue.quotas) for queue in instance.queues)
    promised = of_queues or bool(instance.guarantees.any())
    if not promised:
        return does_not_apply(NAME, "Does not apply: no queue and no user has a guarantee.")
    lacking: list[_Lacking] = [_of_user(case, int(n), lack) for n, lack in _users(case)]
    deepest_first = sorted(case.allocation.queue_holdings(), key=lambda each: -each.depth)  # the most specific wins a tie
    lacking += [_of_queue(case, each.node, promise) for each in deepest_first for promise in each.guarantees if not promise.met]
    if not lacking:
        return holds(NAME, "Every guarantee is met, as far as its users ask for it.")
    tasks, witness = max(lacking, key=lambda each: each[0])
    return violated(NAME, tasks, f"{plural(len(lacking), 'guarantee is', 'guarantees are')} not met.", witness())


def _users(case: Case) -> list[tuple[int, float | Fraction]]:
    """Return the users with a guarantee of their own who lack tasks, and how many."""
    instance = case.instance
    lack = np.where(instance.servable, instance.guarantees - case.allocation.tasks_per_user, 0)
    least, same = int(case.whole), rounding(REACHED, lack)
    return [(int(n), lack[n]) for n in np.flatnonzero((lack > same * instance.guarantees) & (lack >= least * (1 - same)))]


def _of_queue(case: Case, node: int, promise: Guaranteed) -> _Lacking:
    instance, tree = case.instance, case.instance.tree
    r = instance.resources.index(promise.resource)
    users = np.flatnonzero(tree.below[node] & instance.kinds.demand(r))

    def witness() -> Witness:
        text = (
            f'The queue "{tree.name(node)}" holds {promise.figure(promise.held, 6)} of the {promise.figure(promise.amount, 6)} '
            f"{promise.where} that it is guaranteed, and asks for {promise.figure(promise.missing, 6)} more. "
            f"{could_hold_alone(case.in_floats.allocation, node, promise)}{held_beyond(case.allocation, node, promise)}"
        )
        return Witness(text, tuple(instance.users[n] for n in users))

    return promise.missing / instance.demands_by_kind[users, :, r].max(), witness


def _of_user(case: Case, n: int, lack: float | Fraction) -> _Lacking:
    instance = case.instance

    def witness() -> Witness:
        text = f"{case.name(n)} runs {plural(instance.guarantees[n] - lack, 'task')} of the {figure(instance.guarantees[n], 6)} guaranteed."
        tasks = _alone(case.in_floats.allocation, instance.tree.n_nodes + n)
        alone = "" if tasks is None else f" Alone in the cluster it could run {figure(tasks[n].sum(), 6)}."
        return Witness(text + alone, (instance.users[n],))

    return lack, witness


def could_hold_alone(allocation: Allocation, node: int, promise: Guaranteed) -> str:
    """Return the sentence on what a queue could hold of its guarantee if nobody else held anything, and a blank; "" if it is not known."""
    instance = allocation.instance
    tasks = _alone(allocation, node)
    if tasks is None:
        return ""
    servers = np.ones(instance.n_servers, bool)
    for quota in instance.tree.queues[node - 1].quotas:
        if promise.group and quota.name == promise.group:
            servers = np.isin(instance.servers, quota.servers)
    users = instance.tree.below[node]
    held = instance.kinds.held(tasks, servers, instance.resources.index(promise.resource))[users].sum()
    return f"Alone in the cluster it could hold {promise.figure(float(held), 6)}. "


def _alone(allocation: Allocation, owner: int) -> FloatArray | None:
    """Return the tasks that the guarantee of a node, or of a user behind the nodes, gives it alone; None where nothing proves them."""
    if allocation.instance.capacities.dtype == object:
        return None
    sharing: Any = allocation.sharing
    try:
        return tasks_alone(allocation.instance, notion_of_allocation(allocation), sharing, owner)
    except FairoptError:
        return None


def held_beyond(allocation: Allocation, node: int, promise: Guaranteed) -> str:
    """Return a sentence on the idle amount of a resource, and one on siblings of a node and of its ancestors that exceed their guarantees.

    The largest surplus comes first. Idle means free where users below the node may run.
    """
    instance, tree, group = allocation.instance, allocation.instance.tree, promise.group
    r = instance.resources.index(promise.resource)
    servers = np.ones(instance.n_servers, bool)
    for quota in tree.queues[node - 1].quotas:
        if group and quota.name == group:
            servers = np.isin(instance.servers, quota.servers)
    per_user = instance.kinds.held(allocation.tasks, servers, r)
    owed = _owed(instance, r, servers)
    mine = tree.below[node] & instance.kinds.demand(r)
    open_to = servers & instance.eligibility[mine].any(axis=0)
    shared = r - instance.n_server_resources
    if shared < 0:
        capacity, used = instance.row_capacity[:, r], allocation.usage[:, r]
    else:  # no server has it: as if the first one of them did
        first = np.arange(instance.n_servers) == int(open_to.argmax())
        capacity, used = first * instance.shared_capacity[shared], first * allocation.shared_usage[shared]
    free = np.where(open_to, capacity - used, 0)
    same = rounding(REACHED, per_user)
    found: list[tuple[float | Fraction, str]] = []
    while node:
        above = int(tree.parent[node])
        for other in tree.children(above):
            if other != node:
                found.append((per_user[tree.below[other]].sum() - owed[other], tree.name(int(other))))
        for n in tree.users_of(above):
            found.append((per_user[n] - instance.guarantees[n] * instance.demands_by_kind[n, :, r].max(), instance.users[n]))
        node = above
    order = sorted((each for each in found if each[0] > same * per_user.sum()), reverse=True)
    sentences = []
    if free.sum() > same * capacity[servers].sum():
        kept = _kept(allocation, r, mine, free)
        told = f"There, {promise.figure(free.sum(), 6)} {promise.resource} is free"
        if kept > same * free.sum():
            part = "all of it" if free.sum() - kept <= same * free.sum() else f"{promise.figure(kept, 6)} of it"
            told += f", and other queues keep {part} by lending limits"
        sentences.append(f"{told}.")
    if order:
        holders = joined([f"{promise.figure(amount, 6)} by {named(name)}" for amount, name in order], _HOLDERS)
        sentences.append(f"Held there beyond guarantees: {holders}.")
    return " ".join(sentences) or "No sibling holds more than its guarantee: the guarantees together do not fit."


def _kept(allocation: Allocation, r: int, users: BoolArray, free: FloatArray) -> float | Fraction:
    """Return how much of what is free of a resource, (servers,), is not for these users, because queues keep it of their guarantees."""
    instance = allocation.instance
    total: float | Fraction = number(free.sum())
    usable = total
    for keeping in keepings_of(instance):
        if keeping.resource == r and users.any():
            held = keeping.held(instance.kinds.held(allocation.tasks, keeping.servers, r))
            rooms = keeping.rooms(held)
            room = max(max(rooms[k] for k in set(keeping.nearest[users].tolist())), 0)
            usable = min(usable, number(free[~keeping.servers].sum()) + min(number(free[keeping.servers].sum()), room))
    return total - usable


def _owed(instance: Instance, r: int, servers: BoolArray) -> FloatArray:
    """Return the guarantee of each node on some servers: its own, or the sum of its children's guarantees if that is larger, (nodes,)."""
    tree, resource = instance.tree, instance.resources[r]
    owed: FloatArray = np.zeros(tree.n_nodes, instance.capacities.dtype)
    np.add.at(owed, tree.user_node, instance.guarantees * instance.demands_by_kind[:, :, r].max(axis=1))
    for node in tree.order:
        queue = tree.queues[node - 1]
        own = queue.guarantee.get(resource, 0)
        own += sum(quota.guarantee.get(resource, 0) for quota in queue.quotas if servers[np.isin(instance.servers, quota.servers)].all())
        owed[node] = max(owed[node], own)
        owed[tree.parent[node]] += owed[node]
    return owed
