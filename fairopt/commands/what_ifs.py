"""``fairopt what-if``: two instances side by side: a file and a changed copy, or two files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import fairopt as fo
from fairopt.commands.console import say
from fairopt.commands.delivering import draw, hand_over
from fairopt.commands.forms import Form, choose_form
from fairopt.commands.options import (
    File,
    Json,
    Notions,
    Output,
    Rules,
    Schedules,
    Sharing,
    ShownUsers,
    change,
    read_instance,
    words,
)
from fairopt.commands.outputs import Written
from fairopt.commands.shares import Shares
from fairopt.commands.working import Bar, work
from fairopt.reporting import tables

__all__ = ["compare_two", "what_if"]


def what_if(
    file: File,
    other: Annotated[Path | None, typer.Argument(metavar="OTHER", help="Compare FILE with this file instead of a changed copy.")] = None,
    changed: Annotated[
        list[str] | None,
        change(
            "What changes, by names, as in users.vision.weight=3, servers.new.count+=2 or queues.lab.limit.gpu=8. With "
            "OTHER: a change of OTHER. Can be repeated; the files stay as they are."
        ),
    ] = None,
    changes: Annotated[list[str] | None, change("A change of both sides, before and after. Can be repeated.", "--given")] = None,
    rules: Rules = None,
    notions: Notions = "drfh",
    schedules: Schedules = "",
    integral: Annotated[bool, typer.Option("--integral", help="Also compute the best allocations of whole tasks.")] = False,
    sharing: Sharing = None,
    shares: Shares = Shares(),
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Time limit of each exact allocation.")] = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each allocation and user.")] = False,
    users_shown: ShownUsers = ShownUsers(),
    output: Output = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw who gains and who loses: .svg, .png or .pdf."), Written()
    ] = None,
) -> None:
    """Compare FILE with a changed copy: what each user gains or loses, and through which change.

    Several changes are judged together and one by one. With OTHER, two files are compared, and their differences are the changes.
    Exit status 3: no allocation could be computed on both sides.
    """
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv)
    choice = users_shown.choice(form)
    if other is None and not (changed or rules):
        raise typer.BadParameter("say what changes, such as --set users.vision.weight=3, or give a second file", param_hint="--set")
    compare_two(
        (file, other),
        both=changes or [],
        changed=changed or [],
        rules=rules,
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


def compare_two(
    files: tuple[Path, Path | None],
    *,
    both: list[str],
    changed: list[str],
    rules: list[str] | None = None,
    options: dict[str, Any],
    form: Form,
    output: Path | None,
    plot: Path | None,
    everything: bool,
    choice: tables.Choice,
) -> None:
    """Compare two files, or a file and a changed copy; ``both`` are changes of the two, ``changed`` and ``rules`` of the second."""
    first, second = files[0], files[1] or files[0]
    before, after = read_instance(first, both), read_instance(second, [*both, *changed], rules)
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
    asked = {"given": both, "changes": changed, "rules": rules or []}
    hand_over(
        lambda: (data := found.to_dict()) | {"question": data["question"] | asked},
        found.to_frame,
        lambda width: tables.what_if_blocks(found, everything=everything, choice=choice),
        form,
        output,
    )
    if form not in ("json", "text"):  # a table has no place for it
        for row in found.rows:
            if not found.changes(row):
                say("warning", f"{row}: {found.summary(row)}")
    if not any(found.changes(row) for row in found.rows):
        raise typer.Exit(3)
