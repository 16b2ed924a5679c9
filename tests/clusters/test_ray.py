"""Ray: a small cluster worked out by hand in the words of its state API, and a real one where Ray is installed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from support.slurm_records import by_user

import fairopt as fo
from fairopt.clusters.ray_fields import DECLARED

EXPORTS = Path(__file__).parent / "exports"
NODES, TASKS, ACTORS = (EXPORTS / f"ray_{kind}.json" for kind in ("nodes", "tasks", "actors"))
GROUPS, JOBS = EXPORTS / "ray_placement-groups.json", EXPORTS / "ray_jobs.json"
A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"


def imported(**options: Any) -> fo.Import:
    """Import all of it."""
    return fo.import_ray(NODES, TASKS, ACTORS, GROUPS, JOBS, **options)


def node(number: str = "a1", **more: Any) -> dict[str, Any]:
    """Make a node with 8 CPUs."""
    return {"node_id": number, "node_name": number, "state": "ALIVE", "resources_total": {"CPU": 8.0}, "labels": {}, **more}


def task(number: int, resources: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Make a task that waits for a node."""
    named = {"task_id": f"{number:x}", "type": "NORMAL_TASK", "state": "PENDING_NODE_ASSIGNMENT", "job_id": "01"}
    return {**named, "required_resources": resources or {"CPU": 1.0}, **more}


def of(folder: Path, nodes: list[dict[str, Any]], **listed: Any) -> fo.Import:
    """Write the lists and import them."""
    paths: dict[str, Any] = {}
    for kind, records in {"nodes": nodes, **listed}.items():
        paths[kind] = folder / f"{kind}.json"
        paths[kind].write_text(json.dumps(records))
    return fo.import_ray(**paths)


def test_nodes_offer_logical_resources() -> None:
    """Text with units is memory; the dead node offers nothing; marks of nodes and accelerators are no resources."""
    instance = imported().instance
    assert instance.resources == ("cpu", "gpu", "memory", "ssd")
    assert dict(zip(instance.servers, instance.capacities.tolist(), strict=True)) == {
        A: [16, 0, 32, 0],
        B: [32, 4, 128, 2],
        C: [32, 4, 128, 0],
    }


def test_work_becomes_tasks() -> None:
    """Tasks, actors and bundles; what creates an actor, runs in one or runs in a placement group is not counted again."""
    users = by_user(imported())
    everywhere = {A, B, C}

    def demand(cpu: float, gpu: float = 0, memory: float = 0, ssd: float = 0) -> dict[str, float]:
        return {"cpu": cpu, "gpu": gpu, "memory": memory, "ssd": ssd}

    assert users == {
        "job 02000000/8 cpu 1 gpu": {"demand": demand(8, 1), "tasks": 1, "held": 0, "on": {B, C}},
        "job 02000000/4 cpu": {"demand": demand(4), "tasks": 1, "held": 1, "on": everywhere},
        "job 02000000/2 cpu 1 ssd": {"demand": demand(2, ssd=1), "tasks": 1, "held": 0, "on": {B}},
        "vision/2 cpu 0.5 gpu": {"demand": demand(2, 0.5), "tasks": 1, "held": 1, "on": {B, C}},
        "vision/1 cpu 1 gpu": {"demand": demand(1, 1), "tasks": 1, "held": 0, "on": {B}},
        "vision/1 cpu 2 memory": {"demand": demand(1, memory=2), "tasks": 1, "held": 1, "on": everywhere},
        "vision/1 cpu 1 memory": {"demand": demand(1, memory=1), "tasks": 3, "held": 2, "on": everywhere},
        "vision/1 cpu 1 memory (2)": {"demand": demand(1, memory=1), "tasks": 1, "held": 0, "on": {C}},
        "vision/1 cpu": {"demand": demand(1), "tasks": 1, "held": 1, "on": everywhere},
    }


