"""Placement of tasks in order of arrival: each task is placed at once if it fits, and turned away otherwise. No task ends.

    for each task in the order of arrival
        i = a server that the task fits on, chosen by the placement; if there is none, the task is turned away
        free[i] -= the demand of the task

The procedure is greedy: it moves no task and knows no later task. A resource may come in *cards*, such as the GPUs of a server. Then a task
that demands less than one card takes a fraction of a single card. A larger task takes whole cards that no task uses. For a fraction, the
server is chosen by the placement, and its card is the first one with room under first-fit, the emptiest under worst-fit, and the fullest
otherwise.

The steps are in ``fairopt.solvers.filling.arrival_kernel``.
"""

from __future__ import annotations

import numpy as np

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, safe_ratio
from fairopt.instance.tolerances import FITS
from fairopt.program.filling import Rule
from fairopt.program.queue_limits import limit_rows
from fairopt.solvers.compiled import Steps
from fairopt.solvers.filling import arrival_kernel
from fairopt.solvers.filling.placements import Chooser, Joint, Placement
from fairopt.solvers.filling.settings import SETTINGS
from fairopt.wording import exactly

__all__ = ["check_arrivals", "place_arrivals"]


def check_arrivals(instance: Instance, placement: Placement | Chooser, cards: int | None) -> Placement:
    """Return the placement; refuse placements and instances for which tasks cannot be placed in order of arrival.

    Raises
    ------
    Unsupported
        The placement is a function, or chooses the server before the task or by a share. The instance has rates, or users of limited
        parallelism.
    InvalidInstance
        A server has a fractional number of cards, or a task demands a fractional number of cards above 1.
    """
    if instance.rates_per_server is not None:
        raise Unsupported("the instance gives rates, so time is shared, and there is no room on a server; give an instance of resources")
    if instance.limited.any():
        n = int(instance.limited.argmax())
        raise Unsupported(
            "tasks that arrive one by one are placed with no account of how many servers their user is on, and "
            f'"{instance.users[n]}" is limited to {instance.parallelism[n]:g} at once; leave parallelism out'
        )
    if not isinstance(placement, Placement):
        raise Unsupported('a placement that is a function cannot be compiled; use one of fairopt, such as "best-fit"')
    if placement.server_first or isinstance(placement, Joint):
        raise Unsupported(
            f'"{placement.name}" chooses by the shares of several users, and tasks here come one by one; use "random" or "best-fit"'
        )
    nothing = np.flatnonzero(instance.servable & ~instance.zero_demand & (_of_servers(instance) == 0).all(axis=(1, 2)))
    if nothing.size and Rule.SMALLEST_SHARE < placement.rule != Rule.FASTEST:
        raise Unsupported(
            f'user "{instance.users[nothing[0]]}" demands nothing of servers, so "{placement.name}" has nothing to compare them by; '
            'use "first-fit"'
        )
    if cards is None:
        return placement
    if cards >= instance.n_server_resources:
        raise Unsupported(f'cards are in servers, and "{instance.resources[cards]}" is shared by the whole cluster; leave cards out')
    if type(placement).prepare is not Placement.prepare:
        raise Unsupported(f'"{placement.name}" does not support cards; leave cards out')
    name, of_server, of_task = instance.resources[cards], instance.capacities[:, cards], instance.demands_by_kind[:, :, cards]
    odd = np.flatnonzero((of_server != np.round(of_server)) | (of_server > SETTINGS.most_cards))
    if odd.size:
        raise InvalidInstance(
            f'server "{instance.servers[odd[0]]}" has {exactly(of_server[odd[0]])} {name}, and cards are whole, at most '
            f"{SETTINGS.most_cards:,}; leave cards out, and parts of {name} add up"
        )
    parts = np.argwhere((of_task > 1) & (of_task != np.round(of_task)))
    if parts.size:
        raise InvalidInstance(
            f'a task of user "{instance.users[parts[0, 0]]}" asks for {exactly(of_task[tuple(parts[0])])} {name}; '
            "a task takes a part of one card, or whole ones"
        )
    return placement


