"""``fairopt export KIND``: an allocation as the configuration of a real scheduler. It is printed or written, and never run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.command import Command
from fairopt.commands.console import say
from fairopt.commands.declared import NEEDED, Option, arguments, assigned, declared, file
from fairopt.commands.delivering import as_text, show
from fairopt.commands.forms import check_file
from fairopt.commands.group import Group
from fairopt.commands.grouped import options_of
from fairopt.commands.options import (
    Changes,
    File,
    Given,
    Json,
    Rules,
    Sharing,
    read_instance,
)
from fairopt.commands.outputs import Written, forced, guarded
from fairopt.commands.shares import Shares
from fairopt.commands.working import work
from fairopt.reporting import tables
from fairopt.specs import read_notion

__all__ = ["app"]

app = typer.Typer(
    cls=Group,
    help="Write an allocation as limits or quotas of a real scheduler. Nothing is run.",
    no_args_is_help=True,
    add_completion=False,
)


Notion = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        autocompletion=completion.notions,
        help="The exact allocation of this notion; options as in proportional:alpha=2. Default: drfh.",
    ),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout."), Written()]
_RESOURCE = "Name of a resource in the scheduler, such as gpu=nvidia.com/gpu. Can be repeated."
_UNIT = (
    "Unit of a resource of FILE, such as memory=MiB or cpu=millicores; default: what FILE or the name (RAM (GB)) says, else GiB and cores. "
    "Can be repeated."
)
Headroom = Annotated[float, typer.Option(metavar="FACTOR", help="Upper limit: the exact amount times this factor, rounded up.")]
Borrowed = Annotated[
    float | None,
    typer.Option(
        "--headroom",
        metavar="FACTOR",
        help="Upper limit: the exact amount times this factor; 1: no borrowing. Default: none, idle capacity may be borrowed.",
    ),
]
TimeLimit = Annotated[float | None, typer.Option(metavar="SECONDS", help="Time limit of the exact allocation.")]
PlacementTimeLimit = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="Search this long for whole tasks and their placement on few rows and servers. "
        "Default: a number of steps, with the same answer on every machine.",
    ),
]
Everything = Annotated[bool, typer.Option("--all", help="Show all users, however many there are.")]


# The exporters -------------------------------------------------------------------------------------------------------------------


def _pairs(metavar: str, help: str, option: str, parameter: str) -> Option:
    """Return an option that takes NAME=VALUE, and can be repeated."""
    kind = Annotated[list[str] | None, typer.Option(option, metavar=metavar, help=help)]
    return Option(kind, None, parameter, lambda given: assigned(given, option, metavar.partition("=")[0]))


_HEADROOM = Option(Headroom, 1.0)
_BORROWED = Option(Borrowed)
_FIRST = {"file": Option(File, NEEDED), "notion": Option(Notion), "allocation": Option(Given)}
_NAMED = {
    "resource_name": _pairs("NAME=KEY", _RESOURCE, "--resource-name", "resources"),
    "unit": _pairs("NAME=UNIT", _UNIT, "--unit", "units"),
}
_PLACED = {"placement_time_limit": Option(PlacementTimeLimit)}
_LAST = {
    "sharing": Option(Sharing),
    **{name: Option(kind) for name, kind in options_of(Shares).items()},
    "time_limit": Option(TimeLimit),
    "changes": Option(Changes),
    "rules": Option(Rules),
    "output": Option(Output),
}
_ASKED = ("notion", "sharing", *options_of(Shares), "time_limit")  # what an allocation of one's own does not take
_PRINTED = {"as_json": Option(Json, False), "everything": Option(Everything, False)}


def _exporter(
    system: str, does: str, example: str, text: str = "queues", written: Mapping[str, Option] | None = None, **own: Option
) -> None:
    """Add the command of ``fo.export_SYSTEM``: its help, an example, the text of the export that --output takes, options for its others.

    Its own options follow.
    """
    taken = own | _NAMED | _PLACED

    def run(given: dict[str, Any]) -> None:
        values = arguments(taken, given)
        source = _source(**{name: given[name] for name in (*_ASKED, "file", "changes", "rules", "allocation")})
        _run(
            source,
            lambda found: getattr(fo, f"export_{system}")(found, **values),
            (text, given["output"]),
            {name: given[name] for name in written or ()},
            given["as_json"],
            given["everything"],
        )

    options = _FIRST | taken | _LAST | dict(written or {}) | _PRINTED
    app.command(system, cls=Command, epilog=f"Example: fairopt export {system} cluster.yaml --notion drfh {example}")(
        guarded(declared(run, does, options))
    )


_exporter(
    "slurm",
    "Export limits of Slurm: GrpTRES of accounts, users and partitions, as a script of sacctmgr commands.",
    "--level account-user --headroom 1.1 -o limits.sh --undo undo.sh",
    text="limits",
    written={
        "undo": Option(
            Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the script that takes the limits back."), Written()]
        )
    },
    level=Option(
        Annotated[
            Literal["account", "account-user", "account-partition", "qos"],
            typer.Option(
                help="What is limited: accounts, also their users, users in each partition, which carries the placement; accounts and QOS."
            ),
        ],
        "account",
    ),
    headroom=_HEADROOM,
    as_=Option(
        Annotated[
            Literal["tres", "billing"],
            typer.Option("--as", help="Limit every resource, or the dominant share of jobs by TRESBillingWeights."),
        ],
        "tres",
    ),
    partition=_pairs("ROW=NAME", "Partition of a row of servers. Can be repeated; default: one for each row.", "--partition", "partitions"),
    user_of=_pairs("ACCOUNT=USER", "User of an account, if FILE does not say. Can be repeated.", "--user-of", "users"),
    associations=file("sacctmgr -P show assoc, or slurmrestd's answer: checks names, and lets undo restore these limits."),
    qos=file("With --level qos: sacctmgr -P show qos, to check names and let undo restore these limits."),
)
_exporter(
    "kueue",
    "Export objects of Kueue: flavors from groups of servers, ClusterQueues and Cohorts with quotas, LocalQueues.",
    "--flavor 'gpu-1 +3=model=A100' -o queues.yaml",
    headroom=_BORROWED,
    flavor=Option(
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="ROW=KEY=VALUE,...", help="Labels of the nodes of a row; rows of the same labels are one flavor. Can be repeated."
            ),
        ],
        parameter="flavors",
        read=lambda given: _flavors(given),
    ),
)
_exporter("resourcequota", "Export a ResourceQuota for each namespace.", "--headroom 1.1 -o quotas.yaml", headroom=_HEADROOM)
_exporter("volcano", "Export queues of Volcano's capacity plugin: deserved, guarantee, capability.", "-o queues.yaml", headroom=_BORROWED)
_exporter(
    "kai",
    "Export queues of KAI: quota, limit and weight over quota of GPU, CPU and memory.",
    "--headroom 2 -o queues.yaml",
    headroom=_BORROWED,
)
_exporter("yunikorn", "Export queues of YuniKorn: guaranteed and max.", "-o queues.yaml", headroom=_BORROWED)
_exporter(
    "yarn",
    "Export queues of YARN: absolute capacities of the Capacity Scheduler, or minima and weights of the Fair Scheduler.",
    "--yarn-scheduler fair -o fair-scheduler.xml",
    yarn_scheduler=Option(
        Annotated[
            Literal["capacity", "fair"],
            typer.Option(
                help="Scheduler that reads the file: the Capacity Scheduler (capacity-scheduler.xml) or the Fair Scheduler (allocations)."
            ),
        ],
        "capacity",
        "scheduler",
    ),
    headroom=_BORROWED,
    node_label=_pairs("ROW=LABEL", "Node label of a row of servers (Capacity Scheduler). Can be repeated.", "--node-label", "labels"),
)


# What they share -----------------------------------------------------------------------------------------------------------------


def _source(
    file: Path, changes: list[str] | None, rules: list[str] | None, allocation: Path | None, **asked: Any
) -> Callable[[], fo.Allocation]:
    """Return a function that reads the file, and solves it or reads the allocation."""
    if allocation is not None:
        for name, value in asked.items():
            if value is not None:
                raise typer.BadParameter(
                    "it is about an allocation that is computed, and --allocation gives yours; leave one of the two out",
                    param_hint=f"--{name.replace('_', '-')}",
                )

    def make() -> fo.Allocation:
        instance = read_instance(file, changes, rules)
        if allocation is not None:
            from fairopt.analysis.rerun import given
            from fairopt.formats.allocations import read

            return given(instance, read(allocation, instance), "rdm", allocation.stem)
        shares = Shares(**{name: asked[name] for name in options_of(Shares)})
        _, chosen = read_notion(shares.of(asked["notion"] or "drfh"))
        return fo.solve(instance, chosen, sharing=asked["sharing"], time_limit=asked["time_limit"])

    return make


def _flavors(given: list[str] | None) -> dict[str, dict[str, str]]:
    """Read options of the form ROW=KEY=VALUE,KEY=VALUE."""
    flavors: dict[str, dict[str, str]] = {}
    for text in given or []:
        parts = [part.split("=") for part in text.split(",")]
        row, key = ("=".join(parts[0][:-2]), parts[0][-2]) if len(parts[0]) >= 3 else ("", "")
        parts[0] = [key, parts[0][-1]]
        if not row or any(len(part) != 2 or not all(part) for part in parts):
            raise typer.BadParameter(f'"{text}" is not ROW=KEY=VALUE, such as gpu-1=model=A100', param_hint="--flavor")
        flavors[row] = {part[0]: part[1] for part in parts}
    return flavors


def _run(
    source: Callable[[], fo.Allocation],
    export: Callable[[fo.Allocation], fo.Export],
    output: tuple[str, Path | None],
    others: Mapping[str, Path | None],
    as_json: bool,
    everything: bool,
) -> None:
    """Solve, export, write the files, and say what must be said. Without --output, its text is printed.

    ``output`` and ``others`` are texts of the export, and where they go: that of --output, and of options with the names of the texts.
    """
    check_file(output[1], "--output")
    for text, path in others.items():
        check_file(path, f"--{text}")
    paths = {text: path for text, path in (output, *others.items()) if path is not None}
    found = work("exporting the allocation", lambda: export(source()))
    if found.less and not forced():
        raise fo.InvalidInstance(f"{found.less[0]}; nothing is written: limit users or queues instead, or add --force")
    for sentence in found.less:
        say("warning", sentence)
    found.write(paths, force=True)
    if as_json:
        typer.echo(as_text(found.to_dict()), nl=False)
        return
    if output[1] is None:
        typer.echo(found.text, nl=False)
        for note in found.notes:
            say("note", note)
        return
    show(lambda width: tables.export_blocks(found, everything=everything))
    for path in paths.values():
        typer.echo(f"Wrote {path}")
