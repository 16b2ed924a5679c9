"""A trace: jobs of tasks that users submit over time, and users and servers that come and go.

Each job has a user, a submit time, a number of identical tasks, the demand and the duration of a task, and servers on which it may run.

>>> trace = Trace(
...     ["A", "A", "B"], submit=[0, 0, 5], tasks=[4, 1, 2], demands=[[1, 4], [2, 2], [3, 1]], durations=[10, 20, 10])
>>> trace
Trace(3 jobs of 2 users, 7 tasks, 2 resources, submitted from 0 to 5 s)
>>> trace.to_frame()
  job user  submit_s  tasks  run_s  resource-1  resource-2
0   1    A       0.0      4   10.0         1.0         4.0
1   2    A       0.0      1   20.0         2.0         2.0
2   3    B       5.0      2   10.0         3.0         1.0
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fairopt.errors import InvalidInstance
from fairopt.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    booleans,
    check,
    frame_labels,
    matrix,
    numbers,
    restore_read_only,
    unique_labels,
)
from fairopt.wording import did_you_mean, plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Event", "Trace", "backwards", "problems", "two_queues"]

Event: TypeAlias = tuple[float, str, str] | tuple[float, str, str, int]
"""A time, and "join" or "leave" with a user, or "add" or "remove" with a server row and a number of servers (default 1)."""

KINDS = ("leave", "join", "remove", "add")
_MOST_TASKS = 2**31
_LATEST = 1e12  # seconds; larger times are not exact to a tenth of a millisecond


@dataclass(frozen=True, init=False, eq=False, repr=False, slots=True)
class Trace:
    """Jobs over time. Immutable; its arrays are read-only.

    Parameters
    ----------
    user : sequence of str (jobs,)
        The user of each job.
    submit : array (jobs,)
        Submit time in seconds, >= 0, counted from any moment, in ascending order.
    tasks : int array (jobs,)
        Number of tasks, >= 1, all with the same demand.
    demands : array (jobs, resources)
        Demand of one task, in the units of the cluster, >= 0, and > 0 for at least one resource.
    durations : array (jobs,) or (tasks.sum(),)
        Seconds that a task runs, >= 0 (inf: for ever): one number for all tasks of a job, or one for each task, job by job.
    eligibility : bool array (jobs, servers), optional
        Rows of the cluster on which each job may run; default all.
    events : sequence of tuples, optional
        ``(time, "join" or "leave", user)`` and ``(time, "add" or "remove", server row, number)``, in any order. A user whose first event is
        not "join" is there from the beginning.
    jobs : sequence of str, optional
        Unique names; default "1", "2", ...
    resources : sequence of str, optional
        Names of the columns of ``demands``: those of the cluster, in any order.
    queues : sequence of str or None (jobs,), optional
        The queue of the cluster that each job is submitted to, None for the root: one for all jobs of a user. Needed only where the cluster
        has queues and does not name the users.
    estimates : array (jobs,), optional
        The seconds that the user expects a task to run, > 0 (inf: for ever); default: as long as the longest task of the job runs.
        Schedulers that look ahead, such as "backfill", see the estimates and not the durations.
    gangs : bool array (jobs,), optional
        Whether the tasks of a job are a gang, as those of a parallel job: all of them start at the same instant, on one or several servers,
        or none does. Default: none is.

    Attributes
    ----------
    users : tuple of str
        The users, in the order of their first jobs.
    queue_of : tuple of str or None (users,), or None
        The queue of each user; None where the trace names no queues.
    estimates : array (jobs,) or None
        As given; `expected_durations` has the default.
    gangs : bool array (jobs,)
    user : int array (jobs,)
        Position in ``users``.
    left_out : tuple of str
        Rows that a lenient reader left out, and why.

    Raises
    ------
    InvalidInstance
        The message names the job that is wrong, and says what to do.
    """

    users: tuple[str, ...]
    user: IntArray
    submit: FloatArray
    tasks: IntArray
    demands: FloatArray
    durations: FloatArray
    eligibility: BoolArray | None
    events: tuple[tuple[float, str, str, int], ...]
    jobs: tuple[str, ...]
    resources: tuple[str, ...]
    left_out: tuple[str, ...]
    queue_of: tuple[str | None, ...] | None
    estimates: FloatArray | None
    gangs: BoolArray

    def __init__(
        self,
        user: Sequence[str],
        submit: npt.ArrayLike,
        tasks: npt.ArrayLike,
        demands: npt.ArrayLike,
        durations: npt.ArrayLike,
        *,
        eligibility: npt.ArrayLike | None = None,
        events: Iterable[Event] = (),
        jobs: Sequence[str] | None = None,
        resources: Sequence[str] | None = None,
        left_out: Sequence[str] = (),
        queues: Sequence[str | None] | None = None,
        estimates: npt.ArrayLike | None = None,
        gangs: npt.ArrayLike | None = None,
    ) -> None:
        _, resources = frame_labels(demands, "demands", None, "jobs", resources, "resources")
        d = matrix(demands, "demands", "(jobs, resources)")
        number = len(d)
        names = unique_labels([str(j + 1) for j in range(number)] if jobs is None else jobs, number, "job")
        owners = list(user)
        if isinstance(user, str) or len(owners) != number:
            raise InvalidInstance(f"there are {len(owners)} users for {number} jobs; name one for each job")
        for j, owner in enumerate(owners):
            if not isinstance(owner, str) or not owner.strip():
                raise InvalidInstance(f'the user of job "{names[j]}" is {owner!r}; users are named by strings that are not empty')
        labels = tuple(dict.fromkeys(owners))
        position = {label: n for n, label in enumerate(labels)}
        times = numbers(submit, "submit times", (number,), "one per job")
        count = numbers(tasks, "numbers of tasks", (number,), "one per job")
        given = numbers(durations, "durations")
        for message, bad in problems(times, count, d).items():
            if bad.any():
                raise InvalidInstance(f'job "{names[int(np.argmax(bad))]}": {message}')
        total = int(count.sum())
        if total >= _MOST_TASKS:
            raise InvalidInstance(f"the trace has {total:,} tasks, and at most {_MOST_TASKS:,} can be followed; take a part of it")
        if given.shape not in ((number,), (total,)):
            raise InvalidInstance(f"the shape of durations is {given.shape}; give ({number},), one per job, or ({total},), one per task")
        of_task = names if given.shape == (number,) else tuple(np.repeat(np.array(names, object), count.astype(int)))
        check(given, given >= 0, "duration", ">= 0 (inf for ever)", of_task)
        k = 0 if eligibility is None else np.shape(eligibility)[-1] if np.ndim(eligibility) == 2 else 0
        expected = None if estimates is None else numbers(estimates, "estimates", (number,), "one per job")
        if expected is not None:
            check(expected, expected > 0, "estimate", "> 0 (inf for ever)", names)
        values: dict[str, Any] = {
            "users": labels,
            "user": np.array([position[owner] for owner in owners], np.int64),
            "submit": times,
            "tasks": count.astype(np.int64),
            "demands": d,
            "durations": given,
            "eligibility": None if eligibility is None else booleans(eligibility, (number, k)),
            "events": _events(events, labels),
            "jobs": names,
            "resources": unique_labels(resources, d.shape[1], "resource"),
            "left_out": tuple(left_out),
            "queue_of": None if queues is None else _queue_of(labels, owners, list(queues), names),
            "estimates": expected,
            "gangs": _flags(gangs, number),
        }
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    __setstate__ = restore_read_only

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, resources: Sequence[str] | None = None, events: Iterable[Event] = ()) -> Trace:
        """Return the trace of a table with a row for each job.

        Its columns are ``job``, ``user``, ``queue``, ``submit_s``, ``tasks``, ``run_s``, ``estimate_s``, ``gang``, and one for each
        resource.

        Parameters
        ----------
        frame : pandas.DataFrame
            ``job``, ``queue``, ``estimate_s`` and ``gang`` may be left out, and ``tasks`` (default 1). `to_frame` is the inverse if all
            tasks of a job have the same duration.
        resources : sequence of str, optional
            The columns that are resources; default: all other columns.
        events : iterable of Event
            Users that join or leave, and servers that are added or removed.

        Raises
        ------
        InvalidInstance
            A column is missing, there are no rows, or a value is not allowed.

        >>> import pandas as pd
        >>> Trace.from_frame(pd.DataFrame({"user": ["A", "B"], "submit_s": [0, 1], "run_s": [9, 9], "cpu": [1, 2]}))
        Trace(2 jobs of 2 users, 2 tasks, 1 resource, submitted from 0 to 1 s)
        """
        own = ("job", "user", "queue", "submit_s", "tasks", "run_s", "estimate_s", "gang")
        columns = [str(column) for column in frame.columns if column not in own] if resources is None else list(resources)
        for column in ("user", "submit_s", "run_s", *columns):
            if column not in frame:
                raise InvalidInstance(f'the table has no column "{column}"{did_you_mean(column, map(str, frame.columns))}; add it')
        if not columns or not len(frame):
            raise InvalidInstance("the table needs at least one row, and one column for each resource")
        return cls(
            frame["user"].tolist(),
            frame["submit_s"].to_numpy(),
            frame["tasks"].to_numpy() if "tasks" in frame else np.ones(len(frame)),
            frame[columns].to_numpy(),
            frame["run_s"].to_numpy(),
            jobs=[str(job) for job in frame["job"]] if "job" in frame else None,
            resources=columns,
            events=events,
            queues=[str(name) if isinstance(name, str) and name else None for name in frame["queue"]] if "queue" in frame else None,
            estimates=frame["estimate_s"].to_numpy() if "estimate_s" in frame else None,
            gangs=frame["gang"].to_numpy() if "gang" in frame else None,
        )

    # What follows -----------------------------------------------------------------------------------------------------------------

    @property
    def n_jobs(self) -> int:
        """The number of jobs."""
        return len(self.jobs)

    @property
    def n_tasks(self) -> int:
        """The number of tasks."""
        return int(self.tasks.sum())

    @property
    def job_of(self) -> IntArray:
        """The job of each task, (tasks.sum(),)."""
        return np.repeat(np.arange(self.n_jobs), self.tasks)

    @property
    def task_durations(self) -> FloatArray:
        """The duration of each task, (tasks.sum(),)."""
        return self.durations if self.durations.size == self.n_tasks else self.durations[self.job_of]

    @property
    def expected_durations(self) -> FloatArray:
        """The duration of a task that the user expects, (jobs,): the estimate, else the duration of the longest task of the job."""
        if self.estimates is not None:
            return self.estimates
        first = np.cumsum(self.tasks) - self.tasks
        return self.durations if self.durations.size == self.n_jobs else np.maximum.reduceat(self.durations, first)

    @property
    def job_work(self) -> FloatArray:
        """Sum of the durations of all tasks of a job, in seconds, (jobs,)."""
        if self.durations.size != self.n_tasks:
            return self.tasks * self.durations
        first = np.cumsum(self.tasks) - self.tasks
        return np.add.reduceat(self.durations, first)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each job, with the columns that `from_frame` reads. ``run_s`` is the mean duration of its tasks."""
        import pandas as pd

        head = {
            "job": list(self.jobs),
            "user": np.array(self.users, object)[self.user],
            **({} if self.queue_of is None else {"queue": np.array(self.queue_of, object)[self.user]}),
            "submit_s": self.submit,
            "tasks": self.tasks,
            "run_s": self.job_work / self.tasks,
            **({} if self.estimates is None else {"estimate_s": self.estimates}),
            **({"gang": self.gangs} if self.gangs.any() else {}),
        }
        return pd.DataFrame(head | dict(zip(self.resources, self.demands.T, strict=True)))

    def __repr__(self) -> str:
        what = f"{plural(self.n_jobs, 'job')} of {plural(len(self.users), 'user')}, {plural(self.n_tasks, 'task')}"
        also = f", {plural(len(self.events), 'event')}" if self.events else ""
        left = f", {plural(len(self.left_out), 'row')} left out" if self.left_out else ""
        gangs = int(self.gangs.sum())
        also = f", {plural(gangs, 'gang')}{also}" if gangs else also
        return (
            f"Trace({what}, {plural(len(self.resources), 'resource')}, "
            f"submitted from {self.submit[0]:g} to {self.submit[-1]:g} s{also}{left})"
        )


