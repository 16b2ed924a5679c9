"""``fairopt import``: what it prints and writes, its exit status, and the way from there to a comparison."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from support.command_line import run

import fairopt as fo

EXPORTS = Path(__file__).parents[1] / "clusters" / "exports"
KINDS: dict[str, list[object]] = {
    "kubernetes": ["--nodes", EXPORTS / "kubernetes_nodes.json", "--pods", EXPORTS / "kubernetes_pods.json"],
    "slurm": [
        "--nodes",
        EXPORTS / "slurm_nodes.json",
        "--jobs",
        EXPORTS / "slurm_jobs.json",
        "--associations",
        EXPORTS / "slurm_associations.json",
    ],
    "pbs": [
        *("--nodes", EXPORTS / "pbs_nodes.json", "--jobs", EXPORTS / "pbs_jobs.json"),
        *("--queues", EXPORTS / "pbs_queues.json", "--owners", "user"),
    ],
    "htcondor": [
        *("--nodes", EXPORTS / "htcondor_slots.json", "--jobs", EXPORTS / "htcondor_jobs.json"),
        *("--priorities", EXPORTS / "htcondor_priorities.json"),
    ],
    "yarn": ["--nodes", EXPORTS / "yarn_nodes.json", "--apps", EXPORTS / "yarn_apps.json"],
    "ray": [
        *("--nodes", EXPORTS / "ray_nodes.json", "--tasks", EXPORTS / "ray_tasks.json", "--actors", EXPORTS / "ray_actors.json"),
        *("--placement-groups", EXPORTS / "ray_placement-groups.json", "--jobs", EXPORTS / "ray_jobs.json"),
    ],
    "openb": ["--nodes", EXPORTS / "openb_nodes.csv", "--pods", EXPORTS / "openb_pods.csv"],
    "google2011": ["--machines", EXPORTS / "google_machines.csv", "--tasks", EXPORTS / "google_tasks.csv"],
    "swf": [EXPORTS / "log.swf", "--memory", 4],
}
QUEUES: dict[str, list[object]] = {
    "kubernetes": [*KINDS["kubernetes"], "--queues", EXPORTS / "kubernetes_queues.yaml"],
    "yarn": [*KINDS["yarn"], "--queues", EXPORTS / "yarn_scheduler.json"],
}
PLACED = ("kubernetes", "slurm", "pbs", "htcondor", "yarn", "ray", "swf")


@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_way(tmp_path: Path, kind: str) -> None:
    """Import, solve, and compare with what the running work holds."""
    cluster, held = tmp_path / "cluster.yaml", tmp_path / "held.csv"
    current = ["--current", held] if kind in PLACED else []
    text = run("import", kind, *KINDS[kind], "-o", cluster, *current).stdout
    assert f"Wrote {cluster}" in text
    solved = json.loads(run("solve", cluster, "--json").stdout)
    assert solved["certificate"]["worst"] <= 1e-8
    if kind in PLACED:
        compared = json.loads(run("compare", cluster, "--allocation", held, "--json").stdout)
        assert [row["name"] for row in compared["rows"]] == ["drfh", "held"]
        assert compared["rows"][1]["violations"] == []
        with held.open() as file:
            assert sum(float(row["tasks"]) for row in csv.DictReader(file)) == pytest.approx(compared["rows"][1]["tasks"])


@pytest.mark.parametrize("kind", KINDS)
def test_json_is_the_account(kind: str) -> None:
    """The same as in Python, without numbers that JSON does not have."""
    data = json.loads(run("import", kind, *KINDS[kind], "--json").stdout)
    assert data["kind"] == kind
    assert {"summary", "resources", "owners", "left_out", "notes"} <= set(data)
    for resource in data["resources"].values():
        assert 0 <= resource["held"] <= resource["asked"] + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_help_shows_an_example(kind: str) -> None:
    """Of the command itself."""
    text = " ".join(run("import", kind, "--help").stdout.replace("│", " ").split())
    assert f"Example: fairopt import {kind}" in text


def test_the_list_of_kinds() -> None:
    """All of them."""
    text = run("import", "--help").stdout
    assert all(kind in text for kind in KINDS)


def test_options_reach_the_import(tmp_path: Path) -> None:
    """Owners, weights, the mean, DaemonSets."""
    run(
        *("import", "kubernetes", *KINDS["kubernetes"], "--owners", "label:team", "--weight", "blue=2", "--demand", "mean"),
        *("--daemonsets", "tasks", "-o", tmp_path / "c.json"),
    )
    instance = fo.load(tmp_path / "c.json")
    assert set(instance.users) == {"blue", "green", "(no team)"}
    assert instance.weights[instance.index("blue")] == 2
    run("import", "google2011", *KINDS["google2011"], "--demand", "mean", "-o", tmp_path / "g.json")
    assert fo.load(tmp_path / "g.json").users == ("U1", "U2")


def test_queues_of_kubernetes(tmp_path: Path) -> None:
    """The tree, its guarantees and limits; what a guarantee means is said, and held.csv is as without queues."""
    cluster = tmp_path / "cluster.yaml"
    result = run("import", "kubernetes", *QUEUES["kubernetes"], "-o", cluster, "--current", tmp_path / "held.csv")
    text = " ".join(result.stdout.split())
    assert "solve with guarantees=surplus, such as drfh:guarantees=surplus" in text
    assert "2 pods in no queue of Kueue: in the root, beside its queues" in text
    assert "queues 6," in text
    queues = {queue.name: queue for queue in fo.load(cluster).queues}
    assert queues["company"] == fo.Queue("company", guarantee={"cpu": 35, "nvidia.com/gpu": 4}, limit={"cpu": 35, "nvidia.com/gpu": 4})
    assert queues["research"] == fo.Queue("research", "company", guarantee={"cpu": 20, "nvidia.com/gpu": 4}, limit={"cpu": 30})
    assert queues["services"] == fo.Queue("services", "company", 2, guarantee={"cpu": 15})
    assert queues["shop"] == fo.Queue("shop", "services", limit={"cpu": 12, "memory": 24})
    assert queues["ml"].parent == "research"
    assert queues["sandbox"].parent is None
    run("import", "kubernetes", *KINDS["kubernetes"], "-o", tmp_path / "flat.yaml", "--current", tmp_path / "flat.csv")
    assert (tmp_path / "held.csv").read_text() == (tmp_path / "flat.csv").read_text()


def test_queues_of_yarn(tmp_path: Path) -> None:
    """Of 16 cores and 16 GiB, 12 for etl and 4 for adhoc, at most 8."""
    run("import", "yarn", *QUEUES["yarn"], "-o", tmp_path / "cluster.json")
    assert fo.load(tmp_path / "cluster.json").queues == (
        fo.Queue("adhoc", None, 25, {"cpu": 4, "memory": 4}, {"cpu": 8, "memory": 8}),
        fo.Queue("etl", None, 75, {"cpu": 12, "memory": 12}),
    )
    data = json.loads(run("import", "yarn", *QUEUES["yarn"], "--json").stdout)
    assert data["summary"]["guarantees"] == "surplus"


def test_people_are_told_what_was_left_out() -> None:
    """With the reason, the number, the first place, and what is approximate."""
    result = run("import", "kubernetes", *KINDS["kubernetes"])
    text = " ".join(result.stdout.split())
    assert "4 pods: DaemonSet pod: taken off its node; the first: " in text
    assert "Note: 1 pod with required pod affinity or topology spread, which is ignored: a relaxation" in text
    assert "3 owners, 5 users, 4 servers" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kubernetes", "--nodes", "missing.json"], "there is no file missing.json"),
        (["kubernetes", "--nodes", EXPORTS / "slurm_nodes.json"], "this is not the output of kubectl"),
        (["openb", *KINDS["openb"], "--current", "held.csv"], "the exports do not say where tasks run"),
        (["slurm", *KINDS["slurm"], "-o", "cluster.csv"], "ends in .yaml or .json"),
        (["slurm", *KINDS["slurm"], "-o", "nowhere/cluster.yaml"], "there is no folder nowhere"),
        (["slurm", *KINDS["slurm"], "--weight", "physics"], "is not OWNER=NUMBER"),
        (["slurm", *KINDS["slurm"], "--weight", "optics=0"], "must be finite and > 0"),
        (["kubernetes", *KINDS["kubernetes"], "--queues", EXPORTS / "yarn_scheduler.json"], "kind: this field is missing"),
        (
            ["kubernetes", *KINDS["kubernetes"], "--queues", EXPORTS / "kubernetes_pods.json"],
            "there is no queue and no ResourceQuota, but Pod",
        ),
        (["yarn", *KINDS["yarn"], "--queues", EXPORTS / "yarn_apps.json"], "there is no scheduler.schedulerInfo in this answer"),
        (["swf", EXPORTS / "openb_nodes.csv"], "1 field instead of 18"),
    ],
)
def test_bad_input_is_exit_status_2(arguments: list[object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One message on stderr; nothing is written."""
    monkeypatch.chdir(tmp_path)
    result = run("import", *arguments, status=2)
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert list(tmp_path.iterdir()) == []