def test_what_is_no_demand_is_counted() -> None:
    """With the reason."""
    why = {(what, why.partition(":")[0]): number for (what, why), (number, _) in imported().why_left_out.items()}
    assert why == {
        ("node", "dead"): 1,
        ("actor", "ended (dead)"): 1,
        ("task", "not ready (PENDING_ARGS_AVAIL)"): 1,
        ("task", "ended (finished)"): 1,
        ("task", "ended (failed)"): 1,
        ("task", "runs in a placement group, whose bundles count"): 1,
        ("task", "creates an actor, which counts itself"): 1,
        ("task", "runs in its actor, which holds the resources"): 1,
        ("actor", "asks for nothing while it runs (num_cpus is 0, or not given, and then it needs 1 CPU to be placed)"): 1,
        ("task", "larger than every server on which it may run, so it can never start"): 1,
    }


def test_what_is_held_is_where_it_runs() -> None:
    """On the first node a task and a bundle with 2 GiB."""
    current = imported().current
    assert current is not None
    assert current.usage.tolist() == [[2, 0, 3, 0], [4, 0.5, 1, 0], [4, 0, 0, 0]]


def test_without_placement_groups_what_runs_in_them_counts() -> None:
    """One CPU and 1 GiB of the bundle's two."""
    result = fo.import_ray(NODES, TASKS, ACTORS)
    assert by_user(result)["vision/1 cpu 1 memory"]["held"] == 3
    assert any("what runs in them counts" in note for note in result.notes)


def test_without_actors_those_that_wait_count_as_tasks(tmp_path: Path) -> None:
    """And a note says that those that run are not known."""
    create = task(1, {"CPU": 2.0}, type="ACTOR_CREATION_TASK", actor_id="e5")
    result = of(tmp_path, [node()], tasks=[create])
    assert result.instance.demands.tolist() == [[2]]
    assert any("actors are not listed" in note for note in result.notes)
    actor = {"actor_id": "e5", "state": "PENDING_CREATION", "job_id": "01", "required_resources": {"CPU": 2.0}}
    assert of(tmp_path, [node()], tasks=[create], actors=[actor]).instance.tasks.tolist() == [1]


def test_default_actors_need_a_cpu_to_be_placed_and_none_while_they_run(tmp_path: Path) -> None:
    """Two run and one waits on a node of 2 CPUs, beside an actor of 2 CPUs, which has them."""
    plain = {"job_id": "01", "ray_namespace": "team", "required_resources": {}}
    states = ("ALIVE", "ALIVE", "PENDING_CREATION")
    actors = [
        {"actor_id": f"{n}", "state": state, "node_id": "a1" if state == "ALIVE" else None, **plain} for n, state in enumerate(states)
    ]
    actors.append({"actor_id": "9", "state": "PENDING_CREATION", **plain, "required_resources": {"CPU": 2.0}})
    found = of(tmp_path, [node(resources_total={"CPU": 2.0})], actors=actors)
    assert fo.solve(found.instance, "drfh").tasks_per_user.tolist() == [1]
    reasons = {why: number for (_, why), (number, _) in found.why_left_out.items()}
    assert sorted(reasons.values()) == [1, 2]
    assert any("then it waits for 1 free CPU" in why for why in reasons)


@pytest.mark.parametrize(
    ("users", "owners"),
    [
        ("namespace", {"vision": 6, "job 02000000": 3}),
        ("job", {"job 01000000": 6, "job 02000000": 3}),
        ("metadata:owner", {"ada": 6, "(no owner)": 3}),
    ],
)
def test_owners(users: str, owners: dict[str, int]) -> None:
    """Tasks have the namespace of the actors of their job; an anonymous one is no owner."""
    assert imported(users=users).to_frame()["users"].to_dict() == owners


def test_a_job_in_two_namespaces_is_an_owner_itself(tmp_path: Path) -> None:
    """Its actors are of their namespaces, its tasks of the job."""
    actors = [
        {"actor_id": name, "state": "ALIVE", "job_id": "01", "ray_namespace": name, "node_id": "a1", "required_resources": {"CPU": 1.0}}
        for name in ("x", "y")
    ]
    assert set(of(tmp_path, [node()], tasks=[task(1)], actors=actors).owners) == {"x", "y", "job 01"}


