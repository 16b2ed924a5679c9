"""Who has reason to complain about an allocation, in two sentences each: what is wrong, and why.

A complaint is a guarantee of which something is missing, a user that can run nowhere, less than the slice that is due by weight, or envy.
Whoever asked for an explanation is told as much: what it has, and what stops it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.explaining import explain
from fairopt.analysis.properties.guarantees import held_beyond
from fairopt.errors import FairoptError
from fairopt.reporting.findings import OfNotion
from fairopt.wording import figure, joined, named, plural

__all__ = ["Complaint", "asked", "complaints", "none_of"]

_MOST = 5  # complaints of one kind; the others are counted
_SAME = 1e-7  # relative: less is missing by rounding
_OPEN = "Does not apply: "  # how the statement of a property begins that is not defined here
_TITLES = {"sharing-incentive": "Less than by weight", "envy-freeness": "Envy"}


@dataclass(frozen=True, slots=True)
class Complaint:
    """Whose it is, or what it is about; what is wrong, and why."""

    title: str
    sentences: tuple[str, ...]


def complaints(found: OfNotion) -> list[Complaint]:
    """Return the complaints about the allocation of a notion, broken promises first."""
    allocation = found.allocation
    if allocation is None:
        return []
    kinds = (_guarantees_of_queues(allocation), _guarantees_of_users(allocation), _without_servers(allocation))
    all_of_them = [complaint for kind in kinds for complaint in _at_most(list(kind))]
    return [*all_of_them, *_verdicts(found)]


def asked(found: OfNotion) -> list[Complaint]:
    """Return what is told those who asked for an explanation: what they have, and what stops them."""
    told = ((name, outcome.value) for name, outcome in found.explanations.items())
    return [Complaint(named(name), explanation.brief) for name, explanation in told if explanation is not None]


def none_of(found: OfNotion) -> str:
    """Return the sentence where there is no complaint: which promises the allocation keeps, or why none is judged; "" without a reason."""
    judged = {} if found.audit.value is None else dict(found.audit.value.items())
    kept = {
        "guarantees": "every guarantee is met, as far as its users ask for it",
        "sharing-incentive": "everyone runs at least what its slice by weight could run",
        "envy-freeness": "nobody would run more with what another holds",
    }
    if found.allocation is not None and found.allocation.instance.queues:
        kept |= {
            "sharing-incentive": "every queue and user runs at least what its slice of the queue above it could run",
            "envy-freeness": "nobody would run more with what a sibling, a user or a queue, holds",
        }
    promised = found.allocation is not None and _promises(found.allocation)
    holds = [text for name, text in kept.items() if name in judged and judged[name].holds and (promised or name != "guarantees")]
    if holds:
        return f"Nobody has reason to complain: {joined(holds)}."
    said = judged["envy-freeness"].statement if "envy-freeness" in judged else ""
    why = said.removeprefix(_OPEN).replace("it compares", "slices and envy compare", 1)
    return f"Whether anyone has reason to complain is not judged: {why}" if said.startswith(_OPEN) else ""


def _promises(allocation: Allocation) -> bool:
    """Return whether anybody has a guarantee."""
    return bool(allocation.instance.guarantees.any()) or any(each.guarantees for each in allocation.queue_holdings()[1:])


def _at_most(found: list[Complaint]) -> list[Complaint]:
    rest = found[_MOST:]
    if not rest:
        return found
    more = Complaint(f"{len(rest):,} more", (f"The same is true of {joined([each.title for each in rest], 8)}.",))
    return [*found[:_MOST], more]


def _guarantees_of_queues(allocation: Allocation) -> Iterator[Complaint]:
    for each in allocation.queue_holdings()[1:]:
        for promise in each.guarantees:
            if not promise.met:
                fact = (
                    f"It holds {promise.figure(promise.held)} of the {promise.figure(promise.amount, 6)} {promise.where} that it is "
                    f"guaranteed, and asks for {promise.figure(promise.missing)} more."
                )
                yield Complaint(f"Queue {named(each.name)}", (fact, held_beyond(allocation, each.node, promise)))


def _guarantees_of_users(allocation: Allocation) -> Iterator[Complaint]:
    instance, held = allocation.instance, allocation.tasks_per_user
    short = np.flatnonzero(instance.servable & (instance.guarantees - held > _SAME * instance.guarantees))
    for place, n in enumerate(short):
        fact = f"It runs {figure(held[n])} of the {plural(instance.guarantees[n], 'task')} that it is guaranteed."
        yield Complaint(named(instance.users[n]), (fact, *(_brief(allocation, n)[1:] if place < _MOST else ())))


def _without_servers(allocation: Allocation) -> Iterator[Complaint]:
    for place, name in enumerate(allocation.instance.unservable):
        brief = _brief(allocation, allocation.instance.index(name)) if place < _MOST else ()
        yield Complaint(named(name), brief)


def _brief(allocation: Allocation, user: Any) -> tuple[str, ...]:
    try:
        return explain(allocation, allocation.instance.users[user], resolves=0).brief
    except FairoptError as error:
        return (str(error),)


def _verdicts(found: OfNotion) -> Iterator[Complaint]:
    for name, title in _TITLES.items():
        verdict = None if found.audit.value is None else found.audit.value.get(name)
        if verdict is not None and verdict.holds is False:
            yield Complaint(title, (verdict.statement, "" if verdict.witness is None else verdict.witness.text))
