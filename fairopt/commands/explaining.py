"""``fairopt explain``: why a user gets what it gets, and what would give it more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.delivering import as_text, deliver, show
from fairopt.commands.forms import choose_form
from fairopt.commands.options import (
    Changes,
    Exact,
    File,
    Given,
    Json,
    JsonOutput,
    Rules,
    Sharing,
    read_instance,
)
from fairopt.commands.past_use import PastUse
from fairopt.commands.shares import Shares
from fairopt.commands.subjects import Subject
from fairopt.commands.working import Bar, work
from fairopt.reporting import tables
from fairopt.wording import joined

__all__ = ["explain"]


def explain(
    file: File,
    user: Annotated[
        str | None,
        typer.Option(metavar="NAME", autocompletion=completion.names_of_users_and_queues, help="User to explain, or a queue."),
    ] = None,
    queue: Annotated[str | None, typer.Option(metavar="NAME", autocompletion=completion.queues, help="Explain a queue instead.")] = None,
    notion: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Notion of fairness. Default: drfh. Options as in proportional:alpha=2. See: fairopt notions.",
            autocompletion=completion.notions,
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            metavar="A:B",
            autocompletion=completion.schedules,
            help="Explain a greedy schedule CRITERION:PLACEMENT instead, such as drfh:best-fit. See: fairopt placements.",
        ),
    ] = None,
    allocation: Given = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Explain the place in the order of a scheduler of jobs instead: fairtree:half_life=7d, priority:half_life=1d or "
            "maui:interval=1d. --allocation is then what runs.",
        ),
    ] = None,
    past: PastUse = PastUse(),
    against: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=completion.users,
            help="User to compare with. Default: the one whose resources would let --user run the most tasks.",
        ),
    ] = None,
    integral: Annotated[bool, typer.Option("--integral", help="Explain the exact allocation of whole tasks.")] = False,
    exact: Exact = False,
    resolves: Annotated[int, typer.Option(metavar="N", help="Number of changes to solve for; the others are estimated from prices.")] = 6,
    sharing: Sharing = None,
    shares: Shares = Shares(),
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time limit of the allocation, and again of all solves that explain it.")
    ] = None,
    changes: Changes = None,
    rules: Rules = None,
    as_json: Json = False,
    output: JsonOutput = None,
) -> None:
    """Explain what a user or a queue of FILE gets, what limits it, and what would give it more.

    With --allocation, --notion names the exact allocation to compare with.
    With --scheduler: why its priority is what it is, who is next, and when that changes.
    """
    form = choose_form(output, as_json=as_json, kinds=("json",))
    if user is None and queue is None:
        raise typer.BadParameter("name what to explain, as in --user vision; --queue names a queue", param_hint="--user")
    if user is not None and queue is not None:
        raise typer.BadParameter("only one of --user and --queue can be explained at a time; leave one out", param_hint="--queue")
    subject = Subject(
        notion=notion,
        schedule=schedule,
        allocation=allocation,
        measured=True,
        integral=integral,
        exact=exact,
        sharing=sharing,
        shares=shares,
        time_limit=time_limit,
    )
    subject.check()
    if scheduler is None and (given_too := past.given()):
        raise typer.BadParameter(
            "it belongs to a scheduler of jobs; give --scheduler fairtree:half_life=7d, or leave it out", param_hint=given_too[0]
        )
    if scheduler is not None:
        others = {
            "--notion": notion,
            "--schedule": schedule,
            "--integral": integral,
            "--exact": exact,
            "--against": against,
            "--sharing": sharing,
            "--guarantees": shares.guarantees,
            "--queue-share": shares.queue_share,
            "--resource-weights": shares.resource_weights,
            "--only": shares.only,
            "--rule": rules,
            "--time-limit": time_limit,
        }
        if given_too := [option for option, value in others.items() if value]:
            raise typer.BadParameter(f"a scheduler of jobs has no notion; leave {joined(given_too)} out", param_hint="--scheduler")
    instance = read_instance(file, changes, rules)
    if scheduler is not None:
        _explain_priority(instance, user or str(queue), scheduler, past, allocation, form, output)
        return
    names = [each.name for each in instance.queues]
    if user is not None and user not in instance.users and user in names:
        user, queue = None, user
    if user is not None:
        instance.index(user)  # an unknown name is refused before anything is solved
    elif queue is not None:
        instance.tree.index(queue)
    if against is not None:
        instance.index(against)
    answer = work(subject.made_by, subject.maker(instance))
    bar = Bar("what would help", resolves)
    explanation = work(
        "finding what would help",
        lambda: fo.explain(
            answer,
            user,
            queue=queue,
            against=against,
            resolves=resolves,
            time_limit=time_limit,
            done=lambda change: bar.advance(),
        ),
        bar,
    )
    if form == "json":
        deliver(as_text(explanation.to_dict()), output)
    else:
        show(lambda width: tables.explanation_blocks(explanation), output)


def _explain_priority(
    instance: fo.Instance,
    name: str,
    scheduler: str,
    past: PastUse,
    allocation: Path | None,
    form: str,
    output: Path | None,
) -> None:
    """Explain the place in the order of a scheduler of jobs."""
    held = None
    if allocation is not None:
        from fairopt.formats.allocations import read

        held = read(allocation, instance).astype(float)
    found = fo.explain_priority(instance, name, scheduler, usage=past.usage, billing=past.billed(), held=held)
    if form == "json":
        deliver(as_text(found.to_dict()), output)
    else:
        show(lambda width: tables.priority_blocks(found), output)
