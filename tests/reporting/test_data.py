"""The data of a report's charts, and the sentences of its summary, against numbers worked out by hand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.reporting.data import data
from fairopt.reporting.findings import Findings, study
from fairopt.reporting.words import about_notion, summary

POOL = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], servers=["pool"], resources=["cpu", "memory"])


def studied(instance: fo.Instance, *notions: str, schedules: tuple[str, ...] = ()) -> Findings:
    """Return the analyses of an instance."""
    return study(instance, notions, schedules, [], allocations={}, sharing=None, effort=1, seed=0, time_limit=None, done=lambda _: None)


@pytest.fixture(scope="module")
def pool() -> Findings:
    """Two users on one server: 3 and 2 tasks under drf, whose shares are 2/3; at most 45/11 + 18/11 tasks in all."""
    return studied(POOL, "drf", "efficiency", schedules=("drf:best-fit",))


def plain(text: str) -> str:
    """Return text with the spaces of a keyboard."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def rows(findings: Findings, name: str) -> list[dict[str, Any]]:
    """Return a data set, a mapping a row."""
    found = data(findings)[name]
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def test_the_price_of_fairness(pool: Findings) -> None:
    """1 - 5 / (63/11) = 8/63 of the tasks."""
    sentences = [plain(sentence) for sentence in summary(pool)]
    assert "The smallest share can be 0.6667 at most. That costs 12.7 % of the tasks: 5 instead of 5.72727." in sentences
    first = "drf: 5 tasks, 87.3 % of the most possible; smallest weighted dominant share 0.6667; no envy; "
    assert sentences[0].startswith(first)
    assert sentences[1].startswith("efficiency: 5.72727 tasks, 100.0 % of the most possible; ")
    assert sentences[2] == "drf:best-fit (greedy): 5 tasks, at worst 0.0 % short of the exact allocation of drf."


def test_a_notion_in_words(pool: Findings) -> None:
    """drf uses all of the cpu, and 14 of 18 of the memory. Of the most tasks, B's 18/11 are 6/11 of the cpu."""
    drf, efficiency = (plain(" ".join(about_notion(each))) for each in pool.notions)
    assert "5 tasks in all, 87.3 % of the most possible." in drf
    assert 'The smallest weighted dominant share is 0.6667 (of "A" and "B"). Jain\'s index of the shares is 1.' in drf
    assert "No user envies another." in drf
    assert "In use: 100.0 % of cpu and 77.8 % of memory." in drf
    assert 'The smallest weighted dominant share is 0.5455 (of "B").' in efficiency
    assert "In use: 100.0 % of cpu and 100.0 % of memory." in efficiency


def test_points_and_vertices_of_the_frontier(pool: Findings) -> None:
    """From the largest share, 2/3 with 5 tasks, to the most tasks, 63/11 with the share 6/11; the price of the first is 8/63."""
    assert rows(pool, "vertices") == [
        {"total": 5.0, "smallest_share": 0.666667},
        {"total": 5.72727, "smallest_share": 0.545455},
    ]
    points = {row["name"]: row for row in rows(pool, "points")}
    assert points["drf"] | {"total": 5.0, "smallest_share": 0.666667, "price": 0.126984} == points["drf"]
    assert points["efficiency"] | {"total": 5.72727, "smallest_share": 0.545455} == points["efficiency"]
    assert points["efficiency"]["price"] == pytest.approx(0, abs=1e-9)
    kinds = [row["kind"] for row in rows(pool, "points")]
    assert kinds == sorted(kinds, key=lambda kind: kind != "alpha")  # drawn below the others


def test_users_and_regrets(pool: Findings) -> None:
    """Ranks by tasks and by share, from 1; the schedule reaches the exact allocation."""
    users = [row for row in rows(pool, "users") if row["notion"] == "efficiency"]
    assert users == [
        {"notion": "efficiency", "user": "A", "tasks": 4.09091, "share": 0.909091, "by_tasks": 2, "by_share": 2},
        {"notion": "efficiency", "user": "B", "tasks": 1.63636, "share": 0.545455, "by_tasks": 1, "by_share": 1},
    ]
    assert {row["regret"] for row in rows(pool, "regrets")} == {0}
    assert {row["measure"] for row in rows(pool, "regrets")} >= {"level", "largest", "total"}


def test_ranks_by_tasks_and_by_share() -> None:
    """12 CPUs, tasks of 1 and of 4, weights 2 and 1: 4 and 2 tasks, and the shares 4/12/2 and 8/12."""
    weighted = fo.Instance([[12]], [[1], [4]], weights=[2, 1], users=["a", "b"])
    found = [
        (row["user"], row["tasks"], row["share"], row["by_tasks"], row["by_share"]) for row in rows(studied(weighted, "max-min"), "users")
    ]
    assert found == [("a", 4, 0.166667, 2, 1), ("b", 2, 0.666667, 1, 2)]


def test_curves_of_use_are_steps_from_0() -> None:
    """Of 62 bars: for each resource a step for each row of servers, from the least used at 0 to all of them; a lone row of 4 is 4 wide."""
    rng = np.random.default_rng(2)
    counts, tasks = [4, *[1] * 30], [9, 12, 20]
    capacities, demands = rng.uniform(4, 9, (31, 2)), rng.uniform(0.5, 2, (3, 2))
    instance = fo.Instance(capacities, demands, counts=counts, tasks=tasks, resources=["cpu", "memory"])
    findings = studied(instance, "drfh")
    assert not rows(findings, "use")
    allocation = findings.notions[0].allocation
    assert allocation is not None
    for r, resource in enumerate(instance.resources):
        steps = [row for row in rows(findings, "curves") if row["resource"] == resource]
        order = np.argsort(allocation.utilization[:, r], kind="stable")
        assert [row["server"] for row in steps] == [instance.servers[i] for i in (order[0], *order)]
        assert [row["servers"] for row in steps] == [0.0, *itertools.accumulate(instance.counts[order].tolist())]
        expected = allocation.utilization[order, r]
        np.testing.assert_allclose([row["part"] for row in steps], [expected[0], *expected], rtol=1e-5)
