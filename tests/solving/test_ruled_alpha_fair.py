"""Alpha-fair allocations that obey rules, against linear programs that are given rows and nothing else."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from reference.ruled import largest
from solving.test_rules import instance_with_rules, rows_of

import fairopt as fo
from fairopt.allocation import Optimum
from fairopt.certificate import certify
from fairopt.program import Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.polishing import polishes
from fairopt.solving import best_found, notion_of
from fairopt.solving.policy import Found
from fairopt.solving.small_fractions import in_small_fractions

LAB = fo.Instance([[12]], [[1], [1], [1]], users=["a", "b", "c"], servers=["s"], resources=["gpu"])


@pytest.mark.parametrize("seed", range(16))
def test_no_allocation_is_better_to_first_order(seed: int) -> None:
    """At the optimum no feasible x' has more of the sum of phi U'[n] / U[n]^alpha (Mo and Walrand 2000)."""
    instance, alpha = instance_with_rules(seed), (0.5, 1.0, 2.0, 5.0)[seed % 4]
    program = fo.formulate(instance, "proportional", alpha=alpha)
    found = fo.solve(instance, "proportional", alpha=alpha)
    _, rows, right = rows_of(program)
    utility = program.per_user(program.utilities * found.tasks[program.pair_users, program.pair_servers])
    worth = (instance.weights * utility**-alpha)[program.pair_users] * program.utilities
    now = float((instance.weights * utility ** (1 - alpha)).sum())
    assert largest(worth / now, rows, right) == pytest.approx(1, abs=1e-7)
    assert found.certificate.worst <= 1e-8


@pytest.mark.parametrize(("notion", "beta"), [("fds", 0.5), ("gfj", 0.5), ("fds", 2.0), ("gfj", 2.0), ("fds", 6.0), ("gfj", 6.0)])
def test_no_allocation_is_a_better_trade_off_to_first_order(notion: str, beta: float) -> None:
    """At the optimum no feasible x' has more of (1 - e) sum phi U^(-beta) U' / sum phi U^(1 - beta) + e sum U' / sum U."""
    for seed in (1, 2, 6):
        instance, e = instance_with_rules(seed), 0.5  # the default lambda
        program = fo.formulate(instance, notion, beta=beta)
        found = fo.solve(instance, notion, beta=beta)
        _, rows, right = rows_of(program)
        utility = program.per_user(program.utilities * found.tasks[program.pair_users, program.pair_servers])
        powers = instance.weights * utility**-beta
        worth = (1 - e) * powers / (powers @ utility) + e / utility.sum()
        assert largest(worth[program.pair_users] * program.utilities, rows, right) == pytest.approx(1, abs=1e-7)


def test_a_trade_off_without_a_total_is_alpha_fair() -> None:
    """With lambda = (1 - beta) / beta."""
    instance = instance_with_rules(4)
    mine, alpha = fo.solve(instance, "gfj", beta=3, lam=-2 / 3), fo.solve(instance, "proportional", alpha=3)
    np.testing.assert_allclose(mine.tasks_per_user, alpha.tasks_per_user, rtol=1e-7)


def test_ratios_and_floors_by_hand() -> None:
    """Twice as much for a as for b: a = 2 b, so that log a + log b = 2 log a + const; a and c divide 12 as 3 a / 2 and c, 2 to 1."""
    for alpha, rules, expected in (
        (1.0, ["x[a] >= 2 * x[b]"], [16 / 3, 8 / 3, 4]),
        (3.0, ["x[a] >= 6"], [6, 3, 3]),
        (1.0, ["x[a] == x[b] + x[c]"], [6, 3, 3]),
        (0.5, ["x[a] <= 2", "x[b] - x[c] >= 1"], [2, 5.5, 4.5]),
    ):
        found = fo.solve(LAB.replace(rules=rules), "proportional", alpha=alpha)
        np.testing.assert_allclose(found.tasks_per_user, expected, rtol=1e-7)


def test_who_can_have_nothing_is_left_out_by_name(caplog: pytest.LogCaptureFixture) -> None:
    """a has at most a tenth of b, and b no more than a: both have 0, where the goal would be minus infinity."""
    with caplog.at_level(logging.WARNING, "fairopt"):
        found = fo.solve(LAB.replace(rules=["x[a] <= 0.1 * x[b]", "x[b] <= x[a]"]), "proportional")
    np.testing.assert_allclose(found.tasks_per_user, [0, 0, 12], atol=1e-8)
    assert "the rules leave nothing to a and b" in caplog.text
    with pytest.raises(fo.NoSolution, match=r'the rule "x\[a\] >= 13" and gpu @ s'):
        fo.solve(LAB.replace(rules=["x[a] >= 13"]), "proportional")


@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0])
def test_rules_that_the_answer_obeys_change_nothing(alpha: float) -> None:
    """Nor does a rule that repeats a limit."""
    instance = instance_with_rules(3).replace(rules=[])
    before = fo.solve(instance, "proportional", alpha=alpha)
    first, second = before.tasks_per_user[:2]
    implied = [f"x[u0] >= {0.9 * first / second} * x[u1]", f"x[u0] <= {1.1 * first}"]
    after = fo.solve(instance.replace(rules=implied), "proportional", alpha=alpha)
    np.testing.assert_allclose(after.tasks_per_user, before.tasks_per_user, rtol=1e-6)


