"""YARN: a small cluster worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fairopt as fo

EXPORTS = Path(__file__).parent / "exports"
NODES, APPS = EXPORTS / "yarn_nodes.json", EXPORTS / "yarn_apps.json"


def test_nodes_and_applications() -> None:
    """Two nodes of 8 GiB and 8 cores (one has half of it in use, another is unhealthy); containers that run and that are asked for."""
    result = fo.import_yarn(NODES, APPS)
    instance = result.instance
    assert (instance.servers, instance.counts.tolist(), instance.capacities.tolist()) == (("h1:45454 +1",), [2], [[8, 8]])
    assert instance.users == ("adhoc", "etl/2 memory", "etl/1 memory")
    assert instance.demands.tolist() == [[1, 1], [1, 2], [1, 1]]
    assert instance.tasks.tolist() == [3, 6, 4]
    assert result.current is not None
    assert result.current.tasks.tolist() == [[0], [0], [4]]  # one row: where they run is known


def test_users_of_applications_can_be_the_owners() -> None:
    """Instead of queues."""
    assert set(fo.import_yarn(NODES, APPS, users="user").owners) == {"ada", "ben"}


def write(folder: Path, nodes: list[dict[str, Any]], apps: list[dict[str, Any]]) -> tuple[Path, Path]:
    """Write both."""
    (folder / "nodes.json").write_text(json.dumps({"nodes": {"node": nodes}}))
    (folder / "apps.json").write_text(json.dumps({"apps": {"app": apps}}))
    return folder / "nodes.json", folder / "apps.json"


def node(name: str, **more: Any) -> dict[str, Any]:
    """Make a node of 8 GiB and 8 cores."""
    used = {"usedMemoryMB": 0, "availMemoryMB": 8192, "usedVirtualCores": 0, "availableVirtualCores": 8}
    return {"id": name, "state": "RUNNING", **used, **more}


def test_labels_are_constraints_and_unlike_nodes_hide_what_is_held(tmp_path: Path) -> None:
    """With a label: where it is; without: where none is. What runs is then known by number only."""
    request = [{"resourceName": "*", "numContainers": 2, "capability": {"memory": 1024, "vCores": 1}}]
    common = {
        "state": "RUNNING",
        "user": "u",
        "resourceRequests": request,
        "runningContainers": 1,
        "allocatedMB": 1024,
        "allocatedVCores": 1,
    }
    apps = [{"id": "1", "queue": "a", "appNodeLabelExpression": "gpu", **common}, {"id": "2", "queue": "b", **common}]
    result = fo.import_yarn(*write(tmp_path, [node("plain"), node("fast", nodeLabels=["gpu"])], apps))
    assert result.instance.servers == ("fast", "plain")
    assert result.instance.eligibility.tolist() == [[True, False], [False, True]]
    assert result.current is None
    assert result.held.tolist() == [1, 1]


def test_an_application_twice_is_refused_or_counted(tmp_path: Path) -> None:
    """As in the documentation of Hadoop, whose sample has one twice."""
    app = {"id": "1", "queue": "a", "user": "u", "state": "RUNNING", "runningContainers": 1, "allocatedMB": 1024, "allocatedVCores": 1}
    paths = write(tmp_path, [node("h")], [app, app])
    with pytest.raises(
        fo.InvalidInstance, match=r'apps.json: apps.app\[1\]: application "1" is listed twice, first at .*apps.app\[0\]; list'
    ):
        fo.import_yarn(*paths)
    result = fo.import_yarn(*paths, lenient=True)
    assert (result.instance.tasks.tolist(), len(result.left_out)) == ([1], 1)


def test_one_node_may_come_without_its_list(tmp_path: Path) -> None:
    """What is made of XML writes a list of one so."""
    _, apps = write(
        tmp_path,
        [],
        [{"id": "1", "queue": "a", "user": "u", "state": "RUNNING", "runningContainers": 1, "allocatedMB": 512, "allocatedVCores": 1}],
    )
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": {"node": node("h")}}))
    assert fo.import_yarn(tmp_path / "nodes.json", apps).instance.demands.tolist() == [[1, 0.5]]
