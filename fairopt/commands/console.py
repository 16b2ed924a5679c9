"""What the commands share: messages, progress, work that Ctrl-C can end, and output to the terminal or to files."""

from __future__ import annotations

import contextvars
import io
import json
import logging
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import rich.console
import typer
from rich.console import ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.markup import escape
from rich.segment import Segment
from rich.text import Text

import fairopt as fo
from fairopt.commands.in_options import in_options
from fairopt.commands.outputs import UNTITLED
from fairopt.commands.said import INTERRUPTED, SAID, WRITTEN
from fairopt.files import is_device, write_files
from fairopt.formats import FILES
from fairopt.formats.results import KINDS, Kind, rendered, require
from fairopt.reporting import tables
from fairopt.show.blocks import Block, Note
from fairopt.show.terminal import print_blocks
from fairopt.wording import printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from rich.status import Status

__all__ = [
    "INTERRUPTED",
    "Bar",
    "Console",
    "Form",
    "as_text",
    "check_file",
    "check_folder",
    "check_instance",
    "check_page",
    "check_picture",
    "choose_form",
    "deliver",
    "draw",
    "draw_envy",
    "hand_over",
    "present",
    "say",
    "show",
    "table_form",
    "work",
    "write_figure",
]

T = TypeVar("T")
Form: TypeAlias = Literal["json", "csv", "parquet", "xlsx", "md", "tex", "page"]

_AS_THEY_ARE = re.compile("[^\x00-\x7e]")  # characters that json does not escape; they occur inside strings only
_KEPT = "\n\N{NO-BREAK SPACE}"  # characters that are no letters, and drive no terminal
_LOOK = 0.1  # seconds between two checks for signals
_PATIENCE = 2.0  # seconds after which a terminal shows progress


