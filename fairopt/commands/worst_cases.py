"""``fairopt worst-case``: search for the instance on which a schedule is worst."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.console import Bar, as_text, check_instance, show, work
from fairopt.commands.options import Json, Workers
from fairopt.commands.outputs import Written
from fairopt.reporting import tables
from fairopt.wording import figure

__all__ = ["worst_case"]

_VARIED = ("weights", "constraints", "counts", "tasks", "demands-by-server", "speeds")


def worst_case(
    schedule: Annotated[
        str,
        typer.Argument(
            metavar="A:B",
            autocompletion=completion.schedules,
            help="Greedy schedule CRITERION:PLACEMENT, such as drfh:best-fit or drfh:best-fit:metric=cosine. See: fairopt placements.",
        ),
    ],
    notion: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Notion to measure against. Default: the criterion of the schedule.", autocompletion=completion.notions
        ),
    ] = None,
    users: Annotated[int, typer.Option(metavar="N", help="Users of each random instance.")] = 3,
    servers: Annotated[int, typer.Option(metavar="N", help="Servers of each random instance.")] = 2,
    resources: Annotated[int, typer.Option(metavar="N", help="Resources of each random instance.")] = 2,
    capacities: Annotated[tuple[int, int], typer.Option(metavar="LOW HIGH", help="Range of the capacities, which are whole numbers.")] = (
        8,
        16,
    ),
    demands: Annotated[tuple[int, int], typer.Option(metavar="LOW HIGH", help="Range of the demands, which are whole numbers.")] = (0, 4),
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD",
            autocompletion=completion.words(lambda: _VARIED),
            help=f"What else is drawn at random: {', '.join(_VARIED[:-1])} or {_VARIED[-1]}. Can be repeated.",
        ),
    ] = None,
    measure: Annotated[
        Literal["worst", "level", "leximin", "largest", "goal", "condition", "total"], typer.Option(help="Measure of regret to maximise.")
    ] = "worst",
    divisible: Annotated[
        bool, typer.Option("--divisible", help="Measure against the optimum of divisible tasks, not of whole tasks.")
    ] = False,
    keep_regret: Annotated[
        float, typer.Option(metavar="PART", help="Shrink the instance as long as it keeps this part of the largest regret.")
    ] = 0.9,
    tries: Annotated[int, typer.Option(metavar="N", help="Number of instances to try.")] = 1000,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of the search; the same seed gives the same answer with any number of workers.")
    ] = 0,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compute the regret of the instance that is found in fractions, and prove it.")
    ] = False,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="End the search after this time.")] = None,
    workers: Workers = 1,
    as_json: Json = False,
    instance: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the instance: .yaml, .json, .xlsx or a folder."),
        Written(tables=True),
    ] = None,
) -> None:
    """Search small instances for the one on which a schedule is worst, then shrink it.

    Ctrl-C ends the search and prints the worst instance so far; a second Ctrl-C stops at once.
    """
    check_instance(instance, "--instance")
    started = time.perf_counter()
    bar = Bar("largest regret 0", tries)
    ended = threading.Event()
    worst = work(
        "searching",
        lambda: fo.worst_case(
            schedule,
            notion,
            users=users,
            servers=servers,
            resources=resources,
            capacities=capacities,
            demands=demands,
            vary=vary or (),
            measure=measure,
            integral=False if divisible else None,
            keep_regret=keep_regret,
            tries=tries,
            seed=seed,
            time_limit=time_limit,
            workers=workers,
            exact=exact,
            done=lambda more, value: bar.advance(more, what=f"largest regret {figure(value)}"),
            stop=ended.is_set,
        ),
        bar,
        ended,
    )
    seconds = time.perf_counter() - started
    if instance is not None:
        fo.save(worst.instance, instance)
    if as_json:
        typer.echo(as_text(worst.to_dict()), nl=False)
    else:
        show(lambda width: tables.worst_case_blocks(worst, seconds, exact=exact))
