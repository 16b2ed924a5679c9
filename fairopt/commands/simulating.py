"""``fairopt simulate``: a trace of jobs on a cluster over time."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.console import INTERRUPTED, Bar, check_page, choose_form, draw, hand_over, say, work
from fairopt.commands.options import Changes, Json, read_instance
from fairopt.commands.outputs import Written
from fairopt.histories.reading import kind_of
from fairopt.reporting.tables.side_by_side import side_by_side_blocks
from fairopt.reporting.tables.simulation import simulation_blocks
from fairopt.simulation.baselines.options import BASELINES
from fairopt.wording import plural

if TYPE_CHECKING:
    pass

__all__ = ["simulate"]


def simulate(
    trace: Annotated[Path, typer.Argument(metavar="JOBS", help="A table of jobs (.csv, .csv.gz or .parquet) or a log (.swf).")],
    cluster: Annotated[
        Path, typer.Option("--cluster", metavar="FILE", help="The servers, and the weights of users: an instance file.", show_default=False)
    ],
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID[:ID]",
            autocompletion=completion.words(lambda: [*fo.NOTIONS, *BASELINES, *completion.schedules(None, "")]),
            help="Greedy: criterion:placement, such as drfh:best-fit. As clusters schedule: fifo, backfill (EASY), "
            "fairtree:half_life=7d (Slurm), priority:half_life=1d (HTCondor; it counts cores, or the resource of priority:unit=gpu). "
            "Exact at every event (divisible tasks): a notion, such as drfh; with a memory, drfh:half_life=1h or karma:alpha=0.5. Servers "
            "that act on their own, here every second: psdsf:period=1. "
            "Give the option several times to compare schedulers side by side. Default: drfh:best-fit.",
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Users that join or leave, and servers that are added or removed: columns time_s, event, name, number, sorted by time.",
        ),
    ] = None,
    until: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Stop at this time; default: when nothing more can happen.")
    ] = None,
    step: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time between samples; default: one per event, about a thousand at most.")
    ] = None,
    regret: Annotated[
        int, typer.Option(metavar="TIMES", help="Compare the running tasks with the exact allocation at this many moments.")
    ] = 0,
    gangs: Annotated[
        bool,
        typer.Option(
            "--gangs",
            help="For a log in the Standard Workload Format: all processors of a job start at one instant. (A table has a column gang.)",
        ),
    ] = False,
    exact: Annotated[
        str,
        typer.Option(metavar="NOTION", help="With several schedulers: measure shortfalls against the exact simulation of this notion."),
    ] = "drfh",
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            "--store",
            metavar="FOLDER",
            help="Keep the state in this folder from time to time; a run that is stopped goes on from there.",
        ),
        Written(own=True),
    ] = None,
    lenient: Annotated[bool, typer.Option("--lenient", help="Skip bad rows and count them.")] = False,
    changes: Changes = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each job.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to this file instead of stdout: jobs (.csv, .xlsx, .md, .tex), samples (.parquet), all (.json) or text (.txt).",
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

    Greedy schedulers start whole tasks and never stop one.
    Schedulers of real clusters also start gangs: all tasks of a gang begin at one instant.
    Exact schedulers divide tasks and move them at no cost: the optimum to compare a heuristic with.
    With psdsf:period=SECONDS, each server acts on its own; the output shows how close the servers come to the optimum.
    Options of psdsf are :phases=random, sweep or at-once, :seed=N, and :sharing=rdm or tdm.
    With several schedulers: a table of waiting, slowdown, use, shortfall against the exact simulation, envy and Jain's index.
    Ctrl-C or SIGTERM stops the simulation and keeps its results; if some schedulers have not run by then, the exit status is 130.
    With --keep, the same command goes on from there.
    """
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv)
    if scheduler and len(scheduler) > 1 and regret:
        raise typer.BadParameter("leave it out: several schedulers are compared with the exact simulation", param_hint="--regret")
    check_page(report, "--report")
    if report is not None and len(scheduler or ()) < 2:
        raise typer.BadParameter("the page compares several schedulers; give --scheduler more than once", param_hint="--report")
    instance = read_instance(cluster, changes)
    swf = trace.name.lower().removesuffix(".gz").endswith(".swf")
    if swf and events is not None:
        raise typer.BadParameter(
            "events cannot be combined with a log in the Standard Workload Format; leave --events out", param_hint="--events"
        )
    if gangs and not swf:
        raise typer.BadParameter("a table marks gangs in its column gang; leave --gangs out", param_hint="--gangs")
    if not swf and _is_log(trace):
        raise typer.BadParameter(
            f"{trace} is the log of a scheduler, which fairopt history judges; to simulate its jobs, give a table of them (.csv with the "
            "columns user, submit_s, run_s, tasks and one a resource) or a log in the Standard Workload Format (.swf)",
            param_hint="JOBS",
        )
    jobs = work(
        f"reading {trace}",
        lambda: (
            fo.trace_swf(trace, memory="memory" in instance.resources, gangs=gangs, lenient=lenient)
            if swf
            else fo.load_trace(trace, cluster=instance, events=events, lenient=lenient)
        ),
    )
    if jobs.left_out:
        say("warning", f"{plural(len(jobs.left_out), 'row')} left out; the first: {jobs.left_out[0]}")
    bar = Bar("tasks", jobs.n_tasks)
    ended = threading.Event()
    schedulers = scheduler or ["drfh:best-fit"]
    written = any(path is not None for path in (output, plot, report))
    if len(schedulers) > 1:
        several = work(
            "simulating",
            lambda: fo.compare_over_time(
                jobs,
                instance,
                schedulers,
                exact=exact,
                until=until,
                step=step,
                store=keep,
                done=lambda name, now, tasks: bar.reach(tasks, what=name),
                stopped=ended.is_set,
            ),
            bar,
            ended,
        )
        _tell_how_to_go_on(keep, several.complete, written)
        draw(several, plot)
        if report is not None:
            from fairopt.reporting.side_by_side import write_side_by_side_page

            write_side_by_side_page(several, report)
        hand_over(several.to_dict, lambda: several.to_frame().reset_index(), lambda width: side_by_side_blocks(several), form, output)
        if not several.complete:
            raise typer.Exit(INTERRUPTED)
        return
    found = work(
        "simulating",
        lambda: fo.simulate(
            jobs,
            instance,
            schedulers[0],
            until=until,
            step=step,
            regret=regret,
            keep=keep,
            done=lambda now, tasks: bar.reach(tasks),
            stopped=ended.is_set,
        ),
        bar,
        ended,
    )
    _tell_how_to_go_on(keep, found.complete, written)
    draw(found, plot)
    if form == "parquet" and output is not None:
        found.save(output)
    else:
        hand_over(found.to_dict, lambda: found.jobs, lambda width: simulation_blocks(found), form, output)


def _tell_how_to_go_on(folder: Path | None, complete: bool, written: bool) -> None:
    if folder is not None and not complete:
        force = " and --force, which replaces what this run writes" if written else ""
        say("stopped", f"the same command goes on from there, with what {folder} keeps{force}")


def _is_log(path: Path) -> bool:
    """Return whether a file is what sacct printed, or pods of Kubernetes."""
    if not path.is_file():
        return False
    try:
        return kind_of(path) in ("sacct", "kubernetes")
    except fo.InvalidInstance:
        return False
