"""Tables of the command line: plain columns of text and of numbers.

Labels come from files: they are never read as markup, and a control character is shown as its escape.
"""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairopt.wording import printable

__all__ = ["add_numbers", "label", "print_note", "simple_table"]


def label(name: str) -> Text:
    """Return a label as it is, without markup and without control characters."""
    return Text(printable(name), overflow="fold")


def print_note(console: Console, text: str) -> None:
    """Print a sentence: on a terminal broken between words, else as one line, for programs that look for it."""
    console.print(Text(text), soft_wrap=not console.is_terminal)


def simple_table(*columns: str, title: str | None = None, leading: int = 0) -> Table:
    """Return a table with these columns of text; ``leading`` is the number of blank lines between rows."""
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), leading=leading, title=title, title_justify="left", title_style="bold"
    )
    for column in columns:
        table.add_column(Text(column), overflow="fold")
    return table


def add_numbers(table: Table, *columns: str) -> None:
    """Add columns of numbers, which are never broken."""
    for column in columns:
        table.add_column(Text(column), justify="right", no_wrap=True)
