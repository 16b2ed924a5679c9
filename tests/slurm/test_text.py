"""Slurm's exports as text, and the JSON of ``sinfo``: the same cluster as in JSON, and messages that name what a version can write."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.slurm_records import by_user, job, node

import fairopt as fo

EXPORTS = Path(__file__).parents[1] / "clusters" / "exports"
NODES = """\
NodeName=cn1 Arch=x86_64 CoresPerSocket=32
   CPUAlloc=48 CPUEfctv=64 CPUTot=64 CPULoad=1.00
   AvailableFeatures=ib
   ActiveFeatures=ib
   Gres=(null)
   NodeAddr=cn1 NodeHostName=cn1 Version=22.05.8
   OS=Linux 6.1.0-13-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.55-1 (2023-09-29)
   RealMemory=131072 AllocMem=0 FreeMem=1086 Sockets=2 Boards=1
   State=MIXED ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=batch,long
   CfgTRES=cpu=64,mem=128G,billing=64
   AllocTRES=

NodeName=gn1 Arch=x86_64 CoresPerSocket=16
   CPUAlloc=0 CPUTot=32 CPULoad=N/A
   AvailableFeatures=ib,a100
   ActiveFeatures=(null)
   Gres=gpu:a100:4(S:0-1),shard:16
   RealMemory=263168 AllocMem=0 FreeMem=N/A Sockets=2 Boards=1
   MemSpecLimit=1024
   State=IDLE+CLOUD+POWERED_DOWN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=batch

NodeName=cn2 Arch=x86_64 CoresPerSocket=32
   CPUAlloc=0 CPUEfctv=64 CPUTot=64 CPULoad=0.00
   Gres=(null)
   RealMemory=131072 AllocMem=0 FreeMem=1086 Sockets=2 Boards=1
   State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=batch
   Reason=to be State=IDLE again soon [root@2026-11-22T12:00:00]
"""
PARTITIONS = """\
PartitionName=batch
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes=cn[1-2],gn1
   State=UP TotalCPUs=160 TotalNodes=3 SelectTypeParameters=NONE
   DefMemPerCPU=512 MaxMemPerNode=UNLIMITED
PartitionName=long
   Nodes=cn1
   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED
"""
TREE = """\
Cluster|Account|User|Partition|Share|Priority|GrpJobs|GrpTRES|GrpSubmit|MaxJobs|QOS
emu|root|||1||||||normal
emu| root|root||1||||||normal
emu| physics|||6|||cpu=100,mem=64G,gres/gpu=4,gres/gpu:a100=2,license/abaqus=3|||normal
emu|  optics|||2||||||normal
emu|   optics|ada||3||||||normal
emu|   optics|ada|long|parent||9|cpu=7||5|normal
emu|  acoustics|||4||||||normal
emu| biology|||2|||mem=20480|||normal
emu|  biology|cyd||1||||||normal
"""
SHARES = """\
Account|User|RawShares|NormShares|RawUsage|NormUsage|EffectvUsage|FairShare|LevelFS|GrpTRESMins|TRESRunMins
root|||0.000000|0||1.000000||||cpu=0
 root|root|1|0.111111|0|0.000000|0.000000|1.000000|inf||cpu=0
 physics||6|0.666667|0|0.000000|0.000000||inf||cpu=0
  optics||2|1.000000|0|0.000000|0.000000||inf||cpu=0
   optics|ada|3|0.500000|0|0.000000|0.000000|1.000000|inf||cpu=0
   optics|ada|parent|0.500000|0|0.000000|0.000000|1.000000|inf||cpu=0
 biology||2|0.222222|0|0.000000|0.000000||inf||cpu=0
  biology|cyd|1|1.000000|0|0.000000|0.000000|1.000000|inf||cpu=0
