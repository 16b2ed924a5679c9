"""The papers' own numbers. Data, not code: a result is one entry of a .toml file in fairopt/papers."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import fairopt as fo
from fairopt.papers import PAPERS, Paper, Result, read
from fairopt.reproduction.reproducing import answer

EXAMPLES = Path(__file__).parents[2] / "examples"
RESULTS = [(read(name), result) for name in PAPERS for result in read(name).results]
SOLVED = [(paper, result) for paper, result in RESULTS if result.notion is not None]


def expected(result: Result) -> np.ndarray:
    """What the paper prints, or what is known to come out instead."""
    value = result.published if result.ours is None else result.ours
    assert value is not None
    return value


@pytest.mark.parametrize(("paper", "result"), SOLVED, ids=[result.id for _, result in SOLVED])
@pytest.mark.parametrize("solver", fo.SOLVERS)
def test_every_engine_that_can_gives_the_published_result(paper: Paper, result: Result, solver: str) -> None:
    """To the digits printed; PS-DSF shares, tasks and grants are unique in all these instances."""
    try:
        ours = answer(result, paper.instances[result.instance], solver)
    except fo.Unsupported as reason:
        pytest.skip(str(reason))
    except fo.CertificateError as error:  # CVXPY refuses an answer whose active sets do not show, and names an engine that does better
        if solver != "cvxpy" or 'try solver="' not in str(error):
            raise
        pytest.skip(str(error))
    np.testing.assert_allclose(ours, expected(result), rtol=0, atol=max(result.tolerance, 1e-7 if solver == "cvxpy" else 0))


def test_every_result_says_where_it_stands() -> None:
    """A citation names a place in the paper or a test of its authors; ids are unique; what differs says why; what has no number says so."""
    results = [result for _, result in RESULTS]
    assert all(any(word in result.citation for word in ("section", "figure", "table", "problem", "Tests")) for result in results)
    assert len({result.id for result in results}) == len(results)
    for result in results:
        assert result.published is not None or "prints no numbers" in result.citation
        assert bool(result.differs) == (result.ours is not None and result.published is not None)


def test_papers_are_the_files() -> None:
    """Each is listed, in the order in which it is printed."""
    folder = files("fairopt.papers")
    assert {f"{name}.toml" for name in PAPERS} == {entry.name for entry in folder.iterdir() if entry.name.endswith(".toml")}


def test_instances_are_used_or_examples() -> None:
    """An instance that nothing refers to is a mistake; so is a name that stands for two."""
    names = [name for paper in PAPERS for name in read(paper).instances]
    assert len(set(names)) == len(names)
    assert set(names) - {result.instance for _, result in RESULTS} <= {path.stem for path in EXAMPLES.glob("*.yaml")}


def test_table_i_of_drfh() -> None:
    """The example cluster is table I of Wang, Li and Liang: rows (count, cpu, memory)."""
    instance = fo.load(EXAMPLES / "google-cluster.yaml")
    ours = sorted(zip(instance.counts.tolist(), *instance.capacities.T.tolist(), strict=True))
    assert ours == sorted(map(tuple, read("drfh").more["table-1"]["servers"]))
    assert instance.counts.sum() == 12583
