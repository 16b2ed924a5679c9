"""Tables and sentences as HTML: on pages with a style sheet, and in notebooks, which have none. All text is escaped.

>>> from fairopt.show.table import Table, names, numbers
>>> print(table_html(Table.of(names("user", ["<A>"]), numbers("tasks", [None]))))
<div class="scroll"><table><thead><tr><th scope="col" class="words"><bdi>user</bdi></th><th scope="col"><bdi>tasks</bdi></th></tr></thead>
<tbody>
<tr><th scope="row"><bdi>&lt;A&gt;</bdi></th><td>-</td></tr>
</tbody></table></div>
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from fairopt.show.blocks import Block, Facts, Note
from fairopt.show.table import Column, Table
from fairopt.wording import plural, printable

__all__ = ["Html", "blocks_html", "notebook_table", "table_html", "text_html"]

_ROWS, _COLUMNS = 20, 12  # of a table in a notebook
_LONG_NAME, _LONG_TEXT = 24, 40  # characters of a cell that is broken into lines
_STYLES = {
    "": "{}",
    "strong": "<b>{}</b>",
    "soft": '<span class="soft">{}</span>',
    "good": '<span class="holds">{}</span>',
    "warn": "<b>{}</b>",
    "bad": '<span class="violated">{}</span>',
}


class Html(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def text_html(value: str) -> Html:
    """Return text of a page."""
    return value if isinstance(value, Html) else Html(html.escape(printable(value, keep="\N{NO-BREAK SPACE}")))


def table_html(
    table: Table,
    *,
    missing: str = "-",
    most: int | None = None,
    picked: bool = False,
    marks: Mapping[str, Html] | None = None,
    drawn: Mapping[int, Sequence[Html]] | None = None,
) -> Html:
    """Return a table of a page.

    Parameters
    ----------
    table : Table
    missing : str
        In the place of a number that there is not.
    most : int, optional
        Of more rows the first are shown, and a note says so.
    picked : bool
        Rows carry the name that they are about, for a script.
    marks : mapping, optional
        Signs before names, in titles and cells.
    drawn : mapping of sequences of Html, optional
        Columns of drawings, by the number of the column that they follow: a heading, then a cell for each row. They repeat numbers for the
        eye.
    """
    shown = table if most is None else table.part(0, most)
    signs = marks or {}

    def heading(column: Column, first: bool) -> str:
        text = "<br>".join(f"{signs.get(each, '')}<bdi>{text_html(each)}</bdi>" for each in (column.above, column.title) if each)
        return f'<th scope="col"{_classes(words=first or column.kind != "numbers")}>{text}</th>'

    def cell(column: Column, text: str, inner: str, first: bool) -> str:
        if first:
            return f'<th scope="row"{_classes(long=len(text) > _LONG_NAME)}>{signs.get(text, "")}<bdi>{inner}</bdi></th>'
        if column.kind == "numbers":
            return f"<td>{inner}</td>"
        kind = _classes(words=column.kind != "ids", id=column.kind == "ids", long=len(text) > _LONG_TEXT)
        return f"<td{kind}>{signs.get(text, '')}<bdi>{inner}</bdi></td>"

    def beside(cells: list[str], tag: str, n: int) -> Iterator[str]:
        for j, text in enumerate(cells):
            yield text
            if drawn and j in drawn:
                yield f'<{tag} class="drawn">{drawn[j][n]}</{tag[:2]}>'

    title = text_html(table.title)
    caption, region = (f"<caption>{title}</caption>", f' role="region" tabindex="0" aria-label="{title}"') if title else ("", "")
    lines = [
        (f'<tr data-user="{text_html(own[0][0])}">' if picked else "<tr>")
        + "".join(
            beside(
                [cell(column, text, inner, j == 0) for j, (column, (text, inner)) in enumerate(zip(shown.columns, own, strict=True))],
                "td",
                n,
            )
        )
        + "</tr>\n"
        for n, own in enumerate(zip(*(_cells(column, missing) for column in shown.columns), strict=True), 1)
    ]
    head = "".join(beside([heading(column, j == 0) for j, column in enumerate(shown.columns)], 'th scope="col"', 0))
    note = f'<p class="soft">The first {len(shown):,} of {len(table):,} rows.</p>' if len(shown) < len(table) else ""
    body = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(lines)}</tbody>"
    return Html(f'<div class="scroll"{region}><table>{caption}{body}</table></div>{note}')


def _classes(**classes: bool) -> str:
    named = " ".join(name for name, holds in classes.items() if holds)
    return f' class="{named}"' if named else ""


def _cells(column: Column, missing: str) -> list[tuple[str, str]]:
    """Return the cells of a column, as text and as HTML."""
    cells = []
    styles, indents = column.styles or ("",) * len(column.values), column.indents or (0,) * len(column.values)
    for value, text, style, indent in zip(column.values, column.texts, styles, indents, strict=True):
        shown = text
        if column.kind == "numbers":
            shown = "∞" if text == "inf" else "-∞" if text == "-inf" else text or ("" if value == "" else missing)
        lines = value if isinstance(value, tuple) else (shown,)
        inner = "\N{NO-BREAK SPACE}" * 3 * indent + "<br>".join(map(text_html, lines))
        cells.append((text, _STYLES[style].replace("{}", inner)))
    return cells


# Notebooks -----------------------------------------------------------------------------------------------------------------------


def notebook_table(table: Table) -> str:
    """Return a table for a notebook: its text to the left, its numbers to the right, a long one cut in the middle."""
    rows, more = len(table), len(table.columns) - 1 - _COLUMNS
    cut = _ROWS // 2 if rows > _ROWS else rows
    columns = table.columns[: 1 + _COLUMNS]
    sides = ["left" if j == 0 or column.kind != "numbers" else "right" for j, column in enumerate(columns)]
    head = "".join(_aligned("th", side, text_html(column.heading)) for side, column in zip(sides, columns, strict=True))
    shown = [*range(cut), *range(max(cut, rows - cut), rows)]
    cells = [[own[n][1] for n in shown] for own in (_cells(column, "") for column in columns)]
    lines = ["".join(_aligned("td", side, inner) for side, inner in zip(sides, row, strict=True)) for row in zip(*cells, strict=True)]
    if cut < rows:
        lines.insert(cut, f'<td colspan="{len(columns)}">…</td>')
    notes = [*([plural(rows, "row")] if cut < rows else []), *([plural(more, "more column")] if more > 0 else [])]
    told = f"<p><small>{', '.join(notes)}: see to_frame()</small></p>" if notes else ""
    title = f"<caption>{text_html(table.title)}</caption>" if table.title else ""
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="margin-bottom: 1em">{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{told}'


def _aligned(tag: str, side: str, inner: str) -> str:
    return f'<{tag} style="text-align: {side}">{inner}</{tag}>'


def blocks_html(blocks: Iterable[Block | Html], table: Callable[[Table], str] = notebook_table) -> Html:
    """Return tables, sentences and facts for a notebook; with `table_html` for a page with a style sheet."""
    return Html("".join(_block(block, table) for block in blocks))


def _block(block: Block | Html, table: Callable[[Table], str]) -> str:
    if isinstance(block, Html):
        return block
    if isinstance(block, Table):
        return table(block)
    if isinstance(block, Facts):
        return f"<p>{'<br>'.join(f'{text_html(word)}: {text_html(text)}' for word, text in block.pairs)}</p>"
    lead, text = (f"<strong>{text_html(block.lead)}</strong>", block.text) if isinstance(block, Note) else ("", block)
    inner = "<br>".join(str(text_html(line)) for line in text.strip("\n").split("\n"))
    return f"<p>{lead}{inner}</p>" if lead or text else ""
