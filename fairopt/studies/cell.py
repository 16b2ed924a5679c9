"""One cell of a study: an instance with a seed, all its allocations, and a row of plain numbers for each allocation."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fairopt.analysis.comparing import compare
from fairopt.analysis.comparison import Row
from fairopt.errors import FairoptError, InvalidInstance
from fairopt.instance import Instance
from fairopt.instance.facts import OF_SERVERS, OF_USERS
from fairopt.models import Notion
from fairopt.specs import OwnScheduler

__all__ = ["Cells", "Key", "Rows", "draw", "fingerprint"]


Key: TypeAlias = tuple[str, int]  # of a cell: the name of its instance, and its seed
Rows: TypeAlias = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """What all cells of a study have in common; called with the key of one, it computes its rows, on any worker.

    Attributes
    ----------
    sources : dict
        For each name, an Instance or a function of the seed. The seed is also that of every schedule without a seed of its own.
    entries : dict
        Names of the rows and their kinds, in the order in which `fairopt.compare` returns them.
    notions, schedules : tuple
        Arguments of `fairopt.compare`.
    options : dict
        Further arguments of `fairopt.compare`.
    process : int
        Id of the process that runs the study.
    """

    sources: Mapping[str, Instance | Callable[[int], Instance]]
    entries: Mapping[str, str]
    notions: tuple[Notion, ...]
    schedules: tuple[Mapping[str, Any] | OwnScheduler, ...]
    options: Mapping[str, Any]
    process: int

    def __call__(self, key: Key) -> tuple[Key, Rows]:
        """Return the key of a cell and its rows. A failure is a message in them."""
        name, seed = key
        if os.getpid() != self.process:
            logging.getLogger("fairopt").setLevel(logging.ERROR)  # otherwise each worker prints the warnings of each cell
        try:
            instance = draw(self.sources[name], seed)
            schedules = [plan.seeded(seed) if isinstance(plan, OwnScheduler) else {"seed": seed, **plan} for plan in self.schedules]
            rows = tuple(compare(instance, notions=self.notions, schedules=schedules, **self.options))
        except Exception as error:  # a user's generator may raise anything; other cells must go on
            text = str(error) if isinstance(error, FairoptError) else f"{type(error).__name__}: {error}"
            return self._failed(key, text)
        return self._placed(key, rows)

    def lost(self, key: Key, why: str) -> tuple[Key, Rows]:
        """Return the rows of a cell that has ended its worker, also when it was tried alone."""
        name, seed = key
        text = (
            f'computing "{name}" with seed {seed} ({", ".join(self.entries)}) ended its worker twice, the second time alone: {why}; it may '
            "need more memory than the worker has"
        )
        return self._failed(key, text)

    def _failed(self, key: Key, text: str) -> tuple[Key, Rows]:
        return self._placed(key, [Row(name, kind, text) for name, kind in self.entries.items()])

    def _placed(self, key: Key, rows: Sequence[Row]) -> tuple[Key, Rows]:
        place = {"instance": key[0], "seed": key[1]}
        return key, [place | {"entry": name} | _plain(row) for name, row in zip(self.entries, rows, strict=True)]


def _plain(row: Row) -> dict[str, Any]:
    """Return the numbers of an allocation, named as in `Comparison.to_frame`."""
    own = row.regret
    return {
        "kind": row.kind,
        "tasks": row.tasks,
        **({} if row.allocation is None or row.allocation.instance.speeds_given is None else {"work": row.work}),
        "efficiency": row.efficiency,
        "price of fairness": 1.0 - row.efficiency,
        "smallest_share": row.smallest_share,
        "jain": row.jain,
        "envy": np.nan if row.envy is None else row.envy.tasks,
        "against": "" if own is None else own.notion + (", whole tasks" if own.whole else "") + (", best found" if own.best_found else ""),
        "regret level": np.nan if own is None or own.level is None else own.level,
        "regret worst": np.nan if own is None or own.worst is None else own.worst,
        **{f"use of {thing}": part for thing, part in row.use.items()},
        "seconds": row.seconds,
        "message": "; ".join([text for text in (row.message, row.note) if text] + [str(each) for each in row.violations]),
    }


def draw(source: Instance | Callable[[int], Instance], seed: int) -> Instance:
    """Return the instance; a generator draws it from the seed."""
    instance = source if isinstance(source, Instance) else source(seed)
    if not isinstance(instance, Instance):
        raise InvalidInstance(f"the generator returned {type(instance).__name__}; return a fairopt.Instance")
    return instance


def fingerprint(instance: Instance) -> str:
    """Return a short hash of an instance: 16 digits of the SHA-256 of all numbers and labels, which are all that an answer depends on.

    Units, hosts, attributes and owners are left out: no number depends on them, but on the servers that limits select by attributes.
    """
    digest = hashlib.sha256()
    for name in (field.name for field in dataclasses.fields(instance)):
        value = getattr(instance, name)
        if name in ("placement", "_units", *OF_SERVERS, *OF_USERS) or value is None:  # eligibility already contains the effect of placement
            continue
        if name == "_written":  # numbers that are fractions
            value = tuple((array, [str(number) for number in numbers.ravel()]) for array, numbers in sorted(value.items()))
        if name in ("queues", "limits"):
            value = tuple(each.to_dict() for each in value)
        if name == "selections":  # conditions on attributes select servers
            value = tuple((each.users.tolist(), each.servers.tolist()) for each in value)
        if name == "rules":
            value = tuple(rule.text for rule in value)
        shape = (len(value),) if isinstance(value, tuple) else np.shape(value)
        digest.update(f"{name} {shape} ".encode())
        digest.update(json.dumps(value).encode() if isinstance(value, tuple) else np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()[:16]
