"""Queues and their tree: what they are, and what is refused."""

from __future__ import annotations

import json
import pickle
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.instance.tree import circle

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "the name of a queue must be a string that is not blank, got ''"),
        ({"name": " "}, "the name of a queue must be a string that is not blank, got ' '"),
        ({"weight": -1}, 'queue "q": its weight must be finite and >= 0, got -1'),
        *(
            ({"weight": number}, 'queue "q": its weight must be finite and >= 0, got a number beyond 1e308')
            for number in (10**400, 10**5000, Fraction(10**400))
        ),
        ({"tier": -(10**5000)}, 'queue "q": its tier must be a whole number of at most 15 digits, got a number beyond 1e308'),
        ({"limit": {"gpu": 10**400}}, 'queue "q": the limit of gpu must be finite and >= 0, got a number beyond 1e308'),
        ({"weight": NAN}, 'queue "q": its weight must be finite and >= 0, got nan'),
        ({"weight": 1e-80}, 'queue "q": its weight is 1e-80; it must be 0 or between 1e-60 and 1e+60: multiply all weights by one number'),
        ({"tier": 1.5}, 'queue "q": its tier must be a whole number of at most 15 digits, got 1.5'),
        ({"tier": 2**70}, f'queue "q": its tier must be a whole number of at most 15 digits, got {2**70}'),
        ({"parent": ""}, "queue \"q\": its parent must be the name of a queue, or None for the root, got ''"),
        ({"guarantee": {"gpu": -1}}, 'queue "q": the guarantee of gpu must be finite and >= 0, got -1'),
        ({"guarantee": {"gpu": INF}}, 'queue "q": the guarantee of gpu must be finite and >= 0, got inf'),
        ({"limit": {"gpu": NAN}}, 'queue "q": the limit of gpu must be finite and >= 0, got nan'),
        (
            {"limit": {"gpu": 1e70}},
            'queue "q": the limit of gpu is 1e+70; it must be 0 or between 1e-60 and 1e+60: measure in another unit',
        ),
        ({"guarantee": 8}, 'queue "q": its guarantee must name resources and amounts, such as {gpu: 8}, got 8'),
        (
            {"guarantee": {"gpu": 8}, "limit": {"gpu": 4}},
            'queue "q": the limit of gpu is 4, less than its guarantee of 8; raise or lower one',
        ),
        (
            {"guarantee": {"gpu": 8.0001}, "limit": {"gpu": 8}},
            'queue "q": the limit of gpu is 8, less than its guarantee of 8.0001; raise or lower one',
        ),
        (
            {"lending_limit": {"gpu": 4}},
            'queue "q": it has a lending limit of gpu but no guarantee of it to lend; give it a guarantee',
        ),
    ],
)
def test_refused_queues(arguments: dict[str, Any], message: str) -> None:
    """Each names the queue."""
    with pytest.raises(fo.InvalidInstance, match=f"^{re.escape(message)}$"):
        fo.Queue(**{"name": "q"} | arguments)


def test_a_limit_without_end_is_no_limit() -> None:
    """As of tasks and of parallelism."""
    assert fo.Queue("q", limit={"gpu": INF, "cpu": np.float64(3)}) == fo.Queue("q", limit={"cpu": 3})


def test_parents_in_a_circle() -> None:
    """The queues of the circle, and not those that lead to it; a long chain is none."""
    parents: dict[str, str | None] = {f"q{k}": f"q{k - 1}" if k else None for k in range(20_000)}
    assert circle(parents) == []
    assert circle(parents | {"a": "b", "b": "c", "c": "b"}) == ["b", "c"]
    queues = [fo.Queue("a", parent="b"), fo.Queue("b", parent="c"), fo.Queue("c", parent="b")]
    message = "the parents of queues go round in a circle: b -> c -> b; one must be in the root"
    with pytest.raises(fo.InvalidInstance, match=f"^{message}$"):
        fo.Instance([[1]], [[1]], queues=queues)


def test_the_tree_of_an_instance() -> None:
    """Nodes in the order of the queues, whatever the order of parents and children."""
    queues = [fo.Queue("vision", parent="research"), fo.Queue("research", weight=2, tier=3), fo.Queue("guests")]
    tree = fo.Instance([[4]], [[1], [1], [1]], queues=queues, queue_of=["vision", None, "research"]).tree
    assert tree.parent.tolist() == [-1, 2, 0, 0]
    assert tree.depth.tolist() == [0, 2, 1, 1]
    assert tree.tiers.tolist() == [0, 3, 3, 0]
    assert tree.path(1) == ("research", "vision")
    assert tree.below.tolist() == [[True] * 3, [True, False, False], [True, False, True], [False] * 3]


