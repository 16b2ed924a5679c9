"""Tables fit the terminal: numbers stay whole, words break between words, long names are shortened, bars give way, and labels stay text."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fairopt.show.blocks import GAP, Facts, Note
from fairopt.show.table import Table, ids, names, numbers, parts, percents, words
from fairopt.show.terminal import fits, print_blocks


def drawn(table: Table, width: int) -> list[str]:
    """Return the lines of a table."""
    console = Console(file=io.StringIO(), width=width)
    print_blocks(console, [table])
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def test_everything_gives_way_but_numbers() -> None:
    """First headings break, then words, then names are shortened; the ends of names stay."""
    why = words("why", ["robotics holds 4 % of it"])
    table = Table.of(names("user", ["a-team-with-a-long-name-1"]), numbers("share / weight", [0.123456], 6), why)
    assert drawn(table, 80)[2] == "a-team-with-a-long-name-1        0.123456  robotics holds 4 % of it"
    assert drawn(table, 64)[:2] == ["                            share /", "user                         weight  why"]
    assert drawn(table, 45) == [
        "                   share /",
        "user                weight  why",
        "─" * 45,
        "a-team-w…-name-1  0.123456  robotics holds",
        "                            4 % of it",
    ]


def test_columns_move_below() -> None:
    """Where not even the shortest fit, with the names again."""
    table = Table.of(names("user", ["alice"]), *(percents(f"resource-{r}", [1.0], 1) for r in range(6)))
    lines = drawn(table, 40)
    assert [line.split() for line in lines if line.startswith("user")] == [
        ["user", "resource-0", "resource-1"],
        ["user", "resource-2", "resource-3"],
        ["user", "resource-4", "resource-5"],
    ]
    assert [line.split() for line in lines if line.startswith("alice")] == [["alice", "100.0", "%", "100.0", "%"]] * 3
    assert max(map(len, lines)) <= 40


@pytest.mark.parametrize(("width", "bar"), [(80, 20), (30, 13), (21, 4), (20, 0), (13, 0)])
def test_bars_have_the_room_that_is_left(width: int, bar: int) -> None:
    """At most 20 characters, none below 4; a bar is full exactly where the text says 100.0 %."""
    half, full, empty = drawn(Table.of(names("server", ["a", "b", "c"]), parts("gpu", [0.5, 1.0, None])), width)[2:]
    assert half.split() == ["a", *(["█" * round(bar / 2) + "░" * (bar - round(bar / 2))] if bar else []), "50.0", "%"]
    assert full.count("█") == bar
    assert empty == "c"
    assert "░" not in full


def test_totals_stand_below_a_line() -> None:
    """An empty one; the last row sums up the others."""
    lines = drawn(Table.of(names("server", ["a", "b", "all"]), numbers("count", [1, 2, 3]), totals=1), 40)
    assert [line.split() for line in lines[2:]] == [["a", "1"], ["b", "2"], [], ["all", "3"]]


def test_a_table_fits_where_no_text_is_broken() -> None:
    """Its columns, a space behind each, and one between two."""
    table = Table.of(names("user", ["a-long-name"]), words("why", ["a short reason"]))
    needed = len("a-long-name") + len("a short reason") + 3
    assert (fits(table, needed), fits(table, needed - 1)) == (True, False)
    assert len(drawn(table, needed)) == 3


def test_labels_drive_no_terminal_and_are_no_markup() -> None:
    """In cells, titles, lines of a cell and sentences; a line break of a label is shown, too."""
    bad = "[bold]x\x1b[31m\n"
    escaped = "[bold]x\\x1b[31m\\n"
    table = Table.of(names(bad, [bad]), words(bad, [(bad, "two")]), ids(bad, [bad], styles=("bad",)))
    lines = drawn(table, 200)
    assert lines[0].split() == [escaped] * 3
    assert lines[2].split() == [escaped] * 3
    assert lines[3].split() == ["two"]
    console = Console(file=io.StringIO(), width=80)
    print_blocks(console, [Note("text \x1b[31m", lead=bad), GAP, "a\nb", Facts((("one", "1"), ("three", "\x1b")))])
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert printed == f"{escaped}text \\x1b[31m\n\na\nb\none    1\nthree  \\x1b\n"
