"""The papers' own numbers. Data, not code: a result is one entry of a .toml file here."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairopt as fo

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
RESULTS = [result for path in sorted(HERE.glob("*.toml")) for result in tomllib.loads(path.read_text(encoding="utf-8"))["result"]]


@pytest.mark.parametrize("result", RESULTS, ids=[result["id"] for result in RESULTS])
@pytest.mark.parametrize("solver", [None, *fo.SOLVERS])
def test_published_result(result: dict[str, Any], solver: str | None) -> None:
    """X[n] (and shares where the paper prints them) to the digits printed."""
    instance = fo.load(EXAMPLES / result["instance"])
    try:
        allocation = fo.solve(instance, result["notion"], solver=solver, **result.get("options", {}))
    except fo.Unsupported as reason:
        pytest.skip(str(reason))
    np.testing.assert_allclose(allocation.tasks_per_user, result["expected"], rtol=0, atol=result["tolerance"])
    if "shares" in result:
        np.testing.assert_allclose(allocation.shares, result["shares"], rtol=0, atol=result["tolerance"])
    assert allocation.certificate.worst <= 1e-8


def test_every_result_says_where_it_stands() -> None:
    """A citation names a source and a place in it; ids are unique."""
    assert all(any(word in result["citation"] for word in ("section", "figure", "table", "problem")) for result in RESULTS)
    assert len({result["id"] for result in RESULTS}) == len(RESULTS)


def test_table_iii_of_psdsf() -> None:
    """gamma[n,i] of Khamse-Ashari et al., table III: tasks of each user alone on each class of servers."""
    instance = fo.load(EXAMPLES / "psdsf-figure-5.yaml")
    expected = [[80, 340, 82.5, 55], [40, 170, 41.25, 41.25], [0, 0, 82.5, 27.5], [0, 0, 27.5, 27.5]]
    np.testing.assert_allclose(instance.rates, expected, rtol=1e-12)


def test_table_i_of_drfh() -> None:
    """The example cluster is table I of Wang, Li and Liang: rows (count, cpu, memory)."""
    instance = fo.load(EXAMPLES / "google-cluster.yaml")
    table = [
        *[(6732, 0.5, 0.5), (3863, 0.5, 0.25), (1001, 0.5, 0.75), (795, 1, 1), (126, 0.25, 0.25)],
        *[(52, 0.5, 0.12), (5, 0.5, 0.03), (5, 0.5, 0.97), (3, 1, 0.5), (1, 0.5, 0.06)],
    ]
    ours = sorted(zip(instance.counts.tolist(), *instance.capacities.T.tolist(), strict=True))
    assert ours == sorted(table)
    assert instance.counts.sum() == 12583
