"""``fairopt study-merge``: the parts of a study, as tasks of a job array have computed them, become one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairopt.commands.console import say
from fairopt.commands.delivering import as_text, deliver, named, show
from fairopt.commands.forms import choose_form
from fairopt.commands.options import Json
from fairopt.commands.outputs import Written, forced
from fairopt.commands.studies import exit_if_failed
from fairopt.commands.working import work
from fairopt.formats.results import rendered
from fairopt.reporting import tables
from fairopt.simulation.study_parts import folder_of_parts, join_folders
from fairopt.wording import plural

__all__ = ["study_merge"]


def study_merge(
    parts: Annotated[list[Path], typer.Argument(metavar="PART...", help="What the parts wrote with --resume: files or folders.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Write all rows there: study.parquet in a folder, or a .parquet file."),
        Written(own=True),
    ],
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each instance and allocation.")] = False,
) -> None:
    """Join the parts of a study, which fairopt study --part has computed, and print means and standard errors.

    The parts must answer the same question. Missing parts and cells are named. To compute them, run the same study
    without --part, and with --resume and the joined file.
    Of parts of fairopt study --simulate, the simulations are copied into the folder. To print the table, run the same study
    without --part, and with --resume and that folder.
    Exit status 3: no row has an allocation; 1: some rows have none, or cells are missing.
    """
    from fairopt.studies.merging import merged
    from fairopt.studies.records import study_data
    from fairopt.studies.sweep import summary

    form = choose_form(None, None, as_json=as_json, as_csv=as_csv)
    if any(folder_of_parts(part) for part in parts):
        if as_json or as_csv:
            raise typer.BadParameter("parts of simulations have no table yet; leave it out", param_hint="--json" if as_json else "--csv")
        _join_simulations(parts, output)
        return
    frame, missing = work("joining", lambda: merged(parts, output, force=forced()))
    for each in missing:
        say("warning", each)
    means = work("averaging", lambda: summary(frame))
    if form == "csv":
        deliver(rendered(named(means), "csv"), None)
    elif form == "json":
        typer.echo(as_text(study_data(frame, {"instances": list(frame["instance"].unique())})), nl=False)
    else:
        show(lambda width: tables.study_blocks(frame, means, {name: name for name in frame["instance"].unique()}))
        typer.echo(f"{plural(len(frame), 'row')} in {output / 'study.parquet' if output.is_dir() else output}")
    exit_if_failed(frame)
    if missing:
        raise typer.Exit(1)


def _join_simulations(parts: list[Path], output: Path) -> None:
    """Copy the simulations of all parts into one folder, and say what is missing."""
    if output.is_dir() and any(output.iterdir()) and output not in parts and not forced():
        raise typer.BadParameter(f"{output} is not empty; give another folder, or add to it with --force", param_hint="--output")
    number, missing = work("joining", lambda: join_folders(parts, output))
    for each in missing:
        say("warning", each)
    typer.echo(f"{plural(number, 'simulation')} in {output}; the same study without --part, and with --resume {output}, prints the table")
    if missing:
        raise typer.Exit(1)
