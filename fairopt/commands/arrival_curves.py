"""``fairopt arrivals``: how much of a resource is allocated as tasks arrive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.crews import CrewOptions
from fairopt.commands.delivering import draw, hand_over
from fairopt.commands.forms import choose_form
from fairopt.commands.options import Changes, File, Json, Output, Rules, at_least_one, read_instance, words
from fairopt.commands.outputs import Written
from fairopt.commands.working import Bar, work
from fairopt.reporting import tables

__all__ = ["arrivals"]


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
    crew: CrewOptions = CrewOptions(workers=-1),
    changes: Changes = None,
    rules: Rules = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each seed, point and curve.")] = False,
    output: Output = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the curves: .svg, .png or .pdf."), Written()] = None,
) -> None:
    """Let the tasks of FILE arrive in random order, and measure how much of a resource each placement allocates.

    The fluid bound is the most that any allocation of the arrived tasks could reach; it is exact for divisible tasks.
    """
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv)
    instance = read_instance(file, changes, rules)
    bar = Bar("orders of arrival", seeds)
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
            **vars(crew),
            done=lambda finished, total: bar.reach(finished),
        ),
        bar,
    )
    draw(found, plot)
    hand_over(
        found.to_dict,
        found.to_frame,
        lambda width: tables.arrival_blocks(found),
        form,
        output,
    )
