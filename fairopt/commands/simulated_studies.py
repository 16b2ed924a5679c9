"""``fairopt study --simulate``: a grid of simulations, each log on each cluster under each scheduler with each seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import fairopt as fo
from fairopt.commands.crews import CrewOptions, until_interrupted
from fairopt.commands.delivering import as_text, deliver, named, show
from fairopt.commands.forms import choose_form, table_form
from fairopt.commands.options import read_instance, words
from fairopt.commands.study_options import OfSimulations
from fairopt.commands.traces import read_trace
from fairopt.formats.results import rendered
from fairopt.reporting import tables
from fairopt.wording import plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check_options", "study_simulations"]

_OF_PART = {"as_json": "--json", "as_csv": "--csv", "table": "--table"}
_OWN = ("simulate", "cluster", "schedulers", "until", "gangs", "lenient")  # arguments of a study that are for simulations only
_SHARED = ("part", "seeds", "reference", "resume", "workers", "backend", "address", "as_json", "as_csv", "table", "max_bytes", "force")


def check_options(context: typer.Context, simulate: Sequence[Path] | None) -> None:
    """Refuse options of other studies with --simulate, and those of simulations without it."""
    for part in context.command.params:
        source = context.get_parameter_source(str(part.name))
        is_given = source is not None and source.name == "COMMANDLINE"
        if not is_given or context.params.get(str(part.name)) in ((), []):  # older versions of click: an argument left out is given as ()
            continue
        word = max(part.opts, key=len) if part.param_type_name == "option" else "FILE"
        if simulate and part.name in _OF_PART and context.params.get("part") is not None:
            raise typer.BadParameter(
                "a part has no table; leave it out, and ask for it without --part when all is simulated", param_hint=word
            )
        if simulate and part.name not in (*_OWN, *_SHARED):
            raise typer.BadParameter("it is not for simulations; leave it out, or leave --simulate out", param_hint=word)
        if not simulate and part.name in _OWN:
            raise typer.BadParameter("it is for simulations; give a log with --simulate, too", param_hint=word)


def study_simulations(
    asked: OfSimulations,
    *,
    seeds: int,
    reference: str | None,
    part: str | None,
    resume: Path | None,
    crew: CrewOptions,
    as_json: bool,
    as_csv: bool,
    table: Path | None,
) -> None:
    """Simulate all logs on all clusters, and print a row for each cell."""
    form = choose_form(None, as_json=as_json, as_csv=as_csv)
    kind = table_form(table, "--table")
    logs, clusters, schedulers = asked.simulate or [], asked.cluster or [], words(asked.schedulers)
    for option, there in (("--cluster", clusters), ("--schedulers", schedulers)):
        if not there:
            raise typer.BadParameter("with --simulate it is needed; give at least one", param_hint=option)
    if part is not None and resume is None:
        raise typer.BadParameter("nothing would be kept to join; give --resume and a folder for this part", param_hint="--part")
    simulations = {}
    for cluster in dict.fromkeys(clusters):
        instance = read_instance(cluster, None)
        for log in dict.fromkeys(logs):
            simulations[_name(log, logs, cluster, clusters)] = (
                read_trace(log, instance, gangs=asked.gangs, lenient=asked.lenient, hint="--simulate"),
                instance,
            )
    question = {"simulations": list(simulations), "schedulers": schedulers, "seeds": range(seeds), "reference": reference or "drfh"}
    frame = until_interrupted(
        "simulating",
        "simulations",
        lambda done, stop: fo.study_over_time(
            simulations,
            schedulers,
            seeds=range(seeds),
            reference=reference or "drfh",
            until=asked.until,
            part=part,
            resume=resume,
            **vars(crew),
            done=done,
            stop=stop,
        ),
    )
    if part is not None:
        kept = f"{plural(len(frame), 'simulation')} of part {part}, kept in {resume}"
        typer.echo(f"{kept}; when all parts are there, the same command without --part prints the table")
        exit_if_failed(frame)
        return
    if table is not None:
        deliver(rendered(frame, kind, str(table)), table)
    if form == "csv":
        deliver(rendered(named(frame), "csv"), None)
    elif form == "json":
        from fairopt.simulation.records import study_of_simulations

        typer.echo(as_text(study_of_simulations(frame, question | {"until_s": asked.until})), nl=False)
    else:
        show(lambda width: tables.simulated_study_blocks(frame, reference or "drfh"))
        if resume is not None:
            typer.echo(f"{plural(len(frame), 'cell')}, kept in {resume}")
    exit_if_failed(frame)


def exit_if_failed(frame: pd.DataFrame) -> None:
    """Exit with 3 if all rows have a message, with 1 if some have."""
    if frame["message"].ne("").any():
        raise typer.Exit(3 if frame["message"].ne("").all() else 1)


def _name(log: Path, logs: Sequence[Path], cluster: Path, clusters: Sequence[Path]) -> str:
    """Return what a log on a cluster is called: as short as files with other names allow."""

    def short(path: Path, others: Sequence[Path]) -> str:
        return path.stem if [each.stem for each in dict.fromkeys(others)].count(path.stem) == 1 else str(path)

    return f"{short(log, logs)} on {short(cluster, clusters)}"