def _flags(given: npt.ArrayLike | None, number: int) -> BoolArray:
    """Return which jobs are gangs, from booleans or from ones and zeros; none where nothing is said."""
    if given is None:
        return np.zeros(number, bool)
    values = np.asarray(given)
    if values.shape != (number,):
        raise InvalidInstance(f"the shape of gangs is {values.shape}, expected ({number},): one per job")
    if values.dtype.kind == "O" and all(isinstance(value, bool | np.bool_) for value in values):
        return values.astype(bool)
    if values.dtype.kind != "b" and not (values.dtype.kind in "iuf" and np.isin(values, (0, 1)).all()):
        raise InvalidInstance("gangs must be true or false (or 1 or 0) for every job; found another value")
    return values.astype(bool)


def _queue_of(users: tuple[str, ...], owners: list[str], queues: list[str | None], jobs: tuple[str, ...]) -> tuple[str | None, ...]:
    """Return the queue of each user; refuse two."""
    if len(queues) != len(owners):
        raise InvalidInstance(f"there are {len(queues)} queues for {len(owners)} jobs; name one for each job, None for the root")
    found: dict[str, str | None] = {}
    for owner, queue, job in zip(owners, queues, jobs, strict=True):
        if queue is not None and (not isinstance(queue, str) or not queue.strip()):
            raise InvalidInstance(
                f'the queue of job "{job}" is {queue!r}; queues are named by strings that are not empty, None is the root'
            )
        if found.setdefault(owner, queue) != queue:
            raise InvalidInstance(f'job "{job}": {two_queues(owner, found[owner], queue)}')
    return tuple(found[user] for user in users)


