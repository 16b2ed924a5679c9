"""What users, queues and servers hold under one to three notions, as tables with bars: now, and with a frame as before the changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.what_ifs import UserChange, WhatIf, largest_changes, signed
from fairopt.reporting.bars import Axis, axis_html, bar, sign
from fairopt.reporting.tables.answers import Held, bars_of_queues, parts_of_users
from fairopt.show.html import Html, table_html, text_html
from fairopt.show.table import Column, Table, names, numbers
from fairopt.wording import percent, plural

__all__ = ["queues_html", "servers_html", "users_html"]

_ROWS = 20  # users, queues and bars of servers, those that change most; more are counted


def users_html(found: WhatIf, rows: Sequence[str]) -> Html:
    """Return tasks before and now, and bars of the largest part of any resource that each user holds, a pair for each notion."""
    first = found.changes(rows[0])
    shown = first if len(first) <= _ROWS else largest_changes(first, _ROWS)
    columns: list[Column] = [names("user", (change.name for change in shown))]
    bars: list[list[Held | None]] = []
    for row in rows:
        changes = {change.name: change for change in found.changes(row)}
        own = [changes[change.name] for change in shown]
        now, before = (_by_name(each[row].allocation) for each in (found.after, found.before))
        bars.append([_held(now.get(change.name), before.get(change.name)) for change in own])
        columns += [
            numbers("before", (change.before for change in own), 4, above=row),
            numbers("now", (change.after for change in own), 4),
            numbers("change", map(_change, own)),
        ]
    more = len(first) - len(shown)
    left_out = f"and {plural(more, 'more user')}, whose tasks change no more" if more else ""
    legend = [
        ("part", "now: the largest part of a resource of the cluster that the user holds"),
        ("by_weight", "its weight, as a part of all weights"),
    ]
    return _shown(Table.of(*columns, title="Users: tasks"), bars, legend, left_out)


def _by_name(allocation: Allocation | None) -> Mapping[str, Held]:
    if allocation is None:
        return {}
    instance = allocation.instance
    parts = parts_of_users(allocation)[0]
    flat = not instance.queues and instance.weights.ndim == 1 and instance.weights.sum() > 0
    due: list[float | None] = (instance.weights / instance.weights.sum()).tolist() if flat else [None] * instance.n_users
    return {name: Held(float(part), own) for name, part, own in zip(instance.users, parts, due, strict=True)}


def _held(now: Held | None, before: Held | None) -> Held | None:
    old = None if before is None else before.part
    return Held(0.0, before=old) if now is None else replace(now, before=old)


def _change(change: UserChange) -> str:
    return change.verdict if change.change is None else signed(change.change, 4) if change.verdict != "as before" else "0"


def queues_html(found: WhatIf, rows: Sequence[str]) -> Html:
    """Return what each queue holds of the resource of guarantees and limits, of several of its own, a bar for each notion."""
    columns: list[Column] = []
    bars: list[list[Held | None]] = []
    resource = None
    for row in rows:
        allocation, old = found.after[row].allocation, found.before[row].allocation
        assert allocation is not None
        resource, queues = bars_of_queues(allocation)
        same, earlier = (None, []) if old is None else bars_of_queues(old)
        own = {each.name: thing for each, _, thing in queues}
        before = {each.name: held.part for each, held, thing in earlier if same == resource and thing == own.get(each.name)}
        shown = queues[:_ROWS]
        if not columns:
            columns.append(names("queue", (each.name for each, *_ in shown), indents=tuple(each.depth - 1 for each, *_ in shown)))
        bars.append([replace(held, before=before.get(each.name)) for each, held, _ in shown])
        columns += [
            numbers("before", (_percent(before.get(each.name)) for each, *_ in shown), above=row),
            numbers("now", (f"{_percent(held.part)}{'' if resource else f' {thing}'}".rstrip() for _, held, thing in shown)),
        ]
    more = len(queues) - len(shown)
    what = f"part of the {resource} of the cluster" if resource else "part of a resource of the cluster"
    legend = [("part", f"now: {what}"), ("guarantee", "guarantee"), ("limit", "limit"), ("missing", "missing of a guarantee")]
    return _shown(Table.of(*columns, title=f"Queues: {what}"), bars, legend, f"and {plural(more, 'more queue')}" if more else "")


def servers_html(found: WhatIf, rows: Sequence[str]) -> Html:
    """Return the part of each resource of each row of servers in use, a bar for each notion."""
    columns: list[Column] = []
    bars: list[list[Held | None]] = []
    for row in rows:
        allocation = found.after[row].allocation
        assert allocation is not None
        now, before = dict(_use(allocation)), dict(_use(found.before[row].allocation))
        shown = list(now)[:_ROWS]
        if not columns:
            columns.append(names("server", (f"{server}, {thing}" for server, thing in shown)))
        bars.append([Held(now[place], before=before.get(place)) for place in shown])
        columns += [
            numbers("before", (_percent(before.get(place)) for place in shown), above=row),
            numbers("now", (_percent(now[place]) for place in shown)),
        ]
    more = len(now) - len(shown)
    legend = [("part", "now: in use")]
    left_out = f"and {plural(more, 'more resource of a server', 'more resources of servers')}" if more else ""
    return _shown(Table.of(*columns, title="Servers: in use"), bars, legend, left_out, end=1.0)


def _use(allocation: Allocation | None) -> Iterator[tuple[tuple[str, str], float]]:
    if allocation is None:
        return
    instance = allocation.instance
    if allocation.sharing == "tdm":
        yield from (((server, "time"), float(part)) for server, part in zip(instance.servers, allocation.time_utilization, strict=True))
    else:
        for i, r in np.argwhere(instance.row_capacity > 0):
            yield (instance.servers[i], instance.resources[r]), float(allocation.utilization[i, r])
    yield from ((("the cluster", name), float(part)) for name, part in zip(instance.shared, allocation.shared_utilization, strict=True))


def _percent(part: float | None) -> str:
    return "" if part is None else percent(part, 1)


def _shown(
    table: Table, bars: Sequence[Sequence[Held | None]], legend: Sequence[tuple[str, str]], left_out: str, end: float | None = None
) -> Html:
    """Return a table with the bars of each notion before its numbers, all on one scale, and what the signs mean."""
    every = [held for own in bars for held in own if held is not None]
    axis = Axis.of([end] if end else [held.largest for held in every])
    width = (len(table.columns) - 1) // len(bars)
    drawn = {k * width: [axis_html(axis), *(bar(held, axis) for held in own)] for k, own in enumerate(bars)}
    meanings = [(mark, text) for mark, text in legend if mark == "part" or any(getattr(held, mark) for held in every)]
    if any(held.has_changed for held in every):
        meanings.append(("before", "before"))
    signs = "".join(f"<span>{sign(mark)}{text_html(text)}</span>" for mark, text in meanings)
    rest = f'<p class="soft">{text_html(left_out)}.</p>' if left_out else ""
    html: Any = table_html(table, missing="", drawn=drawn)
    return Html(f'<figure class="answer">{html}<figcaption class="legend">{signs}</figcaption></figure>{rest}')
