"""``fairopt study``: a grid of instances, notions, schedules and seeds, on all cores or a cluster."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.console import INTERRUPTED, Bar, as_text, choose_form, deliver, named, say, show, table_form, work
from fairopt.commands.options import (
    Changes,
    Guarantees,
    Json,
    Notions,
    QueueShare,
    Schedules,
    Sharing,
    Workers,
    read_instance,
    with_rules,
    words,
)
from fairopt.commands.outputs import Written
from fairopt.formats.results import rendered
from fairopt.reporting.tables.studies import study_blocks
from fairopt.wording import plural

if TYPE_CHECKING:
    pass

__all__ = ["study"]


def study(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Instances: .yaml, .json, .xlsx or .ods files, or folders with servers.csv and users.csv."),
    ] = None,
    generate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC",
            autocompletion=completion.generators,
            help="Random instances, such as google:users=50:servers=100, one per seed. See: fairopt generate.",
        ),
    ] = None,
    notions: Notions = "drfh",
    schedules: Schedules = "",
    seeds: Annotated[int, typer.Option(metavar="N", help="Number of seeds (0 to N - 1), for random instances and random schedules.")] = 1,
    integral: Annotated[
        bool, typer.Option("--integral", help="Also compute the best allocation of whole tasks, and measure regret against it.")
    ] = False,
    sharing: Sharing = None,
    guarantees: Guarantees = None,
    queue_share: QueueShare = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Time limit of each exact allocation.")] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Save all rows in study.parquet in this folder (or in this .parquet file). If the study is stopped, or asked for more "
            "seeds or instances, the same command continues from there.",
        ),
        Written(own=True),
    ] = None,
    workers: Workers = -1,
    backend: Annotated[
        Literal["loky", "threading", "dask", "ray"],
        typer.Option(help="Where workers run: in processes (loky) or threads of this machine, or on a dask or ray cluster."),
    ] = "loky",
    address: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of the dask or ray cluster, such as tcp://10.0.0.1:8786.")
    ] = None,
    changes: Changes = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each instance and allocation.")] = False,
    table: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the means and errors: .csv, .parquet, .xlsx, .md or .tex."), Written()
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw fairness against efficiency, with errors: .svg, .png or .pdf."), Written()
    ] = None,
) -> None:
    """Run notions and schedules on all instances with all seeds, and print means and standard errors.

    With --resume, Ctrl-C keeps the finished rows, and the same command continues from them.
    Exit status 3: no row has an allocation; 1: some rows have none.
    """
    from fairopt.studies.records import study_data
    from fairopt.studies.sweep import summary

    form = choose_form(None, plot, as_json=as_json, as_csv=as_csv)
    kind = table_form(table, "--table")
    if seeds < 1:
        raise typer.BadParameter("give a number of seeds >= 1", param_hint="--seeds")
    if not (files or generate):
        raise typer.BadParameter("there are no instances; give files, --generate SPEC, or both", param_hint="FILE")
    instances: dict[str, fo.Instance | str] = {}
    for path in files or []:
        name = path.stem if path.stem not in instances else str(path)
        instances[name] = read_instance(path, changes)
    instances |= {spec: spec for spec in generate or []}
    wanted, greedy = with_rules(words(notions), guarantees, queue_share), words(schedules)
    bar = Bar("cells")
    ended = threading.Event()
    try:
        frame = work(
            "computing",
            lambda: fo.study(
                instances,
                notions=wanted,
                schedules=greedy,
                seeds=range(seeds),
                integral=integral,
                sharing=sharing,
                time_limit=time_limit,
                resume=resume,
                workers=workers,
                backend=backend,
                address=address,
                done=lambda finished, total: bar.reach(finished, total),
                stop=ended.is_set,
            ),
            bar,
            ended,
        )
    except KeyboardInterrupt as interrupted:
        if interrupted.args:
            say("interrupted", str(interrupted))
        raise typer.Exit(INTERRUPTED) from None
    means = summary(frame)
    if table is not None:
        deliver(rendered(means, kind, str(table)), table)
    if plot is not None and not frame["tasks"].isna().all():
        from fairopt.plots import plot_study, save_figure

        save_figure(plot_study(frame), plot)
    if form == "csv":
        deliver(rendered(named(means), "csv"), None)
    elif form == "json":
        question = {
            "instances": list(instances),
            "notions": wanted,
            "schedules": greedy,
            "seeds": range(seeds),
            "integral": integral,
            "sharing": sharing,
            "time_limit_s": time_limit,
        }
        typer.echo(as_text(study_data(frame, question)), nl=False)
    else:
        show(lambda width: study_blocks(frame, means, instances))
        if resume is not None:
            typer.echo(f"{plural(len(frame), 'row')} in {resume / 'study.parquet' if resume.is_dir() else resume}")
    if frame["tasks"].isna().any():
        raise typer.Exit(3 if frame["tasks"].isna().all() else 1)
