"""What can be changed: each knob is a path of ``--set`` that changes that number and no other."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from support.command_line import EXAMPLES

import fairopt as fo
from fairopt.analysis.differences import Differences
from fairopt.formats import source_of
from fairopt.reporting.exploring.knobs import Knob, knobs_of

NAMES = """
resources: [gpu, memory]
servers:
- {name: "new.count=3 $x$", count: 4, capacity: {gpu: 8, memory: 256GiB}}
- {name: old, capacity: {gpu: 2, memory: 65536MiB}}
queues: [{name: q.r, guarantee: {memory: 64GiB}, limit: {memory: 128GiB}}, {name: "a = b", weight: 0.5}]
limits:
- {name: "l = 3", bound: 96GiB, resource: memory, each: user}
- {name: none, bound: 0}
users:
- {name: "c.weight=3 \\u202e", demand: {gpu: 1, memory: 2GiB}, queue: q.r, weight: 1/3}
- {name: c, demand: {gpu: 500m, memory: 1GiB}, queue: "a = b"}
"""
BY_RESOURCE = """
servers: [{name: s, capacity: {gpu: 8, cpu: 64}}]
users:
- {name: a, demand: {gpu: 1, cpu: 2}, weight: {gpu: 2, cpu: 1}}
- {name: b, demand: {gpu: 1, cpu: 4}, weight: {gpu: 3, cpu: 3}}
"""
BY_SERVER = """
servers:
- {name: a100, capacity: {gpu: 8, memory: 256GiB}, attributes: {model: A100}}
- {name: old, capacity: {gpu: 8, memory: 128GiB}, attributes: {model: V100}}
- {name: older, capacity: {gpu: 4, memory: 128GiB}, attributes: {model: V100}}
users:
- {name: train, demand: {gpu: 1, memory: 4GiB}, on: [{servers: model = V100, demand: {gpu: 2, memory: 8GiB}, speed: 0.9}]}
- {name: infer, demand: {gpu: 1, memory: 2GiB}}
"""


@pytest.fixture(params=["names", "by-resource", "gpu-lab", "research-queues.yaml"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file with hostile names and units, one with weights for each resource, a folder of tables, a tree."""
    texts = {"names": NAMES, "by-resource": BY_RESOURCE}
    if request.param not in texts:
        return EXAMPLES / str(request.param)
    file = tmp_path / f"{request.param}.yaml"
    file.write_text(texts[request.param], encoding="utf-8")
    return file


def test_amounts_and_speeds_by_server(tmp_path: Path) -> None:
    """An amount for all servers, one for each server of which another is said, and a speed on each; first where the file says one."""
    file = tmp_path / "kinds.yaml"
    file.write_text(BY_SERVER, encoding="utf-8")
    found = {knob.path: knob for knob in knobs(file)}
    assert [path for path in found if path.startswith("users.train.") and path.endswith("gpu")] == [
        "users.train.demand.gpu",
        "users.train.on.old.demand.gpu",
        "users.train.on.older.demand.gpu",
    ]
    assert found["users.train.on.old.demand.memory"].word(6) == "users.train.on.old.demand.memory=6GiB"
    speeds = {path.removeprefix("users.").removesuffix(".speed"): knob for path, knob in found.items() if path.endswith("speed")}
    assert {path: knob.value for path, knob in speeds.items()} == {
        **{"train.on.a100": 1, "train.on.old": 0.9, "train.on.older": 0.9},
        **{"infer.on.a100": 1, "infer.on.old": 1, "infer.on.older": 1},
    }
    assert [path for path, knob in speeds.items() if knob.likely] == ["train.on.old", "train.on.older"]
    slower = fo.load(file, changes=[speeds["train.on.older"].word(0.45)])
    assert slower.speeds.tolist() == [[1, 0.9, 0.45], [1, 1, 1]]


def knobs(path: Path) -> tuple[Knob, ...]:
    """Return the knobs of a file."""
    return knobs_of(source_of(path), fo.load(path))


def test_a_knob_changes_one_number(path: Path) -> None:
    """Its value is that of the file, and another value is one difference, at its path."""
    instance = fo.load(path)
    for knob in knobs(path):
        for same in Differences(instance, fo.load(path, changes=[knob.word(knob.value)])).all:  # none named is 0; 1/3 in twelve digits
            assert same.after == pytest.approx(float(Fraction(same.before or 0)), rel=1e-9)
        other = knob.value + (knob.step if knob.kind == "counts" else knob.step / 2)
        found = Differences(instance, fo.load(path, changes=[knob.word(other)])).all
        paths = {difference.path for difference in found}
        if isinstance(found[0].after, dict):  # the weights of the resources are one value
            assert paths == {knob.path.rpartition(".")[0]}
            assert found[0].after[knob.path.rpartition(".")[2]] == pytest.approx(other)
        else:
            size = {"": 1, "GiB": 2**30}[knob.unit]
            assert paths == {knob.path}
            assert found[0].after == pytest.approx(other * size)


def test_a_slider_can_reach_its_value(path: Path) -> None:
    """It lies in the range, and a range has at most a thousand steps."""
    for knob in knobs(path):
        assert knob.low <= knob.value <= knob.high
        assert 10 <= round(knob.high / knob.step, 6) <= 1000
        assert round(knob.high / knob.step, 6) % 1 == 0
        assert not knob.is_changed(knob.value + 1e-15)
        assert knob.is_changed(knob.value + knob.step)


def test_a_tree_has_weights_and_guarantees_of_queues() -> None:
    """Those that the file names come at once; all others can be chosen."""
    found = {knob.path: knob for knob in knobs(EXAMPLES / "research-queues.yaml")}
    assert found["queues.research.weight"].value == 3
    research, vision = found["queues.research.guarantee.gpu"], found["queues.vision.guarantee.cpu"]
    assert (research.value, research.high, research.step, research.likely) == (32, 56, 1, True)
    assert (vision.value, vision.high, vision.likely) == (0, 800, False)
    assert found["servers.new.capacity.gpu"].value == 8
    assert found["users.alice.demand.gpu"].value == 2
    assert "users.dan.demand.gpu" not in found  # it asks for none
    assert found["users.carol.guarantee"].likely
    assert not found["users.alice.guarantee"].likely


def test_weights_are_on_one_scale(path: Path) -> None:
    """So are the amounts of a resource; sliders side by side can be compared."""
    found = knobs(path)
    assert len({(knob.high, knob.step) for knob in found if knob.kind == "weights"}) == 1
    for kind in ("capacities", "demands"):
        by_resource: dict[str, set[float]] = {}
        for knob in found:
            if knob.kind == kind:
                by_resource.setdefault(knob.path.rpartition(".")[2], set()).add(knob.high)
        assert by_resource
        assert all(len(ends) == 1 for ends in by_resource.values())
