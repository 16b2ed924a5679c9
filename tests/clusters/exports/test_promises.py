"""Exports keep guarantees that are not used now: what queues are promised, and what the files of schedulers say of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.clusters.quotas import promised
from fairopt.formats.syntax import Parsed


def test_promises_fit_and_keep_guarantees() -> None:
    """In random trees: children fit into their parent, the root into what there is, guarantees are kept, and else P = h."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        size, groups = int(rng.integers(1, 8)), int(rng.integers(1, 4))
        parents = [int(rng.integers(-1, v)) for v in range(size)]
        leaf = [v not in parents for v in range(size)]
        capacity = rng.integers(20, 60, (groups, 2))
        held = np.zeros((size, groups, 2), np.int64)
        for v in range(size):
            held[v] = rng.integers(0, capacity // sum(leaf) + 1) * leaf[v]
        for v in reversed(range(size)):
            if parents[v] >= 0:
                held[parents[v]] += held[v]
        everywhere = np.ones(groups, bool)
        most = capacity.sum(axis=0) // sum(leaf)
        guarantees = [(v, r, everywhere, int(rng.integers(0, most[r] + 1))) for v in range(size) for r in range(2) if leaf[v]]
        found, unused = promised(parents, held, capacity, guarantees)
        for v in (-1, *range(size)):
            below = [c for c in range(size) if parents[c] == v]
            assert (found[below].sum(axis=0) <= (capacity if v < 0 else found[v])).all()
        if not unused:
            assert (found == held).all()
        elif not (found == held).all():
            assert all(found[v, :, r].sum() >= amount for v, r, _, amount in guarantees)


def test_guarantees_that_exceed_the_cluster_change_nothing() -> None:
    """Then what queues hold is exported, as it is without guarantees."""
    held, everywhere = np.array([[[2]], [[14]]]), np.array([True])
    found, unused = promised([-1, -1], held, np.array([[16]]), [(0, 0, everywhere, 10), (1, 0, everywhere, 10)])
    assert (found == held).all()
    assert unused == []


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("kueue", "nominalQuota: '6'\n        lendingLimit: '2'"),
        ("volcano", "guarantee:\n    resource:\n      nvidia.com/gpu: '4'"),
        ("kai", "quota: 6"),
        ("yunikorn", "nvidia.com/gpu: '6'"),
        ("yarn", "[vcores=2,yarn.io/gpu=6]"),
    ],
)
def test_a_guarantee_that_is_not_used_is_exported(kind: str, expected: str) -> None:
    """p runs one task of the six that it is guaranteed; q borrows the rest now. The file says 6, and keeps what p does not lend."""
    lab = fo.Instance(
        [[16, 64]],
        [[1, 2], [1, 2]],
        users=["a", "b"],
        resources=["gpu", "cpu"],
        tasks=[1, np.inf],
        queues=[fo.Queue("p", guarantee={"gpu": 6}, lending_limit={"gpu": 2}), fo.Queue("q")],
        queue_of={"a": "p", "b": "q"},
    )
    found = getattr(fo, f"export_{kind}")(fo.solve(lab, "drfh"))
    assert expected in found.text
    assert any("p is guaranteed and does not use now" in note for note in found.notes)
    if kind == "kueue":  # q holds 11, of which 1 is borrowed, and its quota and that of p fill the cluster
        documents: list[Any] = [Parsed("text", text).data for text in found.text.split("---\n")[1:]]
        parts = [part for part in documents if part["kind"] in ("ClusterQueue", "Cohort")]
        flavors = [flavor for part in parts for flavor in part["spec"]["resourceGroups"][0]["flavors"]]
        quotas = [flavor["resources"][0]["nominalQuota"] for flavor in flavors]
        assert sum(map(int, quotas)) == 16


@pytest.mark.parametrize("kind", ["volcano", "yunikorn", "yarn"])
def test_a_weight_of_0_is_said(kind: str) -> None:
    """A queue that gets nothing by its weight would take what is idle."""
    lab = fo.Instance(
        [[4]],
        [[1], [1]],
        users=["a", "b"],
        resources=["gpu"],
        queues=[fo.Queue("p"), fo.Queue("q", weight=0)],
        queue_of={"a": "p", "b": "q"},
    )
    notes = getattr(fo, f"export_{kind}")(fo.solve(lab, "drfh")).notes
    assert sum("has no weight of 0: q may take what is idle" in note for note in notes) == 1


def test_an_export_that_is_not_read_back_says_so() -> None:
    """Tasks that do other work on other servers."""
    pool = fo.Instance([[8], [8]], [[1], [1]], users=["a", "b"], resources=["cpu"], speeds=[[1.0, 0.5], [1.0, 1.0]])
    assert any("the export was not read back: tasks take other amounts" in note for note in fo.export_kueue(fo.solve(pool, "drfh")).notes)
