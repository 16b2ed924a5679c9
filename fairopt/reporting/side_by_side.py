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
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from fairopt.plots.colours import Look, looks
from fairopt.reporting.plain_page import Html, page_path, picture, table, text, write_page
from fairopt.simulation.baselines.options import half_life_of
from fairopt.simulation.side_by_side import SideBySide
from fairopt.wording import figure, joined, percent, plural

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
)
_BY_USER = (
    ("bounded_slowdown", "Bounded slowdown", ""),
    ("wait_s", "Mean wait of the jobs that started", "s"),
    ("share_h", "Received, in share-hours", ""),
    ("shortfall_h", "Shortfall, in share-hours", ""),
    ("envy_h", "Envy, in share-hours", ""),
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
    look = looks(course.name for course in found.courses)
    frame, users = found.to_frame(), found.users_frame()
    parts = [
        _summary(found, frame),
        _legend(found, look),
        "<h2>Every scheduler</h2>",
        _schedulers(frame, look),
        _words(found),
        "<h2>Over time</h2>",
        picture(found.plot(title=""), "Utilization, waiting tasks, shortfall, regret, envy and Jain's index over time, of each scheduler"),
        "<details><summary>Jain's index by windows, as a table</summary>",
        _jain(found, look),
        "</details>",
        "<h2>By user</h2>",
        picture(found.plot("user", title=""), "Bounded slowdown, wait and shortfall of each user, under each scheduler"),
        *_by_user(found, users, look),
    ]
    write_page(path, title or f"{plural(len(found.courses), 'scheduler')} side by side", parts)


def _summary(found: SideBySide, frame: pd.DataFrame) -> str:
    """Return what was simulated, which scheduler is best in what, and what was stopped."""
    submit = found.trace.submit
    what = (
        f"{plural(found.trace.n_jobs, 'job')} of {plural(len(found.users_by_shortfall()), 'user')} on "
        f"{plural(found.cluster.counts.sum(), 'server')}, submitted over {_duration(float(np.ptp(submit)) if submit.size else 0.0)}. "
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
    lines = [f"<p>{text(what)}</p>", f"<p>{text('Among the schedulers of whole tasks, ' + ', '.join(best))}.</p>" if len(whole) > 1 else ""]
    if stopped := [course.name for course in found.courses if not course.complete]:
        lines.append(
            f"<p><strong>{text(joined(stopped, 5))}: stopped early; the numbers are of what was simulated until then.</strong></p>"
        )
    if found.not_begun:
        lines.append(f"<p><strong>Not begun when the simulation was stopped: {text(joined(found.not_begun, 5))}.</strong></p>")
    for name, row in frame[frame["started"] < frame["jobs"]].iterrows():
        waiting = plural(int(row["jobs"] - row["started"]), "job")
        lines.append(f"<p>{text(str(name))}: {waiting} never started, and are not in its mean wait.</p>")
    return "".join(lines)


def _best(values: pd.Series, less: bool) -> list[str]:
    """Return the schedulers that are best, equal to three digits."""
    best = values.min() if less else values.max()
    return [str(name) for name, value in values.items() if np.isclose(value, best, rtol=1e-3, atol=1e-12)]


def _mark(look: Look, name: str) -> Html:
    """Return a scheduler with its line."""
    dash = f' stroke-dasharray="{_DASHES[look.line]}"' if _DASHES[look.line] else ""
    line = f'<line x1="2" y1="6" x2="28" y2="6" stroke="{look.colour}" stroke-width="3"{dash}/>'
    return Html(f'<svg class="mark" width="30" height="12" aria-hidden="true">{line}</svg>{text(name)}')


def _legend(found: SideBySide, look: Mapping[str, Look]) -> Html:
    entries = []
    for course in found.courses:
        half_life = half_life_of(course.name)
        fades = f", half-life {_duration(half_life)}" if np.isfinite(half_life) and "half_life" not in course.name else ""
        entries.append(f"<li>{_mark(look[course.name], course.name)} <span class=soft>({text(course.kind)}{fades})</span></li>")
    return Html(f"<ul class=legend>{''.join(entries)}</ul>")


def _schedulers(frame: pd.DataFrame, look: Mapping[str, Look]) -> Html:
    """Return the table of all schedulers; the best numbers are bold."""
    seconds, unit_of_wait = _unit(float(np.nanmax(frame["wait_s"].to_numpy(float), initial=0.0)))
    best = {column: _best(frame[column], less) if len(frame) > 1 else [] for column, _, _, less, _ in _MEASURES}
    rows = []
    for name, row in frame.iterrows():
        cells = [_mark(look[str(name)], str(name)), f"{int(row['ended']):,} of {int(row['jobs']):,}"]
        for column, _, unit, _, _ in _MEASURES:
            value = float(row[column])
            shown = text(_number(value / seconds, unit_of_wait) if unit == "s" else _number(value, unit))
            cells.append(Html(f"<b class=best>{shown}</b>") if str(name) in best[column] else shown)
        rows.append(cells)
    return table(["scheduler", "jobs ended", *(heading for _, heading, _, _, _ in _MEASURES)], rows)


def _words(found: SideBySide) -> str:
    lines = [f"<dt>{heading}</dt><dd>{means}.</dd>" for _, heading, _, _, means in _MEASURES]
    windows = f"Windows of {_duration(found.window)}. Bold: the best of a column."
    return f"<details><summary>What the columns mean</summary><dl>{''.join(lines)}</dl></details><p class=soft>{windows}</p>"


def _jain(found: SideBySide, look: Mapping[str, Look]) -> Html:
    index = {course.name: dict(zip(*(values.tolist() for values in found.jain(course)), strict=True)) for course in found.courses}
    begins = sorted({begin for own in index.values() for begin in own})
    rows = [[_duration(begin), *(_number(own.get(begin, np.nan)) for own in index.values())] for begin in begins]
    return table(["window from", *_marked(found, look)], rows)


def _by_user(found: SideBySide, users: pd.DataFrame, look: Mapping[str, Look]) -> list[str]:
    """Return a table of users by schedulers for each measure."""
    order = found.users_by_shortfall()
    seconds, unit_of_wait = _unit(float(np.nanmax(users["wait_s"].to_numpy(float), initial=0.0)))
    jobs = users.drop_duplicates("user").set_index("user")["jobs"]
    parts: list[str] = []
    for k, (column, heading, unit) in enumerate(_BY_USER):
        wide = users.pivot(index="user", columns="scheduler", values=column).loc[order[:_ROWS], [c.name for c in found.courses]]
        rows = [
            [user, f"{int(jobs[user]):,}", *(_number(value / seconds, unit_of_wait) if unit == "s" else _number(value) for value in own)]
            for user, own in zip(wide.index, wide.to_numpy(float).tolist(), strict=True)
        ]
        shown = table(["user", "jobs", *_marked(found, look)], rows)
        parts.append(f"<details{'' if k else ' open'}><summary>{heading}</summary>{shown}</details>")
    if len(order) > _ROWS:
        parts.append(f"<p class=soft>The {_ROWS} users who lack most, of {len(order):,}.</p>")
    return parts


def _marked(found: SideBySide, look: Mapping[str, Look]) -> Sequence[Html]:
    return [_mark(look[course.name], course.name) for course in found.courses]


def _number(value: float, unit: str = "") -> str:
    write: Callable[[float], str] = percent if unit == "%" else figure
    return (write(value) + (f" {unit}" if unit in ("s", "h", "d") else "")) if np.isfinite(value) else "-"


def _duration(seconds: float) -> str:
    """Return a time in the unit that suits.

    >>> _duration(90), _duration(7200.0), _duration(604_800)
    ('90 s', '2 h', '7 d')
    """
    part, unit = _unit(seconds)
    return f"{figure(seconds / part)} {unit}"


def _unit(seconds: float) -> tuple[float, str]:
    """Return the seconds of the largest unit of which this is at least two."""
    return (86_400.0, "d") if seconds >= 2 * 86_400 else (3600.0, "h") if seconds >= 7200 else (1.0, "s")