@pytest.mark.parametrize(
    ("selector", "fallback", "on"),
    [
        ({"region": "eu"}, [], {"a1"}),
        ({"region": "!eu"}, [], {"b2", "c3"}),
        ({"region": "in( us,eu)"}, [], {"a1", "b2"}),
        ({"region": "!in(us,eu)"}, [], {"c3"}),
        ({"region": "us", "spot": "!yes"}, [], set()),
        ({"region": "mars"}, [("region", "LABEL_OPERATOR_IN", ["us"])], {"b2"}),
        ({"region": "us"}, [("region", "LABEL_OPERATOR_NOT_IN", ["us", "eu"])], {"b2", "c3"}),
        ({}, [("region", "LABEL_OPERATOR_IN", ["us"])], {"a1", "b2", "c3"}),
    ],
)
def test_labels(tmp_path: Path, selector: dict[str, str], fallback: list[Any], on: set[str]) -> None:
    """As Ray writes them: one value, some, none of them; a node without the label has none of the values."""
    labels = {"a1": {"region": "eu"}, "b2": {"region": "us", "spot": "yes"}, "c3": {}}
    nodes = [node(name, labels=each, resources_total={"CPU": 8.0 + n}) for n, (name, each) in enumerate(labels.items())]
    constraints = [{"label_key": key, "operator": operator, "label_values": values} for key, operator, values in fallback]
    options = [{"label_selector": {"label_constraints": [each]}} for each in constraints]
    one = task(1, label_selector=selector, fallback_strategy={"options": options})
    result = of(tmp_path, nodes, tasks=[one, task(2, {"CPU": 2.0}, job_id="02")])
    assert by_user(result).get("job 01", {"on": set()})["on"] == on


def test_nodes_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Several nodes on one machine have one address."""
    nodes = [node(f"{n}" * 20, node_name="10.0.0.1", resources_total={"CPU": float(n)}) for n in (1, 2)]
    assert of(tmp_path, nodes, tasks=[task(1)]).instance.servers == ("10.0.0.1/11111111", "10.0.0.1/22222222")


def test_the_answer_of_the_dashboard_is_the_same(tmp_path: Path) -> None:
    """``/api/v0/nodes`` has bytes and the list inside."""
    nodes = json.loads(NODES.read_text())
    for each in nodes:
        for name, amount in each["resources_total"].items():
            if isinstance(amount, str):
                number, unit = amount.split()
                each["resources_total"][name] = float(number) * 2.0 ** (30 if unit == "GiB" else 20)
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps({"result": True, "msg": "", "data": {"result": {"total": 4, "result": nodes}}}))
    assert fo.import_ray(path, TASKS, ACTORS, GROUPS, JOBS).instance == imported().instance


def test_a_listing_of_exactly_the_default_limit_is_named(tmp_path: Path) -> None:
    """``ray list`` ends after 100 and says so only on the screen."""
    assert any("--limit 10000" in note for note in of(tmp_path, [node()], tasks=[task(n) for n in range(100)]).notes)
    assert of(tmp_path, [node()], actors=[], tasks=[task(n) for n in range(99)]).notes == ()


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"nodes": [node(resources_total={"CPU": "8 cores"})]}, r'\[0\]\.resources_total\.CPU: "8 cores" is not an amount such as 4, 512'),
    (
        {"nodes": [node(resources_total=None)]},
        r"resources_total: this field is missing; export it again: ray list nodes --format json --detail",
    ),
    ({"nodes": [node(state="SLEEPING")]}, r'there is no state "SLEEPING" of a node'),
    ({"nodes": [node(), node()]}, r'node "a1" is listed twice'),
    ({"tasks": [task(1, state="DANCING")]}, r'tasks\.json: \[0\]\.state: the state "DANCING" is not known'),
    ({"tasks": [task(1, type="DREAM")]}, r'there is no type "DREAM" of a task'),
    ({"tasks": [task(1, required_resources=None)]}, "required_resources: this field is missing; export it again: ray list tasks"),
    ({"tasks": [task(1, state="RUNNING", node_id="z9")]}, r'\[0\]\.node_id: runs on node "z9", which .*nodes\.json does not list'),
    ({"tasks": [task(1, label_selector={"region": "in("})]}, r'label_selector\.region: "in\(" is not a label selector such as eu'),
    ({"tasks": {"result": False, "msg": "no dashboard"}}, "Ray answered with an error, no dashboard"),
    (
        {"tasks": {"result": True, "data": {"result": {"total": 500, "result": [task(1)]}}}},
        "this lists 1 of 500 tasks; export them with limit",
    ),
    ({"tasks": {"jobs": []}}, r"this is no list of tasks \(it has jobs\)"),
]


@pytest.mark.parametrize(("listed", "message"), REFUSED)
def test_listings_that_are_not_what_they_should_be(tmp_path: Path, listed: dict[str, Any], message: str) -> None:
    """What, where, and the command that makes a good one."""
    with pytest.raises(fo.InvalidInstance, match=message):
        of(tmp_path, listed.get("nodes", [node()]), tasks=listed.get("tasks", [task(1)]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"users": "owner"}, 'users is "owner"; give "namespace", "job" or "metadata:KEY"'),
        ({"users": "metadata:"}, "users is"),
        ({"users": "metadata:owner"}, "are in the metadata of jobs; give jobs, from: ray list jobs"),
    ],
)
def test_owners_that_there_are_not(options: dict[str, str], message: str) -> None:
    """The three words, and metadata without jobs."""
    with pytest.raises(fo.InvalidInstance, match=message):
        fo.import_ray(NODES, TASKS, **options)  # type: ignore[arg-type]


def test_something_must_run() -> None:
    """Nodes alone are no demand."""
    with pytest.raises(fo.InvalidInstance, match="give tasks, actors or placement groups"):
        fo.import_ray(NODES)


# A real one ----------------------------------------------------------------------------------------------------------------------

CLUSTER = """
import json, sys, time, urllib.request
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
from ray.util.placement_group import placement_group

