"""A simulation as plain data for JSON: one form for one scheduler and for several.

A row for each scheduler has its totals, and a row for each scheduler and user what the user received. Numbers that are measured for one
scheduler only, or only beside the exact simulation, are None where they are not measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.analysis.finish_ratios import columns_of_ratios
from fairopt.instance import FloatArray
from fairopt.results import finite, or_inf, records, result
from fairopt.simulation.baselines.options import half_life_of
from fairopt.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

    from fairopt.simulation.courses import SideBySide
    from fairopt.simulation.result import Simulation

__all__ = ["mean", "of_jobs", "one_scheduler", "several_schedulers", "slowdowns", "study_of_simulations"]

_BOUND = 10.0  # seconds, of bounded slowdowns
_HOUR = 3600.0
_FORMER = {  # keys of one scheduler until 1.0, and those of its row
    "kind": "kind",
    "until": "until_s",
    "jobs": "jobs",
    "jobs_finished": "jobs_ended",
    "tasks": "tasks",
    "tasks_ended": "tasks_ended",
    "fits_nowhere": "fits_nowhere",
    "makespan": "makespan_s",
    "completion_mean": "mean_completion_s",
    "completion_median": "median_completion_s",
    "utilization": "utilization_of",
}


def mean(values: FloatArray) -> float:
    """Return the mean of the values that are numbers; nan where none is."""
    there = values[np.isfinite(values)]
    return float(there.mean()) if there.size else float("nan")


def slowdowns(trace: Trace, finished: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the slowdown and the bounded slowdown of each job, (jobs,); nan: it has not ended."""
    first = np.cumsum(trace.tasks) - trace.tasks
    run = np.maximum.reduceat(trace.task_durations, first)
    took = finished - trace.submit
    slow = np.divide(took, run, out=np.full(run.size, np.nan), where=run > 0)
    return np.maximum(slow, 1.0), np.maximum(took / np.maximum(run, _BOUND), 1.0)


def of_jobs(trace: Trace, started: FloatArray, finished: FloatArray) -> dict[str, Any]:
    """Return what became of jobs whose starts and ends are (jobs,), nan for none: how many started and ended, and means of these."""
    slow, bounded = slowdowns(trace, finished)
    return {
        "jobs": trace.n_jobs,
        "started": int(np.isfinite(started).sum()),
        "jobs_ended": int(np.isfinite(finished).sum()),
        "wait_s": mean(started - trace.submit),
        "slowdown": mean(slow),
        "bounded_slowdown": mean(bounded),
        "makespan_s": float(np.nanmax(finished)) if np.isfinite(finished).any() else np.nan,
    }


def _completions(trace: Trace, finished: FloatArray) -> dict[str, float]:
    """Return how long jobs that ended took from their submission: the mean and the median."""
    took = (finished - trace.submit)[np.isfinite(finished)]
    return {"mean_completion_s": mean(took), "median_completion_s": float(np.median(took)) if took.size else np.nan}


def one_scheduler(found: Simulation) -> dict[str, Any]:
    """Return the simulation of one scheduler as plain data."""
    jobs, took = of_jobs(found.trace, found.started, found.finished), _completions(found.trace, found.finished)
    parts = found.mean_utilization
    row = _row(
        found.scheduler,
        kind=found.kind,
        **jobs,
        ended=jobs["jobs_ended"],  # until 1.0
        tasks=found.trace.n_tasks,
        tasks_ended=float(found.ended.sum()),
        fits_nowhere=list(found.fits_nowhere),
        **took,
        utilization=max((part for part in parts.values() if np.isfinite(part)), default=np.nan),
        utilization_of=parts,
        limit_use=found.limit_use,
        limit_most=found.limit_most,
        until_s=found.until,
        complete=found.complete,
        details=found.details,
        **{word: of_all for word, (of_all,) in columns_of_ratios([found.finish_ratios]).items()},
    )
    users = found.users_frame.reset_index()
    _, bounded = slowdowns(found.trace, found.finished)
    position = {name: n for n, name in enumerate(found.users)}
    owner = np.array([position[name] for name in found.trace.users], np.int64)[found.trace.user]
    wait, slowed = (_mean_of(owner, values, len(found.users)) for values in (found.started - found.trace.submit, bounded))
    hours = np.diff(found.series.times, append=found.series.times[-1:]) / _HOUR
    share = hours @ found.series.dominant_shares if hours.size else np.zeros(len(found.users))
    of_users = [
        _user(each["user"], found.scheduler, each, wait_s=wait[n], bounded_slowdown=slowed[n], share_h=share[n])
        for n, each in enumerate(records(users))
    ]
    regret, settling = (None if frame is None else records(frame) for frame in (found.regret, found.settling))
    queues = []
    if found.cluster.queues:
        queues = [{"name": each["queue"], **each} for each in records(found.queues_frame.reset_index())]
    old = {  # until 1.0
        "scheduler": found.scheduler,
        **{old: row[key] for old, key in _FORMER.items()},
        "regret": regret,
        "seconds": found.seconds,
    } | row["details"]
    return _simulated(
        found, {"schedulers": [row], "users": of_users, "queues": queues, "regret_over_time": regret, "settling": settling} | old
    )


