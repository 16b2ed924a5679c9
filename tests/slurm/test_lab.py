"""Exports of a real Slurm 22.05, saturated: every count that its own commands gave comes out, in every form of export."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.real_data import DATA, needs

import fairopt as fo

pytestmark = needs("slurm-lab")

LAB = DATA / "slurm-lab"
STATES = ("before", "fairshare", "limits", "edge-cases")
NODES = {"before": "sinfo.json"}
DEMANDS = {  # as submitted: CPUs, GiB, GPUs
    "ph-cpu": (8, 16, 0),
    "ph-mem": (4, 48, 0),
    "gen": (4, 60, 0),
    "chem": (12, 24, 0),
    "vis": (4, 24, 1),
    "lang": (8, 64, 2),
    "stats": (2, 12, 0),
}


def imported(state: str, **options: Any) -> fo.Import:
    """Import a state of the cluster from what its commands wrote."""
    folder = LAB / state
    return fo.import_slurm(folder / NODES.get(state, "nodes.json"), folder / "jobs.json.gz", folder / "sacctmgr-assoc.txt", **options)


def counted(state: str) -> Iterator[tuple[int, str, str]]:
    """Yield number, account and name of the jobs that ran."""
    for line in (LAB / state / "running.txt").read_text().splitlines():
        number, account, name = line.split()
        yield int(number), account, name


def shapes(result: fo.Import) -> dict[tuple[str, tuple[float, ...]], list[int]]:
    """Return the users of an account and a demand."""
    found: dict[tuple[str, tuple[float, ...]], list[int]] = {}
    for n, (owner, demand) in enumerate(zip(result.owners, result.instance.demands.tolist(), strict=True)):
        found.setdefault((owner, tuple(demand)), []).append(n)
    return found


@pytest.mark.parametrize("state", STATES)
def test_every_count_of_running_jobs(state: str) -> None:
    """One user for each shape of an account, with as many tasks as ``squeue`` counted.

    Of ``fairshare`` the jobs were exported a moment before they were counted: one ``gen`` less.
    """
    result = imported(state)
    of_shape = shapes(result)
    total = 0
    for number, account, name in counted(state):
        total += number
        if name in DEMANDS:
            users = of_shape[account, DEMANDS[name]]
            assert len(users) == 1, f"{name} is {len(users)} users"
            assert result.held[users[0]] == number - (state == "fairshare" and name == "gen"), name
    assert result.summary["jobs RUNNING"] == total - (state == "fairshare")
    assert result.current is not None
    assert result.current.tasks.sum() == result.summary["tasks running"]


def test_counts_of_slurmrestd() -> None:
    """The answers of slurmrestd to the same cluster, a little later."""
    folder = LAB / "before"
    result = fo.import_slurm(
        folder / "rest_nodes.json", folder / "rest_jobs.json.gz", folder / "rest_associations.json", folder / "rest_partitions.json"
    )
    with gzip.open(folder / "rest_jobs.json.gz") as file:
        jobs = json.load(file)["jobs"]
    truth = Counter((job["account"], job["name"]) for job in jobs if job["job_state"] == "RUNNING")
    held = {key: result.held[users].sum() for key, users in shapes(result).items()}
    assert {key: held[key[0], DEMANDS[key[1]]] for key in truth} == dict(truth)
    assert sum(held.values()) == truth.total()


@pytest.mark.parametrize("state", STATES)
def test_what_runs_is_what_the_nodes_say_is_in_use(state: str) -> None:
    """Capacities, and CPUs and memory in use, by other fields of another export, where both were made in the same moment."""
    result = imported(state)
    nodes = json.loads((LAB / state / NODES.get(state, "nodes.json")).read_text())["nodes"]
    assert result.instance.total_capacity.tolist() == [
        sum(node["cpus"] for node in nodes),
        sum(node["real_memory"] for node in nodes) / 1024,
        32,
    ]
    if state == "edge-cases":
        assert result.held @ result.instance.demands[:, 0] == sum(node["alloc_cpus"] for node in nodes)
        assert result.held @ result.instance.demands[:, 1] == sum(node["alloc_memory"] for node in nodes) / 1024


EDGE = {  # jobs that wait, each alone in its shape: CPUs, GiB, GPUs; tasks; how many nodes it may run on
    "excl": ((32, 4, 0), 1, 40),
    "mem0": ((1, 128, 0), 1, 40),
    "nomem": ((3, 128, 0), 1, 40),
    "gpus": ((2, 2, 2), 1, 8),
    "gpt": ((2, 2, 2), 1, 4),
    "mincpus": ((2, 3, 0), 2, 40),
    "range": ((8, 3, 0), 1, 40),
    "percpu": ((4, 8, 0), 1, 40),
    "multi": ((2, 2, 0), 8, 40),
    "het": ((2, 1, 0), 1, 40),
    "het+1": ((4, 2, 0), 1, 32),
    "featOr": ((1, 1, 0), 1, 8),
    "featAnd": ((1, 1, 0), 1, 20),
    "featBr, limited": ((1, 1, 0), 4, 40),
    "nodelist": ((1, 1, 0), 1, 1),
    "exclude": ((1, 1, 0), 1, 35),
}


def test_edge_cases() -> None:
    """``--exclusive``, ``--mem=0``, no memory, ``--array=1-20%2``, ``-n4 --ntasks-per-node=2``, a heterogeneous job, features."""
    result = imported("edge-cases")
    instance = result.instance
    nodes = instance.eligibility @ instance.counts
    known = set(DEMANDS.values())
    found = Counter(
        (demand, tasks, int(number))
        for owner, demand, tasks, number in zip(
            result.owners, map(tuple, instance.demands.tolist()), instance.tasks.tolist(), nodes, strict=True
        )
        if owner == "physics" and demand not in known
    )
    assert found == Counter(EDGE.values())
    notes = "; ".join(result.notes)
    for text in ("1 waiting job asks for all memory of a node", "1 waiting job names no memory", "1 waiting job asks for whole nodes"):
        assert text in notes
    for text in ("3 jobs on several nodes", "1 heterogeneous job, whose components"):
        assert text in notes
    assert {each.why.partition(",")[0]: each.number for each in result.left_out if "array" in each.why} == {
        "beyond the limit of its array": 18
    }


def test_defaults_of_partitions_are_not_made_up() -> None:
    """The partitions of the lab have none, so that nothing changes with them."""
    with_partitions = imported("edge-cases", partitions=LAB / "edge-cases" / "partitions.json")
    assert with_partitions.instance == imported("edge-cases").instance


@pytest.mark.parametrize("state", STATES)
def test_associations_of_every_export_are_the_same(state: str) -> None:
    """slurmrestd and ``sacctmgr`` say the same; ``sshare`` has no limits, and no partitions of associations."""
    folder = LAB / state
    nodes, jobs = folder / NODES.get(state, "nodes.json"), folder / "jobs.json.gz"
    rest = folder / ("rest_associations.json" if state == "before" else "associations.json")
    trees = [fo.import_slurm(nodes, jobs, path).instance for path in (rest, folder / "sacctmgr-assoc.txt")]
    assert trees[0] == trees[1]
    shares = fo.import_slurm(nodes, jobs, folder / "sshare.txt").instance
    assert [(queue.name, queue.parent, queue.weight) for queue in shares.queues] == [
        (queue.name, queue.parent, queue.weight) for queue in trees[0].queues
    ]
    assert not any(queue.limit for queue in shares.queues)


@pytest.mark.parametrize("state", ["before", "fairshare", "limits"])
def test_nobody_envies_the_other_half_of_its_account(state: str) -> None:
    """One shape is one user. Accounts may envy each other: fair shares alone leave ``stats`` with less than ``genomics``."""
    result = imported(state)
    assert result.current is not None
    assert result.instance.n_users == len(DEMANDS)
    owner = dict(zip(result.instance.users, result.owners, strict=True))
    verdict = fo.audit(result.current, properties=["envy-freeness"])["envy-freeness"]
    if not verdict.holds:
        assert verdict.witness is not None
        who, *others = (owner[user] for user in verdict.witness.users)
        assert len(set(others)) == 1
        assert who not in others


def test_the_type_of_gpu_that_was_given_is_no_request() -> None:
    """The smallest case: a100, v100, and one that waits."""
    result = fo.import_slurm(LAB / "gpu-type-nodes.json", LAB / "gpu-type-jobs.json")
    assert (result.instance.n_users, result.instance.tasks.tolist(), result.held.tolist()) == (1, [3], [2])
    assert result.instance.eligibility.all()


def test_a_type_of_gpu_has_a_speed(tmp_path: Path) -> None:
    """The three tasks fit on the a100, where they do the work of three; what runs stays where it is, two tasks and 1.5 of work."""
    (tmp_path / "speeds.csv").write_text("servers,speed\ngpu:v100,0.5\n")
    result = fo.import_slurm(LAB / "gpu-type-nodes.json", LAB / "gpu-type-jobs.json", speeds=tmp_path / "speeds.csv")
    assert (result.instance.servers, result.instance.speeds.tolist()) == (("gn01", "gn05"), [[1, 0.5]])
    assert result.current is not None
    assert (result.held.tolist(), result.current.work.tolist()) == ([2], [1.5])
    assert fo.solve(result.instance, "cdrf").work.tolist() == pytest.approx([3])


def test_the_average_over_a_window() -> None:
    """CPU seconds of each account in ``sacct``, by a few lines of other code."""
    folder = LAB / "limits"
    with gzip.open(folder / "sacct.txt.gz", "rt") as file:
        head, *rows = [line.rstrip("\n").split("|") for line in file]
    start, end = "2026-11-22T15:02:20", "2026-11-22T15:03:20"
    seconds: Counter[str] = Counter()
    for each in (dict(zip(head, row, strict=True)) for row in rows):
        # All times are of one hour, so that they compare as texts, and minutes and seconds tell how far apart they are.
        first, last = (int(time[14:16]) * 60 + int(time[17:19]) for time in (max(each["Start"], start), min(each["End"], end)))
        cpus = int(dict(cell.split("=") for cell in each["AllocTRES"].split(","))["cpu"])
        seconds[each["Account"]] += max(last - first, 0) * cpus
    result = imported("limits", sacct=folder / "sacct.txt.gz", window=(start, end))
    owners = np.array(result.owners)
    cpus_held = {owner: float(result.held[owners == owner] @ result.instance.demands[owners == owner, 0]) for owner in set(result.owners)}
    assert cpus_held == pytest.approx({owner: total / 60 for owner, total in seconds.items()})
    assert result.instance.n_users == len(DEMANDS)
    assert result.current is not None
    row = fo.compare(result.instance, notions=["drfh"], allocations={"held": result.current})["held"]
    assert row.violations == ()


def test_exports_of_two_states_of_the_cluster_are_not_mixed_up_with_those_of_another(tmp_path: Path) -> None:
    """The jobs of this cluster with the associations of another."""
    text = (LAB / "limits" / "sacctmgr-assoc.txt").read_text()
    (tmp_path / "associations.txt").write_text(text.replace("emu|", "hpc|"))
    with pytest.raises(fo.InvalidInstance, match="the associations are of the cluster hpc, and the jobs of emu"):
        fo.import_slurm(LAB / "limits" / "nodes.json", LAB / "limits" / "jobs.json.gz", tmp_path / "associations.txt")
