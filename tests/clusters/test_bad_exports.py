"""What exports may be instead of what they should be: each message says what, where, and what to do."""

from __future__ import annotations

import contextlib
import copy
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import fairopt as fo

EXPORTS = Path(__file__).parent / "exports"
FILES: dict[str, tuple[Callable[..., fo.Import], tuple[str, ...]]] = {
    "kubernetes": (fo.import_kubernetes, ("kubernetes_nodes.json", "kubernetes_pods.json")),
    "slurm": (fo.import_slurm, ("slurm_nodes.json", "slurm_jobs.json", "slurm_associations.json", "slurm_partitions.json")),
    "yarn": (fo.import_yarn, ("yarn_nodes.json", "yarn_apps.json", "yarn_scheduler.json")),
    "pbs": (fo.import_pbs, ("pbs_nodes.json", "pbs_jobs.json", "pbs_queues.json")),
    "htcondor": (fo.import_htcondor, ("htcondor_slots.json", "htcondor_jobs.json", "htcondor_priorities.json")),
    "ray": (fo.import_ray, ("ray_nodes.json", "ray_tasks.json", "ray_actors.json", "ray_placement-groups.json", "ray_jobs.json")),
    "openb": (fo.import_openb, ("openb_nodes.csv", "openb_pods.csv")),
    "google2011": (fo.import_google2011, ("google_machine_events.csv", "google_tasks.csv")),
    "swf": (fo.import_swf, ("log.swf",)),
}
LOGIN = "<!DOCTYPE html>\n<html><head><title>Log in</title></head><body></body></html>\n"


def read(kind: str, **changed: Path) -> Callable[..., fo.Import]:
    """Return the import of the good files of a kind, with some changed."""
    function, names = FILES[kind]
    paths = [changed.get(re.sub(r"\W", "_", name), EXPORTS / name) for name in names]
    return lambda **options: function(*paths, **options)


ALL = [(kind, name) for kind, (_, names) in FILES.items() for name in names]


