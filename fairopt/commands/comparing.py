"""``fairopt compare``: exact allocations, schedules and allocations from files in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.conditions import read_condition
from fairopt.commands.console import Bar, Form, check_picture, choose_form, draw, hand_over, say, work
from fairopt.commands.options import (
    Changes,
    Everything,
    File,
    Guarantees,
    Json,
    Notions,
    Output,
    QueueShare,
    Schedules,
    Sharing,
    Shown,
    Sort,
    Top,
    read_instance,
    with_rules,
    words,
)
from fairopt.commands.outputs import Written
from fairopt.reporting.tables.allocation import Choice
from fairopt.reporting.tables.comparison import comparison_blocks
from fairopt.reporting.tables.what_if import what_if_blocks

__all__ = ["compare"]


def compare(
    file: File,
    other: Annotated[
        Path | None, typer.Argument(metavar="OTHER", help="Another instance, to compare with FILE: who gains, who loses, and why.")
    ] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            "--what-if",
            metavar="PATH=VALUE",
            autocompletion=completion.changes,
            help="Compare FILE with a changed copy, as in servers.new.count+=2. Can be repeated; --set changes both.",
        ),
    ] = None,
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
        str | None,
        typer.Option(
            metavar="ID", autocompletion=completion.notions, help="Measure every regret against this notion; default: each schedule's own."
        ),
    ] = None,
    by: Annotated[
        Literal["user", "queue", "owner"],
        typer.Option(help="Also show, side by side, what each queue or each owner of tasks (namespace, account) holds."),
    ] = "user",
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'MEASURE > N'",
            help="Exit with status 1 if this condition holds for one of your allocations (or, without any, for a schedule). Measures: "
            "regret, level, leximin, largest, goal, condition, queue, total, envy, efficiency, share, jain. Can be repeated.",
        ),
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="In fractions: the allocations, and all measures that are rational.")] = False,
    sharing: Sharing = None,
    guarantees: Guarantees = None,
    queue_share: QueueShare = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="For each exact allocation.")] = None,
    changes: Changes = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each allocation.")] = False,
    everything: Everything = False,
    shown: Shown = None,
    sort: Sort = None,
    top: Top = None,
    output: Output = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw the comparison (of two instances: who gains, who loses): .svg, .png or .pdf."),
        Written(),
    ] = None,
    plot_queues: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw what each queue holds in each allocation."), Written()
    ] = None,
) -> None:
    """Compare exact allocations of FILE, schedules and your own allocations in one table.

    With OTHER or --what-if, two instances stand side by side: what each user gains or loses, and through which difference.
    If a row cannot be computed, the output says why. Exit status 3: no row could be computed; 1: a condition of --fail-if holds.
    """
    choice = Choice(tuple(shown or ()), sort or "", top)
    conditions = [read_condition(text) for text in fail_if or []]
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv)
    check_picture(plot_queues, "--plot-queues")
    if other is not None or what_if:
        apart = {"--allocation": allocation, "--reference": reference, "--by": by != "user", "--fail-if": fail_if, "--exact": exact}
        _refuse_of_one({**apart, "--plot-queues": plot_queues})
        return _side_by_side(
            (file, other),
            changes or [],
            what_if or [],
            {
                "notions": with_rules(words(notions), guarantees, queue_share),
                "schedules": words(schedules),
                "integral": integral,
                "sharing": sharing,
                "time_limit": time_limit,
            },
            form,
            output,
            plot,
            everything,
            choice,
        )
    instance = read_instance(file, changes)
    choice.require(instance)
    if plot_queues is not None and not instance.queues:
        raise typer.BadParameter(f"{file} has no queues to draw; leave it out", param_hint="--plot-queues")
    if by == "queue" and not instance.queues:
        raise typer.BadParameter(f"{file} has no queues; use user or owner", param_hint="--by")
    wanted, greedy = with_rules(words(notions), guarantees, queue_share), words(schedules)
    own: dict[str, Path] = {}
    for path in allocation or []:
        own[path.stem if path.stem not in own else str(path)] = path
    number = len(wanted) * (1 + integral) + len(greedy) + len(own)
    if not number:
        raise typer.BadParameter("there is nothing to compare; give --notions, --schedules or --allocation", param_hint="--notions")
    bar = Bar("allocations", number)
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
            exact=exact,
            done=lambda name: bar.advance(),
        ),
        bar,
    )
    draw(comparison, plot)
    if plot_queues is not None:
        from fairopt.plots import save_figure

        save_figure(comparison.plot(by="queue"), plot_queues)
    hand_over(
        lambda: comparison.to_dict(by),
        lambda: comparison.to_frame(by=by),
        lambda width: comparison_blocks(comparison, width, by, choice),
        form,
        output,
    )
    if all(row.allocation is None for row in comparison):
        raise typer.Exit(3)
    for row in comparison if conditions else ():
        if row.violations:
            say(
                "warning",
                f"{row.name} exceeds its limits ({row.violations[0]}), so its measures say little; does it belong to this cluster?",
            )
    broken = [sentence for condition in conditions for sentence in condition.broken(comparison)]
    for sentence in broken:
        say("failed", sentence)
    if broken:
        raise typer.Exit(1)


def _refuse_of_one(given: dict[str, Any]) -> None:
    """Refuse options that are about one instance."""
    for option, value in given.items():
        if value:
            raise typer.BadParameter(f"{option} is about one instance; leave it out, or compare one instance", param_hint=option)


def _side_by_side(
    files: tuple[Path, Path | None],
    changes: list[str],
    what_if: list[str],
    options: dict[str, Any],
    form: Form,
    output: Path | None,
    plot: Path | None,
    everything: bool,
    choice: Choice,
) -> None:
    """Compare two instances."""
    first, second = files[0], files[1] or files[0]
    before, after = read_instance(first, changes), read_instance(second, [*changes, *what_if])
    if not set(choice.users) <= {*before.users, *after.users}:
        choice.require(before)
    names = (
        (first.stem, second.stem) if first.stem != second.stem else (str(first), str(second)) if first != second else ("before", "after")
    )
    number = len(options["notions"]) * (1 + options["integral"]) + len(options["schedules"])
    if not number:
        raise typer.BadParameter("there is nothing to compare; give --notions or --schedules", param_hint="--notions")
    bar = Bar("allocations", 3 * number)
    found = work(
        "comparing",
        lambda: fo.what_if(before, after, names=names, done=lambda name: bar.advance(), **options),
        bar,
    )
    if any(found.changes(row) for row in found.rows):
        draw(found, plot)
    hand_over(
        found.to_dict,
        found.to_frame,
        lambda width: what_if_blocks(found, everything=everything, choice=choice),
        form,
        output,
    )
    if not any(found.changes(row) for row in found.rows):
        raise typer.Exit(3)
