"""``fairopt report``: every analysis of a file on one HTML page that needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.console import say
from fairopt.commands.delivering import as_text
from fairopt.commands.forms import check_file
from fairopt.commands.options import (
    EFFORT,
    Changes,
    File,
    GivenAllocations,
    Json,
    Rules,
    Schedules,
    Sharing,
    by_name,
    read_instance,
    words,
)
from fairopt.commands.outputs import Written
from fairopt.commands.shares import Shares
from fairopt.commands.working import Bar, work
from fairopt.reporting.composing import NOTIONS, check_date, check_page, default_notions
from fairopt.reporting.findings import number_of_steps

__all__ = ["report"]

_NOTIONS = ", ".join(NOTIONS)


def report(
    file: File,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write; its name ends in .html."), Written()
    ] = Path("report.html"),
    notions: Annotated[
        str | None,
        typer.Option(
            metavar="ID,...",
            autocompletion=completion.listed_notions,
            help=f"Exact allocations to compute. Default: {_NOTIONS}, without those that FILE's queues rule out. See: fairopt notions.",
        ),
    ] = None,
    schedules: Schedules = "",
    allocation: GivenAllocations = None,
    explain: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=completion.names_of_users_and_queues,
            help="Also explain what this user or queue gets. Can be repeated.",
        ),
    ] = None,
    sharing: Sharing = None,
    shares: Shares = Shares(),
    effort: Annotated[int, typer.Option(metavar="N", help=EFFORT)] = 50,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random misreports.")] = 0,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time limit of each allocation, of each property and of the frontier.")
    ] = 60.0,
    changes: Changes = None,
    rules: Rules = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page. Default: the name of FILE.")] = None,
    date: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Date on the page. Default: today.")] = None,
    one_page: Annotated[
        bool,
        typer.Option(
            "--one-page",
            help="Write only what fits a printed sheet: who gets what under the first notion that has an allocation, and complaints.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a report on FILE: one HTML page with interactive charts, their tables, certificates, and the commands to reproduce it.

    If a part fails, the page says why and shows the rest. Exit status 3: no notion has an allocation.
    """
    check_file(output, "--output")
    check_page(output, one_page=one_page)
    day = check_date(date)
    greedy = words(schedules)
    instance = read_instance(file, changes, rules)
    wanted = shares.of_all(default_notions(instance)[: 1 if one_page else None] if notions is None else words(notions))
    users = explain or []
    own = by_name(allocation)
    bar = Bar("the report", number_of_steps(wanted, greedy, users, len(own), one_page=one_page) + 1)
    found = work(
        "writing the report",
        lambda: fo.report(
            instance,
            output,
            notions=wanted,
            schedules=greedy,
            allocations=own,
            explain=users,
            sharing=sharing,
            effort=effort,
            seed=seed,
            time_limit=time_limit,
            title=" with ".join([file.name, *(changes or [])]) if title is None else title,
            date=day,
            one_page=one_page,
            done=lambda name: bar.advance(what=name),
        ),
        bar,
    )
    if as_json:
        typer.echo(as_text(found.to_dict()), nl=False)
    else:
        typer.echo(f"{found.path} ({_size(found.path.stat().st_size)})")
    for each in found.findings.notions:
        if each.allocation is None:
            say("warning", f"{each.name} has no allocation: {each.row.message}")
    if not found.findings.solved:
        raise typer.Exit(3)


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"
