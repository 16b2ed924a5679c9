"""``fairopt audit``: which properties an allocation has, by how many tasks it misses the others, and what shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

import fairopt as fo
from fairopt.analysis.properties import CHECKS
from fairopt.analysis.rerun import given
from fairopt.commands.console import as_text, choose_form, deliver, show, work
from fairopt.commands.options import File, Json, JsonOutput, Sharing, words
from fairopt.commands.tables import add_numbers, label, simple_table
from fairopt.specs import read_notion, read_schedule
from fairopt.wording import plural

__all__ = ["audit"]

_MARKS = {True: ("holds", "green"), False: ("violated", "bold red"), None: ("-", "dim")}
_LINES = 3  # limits that are listed


def audit(
    file: File,
    notion: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Audit the exact allocation of a notion (default: drfh); options as in proportional:alpha=2."),
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(metavar="ID:ID", help="Audit a schedule, criterion:placement; options as in drfh:best-fit:metric=l2.")
    ] = None,
    allocation: Annotated[
        Path | None, typer.Option(metavar="CSV", help="Audit one of your own: columns user, server, tasks, or user and one a server.")
    ] = None,
    integral: Annotated[bool, typer.Option("--integral", help="With --notion: the best allocation of whole tasks.")] = False,
    sharing: Sharing = None,
    properties: Annotated[
        str | None, typer.Option(metavar="ID,...", help=f"Only these; there are {', '.join(CHECKS)}.", show_default=False)
    ] = None,
    effort: Annotated[int, typer.Option(metavar="N", help="Lies that are tried, and users made to leave, at most.")] = 200,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of the lies; the verdict is the same for a seed, with any number of workers.")
    ] = 0,
    jobs: Annotated[int, typer.Option(metavar="N", help="Worker processes; -1 for one on each core.")] = 1,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Of the solve, and of each property; default: a minute for each search.")
    ] = None,
    as_json: Json = False,
    everything: Annotated[bool, typer.Option("--all", help="Also say why the properties hold that hold.")] = False,
    output: JsonOutput = None,
) -> None:
    """Audit an allocation of FILE: sharing incentive, envy, Pareto optimality and seven more, each violation in tasks with what proves it.

    A lie that pays is searched for: none found is no proof that there is none.
    """
    form = choose_form(output, as_json=as_json, kinds=("json",))
    sources = [word for word, value in (("--notion", notion), ("--schedule", schedule), ("--allocation", allocation)) if value is not None]
    if len(sources) > 1:
        raise typer.BadParameter("one allocation is audited at a time; choose one of them", param_hint=" and ".join(sources))
    if integral and sources not in ([], ["--notion"]):
        raise typer.BadParameter("only exact allocations can be asked for in whole tasks", param_hint="--integral")
    wanted = None if properties is None else words(properties)
    instance = work(f"reading {file}", lambda: fo.load(file))
    make, what = _maker(instance, notion or "drfh", schedule, allocation, integral, sharing, time_limit)
    made = work(what, make)
    progress = Progress(console=Console(stderr=True), transient=True)
    bar = progress.add_task("auditing", total=len(CHECKS) if wanted is None else len(wanted))
    found = work(
        "auditing",
        lambda: fo.audit(
            made,
            wanted,
            effort=effort,
            seed=seed,
            jobs=jobs,
            time_limit=time_limit,
            done=lambda name: progress.update(bar, advance=1, description=name),
        ),
        progress,
    )
    if form == "json":
        deliver(as_text(found.to_dict()), output)
    else:
        show(lambda console: _print(console, found, everything), output)


def _maker(
    instance: fo.Instance,
    notion: str,
    schedule: str | None,
    allocation: Path | None,
    integral: bool,
    sharing: str | None,
    time_limit: float | None,
) -> tuple[Callable[[], fo.Allocation], str]:
    """Return what makes the allocation, after what can be said without making it, and what that is."""
    how: str = sharing or ("rdm" if instance.rates_per_server is None else "tdm")
    if allocation is not None:
        from fairopt.formats.allocations import read

        if how not in ("rdm", "tdm"):
            raise typer.BadParameter(f'there is no sharing "{how}"; use rdm or tdm', param_hint="--sharing")
        tasks = read(allocation, instance)
        return lambda: given(instance, tasks, how), f"reading {allocation}"
    if schedule is not None:
        _, plan = read_schedule(schedule)
        assert not isinstance(plan, fo.Allocation)
        return lambda: fo.schedule(instance, sharing=sharing, **plan), f"filling by {schedule}"  # type: ignore[arg-type]
    _, chosen = read_notion(notion)
    return (
        lambda: fo.solve(instance, chosen, sharing=sharing, integral=integral, time_limit=time_limit),  # type: ignore[arg-type]
        f"solving {notion}",
    )


def _print(console: Console, found: fo.Audit, everything: bool) -> None:
    """Print the verdicts, then what shows the violations and why some could not be judged."""
    made = found.allocation
    instance = made.instance
    size = f"{plural(instance.n_users, 'user')}, {plural(instance.counts.sum(), 'server')}, sharing {made.sharing}"
    how = "given" if made.solver == made.notion else f"{made.notion}, {made.certificate.reservation or 'exact'} by {made.solver}"
    console.print(Text.assemble(("Audit", "bold"), f" of {how}: {size}"))
    console.print()
    table = simple_table("property", "")
    add_numbers(table, "tasks")
    table.add_column(Text("promised"), overflow="fold")
    for name, verdict in found.items():
        size = "" if np.isnan(verdict.violation) else f"{verdict.violation:.4g}"
        table.add_row(Text(name), Text(*_MARKS[verdict.holds]), size, label(verdict.promised or ""))
    console.print(table)
    for limit in found.violations[:_LINES]:
        console.print(Text.assemble(("\nnot feasible: ", "bold red"), label(str(limit))))
    if len(found.violations) > _LINES:
        console.print(Text(f"and {len(found.violations) - _LINES:,} more limits that it exceeds"))
    for name, verdict in found.items():
        if verdict.holds and not everything and verdict.searched is None:
            continue
        lines = [verdict.statement] if verdict.witness is None else [verdict.statement, verdict.witness.text]
        console.print()
        console.print(Text.assemble((f"{name}: ", "bold"), label(" ".join(lines))))
    if any(verdict.promised for verdict in found.values()):
        console.print()
        console.print(
            Text("tasks: the size of the violation. promised: where it is proved of the notion, under the conditions of that source.")
        )
