"""Tables and sentences on a terminal: columns of names, of words and of numbers, which fit its width.

A table that is too wide gives way in this order: headings and words break into lines, long names are shortened by an ellipsis, bars lose
their length, and at last columns move into further tables, which repeat the names. A number is never broken, and a word only where it alone
is too long for a line.

Labels come from files: they are never read as markup, and a control character is shown as its escape.

>>> import io
>>> from rich.console import Console
>>> from fairopt.show.table import Table, names, numbers
>>> console = Console(file=io.StringIO(), width=20)
>>> print_blocks(console, [Table.of(names("user", ["alice", "bob"]), numbers("tasks", [2.5, 12]))])
>>> [line.rstrip() for line in console.file.getvalue().splitlines()]
['user   tasks', '─────────────', 'alice    2.5', 'bob       12']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from fairopt.show.blocks import Block, Facts, Note
from fairopt.show.table import Column, Kind, Table
from fairopt.wording import printable

__all__ = ["FittingTable", "fits", "print_blocks", "print_note", "print_paragraph"]

_NAME = 16  # characters of a name that stay
_WORD = 16  # characters of a line of words
_LONG_WORD = 20  # characters of the longest of these words that stay
_HEADING = 14  # characters of the longest word above a number that stay
_SHORT = 8  # characters of a heading of numbers that is not broken
_LONG_NAME = 32  # a longer name gives way before words break into more lines
_SHORTEST_BAR = 4  # characters
_PERCENT = len("100.0 %")
_INDENT = "  "
_PARTS = re.compile(r"\S+(?: [/%]\S*)?")  # between these a text may break
_STYLES = {"": "", "strong": "bold", "soft": "dim", "good": "green", "bad": "bold red", "warn": "yellow"}


class _Size(NamedTuple):
    """Widths of a column: the least that is allowed, a good one, the most that helps, and that of unbroken text."""

    least: int
    good: int
    most: int
    full: int


class FittingTable:
    """A table that takes no more room than there is."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.cells = [_cells(column) for column in table.columns]
        self.headings = [_heading(column) for column in table.columns]
        self.sizes = [_size(*each) for each in zip(table.columns, self.headings, self.cells, strict=True)]

    def fits(self, width: int) -> bool:
        """Return whether the table is one, with no text shortened or broken."""
        return sum(size.full for size in self.sizes) <= _room(len(self.sizes), width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table; several below each other, where its columns do not fit."""
        has_all = console.encoding.lower().startswith("utf")
        dots, bar = ("…", "█░") if has_all else ("...", "#-")
        columns, totals = self.table.columns, len(self.table) - self.table.totals
        ends = {first - 1 for first in (*self.table.breaks, *([totals] if self.table.totals else []))}
        for j, chosen in enumerate(_blocks(self.sizes, options.max_width)):
            widths = _widths([self.sizes[k] for k in chosen], _room(len(chosen), options.max_width))
            room = min((width for k, width in zip(chosen, widths, strict=True) if columns[k].bars), default=0)  # all bars are equally long
            widths = [room if columns[k].bars else width for k, width in zip(chosen, widths, strict=True)]
            part = RichTable(
                box=box.SIMPLE_HEAD,
                show_edge=False,
                padding=(0, 1, 0, 0),
                leading=int(self.table.spaced),
                title=None if j else Text(printable(self.table.title)) if self.table.title else None,
                title_justify="left",
                title_style="bold",
            )
            shown = []
            for k, width in zip(chosen, widths, strict=True):
                kind, heading = columns[k].kind, _broken(_shortened(self.headings[k], width, dots), width)
                heading.no_wrap = False  # headings of numbers break, too
                part.add_column(heading, justify="right" if kind == "numbers" else "left", no_wrap=kind != "words", width=width)
                drawn = _with_bars(columns[k], self.cells[k], width, bar) if columns[k].bars else self.cells[k]
                shown.append([_fitted(cell, kind, width, dots) for cell in drawn])
            for n, row in enumerate(zip(*shown, strict=True)):
                part.add_row(*row, end_section=n in ends)
            if j:
                yield ""
            yield part


def fits(table: Table, width: int) -> bool:
    """Return whether a terminal of this width has room for a table with no text shortened or broken."""
    return FittingTable(table).fits(width)


def _cells(column: Column) -> list[Text]:
    indents, styles = column.indents or (0,) * len(column.values), column.styles or ("",) * len(column.values)
    texts = []
    for value, text, indent, style in zip(column.values, column.texts, indents, styles, strict=True):
        plain = "\n".join(map(printable, value)) if isinstance(value, tuple) else printable(text)
        cell = Text(plain, overflow="fold") if column.kind in ("names", "ids") else Text(plain)
        cell.stylize(_STYLES[style])
        texts.append(Text(_INDENT * indent).append_text(cell) if indent else cell)
    return texts


def _heading(column: Column) -> Text:
    return Text("\n".join(printable(title) for title in (column.above, column.title) if title))


def _size(column: Column, heading: Text, cells: Sequence[Text]) -> _Size:
    kind: Kind = column.kind
    lines = [line for cell in cells for line in cell.split("\n", allow_blank=True)]
    widest = max((line.cell_len for line in lines), default=0)
    words = max((part.end() - part.start() for part in _PARTS.finditer(heading.plain)), default=0)
    above = max((line.cell_len for line in heading.split("\n", allow_blank=True)), default=0)
    full = max(widest, above)
    if kind == "ids":
        return _Size(full, full, full, full)
    if column.bars:
        widest = max(widest, _PERCENT)
        least, good = max(widest, min(words, _HEADING)), max(column.bars + 1 + widest, words)
        return _Size(least, good, good, max(good, full))
    if kind == "numbers":
        good = max(widest, words, min(above, _SHORT))
        return _Size(max(widest, min(words, _HEADING)), good, good, full)
    if kind == "names":
        return _Size(min(full, _NAME), min(full, _LONG_NAME), full, full)
    longest = max((len(word) for line in [heading, *lines] for word in line.plain.split()), default=0)
    return _Size(min(full, max(_WORD, min(longest, _LONG_WORD))), min(full, 2 * _WORD), full, full)


def _with_bars(column: Column, cells: Sequence[Text], width: int, signs: str) -> list[Text]:
    """Return parts of a whole, each behind its bar where there is room for one; a bar is full exactly where the text says 100.0 %."""
    room = min(width - 1 - _PERCENT, column.bars)
    if room < _SHORTEST_BAR:
        return list(cells)
    drawn = []
    for part, cell in zip(column.values, cells, strict=True):
        if part is None:
            drawn.append(cell)
            continue
        filled = room if part >= 0.9995 else max(min(round(part * room), room - 1), 0)
        bar = Text.assemble((signs[0] * filled, "cyan"), (signs[1] * (room - filled), "dim"), no_wrap=True)
        drawn.append(bar.append(f"{cell.plain:>{_PERCENT + 1}}"))
    return drawn


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


def print_note(console: Console, text: str) -> None:
    """Print a sentence: on a terminal broken between words, else as one line, for programs that look for it."""
    console.print(Text(text), soft_wrap=not console.is_terminal)


def print_paragraph(console: Console, text: str | Text) -> None:
    """Print sentences, broken between words."""
    console.print(_broken(text if isinstance(text, Text) else Text(text), console.width))


def print_blocks(console: Console, blocks: Iterable[Block]) -> None:
    """Print tables, sentences and facts."""
    for block in blocks:
        if isinstance(block, Table):
            console.print(FittingTable(block))
        elif isinstance(block, Facts):
            width = max(len(word) for word, _ in block.pairs) + 1
            for word, text in block.pairs:
                print_paragraph(console, Text(f"{word:<{width}} {_lines(text)}"))
        elif isinstance(block, Note) and block.whole:
            print_note(console, _lines(block.text))
        elif isinstance(block, Note):
            lead = (printable(block.lead), "bold red" if block.warns else "bold")
            print_paragraph(console, Text.assemble(lead, (_lines(block.text), _STYLES[block.style])))
        else:
            print_paragraph(console, Text(_lines(block)))


def _lines(text: str) -> str:
    return printable(text, keep="\n\N{NO-BREAK SPACE}")
