"""Rules of a program are judged as rules of the instance are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo

RATIO = {("a", "new"): 1, ("a", "old"): 1, ("b", "new"): -2, ("b", "old"): -2}  # b may not run on old
THERE = {("a", "new"): 1.5, ("c", "old"): -1}

PROPERTIES = ["sharing-incentive", "pareto", "population-monotonicity", "max-min"]


def lab(**options: Any) -> fo.Instance:
    """Two servers, three users."""
    return fo.Instance(
        [[8, 16], [4, 4]],
        [[1, 2], [1, 1], [2, 1]],
        eligibility=[[1, 1], [1, 0], [1, 1]],
        resources=["gpu", "cpu"],
        users=["a", "b", "c"],
        servers=["new", "old"],
        **options,
    )


@pytest.mark.parametrize("notion", ["drfh", "proportional", "efficiency"])
@pytest.mark.parametrize(
    ("coefficients", "sense", "bound", "text"),
    [
        (RATIO, ">=", 0, "x[a] >= 2 * x[b]"),
        (RATIO, "==", 0.5, "x[a] == 2 * x[b] + 0.5"),
        (THERE, "<=", 1, "1.5 * x[a, new] <= x[c, old] + 1"),
    ],
)
@pytest.mark.parametrize("exact", [False, True])
def test_as_rules_of_the_instance(notion: str, coefficients: Any, sense: Any, bound: float, text: str, exact: bool) -> None:
    """The same verdicts, by the same amounts, and the same sentences but for the name of the rule."""
    exact = exact and notion != "proportional"
    of_program = fo.solve(fo.formulate(lab(), notion).with_rule("the rule", coefficients, sense, bound), exact=exact)
    of_instance = fo.solve(lab(rules=[text]), notion, exact=exact)
    np.testing.assert_allclose(of_program.tasks_per_user, of_instance.tasks_per_user, rtol=1e-7, atol=1e-9)
    mine, theirs = (fo.audit(each, PROPERTIES).verdicts for each in (of_program, of_instance))
    assert {name: verdict.holds for name, verdict in mine.items()} == {name: verdict.holds for name, verdict in theirs.items()}
    for name, verdict in mine.items():
        assert (verdict.violation or 0) == pytest.approx(theirs[name].violation or 0, rel=1e-5, abs=1e-9, nan_ok=True)
    for user in "abc":
        told = [len(fo.explain(each, user).sentences) for each in (of_program, of_instance)]
        assert told[0] == told[1]
    assert ('"the rule"' in str(fo.explain(of_program, "a"))) == (f'"{text}"' in str(fo.explain(of_instance, "a")))


def test_a_limit_beside_a_rule_stays_a_limit() -> None:
    """Both are named."""
    program = fo.formulate(lab(), "drfh").with_rule("ratio", RATIO, ">=", 0).with_limit("few", {("c", "new"): 1, ("c", "old"): 1}, 0.5)
    allocation = fo.solve(program)
    assert '"few" of 0.5 is used up' in str(fo.explain(allocation, "c"))
    assert 'the rule "ratio"' in str(fo.explain(allocation, "b"))
    assert fo.audit(allocation, ["pareto", "max-min"]).violated == []


def test_the_regret_of_a_program_is_beside_its_own_optimum() -> None:
    """0 of an optimum; beside the notion without the rule it is not."""
    allocation = fo.solve(fo.formulate(lab(), "drfh").with_rule("ratio", RATIO, ">=", 3))
    assert max(abs(value) for value in fo.regret(allocation).numbers().values() if isinstance(value, float)) < 1e-7
    assert "level 0," not in str(fo.regret(allocation, "drfh"))
