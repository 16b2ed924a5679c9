"""``fairopt import KIND``: an instance from the exports of a cluster, and a summary of what was read and what was left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import fairopt as fo
from fairopt.commands.command import Command
from fairopt.commands.declared import NEEDED, Option, arguments, assigned, declared, file, files
from fairopt.commands.delivering import as_text, deliver, show
from fairopt.commands.forms import check_instance, table_form
from fairopt.commands.group import Group
from fairopt.commands.options import Json, read_period
from fairopt.commands.outputs import Written, guarded
from fairopt.commands.said import WRITTEN
from fairopt.commands.working import work
from fairopt.formats.results import rendered
from fairopt.reporting import tables

__all__ = ["app"]

app = typer.Typer(
    cls=Group,
    help="Make an instance from the exports of a real cluster.",
    no_args_is_help=True,
    add_completion=False,
)


Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the instance: .yaml, .json, .xlsx or a folder."),
    Written(tables=True),
]
Current = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Also write the allocation that runs now, for --allocation of plan, compare and audit: .csv, .parquet or .xlsx.",
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

# The importers -------------------------------------------------------------------------------------------------------------------


def _owners(help: str, default: str) -> Option:
    return Option(Annotated[str, typer.Option(metavar="WORD", help=help)], default, "users")


def _number(type: Any, metavar: str, help: str, default: Any = None, parameter: str = "") -> Option:
    return Option(Annotated[type, typer.Option(metavar=metavar, help=help)], default, parameter)


def _log(help: str) -> Option:
    return Option(Annotated[Path, typer.Argument(metavar="FILE", help=help)], NEEDED)


def _of_kinds(given: list[str]) -> dict[str, float]:
    numbers = assigned(given, "--gpus", "KIND", "v100=8")
    return {kind: int(number) if number.is_integer() else number for kind, number in numbers.items()}


_SHARED = {  # the options of every importer, after its own; the rest is for `_run`
    "weight": Option(Weights, parameter="weights", read=lambda given: assigned(given, "--weight", "OWNER", "batch=2")),
    "demand": Option(Demand, "shapes"),
    "lenient": Option(Lenient, False),
}
_OUTPUTS = {"output": Option(Output), "current": Option(Current), "as_json": Option(Json, False), "everything": Option(Everything, False)}


def _importer(system: str, does: str, example: str, leave_out: Sequence[str] = (), **own: Option) -> None:
    """Add the command of ``fo.import_SYSTEM``: its help, an example, its own options, and shared ones that it has not."""
    taken = own | {name: option for name, option in _SHARED.items() if name not in leave_out}
    outputs = {name: option for name, option in _OUTPUTS.items() if name not in leave_out}

    def run(given: dict[str, Any]) -> None:
        values = arguments(taken, given)
        _run(
            lambda: getattr(fo, f"import_{system}")(**values), given["output"], given.get("current"), given["as_json"], given["everything"]
        )

    app.command(system, cls=Command, epilog=f"Example: fairopt import {system} {example}")(guarded(declared(run, does, taken | outputs)))


_importer(
    "kubernetes",
    "Import a Kubernetes cluster: allocatable, requests, taints, selectors and required affinity; queues and quotas.",
    "--nodes nodes.json --pods pods.json --queues queues.yaml -o cluster.yaml --current held.csv",
    nodes=file("kubectl get nodes -o json", NEEDED),
    pods=files("kubectl get pods -A -o json."),
    queues=files("Queues of Kueue, Volcano, KAI or YuniKorn, quotas, work without pods, claims of devices: YAML or JSON."),
    speeds=file("Speeds of tasks by flavor or label of nodes. Columns servers and speed; optional: owner, factor, resource."),
    owners=_owners("Owners of pods: namespace, label:KEY or priority.", "namespace"),
    daemonsets=Option(
        Annotated[
            Literal["reserve", "tasks"], typer.Option(help="Subtract DaemonSet and static pods from their nodes, or treat them as tasks.")
        ],
        "reserve",
    ),
)
_importer(
    "slurm",
    "Import a Slurm cluster: TRES, generic resources, partitions, features; the tree of accounts, shares and limits.",
    "--nodes nodes.txt --jobs jobs.json --associations associations.txt -o cluster.yaml --current held.csv",
    nodes=file("scontrol show nodes (text, or --json), or sinfo --json", NEEDED),
    jobs=file("squeue --json, or scontrol show jobs (text)", NEEDED),
    associations=file("sacctmgr -P show assoc tree (accounts, shares, GrpTRES), sshare -a -l -P, or slurmrestd's answer."),
    partitions=file("scontrol show partitions (text, or --json)"),
    licenses=file("scontrol show licenses (text, or --json): named limits."),
    qos=file("sacctmgr -P show qos: limits of the jobs of a QOS, as named limits."),
    reservations=file("scontrol show reservations (text, or --json)"),
    speeds=file("Speeds of tasks by type of GPU or feature of nodes. Columns servers and speed; optional: owner, factor, resource."),
    sacct=file(
        "sacct -a -X -P with the columns JobID, Account, User, Partition, Start, End, AllocTRES, ReqTRES, NodeList, Constraints: "
        "what is held is then the average over --window."
    ),
    window=Option(
        Annotated[str | None, typer.Option(metavar="START/END", help="Local times, such as 2026-11-22/2026-11-23T12:00.")],
        read=lambda window: None if window is None else read_period(window),
    ),
    owners=_owners("Owners of jobs: account or user.", "account"),
    count_licenses=Option(
        Annotated[bool, typer.Option("--count-licenses", help="Licences are resources of the cluster, which count in dominant shares.")],
        False,
    ),
    ignore_partitions=Option(
        Annotated[bool, typer.Option("--ignore-partitions", help="Let jobs run in every partition.")],
        False,
    ),
)
_importer(
    "pbs",
    "Import a PBS cluster (PBS Professional, OpenPBS): vnodes, chunks of jobs, arrays; limits of queues and of the server.",
    "--nodes nodes.json --jobs jobs.json --queues queues.json -o cluster.yaml --current held.csv",
    nodes=file("pbsnodes -a -F json", NEEDED),
    jobs=file("qstat -f -t -F json", NEEDED),
    queues=file("qstat -Q -f -F json: limits of queues, as named limits."),
    server=file("qstat -B -f -F json: limits of the server, and its licences, as named limits."),
    shares=file("sched_priv/resource_group: the fairshare tree, whose shares are weights."),
    owners=_owners("Owners of jobs: user, group, project, account or queue.", "user"),
)
_importer(
    "htcondor",
    "Import an HTCondor pool: slots, requests and requirements of jobs; group quotas and user priorities as a tree.",
    "--nodes slots.json --jobs jobs.json --priorities userprio.txt --config config.txt -o cluster.yaml --current held.csv",
    nodes=file("condor_status -json", NEEDED),
    jobs=file("condor_q -allusers -global -json", NEEDED),
    priorities=file("condor_userprio -allusers (text, -long or JSON): weights are 1 / priority factor; ceilings and floors."),
    config=file("condor_config_val -dump: GROUP_QUOTA, GROUP_ACCEPT_SURPLUS, concurrency limits."),
    owners=_owners("Owners of jobs: submitter (group_physics.ada), user or group.", "submitter"),
)
_importer(
    "yarn",
    "Import a YARN cluster: containers of applications, node labels, queues.",
    "--nodes nodes.json --apps apps.json --queues scheduler.json -o cluster.yaml",
    nodes=file("Answer of the ResourceManager to /ws/v1/cluster/nodes", NEEDED),
    apps=file("Answer of the ResourceManager to /ws/v1/cluster/apps", NEEDED),
    queues=file("Answer of the ResourceManager to /ws/v1/cluster/scheduler; or capacity-scheduler.xml or fair-scheduler.xml."),
    labels=file("Answer of the ResourceManager to /ws/v1/cluster/get-node-labels: which partitions are not exclusive."),
    owners=_owners("Owners of applications: queue or user.", "queue"),
)
_importer(
    "ray",
    "Import a Ray cluster: logical resources, labels, tasks, actors and placement groups.",
    "--nodes nodes.json --tasks tasks.json --actors actors.json --placement-groups groups.json -o cluster.yaml --current held.csv",
    nodes=file("ray list nodes --format json --detail --limit 10000", NEEDED),
    tasks=file("ray list tasks, with the same options"),
    actors=file("ray list actors, with the same options"),
    placement_groups=file("ray list placement-groups, with the same options"),
    jobs=file("ray list jobs, with the same options: their metadata."),
    owners=_owners("Owners: namespace, job or metadata:KEY.", "namespace"),
)
_importer(
    "openb",
    "Import the Alibaba GPU cluster of 2023. Parts of different GPUs add up, so the optimum is a relaxation.",
    "--nodes openb_nodes.csv.gz --pods openb_pods.csv.gz --owners class -o cluster.yaml",
    nodes=file("Nodes, one by one or by configuration.", NEEDED),
    pods=file("Pods, one by one or by class.", NEEDED),
    owners=_owners("Owners of pods: class or qos.", "class"),
    at=_number(float | None, "SECONDS", "Only pods that existed at this time. Default: all."),
)
_importer(
    "google2011",
    "Import the Google cluster of 2011 from tables of machines and tasks.",
    "--machines machine_configs.csv --tasks task_groups.csv.gz -o cluster.yaml",
    machines=file("Configurations with their counts, or events.", NEEDED),
    tasks=file("Rows of identical tasks: user, cpu, mem, n_tasks.", NEEDED),
    at=_number(float, "SECONDS", "If the machines are a table of events: take them at this time.", 0.0),
)
_importer(
    "swf",
    "Import a moment of a log in the Standard Workload Format: a task is one processor, which is a relaxation.",
    "log.swf --at 864000 -o cluster.yaml --current held.csv",
    log=_log("A log in the Standard Workload Format; .gz too."),
    at=_number(float | None, "SECONDS", "Moment to import. Default: when most processors are requested."),
    owners=_owners("Owners of jobs: user, group or queue.", "user"),
    node_count=_number(int | None, "N", "Number of nodes, instead of MaxNodes in the log.", parameter="nodes"),
    processors=_number(int | None, "N", "Number of processors, instead of MaxProcs in the log."),
    memory=_number(float | None, "GIB", "Memory of one node; without it, memory is not a resource."),
)
_importer(
    "gavel",
    "Import jobs with measured throughputs on each kind of accelerator: throughput becomes rates, the scale of a job its parallelism.",
    "throughputs.csv --gpus k80=36 --gpus v100=36 --jobs jobs.csv -o cluster.yaml",
    leave_out=("demand", "current"),
    throughputs=_log("Columns job_type, scale, worker, thr (steps per second); or the JSON of Gavel's repository."),
    gpus=Option(
        Annotated[list[str], typer.Option(metavar="KIND=N", help="Number of accelerators of a kind (worker). Repeat for each kind.")],
        NEEDED,
        read=_of_kinds,
    ),
    jobs=file("Columns job_type, scale_factor, priority_weight; default: one job of each."),
    sharing=Option(
        Annotated[
            Literal["tdm", "rdm"],
            typer.Option(help="Divide the time of accelerators (rates and parallelism), or accelerators as a resource (speeds)."),
        ],
        "tdm",
    ),
)


# What they do --------------------------------------------------------------------------------------------------------------------


def _run(read: Callable[[], fo.Import], output: Path | None, current: Path | None, as_json: bool, everything: bool) -> None:
    """Import, write the files, and print a summary."""
    check_instance(output, "--output")
    kind = table_form(current, "--current")
    imported = work("reading the exports", read)
    if current is not None and imported.current is None:
        raise fo.InvalidInstance(f"{current} cannot be written: the exports do not say where tasks run; leave --current out")
    if output is not None:
        work(f"writing {output}", lambda: fo.save(imported.instance, output))
        WRITTEN.add(str(output))
    if current is not None:
        held = work(
            f"writing {current}",
            lambda: imported.current_csv() if kind == "csv" else rendered(imported.current_frame(), kind, str(current)),  # type: ignore[arg-type]
        )
        deliver(held or "", current)
    if as_json:
        typer.echo(work("writing the result", lambda: as_text(imported.to_dict())), nl=False)
    else:
        show(lambda width: tables.import_blocks(imported, everything=everything))
        for path in (output, current):
            if path is not None:
                typer.echo(f"Wrote {path}")
