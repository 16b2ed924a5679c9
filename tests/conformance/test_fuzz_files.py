"""Every reader, with files that somebody has damaged or made to do harm: each is read, or refused in a sentence, and nothing else happens.

The seeds are small valid files of every format. Hypothesis damages them, byte by byte and by what is known to hurt (digits without end,
deep lists, halves of characters, control characters). ``make fuzz`` draws many more examples, and new ones each time.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairopt as fo
from fairopt.commands.options import read_preference, read_utility
from fairopt.formats.allocations import read as read_allocation
from fairopt.histories.reading import read_log_file
from fairopt.slurm.associations import current_limits

EXAMPLES = settings().max_examples * 2 // 5  # of each file, and there are some fifty
EXPORTS = Path(__file__).parents[1] / "clusters" / "exports"
DOCUMENT = """
title: a lab
resources: [cpu, memory]
servers:
- {name: A, capacity: &a {cpu: 9, memory: 12GiB}, count: 8, attributes: {model: V100, cores: 4, ssd: true}}
- {name: B, capacity: *a}
users:
- {name: alice, demand: {cpu: 500m, memory: 2GiB}, weight: 2, tasks: 100, queue: vision, guarantee: 3, requires: "model = V100; cores >= 4"}
- {name: "bob", demand: {cpu: 1e0, memory: 1/2GiB}, servers: [A, B], parallelism: 2}
queues:
- {name: research, weight: 2, guarantee: {cpu: 8}, limit: {cpu: 40}, lending_limit: {cpu: 4}, tier: 1}
- {name: vision, parent: research, quotas: [{on: model = V100, guarantee: {cpu: 4}}, {servers: [B], limit: {memory: 1/3GiB}}]}
"""
CLUSTER = fo.Instance(
    [[9, 12, 2], [9, 64, 0]],
    [[1, 2, 0], [2, 1, 1]],
    counts=[1, 2],
    users=["alice", "bob"],
    servers=["A", "B"],
    resources=["cpu", "memory", "gpu"],
)
TABLES = {
    "servers": "name,cpu,memory,count,model\nA,9,12GiB,8,V100\nB,9,12GiB,,T4\n",
    "users": "name,cpu,memory,weight,queue,guarantee,tasks,requires,servers\n"
    'alice,1,2GiB,2,vision,,100,model = V100,\nbob,1/2,"1GiB",,,1,inf,,A|B\n',
    "queues": "name,parent,weight,tier,guarantee:cpu,limit:cpu,on,servers\n"
    "research,,2,1,8,40,,\nvision,research,,,,,,\nvision,,,,4,,model = V100,\n",
    "eligibility": "user,A,B\nalice,1,0\nbob,1,1\n",
}
JOBS = "job,user,submit_s,tasks,run_s,cpu,memory,queue,servers,gang,estimate_s\na,A,0,2,60,1,1,,A,yes,\nb,B,5,1,inf,1,,q,A|B,,90\n"
LOG = "user,submit,start,end,cpu,memory,tasks,server,why\nada,0,5,10,1,2,3,A,\nbob,7,,,2,1,1,,held\n"
DATES = (
    "job,user,submit,start,end,cpu,queue\n"
    "a,ada,2026-11-22T15:02:00,2026-11-22T15:03:00,2026-11-22 16:00,1,\nb,bob,2026-11-22T15:02:00,,,1,q\n"
)
SACCT = (
    "JobID|Account|User|Partition|State|Submit|Eligible|Start|End|Reason|AllocTRES|ReqTRES|NodeList|Constraints\n"
    "1|chem|ada|batch|COMPLETED|2026-11-22T12:00:00|2026-11-22T12:00:00|2026-11-22T12:05:00|2026-11-22T12:30:00|None|"
    "billing=4,cpu=4,mem=16G,node=1|billing=4,cpu=4,mem=16G,node=1|A|\n"
    "2_[1-3%2]|chem|bob|batch|PENDING|2026-11-22T12:00:00|2026-11-22T12:00:00|Unknown|Unknown|Resources||"
    "cpu=4,mem=16G,node=2|None assigned|ib\n"
)
ACCOUNTING = (
    "06/01/2026 02:00:00;Q;1.head;user=alice group=g project=p jobname=x queue=workq ctime=1780272000 qtime=1780272000\n"
    "06/01/2026 02:05:00;S;1.head;user=alice queue=workq ctime=1780272000 qtime=1780272000 etime=1780272000 start=1780272300 "
    "exec_host=A/0*2 exec_vnode=(A:ncpus=2:mem=1048576kb) Resource_List.select=1:ncpus=2:mem=1gb Resource_List.place=excl\n"
    "06/01/2026 02:06:00;z;1.head;\n06/01/2026 02:07:00;r;1.head;\n"
    "06/01/2026 02:30:00;E;1.head;user=alice queue=workq ctime=1780272000 qtime=1780272000 etime=1780272000 start=1780272300 "
    "exec_host=A/0*2 exec_vnode=(A:ncpus=2:mem=1048576kb) Resource_List.select=1:ncpus=2:mem=1gb end=1780273800\n"
    '06/01/2026 02:40:00;R;2.head;user=bob account="a b" queue=workq qtime=1780272000 start=1780273800 exec_host=A/0+A/1*2 end=1780274400\n'
)
ADS = [
    {"ClusterId": 1, "ProcId": 0, "JobStatus": 4, "Owner": "alice", "RequestCpus": 2, "RequestMemory": "/Expr(ImageSize / 1024)/",
     "ImageSize": 2097152, "QDate": 1780272000, "JobStartDate": 1780272100, "JobCurrentStartDate": 1780272400, "NumHolds": 0,
     "CompletionDate": 1780273000, "RemoteWallClockTime": 700, "LastRemoteHost": "slot1_1@A", "AccountingGroup": "g.alice"},
    {"ClusterId": 2, "ProcId": 0, "JobStatus": 1, "Owner": "bob", "RequestGPUs": 1, "QDate": 1780272000, "Requirements": "/Expr(true)/"},
]  # fmt: skip
SCONTROL = "\n\n".join(
    f"NodeName={name} Arch=x86_64 CoresPerSocket=32\n   CPUAlloc=48 CPUEfctv=64 CPUTot=64\n   ActiveFeatures=ib\n   Gres={gres}\n"
    "   RealMemory=131072\n   State=MIXED+CLOUD ThreadsPerCore=1\n   Partitions=batch,gpu\n   CfgTRES=cpu=64,mem=128G,billing=64"
    for name, gres in (("cn1", "(null)"), ("cn2", "(null)"), ("cn3", "(null)"), ("gn1", "gpu:a100:4(S:0-1),shard:16"))
)
QOS = (
    "Name|Priority|Preempt|Flags|GrpTRES|MaxTRES|MaxTRESPU|MaxWall|GrpJobs|GrpTRESMins\nnormal|0||||||||\n"
    "small|5|normal|OverPartQOS|cpu=20,gres/gpu:a100=2|cpu=4|cpu=8|1-00:00:00|3|cpu=9\n"
)
RESERVED = (
    "ReservationName=course StartTime=2026-11-25T17:00:00 EndTime=2026-11-25T19:00:00\n   Nodes=cn[1-2] CoreCnt=8 "
    "Flags=FLEX,MAGNETIC\n   TRES=cpu=8\n   Users=ada Groups=(null) Accounts=(null) Licenses=(null) State=ACTIVE\n"
)
SHOWN = "".join(
    f"JobId={number} ArrayJobId=7 ArrayTaskId=1-9%2 JobName=x\n   UserId=ada(1000) Account=chem QOS=small\n"
    f"   JobState={state} Reason=Priority\n"
    "   NumNodes=1-2 NumCPUs=2 NumTasks=1 ReqB:S:C:T=0:0:*:1 TimeLimit=1-00:00:00\n   TRES=cpu=2,mem=1G,node=1 MinMemoryNode=1G\n"
    for number, state in ((7, "PENDING"), (8, "RUNNING NodeList=cn1"))
)
SACCT_JSON = {
    "meta": {"Slurm": {"version": {"major": 22}}},
    "jobs": [
        {
            "job_id": number, "account": "chem", "user": "ada", "partition": "batch", "nodes": "A", "constraints": "ib",
            "state": {"current": ["COMPLETED"], "reason": "None"}, "het": {"job_id": 0}, "array": {"job_id": 7, "task_id": number},
            "time": {"submission": 1795627333, "start": 1795627454, "end": {"set": True, "number": 1795629254}, "suspended": 60},
            "tres": {"allocated": [{"type": "cpu", "name": "", "count": 4}, {"type": "mem", "name": "", "count": 64}], "requested": []},
        }
        for number in (1, 2)
    ],
}  # fmt: skip
PODS = {
    "kind": "List",
    "items": [
        {
            "kind": "Pod",
            "metadata": {
                "name": f"p{j}",
                "namespace": "lab",
                "uid": str(j),
                "creationTimestamp": "2026-11-22T12:00:00Z",
                "labels": {"team": "a"},
            },
            "spec": {
                "nodeName": "A",
                "priority": 0,
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
            },
            "status": {
                "phase": "Succeeded",
                "startTime": "2026-11-22T12:01:00Z",
                "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-22T12:00:30Z"}],
                "containerStatuses": [{"name": "c", "state": {"terminated": {"finishedAt": "2026-11-22T12:30:00Z", "exitCode": 0}}}],
            },
        }
        for j in range(2)
    ],
}
ASSOCIATIONS = (
    "Cluster|Account|User|Partition|Share|ParentName|MaxTRES|GrpTRES\nhpc|root||||||\nhpc|chem|||4|root|cpu=9|cpu=20\n"
    "hpc|chem|ada||2||cpu=3,gres/gpu=1|\n"
)


def packed(text: str) -> bytes:
    """A text as gzip packs it."""
    return gzip.compress(text.encode(), mtime=0)


def parquet(text: str) -> bytes:
    """A table as a Parquet file."""
    page = io.BytesIO()
    pd.read_csv(io.StringIO(text)).to_parquet(page)
    return page.getvalue()


def workbook() -> bytes:
    """The tables as a workbook; what is in a zip file is damaged after it is unpacked, too (`damaged_inside`)."""
    page = io.BytesIO()
    with pd.ExcelWriter(page, engine="openpyxl") as writer:
        for name, text in TABLES.items():
            pd.read_csv(io.StringIO(text)).to_excel(writer, sheet_name=name, index=False)
    return page.getvalue()


# Readers -------------------------------------------------------------------------------------------------------------------------


def instance(path: Path) -> None:
    """What is read can be written, and is read again."""
    found = fo.load(path)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("again.yaml", "again.json"):
            fo.save(found, Path(folder, name))
            assert fo.load(Path(folder, name)) == found


def table(path: Path) -> None:
    """A folder of tables, one of which is damaged."""
    for name, text in TABLES.items():
        if name != path.stem:
            path.with_name(f"{name}.csv").write_text(text)
    if path.suffix == ".parquet":
        for name in TABLES:
            path.with_name(f"{name}.csv").unlink(missing_ok=True)
            if name != path.stem:
                path.with_name(f"{name}.parquet").write_bytes(parquet(TABLES[name]))
    fo.load(path.parent)


def trace(path: Path) -> None:
    """With a cluster, and leniently."""
    fo.load_trace(path, cluster=CLUSTER, lenient=True)
    fo.load_trace(path, cluster=CLUSTER)


def events(path: Path) -> None:
    """The table of who joins and leaves."""
    jobs = path.with_name("jobs.csv")
    jobs.write_text(JOBS)
    fo.load_trace(jobs, cluster=CLUSTER, events=path)


def unused(_: object) -> None:
    """What is read is of no interest here."""


def log(path: Path) -> None:
    """A log of any kind."""
    read_log_file(path, CLUSTER, lenient=True)
    read_log_file(path, CLUSTER)


def log_of_processors(path: Path) -> None:
    """The Standard Workload Format knows processors and memory."""
    cluster = fo.Instance([[64, 128]], [[1, 1]], resources=["cpu", "memory"])
    read_log_file(path, cluster, lenient=True)
    read_log_file(path, cluster)


def importing(function: Callable[..., fo.Import], *names: str, place: int | str = 0, **options: Any) -> Callable[[Path], None]:
    """Import the good files, but for the one at a place."""

    def run(path: Path) -> None:
        paths = [EXPORTS / name for name in names]
        if isinstance(place, int):
            paths[place] = path
        for lenient in (True, False):
            found = function(*paths, **({place: path} if isinstance(place, str) else {}), **options, lenient=lenient)
            json.dumps(found.to_dict(), allow_nan=False)

    return run


KUBERNETES = ("kubernetes_nodes.json", "kubernetes_pods.json")
SLURM = ("slurm_nodes.json", "slurm_jobs.json", "slurm_associations.json", "slurm_partitions.json")
YUNIKORN = """
partitions:
- name: default
  placementrules: [{name: provided}, {name: tag, value: namespace, create: true, parent: {name: fixed, value: root.lab}}]
  limits: [{users: ["*"], maxresources: {vcore: 9}}]
  queues:
  - name: root
    queues:
    - name: lab
      parent: true
      childtemplate: {resources: {max: {vcore: 3}}}
      resources: {guaranteed: {vcore: 12, memory: 12Gi}, max: {vcore: 16000m}}
    - {name: ops, properties: {application.sort.policy: fair, priority.offset: "3"}}
