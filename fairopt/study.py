"""A grid of instances, seeds, notions and schedules, computed on all cores or a cluster, into one tidy table.

A *cell* of the grid is an instance with a seed, and is computed at once, by `fairopt.compare`: exact allocations are solved once for all
the schedules that are measured against them. An instance may be given, or drawn from the seed by a generator (`fairopt.generators`).
The seed is also that of every schedule which does not name its own. Cells do not depend on who computes them or in which order, so the
table is the same with any number of workers, but for the seconds (and for what a time limit ends).
"""

from __future__ import annotations

import contextlib
import dataclasses
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
from fairopt.errors import FairoptError, InvalidInstance, NoSolution, Unsupported
from fairopt.instance import Instance
from fairopt.models import Notion, Sharing
from fairopt.specs import NotionSpec, ScheduleSpec, read_generator, read_notion, read_schedule
from fairopt.study_cell import Cell, draw, fingerprint, measure
from fairopt.study_store import Store, frame_of, output_file
from fairopt.study_workers import check_workers, run
from fairopt.wording import plural, some

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MEASURES", "Source", "study", "summary"]

log = logging.getLogger(__name__)

Source: TypeAlias = Instance | str | Callable[[int], Instance]

MEASURES = ("tasks", "efficiency", "price of fairness", "smallest_share", "jain", "envy", "regret level", "regret worst", "seconds")
"""The columns of numbers that every study has, beside the use of each resource."""

_FORMAT = 1  # of the file


