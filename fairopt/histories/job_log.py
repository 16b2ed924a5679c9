"""A log of jobs with the times at which they were submitted, started and ended.

A *record* is one stay of a job in the cluster: it waits from its submission to its start, and holds its demand from its start to its end. A
job that is requeued or resized has several records. All its tasks have the same demand. A record that never started has no start; one that
had not ended when the log was written has no end.

A wait that the scheduler could not have ended is not unfair. So a wait is not *judged* if the job was held, waited for another job or was
kept back by a limit, if no server is large enough for it, or if the log does not say when the wait began. The job then counts from its
start, and `JobLog.unjudged` has the number of jobs and the reason.

>>> import pandas as pd
>>> from fairopt.instance import Instance
>>> frame = pd.DataFrame({"user": ["A", "B"], "submit": [0, 5], "start": [0, 60], "end": [100, 90], "cpu": [4, 2]})
>>> JobLog.from_frame(frame, Instance([[8]], [[1]], resources=["cpu"]))
JobLog(2 jobs of 2 owners, from 0 s to 100 s)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.clusters.clock import Clock
from fairopt.clusters.log_records import Records, Unjudged
from fairopt.errors import InvalidInstance
from fairopt.histories.from_table import read_frame
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.tolerances import FITS
from fairopt.wording import joined, plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NO_SERVER", "JobLog"]

NO_SERVER = "no server is large enough for one of its tasks"
_NO_SUBMISSION = "the log does not say when it was submitted"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JobLog:
    """Records of jobs over time, checked, in no particular order.

    Attributes
    ----------
    jobs : object array (records,)
        Names; records of one job have one name.
    owners, queues : tuple of str
    owner, queue : int arrays (records,)
        Positions in these; -1: the record names no queue.
    shape : int array (records,)
        Row of ``demands``, (shapes, resources).
    row : int array (records,)
        Row of the servers of the cluster; -1: unknown.
    place : int array (records,)
        Row of ``allowed``, (places, rows); -1: everywhere.
    tasks, submit, start, end : arrays (records,)
        Times in seconds. A record waits from ``submit`` to ``start`` and runs from ``start`` to ``end``; both are inf if it did not happen
        before the log ended, and equal if it never ran.
    clock : Clock
        What the times mean.
    inferred : bool
        Whether ``allowed`` is what was seen, which the cluster knows better where it says anything.
    numbered : bool
        Whether owners are numbers of the log, which a cluster may not list.
    accounts : bool
        Whether queues are accounts, which a cluster may not list.
    unjudged : tuple of Unjudged
    notes : tuple of str
    places : tuple of str (owners,)
        Where in the log the first record of each owner is.
    """

    jobs: Any
    owners: tuple[str, ...]
    queues: tuple[str, ...]
    owner: IntArray
    queue: IntArray
    shape: IntArray
    demands: FloatArray
    row: IntArray
    place: IntArray
    allowed: BoolArray
    tasks: FloatArray
    submit: FloatArray
    start: FloatArray
    end: FloatArray
    clock: Clock
    inferred: bool
    unjudged: tuple[Unjudged, ...]
    notes: tuple[str, ...]
    places: tuple[str, ...] = ()
    numbered: bool = False
    accounts: bool = False

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        cluster: Instance,
        *,
        timezone: str | None = None,
        lenient: bool = False,
    ) -> JobLog:
        """Return the log of a table with a row for each record: :mod:`fairopt.histories.from_table` describes its columns."""
        return cls.of(read_frame(frame, cluster, "the table", timezone=timezone, lenient=lenient), cluster)

    @classmethod
    def of(cls, records: Records, cluster: Instance) -> JobLog:
        """Check the records of a reader.

        Raises
        ------
        InvalidInstance
            With the place of the record: what is wrong, and what to do.
        """
        _check(records)
        _number_stays(records)
        records.settle()
        _judge(records, cluster)
        if not len(records.job):
            raise InvalidInstance(f"the log has no job that can be judged; {_reasons(records.unjudged)}")
        owner, owners = _factorized(records.user)
        queue, queues = _factorized(records.queue)
        if "" in queues:  # -1 stands for no queue
            empty = queues.index("")
            queue = np.where(queue == empty, -1, queue - (queue > empty))
            queues = tuple(name for name in queues if name)
        end = np.where(np.isnan(records.end), np.inf, records.end)
        return cls(
            jobs=records.job,
            owners=owners,
            queues=queues,
            owner=owner,
            queue=queue,
            shape=records.shape,
            demands=records.demands,
            row=np.where(np.isnan(records.start), -1, 0 if cluster.n_servers == 1 else records.row),
            place=records.place,
            allowed=records.allowed,
            tasks=records.tasks,
            submit=records.submit,
            start=np.where(np.isnan(records.start), end, records.start),
            end=end,
            clock=records.clock,
            inferred=records.inferred,
            numbered=records.numbered,
            accounts=records.accounts,
            unjudged=_summed(records.unjudged),
            notes=tuple(dict.fromkeys(records.notes)),
            places=tuple(records.where(int(first)) for first in np.unique(owner, return_index=True)[1]),
        )

    def part(self, keep: BoolArray) -> JobLog:
        """Return the log with some of its records, (records,)."""
        names = ("jobs", "owner", "queue", "shape", "row", "place", "tasks", "submit", "start", "end")
        return replace(self, **{name: getattr(self, name)[keep] for name in names})

    @property
    def n_jobs(self) -> int:
        """The number of jobs."""
        return len(set(self.jobs.tolist()))

    @property
    def placed(self) -> bool:
        """Whether the log says on which servers jobs ran."""
        return bool((self.row[self.start < self.end] >= 0).all())

    @property
    def span(self) -> tuple[float, float]:
        """The first submission, and the last time that the log mentions."""
        return float(self.submit.min()), _last(self.submit, self.start, self.end)

    def __repr__(self) -> str:
        first, last = (self.clock.shown(time) for time in self.span)
        return f"JobLog({plural(self.n_jobs, 'job')} of {plural(len(self.owners), 'owner')}, from {first} to {last})"


def _last(*times: FloatArray) -> float:
    return max(float(each[np.isfinite(each)].max(initial=-np.inf)) for each in times)


def _factorized(names: Any) -> tuple[IntArray, tuple[str, ...]]:
    """Return the position of each name in the sorted names, so that the order of the rows does not matter."""
    import pandas as pd

    code, found = pd.factorize(names, sort=True)
    return np.asarray(code, np.int64), tuple(str(name) for name in found)


def _check(records: Records) -> None:
    """Refuse records that cannot be."""
    clock = records.clock
    negative = ~(np.isfinite(records.demands) & (records.demands >= 0))
    of_shapes = {
        "a demand is not a finite number >= 0": np.asarray(negative.any(axis=1)),
        "all its demands are zero; remove the job or give a demand > 0": np.asarray((records.demands == 0).all(axis=1)),
    }
    for message, shapes in of_shapes.items():
        records.keep(records.refuse(shapes[records.shape], message))
    rules: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("the owner is empty; every job needs one", lambda: records.user == ""),
        ("its number of tasks is not a finite number > 0", lambda: ~(np.isfinite(records.tasks) & (records.tasks > 0))),
        (
            "a time is infinite; leave it empty if it is not known",
            lambda: np.isinf([records.submit, records.start, records.end]).any(axis=0),
        ),
        ("it has neither a submission nor a start", lambda: np.isnan(records.submit) & np.isnan(records.start)),
    )
    for message, rule in rules:
        records.keep(records.refuse(np.asarray(rule(), bool), message))
    hint = "; if clocks were put back in between, give the time zone (timezone= or --timezone)" if clock.local else ""

    def order(first: FloatArray, then: FloatArray, words: tuple[str, str]) -> None:
        with np.errstate(invalid="ignore"):
            bad = then < first
        message = f"it {words[1]} before it {words[0]}"
        records.keep(
            records.refuse(
                bad, lambda n: f"{message}: it {words[0]} at {clock.shown(first[n])} and {words[1]} at {clock.shown(then[n])}{hint}"
            )
        )

    order(records.start, records.end, ("starts", "ends"))
    order(records.submit, records.start, ("is submitted", "starts"))
    order(records.submit, np.where(np.isnan(records.start), records.end, np.nan), ("is submitted", "ends"))


def _number_stays(records: Records) -> None:
    """Let a job that is in the log several times wait from the end of its stay before; refuse two runs at one time."""
    import pandas as pd

    code = pd.factorize(records.job)[0]
    several = np.flatnonzero(np.bincount(code, minlength=1)[code] > 1)
    if not several.size:
        return
    at = np.where(np.isnan(records.start), records.submit, records.start)
    # Parts of one run on several rows of servers have the same times; they are one stay.
    order = several[np.lexsort((records.end[several], at[several], code[several]))]
    before, here = order[:-1], order[1:]
    same = code[before] == code[here]
    parts = same & (at[before] == at[here]) & ((records.end[before] == records.end[here]) | np.isnan(records.end[before]))
    ends = np.where(np.isnan(records.end[before]), np.inf, records.end[before])
    overlap = np.zeros(len(records.job), bool)
    overlap[here[same & ~parts & (ends > at[here])]] = True
    again = same & ~parts & ~overlap[here]
    submit = records.submit.copy()
    submit[here[again]] = np.fmax(submit[here[again]], ends[again])
    lead = np.maximum.accumulate(np.where(np.concatenate([[False], parts]), 0, np.arange(order.size)))
    submit[order] = submit[order[lead]]
    records.submit = submit
    if again.any():
        jobs = len(np.unique(code[here[again]]))
        records.notes.append(f"{plural(jobs, 'job was', 'jobs were')} requeued, resized or suspended: each stay counts by itself")
    message = "it is in the log twice at one time: its records overlap; list each run of a job once"
    records.keep(records.refuse(overlap, message))


def _judge(records: Records, cluster: Instance) -> None:
    """Let records whose waiting time is excluded count from their start; leave those out that never started."""
    unknown = np.isnan(records.submit)
    why = np.where(unknown & (records.why == ""), _NO_SUBMISSION, records.why).astype(object)
    of_servers, shared = records.demands[:, : cluster.n_server_resources], records.demands[:, cluster.n_server_resources :]
    fits = np.asarray((of_servers[:, None, :] <= cluster.capacities[None] * (1 + FITS)).all(axis=2))  # (shapes, rows)
    large = ~(fits & np.asarray((shared <= cluster.shared_capacity * (1 + FITS)).all(axis=1))[:, None])
    large |= (cluster.counts == 0)[None, :]
    nowhere = np.asarray(large.all(axis=1))[records.shape]
    if cluster.differs_by_server:  # what a task takes elsewhere depends on its owner: `fairopt.histories.by_server`
        large[:], nowhere[:] = False, False
    for place in np.unique(records.place[records.place >= 0]):
        here = records.place == place
        nowhere[here] = (large | ~records.allowed[place])[records.shape[here]].all(axis=1)
    why = np.where(nowhere & (why == ""), NO_SERVER, why).astype(object)
    waits = np.where(np.isnan(records.start), records.end, records.start) - records.submit
    hours = np.where(np.isfinite(waits), waits, 0.0) * records.tasks / 3600
    affected = (why != "") & ((hours > 0) | np.isnan(records.start) | unknown)
    for reason in sorted(set(why[affected].tolist())):
        mine = affected & (why == reason)
        records.unjudged.append(Unjudged(reason, int(mine.sum()), float(hours[mine].sum()), records.where(int(np.argmax(mine)))))
    records.submit = np.where((why != "") & ~np.isnan(records.start), records.start, records.submit)
    records.keep((why == "") | ~np.isnan(records.start))


def _summed(found: list[Unjudged]) -> tuple[Unjudged, ...]:
    """Return one entry for each reason, the most frequent first."""
    sums: dict[str, Unjudged] = {}
    for each in found:
        before = sums.get(each.why)
        sums[each.why] = (
            each if before is None else Unjudged(each.why, before.jobs + each.jobs, before.task_hours + each.task_hours, before.first)
        )
    return tuple(sorted(sums.values(), key=lambda each: (-each.jobs, each.why)))


def _reasons(found: list[Unjudged]) -> str:
    return joined([f"{plural(each.jobs, 'job')}: {each.why}" for each in _summed(found)], 5) or "it lists none"
