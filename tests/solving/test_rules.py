"""Allocations that obey rules, against an oracle that is given rows and nothing else."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from reference.ruled import largest, leximin

import fairopt as fo
from fairopt.program import Program
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.contradictions import contradiction

ENGINES = ("highs", "cvxpy", "pyomo")


def instance_with_rules(seed: int) -> fo.Instance:
    """Whole numbers; rules that some allocation obeys: ratios, floors, ceilings and spreads around a point of a tenth of everything."""
    rng = np.random.default_rng(seed)
    users, servers = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    demands = rng.integers(0, 4, (users, 2))
    demands[demands.sum(axis=1) == 0, 0] = 1
    eligibility = rng.random((users, servers)) < 0.8
    eligibility[:, 0] = True
    names = [f"u{n}" for n in range(users)]
    instance = fo.Instance(
        rng.integers(5, 20, (servers, 2)),
        demands,
        weights=rng.integers(1, 4, users),
        tasks=np.where(rng.random(users) < 0.3, rng.integers(2, 9, users), np.inf),
        eligibility=eligibility,
        users=names,
        servers=[f"s{i}" for i in range(servers)],
        resources=["cpu", "gpu"],
    )
    held = np.minimum(instance.rates / (4 * users), (instance.tasks / servers)[:, None])
    x, of = fo.tasks(instance), held.sum(axis=1)
    rules: list[fo.Rule] = []
    for _ in range(int(rng.integers(1, 4))):
        a, b = rng.choice(users, 2, replace=False)
        kind = int(rng.integers(4))
        ratio = Fraction(round(10 * of[a] / max(of[b], 1e-3))) / 10 if of[b] > 0 else Fraction(0)
        if kind == 0:
            rules.append(x[names[a]] >= ratio * Fraction(9, 10) * x[names[b]])
        elif kind == 1:
            rules.append(x[names[a]] >= Fraction(int(of[a] * 100), 100))
        elif kind == 2:
            rules.append(x.amount["cpu", names[a]] + x[names[b]] <= 2 * Fraction(int(100 * (of[a] * demands[a, 0] + of[b]) + 1), 100))
        else:
            rules.append(x[names[a], "s0"] >= Fraction(int(held[a, 0] * 100), 200))
    return instance.replace(rules=rules)


def rows_of(program: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shares of users by pair, rows and right sides, dense."""
    shares = np.zeros((len(program.users), program.n_pairs))
    shares[program.pair_users, np.arange(program.n_pairs)] = program.worth
    return shares[program.members], program.limits.matrix.toarray(), program.limits.bounds