"""
DEVICES = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
resources: {deviceClassMappings: [{name: example.com/gpu, deviceClassNames: [gpu.example.com]}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].index in [0, 1]'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one, namespace: ml}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 1}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpu-1-slice}
spec:
  driver: gpu.example.com
  nodeName: gpu-1
  pool: {name: gpu-1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0, attributes: {index: {int: 0}}, capacity: {memory: {value: 80Gi}}}]
"""
CAPACITY = "<configuration>" + "".join(
    f"<property><name>yarn.scheduler.capacity.{name}</name><value>{value}</value></property>\n"
    for name, value in {
        "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        "root.queues": "etl,adhoc",
        "root.etl.capacity": "60",
        "root.etl.maximum-capacity": "${root.etl.most}90",
        "root.etl.user-limit-factor": "2.5",
        "root.adhoc.capacity": "[memory=4096,vcores=25%]",
        "root.adhoc.accessible-node-labels.gpu.capacity": "4w",
        "root.adhoc.ordering-policy": "fair",
        "root.adhoc.priority": "-1",
    }.items()
) + "<property name='root.etl.most' value=''/></configuration>"  # fmt: skip
FAIR = (
    '<?xml version="1.0"?><allocations><queue name="etl"><minResources>4096 mb, 2 vcores</minResources><weight>2.5</weight>'
    '<queue name="a"><maxResources>vcores=25%, memory-mb=50%</maxResources></queue></queue>'
    '<queue name="adhoc" type="parent"><schedulingPolicy>fifo</schedulingPolicy></queue>'
    "<queueMaxResourcesDefault>50% cpu, 10% memory</queueMaxResourcesDefault></allocations>"
)
YARN = ("yarn_nodes.json", "yarn_apps.json", "yarn_scheduler.json")
PBS = ("pbs_nodes.json", "pbs_jobs.json", "pbs_queues.json")
CONDOR = ("htcondor_slots.json", "htcondor_jobs.json", "htcondor_priorities.json")
GROUPS = (
    "GROUP_NAMES = group_physics, \\\n  group_chemistry, group_physics.hep\nGROUP_QUOTA_group_physics = $(PART)\nPART = 12\n"
    "GROUP_QUOTA_DYNAMIC_group_chemistry = 0.25\nGROUP_QUOTA_DYNAMIC_group_physics.hep = 0.5\nGROUP_ACCEPT_SURPLUS = True\n"
    "GROUP_AUTOREGROUP_group_chemistry = false\nMATLAB_LIMIT = 3\n# a remark\n"
)
RAY = ("ray_nodes.json", "ray_tasks.json", "ray_actors.json", "ray_placement-groups.json", "ray_jobs.json")
TABLE_OF_RATES = "job_type,scale,worker,thr\nlstm,1,k80,4\nlstm,1,v100,8\nlstm,2,k80,6\ntranslator,1,v100,8\n"


