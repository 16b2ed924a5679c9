"""``fairopt study``: a grid of instances, notions, schedules and seeds, on all cores or a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.crews import Address, Backend, Workers, until_interrupted
from fairopt.commands.delivering import as_text, deliver, named, show, write_figure
from fairopt.commands.forms import choose_form, table_form
from fairopt.commands.options import (
    Changes,
    Guarantees,
    Json,
    Notions,
    Only,
    QueueShare,
    ResourceWeights,
    Rules,
    Schedules,
    Sharing,
    counts,
    read_instance,
    with_rules,
    words,
)
from fairopt.commands.outputs import Written
from fairopt.commands.simulated_studies import check_options, study_simulations
from fairopt.commands.traces import Gangs, Lenient
from fairopt.commands.working import work
from fairopt.formats import DOCUMENTS, source_of
from fairopt.formats.results import rendered
from fairopt.reporting import tables
from fairopt.wording import plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["exit_if_failed", "study"]

_PAPER = ("tex", "md", "html")  # tables for readers


def study(
    context: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Instances: .yaml, .json, .xlsx or .ods files, or folders with servers.csv and users.csv."),
    ] = None,
    generate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC",
            autocompletion=completion.generators,
            help="Random instances, such as google:users=50:servers=100, one per seed; --set skips them. See: fairopt generate.",
        ),
    ] = None,
    notions: Notions = "drfh",
    schedules: Schedules = "",
    seeds: Annotated[int, typer.Option(metavar="N", help="Number of seeds (0 to N - 1), for random instances and random schedules.")] = 1,
    simulate: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Simulate the jobs of this file instead, as fairopt simulate does, on each --cluster under each of --schedulers. Can be "
            "repeated.",
        ),
    ] = None,
    cluster: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="With --simulate: the servers, and the weights of users: an instance file. Can be repeated."),
    ] = None,
    schedulers: Annotated[
        str,
        typer.Option(
            metavar="ID,...",
            autocompletion=completion.listed_simulated,
            help="With --simulate: schedulers with their memory, such as backfill, fairtree:half_life=7d. See: fairopt schedulers.",
        ),
    ] = "",
    until: Annotated[float | None, typer.Option(metavar="SECONDS", help="With --simulate: stop each simulation at this time.")] = None,
    gangs: Gangs = False,
    lenient: Lenient = False,
    integral: Annotated[
        bool, typer.Option("--integral", help="Also compute the best allocation of whole tasks, and measure regret against it.")
    ] = False,
    sharing: Sharing = None,
    guarantees: Guarantees = None,
    queue_share: QueueShare = None,
    resource_weights: ResourceWeights = None,
    only: Only = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Time limit of each exact allocation.")] = None,
    part: Annotated[
        str | None,
        typer.Option(
            metavar="K/N", help="Compute the K-th of N parts only, as one task of a job array, as in 3/40. Join them: fairopt study-merge."
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Save all rows in study.parquet in this folder (with --simulate: each simulation). If the study is stopped, or asked for "
            "more seeds or instances, the same command continues from there.",
        ),
        Written(own=True),
    ] = None,
    workers: Workers = -1,
    backend: Backend = "loky",
    address: Address = None,
    changes: Changes = None,
    rules: Rules = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each instance and allocation.")] = False,
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write a table: .tex (with booktabs), .md or .html for a paper, as 399 ± 12; .csv, .parquet or .xlsx for programs, "
            "with the error in a column of its own.",
        ),
        Written(),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Columns of the table: tasks, min-share, efficiency, price-of-fairness, jain, envy, regret-level, regret-worst, seconds, "
            "use, or one resource.",
        ),
    ] = None,
    digits: Annotated[
        int | None,
        typer.Option(
            "--mean-digits", metavar="N", min=1, max=15, help="Significant digits of each mean. Default: two digits of the error."
        ),
    ] = None,
    interval: Annotated[
        Literal["se", "sd", "ci95"],
        typer.Option(help="What ± is: the standard error, the standard deviation, or the 95 % confidence interval (Student's t)."),
    ] = "se",
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Notion or schedule against which the others are measured: the mean difference to it, seed by seed, with its interval. "
            "With --simulate: the notion whose exact simulation is the reference; default: drfh.",
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TEXT", help="What the table calls an entry, an instance or a measure. Can be repeated."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw fairness against efficiency, with errors: .svg, .png or .pdf."), Written()
    ] = None,
) -> None:
    """Run notions and schedules on all instances with all seeds, and print means and standard errors.

    With --columns, --mean-digits, --interval, --reference or --rename, the table for a paper is printed instead.
    With --simulate, a row for each log, cluster, scheduler and seed is printed: slowdowns, finish-time ratios, regret over time, use.
    With --resume, Ctrl-C keeps the finished rows, and the same command continues from them.
    Exit status 3: no row has an allocation; 1: some rows have none.
    """
    from fairopt.reporting.plain_page import page_of
    from fairopt.studies.grid import Grid, rows_to_come
    from fairopt.studies.parts import part_of
    from fairopt.studies.records import study_data
    from fairopt.studies.sweep import MEASURES, summary

    check_options(context, simulate)
    part_of(part)
    if seeds < 1:
        raise typer.BadParameter("give a number of seeds >= 1", param_hint="--seeds")
    if simulate:
        study_simulations(
            simulate, cluster or [], schedulers, seeds=seeds, reference=reference, until=until, gangs=gangs, lenient=lenient, part=part,
            resume=resume, workers=workers, backend=backend, address=address, as_json=as_json, as_csv=as_csv, table=table,
        )  # fmt: skip
        return
    form = choose_form(None, plot, as_json=as_json, as_csv=as_csv)
    kind = table_form(table, "--table", "html")
    asked: dict[str, object] = {"--columns": columns, "--mean-digits": digits, "--interval": interval if interval != "se" else None}
    asked |= {"--reference": reference, "--rename": rename}
    own = [option for option, value in asked.items() if value is not None]
    if own and form == "json" and table is None:
        raise typer.BadParameter("it is about a table, and --json is none; give --table FILE", param_hint=own[0])
    numbers = [each for each, there in (("--csv", form == "csv"), (f".{kind}", table is not None and kind not in _PAPER)) if there]
    if digits is not None and numbers:
        raise typer.BadParameter(f"{numbers[0]} has all digits; leave it out", param_hint="--mean-digits")
    chosen = words(columns) if columns is not None else None
    if not (files or generate):
        raise typer.BadParameter("there are no instances; give files, --generate SPEC, or both", param_hint="FILE")
    if part is not None and resume is None:
        raise typer.BadParameter("nothing would be kept to join; give --resume and a file or folder for this part", param_hint="--part")
    if changes and not files:
        raise typer.BadParameter("it changes files, and there are none; give options in --generate SPEC", param_hint="--set")
    if rules and not files:
        raise typer.BadParameter("it names users of files, and there are none", param_hint="--rule")
    instances: dict[str, fo.Instance | str] = {}
    for path in files or []:
        name = path.stem if path.stem not in instances else str(path)
        instances[name] = read_instance(path, changes, rules)
    instances |= {spec: spec for spec in generate or []}
    wanted, greedy = with_rules(words(notions), guarantees, queue_share, counts(resource_weights, only)), words(schedules)
    titles = _titles(files or [], list(instances)) if own or kind in _PAPER else {}
    titles |= dict(_pair(text) for text in rename or [])
    if own:  # a word that is wrong is refused now, not when all is computed
        grid = Grid(instances, wanted, greedy, [0], {"integral": integral, "sharing": sharing, "time_limit": time_limit})
        fo.study_table(rows_to_come(grid), chosen, digits=digits, interval=interval, reference=reference, titles=titles)
    frame = until_interrupted(
        "computing",
        "cells",
        lambda done, stop: fo.study(
            instances,
            notions=wanted,
            schedules=greedy,
            seeds=range(seeds),
            integral=integral,
            sharing=sharing,
            time_limit=time_limit,
            part=part,
            resume=resume,
            workers=workers,
            backend=backend,
            address=address,
            done=done,
            stop=stop,
        ),
    )
    means = work("averaging", lambda: summary(frame))
    every = [name for name in frame.columns if name in MEASURES or name.startswith("use of ")]

    def paper(names: list[str] | None) -> fo.StudyTable:
        return fo.study_table(frame, names, digits=digits, interval=interval, reference=reference, titles=titles)

    if table is not None and kind in _PAPER:
        found = paper(chosen)
        text = found.to_latex() if kind == "tex" else found.to_markdown() if kind == "md" else page_of("Study", [found.to_html()])
        deliver(text, table)
    elif table is not None:
        deliver(rendered(paper(chosen or every).to_frame() if own else means, kind, str(table)), table)
    if plot is not None and not frame["tasks"].isna().all():
        from fairopt.plots import plot_study
        from fairopt.studies.titles import instance_title

        short = {name: instance_title(name) for name in frame["instance"].unique()} if own or kind in _PAPER else {}
        write_figure(lambda: plot_study(frame, interval=interval, titles=short | titles), plot)  # names as in the table beside it
    if form == "csv":
        deliver(rendered(named(paper(chosen or every).to_frame() if own else means), "csv"), None)
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
        show(lambda width: paper(chosen).blocks() if own else tables.study_blocks(frame, means, instances))
        if resume is not None:
            typer.echo(f"{plural(len(frame), 'row')} in {resume / 'study.parquet' if resume.is_dir() else resume}")
    exit_if_failed(frame)


def exit_if_failed(frame: pd.DataFrame) -> None:
    """End with status 3 if no row of a study has an allocation, and with 1 if some have none."""
    if frame["tasks"].isna().any():
        raise typer.Exit(3 if frame["tasks"].isna().all() else 1)


def _titles(files: Sequence[Path], names: Sequence[str]) -> dict[str, str]:
    """Return the titles of instances that have one in their file."""
    found = {}
    for path, name in zip(files, names, strict=False):
        data = source_of(path).data if path.suffix.lower() in DOCUMENTS else None
        if isinstance(data, dict) and data.get("title"):
            found[name] = str(data["title"])
    return found


def _pair(text: str) -> tuple[str, str]:
    """Read NAME=TEXT; a name may hold "=" where it is a specification, so the last one counts.

    >>> _pair("drfh:best-fit:metric=l2=Best fit")
    ('drfh:best-fit:metric=l2', 'Best fit')
    """
    name, equals, title = text.rpartition("=")
    if not equals or not name:
        raise typer.BadParameter(f'"{text[:60]}" gives no name; give NAME=TEXT, as in "drfh:best-fit=Best fit"', param_hint="--rename")
    return name, title
