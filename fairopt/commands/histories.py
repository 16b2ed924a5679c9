"""``fairopt history``: what the jobs of a log received beside what the exact allocation would have given them."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.crews import CrewOptions
from fairopt.commands.delivering import draw, hand_over
from fairopt.commands.forms import check_instance, check_page, choose_form, table_form
from fairopt.commands.options import (
    ClusterChanges,
    ClusterRules,
    Json,
    Resume,
    Sharing,
    at_least_one,
    read_period,
)
from fairopt.commands.outputs import Written
from fairopt.commands.said import WRITTEN
from fairopt.commands.shares import Shares
from fairopt.commands.working import Bar, work
from fairopt.files import write_files
from fairopt.formats.results import rendered
from fairopt.reporting import tables
from fairopt.wording import did_you_mean, joined

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["history"]


By = Literal["owner", "queue", "limit", "hour", "window", "time", "worst", "job"]


@dataclass(frozen=True)
class OfScheduler:
    """What a scheduler says of its cluster; ``vars`` of it are arguments of `fairopt.history`."""

    panel: ClassVar[str] = "The cluster, as its scheduler describes it"

    nodes: Annotated[
        Path | None,
        typer.Option(
            "--nodes",
            metavar="FILE",
            help="Instead of --cluster: scontrol show nodes for a log of sacct, pbsnodes -a -F json for PBS, condor_status -json for "
            "HTCondor.",
        ),
    ] = None
    associations: Annotated[
        Path | None,
        typer.Option(
            "--associations",
            metavar="FILE",
            help="sacctmgr -P show assoc tree: accounts, shares, limits. With --cluster, for accounts and users that the file lacks.",
        ),
    ] = None
    licenses: Annotated[Path | None, typer.Option("--licenses", metavar="FILE", help="With --nodes: scontrol show licenses.")] = None


def history(
    log: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="The log: what sacct -P printed, accounting records of PBS, condor_history -json, a log in the Standard Workload Format "
            "(.swf), pods (kubectl get pods -A -o json), or a table of jobs (.csv, .parquet, .xlsx, .ods). PBS, HTCondor and pods: several "
            "files, in the order of time. Each may be compressed (.gz).",
        ),
    ],
    cluster: Annotated[
        Path | None,
        typer.Option("--cluster", metavar="FILE", help="The servers, and the weights and queues of owners: an instance file."),
    ] = None,
    exports: OfScheduler = OfScheduler(),
    notion: Annotated[
        str,
        typer.Option(
            metavar="ID",
            autocompletion=completion.notions,
            help="Notion of fairness that defines each owner's entitlement. See: fairopt notions.",
        ),
    ] = "drfh",
    window: Annotated[
        list[str] | None,
        typer.Option(
            metavar="START/END", help="Judge this period only, as in 2026-05-01/2026-06-01, or seconds of the log. Can be repeated."
        ),
    ] = None,
    every: Annotated[str | None, typer.Option(metavar="LENGTH", help="Divide the time into windows, such as 1h or 7d.")] = None,
    moments: Annotated[
        str | None,
        typer.Option(
            metavar="N|all",
            help="Judge this many random moments at which work waits, or every change (all). Default: every change of a "
            "short log; in a longer one, so many that the standard errors of all shortfall and surplus are at most 0.5 % of what was due.",
        ),
    ] = None,
    owners: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="Owners of jobs. sacct: user or account. swf: user, group or queue. PBS: these, project or account. HTCondor: submitter, "
            "user or group. Pods: namespace, priority or label:KEY.",
        ),
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(metavar="NAME", help="Time zone of local times, such as Europe/Berlin, if clocks change in the log.")
    ] = None,
    sharing: Sharing = None,
    shares: Shares = Shares(),
    changes: ClusterChanges = None,
    rules: ClusterRules = None,
    resume: Resume = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of random moments.")] = 0,
    crew: CrewOptions = CrewOptions(),
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Leave out bad records and unknown owners, and count them; allow jobs to exceed capacity.")
    ] = False,
    by: Annotated[
        By,
        typer.Option(
            help="Rows that --csv and -o write: one for each owner, queue, limit, hour of the day, window, moment (time), "
            "moment of the largest gaps (worst) or job."
        ),
    ] = "owner",
    shown: Annotated[list[str] | None, typer.Option("--show", metavar="NAME", help="Show this owner only. Can be repeated.")] = None,
    sort: Annotated[
        Literal["shortfall", "surplus", "entitled", "received", "waiting", "name"],
        typer.Option("--sort", help="Order of the owners that are shown: the largest first."),
    ] = "shortfall",
    top: Annotated[int | None, typer.Option("--top", metavar="N", callback=at_least_one, help="Show at most N owners.")] = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: the table of --by.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to this file instead of stdout: the table of --by (.csv, .parquet, .xlsx, .md, .tex), all (.json) or text (.txt).",
        ),
        Written(),
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the history: .svg, .png or .pdf."), Written()] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a page with the picture and all tables: .html."), Written()
    ] = None,
    instance: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also write an instance for compare, audit and export: the cluster, with the average demand of the period."
        ),
        Written(tables=True),
    ] = None,
    held: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the average allocation that ran, for --allocation of compare and audit: .csv, .parquet or .xlsx.",
        ),
        Written(),
    ] = None,
    due: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the average exact allocation: .csv, .parquet or .xlsx."), Written()
    ] = None,
) -> None:
    """Judge the log of a cluster: what owners received, and what the exact allocation would have given them.

    Unit: share-hours; the whole cluster for an hour is 1. Entitled: what the exact allocation gives to the jobs present at each moment.
    Shortfall: the part of the entitlement not received while work waited. Surplus: what was received beyond the entitlement.
    Waits that no scheduler could have ended (held, dependency, limits, no server that is large enough) are left out and counted.
    With --resume, a run that is stopped by Ctrl-C or SIGTERM continues when it is started again.
    """
    if sharing == "tdm":
        raise typer.BadParameter("a log says what jobs held, so a history divides resources (rdm); leave tdm out", param_hint="--sharing")
    if changes and cluster is None:
        raise typer.BadParameter("it changes the file of --cluster, which is not given", param_hint="--set")
    if rules and cluster is None:
        raise typer.BadParameter("it is about the users of --cluster, which is not given", param_hint="--rule")
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv)
    check_instance(instance, "--instance")
    kinds = {path: table_form(path, option) for path, option in ((held, "--held"), (due, "--due")) if path is not None}
    check_page(report, "--report")
    if moments is not None and moments != "all" and not (moments.isascii() and moments.isdigit() and len(moments) < 10):
        raise typer.BadParameter(f'{moments} is neither a whole number nor "all"', param_hint="--moments")
    periods = [read_period(text) for text in window or ()]
    bar = Bar("moments")
    ended = threading.Event()
    found = work(
        f"judging {log[0]}",
        lambda: fo.history(
            log if len(log) > 1 else log[0],
            cluster,
            shares.of(notion),
            **vars(exports),
            windows=periods,
            every=every,
            moments="all" if moments == "all" else None if moments is None else int(moments),
            users=owners,
            timezone=timezone,
            changes=changes or (),
            rules=rules or (),
            seed=seed,
            resume=resume,
            lenient=lenient,
            **vars(crew),
            done=lambda now, all_: bar.reach(now, all_),
            stopped=ended.is_set,
        ),
        bar,
        ended if resume is not None else None,
    )
    _require(found, shown)
    draw(found, plot)
    if report is not None:
        from fairopt.reporting.histories import write_history_page

        work(f"writing {report}", lambda: write_history_page(found, report))
        WRITTEN.add(str(report))
    if instance is not None:
        work(f"writing {instance}", lambda: fo.save(found.instance, instance))
        WRITTEN.add(str(instance))
    for path, allocation in ((held, "held"), (due, "due")):
        if path is not None:
            write_files({path: rendered(_table(getattr(found, allocation)), kinds[path], str(path))})
    hand_over(
        found.to_dict,
        lambda: _indexed(found.to_frame(by)),
        lambda width: tables.history_blocks(found, shown=shown or (), sort=sort, top=top),
        form,
        output,
    )


def _require(found: fo.History, shown: list[str] | None) -> None:
    for name in shown or ():
        if name not in found.owners:
            hint = did_you_mean(name, found.owners)
            raise typer.BadParameter(f'there is no owner "{name}"{hint}; there are {joined(found.owners, 5)}', param_hint="--show")


def _indexed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.reset_index() if frame.index.name else frame


def _table(allocation: fo.Allocation) -> pd.DataFrame:
    """Return tasks as rows of user, server and tasks."""
    import pandas as pd

    users, servers = np.nonzero(allocation.tasks)
    instance = allocation.instance
    return pd.DataFrame(
        {
            "user": [instance.users[n] for n in users],
            "server": [instance.servers[i] for i in servers],
            "tasks": allocation.tasks[users, servers],
        }
    )