def exported(function: Callable[..., fo.Import], names: tuple[str, ...]) -> dict[str, tuple[bytes, Callable[[Path], None]]]:
    """Each file of an export, damaged in turn."""
    return {name: ((EXPORTS / name).read_bytes(), importing(function, *names, place=j)) for j, name in enumerate(names)}


SEEDS: dict[str, tuple[bytes, Callable[[Path], None]]] = {
    "cluster.yaml": (DOCUMENT.encode(), instance),
    "cluster.json": (json.dumps(CLUSTER.to_dict()).encode(), instance),
    "cluster.xlsx": (workbook(), instance),
    **{f"{name}.csv": (text.encode(), table) for name, text in TABLES.items()},
    "servers.parquet": (parquet(TABLES["servers"]), table),
    "users.parquet": (parquet(TABLES["users"]), table),
    "trace.csv": (JOBS.encode(), trace),
    "trace.csv.gz": (packed(JOBS), trace),
    "trace.parquet": (parquet(JOBS), trace),
    "events.csv": (b"time_s,event,name,number\n0,join,A,\n5,remove,A,1\n", events),
    "log.csv": (LOG.encode(), log),
    "dates.csv": (DATES.encode(), log),
    "log.csv.gz": (packed(LOG), log),
    "log.parquet": (parquet(LOG), log),
    "sacct.txt": (SACCT.encode(), log),
    "sacct.gz": (packed(SACCT), log),
    "accounting.txt": (ACCOUNTING.encode(), log),
    "condor_history.json": (json.dumps(ADS).encode(), log),
    "sacct.json": (json.dumps(SACCT_JSON).encode(), log),
    "jobs.swf": ((EXPORTS / "log.swf").read_bytes(), log_of_processors),
    "pods.json": (json.dumps(PODS).encode(), log),
    "utility.csv": (b"user,A,B\nalice,1,1/3\nbob,2,0\n", lambda path: unused(read_utility(path, CLUSTER))),
    "preference.csv": (b"user,weight\nalice,1\nbob,1/3\n", lambda path: unused(read_preference(path, CLUSTER))),
    "allocation.csv": (b"user,A,B\nalice,1,1\nbob,2,0\n", lambda path: unused(read_allocation(path, CLUSTER))),
    "associations.txt": (ASSOCIATIONS.encode(), lambda path: unused(current_limits(path))),
    **exported(fo.import_kubernetes, KUBERNETES),
    "devices.yaml": (DEVICES.encode(), importing(fo.import_kubernetes, *KUBERNETES, place="queues")),
    "kubernetes_queues.yaml": (
        (EXPORTS / "kubernetes_queues.yaml").read_bytes(),
        importing(fo.import_kubernetes, *KUBERNETES, place="queues"),
    ),
    "yunikorn.yaml": (YUNIKORN.encode(), importing(fo.import_kubernetes, *KUBERNETES, place="queues")),
    **exported(fo.import_slurm, SLURM),
    "scontrol.txt": (SCONTROL.encode(), importing(fo.import_slurm, *SLURM[:2])),
    "qos.txt": (QOS.encode(), importing(fo.import_slurm, *SLURM[:2], place="qos")),
    "reservations.txt": (RESERVED.encode(), importing(fo.import_slurm, *SLURM[:2], place="reservations")),
    "jobs.txt": (SHOWN.encode(), importing(fo.import_slurm, *SLURM[:2], place=1)),
    "sacctmgr.txt": (ASSOCIATIONS.encode(), importing(fo.import_slurm, *SLURM[:3], place=2)),
    **exported(fo.import_yarn, YARN),
    "capacity-scheduler.xml": (CAPACITY.encode(), importing(fo.import_yarn, *YARN[:2], place="queues")),
    "fair-scheduler.xml": (FAIR.encode(), importing(fo.import_yarn, *YARN[:2], place="queues")),
    **exported(fo.import_pbs, PBS),
    "resource_group": (
        b"# shares\nphysics 10 root 60\nann 11 physics 20\nben 12 root 40\n",
        importing(fo.import_pbs, *PBS[:2], place="shares"),
    ),
    **exported(fo.import_htcondor, CONDOR),
    "condor_config": (GROUPS.encode(), importing(fo.import_htcondor, *CONDOR[:2], place="config")),
    "userprio.txt": (b"ada@example  5000.00  1000.00  4  10.0\n", importing(fo.import_htcondor, *CONDOR[:2], place="priorities")),
    **exported(fo.import_ray, RAY),
    **exported(fo.import_openb, ("openb_nodes.csv", "openb_pods.csv")),
    **exported(fo.import_google2011, ("google_machine_events.csv", "google_tasks.csv")),
    "throughputs.csv": (TABLE_OF_RATES.encode(), importing(fo.import_gavel, "", place=0, gpus={"k80": 2, "v100": 1})),
    "throughputs.json": (
        b'{"k80": {"(\'a\', 1)": {"null": 2.5, "(\'a\', 1)": [1, 1]}}, "v100": {"(\'a\', 1)": {"null": 4}}}',
        importing(fo.import_gavel, "", place=0, gpus={"k80": 2, "v100": 1}),
    ),
    "speeds.csv": (b"servers,speed,owner\ngn1,0.5,\ngpu = a100,1/4,biology\n", importing(fo.import_slurm, *SLURM[:2], place="speeds")),
    "steps.csv": (
        b"job_type,scale_factor,total_steps,arrival_s\nlstm,1,240,0\nlstm,2,1e3,5.5\n",
        lambda path: unused(fo.trace_gavel(path, lenient=True)),
    ),
    "log.swf": ((EXPORTS / "log.swf").read_bytes(), importing(fo.import_swf, "log.swf")),
}

