"""``fairopt compare``: exact allocations, schedules and allocations from files in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.conditions import read_condition
from fairopt.commands.console import say
from fairopt.commands.delivering import draw, hand_over, write_figure
from fairopt.commands.forms import Form, check_picture, choose_form
from fairopt.commands.options import (
    Changes,
    Exact,
    File,
    GivenAllocations,
    Json,
    Notions,
    Output,
    Rules,
    Schedules,
    Sharing,
    ShownUsers,
    by_name,
    read_instance,
    words,
)
from fairopt.commands.outputs import Written
from fairopt.commands.retired import warn_retired
from fairopt.commands.shares import Shares
from fairopt.commands.what_ifs import compare_two
from fairopt.commands.working import Bar, work
from fairopt.reporting import tables

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compare"]

_COLUMNS = 6  # users beside each other on a page


def compare(
    file: File,
    other: Annotated[Path | None, typer.Argument(hidden=True)] = None,
    what_if_: Annotated[list[str] | None, typer.Option("--what-if", autocompletion=completion.changes, hidden=True)] = None,
    notions: Notions = "drfh",
    schedules: Schedules = "",
    allocation: GivenAllocations = None,
    integral: Annotated[
        bool, typer.Option("--integral", help="Also compute the best allocation of whole tasks, and measure regret against it.")
    ] = False,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            autocompletion=completion.notions,
            help="Notion against which regret is measured. Default: the criterion of each schedule.",
        ),
    ] = None,
    by: Annotated[
        Literal["user", "queue", "owner"],
        typer.Option(
            help="What --csv and -o write a row for. user: each allocation, with columns for its users (the default). queue, owner: each "
            "queue or owner of tasks (namespace, account) in each allocation; the printed table then shows these, too."
        ),
    ] = "user",
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'MEASURE > N'",
            help="Exit with status 1 if this condition holds for one of your allocations (without any: for a schedule). Measures: regret "
            "(one number for any notion), level, leximin, largest, goal, condition, queue, total, envy, efficiency, share, jain. Can be "
            "repeated.",
        ),
    ] = None,
    exact: Exact = False,
    sharing: Sharing = None,
    shares: Shares = Shares(),
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Time limit of each exact allocation.")] = None,
    changes: Changes = None,
    rules: Rules = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: the rows of --by.")] = False,
    users_shown: ShownUsers = ShownUsers(),
    output: Output = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw the comparison: .svg, .png or .pdf."),
        Written(),
    ] = None,
    plot_queues: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw what each queue holds in each allocation."), Written()
    ] = None,
) -> None:
    """Compare exact allocations of FILE, schedules and your own allocations in one table.

    If a row cannot be computed, the output says why. Exit status 3: no row could be computed; 1: a condition of --fail-if holds.
    """
    conditions = [read_condition(text) for text in fail_if or []]
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv)
    choice = users_shown.choice(form)
    check_picture(plot_queues, "--plot-queues")
    if other is not None or what_if_:
        of_one: dict[str, object] = {
            "--rule": rules,
            "--allocation": allocation,
            "--reference": reference,
            "--by": by != "user",
            "--fail-if": fail_if,
            "--exact": exact,
            "--plot-queues": plot_queues,
        }
        if refused := [option for option, value in of_one.items() if value]:
            raise typer.BadParameter("it is about one instance; leave it out, or compare one instance", param_hint=refused[0])
        if other is None:
            warn_retired("compare --what-if PATH=VALUE", new="what-if FILE --set PATH=VALUE")
        else:
            warn_retired("compare FILE OTHER", new="what-if FILE OTHER")
        return compare_two(
            (file, other),
            both=changes or [],
            changed=what_if_ or [],
            options={
                "notions": shares.of_all(words(notions)),
                "schedules": words(schedules),
                "integral": integral,
                "sharing": sharing,
                "time_limit": time_limit,
            },
            form=form,
            output=output,
            plot=plot,
            everything=users_shown.everything,
            choice=choice,
        )
    instance = read_instance(file, changes, rules)
    choice.require(instance)
    if plot_queues is not None and not instance.queues:
        raise typer.BadParameter(f"{file} has no queues to draw; leave it out", param_hint="--plot-queues")
    if by == "queue" and not instance.queues:
        raise typer.BadParameter(f"{file} has no queues; use user or owner", param_hint="--by")
    wanted, greedy = shares.of_all(words(notions)), words(schedules)
    own = by_name(allocation)
    number = len(wanted) * (1 + integral) + len(greedy) + len(own)
    if not number:
        raise typer.BadParameter("there is nothing to compare; give --notions, --schedules or --allocation", param_hint="--notions")
    for condition in conditions:
        condition.require(compared=bool(greedy or own or reference or integral))
    bar = Bar("allocations", number)
    comparison = work(
        "comparing",
        lambda: fo.compare(
            instance,
            notions=wanted,
            schedules=greedy,
            allocations=own,
            integral=integral,
            sharing=sharing,
            time_limit=time_limit,
            reference=reference,
            exact=exact,
            done=lambda name: bar.advance(),
        ),
        bar,
    )
    draw(comparison, plot)
    if plot_queues is not None:
        write_figure(lambda: comparison.plot(by="queue"), plot_queues)
    hand_over(
        lambda: comparison.to_dict(by),
        lambda: _frame(comparison, by, form),
        lambda width: tables.comparison_blocks(comparison, width, by, choice, everything=users_shown.everything),
        form,
        output,
    )
    if all(row.allocation is None for row in comparison):
        raise typer.Exit(3)
    for row in comparison if conditions else ():
        if row.violations:
            say(
                "warning",
                f"{row.name} exceeds capacity ({row.violations[0]}): its measures are not meaningful. "
                "Was it made for another cluster file?",
            )
    broken = [sentence for condition in conditions for sentence in condition.broken(comparison)]
    for sentence in broken:
        say("failed", sentence)
    if broken:
        raise typer.Exit(1)


def _frame(comparison: fo.Comparison, by: Literal["user", "queue", "owner"], form: Form) -> pd.DataFrame:
    """Return the table of --by; in Markdown and LaTeX, where a page has no room for a column for each of many users, turned on its side."""
    frame = comparison.to_frame(by=by)
    if by != "user" or form not in ("md", "tex") or comparison.instance.n_users <= _COLUMNS:
        return frame
    empty = [column for column in frame if (frame[column].isna() | (frame[column] == "")).all()]
    return frame.drop(columns=empty).astype(object).T.rename_axis("of each allocation")
