"""The options of ``fairopt study`` by purpose: what is simulated, and the table for a paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.forms import Form, table_form
from fairopt.commands.options import words
from fairopt.commands.outputs import Written
from fairopt.commands.traces import Gangs, Lenient
from fairopt.formats.results import Kind

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OfSimulations", "Paper"]

_FOR_READERS = ("tex", "md", "html")  # endings of tables with means and errors as text


@dataclass(frozen=True)
class OfSimulations:
    """What is simulated, instead of instances that are solved."""

    panel: ClassVar[str] = "With --simulate"

    simulate: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Simulate the jobs of this file instead, as fairopt simulate does, on each --cluster under each of --schedulers. Can be "
            "repeated.",
        ),
    ] = None
    cluster: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="With --simulate: the servers, and the weights of users: an instance file. Can be repeated.",
        ),
    ] = None
    schedulers: Annotated[
        str,
        typer.Option(
            metavar="ID,...",
            autocompletion=completion.listed_simulated,
            help="With --simulate: schedulers with their memory, such as backfill, fairtree:half_life=7d. See: fairopt schedulers.",
        ),
    ] = ""
    until: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="With --simulate: stop each simulation at this time."),
    ] = None
    gangs: Gangs = False
    lenient: Lenient = False


@dataclass(frozen=True)
class Paper:
    """The table of means as a paper prints it: which columns, how many digits, which errors, compared with what, and under which names."""

    panel: ClassVar[str] = "The table, for a paper"

    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write a table: .tex (with booktabs), .md or .html for a paper, as 399 ± 12; .csv, .parquet or .xlsx for programs, "
            "with the error in a column of its own.",
        ),
        Written(),
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Columns of the table: tasks, min-share, efficiency, price-of-fairness, jain, envy, regret-level, regret-worst, seconds, "
            "use, or one resource.",
        ),
    ] = None
    digits: Annotated[
        int | None,
        typer.Option(
            "--mean-digits",
            metavar="N",
            min=1,
            max=15,
            help="Significant digits of each mean. Default: two digits of the error.",
        ),
    ] = None
    interval: Annotated[
        Literal["se", "sd", "ci95"],
        typer.Option(
            help="What ± is: the standard error, the standard deviation, or the 95 % confidence interval (Student's t).",
        ),
    ] = "se"
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Notion or schedule against which the others are measured: the mean difference to it, seed by seed, with its interval. "
            "With --simulate: the notion whose exact simulation is the reference; default: drfh.",
        ),
    ] = None
    rename: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=TEXT",
            help="What the table calls an entry, an instance or a measure. Can be repeated.",
        ),
    ] = None

    @property
    def asked(self) -> list[str]:
        """The options that ask for this table in the place of the one that is printed."""
        given = {
            "--columns": self.columns,
            "--mean-digits": self.digits,
            "--interval": self.interval if self.interval != "se" else None,
            "--reference": self.reference,
            "--rename": self.rename,
        }
        return [option for option, value in given.items() if value is not None]

    @property
    def measures(self) -> list[str] | None:
        """The columns that are asked for; None: all."""
        return None if self.columns is None else words(self.columns)

    @property
    def kind(self) -> Kind:
        """What kind of table --table writes."""
        return table_form(self.table, "--table", "html")

    @property
    def for_readers(self) -> bool:
        """Does --table hold text, and no numbers for programs?"""
        return self.table is not None and self.kind in _FOR_READERS

    def check(self, form: Form) -> None:
        """Refuse a table of an unknown kind, and options about one where there is none, or where it has all digits."""
        kind = self.kind
        if self.asked and form == "json" and self.table is None:
            raise typer.BadParameter("it is about a table, and --json is none; give --table FILE", param_hint=self.asked[0])
        of_numbers = ["--csv"] if form == "csv" else []
        of_numbers += [f".{kind}"] if self.table is not None and not self.for_readers else []
        if self.digits is not None and of_numbers:
            raise typer.BadParameter(f"{of_numbers[0]} has all digits; leave it out", param_hint="--mean-digits")

    def titles(self, known: Mapping[str, str]) -> dict[str, str]:
        """Return what the table calls entries: known titles, and those of --rename."""
        return {**known, **dict(_pair(text) for text in self.rename or [])}

    def of(self, frame: pd.DataFrame, titles: Mapping[str, str], measures: Sequence[str] | None = None) -> fo.StudyTable:
        """Return the table of the rows of a study; ``measures`` are its columns where --columns names none."""
        chosen = measures if self.measures is None else self.measures
        return fo.study_table(frame, chosen, digits=self.digits, interval=self.interval, reference=self.reference, titles=titles)


def _pair(text: str) -> tuple[str, str]:
    """Read NAME=TEXT; a name may hold "=" where it is a specification, so the last one counts.

    >>> _pair("drfh:best-fit:metric=l2=Best fit")
    ('drfh:best-fit:metric=l2', 'Best fit')
    """
    name, equals, title = text.rpartition("=")
    if not equals or not name:
        raise typer.BadParameter(f'"{text[:60]}" gives no name; give NAME=TEXT, as in "drfh:best-fit=Best fit"', param_hint="--rename")
    return name, title