"""
JOBS = [
    job(1, "cpu=4,mem=8G,node=1,gres/gpu=1,gres/gpu:a100=1", account="optics", user_name="ada", cluster="emu"),
    job(2, account="optics", user_name="ada", partition="long", cluster="emu"),
    job(3, account="biology", user_name="cyd", cluster="emu"),
]


def imported(folder: Path, **texts: str) -> fo.Import:
    """Write the exports, with the nodes and jobs above unless others are given, and import them."""
    paths: dict[str, Any] = {}
    for kind, text in {"nodes": NODES, "jobs": json.dumps({"jobs": JOBS}), **texts}.items():
        paths[kind] = folder / f"{kind}.export"
        paths[kind].write_text(text)
    return fo.import_slurm(**paths)


def test_nodes_of_scontrol(tmp_path: Path) -> None:
    """CPUs in use or in all, memory less what is kept, the features that are active, GPUs and their types; Reason is not a state."""
    instance = imported(tmp_path).instance
    assert instance.resources == ("cpu", "memory", "gpu")
    assert dict(zip(instance.servers, instance.capacities.tolist(), strict=True)) == {"cn1": [64, 128, 0], "gn1": [32, 256, 4]}
    on = {name: user["on"] for name, user in by_user(imported(tmp_path)).items()}
    assert on == {"biology": {"cn1", "gn1"}, "optics/1 gpu": {"gn1"}, "optics/4 cpu 8 memory": {"cn1"}}


def test_one_node_per_line(tmp_path: Path) -> None:
    """``scontrol -o show nodes``."""
    lines = "\n".join(" ".join(block.split()) for block in NODES.split("\n\n"))
    assert imported(tmp_path, nodes=lines).instance == imported(tmp_path).instance


def test_the_same_nodes_in_every_form(tmp_path: Path) -> None:
    """``scontrol`` as text, as JSON, and the groups of ``sinfo --json``, where a node is in a group for each of its partitions."""
    as_json = [
        node("cn1", 64, state=["MIXED"], features="ib", partitions=["batch", "long"]),
        node("gn1", 32, real_memory=263168, specialized_memory=1024, gres="gpu:a100:4(S:0-1),shard:16", features="ib,a100"),
        node("cn2", 64, state=["IDLE", "DRAIN"]),
    ]

    def group(
        hosts: list[str], partition: str, cpus: int, memory: int, state: list[str], gres: str = "", features: str = ""
    ) -> dict[str, Any]:
        return {
            "node": {"state": state},
            "nodes": {"nodes": hosts, "total": len(hosts)},
            "partition": {"name": partition},
            "cpus": {"minimum": cpus, "maximum": cpus, "total": cpus * len(hosts)},
            "memory": {"minimum": memory, "maximum": memory},
            "gres": {"total": gres},
            "features": {"total": features, "active": features},
        }

    groups = [
        group(["cn1"], "batch", 64, 131072, ["MIXED"], features="ib"),
        group(["cn1"], "long", 64, 131072, ["MIXED"], features="ib"),
        group(["gn1"], "batch", 32, 262144, ["IDLE"], "gpu:a100:4(S:0-1),shard:16", "ib,a100"),
        group(["cn2"], "batch", 64, 131072, ["IDLE", "DRAIN"]),
    ]
    expected = imported(tmp_path).instance
    assert imported(tmp_path, nodes=json.dumps({"nodes": as_json})).instance == expected
    assert imported(tmp_path, nodes=json.dumps({"sinfo": groups})).instance == expected
    groups[0]["cpus"]["maximum"] = 128
    with pytest.raises(fo.InvalidInstance, match=r"sinfo\[0\]\.cpus: the nodes of this group have 64 to 128 CPUs; export them one by one"):
        imported(tmp_path, nodes=json.dumps({"sinfo": groups}))


def test_partitions_of_scontrol(tmp_path: Path) -> None:
    """Where nodes do not list theirs."""
    bare = "\n".join(line for line in NODES.splitlines() if "Partitions=" not in line)
    assert imported(tmp_path, nodes=bare, partitions=PARTITIONS).instance == imported(tmp_path).instance


def test_associations_of_sacctmgr(tmp_path: Path) -> None:
    """Shares, limits, and the tree by its indentation; an association for one partition is a queue of its own."""
    result = imported(tmp_path, associations=TREE)
    quota = fo.Quota(["gn1"], limit={"gpu": 2}, name="gpu:a100")
    assert result.instance.queues == (
        fo.Queue("biology", None, 2, limit={"memory": 20}),
        fo.Queue("biology/cyd", "biology"),
        fo.Queue("physics", None, 6, limit={"cpu": 100, "memory": 64, "gpu": 4}, quotas=[quota]),
        fo.Queue("optics", "physics", 2),
        fo.Queue("optics/ada", "optics", 3),
        fo.Queue("optics/ada/long", "optics", 3000, limit={"cpu": 7}),
    )
    assert result.instance.queue_of == ("biology/cyd", "optics/ada", "optics/ada/long")
    for text in ("GrpTRES of license/abaqus are left out", "FairShare=parent"):
        assert any(text in note for note in result.notes), text


def test_associations_without_a_tree(tmp_path: Path) -> None:
    """``sacctmgr -P show assoc`` does not say where an account is, unless it is asked for the parents."""
    flat = "\n".join("|".join(cell.strip() for cell in line.split("|")) for line in TREE.splitlines())
    result = imported(tmp_path, associations=flat)
    assert {queue.name: queue.parent for queue in result.instance.queues if "/" not in queue.name} == {"biology": None, "optics": None}
    assert any("which account is in which" in note for note in result.notes)
    head, *lines = flat.splitlines()
    above = {"optics": "physics", "physics": "root", "biology": "root"}
    named = [f"{line}|{above.get(line.split('|')[1], '') if not line.split('|')[2] else ''}" for line in lines]
    with_parents = imported(tmp_path, associations="\n".join([f"{head}|Par Name", *named]))
    assert with_parents.instance == imported(tmp_path, associations=TREE).instance


def test_shares_of_sshare(tmp_path: Path) -> None:
    """Weights and the tree, without limits; two associations of a user that nothing tells apart are one."""
    result = imported(tmp_path, associations=SHARES)
    assert result.instance.queues == (
        fo.Queue("biology", None, 2),
        fo.Queue("biology/cyd", "biology"),
        fo.Queue("physics", None, 6),
        fo.Queue("optics", "physics", 2),
        fo.Queue("optics/ada", "optics", 3),
    )
    assert any('"optics/ada" has several associations' in note for note in result.notes)


REFUSED: list[tuple[dict[str, str], str]] = [
    ({"nodes": NODES.replace("CPUTot=32", "CPUTot=many")}, r'nodes\.export, line 14: CPUTot: expected a number, found the text "many"'),
    ({"nodes": NODES.replace("gpu:a100:4(S:0-1)", "gpu:a:b:c")}, r"line 14: Gres: .*not a generic resource"),
    ({"nodes": NODES.replace("   RealMemory=263168", "   FreeMemory=1")}, r"line 14: RealMemory: this field is missing"),
    ({"nodes": PARTITIONS}, r"these are partitions, and nodes are expected; export them: scontrol show nodes > nodes\.txt"),
    (
        {"nodes": "scontrol: unrecognized option '--json'\n"},
        r"neither JSON nor text of Slurm: it starts with \"scontrol: unrec.*any version",
    ),
    ({"nodes": ""}, r"the file is empty; export it again: scontrol show nodes > nodes\.txt \(any version\), or scontrol show nodes --json"),
    ({"jobs": "JOBID PARTITION NAME\n"}, r"this is neither JSON nor text of Slurm: it starts with .* squeue --json"),
    ({"partitions": NODES}, r"these are nodes, and partitions are expected"),
    ({"partitions": "PartitionName=batch\n   Nodes=x[1-9]\n"}, "do not have a single node of these partitions"),
    ({"partitions": "PartitionName=batch\n   Nodes=cn1\n   DefMemPerCPU=lots\n"}, r"line 1: DefMemPerCPU: expected a number"),
    (
        {"associations": TREE.replace("emu|", "other|")},
        r"the associations are of the cluster other, and the jobs of emu; export both of one",
    ),
    ({"associations": TREE.replace("cpu=7", "cpu=few")}, r'associations\.export, line 7: GrpTRES: "few" is not an amount'),
    ({"associations": TREE.replace("mem=2048", "mem=2GX")}, r'line 9: GrpTRES: "2GX0" is not an amount such as 4, 500M'),
    ({"associations": TREE.replace("biology|cyd||1", "biology|cyd||much")}, r'line 10: Share: expected a number, found the text "much"'),
    ({"associations": TREE.replace("|QOS", "")}, r"line 2: 11 cells for 10 columns; export it again: sacctmgr -P show assoc tree"),
    ({"associations": "Account|User\nroot|\n"}, r'line 1: there is no column "Share"'),
    ({"associations": "Cluster|Name\nroot|\n"}, r'line 1: there is no column "Account"'),
]


@pytest.mark.parametrize(("texts", "message"), REFUSED)
def test_text_that_is_not_what_it_should_be(tmp_path: Path, texts: dict[str, str], message: str) -> None:
    """The message names the file, the line and the field, and the export to make."""
    with pytest.raises(fo.InvalidInstance, match=message):
        imported(tmp_path, **texts)


@pytest.mark.parametrize(
    ("version", "command"),
    [
        ({"Slurm": {"version": {"major": 22, "micro": 8, "minor": 5}}}, "scontrol show nodes > nodes.txt"),
        ({"slurm": {"version": {"major": "24", "micro": "0", "minor": "05"}}}, "scontrol show nodes --json > nodes.json"),
        ({}, "scontrol show nodes > nodes.txt (any version), or scontrol show nodes --json > nodes.json (23.02 and later)"),
    ],
)
def test_messages_name_what_the_version_can_write(tmp_path: Path, version: dict[str, Any], command: str) -> None:
    """22.05 has no ``scontrol --json``."""
    with pytest.raises(fo.InvalidInstance) as caught:
        imported(tmp_path, nodes=json.dumps({"meta": version, "jobs": []}))
    assert str(caught.value).endswith(command)


def test_deleted_associations_do_not_count(tmp_path: Path) -> None:
    """slurmrestd lists them when it is asked to."""
    listed = [{"account": "biology", "shares_raw": 5}, {"account": "biology", "shares_raw": 9, "flags": ["DELETED"]}]
    result = imported(tmp_path, associations=json.dumps({"associations": listed}))
    assert next(queue.weight for queue in result.instance.queues if queue.name == "biology") == 5


JUNK = ["", "x", "-1", "nan", "1e999", "(null)", "=", "|", "\n", "cn[1-", "gpu:a:b:c", "9" * 400, " ", "parent", "UNLIMITED"]


@settings(max_examples=60)
@given(st.data())
def test_whatever_the_text_holds_is_imported_or_refused(data: st.DataObject) -> None:
    """Junk in place of any word: a message, never a traceback."""
    kind, text = data.draw(
        st.sampled_from([("nodes", NODES), ("partitions", PARTITIONS), ("associations", TREE), ("associations", SHARES)])
    )
    words = re.split(r"([=|,\s]+)", text)
    words[data.draw(st.integers(0, len(words) - 1))] = data.draw(st.sampled_from(JUNK))
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(fo.FairoptError):
        json.dumps(imported(Path(folder), **{kind: "".join(words)}).to_dict(), allow_nan=False)