def test_a_polish_mends_a_rough_answer() -> None:
    """From a tenth beside the optimum to rounding."""
    program = fo.formulate(LAB.replace(rules=["x[a] >= 2 * x[b]"]), "proportional")
    ((name, found),) = polishes(program, Solution(np.array([5.0, 2.2, 4.5])))
    assert name == "primal-dual steps"
    np.testing.assert_allclose(found.x, [16 / 3, 8 / 3, 4], rtol=1e-10)


def test_what_does_not_obey_says_so() -> None:
    """Alternatives and equilibria; answers in fractions obey."""
    ruled = LAB.replace(rules=["x[a] >= 2 * x[b]"])
    for notion in ("bbf", "psdsf"):
        with pytest.raises(fo.Unsupported, match=r'rule "x\[a\] >= 2 \* x\[b\]"'):
            fo.solve(ruled, notion)
    exact = fo.solve(ruled, "proportional", exact=True).exact
    assert exact is not None
    assert exact.tasks_per_user[0] >= 2 * exact.tasks_per_user[1]  # in fractions, without a tolerance
    np.testing.assert_allclose(exact.tasks_per_user.astype(float), fo.solve(ruled, "proportional").tasks_per_user, rtol=1e-8)
    program = fo.formulate(LAB, "bbf").with_rule("twice", {("a", "s"): 1, ("b", "s"): -2}, ">=", 0)
    with pytest.raises(fo.Unsupported, match='rule "twice"'):
        fo.solve(program)


@pytest.mark.parametrize("seed", [1, 6])
def test_large_powers_are_reached_in_small_steps(seed: int) -> None:
    """alpha = 20: what a richer user pays is a billionth of what the poorest pays, and steps of a quarter of the power are too long."""
    instance = instance_with_rules(seed)
    found = fo.solve(instance, "proportional", alpha=20)
    program = fo.formulate(instance, "proportional", alpha=20)
    _, rows, right = rows_of(program)
    utility = program.per_user(program.utilities * found.tasks[program.pair_users, program.pair_servers])
    worth = (instance.weights * (utility / utility.min()) ** -20)[program.pair_users] * program.utilities
    now = float((instance.weights * (utility / utility.min()) ** -20 * utility).sum())
    assert largest(worth / now, rows, right) == pytest.approx(1, abs=1e-7)
    assert found.certificate.worst <= 1e-8


@pytest.mark.parametrize("seed", [8, 9, 15, 18, 39])
def test_powers_that_floats_cannot_prove_are_proved_in_fractions(seed: int) -> None:
    """alpha = 20: costs are differences of prices of which floats keep no digit, or the steps need a start in the middle."""
    instance = instance_with_rules(seed)
    found = fo.solve(instance, "proportional", alpha=20)
    exact = fo.solve(instance, "proportional", alpha=20, exact=True, digits=15).exact
    assert exact is not None
    np.testing.assert_allclose(found.tasks_per_user, exact.tasks_per_user.astype(float), rtol=1e-8)
    assert found.certificate.worst <= 1e-8


def test_an_error_in_floats_is_none_in_fractions() -> None:
    """A part of 1e-7 planted in the answer: the check in floats finds it, and the answer in fractions does not have it."""
    instance = instance_with_rules(8)
    program = fo.formulate(instance, "proportional", alpha=20)
    right = fo.solve(instance, "proportional", alpha=20)
    assert right.details["finished_by"] == "rational-newton"
    x = right.tasks[program.pair_users, program.pair_servers] * (1 - 1e-7)
    planted = Solution(x, prices=np.zeros(len(program.limits)))
    found = Found(planted, certify(program, planted), "planted", None, (), program)
    assert found.certificate.worst > 1e-8
    mended = in_small_fractions(found, notion_of("proportional", alpha=20), instance, Deadline(None))
    assert mended.certificate.worst <= 1e-11
    np.testing.assert_allclose(program.per_user(mended.solution.x), right.tasks_per_user, rtol=1e-11)


RULED = fo.Instance([[9, 18]], [[1, 4], [3, 1], [2, 2]], users=["a", "b", "c"], rules=["x[a] >= 2 * x[b]"])


def test_a_rule_at_a_large_alpha() -> None:
    """In fractions; near the limit, max-min: x = (2 t, t, t) with 7 t = 9."""
    allocation = fo.solve(RULED, "proportional", alpha=1000)
    assert allocation.details["finished_by"] == "rational-newton"
    np.testing.assert_allclose(allocation.tasks_per_user, [18 / 7, 9 / 7, 9 / 7], rtol=1e-3)


def test_floats_and_fractions_do_not_advise_each_other() -> None:
    """At alpha = 10,000 under a rule neither has an answer: floats send to fractions, and fractions to a smaller alpha or to its limit."""
    with pytest.raises(fo.CertificateError, match="try exact=True, a smaller alpha"):
        fo.solve(RULED, "proportional", alpha=10_000)
    with pytest.raises(fo.NoSolution, match=r'use a smaller alpha .*, or "max-min", the limit of a large alpha') as refused:
        fo.solve(RULED, "proportional", alpha=10_000, exact=True)
    assert "leave exact out" not in str(refused.value)


def test_divided_tasks_without_a_proof_are_no_best_found() -> None:
    """The error in fractions has the tasks of the floats; only whole tasks at a time limit are an answer, with a bound."""
    pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["a", "b"])
    error = fo.NoSolution("no digits can be proved", {"tasks": np.array([[3.0], [2.0]])})
    assert best_found(pool, Optimum(notion_of("proportional"), exact=True), "rdm", error) is None