@pytest.mark.parametrize("seed", range(30))
def test_leximins_are_those_of_the_oracle(seed: int) -> None:
    """In floats and in fractions."""
    instance = instance_with_rules(seed)
    expected = leximin(*rows_of(fo.formulate(instance, "drfh")))
    found, exact = fo.solve(instance, "drfh"), fo.solve(instance, "drfh", exact=True)
    np.testing.assert_allclose(found.shares, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(exact.shares, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.shares, exact.shares, rtol=1e-8, atol=1e-10)
    assert exact.certificate.exact


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("engine", ENGINES)
def test_engines_agree(engine: str, seed: int) -> None:
    """Level by level, and on the largest total."""
    instance = instance_with_rules(100 + seed)
    exact = fo.solve(instance, "tsf", exact=True)
    np.testing.assert_allclose(fo.solve(instance, "tsf", solver=engine).shares, exact.shares, rtol=1e-7, atol=1e-9)
    _, rows, right = rows_of(program := fo.formulate(instance, "efficiency"))
    total = fo.solve(instance, "efficiency", solver=engine)
    reached = float(instance.weights @ total.tasks_per_user)
    assert reached == pytest.approx(largest(program.worth, rows, right), rel=1e-8)


@pytest.mark.parametrize("seed", range(10))
def test_a_rule_that_the_answer_obeys_changes_nothing(seed: int) -> None:
    """And one that repeats a capacity neither."""
    instance = instance_with_rules(seed).replace(rules=[])
    before = fo.solve(instance, "drfh")
    first, second = instance.users[:2]
    x = fo.tasks(instance)
    ratio = Fraction(int(100 * before.tasks_per_user[0] / before.tasks_per_user[1])) / 100
    implied = [x[first] >= ratio * x[second], sum(x.amount["cpu", name, "s0"] for name in instance.users) <= instance.capacities[0, 0]]
    after = fo.solve(instance.replace(rules=implied), "drfh")
    np.testing.assert_allclose(after.shares, before.shares, rtol=1e-8, atol=1e-10)


def test_ratios_floors_and_levels_of_0() -> None:
    """12 GPUs: vision has twice what course has, 8 and 4; with at least 5 of course nothing is feasible but 10 and 5 of 15."""
    lab = fo.Instance([[12]], [[1], [1]], users=["vision", "course"], servers=["pool"], resources=["gpu"])
    x = fo.tasks(lab)
    twice = lab.replace(rules=[x["vision"] >= 2 * x["course"]])
    np.testing.assert_allclose(fo.solve(twice, "drfh").tasks_per_user, [8, 4], rtol=1e-9)
    nobody = lab.replace(rules=["x[vision] == 0"])
    found = fo.solve(nobody, "drfh")
    np.testing.assert_allclose(found.tasks_per_user, [0, 12], atol=1e-9)
    assert [level.value for level in found.levels] == pytest.approx([0, 1], abs=1e-9)
    with pytest.raises(fo.NoSolution, match=r'the rule "x\[vision\] >= 2 \* x\[course\]", the rule "x\[course\] >= 5" and gpu @ pool'):
        fo.solve(lab.replace(rules=["x[vision] >= 2 * x[course]", "x[course] >= 5"]), "drfh")


@pytest.mark.parametrize("exact", [False, True])
def test_a_contradiction_is_irreducible(exact: bool) -> None:
    """Without any one of the rules that are named, the others can be met; rules beside it are not named."""
    lab = fo.Instance([[12]], [[1], [1], [1]], users=["a", "b", "c"], servers=["pool"], resources=["gpu"], tasks={"c": 3})
    rules = ["x[a] >= 2 * x[b]", "x[b] >= 4", "x[c] >= 1", "x[a] <= 7"]
    with pytest.raises(fo.NoSolution) as caught:
        fo.solve(lab.replace(rules=rules), "drfh", exact=exact)
    named = caught.value.known["contradiction"]
    assert named == ["x[a] >= 2 * x[b]", "x[b] >= 4", "x[a] <= 7"]
    for rule in named:
        program = fo.formulate(lab.replace(rules=[other for other in named if other != rule]), "drfh")
        assert contradiction(program, Deadline(None)) == []


def test_own_tasks_are_part_of_a_contradiction() -> None:
    """c has three."""
    lab = fo.Instance([[12]], [[1], [1]], users=["a", "c"], tasks={"c": 3})
    with pytest.raises(fo.NoSolution, match=r'"x\[c\] == 4" and tasks of c \(at most 3\)'):
        fo.solve(lab.replace(rules=["x[c] == 4"]), "efficiency")


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("rule", "tasks", "limit"), [("x[a] >= 3", 2, "tasks of a"), ("x[a] >= 5", 9, "gpu @ pool")])
def test_no_allocation_has_a_floor_above_its_cap_or_its_servers(rule: str, tasks: int, limit: str, exact: bool) -> None:
    """The first engine, whose path ends without an answer, does not say so; another one does."""
    lab = fo.Instance([[4]], [[1], [1]], users=["a", "b"], servers=["pool"], resources=["gpu"], tasks={"a": tasks}, rules=[rule])
    with pytest.raises(fo.NoSolution, match="no allocation obeys the rules") as caught:
        fo.solve(lab, "proportional", exact=exact)
    assert f'the rule "{rule}" and {limit}' in str(caught.value)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("alpha", [1, 5])
@pytest.mark.parametrize("beyond", [3e-8, 1e-7, 1e-6])
def test_a_floor_that_is_hardly_missed_is_named(beyond: float, alpha: int, exact: bool) -> None:
    """User b can have 15 / 9 tasks. Engines end with an answer that breaks the rule, or with none, and say nothing of the rule."""
    capacities, demands = [[6.4, 5.6, 2.8], [3.4, 4.0, 12.2]], [[0.57, 1.47, 3.09], [1.0, 0.29, 9.0]]
    names: Any = {"users": ["a", "b"], "servers": ["s", "t"], "resources": ["c", "d", "e"]}
    pool = fo.Instance(capacities, demands, weights=[6.4, 3.1], tasks=[0.63, np.inf], **names)
    rule = f"x[b] >= {15 / 9 * (1 + beyond)!r}"
    with pytest.raises(fo.NoSolution, match="no allocation obeys the rules") as caught:
        fo.solve(pool.replace(rules=[rule]), "proportional", alpha=alpha, exact=exact)
    assert caught.value.known["contradiction"] == [rule, "e @ s", "e @ t"]


RULED = fo.Instance([[4, 4]], [[1, 1], [1, 2]], users=["a", "b"], servers=["s"], rules=["x[a] >= 2 * x[b]"])


@pytest.mark.parametrize("notion", ["psdsf", "per-server-drf", "bbf", "uniform", "drfh:equalize"])
def test_notions_that_obey_none_say_so(notion: str) -> None:
    """They name the rule."""
    name, _, formulation = notion.partition(":")
    options: dict[str, Any] = {"formulation": formulation} if formulation else {}
    with pytest.raises(fo.Unsupported, match=r"x\[a\] >= 2 \* x\[b\]"):
        fo.solve(RULED, name, **options)


