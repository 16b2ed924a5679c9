"""``fairopt worst-case``: a search for the instance on which a schedule is worst."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

import fairopt as fo
from fairopt.commands import tables
from fairopt.commands.console import as_text, check_instance, work
from fairopt.commands.options import Json

__all__ = ["worst_case"]


def worst_case(
    schedule: Annotated[
        str,
        typer.Argument(metavar="SCHEDULE", help="criterion:placement, such as drfh:best-fit, or with options drfh:best-fit:metric=cosine."),
    ],
    notion: Annotated[
        str | None,
        typer.Option(metavar="ID", help="What it is measured against; default: its criterion.", autocompletion=lambda: list(fo.NOTIONS)),
    ] = None,
    users: Annotated[int, typer.Option(metavar="N", help="Users of an instance, before shrinking.")] = 3,
    servers: Annotated[int, typer.Option(metavar="N", help="Servers.")] = 2,
    resources: Annotated[int, typer.Option(metavar="N", help="Resources.")] = 2,
    capacities: Annotated[tuple[int, int], typer.Option(metavar="LOW HIGH", help="Whole numbers that are drawn.")] = (8, 16),
    demands: Annotated[tuple[int, int], typer.Option(metavar="LOW HIGH", help="The same of demands.")] = (0, 4),
    vary: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Also weights, constraints, counts, tasks; one an option.")] = None,
    measure: Annotated[str, typer.Option(metavar="WORD", help="worst, level, leximin, largest, goal, condition or total.")] = "worst",
    divisible: Annotated[bool, typer.Option("--divisible", help="Against the optimum of divisible tasks, not of whole ones.")] = False,
    keep: Annotated[float, typer.Option(metavar="PART", help="Shrink while this part of the regret is left.")] = 0.9,
    tries: Annotated[int, typer.Option(metavar="N", help="Instances to try.")] = 1000,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of the search; the answer is the same for a seed, with any number of workers.")
    ] = 0,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="End the search after this time.")] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Worker processes; -1 for one on each core.")] = 1,
    as_json: Json = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Also write the instance: .yaml, .json or a folder.")
    ] = None,
) -> None:
    """Search small instances for the one on which a schedule is worst, and make it smaller still.

    Ctrl-C ends the search with the worst so far; twice, at once.
    """
    check_instance(output, "--output")
    started = time.perf_counter()
    progress = Progress(console=Console(stderr=True), transient=True)
    bar = progress.add_task("largest regret 0", total=tries)
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
            keep=keep,
            tries=tries,
            seed=seed,
            time_limit=time_limit,
            jobs=jobs,
            done=lambda more, value: progress.update(bar, advance=more, description=f"largest regret {value:.3g}"),
            stop=ended.is_set,
        ),
        progress,
        ended,
    )
    seconds = time.perf_counter() - started
    if output is not None:
        fo.save(worst.instance, output)
    if as_json:
        typer.echo(as_text(worst.to_dict() | {"seconds": seconds}), nl=False)
    else:
        tables.print_worst_case(Console(highlight=False), worst, seconds)
