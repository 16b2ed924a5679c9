"""Studies: a grid of instances, seeds, notions and schedules, computed on all cores or a cluster, as one tidy table.

A *cell* of the grid is an instance with a seed. `fairopt.compare` computes a cell at once, so each exact allocation is solved once for all
schedules that are measured against it. An instance may be given, or a generator may draw it from the seed (`fairopt.generators`). The seed
is also the seed of every schedule without a seed of its own. Cells do not depend on the worker or on the order, so the table is the same
with any number of workers. Only the seconds differ, and results that a time limit ends.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairopt.errors import NoSolution
from fairopt.models import Sharing
from fairopt.processes.crew import check_workers, run
from fairopt.specs import NotionSpec, ScheduleSpec
from fairopt.studies.grid import Grid, Source
from fairopt.studies.parts import PartLike
from fairopt.studies.rows import MEASURES
from fairopt.studies.store import Store, output_file
from fairopt.wording import plural

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)
_MOMENT = 1.0  # seconds

__all__ = ["MEASURES", "study", "summary"]


def study(
    instances: Mapping[str, Source],
    *,
    notions: Sequence[NotionSpec] = ("drfh",),
    schedules: Sequence[ScheduleSpec] = (),
    seeds: Iterable[int] = range(1),
    integral: bool = False,
    sharing: Sharing | None = None,
    time_limit: float | None = None,
    part: PartLike = None,
    resume: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    workers: int = -1,
    jobs: int | None = None,
    backend: str = "loky",
    address: str | None = None,
    done: Callable[[int, int], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> pd.DataFrame:
    """Compute every notion and schedule on every instance with every seed.

    Parameters
    ----------
    instances : mapping
        For each name an Instance, a generator ("google:users=50:servers=100", see `fairopt.generators`), or a function of the seed. The
        function must return an equal Instance for an equal seed.
    notions, schedules : sequence
        As in `fairopt.compare`: "proportional:alpha=2", "drfh:best-fit:metric=l2".
    seeds : iterable of int
        Seeds of each instance; distinct, >= 0.
    integral, sharing, time_limit
        As in `fairopt.compare`: whether to solve for whole tasks too, the sharing of servers, and the seconds for each exact allocation.
    part : str or pair of int, optional
        "3/40" or (3, 40): only the cells of the third of 40 parts, as one task of a job array computes them, in a file of its own.
        `fairopt.merge_studies` joins the files.
    resume : path, optional
        A folder that shall hold study.parquet, or a file that ends in .parquet. The file is written while the study runs. The same study
        later computes only missing cells, also with more seeds or more instances. Any other request (other notions, a changed instance,
        another version of fairopt) is refused, and so is a second study at the same time.
    workers : int
        Number of workers; -1: one worker on each core. Of a cluster at an address: the most cells at once; -1: as many as it can.
    backend : {"loky", "threading", "dask", "ray"}
        Processes of this machine, threads, or a cluster at its ``address`` ("tcp://10.0.0.1:8786"; default: of Ray the one that the
        environment variable RAY_ADDRESS names, else one on this machine). If a worker is lost, others compute its cells. A cell that ends
        its worker twice, the second time alone, is a row with a message.
    output, jobs : optional
        The former names of ``resume`` and ``workers``.
    done : function of two ints, optional
        Called at the start and after each cell, with the number of finished cells and the number of all cells.
    stop : function, optional
        Called after each cell. True ends the study as Ctrl-C does: finished cells are written, and `KeyboardInterrupt` is raised.

    Returns
    -------
    DataFrame
        One row for each instance, seed and entry, in that order. Its columns are

        * ``kind``: exact or greedy;
        * ``tasks``: the number of tasks;
        * ``efficiency``: the weighted number of tasks, as a fraction of the largest possible;
        * ``price of fairness``: 1 - efficiency (Bertsimas, Farias and Trichakis 2011); for a schedule, the loss by greed and by fairness;
        * ``smallest_share``: the smallest weighted dominant share;
        * ``jain``: Jain's index of the weighted dominant shares;
        * ``envy``: the largest envy, in tasks;
        * ``regret level`` and ``regret worst``: the regret ``against`` a notion (`fairopt.regret`);
        * ``use of`` each resource;
        * ``seconds``;
        * ``message``: the reason of a failure, or a note on the allocation.

        Missing numbers are NaN. A warning says how many rows have no allocation, and why the first has none.

    Raises
    ------
    InvalidInstance, Unsupported
        Before the first cell is computed: the grid is empty, a notion or schedule does not exist, a generator fails on the first seed or is
        not repeatable, or the output belongs to another study. (A later failure is a message in its row.)
    SolverUnavailable
        The package of the backend is not installed.
    NoSolution
        The cluster is lost, or has had no worker for an hour. Finished cells are kept.

    Examples
    --------
    >>> frame = study({"pairs": "kesidis:users=4"}, notions=["drfh", "psdsf"], schedules=["drfh:best-fit"], seeds=range(2), workers=1)
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
    workers = workers if jobs is None else jobs
    resume = resume if output is None else output
    check_workers(workers, backend, address)
    grid = Grid(instances, notions, schedules, seeds, {"integral": integral, "sharing": sharing, "time_limit": time_limit}, part)
    path = None if resume is None else output_file(Path(resume))
    with Store(path) as store:
        store.ask(grid.request(store.request, path), grid.order(store.request), grid.kinds)
        keys, cells = grid.keys, grid.cells
        missing = [key for key in keys if key not in store.rows]
        total = len(keys)

        def tell() -> None:
            if done is not None:
                done(total - len(missing) + computed, total)

        computed = 0
        tell()
        try:
            found = run(cells, missing, workers=workers, backend=backend, address=address, lost=cells.lost)
            with contextlib.closing(found) as results:
                for key, rows in results:
                    store.add(key, rows)
                    computed += 1
                    tell()
                    if stop is not None and stop() and computed < len(missing):
                        raise KeyboardInterrupt
        except (KeyboardInterrupt, NoSolution) as error:  # Ctrl-C may end the workers first
            there = f"{total - len(missing) + computed:,} of {plural(total, 'cell')}"
            hint = (
                "nothing is kept without a folder to resume from (resume=, --resume)"
                if path is None
                else f"{there} are in {path}; run the same study again to compute the rest"
            )
            if isinstance(error, NoSolution) and not _asked(stop):
                raise NoSolution(f"{error}; {hint}") from error
            raise KeyboardInterrupt(hint) from error
        frame = store.rows.frame(list(grid.sources), grid.seeds, grid.entries)
        _tell_failures(frame)
        return frame


def _asked(stop: Callable[[], bool] | None) -> bool:
    """Whether the study was asked to stop: a signal to all processes can end the workers a moment before this one hears it."""
    until = time.monotonic() + _MOMENT
    while stop is not None and time.monotonic() < until:
        if stop():
            return True
        time.sleep(_MOMENT / 20)
    return False


def _tell_failures(frame: pd.DataFrame) -> None:
    """Warn of rows without an allocation: how many, and why the first has none."""
    failed = frame[frame["tasks"].isna()]
    if len(failed):
        first = failed.iloc[0]
        log.warning(
            "%s of %s without an allocation; the first: %s, seed %s, %s: %s",
            *(f"{len(failed):,}", plural(len(frame), "row"), first["instance"], first["seed"], first["entry"], first["message"]),
        )


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the means over the seeds, and their standard errors, for each instance and entry of a study.

    ``kind`` names all kinds over the seeds. ``seeds`` counts the seeds with an allocation, ``failed`` the seeds without one. The column
    "x error" is the standard error of x: the standard deviation over the seeds, divided by the square root of their number; NaN for one
    seed.
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
