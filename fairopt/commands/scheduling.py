"""``fairopt schedule``: what a greedy scheduler would do."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import fairopt as fo
from fairopt.analysis.own_schedulers import made
from fairopt.commands import completion
from fairopt.commands.delivering import draw_envy, present
from fairopt.commands.forms import check_picture, choose_form
from fairopt.commands.options import (
    Changes,
    Csv,
    Exact,
    File,
    Json,
    Output,
    Plot,
    PlotEnvy,
    Rules,
    Sharing,
    ShownUsers,
    read_instance,
    read_utility,
)
from fairopt.commands.retired import warn_retired
from fairopt.commands.shares import Counted
from fairopt.commands.working import work
from fairopt.specs import read_schedule

__all__ = ["schedule"]


def schedule(
    file: File,
    schedule: Annotated[
        str | None,
        typer.Option(
            metavar="A:B",
            autocompletion=completion.schedules,
            help="CRITERION:PLACEMENT, such as drfh:best-fit or drfh:best-fit:metric=l2. The criterion (a notion that equalises a share, "
            "or rpsdsf) chooses the next user, the placement the server. NOTION:BASELINE, such as drfh:pop:parts=4: an approximation that "
            "papers compare with. Your own scheduler: mine.py:in_turn. Default: drfh:first-fit. "
            "See: fairopt notions, fairopt placements.",
        ),
    ] = None,
    criterion: Annotated[str | None, typer.Option(hidden=True)] = None,
    placement: Annotated[str | None, typer.Option(hidden=True)] = None,
    metric: Annotated[
        Literal["l1", "l2", "cosine", "dot", "tightest"] | None, typer.Option(help="For best-fit: how servers are compared. Default: l1.")
    ] = None,
    slots: Annotated[
        int | None, typer.Option(metavar="N", help="For the placement slots: number of slots of the largest server. Default: 14.")
    ] = None,
    utility: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For max-min: value of a task on each server: a column user, then a column for each server."),
    ] = None,
    ties: Annotated[
        Literal["index", "largest-demand", "random"] | None,
        typer.Option(help="Which user comes first if several have the smallest share. Default: index."),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of random ties and placements. Default: 0.")] = None,
    stop: Annotated[
        Literal["exhausted", "first-block"] | None,
        typer.Option(help="Stop when no task fits (exhausted, the default), or when the next user's task does not fit (first-block)."),
    ] = None,
    counted: Counted = Counted(),
    sharing: Sharing = None,
    exact: Exact = False,
    integral: Annotated[bool, typer.Option("--integral", help="Round the answer of a baseline to whole tasks.")] = False,
    changes: Changes = None,
    rules: Rules = None,
    as_json: Json = False,
    as_csv: Csv = False,
    users_shown: ShownUsers = ShownUsers(),
    output: Output = None,
    plot: Plot = None,
    plot_envy: PlotEnvy = None,
) -> None:
    """Fill the servers of FILE with whole tasks, one at a time, as a scheduler does.

    The result is greedy: it is feasible, but not the optimum that fairopt solve finds. A baseline, such as drfh:pop, approximates that
    optimum as its paper does, in fractions of tasks.
    """
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv)
    choice = users_shown.choice(form)
    check_picture(plot_envy, "--plot-envy")
    if criterion is not None or placement is not None:
        plan: Any = {"criterion": criterion or "drfh", "placement": placement or "first-fit"}
        name = f"{plan['criterion']}:{plan['placement']}"
        warn_retired("--criterion", "--placement", new=f"--schedule {name}")
        if schedule is not None:
            raise typer.BadParameter("give --schedule only", param_hint="--criterion")
    else:
        name, plan = read_schedule(schedule or "drfh:first-fit")
    started = time.perf_counter()
    instance = read_instance(file, changes, rules)
    choice.require(instance)
    seconds = {"read": time.perf_counter() - started}
    given = {
        "metric": metric,
        "slots": slots,
        "utility": None if utility is None else read_utility(utility, instance),
        "ties": ties,
        "seed": seed,
        "stop": stop,
        "exact": exact or None,
        "integral": integral or None,
        **counted.counted,
    }
    options: dict[str, Any] = {word: value for word, value in given.items() if value is not None}
    for word in options:
        if not isinstance(plan, Mapping):
            raise typer.BadParameter("a scheduler of your own does not take it; leave it out", param_hint=f"--{word.replace('_', '-')}")
        if word in plan:
            raise typer.BadParameter(f"--schedule {name} has it already; give it once", param_hint=f"--{word.replace('_', '-')}")
    allocation = work(
        f"filling by {name}",
        lambda: fo.schedule(instance, **plan, **options, sharing=sharing) if isinstance(plan, Mapping) else made(instance, plan, sharing),
    )
    if plot_envy is not None:
        draw_envy(allocation, plot_envy)
    present(allocation, seconds | allocation.seconds, form, users_shown.everything, output, plot, choice)
