"""Pages of pictures and tables in one HTML file that loads nothing and runs nothing: of a history, and of schedulers side by side.

>>> print(table(["user", "tasks"], [["<A>", "3"]]))  # doctest: +ELLIPSIS
<section><table>...<td class=text>&lt;A&gt;</td><td>3</td>...
"""

from __future__ import annotations

import html
import io
import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairopt.errors import Unsupported
from fairopt.files import write_files
from fairopt.wording import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Html", "page_path", "picture", "table", "text", "write_page"]

_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 66rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; line-height: 1.25; overflow-wrap: anywhere }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem }
p, dl { max-width: 50rem; overflow-wrap: anywhere }
dt { font-weight: 600; float: left; clear: left; margin-right: .5rem }
dd { margin: 0 0 .3rem }
table { border-collapse: collapse; margin: 0 0 1.5rem; font-variant-numeric: tabular-nums }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #8884 }
th { vertical-align: bottom }
th.text, td.text { text-align: left }
td { white-space: nowrap }
td.list { white-space: normal; min-width: 14rem }
td.name { white-space: normal; overflow-wrap: anywhere; min-width: 7rem }
section { overflow-x: auto }
summary { cursor: pointer; font-weight: 600; margin: .4rem 0 }
figure { margin: 0 0 1.5rem; background: white }
svg { max-width: 100%; height: auto }
svg.mark { display: inline-block; background: white; border-radius: 2px; margin-right: .4rem; vertical-align: middle; max-width: none }
ul.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.4rem }
b.best { font-weight: 700 }
.soft { opacity: .75 }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Html(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def page_path(output: str | os.PathLike[str]) -> Path:
    """Return the path of a page.

    Raises
    ------
    Unsupported
        The name of the file does not end in .html.
    """
    path = Path(output)
    if path.suffix.lower() not in (".html", ".htm"):
        raise Unsupported(f"{path} would be a web page; end its name in .html")
    return path


def text(value: str) -> Html:
    """Return text of a page."""
    return value if isinstance(value, Html) else Html(html.escape(printable(value)))


def picture(drawn: Figure, says: str) -> Html:
    """Return a figure as part of the page; ``says`` is what it shows, for readers who cannot see it."""
    written = io.StringIO()
    drawn.savefig(written, format="svg", metadata={"Date": None})
    drawing = written.getvalue()
    return Html(f'<figure role="img" aria-label="{text(says)}">{drawing[drawing.index("<svg") :]}</figure>')


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[int] = (0,)) -> Html:
    """Return a table; ``words`` are the columns of text, all others are numbers."""

    def cell(tag: str, place: int, value: str) -> str:
        kind = " class=text" if place in words else ""
        if tag == "td" and place in words and len(value) > 24 and not isinstance(value, Html):
            kind = ' class="text list"' if ", " in value else ' class="text name"'
        return f"<{tag}{kind}>{text(value)}</{tag}>"

    head = "".join(cell("th", k, name) for k, name in enumerate(headings))
    lines = ["".join(cell("td", k, value) for k, value in enumerate(row)) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return Html(f"<section><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></section>")


def write_page(path: Path, title: str, parts: Iterable[str]) -> None:
    """Write a page of these parts below its title. The file is replaced only when it is complete.

    Raises
    ------
    InvalidInstance
        The file cannot be written.
    """
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="generator" content="fairopt">'
        f'<link rel="icon" href="data:,"><title>{text(title)}</title><style>{_STYLE}</style>'
    )
    body = f"<h1>{text(title)}</h1>{''.join(parts)}"
    page = f"<!DOCTYPE html>\n<html lang=en><head>{head}</head><body>{body}</body></html>\n"
    write_files({path: page.encode(errors="replace")})
