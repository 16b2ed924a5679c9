"""``fairopt study``: a grid of instances, notions, schedules and seeds, on all cores or a cluster."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import typer
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

import fairopt as fo
from fairopt.analysis.comparison import BEST_FOUND
from fairopt.commands import completion
from fairopt.commands.comparison_table import MEASURES, low_share
from fairopt.commands.console import Console, as_text, choose_form, deliver, say, table_form, work
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
from fairopt.commands.tables import add_numbers, label, simple_table
from fairopt.formats.results import rendered
from fairopt.wording import figure, percent, plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["study"]

_INTERRUPTED = 130
_ROUNDED = 1e-12  # relative: smaller standard errors are rounding errors
_LINES = 5  # messages that are printed
_ERRORS = "±: standard error over the seeds.\n"
_LEGEND = f"""\
{MEASURES}
regret: relative shortfall from the exact allocation.
level: shortfall of the lowest share.
worst: the largest gap between the sorted share lists; for other notions, the regret of the goal or of the condition."""


def study(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Instances: .yaml, .json or .xlsx files, or folders with servers.csv and users.csv."),
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

    With --resume, Ctrl-C keeps the finished rows, and the same command continues from them. Exit status 3: no row has an
    allocation; 1: some rows have none.
    """
    from fairopt.studies.records import study_data
    from fairopt.studies.sweep import summary

    form = choose_form(None, plot, as_json=as_json, as_csv=as_csv)
    kind = table_form(table, "--table")
    if seeds < 1:
        raise typer.BadParameter("give a number of seeds >= 1", param_hint="--seeds")
    if not (files or generate):
        raise typer.BadParameter("there are no instances; give files, --generate SPEC, or both", param_hint="FILE...")
    instances: dict[str, fo.Instance | str] = {}
    for path in files or []:
        name = path.stem if path.stem not in instances else str(path)
        instances[name] = read_instance(path, changes)
    instances |= {spec: spec for spec in generate or []}
    wanted, greedy = with_rules(words(notions), guarantees, queue_share), words(schedules)
    progress = Progress(console=Console(stderr=True), transient=True)
    bar = progress.add_task("cells", total=None)
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
                done=lambda finished, total: progress.update(bar, completed=finished, total=total),
                stop=ended.is_set,
            ),
            progress,
            ended,
        )
    except KeyboardInterrupt as interrupted:
        if interrupted.args:
            say("interrupted", str(interrupted))
        raise typer.Exit(_INTERRUPTED) from None
    means = summary(frame)
    if table is not None:
        deliver(rendered(means, kind, str(table)), table)
    if plot is not None and not frame["tasks"].isna().all():
        from fairopt.plots import plot_study, save_figure

        save_figure(plot_study(frame), plot)
    if form == "csv":
        deliver(rendered(means, "csv"), None)
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
        _print(Console(highlight=False), frame, means, instances)
        if resume is not None:
            typer.echo(f"{plural(len(frame), 'row')} in {resume / 'study.parquet' if resume.is_dir() else resume}")
    if frame["tasks"].isna().any():
        raise typer.Exit(3 if frame["tasks"].isna().all() else 1)


def _print(console: Console, frame: pd.DataFrame, means: pd.DataFrame, instances: dict[str, fo.Instance | str]) -> None:
    """Print, for each instance, means over the seeds and their standard errors; then the rows that failed, and why."""
    seeds = frame["seed"].nunique()
    for name, part in means.groupby(level="instance", sort=False):
        rows = part.droplevel("instance")
        instance = instances[str(name)]
        low = low_share(instance) if isinstance(instance, fo.Instance) else "low share"
        console.print(Text.assemble((label(str(name)).plain, "bold"), f", {plural(seeds, 'seed')}\n"))
        uses = {
            column.removeprefix("use of "): column
            for column in map(str, rows)
            if column.startswith("use of ") and not column.endswith(" error")
        }
        for title, numbers, percents in (
            ("measures", {"tasks": "tasks", low: "smallest_share"}, {"efficiency": "efficiency"}),
            ("fairness", {"Jain": "jain", "envy": "envy", "seconds": "seconds"}, {}),
            ("in use", {}, uses),
            ("regret", {}, {"level": "regret level", "worst": "regret worst"}),
        ):
            console.print(_table(title, rows, numbers, percents))
            console.print()
    console.print(Text(_ERRORS * (seeds > 1) + _LEGEND))
    if frame["kind"].eq(BEST_FOUND).any():
        console.print(Text(f"{BEST_FOUND}: within the time limit, not proved optimal; the regret is a lower bound."))
    failed = frame[frame["tasks"].isna()]
    told = failed.drop_duplicates(["instance", "entry", "message"])
    for _, row in told.head(_LINES).iterrows():
        console.print(Text.assemble((f"{row['instance']}, seed {row['seed']}, {row['entry']}: ", "bold"), label(row["message"]).plain))
    if len(failed):
        console.print(Text(f"{plural(len(failed), 'row')} of {len(frame):,} without an allocation"))


def _table(title: str, rows: pd.DataFrame, numbers: dict[str, str], percents: dict[str, str]) -> Table:
    """Return a table of these columns (heading to name in the frame); only those that apply to an entry."""
    table = simple_table(title, *(("kind",) if title == "measures" else ()))
    chosen = {word: column for word, column in (numbers | percents).items() if rows[column].notna().any()}
    add_numbers(table, *(label(word).plain for word in chosen))
    for entry, row in rows.iterrows():
        cells = [_mean(row[column], row[f"{column} error"], word in percents) for word, column in chosen.items()]
        table.add_row(label(str(entry)), *((label(str(row["kind"])),) if title == "measures" else ()), *cells)
    return table


def _mean(mean: float, error: float, is_part: bool) -> str:
    """Write a mean and its standard error, to two digits of the error; without it if it is only rounding.

    >>> _mean(0.82891, 0.0123, True), _mean(45.061, 0.72, False), _mean(45.061, float("nan"), False), _mean(1451.8, 170.4, False)
    ('82.9 ± 1.2 %', '45.06 ± 0.72', '45.06', '1,450 ± 170')
    """
    if np.isnan(mean) or not error > _ROUNDED * abs(mean):
        return percent(mean, 1) if is_part else figure(mean, 4)
    unit, scale = (" %", 100.0) if is_part else ("", 1.0)
    mean, error = scale * mean, scale * error
    digits = 1 - math.floor(math.log10(error))
    shown = max(digits, 0)
    return f"{round(mean, digits):,.{shown}f} ± {round(error, digits):.{shown}f}{unit}"