# Damage --------------------------------------------------------------------------------------------------------------------------

HARMFUL = [
    *(b"", b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x1b]0;x\x07", "\u202e".encode(), b"\\ud800", b"\\u0000", b"\r", b"\n\n"),
    *(b"1e999999999", b"-1e-999999999", b"9" * 5000, b"0x" + b"f" * 4000, b"9" * 400, b"NaN", b"Infinity", b"-0.0", b"1e308", b"-1"),
    *(
        b"[" * 2000,
        b'{"a":' * 2000,
        b"- " * 2000,
        b"&a [*a]",
        b"<<: *a",
        b"!!python/object:os.system x",
        b"!!int x",
        b"? [1, 2]",
        b"%YAML 9",
    ),
    *(b"null", b"true", b"[]", b"{}", b'""', b"'", b'"', b",", b"|", b":", b"=", b"\t", b"#", b";", b"../../etc/passwd", b"$(x)"),
    *(b"2026-02-30T25:61:61", b"0001-01-01T00:00:00", b"9999-12-31T23:59:59+14:00", b"gn[1-999999999]", b"gn[9-1]", b"n[[", b"1-00:00:00"),
    *(b"1/0", b"1/3", b"5Ki", b"1e999Gi", b"1e-999n", b"\xd9\xa3", b"1_000", b"cpu", b"name", b"x" * 140_000),
]
_PIECE = re.compile(rb"[\w.]+|[^\w.]+")


