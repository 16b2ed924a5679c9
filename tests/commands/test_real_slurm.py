"""A real Slurm: import its state, export the exact allocation as limits, apply them, and import what they made of it.

``make test-slurm`` runs this, as root, where the daemons are installed. In Debian: slurmctld slurmd slurmdbd mariadb-server munge.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from support.command_line import run
from support.slurm_cluster import SlurmCluster, missing

import fairopt as fo

pytestmark = [pytest.mark.slurm, pytest.mark.skipif(bool(missing()), reason=missing())]

# Whole tasks at the optimum, of a few seconds each. The partition batch has 140 CPUs; at the level 1/4 of 160 CPUs and 640 GiB physics
# (weight 2) has 40 tasks, genomics and chem 20 each. Of 16 GPUs, 8 of them a100, vision (weight 3) has 12, and language, which needs an
# a100, 4.
NODES = {f"cn{n}": "CPUs=35 RealMemory=131072" for n in range(1, 5)}
NODES |= {f"gn{n}": f"CPUs=10 RealMemory=65536 Gres=gpu:{kind}:8" for n, kind in ((1, "a100"), (2, "v100"))}
PARTITIONS = {"batch": "Nodes=cn[1-4] Default=YES MaxTime=10 DefaultTime=1", "gpu": "Nodes=gn[1-2] MaxTime=10 DefaultTime=1"}
ACCOUNTS = {  # weight, partition, what a job asks for; tasks at the optimum
    "physics": (2, "batch", "-c2 --mem=2G", 40),
    "genomics": (1, "batch", "-c1 --mem=8G", 20),
    "chem": (1, "batch", "-c2 --mem=2G", 20),
    "vision": (3, "gpu", "-c1 --mem=2G --gres=gpu:1", 12),
    "language": (1, "gpu", "-c1 --mem=8G --gres=gpu:a100:1", 4),
}
SECONDS = 10  # of a job, and of the average
PATIENCE = 240  # for a machine that has much else to do
TREE = ("sacctmgr", "-P", "show", "assoc", "tree")


@pytest.fixture
def cluster(tmp_path: Path) -> SlurmCluster:
    """A cluster that has not been started, with six nodes."""
    return SlurmCluster(tmp_path / "s", NODES, PARTITIONS)


def test_limits_bring_the_exact_allocation_into_a_real_slurm(cluster: SlurmCluster) -> None:
    """First come, first served leaves three accounts with nothing. The limits divide the cluster; taken back, they leave nothing behind."""
    with cluster:
        saturate(cluster)
        before = exported(cluster)
        assert fo.regret(held(before), "drfh").largest == pytest.approx(1)
        assert set(before.owners) == set(ACCOUNTS)

        folder = cluster.root / "out"
        fo.save(before.instance, folder / "cluster.yaml")
        without_limits = cluster.export("before.txt", *TREE)
        scripts = ("-o", folder / "limits.sh", "--undo", folder / "undo.sh")
        run("export", "slurm", folder / "cluster.yaml", "--level", "account", "--associations", without_limits, *scripts)
        apply(cluster, folder / "limits.sh")
        read_back = fo.import_slurm(folder / "nodes.txt", folder / "jobs.json", cluster.export("limits.txt", *TREE))
        limits = {queue.name: queue.limit["cpu"] for queue in read_back.instance.queues if queue.limit}
        assert limits == {name: tasks * int(asked[2]) for name, (_, _, asked, tasks) in ACCOUNTS.items()}

        assert best_regret(cluster) < 0.1
        script(cluster, folder / "undo.sh")
        assert cluster.run(*TREE) == without_limits.read_text()
    assert cluster.left_running() == []


# Of four nodes of 16 CPUs one is reserved for a course and one in maintenance; 32 CPUs are open. Of the accounts there, wide has a QOS of 6
# CPUs together, to which alone Slurm holds it, and not to the 2 of the account; capped has one of 8 CPUs a user, and licensed needs one of
# 8 licences a job, so that plain has the other 10. The course has the 16 CPUs of its node. Of two GPUs of 10 shards, pieces and cards have
# one each: 3 of 10 shards are a third of a card.
LIMITED = {
    "wide": (("--qos=wide",), 6),
    "plain": ((), 10),
    "capped": (("--qos=small",), 8),
    "licensed": (("-L", "ansys"), 8),
    "course": (("--reservation=course",), 16),
    "pieces": (("-p", "gpu", "--gres=shard:3"), 3),
    "cards": (("-p", "gpu", "--gres=gpu:1"), 1),
}
EXPORTS = {
    "nodes": ("scontrol", "show", "nodes"),
    "jobs": ("squeue", "--json"),
    "associations": TREE,
    "licenses": ("scontrol", "show", "licenses"),
    "qos": ("sacctmgr", "-P", "show", "qos"),
    "reservations": ("scontrol", "show", "reservations"),
}


def test_qos_licences_reservations_maintenance_shards_and_a_resized_job(tmp_path: Path) -> None:
    """What limits a real Slurm limits the instance: the exact allocation is what it can run, and runs, once the export limits accounts."""
    nodes = {f"n{n}": "CPUs=16 RealMemory=65536" for n in range(1, 5)} | {"g1": "CPUs=8 RealMemory=65536 Gres=gpu:t4:2,shard:20"}
    more = "Licenses=ansys:8\nAccountingStorageTRES=gres/gpu,gres/shard,license/ansys\nGresTypes=gpu,shard\n"
    times = "MaxTime=10 DefaultTime=1"
    cluster = SlurmCluster(tmp_path / "s", nodes, {"batch": f"Nodes=n[1-4] Default=YES {times}", "gpu": f"Nodes=g1 {times}"}, more)
    with cluster:
        resized = resize(cluster)
        for qos, limit in (("small", "MaxTRESPerUser=cpu=8"), ("wide", "GrpTRES=cpu=6")):
            cluster.run("sacctmgr", "-i", "-Q", "add", "qos", qos)
            cluster.run("sacctmgr", "-i", "-Q", "modify", "qos", qos, "set", limit)
        reserve = ("scontrol", "create", "reservation", "StartTime=now", "Duration=60", "Users=root")
        cluster.run(*reserve, "ReservationName=course", "Nodes=n3")
        cluster.run(*reserve, "ReservationName=fix", "Nodes=n4", "Flags=MAINT,IGNORE_JOBS")
        for account, (asked, _) in LIMITED.items():
            submit(cluster, account, "--array=1-500", "--mem=1M", *asked)
        cluster.run("sacctmgr", "-i", "-Q", "modify", "account", "wide", "set", "GrpTRES=cpu=2")
        for _ in cluster.waits(PATIENCE):
            now = Counter(line.split()[1] for line in running(cluster))
            if now["course"] == 16 and now["wide"] == 6 and now["pieces"] == 6 and sum(now.values()) >= 54:
                break
        assert (now["wide"], now["pieces"]) == (6, 6)
        paths = {name: cluster.export(f"{name}.txt", *command) for name, command in EXPORTS.items()}
        before = fo.import_slurm(**paths)  # type: ignore[arg-type]
        instance, want = before.instance, {name: number for name, (_, number) in LIMITED.items()}
        exact = fo.solve(instance, "drfh")
        assert dict(zip(before.owners, exact.tasks_per_user.tolist(), strict=True)) == pytest.approx(want)
        assert {host for hosts in instance.hosts for host in hosts} == {"n1", "n2", "n3", "g1"}
        regret = fo.regret(held(before), "drfh").largest
        assert regret is not None
        text = fo.import_slurm(**{**paths, "jobs": cluster.export("jobs.text", "scontrol", "show", "jobs")})  # type: ignore[arg-type]
        assert text.instance.users == instance.users
        assert text.instance.limits == instance.limits

        out = cluster.root / "out"
        fo.save(instance, out / "cluster.yaml")
        scripts = ("-o", out / "limits.sh", "--undo", out / "undo.sh", "--associations", paths["associations"], "--qos", paths["qos"])
        run("export", "slurm", out / "cluster.yaml", "--level", "qos", *scripts)
        script(cluster, out / "limits.sh")
        for _ in cluster.waits(PATIENCE):
            if Counter(line.split()[1] for line in running(cluster)) == want:
                break
        assert Counter(line.split()[1] for line in running(cluster)) == want
        after = fo.import_slurm(**{**paths, **{name: cluster.export(f"{name}.after", *EXPORTS[name]) for name in ("nodes", "jobs")}})  # type: ignore[arg-type]
        least = fo.regret(held(after), "drfh").largest
        assert least is not None
        assert least < min(regret, 0.1)
        script(cluster, out / "undo.sh")
        assert cluster.run(*TREE) == paths["associations"].read_text()
        assert cluster.run(*EXPORTS["qos"]) == paths["qos"].read_text()

        columns = (
            "JobID,Account,User,Partition,State,Submit,Eligible,Start,End,Reason,AllocTRES,ReqTRES,NodeList,Constraints,Suspended,Elapsed"
        )
        start = (datetime.now() - timedelta(hours=1)).isoformat(timespec="seconds")
        log = cluster.export("log.txt", "sacct", "-a", "-X", "-P", "-D", "-S", start, "-j", resized, "-o", columns)
        found = fo.history(log, nodes=paths["nodes"], associations=paths["associations"], moments="all")
        rows = [line.split("|") for line in log.read_text().splitlines()[1:]]
        used = sum(int(dict(part.split("=") for part in row[10].split(","))["cpu"]) * seconds(row) for row in rows)
        assert len(rows) == 2
        assert found.to_frame()["received"].tolist() == pytest.approx([used / 72 / 3600])
    assert cluster.left_running() == []


def seconds(row: list[str]) -> float:
    """Return how long a job had one of its sizes: the second from when it was resized, which is its submission."""
    submit, start, end = (datetime.fromisoformat(row[column]) for column in (5, 7, 8))
    return (end - max(submit, start)).total_seconds()


def submit(cluster: SlurmCluster, account: str, *options: str) -> str:
    """Make an account, and submit jobs of it that sleep; return their number."""
    job = cluster.root / "job.sh"
    job.write_text(f"#!/bin/sh\nexec sleep {SECONDS}\n")
    cluster.run("sacctmgr", "-i", "-Q", "add", "account", account)
    cluster.run("sacctmgr", "-i", "-Q", "add", "user", "root", f"account={account}")
    for option in options:
        if option.startswith("--qos="):
            cluster.run(
                "sacctmgr", "-i", "-Q", "modify", "user", "root", "where", f"account={account}", "set", option.replace("--qos", "qos+")
            )
    where = ("-D", str(cluster.root / "out"), "-o", "/dev/null", "-e", "/dev/null", "-A", account)
    return cluster.run("sbatch", "--parsable", *where, *options, str(job)).strip()


def resize(cluster: SlurmCluster) -> str:
    """Run a job on two nodes that gives one of them back; return its number when it has ended."""
    number = submit(cluster, "moving", "-N2", "-n2", "--mem=1M")
    for wanted, then in (("RUNNING", ("scontrol", "update", f"JobId={number}", "NumNodes=1")), ("COMPLETED", ("true",))):
        for _ in cluster.waits(PATIENCE):
            if f"JobState={wanted}" in cluster.run("scontrol", "show", "job", number):
                break
        time.sleep(2)  # for a size of some length
        cluster.run(*then)
    return number


def saturate(cluster: SlurmCluster) -> None:
    """Make the accounts, and submit more jobs than can run; wait until the cluster is full."""
    job = cluster.root / "job.sh"
    job.write_text(f"#!/bin/sh\nexec sleep {SECONDS}\n")
    for account, (weight, partition, asked, _) in ACCOUNTS.items():
        cluster.run("sacctmgr", "-i", "-Q", "add", "account", account, f"fairshare={weight}")
        cluster.run("sacctmgr", "-i", "-Q", "add", "user", "root", f"account={account}")
        where = ("-D", str(cluster.root / "out"), "-o", "/dev/null", "-e", "/dev/null", "-A", account, "-p", partition)
        cluster.run("sbatch", *where, "--array=1-900", *asked.split(), str(job))
    for _ in cluster.waits(PATIENCE):
        counts = Counter(line.split()[1] for line in running(cluster))
        if counts["physics"] >= 60 and counts["vision"] == 16:
            break


def running(cluster: SlurmCluster) -> list[str]:
    """Return number and account of the jobs that run, as squeue prints them."""
    return sorted(cluster.run("squeue", "-h", "-r", "-t", "running", "-o", "%i %a").splitlines())


def exported(cluster: SlurmCluster, *average: str) -> fo.Import:
    """Import the state of the cluster, without limits; with the start and end of a window the average over it.

    Exports are made one after the other. They are made again if jobs have started or ended in between; then what is imported is counted.
    """
    for _ in cluster.waits(PATIENCE):
        moment = running(cluster)
        paths = [cluster.export("nodes.txt", "scontrol", "show", "nodes"), cluster.export("jobs.json", "squeue", "--json")]
        paths.append(cluster.export("shares.txt", "sshare", "-a", "-l", "-P"))
        if average or moment == running(cluster):
            break
    if not average:
        imported = fo.import_slurm(*paths)
        counts = Counter(line.split()[1] for line in moment)
        assert dict(zip(imported.owners, imported.held.tolist(), strict=True)) == {name: counts[name] for name in imported.owners}
        return imported
    columns = "JobID,Cluster,Account,User,Partition,Start,End,AllocTRES,ReqTRES,NodeList,Constraints"
    ran = cluster.export("ran.txt", "sacct", "-a", "-X", "-P", "-S", average[0], "-E", average[1], "-o", columns)
    return fo.import_slurm(*paths, sacct=ran, window=(average[0], average[1]))


def held(imported: fo.Import) -> fo.Allocation:
    """Return what runs; it fits the nodes."""
    assert imported.current is not None
    assert fo.compare(imported.instance, notions=[], allocations={"held": imported.current})["held"].violations == ()
    return imported.current


def script(cluster: SlurmCluster, path: Path) -> None:
    """Run a script of sacctmgr commands."""
    subprocess.run(["sh", str(path)], env=cluster.environment, check=True, capture_output=True, timeout=60)


def apply(cluster: SlurmCluster, path: Path) -> None:
    """Set the limits, and the weights that fill the v100 first, so that those who need an a100 find one."""
    script(cluster, path)
    weights = dict(re.findall(r"Weight=(\d+) .*\b(gn\d)$", path.read_text(), re.MULTILINE))
    assert len(weights) == 2
    for weight, name in weights.items():
        cluster.run("scontrol", "update", f"NodeName={name}", f"Weight={weight}")


def best_regret(cluster: SlurmCluster) -> float:
    """Return the first average regret below 0.1 that is seen, the smallest if there is none."""
    best = 1.0
    end = time.monotonic() + PATIENCE
    while best >= 0.1 and time.monotonic() < end:
        time.sleep(SECONDS / 2)
        now = datetime.now().replace(microsecond=0)
        average = held(exported(cluster, (now - timedelta(seconds=SECONDS)).isoformat(), now.isoformat()))
        regret = fo.regret(average, "drfh").largest
        assert regret is not None
        best = min(best, regret)
    return best
