"""Whole tasks under rules, against all whole tasks."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import fairopt as fo
from fairopt.instance.rule_rows import rule_excess
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.ruled_whole import solve_whole_ruled

LAB = fo.Instance([[5], [3]], [[1], [2], [1]], users=["a", "b", "c"], servers=["s", "t"], resources=["gpu"], counts=[1, 2])


def ruled(seed: int) -> fo.Instance:
    """Two servers, two or three users, and two rules that some whole tasks obey."""
    rng = np.random.default_rng(seed)
    users = int(rng.integers(2, 4))
    names = [f"u{n}" for n in range(users)]
    instance = fo.Instance(
        rng.integers(2, 5, (2, 1)),
        rng.integers(1, 3, (users, 1)),
        weights=rng.integers(1, 3, users),
        users=names,
        servers=["s", "t"],
        resources=["gpu"],
    )
    a, b = rng.choice(users, 2, replace=False)
    rules = [f"x[u{a}] >= {int(rng.integers(0, 3))} * x[u{b}]", f"x[u{b}, s] + 2 * x[u{a}, t] >= {int(rng.integers(0, 2))}"]
    return instance.replace(rules=rules)


def all_whole(instance: fo.Instance) -> list[np.ndarray]:
    """All whole tasks within capacities and rules, (users, servers) each."""
    per_server = []
    for i in range(2):
        most = instance.capacities[i, 0] // instance.demands[:, 0]
        every = itertools.product(*(range(int(each) + 1) for each in most))
        per_server.append([np.array(x) for x in every if np.array(x) @ instance.demands[:, 0] <= instance.capacities[i, 0]])
    tables = (np.column_stack(pair) for pair in itertools.product(*per_server))
    return [table for table in tables if rule_excess(instance, table.astype(float)) <= 1e-9]


@pytest.mark.parametrize("seed", range(8))
def test_the_best_of_all_whole_tasks(seed: int) -> None:
    """The largest sorted list of shares, and the largest total."""
    instance = ruled(seed)
    every = all_whole(instance)
    total = max(float(instance.weights @ x.sum(axis=1)) for x in every)
    found = fo.solve(instance, "efficiency", integral=True)
    assert float(instance.weights @ found.tasks_per_user) == pytest.approx(total)
    part = instance.demands[:, 0] / instance.capacities.sum() / instance.weights
    best = max(tuple(np.sort(np.round(part * x.sum(axis=1), 9))) for x in every)
    fair = fo.solve(instance, "drfh", integral=True)
    np.testing.assert_allclose(np.sort(fair.shares), best, atol=1e-8)
    assert rule_excess(instance, fair.tasks) <= 1e-9


def test_by_hand() -> None:
    """a has one more than twice b: 5 + 2 * 2 + 2 of 11 GPUs, on rows that stand for several servers."""
    program = fo.formulate(LAB.replace(counts=None, rules=["x[a] == 2 * x[b] + 1"]), "drfh", integral=True)
    assert solve_whole_ruled(program, Deadline(None)).x.sum() > 0
    assert fo.solve(LAB.replace(rules=["x[a] == 2 * x[b] + 1"]), "drfh", integral=True).tasks_per_user.tolist() == [5, 2, 2]


def test_rules_that_only_whole_tasks_break_are_named() -> None:
    """No set is promised; what divisible tasks break, too, has one."""
    with pytest.raises(
        fo.NoSolution, match=r'no whole tasks obey the rules "2 \* x\[a\] == 1" and "x\[c\] >= 1"; divisible tasks do'
    ) as found:
        fo.solve(LAB.replace(rules=["2 * x[a] == 1", "x[c] >= 1"]), "drfh", integral=True)
    assert "contradiction" not in found.value.known
    with pytest.raises(fo.NoSolution, match=r'the rule "x\[a\] >= 20", gpu @ s'):
        fo.solve(LAB.replace(rules=["x[a] >= 20"]), "efficiency", integral=True)


def test_what_finds_no_whole_tasks_says_so() -> None:
    """Trade-offs, another engine, a program that was changed by hand."""
    rules = ["x[a] >= 2 * x[b]"]
    program = fo.formulate(LAB.replace(counts=None), "drfh").with_rule("twice", {("a", "s"): 1, ("b", "s"): -2}, ">=", 0)
    for call, message in (
        (lambda: fo.solve(LAB.replace(rules=rules), "fds", integral=True), "whole tasks"),
        (lambda: fo.solve(LAB.replace(rules=rules), "efficiency", integral=True, solver="interior-point"), "whole tasks"),
        (lambda: fo.solve(replace(program, utilities=2 * program.utilities), integral=True), "a program of yours"),
        (lambda: fo.formulate(LAB.replace(rules=rules), "drfh", integral=True), "single servers"),
    ):
        with pytest.raises(fo.Unsupported, match=message):
            call()


@pytest.mark.parametrize("notion", ["drfh", "efficiency"])
def test_a_rule_about_somebody_who_can_run_nowhere(notion: str) -> None:
    """It has no row of numbers; a floor cannot be met, and a limit is."""
    pool = fo.Instance([[4, 0]], [[1, 0], [1, 1]], users=["a", "b"])
    with pytest.raises(fo.NoSolution, match="no allocation obeys the rules"):
        fo.solve(pool.replace(rules=["x[b] >= 2"]), notion, integral=True)
    assert fo.solve(pool.replace(rules=["x[b] <= 2"]), notion, integral=True).tasks_per_user.tolist() == [4, 0]
