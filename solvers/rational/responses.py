r"""The best response of one server in rationals: it fills its resources, the lowest shares first, given the tasks on other servers.

A user n with e[n] tasks on other servers begins at the share s[n] = u[n] e[n] / weights[n]. The level rises from the lowest share. Users
whose share it reaches run tasks here, so that their shares rise with it, until a resource that they use is full, or they run all their
tasks. Users whose share it does not reach before a resource of theirs is full run nothing here. The response also says exactly which limit
stops each user, however little two shares, or two resources, differ.

At an equilibrium of servers no response changes anything (Khamse-Ashari et al. 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flint import fmpq

__all__ = ["Response", "respond"]


@dataclass(frozen=True, slots=True)
class Response:
    """Tasks of the pairs of a server, and the limit that stops each: -1 for a user that runs all its tasks."""

    tasks: dict[int, fmpq]
    stop: dict[int, int]


def respond(
    pairs: Sequence[int],
    measure: dict[int, fmpq],
    elsewhere: dict[int, fmpq],
    left: dict[int, fmpq | None],
    limits: dict[int, tuple[dict[int, fmpq], fmpq]],
) -> Response:
    """Return the leximin of the shares measure[p] (elsewhere[p] + x[p]) over the pairs of one server.

    Parameters
    ----------
    pairs : sequence
        One for each user, each in a limit or with ``left``.
    elsewhere, left : dicts by pair
        Tasks that the user runs on other servers, and the tasks that it has left; None: no task limit.
    limits : dict from a limit to its row, {pair: a > 0}, and its bound

    >>> one, two = fmpq(1), fmpq(2)
    >>> found = respond([0, 1], {0: one, 1: one}, {0: fmpq(0), 1: one}, {0: None, 1: None}, {7: ({0: one, 1: one}, two)})
    >>> found.tasks, found.stop
    ({0: 3/2, 1: 1/2}, {0: 7, 1: 7})
    """
    start = {p: measure[p] * elsewhere[p] for p in pairs}
    tasks = {p: fmpq(0) for p in pairs}
    free = {j: bound for j, (_, bound) in limits.items()}
    stop = {p: -1 for p, most in left.items() if most is not None and most <= 0}
    _freeze(stop, free, limits)
    level = min((start[p] for p in pairs if p not in stop), default=fmpq(0))
    while len(stop) < len(pairs):
        rising = [p for p in pairs if p not in stop and start[p] <= level]
        steps = [start[p] - level for p in pairs if p not in stop and start[p] > level]
        for p in rising:
            most = left[p]
            if most is not None:
                steps.append((most - tasks[p]) * measure[p])
        use = {j: sum((row[p] / measure[p] for p in rising if p in row), fmpq(0)) for j, (row, _) in limits.items()}
        steps += [free[j] / each for j, each in use.items() if each > 0]
        step = min(steps)
        level += step
        for p in rising:
            tasks[p] += step / measure[p]
            if tasks[p] == left[p]:
                stop[p] = -1
        for j, each in use.items():
            free[j] -= each * step
        _freeze(stop, free, limits)
    return Response(tasks, stop)


def _freeze(stop: dict[int, int], free: dict[int, fmpq], limits: dict[int, tuple[dict[int, fmpq], fmpq]]) -> None:
    """Stop the pairs that use a full limit."""
    for j, (row, _) in limits.items():
        if free[j] <= 0:
            for p in row:
                stop.setdefault(p, j)