@st.composite
def damaged(draw: st.DrawFn, seed: bytes) -> bytes:
    """A file with some bytes or words replaced, left out, doubled or cut off; or bytes that never were one."""
    if draw(st.integers(0, 19)) == 0:
        return draw(st.binary(max_size=200))
    data = seed
    for _ in range(draw(st.integers(1, 3))):
        pieces = _PIECE.findall(data)
        if not pieces:
            break
        place = draw(st.integers(0, len(pieces) - 1))
        kind = draw(st.integers(0, 5))
        if kind == 0:
            byte = draw(st.integers(0, len(data) - 1))
            data = data[:byte] + draw(st.binary(max_size=3)) + data[byte + draw(st.integers(0, 3)) :]
            continue
        if kind == 1:
            data = data[: draw(st.integers(0, len(data)))]
            continue
        other = pieces[draw(st.integers(0, len(pieces) - 1))]
        pieces[place] = {2: other, 3: pieces[place] * 2}.get(kind, draw(st.sampled_from(HARMFUL)))
        data = b"".join(pieces)
    return data


@st.composite
def damaged_inside(draw: st.DrawFn, seed: bytes) -> bytes:
    """A workbook, or what gzip has packed, that is damaged before it is packed, or after."""
    if draw(st.booleans()):
        return draw(damaged(seed))
    if seed[:2] == b"\x1f\x8b":
        return gzip.compress(draw(damaged(gzip.decompress(seed))), mtime=0)
    page = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(seed)) as before, zipfile.ZipFile(page, "w") as after:
        names = before.namelist()
        chosen = draw(st.sampled_from(names))
        for name in names:
            data = before.read(name)
            after.writestr(name, draw(damaged(data)) if name == chosen else data)
    return page.getvalue()


