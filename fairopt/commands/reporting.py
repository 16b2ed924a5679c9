"""``fairopt report``: everything that fairopt knows of a file, on one page that needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

import fairopt as fo
from fairopt.commands.console import check_file, work
from fairopt.commands.options import File, Notions, Schedules, Sharing, words
from fairopt.reporting.composing import NOTIONS, check_page
from fairopt.reporting.findings import number_of_steps

__all__ = ["report"]

_NOTIONS = ",".join(NOTIONS)


def report(
    file: File,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The page; ends in .html.")] = Path("report.html"),
    notions: Notions = _NOTIONS,
    schedules: Schedules = "",
    explain: Annotated[
        list[str] | None, typer.Option(metavar="USER", help="Also explain what this user gets. Several times, if you like.")
    ] = None,
    sharing: Sharing = None,
    effort: Annotated[int, typer.Option(metavar="N", help="Lies, and users who leave, that each audit tries.")] = 50,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the lies.")] = 0,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Of each allocation, each property and the frontier.")] = 60.0,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Of the page; default: the name of the file.")] = None,
) -> None:
    """Write a report on FILE: one HTML page with interactive charts, tables for each of them, proofs, and how to reproduce it.

    A study that fails says so on the page, and the rest stands; the exit status is 3 where no notion has an allocation.
    """
    check_file(output, "--output")
    check_page(output)
    wanted, greedy = words(notions), words(schedules)
    instance = work(f"reading {file}", lambda: fo.load(file))
    users = explain or []
    progress = Progress(console=Console(stderr=True), transient=True)
    bar = progress.add_task("the report", total=number_of_steps(wanted, greedy, users) + 1)
    found = work(
        "writing the report",
        lambda: fo.report(
            instance,
            output,
            notions=wanted,
            schedules=greedy,
            explain=users,
            sharing=sharing,  # type: ignore[arg-type]  # report says what there is
            effort=effort,
            seed=seed,
            time_limit=time_limit,
            title=file.name if title is None else title,
            done=lambda name: progress.update(bar, advance=1, description=escape(name)),
        ),
        progress,
    )
    typer.echo(f"{found.path} ({found.path.stat().st_size / 1e6:.1f} MB)")
    if not found.findings.solved:
        raise typer.Exit(3)