@pytest.mark.parametrize(("kind", "name"), ALL)
@pytest.mark.parametrize("content", [LOGIN, "", " \n"], ids=["login", "empty", "blank"])
def test_what_is_no_export_at_all(tmp_path: Path, kind: str, name: str, content: str) -> None:
    """A login page, nothing."""
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(fo.InvalidInstance, match=re.escape(str(path))) as caught:
        read(kind, **{re.sub(r"\W", "_", name): path})()
    assert re.search("page|empty|no job|there is no column", str(caught.value))


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, name in ALL if name.endswith(".json")])
def test_json_that_was_cut_off(tmp_path: Path, kind: str, name: str) -> None:
    """At any place: half of a file, all but its last brace."""
    text = (EXPORTS / name).read_text()
    path = tmp_path / name
    for end in (len(text) // 3, len(text) // 2, text.rstrip().rfind("}")):
        path.write_text(text[:end])
        with pytest.raises(fo.InvalidInstance, match=rf"{re.escape(str(path))}, line \d+, column \d+: .*export it again"):
            read(kind, **{re.sub(r"\W", "_", name): path})()


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_a_file_that_is_not_there(tmp_path: Path, kind: str, name: str) -> None:
    """Said as such."""
    with pytest.raises(fo.InvalidInstance, match="there is no file"):
        read(kind, **{re.sub(r"\W", "_", name): tmp_path / name})()


# JSON ----------------------------------------------------------------------------------------------------------------------------

CHANGES: list[tuple[str, str, list[Any], Any, str]] = [  # kind, file, path to a value, what it becomes, message
    ("kubernetes", "nodes", ["items"], [], "the list is empty"),
    ("kubernetes", "nodes", ["items", 0, "kind"], "Pod", r"items\[0\]\.spec\.containers: this field is missing"),
    ("kubernetes", "nodes", ["items", 0, "status", "allocatable", "cpu"], "-4", r'items\[0\]\.status\.allocatable\.cpu: "-4" is negative'),
    (
        "kubernetes",
        "nodes",
        ["items", 0, "status", "allocatable", "memory"],
        "16GB",
        r"items\[0\]\.status\.allocatable\.memory: .*unknown unit",
    ),
    ("kubernetes", "nodes", ["items", 0, "status", "allocatable"], None, r"items\[0\]\.status\.allocatable: this field is missing"),
    (
        "kubernetes",
        "nodes",
        ["items", 1, "metadata", "name"],
        "worker-10",
        r'items\[1\]: node "worker-10" is listed twice, first at .*items\[0\]; list',
    ),
    ("kubernetes", "pods", ["items"], "many", r"items: expected a list, found the text"),
    ("kubernetes", "pods", ["items", 0, "spec", "nodeName"], "worker-9", r'items\[0\]\.spec\.nodeName: runs on node "worker-9"'),
    ("kubernetes", "pods", ["items", 1, "metadata", "name"], "web-1", r'pod "shop/web-1" is listed twice, first at .*items\[0\]; list'),
    ("kubernetes", "pods", ["items", 0, "status", "phase"], "Asleep", r'status\.phase: there is no phase "Asleep"'),
    (
        "kubernetes",
        "pods",
        ["items", 0, "spec", "containers", 0, "resources", "requests", "cpu"],
        "half",
        r'items\[0\]\.spec\.containers\[0\]\.resources\.requests\.cpu: "half" is not a quantity',
    ),
    (
        "kubernetes",
        "pods",
        ["items", 7, "spec", "containers", 0, "resources", "limits", "nvidia.com/gpu"],
        True,
        r'resources\.limits\["nvidia\.com/gpu"\]: expected a quantity',
    ),
    (
        "kubernetes",
        "pods",
        ["items", 7, "spec", "tolerations", 0, "operator"],
        "Gt",
        r'tolerations\[0\]\.operator: there is no operator "Gt"',
    ),
    ("slurm", "nodes", ["nodes"], [], "the list of nodes is empty"),
    ("slurm", "nodes", ["nodes", 0, "real_memory"], -1, r"nodes\[0\]\.real_memory: expected a number >= 0"),
    ("slurm", "nodes", ["nodes", 0, "gres"], "gpu:a:b:c", r"nodes\[0\]\.gres: .*not a generic resource"),
    ("slurm", "nodes", ["nodes", 1, "name"], "cn1", r'nodes\[1\]: node "cn1" is listed twice, first at .*nodes\[0\]; list'),
    ("slurm", "jobs", ["jobs", 1, "tres_req_str"], "cpu=many", r'jobs\[1\]\.tres_req_str: "many" is not an amount'),
    ("slurm", "jobs", ["jobs", 0, "job_state"], ["DANCING"], r"jobs\[0\]\.job_state: the state DANCING is not known"),
    ("slurm", "jobs", ["jobs", 0, "features"], "a&b|c", r"jobs\[0\]\.features: .*ambiguous"),
    ("slurm", "jobs", ["jobs", 0, "nodes"], "cn77", r'jobs\[0\]\.nodes: runs on node "cn77"'),
    ("slurm", "jobs", ["jobs", 0, "partition"], "long", r'jobs\[0\]\.partition: no node is in the partition "long"'),
    ("slurm", "jobs", ["jobs", 1, "job_id"], 101, r'jobs\[1\]: job "101" is listed twice, first at .*jobs\[0\]; list'),
    ("slurm", "jobs", ["jobs", 1, "array_task_string"], "1-...", r"jobs\[1\]\.array_task_string: .*not a list of array tasks"),
    ("yarn", "nodes", ["nodes", "node"], None, r"nodes\.node: the list is empty"),
    ("yarn", "nodes", ["nodes", "node", 0, "state"], "LOOPING", r'nodes\.node\[0\]\.state: there is no state "LOOPING"'),
    ("yarn", "nodes", ["nodes", "node", 0, "availMemoryMB"], -5, r"nodes\.node\[0\]\.availMemoryMB: expected a number >= 0"),
    ("yarn", "apps", ["apps", "app", 0, "elapsedTime"], -3, r"apps\.app\[0\]\.elapsedTime: expected a number >= 0"),
    ("yarn", "apps", ["apps", "app", 0, "allocatedMB"], "4 GB", r"apps\.app\[0\]\.allocatedMB: expected a number, found the text"),
    ("htcondor", "slots", [0, "State"], "Dancing", r'\[0\]\.State: there is no state "dancing" of a slot'),
    ("htcondor", "slots", [0, "TotalSlotCpus"], -1, r"\[0\]\.TotalSlotCpus: expected a number >= 0"),
    ("htcondor", "slots", [2, "Name"], "slot1@w1.example", r'\[2\]: slot "slot1@w1.example" is listed twice, first at .*\[0\]'),
    ("htcondor", "jobs", [1, "JobStatus"], 99, r"\[1\]\.JobStatus: 99 is no status of a job"),
    ("htcondor", "jobs", [1, "RequestCpus"], "many", r"\[1\]\.RequestCpus: expected a number, found the text"),
    ("htcondor", "jobs", [1, "RequestMemory"], "/Expr(1 +)/", r'\[1\]\.RequestMemory: the expression "1 \+" cannot be evaluated'),
    ("htcondor", "jobs", [3, "ConcurrencyLimits"], "matlab:x", r'\[3\]\.ConcurrencyLimits: "matlab:x" is not NAME or NAME:NUMBER'),
    ("htcondor", "priorities", [3, "Priority"], "high", r"\[3\]\.Priority: expected a number"),
    ("pbs", "nodes", ["nodes", "pbs1", "state"], "dancing", r'nodes\.pbs1\.state: there is no state "dancing" of a vnode'),
    ("pbs", "nodes", ["nodes", "pbs1", "resources_available", "ncpus"], -1, r"pbs1\.resources_available\.ncpus: expected a number >= 0"),
    ("pbs", "jobs", ["Jobs", "101.head", "job_state"], "Z", r'Jobs\["101\.head"\]\.job_state: there is no state "Z" of a job'),
    ("pbs", "jobs", ["Jobs", "101.head", "Resource_List", "select"], "2:ncpus=", r'Resource_List\.select: "2:ncpus=" cannot be read'),
    ("pbs", "jobs", ["Jobs", "101.head", "Resource_List", "select"], "0:ncpus=1", r"Resource_List\.select: .*0 chunks"),
    ("pbs", "jobs", ["Jobs", "101.head", "exec_vnode"], "(pbs9:ncpus=2)", r'exec_vnode: runs on vnode "pbs9"'),
    ("pbs", "jobs", ["Jobs", "101.head", "exec_vnode"], "((:", r'exec_vnode: "\(\(:" cannot be read'),
    ("pbs", "jobs", ["Jobs", "102[].head", "array_state_count"], "Queued:many", r'array_state_count: "Queued:many" cannot be read'),
    ("pbs", "queues", ["Queue", "workq", "max_run_res", "ncpus"], "[u:ann]", r"Queue\.workq\.max_run_res\.ncpus: .*cannot be read"),
    ("pbs", "queues", ["Queue", "workq", "max_run"], "[u:ann=all]", r'Queue\.workq\.max_run: "all" is not an amount'),
]


def changed(folder: Path, kind: str, file: str, path: list[Any], value: Any) -> Path:
    """Write a file with one value changed."""
    name = f"{kind}_{file}.json"
    data = json.loads((EXPORTS / name).read_text())
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    (folder / name).write_text(json.dumps(data))
    return folder / name


@pytest.mark.parametrize(("kind", "file", "path", "value", "message"), CHANGES)
def test_one_value_that_is_wrong(tmp_path: Path, kind: str, file: str, path: list[Any], value: Any, message: str) -> None:
    """The message names the file and the way to the value; a lenient import leaves out one record, and says so."""
    name = changed(tmp_path, kind, file, path, value)
    function = read(kind, **{f"{kind}_{file}_json": name})
    with pytest.raises(fo.InvalidInstance, match=message) as caught:
        function()
    assert str(name) in str(caught.value)
    if "lenient=True" in str(caught.value):
        good = len(read(kind)().left_out)
        lenient = function(lenient=True)
        assert any(str(name) in each.where for each in lenient.left_out)
        assert len(lenient.left_out) > good or lenient.instance != read(kind)().instance


def test_an_answer_of_another_kind_or_version(tmp_path: Path) -> None:
    """``sinfo --json`` without a group of nodes; errors of Slurm are passed on; a file that is something else says what it has."""
    path = tmp_path / "nodes.json"
    for text, message in (
        ('{"sinfo": []}', "the list of nodes is empty"),
        ('{"errors": [{"error": "denied"}]}', "answered with an error"),
        ('{"meta": {}, "steps": []}', r"no \"nodes\" in this answer \(it has meta, steps\).*unknown version"),
        ("[1, 2]", "expected a mapping"),
    ):
        path.write_text(text)
        with pytest.raises(fo.InvalidInstance, match=message):
            fo.import_slurm(path, EXPORTS / "slurm_jobs.json")
        with pytest.raises(fo.InvalidInstance):
            fo.import_kubernetes(path)


JUNK: list[Any] = [
    None,
    [],
    {},
    -1,
    0,
    1e300,
    10**400,
    True,
    "",
    "x",
    "1Gi",
    [None],
    [{}],
    {"set": True},
    [["a"]],
    "cn[1-2",
    "\u0000",
    "é" * 3,
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the ways to everything in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, each in inner for deeper in places(each, (*path, key)))]


