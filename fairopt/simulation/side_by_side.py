r"""One trace under several schedulers: how long jobs wait, who had what, and how far that is from the exact allocation.

Of each scheduler, over the jobs that ended:

    wait                start - submission, of the first task of a job
    slowdown            (end - submission) / run,  where run is that of the longest task of the job
    bounded slowdown    max(1, (end - submission) / max(run, 10 s)): Feitelson and Rudolph, Metrics and benchmarking for parallel job
                        scheduling (JSSPP 1998); jobs of no time would rule the mean otherwise

Over time t, with s[u](t) the dominant share of user u of weight phi[u], and s*[u](t) the same in the exact fluid simulation of a notion:

    shortfall(t)        sum of max(s*[u](t) - s[u](t), 0) over users with tasks that wait; its integral, in hours of the whole cluster, is
                        the regret against the exact fluid
    envy(t)             sum over users with tasks that wait of max over v of  phi[u] s[v](t) / phi[v] - s[u](t)
    Jain's index        (sum x)^2 / (n sum x^2) of x[u] = what u had in a window, by weight, over the n users who had tasks in it
                        (Jain, Chiu and Hawe 1984); 1: all had the same

Integrals and indices are those of samples, ``step`` seconds apart.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.drawing import draw
from fairopt.errors import InvalidInstance, Unsupported
from fairopt.files import write_files
from fairopt.instance import FloatArray, Instance
from fairopt.registry import contents
from fairopt.simulation.result import Simulation
from fairopt.simulation.simulating import simulate
from fairopt.simulation.streams import streams_of
from fairopt.specs import NotionSpec, ScheduleSpec
from fairopt.trace import Trace
from fairopt.validation import check_seconds
from fairopt.wording import plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Course", "SideBySide", "compare_over_time"]

_BOUND = 10.0  # seconds, of bounded slowdowns
_SAMPLES = 500  # while jobs are submitted
_WINDOWS = 24  # in that time
_WAITS = 1e-9  # tasks: fewer are rounding


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """What one scheduler made of a trace: samples over time, and the start and end of each job.

    Attributes
    ----------
    name, kind : str
    times : array (K,)
    shares, running, waiting : arrays (K, users)
        Dominant shares, and numbers of tasks.
    utilization : array (K, resources)
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
            found.started, found.finished, found.until, found.complete,
        )  # fmt: skip

    def to_bytes(self) -> bytes:
        """Return it as a file."""
        buffer = io.BytesIO()
        values: dict[str, Any] = {name: np.asarray(getattr(self, name)) for name in self.__slots__}
        np.savez_compressed(buffer, **values)
        return buffer.getvalue()

    @classmethod
    def from_file(cls, path: Path) -> Course:
        """Return what `to_bytes` wrote.

        Raises
        ------
        InvalidInstance
        """
        try:
            with np.load(path, allow_pickle=False) as data:
                values: dict[str, Any] = {name: data[name] for name in cls.__slots__}
        except (OSError, ValueError, KeyError) as error:
            raise InvalidInstance(f"{path} holds no finished scheduler: {error}; delete it, and it is simulated again") from error
        plain = {name: values[name].item() for name in ("name", "kind", "until", "complete")}
        return cls(**(values | plain))

    def lengths(self) -> FloatArray:
        """Return how long each sample holds, in seconds, (K,)."""
        return np.diff(self.times, append=self.times[-1:] if self.times.size else [])

    def shares_at(self, times: FloatArray) -> FloatArray:
        """Return the shares at other times, (times, users); 0 before the first sample and after the last."""
        if not self.times.size:
            return np.zeros((times.size, self.shares.shape[1]))
        at = np.searchsorted(self.times, times, side="right") - 1
        inside = (at >= 0) & (times <= self.times[-1])
        return np.where(inside[:, None], self.shares[np.maximum(at, 0)], 0.0)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SideBySide:
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
    """

    trace: Trace
    cluster: Instance
    users: tuple[str, ...]
    weights: FloatArray
    courses: tuple[Course, ...]
    exact: Course
    window: float

    def shortfall(self, course: Course) -> FloatArray:
        """Return by how much each user who waits has less than in the exact fluid, at each sample, (K, users)."""
        lacks = np.maximum(self.exact.shares_at(course.times) - course.shares, 0.0)
        return np.where(course.waiting > _WAITS, lacks, 0.0)

    def envy(self, course: Course) -> FloatArray:
        """Return by how much each user who waits would have more with the weighted share of another, at each sample, (K, users)."""
        positive = self.weights > 0
        by_weight = np.divide(course.shares, self.weights, out=np.zeros_like(course.shares), where=positive)
        most = by_weight.max(axis=1, initial=0.0)[:, None] * self.weights
        return np.where(course.waiting > _WAITS, np.maximum(most - course.shares, 0.0), 0.0)

    def jain(self, course: Course) -> tuple[FloatArray, FloatArray]:
        """Return the beginnings of the windows, and Jain's index in each; nan where nobody had anything."""
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
        """Return the beginnings of the windows, and the mean of values, (K,), over the time of each."""
        if not course.times.size:
            return np.empty(0), np.empty(0)
        window = ((course.times - course.times[0]) // self.window).astype(int)
        lengths = course.lengths()
        total, seconds = np.bincount(window, weights=lengths * values), np.bincount(window, weights=lengths)
        mean = np.divide(total, seconds, out=np.full(total.size, np.nan), where=seconds > 0)
        return course.times[0] + self.window * np.arange(total.size), mean

    def slowdowns(self, course: Course) -> tuple[FloatArray, FloatArray]:
        """Return the slowdown and the bounded slowdown of each job, (jobs,); nan: it has not ended."""
        trace = self.trace
        first = np.cumsum(trace.tasks) - trace.tasks
        run = np.maximum.reduceat(trace.task_durations, first)
        took = course.finished - trace.submit
        slow = np.divide(took, run, out=np.full(run.size, np.nan), where=run > 0)
        return np.maximum(slow, 1.0), np.maximum(took / np.maximum(run, _BOUND), 1.0)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per scheduler: jobs that ended, mean wait and slowdowns, utilization, hours of shortfall and envy, Jain's index.

        Columns: ``kind``, ``jobs``, ``ended``, ``wait_s``, ``slowdown``, ``bounded_slowdown``, ``makespan_s``, ``utilization`` (of the
        resource that is used most), ``shortfall_h``, ``envy_h``, ``jain``.
        """
        import pandas as pd

        return pd.DataFrame(
            [self._row(course) for course in self.courses], index=pd.Index([c.name for c in self.courses], name="scheduler")
        )

    def _row(self, course: Course) -> dict[str, Any]:
        lengths = course.lengths()
        slow, bounded = self.slowdowns(course)
        use = lengths @ course.utilization / lengths.sum() if lengths.sum() > 0 else np.zeros(1)
        return {
            "kind": course.kind,
            "jobs": self.trace.n_jobs,
            "ended": int(np.isfinite(course.finished).sum()),
            "wait_s": _mean(course.started - self.trace.submit),
            "slowdown": _mean(slow),
            "bounded_slowdown": _mean(bounded),
            "makespan_s": float(np.nanmax(course.finished)) if np.isfinite(course.finished).any() else np.nan,
            "utilization": float(use.max()),
            "shortfall_h": float(lengths @ self.shortfall(course).sum(axis=1)) / 3600,
            "envy_h": float(lengths @ self.envy(course).sum(axis=1)) / 3600,
            "jain": _mean(self.jain(course)[1]),
        }

    def users_frame(self) -> pd.DataFrame:
        """Return one row per scheduler and user: jobs, ended, mean wait and bounded slowdown, hours of share, shortfall and envy."""
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
                    "ended": np.isfinite(course.finished),
                    "wait_s": course.started - self.trace.submit,
                    "bounded_slowdown": self.slowdowns(course)[1],
                }
            )
            table = frame.groupby("user", sort=False).agg({"jobs": "sum", "ended": "sum", "wait_s": "mean", "bounded_slowdown": "mean"})
            table = table.reindex([user for user in self.users if user in table.index])
            held = [position[user] for user in table.index]
            for word, values in (("share_h", course.shares), ("shortfall_h", self.shortfall(course)), ("envy_h", self.envy(course))):
                table[word] = (hours @ values)[held]
            table.insert(0, "scheduler", course.name)
            tables.append(table.reset_index())
        return pd.concat(tables, ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: a row for each scheduler, and one for each user under it."""
        rows = [{key: _plain(value) for key, value in row.items()} for row in self.to_frame().reset_index().to_dict("records")]
        users = [{str(key): _plain(value) for key, value in row.items()} for row in self.users_frame().to_dict("records")]
        return {"exact": self.exact.name, "window_s": self.window, "schedulers": rows, "users": users}

    def plot(self, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None) -> Figure:
        """Draw waiting tasks, shortfall, envy and Jain's index over time, a line for each scheduler; return a matplotlib figure.

        ``ax``: your axes, one a panel. ``figsize``: inches of a new figure. ``title``: instead of the default, "" for none.
        """
        return draw("side_by_side", self, ax=ax, figsize=figsize, title=title)

    def __repr__(self) -> str:
        names = ", ".join(course.name for course in self.courses)
        return f"SideBySide({names}: {plural(self.trace.n_jobs, 'job')} of {plural(len(self.users), 'user')})"


def compare_over_time(
    trace: Trace,
    cluster: Instance,
    schedulers: Sequence[ScheduleSpec | NotionSpec],
    *,
    exact: NotionSpec = "drfh",
    until: float | None = None,
    step: float | None = None,
    window: float | None = None,
    store: Path | str | None = None,
    done: Callable[[str, float, int], object] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> SideBySide:
    """Follow a trace on a cluster under several schedulers, and compare waiting, slowdown, shares, shortfall, envy and Jain's index.

    Parameters
    ----------
    trace : Trace
    cluster : Instance
    schedulers : sequence
        As `fairopt.simulate` takes them.
    exact : str
        The exact fluid simulation that shortfalls are measured against, as `fairopt.simulate` takes it.
    until : float, optional
        End of the simulations, in seconds.
    step : float, optional
        Seconds between samples; default: a five-hundredth of the time over which jobs are submitted.
    window : float, optional
        Seconds of a window of Jain's index; default: a twenty-fourth of that time.
    store : path, optional
        A folder, made if it is not there, that keeps each scheduler once it has finished. A run that is stopped goes on from there, if
        trace, cluster and options are the same. Only schedulers that are named by a string are kept.
    done : function, optional
        Called with the scheduler, the simulated time and the number of tasks so far.
    stopped : function, optional
        Called from time to time; True ends the simulation, and those that have not begun are left out.

    Returns
    -------
    SideBySide

    Raises
    ------
    InvalidInstance, Unsupported
        As `fairopt.simulate`. The folder cannot be used. No scheduler is given.

    Examples
    --------
    >>> import fairopt as fo
    >>> cluster = fo.Instance([[4]], [[1]], users=["nobody"], resources=["cpu"])
    >>> trace = fo.Trace(
    ...     ["A", "A", "B", "B"], [0, 0, 0, 5], [3, 2, 4, 1], [[1]] * 4, [100, 50, 60, 20], resources=["cpu"], gangs=[1, 1, 1, 1])
    >>> found = compare_over_time(trace, cluster, ["fifo", "backfill", "fairtree:half_life=1d"])
    >>> found.to_frame()[["wait_s", "bounded_slowdown"]].round(2).reset_index().to_numpy().tolist()
    [['fifo', 113.75, 4.69], ['backfill', 62.5, 2.12], ['fairtree:half_life=1d', 65.0, 2.22]]
    """
    if isinstance(schedulers, str):
        schedulers = [schedulers]
    if not schedulers:
        raise Unsupported('no scheduler is given; name some, such as "drfh:best-fit" and "backfill"')
    length = float(trace.submit[-1] - trace.submit[0]) if isinstance(trace, Trace) else 0.0
    for word, value in (("step", step), ("window", window)):
        if value is not None:
            check_seconds(word, value)
    step = step if step is not None else length / _SAMPLES if length > 0 else 1.0
    window = window if window is not None else length / _WINDOWS if length > 0 else 3600.0
    keep = None if store is None else _Kept(Path(store), trace, cluster, until, step)

    def course_of(spec: Any) -> Course:
        name = spec if isinstance(spec, str) else None
        if keep is not None and name is not None and (kept := keep.read(name)) is not None:
            return kept
        report = (lambda now, tasks: done(str(spec), now, tasks)) if done is not None else None
        found = simulate(trace, cluster, spec, until=until, step=step, done=report, stopped=stopped)
        course = Course.of(found)
        if keep is not None and name is not None and course.complete:
            keep.write(name, course)
        return course

    reference = course_of(exact)
    courses: list[Course] = []
    for spec in schedulers:
        if not courses or stopped is None or not stopped():
            courses.append(reference if isinstance(spec, str) and spec == exact else course_of(spec))
    streams = streams_of(trace, cluster)
    return SideBySide(trace, cluster, streams.users, streams.weights, tuple(courses), reference, window)


class _Kept:
    """Finished schedulers in a folder, each in a file whose name tells what was asked."""

    def __init__(self, folder: Path, trace: Trace, cluster: Instance, until: float | None, step: float) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInstance(f"the folder {folder} cannot be made: {error.strerror or error}; give another one") from error
        self.folder = folder
        self.digest = hashlib.sha256()
        for each in (trace, cluster):
            for name in each.__slots__:
                value = getattr(each, name, None)
                self.digest.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
        self.digest.update(json.dumps([until, step]).encode())

    def path(self, name: str) -> Path:
        """Return the file of a scheduler."""
        digest = self.digest.copy()
        digest.update(f"{name} {contents(name)}".encode())
        word = "".join(letter if letter.isalnum() else "-" for letter in name)[:40]
        return self.folder / f"{word}-{digest.hexdigest()[:16]}.npz"

    def read(self, name: str) -> Course | None:
        """Return what was kept of a scheduler, if anything was."""
        path = self.path(name)
        return Course.from_file(path) if path.exists() else None

    def write(self, name: str, course: Course) -> None:
        """Keep a scheduler, completely or not at all."""
        write_files({self.path(name): course.to_bytes()})


def _mean(values: FloatArray) -> float:
    """Return the mean of the values that are numbers; nan where none is."""
    there = values[np.isfinite(values)]
    return float(there.mean()) if there.size else float("nan")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
