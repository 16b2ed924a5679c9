"""``fairopt reproduce``: what the papers print, beside what comes out here."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from fairopt.commands import tables
from fairopt.commands.console import as_text, work
from fairopt.commands.options import Json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["reproduce"]


def reproduce(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Experiments, such as bbf or pdrf-tables; default: all.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer random trials: wider intervals. A part of a trace.")] = False,
    jobs: Annotated[int, typer.Option(metavar="N", help="Workers for random trials; the answer is the same with any number.")] = -1,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            envvar="FAIROPT_DATA",
            help="Public traces: drfh-trace takes google2011/google2011_task_groups_0-19.6h.csv.gz there, and a synthetic trace without.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Also draw the figures of experiments that have some (drfh-trace, psdsf-figure-6), as .png, there."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print what the papers publish beside what comes out here.

    For example: fairopt reproduce drfh-trace --quick --plot figures

    The exit status is 0 also where a number differs for a reason that is known and printed, and 1 where one differs unexpectedly.
    """
    from fairopt.reproduction.reproducing import EXPERIMENTS, Verdict
    from fairopt.reproduction.reproducing import reproduce as run

    if jobs == 0 or jobs < -1:
        raise typer.BadParameter("give a number of workers, or -1 for one on each core", param_hint="--jobs")
    if plot is not None and not plot.is_dir():
        raise typer.BadParameter(f'there is no folder "{plot}"; make it first', param_hint="--plot")
    pictures: dict[str, Callable[[], Figure]] = {}
    started = time.perf_counter()
    number = sum(EXPERIMENTS[name].trials(quick) for name in ids or EXPERIMENTS if name in EXPERIMENTS)
    progress = Progress(console=Console(stderr=True), transient=True)
    trials = progress.add_task("trials and simulations", total=number)
    results = work(
        "reproducing",
        lambda: list(
            run(
                ids or None,
                quick=quick,
                jobs=jobs,
                done=lambda more: progress.advance(trials, more),
                data=data,
                draw=pictures.__setitem__ if plot is not None else None,
            )
        ),
        progress if number else None,
    )
    if plot is not None:
        from fairopt.plots import save_figure

        for name, figure in pictures.items():
            save_figure(figure(), plot / f"{name}.png")
    seconds = time.perf_counter() - started
    unexpected = sum(row.verdict is Verdict.DIFFERS for _, rows in results for row in rows)
    if as_json:
        experiments = [
            {
                "id": experiment.id,
                "title": experiment.title,
                "source": experiment.source,
                "results": [dataclasses.asdict(row) | {"verdict": row.verdict.value} for row in rows],
            }
            for experiment, rows in results
        ]
        typer.echo(as_text({"quick": quick, "unexpected": unexpected, "experiments": experiments, "seconds": seconds}), nl=False)
    else:
        tables.print_reproduction(Console(highlight=False), results, seconds)
    if unexpected:
        raise typer.Exit(1)
