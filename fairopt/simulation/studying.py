"""A grid of simulations: traces on clusters under schedulers with seeds, on all cores or a cluster of machines, as one tidy table.

A *cell* of the grid is a trace on its cluster, under one scheduler, with a seed. The measures of a cell are those of
`fairopt.compare_over_time`: each needs the exact simulation, which is computed once for all schedulers on a trace. Cells do not depend on
the worker or on the order, so the table is the same with any number of workers.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fairopt.analysis.finish_ratios import columns_of_ratios
from fairopt.errors import FairoptError, InvalidInstance, NoSolution, Unsupported
from fairopt.files.stores import Store
from fairopt.instance import Instance
from fairopt.processes.crew import Crew, check_workers
from fairopt.simulation.courses import Course
from fairopt.simulation.keeping import digest_of
from fairopt.simulation.plans import Asynchronous, scheduler_of
from fairopt.simulation.side_by_side import Asked
from fairopt.simulation.study_parts import PartFile, of_part
from fairopt.specs import OwnScheduler
from fairopt.studies.grid import seeds_of
from fairopt.studies.parts import PartLike, part_of, runs_of
from fairopt.trace import Trace
from fairopt.validation import check_seconds
from fairopt.wording import plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MEASURES", "study_over_time"]

log = logging.getLogger(__name__)

Simulated: TypeAlias = tuple[Trace, Instance] | Callable[[int], tuple[Trace, Instance]]
_Task: TypeAlias = tuple[str, int | None, str]  # a simulation, the seed that draws it (None: it is given), and a scheduler

MEASURES = (
    *("kind", "half_life_s", "jobs", "started", "jobs_ended", "wait_s", "slowdown", "bounded_slowdown", "bounded_slowdown_largest"),
    *("makespan_s", "utilization", "shortfall_h", "regret", "envy_h", "jain", *columns_of_ratios([])),
)
"""Columns of a cell between its place and its message."""

_PLACE = ("simulation", "seed", "scheduler", "message")  # columns of a part


def study_over_time(
    simulations: Mapping[str, Simulated],
    schedulers: Sequence[str],
    *,
    seeds: Iterable[int] = range(1),
    reference: str = "drfh",
    until: float | None = None,
    step: float | None = None,
    part: PartLike = None,
    resume: Path | str | None = None,
    workers: int = -1,
    backend: str = "loky",
    address: str | None = None,
    done: Callable[[int, int], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> pd.DataFrame:
    """Simulate every trace on its cluster under every scheduler with every seed.

    Parameters
    ----------
    simulations : mapping
        For each name a pair (Trace, Instance), or a function of the seed that returns such a pair, equal for an equal seed.
    schedulers : sequence of str
        As `fairopt.simulate` takes them, with their memory: "drfh:best-fit", "fairtree:half_life=7d". A scheduler that takes a seed, and
        has none, gets that of the cell; the others are simulated once for all seeds of a pair that is given.
    seeds : iterable of int
        Distinct, >= 0.
    reference : str
        The exact simulation that shortfalls are measured against.
    until, step : float, optional
        End of the simulations, and time between samples, in seconds, as in `fairopt.compare_over_time`.
    part : str or pair of int, optional
        "3/40" or (3, 40): only the simulations of the third of 40 parts, as one task of a job array computes them. All parts have one
        ``resume``, or ``fairopt study-merge`` joins their folders; then the same study without ``part`` measures what was simulated.
    resume : path, optional
        A folder, made if it is not there, that keeps each simulation as it goes on. The same study later continues from there, also with
        more simulations, schedulers or seeds. Workers must be able to write to it.
    workers, backend, address
        As `fairopt.study` takes them: a worker simulates one scheduler on one trace at a time.
    done : function of two ints, optional
        Called at the start and after each simulation, with the number of finished simulations and the number of all.
    stop : function, optional
        Called from time to time. True ends the study as Ctrl-C does: `KeyboardInterrupt` is raised, and ``resume`` has what was finished.

    Returns
    -------
    DataFrame
        Of a part one row for each of its simulations: the seed that draws it (0 where it is given), the scheduler with its own seed, and a
        message. Else one row for each simulation, seed and scheduler, in that order: the columns of `SideBySide.to_frame`,
        ``bounded_slowdown_largest``, the worst bounded slowdown of a job that ended, and ``message``, the reason of a failure. Missing
        numbers are NaN. A warning says how many cells failed, and why the first did.

    Raises
    ------
    InvalidInstance, Unsupported
        Before anything is simulated: the grid is empty, a scheduler does not exist, the folder cannot be used. (A later failure is a
        message in its row, and other cells go on.)
    SolverUnavailable
        The package of the backend is not installed.
    NoSolution
        The cluster of workers is lost, or has had no worker for an hour.

    Examples
    --------
    >>> import fairopt as fo
    >>> cluster = fo.Instance([[4]], [[1]], users=["nobody"], resources=["cpu"])
    >>> trace = fo.Trace(
    ...     ["A", "A", "B", "B"], [0, 0, 0, 5], [3, 2, 4, 1], [[1]] * 4, [100, 50, 60, 20], resources=["cpu"], gangs=[1, 1, 1, 1])
    >>> large = fo.Instance([[8]], [[1]], users=["nobody"], resources=["cpu"])
    >>> found = study_over_time({"small": (trace, cluster), "large": (trace, large)}, ["fifo", "backfill"], workers=1)
    >>> print(found[["simulation", "seed", "scheduler", "wait_s", "bounded_slowdown_largest"]].round(2).to_string(index=False))
    simulation  seed scheduler  wait_s  bounded_slowdown_largest
         small     0      fifo  113.75                     11.25
         small     0  backfill   62.50                      3.50
         large     0      fifo   23.75                      3.25
         large     0  backfill   12.50                      1.83
    """
    check_workers(workers, backend, address)
    grid = _Grid(_pairs(simulations), _names(schedulers, reference), reference, seeds_of(seeds), until, step, resume)
    for word, value in (("until", until), ("step", step)):
        if value is not None:
            check_seconds(word, value)
    if resume is not None:
        Store(resume)  # a folder that cannot be made is refused now
    tasks = [task for block in grid.blocks() for task in grid.tasks(*block)]
    file = None
    if (chosen := part_of(part)) is not None:
        if resume is None:
            raise Unsupported("nothing would be kept of a part; give resume, a folder")
        tasks = of_part(tasks, chosen)
        file = PartFile(resume, chosen, grid.request(), len(tasks))
    found: dict[_Task, Course | str] = {}
    rows: dict[tuple[str, int], list[dict[str, Any]]] = {}
    finished = 0

    def tell() -> None:
        if done is not None:
            done(finished, len(tasks))

    tell()
    try:
        with Crew(workers, backend, address) as crew:
            simulated = partial(grid.simulated, stopped=stop) if crew.alone else grid.simulated
            with contextlib.closing(crew.each(simulated, tasks, _lost)) as results:
                for position, result in results:
                    found[tasks[position]] = result
                    finished += 1
                    tell()
                    if stop is not None and stop() and (finished < len(tasks) or _is_cut(result)):
                        raise KeyboardInterrupt
                    if file is not None:
                        file.add(_called(tasks[position]))
                        continue
                    block = tasks[position][:2]
                    if all(task in found for task in grid.tasks(*block)):
                        rows |= grid.rows(block, {task[2]: found.pop(task) for task in grid.tasks(*block)})
    except (KeyboardInterrupt, NoSolution) as error:  # Ctrl-C may end the workers first
        hint = (
            "nothing is kept without a folder to resume from (resume=, --resume)"
            if resume is None
            else f"{resume} has what was simulated; run the same study again to simulate the rest"
        )
        if isinstance(error, NoSolution) and not (stop is not None and stop()):
            raise NoSolution(f"{error}; {hint}") from error
        raise KeyboardInterrupt(hint) from error
    if file is not None:
        file.write()
        of_tasks = [(task, found[task]) for task in tasks]
        messages = [(name, drawn or 0, spec, each if isinstance(each, str) else "") for (name, drawn, spec), each in of_tasks]
        return _frame([dict(zip(_PLACE, each, strict=True)) for each in messages], _PLACE)
    return _frame([row for name in grid.simulations for seed in grid.seeds for row in rows[name, seed]])


@dataclass(frozen=True, slots=True)
class _Grid:
    """What is asked; it travels to workers, which simulate one task at a time."""

    simulations: Mapping[str, Simulated]
    schedulers: tuple[str, ...]
    reference: str
    seeds: list[int]
    until: float | None
    step: float | None
    resume: Path | str | None

    def blocks(self) -> Iterator[tuple[str, int | None]]:
        """Yield each trace on its cluster: a name, and the seed that draws it, None if it is given."""
        for name, source in self.simulations.items():
            yield from ((name, seed) for seed in (self.seeds if callable(source) else [None]))

    def tasks(self, name: str, drawn: int | None) -> list[_Task]:
        """Return what is simulated of a block, each once, the exact simulation first."""
        seeds = self.seeds if drawn is None else [drawn]
        words = [_seeded(spec, seed) for spec in (self.reference, *self.schedulers) for seed in seeds]
        return [(name, drawn, word) for word in dict.fromkeys(words)]

    def request(self) -> dict[str, Any]:
        """Return what is asked, as plain data; of what a function draws, its name."""
        given = {name: None if callable(source) else digest_of(*source) for name, source in self.simulations.items()}
        words = {"schedulers": list(self.schedulers), "reference": self.reference, "seeds": runs_of(sorted(self.seeds))}
        return {"simulations": given} | words | {"until": self.until, "step": self.step}

    def asked(self, name: str, drawn: int | None, *, kept: bool = True) -> Asked:
        """Return the question of a block; ``kept``: with the folder that keeps its simulations, if there is one."""
        source = self.simulations[name]
        trace, cluster = _pair(name, source(0 if drawn is None else drawn) if callable(source) else source)
        folder = Path(self.resume) / digest_of(name, drawn, trace, cluster) if kept and self.resume is not None else None
        return Asked.of(trace, cluster, until=self.until, step=self.step, resume=folder)

    def simulated(self, task: _Task, stopped: Callable[[], bool] | None = None) -> Course | str:
        """Return what a scheduler makes of a trace, or why it failed."""
        name, drawn, spec = task
        try:
            return self.asked(name, drawn).course(spec, stopped=stopped)
        except FairoptError as error:
            return str(error)
        except Exception as error:  # a function of the user may raise anything; other cells must go on
            return f"{type(error).__name__}: {error}"

    def rows(self, block: tuple[str, int | None], found: Mapping[str, Course | str]) -> dict[tuple[str, int], list[dict[str, Any]]]:
        """Return the rows of a block, by its name and each seed."""
        name, drawn = block
        asked = self.asked(*block, kept=False) if any(isinstance(each, Course) for each in found.values()) else None
        rows: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for seed in self.seeds if drawn is None else [drawn]:
            exact = found[_seeded(self.reference, seed)]
            of_seed = {spec: found[_seeded(spec, seed)] for spec in self.schedulers}
            measured = {} if asked is None or isinstance(exact, str) else _measured(asked, of_seed, exact)
            rows[name, seed] = [
                {"simulation": name, "seed": seed, "scheduler": spec} | (measured.get(spec) or {"message": _why(course, exact)})
                for spec, course in of_seed.items()
            ]
        return rows


def _measured(asked: Asked, found: Mapping[str, Course | str], exact: Course) -> dict[str, dict[str, Any]]:
    """Return the measures of the schedulers that have not failed."""
    courses = {spec: course for spec, course in found.items() if isinstance(course, Course)}
    side = asked.side_by_side(list(courses.values()), exact)
    measured: dict[str, dict[str, Any]] = {}
    for (spec, course), row in zip(courses.items(), side.to_frame().to_dict("records"), strict=True):
        bounded = side.slowdowns(course)[1]
        largest = float(np.nanmax(bounded)) if np.isfinite(bounded).any() else np.nan
        measured[spec] = {**{str(word): value for word, value in row.items()}, "bounded_slowdown_largest": largest, "message": ""}
    return measured


def _why(course: Course | str, exact: Course | str) -> str:
    """Return why a cell has no measures."""
    return course if isinstance(course, str) else f"the exact simulation, which it is measured against: {exact}"


def _seeded(spec: str, seed: int) -> str:
    """Return a scheduler with this seed, if it takes one that is not chosen yet.

    >>> [_seeded(spec, 3) for spec in ("drfh:random", "drfh:random:seed=1", "psdsf:period=1", "fifo", "drfh")]
    ['drfh:random:seed=3', 'drfh:random:seed=1', 'psdsf:period=1:seed=3', 'fifo', 'drfh']
    """
    _, plan = scheduler_of(spec)
    takes = plan.seeded(seed) is not plan if isinstance(plan, OwnScheduler) else isinstance(plan, dict | Asynchronous)
    return f"{spec}:seed={seed}" if takes and ":seed=" not in spec else spec


def _pairs(simulations: Mapping[str, Simulated]) -> dict[str, Simulated]:
    """Return the simulations, if they are pairs or functions."""
    if not isinstance(simulations, Mapping) or not simulations:
        raise Unsupported('there is nothing to simulate; give a mapping of names to pairs, such as {"lab": (trace, cluster)}')
    return {name: source if callable(source) else _pair(name, source) for name, source in simulations.items()}


def _pair(name: str, pair: Any) -> tuple[Trace, Instance]:
    """Return a trace and its cluster, if it is these two."""
    if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], Trace) and isinstance(pair[1], Instance):
        return pair
    raise InvalidInstance(f'simulation "{name}" is {type(pair).__name__}; give a pair (fairopt.Trace, fairopt.Instance)')


def _names(schedulers: Sequence[str], reference: str) -> tuple[str, ...]:
    """Return the schedulers, if each exists and is there once."""
    given = [schedulers] if isinstance(schedulers, str) else list(schedulers)
    if not given:
        raise Unsupported('no scheduler is given; name some, such as "drfh:best-fit" and "backfill"')
    for spec in [*given, reference]:
        if not isinstance(spec, str):
            raise Unsupported(f'the scheduler {spec!r} is no name; give names, such as "drfh:best-fit", or "mine.py:in_turn" for your own')
        scheduler_of(spec)
    if twice := next((spec for k, spec in enumerate(given) if spec in given[:k]), None):
        raise Unsupported(f'the scheduler "{twice}" is there twice; name each once')
    return tuple(given)


def _lost(task: _Task, why: str) -> str:
    """Return the message of a simulation that has ended its worker, also when it was tried alone."""
    name, drawn, spec = task
    seed = "" if drawn is None else f" with seed {drawn}"
    return (
        f'simulating "{name}"{seed} under {spec} ended its worker twice, the second time alone: {why}; it may need more memory than the '
        "worker has"
    )


def _called(task: _Task) -> str:
    """Return the name of a simulation."""
    name, drawn, spec = task
    return f"{name}, {spec}" if drawn is None else f"{name}, seed {drawn}, {spec}"


def _is_cut(result: Course | str) -> bool:
    """Say whether a simulation was stopped before its end."""
    return isinstance(result, Course) and not result.complete


def _frame(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ("simulation", "seed", "scheduler", *MEASURES, "message")
) -> pd.DataFrame:
    """Return the table, with a warning of the cells that failed."""
    import pandas as pd

    frame = pd.DataFrame(rows, columns=list(columns))
    failed = frame[frame["message"].ne("")]
    if len(failed):
        first = failed.iloc[0]
        log.warning(
            "%s of %s failed; the first: %s, seed %s, %s: %s",
            *(f"{len(failed):,}", plural(len(frame), "cell"), first["simulation"], first["seed"], first["scheduler"], first["message"]),
        )
    return frame
