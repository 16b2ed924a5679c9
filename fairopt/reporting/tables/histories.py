"""A history: the totals, a row for each owner and queue, the worst times, and what was not judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairopt.histories.result import History
from fairopt.reporting.tables.simulation import LATE, finish_ratios
from fairopt.show.blocks import GAP, Block, Facts, Note
from fairopt.show.table import Table, ids, names, numbers, percents, words
from fairopt.wording import duration, figure, percent, plural, residual

__all__ = ["MEANINGS", "history_blocks", "period_of"]

_OWNERS = 12  # listed one by one
_REASONS = 8
_COLUMNS = ("entitled", "received", "shortfall", "surplus")
MEANINGS = {
    "entitled": "the exact allocation of the jobs that were there",
    "received": "what the jobs of the owner held",
    "shortfall": "due and not given while work waited",
    "surplus": "given beyond what was due",
    "envy": "what it would gain with what another owner of its queue held",
    "waiting": "work that waited",
}
"""What each column of owners means."""


def period_of(found: History) -> str:
    """Return from when to when the log was judged."""
    clock = found.setting.log.clock
    return f"{clock.shown(found.windows[0][0])} to {clock.shown(found.windows[-1][1])}"


def history_blocks(found: History, *, shown: Sequence[str] = (), sort: str = "shortfall", top: int | None = None) -> Iterator[Block]:
    """Yield the totals, a row for each owner and queue, the worst times, and what was not judged."""
    data = found.to_dict()
    jobs = f"{plural(data['jobs'], 'job')} of {plural(len(found.owners), 'owner')}"
    yield f"{found.notion}, {period_of(found)} ({duration(found.hours * 3600)}): {jobs}"
    yield GAP
    yield _facts(found, data)
    yield GAP
    frame = found.to_frame()
    if found.setting.groups:
        queues = found.to_frame("queue").sort_values("shortfall", ascending=False, kind="stable")
        queues = queues[~queues.index.isin(found.owners)]  # a queue that is an owner is in the table of owners
        if len(queues):
            yield _shares("queue", queues, ())
            yield GAP
    more = ["envy", "waiting"] if found.judges_envy else ["waiting"]
    chosen = frame.loc[list(shown)] if shown else frame
    chosen = chosen.sort_index() if sort == "name" else chosen.sort_values(sort, ascending=False, kind="stable")
    listed = chosen[: top or (len(chosen) if shown else _OWNERS)]
    yield _shares("owner", listed, (*more, *(["shortfall_error"] if not found.is_exact else [])))
    if len(listed) < len(chosen):
        yield f"and {plural(len(chosen) - len(listed), 'owner')} more"
    yield from _limits(found)
    if len(found.windows) > 1:
        yield from _windows(found)
    yield from _worst(found)
    if np.isfinite(listed["finish_ratio_median"]).any():
        yield GAP
        yield finish_ratios("owner", listed)
    yield from _unjudged(data["unjudged"])
    for note in found.notes:
        yield GAP
        yield Note(f"Note: {note}", whole=True)
    meant = ("entitled", "shortfall", "surplus", "waiting", *(["envy"] if found.judges_envy else []))
    columns = " ".join(f"{name}: {MEANINGS[name]}." for name in meant)
    yield GAP
    yield Note(f"In share-hours: the whole cluster for an hour is 1. {columns}\n{LATE}", style="soft")


def _facts(found: History, data: dict[str, Any]) -> Facts:
    total = data["entitled"]
    part = f", {percent(data['shortfall'] / total)} of what was due" if total > 0 else ""
    error = "" if found.is_exact else f" ± {figure(data['shortfall_error'])}"
    return Facts(
        (
            ("shortfall", f"{figure(data['shortfall'])}{error} share-hours{part}"),
            ("work waited in", f"{percent(data['contended_hours'] / data['hours'])} of the time"),
            ("judged at", _judged(found, data)),
            ("certificates", f"{plural(data['solved'], 'exact allocation')}, worst residual {residual(data['residual'])}"),
        )
    )


def _judged(found: History, data: dict[str, Any]) -> str:
    if found.is_exact:
        return f"every change while work waited, {data['contended_changes']:,}"
    changes = f"{data['contended_changes']:,} changes while work waited"
    if any(found.exact):
        some = f"{sum(found.exact)} of {plural(len(found.windows), 'window')}"
        return f"{data['moments']:,} moments: every change in {some}, random ones in the others, of {changes}"
    return f"{data['moments']:,} random moments, of {changes}"


def _shares(kind: str, frame: pd.DataFrame, more: Sequence[str]) -> Table:
    titles = {"shortfall_error": "± shortfall"}
    return Table.of(names(kind, map(str, frame.index)), *(numbers(titles.get(name, name), frame[name], 4) for name in (*_COLUMNS, *more)))


def _limits(found: History) -> Iterator[Block]:
    """Yield how full resources of the cluster and named limits were."""
    frame = found.to_frame("limit")
    if len(frame):
        yield GAP
        yield Table.of(
            names("limit", (f"{each.name} (shared)" if each.kind == "shared" else str(each.name) for each in frame.itertuples())),
            numbers("of", frame["bound"]),
            percents("mean use", frame["mean_use"]),
            percents("most use", frame["most_use"]),
        )


def _windows(found: History) -> Iterator[Block]:
    frame, clock = found.to_frame("window"), found.setting.log.clock
    frame = frame.sort_values("shortfall", ascending=False, kind="stable")[:_OWNERS].sort_index()
    yield GAP
    yield Table.of(
        ids("window", (clock.shown(found.windows[int(w)][0]) for w in frame.index)),
        percents("work waited", frame["contended_hours"] / frame["hours"]),
        *(numbers(name, frame[name], 4) for name in _COLUMNS),
    )
    if len(found.windows) > len(frame):
        yield f"and {plural(len(found.windows) - len(frame), 'window')} with a smaller shortfall"


def _worst(found: History) -> Iterator[Block]:
    worst, clock = found.worst(), found.setting.log.clock
    if not worst:
        return
    yield GAP
    yield Table.of(
        ids("worst times", (clock.shown(each.start) for each in worst)),
        numbers("shortfall", (each.shortfall for each in worst)),
        words("lacked (mean share)", (_listed(each.lacked) for each in worst)),
        words("held beyond its due", (_listed(each.beyond) for each in worst)),
    )
    yield Note(f"each {duration(worst[0].end - worst[0].start)} long", style="soft")


def _listed(shares: Any) -> str:
    return ", ".join(f"{name} {percent(share)}" for name, share in shares)


def _unjudged(reasons: Sequence[dict[str, Any]]) -> Iterator[Block]:
    if reasons:
        yield GAP
        yield "Not judged"
    for each in reasons[:_REASONS]:
        hours = f", {figure(each['task_hours'])} task-hours of waiting" if each["task_hours"] else ""
        yield Note(f"{plural(each['jobs'], 'job')}: {each['why']}{hours}; the first: {each['first']}", whole=True)
    if len(reasons) > _REASONS:
        yield f"and {plural(len(reasons) - _REASONS, 'reason')} more"