def several_schedulers(found: SideBySide) -> dict[str, Any]:
    """Return schedulers side by side as plain data."""
    trace = found.trace
    rows = []
    for course, each in zip(found.courses, records(found.to_frame()), strict=True):
        lengths = course.lengths()
        use = lengths @ course.utilization / lengths.sum() if lengths.sum() > 0 else np.full(len(found.cluster.resources), np.nan)
        more = {
            "tasks": trace.n_tasks,
            **_completions(trace, course.finished),
            "utilization_of": dict(zip(found.cluster.resources, use.tolist(), strict=True)),
            "limit_use": course.mean_limit_use(found.cluster.limits),
            "limit_most": course.most_limit_use(found.cluster.limits),
            "until_s": course.until,
            "complete": course.complete,
        }
        rows.append(_row(course.name, **each, **more))
    weight = dict(zip(found.users, found.weights.tolist(), strict=True))
    users = [_user(each["user"], each["scheduler"], each, weight=weight[each["user"]]) for each in records(found.users_frame())]
    beside = {"not_begun": list(found.not_begun), "reference": found.exact.name, "window_s": found.window}
    return _simulated(found, beside | {"exact": found.exact.name, "schedulers": rows, "users": users})  # exact: until 1.0


def _simulated(found: Simulation | SideBySide, known: dict[str, Any]) -> dict[str, Any]:
    """Return a result: what is known, and the empty value of what was not measured."""
    empty = {
        "complete": found.complete,
        "not_begun": [],
        "reference": None,
        "window_s": None,
        "schedulers": [],
        "users": [],
        "queues": [],
        "regret_over_time": None,
        "settling": None,
        "time_s": found.seconds,
    }
    return result("simulate", found.question, found.cluster.units, empty | known)


def study_of_simulations(frame: pd.DataFrame, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows of `fairopt.study_over_time`, and its arguments, as plain data."""
    rows = [
        {"name": row.pop("scheduler"), **row, "half_life_s": or_inf(half_life)}
        for row, half_life in zip(records(frame), frame["half_life_s"], strict=True)
    ]
    return result("study-over-time", question, {}, {"rows": rows})


def _row(name: str, **known: Any) -> dict[str, Any]:
    """Return the row of a scheduler: every key, None where nothing is known."""
    keys = (
        *("kind", "half_life_s", "jobs", "started", "jobs_ended", "ended", "tasks", "tasks_ended", "fits_nowhere", "wait_s", "slowdown"),
        *("bounded_slowdown", "mean_completion_s", "median_completion_s", "makespan_s", "utilization", "utilization_of"),
        *("shortfall_h", "regret", "envy_h", "jain", *columns_of_ratios([]), "until_s", "complete", "details"),
    )
    row: dict[str, Any] = {"name": name, "scheduler": name}  # scheduler: until 1.0
    row |= {key: finite(known.get(key)) for key in keys}
    row |= {"half_life_s": or_inf(half_life_of(name)), "details": {key: finite(each) for key, each in (row["details"] or {}).items()}}
    return row | {key: {name: finite(each) for name, each in known[key].items()} for key in ("utilization_of", "limit_use", "limit_most")}


def _user(name: str, scheduler: str, row: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the row of a user under a scheduler: every key, None where nothing is known."""
    keys = ("weight", "jobs", "jobs_ended", "tasks", "tasks_ended", "completion_ratio", "mean_completion_s", "wait_s", "bounded_slowdown")
    empty = dict.fromkeys((*keys, *columns_of_ratios([]), "share_h", "shortfall_h", "envy_h"))
    return {"name": name, "scheduler": scheduler} | empty | row | {key: finite(each) for key, each in more.items()}


def _mean_of(owner: Any, values: FloatArray, number: int) -> FloatArray:
    """Return the mean over the jobs of each user of the values that are numbers; nan where none is."""
    there = np.isfinite(values)
    total, count = (np.bincount(owner[there], weights=each[there], minlength=number) for each in (values, np.ones(values.size)))
    means: FloatArray = np.divide(total, count, out=np.full(number, np.nan), where=count > 0)
    return means
