"""Tables of the command line: columns of names, of words and of numbers, which fit the terminal.

A table that is too wide gives way in this order: headings and words break into lines, long names are shortened by an ellipsis, and at last
columns move into further tables, which repeat the names. A number is never broken, and a word only where it alone is too long for a line.

Labels come from files: they are never read as markup, and a control character is shown as its escape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from fairopt.wording import printable

__all__ = [
    "FittingTable",
    "Kind",
    "add_names",
    "add_numbers",
    "add_words",
    "label",
    "print_note",
    "print_paragraph",
    "sharing_note",
    "simple_table",
]

Kind: TypeAlias = Literal["ids", "names", "words", "numbers"]

_NAME = 16  # characters of a name that stay
_WORD = 16  # characters of a line of words
_LONG_WORD = 20  # characters of the longest of these words that stay
_HEADING = 14  # characters of the longest word above a number that stay
_SHORT = 8  # characters of a heading of numbers that is not broken
_LONG_NAME = 32  # a longer name gives way before words break into more lines
_PARTS = re.compile(r"\S+(?: [/%]\S*)?")  # between these a text may break


class _Size(NamedTuple):
    """Widths of a column: the least that is allowed, a good one, the most that helps, and that of unbroken text."""

    least: int
    good: int
    most: int
    full: int


class FittingTable(Table):
    """A table that takes no more room than there is."""

    def __init__(self, title: str | None = None, leading: int = 0) -> None:
        super().__init__(
            box=box.SIMPLE_HEAD,
            show_edge=False,
            padding=(0, 1, 0, 0),
            leading=leading,
            title=title,
            title_justify="left",
            title_style="bold",
        )
        self.kinds: list[Kind] = []

    def add(self, kind: Kind, headings: Sequence[str | Text]) -> None:
        """Add columns of one kind."""
        for heading in headings:
            broken = Text(heading if isinstance(heading, str) else heading.plain, no_wrap=False)  # headings of numbers break, too
            self.add_column(broken, justify="right" if kind == "numbers" else "left", no_wrap=kind != "words")
            self.kinds.append(kind)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table; several below each other, where its columns do not fit."""
        cells = [[_text(cell) for cell in column.cells] for column in self.columns]
        sizes = [_size(kind, _text(column.header), own) for kind, column, own in zip(self.kinds, self.columns, cells, strict=True)]
        dots = "…" if console.encoding.lower().startswith("utf") else "..."
        for j, chosen in enumerate(_blocks(sizes, options.max_width)):
            widths = _widths([sizes[k] for k in chosen], _room(len(chosen), options.max_width))
            part = FittingTable(None if j else str(self.title or "") or None, self.leading)
            for k, width in zip(chosen, widths, strict=True):
                part.add(self.kinds[k], [_broken(_shortened(_text(self.columns[k].header), width, dots), width)])
                part.columns[-1].width = width
            for n, row in enumerate(self.rows):
                fitted = [_fitted(cells[k][n], self.kinds[k], width, dots) for k, width in zip(chosen, widths, strict=True)]
                part.add_row(*fitted, end_section=row.end_section)
            if j:
                yield ""
            yield from Table.__rich_console__(part, console, options)


def _text(cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))


def _size(kind: Kind, heading: Text, cells: Sequence[Text]) -> _Size:
    lines = [line for cell in cells for line in cell.split("\n", allow_blank=True)]
    widest = max((line.cell_len for line in lines), default=0)
    words = max((part.end() - part.start() for part in _PARTS.finditer(heading.plain)), default=0)
    full = max(widest, heading.cell_len)
    if kind == "ids":
        return _Size(full, full, full, full)
    if kind == "numbers":
        good = max(widest, words, min(heading.cell_len, _SHORT))
        return _Size(max(widest, min(words, _HEADING)), good, good, full)
    if kind == "names":
        return _Size(min(full, _NAME), min(full, _LONG_NAME), full, full)
    longest = max((len(word) for line in [heading, *lines] for word in line.plain.split()), default=0)
    return _Size(min(full, max(_WORD, min(longest, _LONG_WORD))), min(full, 2 * _WORD), full, full)


def _room(columns: int, width: int) -> int:
    """Return the characters of a line that columns can use: one space follows each column, and one separates two columns."""
    return width - (2 * columns - 1)


def _blocks(sizes: Sequence[_Size], width: int) -> Iterator[list[int]]:
    """Yield the columns of each table: all of them if they fit at the least widths, else as many as fit beside the first."""
    rest = list(range(1, len(sizes)))
    while True:
        chosen = [0][: len(sizes)]
        while rest and (len(chosen) == 1 or sum(sizes[k].least for k in [*chosen, rest[0]]) <= _room(len(chosen) + 1, width)):
            chosen.append(rest.pop(0))
        yield chosen
        if not rest:
            return