def study(
    instances: Mapping[str, Source],
    *,
    notions: Sequence[NotionSpec] = ("drfh",),
    schedules: Sequence[ScheduleSpec] = (),
    seeds: Iterable[int] = range(1),
    integral: bool = False,
    sharing: Sharing | None = None,
    time_limit: float | None = None,
    output: str | os.PathLike[str] | None = None,
    jobs: int = -1,
    backend: str = "loky",
    address: str | None = None,
    done: Callable[[int, int], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> pd.DataFrame:
    """Compute every notion and schedule on every instance with every seed.

    Parameters
    ----------
    instances : mapping
        Names, and of each an Instance, a generator ("google:users=50:servers=100", see `fairopt.generators`) or a function of the seed that
        returns an Instance, the same for the same seed.
    notions, schedules : sequence
        As `fairopt.compare` takes them: "proportional:alpha=2", "drfh:best-fit:metric=l2".
    seeds : iterable of int
        Of each instance; distinct, >= 0.
    integral, sharing, time_limit
        As of `fairopt.compare`: also the best whole tasks, what is divided, seconds for each exact allocation.
    output : path, optional
        A file that ends in .parquet, or a folder, for study.parquet in it. It is written while the study goes on. The same question later
        computes only what is missing; so do more seeds and more instances. Anything else (other notions, an instance that is another
        one, another version of fairopt) is refused, and so is a second study at the same time.
    jobs : int
        Workers; -1 for one on each core. A cluster of Dask uses all that it has.
    backend : {"loky", "threading", "dask", "ray"}
        Processes of this machine, threads, or a cluster, at its ``address`` ("tcp://10.0.0.1:8786"; of this machine, if none is given).
        What a lost worker of a cluster leaves is done by the others.
    done : function of two ints, optional
        Is told how many cells are there, and of how many, at the start and after each.
    stop : function, optional
        Is asked after each cell if that should be the end, as Ctrl-C is: what there is, is written, and `KeyboardInterrupt` raised.

    Returns
    -------
    DataFrame
        A row for each instance, seed and entry, in that order: ``kind`` (exact, greedy); ``tasks``, their number; ``efficiency``, the
        weighted number of tasks as a part of the largest possible, and ``price of fairness``, what is missing to 1 (Bertsimas, Farias and
        Trichakis 2011; of a schedule, of greed and fairness together); ``smallest_share``, of the weighted dominant shares, and ``jain``,
        their index; ``envy``, the largest, in tasks; ``regret level`` and ``regret worst`` ``against`` which notion (`fairopt.regret`);
        ``use of`` each resource; ``seconds``; and a ``message`` where there is no allocation, or something to say of it. What is not
        there is NaN.

    Raises
    ------
    InvalidInstance, Unsupported
        Before anything is computed: an empty grid, notions and schedules that do not exist, a generator that fails on the first seed or
        is not repeatable, an output that is not of this study. (What fails later is a message in its row.)
    SolverUnavailable
        Without the package of the backend.
    NoSolution
        If the workers are lost; what was finished is kept.

    Examples
    --------
    >>> frame = study({"pairs": "kesidis:users=4"}, notions=["drfh", "psdsf"], schedules=["drfh:best-fit"], seeds=range(2), jobs=1)
    >>> print(frame[["instance", "seed", "entry", "kind", "tasks", "efficiency", "regret level"]].round(3).to_string(index=False))
    instance  seed         entry   kind  tasks  efficiency  regret level
       pairs     0          drfh  exact 46.659       0.859           NaN
       pairs     0         psdsf  exact 44.587       0.821           NaN
       pairs     0 drfh:best-fit greedy 45.000       0.829         0.082
       pairs     1          drfh  exact 49.160       0.989           NaN
       pairs     1         psdsf  exact 45.160       0.909           NaN
       pairs     1 drfh:best-fit greedy 48.000       0.966         0.059
    >>> print(summary(frame).reset_index()[["entry", "seeds", "efficiency", "efficiency error"]].round(3).to_string(index=False))
            entry  seeds  efficiency  efficiency error
             drfh      2       0.924             0.065
            psdsf      2       0.865             0.044
    drfh:best-fit      2       0.897             0.068
    """
    check_workers(jobs, backend, address)
    grid = _Grid(instances, notions, schedules, seeds, {"integral": integral, "sharing": sharing, "time_limit": time_limit})
    path = None if output is None else output_file(Path(output))
    with Store(path) as store:
        store.ask(grid.question(store.question, path), grid.order(store.question))
        missing = [cell for cell in grid.cells() if (cell.name, cell.seed) not in store.rows]
        total = len(grid.sources) * len(grid.seeds)

        def tell() -> None:
            if done is not None:
                done(total - len(missing) + computed, total)

        computed = 0
        tell()
        try:
            with contextlib.closing(run(measure, missing, jobs=jobs, backend=backend, address=address)) as results:
                for name, seed, rows in results:
                    if rows is None:
                        raise KeyboardInterrupt
                    store.add((name, seed), rows)
                    computed += 1
                    tell()
                    if stop is not None and stop() and computed < len(missing):
                        raise KeyboardInterrupt
        except (KeyboardInterrupt, NoSolution) as error:  # Ctrl-C may end the workers first
            there = f"{total - len(missing) + computed:,} of {plural(total, 'cell')}"
            hint = "nothing is kept without an output" if path is None else f"{there} are in {path}; the same study again does the rest"
            if isinstance(error, NoSolution) and not (stop is not None and stop()):
                raise NoSolution(f"{error}; {hint}") from error
            raise KeyboardInterrupt(hint) from error
        return frame_of(row for cell in grid.keys for row in sorted(store.rows[cell], key=lambda row: grid.place[row["entry"]]))


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return means over the seeds of each instance and entry, and their standard errors, of a study.

    ``seeds`` are those with an allocation, ``failed`` the others; the standard error of x, in the column "x error", is the standard
    deviation over the seeds divided by the root of their number, NaN of one.
    """
    import pandas as pd

    measures = [*(name for name in frame.columns if name in MEASURES or name.startswith("use of "))]
    groups = frame.groupby(["instance", "entry"], sort=False)
    parts = {
        "kind": groups["kind"].first(),
        "seeds": groups["tasks"].count(),
        "failed": groups["tasks"].apply(lambda x: int(x.isna().sum())),
    }
    for name in measures:
        parts |= {name: groups[name].mean(), f"{name} error": groups[name].sem()}
    return pd.DataFrame(parts)


# What is asked for ---------------------------------------------------------------------------------------------------------------


class _Grid:
    """The grid, made sure of."""

    def __init__(
        self,
        instances: Mapping[str, Source],
        notions: Sequence[NotionSpec],
        schedules: Sequence[ScheduleSpec],
        seeds: Iterable[int],
        options: dict[str, Any],
    ) -> None:
        self.sources = _sources(instances)
        self.seeds = _seeds(seeds)
        self.options = options
        chosen = [read_notion(spec) for spec in ([notions] if isinstance(notions, str) else notions)]
        plans = [read_schedule(spec) for spec in ([schedules] if isinstance(schedules, str) else schedules)]
        self.notions: tuple[Notion, ...] = tuple(notion for _, notion in chosen)
        self.schedules = tuple(plan for _, plan in plans if not isinstance(plan, Allocation))
        if len(self.schedules) < len(plans):
            raise Unsupported('a schedule is an allocation of one instance; give how it was made, such as "drfh:best-fit"')
        self.asked = {name: _described(what) for name, what in (*chosen, *plans)}
        if not self.asked:
            raise Unsupported("there is nothing to compute; give notions, schedules or both")
        if len(self.asked) < len(chosen) + len(plans):
            names = [name for name, _ in (*chosen, *plans)]
            raise Unsupported(
                f'"{next(name for name in names if names.count(name) > 1)}" is there twice; give each notion and schedule once'
            )
        limit = options["time_limit"]
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0):
            raise Unsupported(f"time_limit is {limit!r}; give a number of seconds > 0")
        if options["sharing"] not in (None, "rdm", "tdm"):
            raise Unsupported(f'sharing is {options["sharing"]!r}; give "rdm", "tdm" or None, for what suits each instance')
        self.entries: dict[str, str] = {}
        for name, _ in chosen:
            self.entries |= {name: "exact"} | ({f"{name}, whole tasks": "exact, whole tasks"} if options["integral"] else {})
        self.entries |= {name: "greedy" for name, _ in plans}
        self.place = {name: j for j, name in enumerate(self.entries)}

    @property
    def keys(self) -> list[tuple[str, int]]:
        """Names and seeds of the cells, in the order of the table."""
        return [(name, seed) for name in self.sources for seed in self.seeds]

    def cells(self) -> list[Cell]:
        """What the workers are given."""
        process = os.getpid()
        return [
            Cell(name, seed, self.sources[name], self.entries, self.notions, self.schedules, self.options, process)
            for name, seed in self.keys
        ]

    def order(self, before: Mapping[str, Any] | None) -> list[str]:
        """Names of the instances in the file: those that were there come first."""
        return list(dict.fromkeys([*(before or {}).get("order", ()), *self.sources]))

    def question(self, before: Mapping[str, Any] | None, path: Path | None) -> dict[str, Any]:
        """Return what is asked, together with what was asked before if that agrees, as plain data."""
        old: Mapping[str, Any] = before or {"instances": {}}
        own = {
            "format": _FORMAT,
            "version": importlib.metadata.version("fairopt"),
            "entries": self.asked,
            **self.options,
        }
        found = {name: _probe(name, source, self.seeds[0], old["instances"].get(name)) for name, source in self.sources.items()}
        if before is not None:
            differences = [
                *(_difference(word, old.get(word), value) for word, value in own.items() if old.get(word) != value),
                *(f'"{name}" is another instance' for name in found if name in old["instances"] and old["instances"][name] != found[name]),
            ]
            if differences:
                raise InvalidInstance(
                    f"{path} holds the answers to another question: {'; '.join(differences)}. Ask the same one (more seeds and instances "
                    "may come), or give another output"
                )
        return own | {"instances": {**old["instances"], **found}, "order": self.order(before)}


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


def _seeds(seeds: Iterable[int]) -> list[int]:
    if not isinstance(seeds, Iterable) or isinstance(seeds, str):
        raise Unsupported(f"seeds is {seeds!r}; give several, such as range(20)")
    chosen = list(seeds)
    for seed in chosen:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
            raise Unsupported(f"a seed is {seed!r}; give whole numbers >= 0")
    if not chosen or len(set(chosen)) < len(chosen):
        raise Unsupported(f"seeds are {some([*map(str, chosen)]) or 'none at all'}; give at least one, and each once, such as range(20)")
    return [int(seed) for seed in chosen]


def _probe(name: str, source: Instance | Callable[[int], Instance], seed: int, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what tells the instance from others: of a generator, what it draws from a seed, the same one as before."""
    if isinstance(source, Instance):
        if source.unservable:
            log.warning('of "%s", no server is eligible for %s: no tasks there, and no part in the goal', name, some(source.unservable))
        return {"drawn": None, "fingerprint": fingerprint(source)}
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


def _difference(word: str, old: Any, new: Any) -> str:
    if word != "entries" or not isinstance(old, Mapping):
        return f"{word.replace('_', ' ')} was {old!r} and is {new!r}"
    if old.keys() != new.keys():
        return f"notions and schedules were {', '.join(old)} and are {', '.join(new)}"
    return f"the options of {', '.join(name for name in new if new[name] != old[name])} are others"


def _described(value: Any) -> str:
    """Return a text that is the same for what is computed alike."""

    def plain(value: Any) -> Any:
        if isinstance(value, Notion):
            named: dict[str, Any] = (
                {f.name: getattr(value, f.name) for f in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else {}
            )
            return {"notion": value.name, **named}
        if isinstance(value, np.ndarray | list | tuple):
            array = np.asarray(value)
            return f"array {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"
        return getattr(value, "__qualname__", None) or str(value)

    return json.dumps(value if isinstance(value, Mapping) else plain(value), default=plain, sort_keys=True)