folder = Path(sys.argv[1])
head = {"num_cpus": 2, "include_dashboard": True, "dashboard_port": 0, "object_store_memory": 80 * 2**20, "memory": 2**30}
cluster = Cluster(initialize_head=True, head_node_args=head)
cluster.add_node(num_cpus=4, num_gpus=2, object_store_memory=80 * 2**20, memory=2**30, labels={"region": "eu"})
context = ray.init(address=cluster.address, namespace="vision", log_to_driver=False)
try:
    @ray.remote(num_cpus=1, num_gpus=0.5)
    class Server:
        def ready(self): return True
    @ray.remote(num_cpus=1)
    def work(): time.sleep(300)
    servers = [Server.remote() for _ in range(2)]
    ray.get([server.ready.remote() for server in servers])
    group = placement_group([{"CPU": 1}])
    ray.get(group.ready())
    waits = [work.remote() for _ in range(5)] + [work.options(label_selector={"region": "mars"}).remote()]
    until = time.monotonic() + 60
    while ray.available_resources().get("CPU", 0) > 0 and time.monotonic() < until:
        time.sleep(0.2)
    time.sleep(3)  # the listings are a little behind
    for kind in ("nodes", "tasks", "actors", "placement_groups"):
        with urllib.request.urlopen(f"http://{context.dashboard_url}/api/v0/{kind}?detail=true&limit=10000") as answer:
            (folder / f"{kind}.json").write_bytes(answer.read())
    total, left = ray.cluster_resources(), ray.available_resources()
    (folder / "held.json").write_text(json.dumps({name: total[name] - left.get(name, 0) for name in ("CPU", "GPU", "memory")}))
finally:
    ray.shutdown()
    cluster.shutdown()
