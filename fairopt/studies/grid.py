"""The grid of a study: validated, split into cells, and compared with the request that an output file answers."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.comparison import BEST_FOUND
from fairopt.errors import FairoptError, InvalidInstance, Unsupported
from fairopt.instance import Instance
from fairopt.models import Notion
from fairopt.registry import contents
from fairopt.specs import NotionSpec, OwnScheduler, ScheduleSpec, kind_of, read_generator, read_notion, read_schedule
from fairopt.studies.cell import Cells, draw, fingerprint
from fairopt.studies.parts import PartLike, cells_of, name_of, numbers_of, part_of, runs_of
from fairopt.studies.rows import MEASURES
from fairopt.validation import check_time_limit, check_whole_number
from fairopt.wording import joined, was_and_is

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Grid", "Source", "difference", "rows_to_come", "seeds_of"]

log = logging.getLogger(__name__)

Source: TypeAlias = Instance | str | Callable[[int], Instance]

_FORMAT = 1  # version of the file format


class Grid:
    """A validated study grid, or a part of it; ``keys`` are the names and seeds of its cells, in the order of the table."""

    def __init__(
        self,
        instances: Mapping[str, Source],
        notions: Sequence[NotionSpec],
        schedules: Sequence[ScheduleSpec],
        seeds: Iterable[int],
        options: dict[str, Any],
        part: PartLike = None,
    ) -> None:
        self.sources = _sources(instances)
        self.seeds = seeds_of(seeds)
        self.options = options
        self.part = part_of(part)
        self.keys = cells_of(list(self.sources), self.seeds, self.part)
        chosen = [read_notion(spec) for spec in ([notions] if isinstance(notions, str) else notions)]
        plans = [read_schedule(spec) for spec in ([schedules] if isinstance(schedules, str) else schedules)]
        self.notions: tuple[Notion, ...] = tuple(notion for _, notion in chosen)
        self.schedules = tuple(plan for _, plan in plans if not isinstance(plan, Allocation))
        if len(self.schedules) < len(plans):
            raise Unsupported('a schedule is an allocation of one instance; give how it was made, such as "drfh:best-fit"')
        self.asked = {name: _described(what) + contents(name) for name, what in (*chosen, *plans)}
        if not self.asked:
            raise Unsupported("there is nothing to compute; give notions, schedules or both")
        if len(self.asked) < len(chosen) + len(plans):
            names = [name for name, _ in (*chosen, *plans)]
            raise Unsupported(
                f'"{next(name for name in names if names.count(name) > 1)}" is there twice; give each notion and schedule once'
            )
        check_time_limit(options["time_limit"])
        if options["sharing"] not in (None, "rdm", "tdm"):
            raise Unsupported(f'sharing is {options["sharing"]!r}; give "rdm", "tdm" or None, for what suits each instance')
        self.entries: dict[str, str] = {}
        for name, _ in chosen:
            self.entries |= {name: "exact"} | ({f"{name}, whole tasks": "exact, whole tasks"} if options["integral"] else {})
        self.entries |= {name: kind_of(plan) for name, plan in plans}

    @property
    def kinds(self) -> dict[str, set[str]]:
        """What the row of each entry may be: its kind, or the best that was found within a time limit."""
        return {name: {kind, BEST_FOUND} for name, kind in self.entries.items()}

    @property
    def cells(self) -> Cells:
        """What computes a cell."""
        return Cells(self.sources, self.entries, self.notions, self.schedules, self.options, os.getpid())

    def order(self, before: Mapping[str, Any] | None) -> list[str]:
        """Names of the instances in the file: the instances of the earlier request come first."""
        return list(dict.fromkeys([*(before or {}).get("order", ()), *self.sources]))

    def request(self, before: Mapping[str, Any] | None, path: Path | None) -> dict[str, Any]:
        """Return the request as plain data, merged with the earlier request of the file if both agree; refuse it otherwise."""
        old: Mapping[str, Any] = before or {"instances": {}}
        own = {
            "format": _FORMAT,
            "version": importlib.metadata.version("fairopt"),
            "entries": self.asked,
            **self.options,
            "part": None if self.part is None else list(self.part),
        }
        found = {name: _probe(name, source, self.seeds[0], old["instances"].get(name)) for name, source in self.sources.items()}
        if before is not None:
            differences = [
                *(difference(word, old.get(word), value) for word, value in own.items() if old.get(word) != value),
                *(f'"{name}" is another instance' for name in found if name in old["instances"] and old["instances"][name] != found[name]),
            ]
            if differences:
                raise InvalidInstance(
                    f"{path} holds the results of another study: {'; '.join(differences)}. Repeat that study (you may add seeds and "
                    "instances), or give another output"
                )
        seeds = dict.fromkeys([*numbers_of(old.get("seeds", ())), *self.seeds])
        return own | {"instances": {**old["instances"], **found}, "order": self.order(before), "seeds": runs_of(seeds)}


def rows_to_come(grid: Grid) -> pd.DataFrame:
    """Return rows as a study will have them, without any number: what can be asked of the table, before anything is computed."""
    import pandas as pd

    things = ["time", *(thing for source in grid.sources.values() for thing in draw(source, grid.seeds[0]).resources)]
    keys = pd.DataFrame([{"instance": name, "seed": seed, "entry": entry} for name, seed in grid.keys for entry in grid.entries])
    return keys.assign(**dict.fromkeys([*MEASURES, *(f"use of {thing}" for thing in things)], np.nan))


def _sources(instances: Mapping[str, Source]) -> dict[str, Instance | Callable[[int], Instance]]:
    if not isinstance(instances, Mapping):
        raise Unsupported(f'instances is {type(instances).__name__}; give a mapping of names, such as {{"cluster": instance}}')
    if not instances:
        raise Unsupported('there are no instances; give a mapping of names, such as {"cluster": instance}')
    sources: dict[str, Instance | Callable[[int], Instance]] = {}
    for name, source in instances.items():
        if not isinstance(name, str) or not name:
            raise Unsupported(f"the name of an instance is {name!r}; give a text")
        chosen = read_generator(source) if isinstance(source, str) else source
        if not isinstance(chosen, Instance) and not callable(chosen):
            raise Unsupported(
                f'the instance "{name}" is {type(source).__name__}; give an Instance, a generator such as "google:users=50", or a function '
                "of the seed"
            )
        sources[name] = chosen
    return sources


def seeds_of(seeds: Iterable[int]) -> list[int]:
    """Return the seeds of a grid; anything else than several that differ is refused."""
    if not isinstance(seeds, Iterable) or isinstance(seeds, str):
        raise Unsupported(f"seeds is {seeds!r}; give several, such as range(20)")
    chosen = list(seeds)
    for seed in chosen:
        check_whole_number("a seed", seed, 0, below=2**63)
    if not chosen or len(set(chosen)) < len(chosen):
        raise Unsupported(
            f"seeds are {joined([*map(str, chosen)], 5) or 'none at all'}; give at least one, and each once, such as range(20)"
        )
    return [int(seed) for seed in chosen]


def _probe(name: str, source: Instance | Callable[[int], Instance], seed: int, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return data that identifies the instance. A generator is identified by the instance that it draws from one seed, kept in the file."""
    if isinstance(source, Instance):
        if source.unservable:
            log.warning('of "%s", %s; users without a server get no tasks and are left out of the goal', name, source.unservable_in_words)
        return {"drawn": None, "fingerprint": fingerprint(draw(source, seed))}
    seed = seed if before is None or before["drawn"] is None else before["drawn"]
    try:
        first, second = (fingerprint(draw(source, seed)) for _ in range(2))
    except FairoptError as error:
        error.args = (f'instance "{name}", seed {seed}: {error}',)
        raise
    except Exception as error:
        raise InvalidInstance(f'the generator of "{name}" failed on seed {seed}: {type(error).__name__}: {error}') from error
    if first != second:
        raise InvalidInstance(
            f'the generator of "{name}" draws another instance from the same seed, {seed}, so nothing could be repeated; draw all numbers '
            "from numpy.random.default_rng(seed)"
        )
    return {"drawn": seed, "fingerprint": first}


def difference(word: str, old: Any, new: Any) -> str:
    """Say in what two requests differ."""
    if word == "part":
        return f"it was {name_of(old)} and is {name_of(new)}"
    if word != "entries" or not isinstance(old, Mapping):
        return was_and_is(word, old, new)
    if old.keys() != new.keys():
        return f"notions and schedules were {', '.join(old)} and are {', '.join(new)}"
    return f"the options of {', '.join(name for name in new if new[name] != old[name])} have changed"


def _described(value: Any) -> str:
    """Return a text that is equal for notions or schedules with equal results."""

    def plain(value: Any) -> Any:
        if isinstance(value, Notion):
            return {"notion": value.name, **value.chosen_options}
        if isinstance(value, OwnScheduler):
            return {"scheduler": value.name, **value.options}
        if isinstance(value, np.ndarray | list | tuple):
            array = np.asarray(value)
            return f"array {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"
        return getattr(value, "__qualname__", None) or str(value)

    return json.dumps(value if isinstance(value, Mapping) else plain(value), default=plain, sort_keys=True)
