"""Limits that somebody states for a program: `Program.with_limit` and `fo.solve` of a program, beside plain linear programs and engines."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.leximin import levels_of
from reference.linear import largest

import fairopt as fo
from fairopt.models.drfh import DRFH
from fairopt.models.stated import Stated
from fairopt.program import LimitKind, Limits, Program, Total


def lab(**more: Any) -> fo.Instance:
    """Two users on two servers of 8 GPUs."""
    return fo.Instance([[8], [8]], [[1], [1]], users=["a", "b"], servers=["new", "old"], resources=["gpu"], **more)


BUDGET = {("a", "new"): 3, ("a", "old"): 1}


@pytest.mark.parametrize("solver", [None, "highs", "cvxpy", "pyomo"])
def test_a_budget(solver: str | None) -> None:
    """3 for a task on new, 1 on old, and 6 in all: a runs 6 tasks, on old, and the limit has a price and a name."""
    program = fo.formulate(lab(), "drfh").with_limit("budget of a", BUDGET, 6)
    assert "budget of a : 3 x[a, new] + x[a, old] <= 6" in str(program)
    assert r"\text{(budget of a)}" in program.to_latex()
    allocation = fo.solve(program, solver=solver)
    np.testing.assert_allclose(allocation.tasks, [[0, 6], [8, 2]], atol=1e-7)
    assert allocation.queue_prices == {"budget of a": pytest.approx(1 / 16)}
    assert (allocation.notion, allocation.sharing, allocation.instance) == ("drfh", "rdm", lab())
    question = json.loads(json.dumps(allocation.to_dict()))["question"]
    assert question["options"]["limits"] == {"budget of a": 6}
    assert question["options"]["formulation"] == "leximin"
    assert pickle.loads(pickle.dumps(allocation)).tasks.tolist() == allocation.tasks.tolist()


def test_in_fractions_numbers_are_as_given() -> None:
    """A third is a third, and 0.1 is a tenth."""
    program = (
        fo.formulate(lab(), "drfh").with_limit("a third", {("b", "new"): Fraction(1, 3)}, Fraction(1, 7)).with_limit("a", [1, 1, 0, 0], 0.1)
    )
    exact = fo.solve(program, exact=True).exact
    assert exact is not None
    assert exact.tasks[1, 0] == Fraction(3, 7)
    assert exact.tasks_per_user[0] == Fraction(1, 10)


def test_whole_tasks() -> None:
    """Formulated for whole tasks, a program is one of single servers; else a coefficient is that of each server of the row."""
    two = lab(counts=[2, 1])
    single = fo.formulate(two, "drfh", integral=True)
    assert single.servers == ("new#1", "new#2", "old")
    limited = fo.solve(single.with_limit("a few", {("a", server): 1 for server in single.servers}, 2.5))
    assert limited.instance.servers == single.servers
    assert limited.tasks_per_user.tolist() == [2, 22]
    assert limited.certificate.whole_tasks
    of_rows = fo.formulate(two, "drfh").with_limit("a few", {("a", "new"): 1, ("a", "old"): 1}, 2.5)
    assert fo.solve(of_rows, integral=True).tasks_per_user.tolist() == [2, 22]
    assert fo.solve(of_rows).tasks_per_user.round(9).tolist() == [2.5, 21.5]


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_random_limits_against_the_oracle(n: int, k: int, seed: int) -> None:
    """Two random rows, each over all users: shares of the engine, of the loop of linear programs, and totals."""
    rng = np.random.default_rng(seed)
    weights, tasks = rng.choice([1.0, 2.0], n), rng.choice([1.5, np.inf], n)
    instance = fo.Instance(rng.integers(2, 9, (k, 2)), rng.integers(1, 4, (n, 2)), weights, rng.random((n, k)) < 0.8, tasks=tasks)
    program = fo.formulate(instance, "drfh")
    for name in ("first", "second"):
        coefficients = rng.integers(0, 3, program.n_pairs).astype(float)
        program = program.with_limit(name, coefficients, float(rng.uniform(1, 5)))
    allocation = fo.solve(program)
    np.testing.assert_allclose(allocation.shares, levels_of(program, instance.weights), rtol=1e-5, atol=1e-8)
    if program.n_pairs:
        total = fo.formulate(instance, "efficiency")
        for row in program.stated:
            table = np.zeros(instance.eligibility.shape)
            table[row.at_users, row.at_servers] = row.values
            total = total.with_limit(row.name, table[total.pair_users, total.pair_servers], row.bound)
        best = largest(total.worth, total.limits.matrix.toarray(), total.limits.bounds)
        reached = instance.weights @ fo.solve(total).tasks_per_user
        assert reached == pytest.approx(best, rel=1e-7, abs=1e-9)


def test_rows_follow_labels() -> None:
    """Without a user, with a split server, and in another order, a row says the same of those who are there."""
    program = fo.formulate(lab(), "drfh").with_limit("budget of a", BUDGET, 6).with_limit("b on new", {("b", "new"): 1}, 2)
    notion = program.source.asked_by(program)
    alone = fo.Instance([[8], [8]], [[1]], users=["b"], servers=["old", "new"], resources=["gpu"])
    text = str(fo.formulate(alone, notion))
    assert "b on new  : x[b, new] <= 2" in text
    assert "budget" not in text
    split = fo.Instance([[8], [8], [8]], [[1], [1]], users=["a", "b"], servers=["new", "old", "new+"], resources=["gpu"])
    of_rows = notion.restricted(servers=np.array([0, 1, 0]))
    assert "budget of a : 3 x[a, new] + x[a, old] + 3 x[a, new+] <= 6" in str(fo.formulate(split, of_rows))
    assert notion.restricted(users=np.arange(2)) is notion
    again = notion.restricted(users=np.array([1])).restricted(servers=np.array([1, 0]))
    assert str(fo.formulate(alone, again)) == text


def test_a_program_that_was_changed_otherwise() -> None:
    """It is solved as it is; about another instance nothing is known."""
    program = replace(fo.formulate(lab(), "drfh").with_limit("budget of a", BUDGET, 6), goal=Total(np.array([1.0, 2.0])))
    allocation = fo.solve(program)
    assert allocation.tasks_per_user.tolist() == [0, 16]
    with pytest.raises(fo.Unsupported, match="holds for its own instance alone"):
        fo.solve(lab(weights=[1, 2]), program.source.asked_by(program))
    before = fo.formulate(lab(), "drfh")
    for limits in (Limits.none(4), before.limits.with_bounds(before.limits.bounds / 2)):
        changed = replace(before, limits=limits).with_limit("budget of a", BUDGET, 6)
        notion = changed.source.asked_by(changed)
        assert isinstance(notion, Stated)
        assert notion.program is changed
    assert fo.solve(changed).tasks_per_user.round(9).tolist() == [4, 4]
    assert before.source.asked_by(before) == before.source.notion


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", {}, 1), "the name of a limit is ''"),
        (("budget of a", {}, 1), 'has a limit "?budget of a"? already'),
        (("gpu @ new", {}, 1), 'has a limit "?gpu @ new"? already'),
        (("z", {("alcie", "new"): 1}, 1), "there is no user 'alcie'"),
        (("z", {("a", "now"): 1}, 1), "there is no server 'now'.*new"),
        (("z", {"a": 1}, 1), "is no pair"),
        (("z", {("a", "new"): -1}, 1), "the coefficient of a on new is -1"),
        (("z", [1, 0, float("nan"), 0], 1), "the coefficient of b on new is nan"),
        (("z", {("a", "new"): "1"}, 1), "the coefficient of a on new is '1'"),
        (("z", {("a", "new"): 1}, -2), "its bound is -2"),
        (("z", {("a", "new"): 1}, float("inf")), "its bound is inf"),
        (("z", [1, 2], 1), r"of shape \(2,\); give one for each eligible pair, shape \(4,\)"),
    ],
)
def test_what_no_limit_is(arguments: Any, message: str) -> None:
    """Each refusal names what is wrong and where."""
    program = fo.formulate(lab(), "drfh").with_limit("budget of a", BUDGET, 6)
    with pytest.raises(fo.InvalidInstance, match=message):
        program.with_limit(*arguments)


def test_what_a_program_has_already() -> None:
    """Its notion, its sharing and its options; and it must be one of `fo.formulate`."""
    program = fo.formulate(lab(), "drfh")
    for more in ({"sharing": "rdm"}, {"notion": "tsf"}, {"tree": "nested"}):
        with pytest.raises(fo.Unsupported, match="a program has its notion"):
            fo.solve(program, **more)  # type: ignore[arg-type]
    with pytest.raises(fo.Unsupported, match="does not say which instance it is of"):
        fo.solve(replace(program, source=None))


class Broken(DRFH):
    """DRFH with something wrong in its program."""

    name = "broken"
    what = ""

    def formulate(self, instance: fo.Instance, *, sharing: Any, integral: bool) -> Program:
        """Return the program with the mistake."""
        program = super().formulate(instance, sharing=sharing, integral=integral)
        row = np.where(program.pair_users == 0, -1.0, 2.0)[None]
        if self.what == "coefficient":
            more = Limits.of(LimitKind.NAMED, sp.csr_array(row), [0.0], [0])
            return replace(program, limits=Limits.stack([program.limits, more]), queue_limits=("a at least twice b",))
        if self.what == "bound":
            return replace(program, limits=program.limits.with_bounds(program.limits.bounds - 9))
        if self.what == "utility":
            return replace(program, utilities=program.utilities * row[0])
        if self.what == "order":
            return replace(program, pair_users=program.pair_users[::-1])
        return replace(program, utilities=program.utilities[:2])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("coefficient", 'the limit "?a at least twice b"? has the coefficient -1 of a on new'),
        ("bound", 'the bound of the limit "?gpu @ new"? is -1'),
        ("utility", "the utility of a task of a on new is -0.0625"),
        ("order", "not sorted by user, then by server"),
        ("length", "has 2 utilities, and needs 4"),
    ],
)
def test_mistakes_of_a_notion_are_refused_by_name(wrong: str, message: str) -> None:
    """A negative number would be solved, and certified, as something else."""
    notion = type("Broken", (Broken,), {"what": wrong})
    for exact in (False, True):
        with pytest.raises(fo.InvalidInstance, match=message):
            fo.solve(lab(), notion, exact=exact)


RATIO = {("a", "new"): 1, ("a", "old"): 1, ("b", "new"): -2, ("b", "old"): -2}


class Twice(DRFH):
    """DRFH where a has at least twice the tasks of b."""

    name = "twice"

    def formulate(self, instance: fo.Instance, *, sharing: Any, integral: bool) -> Program:
        """Return the program with the rule."""
        return super().formulate(instance, sharing=sharing, integral=integral).with_rule("a at least twice b", RATIO, ">=", 0)


@pytest.mark.parametrize("solver", [None, "highs", "cvxpy", "pyomo"])
def test_rules_of_a_program_and_of_a_notion(solver: str | None) -> None:
    """Of any sign, and beside limits: 32/3 and 16/3; with at most 3 tasks of b, 13 and 3."""
    program = fo.formulate(lab(), "drfh").with_rule("a at least twice b", RATIO, ">=", 0)
    few = program.with_limit("few", {("b", "new"): 1, ("b", "old"): 1}, 3)
    in_text = fo.formulate(lab(rules=["x[a] >= 2 * x[b]"]), "drfh").with_limit("few", {("b", "new"): 1, ("b", "old"): 1}, 3)
    for asked, tasks in ((program, [32 / 3, 16 / 3]), (few, [13, 3]), (in_text, [13, 3])):
        np.testing.assert_allclose(fo.solve(asked, solver=solver).tasks_per_user, tasks, rtol=1e-7)
        exact = fo.solve(asked, exact=True).exact
        assert exact is not None
        np.testing.assert_allclose(exact.tasks_per_user.astype(float), tasks, rtol=1e-12)
    np.testing.assert_allclose(fo.solve(lab(), Twice, solver=solver).tasks_per_user, [32 / 3, 16 / 3], rtol=1e-7)


def test_where_rules_of_a_program_are_refused() -> None:
    """Other goals say so, and audits and explanations of a notion that makes rules; all else obeys; a contradiction names its rule."""
    program = fo.formulate(lab(), "drfh").with_rule("a at least twice b", RATIO, ">=", 0)
    tree = lab(queues=[fo.Queue("q")], queue_of=["q", None])
    for found in (fo.solve(tree, Twice), fo.solve(fo.formulate(lab(), "proportional").with_rule("r", RATIO, ">=", 0))):
        a, b = found.tasks_per_user
        assert a >= 2 * b * (1 - 1e-9)
    np.testing.assert_allclose(fo.solve(program, integral=True).tasks_per_user, [11, 5])
    of_notion = fo.solve(lab(), Twice)
    asked: list[tuple[Any, str]] = [
        (lambda: fo.solve(fo.formulate(lab(), "psdsf").with_rule("r", RATIO, ">=", 0)), '"psdsf" obeys none'),
        (lambda: fo.audit(of_notion), r"no property of an audit knows it; give the rule to the instance instead"),
        (lambda: fo.explain(of_notion, "a"), "an explanation does not know it; give the rule to the instance instead"),
    ]
    for ask, message in asked:
        with pytest.raises(fo.Unsupported, match=message):
            ask()
    with pytest.raises(fo.NoSolution, match="r"):
        fo.solve(fo.formulate(lab(), "drfh").with_rule("r", RATIO, ">=", 100))


class Thirds(DRFH):
    """DRFH with rows of its own, in fractions: a / 3 <= 1 / 7, and b at most 3 / 2 of c."""

    name = "thirds"
    title = "DRFH with rows of its own"
    source = "a test"

    def formulate(self, instance: fo.Instance, *, sharing: Any, integral: bool) -> Program:
        """Add the rows."""
        program = super().formulate(instance, sharing=sharing, integral=integral)
        program = program.with_limit("third", {("a", "s"): Fraction(1, 3)}, Fraction(1, 7))
        return program.with_rule("ratio", {("b", "s"): Fraction(2, 3), ("c", "s"): -1}, "<=", 0)


def test_rows_of_a_notion_in_fractions_are_as_given() -> None:
    """No float stands between: a = 3 / 7, and the weights of b and c give way to b = 3 / 2 c."""
    pool = fo.Instance([[10]], [[1], [1], [1]], weights=[1, 4, 1], users=["a", "b", "c"], servers=["s"])
    found = fo.solve(pool, Thirds, exact=True)
    assert found.exact is not None
    assert found.exact.tasks_per_user.tolist() == [Fraction(3, 7), Fraction(201, 35), Fraction(134, 35)]