@settings(max_examples=250)
@given(st.data())
def test_whatever_stands_there_is_imported_or_refused(data: st.DataObject) -> None:
    """Junk anywhere in any file: a message, never a traceback, strict or lenient."""
    kind, name = data.draw(st.sampled_from([each for each in ALL if each[1].endswith(".json")]))
    document = json.loads((EXPORTS / name).read_text())
    *above, last = data.draw(st.sampled_from(places(document)[1:]))
    inner = document
    for step in above:
        inner = inner[step]
    inner[last] = data.draw(st.sampled_from(JUNK))
    _survives(kind, name, json.dumps(document), data.draw(st.booleans()))


def queue(group: str, name: str, **spec: Any) -> dict[str, Any]:
    """Make a Queue of a scheduler."""
    return {"apiVersion": f"{group}/v1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


HIERARCHY = {"volcano.sh/hierarchy": "root/x/d", "volcano.sh/hierarchy-weights": "1/2/3"}
QUOTA = {"gpu": {"quota": 1, "limit": 2, "overQuotaWeight": 3}, "cpu": {"quota": -1, "limit": -1}, "memory": {"quota": 5, "limit": 9}}
QUEUES: dict[str, list[dict[str, Any]]] = {
    "Kueue": list(yaml.safe_load_all((EXPORTS / "kubernetes_queues.yaml").read_text())),
    "Volcano": [
        queue("scheduling.volcano.sh", "a", weight=3, capability={"cpu": 8}, guarantee={"resource": {"cpu": 2}}, deserved={"cpu": "4"}),
        queue("scheduling.volcano.sh", "default", parent="a", priority=2),
        queue("scheduling.volcano.sh", "d", weight=2) | {"metadata": {"name": "d", "annotations": HIERARCHY}},
    ],
    "KAI": [
        queue("scheduling.run.ai", "top", priority=100, resources=QUOTA),
        queue("scheduling.run.ai", "a", parentQueue="top", resources=QUOTA),
    ],
}


@settings(max_examples=250)
@given(st.data())
def test_whatever_queues_say_is_imported_or_refused(data: st.DataObject) -> None:
    """Junk anywhere in the objects of a scheduler, as JSON and as YAML of several documents."""
    items = copy.deepcopy(QUEUES[data.draw(st.sampled_from(sorted(QUEUES)))])
    *above, last = data.draw(st.sampled_from(places(items)[1:]))
    inner: Any = items
    for step in above:
        inner = inner[step]
    inner[last] = data.draw(st.sampled_from(JUNK))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "queues.yaml")
        as_list = data.draw(st.booleans())
        path.write_text(json.dumps({"kind": "List", "items": items}) if as_list else "\n---\n".join(map(json.dumps, items)))
        with contextlib.suppress(fo.FairoptError):
            result = read("kubernetes")(queues=path, lenient=data.draw(st.booleans()))
            json.dumps(result.to_dict(), allow_nan=False)


