"""``fairopt schedule``: what a greedy scheduler would do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.console import check_picture, choose_form, draw_envy, present, work
from fairopt.commands.options import (
    Changes,
    Csv,
    Everything,
    File,
    Json,
    Output,
    Plot,
    PlotEnvy,
    Sharing,
    Shown,
    Sort,
    Top,
    read_instance,
    read_utility,
)
from fairopt.reporting.tables.allocation import Choice

__all__ = ["schedule"]


def schedule(
    file: File,
    criterion: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="Which user is next: a notion that equalises a share, or rpsdsf. See: fairopt notions.",
            autocompletion=completion.criteria,
        ),
    ] = "drfh",
    placement: Annotated[
        str,
        typer.Option(metavar="ID", help="Which server takes the task. See: fairopt placements.", autocompletion=completion.placements),
    ] = "first-fit",
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            autocompletion=completion.words(lambda: ("l1", "l2", "cosine", "dot", "tightest")),
            help="For best-fit: compare servers by l1 (default), l2, cosine, dot or tightest.",
        ),
    ] = None,
    slots: Annotated[int | None, typer.Option(metavar="N", help="For slots: number of slots of the largest server (default 14).")] = None,
    utility: Annotated[
        Path | None, typer.Option(metavar="CSV", help="For max-min: worth of a task; a column user, then a column per server.")
    ] = None,
    ties: Annotated[
        str, typer.Option(metavar="WORD", help="Which user is first if several have the smallest share: index, largest-demand or random.")
    ] = "index",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of random ties and placements.")] = 0,
    stop: Annotated[
        str,
        typer.Option(metavar="WORD", help="Stop when no task fits (exhausted), or as soon as the next user's task does not (first-block)."),
    ] = "exhausted",
    sharing: Sharing = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Decide every step in fractions, without tolerances; numbers as written, 1/3 too.")
    ] = False,
    changes: Changes = None,
    as_json: Json = False,
    as_csv: Csv = False,
    everything: Everything = False,
    shown: Shown = None,
    sort: Sort = None,
    top: Top = None,
    output: Output = None,
    plot: Plot = None,
    plot_envy: PlotEnvy = None,
) -> None:
    """Fill the servers of FILE with whole tasks, one at a time, as a scheduler does.

    The result is greedy: it is feasible, but not the optimum that fairopt solve finds.
    """
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv)
    choice = Choice(tuple(shown or ()), sort or "", top)
    check_picture(plot_envy, "--plot-envy")
    started = time.perf_counter()
    instance = read_instance(file, changes)
    choice.require(instance)
    seconds = {"read": time.perf_counter() - started}
    options: dict[str, Any] = {"metric": metric, "slots": slots, "utility": None if utility is None else read_utility(utility, instance)}
    allocation = work(
        f"filling by {criterion}, {placement}",
        lambda: fo.schedule(
            instance,
            criterion,
            placement=placement,
            ties=ties,  # type: ignore[arg-type]  # schedule says what there is
            seed=seed,
            stop=stop,  # type: ignore[arg-type]
            sharing=sharing,  # type: ignore[arg-type]
            exact=exact,
            **{name: value for name, value in options.items() if value is not None},
        ),
    )
    if plot_envy is not None:
        draw_envy(allocation, plot_envy)
    present(allocation, seconds | allocation.seconds, form, everything, output, plot, choice)
