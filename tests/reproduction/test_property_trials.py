"""Table I of PS-DSF: what the cells say, and that a counterexample is one by arithmetic of its own."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.papers import read
from fairopt.reproduction import property_trials
from fairopt.reproduction.property_trials import _has_bottleneck, number_of_instances, psdsf_table_1
from fairopt.reproduction.trials import Run, Verdict

CELLS = read("psdsf").more["table-1"]["cell"]


def only(monkeypatch: pytest.MonkeyPatch, *cells: dict[str, Any], **settings: Any) -> None:
    """Let the table have these cells alone."""
    paper = read("psdsf")
    more = paper.more | {"table-1": paper.more["table-1"] | {"cell": list(cells)} | settings}
    monkeypatch.setattr(property_trials, "read", lambda name: dataclasses.replace(paper, more=more))


def cell(notion: str, wanted: str, sharing: str | None = None) -> dict[str, Any]:
    """Find a cell."""
    (found,) = [each for each in CELLS if (each["notion"], each["property"], each.get("sharing")) == (notion, wanted, sharing)]
    return dict(found)


def matrix(text: str) -> np.ndarray:
    """Read "1 2; 3 4"."""
    return np.array([[float(value) for value in row.split()] for row in text.split(";")])


def test_the_table_is_that_of_the_paper() -> None:
    """Sharing incentive, envy freeness, strategy-proofness, Pareto optimality, bottleneck fairness of three notions, and theorem 3."""
    named = {(each["notion"], each["property"]) for each in CELLS}
    assert len(named) == 15
    no = {(each["notion"], each["property"]) for each in CELLS if each["published"] == "no"}
    assert no == {
        ("drfh", "sharing-incentive"),
        ("drfh", "bottleneck-fairness"),
        ("tsf", "bottleneck-fairness"),
        ("psdsf", "pareto"),  # under division of resources; under time division the table says yes
    }


def test_a_counterexample_is_one_and_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """C-DRFH: a user has less than its slice of each server could run, by arithmetic that is not the audit's; no row can go."""
    only(monkeypatch, cell("drfh", "sharing-incentive"))
    (row,) = psdsf_table_1(Run())
    assert row.verdict is Verdict.AGREES
    assert row.ours == ["no"]
    found = re.search(r"capacities ([\d ;.]+), demands ([\d ;.]+?)(?:, may run ([\d ;]+))?\. ", row.note)
    assert found is not None
    capacities, demands = matrix(found[1]), matrix(found[2])
    allowed = np.ones((len(demands), len(capacities)), bool) if found[3] is None else matrix(found[3]) > 0
    assert len(demands) == 2
    tasks = fo.solve(fo.Instance(capacities, demands, eligibility=allowed), "drfh").tasks_per_user
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = np.nanmin(capacities[None] / demands[:, None], axis=2)
    slices = np.where(allowed, alone, 0.0).sum(axis=1) / len(demands)
    assert (tasks < slices - 1e-6).any()


def test_a_yes_that_is_refuted_is_unexpected(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so is a no that nothing shows."""
    only(
        monkeypatch,
        cell("drfh", "sharing-incentive") | {"published": "yes"},
        cell("tsf", "pareto") | {"published": "no"},
        most=60,
        instances=[60, 1],
    )
    first, second = psdsf_table_1(Run())
    assert (first.verdict, first.ours) == (Verdict.DIFFERS, ["no"])
    assert (second.verdict, second.ours) == (Verdict.DIFFERS, ["yes: 60 instances"])


def test_the_lie_under_time_division_pays() -> None:
    """By hand: the liar shrinks its rate on its own server, and so gets time of the other, in which it runs true tasks."""
    truth = fo.Instance([[1, 1], [1, 2]], [[1, 0], [0, 1]], users=["a", "b"])
    lie = fo.Instance([[1, 1], [1, 2]], np.array([[1, 1.9], [0, 1]]), users=["a", "b"])
    honest, lied = (fo.solve(each, "psdsf", sharing="tdm") for each in (truth, lie))
    time = lied.tasks[0] / lie.rates[0]
    assert honest.tasks_per_user[0] == pytest.approx(1)
    assert float(time @ truth.rates[0]) > 1.2
    assert float(lied.tasks[0].sum()) < 1  # with the amounts that it declared, as the paper counts, it runs less


def test_the_bottleneck_is_that_of_the_paper() -> None:
    """Resource 2 is dominant for both users in the whole cluster, but not for the first one on the first server."""
    assert not _has_bottleneck(fo.Instance([[1, 2], [2, 1]], [[1, 1], [0, 1]]))
    assert _has_bottleneck(fo.Instance([[1, 2], [2, 1]], [[1, 1], [0, 1]], eligibility=[[False, True], [True, True]]))


def test_progress_counts_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as were announced, whether a counterexample ends a search or not."""
    cells = [cell("tsf", "envy-freeness"), cell("drfh", "sharing-incentive")]
    only(monkeypatch, *cells)
    done: list[int] = []
    list(psdsf_table_1(Run(quick=True, done=done.append)))
    assert sum(done) == number_of_instances(True)
