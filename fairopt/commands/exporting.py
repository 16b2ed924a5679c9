"""``fairopt export KIND``: an allocation as the configuration of a real scheduler. It is printed or written, and never run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.console import as_text, check_file, say, show, work
from fairopt.commands.options import Changes, File, Given, Guarantees, Json, QueueShare, with_rules
from fairopt.commands.outputs import Written, guarded
from fairopt.reporting.tables.exports import export_blocks
from fairopt.specs import read_notion

__all__ = ["app"]

app = typer.Typer(
    help="Write an allocation as limits or quotas of a real scheduler. Nothing is run.", no_args_is_help=True, add_completion=False
)


Notion = Annotated[
    str,
    typer.Option(
        metavar="ID", autocompletion=completion.notions, help="The exact allocation of this notion; options as in proportional:alpha=2."
    ),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout."), Written()]
_RESOURCE = "Name of a resource in the scheduler, such as gpu=nvidia.com/gpu. Can be repeated."
Resources = Annotated[list[str] | None, typer.Option("--resource-name", metavar="NAME=KEY", help=_RESOURCE)]
_UNIT = (
    "Unit of a resource of FILE, such as memory=MiB or cpu=millicores; default: what FILE or the name (RAM (GB)) says, else GiB and cores. "
    "Can be repeated."
)
Units = Annotated[list[str] | None, typer.Option("--unit", metavar="NAME=UNIT", help=_UNIT)]
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
Everything = Annotated[bool, typer.Option("--all", help="Show all users, however many there are.")]


def _example(text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return lambda command: app.command(epilog=f"Example: fairopt export {text}")(guarded(command))


@_example("slurm cluster.yaml --notion drfh --level account-user --headroom 1.1 -o limits.sh --undo undo.sh")
def slurm(
    file: File,
    notion: Notion = "drfh",
    allocation: Given = None,
    level: Annotated[
        Literal["account", "account-user", "account-partition"],
        typer.Option(help="What is limited: accounts, also their users, or users in each partition, which carries the placement."),
    ] = "account",
    headroom: Headroom = 1.0,
    as_: Annotated[
        Literal["tres", "billing"], typer.Option("--as", help="Limit every resource, or the dominant share of jobs by TRESBillingWeights.")
    ] = "tres",
    partition: Annotated[
        list[str] | None,
        typer.Option(metavar="ROW=NAME", help="Partition of a row of servers. Can be repeated; default: one for each row."),
    ] = None,
    user_of: Annotated[
        list[str] | None, typer.Option(metavar="ACCOUNT=USER", help="User of an account, if FILE does not say. Can be repeated.")
    ] = None,
    associations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="sacctmgr -P show assoc, or slurmrestd's answer: checks names, and lets undo restore these limits.",
        ),
    ] = None,
    resource: Resources = None,
    unit: Units = None,
    guarantees: Guarantees = None,
    queue_share: QueueShare = None,
    time_limit: TimeLimit = None,
    changes: Changes = None,
    output: Output = None,
    undo: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the script that takes the limits back."), Written()] = None,
    as_json: Json = False,
    everything: Everything = False,
) -> None:
    """Export limits of Slurm: GrpTRES of accounts, users and partitions, as a script of sacctmgr commands."""
    _run(
        _source(file, changes, notion, allocation, guarantees, queue_share, time_limit),
        lambda found: fo.export_slurm(
            found,
            level=level,
            headroom=headroom,
            as_=as_,
            partitions=_assigned(partition, "--partition", "ROW"),
            users=_assigned(user_of, "--user-of", "ACCOUNT"),
            associations=associations,
            resources=_assigned(resource, "--resource-name", "NAME"),
            units=_assigned(unit, "--unit", "NAME"),
        ),
        {"limits": output, "undo": undo},
        *(as_json, everything),
    )


@_example("kueue cluster.yaml --notion drfh --flavor 'gpu-1 +3=model=A100' -o queues.yaml")
def kueue(
    file: File,
    notion: Notion = "drfh",
    allocation: Given = None,
    headroom: Borrowed = None,
    flavor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROW=KEY=VALUE,...", help="Labels of the nodes of a row; rows of the same labels are one flavor. Can be repeated."
        ),
    ] = None,
    resource: Resources = None,
    unit: Units = None,
    guarantees: Guarantees = None,
    queue_share: QueueShare = None,
    time_limit: TimeLimit = None,
    changes: Changes = None,
    output: Output = None,
    as_json: Json = False,
    everything: Everything = False,
) -> None:
    """Export objects of Kueue: flavors from groups of servers, ClusterQueues and Cohorts with quotas, LocalQueues."""
    _run(
        _source(file, changes, notion, allocation, guarantees, queue_share, time_limit),
        lambda found: fo.export_kueue(
            found,
            headroom=headroom,
            flavors=_flavors(flavor),
            resources=_assigned(resource, "--resource-name", "NAME"),
            units=_assigned(unit, "--unit", "NAME"),
        ),
        {"queues": output},
        *(as_json, everything),
    )


@_example("resourcequota cluster.yaml --notion drfh --headroom 1.1 -o quotas.yaml")
def resourcequota(
    file: File,
    notion: Notion = "drfh",
    allocation: Given = None,
    headroom: Headroom = 1.0,
    resource: Resources = None,
    unit: Units = None,
    guarantees: Guarantees = None,
    queue_share: QueueShare = None,
    time_limit: TimeLimit = None,
    changes: Changes = None,
    output: Output = None,
    as_json: Json = False,
    everything: Everything = False,
) -> None:
    """Export a ResourceQuota for each namespace."""
    _run(
        _source(file, changes, notion, allocation, guarantees, queue_share, time_limit),
        lambda found: fo.export_resourcequota(
            found,
            headroom=headroom,
            resources=_assigned(resource, "--resource-name", "NAME"),
            units=_assigned(unit, "--unit", "NAME"),
        ),
        {"queues": output},
        *(as_json, everything),
    )


def _queues(system: str, what: str, example: str = "") -> None:
    """Add the command of a system whose queues need no options of their own."""

    @app.command(system, help=what, epilog=f"Example: fairopt export {system} cluster.yaml --notion drfh{example} -o queues.yaml")
    @guarded
    def command(
        file: File,
        notion: Notion = "drfh",
        allocation: Given = None,
        headroom: Borrowed = None,
        resource: Resources = None,
        unit: Units = None,
        guarantees: Guarantees = None,
        queue_share: QueueShare = None,
        time_limit: TimeLimit = None,
        changes: Changes = None,
        output: Output = None,
        as_json: Json = False,
        everything: Everything = False,
    ) -> None:
        _run(
            _source(file, changes, notion, allocation, guarantees, queue_share, time_limit),
            lambda found: getattr(fo, f"export_{system}")(
                found,
                headroom=headroom,
                resources=_assigned(resource, "--resource-name", "NAME"),
                units=_assigned(unit, "--unit", "NAME"),
            ),
            {"queues": output},
            *(as_json, everything),
        )


_queues("volcano", "Export queues of Volcano's capacity plugin: deserved, guarantee, capability.")
_queues("kai", "Export queues of KAI: quota, limit and weight over quota of GPU, CPU and memory.", " --headroom 2")
_queues("yunikorn", "Export queues of YuniKorn: guaranteed and max.")


@_example("yarn cluster.yaml --notion drfh --yarn-scheduler fair -o fair-scheduler.xml")
def yarn(
    file: File,
    notion: Notion = "drfh",
    allocation: Given = None,
    yarn_scheduler: Annotated[
        Literal["capacity", "fair"],
        typer.Option(
            help="Scheduler that reads the file: the Capacity Scheduler (capacity-scheduler.xml) or the Fair Scheduler (allocations)."
        ),
    ] = "capacity",
    headroom: Borrowed = None,
    node_label: Annotated[
        list[str] | None, typer.Option(metavar="ROW=LABEL", help="Node label of a row of servers (Capacity Scheduler). Can be repeated.")
    ] = None,
    resource: Resources = None,
    unit: Units = None,
    guarantees: Guarantees = None,
    queue_share: QueueShare = None,
    time_limit: TimeLimit = None,
    changes: Changes = None,
    output: Output = None,
    as_json: Json = False,
    everything: Everything = False,
) -> None:
    """Export queues of YARN: absolute capacities of the Capacity Scheduler, or minima and weights of the Fair Scheduler."""
    _run(
        _source(file, changes, notion, allocation, guarantees, queue_share, time_limit),
        lambda found: fo.export_yarn(
            found,
            scheduler=yarn_scheduler,
            headroom=headroom,
            labels=_assigned(node_label, "--node-label", "ROW"),
            resources=_assigned(resource, "--resource-name", "NAME"),
            units=_assigned(unit, "--unit", "NAME"),
        ),
        {"queues": output},
        *(as_json, everything),
    )


# What they share -----------------------------------------------------------------------------------------------------------------


def _source(
    file: Path,
    changes: list[str] | None,
    notion: str,
    allocation: Path | None,
    guarantees: str | None,
    queue_share: str | None,
    time_limit: float | None,
) -> Callable[[], fo.Allocation]:
    """Return a function that reads the file, and solves it or reads the allocation."""

    def make() -> fo.Allocation:
        instance = fo.load(file, changes=changes or ())
        if allocation is not None:
            from fairopt.analysis.rerun import given
            from fairopt.formats.allocations import read

            return given(instance, read(allocation, instance), "rdm", allocation.stem)
        _, chosen = read_notion(with_rules([notion], guarantees, queue_share)[0])
        return fo.solve(instance, chosen, time_limit=time_limit)

    return make


def _assigned(given: list[str] | None, option: str, what: str) -> dict[str, str]:
    """Read options of the form NAME=VALUE."""
    pairs: dict[str, str] = {}
    for text in given or []:
        name, equals, value = text.rpartition("=")
        if not (equals and name and value):
            raise typer.BadParameter(f'"{text}" is not {what}=VALUE', param_hint=option)
        if name in pairs:
            raise typer.BadParameter(f'"{name}" is given twice; give each {what} once', param_hint=option)
        pairs[name] = value
    return pairs


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
    outputs: dict[str, Path | None],
    as_json: bool,
    everything: bool,
) -> None:
    """Solve, export, write the files or print the first, and say what must be said."""
    paths = {what: path for what, path in outputs.items() if path is not None}
    for what, path in paths.items():
        check_file(path, "--output" if what == next(iter(outputs)) else f"--{what}")
    found = work("exporting the allocation", lambda: export(source()))
    found.write(paths, force=True)
    if as_json:
        typer.echo(as_text(found.to_dict()), nl=False)
        return
    if next(iter(outputs)) not in paths:
        typer.echo(found.text, nl=False)
        for note in found.notes:
            say("note", note)
        return
    show(lambda width: export_blocks(found, everything=everything))
    for path in paths.values():
        typer.echo(f"Wrote {path}")
