"""``fairopt explain``: why a user gets what it gets, and what would give it more."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any

import typer
from rich.progress import Progress
from rich.text import Text

import fairopt as fo
from fairopt.allocation import GIVEN
from fairopt.analysis.explanation import Blocker, Gain
from fairopt.analysis.own_schedulers import made
from fairopt.analysis.rerun import given
from fairopt.commands import completion
from fairopt.commands.console import Console, as_text, choose_form, deliver, show, work
from fairopt.commands.options import (
    Changes,
    Exact,
    File,
    Given,
    Guarantees,
    Json,
    JsonOutput,
    QueueShare,
    Sharing,
    read_instance,
    with_rules,
)
from fairopt.commands.tables import add_names, add_numbers, add_words, label, print_paragraph, simple_table
from fairopt.models import default_sharing
from fairopt.specs import read_notion, read_schedule
from fairopt.wording import figure, percent

__all__ = ["explain"]

_ROWS = 12  # of a table


def explain(
    file: File,
    user: Annotated[
        str | None,
        typer.Option(metavar="NAME", autocompletion=completion.names_of_users_and_queues, help="The user to explain, or a queue."),
    ] = None,
    queue: Annotated[str | None, typer.Option(metavar="NAME", autocompletion=completion.queues, help="Explain a queue instead.")] = None,
    notion: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Notion of fairness, drfh by default; options as in proportional:alpha=2. See: fairopt notions.",
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
    guarantees: Guarantees = None,
    queue_share: QueueShare = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time limit of the allocation, and again of all solves that explain it.")
    ] = None,
    changes: Changes = None,
    as_json: Json = False,
    output: JsonOutput = None,
) -> None:
    """Explain what a user or a queue of FILE gets, what limits it, and what would give it more.

    With --allocation, --notion names the exact allocation to compare with.
    """
    form = choose_form(output, as_json=as_json, kinds=("json",))
    if (user is None) == (queue is None):
        raise typer.BadParameter("give --user NAME, or --queue NAME, and not both", param_hint="--user")
    if schedule is not None and (notion is not None or allocation is not None):
        raise typer.BadParameter(
            "only one allocation can be explained at a time; leave --notion and --allocation out", param_hint="--schedule"
        )
    if integral and (schedule is not None or allocation is not None):
        raise typer.BadParameter("--integral works with --notion only", param_hint="--integral")
    instance = read_instance(file, changes)
    names = [each.name for each in instance.queues]
    if user is not None and user not in instance.users and user in names:
        user, queue = None, user
    if exact and schedule is not None and not isinstance(read_schedule(schedule)[1], Mapping):
        raise typer.BadParameter("a scheduler of your own has no answer in fractions; leave --exact out", param_hint="--exact")
    if user is not None:
        instance.index(user)  # an unknown name is refused before anything is solved
    elif queue is not None:
        instance.tree.index(queue)
    if against is not None:
        instance.index(against)

    def make() -> fo.Allocation:
        if schedule is not None:
            plan = read_schedule(schedule)[1]
            return made(instance, {**plan, "exact": True} if exact else plan, sharing, notion or GIVEN)  # type: ignore[dict-item]
        chosen = read_notion(with_rules([notion or "drfh"], guarantees, queue_share)[0])[1]
        if allocation is not None:
            from fairopt.formats.allocations import read

            return given(instance, read(allocation, instance), sharing or default_sharing(instance), chosen.name, exact=exact)
        return fo.solve(instance, chosen, integral=integral, sharing=sharing, time_limit=time_limit, exact=exact)

    answer = work("finding the allocation", make)
    progress = Progress(console=Console(stderr=True), transient=True)
    bar = progress.add_task("what would help", total=resolves)
    explanation = work(
        "finding what would help",
        lambda: fo.explain(
            answer,
            user,
            queue=queue,
            against=against,
            resolves=resolves,
            time_limit=time_limit,
            done=lambda change: progress.update(bar, advance=1),
        ),
        progress,
    )
    if form == "json":
        deliver(as_text(explanation.to_dict()), output)
    else:
        show(lambda console: _print(console, explanation), output)


def _print(console: Console, explanation: fo.Explanation) -> None:
    """Print the sentences, the full resources, and the changes."""
    for sentence in explanation.sentences:
        print_paragraph(console, label(sentence))
    if explanation.blockers:
        console.print()
        _print_blockers(console, explanation.blockers)
    gains = tuple(gain for gain in explanation.gains if gain.by_solving is not None or gain.by_price or gain.note)
    if gains:
        console.print()
        _print_gains(console, gains)


def _print_blockers(console: Console, blockers: tuple[Blocker, ...]) -> None:
    table = simple_table("what leaves no room")
    add_names(table, "on")
    priced = any(isinstance(each.price, Fraction) for each in blockers)
    add_numbers(table, "in use", "its own", *(["price"] if priced else []))
    add_words(table, "who else holds most", "stops it")
    for each in blockers[:_ROWS]:
        capacity = each.capacity if each.capacity > 0 else 1.0
        holders = ", ".join(f"{name} {percent(held / capacity)}" for name, held in each.holders[:2])
        stops = "yes" if each.bottleneck else "no"
        table.add_row(
            label(each.resource),
            label(each.server),
            percent(each.used / capacity),
            percent(each.own / capacity),
            *([figure(each.price)] if priced else []),
            label(holders),
            Text(stops),
        )
    console.print(table)
    if len(blockers) > _ROWS:
        console.print(Text(f"and {len(blockers) - _ROWS:,} more; --json has all"))
    if priced:
        console.print(Text("price (dual): upper bound on the gain in the user's level, or in the objective, per extra unit of capacity."))
    if not all(each.bottleneck for each in blockers):
        console.print(Text('stops it: "no" if its holders have larger shares and would give way, or if its price is 0.'))


def _print_gains(console: Console, gains: tuple[Gain, ...]) -> None:
    table = simple_table("what would change, in tasks", first="words")
    priced = any(gain.by_price is not None for gain in gains)
    add_numbers(table, *(["by price"] if priced else []), "by solving")
    for gain in gains[:_ROWS]:
        solved = "" if gain.by_solving is None else _signed(gain.by_solving)
        price = "" if gain.by_price is None else _signed(gain.by_price)
        table.add_row(label(gain.change), *([price] if priced else []), solved)
    console.print(table)
    if len(gains) > _ROWS:
        console.print(Text(f"and {len(gains) - _ROWS:,} more; --json has all"))
    if priced:
        console.print(
            Text(
                "by price: estimated from the dual prices; an upper bound on its level, exact for small changes if prices are unique.\n"
                "by solving: the allocation of the changed cluster. Empty: not solved; --resolves N solves more."
            )
        )


def _signed(value: Any) -> str:
    """Write a change: +0.103, 0, -2."""
    return "0" if value == 0 else f"{'+' if value > 0 else '-'}{figure(abs(value))}"
