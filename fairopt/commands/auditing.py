"""``fairopt audit``: which properties hold; if one fails, by how many tasks, with an example."""

from __future__ import annotations

from typing import Annotated

import typer

import fairopt as fo
from fairopt.analysis.properties import CHECKS, OF_TREES, OF_WHOLE_TASKS_ALONE
from fairopt.commands import completion
from fairopt.commands.console import say
from fairopt.commands.crews import CrewOptions
from fairopt.commands.delivering import as_text, deliver, show
from fairopt.commands.forms import choose_form
from fairopt.commands.options import (
    EFFORT,
    Changes,
    Exact,
    File,
    Given,
    Json,
    JsonOutput,
    Rules,
    Sharing,
    read_instance,
    words,
)
from fairopt.commands.shares import Shares
from fairopt.commands.subjects import Subject
from fairopt.commands.working import Bar, work
from fairopt.reporting import tables
from fairopt.wording import plural

__all__ = ["audit"]


def audit(
    file: File,
    notion: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            autocompletion=completion.notions,
            help="Audit the exact allocation of this notion. Default: drfh. Options as in proportional:alpha=2.",
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            metavar="A:B",
            autocompletion=completion.schedules,
            help="Audit a greedy schedule CRITERION:PLACEMENT, such as drfh:best-fit:metric=l2.",
        ),
    ] = None,
    allocation: Given = None,
    integral: Annotated[bool, typer.Option("--integral", help="With --notion: the best allocation of whole tasks.")] = False,
    exact: Exact = False,
    sharing: Sharing = None,
    shares: Shares = Shares(),
    properties: Annotated[
        str | None,
        typer.Option(
            metavar="ID,...", autocompletion=completion.properties, help=f"Check only these: {', '.join(CHECKS)}.", show_default=False
        ),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="ID,...", autocompletion=completion.properties, help="Exit with status 1 if one of these properties is violated."
        ),
    ] = None,
    effort: Annotated[int, typer.Option(metavar="N", help=EFFORT)] = 200,
    seed: Annotated[
        int,
        typer.Option(metavar="N", help="Seed of the random misreports; the same seed gives the same verdicts with any number of workers."),
    ] = 0,
    crew: CrewOptions = CrewOptions(),
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Time limit of the solve, and of each property. Default: none; each search ends after a fixed number of steps, about a "
            "minute.",
        ),
    ] = None,
    changes: Changes = None,
    rules: Rules = None,
    as_json: Json = False,
    everything: Annotated[bool, typer.Option("--all", help="Show all explanations, also of the properties that hold.")] = False,
    output: JsonOutput = None,
) -> None:
    """Audit an allocation of FILE: which properties hold; if one fails, by how many tasks, with an example.

    With --allocation, --notion names the measure by which your allocation is judged.
    Strategy-proofness is tested by a search for a misreport that pays off. If it finds none, that is no proof.
    Exit status 1: a property of --fail-on is violated.
    """
    form = choose_form(output, as_json=as_json, kinds=("json",))
    subject = Subject(
        notion=notion,
        schedule=schedule,
        allocation=allocation,
        measured=False,
        integral=integral,
        exact=exact,
        sharing=sharing,
        shares=shares,
        time_limit=time_limit,
    )
    subject.check()
    watched = words(fail_on or "")
    if fail_on is not None and not watched:
        raise typer.BadParameter("name at least one property, such as guarantees,sharing-incentive", param_hint="--fail-on")
    instance = read_instance(file, changes, rules)
    wanted = None if properties is None else words(properties)
    if watched:
        silent = (*(() if instance.is_tree else OF_TREES), *(() if integral or schedule is not None else OF_WHOLE_TASKS_ALONE))
        every = [name for name in CHECKS if name not in silent]
        wanted = [*(every if wanted is None else wanted), *watched]
    made = work(subject.made_by, subject.maker(instance))
    bar = Bar("auditing", len(CHECKS) if wanted is None else len(wanted))
    found = work(
        "auditing",
        lambda: fo.audit(
            made,
            wanted,
            effort=effort,
            seed=seed,
            **vars(crew),
            time_limit=time_limit,
            done=lambda name: bar.advance(what=name),
        ),
        bar,
    )
    if form == "json":
        deliver(as_text(found.to_dict()), output)
    else:
        show(lambda width: tables.audit_blocks(found, everything=everything), output)
    if watched and found.violations:
        say(
            "warning",
            f"the allocation exceeds capacity ({found.violations[0]}): the verdicts are not meaningful. "
            "Was it made for another cluster file?",
        )
    for name in watched:
        if found[name].holds is None:
            say("warning", f"{name} could not be judged: {found[name].statement}")
    broken = [name for name in dict.fromkeys(watched) if found[name].holds is False]
    for name in broken:
        say("failed", f"{name} is violated, by {plural(found[name].amount, 'task', digits=4)}")
    if broken:
        raise typer.Exit(1)