def survives(read: Callable[[Path], None], path: Path) -> None:
    """A file is read, or refused by an error of fairopt whose message can be printed and is not endless."""
    try:
        read(path)
    except fo.FairoptError as error:
        message = str(error)
        assert message
        assert message.replace("\n", "").replace("\N{NO-BREAK SPACE}", "").isprintable()
        assert len(message) < 20_000


@pytest.mark.parametrize("name", SEEDS)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_a_damaged_file_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """No other error, whatever stands in it."""
    seed, read = SEEDS[name]
    content = data.draw(damaged_inside(seed) if name.endswith((".gz", ".xlsx")) else damaged(seed))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        survives(read, path)


@pytest.mark.parametrize("name", SEEDS)
def test_the_seeds_are_read(name: str, tmp_path: Path) -> None:
    """Else nothing behind the first check would be tried."""
    seed, read = SEEDS[name]
    (tmp_path / name).write_bytes(seed)
    read(tmp_path / name)


@pytest.mark.parametrize("name", sorted({*SEEDS} - {"eligibility.csv"}))  # which a folder can lack
def test_what_is_no_file_is_refused(name: str, tmp_path: Path) -> None:
    """A folder, a link in a circle, a link to nothing, a socket."""
    import socket

    _, read = SEEDS[name]
    folder, loop, nothing = (tmp_path / kind / name for kind in ("folder", "loop", "nothing"))
    for path in (folder, loop, nothing):
        path.parent.mkdir()
    folder.mkdir()
    loop.symlink_to(loop)
    nothing.symlink_to(tmp_path / "nowhere")
    (tmp_path / "socket").mkdir()
    ended = tmp_path / "socket" / name
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(ended))
        for path in (folder, loop, nothing, ended):
            with pytest.raises(fo.FairoptError):
                read(path)
