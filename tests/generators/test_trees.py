"""Random trees of queues: the sizes asked for, the users of the same draw, guarantees that fit, and nothing left to a second draw."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app
from fairopt.instance.remarks import remarks
from fairopt.specs import read_generator


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    """Everything that a tree has."""
    queues = draw(st.integers(1, 9))
    return {
        "queues": queues,
        "depth": draw(st.integers(1, queues)),
        "guarantees": draw(st.sampled_from([0.0, 1.0]) | st.floats(1e-6, 1.0)),
        "limits": draw(st.floats(0.0, 1.0)),
        "tiers": draw(st.integers(1, 3)),
    }


@given(st.sampled_from(sorted(fo.GENERATORS)), options(), st.sampled_from([1.0, 4.0]), st.integers(0, 2**40))
@settings(max_examples=60)
def test_every_tree_is_sound_and_repeatable(kind: str, asked: dict[str, Any], weights: float, seed: int) -> None:
    """Of every generator; the users and servers are those of the draw without a tree."""
    more = {"users": 6, "servers": 2, "weights": weights}
    instance = fo.generate(kind, seed=seed, **more, **asked)
    bare = instance.replace(queues=None, queue_of=None)
    assert bare == fo.generate(kind, seed=seed, **more)
    assert instance == fo.generate(kind, seed=seed, **more, **asked) == fo.generate(kind, seed=np.random.default_rng(seed), **more, **asked)

    tree = instance.tree
    assert (len(tree.queues), int(tree.depth.max())) == (asked["queues"], asked["depth"])
    leaves = [node for node in range(1, tree.n_nodes) if not tree.children(node).size]
    assert set(tree.user_node) <= set(leaves)
    assert len(set(tree.user_node)) == min(len(leaves), 6)
    assert tree.weights.min() >= 1
    assert tree.weights.max() <= weights
    roots = [queue for queue in tree.queues if queue.parent is None]
    assert all(queue in roots or queue.tier == 0 for queue in tree.queues)
    assert all(0 <= queue.tier < asked["tiers"] for queue in roots)

    total = dict(zip(instance.resources, instance.total_capacity, strict=True))
    for resource, amount in total.items():
        together = sum(queue.guarantee.get(resource, 0.0) for queue in roots)
        assert together == pytest.approx(asked["guarantees"] * amount, rel=1e-9)
        for queue in tree.queues:
            own = queue.guarantee.get(resource, 0.0)
            if asked["limits"] < 1:
                assert queue.limit[resource] == pytest.approx(own + asked["limits"] * (amount - own), rel=1e-9, abs=1e-12 * amount)
            else:
                assert not queue.limit
            below = [child.guarantee[resource] for child in tree.queues if child.parent == queue.name and child.guarantee]
            assert not below or sum(below) == pytest.approx(own, rel=1e-9)
    said = remarks(instance)  # guarantees fit; where there are fewer users than leaves, some are empty
    assert len(said) == (len(leaves) > 6)


def test_guarantees_beyond_the_cluster() -> None:
    """For what must be said, and met in part."""
    instance = fo.generate("gpus", queues=3, guarantees=1.5, limits=0.5, seed=3)
    assert remarks(instance)[0].startswith("guarantees of gpu exceed the cluster by ")
    assert sum(q.guarantee["gpu"] for q in instance.queues if q.parent is None) == pytest.approx(1.5 * instance.total_capacity[0])


def test_trees_are_as_described() -> None:
    """Parents, users, the division of guarantees and tiers (chi-square; Kolmogorov and Smirnov)."""
    trees = [fo.generate("uniform", users=9, queues=4, guarantees=0.6, tiers=3, weights=5, seed=seed).tree for seed in range(1000)]
    parents = np.array([tree.parent[3:] for tree in trees])
    third, fourth = np.bincount(parents[:, 0], minlength=2), parents[:, 1]
    assert chisquare(third[:2]).pvalue > 1e-3  # the root or queue-1
    at_root = fourth[parents[:, 0] == 0]  # then queue-3 is above the last level too
    assert chisquare([(at_root == node).sum() for node in (0, 1, 3)]).pvalue > 1e-3
    assert chisquare(np.bincount([int(tree.tiers[1]) for tree in trees], minlength=3)).pvalue > 1e-3
    assert kstest([tree.weights[2] for tree in trees], "uniform", (1, 4)).pvalue > 1e-3
    two = [fo.generate("uniform", servers=1, queues=2, depth=1, guarantees=0.6, seed=seed) for seed in range(500)]
    parts = [each.queues[0].guarantee["resource-1"] / each.total_capacity[0] for each in two]
    assert kstest(parts, "uniform", (0, 0.6)).pvalue > 1e-3
    many = fo.generate("uniform", users=9000, queues=3, depth=1, seed=5).tree
    assert chisquare(np.bincount(many.user_node)[1:]).pvalue > 1e-3


def test_a_spec_and_the_command(tmp_path: Path) -> None:
    """The same instance from a spec, from keywords, and from the file that the command writes."""
    spec = "constrained:of=google:users=12:servers=30:queues=5:depth=3:limits=0.5"
    draw = read_generator(spec)
    assert str(draw) == spec
    same = fo.generate("constrained", of="google", users=12, servers=30, queues=5, depth=3, limits=0.5, seed=9)
    assert draw(9) == same
    result = CliRunner().invoke(app, ["generate", spec, "--seed", "9", "-o", str(tmp_path / "c.yaml")])
    assert result.exit_code == 0, result.output
    assert fo.load(tmp_path / "c.yaml") == same
    assert fo.generate("gpus", queues=0) == fo.generate("gpus")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("uniform:queue=3", 'takes no parameter "queue" (did you mean "queues"?)'),
        ("uniform:depth=3", '"depth" is about queues; give their number too, such as queues=6'),
        ("uniform:queues=-1", "queues is -1; give a whole number >= 0"),
        ("uniform:queues=2.5", "queues is 2.5; give a whole number >= 0"),
        ("uniform:queues=2:depth=0", "depth is 0; give a whole number >= 1 and < 3, at most one level for each queue"),
        ("uniform:queues=2:depth=3", "depth is 3; give a whole number >= 1 and < 3, at most one level for each queue"),
        ("uniform:queues=2:tiers=0", "tiers is 0; give a whole number >= 1"),
        ("uniform:queues=2:guarantees=-0.1", "guarantees is -0.1; give the part of the cluster that is guaranteed, >= 0"),
        ("uniform:queues=2:guarantees=nan", "guarantees is nan"),
        ("uniform:queues=2:limits=1.5", "limits is 1.5; give the part of the rest of the cluster that a queue may hold"),
        ("constrained:of=google:queues=2:limits=much", "limits is 'much'"),
    ],
)
def test_bad_options_say_what_to_do(spec: str, message: str) -> None:
    """Before anything is drawn."""
    with pytest.raises(fo.Unsupported, match=re.escape(message)):
        read_generator(spec)(0)


def test_parameters_of_a_generator_of_your_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are its own where they have a name that trees use too."""
    monkeypatch.setitem(fo.GENERATORS, "deep", lambda depth=2, *, seed=0: fo.Instance([[1.0]], np.ones((depth, 1))))
    assert read_generator("deep:depth=3")(1).n_users == 3
    instance = read_generator("deep:depth=3:queues=2")(1)
    assert (instance.n_users, len(instance.queues)) == (3, 2)
