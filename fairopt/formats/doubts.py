"""What is implausible in a file: what `fairopt.instance.doubts` finds in the instance, and what only the file shows.

* *A last row that equals the sums* of the rows before it, of servers (with or without their counts) or of users, in all resources: its name
  says that it is a total (tables refuse most such names), or the rows before it are not all multiples of one shape (as 1, 2 and 3 nodes of
  one kind are).
* *A requirement that no server meets*, with the values that there are.
* *A column of a table of servers that holds numbers and that no user demands*: it is read as an attribute. If some user's ``requires``, or
  ``on`` of a quota, asks for it, it is meant to be one.
* *A tier of 0 that is written* below a queue of another tier, in YAML or JSON: 0 means the tier of the queue above.

>>> from fairopt.formats.syntax import Parsed
>>> lab = Parsed("lab.yaml", "servers: [{name: s, capacity: {gpu: 8}, attributes: {model: T4}}]\\n"
...     "users: [{name: nlp, demand: {gpu: 1}, requires: model = A10O}, {name: chem, demand: {gpu: 1}}]")
>>> from fairopt.formats.document import instance_from
>>> list(doubts_in(lab, instance_from(lab)))
['no server has model A10O, which nlp requires; there is T4']
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from fairopt.formats.changes import Changed, weights_without_effect
from fairopt.formats.document import instance_from
from fairopt.formats.messages import Source
from fairopt.instance import FloatArray, Instance
from fairopt.instance.doubts import doubts
from fairopt.instance.requirements import Attributes, Clause, parse
from fairopt.instance.tolerances import NOTHING
from fairopt.wording import joined, named

__all__ = ["doubts_in", "read_and_doubt"]

_MOST = 5  # names in a list
_REQUIREMENTS = 3  # that are explained one by one
_ROWS = 1000  # before the last one, that are compared in shape
_TOTAL = re.compile(
    r"\W*(grand |sub)?(total|totals|sum|sums|all|together|overall|summe|gesamt|insgesamt|somme|suma|totale)\W*", re.IGNORECASE
)

log = logging.getLogger("fairopt.formats")


def read_and_doubt(source: Source) -> Instance:
    """Return the instance that a document describes, and log what is implausible in it as warnings.

    Raises
    ------
    InvalidInstance
    """
    instance = instance_from(source)
    for sentence in doubts_in(source, instance):
        log.warning("%s", sentence)
    return instance


def doubts_in(source: Source, instance: Instance) -> Iterator[str]:
    """Yield what is implausible in a document and its instance, a sentence for each kind."""
    yield from getattr(source, "doubts", ())  # of tables
    yield from _totals(source, instance)
    yield from _unmet(source, instance)
    yield from _tiers_of_0(source)
    changed: set[str] = set()  # users and queues whose weight is changed to no effect
    if isinstance(source, Changed):
        for who, sentence in weights_without_effect(source, instance):
            changed.add(who)
            yield sentence
    yield from doubts(instance, changed)


# A row of sums -------------------------------------------------------------------------------------------------------------------


def _totals(source: Source, instance: Instance) -> Iterator[str]:
    counts, tasks = instance.counts, np.where(np.isfinite(instance.tasks), instance.tasks, 1.0)
    for kind, names, amounts, numbers in (
        ("servers", instance.servers, instance.capacities, counts),
        ("users", instance.users, instance.demands_by_kind.reshape(instance.n_users, -1), tasks),
    ):
        last = len(names) - 1
        if last >= 1 and _is_sum(names[last], amounts, numbers):
            yield (
                f"{source.place((kind, last))}: the last of the {kind}, {named(names[last])}, has the sums of the others; "
                "is it a total? Remove it then"
            )


def _is_sum(name: str, amounts: FloatArray, numbers: FloatArray) -> bool:
    """Is the last row the sum of the others, each of them once or as often as its number says?

    If its name says so, its number may multiply it, too. If not, rows that are all multiples of one shape prove nothing.
    """
    before, last = amounts[:-1], amounts[-1]
    named_so = _TOTAL.fullmatch(name) is not None
    if not last.any() or not (named_so or np.linalg.matrix_rank(before[-_ROWS:]) > 1):
        return False
    sums = (before.sum(axis=0), numbers[:-1] @ before)
    return any(np.allclose(row, total, rtol=NOTHING, atol=0) for row in (last, last * numbers[-1])[: 1 + named_so] for total in sums)


# Tiers ---------------------------------------------------------------------------------------------------------------------------


def _tiers_of_0(source: Source) -> Iterator[str]:
    """Yield the queues whose tier is written as 0 and is not 0, because that of a queue above them counts."""
    data: Any = source.data
    queues = {queue["name"]: queue for queue in data.get("queues") or ()}
    found: dict[int, list[str]] = {}
    for k, (name, queue) in enumerate(queues.items()):
        above = queue
        while (parent := above.get("parent")) in queues and not above.get("tier"):
            above = queues[parent]
        if queue.get("tier") == 0 and (tier := above.get("tier")) and source.literal(("queues", k, "tier")) is not None:
            found.setdefault(tier, []).append(name)
    for tier, names in found.items():
        who = joined([named(name) for name in names], _MOST)
        yield (
            f"the tier 0 of {who} counts for nothing: below a queue of the tier {tier:g} it means {tier:g}; "
            "give all queues other tiers where it is meant to come later or earlier"
        )


# Requirements --------------------------------------------------------------------------------------------------------------------


def _unmet(source: Source, instance: Instance) -> Iterator[str]:
    """Yield what users require of servers and no server has."""
    data: Any = source.data
    asked: dict[str, list[str]] = {}
    for user in data["users"]:
        if user.get("requires"):
            asked.setdefault(user["requires"], []).append(user["name"])
    if not asked:
        return
    attributes = Attributes([server.get("attributes") or {} for server in data.get("servers") or [{}]])
    unmet = {requires: users for requires, users in asked.items() if not attributes.where(requires).any()}
    for requires, users in list(unmet.items())[:_REQUIREMENTS]:
        verb = "requires" if len(users) == 1 else "require"
        who = f"{joined([named(user) for user in users], _MOST)} {verb}"
        alone = [clause for clause in parse(requires) if not attributes.meets(clause).any()]
        if alone:
            values = joined([named(value) for value in attributes.values(alone[0].attribute)], _MOST)
            one = len(attributes.values(alone[0].attribute)) == 1
            yield f"no server has {_words(alone[0])}, which {who}; there {'is' if one else 'are'} {values}"
        else:
            yield f'no server meets all of "{requires.strip()}", which {who}'
    if len(unmet) > _REQUIREMENTS:
        yield f"no server meets {len(unmet) - _REQUIREMENTS:,} more requirements of users"


def _words(clause: Clause) -> str:
    """Return a clause as the object of "no server has"."""
    values = " or ".join(named(value) for value in clause.values)
    if clause.operator in ("=", "in"):
        return f"{clause.attribute} {values}"
    if clause.operator in ("!=", "not in"):
        return f"{clause.attribute} other than {values}"
    return f"{clause.attribute} {clause.operator} {values}"
