"""``fairopt import KIND``: an instance from the exports of a cluster, and a summary of what was read and what was left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

import fairopt as fo
from fairopt.commands.console import as_text, check_instance, deliver, show, table_form, work
from fairopt.commands.options import Json, read_period
from fairopt.commands.outputs import Written, guarded
from fairopt.formats.results import rendered
from fairopt.reporting.tables.imports import import_blocks

__all__ = ["app"]

app = typer.Typer(help="Make an instance from the exports of a real cluster.", no_args_is_help=True, add_completion=False)


Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the instance: .yaml, .json, .xlsx or a folder."),
    Written(tables=True),
]
Current = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Also write the allocation that runs now, for --allocation of compare and audit: .csv, .parquet or .xlsx."
    ),
    Written(),
]
Weights = Annotated[
    list[str] | None, typer.Option("--weight", metavar="OWNER=W", help="Weight of an owner, or of a queue. Can be repeated.")
]
Mode = Literal["shapes", "mean"]
_MODE = (
    "shapes (exact): each owner is a queue with a user for each shape of task. mean (approximate): each owner is a user with its mean task."
)
Demand = Annotated[Mode, typer.Option("--demand", help=_MODE)]
Lenient = Annotated[bool, typer.Option("--lenient", help="Leave out bad records, and count them.")]
Everything = Annotated[bool, typer.Option("--all", help="Show all owners, however many there are.")]


def _example(text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return lambda command: app.command(epilog=f"Example: fairopt import {text}")(guarded(command))


@_example("kubernetes --nodes nodes.json --pods pods.json --queues queues.yaml -o cluster.yaml --current held.csv")
def kubernetes(
    nodes: Annotated[Path, typer.Option(metavar="FILE", help="kubectl get nodes -o json")],
    pods: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="kubectl get pods -A -o json. Can be repeated.")] = None,
    queues: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Queues of Kueue, Volcano or KAI, and ResourceQuotas: YAML or JSON. Can be repeated."),
    ] = None,
    owners: Annotated[str, typer.Option(metavar="WORD", help="Owners of pods: namespace, label:KEY or priority.")] = "namespace",
    daemonsets: Annotated[
        Literal["reserve", "tasks"], typer.Option(help="Subtract DaemonSet and static pods from their nodes, or treat them as tasks.")
    ] = "reserve",
    weight: Weights = None,
    demand: Demand = "shapes",
    lenient: Lenient = False,
    output: Output = None,
    current: Current = None,
    as_json: Json = False,
    everything: Everything = False,
) -> None:
    """Import a Kubernetes cluster: allocatable, requests, taints, selectors and required affinity; queues and quotas."""
    _run(
        lambda: fo.import_kubernetes(
            nodes,
            pods or (),
            queues=queues or (),
            users=owners,
            daemonsets=daemonsets,
            weights=_weights(weight),
            demand=demand,
            lenient=lenient,
        ),
        *(output, current, as_json, everything),
    )


@_example("slurm --nodes nodes.txt --jobs jobs.json --associations associations.txt -o cluster.yaml --current held.csv")
def slurm(
    nodes: Annotated[Path, typer.Option(metavar="FILE", help="scontrol show nodes (text, or --json), or sinfo --json")],
    jobs: Annotated[Path, typer.Option(metavar="FILE", help="squeue --json")],
    associations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="sacctmgr -P show assoc tree (accounts, shares, GrpTRES), sshare -a -l -P, or slurmrestd's answer."
        ),
    ] = None,
    partitions: Annotated[Path | None, typer.Option(metavar="FILE", help="scontrol show partitions (text, or --json)")] = None,
    sacct: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="sacct -a -X -P with the columns JobID, Account, User, Partition, Start, End, AllocTRES, ReqTRES, NodeList, Constraints: "
            "what is held is then the average over --window.",
        ),
    ] = None,
    window: Annotated[str | None, typer.Option(metavar="START/END", help="Local times, such as 2026-11-22T15:00/2026-11-22T16:00.")] = None,
    owners: Annotated[str, typer.Option(metavar="WORD", help="Owners of jobs: account or user.")] = "account",
    ignore_partitions: Annotated[bool, typer.Option("--ignore-partitions", help="Let jobs run in every partition.")] = False,
    weight: Weights = None,
    demand: Demand = "shapes",
    lenient: Lenient = False,
    output: Output = None,
    current: Current = None,
    as_json: Json = False,
    everything: Everything = False,
) -> None:
    """Import a Slurm cluster: TRES, generic resources, partitions, features; the tree of accounts, shares and limits."""
    _run(
        lambda: fo.import_slurm(
            nodes,
            jobs,
            associations,
            partitions,
            sacct=sacct,
            window=None if window is None else read_period(window),
            users=owners,
            ignore_partitions=ignore_partitions,
            weights=_weights(weight),
            demand=demand,
            lenient=lenient,
        ),
        *(output, current, as_json, everything),
    )


@_example("yarn --nodes nodes.json --apps apps.json --queues scheduler.json -o cluster.yaml")
def yarn(
    nodes: Annotated[Path, typer.Option(metavar="FILE", help="Answer of the ResourceManager to /ws/v1/cluster/nodes")],
    apps: Annotated[Path, typer.Option(metavar="FILE", help="Answer of the ResourceManager to /ws/v1/cluster/apps")],
    queues: Annotated[Path | None, typer.Option(metavar="FILE", help="Answer of the ResourceManager to /ws/v1/cluster/scheduler")] = None,
    owners: Annotated[str, typer.Option(metavar="WORD", help="Owners of applications: queue or user.")] = "queue",
    weight: Weights = None,
    demand: Demand = "shapes",
    lenient: Lenient = False,
    output: Output = None,
    current: Current = None,
    as_json: Json = False,
    everything: Everything = False,
) -> None:
    """Import a YARN cluster: containers of applications, node labels, queues."""
    _run(
        lambda: fo.import_yarn(nodes, apps, queues, users=owners, weights=_weights(weight), demand=demand, lenient=lenient),
        *(output, current, as_json, everything),
    )


@_example(
    "ray --nodes nodes.json --tasks tasks.json --actors actors.json --placement-groups groups.json -o cluster.yaml --current held.csv"
)
def ray(
    nodes: Annotated[Path, typer.Option(metavar="FILE", help="ray list nodes --format json --detail --limit 10000")],
    tasks: Annotated[Path | None, typer.Option(metavar="FILE", help="The same command for tasks.")] = None,
    actors: Annotated[Path | None, typer.Option(metavar="FILE", help="The same command for actors.")] = None,
    placement_groups: Annotated[Path | None, typer.Option(metavar="FILE", help="The same command for placement-groups.")] = None,
    jobs: Annotated[Path | None, typer.Option(metavar="FILE", help="The same command for jobs: their metadata.")] = None,
    owners: Annotated[str, typer.Option(metavar="WORD", help="Owners: namespace, job or metadata:KEY.")] = "namespace",
    weight: Weights = None,
    demand: Demand = "shapes",
    lenient: Lenient = False,
    output: Output = None,
    current: Current = None,
    as_json: Json = False,
    everything: Everything = False,
) -> None:
    """Import a Ray cluster: logical resources, labels, tasks, actors and placement groups."""
    _run(
        lambda: fo.import_ray(
            nodes, tasks, actors, placement_groups, jobs, users=owners, weights=_weights(weight), demand=demand, lenient=lenient
        ),
        *(output, current, as_json, everything),
    )


@_example("openb --nodes openb_nodes.csv.gz --pods openb_pods.csv.gz --owners class -o cluster.yaml")
def openb(
    nodes: Annotated[Path, typer.Option(metavar="FILE", help="Nodes, one by one or by configuration.")],
    pods: Annotated[Path, typer.Option(metavar="FILE", help="Pods, one by one or by class.")],
    owners: Annotated[str, typer.Option(metavar="WORD", help="Owners of pods: class or qos.")] = "class",
    at: Annotated[float | None, typer.Option(metavar="SECONDS", help="Only pods that existed at this time. Default: all.")] = None,
    weight: Weights = None,
    demand: Demand = "shapes",
    lenient: Lenient = False,
    output: Output = None,
    current: Current = None,
    as_json: Json = False,
    everything: Everything = False,
) -> None:
    """Import the Alibaba GPU cluster of 2023. Parts of different GPUs add up, so the optimum is a relaxation."""
    _run(
        lambda: fo.import_openb(nodes, pods, users=owners, at=at, weights=_weights(weight), demand=demand, lenient=lenient),
        *(output, current, as_json, everything),
    )


@_example("google2011 --machines machine_configs.csv --tasks task_groups.csv.gz -o cluster.yaml")
def google2011(
    machines: Annotated[Path, typer.Option(metavar="FILE", help="Configurations with their counts, or events.")],
    tasks: Annotated[Path, typer.Option(metavar="FILE", help="Rows of identical tasks: user, cpu, mem, n_tasks.")],
    at: Annotated[float, typer.Option(metavar="SECONDS", help="If the machines are a table of events: take them at this time.")] = 0.0,
    weight: Weights = None,
    demand: Demand = "shapes",
    lenient: Lenient = False,
    output: Output = None,
    current: Current = None,
    as_json: Json = False,
    everything: Everything = False,
) -> None:
    """Import the Google cluster of 2011 from tables of machines and tasks."""
    _run(
        lambda: fo.import_google2011(machines, tasks, at=at, weights=_weights(weight), demand=demand, lenient=lenient),
        *(output, current, as_json, everything),
    )


@_example("swf log.swf --at 864000 -o cluster.yaml --current held.csv")
def swf(
    log: Annotated[Path, typer.Argument(metavar="FILE", help="A log in the Standard Workload Format; .gz too.")],
    at: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Moment to import. Default: when most processors are requested.")
    ] = None,
    owners: Annotated[str, typer.Option(metavar="WORD", help="Owners of jobs: user, group or queue.")] = "user",
    node_count: Annotated[int | None, typer.Option(metavar="N", help="Number of nodes, instead of MaxNodes in the log.")] = None,
    processors: Annotated[int | None, typer.Option(metavar="N", help="Number of processors, instead of MaxProcs in the log.")] = None,
    memory: Annotated[float | None, typer.Option(metavar="GIB", help="Memory of one node; without it, memory is not a resource.")] = None,
    weight: Weights = None,
    demand: Demand = "shapes",
    lenient: Lenient = False,
    output: Output = None,
    current: Current = None,
    as_json: Json = False,
    everything: Everything = False,
) -> None:
    """Import a moment of a log in the Standard Workload Format: a task is one processor, which is a relaxation."""
    _run(
        lambda: fo.import_swf(
            log,
            at=at,
            users=owners,
            nodes=node_count,
            processors=processors,
            memory=memory,
            weights=_weights(weight),
            demand=demand,
            lenient=lenient,
        ),
        *(output, current, as_json, everything),
    )


@_example("gavel throughputs.csv --gpus k80=36 --gpus v100=36 --jobs jobs.csv -o cluster.yaml")
def gavel(
    throughputs: Annotated[Path, typer.Argument(metavar="FILE", help="Columns job_type, scale, worker, thr (steps per second).")],
    gpus: Annotated[list[str], typer.Option(metavar="KIND=N", help="Number of accelerators of a kind (worker). Repeat for each kind.")],
    jobs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Columns job_type, scale_factor, priority_weight; default: one job of each.")
    ] = None,
    weight: Weights = None,
    lenient: Lenient = False,
    output: Output = None,
    as_json: Json = False,
    everything: Everything = False,
) -> None:
    """Import jobs with measured throughputs on each kind of accelerator: throughput becomes rates, the scale of a job its parallelism."""
    numbers = {kind: int(number) if number.is_integer() else number for kind, number in _assigned(gpus, "KIND", "--gpus", "v100=8").items()}
    _run(
        lambda: fo.import_gavel(throughputs, numbers, jobs, weights=_weights(weight), lenient=lenient),  # type: ignore[arg-type]
        *(output, None, as_json, everything),
    )


def _weights(given: list[str] | None) -> dict[str, float]:
    return _assigned(given or [], "OWNER", "--weight", "batch=2")


def _assigned(given: list[str], what: str, option: str, example: str) -> dict[str, float]:
    """Read options of the form NAME=NUMBER."""
    numbers: dict[str, float] = {}
    for text in given:
        name, equals, number = text.rpartition("=")
        try:
            if not (equals and name):
                raise ValueError
            value = float(number)
        except ValueError:
            raise typer.BadParameter(f'"{text}" is not {what}=NUMBER, such as {example}', param_hint=option) from None
        if name in numbers:
            raise typer.BadParameter(f'"{name}" is given twice; give each {what} once', param_hint=option)
        numbers[name] = value
    return numbers


def _run(read: Callable[[], fo.Import], output: Path | None, current: Path | None, as_json: bool, everything: bool) -> None:
    """Import, write the files, and print a summary."""
    check_instance(output, "--output")
    kind = table_form(current, "--current")
    imported = work("reading the exports", read)
    if current is not None and imported.current is None:
        raise fo.InvalidInstance(f"{current} cannot be written: the exports do not say where tasks run; leave --current out")
    if output is not None:
        work(f"writing {output}", lambda: fo.save(imported.instance, output))
    if current is not None:
        held = imported.current_csv() if kind == "csv" else rendered(imported.current_frame(), kind, str(current))  # type: ignore[arg-type]
        deliver(held or "", current)
    if as_json:
        typer.echo(as_text(imported.to_dict()), nl=False)
    else:
        show(lambda width: import_blocks(imported, everything=everything))
        for path in (output, current):
            if path is not None:
                typer.echo(f"Wrote {path}")
