"""What is said of allocations that obey rules: audits, explanations, comparisons, frontiers, changes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog
from support.command_line import flat, run

import fairopt as fo
from fairopt.analysis.rerun import given
from fairopt.instance.rule_sides import applying_without, sides

RULES = ["x[a] >= 2 * x[b]", "x[c, t] <= 4"]
LAB = fo.Instance([[12], [6]], [[1], [1], [1]], users=["a", "b", "c"], servers=["s", "t"], resources=["gpu"], rules=RULES)


def test_both_sides_of_a_rule() -> None:
    """An equation has the direction that is broken; what is compared is never below 0."""
    ruled = LAB.replace(rules=["x[a] == 2 * x[b] + 1", "amount[gpu, c] - 3 <= -x[b]"])
    tasks = np.array([[4.0, 0], [0, 2], [0, 1]])
    first, second = sides(ruled, tasks)
    assert (first.used, first.allowed, first.is_broken(1e-6)) == (5, 4, True)
    assert (first.stops.tolist(), first.raises.tolist()) == ([False, True, False], [True, False, False])
    assert (second.used, second.allowed, second.is_full()) == (3, 3, True)


def test_an_allocation_that_breaks_a_rule_is_named() -> None:
    """In an audit and a comparison."""
    tasks = np.array([[6.0, 0], [6, 0], [0, 6]])
    broken = fo.audit(given(LAB, tasks, "rdm"), ["pareto"]).violations
    assert {each.limit for each in broken} == {'rule "x[a] >= 2 * x[b]"', 'rule "x[c, t] <= 4"'}
    row = fo.compare(LAB, notions=[], allocations={"mine": tasks})["mine"]
    assert len(row.violations) == 2


@pytest.mark.parametrize("exact", [False, True])
def test_an_audit_within_rules(exact: bool) -> None:
    """Pareto optimality is asked within them, by an LP of rows; what compares users by weights alone does not apply."""
    found = fo.solve(LAB, "drfh", exact=exact)
    audit = fo.audit(found, effort=20)
    assert {name for name, verdict in audit.verdicts.items() if verdict.holds is None} >= {"envy-freeness", "sharing-incentive"}
    assert audit["pareto"].holds
    assert audit["max-min"].holds
    program = fo.formulate(LAB, "drfh")
    own = np.zeros((3, program.n_pairs))
    own[program.pair_users, np.arange(program.n_pairs)] = 1
    more = linprog(
        -np.ones(program.n_pairs),
        A_ub=np.vstack([program.limits.matrix.toarray(), -own]),
        b_ub=np.append(program.limits.bounds, -found.tasks_per_user * (1 - 1e-9)),
    )
    assert -float(more.fun or 0) == pytest.approx(found.tasks_per_user.sum(), abs=1e-6)
    fewer = fo.audit(given(LAB, np.array([[6.5, 0], [2, 0], [0, 2]]), "rdm"), ["pareto"])["pareto"]
    assert fewer.holds is False


def test_a_rule_does_not_apply_without_whom_it_names() -> None:
    """Alone, or as the last of a queue; a queue in which others stay is still named."""
    assert [rule.text for rule in applying_without(LAB, 1)] == ["x[c, t] <= 4"]
    queued = LAB.replace(queues=[fo.Queue("q"), fo.Queue("r")], queue_of=["q", "q", "r"], rules=["x[q] >= 2 * x[r]", "x[q] >= 1"])
    assert [rule.text for rule in applying_without(queued, 0)] == ["x[q] >= 2 * x[r]", "x[q] >= 1"]
    assert [rule.text for rule in applying_without(queued, 2)] == ["x[q] >= 1"]
    audit = fo.audit(fo.solve(LAB, "drfh"), ["population-monotonicity"])
    assert "3 in all" in audit["population-monotonicity"].statement


def test_what_stops_and_what_raises_somebody() -> None:
    """By the text of the rule, with the gain without it; levels name it, too."""
    found = fo.solve(LAB.replace(rules=["x[a] >= 2 * x[b]", "x[c] <= 4"]), "drfh")
    assert found.stopped_by[0] == {"c": ("x[c] <= 4",)}
    assert 'The rule "x[a] >= 2 * x[b]" gives it as much as it has: with less, the rule would be broken.' in str(fo.explain(found, "a"))
    assert 'Bottleneck: the rule "x[a] >= 2 * x[b]" would be broken if it had more.' in str(fo.explain(found, "b"))
    explanation = fo.explain(found, "c")
    assert 'Leaving out the rule "x[c] <= 4" would give it 0.5 tasks more' in str(explanation)
    (gain,) = [each for each in explanation.gains if each.kind == "rule"]
    assert gain.by_solving == pytest.approx(0.5)


def test_comparisons_frontiers_and_changes() -> None:
    """A schedule has a row that says why; the frontier is within the rules; a rule that comes is a difference of its own."""
    comparison = fo.compare(LAB, notions=["drfh", "proportional", "efficiency"], schedules=["drfh:best-fit"])
    assert [row.allocation is not None for row in comparison] == [True, True, True, False]
    assert 'the rule "x[a] >= 2 * x[b]"' in comparison["drfh:best-fit"].message
    frontier = fo.frontier(LAB, alphas=[0, float("inf")], notions=["drfh"])
    assert max(point.below for point in frontier if point.name != "alpha=0") == pytest.approx(0, abs=1e-8)
    assert [point.smallest_share for point in frontier][-1] <= 4.5 / 18 * (1 + 1e-9)
    found = fo.what_if(LAB.replace(rules=RULES[:1]), LAB.replace(rules=RULES[1:]))
    assert [str(each) for each in found.differences] == ['rule "x[a] >= 2 * x[b]" is gone', 'rule "x[c, t] <= 4" is new']
    assert set(found.effects["drfh"][1].changes) == {"a", "b", "c"}
    assert found.effects["drfh"][0].changes["b"] > 1


def test_every_command_that_solves_takes_a_rule(tmp_path: Path) -> None:
    """And obeys it, or says why not."""
    path = str(tmp_path / "lab.yaml")
    fo.save(LAB.replace(rules=[]), path)
    rule = ["--rule", "x[a] >= 2 * x[b]"]
    for command in (["solve"], ["audit", "--properties", "pareto,envy-freeness"], ["explain", "--user", "b"], ["what-if"]):
        said = flat(run(command[0], path, *rule, *command[1:]).stdout)
        assert "2 * x[b]" in said or command == ["solve"]
    run("compare", path, *rule)
    run("frontier", path, *rule, "--notions", "drfh")
    run("report", path, *rule, "-o", tmp_path / "report.html")
    assert "2 * x[b]" in (tmp_path / "report.html").read_text()
    assert "a greedy schedule keeps only rules that are limits" in flat(run("schedule", path, *rule, status=2).stderr)
    placed = json.loads(run("schedule", path, "--rule", "x[a] + x[b] <= 3", "--json").stdout)["users"]
    assert sum(user["tasks"] for user in placed if user["name"] in "ab") == 3
    assert "write two rules" in flat(run("solve", path, "--rule", "1 <= x[a] <= 2", status=2).stderr)


GAINS, PAYS = '100 % for cpu on s, and the rule "{}" gives it 25 % of that', '66.7 % for cpu on s and 33.3 % for the rule "{}"'


@pytest.mark.parametrize(
    ("rule", "of_a", "of_b"),
    [
        ("x[a] >= 2 * x[b]", GAINS, PAYS),
        ("x[a] == 2 * x[b]", GAINS, PAYS),
        ("2 * x[a] == x[b]", PAYS, GAINS),
        ("x[b] <= 4", "100 % for cpu on s", '50 % for cpu on s and 50 % for the rule "{}"'),
    ],
)
def test_what_users_pay_for_rules(rule: str, of_a: str, of_b: str) -> None:
    """12 cpu, 8 and 4 tasks: log a + log b has the price 1/6 of cpu, so 8 cost 4/3 of the 1 that they count, and 4 cost 2/3.

    With the last rule the price is 1/8: b's tasks count 1, and cost 1/2.
    """
    pool = fo.Instance([[12]], [[1], [1]], users=["a", "b"], servers=["s"], resources=["cpu"], rules=[rule])
    answer = fo.solve(pool, "proportional")
    for user, paid in (("a", of_a), ("b", of_b)):
        assert f"At the prices that prove this optimum it pays {paid.format(rule)}." in fo.explain(answer, user).sentences


def test_what_is_not_full_costs_nothing() -> None:
    """Noise of an engine is no price: what stops both is the limit."""
    limit = fo.Limit("together", 4, users=["a", "b"])
    pool = fo.Instance([[12, 12]], [[1, 1], [1, 2]], users=["a", "b"], limits=[limit])
    told = fo.explain(fo.solve(pool, "proportional"), "a").sentences
    assert "At the prices that prove this optimum it pays 100 % for the limit together." in told


def test_a_frontier_without_who_can_have_nothing() -> None:
    """c can have nothing on its only server, and a and b share 4: the smallest share is 1/2 at most."""
    pool = fo.Instance([[4]], [[1], [1], [3]], users=["a", "b", "c"], servers=["s"])
    found = fo.frontier(pool.replace(rules=["x[c, s] <= 1/2 * x[c]"]), alphas=[np.inf], notions=[])
    np.testing.assert_allclose(found.vertices, [[4, 0.5]], rtol=1e-9)
    point = found.points[0]
    assert (round(point.total, 9), round(point.smallest_share, 9)) == (4, 0.5)
    with pytest.raises(fo.InvalidInstance, match="no user can have anything under the rules"):
        fo.frontier(pool.replace(rules=["x[a] + x[b] + x[c] == 0"]))


def test_a_rule_that_leaves_no_room_for_a_task_stops_whole_tasks() -> None:
    """6 of 6.5 are used: half a task more is no whole one. Divisible tasks use all of it."""
    pool = fo.Instance([[20]], [[1], [1]], users=["a", "b"], resources=["gpu"], rules=["x[a] + 2 * x[b] <= 6.5"])
    stop = 'Bottleneck: the rule "x[a] + 2 * x[b] <= 6.5" would be broken if it had more.'
    for allocation in (fo.schedule(pool, "drfh"), fo.solve(pool, "drfh", integral=True), fo.solve(pool, "drfh")):
        for user in ("a", "b"):
            told = fo.explain(allocation, user).sentences
            assert stop in told
            assert "On server-1 there is room for more of its tasks, but the rule does not allow them." in told
    roomy = fo.schedule(pool.replace(tasks=[2, 1]), "drfh")
    assert stop not in fo.explain(roomy, "a").sentences
