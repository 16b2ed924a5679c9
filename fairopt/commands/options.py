"""Arguments and options that several commands share, and the files that options name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.outputs import Written
from fairopt.commands.working import work
from fairopt.reporting import tables

if TYPE_CHECKING:
    from fairopt.instance import FloatArray
    from fairopt.instance.fractions import ExactArray

__all__ = [
    "EFFORT",
    "Changes",
    "ClusterChanges",
    "ClusterRules",
    "Csv",
    "Exact",
    "File",
    "Given",
    "GivenAllocations",
    "Json",
    "JsonOutput",
    "Notions",
    "Output",
    "Plot",
    "PlotEnvy",
    "Resume",
    "Rules",
    "Schedules",
    "Sharing",
    "ShownUsers",
    "at_least_one",
    "by_name",
    "change",
    "read_instance",
    "read_period",
    "read_preference",
    "read_utility",
    "words",
]

EFFORT = "Search budget: misreports (strategy-proofness) and removed users (population monotonicity) to try."
File = Annotated[
    Path, typer.Argument(metavar="FILE", help="A .yaml, .json, .xlsx or .ods file, or a folder with servers.csv and users.csv.")
]


def change(help: str, name: str = "--set") -> Any:
    """Return an option for changes of an instance, each by names."""
    return typer.Option(name, metavar="PATH=VALUE", autocompletion=completion.changes, help=help)


_AS_IN = "as in users.vision.weight=3, servers.new.count+=2 or queues.lab.limit.gpu=8"
Changes = Annotated[list[str] | None, change(f"Run on a copy of FILE with this change, {_AS_IN}. Can be repeated.")]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        metavar="TEXT",
        help="A condition on tasks beside those of FILE, as in \"x\\['lab/alice'] >= 2 * x\\[course]\". Can be repeated.",
    ),
]
ClusterRules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        metavar="TEXT",
        help='A limit on tasks beside those of the cluster of --cluster, as in "x\\[alice] + 2 * x\\[bob] <= 8". Can be repeated.',
    ),
]
ClusterChanges = Annotated[
    list[str] | None, change(f"Run on a copy of the cluster of --cluster with this change, {_AS_IN}. Can be repeated.")
]
Notions = Annotated[
    str,
    typer.Option(
        metavar="ID,...",
        autocompletion=completion.listed_notions,
        help="Exact allocations to compute; options as in proportional:alpha=2, your own as mine.py:PowerShare. See: fairopt notions.",
    ),
]
Schedules = Annotated[
    str,
    typer.Option(
        metavar="A:B,C:D",
        autocompletion=completion.listed_schedules,
        help="Greedy schedules CRITERION:PLACEMENT; options as in drfh:best-fit:metric=l2, your own placement as drfh:mine.py:emptiest, "
        "your own scheduler as mine.py:in_turn. Baselines NOTION:BASELINE, as drfh:pop:parts=4. See: fairopt placements.",
    ),
]
_OWN = "columns user, server, tasks, or a column user and a column for each server"
Given = Annotated[Path | None, typer.Option("--allocation", metavar="FILE", help=f"Take your own allocation instead: {_OWN}.")]
GivenAllocations = Annotated[
    list[Path] | None, typer.Option("--allocation", metavar="FILE", help=f"Your own allocation: {_OWN}. Can be repeated.")
]
Exact = Annotated[
    bool,
    typer.Option("--exact", help="Compute in fractions, without tolerances. Numbers of FILE count as written, also fractions such as 1/3."),
]
Sharing = Annotated[
    Literal["rdm", "tdm"] | None,
    typer.Option("--sharing", help="rdm divides the resources of a server, tdm its time. Default: tdm if FILE gives rates, otherwise rdm."),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="FOLDER",
        help="Save progress in this folder from time to time. If the run is stopped, the same command continues from there.",
    ),
    Written(own=True),
]


def at_least_one(value: int | None) -> int | None:
    """Refuse a number of rows or repetitions below 1; a callback of options."""
    if value is not None and value < 1:
        raise typer.BadParameter("give a whole number >= 1")
    return value


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each user.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write to this file instead of stdout, by its ending: .json, .csv, .parquet, .xlsx, .md, .tex or .txt.",
    ),
    Written(),
]
JsonOutput = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to this file instead of stdout; its ending (.json, .txt) chooses the format."
    ),
    Written(),
]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the allocation: .svg, .png or .pdf."), Written()]
PlotEnvy = Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the envy matrix (in tasks)."), Written()]


def read_instance(path: Path, changes: Sequence[str] | None, rules: Sequence[str] | None = None) -> fo.Instance:
    """Read the instance of a file or folder, with the changes of ``--set`` and the rules of ``--rule``."""
    instance = work(f"reading {path}", lambda: fo.load(path, changes=changes or ()))
    return instance.replace(rules=[*instance.rules, *rules]) if rules else instance


def by_name(paths: Sequence[Path] | None) -> dict[str, Path]:
    """Return files by the names that tables and pictures show: without folder and ending, or the path if an earlier file has that name.

    >>> by_name([Path("a/held.csv"), Path("b/held.csv")])
    {'held': PosixPath('a/held.csv'), 'b/held.csv': PosixPath('b/held.csv')}
    """
    found: dict[str, Path] = {}
    for path in paths or ():
        found[path.stem if path.stem not in found else str(path)] = path
    return found


def read_period(text: str) -> tuple[str, str]:
    """Read the START/END of ``--window``, an interval of ISO 8601.

    >>> read_period("2026-05-01/2026-06-01T12:00")
    ('2026-05-01', '2026-06-01T12:00')
    """
    start, slash, end = text.partition("/")
    if not slash or not start.strip() or not end.strip():
        raise typer.BadParameter(f'"{text[:60]}" is no period; give START/END, as in 2026-05-01/2026-06-01', param_hint="--window")
    return start.strip(), end.strip()


def words(text: str) -> list[str]:
    """Return the words of a comma-separated list.

    >>> words("drfh, tsf,")
    ['drfh', 'tsf']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def read_utility(path: Path, instance: fo.Instance) -> FloatArray | ExactArray:
    """Read u[n,i], (users, servers): a column "user", then a column per server. Labels must match exactly, in any order.

    It is in fractions where a cell is, such as 1/3.
    """
    from fairopt.formats.tables import MATRIX
    from fairopt.instance.fractions import as_written
    from fairopt.tables import aligned, read

    rows = work(f"reading {path}", lambda: aligned(read(path, MATRIX), instance.users, instance.servers))
    return as_written([[row[server] for server in instance.servers] for row in rows])