def two_queues(user: str, first: str | None, second: str | None) -> str:
    """Say that a user is in one queue."""
    names = [f'queue "{name}"' if name else "the root" for name in (first, second)]
    return f'user "{user}" submits to {names[0]} and to {names[1]}, but a user is in one queue; name it differently in each'


def problems(submit: FloatArray, tasks: FloatArray, demands: FloatArray) -> dict[str, BoolArray]:
    """Return what can be wrong with a job, and with which jobs it is: message -> bool (jobs,)."""
    with np.errstate(invalid="ignore"):
        return {
            "its submit time is not a finite number >= 0": ~(np.isfinite(submit) & (submit >= 0)),
            f"it is submitted after {_LATEST:g} s, more than a clock can show exactly; count seconds, from a later moment": submit
            > _LATEST,
            "it is submitted before the job above it: a clock that goes backwards; sort the jobs by submit time": backwards(submit),
            "its number of tasks is not a whole number >= 1": ~(np.isfinite(tasks) & (tasks >= 1) & (tasks == np.round(tasks))),
            f"it has {_MOST_TASKS:,} tasks or more, which cannot be followed; take a part of them": tasks >= _MOST_TASKS,
            "a demand is not a finite number >= 0": ~(np.isfinite(demands) & (demands >= 0)).all(axis=1),
            "all its demands are zero; remove the job or give a demand > 0": (demands == 0).all(axis=1),
        }


