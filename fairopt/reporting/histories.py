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

import html
import io
import os
from pathlib import Path

import numpy as np
import pandas as pd

from fairopt.errors import Unsupported
from fairopt.files import write_files
from fairopt.histories.result import History
from fairopt.wording import figure, plural, printable

__all__ = ["write_history_page"]

_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 0 0 1.5rem }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #8884 }
th:first-child, td:first-child, th.text, td.text { text-align: left }
td { white-space: nowrap }
td.list { white-space: normal }
section { overflow-x: auto }
figure { margin: 0 0 1.5rem; background: white }
svg { max-width: 100%; height: auto }
"""
_WORDS = {
    "owner": "Owners",
    "queue": "Queues",
    "window": "Windows",
    "hour": "By hour of the day: mean shares, all owners together",
    "worst": "The worst times: who lacked, and who held beyond its due (mean shares)",
}


def write_history_page(history: History, output: str | os.PathLike[str], title: str | None = None) -> None:
    """Write the page. The file is replaced only when it is complete.

    Raises
    ------
    Unsupported, InvalidInstance
        The name of the file does not end in .html, or it cannot be written.
    """
    path = Path(output)
    if path.suffix.lower() not in (".html", ".htm"):
        raise Unsupported(f"{path} would be a web page; end its name in .html")
    clock, log = history.setting.log.clock, history.setting.log
    period = f"{clock.shown(history.windows[0][0])} to {clock.shown(history.windows[-1][1])}"
    parts = [f"<h1>{_text(title or f'Fair shares by {history.notion}, {period}')}</h1>"]
    data = history.to_dict()
    error = "" if history.is_exact else f" (standard error {figure(data['shortfall_error'])})"
    parts.append(
        f"<p>{plural(data['jobs'], 'job')} of {plural(len(history.owners), 'owner')}. Due and not given while work waited: "
        f"{figure(data['shortfall'])} of {figure(data['entitled'])} share-hours{error}; the whole cluster for an hour is 1. "
        f"Judged at {plural(data['moments'], 'moment')} of {plural(data['contended_changes'], 'change')} while work waited; "
        f"{plural(data['solved'], 'certified allocation')}, worst residual {data['residual']:.1e}.</p>"
    )
    picture = io.StringIO()
    history.plot(title="").savefig(picture, format="svg", metadata={"Date": None})
    text = picture.getvalue()
    parts.append(f"<figure>{text[text.index('<svg') :]}</figure>")
    for by, words in _WORDS.items():
        frame = history.to_frame(by)  # type: ignore[arg-type]  # the keys are tables
        if len(frame):
            parts += [f"<h2>{words}</h2>", _table(frame.reset_index() if frame.index.name else frame)]
    if log.unjudged:
        rows = [(each.jobs, each.why, each.task_hours, each.first) for each in log.unjudged]
        parts += ["<h2>Not judged</h2>", _table(pd.DataFrame(rows, columns=["jobs", "why", "task-hours", "first"]))]
    parts += [f"<p>{_text(note)}</p>" for note in history.notes]
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}"><title>{_text(title or period)}</title>'
    page = f"<!DOCTYPE html>\n<html lang=en><head>{head}<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    write_files({path: page.encode(errors="replace")})


def _text(text: str) -> str:
    return html.escape(printable(text))


def _table(frame: pd.DataFrame) -> str:
    numbers = [pd.api.types.is_numeric_dtype(frame[name]) for name in frame.columns]
    head = "".join(
        f"<th{'' if number else ' class=text'}>{_text(str(name).replace('_', ' '))}</th>"
        for name, number in zip(frame.columns, numbers, strict=True)
    )
    lines = []
    for row in frame.itertuples(index=False):
        cells = [
            f"<td>{_text(_number(float(value)))}</td>"
            if isinstance(value, int | float | np.number)
            else f'<td class="text{" list" if ", " in str(value) else ""}">{_text(str(value))}</td>'
            for value in row
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<section><table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></section>"


def _number(value: float) -> str:
    return figure(value, 4) if np.isfinite(value) else ""