def test_what_is_not_reached_refuses_in_a_sentence() -> None:
    """No rule is ignored in silence."""
    calls = (
        lambda: fo.solve(RULED, "drfh", solver="interior-point"),
        lambda: fo.schedule(RULED, "drfh"),
        lambda: fo.precomputed_drf(RULED),
        lambda: fo.simulate(fo.generate_trace(seed=0), RULED),
    )
    for call in calls:
        with pytest.raises(fo.Unsupported, match="rule"):
            call()


def test_programs_take_rows_of_any_sign() -> None:
    """In floats and in fractions; what cannot obey them refuses the program."""
    lab = fo.Instance([[12]], [[1], [1]], users=["a", "b"], servers=["s"])
    program = fo.formulate(lab, "max-min").with_rule("twice", {("a", "s"): 1, ("b", "s"): -2}, ">=", 0)
    for allocation in (fo.solve(program), fo.solve(program, solver="cvxpy"), fo.solve(program, exact=True)):
        np.testing.assert_allclose(allocation.tasks_per_user, [8, 4], rtol=1e-9)
    np.testing.assert_allclose(fo.solve(program, integral=True).tasks_per_user, [8, 4])
    with pytest.raises(fo.Unsupported, match="rule"):
        fo.solve(program, solver="interior-point")


def test_rows_of_programs_are_as_given() -> None:
    """a / 3 - b = 1 / 7 of 10 tasks: b = 67 / 28; whole tasks stand on single servers; a pair that is not eligible means nothing."""
    pair = fo.Instance([[10]], [[1], [1]], users=["a", "b"], servers=["s"])
    ruled = fo.formulate(pair, "drfh").with_rule("third", {("a", "s"): Fraction(1, 3), ("b", "s"): -1}, "==", Fraction(1, 7))
    found = fo.solve(ruled, exact=True)
    assert found.exact is not None
    assert found.exact.tasks_per_user.tolist() == [Fraction(213, 28), Fraction(67, 28)]
    several = fo.Instance([[10], [3]], [[1], [1]], users=["a", "b"], servers=["s", "t"], counts=[1, 2], eligibility=[[1, 0], [1, 1]])
    twice = {("a", "s"): 2, ("a", "t"): 2, ("b", "s"): -1, ("b", "t"): -1}
    for whole in (
        fo.solve(fo.formulate(several, "drfh").with_rule("twice", twice, "<=", 0), integral=True),
        fo.solve(several.replace(rules=["2 * x[a] <= x[b]"]), integral=True),
    ):
        np.testing.assert_allclose(whole.tasks_per_user, [5, 11])


@pytest.mark.parametrize(
    ("coefficients", "sense", "bound", "message"),
    [
        ({("c", "s"): 1}, "<=", 1, "the rule wrong: there is no user 'c'"),
        ({("a", "t"): 1}, "<=", 1, "the rule wrong: there is no server 't'"),
        ({"a": 1}, "<=", 1, "the rule wrong: 'a' is no pair"),
        ([1, 2, 3], "<=", 1, r"of shape \(3,\); give one for each eligible pair"),
        ({("a", "s"): float("nan")}, "<=", 1, "is nan; give finite numbers"),
        ({("a", "s"): "two"}, "<=", 1, "is 'two'; give finite numbers"),
        ({("a", "s"): 1}, "<=", float("inf"), "its bound is inf; give a finite number"),
        ({("a", "s"): 1}, "<", 1, "its sense is '<'; give <=, == or >="),
        ({("a", "s"): 1}, None, 1, "its sense is 'None'; give <=, == or >="),
        ({("a", "s"): 1}, ["<="], 1, r"its sense is \['<='\]; give <=, == or >="),
        pytest.param({("a", "s"): 1}, "<=", 10**400, "its bound is a number beyond 1e308; give", id="huge bound"),
        ({("a", "s"): -(10**400)}, "<=", 1, "the coefficient of a on s is a number beyond 1e308; give"),
    ],
)
def test_wrong_rows_are_refused(coefficients: Any, sense: Any, bound: float, message: str) -> None:
    """By the name of the rule."""
    program = fo.formulate(fo.Instance([[12]], [[1], [1]], users=["a", "b"], servers=["s"]), "max-min")
    with pytest.raises(fo.InvalidInstance, match=message):
        program.with_rule("wrong", coefficients, sense, bound)


def test_names_of_rules_are_unique() -> None:
    """Prices and messages go by them."""
    program = fo.formulate(fo.Instance([[12]], [[1], [1]], users=["a", "b"], servers=["s"]), "max-min")
    ruled = program.with_rule("twice", {("a", "s"): 1, ("b", "s"): -2}, "==", 0)
    for again in (ruled.with_rule, lambda name, row, sense, bound: ruled.with_limit(name, row, bound)):
        with pytest.raises(fo.InvalidInstance, match="already; give this one another name"):
            again("twice", {("a", "s"): 1}, "<=", 3)
    with pytest.raises(fo.InvalidInstance, match="the name of a rule is"):
        program.with_rule(" ", {("a", "s"): 1}, "<=", 3)
