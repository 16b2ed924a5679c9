"""``fairopt history``: what the jobs of a log received beside what the exact allocation would have given them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer
from rich.progress import Progress
from rich.text import Text

import fairopt as fo
from fairopt.clusters.clock import span_of
from fairopt.commands import completion
from fairopt.commands.console import Console, check_instance, check_page, choose_form, draw, hand_over, table_form, work
from fairopt.commands.options import Changes, Guarantees, Json, QueueShare, Resume, at_least_one, read_period, with_rules
from fairopt.commands.outputs import Written
from fairopt.commands.tables import add_numbers, add_words, label, print_note, print_paragraph, simple_table
from fairopt.files import write_files
from fairopt.formats.results import rendered
from fairopt.wording import did_you_mean, figure, joined, percent, plural, residual

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["history", "print_history"]

_OWNERS = 12  # listed one by one
_REASONS = 8
_COLUMNS = ("entitled", "received", "shortfall", "surplus")

By = Literal["owner", "queue", "hour", "window", "time", "worst"]


def history(
    log: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="The log: what sacct -P printed, a log in the Standard Workload Format (.swf), pods (kubectl get pods -A -o json, several "
            "files in the order of time), or a table of jobs (.csv, .parquet). Each may be compressed (.gz).",
        ),
    ],
    cluster: Annotated[
        Path,
        typer.Option(
            "--cluster", metavar="FILE", help="The servers, and the weights and queues of owners: an instance file.", show_default=False
        ),
    ],
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
            help="Judge this many random moments at which work waits, or every change (all). Default: every change, except in long logs.",
        ),
    ] = None,
    owners: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="Owners of jobs. sacct: user or account. swf: user, group or queue. Pods: namespace, priority or label:KEY.",
        ),
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(metavar="NAME", help="Time zone of local times, such as Europe/Berlin, if clocks change in the log.")
    ] = None,
    resume: Resume = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of random moments.")] = 0,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Leave out bad records and unknown owners, and count them; allow jobs to exceed capacity.")
    ] = False,
    guarantees: Guarantees = None,
    queue_share: QueueShare = None,
    changes: Changes = None,
    by: Annotated[By, typer.Option(help="Rows that --csv and -o write.")] = "owner",
    shown: Annotated[list[str] | None, typer.Option("--owner", metavar="NAME", help="Show this owner only. Can be repeated.")] = None,
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
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv)
    check_instance(instance, "--instance")
    kinds = {path: table_form(path, option) for path, option in ((held, "--held"), (due, "--due")) if path is not None}
    check_page(report, "--report")
    if moments is not None and moments != "all" and not (moments.isascii() and moments.isdigit() and len(moments) < 10):
        raise typer.BadParameter(f'{moments} is neither a whole number nor "all"', param_hint="--moments")
    periods = [read_period(text) for text in window or ()]
    progress = Progress(console=Console(stderr=True), transient=True)
    bar = progress.add_task("moments", total=None)
    ended = threading.Event()
    found = work(
        f"judging {log[0]}",
        lambda: fo.history(
            log if len(log) > 1 else log[0],
            cluster,
            with_rules([notion], guarantees, queue_share)[0],
            windows=periods,
            every=every,
            moments="all" if moments == "all" else None if moments is None else int(moments),
            users=owners,
            timezone=timezone,
            changes=changes or (),
            seed=seed,
            resume=resume,
            lenient=lenient,
            done=lambda now, all_: progress.update(bar, completed=now, total=all_),
            stopped=ended.is_set,
        ),
        progress,
        ended if resume is not None else None,
    )
    _require(found, shown)
    draw(found, plot)
    if report is not None:
        from fairopt.reporting.histories import write_history_page

        write_history_page(found, report)
    if instance is not None:
        fo.save(found.instance, instance)
    for path, allocation in ((held, "held"), (due, "due")):
        if path is not None:
            write_files({path: rendered(_table(getattr(found, allocation)), kinds[path], str(path))})
    hand_over(
        found.to_dict,
        lambda: _indexed(found.to_frame(by)),
        lambda console: print_history(console, found, shown=shown or (), sort=sort, top=top),
        form,
        output,
    )


def _require(found: fo.History, shown: list[str] | None) -> None:
    for name in shown or ():
        if name not in found.owners:
            hint = did_you_mean(name, found.owners)
            raise typer.BadParameter(f'there is no owner "{name}"{hint}; there are {joined(found.owners, 5)}', param_hint="--owner")


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


def print_history(console: Console, found: fo.History, *, shown: Any = (), sort: str = "shortfall", top: int | None = None) -> None:
    """Print the totals, a row for each owner and queue, the worst times, and what was not judged."""
    data, clock = found.to_dict(), found.setting.log.clock
    period = f"{clock.shown(found.windows[0][0])} to {clock.shown(found.windows[-1][1])}"
    console.print(
        Text(
            f"{found.notion}, {period} ({span_of(found.hours * 3600)}): {plural(data['jobs'], 'job')} of "
            f"{plural(len(found.owners), 'owner')}\n"
        )
    )
    total = data["entitled"]
    part = f", {percent(data['shortfall'] / total)} of what was due" if total > 0 else ""
    error = "" if found.is_exact else f" ± {figure(data['shortfall_error'])}"
    facts = [
        ("shortfall", f"{figure(data['shortfall'])}{error} share-hours{part}"),
        ("work waited in", f"{percent(data['contended_hours'] / data['hours'])} of the time"),
        ("judged at", _judged(found, data)),
        ("certificates", f"{plural(data['solved'], 'exact allocation')}, worst residual {residual(data['residual'])}"),
    ]
    for word, text in facts:
        console.print(Text(f"{word:<15} {text}"))
    console.print()
    frame = found.to_frame()
    if found.setting.groups:
        queues = found.to_frame("queue").sort_values("shortfall", ascending=False, kind="stable")
        queues = queues[~queues.index.isin(found.owners)]  # a queue that is an owner is in the table of owners
        if len(queues):
            _print_table(console, "queue", queues, ())
            console.print()
    more = ["envy", "waiting"] if found.judges_envy else ["waiting"]
    chosen = frame.loc[list(shown)] if shown else frame
    chosen = chosen.sort_index() if sort == "name" else chosen.sort_values(sort, ascending=False, kind="stable")
    listed = chosen[: top or (len(chosen) if shown else _OWNERS)]
    _print_table(console, "owner", listed, (*more, *(["shortfall_error"] if not found.is_exact else [])))
    if len(listed) < len(chosen):
        console.print(Text(f"and {plural(len(chosen) - len(listed), 'owner')} more"))
    if len(found.windows) > 1:
        _print_windows(console, found)
    _print_worst(console, found)
    if data["unjudged"]:
        console.print(Text("\nNot judged"))
        for each in data["unjudged"][:_REASONS]:
            hours = f", {figure(each['task_hours'])} task-hours of waiting" if each["task_hours"] else ""
            print_note(console, f"{plural(each['jobs'], 'job')}: {each['why']}{hours}; the first: {each['first']}")
        if len(data["unjudged"]) > _REASONS:
            console.print(Text(f"and {plural(len(data['unjudged']) - _REASONS, 'reason')} more"))
    for note in found.notes:
        print_note(console, f"\nNote: {note}")
    envy = " envy: what it would gain with what another owner of its queue held." if found.judges_envy else ""
    console.print()
    print_paragraph(
        console,
        Text(
            "In share-hours: the whole cluster for an hour is 1. entitled: the exact allocation of the jobs that were there. shortfall: "
            f"due and not given while work waited. surplus: given beyond what was due. waiting: work that waited.{envy}",
            style="dim",
        ),
    )


def _judged(found: fo.History, data: dict[str, Any]) -> str:
    if found.is_exact:
        return f"every change while work waited, {data['contended_changes']:,}"
    changes = f"{data['contended_changes']:,} changes while work waited"
    if any(found.exact):
        some = f"{sum(found.exact)} of {plural(len(found.windows), 'window')}"
        return f"{data['moments']:,} moments: every change in {some}, random ones in the others, of {changes}"
    return f"{data['moments']:,} random moments, of {changes}"


def _print_table(console: Console, kind: str, frame: pd.DataFrame, more: Any) -> None:
    words = {"shortfall_error": "± shortfall"}
    columns = [*_COLUMNS, *more]
    table = simple_table(kind)
    add_numbers(table, *(words.get(name, name) for name in columns))
    cells = [[figure(value, 4) for value in frame[name].tolist()] for name in columns]
    for name, *row in zip(frame.index, *cells, strict=True):
        table.add_row(label(str(name)), *row)
    console.print(table)


def _print_windows(console: Console, found: fo.History) -> None:
    frame, clock = found.to_frame("window"), found.setting.log.clock
    frame = frame.sort_values("shortfall", ascending=False, kind="stable")[:_OWNERS].sort_index()
    table = simple_table("window", first="ids")
    add_numbers(table, "work waited", *_COLUMNS)
    cells = [[figure(value, 4) for value in frame[name].tolist()] for name in _COLUMNS]
    waited = [percent(part) for part in frame["contended_hours"] / frame["hours"]]
    for w, *row in zip(frame.index, waited, *cells, strict=True):
        table.add_row(label(clock.shown(found.windows[int(w)][0])), *row)
    console.print()
    console.print(table)
    if len(found.windows) > len(frame):
        console.print(Text(f"and {plural(len(found.windows) - len(frame), 'window')} with a smaller shortfall"))


def _print_worst(console: Console, found: fo.History) -> None:
    worst, clock = found.worst(), found.setting.log.clock
    if not worst:
        return
    table = simple_table("worst times", first="ids")
    add_numbers(table, "shortfall")
    add_words(table, "lacked (mean share)", "held beyond its due")
    for each in worst:
        pairs = [", ".join(f"{name} {percent(share)}" for name, share in some) for some in (each.lacked, each.beyond)]
        table.add_row(label(clock.shown(each.start)), figure(each.shortfall), *(label(text) for text in pairs))
    console.print()
    console.print(table)
    console.print(Text(f"each {span_of(worst[0].end - worst[0].start)} long", style="dim"))
