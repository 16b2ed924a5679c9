"""A simulation: totals, a row for each queue and user, regret over time, and how fast servers that act on their own settle."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from fairopt.show.blocks import GAP, Block, Facts, Note
from fairopt.show.table import Format, Table, names, numbers, percents
from fairopt.simulation.baselines.options import half_life_of
from fairopt.simulation.result import Simulation
from fairopt.wording import duration, figure, percent, plural

__all__ = ["LATE", "finish_ratios", "simulation_blocks"]

_USERS = 12  # listed one by one
LATE = "finish-time ratio: time from submission to end, over the same alone on the slice of the user's weight; above 1: later than alone."
_SECONDS = Format(unit="s", missing="-")


def _seconds(value: float | None) -> str:
    return _SECONDS.write([value])[0]


def _ratio(found: Simulation) -> str:
    """Return the finish-time ratio over all jobs."""
    jobs, largest, median, p90, above = found.finish_ratios_frame("all").iloc[0]
    shown = f"median {figure(median)}, p90 {figure(p90)}, largest {figure(largest)}; above 1: {int(above):,} of {int(jobs):,}"
    return shown if jobs else "-"


def simulation_blocks(found: Simulation) -> Iterator[Block]:
    """Yield totals, then a row for each user."""
    over, waits = np.isfinite(found.finished), found.completion[np.isfinite(found.completion)]
    mean, median = (waits.mean(), np.median(waits)) if waits.size else (None, None)
    used = {name: percent(part) for name, part in found.mean_utilization.items() if np.isfinite(part)}
    size = f"{plural(found.trace.n_jobs, 'job')} of {plural(len(found.users), 'user')}, {plural(found.cluster.counts.sum(), 'server')}"
    yield f"{size}: {found.scheduler}, {found.kind}"
    yield GAP
    facts: list[tuple[str, str]] = [
        ("jobs that ended", f"{int(over.sum()):,} of {found.trace.n_jobs:,}"),
        ("tasks that ended", f"{figure(float(found.ended.sum()), 6)} of {found.trace.n_tasks:,}"),
        ("completion time", f"mean {_seconds(mean)}, median {_seconds(median)}"),
        ("last job ended at", _seconds(found.makespan)),
        ("finish-time ratio", _ratio(found)),
        ("mean utilization", ", ".join(f"{name} {part}" for name, part in used.items()) or "-"),
    ]
    if most := found.limit_most:
        use = found.limit_use
        facts.append(("use of limits", ", ".join(f"{name} {percent(use[name])}, at most {percent(part)}" for name, part in most.items())))
    if np.isfinite(half_life := half_life_of(found.scheduler)):
        facts.append(("half-life", duration(half_life)))
    if not found.complete:
        facts.append(("stopped at", _seconds(found.until)))
    if found.fits_nowhere:
        facts.append(("fit on no server", f"{plural(len(found.fits_nowhere), 'job')}, such as {found.fits_nowhere[0]}"))
    yield Facts(tuple(facts))
    yield GAP
    if found.cluster.queues:
        queues = found.queues_frame[1:]
        yield _jobs("queue", queues[queues["jobs"] > 0])
        yield GAP
    frame = found.users_frame
    frame = frame[frame["jobs"] > 0]
    shown = frame.sort_values("tasks", ascending=False, kind="stable")[:_USERS]
    yield _jobs("user", shown)
    if len(frame) > len(shown):
        yield f"and {plural(len(frame) - len(shown), 'user')} with fewer tasks"
    has_ratios = bool(np.isfinite(shown["finish_ratio_median"]).any())
    if has_ratios:
        yield GAP
        yield finish_ratios("user", shown)
    if found.regret is not None and len(found.regret.columns) > 1:
        yield from _regret(found.regret, found.settling is None)
    if found.settling is not None:
        yield from _settling(found.settling, found.details["period"])
    yield GAP
    completion = "completion: mean time from submission to end of the jobs that ended."
    yield Note(f"{completion}\n{LATE}" if has_ratios else completion, style="soft")


def finish_ratios(kind: str, frame: pd.DataFrame) -> Table:
    """Return the finish-time ratios of the jobs of users, or under schedulers."""
    return Table.of(
        names(f"finish-time ratio, by {kind}", map(str, frame.index)),
        *(numbers(word, frame[f"finish_ratio_{word}"], missing="-") for word in ("median", "p90", "largest")),
        numbers("jobs above 1", frame["finish_ratio_above_1"], 6),
    )


def _jobs(kind: str, frame: pd.DataFrame) -> Table:
    """Return users or queues: jobs, tasks, and what has ended."""
    return Table.of(
        names(kind, map(str, frame.index)),
        *([numbers("weight", frame["weight"], 6)] if "weight" in frame else []),
        numbers("jobs", frame["jobs"], 6),
        numbers("jobs ended", frame["jobs_ended"], 6),
        numbers("tasks", frame["tasks"], 6),
        percents("tasks ended", frame["completion_ratio"]),
        numbers("completion", frame["mean_completion_s"], unit="s", missing="-"),
    )


def _regret(regret: pd.DataFrame, bound: bool) -> Iterator[Block]:
    of_moments = regret[[word for word in regret.columns if word != "time_s"]]
    both = of_moments.agg(["mean", "max"])
    columns = (percents(str(word), (each if np.isfinite(each) else None for each in both[word])) for word in both)
    yield GAP
    yield Table.of(names("regret", ("mean", "largest")), *columns)
    of = f"over {plural(len(regret), 'moment')}, against the exact allocation of divisible tasks"
    yield f"{of}{' (an upper bound)' if bound else ''}"


def _settling(settling: pd.DataFrame, period: float) -> Iterator[Block]:
    """Yield how many periods after a change of the exact allocation the servers came close to it."""
    rows = []
    for column in settling.columns[3:]:
        word, _, tolerance = column.rpartition("_")
        values = settling[column].dropna()
        never = f"{len(settling) - len(values):,} of {len(settling):,}"
        rows.append((f"{word} within {float(tolerance):g}", values.median(), values.max(), never))
    until, median, longest, late = zip(*rows, strict=True)
    yield GAP
    yield Table.of(
        names("periods until", until),
        numbers("median", median, missing="-"),
        numbers("longest", longest, missing="-"),
        numbers("not before the next change", late),
    )
    yield f"Periods of {period:g} s from a change until the servers are this close to the new exact allocation, which they only approach."
