"""``fairopt simulate``: a trace of jobs on a cluster over time."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.console import say
from fairopt.commands.crews import CrewOptions
from fairopt.commands.delivering import draw, hand_over
from fairopt.commands.forms import check_page, choose_form
from fairopt.commands.options import ClusterChanges, ClusterRules, Json, Resume, read_instance
from fairopt.commands.outputs import Written
from fairopt.commands.past_use import PastUse
from fairopt.commands.retired import warn_retired
from fairopt.commands.said import INTERRUPTED
from fairopt.commands.traces import Gangs, Lenient, read_trace
from fairopt.commands.working import Bar, work
from fairopt.reporting import tables

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["simulate"]


def simulate(
    trace: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="The jobs: a table (.csv, .csv.gz, .parquet, .xlsx or .ods), or a log in the Standard Workload Format (.swf).",
        ),
    ],
    cluster: Annotated[
        Path, typer.Option("--cluster", metavar="FILE", help="The servers, and the weights of users: an instance file.", show_default=False)
    ],
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            autocompletion=completion.simulated,
            help="How clusters schedule: fifo, backfill (EASY), fairtree:half_life=7d (Slurm), priority:half_life=1d (HTCondor; it counts "
            "cores, or the resource of priority:unit=gpu), maui:interval=1d:depth=7:decay=0.8 (Maui, Moab). Greedy: CRITERION:PLACEMENT, "
            "such as drfh:best-fit. Exact at every event (divisible tasks): a notion, such as drfh; with a memory, drfh:half_life=1h, "
            "drfh:follow=0.5 (KAI) or karma:alpha=0.5. Decentralised: psdsf:period=1 (each server reallocates every second). Repeat the "
            "option to compare schedulers side by side. Default: drfh:best-fit. See: fairopt schedulers.",
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Users that join or leave, and servers that are added or removed: columns time_s, event, name, number, sorted by time.",
        ),
    ] = None,
    until: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Stop at this time. Default: when nothing more can happen.")
    ] = None,
    step: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time between samples. Default: one for each event, at most about a thousand.")
    ] = None,
    regret: Annotated[
        int, typer.Option(metavar="N", help="Number of moments at which the running tasks are compared with the exact allocation.")
    ] = 0,
    gangs: Gangs = False,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            autocompletion=completion.notions,
            help="With several schedulers: notion against whose exact simulation shortfalls are measured. Default: drfh.",
        ),
    ] = None,
    past: PastUse = PastUse(),
    resume: Resume = None,
    crew: CrewOptions = CrewOptions(),
    lenient: Lenient = False,
    changes: ClusterChanges = None,
    rules: ClusterRules = None,
    as_json: Json = False,
    by: Annotated[
        Literal["job", "user", "queue", "time"] | None,
        typer.Option(help="Rows that --csv and -o write: one for each job (the default), user or queue, or for each sample in time."),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: the rows of --by; of several schedulers, a row for each.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to this file instead of stdout: the rows of --by (.csv, .parquet, .xlsx, .md, .tex), all (.json) or text (.txt).",
        ),
        Written(),
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the simulation: .svg, .png or .pdf."), Written()] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With several schedulers: also write a page with the pictures and all tables: .html."),
        Written(),
    ] = None,
) -> None:
    """Follow the jobs of a trace on a cluster over time, under a scheduler.

    Greedy schedulers start whole tasks, and never stop one. Schedulers of real clusters also start gangs, whose tasks begin together.
    Exact schedulers divide tasks and move them at no cost: the optimum that a heuristic is compared with.
    With psdsf:period=SECONDS, each server acts on its own, and the output shows how close the servers come to the optimum.
    More options of psdsf are phases=random, sweep or at-once, seed=N, and sharing=rdm or tdm.
    With several schedulers: a table of waiting, slowdown, use, shortfall against the exact simulation, envy and Jain's index.
    Ctrl-C or SIGTERM stops the simulation and keeps its results; if some schedulers have not run by then, the exit status is 130.
    With --resume, the same command continues from there.
    """
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv)
    schedulers = scheduler or ["drfh:best-fit"]
    _refuse_unused(
        len(schedulers) > 1, {"--regret": regret, "--by": by, "--reference": reference, "--workers": crew.workers != 1, "--report": report}
    )
    check_page(report, "--report")
    instance = read_instance(cluster, changes, rules)
    if by == "queue" and not instance.queues:
        raise typer.BadParameter(f"{cluster} has no queues; use job, user or time", param_hint="--by")
    jobs = read_trace(trace, instance, events=events, gangs=gangs, lenient=lenient)
    bar, ended = Bar("tasks", jobs.n_tasks), threading.Event()
    how: dict[str, Any] = {
        "until": until,
        "step": step,
        "resume": resume,
        "usage": past.usage,
        "billing": past.billed(),
        "stopped": ended.is_set,
    }

    def simulated() -> fo.Simulation | fo.SideBySide:
        if len(schedulers) == 1:
            return fo.simulate(jobs, instance, schedulers[0], regret=regret, done=lambda now, tasks: bar.reach(tasks), **how)
        return fo.compare_over_time(
            jobs,
            instance,
            schedulers,
            reference=reference or "drfh",
            **vars(crew),
            done=lambda name, now, tasks: bar.reach(tasks, what=name),
            **how,
        )

    found = work("simulating", simulated, bar, ended)
    if resume is not None and not found.complete:
        written = any(path is not None for path in (output, plot, report))
        force = " and --force, which replaces what this run writes" if written else ""
        say("stopped", f"the same command continues from there, with what {resume} has{force}")
    draw(found, plot)
    if isinstance(found, fo.Simulation):
        if by is None and form == "parquet":
            warn_retired("simulate -o FILE.parquet", new="simulate --by time -o FILE.parquet")
            by = "time"
        rows = by or "job"
        hand_over(found.to_dict, lambda: _rows(found, rows), lambda width: tables.simulation_blocks(found), form, output)
        return
    if report is not None:
        from fairopt.reporting.side_by_side import write_side_by_side_page

        work(f"writing {report}", lambda: write_side_by_side_page(found, report))
    hand_over(found.to_dict, lambda: found.to_frame().reset_index(), lambda width: tables.side_by_side_blocks(found), form, output)
    if not found.complete:
        raise typer.Exit(INTERRUPTED)


_OF_ONE = {
    "--regret": "leave it out: several schedulers are compared with the exact simulation",
    "--by": "leave it out: of several schedulers, each is a row",
}
"""Options of the simulation of one scheduler, and what to do where there are several."""
_OF_SEVERAL = {
    "--reference": "it measures several schedulers; give --scheduler more than once (one is compared with --regret N)",
    "--workers": "a worker simulates one scheduler; give --scheduler more than once",
    "--report": "the page compares several schedulers; give --scheduler more than once",
}


def _refuse_unused(several: bool, given: Mapping[str, object]) -> None:
    """Refuse what is of no use with the number of schedulers."""
    for option, why in (_OF_ONE if several else _OF_SEVERAL).items():
        if given[option]:
            raise typer.BadParameter(why, param_hint=option)


def _rows(found: fo.Simulation, by: str) -> pd.DataFrame:
    """Return the table of --by."""
    if by == "job":
        return found.jobs
    return found.to_frame() if by == "time" else (found.users_frame if by == "user" else found.queues_frame).reset_index()
