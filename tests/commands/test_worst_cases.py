"""The command that bounds a worst case: ranges as they are written, both ends, the result as declared, and mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pytest
from typer.testing import CliRunner, Result

import fairopt as fo
from fairopt.cli import app
from fairopt.formats import schema as instance_schema
from fairopt.results.schema import schema


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Two servers, two users who demand 1 of each resource."""
    path = tmp_path / "pair.yaml"
    fo.save(fo.Instance([[10, 2], [2, 10]], np.ones((2, 2))), path)
    return path


def run(*arguments: object, status: int = 0) -> Result:
    """Run the command in this process."""
    result = CliRunner().invoke(app, ["worst-case", *map(str, arguments)], env={"COLUMNS": "140"})
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


def test_both_ends(pair: Path, tmp_path: Path) -> None:
    """In the table, in JSON as declared, and the instance in a file; percentages are of the cluster's numbers."""
    asked = ("uniform", "--notion", "drfh", "--cluster", pair, "--bound", "--gap", 0.02, "--measure", "user")
    text = run(*asked, "--vary", "demands=1:2", "--instance", tmp_path / "worst.yaml", "--resume", tmp_path / "kept").output
    assert "uniform against drfh, divisible tasks" in text
    assert "Largest regret (user) found: 0.25. No instance within the ranges has more than 0.2" in text
    assert "Branch and bound over the data" in text
    found = json.loads(run(*asked, "--vary", "demands=100%:200%", "--json").stdout)
    jsonschema.Draft202012Validator(schema(instance_schema())).validate(found)
    assert found["command"] == "worst-case-bound"
    assert found["value"] == pytest.approx(0.25)
    assert found["value"] <= found["bound"] <= found["value"] + 0.02
    worst = fo.load(tmp_path / "worst.yaml")
    own, exact = (fo.solve(worst, notion).tasks_per_user for notion in ("uniform", "drfh"))
    assert (1 - own / exact).max() == pytest.approx(0.25)
    assert (tmp_path / "kept" / "bound.npz").exists()


def test_a_search_on_a_cluster(pair: Path) -> None:
    """Without --bound, of any schedule."""
    text = run("drfh:best-fit", "--cluster", pair, "--vary", "demands=1:2", "--tries", 10, "--exact").output
    assert "in 10 instances tried" in text
    assert "A search gives a lower bound" in text
    found = json.loads(run("drfh:best-fit", "--cluster", pair, "--vary", "demands=1:2", "--tries", 5, "--json").stdout)
    jsonschema.Draft202012Validator(schema(instance_schema())).validate(found)
    assert (found["bound"], found["nodes"]) == (None, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), 'give what varies, such as --vary "demands=1:2"'),
        (("--vary", "demands"), '--vary is "demands"; with --cluster, write NAME=LOW:HIGH, such as "demands=1:2" or'),
        (("--vary", "demands=a:2"), '"a" is no number'),
        (("--vary", "demands=1:2", "--vary", "demands=1:3"), "--vary names demands twice"),
        (("--vary", "speed=50%:2"), '"speed" cannot vary (did you mean "speeds"?); use any of demands, weights, tasks, capacities, speeds'),
        (("--vary", "demands=2:1"), 'the range of "demands" is empty'),
        ((), "vary is empty"),
        (("--vary", "demands=1:2", "--users", 4), "with a cluster, leave --users out"),
        (("--vary", "demands=1:2", "--measure", "leximin"), '"leximin" has no bound'),
    ],
)
def test_mistakes(pair: Path, arguments: tuple[object, ...], message: str) -> None:
    """Exit status 2, in words."""
    assert message in run("uniform", "--notion", "drfh", "--cluster", pair, "--bound", *arguments, status=2).output.replace("\n", " ")


def test_a_bound_needs_a_cluster() -> None:
    """Which is said, with the option."""
    said = run("drfh:best-fit", "--bound", status=2).output.replace("\n", " ")
    assert (
        "--bound, --where and ranges in --vary are for the instances of one cluster; give it, such as --cluster FILE and "
        '--vary "demands=1:2"' in said
    )