def _widths(sizes: Sequence[_Size], room: int) -> list[int]:
    """Return the widths of columns: the least ones, then good ones as far as room allows; names and words get the rest."""
    widths = [size.least for size in sizes]
    while widths and sum(widths) > room and widths[0] > 1:  # one column is wider than the line: the names give way
        widths[0] -= 1
    if sum(size.full for size in sizes) <= room:
        return [size.full for size in sizes]
    for goal in ([size.good for size in sizes], [size.most for size in sizes]):
        while sum(widths) < room and (short := [k for k, most in enumerate(goal) if widths[k] < most]):
            narrowest = min(short, key=lambda k: widths[k] / goal[k])
            widths[narrowest] += 1
    return widths


def _broken(text: Text, width: int) -> Text:
    """Return a text in lines, broken between words, and no percentage or fraction from its sign.

    >>> _broken(Text("robotics 4 %, speech 12.5 %"), 12).plain.split("\\n"), _broken(Text("low share / weight"), 9).plain.split("\\n")
    (['robotics', '4 %, speech', '12.5 %'], ['low', 'share /', 'weight'])
    """
    lines = []
    for line in text.split("\n", allow_blank=True):
        start = end = 0
        for part in _PARTS.finditer(line.plain):
            if end and line[start : part.end()].cell_len > width:
                lines.append(line[start:end])
                start = part.start()
            end = part.end()
        lines.append(line[start:end])
    return Text("\n").join(lines)


def _fitted(cell: Text, kind: Kind, width: int, dots: str) -> Text:
    """Return a cell no line of which is longer than its column."""
    if kind == "words":
        return _broken(_shortened(cell, width, dots), width)
    if kind in ("ids", "numbers") or cell.cell_len <= width:
        return cell
    return Text("\n").join(_cut(line, width, dots) for line in cell.split("\n", allow_blank=True))


def _shortened(text: Text, width: int, dots: str) -> Text:
    """Return a text whose words are no longer than a line."""
    for word in reversed(list(re.finditer(r"\S+", text.plain))):
        if word.end() - word.start() > width:
            text = text[: word.start()] + _cut(text[word.start() : word.end()], width, dots) + text[word.end() :]
    return text


def _cut(line: Text, width: int, dots: str) -> Text:
    """Return a line without its middle: names that begin alike end differently."""
    if line.cell_len <= width:
        return line
    plain, tail = line.plain, max((width - len(dots)) // 2, 0)
    head = max(width - len(dots) - tail, 0)
    while head and line[:head].cell_len > width - len(dots) - tail:  # characters of two columns
        head -= 1
    while tail and line[len(plain) - tail :].cell_len > width - len(dots) - line[:head].cell_len:
        tail -= 1
    return line[:head] + Text(dots) + line[len(plain) - tail :] if tail else line[:head] + Text(dots)


def label(name: str) -> Text:
    """Return a label as it is, without markup and without control characters."""
    return Text(printable(name), overflow="fold")


def print_note(console: Console, text: str) -> None:
    """Print a sentence: on a terminal broken between words, else as one line, for programs that look for it."""
    console.print(Text(text), soft_wrap=not console.is_terminal)


def print_paragraph(console: Console, text: str | Text) -> None:
    """Print sentences, broken between words."""
    console.print(_broken(_text(text), console.width))


def sharing_note(sharing: str) -> str:
    """Return the words on sharing for a title; none for resource division, the default.

    >>> sharing_note("rdm"), sharing_note("tdm")
    ('', ', sharing tdm')
    """
    return "" if sharing == "rdm" else f", sharing {sharing}"


def simple_table(*columns: str, title: str | None = None, leading: int = 0, first: Kind = "names") -> FittingTable:
    """Return a table: a column of names (or of ids, which are never shortened, or words), then columns of words.

    ``leading`` is the number of blank lines between rows.
    """
    table = FittingTable(title, leading)
    table.add(first, columns[:1])
    add_words(table, *columns[1:])
    return table


def add_names(table: FittingTable, *columns: str | Text) -> None:
    """Add columns of names, each on one line, shortened where it is too long."""
    table.add("names", columns)


def add_words(table: FittingTable, *columns: str | Text) -> None:
    """Add columns of text, which is broken between words."""
    table.add("words", columns)


def add_numbers(table: FittingTable, *columns: str | Text) -> None:
    """Add columns of numbers, which are never broken."""
    table.add("numbers", columns)