def place_arrivals(instance: Instance, turns: IntArray, placement: Placement, *, cards: int | None = None, seed: int = 0) -> IntArray:
    """Place one task of each user in ``turns``, in this order; return the single server of each, counted row by row; -1: turned away.

    Parameters
    ----------
    turns : int array (arrivals,)
        The user of each task. The user must have a nonzero demand.
    cards : int, optional
        The resource that comes in cards of capacity 1.
    seed : int
        Seed of the placement `random`.

    >>> from fairopt.solvers.filling.placements import FirstFit
    >>> one_server = Instance([[2.0]], [[0.6], [1.0]])
    >>> place_arrivals(one_server, np.array([0, 0, 0, 1]), FirstFit())
    array([ 0,  0,  0, -1])
    >>> place_arrivals(one_server, np.array([0, 0, 0, 1]), FirstFit(), cards=0)
    array([ 0,  0, -1, -1])
    """
    check_arrivals(instance, placement, cards)
    seen = placement.prepare(instance)
    counts, column = seen.counts.astype(np.int64), slice(None) if seen.demands_by_kind.shape[1] == 1 else seen.kind_of
    row = np.repeat(np.arange(counts.size), counts)
    # Each resource as a fraction of an average server: the result does not depend on units.
    scale = safe_ratio(counts.sum(), counts @ seen.capacities)
    scale[np.isinf(scale)] = 1.0
    asked, left = np.empty((0, 0)), np.empty((0, 0))
    if cards is not None:
        asked = np.ascontiguousarray(instance.demands_by_kind[:, column, cards])
        number = instance.capacities[row, cards]
        left = np.where(np.arange(int(number.max(initial=0)))[None, :] < number[:, None], 1.0, 0.0)
    return np.asarray(
        Steps(arrival_kernel).run(
            "place_in_turn",
            int(getattr(placement, "rule", Rule.FIRST)),
            np.ascontiguousarray(turns, dtype=np.int64),
            row,
            seen.capacities * scale,
            np.ascontiguousarray(_of_servers(seen)[:, column]) * scale,
            seen.eligibility,
            _cost_of_work(seen),
            asked,
            left,
            *_accounts(instance, row.size),
            np.random.default_rng(seed),
            seconds=SETTINGS.seconds_of_arrival * len(turns) * row.size,
        )
    )


def _of_servers(instance: Instance) -> FloatArray:
    """Return what a task takes of the resources of servers, (users, kinds, resources of servers)."""
    return np.asarray(instance.demands_by_kind[:, :, : instance.n_server_resources])


def _cost_of_work(instance: Instance) -> FloatArray:
    """Return the part of the cluster that a unit of work takes, (users, servers); one column of zeros where that is the same everywhere."""
    if not instance.differs_by_server:
        return np.zeros((instance.n_users, 1))
    parts = safe_ratio(instance.demands_by_kind, instance.total_capacity).max(axis=2)[:, instance.kind_of]
    return np.ascontiguousarray(safe_ratio(np.where(instance.eligibility, parts, 0.0), instance.speeds))


def _accounts(instance: Instance, servers: int) -> tuple[IntArray, IntArray, BoolArray, FloatArray, FloatArray]:
    """Return the accounts of the kernel: limits of queues, named limits, and resources of the cluster."""
    rooms, account, by_server, users, amounts = [np.empty(0)], [0], [False], [-1], [np.zeros(instance.n_servers)]
    size = 0

    def add(bound: float, each: FloatArray, rows: BoolArray, single: bool) -> None:
        nonlocal size
        table = np.where(rows, each if each.ndim == 2 else each[:, None], 0.0)
        for n in np.flatnonzero(table.any(axis=1)).tolist():
            account.append(size)
            by_server.append(single)
            users.append(n)
            amounts.append(table[n])
        rooms.append(np.full(servers if single else 1, float(bound) * (1 + FITS)))
        size += rooms[-1].size

    for row in limit_rows(instance):
        if row.selection is None or row.selection.limit.each != "server":
            add(row.bound, row.per_task(instance.kinds), row.servers, False)
    for each in instance.selections:
        if each.limit.each == "server":
            add(each.limit.bound, each.per_task(instance.kinds), each.servers, True)
    for r, amount in enumerate(instance.shared_capacity, instance.n_server_resources):
        add(amount, instance.kinds.per_task(r), np.ones(instance.n_servers, bool), False)
    order = np.argsort(np.array(users), kind="stable")[1:]
    first = np.searchsorted(np.array(users)[order], np.arange(instance.n_users + 1))
    return (
        first.astype(np.int64),
        np.array(account, np.int64)[order],
        np.array(by_server, bool)[order],
        np.array(amounts, float)[order],
        np.concatenate(rooms),
    )
