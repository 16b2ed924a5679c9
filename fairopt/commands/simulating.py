"""``fairopt simulate``: a trace of jobs on a cluster over time."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

import fairopt as fo
from fairopt.commands.console import choose_form, draw, hand_over, say, work
from fairopt.commands.options import Json
from fairopt.commands.tables import add_numbers, label, simple_table
from fairopt.formats import spreadsheets
from fairopt.wording import figure, percent, plural

__all__ = ["print_simulation", "simulate"]

_USERS = 12  # listed one by one


def simulate(
    trace: Annotated[Path, typer.Argument(metavar="JOBS", help="A table of jobs: .csv, .csv.gz or .parquet; or a log: .swf.")],
    cluster: Annotated[
        Path, typer.Option("--cluster", metavar="FILE", help="The servers, with weights of users: an instance file.", show_default=False)
    ],
    scheduler: Annotated[
        str,
        typer.Option(
            metavar="ID[:ID]",
            help="Greedy, criterion:placement, as in drfh:best-fit; or exact and fluid at every event: a notion, as in drfh; "
            "or servers that act by themselves every so many seconds: psdsf:period=1.",
        ),
    ] = "drfh:best-fit",
    events: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV", help="Users who join and leave, servers that come and go, in order of time: time_s, event, name, number."
        ),
    ] = None,
    until: Annotated[float | None, typer.Option(metavar="SECONDS", help="End there; default: when nothing happens any more.")] = None,
    step: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Between samples; default: events, at most about a thousand.")
    ] = None,
    regret: Annotated[
        int, typer.Option(metavar="TIMES", help="At so many times, compare what runs with the exact allocation of that moment.")
    ] = 0,
    lenient: Annotated[bool, typer.Option("--lenient", help="Leave bad rows out and count them.")] = False,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each job.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write there instead of stdout: the jobs if .csv, the samples if .parquet, .json, or text (.txt).",
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw it: .svg, .png or .pdf.")] = None,
) -> None:
    """Follow the jobs of a trace on a cluster over time, under a scheduler.

    Greedy schedulers start whole tasks and take none back. The exact ones divide tasks and move them at no cost: the optimum that a
    heuristic is compared with. Servers that act by themselves (psdsf:period=SECONDS, and :phases=random, sweep or at-once, :seed=N,
    :sharing=rdm or tdm) approach it; how near they are is told beside. Ctrl-C, or SIGTERM, ends it and keeps what is known by then.
    """
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv, kinds=("json", "csv", "parquet"))
    instance = work(f"reading {cluster}", lambda: fo.load(cluster))
    swf = trace.name.lower().removesuffix(".gz").endswith(".swf")
    if swf and events is not None:
        raise typer.BadParameter("a log in the Standard Workload Format has no table of events; leave it out", param_hint="--events")
    jobs = work(
        f"reading {trace}",
        lambda: (
            fo.trace_swf(trace, memory="memory" in instance.resources, lenient=lenient)
            if swf
            else fo.load_trace(trace, cluster=cluster, events=events, lenient=lenient)
        ),
    )
    if jobs.left_out:
        say("warning", f"{plural(len(jobs.left_out), 'row')} left out; the first: {jobs.left_out[0]}")
    progress = Progress(console=Console(stderr=True), transient=True)
    bar = progress.add_task("tasks", total=jobs.n_tasks)
    ended = threading.Event()
    found = work(
        "simulating",
        lambda: fo.simulate(
            jobs,
            instance,
            scheduler,
            until=until,
            step=step,
            regret=regret,
            done=lambda now, tasks: progress.update(bar, completed=tasks),
            stopped=ended.is_set,
        ),
        progress,
        ended,
    )
    draw(found, plot)
    if form == "parquet" and output is not None:
        found.save(output)
    else:
        hand_over(found.to_dict, lambda: spreadsheets.to_csv(found.jobs), lambda console: print_simulation(console, found), form, output)


def print_simulation(console: Console, found: fo.Simulation) -> None:
    """Print what came of it, user by user."""
    data = found.to_dict()
    size = f"{plural(data['jobs'], 'job')} of {plural(len(found.users), 'user')}, {plural(found.cluster.counts.sum(), 'server')}"
    console.print(Text(f"{size}: {found.scheduler}, {found.kind}\n"))
    facts: list[tuple[str, str]] = [
        ("jobs that ended", f"{data['jobs_finished']:,} of {data['jobs']:,}"),
        ("tasks that ended", f"{data['tasks_ended']:,.6g} of {data['tasks']:,}"),
        ("completion time", f"mean {_seconds(data['completion_mean'])}, median {_seconds(data['completion_median'])}"),
        ("last job ended at", _seconds(data["makespan"])),
        ("mean utilization", ", ".join(f"{name} {percent(part)}" for name, part in data["utilization"].items() if part is not None) or "-"),
    ]
    if not found.complete:
        facts.append(("stopped at", _seconds(found.until)))
    if found.fits_nowhere:
        facts.append(("fit on no server", f"{plural(len(found.fits_nowhere), 'job')}, as {found.fits_nowhere[0]}"))
    for word, text in facts:
        console.print(Text(f"{word:<18} {text}"))
    console.print()
    frame = found.users_frame
    frame = frame[frame["jobs"] > 0]
    shown = frame.sort_values("tasks", ascending=False, kind="stable")[:_USERS]
    table = simple_table("user")
    add_numbers(table, "weight", "jobs", "ended", "tasks", "done", "completion")
    for name, row in shown.iterrows():
        table.add_row(
            label(str(name)),
            f"{row['weight']:g}",
            f"{row['jobs']:,.0f}",
            f"{row['finished']:,.0f}",
            f"{row['tasks']:,.0f}",
            percent(row["completion_ratio"]),
            _seconds(row["mean_completion_s"]),
        )
    console.print(table)
    if len(frame) > len(shown):
        console.print(Text(f"and {plural(len(frame) - len(shown), 'user')} with fewer tasks"))
    if found.regret is not None and len(found.regret.columns) > 1:
        _print_regret(console, found.regret, found.settling is None)
    if found.settling is not None:
        _print_settling(console, found.settling, found.details["period"])
    notes = "ended: of the jobs. done: part of the tasks that ended. completion: mean time from submission to the end of a job."
    console.print(Text(f"\n{notes}", style="dim"))


def _print_regret(console: Console, regret: Any, bound: bool) -> None:
    words = [word for word in regret.columns if word != "time_s"]
    table = simple_table("regret")
    add_numbers(table, *words)
    for what, values in (("mean", regret[words].mean()), ("largest", regret[words].max())):
        table.add_row(what, *(percent(values[word]) if np.isfinite(values[word]) else "" for word in words))
    console.print()
    console.print(table)
    console.print(
        Text(f"of {plural(len(regret), 'moment')}, against the exact allocation of divisible tasks{': a bound' if bound else ''}")
    )


def _print_settling(console: Console, settling: Any, period: float) -> None:
    """Print how many periods after a change of the exact allocation the servers were near to it."""
    table = simple_table("periods until")
    add_numbers(table, "median", "longest", "not before the next change")
    for column in settling.columns[3:]:
        word, _, tolerance = column.rpartition("_")
        values = settling[column].dropna()
        numbers = [figure(float(value)) for value in (values.median(), values.max())] if len(values) else ["-", "-"]
        table.add_row(f"{word} within {float(tolerance):g}", *numbers, f"{len(settling) - len(values):,} of {len(settling):,}")
    console.print()
    console.print(table)
    console.print(Text(f"of the allocation that is exact after a change; a period is {period:g} s. The servers are not exact."))


def _seconds(value: float | None) -> str:
    return "-" if value is None or not np.isfinite(value) else f"{figure(value)} s"