"""


@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None or importlib.util.find_spec("aiohttp_cors") is None, reason="needs pip install ray[default]"
)
def test_a_real_cluster(tmp_path: Path) -> None:
    """What it says that it has lent is what is held: 6 CPUs, two halves of a GPU; 3 of 5 tasks run, and one never can."""
    script = tmp_path / "cluster.py"
    script.write_text(textwrap.dedent(CLUSTER))
    silent = os.environ | {"RAY_USAGE_STATS_ENABLED": "0"}
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, timeout=300, capture_output=True, env=silent)
    result = fo.import_ray(*(tmp_path / f"{kind}.json" for kind in ("nodes", "tasks", "actors", "placement_groups")))
    held = dict(zip(result.instance.resources, result.held @ result.instance.demands, strict=True))
    lent = json.loads((tmp_path / "held.json").read_text())
    assert (held["cpu"], held["gpu"], held["memory"]) == (lent["CPU"], lent["GPU"], lent["memory"] / 2**30) == (6, 1, 0)
    assert set(result.owners) == {"vision"}
    assert result.current is not None
    assert fo.compare(result.instance, allocations={"held": result.current})["held"].violations == ()


# Parts of GPUs -------------------------------------------------------------------------------------------------------------------


def actor(number: int, gpus: float, **more: Any) -> dict[str, Any]:
    """Make an actor that waits for a part of a GPU."""
    named = {"actor_id": f"{number:x}", "state": "PENDING_CREATION", "job_id": "01", "ray_namespace": "team"}
    return {**named, "required_resources": {"GPU": gpus}, **more}


def test_a_part_of_a_gpu_lies_on_one_gpu(tmp_path: Path) -> None:
    """Of 0.6 one fits on each of two GPUs, though 2 / 0.6 is more than three; of a third, three do."""
    nodes = [node(resources_total={"CPU": 4.0, "GPU": 2.0})]
    found = of(tmp_path, nodes, actors=[actor(n, 0.6) for n in range(3)])
    assert found.instance.demands[:, found.instance.resources.index("gpu")].tolist() == [1]
    assert fo.solve(found.instance, "drfh").tasks_per_user == pytest.approx([2])
    assert (
        "a part of a GPU lies on one card: 0.6 takes an effective 1, as 1 fits on a card (3 tasks); shares and quotas count what it takes"
        in found.notes
    )
    third = of(tmp_path, nodes, actors=[actor(n, 0.3333) for n in range(9)])
    assert fo.solve(third.instance, "drfh").tasks_per_user == pytest.approx([6])


def test_bundles_and_other_accelerators_have_parts_too(tmp_path: Path) -> None:
    """A bundle with 0.4 of a GPU, a task with 0.7 of a TPU; parts of custom resources are of the whole node."""
    nodes = [node(resources_total={"CPU": 4.0, "GPU": 1.0, "TPU": 2.0, "ssd": 2.0})]
    group = {"placement_group_id": "aa", "state": "PENDING", "creator_job_id": "01", "bundles": [{"unit_resources": {"GPU": 0.4}}]}
    found = of(tmp_path, nodes, tasks=[task(1, {"TPU": 0.7, "ssd": 0.7})], **{"placement_groups": [group]})
    assert {tuple(row) for row in found.instance.demands.tolist()} == {(0, 0.5, 0, 0), (0, 0, 1, 0.7)}
    assert found.instance.resources == ("cpu", "gpu", "TPU", "ssd")


# Fields --------------------------------------------------------------------------------------------------------------------------


def test_fields_that_nobody_declared_are_named(tmp_path: Path) -> None:
    """Of nodes, tasks, actors, placement groups, bundles; the files here and those of every listing have none."""
    nodes = [node(resources_total={"CPU": 4.0, "GPU": 1.0}, colour="red")]
    group = {"placement_group_id": "aa", "state": "PENDING", "bundles": [{"unit_resources": {"CPU": 1.0}, "size": 3}], "shade": "dark"}
    found = of(tmp_path, nodes, tasks=[task(1, mood="bad")], actors=[actor(1, 1.0, hue=2)], placement_groups=[group])
    unknown = [note for note in found.notes if "does not know" in note]
    assert sorted(note.partition(",")[0] for note in unknown) == [
        "1 actor has the field hue",
        "1 bundle has the field size",
        "1 node has the field colour",
        "1 placement group has the field shade",
        "1 task has the field mood",
    ]
    assert not any("does not know" in note for note in imported().notes)


def test_every_field_of_ray_is_declared_once() -> None:
    """With a reason."""
    for fields in DECLARED:
        names = [name for each in fields.fields for name in each.names]
        assert len(names) == len(set(names)), fields.record
        assert all(each.why for each in fields.fields)
