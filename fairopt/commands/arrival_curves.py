"""``fairopt arrivals``: how much of a resource is allocated as tasks arrive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.progress import Progress
from rich.text import Text

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.console import Console, choose_form, draw, hand_over, work
from fairopt.commands.options import Changes, File, Json, Output, Workers, at_least_one, read_instance, words
from fairopt.commands.outputs import Written
from fairopt.commands.tables import add_numbers, label, simple_table
from fairopt.wording import percent, plural

__all__ = ["arrivals", "print_arrivals"]

_POINTS = (0.6, 0.8, 1.0)  # columns of the table, and the last point


def arrivals(
    file: File,
    resource: Annotated[
        str,
        typer.Option(
            metavar="NAME", autocompletion=completion.resources, help="Resource whose allocation ratio is measured.", show_default=False
        ),
    ],
    placements: Annotated[
        str,
        typer.Option(
            metavar="ID,...",
            autocompletion=completion.listed_placements,
            help="Greedy placements; options as in best-fit:metric=tightest. See: fairopt placements.",
        ),
    ] = "first-fit,best-fit",
    cards: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=completion.resources,
            help="Resource that comes in cards, such as gpu: a task that needs a part of a card gets all of it from one card.",
        ),
    ] = None,
    load: Annotated[float, typer.Option(metavar="PART", help="Demand of all tasks that arrive, as a fraction of the capacity.")] = 1.3,
    load_step: Annotated[
        float, typer.Option(metavar="PART", help="Distance between two points of the curve, as a fraction of the capacity.")
    ] = 0.01,
    seeds: Annotated[
        int, typer.Option(metavar="N", callback=at_least_one, help="Number of random orders of arrival (seeds 0 to N - 1).")
    ] = 10,
    workers: Workers = -1,
    changes: Changes = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each seed, point and curve.")] = False,
    output: Output = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the curves: .svg, .png or .pdf."), Written()] = None,
) -> None:
    """Let the tasks of FILE arrive in random order, and measure how much of a resource each placement allocates.

    The fluid bound is the most that any allocation of the arrived tasks could reach; it is exact for divisible tasks.
    """
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv)
    instance = read_instance(file, changes)
    progress = Progress(console=Console(stderr=True), transient=True)
    bar = progress.add_task("orders of arrival", total=seeds)
    found = work(
        "placing tasks",
        lambda: fo.arrivals(
            instance,
            resource,
            words(placements),
            cards=cards,
            until=load,
            step=load_step,
            seeds=range(seeds),
            workers=workers,
            done=lambda finished, total: progress.update(bar, completed=finished),
        ),
        progress,
    )
    draw(found, plot)
    hand_over(
        found.to_dict,
        found.to_frame,
        lambda console: print_arrivals(console, found),
        form,
        output,
    )


def print_arrivals(console: Console, found: fo.Arrivals) -> None:
    """Print ratios at a few points, and the demand at which each placement leaves the bound."""
    size = f"{plural(found.instance.counts.sum(), 'server')}, {plural(len(found.seeds), 'order')} of arrival"
    cards = f"; {found.cards} in cards" if found.cards else ""
    console.print(Text(f"Allocation ratio of {found.resource} on {size}{cards}\n"))
    wanted = dict.fromkeys([*_POINTS, float(found.points[-1])])
    shown = [point for point in wanted if np.isclose(found.points, point, rtol=0, atol=1e-9).any()]
    table = simple_table("arrived")
    add_numbers(table, *(percent(point) for point in shown), "leaves at")
    ratios = [found.at(point) for point in shown]
    for name in found.curves:
        leaves = "" if name == "bound" else _median(found.leaves(name))
        table.add_row(label("fluid bound" if name == "bound" else name), *(percent(float(np.median(at[name]))) for at in ratios), leaves)
    console.print(table)
    console.print(
        Text(
            "\nMedians over the orders of arrival. Placements are greedy.\nfluid bound: a relaxation, exact for divisible tasks"
            + (" (parts of different cards add up)" if found.cards else "")
            + "; no scheduler can exceed it.\nleaves at: the demand from which a placement is over 1 % of the capacity below the bound.",
            style="dim",
        )
    )


def _median(points: np.ndarray) -> str:
    """Return the median; "nowhere" if more than half of the seeds have no point."""
    middle = float(np.median(np.where(np.isnan(points), np.inf, points)))
    return percent(middle) if np.isfinite(middle) else "nowhere"