@settings(max_examples=200)
@given(st.data())
def test_whatever_a_table_holds_is_imported_or_refused(data: st.DataObject) -> None:
    """Junk in any cell, a line cut off or twice."""
    kind, name = data.draw(st.sampled_from([each for each in ALL if not each[1].endswith(".json")]))
    words = re.split(r"([,\s]+)", (EXPORTS / name).read_text())
    position = data.draw(st.integers(0, len(words) - 1))
    words[position] = data.draw(
        st.sampled_from(["", "x", "-1", "-2", "nan", "inf", "1e999", "1e300", ",", "\n", '"', "0", words[position] * 2])
    )
    _survives(kind, name, "".join(words), data.draw(st.booleans()))


def _survives(kind: str, name: str, text: str, lenient: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_text(text)
        with contextlib.suppress(fo.FairoptError):
            result = read(kind, **{re.sub(r"\W", "_", name): path})(lenient=lenient)
            json.dumps(result.to_dict(), allow_nan=False)


# Tables --------------------------------------------------------------------------------------------------------------------------

ROWS: list[tuple[str, str, str, str, str]] = [  # kind, file, text there, text instead, message
    ("openb", "openb_nodes.csv", "32000,262144", "-32000,262144", r'line 2, column "cpu_milli": the number is negative'),
    ("openb", "openb_nodes.csv", "32000,262144", "many,262144", r'line 2, column "cpu_milli": expected a number, found the text "many"'),
    ("openb", "openb_nodes.csv", "\nn2,", "\nn1,", r'line 4, column "sn": there is a row with this name above'),
    ("openb", "openb_pods.csv", "\np1,", "\np0,", r'line 3, column "name": there is a row with this name above'),
    ("openb", "openb_pods.csv", "6000,12288,1,460,LS,R", ",12288,1,460,LS,R", r'line 3, column "cpu_milli": the cell is empty'),
    ("openb", "openb_pods.csv", "10,200", "300,200", r'line 3, column "deletion_time": the pod is deleted before it is created'),
    ("openb", "openb_pods.csv", "8000,30720,2,1000", "8000,30720,2,500", r'line 5, column "gpu_milli": asks for parts of several cards'),
    ("openb", "openb_pods.csv", "8000,30720,2,1000", "8000,30720,2", r"line 5: the row has 10 cells for 11 columns"),
    ("openb", "openb_pods.csv", "num_gpu", "gpus", r'there is no column "num_gpu"'),
    (
        "google2011",
        "google_machine_events.csv",
        "5000000,2",
        "9900000,2",
        r'line 7, column "time_us": the time is earlier than that of the row above',
    ),
    (
        "google2011",
        "google_machine_events.csv",
        "2,REMOVE",
        "2,BURN",
        r'line 6, column "event": the event must be one of ADD, UPDATE, REMOVE',
    ),
    ("google2011", "google_tasks.csv", ",40,0,10,", ",40,20,10,", r'line 2, column "last_submit_s": the last is earlier than the first'),
    ("google2011", "google_tasks.csv", "10,17.5", "10,-17.5", r'line 3, column "median_run_s": the number is negative'),
    (
        "google2011",
        "google_tasks.csv",
        "0.0625,0.03125,0.0001,0.0,40",
        "nan,0.03125,0.0001,0.0,40",
        r'line 2, column "cpu": expected a finite',
    ),
    ("swf", "log.swf", "2  10   0  50", "2  10  -7  50", r"line 8: a time or a duration is negative"),
    ("swf", "log.swf", "2  10   0  50", "1  10   0  50", r"line 8: there is a job with this number above"),
    ("swf", "log.swf", "4  25", "4  15", r"line 10: it is submitted earlier than a job above it"),
    ("swf", "log.swf", "4  25  50   0 -1", "4  25  50   0", r"line 10: 17 fields instead of 18"),
    ("swf", "log.swf", "2  10   0  50", "2  10   x  50", r"line 8: a field is not a number"),
    ("swf", "log.swf", "Version: 2.2", "Version: 7", r"the version of this log is 7"),
    ("swf", "log.swf", "2  10   0  50", "2  10   0  1e300", r"line 8: a field is not a finite number, or is huge"),
    ("swf", "log.swf", "MaxNodes: 8", "MaxNodes: none", r"MaxNodes: none, which is not a number >= 1; give --node-count"),
    ("swf", "log.swf", "MaxNodes: 8", "MaxNodes: 8" + "0" * 400, r"MaxNodes: 80+, which is not a number >= 1; give --node-count"),
    ("swf", "log.swf", "MaxNodes: 8", "MaxNodes: 8" + "0" * 5000, r"MaxNodes: 80+, which is not a number >= 1; give --node-count"),
]


@pytest.mark.parametrize(("kind", "name", "there", "instead", "message"), ROWS)
def test_one_row_that_is_wrong(tmp_path: Path, kind: str, name: str, there: str, instead: str, message: str) -> None:
    """The message names the line and the column; a lenient import leaves the row out, and says so."""
    text = (EXPORTS / name).read_text()
    assert there in text
    path = tmp_path / name
    path.write_text(text.replace(there, instead, 1))
    function = read(kind, **{re.sub(r"\W", "_", name): path})
    with pytest.raises(fo.InvalidInstance, match=message) as caught:
        function()
    assert str(path) in str(caught.value)
    if "lenient=True" in str(caught.value):
        line = re.search(r"line \d+", str(caught.value))
        assert line is not None
        assert any(line[0] in each.where for each in function(lenient=True).left_out)


@pytest.mark.parametrize("kind", FILES)
def test_options_that_do_not_exist(kind: str) -> None:
    """Of what tasks are, and of a weight of nobody."""
    with pytest.raises(fo.InvalidInstance, match='give "shapes" or "mean"'):
        read(kind)(demand="means")
    with pytest.raises(fo.InvalidInstance, match="there is no such owner"):
        read(kind)(weights={"nobody at all": 2})
    if kind != "google2011":
        with pytest.raises(fo.InvalidInstance, match='users is "everybody"'):
            read(kind)(users="everybody")
