"""The page of schedulers side by side: tables, pictures over time and by user in one HTML file that loads nothing and runs nothing.

Each scheduler has one colour and one line style in all of them.

>>> import tempfile
>>> from pathlib import Path
>>> import fairopt as fo
>>> cluster = fo.Instance([[4]], [[1]], users=["nobody"], resources=["cpu"])
>>> trace = fo.Trace(["A", "B"], [0, 5], [4, 4], [[1], [1]], [10, 10], resources=["cpu"])
>>> found = fo.compare_over_time(trace, cluster, ["fifo", "drfh"])
>>> with tempfile.TemporaryDirectory() as folder:
...     write_side_by_side_page(found, Path(folder, "week.html"))
...     Path(folder, "week.html").read_text().count("<figure")
2
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from fairopt.plots.colours import Look, looks
from fairopt.reporting.plain_page import columns_mean, page_path, picture, write_page
from fairopt.show.html import Html, table_html, text_html
from fairopt.show.table import Column, Style, Table, ids, names, numbers, percents
from fairopt.simulation.baselines.options import half_life_of
from fairopt.simulation.side_by_side import SideBySide
from fairopt.wording import duration, figure, joined, percent, plural

__all__ = ["write_side_by_side_page"]

_ROWS = 200  # users in a table
_DASHES = {"-": "", "--": "6 3", "-.": "7 2 2 2", ":": "2 2"}
_MEASURES = (  # column of the frame, heading, unit, whether less is better, what it means
    ("wait_s", "wait", "s", True, "mean time until the first task of a job starts, over the jobs that started"),
    ("slowdown", "slowdown", "", True, "mean of (end - submission) / run time, over the jobs that ended"),
    ("bounded_slowdown", "bounded slowdown", "", True, "the same, with run times of at least 10 s"),
    ("utilization", "utilization", "%", False, "mean use of the resource that is used most"),
    ("shortfall_h", "shortfall", "h", True, "how much less waiting users had than in the exact simulation, in hours of the whole cluster"),
    ("regret", "regret", "%", True, "the shortfall, relative to what users received in the exact simulation"),
    (
        "envy_h",
        "envy",
        "h",
        True,
        "how much more waiting users would have had with the weighted share of another user, in hours of the whole cluster",
    ),
    ("jain", "Jain's index", "", False, "mean over windows of Jain's index of shares by weight; 1: all users had the same"),
    (
        "finish_ratio_p90",
        "finish-time ratio, p90",
        "",
        True,
        "90th percentile over the jobs of the time from submission to end, over the same alone on the slice of the user's weight",
    ),
    ("finish_ratio_largest", "largest", "", True, "the largest of these ratios"),
    ("finish_ratio_above_1", "above 1", "", True, "how many of them are above 1: jobs that ended later than alone"),
)
_BY_USER = (
    ("bounded_slowdown", "Bounded slowdown", ""),
    ("wait_s", "Mean wait of the jobs that started", "s"),
    ("share_h", "Received, in share-hours", ""),
    ("shortfall_h", "Shortfall, in share-hours", ""),
    ("envy_h", "Envy, in share-hours", ""),
    ("finish_ratio_largest", "Largest finish-time ratio", ""),
    ("finish_ratio_above_1", "Jobs that ended later than alone", ""),
)


def write_side_by_side_page(found: SideBySide, output: str | os.PathLike[str], title: str | None = None) -> None:
    """Write the page. The file is replaced only when it is complete.

    Parameters
    ----------
    found : SideBySide
    output : path
        Its name ends in .html.
    title : str, optional

    Raises
    ------
    Unsupported, InvalidInstance
        The name of the file does not end in .html, or it cannot be written.
    """
    path = page_path(output)
    marks = _marks(looks(course.name for course in found.courses))
    frame, users = found.to_frame(), found.users_frame()
    parts = [
        _summary(found, frame),
        _legend(found, marks),
        "<h2>Every scheduler</h2>",
        table_html(_schedulers(frame), marks=marks),
        _words(found),
        "<h2>Over time</h2>",
        picture(found.plot(title=""), "Utilization, waiting tasks, shortfall, regret, envy and Jain's index over time, of each scheduler"),
        "<details><summary>Jain's index by windows, as a table</summary>",
        table_html(_jain(found), marks=marks),
        "</details>",
        "<h2>By user</h2>",
        picture(found.plot("user", title=""), "Bounded slowdown, wait and shortfall of each user, under each scheduler"),
        *_by_user(found, users, marks),
    ]
    write_page(path, title or f"{plural(len(found.courses), 'scheduler')} side by side", parts)


def _summary(found: SideBySide, frame: pd.DataFrame) -> str:
    """Return what was simulated, which scheduler is best in what, and what was stopped."""
    submit = found.trace.submit
    what = (
        f"{plural(found.trace.n_jobs, 'job')} of {plural(len(found.users_by_shortfall()), 'user')} on "
        f"{plural(found.cluster.counts.sum(), 'server')}, submitted over {duration(float(np.ptp(submit)) if submit.size else 0.0)}. "
        f"Shortfalls are measured against the exact simulation of {found.exact.name}, which divides tasks and moves them at no cost: "
        "no scheduler reaches it."
    )
    whole = frame[frame["kind"] == "greedy"]  # of the others, the exact simulation is nearly always the best
    best = [
        f"{word} {joined(_best(whole[column], less), 3)} ({shown})"
        for column, word, less, shown in (
            ("bounded_slowdown", "the least bounded slowdown is that of", True, figure(float(whole["bounded_slowdown"].min()))),
            ("utilization", "the highest utilization that of", False, percent(float(whole["utilization"].max()))),
            ("shortfall_h", "the least shortfall that of", True, f"{figure(float(whole['shortfall_h'].min()))} h"),
        )
        if whole[column].notna().any()
    ]
    lines = [
        f"<p>{text_html(what)}</p>",
        f"<p>{text_html('Among the schedulers of whole tasks, ' + ', '.join(best))}.</p>" if len(whole) > 1 else "",
    ]
    if stopped := [course.name for course in found.courses if not course.complete]:
        lines.append(
            f"<p><strong>{text_html(joined(stopped, 5))}: stopped early; the numbers are of what was simulated until then.</strong></p>"
        )
    if found.not_begun:
        lines.append(f"<p><strong>Not begun when the simulation was stopped: {text_html(joined(found.not_begun, 5))}.</strong></p>")
    for name, row in frame[frame["started"] < frame["jobs"]].iterrows():
        waiting = plural(int(row["jobs"] - row["started"]), "job")
        lines.append(f"<p>{text_html(str(name))}: {waiting} never started, and are not in its mean wait.</p>")
    return "".join(lines)


def _best(values: pd.Series, less: bool) -> list[str]:
    """Return the schedulers that are best, equal to three digits."""
    best = values.min() if less else values.max()
    return [str(name) for name, value in values.items() if np.isclose(value, best, rtol=1e-3, atol=1e-12)]


def _marks(look: Mapping[str, Look]) -> dict[str, Html]:
    """Return the line of each scheduler, to stand before its name."""
    marks = {}
    for name, own in look.items():
        dash = f' stroke-dasharray="{_DASHES[own.line]}"' if _DASHES[own.line] else ""
        line = f'<line x1="2" y1="6" x2="28" y2="6" stroke="{own.colour}" stroke-width="3"{dash}/>'
        marks[name] = Html(f'<svg class="mark" width="30" height="12" aria-hidden="true">{line}</svg>')
    return marks


def _legend(found: SideBySide, marks: Mapping[str, Html]) -> Html:
    entries = []
    for course in found.courses:
        half_life = half_life_of(course.name)
        fades = f", half-life {duration(half_life)}" if np.isfinite(half_life) and "half_life" not in course.name else ""
        name, kind = text_html(course.name), text_html(course.kind)
        entries.append(f"<li>{marks[course.name]}{name} <span class=soft>({kind}{fades})</span></li>")
    return Html(f"<ul class=legend>{''.join(entries)}</ul>")


def _numbers(title: str, values: Iterable[float], unit: str, styles: Iterable[Style] = (), *, of: float = 1.0) -> Column:
    """Return a column in a unit of so many of the values' own; a dash where there is no number."""
    known = [value / of if np.isfinite(value) else None for value in values]
    if unit == "%":
        return percents(title, known, styles=styles)
    return numbers(title, known, unit=unit, styles=styles)