def test_queues_survive_a_pickle() -> None:
    """Workers of studies get them so."""
    queue = fo.Queue("q", None, 2, {"gpu": 1}, {"gpu": 3}, {"gpu": 0}, 1, [fo.Quota(["A"], {"gpu": 1}, name="model = A100")])
    assert pickle.loads(pickle.dumps(queue)) == queue


def test_users_are_left_out_of_an_instance_without_guarantees() -> None:
    """Its zeros and empty queues are as many as its users, without being named."""
    instance = fo.Instance([[4]], [[1], [2]])
    assert instance.replace(demands=[[1]], weights=None, eligibility=None, tasks=None, parallelism=None, users=None).n_users == 1
    in_queues = instance.replace(queues=[fo.Queue("q")], queue_of=["q", None], guarantees=[0, 1])
    assert in_queues.replace(weights=[1, 2]).queue_of == ("q", None)
    assert in_queues.replace(weights=[1, 2]).guarantees.tolist() == [0, 1]


def chain(levels: int) -> list[fo.Queue]:
    """Queues that are in each other."""
    return [fo.Queue(f"q{j}", parent=f"q{j - 1}" if j else None) for j in range(levels)]


def test_a_tree_has_at_most_100_levels(tmp_path: Path) -> None:
    """In Python and in a file; deeper trees are refused, and 30,000 levels as fast as 101."""
    demand: dict[str, Any] = {"capacities": [[1.0]], "demands": [[1.0]], "resources": ["cpu"], "users": ["u"]}
    assert fo.solve(fo.Instance(**demand, queues=chain(100), queue_of=["q99"]), "drf").tasks_per_user.tolist() == [1.0]
    for levels in (101, 1200, 30_000):
        message, deep = f'"q{levels - 1}" is {levels:,} levels below the root, and a tree has 100 levels at most', chain(levels)
        with pytest.raises(fo.InvalidInstance, match=message):
            fo.Instance(**demand, queues=deep, queue_of=["q0"])
        queues = [{"name": queue.name} | ({"parent": queue.parent} if queue.parent else {}) for queue in deep]
        document = {
            "servers": [{"name": "s", "capacity": {"cpu": 1}}],
            "queues": queues[::-1],
            "users": [{"name": "u", "demand": {"cpu": 1}}],
        }
        path = tmp_path / "deep.json"
        path.write_text(json.dumps(document))
        with pytest.raises(fo.InvalidInstance, match=rf'deep.json, line 1: queue "q{levels - 1}", parent: the queue {message}'):
            fo.load(path)


@pytest.mark.parametrize("kind", ["volcano", "hierarchy", "kai", "kueue", "capacity", "fair"])
def test_deep_trees_of_other_schedulers_are_refused(tmp_path: Path, kind: str) -> None:
    """Exports with 150 levels, lists of objects and lists in lists."""
    exports = Path(__file__).parents[1] / "clusters" / "exports"
    names = [f"q{j}" for j in range(150)]

    def queue(group: str, j: int, **spec: object) -> dict[str, object]:
        return {"apiVersion": f"{group}/v1beta1", "kind": "Queue", "metadata": {"name": names[j]}, "spec": spec}

    items: list[dict[str, object]] = []
    for j in range(150):
        above = {"parent": names[j - 1]} if j else {}
        if kind == "volcano":
            items.append(queue("scheduling.volcano.sh", j, **above))
        elif kind == "kai":
            items.append(queue("scheduling.run.ai", j, priority=100 + j, **({"parentQueue": names[j - 1]} if j else {})))
        elif kind == "kueue":
            spec = {"parentName": names[j - 1]} if j else {}
            items.append({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Cohort", "metadata": {"name": names[j]}, "spec": spec})
    if kind == "hierarchy":
        items = [
            queue("scheduling.volcano.sh", 0) | {"metadata": {"name": "q", "annotations": {"volcano.sh/hierarchy": "root" + "/x" * 150}}}
        ]
    path = tmp_path / "queues.json"
    if kind in ("capacity", "fair"):
        key = "queues" if kind == "capacity" else "childQueues"
        inner: dict[str, object] = {"queueName": "deep", "absoluteCapacity": 1.0}
        for name in names:
            inner = {"queueName": name, "absoluteCapacity": 1.0, key: {"queue": [inner]}}
        info = {"type": f"{kind}Scheduler", **({"rootQueue": inner} if kind == "fair" else inner)}
        path.write_text(json.dumps({"scheduler": {"schedulerInfo": info}}))
        with pytest.raises(fo.InvalidInstance, match="levels below the root, and a tree has 100 levels at most"):
            fo.import_yarn(exports / "yarn_nodes.json", exports / "yarn_apps.json", path)
    else:
        path.write_text(json.dumps({"kind": "List", "items": items}))
        with pytest.raises(fo.InvalidInstance, match="levels below the root, and a tree has 100 levels at most"):
            fo.import_kubernetes(exports / "kubernetes_nodes.json", exports / "kubernetes_pods.json", queues=path)
