"""``fairopt plan``: from what runs to what is fair, with the fewest stops. Nothing is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.console import say
from fairopt.commands.delivering import hand_over
from fairopt.commands.forms import choose_form
from fairopt.commands.options import (
    Changes,
    File,
    Json,
    Output,
    Rules,
    Sharing,
    read_instance,
)
from fairopt.commands.shares import Shares
from fairopt.commands.working import work
from fairopt.reporting import tables
from fairopt.specs import read_notion

__all__ = ["plan"]


def plan(
    file: File,
    allocation: Annotated[
        Path,
        typer.Option(
            "--allocation",
            metavar="FILE",
            help="What runs: columns user, server, tasks; optional: gang (stops as a whole), protected (yes: goes on) and name (of pods or "
            "jobs, separated by |).",
        ),
    ],
    notion: Annotated[
        str,
        typer.Option(
            metavar="ID",
            autocompletion=completion.notions,
            help="The target: the best whole tasks of this notion; options as in proportional:alpha=2.",
        ),
    ] = "drfh",
    budget: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Stop at most N tasks, and reach the best that this allows."),
    ] = None,
    commands: Annotated[
        Literal["kubectl", "scancel", "qdel", "condor_rm", "yarn"] | None,
        typer.Option(help="Print the commands that stop what stops, instead of the table. They are never run."),
    ] = None,
    sharing: Sharing = None,
    shares: Shares = Shares(),
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time limit of each solve: of the target, the budget, the fewest stops.")
    ] = None,
    changes: Changes = None,
    rules: Rules = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each action.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show all users and actions, however many there are.")] = False,
    output: Output = None,
) -> None:
    """Plan the way from what runs to the fair allocation of FILE: what stops, what starts, with the fewest stops.

    A task that moves stops and starts. A start waits for the stops that make room for it; in between, no server and no limit is exceeded.
    """
    form = choose_form(output, as_json=as_json, as_csv=as_csv)
    if commands is not None and form != "text":
        raise typer.BadParameter("commands are text; leave --json, --csv or the format of --output out", param_hint="--commands")
    instance = read_instance(file, changes, rules)
    _, chosen = read_notion(shares.of(notion))
    found = work(
        "planning",
        lambda: fo.plan(instance, allocation, chosen, budget=budget, sharing=sharing, time_limit=time_limit),
    )
    if commands is None:
        hand_over(found.to_dict, found.to_frame, lambda width: tables.plan_blocks(found, everything=everything), form, output)
        return
    lines = "".join(f"{line}\n" for line in found.commands(commands))
    if output is None:
        typer.echo(lines, nl=False)
    else:
        from fairopt.files import write_files

        write_files({output: lines})
    for note in found.notes:
        say("note", note)
