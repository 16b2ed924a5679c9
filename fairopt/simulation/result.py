"""The result of a simulation: jobs, users, and samples of the running and waiting tasks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairopt.allocation.holdings import tree_order
from fairopt.analysis.finish_ratios import columns_of_ratios
from fairopt.errors import Unsupported
from fairopt.files import write_files
from fairopt.formats.results import KINDS, rendered
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.tree import Tree
from fairopt.show.drawing import ShowsItself, draw
from fairopt.show.equality import ComparesItself
from fairopt.simulation.finish_ratios import ratios_by_user, ratios_of, summary_of_ratios
from fairopt.simulation.records import one_scheduler
from fairopt.simulation.series import Series
from fairopt.trace import Trace
from fairopt.wording import did_you_mean, percent, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Simulation"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Simulation(ComparesItself, ShowsItself):
    """A trace on a cluster under a scheduler.

    Attributes
    ----------
    trace : Trace
    cluster : Instance
    scheduler : str
    kind : str
        "greedy": whole tasks. "exact, fluid": divided tasks, which no scheduler can reach. "asynchronous, fluid": divided tasks, allocated
        by servers that each act alone; not exact.
    users : tuple of str
    weights : array (users,)
    until : float
        Time up to which the simulation ran, in seconds; inf if everything ended that can end.
    complete : bool
        False if the simulation was stopped early.
    series : Series
        Samples: ``times``, ``utilization``, ``row_utilization``, ``dominant_shares``, ``running``, ``waiting``.
    started, finished : array (jobs,)
        Start of the first task and end of the last task of each job, in seconds; nan: not by ``until``.
    ended : array (jobs,)
        Number of tasks that ended. In a fluid simulation: the completed fraction of the work, times the number of tasks.
    fits_nowhere : tuple of str
        Jobs that are never started: the scheduler finds no server that can hold one of their tasks.
    task_start, task_server : array (tasks,) or None
        Whole tasks only: the start of each task (nan: not by ``until``) and its single server, counted row by row (-1: none).
    regret : pandas.DataFrame or None
        If requested, at some times: how far the running tasks are from the exact allocation of that moment (`fairopt.regret`). For
        asynchronous servers, at each sample: ``distance``, the largest relative difference of a stream's tasks, and ``condition``, the
        largest violation of the condition that characterizes PS-DSF, which is 0 for every PS-DSF allocation.
    settling : pandas.DataFrame or None
        Asynchronous servers only, for each change of the exact allocation: ``time_s``, ``until_s`` (the next change), the ``distance`` at
        ``time_s``, and the number of periods until distance and condition are within 1e-3 and 1e-6 and stay there; nan: not before the next
        change.
    mean_utilization : dict
        Fraction of each resource in use, by name: the average over time of the samples.
    details : dict
        Fluid simulations: ``solved``, the number of exact allocations computed, and ``residual``, the worst residual of their certificates.
        Asynchronous servers also have ``period``, ``phases``, ``seed``, ``sharing``, and ``actions``, the number of actions of all servers.
    seconds : float
    question : mapping
        The arguments of `fairopt.simulate`, as plain data.
    """

    trace: Trace
    cluster: Instance
    scheduler: str
    kind: str
    users: tuple[str, ...]
    weights: FloatArray
    until: float
    complete: bool
    series: Series
    started: FloatArray
    finished: FloatArray
    ended: FloatArray
    takes_part: BoolArray
    task_start: FloatArray | None = None
    task_server: IntArray | None = None
    regret: pd.DataFrame | None = None
    settling: pd.DataFrame | None = None
    details: dict[str, Any] = field(default_factory=dict)
    seconds: float = float("nan")
    question: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fits_nowhere(self) -> tuple[str, ...]:
        """Names of the jobs that can never be started."""
        return tuple(self.trace.jobs[j] for j in np.flatnonzero(~self.takes_part))

    @property
    def completion(self) -> FloatArray:
        """Seconds from the submission of a job to the end of its last task, (jobs,); nan: the job has not ended."""
        return self.finished - self.trace.submit

    @property
    def finish_ratios(self) -> FloatArray:
        """How much later each job ended than alone, with the slice of its owner, (jobs,); nan: it has not ended, or would never.

        It is (end - submission) / (the same alone), 1 where both are 0 (`fairopt.simulation.finish_times`).
        """
        return ratios_of(self.trace, self.cluster, self.finished)

    def finish_ratios_frame(self, by: Literal["user", "all"] = "user") -> pd.DataFrame:
        """Return how late jobs ended against alone: a row for each user, or one for all jobs.

        Columns: ``jobs`` (that have a ratio), ``largest``, ``median`` and ``p90`` of their finish-time ratios, ``above_1``, how many ended
        later than alone.
        """
        return summary_of_ratios(self.trace, self.users, self.finish_ratios, by)

    @property
    def makespan(self) -> float:
        """The end of the last job that ended, in seconds; nan if no job ended."""
        return float(np.nanmax(self.finished)) if np.isfinite(self.finished).any() else float("nan")

    @property
    def mean_utilization(self) -> dict[str, float]:
        """Mean fraction of each resource in use over the sampled time; nan with fewer than two samples."""
        length = np.diff(self.series.times)
        parts = self.series.utilization[:-1]
        means = length @ parts / length.sum() if length.size else np.full(parts.shape[1], np.nan)
        return dict(zip(self.cluster.resources, means.tolist(), strict=True))

    @property
    def limit_use(self) -> dict[str, float]:
        """Mean part of each named limit in use over the sampled time; of one with a row for each user, queue or server the fullest row."""
        return self.series.mean_limit_use(self.cluster.limits)

    @property
    def limit_most(self) -> dict[str, float]:
        """Largest part of each named limit in use at any sample."""
        return self.series.most_limit_use(self.cluster.limits)

    @property
    def jobs(self) -> pd.DataFrame:
        """One row per job: user, submission, tasks, ended tasks, first start, end, seconds from submission to end, finish-time ratio."""
        import pandas as pd

        return pd.DataFrame(
            {
                "user": np.array(self.trace.users, object)[self.trace.user],
                "submit_s": self.trace.submit,
                "tasks": self.trace.tasks,
                "tasks_ended": self.ended,
                "ended": self.ended,  # until 1.0
                "started_s": self.started,
                "finished_s": self.finished,
                "completion_s": self.completion,
                "finish_ratio": self.finish_ratios,
            },
            index=pd.Index(self.trace.jobs, name="job"),
        )

    @property
    def users_frame(self) -> pd.DataFrame:
        """One row per user: weight, jobs, ended jobs, tasks, ended tasks, the fraction of tasks that ended, and mean completion time.

        Also the largest, median and 90th percentile of the finish-time ratios of its jobs, and how many are above 1.
        Where the cluster has queues, also the queue of the user.
        """
        import pandas as pd

        frame = pd.DataFrame(
            {"weight": self.weights} | self._counted(np.eye(len(self.users), dtype=bool)), index=pd.Index(self.users, name="user")
        )
        if self.cluster.queues:
            frame.insert(0, "queue", list(self._queue_of()))
        return frame

    @property
    def queues_frame(self) -> pd.DataFrame:
        """One row per queue, each followed by the queues below it, with the sums and means of `users_frame` over the users below it.

        The whole cluster comes first.
        """
        import pandas as pd

        tree = Tree.of(self.cluster.queues, self._queue_of(), self.users)
        order = tree_order(tree)
        parents = [None if node == 0 else tree.name(int(tree.parent[node])) for node in order]
        index = pd.Index([tree.name(node) for node in order], name="queue")
        return pd.DataFrame({"parent": parents} | self._counted(tree.below[order]), index=index)

    def _queue_of(self) -> tuple[str | None, ...]:
        """Return the queue of each user."""
        if self.users == self.cluster.users:
            return self.cluster.queue_of
        named = dict(zip(self.trace.users, self.trace.queue_of or (), strict=False))
        return tuple(named.get(user) for user in self.users)

    def _counted(self, groups: BoolArray) -> dict[str, Any]:
        """Return jobs, tasks and times of groups of users, (groups, users), as columns."""
        position = {name: n for n, name in enumerate(self.users)}
        owner = np.array([position[name] for name in self.trace.users], np.int64)[self.trace.user]

        def of_group(values: FloatArray | IntArray | BoolArray) -> FloatArray:
            return np.asarray(groups @ np.bincount(owner, weights=np.asarray(values, float), minlength=len(self.users)), float)

        over = np.isfinite(self.finished)
        jobs, finished, tasks, ended = (of_group(v) for v in (np.ones(owner.size), over, self.trace.tasks, self.ended))
        seconds = of_group(np.where(over, self.completion, 0.0))
        ratios = ratios_by_user(self.trace, self.users, self.finish_ratios)
        return {
            "jobs": jobs.astype(int),
            "jobs_ended": finished.astype(int),
            "tasks": tasks.astype(int),
            "tasks_ended": ended,
            "completion_ratio": np.divide(ended, tasks, out=np.full(len(groups), np.nan), where=tasks > 0),
            "mean_completion_s": np.divide(seconds, finished, out=np.full(len(groups), np.nan), where=finished > 0),
            **columns_of_ratios([np.concatenate([np.empty(0), *(ratios[n] for n in np.flatnonzero(own))]) for own in groups]),
            "finished": finished.astype(int),  # until 1.0, as is ended
            "ended": ended,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return the samples as a tidy table: ``time_s``, ``quantity``, ``of`` what, ``value``.

        Quantities are utilization, limit (the part of a named limit in use), share, running and waiting. Asynchronous servers add the exact
        share, and the distance and condition of `regret`.
        """
        import pandas as pd

        series, k = self.series, self.series.times.size
        tables: list[tuple[str, tuple[str, ...], FloatArray]] = [
            ("utilization", self.cluster.resources, series.utilization),
            *([("limit", tuple(limit.name for limit in self.cluster.limits), series.limit_use)] if self.cluster.limits else []),
            ("share", self.users, series.dominant_shares),
            ("running", self.users, series.running),
            ("waiting", self.users, series.waiting),
        ]
        if series.exact_shares is not None and self.regret is not None:
            tables.append(("exact share", self.users, series.exact_shares))
            tables += [(word, ("all",), self.regret[[word]].to_numpy()) for word in ("distance", "condition")]
        return pd.concat(
            [
                pd.DataFrame(
                    {
                        "time_s": np.repeat(series.times, len(names)),
                        "quantity": quantity,
                        "of": np.tile(np.array(names, object), k),
                        "value": values.ravel(),
                    }
                )
                for quantity, names, values in tables
            ],
            ignore_index=True,
        )

    def save(
        self, path: str | os.PathLike[str], table: Literal["series", "jobs", "users", "queues", "regret", "settling"] = "series"
    ) -> None:
        """Write a table: the samples, the jobs or the users; also queues, regret and settling, if there are any.

        The ending of the path says what: .parquet or .csv, or for people .xlsx, .md or .tex.

        The file is written completely or not at all.

        Raises
        ------
        Unsupported, InvalidInstance
            The table or the kind of file does not exist. The file cannot be written.
        """
        tables = {
            "series": lambda: self.to_frame(),
            "jobs": lambda: self.jobs.reset_index(),
            "users": lambda: self.users_frame.reset_index(),
        }
        if self.cluster.queues:
            tables["queues"] = lambda: self.queues_frame.reset_index()
        if self.regret is not None:
            tables["regret"] = lambda: self.regret  # type: ignore[assignment, return-value]
        if self.settling is not None:
            tables["settling"] = lambda: self.settling  # type: ignore[assignment, return-value]
        if table not in tables:
            raise Unsupported(f'there is no table "{table}"{did_you_mean(str(table), tables)}; there are {", ".join(tables)}')
        kind = next((each for each in KINDS if Path(path).suffix.lower() == f".{each}"), None)
        if kind is None:
            raise Unsupported(
                f'cannot tell which kind of table "{path}" shall be; end its name in .parquet or .csv (or .xlsx, .md or .tex)'
            )
        write_files({Path(path): rendered(tables[table]().reset_index(drop=True), kind, str(path))})

    def plot(self, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None) -> Figure:
        """Draw utilization, dominant shares and waiting tasks over time; return a matplotlib figure.

        ``ax``: your axes, one a panel. ``figsize``: inches of a new figure. ``title``: instead of the default, "" for none.
        """
        return draw("simulation", self, ax=ax, figsize=figsize, title=title)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON, of the same form as that of `SideBySide`: a row for the scheduler, and one for each user.

        None stands for a missing or infinite number, and for what is not measured of one scheduler alone.
        """
        return one_scheduler(self)

    def __repr__(self) -> str:
        over = int(np.isfinite(self.finished).sum())
        use = ", ".join(f"{name} {percent(part)}" for name, part in self.mean_utilization.items() if np.isfinite(part))
        where = f"{plural(len(self.users), 'user')} on {plural(self.cluster.counts.sum(), 'server')}"
        never = len(self.fits_nowhere)
        parts = [
            f"{over:,} of {plural(self.trace.n_jobs, 'job')} ended",
            *([f"mean use {use}"] if use else []),
            *([f"{plural(never, 'job fits', 'jobs fit')} nowhere"] if never else []),
            *([] if self.complete else ["stopped early"]),
        ]
        return f"Simulation({self.scheduler}, {self.kind}: {where}; {'; '.join(parts)})"
