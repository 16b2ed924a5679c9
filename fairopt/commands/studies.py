"""``fairopt study``: a grid of instances, notions, schedules and seeds, on all cores or a cluster."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

import fairopt as fo
from fairopt.analysis.comparison import BEST_FOUND
from fairopt.commands.console import as_text, choose_form, say, work
from fairopt.commands.options import Json, Notions, Schedules, Sharing, words
from fairopt.commands.tables import add_numbers, label, simple_table
from fairopt.formats import spreadsheets
from fairopt.wording import plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["study"]

_INTERRUPTED = 130
_ROUNDED = 1e-12  # relative: standard errors below are of rounding
_LINES = 5  # messages that are printed
_LEGEND = (
    "± is the standard error over the seeds. efficiency: weighted tasks, of the most that divisible tasks allow. low share: smallest "
    "weighted dominant share. envy: in tasks. regret: relative shortfall from the exact allocation, level: of the lowest share, worst: the "
    "largest that applies."
)


def study(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Instances: .yaml or .json files, or folders of servers.csv and users.csv."),
    ] = None,
    generate: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="Random ones too, as google:users=50:servers=100, drawn from each seed. See: fairopt generate."),
    ] = None,
    notions: Notions = "drfh",
    schedules: Schedules = "",
    seeds: Annotated[
        int, typer.Option(metavar="N", help="Seeds 0 to N - 1: of what is drawn, and of schedules that choose at random.")
    ] = 1,
    integral: Annotated[bool, typer.Option("--integral", help="Also the best allocation of whole tasks, and regret against that.")] = False,
    sharing: Sharing = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Of each exact allocation.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="Keep all rows there, a .parquet file or a folder, and go on from it."),
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Workers; -1 for one on each core.")] = -1,
    backend: Annotated[str, typer.Option(metavar="WORD", help="loky (processes), threading, dask or ray.")] = "loky",
    address: Annotated[str | None, typer.Option(metavar="URL", help="Of the cluster, such as tcp://10.0.0.1:8786.")] = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each instance and allocation.")] = False,
) -> None:
    """Run notions and schedules on all instances with all seeds, and print means and standard errors.

    Ctrl-C keeps what is there; the same command goes on from it. The exit status is 3 where no row has an allocation.
    """
    from fairopt.studies.sweep import summary

    form = choose_form(None, as_json=as_json, as_csv=as_csv)
    if seeds < 1:
        raise typer.BadParameter("give a number of seeds >= 1", param_hint="--seeds")
    if not (files or generate):
        raise typer.BadParameter("there are no instances; give files, --generate SPEC, or both", param_hint="FILE...")
    instances: dict[str, fo.Instance | str] = {}
    for path in files or []:
        name = path.stem if path.stem not in instances else str(path)
        instances[name] = work(f"reading {path}", lambda path=path: fo.load(path))  # type: ignore[misc]
    instances |= {spec: spec for spec in generate or []}
    wanted, greedy = words(notions), words(schedules)
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
                sharing=sharing,  # type: ignore[arg-type]  # study says what there is
                time_limit=time_limit,
                output=output,
                jobs=jobs,
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
    if form == "csv":
        typer.echo(spreadsheets.to_csv(means), nl=False)
    elif form == "json":
        plain = means.reset_index().astype(object).where(means.reset_index().notna(), None)
        typer.echo(as_text(plain.to_dict("records")), nl=False)
    else:
        _print(Console(highlight=False), frame, means)
        if output is not None:
            typer.echo(f"{plural(len(frame), 'row')} in {output / 'study.parquet' if output.is_dir() else output}")
    if frame["tasks"].isna().all():
        raise typer.Exit(3)


def _print(console: Console, frame: pd.DataFrame, means: pd.DataFrame) -> None:
    """Print, for each instance, means over the seeds and their standard errors; then what failed, and why."""
    seeds = frame["seed"].nunique()
    for name, part in means.groupby(level="instance", sort=False):
        rows = part.droplevel("instance")
        console.print(Text.assemble((label(str(name)).plain, "bold"), f", {plural(seeds, 'seed')}\n"))
        uses = {
            column.removeprefix("use of "): column
            for column in map(str, rows)
            if column.startswith("use of ") and not column.endswith(" error")
        }
        for title, numbers, percents in (
            ("measures", {"tasks": "tasks", "low share": "smallest_share"}, {"efficiency": "efficiency"}),
            ("fairness", {"Jain": "jain", "envy": "envy", "seconds": "seconds"}, {}),
            ("in use", {}, uses),
            ("regret", {}, {"level": "regret level", "worst": "regret worst"}),
        ):
            console.print(_table(title, rows, numbers, percents))
            console.print()
    console.print(Text(_LEGEND if seeds > 1 else _LEGEND.partition(". ")[2]))
    if frame["kind"].eq(BEST_FOUND).any():
        console.print(Text(f"{BEST_FOUND}: within the time limit, no optimum; regret against it is a lower bound."))
    failed = frame[frame["tasks"].isna()]
    told = failed.drop_duplicates(["instance", "entry", "message"])
    for _, row in told.head(_LINES).iterrows():
        console.print(Text.assemble((f"{row['instance']}, seed {row['seed']}, {row['entry']}: ", "bold"), label(row["message"]).plain))
    if len(failed):
        console.print(Text(f"{plural(len(failed), 'row')} of {len(frame):,} without an allocation"))


def _table(title: str, rows: pd.DataFrame, numbers: dict[str, str], percents: dict[str, str]) -> Table:
    """Return a table of these columns, by what they are called here; only those that apply to an entry."""
    table = simple_table(title, *(("kind",) if title == "measures" else ()))
    chosen = {word: column for word, column in (numbers | percents).items() if rows[column].notna().any()}
    add_numbers(table, *(label(word).plain for word in chosen))
    for entry, row in rows.iterrows():
        cells = [_mean(row[column], row[f"{column} error"], word in percents) for word, column in chosen.items()]
        table.add_row(label(str(entry)), *((str(row["kind"]),) if title == "measures" else ()), *cells)
    return table


def _mean(mean: float, error: float, percent: bool) -> str:
    """Write a mean and its standard error, if it has one that is more than rounding, to two digits of that.

    >>> _mean(0.82891, 0.0123, True), _mean(45.061, 0.72, False), _mean(45.061, float("nan"), False), _mean(1451.8, 170.4, False)
    ('82.9 ± 1.2 %', '45.06 ± 0.72', '45.06', '1,450 ± 170')
    """
    if np.isnan(mean):
        return ""
    unit, scale = (" %", 100.0) if percent else ("", 1.0)
    mean, error = scale * mean, scale * error
    if not error > _ROUNDED * abs(mean):
        return (f"{mean:.1f}" if percent else f"{mean:,.4g}") + unit
    digits = 1 - math.floor(math.log10(error))
    shown = max(digits, 0)
    return f"{round(mean, digits):,.{shown}f} ± {round(error, digits):.{shown}f}{unit}"
