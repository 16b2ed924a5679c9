"""Guarantees in queues whose own is smaller: a scheduler that grants them only within what the queue above gets scales them down.

Of a resource r, the queues c beside each other in a queue that gets T[r] are entitled to

    E[c,r] = max(g[c,r], t w[c])           "clamp": t such that these add up to T[r]; no larger than the limit
    E[c,r] = g[c,r] + t w[c]               "surplus"

and where all ask for more they get it. If the guarantees in c add up to G > E[c,r], each of them is scaled by E[c,r] / G.

Where they add up to no more than that, but to more than g[c,r], "surplus" would raise the guarantee of c, and so what it gets. Then the
guarantee of each queue d in c becomes E[d,r] - (E[c,r] - g[c,r]) w[d] / (sum of w in c), at least 0: these add up to g[c,r], and d has
E[d,r] as before where all ask for more.

>>> queues = [Queue("p", weight=1), Queue("q", weight=3), Queue("a", "p", guarantee={"cpu": 6}), Queue("b", "p", guarantee={"cpu": 2})]
>>> account = Account(False)
>>> [dict(queue.guarantee) for queue in scaled(queues, {"cpu": 16}, "clamp", "YARN", account)[2:]]
[{'cpu': 3.0}, {'cpu': 1.0}]
>>> account.notes
['YARN grants guarantees of cpu within what the queue above gets: in p, 4 of 8; they are scaled down']
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fairopt.clusters.account import Account
from fairopt.instance.queues import Queue
from fairopt.instance.tolerances import FITS
from fairopt.wording import figure, joined, named

__all__ = ["scaled"]

_MOST = 5  # names in a note


def scaled(queues: Sequence[Queue], total: Mapping[str, float], meaning: str, system: str, account: Account) -> list[Queue]:
    """Return the queues with the guarantees that they are granted, and note those that are scaled down.

    Parameters
    ----------
    total : mapping
        What there is of each resource.
    meaning : str
        "clamp" or "surplus".
    """
    children: dict[str | None, list[Queue]] = {}
    for queue in queues:
        children.setdefault(queue.parent, []).append(queue)
    granted = {queue.name: dict(queue.guarantee) for queue in queues}
    for resource, there in total.items():
        cut: list[str] = []
        moved: list[str] = []

        def divide(
            parent: str | None, amount: float, own: float, resource: str = resource, cut: list[str] = cut, moved: list[str] = moved
        ) -> None:
            """Scale the guarantees in a queue that gets an amount, and then those in its queues."""
            beside = children.get(parent, [])
            together = sum(granted[queue.name].get(resource, 0.0) for queue in beside)
            if parent is not None and together > amount * (1 + FITS):
                cut.append(f"in {named(parent)}, {figure(amount)} of {figure(together)}")
                for queue in beside:
                    if resource in granted[queue.name]:
                        granted[queue.name][resource] *= amount / together
            gets = _entitled(beside, granted, resource, amount, meaning)
            together = sum(granted[queue.name].get(resource, 0.0) for queue in beside)
            if parent is not None and meaning == "surplus" and together > own * (1 + FITS):
                moved.append(f"in {named(parent)}, {figure(together)} of {figure(own)}")
                rise = (amount - own) / sum(queue.weight for queue in beside)
                rest = [max(each - rise * queue.weight, 0.0) for each, queue in zip(gets, beside, strict=True)]
                scale = own / sum(rest) if sum(rest) > own else 1.0
                for queue, least in zip(beside, rest, strict=True):
                    if least or resource in granted[queue.name]:
                        granted[queue.name][resource] = least * scale
            for queue, entitled in zip(beside, gets, strict=True):
                divide(queue.name, entitled, granted[queue.name].get(resource, 0.0))

        divide(None, there, there)
        if cut:
            account.note(
                f"{system} grants guarantees of {resource} within what the queue above gets: {joined(cut, _MOST)}; they are scaled down"
            )
        if moved:
            account.note(
                f"{system} grants guarantees of {resource} that exceed that of the queue above ({joined(moved, _MOST)}) from what it gets "
                "beyond: they are less here, so that it gets no more, and each has the same where all ask for more"
            )
    return [replace(queue, guarantee=granted[queue.name]) for queue in queues]


def _entitled(
    beside: Sequence[Queue], granted: Mapping[str, Mapping[str, float]], resource: str, amount: float, meaning: str
) -> list[float]:
    """Return what queues beside each other get of an amount where all ask for more."""

    own = [granted[queue.name].get(resource, 0.0) for queue in beside]
    most = [queue.limit.get(resource, math.inf) for queue in beside]
    starts = [0.0 if meaning == "surplus" else least / queue.weight for least, queue in zip(own, beside, strict=True)]

    def at(level: float) -> list[float]:
        risen = [least + max(level - start, 0.0) * queue.weight for least, start, queue in zip(own, starts, beside, strict=True)]
        return [min(each, limit) for each, limit in zip(risen, most, strict=True)]

    ends = [start + (limit - least) / queue.weight for start, limit, least, queue in zip(starts, most, own, beside, strict=True)]
    level = max((each for each in (0.0, *starts, *ends) if math.isfinite(each) and sum(at(each)) <= amount), default=0.0)
    rising = sum(queue.weight for start, end, queue in zip(starts, ends, beside, strict=True) if start <= level < end)
    left = amount - sum(at(level))
    return at(level + left / rising if rising and left > 0 else level)
