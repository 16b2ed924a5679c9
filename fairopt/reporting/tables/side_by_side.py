"""Several schedulers on one trace, side by side: a row for each, then what each gives the users."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from fairopt.reporting.tables.simulation import LATE, finish_ratios
from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Table, names, numbers, percents
from fairopt.simulation.side_by_side import SideBySide
from fairopt.wording import duration, joined, plural

__all__ = ["side_by_side_blocks"]

_USERS = 8  # with a row for each scheduler


def side_by_side_blocks(found: SideBySide) -> Iterator[Block]:
    """Yield rows for each scheduler, then the bounded slowdown and the largest finish-time ratio of the users with most jobs under each."""
    users = f"{plural(found.trace.n_jobs, 'job')} of {plural(len(found.users), 'user')}"
    yield f"{users}, {plural(found.cluster.counts.sum(), 'server')}; shortfall against exact {found.exact.name}"
    yield GAP
    frame = found.to_frame()
    yield Table.of(
        names("scheduler", map(str, frame.index)),
        numbers("jobs ended", frame["jobs_ended"], 6),
        numbers("wait", frame["wait_s"], unit="s", missing="-"),
        numbers("slow", frame["slowdown"], missing="-"),
        numbers("bounded", frame["bounded_slowdown"], missing="-"),
        percents("use", frame["utilization"]),
        numbers("short", frame["shortfall_h"], unit="h", missing="-"),
        numbers("envy", frame["envy_h"], unit="h", missing="-"),
        numbers("Jain", frame["jain"], missing="-"),
    )
    yield GAP
    yield finish_ratios("scheduler", frame)
    for name, seconds in frame["half_life_s"].items():
        if np.isfinite(seconds) and "half_life" not in str(name):
            yield Note(f"{name}: a half-life of {duration(seconds)}, the default", whole=True)
    if stopped := [course.name for course in found.courses if not course.complete]:
        yield GAP
        yield Note(f"{joined(stopped, 5)}: stopped early; the row holds what was simulated until then", whole=True)
    if found.not_begun:
        yield GAP
        yield Note(f"Not begun when the simulation was stopped: {joined(found.not_begun, 5)}", whole=True)
    of_users = found.users_frame()
    most = of_users.drop_duplicates("user").sort_values("jobs", ascending=False, kind="stable")["user"][:_USERS].tolist()
    yield GAP
    yield _users(found, of_users, most, "bounded_slowdown", "bounded slowdown")
    yield GAP
    yield _users(found, of_users, most, "finish_ratio_largest", "largest finish-time ratio")
    if len(found.users) > len(most):
        yield f"and {plural(len(found.users) - len(most), 'user')} with fewer jobs"
    yield GAP
    yield Note(
        f"wait: mean time until the first task of a job starts{_of_started(frame)}.\n"
        "slow: mean of (end - submission) / run time, of the jobs that ended. bounded: the same, with run times of at least 10 s.\n"
        "short: cluster-hours that waiting users lacked, against the exact simulation.\n"
        "envy: cluster-hours that waiting users would have gained with the weighted share of another user.\n"
        "Jain: mean index of shares by weight; 1: all have the same.\n"
        f"{LATE}",
        style="soft",
    )


def _users(found: SideBySide, frame: pd.DataFrame, users: list[str], column: str, title: str, unit: str = "") -> Table:
    """Return a row for each of these users, with a number under each scheduler."""
    schedulers = [course.name for course in found.courses]
    wide = frame.pivot(index="user", columns="scheduler", values=column).loc[users, schedulers]
    return Table.of(names(title, users), *(numbers(name, wide[name], unit=unit, missing="-") for name in schedulers))


def _of_started(frame: pd.DataFrame) -> str:
    """Return which jobs a wait is of, where some have not started."""
    late = [f"{plural(number, 'job')} under {name}" for name, number in (frame["jobs"] - frame["started"]).items() if number]
    return f", of the jobs that started; without {joined(late, 5)} that did not" if late else ""
