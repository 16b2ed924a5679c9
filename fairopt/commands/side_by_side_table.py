"""The table of several schedulers on one trace."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.text import Text

import fairopt as fo
from fairopt.clusters.clock import span_of
from fairopt.commands.tables import add_numbers, label, print_note, simple_table
from fairopt.wording import figure, joined, percent, plural

__all__ = ["print_side_by_side"]

_USERS = 8  # with a row for each scheduler


def print_side_by_side(console: Console, found: fo.SideBySide) -> None:
    """Print a row for each scheduler, then the bounded slowdown of the users with most jobs under each."""
    users = f"{plural(found.trace.n_jobs, 'job')} of {plural(len(found.users), 'user')}"
    console.print(Text(f"{users}, {plural(found.cluster.counts.sum(), 'server')}; shortfall against exact {found.exact.name}\n"))
    table = simple_table("scheduler")
    add_numbers(table, "ended", "wait", "slow", "bounded", "use", "short", "envy", "Jain")
    for name, row in found.to_frame().iterrows():
        table.add_row(
            label(str(name)),
            figure(row["ended"], 6),
            _number(row["wait_s"], " s"),
            _number(row["slowdown"]),
            _number(row["bounded_slowdown"]),
            percent(row["utilization"]),
            _number(row["shortfall_h"], " h"),
            _number(row["envy_h"], " h"),
            _number(row["jain"]),
        )
    console.print(table)
    for name, seconds in found.to_frame()["half_life_s"].items():
        if np.isfinite(seconds) and "half_life" not in str(name):
            print_note(console, f"{name}: a half-life of {span_of(seconds)}, the default")
    if stopped := [course.name for course in found.courses if not course.complete]:
        print_note(console, f"\n{joined(stopped, 5)}: stopped early; the row holds what was simulated until then")
    if found.not_begun:
        print_note(console, f"\nNot begun when the simulation was stopped: {joined(found.not_begun, 5)}")
    frame = found.users_frame()
    most = frame.drop_duplicates("user").sort_values("jobs", ascending=False, kind="stable")["user"][:_USERS].tolist()
    table = simple_table("bounded slowdown")
    names = [course.name for course in found.courses]
    add_numbers(table, *names)
    for user in most:
        own = frame[frame["user"] == user]["bounded_slowdown"].tolist()
        table.add_row(label(user), *(_number(value) for value in own))
    console.print()
    console.print(table)
    if len(found.users) > len(most):
        console.print(Text(f"and {plural(len(found.users) - len(most), 'user')} with fewer jobs"))
    notes = (
        f"wait: mean time until the first task of a job starts{_of_started(found)}.\n"
        "slow: mean of (end - submission) / run time, of the jobs that ended. bounded: the same, with run times of at least 10 s.\n"
        "short: cluster-hours that waiting users lacked, against the exact simulation.\n"
        "envy: cluster-hours that waiting users would have gained with the weighted share of another user.\n"
        "Jain: mean index of shares by weight; 1: all have the same."
    )
    console.print(Text(f"\n{notes}", style="dim"))


def _of_started(found: fo.SideBySide) -> str:
    """Return which jobs a wait is of, where some have not started."""
    frame = found.to_frame()
    late = [f"{plural(number, 'job')} under {name}" for name, number in (frame["jobs"] - frame["started"]).items() if number]
    return f", of the jobs that started; without {joined(late, 5)} that did not" if late else ""


def _number(value: float, unit: str = "") -> str:
    return f"{figure(float(value))}{unit}" if np.isfinite(value) else "-"