def _schedulers(frame: pd.DataFrame) -> Table:
    """Return the table of all schedulers; the best numbers are bold."""
    seconds, unit_of_wait = _unit(float(np.nanmax(frame["wait_s"].to_numpy(float), initial=0.0)))
    columns = []
    for column, heading, unit, less, _ in _MEASURES:
        best = _best(frame[column], less) if len(frame) > 1 else []
        styles: list[Style] = ["strong" if str(name) in best else "" for name in frame.index]
        shown, of = (unit_of_wait, seconds) if unit == "s" else (unit, 1.0)
        columns.append(_numbers(heading, frame[column].astype(float), shown, styles, of=of))
    ended = (f"{int(ended):,} of {int(jobs):,}" for ended, jobs in zip(frame["jobs_ended"], frame["jobs"], strict=True))
    return Table.of(names("scheduler", map(str, frame.index)), numbers("jobs ended", ended), *columns)


def _words(found: SideBySide) -> str:
    windows = f"Windows of {duration(found.window)}. Bold: the best of a column."
    return f"{columns_mean({heading: means for _, heading, _, _, means in _MEASURES})}<p class=soft>{windows}</p>"


def _jain(found: SideBySide) -> Table:
    index = {course.name: dict(zip(*(values.tolist() for values in found.jain(course)), strict=True)) for course in found.courses}
    begins = sorted({begin for own in index.values() for begin in own})
    columns = (_numbers(name, (own.get(begin, np.nan) for begin in begins), "") for name, own in index.items())
    return Table.of(ids("window from", map(duration, begins)), *columns)


def _by_user(found: SideBySide, users: pd.DataFrame, marks: Mapping[str, Html]) -> list[str]:
    """Return a table of users by schedulers for each measure."""
    order = found.users_by_shortfall()
    seconds, unit_of_wait = _unit(float(np.nanmax(users["wait_s"].to_numpy(float), initial=0.0)))
    jobs = users.drop_duplicates("user").set_index("user")["jobs"].loc[order[:_ROWS]]
    parts: list[str] = []
    for k, (column, heading, unit) in enumerate(_BY_USER):
        wide = users.pivot(index="user", columns="scheduler", values=column).loc[order[:_ROWS], [c.name for c in found.courses]]
        shown, of = (unit_of_wait, seconds) if unit == "s" else (unit, 1.0)
        columns = (_numbers(str(name), wide[name].astype(float), shown, of=of) for name in wide)
        table = Table.of(names("user", map(str, wide.index)), numbers("jobs", jobs, 9), *columns)
        parts.append(f"<details{'' if k else ' open'}><summary>{heading}</summary>{table_html(table, marks=marks)}</details>")
    if len(order) > _ROWS:
        parts.append(f"<p class=soft>The {_ROWS} users who lack most, of {len(order):,}.</p>")
    return parts


def _unit(seconds: float) -> tuple[float, str]:
    """Return the seconds of the largest unit of which this is at least two."""
    return (86_400.0, "d") if seconds >= 2 * 86_400 else (3600.0, "h") if seconds >= 7200 else (1.0, "s")
