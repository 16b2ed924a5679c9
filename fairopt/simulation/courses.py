r"""One trace under several schedulers: waiting times of jobs, shares of users, and their distance from the exact allocation.

For each scheduler, over the jobs that ended (wait: over those that started):

    wait                start - submission, of the first task of a job
    slowdown            (end - submission) / run,  where run is that of the longest task of the job
    bounded slowdown    max(1, (end - submission) / max(run, 10 s)): Feitelson and Rudolph, Metrics and benchmarking for parallel job
                        scheduling (JSSPP 1998); without it jobs of no time would dominate the mean

Over time t, with s[u](t) the dominant share of user u of weight phi[u], and s*[u](t) the same in the exact fluid simulation of a notion:

    shortfall(t)        sum of max(s*[u](t) - s[u](t), 0) over users with tasks that wait; its integral, in hours of the whole cluster, is
                        the regret against the exact fluid; also in parts of the share-hours that users have there
    envy(t)             sum over users with tasks that wait of max over v of  phi[u] s[v](t) / phi[v] - s[u](t)
    Jain's index        (sum x)^2 / (n sum x^2) of x[u] = what u had in a window, by weight, over the n users who had tasks in it
                        (Jain, Chiu and Hawe 1984); 1: all had the same

Integrals and indices are those of samples, ``step`` seconds apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairopt.analysis.finish_ratios import columns_of_ratios
from fairopt.errors import InvalidInstance, Unsupported
from fairopt.files.stores import packed, read_arrays
from fairopt.instance import FloatArray, Instance
from fairopt.instance.limits import Limit
from fairopt.show.drawing import draw
from fairopt.show.equality import ComparesItself
from fairopt.simulation.baselines.options import half_life_of
from fairopt.simulation.finish_ratios import ratios_by_user, ratios_of, summary_of_ratios
from fairopt.simulation.records import mean, of_jobs, several_schedulers, slowdowns
from fairopt.simulation.result import Simulation
from fairopt.simulation.series import by_name, mean_over_time
from fairopt.trace import Trace
from fairopt.wording import plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Course", "SideBySide"]

_WAITS = 1e-9  # tasks: fewer are rounding


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """The result of one scheduler on a trace: samples over time, and the start and end of each job.

    Attributes
    ----------
    name, kind : str
    times : array (K,)
    shares, running, waiting : arrays (K, users)
        Dominant shares, and numbers of tasks.
    utilization : array (K, resources)
    limit_use : array (K, limits)
        How full each named limit is.
    started, finished : arrays (jobs,)
        nan: not by the end.
    until : float
    complete : bool
        False if the simulation was stopped early.
    """

    name: str
    kind: str
    times: FloatArray
    shares: FloatArray
    running: FloatArray
    waiting: FloatArray
    utilization: FloatArray
    limit_use: FloatArray
    started: FloatArray
    finished: FloatArray
    until: float
    complete: bool

    @classmethod
    def of(cls, found: Simulation) -> Course:
        """Return the course of a simulation."""
        series = found.series
        return cls(
            found.scheduler, found.kind, series.times, series.dominant_shares, series.running, series.waiting, series.utilization,
            series.limit_use, found.started, found.finished, found.until, found.complete,
        )  # fmt: skip

    def to_bytes(self) -> bytes:
        """Return it as a file."""
        return packed({name: getattr(self, name) for name in self.__slots__}, compressed=True)

    @classmethod
    def from_file(cls, path: Path, users: int, resources: int, limits: int, jobs: int) -> Course:
        """Return what `to_bytes` wrote of a simulation of this size.

        Raises
        ------
        InvalidInstance
        """
        try:
            values: dict[str, Any] = dict(read_arrays(path))
            moments = values["times"].size
            shapes = {
                **dict.fromkeys(("name", "kind", "until", "complete"), ()),
                **{"times": (moments,), "shares": (moments, users), "running": (moments, users), "waiting": (moments, users)},
                **{"utilization": (moments, resources), "limit_use": (moments, limits), "started": (jobs,), "finished": (jobs,)},
            }
            kinds = {"name": "U", "kind": "U", "complete": "b"}
            for name in cls.__slots__:
                value = values[name]
                if value.shape != shapes[name] or value.dtype.kind not in kinds.get(name, "fiu"):
                    raise ValueError(f"{name} is not of the right shape")
                if name not in (*kinds, "until", "started", "finished") and not np.isfinite(value).all():
                    raise ValueError(f"{name} is not finite")
            if (np.diff(values["times"]) < 0).any():
                raise ValueError("its times do not ascend")
        except (ValueError, KeyError) as error:
            raise InvalidInstance(f"{path} holds no finished scheduler: {error}; delete it, and it is simulated again") from error
        plain = {name: values[name].item() for name in ("name", "kind", "until", "complete")}
        return cls(**{name: plain.get(name, values[name]) for name in cls.__slots__})

    def lengths(self) -> FloatArray:
        """Return how long each sample holds, in seconds, (K,)."""
        return np.diff(self.times, append=self.times[-1:] if self.times.size else [])

    def most_used(self) -> FloatArray:
        """Return the utilization of the resource that is used most on average, at each sample, (K,)."""
        return np.asarray(self.utilization[:, int(np.argmax(self.lengths() @ self.utilization))])

    def mean_limit_use(self, limits: Sequence[Limit]) -> dict[str, float]:
        """Return the mean over time of how full each named limit is, by name."""
        return by_name(limits, mean_over_time(self.times, self.limit_use))

    def most_limit_use(self, limits: Sequence[Limit]) -> dict[str, float]:
        """Return how full each named limit is at most, by name."""
        return by_name(limits, self.limit_use.max(axis=0, initial=0.0))

    def shares_at(self, times: FloatArray) -> FloatArray:
        """Return the shares at other times, (times, users); 0 before the first sample and after the last."""
        if not self.times.size:
            return np.zeros((times.size, self.shares.shape[1]))
        at = np.searchsorted(self.times, times, side="right") - 1
        inside = (at >= 0) & (times <= self.times[-1])
        return np.where(inside[:, None], self.shares[np.maximum(at, 0)], 0.0)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SideBySide(ComparesItself):
    """Schedulers side by side on one trace.

    Attributes
    ----------
    trace : Trace
    cluster : Instance
    users : tuple of str
    weights : array (users,)
    courses : tuple of Course
        In the order asked for.
    exact : Course
        The exact fluid simulation that shortfalls are measured against.
    window : float
        Seconds of a window of Jain's index.
    not_begun : tuple of str
        Schedulers that were asked for, and that had not begun when the work was stopped.
    seconds : float
    question : mapping
        The arguments of `fairopt.compare_over_time`, as plain data.
    """

    trace: Trace
    cluster: Instance
    users: tuple[str, ...]
    weights: FloatArray
    courses: tuple[Course, ...]
    exact: Course
    window: float
    not_begun: tuple[str, ...] = ()
    seconds: float = float("nan")
    question: Mapping[str, Any] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """False if the work was stopped before every scheduler had finished."""
        return not self.not_begun and self.exact.complete and all(course.complete for course in self.courses)

    def shortfall(self, course: Course) -> FloatArray:
        """Return how much less each waiting user has than in the exact fluid, in a course of ``courses``, at each sample, (K, users)."""
        lacks = np.maximum(self.exact.shares_at(course.times) - course.shares, 0.0)
        return np.where(course.waiting > _WAITS, lacks, 0.0)

    def envy(self, course: Course) -> FloatArray:
        """Return how much more each waiting user would have with the weighted share of another, at each sample of a course, (K, users)."""
        positive = self.weights > 0
        by_weight = np.divide(course.shares, self.weights, out=np.zeros_like(course.shares), where=positive)
        most = by_weight.max(axis=1, initial=0.0)[:, None] * self.weights
        return np.where(course.waiting > _WAITS, np.maximum(most - course.shares, 0.0), 0.0)

    def jain(self, course: Course) -> tuple[FloatArray, FloatArray]:
        """Return the starts of the windows in seconds, and Jain's index of a course in each, (windows,); nan where nobody had anything."""
        if not course.times.size:
            return np.empty(0), np.empty(0)
        window = ((course.times - course.times[0]) // self.window).astype(int)
        number = int(window[-1]) + 1
        lengths = course.lengths()[:, None]
        had, there = np.zeros((number, len(self.users))), np.zeros((number, len(self.users)))
        np.add.at(had, window, course.shares * lengths)
        np.add.at(there, window, course.running + course.waiting > _WAITS)
        x = np.divide(had, self.weights, out=np.zeros_like(had), where=self.weights > 0)
        counts = (there > 0) & (self.weights > 0)
        x[~counts] = 0.0
        squares = counts.sum(axis=1) * (x**2).sum(axis=1)
        index = np.divide(x.sum(axis=1) ** 2, squares, out=np.full(number, np.nan), where=squares > 0)
        return course.times[0] + self.window * np.arange(number), index

    def mean_by_window(self, course: Course, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the starts of the windows in seconds, and the mean over each of values of a course, (K,); both (windows,)."""
        if not course.times.size:
            return np.empty(0), np.empty(0)
        window = ((course.times - course.times[0]) // self.window).astype(int)
        lengths = course.lengths()
        total, seconds = np.bincount(window, weights=lengths * values), np.bincount(window, weights=lengths)
        mean = np.divide(total, seconds, out=np.full(total.size, np.nan), where=seconds > 0)
        return course.times[0] + self.window * np.arange(total.size), mean

    def slowdowns(self, course: Course) -> tuple[FloatArray, FloatArray]:
        """Return the slowdown and the bounded slowdown of each job of a course, (jobs,); nan: it has not ended."""
        return slowdowns(self.trace, course.finished)

    def finish_ratios(self, course: Course) -> FloatArray:
        """Return how much later each job of a course ended than alone, (jobs,), as `Simulation.finish_ratios` does."""
        return ratios_of(self.trace, self.cluster, course.finished)

    def finish_ratios_frame(self) -> pd.DataFrame:
        """Return one row per scheduler: the columns of `Simulation.finish_ratios_frame`, over all jobs."""
        import pandas as pd

        tables = [summary_of_ratios(self.trace, self.users, self.finish_ratios(course), "all") for course in self.courses]
        return pd.concat(tables).set_index(pd.Index([course.name for course in self.courses], name="scheduler"))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per scheduler: jobs that ended, mean wait and slowdowns, utilization, shortfall and envy in hours, Jain's index.

        Columns: ``kind``, ``half_life_s`` (nan: the scheduler has none), ``jobs``, ``started``, ``ended``, ``wait_s`` (of the jobs that
        started), ``slowdown``, ``bounded_slowdown`` (of those that ended), ``makespan_s``, ``utilization`` (of the resource that is used
        most), ``shortfall_h``, ``regret`` (the same in parts of what users received in the exact simulation), ``envy_h``, ``jain``; of the
        finish-time ratios of the jobs ``finish_ratio_largest``, ``finish_ratio_median``, ``finish_ratio_p90`` and
        ``finish_ratio_above_1``, how many are above 1.
        """
        import pandas as pd

        return pd.DataFrame(
            [self._row(course) for course in self.courses], index=pd.Index([c.name for c in self.courses], name="scheduler")
        )

    def _row(self, course: Course) -> dict[str, Any]:
        lengths = course.lengths()
        shortfall = float(lengths @ self.shortfall(course).sum(axis=1)) / 3600
        due = float(self.exact.lengths() @ self.exact.shares.sum(axis=1)) / 3600
        return {
            "kind": course.kind,
            "half_life_s": half_life_of(course.name),
            **of_jobs(self.trace, course.started, course.finished),
            "utilization": float(lengths @ course.most_used() / lengths.sum()) if lengths.sum() > 0 else 0.0,
            "shortfall_h": shortfall,
            "regret": shortfall / due if due > 0 else np.nan,
            "envy_h": float(lengths @ self.envy(course).sum(axis=1)) / 3600,
            "jain": mean(self.jain(course)[1]),
            **{word: of_all for word, (of_all,) in columns_of_ratios([self.finish_ratios(course)]).items()},
            "ended": int(np.isfinite(course.finished).sum()),  # until 1.0
        }

    def users_frame(self) -> pd.DataFrame:
        """Return one row per scheduler and user: jobs, jobs ended, mean wait and bounded slowdown, hours of share, shortfall and envy.

        Also the finish-time ratios of its jobs, as in `to_frame`.
        """
        import pandas as pd

        position = {name: n for n, name in enumerate(self.users)}
        owner = np.array([position[name] for name in self.trace.users], np.int64)[self.trace.user]
        tables = []
        for course in self.courses:
            hours = course.lengths() / 3600
            frame = pd.DataFrame(
                {
                    "user": np.array(self.users, object)[owner],
                    "jobs": 1,
                    "jobs_ended": np.isfinite(course.finished),
                    "wait_s": course.started - self.trace.submit,
                    "bounded_slowdown": self.slowdowns(course)[1],
                }
            )
            table = frame.groupby("user", sort=False).agg(
                {"jobs": "sum", "jobs_ended": "sum", "wait_s": "mean", "bounded_slowdown": "mean"}
            )
            table = table.reindex([user for user in self.users if user in table.index])
            held = [position[user] for user in table.index]
            for word, values in (("share_h", course.shares), ("shortfall_h", self.shortfall(course)), ("envy_h", self.envy(course))):
                table[word] = (hours @ values)[held]
            ratios = ratios_by_user(self.trace, self.users, self.finish_ratios(course))
            for word, column in columns_of_ratios([ratios[n] for n in held]).items():
                table[word] = column
            table["ended"] = table["jobs_ended"]  # until 1.0
            table.insert(0, "scheduler", course.name)
            tables.append(table.reset_index())
        return pd.concat(tables, ignore_index=True)

    def users_by_shortfall(self) -> list[str]:
        """Return the users who have jobs, sorted by their largest shortfall under any scheduler, and then by their number of jobs."""
        most = self.users_frame().groupby("user", sort=False)[["shortfall_h", "jobs"]].max()
        return [str(user) for user in most.sort_values(["shortfall_h", "jobs"], ascending=False, kind="stable").index]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON, of the form of `Simulation.to_dict`: a row per scheduler, and one per scheduler and user."""
        return several_schedulers(self)

    def plot(
        self,
        by: Literal["time", "user"] = "time",
        *,
        ax: Sequence[Axes] | None = None,
        figsize: tuple[float, float] | None = None,
        title: str | None = None,
    ) -> Figure:
        """Draw the schedulers over time, or user by user; return a matplotlib figure.

        ``by``: "time" for utilization, waiting tasks, shortfall, regret, envy and Jain's index, a line for each scheduler; "user" for
        bounded slowdown, wait and shortfall of each user, a dot for each scheduler.

        ``ax``: your axes, one a panel. ``figsize``: inches of a new figure. ``title``: instead of the default, "" for none.

        Raises
        ------
        Unsupported
            ``by`` is neither "time" nor "user".
        """
        if by not in ("time", "user"):
            raise Unsupported(f'a comparison of schedulers is drawn by "time" or by "user", not by "{by}"')
        return draw("side_by_side" if by == "time" else "side_by_side_users", self, ax=ax, figsize=figsize, title=title)

    def __repr__(self) -> str:
        names = ", ".join(course.name for course in self.courses)
        return f"SideBySide({names}: {plural(self.trace.n_jobs, 'job')} of {plural(len(self.users), 'user')})"
