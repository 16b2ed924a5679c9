"""``fairopt study``: a grid of instances, notions, schedules and seeds, on all cores or a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.crews import CrewOptions, until_interrupted
from fairopt.commands.delivering import as_text, deliver, named, show, write_figure
from fairopt.commands.forms import choose_form
from fairopt.commands.options import Changes, Json, Notions, Rules, Schedules, Sharing, by_name, read_instance, words
from fairopt.commands.outputs import Written
from fairopt.commands.shares import Shares
from fairopt.commands.simulated_studies import check_options, study_simulations
from fairopt.commands.study_options import OfSimulations, Paper
from fairopt.commands.working import work
from fairopt.formats import DOCUMENTS, source_of
from fairopt.formats.results import rendered
from fairopt.reporting import tables
from fairopt.wording import plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["exit_if_failed", "study"]


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
    of_simulations: OfSimulations = OfSimulations(),
    integral: Annotated[
        bool, typer.Option("--integral", help="Also compute the best allocation of whole tasks, and measure regret against it.")
    ] = False,
    sharing: Sharing = None,
    shares: Shares = Shares(),
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
    crew: CrewOptions = CrewOptions(workers=-1),
    changes: Changes = None,
    rules: Rules = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each instance and allocation.")] = False,
    paper: Paper = Paper(),
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
    from fairopt.studies.grid import Grid, rows_to_come
    from fairopt.studies.parts import part_of
    from fairopt.studies.records import study_data

    check_options(context, of_simulations.simulate)
    part_of(part)
    if seeds < 1:
        raise typer.BadParameter("give a number of seeds >= 1", param_hint="--seeds")
    if of_simulations.simulate:
        study_simulations(
            of_simulations, seeds=seeds, reference=paper.reference, part=part, resume=resume, crew=crew, as_json=as_json, as_csv=as_csv,
            table=paper.table,
        )  # fmt: skip
        return
    form = choose_form(None, plot, as_json=as_json, as_csv=as_csv)
    paper.check(form)
    _check(files, generate, part=part, resume=resume, changes=changes, rules=rules)
    instances = _instances(files or [], generate or [], changes, rules)
    how: dict[str, Any] = {"integral": integral, "sharing": sharing, "time_limit": time_limit}
    wanted, greedy = shares.of_all(words(notions)), words(schedules)
    titles = paper.titles(_titles(files or [], list(instances)) if paper.asked or paper.for_readers else {})
    if paper.asked:  # a word that is wrong is refused now, not when all is computed
        paper.of(rows_to_come(Grid(instances, wanted, greedy, [0], how)), titles)
    frame = until_interrupted(
        "computing",
        "cells",
        lambda done, stop: fo.study(
            instances, notions=wanted, schedules=greedy, seeds=range(seeds), part=part, resume=resume, done=done, stop=stop,
            **how, **vars(crew),
        ),
    )  # fmt: skip
    answer = _Answer(frame, instances, paper, titles)
    answer.write_table()
    answer.draw(plot)
    if form == "csv":
        deliver(rendered(named(answer.numbers), "csv"), None)
    elif form == "json":
        asked = {"instances": list(instances), "notions": wanted, "schedules": greedy, "seeds": range(seeds)}
        typer.echo(as_text(study_data(frame, asked | {"integral": integral, "sharing": sharing, "time_limit_s": time_limit})), nl=False)
    else:
        show(lambda width: answer.blocks())
        if resume is not None:
            typer.echo(f"{plural(len(frame), 'row')} in {resume / 'study.parquet' if resume.is_dir() else resume}")
    exit_if_failed(frame)


def exit_if_failed(frame: pd.DataFrame) -> None:
    """End with status 3 if no row of a study has an allocation, and with 1 if some have none."""
    if frame["tasks"].isna().any():
        raise typer.Exit(3 if frame["tasks"].isna().all() else 1)


# What is asked -------------------------------------------------------------------------------------------------------------------


def _check(
    files: Sequence[Path] | None,
    generate: Sequence[str] | None,
    *,
    part: str | None,
    resume: Path | None,
    changes: Sequence[str] | None,
    rules: Sequence[str] | None,
) -> None:
    """Refuse options that have nothing to act on."""
    if not (files or generate):
        raise typer.BadParameter("there are no instances; give files, --generate SPEC, or both", param_hint="FILE")
    if part is not None and resume is None:
        raise typer.BadParameter("nothing would be kept to join; give --resume and a file or folder for this part", param_hint="--part")
    if changes and not files:
        raise typer.BadParameter("it changes files, and there are none; give options in --generate SPEC", param_hint="--set")
    if rules and not files:
        raise typer.BadParameter("it names users of files, and there are none", param_hint="--rule")


def _instances(
    files: Sequence[Path], generate: Sequence[str], changes: Sequence[str] | None, rules: Sequence[str] | None
) -> dict[str, fo.Instance | str]:
    """Return the instances of files, and specifications of random ones, by name."""
    of_files = {name: read_instance(path, changes, rules) for name, path in by_name(files).items()}
    return of_files | {spec: spec for spec in generate}


def _titles(files: Sequence[Path], names: Sequence[str]) -> dict[str, str]:
    """Return the titles of instances that have one in their file."""
    found = {}
    for path, name in zip(files, names, strict=False):
        data = source_of(path).data if path.suffix.lower() in DOCUMENTS else None
        if isinstance(data, dict) and data.get("title"):
            found[name] = str(data["title"])
    return found


# What is answered ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Answer:
    """The rows of a study, and their means: as they are printed, or as a paper has them, if an option asks for that."""

    frame: pd.DataFrame
    instances: Mapping[str, fo.Instance | str]
    paper: Paper
    titles: Mapping[str, str]

    @cached_property
    def means(self) -> pd.DataFrame:
        """Means and standard errors of all measures."""
        from fairopt.studies.sweep import summary

        return work("averaging", lambda: summary(self.frame))

    @property
    def numbers(self) -> pd.DataFrame:
        """The table as numbers: means of all measures, or the columns of the paper, of which all are there if it names none."""
        from fairopt.studies.sweep import MEASURES

        if not self.paper.asked:
            return self.means
        every = [name for name in self.frame.columns if name in MEASURES or name.startswith("use of ")]
        return self.paper.of(self.frame, self.titles, every).to_frame()

    def blocks(self) -> Any:
        """The table as it is printed."""
        if self.paper.asked:
            return self.paper.of(self.frame, self.titles).blocks()
        return tables.study_blocks(self.frame, self.means, self.instances)

    def write_table(self) -> None:
        """Write the file of --table."""
        from fairopt.reporting.plain_page import page_of

        path, kind = self.paper.table, self.paper.kind
        if path is None:
            return
        if not self.paper.for_readers:
            deliver(rendered(self.numbers, kind, str(path)), path)
            return
        found = self.paper.of(self.frame, self.titles)
        text = found.to_latex() if kind == "tex" else found.to_markdown() if kind == "md" else page_of("Study", [found.to_html()])
        deliver(text, path)

    def draw(self, path: Path | None) -> None:
        """Write the picture of --plot, with the names of the table beside it."""
        if path is None or self.frame["tasks"].isna().all():
            return
        from fairopt.plots import plot_study
        from fairopt.studies.titles import instance_title

        in_words = self.paper.asked or self.paper.for_readers
        short = {name: instance_title(name) for name in self.frame["instance"].unique()} if in_words else {}
        write_figure(lambda: plot_study(self.frame, interval=self.paper.interval, titles={**short, **self.titles}), path)