def read_preference(path: Path, instance: fo.Instance) -> FloatArray | ExactArray:
    """Read a weight on each user's tasks, (users,): columns user and weight."""
    from fairopt.formats.tables import MATRIX
    from fairopt.instance.fractions import as_written
    from fairopt.tables import aligned, read

    return as_written([[row["weight"]] for row in aligned(read(path, MATRIX), instance.users, ["weight"])]).ravel()


@dataclass(frozen=True)
class ShownUsers:
    """Which users are shown as text, and in which order."""

    everything: Annotated[bool, typer.Option("--all", help="Show all users and servers, however many there are.")] = False
    shown: Annotated[
        list[str] | None,
        typer.Option("--show", metavar="NAME", autocompletion=completion.users, help="Show this user only. Can be repeated."),
    ] = None
    sort: Annotated[
        Literal["tasks", "share", "weight", "-tasks", "-share", "-weight", "name"] | None,
        typer.Option("--sort", help="Order of the users that are shown: the largest first, with - the smallest first."),
    ] = None
    top: Annotated[int | None, typer.Option("--top", metavar="N", callback=at_least_one, help="Show at most N users.")] = None

    def choice(self, form: str) -> tables.Choice:
        """Return which users are shown. A table or JSON has all users in the order of the file, so a choice is refused there."""
        given = [option for option, value in (("--show", self.shown), ("--sort", self.sort), ("--top", self.top)) if value]
        if given and form != "text":
            raise typer.BadParameter(
                f"it chooses which users are shown as text, and .{form} has all users; leave it out", param_hint=given[0]
            )
        return tables.Choice(tuple(self.shown or ()), self.sort or "", self.top)
