"""A change of what a user says of one server, where an entry of ``on`` is about several."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fairopt as fo

LAB = """
servers:
- {name: a100, capacity: {gpu: 8}, attributes: {model: A100}}
- {name: v1, capacity: {gpu: 8}, attributes: {model: V100}}
- {name: v2, capacity: {gpu: 8}, attributes: {model: V100}}
users:
- {name: train, demand: {gpu: 1}, on: [{servers: SAID, demand: {gpu: 2}, speed: 0.9}]}
- {name: infer, demand: {gpu: 1}}
"""


@pytest.mark.parametrize("said", ["model = V100", "[v1, v2]"])
@pytest.mark.parametrize(
    ("changes", "speeds", "gpus"),
    [
        (["users.train.on.v1.speed=0.8"], [1, 0.8, 0.9], [1, 2, 2]),
        (["users.train.on.v2.demand.gpu+=1", "users.train.on.v2.speed*=2"], [1, 0.9, 1.8], [1, 2, 3]),
        (["users.train.on.v1.speed=0.8", "users.train.on.v2.speed=0.7", "users.train.on.v1.demand.gpu=4"], [1, 0.8, 0.7], [1, 4, 2]),
        (["users.train.on.a100.speed=2"], [2, 0.9, 0.9], [1, 2, 2]),
        (["users.train.on.v1.speed=0.8", "users.train.on.v1="], [1, 1, 0.9], [1, 1, 2]),
    ],
)
def test_one_server_changes_alone(tmp_path: Path, said: str, changes: list[str], speeds: list[float], gpus: list[float]) -> None:
    """Of a condition and of a list of servers: what the entry says of it stays, but for what is changed; the others keep theirs."""
    (tmp_path / "lab.yaml").write_text(LAB.replace("SAID", said))
    found = fo.load(tmp_path / "lab.yaml", changes=changes)
    assert found.speeds.tolist() == [speeds, [1, 1, 1]]
    assert found.demands_by_row(0)[:, 0].tolist() == gpus


def test_an_entry_that_cannot_be_read_stays_and_is_refused(tmp_path: Path) -> None:
    """With the place of what is wrong."""
    (tmp_path / "lab.yaml").write_text(LAB.replace("SAID", "color = red"))
    with pytest.raises(fo.InvalidInstance, match="color"):
        fo.load(tmp_path / "lab.yaml", changes=["users.train.on.v1.speed=0.8"])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "{servers: v3, speed: 2}",
            'line 7: user "train", on, item 1, servers: there is no server "v3"; the servers are a100, v1 and v2; conditions on attributes '
            "are written attribute = value",
        ),
        ("{servers: model V100, speed: 2}", '"model V100" has no operator; write attribute = value'),
        ("{servers: v1}", 'line 7: user "train", on, item 1: neither a demand nor a speed is given; give one of them, or remove the entry'),
        ("{servers: v1, demand: {gpu: 1}}, {servers: model = V100, speed: 2}", '"v1" is in two entries, this one and number 1 ("v1")'),
    ],
)
def test_an_entry_that_says_nothing_of_a_server_is_refused(tmp_path: Path, entry: str, message: str) -> None:
    """A word alone is the name of a server; an entry without a demand and a speed, and a server in two entries, are slips of the pen."""
    (tmp_path / "lab.yaml").write_text(LAB.replace("{servers: SAID, demand: {gpu: 2}, speed: 0.9}", entry))
    with pytest.raises(fo.InvalidInstance, match=re.escape(message)):
        fo.load(tmp_path / "lab.yaml")
