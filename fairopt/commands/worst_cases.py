"""``fairopt worst-case``: search for the instance on which a schedule is worst."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.crews import CrewOptions
from fairopt.commands.delivering import as_text, show
from fairopt.commands.forms import check_instance
from fairopt.commands.options import Json, Resume, read_instance
from fairopt.commands.outputs import Written
from fairopt.commands.working import Bar, work
from fairopt.reporting import tables
from fairopt.wording import figure

__all__ = ["worst_case"]

RANGES = ("demands", "weights", "tasks", "capacities", "speeds")
_VARIED = ("weights", "constraints", "counts", "tasks", "demands-by-server", "speeds")


@dataclass(frozen=True)
class RandomInstances:
    """The instances that are drawn, without --cluster; ``vars`` of it are arguments of `fairopt.worst_case`."""

    panel: ClassVar[str] = "Random instances"

    users: Annotated[int, typer.Option(metavar="N", help="Users of each random instance.")] = 3
    servers: Annotated[int, typer.Option(metavar="N", help="Servers of each random instance.")] = 2
    resources: Annotated[int, typer.Option(metavar="N", help="Resources of each random instance.")] = 2
    capacities: Annotated[tuple[int, int], typer.Option(metavar="LOW HIGH", help="Range of the capacities, which are whole numbers.")] = (
        8,
        16,
    )
    demands: Annotated[tuple[int, int], typer.Option(metavar="LOW HIGH", help="Range of the demands, which are whole numbers.")] = (0, 4)


@dataclass(frozen=True)
class InCluster:
    """A search among the numbers of one instance, instead of random instances."""

    panel: ClassVar[str] = "With --cluster"

    cluster: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep the servers and users of this instance, and vary only what --vary says. Default: random instances."
        ),
    ] = None
    bound: Annotated[
        bool, typer.Option("--bound", help="With --cluster: also compute a bound. No instance within the ranges has a larger regret.")
    ] = False
    gap: Annotated[
        float, typer.Option(metavar="NUMBER", help="With --bound: stop when the bound is at most this much above the regret found.")
    ] = 1e-3
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help='With --cluster: a linear rule on the numbers that vary, such as "tasks\\[a] + tasks\\[b] <= 12"; * stands for all, '
            "added. Can be repeated.",
        ),
    ] = None


def worst_case(
    schedule: Annotated[
        str,
        typer.Argument(
            metavar="A:B",
            autocompletion=completion.schedules,
            help="Greedy schedule CRITERION:PLACEMENT, such as drfh:best-fit or drfh:best-fit:metric=cosine, or NOTION:BASELINE, such as "
            "drfh:pop. See: fairopt placements. With --cluster, also a notion such as uniform, whose exact answer is measured.",
        ),
    ],
    notion: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Notion to measure against. Default: the criterion of the schedule.", autocompletion=completion.notions
        ),
    ] = None,
    random: RandomInstances = RandomInstances(),
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD",
            autocompletion=completion.words(lambda: _VARIED),
            help=f"What else is drawn at random: {', '.join(_VARIED[:-1])} or {_VARIED[-1]}. With --cluster: NAME=LOW:HIGH, the range of "
            f"{', '.join(RANGES[:-1])} or {RANGES[-1]}; 90%:110% is relative to the cluster's numbers. Can be repeated.",
        ),
    ] = None,
    measure: Annotated[
        Literal["worst", "level", "leximin", "largest", "user", "goal", "condition", "total"] | None,
        typer.Option(
            help="Measure of regret to maximise. Default: worst, one number for any notion; with --bound, which knows level, user and "
            "total: level."
        ),
    ] = None,
    known: InCluster = InCluster(),
    resume: Resume = None,
    divisible: Annotated[
        bool, typer.Option("--divisible", help="Measure against the optimum of divisible tasks, not of whole tasks.")
    ] = False,
    keep_regret: Annotated[
        float, typer.Option(metavar="PART", help="Shrink the instance as long as it keeps this part of the largest regret.")
    ] = 0.9,
    tries: Annotated[int, typer.Option(metavar="N", help="Number of instances to try.")] = 1000,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of the search; the same seed gives the same answer with any number of workers.")
    ] = 0,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compute the regret of the instance that is found in fractions, and prove it.")
    ] = False,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="End the search after this time.")] = None,
    crew: CrewOptions = CrewOptions(),
    as_json: Json = False,
    instance: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the instance: .yaml, .json, .xlsx or a folder."),
        Written(tables=True),
    ] = None,
) -> None:
    """Search small instances for the one on which a schedule is worst, then shrink it.

    With --cluster, the servers and users are those of FILE, and only the numbers that --vary names change. --bound also computes a bound:
    no instance within the ranges has a larger regret. With --resume, a search that is stopped, even by kill -9, continues when it is
    started again, to the same answer.

    Ctrl-C ends the search and prints the worst instance so far; a second Ctrl-C stops at once.
    """
    check_instance(instance, "--instance")
    started = time.perf_counter()
    bar = Bar("largest regret 0", None if known.bound else tries)
    ended = threading.Event()
    topology = None if known.cluster is None else read_instance(known.cluster, None, None)
    asked: Any = (vary or ()) if topology is None else _ranges(vary or (), topology)

    def progress(more: int, value: float, most: float = float("nan")) -> None:
        bar.advance(more, what=f"largest regret {figure(max(value, -1.0))}" + (f", at most {figure(most)}" if known.bound else ""))

    worst: fo.WorstCase | fo.WorstCaseInBox = work(
        "searching",
        lambda: fo.worst_case(
            schedule,
            notion,
            **vars(random),
            vary=asked,
            measure=measure,
            integral=False if divisible else None,
            keep_regret=keep_regret,
            tries=tries,
            seed=seed,
            time_limit=time_limit,
            **vars(crew),
            exact=exact,
            cluster=topology,
            bound=known.bound,
            gap=known.gap,
            resume=resume,
            where=known.where or (),
            done=progress,
            stop=ended.is_set,
        ),
        bar,
        ended,
    )
    seconds = time.perf_counter() - started
    if instance is not None:
        fo.save(worst.instance, instance)
    if as_json:
        typer.echo(as_text(worst.to_dict()), nl=False)
    elif isinstance(worst, fo.WorstCaseInBox):
        show(lambda width: tables.worst_in_box_blocks(worst, seconds))
    else:
        show(lambda width: tables.worst_case_blocks(worst, seconds, exact=exact))


def _ranges(vary: Sequence[str], instance: fo.Instance) -> dict[str, tuple[Any, Any]]:
    """Return what varies, and between which numbers, as it is written after --vary."""
    found: dict[str, tuple[Any, Any]] = {}
    for text in vary:
        name, _, ends = text.partition("=")
        low, colon, high = ends.partition(":")
        if not (name and colon):
            raise fo.Unsupported(f'--vary is "{text}"; with --cluster, write NAME=LOW:HIGH, such as "demands=1:2" or "demands=90%:110%"')
        if name in found:
            raise fo.Unsupported(f"--vary names {name} twice; give its range once")
        found[name] = (_end(low, name, text, instance), _end(high, name, text, instance))
    return found


def _end(text: str, name: str, whole: str, instance: fo.Instance) -> Any:
    """Return an end of a range: a number, or a percentage of the numbers of the instance."""
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        raise fo.Unsupported(f'--vary is "{whole}", and "{text}" is no number; write "demands=1:2" or "demands=90%:110%"') from None
    if not text.endswith("%"):
        return number
    own = getattr(instance, name, None) if name in RANGES else None
    return number / 100 if own is None else number / 100 * own
