"""``fairopt frontier``: the trade-off between efficiency and fairness, and where each notion lies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.progress import Progress
from rich.text import Text

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.comparison_table import low_share
from fairopt.commands.console import Console, choose_form, draw, hand_over, work
from fairopt.commands.options import Changes, File, Json, Output, Schedules, Sharing, read_instance, words
from fairopt.commands.outputs import Written
from fairopt.commands.tables import add_numbers, label, sharing_note, simple_table
from fairopt.wording import figure, percent, plural

__all__ = ["frontier"]

_VERTICES = 8  # listed one by one


def frontier(
    file: File,
    alphas: Annotated[
        str, typer.Option(metavar="A,...", help="Alpha-fair allocations to compute, from 0 (largest total) to inf (max-min).")
    ] = "0,0.5,1,2,5,inf",
    of: Annotated[Literal["tasks", "shares"], typer.Option(help="What the allocations of --alphas divide fairly.")] = "tasks",
    notions: Annotated[
        str | None,
        typer.Option(
            metavar="ID,...",
            autocompletion=completion.listed_notions,
            help="Exact allocations to compute; default: every notion. See: fairopt notions.",
        ),
    ] = None,
    fds: Annotated[
        str, typer.Option(metavar="BETA:LAMBDA,...", help="Also compute fds for these BETA:LAMBDA pairs, as in 2:-1,2:-4.")
    ] = "",
    gfj: Annotated[str, typer.Option(metavar="BETA:LAMBDA,...", help="Also compute gfj for these BETA:LAMBDA pairs.")] = "",
    schedules: Schedules = "",
    sharing: Sharing = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Time limit of each allocation.")] = None,
    changes: Changes = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each allocation.")] = False,
    output: Output = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the frontier: .svg, .png or .pdf."), Written()] = None,
) -> None:
    """Compute the exact trade-off of FILE between the total of tasks and the smallest share, and where each notion lies.

    If a point cannot be computed, the output says why. Exit status 3: no point could be computed.
    """
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv)
    instance = read_instance(file, changes)
    wanted = None if notions is None else words(notions)
    greedy, numbers = words(schedules), [_number(text, "--alphas") for text in words(alphas)]
    families = {"fds": _members(fds, "--fds"), "gfj": _members(gfj, "--gfj")}
    number = 1 + len(numbers) + len(fo.NOTIONS if wanted is None else wanted) + sum(map(len, families.values())) + len(greedy)
    progress = Progress(console=Console(stderr=True), transient=True)
    bar = progress.add_task("allocations", total=number)
    found = work(
        "computing the frontier",
        lambda: fo.frontier(
            instance,
            alphas=numbers,
            notions=wanted,
            families=families,
            schedules=greedy,
            of=of,
            sharing=sharing,
            time_limit=time_limit,
            done=lambda name: progress.update(bar, advance=1),
        ),
        progress,
    )
    draw(found, plot)
    hand_over(found.to_dict, found.to_frame, lambda console: print_frontier(console, found), form, output)
    if number > 1 and all(point.allocation is None for point in found):
        raise typer.Exit(3)


def print_frontier(console: Console, found: fo.Frontier) -> None:
    """Print the vertices, the points with their prices, and why points are missing."""
    instance = found.instance
    size = f"{plural(instance.n_users, 'user')}, {plural(instance.counts.sum(), 'server')}{sharing_note(found.sharing)}"
    console.print(Text.assemble(("Frontier", "bold"), f" of {size}"))
    console.print()
    table = simple_table("exact frontier", first="words")
    add_numbers(table, "tasks", low_share(instance))
    listed = found.vertices if len(found.vertices) <= _VERTICES else found.vertices[[0, -1]]
    for j, (total, share) in enumerate(listed):
        where = "largest share" if j == 0 else "largest total" if j == len(listed) - 1 else ""
        table.add_row("both" if len(listed) == 1 else where, figure(total, 4), figure(share, 4))
        if j == 0 and len(listed) < len(found.vertices):
            table.add_row(f"{len(found.vertices) - 2} vertices between", "", "")
    console.print(table)
    done = [point for point in found if point.allocation is not None]
    if done:
        console.print()
        table = simple_table("points", "kind")
        add_numbers(table, "tasks", low_share(instance), "price of fairness", "price of efficiency", "room")
        for point in done:
            prices = (point.price_of_fairness, point.price_of_efficiency, point.below)
            table.add_row(
                label(point.name),
                point.kind,
                figure(point.total, 4),
                figure(point.smallest_share, 4),
                *(percent(price, 1) for price in prices),
            )
        console.print(table)
        console.print()
        console.print(
            Text(
                "low share: smallest weighted dominant share.\n"
                "price of fairness: tasks lost, in % of the most possible.\n"
                "price of efficiency: low share lost, in % of the best possible.\n"
                "room: how much the low share could rise without losing tasks, in % of the best possible.\n"
                f"kind: alpha is alpha-fair in {found.of} per unit of weight; greedy is a schedule, not an optimum; all others are exact."
            )
        )
    for point in found:
        if point.message:
            console.print(Text.assemble((f"{label(point.name).plain}: ", "bold"), label(point.message).plain))


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f'"{text}" is not a number; write digits, such as 0.5', param_hint=option) from None


def _members(text: str, option: str) -> list[tuple[float, float]]:
    pairs = []
    for word in words(text):
        beta, sign, lam = word.partition(":")
        if not sign:
            raise typer.BadParameter(f'"{word}" is not a pair; write BETA:LAMBDA, such as 2:-1', param_hint=option)
        pairs.append((_number(beta, option), _number(lam, option)))
    return pairs
