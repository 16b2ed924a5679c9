"""Units of resources: where they are known from, what keeps them, and amounts as text."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.instance.aggregation import expand, merge
from fairopt.instance.exact_merging import merge_exactly
from fairopt.instance.units import amount, shown_unit, unit_in_name, without_unit


@pytest.mark.parametrize(
    ("name", "unit", "rest"),
    [
        ("RAM (GB)", "GB", "RAM"),
        ("RAM [GiB]", "GiB", "RAM"),
        ("RAM(MB)", "MB", "RAM"),
        ("RAM (G)", "GB", "RAM"),
        ("memory (Gi)", "GiB", "memory"),
        ("memory (bytes)", "B", "memory"),
        ("memory in GB", "GB", "memory"),
        ("mem_gb", "GB", "mem"),
        ("mem_mib", "MiB", "mem"),
        ("memory-KB", "KB", "memory"),
        ("disk TB", "TB", "disk"),
        ("memory", "", "memory"),
        ("GB", "", "GB"),
        ("memory G", "", "memory G"),
        ("link (Gb)", "", "link (Gb)"),
        ("link (Gb/s)", "", "link (Gb/s)"),
        ("hugepages-2Mi", "", "hugepages-2Mi"),
        ("GPU (A100)", "", "GPU (A100)"),
        ("example.com/tb", "", "example.com/tb"),
    ],
)
def test_the_unit_at_the_end_of_a_name(name: str, unit: str, rest: str) -> None:
    """Of bytes only, in brackets or apart from the rest; bits (Gb) are none, and a single letter is one in brackets only."""
    assert (unit_in_name(name), without_unit(name)) == (unit, rest)


def test_given_units_and_those_in_names() -> None:
    """Both are known; a copy keeps them, by label or as a whole."""
    lab = fo.Instance([[8, 512, 4]], [[1, 64, 1]], resources=["gpu", "memory", "disk (TB)"], units={"memory": "GiB"})
    assert lab.units == {"memory": "GiB", "disk (TB)": "TB"}
    assert repr(lab) == "Instance(1 user, 1 server, 3 resources: 8 gpu, 512 GiB memory, 4 disk (TB))"
    assert lab.replace(weights=[2]).units == lab.units
    assert lab.replace(units={"gpu": "cards"}).units == {"gpu": "cards", "memory": "GiB", "disk (TB)": "TB"}
    assert lab.replace(units=None).units == {"disk (TB)": "TB"}
    assert lab.replace(resources=["gpu", "ram", "disk"]).units == {}
    assert pickle.loads(pickle.dumps(lab)) == lab
    assert lab.exact.units == lab.pooled().units == lab.units
    assert lab != lab.replace(units={"memory": "MiB"})


def test_merging_and_expanding_keep_units() -> None:
    """Rows are merged; resources are not."""
    lab = fo.Instance([[512], [512]], [[64], [64]], counts=[2, 1], resources=["memory"], units={"memory": "GiB"})
    for changed in (merge(lab).instance, merge_exactly(lab).instance, expand(lab)[0]):
        assert (changed.n_servers, changed.units) in ((1, {"memory": "GiB"}), (3, {"memory": "GiB"}))


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ({"memroy": "GiB"}, 'units: there is no resource "memroy" (did you mean "memory"?)'),
        ({"memory": ""}, "units, memory: expected a unit such as GiB, found the text"),
        ({"memory": 5}, "units, memory: expected a unit such as GiB, found 5"),
        ({"RAM (GB)": "MB"}, "units, RAM (GB): its name says GB, and the unit given is MB; give one of them"),
        ("GiB", 'units: expected a mapping such as {"memory": "GiB"}, found the text "GiB"'),
    ],
)
def test_bad_units_are_refused(units: Any, message: str) -> None:
    """With the resource and what to do."""
    with pytest.raises(fo.InvalidInstance) as refused:
        fo.Instance([[1, 1]], [[1, 1]], resources=["memory", "RAM (GB)"], units=units)
    assert message in str(refused.value)


def test_amounts_as_text() -> None:
    """Number, unit, name; bytes as GiB, MiB or KiB, also fractions; a name that has the unit is not told twice."""
    assert amount(9216.0, "memory", "GiB") == "9,216 GiB memory"
    assert amount(3 * 2.0**40, "memory", "B") == "3,072 GiB memory"
    assert amount(1.5 * 2**20, "memory", "B") == "1.5 MiB memory"
    assert amount(100.0, "memory", "B") == "100 B memory"
    assert amount(9216.0, "RAM (GB)", "GB") == "9,216 RAM (GB)"
    assert amount(2.0, "the red one") == '2 "the red one"'
    assert shown_unit(2**20 - 1, "memory", "B") == (2**10, "KiB")
    exact = fo.Instance([[2**31]], [[2**30]], resources=["memory"], units={"memory": "B"}).exact
    assert exact.amount(exact.capacities[0, 0], "memory") == "2 GiB memory"


def test_what_is_said_of_an_allocation_has_units() -> None:
    """Guarantees, limits and what would help; JSON has the mapping."""
    lab = fo.Instance(
        [[8, 512]],
        [[1, 64], [1, 32]],
        resources=["gpu", "memory"],
        units={"memory": "GiB"},
        users=["a", "b"],
        queues=[fo.Queue("q", guarantee={"memory": 256}, limit={"memory": 320}), fo.Queue("p")],
        queue_of=["q", "p"],
    )
    allocation = fo.solve(lab, "drfh")
    np.testing.assert_allclose(allocation.tasks_per_user, [5, 3], atol=1e-6)  # 256 GiB are 4 tasks, and the limit of 320 GiB is 5
    assert allocation.to_dict()["units"] == {"memory": "GiB"}
    assert fo.explain(allocation, queue="q", resolves=0).to_dict()["units"] == {"memory": "GiB"}
    assert "It is guaranteed 256 GiB memory" in str(fo.explain(allocation, queue="q", resolves=0))
    assert fo.audit(allocation, "guarantees").to_dict()["units"] == {"memory": "GiB"}
    assert fo.compare(lab, notions=["drfh"]).to_dict()["units"] == {"memory": "GiB"}
    assert fo.export_slurm(allocation).to_dict()["units"] == {"memory": "GiB"}
    held = fo.solve(lab.replace(queues=[fo.Queue("q", guarantee={"memory": 1024}), fo.Queue("p")]), "drfh").queue_holdings()[1]
    assert held.verdict.endswith(" GiB memory missing")
