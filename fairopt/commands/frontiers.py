"""``fairopt frontier``: the trade-off between efficiency and fairness, and where each notion lies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.crews import CrewOptions
from fairopt.commands.delivering import draw, hand_over
from fairopt.commands.forms import choose_form
from fairopt.commands.options import Changes, File, Json, Output, Rules, Schedules, Sharing, read_instance, words
from fairopt.commands.outputs import Written
from fairopt.commands.working import Bar, work
from fairopt.reporting import tables

__all__ = ["frontier"]


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
            help="Exact allocations to compute. Default: every notion. See: fairopt notions.",
        ),
    ] = None,
    fds: Annotated[
        str, typer.Option(metavar="BETA:LAMBDA,...", help="Also compute fds for these BETA:LAMBDA pairs, as in 2:-1,2:-4.")
    ] = "",
    gfj: Annotated[str, typer.Option(metavar="BETA:LAMBDA,...", help="Also compute gfj for these BETA:LAMBDA pairs.")] = "",
    schedules: Schedules = "",
    sharing: Sharing = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Time limit of each allocation.")] = None,
    crew: CrewOptions = CrewOptions(),
    changes: Changes = None,
    rules: Rules = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each allocation.")] = False,
    output: Output = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the frontier: .svg, .png or .pdf."), Written()] = None,
) -> None:
    """Compute the exact trade-off of FILE between the total of tasks and the smallest share, and where each notion lies.

    If a point cannot be computed, the output says why. Exit status 3: no point could be computed.
    """
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv)
    instance = read_instance(file, changes, rules)
    wanted = None if notions is None else words(notions)
    greedy, numbers = words(schedules), [_number(text, "--alphas") for text in words(alphas)]
    families = {"fds": _members(fds, "--fds"), "gfj": _members(gfj, "--gfj")}
    number = 1 + len(numbers) + len(fo.NOTIONS if wanted is None else wanted) + sum(map(len, families.values())) + len(greedy)
    bar = Bar("allocations", number)
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
            **vars(crew),
            done=lambda name: bar.advance(),
        ),
        bar,
    )
    draw(found, plot)
    hand_over(found.to_dict, found.to_frame, lambda width: tables.frontier_blocks(found), form, output)
    if number > 1 and all(point.allocation is None for point in found):
        raise typer.Exit(3)


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