def backwards(times: FloatArray) -> BoolArray:
    """Return which times are smaller than one before them."""
    return np.concatenate([[False], times[1:] < np.fmax.accumulate(times)[:-1]])


def _events(events: Iterable[Event], users: tuple[str, ...]) -> tuple[tuple[float, str, str, int], ...]:
    """Return the events in order of time, and at one time in the order of ``KINDS``."""
    known = set(users)
    checked: list[tuple[float, str, str, int]] = []
    for number, event in enumerate(events, start=1):
        if not isinstance(event, tuple | list) or not 3 <= len(event) <= 4:
            raise InvalidInstance(f'event {number} is {event!r}; give (time, "join", user) or (time, "remove", server, number)')
        time, kind, name, *rest = event
        amount = rest[0] if rest else 1
        if not isinstance(time, int | float | np.number) or not (np.isfinite(time) and time >= 0):
            raise InvalidInstance(f"event {number}: its time is {time!r}; give a finite number of seconds >= 0")
        if kind not in KINDS:
            raise InvalidInstance(f'event {number}: there is no "{kind}"{did_you_mean(str(kind), KINDS)}; there are {", ".join(KINDS)}')
        if kind in ("join", "leave") and name not in known:
            raise InvalidInstance(f'event {number}: user "{name}" submits no job{did_you_mean(str(name), users)}')
        if isinstance(amount, bool) or not isinstance(amount, int | np.integer) or amount < 1:
            raise InvalidInstance(f"event {number}: the number of servers is {amount!r}; give a whole number >= 1")
        checked.append((float(time), str(kind), str(name), int(amount)))
    return tuple(sorted(checked, key=lambda event: (event[0], KINDS.index(event[1]))))
