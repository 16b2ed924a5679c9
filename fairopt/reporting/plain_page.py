"""Pages of pictures and tables in one HTML file that loads nothing and runs nothing: of a history, and of schedulers side by side.

>>> page_path("month.html").suffix
'.html'
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fairopt.errors import Unsupported
from fairopt.files import write_files
from fairopt.show.html import Html, text_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["columns_mean", "page_of", "page_path", "picture", "write_page"]

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
th[scope=row], th.words, td.words, td.id { text-align: left }
th[scope=row] { font-weight: normal }
td, th[scope=row] { white-space: nowrap }
th.long, td.words { white-space: normal; overflow-wrap: anywhere; min-width: 7rem }
td.long { min-width: 14rem }
.scroll { overflow-x: auto }
summary { cursor: pointer; font-weight: 600; margin: .4rem 0 }
figure { margin: 0 0 1.5rem; background: white }
svg { max-width: 100%; height: auto }
svg.mark { display: inline-block; background: white; border-radius: 2px; margin-right: .4rem; vertical-align: middle; max-width: none }
ul.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.4rem }
.soft { opacity: .75 }
@page { size: A4; margin: 14mm 13mm }
@media print {
  :root { color-scheme: light }
  body { font-size: 10pt; max-width: none; margin: 0; padding: 0 }
  table { font-size: 8pt; margin-bottom: .8rem }
  th, td { padding: .1rem .35rem }
  th.long, td.words, td.long { min-width: 0 }
  .scroll { overflow: visible }
  h2 { margin-top: 1.2rem; break-after: avoid }
  tr, figure { break-inside: avoid }
  thead { display: table-header-group }
  figure svg { max-height: 150mm }
}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


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


def picture(drawn: Figure, says: str) -> Html:
    """Return a figure as part of the page; ``says`` is what it shows, for readers who cannot see it."""
    written = io.StringIO()
    drawn.savefig(written, format="svg", metadata={"Date": None})
    drawing = written.getvalue()
    return Html(f'<figure role="img" aria-label="{text_html(says)}">{drawing[drawing.index("<svg") :]}</figure>')


def columns_mean(words: Mapping[str, str]) -> Html:
    """Return the meaning of each column, by its heading, as a part of the page that opens on a click."""
    lines = "".join(f"<dt>{text_html(heading)}</dt><dd>{text_html(means)}.</dd>" for heading, means in words.items())
    return Html(f"<details><summary>What the columns mean</summary><dl>{lines}</dl></details>")


def page_of(title: str, parts: Iterable[str]) -> str:
    """Return a page of these parts below its title."""
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="generator" content="fairopt">'
        f'<link rel="icon" href="data:,"><title>{text_html(title)}</title><style>{_STYLE}</style>'
    )
    body = f"<h1>{text_html(title)}</h1>{''.join(parts)}"
    return f"<!DOCTYPE html>\n<html lang=en><head>{head}</head><body>{body}</body></html>\n"


def write_page(path: Path, title: str, parts: Iterable[str]) -> None:
    """Write a page of these parts below its title. The file is replaced only when it is complete.

    Raises
    ------
    InvalidInstance
        The file cannot be written.
    """
    write_files({path: page_of(title, parts).encode(errors="replace")})
