"""The page of a history: the picture and all tables in one HTML file that loads nothing and runs nothing.

>>> import tempfile
>>> from pathlib import Path
>>> import fairopt as fo
>>> import pandas as pd
>>> jobs = pd.DataFrame({"user": ["A", "B"], "submit": [0, 1], "start": [0, 2], "end": [2, 3], "tasks": [8, 8], "cpu": [1, 1]})
>>> found = fo.history(jobs, fo.Instance([[8]], [[1]], resources=["cpu"]))
>>> with tempfile.TemporaryDirectory() as folder:
...     write_history_page(found, Path(folder, "month.html"))
...     "<svg" in Path(folder, "month.html").read_text()
True
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from fairopt.histories.result import History
from fairopt.reporting.plain_page import columns_mean, page_path, picture, write_page
from fairopt.reporting.tables.histories import MEANINGS, period_of
from fairopt.reporting.tables.simulation import LATE, finish_ratios
from fairopt.show.html import Html, table_html, text_html
from fairopt.show.table import Column, Table, ids
from fairopt.wording import figure, plural

__all__ = ["write_history_page"]

_WORDS = {
    "owner": "Owners",
    "queue": "Queues",
    "limit": "Resources of the cluster and named limits: parts in use",
    "window": "Windows",
    "hour": "By hour of the day: mean shares, all owners together",
    "worst": "The worst times: owners with the largest shortfall and the largest surplus (mean shares)",
}


def write_history_page(history: History, output: str | os.PathLike[str], title: str | None = None) -> None:
    """Write the page. The file is replaced only when it is complete.

    Raises
    ------
    Unsupported, InvalidInstance
        The name of the file does not end in .html, or it cannot be written.
    """
    path = page_path(output)
    log = history.setting.log
    data = history.to_dict()
    error = "" if history.is_exact else f" (standard error {figure(data['shortfall_error'])})"
    parts = [
        f"<p>{plural(data['jobs'], 'job')} of {plural(len(history.owners), 'owner')}. Due and not given while work waited: "
        f"{figure(data['shortfall'])} of {figure(data['entitled'])} share-hours{error}; the whole cluster for an hour is 1. "
        f"Judged at {plural(data['moments'], 'moment')} of {plural(data['contended_changes'], 'change')} while work waited; "
        f"{plural(data['solved'], 'certified allocation')}, worst residual {data['residual']:.1e}.</p>",
        picture(history.plot(title=""), "Shortfall of all owners over time, and what each received and was due"),
    ]
    for by, words in _WORDS.items():
        frame = history.to_frame(by)  # type: ignore[arg-type]  # the keys are tables
        if by in ("owner", "queue"):
            frame = frame.sort_values("shortfall", ascending=False, kind="stable")
        if by == "queue":
            frame = frame[~frame.index.isin(history.owners)]  # a queue that is an owner is in the table of owners
        if by == "owner":
            parts += [f"<h2>{words}</h2>", columns_mean(_meanings(history)), *_owners(frame, judges_envy=history.judges_envy)]
        elif len(frame) and not (by == "window" and len(frame) == 1):  # whose sums are those of the owners
            parts += [f"<h2>{words}</h2>", _table(frame.reset_index() if frame.index.name else frame)]
    if log.unjudged:
        rows = [(each.jobs, each.why, each.task_hours, each.first) for each in log.unjudged]
        parts += ["<h2>Not judged</h2>", _table(pd.DataFrame(rows, columns=["jobs", "why", "task-hours", "first"]))]
    parts += [f"<p>{text_html(note)}</p>" for note in history.notes]
    write_page(path, title or f"Fair shares by {history.notion}, {period_of(history)}", parts)


def _meanings(history: History) -> dict[str, str]:
    found = {"all columns": "share-hours; the whole cluster for an hour is 1"} | MEANINGS
    found |= {"of tasks": "the same in task-hours, of the tasks that the owner runs"}
    return {heading: means for heading, means in found.items() if heading != "envy" or history.judges_envy}


def _owners(frame: pd.DataFrame, *, judges_envy: bool) -> Iterator[str]:
    """Yield what owners received and were due, and below it how much later than alone their jobs ended."""
    ratios = [name for name in frame.columns if str(name).startswith("finish_ratio")]
    yield _table(frame.drop(columns=[*ratios, *([] if judges_envy else ["envy"])]).reset_index())
    if np.isfinite(frame["finish_ratio_median"]).any():
        yield table_html(finish_ratios("owner", frame), missing="")
        yield f"<p class=soft>{text_html(LATE)}</p>"


def _table(frame: pd.DataFrame) -> Html:
    titled = frame.rename(columns={name: str(name).replace("_", " ") for name in frame.columns})
    table = Table.of_frame(titled, digits=4)
    columns = [_dates(column) if column.title in ("start", "end") and column.kind == "words" else column for column in table.columns]
    return table_html(replace(table, columns=tuple(columns)), missing="")


def _dates(column: Column) -> Column:
    """Return a column of dates as people write them, each on one line: 2026-11-03 00:30."""
    dates = [str(date).replace("T", " ") for date in column.values]
    whole = all(re.search(r" \d\d:\d\d:00$", date) for date in dates)
    return ids(column.title, [date.removesuffix(":00") if whole else date for date in dates])
