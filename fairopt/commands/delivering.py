"""A result is printed, written into a file, or drawn."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import fairopt as fo
from fairopt.commands.console import KEPT, Console
from fairopt.commands.forms import Form
from fairopt.commands.in_options import in_options
from fairopt.commands.outputs import UNTITLED
from fairopt.commands.said import CHANGED, WRITTEN
from fairopt.commands.working import work
from fairopt.files import write_files
from fairopt.formats.results import rendered
from fairopt.reporting import tables
from fairopt.show.blocks import Block, Note
from fairopt.show.terminal import print_blocks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["as_text", "deliver", "draw", "draw_envy", "hand_over", "named", "present", "show", "write_figure"]

_AS_THEY_ARE = re.compile("[^\x00-\x7e]")  # characters that json does not escape; they occur inside strings only


def present(
    allocation: fo.Allocation,
    seconds: dict[str, float],
    form: Form,
    everything: bool,
    output: Path | None,
    plot: Path | None,
    choice: tables.Choice | None = None,
) -> None:
    """Draw, print or write an allocation."""
    if plot is not None:
        from fairopt.plots import plot_allocation

        write_figure(lambda: plot_allocation(allocation), plot)
    hand_over(
        lambda: allocation.to_dict() | {"seconds": seconds, "phases_s": seconds, "time_s": sum(seconds.values())},
        allocation.to_frame,
        lambda width: tables.allocation_blocks(allocation, seconds, everything=everything, choice=choice, width=width),
        form,
        output,
    )


def hand_over(
    data: Callable[[], dict[str, Any]],
    table: Callable[[], pd.DataFrame],
    text: Callable[[int], Iterable[Block]],
    form: Form,
    output: Path | None,
) -> None:
    """Print or write a result in one of its forms: JSON, a table, or the text that ``text`` returns for a width in characters."""
    if form == "json":
        deliver(work("writing the result", lambda: as_text(data())), output)
    elif form == "text":
        show(text, output)
    else:
        deliver(work("writing the table", lambda: rendered(named(table()) if form == "csv" else table(), form, str(output))), output)


def named(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with a last column ``name``, as JSON has it: the user, owner, queue, scheduler ... that a row is about.

    >>> import pandas as pd
    >>> named(pd.DataFrame({"tasks": [2.0]}, index=pd.Index(["alice"], name="user"))).reset_index().to_dict("list")
    {'user': ['alice'], 'tasks': [2.0], 'name': ['alice']}
    """
    about = next((word for word in ("owner", "user", "queue", "scheduler", "schedule") if word in frame.columns), None)
    if "name" in frame.columns or (frame.index.name is None and frame.index.nlevels == 1 and about is None):
        return frame
    with_index = frame.index.name is not None or frame.index.nlevels > 1
    return frame.assign(name=frame.index.get_level_values(-1) if with_index else frame[about])


def draw(
    found: fo.Arrivals | fo.Comparison | fo.Frontier | fo.History | fo.SideBySide | fo.Simulation | fo.WhatIf, path: Path | None
) -> None:
    """Write the picture of a result, where one is wanted."""
    if path is not None:
        write_figure(found.plot, path)


def write_figure(make: Callable[[], Figure], path: Path) -> None:
    """Draw a figure and write it."""
    from fairopt.plots import save_figure
    from fairopt.plots.sheets import untitled

    def drawn() -> Figure:
        with untitled(UNTITLED.get()):
            return make()

    work(f"drawing {path}", lambda: save_figure(drawn(), path))
    WRITTEN.add(str(path))


def draw_envy(allocation: fo.Allocation, path: Path) -> None:
    """Write the picture of the envy matrix."""
    from fairopt.analysis.measures import envy_matrix
    from fairopt.plots import plot_envy

    write_figure(lambda: plot_envy(envy_matrix(allocation), allocation.instance.users, allocation.notion), path)


def as_text(data: Any) -> str:
    """Return data as JSON; the question of a result also names what was changed of the file."""
    if (changed := CHANGED.get()) and "question" in data:
        asked = data["question"]
        data = data | {"question": asked | {key: value for key, value in changed.items() if key not in asked}}
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    return _AS_THEY_ARE.sub(lambda found: found[0] if found[0].isprintable() or found[0] in KEPT else json.dumps(found[0])[1:-1], text)


def deliver(content: str | bytes, output: Path | None) -> None:
    """Print, or write a file: completely, or not at all."""
    if output is None:
        typer.echo(content, nl=False)
    else:
        write_files({output: content})


def show(text: Callable[[int], Iterable[Block]], output: Path | None = None) -> None:
    """Print what people read, made for the width that there is, or write it as text of 100 columns."""
    if output is None:
        console = Console(highlight=False)
        print_blocks(console, _blocks(text, console.width))
    else:
        written = Console(file=io.StringIO(), width=100, highlight=False)
        print_blocks(written, _blocks(text, written.width))
        deliver(written.file.getvalue(), output)  # type: ignore[attr-defined]


def _blocks(text: Callable[[int], Iterable[Block]], width: int) -> list[Block]:
    """Return the blocks of a text, in the words of the command line."""
    return work("preparing the tables", lambda: [_in_options(block) for block in text(width)])


def _in_options(block: Block) -> Block:
    if isinstance(block, str):
        return in_options(block)
    return replace(block, text=in_options(block.text)) if isinstance(block, Note) else block
