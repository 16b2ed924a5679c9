"""``fairopt worst-case``: search for the instance on which a schedule is worst."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.console import Console, as_text, check_instance, work
from fairopt.commands.options import Json, Workers
from fairopt.commands.outputs import Written
from fairopt.commands.tables import add_numbers, label, simple_table
from fairopt.wording import figure, plural

__all__ = ["worst_case"]


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
            metavar="weights|constraints|counts|tasks",
            autocompletion=completion.words(lambda: ("weights", "constraints", "counts", "tasks")),
            help="What else is drawn at random. Can be repeated.",
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
            keep_regret=keep_regret,
            tries=tries,
            seed=seed,
            time_limit=time_limit,
            workers=workers,
            exact=exact,
            done=lambda more, value: progress.update(bar, advance=more, description=f"largest regret {figure(value)}"),
            stop=ended.is_set,
        ),
        progress,
        ended,
    )
    seconds = time.perf_counter() - started
    if instance is not None:
        fo.save(worst.instance, instance)
    if as_json:
        typer.echo(as_text(worst.to_dict()), nl=False)
    else:
        _print(Console(highlight=False), worst, seconds, exact=exact)


def _print(console: Console, worst: fo.WorstCase, seconds: float, *, exact: bool) -> None:
    """Print the instance, both allocations, the regret, and a summary of the search."""
    instance, found = worst.instance, worst.regret
    tasks = "whole" if found.whole else "divisible"
    console.print(Text.assemble((f"{worst.name} against {found.notion}", "bold"), f", {tasks} tasks"))
    console.print()
    console.print(_instance_table("server", instance.servers, _server_columns(instance)))
    console.print()
    columns = _user_columns(instance)
    own, best = worst.in_fractions or (worst.schedule.tasks, worst.exact.tasks)
    columns |= {"tasks, greedy": own.sum(axis=1), "tasks, exact": best.sum(axis=1)}
    console.print(_instance_table("user", instance.users, columns))
    console.print()
    for title, placed in (("Greedy", own), ("Exact", best)):
        held = [
            f"{figure(x, 4)} of {instance.users[n]} on {instance.servers[i]}"
            for (n, i), x in np.ndenumerate(placed)
            if (x if isinstance(x, Fraction) else round(x, 9)) > 0
        ]
        console.print(Text(f"{title}: {', '.join(held) or 'nothing'}"))
    console.print(Text(str(found)))
    size = f"{plural(worst.tries, 'instance')} tried, seed {worst.seed}"
    stopped = {"": "", "time limit": ", stopped by the time limit", "interrupted": ", interrupted"}[worst.stopped]
    failed = f", {worst.failed:,} not solved" if worst.failed else ""
    largest, here = figure(worst.found_value, 4), figure(worst.value if worst.proved is None else worst.proved, 4)
    console.print(Text(f"Largest regret found: {largest} ({size}{stopped}{failed}). Regret of this smaller instance: {here}"))
    if worst.proved is not None:
        console.print(Text("Proved in fractions: both allocations keep every limit, and the regret is this number."))
    elif exact:
        kept = "" if worst.in_fractions is None else " In fractions, both allocations keep every limit."
        console.print(Text(f"Not proved in fractions: the regret is computed in floating point.{kept}"))
    console.print(Text(f"A search gives a lower bound: the true worst case may be larger. Time: {figure(seconds)} s"))


def _server_columns(instance: fo.Instance) -> dict[str, Any]:
    counts = {"count": instance.counts} if (instance.counts != 1).any() else {}
    return counts | dict(zip(instance.resources, instance.capacities.T, strict=True))


def _user_columns(instance: fo.Instance) -> dict[str, Any]:
    """Return demands, and every field that differs from its default."""
    columns: dict[str, Any] = dict(zip(instance.resources, instance.demands.T, strict=True))
    if (instance.weights != 1).any():
        columns["weight"] = instance.weights
    if np.isfinite(instance.tasks).any():
        columns["has"] = instance.tasks
    if np.isfinite(instance.parallelism).any():
        columns["at once"] = instance.parallelism
    if instance.placement is not None and not instance.placement.all():
        columns["runs on"] = [", ".join(np.array(instance.servers)[row]) for row in instance.placement]
    return columns


def _instance_table(what: str, names: Sequence[str], columns: dict[str, Any]) -> Table:
    table = simple_table(what)
    add_numbers(table, *columns)
    for n, name in enumerate(names):
        table.add_row(label(name), *(value if isinstance(value, str) else figure(value, 4) for value in (c[n] for c in columns.values())))
    return table
