"""Best responses of servers in turn, in rationals: they find which limit stops each pair.

Each response is exact (`fairopt.solvers.rational.responses`). Near an equilibrium, a sweep over all servers is an affine map as long as the
same limits stop the same pairs, so its changes shrink by a constant ratio, and their sum is a geometric series. If the ratio is 1, each
sweep moves the same tasks from server to server until a pair holds none.
"""

from __future__ import annotations

from flint import fmpq

from fairopt.solvers.rational.responses import respond
from fairopt.solvers.rational.servers import Servers

__all__ = ["Stops", "ahead", "groups_of", "shortened", "swept"]

_STEADY = fmpq(1, 1000)  # relative deviation of changes up to which their ratio counts as constant
_MOST_BITS = 4000  # of a denominator between sweeps

Stops = tuple[frozenset[int], frozenset[int], tuple[int, ...]]
"""Pairs that hold something, users that have all their tasks, and the limit that stops each pair (-1: its user has all its tasks)."""


def ahead(x: list[fmpq], before: list[fmpq], drift: list[fmpq]) -> list[fmpq]:
    """Return the limit of sweeps whose changes shrink by a constant ratio, or the point at which a pair first becomes empty.

    If the ratio is not constant, return x.
    """
    square = sum((value * value for value in before), fmpq(0))
    part = sum((new * old for new, old in zip(drift, before, strict=True)), fmpq(0)) / square if square else fmpq(0)
    size = max((abs(value) for value in drift), default=fmpq(0))
    if part <= 0 or any(abs(new - part * old) > _STEADY * size for old, new in zip(before, drift, strict=True)):
        return x
    lengths = [value / -change for value, change in zip(x, drift, strict=True) if change < 0]
    if part < 1 - _STEADY:
        lengths.append(part / (1 - part))
    if not lengths:
        return x
    return [max(value + min(lengths) * change, fmpq(0)) for value, change in zip(x, drift, strict=True)]


def groups_of(servers: Servers) -> list[tuple[list[int], list[int]]]:
    """Return the pairs and the limits of each server."""
    group = list(range(len(servers.user)))
    for row in servers.limits:
        members = {group[p] for p in row}
        least = min(members)
        group = [least if g in members else g for g in group]
    return [
        ([p for p, g in enumerate(group) if g == each], [j for j, row in enumerate(servers.limits) if each in {group[p] for p in row}])
        for each in sorted(set(group))
    ]


def swept(servers: Servers, groups: list[tuple[list[int], list[int]]], x: list[fmpq]) -> tuple[Stops, list[fmpq]]:
    """Let all servers respond in turn; return the limit that stopped each pair last, and the tasks."""
    x = list(x)
    total = [fmpq(0)] * len(servers.tasks)
    for n, value in zip(servers.user, x, strict=True):
        total[n] += value
    stop = [-1] * len(x)
    for pairs, limits in groups:
        elsewhere = {p: total[servers.user[p]] - x[p] for p in pairs}
        most = {p: servers.tasks[servers.user[p]] for p in pairs}
        response = respond(
            pairs,
            {p: servers.measure[p] for p in pairs},
            elsewhere,
            {p: None if limit is None else limit - elsewhere[p] for p, limit in most.items()},
            {j: (servers.limits[j], servers.bounds[j]) for j in limits},
        )
        for p, value in response.tasks.items():
            total[servers.user[p]] += value - x[p]
            x[p], stop[p] = value, response.stop[p]
    complete = frozenset(n for n, most_of in enumerate(servers.tasks) if most_of is not None and total[n] >= most_of)
    uses = servers.limits_of_pairs()
    stops = tuple(-1 if servers.user[p] in complete else j if j >= 0 else uses[p][0] for p, j in enumerate(stop))
    return (frozenset(p for p, value in enumerate(x) if value > 0), complete, stops), x


def shortened(value: fmpq) -> fmpq:
    """Return a number with no more digits than are needed to tell near ties."""
    if int(value.q).bit_length() <= _MOST_BITS:
        return value
    scale = fmpq(2) ** _MOST_BITS
    return fmpq((value * scale).floor()) / scale
