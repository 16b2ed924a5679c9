"""``fairopt compare``: exact allocations, schedules and allocations from files in one table."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import Progress

import fairopt as fo
from fairopt.analysis.owners import owner_holdings
from fairopt.commands.comparison_table import print_comparison
from fairopt.commands.conditions import read_condition
from fairopt.commands.console import check_picture, choose_form, draw, hand_over, say, work
from fairopt.commands.options import (
    Changes,
    File,
    Guarantees,
    Json,
    Notions,
    Output,
    QueueShare,
    Schedules,
    Sharing,
    read_instance,
    with_rules,
    words,
)
from fairopt.formats import spreadsheets

__all__ = ["compare"]


def compare(
    file: File,
    notions: Notions = "drfh",
    schedules: Schedules = "",
    allocation: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="CSV", help="Your own allocation: columns user, server, tasks, or user and a column per server. Can be repeated."
        ),
    ] = None,
    integral: Annotated[
        bool, typer.Option("--integral", help="Also compute the best allocation of whole tasks, and measure regret against it.")
    ] = False,
    reference: Annotated[
        str | None, typer.Option(metavar="ID", help="Measure every regret against this notion; default: each schedule's own.")
    ] = None,
    by: Annotated[
        Literal["user", "owner"], typer.Option(help="owner: also what each owner of tasks (namespace, account, queue) holds, side by side.")
    ] = "user",
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'MEASURE > N'",
            help="Exit with status 1 if this holds of one of your allocations (without any: of a schedule): regret, level, leximin, "
            "largest, goal, condition, queue, total, envy, efficiency, share or jain, as in 'regret > 0.1'. Can be repeated.",
        ),
    ] = None,
    sharing: Sharing = None,
    guarantees: Guarantees = None,
    queue_share: QueueShare = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="For each exact allocation.")] = None,
    changes: Changes = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each allocation.")] = False,
    output: Output = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the comparison: .svg, .png or .pdf.")] = None,
    plot_queues: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw what each queue holds in each allocation.")] = None,
) -> None:
    """Compare exact allocations of FILE, schedules and your own allocations in one table.

    If a row cannot be computed, the output says why. Exit status 3: no row could be computed; 1: a condition of --fail-if holds.
    """
    conditions = [read_condition(text) for text in fail_if or []]
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv)
    check_picture(plot_queues, "--plot-queues")
    instance = read_instance(file, changes)
    if plot_queues is not None and not instance.queues:
        raise typer.BadParameter(f"{file} has no queues to draw; leave it out", param_hint="--plot-queues")
    wanted, greedy = with_rules(words(notions), guarantees, queue_share), words(schedules)
    own: dict[str, Path] = {}
    for path in allocation or []:
        own[path.stem if path.stem not in own else str(path)] = path
    number = len(wanted) * (1 + integral) + len(greedy) + len(own)
    if not number:
        raise typer.BadParameter("there is nothing to compare; give --notions, --schedules or --allocation", param_hint="--notions")
    progress = Progress(console=Console(stderr=True), transient=True)
    rows = progress.add_task("allocations", total=number)
    comparison = work(
        "comparing",
        lambda: fo.compare(
            instance,
            notions=wanted,
            schedules=greedy,
            allocations=own,
            integral=integral,
            sharing=sharing,  # type: ignore[arg-type]  # compare says what there is
            time_limit=time_limit,
            reference=reference,
            done=lambda name: progress.update(rows, advance=1),
        ),
        progress,
    )
    draw(comparison, plot)
    if plot_queues is not None:
        from fairopt.plots import save_figure

        save_figure(comparison.plot(by="queue"), plot_queues)
    hand_over(
        lambda: _with_owners(comparison) if by == "owner" else comparison.to_dict(),
        lambda: spreadsheets.to_csv(comparison.to_frame(by=by)),
        lambda console: print_comparison(console, comparison, by),
        form,
        output,
    )
    if all(row.allocation is None for row in comparison):
        raise typer.Exit(3)
    broken = [sentence for condition in conditions for sentence in condition.broken(comparison)]
    for sentence in broken:
        say("failed", sentence)
    if broken:
        raise typer.Exit(1)


def _with_owners(comparison: fo.Comparison) -> dict[str, Any]:
    """Return plain data with what each owner holds."""
    data = comparison.to_dict()
    for entry, row in zip(data["rows"], comparison, strict=True):
        entry["owners"] = [] if row.allocation is None else [dataclasses.asdict(each) for each in owner_holdings(row.allocation)]
    return data
