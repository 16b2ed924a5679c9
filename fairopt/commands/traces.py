"""A file of jobs, as simulations read it: a table, a log in the Standard Workload Format, or a table of Gavel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import fairopt as fo
from fairopt.commands.console import say
from fairopt.commands.working import work
from fairopt.files import first_line
from fairopt.histories.log_formats import kind_of
from fairopt.wording import plural

__all__ = ["Gangs", "Lenient", "read_trace"]

Gangs = Annotated[
    bool,
    typer.Option(
        "--gangs",
        help="For a log in the Standard Workload Format: all processors of a job start at one instant. (Tables have a column gang.)",
    ),
]
Lenient = Annotated[bool, typer.Option("--lenient", help="Leave out bad rows, and count them.")]


def read_trace(
    trace: Path, cluster: fo.Instance, *, events: Path | None = None, gangs: bool = False, lenient: bool = False, hint: str = "FILE"
) -> fo.Trace:
    """Read the jobs of a file for a cluster, and say how many bad rows were left out; ``hint`` names what gives the file."""
    swf, gavel = trace.name.lower().removesuffix(".gz").endswith(".swf"), _is_gavel(trace)
    if (swf or gavel) and events is not None:
        what = "a log in the Standard Workload Format" if swf else "a table of Gavel"
        raise typer.BadParameter(f"events cannot be combined with {what}; leave --events out", param_hint="--events")
    if gangs and not swf:
        raise typer.BadParameter("a table marks gangs in its column gang; leave --gangs out", param_hint="--gangs")
    if not swf and _is_log(trace):
        raise typer.BadParameter(
            f"{trace} is the log of a scheduler, which fairopt history judges; to simulate its jobs, give a table of them (.csv with the "
            "columns user, submit_s, run_s, tasks and one a resource) or a log in the Standard Workload Format (.swf)",
            param_hint=hint,
        )

    def read() -> fo.Trace:
        if swf:
            return fo.trace_swf(trace, memory="memory" in cluster.resources, gangs=gangs, lenient=lenient)
        if gavel:
            return fo.trace_gavel(trace, lenient=lenient)
        return fo.load_trace(trace, cluster=cluster, events=events, lenient=lenient)

    jobs = work(f"reading {trace}", read)
    if jobs.left_out:
        say("warning", f"{plural(len(jobs.left_out), 'row')} left out; the first: {jobs.left_out[0]}")
    return jobs


def _is_gavel(path: Path) -> bool:
    """Return whether a file is a table of jobs of Gavel, which have steps and no duration."""
    columns = first_line(path)
    return b"total_steps" in columns and b"run_s" not in columns


def _is_log(path: Path) -> bool:
    """Return whether a file is what sacct printed, or pods of Kubernetes."""
    if not path.is_file():
        return False
    try:
        return kind_of(path) in ("sacct", "kubernetes")
    except fo.InvalidInstance:
        return False
