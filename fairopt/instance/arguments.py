"""What an instance checks of its arguments beyond numbers: values by label, places in the tree of queues, and the tree itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fairopt.errors import InvalidInstance
from fairopt.instance.fractions import ExactArray, fractions_of, kept
from fairopt.instance.labelled import changed_rows
from fairopt.instance.queues import Queue, Quota, amounts
from fairopt.instance.tree import Tree
from fairopt.validation import BoolArray, FloatArray, check, numbers
from fairopt.wording import brief, contrast, did_you_mean, joined, plural

__all__ = ["check_queues", "given_by_label", "places_of"]


def given_by_label(what: str, values: Any, default: FloatArray | BoolArray, rows: tuple[str, ...], *more: Any) -> npt.ArrayLike | None:
    """Return an argument; of a mapping by label the array that it stands for."""
    if isinstance(values, Mapping):
        return changed_rows(what, values, default, rows, *more)
    given: npt.ArrayLike | None = values
    return given


def weights_of(weights: npt.ArrayLike | None, users: tuple[str, ...], resources: tuple[str, ...]) -> FloatArray:
    """Return the weights, (users,) or (users, resources); default 1."""
    n, m = len(users), len(resources)
    phi = np.ones(n) if weights is None else numbers(weights, "weights")
    if phi.shape not in ((n,), (n, m)):
        raise InvalidInstance(
            f"the shape of weights is {phi.shape}, expected ({n},), one per user, or ({n}, {m}), one per user and resource"
        )
    positive, rule = (phi >= 0, "finite and >= 0") if phi.ndim == 1 else (phi > 0, "finite and > 0")
    check(phi, np.isfinite(phi) & positive, "weight", rule, users, resources)
    return phi


def counts_of(counts: npt.ArrayLike | None, servers: tuple[str, ...]) -> FloatArray:
    """Return the number of identical servers of each row, (servers,); default 1."""
    k = len(servers)
    number = np.ones(k) if counts is None else numbers(counts, "counts", (k,), "one per server row")
    whole = np.isfinite(number) & (number >= 0) & (number == np.round(number))
    check(number, whole, "count", "a whole number >= 0", servers)
    exact = None if counts is None else kept(counts, number)  # 1 + 10^-30 is whole as a float
    if exact is not None:
        for server, count in zip(servers, exact.tolist(), strict=True):
            if count.denominator != 1:
                raise InvalidInstance(f'the count of "{server}" is {brief(str(count))}; it must be a whole number >= 0')
    return number


def tasks_of(tasks: npt.ArrayLike | None, users: tuple[str, ...]) -> FloatArray:
    """Return the number of tasks of each user, (users,); default inf."""
    n = len(users)
    work = np.full(n, np.inf) if tasks is None else numbers(tasks, "tasks", (n,), "one per user")
    check(work, work >= 0, "number of tasks", ">= 0, or inf for no limit", users)
    return work


def parallelism_of(parallelism: npt.ArrayLike | None, users: tuple[str, ...]) -> FloatArray:
    """Return the largest number of servers that each user is on at once, (users,); default inf."""
    n = len(users)
    at_once = np.full(n, np.inf) if parallelism is None else numbers(parallelism, "parallelism", (n,), "one per user, in servers")
    check(at_once, at_once > 0, "parallelism", "> 0 servers, or inf for no limit", users)
    return at_once


def guarantees_of(guarantees: npt.ArrayLike | None, work: FloatArray, users: tuple[str, ...]) -> FloatArray:
    """Return the tasks that are guaranteed to each user, (users,), at most those that the user has; default 0."""
    n = len(users)
    promised = np.zeros(n) if guarantees is None else numbers(guarantees, "guarantees", (n,), "one per user, in tasks")
    check(promised, np.isfinite(promised) & (promised >= 0), "guarantee", "finite and >= 0", users)
    check(promised, promised <= work, "guarantee", "at most the user's number of tasks", users)
    return promised


def guarantees_within(promised: ExactArray, work: ExactArray, users: tuple[str, ...]) -> None:
    """Refuse a guarantee of more tasks than the user has also where the nearest floats are equal."""
    for user, more, most in zip(users, fractions_of(promised), fractions_of(work), strict=True):
        if more > most:
            value, limit = contrast(more, most)
            raise InvalidInstance(f'guarantee of user "{user}" is {value}, but must be at most the user\'s number of tasks, {limit}')


def rates_of(rates: npt.ArrayLike, users: tuple[str, ...], servers: tuple[str, ...]) -> FloatArray:
    """Return the tasks that a user runs alone on one server of the row, (users, servers)."""
    given = numbers(rates, "rates", (len(users), len(servers)), "(users, servers)")
    check(given, np.isfinite(given) & (given >= 0), "rate", "finite and >= 0", users, servers)
    return given


def refuse_endless(demands: FloatArray, work: FloatArray, users: tuple[str, ...], bounded: BoolArray | None = None) -> None:
    """Refuse a user who demands nothing and has no task limit, unless limits bound it wherever it may run (``bounded``, (users,))."""
    endless = (demands == 0).all(axis=1) & np.isinf(work)
    endless = np.flatnonzero(endless if bounded is None else endless & ~bounded)
    if endless.size:
        raise InvalidInstance(
            f'user "{users[endless[0]]}" demands nothing and has no task limit, so it could run any number of tasks; '
            "give it a demand > 0 for some resource, or a finite number of tasks"
        )


def places_of(queue_of: Sequence[str | None] | None, users: tuple[str, ...]) -> tuple[str | None, ...]:
    """Return the queue that each user is in; None is the root."""
    if queue_of is None:
        return (None,) * len(users)
    if isinstance(queue_of, str) or len(queue_of) != len(users):
        raise InvalidInstance(
            f"queue_of must have one name of a queue, or None, for each of {plural(len(users), 'user')}, got {queue_of!r}"
        )
    return tuple(None if name is None or name != name else name for name in queue_of)


def check_queues(
    queues: tuple[Queue, ...],
    queue_of: tuple[str | None, ...],
    users: tuple[str, ...],
    servers: tuple[str, ...],
    resources: tuple[str, ...],
) -> None:
    """Refuse queues that do not make a tree, and amounts of resources and servers that do not exist."""
    Tree.of(queues, queue_of, users)
    known = set(servers)
    for queue in queues:
        for quota in queue.everywhere_and_on_groups:
            where = f'queue "{queue.name}"' + (f", quota on {quota.name}" if isinstance(quota, Quota) else "")
            for given in (quota.guarantee, quota.limit, quota.lending_limit):
                amounts(given, resources, where, 0.0)
            if isinstance(quota, Quota):
                for server in quota.servers:
                    if server not in known:
                        raise InvalidInstance(
                            f'{where}: there is no server "{server}"{did_you_mean(server, servers)}; there are {joined(servers, 5)}'
                        )