class Console(rich.console.Console):
    """A console on which no text drives the terminal: control characters are printed as escapes, wherever they come from."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.push_render_hook(_Printable())


class _Printable(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Clean(each) for each in renderables]


class _Clean:
    def __init__(self, of: ConsoleRenderable) -> None:
        self.of = of

    def __rich_console__(self, console: rich.console.Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.of, options):
            yield segment if segment.control else Segment(printable(segment.text, keep=_KEPT), segment.style)


def choose_form(
    output: Path | None,
    plot: Path | None = None,
    *,
    as_json: bool = False,
    as_csv: bool = False,
    kinds: tuple[Form, ...] = ("json", *KINDS),
) -> Form:
    """Return the form of a result: as the options say, else by the ending of its file.

    A file that cannot be written is refused here, before anything is computed.
    """
    if as_json and as_csv:
        raise typer.BadParameter("choose one of --json and --csv", param_hint="--csv")
    check_file(output, "--output")
    check_picture(plot, "--plot")
    asked: Form | None = "json" if as_json else "csv" if as_csv else None
    suffix = "" if output is None or is_device(output) else output.suffix.lower()
    endings: dict[str, Form] = {**{f".{kind}": kind for kind in kinds}, ".txt": "page"}
    if asked is not None and endings.get(suffix, asked) != asked:
        raise typer.BadParameter(f"{output} ends in {suffix}; leave --{asked} out, or end the name in .{asked}", param_hint="--output")
    if asked is None and suffix and suffix not in endings:
        known = " or ".join([", ".join([*endings][:-1]), [*endings][-1]])
        raise typer.BadParameter(f"cannot tell what to write into {output}; end its name in {known}", param_hint="--output")
    form = asked or endings.get(suffix, "page")
    require(form, str(output))
    return form


def check_folder(path: Path | None, option: str) -> None:
    """Refuse a file in a folder that is not there. A pipe or a device needs no folder."""
    if path is None or is_device(path):
        return
    folder = Path(os.path.realpath(path)).parent
    shown = folder if path.is_symlink() else path.parent
    if not folder.is_dir():  # refused before an hour of solving, not after
        raise typer.BadParameter(f"there is no folder {shown}; make it first", param_hint=option)
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"the folder {shown} is not writable", param_hint=option)


def check_file(path: Path | None, option: str) -> None:
    """Refuse a folder where a file is to be written, and a file in a folder that is not there."""
    check_folder(path, option)
    if path is not None and path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; give the name of a file", param_hint=option)


def check_picture(path: Path | None, option: str) -> None:
    """Refuse a picture of an unknown kind."""
    check_file(path, option)
    if path is not None:
        from fairopt.plots import figure_format

        figure_format(path)


def check_page(path: Path | None, option: str) -> None:
    """Refuse a page whose name does not end in .html."""
    check_file(path, option)
    if path is not None and path.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(f"{path} would be a web page; end its name in .html", param_hint=option)


def table_form(path: Path | None, option: str, *more: Kind) -> Kind:
    """Return the kind of table that a file will hold, by its ending; without one, CSV. An ending of something else is refused.

    ``more`` are kinds that this command alone writes.
    """
    check_file(path, option)
    kind = "" if path is None or is_device(path) else path.suffix.lower().removeprefix(".")
    kinds = (*KINDS, *more)
    for known in kinds:
        if kind in ("", known):
            require(known if kind else "csv", str(path))
            return known if kind else "csv"
    raise typer.BadParameter(f"{path} would hold a table; end its name in .{', .'.join(kinds[:-1])} or .{kinds[-1]}", param_hint=option)


def check_instance(path: Path | None, option: str) -> None:
    """Refuse an instance in a file of an unknown kind."""
    check_folder(path, option)
    if path is not None and path.suffix.lower() not in ("", ".parquet", *FILES) and not path.is_dir():
        raise typer.BadParameter(f"{path.name}: give a name that ends in .yaml or .json (or .xlsx), or a folder", param_hint=option)
    if path is not None and path.suffix.lower() == ".xlsx":
        from fairopt.tables.workbooks import require_openpyxl

        require_openpyxl(f"writing {path}")


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
    page: Callable[[int], Iterable[Block]],
    form: Form,
    output: Path | None,
) -> None:
    """Print or write a result in one of its forms: JSON, a table, or what people read, for a width of so many characters."""
    if form == "json":
        deliver(work("writing the result", lambda: as_text(data())), output)
    elif form == "page":
        show(page, output)
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


def say(kind: str, message: str) -> None:
    """Print a message on stderr."""
    console = Console(stderr=True, highlight=False)
    text = printable(in_options(message), keep=_KEPT)
    console.print(Text.assemble((f"{kind}: ", "bold red" if kind == "error" else "bold yellow"), text), soft_wrap=True)


class Bar:
    """A bar on stderr that shows how far a task is; `work` shows it if the task takes long.

    Parameters
    ----------
    what : str
        What is counted.
    total : float or None
        When it is full; None: not known yet.
    """

    def __init__(self, what: str, total: float | None = None) -> None:
        from rich.progress import Progress

        self.progress = Progress(console=Console(stderr=True), transient=True)
        self._task = self.progress.add_task(escape(what), total=total)

    def advance(self, by: float = 1, what: str | None = None) -> None:
        """Move it on."""
        self.progress.update(self._task, advance=by, description=None if what is None else escape(what))

    def reach(self, now: float, total: float | None = None, what: str | None = None) -> None:
        """Move it to where the task is."""
        self.progress.update(self._task, completed=now, total=total, description=None if what is None else escape(what))


class _Listener(logging.Handler):
    """Prints each warning once, and shows progress on a terminal."""

    status: Status | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            if (message := record.getMessage()) not in SAID:  # several solves of one instance give the same warning
                SAID.add(message)
                say("warning", message)
        elif self.status is not None:
            self.status.update(Text(record.getMessage()))


def work(what: str, task: Callable[[], T], bar: Bar | None = None, ended: threading.Event | None = None) -> T:
    """Run a task in a thread of its own, so that Ctrl-C works while an engine computes, and show progress if it takes long.

    With ``bar``, it is shown, and the task advances it; otherwise ``what``, and what the engines log. With ``ended``, Ctrl-C and
    SIGTERM (by which batch systems announce that time is up) set it, and the task returns what it has. A second Ctrl-C ends it at once.
    """
    results: list[T] = []
    errors: list[BaseException] = []
    finished = threading.Event()  # not join(): after an interrupted join(), Python 3.11 takes a thread for ended

    def run() -> None:
        try:
            results.append(task())
        except BaseException as error:  # raised again below, in the thread that waits
            errors.append(error)
        finally:
            finished.set()

    log, listener = logging.getLogger("fairopt"), _Listener()
    level = log.level
    log.addHandler(listener)
    log.setLevel(logging.INFO)
    signals = _Signals(ended) if ended is not None and threading.current_thread() is threading.main_thread() else None
    try:
        threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True).start()  # with the limits of this one
        console = Console(stderr=True)
        if not _wait(finished, signals, _PATIENCE) and console.is_terminal:
            if bar is not None:
                with bar.progress:
                    _wait(finished, signals)
            else:
                with console.status(Text(what)) as listener.status:
                    _wait(finished, signals)
        _wait(finished, signals)
        if signals is not None and signals.heard:  # also if workers received it, too, and ended the task sooner
            before = signals.interrupts
            say("interrupted", "the results so far come in a moment; press Ctrl-C again to stop at once")
            signals.told = True
            if signals.interrupts > before:  # the user read the sentence and pressed Ctrl-C before told was set
                raise KeyboardInterrupt
            finished.wait()
    except KeyboardInterrupt:
        if ended is None:
            say(
                "interrupted",
                "there is no result, and no file was changed" if not WRITTEN else f"written so far: {', '.join(sorted(WRITTEN))}",
            )
        raise
    finally:
        if signals is not None:
            signals.restore()
        log.removeHandler(listener)
        log.setLevel(level)
    if errors:
        raise errors[0]
    return results[0]


class _Signals:
    """Records Ctrl-C and SIGTERM while a task runs that can be asked to end.

    The handlers only set flags: several signals may come at one instant, and an exception in a handler would interrupt the handler of an
    earlier signal. Once the user has been told that the task is ending, Ctrl-C ends the program.

    The task is asked to end in the handler itself: if its workers end because they receive the signal, too, it must know why.
    """

    def __init__(self, ended: threading.Event) -> None:
        self.ended = ended
        self.heard = self.told = False
        self.interrupts = 0
        heeded = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
        self.before = {number: signal.signal(number, self._hear) for number in heeded}

    def _hear(self, number: int, frame: object) -> None:
        if self.told and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.interrupts += number == signal.SIGINT
        if not self.heard:
            self.heard = True  # first: a second signal must not wait for the lock that the first one holds in set()
            self.ended.set()

    def restore(self) -> None:
        """Put the handlers back that were there before."""
        for number, handler in self.before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _wait(finished: threading.Event, signals: _Signals | None, most: float = float("inf")) -> bool:
    """Wait until a task has finished, a signal was heard, or ``most`` seconds are over; return whether it has finished."""
    until = time.monotonic() + most
    while (left := until - time.monotonic()) > 0 and not (signals is not None and signals.heard):
        if finished.wait(min(left, _LOOK) if signals is not None else left if left < threading.TIMEOUT_MAX else None):
            return True
    return finished.is_set()


def as_text(data: Any) -> str:
    """Return data as JSON."""
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    return _AS_THEY_ARE.sub(lambda found: found[0] if found[0].isprintable() or found[0] in _KEPT else json.dumps(found[0])[1:-1], text)


def deliver(content: str | bytes, output: Path | None) -> None:
    """Print, or write a file: completely, or not at all."""
    if output is None:
        typer.echo(content, nl=False)
    else:
        write_files({output: content})


def show(page: Callable[[int], Iterable[Block]], output: Path | None = None) -> None:
    """Print what people read, made for the width that there is, or write it as text of 100 columns."""
    if output is None:
        console = Console(highlight=False)
        print_blocks(console, _blocks(page, console.width))
    else:
        written = Console(file=io.StringIO(), width=100, highlight=False)
        print_blocks(written, _blocks(page, written.width))
        deliver(written.file.getvalue(), output)  # type: ignore[attr-defined]


def _blocks(page: Callable[[int], Iterable[Block]], width: int) -> list[Block]:
    """Return the blocks of a page, in the words of the command line."""
    return work("preparing the tables", lambda: [_in_options(block) for block in page(width)])


def _in_options(block: Block) -> Block:
    if isinstance(block, str):
        return in_options(block)
    return replace(block, text=in_options(block.text)) if isinstance(block, Note) else block
