"""Bounds where only right-hand sides vary: published and hand-made cases, brute force over whole numbers, and no sample beats the bound."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import fairopt as fo

LINKS = {"a-b": 10, "b-d": 10, "a-c": 10, "c-d": 10}
FLOWS = {"a to d": [["a-b", "b-d"], ["a-c", "c-d"]], "a to b": [["a-b"]], "b to d": [["b-d"]]}
NETWORK = fo.Instance.from_paths(LINKS, FLOWS).replace(tasks=[5, 10, 10])


def bounded(heuristic: str, cluster: fo.Instance, vary: dict[str, Any], **asked: Any) -> fo.WorstCaseInBox:
    """Both ends of the total."""
    return fo.worst_case(heuristic, "efficiency", cluster=cluster, vary=vary, measure="total", bound=True, **asked)


def test_pinning_on_a_diamond() -> None:
    """Demands up to 5 take their first path. Pinned there, 5 from a to d block 5 of each other flow: 15 of 25, and nothing is worse."""
    worst = bounded("efficiency:pinning:threshold=5", NETWORK, {"tasks": (1, 10)})
    assert worst.value == pytest.approx(0.4)
    assert worst.bound == pytest.approx(0.4, abs=1e-5)
    assert worst.instance.tasks == pytest.approx([5, 10, 10])
    assert worst.own.tasks_per_user == pytest.approx([5, 5, 5])
    assert "numerical" in worst.proof


def test_parts_on_single_paths() -> None:
    """One path each, two parts: each part has half of every link, so two flows of 10 on links of their own have 5 each: 1/2."""
    single = fo.Instance.from_paths(LINKS, {name: paths[:1] for name, paths in FLOWS.items()}).replace(tasks=[1, 10, 10])
    worst = bounded("efficiency:pop:parts=2", single, {"tasks": (1, 10)})
    assert [worst.value, worst.bound] == pytest.approx([0.5, 0.5], abs=1e-5)


def test_the_optimum_itself() -> None:
    """Falls short of itself by nothing."""
    worst = bounded("efficiency", NETWORK, {"tasks": (1, 10)})
    assert [worst.value, worst.bound] == pytest.approx([0, 0], abs=1e-5)


@pytest.mark.parametrize("heuristic", ["efficiency:pinning:threshold=2", "efficiency:pop:parts=2:seed=3"])
@pytest.mark.parametrize("seed", range(4))
def test_all_whole_numbers_of_tasks(heuristic: str, seed: int) -> None:
    """Every instance with 1 to 3 tasks for each of three users on two servers, solved: none is above the bound, which POP attains."""
    rng = np.random.default_rng(seed)
    cluster = fo.Instance(rng.integers(3, 8, (2, 2)), rng.integers(1, 4, (3, 2)), tasks=[1, 1, 1])
    worst = bounded(heuristic, cluster, {"tasks": (1, 3)})
    assert worst.bound is not None
    found = [
        fo.regret(fo.schedule(each, heuristic), "efficiency", exact=fo.solve(each, "efficiency")).total
        for each in (cluster.replace(tasks=tasks) for tasks in itertools.product((1, 2, 3), repeat=3))
    ]
    assert max(found) <= worst.bound + 1e-7
    assert worst.value <= worst.bound
    assert worst.bound <= worst.value + 0.01 or heuristic.startswith("efficiency:pinning")


@pytest.mark.parametrize("heuristic", ["efficiency:pinning:threshold=2", "efficiency:pop:parts=2", "efficiency"])
def test_no_sampled_instance_beats_the_bound(heuristic: str) -> None:
    """With capacities and tasks that vary, and a server where a user may not run."""
    cluster = fo.Instance([[6, 9], [8, 4]], [[1, 2], [2, 1], [1, 1]], eligibility=[[1, 1], [1, 0], [1, 1]])
    vary = {"tasks": (1, 4), "capacities": (2, 9)}
    worst = bounded(heuristic, cluster, vary)
    drawn = fo.worst_case(heuristic, "efficiency", cluster=cluster, vary=vary, measure="total", tries=60)
    assert worst.bound is not None
    assert max(worst.value, drawn.value) <= worst.bound + 1e-7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vary": {"capacities": ([[0, 0, 0, 0]], 9)}}, None),
        ({"cluster": NETWORK.replace(weights=[1, 2, 1])}, "the weights of users differ"),
        ({"cluster": NETWORK.replace(rules=["x['a to b'] >= 1"])}, "rules"),
        ({"vary": {"tasks": (0, 10)}}, "at the smallest numbers no task can run at all"),
        ({"cluster": fo.Instance([[4, 0]], [[1, 1]]), "vary": {"tasks": (1, 2)}}, "give larger tasks or capacities"),
        ({"resume": "x"}, "leave resume out"),
        ({"measure": "level"}, 'no bound is known against "efficiency"'),
        ({"schedule": "efficiency:geometric-binning"}, None),
    ],
    ids=str,
)
def test_bad_input(changes: dict[str, Any], message: str | None) -> None:
    """What, where, and what to do."""
    asked: dict[str, Any] = {
        "schedule": "efficiency:pinning:threshold=5", "notion": "efficiency", "cluster": NETWORK, "vary": {"tasks": (1, 10)},
        "measure": "total", "bound": True,
    }  # fmt: skip
    with pytest.raises((fo.InvalidInstance, fo.Unsupported)) as error:
        fo.worst_case(**(asked | changes))
    assert message is None or message in str(error.value)
