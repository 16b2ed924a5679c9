"""A grid of instances, seeds, notions and schedules, computed on all cores or a cluster, into one tidy table.

A *cell* of the grid is an instance with a seed, and is computed at once, by `fairopt.compare`: exact allocations are solved once for all
the schedules that are measured against them. An instance may be given, or drawn from the seed by a generator (`fairopt.generators`).
The seed is also that of every schedule which does not name its own. Cells do not depend on who computes them or in which order, so the
table is the same with any number of workers, but for the seconds (and for what a time limit ends).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairopt.errors import NoSolution
from fairopt.models import Sharing
from fairopt.specs import NotionSpec, ScheduleSpec
from fairopt.studies.cell import measure
from fairopt.studies.grid import Grid, Source
from fairopt.studies.store import Store, frame_of, output_file
from fairopt.studies.workers import check_workers, run
from fairopt.wording import plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MEASURES", "study", "summary"]

MEASURES = ("tasks", "efficiency", "price of fairness", "smallest_share", "jain", "envy", "regret level", "regret worst", "seconds")
"""The columns of numbers that every study has, beside the use of each resource."""


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
    grid = Grid(instances, notions, schedules, seeds, {"integral": integral, "sharing": sharing, "time_limit": time_limit})
    path = None if output is None else output_file(Path(output))
    with Store(path) as store:
        store.ask(grid.request(store.request, path), grid.order(store.request))
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

    ``kind`` names all kinds that there are over the seeds; ``seeds`` are those with an allocation, ``failed`` the others. The standard
    error of x, in the column "x error", is the standard deviation over the seeds divided by the root of their number; NaN of one.
    """
    import pandas as pd

    measures = [name for name in frame.columns if name in MEASURES or name.startswith("use of ")]
    groups = frame.groupby(["instance", "entry"], sort=False)
    parts = {
        "kind": groups["kind"].agg(lambda kinds: " or ".join(kinds.unique())),
        "seeds": groups["tasks"].count(),
        "failed": groups["tasks"].apply(lambda tasks: int(tasks.isna().sum())),
    }
    for name in measures:
        parts |= {name: groups[name].mean(), f"{name} error": groups[name].sem()}
    return pd.DataFrame(parts)
