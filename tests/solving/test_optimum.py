"""Solve: options, errors, and what an allocation tells."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from instances import uniform_instance

import fairopt as fo
from fairopt.allocation import Optimum
from fairopt.certificate import Certificate
from fairopt.instance.aggregation import merge
from fairopt.models.drfh import DRFH
from fairopt.models.share_notion import ShareNotion
from fairopt.solvers import candidates
from fairopt.solving import best_found, notion_of
from fairopt.solving.floats import require
from fairopt.wording import figure

EXAMPLES = Path(__file__).parents[2] / "examples"

MIRROR = fo.Instance([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]], users=["alice", "bob"], servers=["A", "B"], resources=["cpu", "memory"])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"notion": "drhf"}, fo.Unsupported, 'there is no notion "drhf" (did you mean'),
        ({"notion": "drfh", "alhpa": 1}, fo.Unsupported, 'the notion "drfh" takes no option "alhpa"'),
        ({"notion": "tsf", "utility": 1}, fo.Unsupported, "it takes guarantees, queue_share, tree"),
        ({"notion": DRFH(), "formulation": "equalize"}, fo.Unsupported, "pass them to its class"),
        ({"notion": "drfh", "formulation": "nope"}, fo.Unsupported, 'drfh has no formulation "nope"'),
        ({"notion": "drf"}, fo.Unsupported, '"drf" is defined on one server and the instance has 2; use "drfh"'),
        ({"notion": "drfh", "solver": "hihgs"}, fo.Unsupported, 'there is no solver "hihgs" (did you mean "highs"?)'),
        ({"notion": "drfh", "sharing": "RDM"}, fo.Unsupported, 'there is no sharing "RDM"'),
        ({"notion": "drfh", "time_limit": 0}, fo.Unsupported, "time_limit is 0; give a number of seconds > 0"),
        ({"notion": "drfh", "tolerance": 2}, fo.Unsupported, "tolerance is 2"),
        ({"notion": None}, fo.Unsupported, 'there is no notion "None"'),
        ({"notion": ["drfh"]}, fo.Unsupported, "there is no notion"),
        ({"solver": 3}, fo.Unsupported, 'there is no solver "3"'),
        ({"time_limit": "3"}, fo.Unsupported, "time_limit is '3'; give a number of seconds > 0"),
        ({"formulation": "equalize", "integral": True}, fo.Unsupported, "one equal level of whole tasks, which seldom exists"),
        ({"notion": "uniform", "sharing": "tdm"}, fo.Unsupported, "weights per resource"),
        ({"notion": "max-min", "utility": [[1, 1, 1]]}, fo.InvalidInstance, "the shape of the utility is (1, 3), expected (2, 2)"),
        (
            {"notion": "max-min", "utility": [[1, 0], [1, 1]]},
            fo.InvalidInstance,
            'the utility of "alice" for "B" is 0; it must be finite and > 0',
        ),
        ({"notion": "max-min", "utility": [1e-200, 1]}, fo.InvalidInstance, 'the utility of "alice" for "A" is 1e-200; it must be'),
        ({"notion": "proportional", "utility": [1, 1e200]}, fo.InvalidInstance, 'the utility of "bob" for "A" is 1e+200; it must be'),
        ({"notion": "max-min", "utility": "abc"}, fo.InvalidInstance, "give numbers only"),
    ],
)
def test_refusals(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    """Every message says what is wrong and what there is instead."""
    instance = MIRROR.replace(weights=[[1, 2], [3, 1]]) if arguments.get("notion") == "uniform" else MIRROR
    with pytest.raises(error) as caught:
        fo.solve(instance, **arguments)
    assert message in str(caught.value)


def test_only_an_instance_is_solved() -> None:
    """A path or an array is not one."""
    with pytest.raises(fo.InvalidInstance, match=r"expected an Instance, got str; build one with fairopt\.Instance or fairopt\.load"):
        fo.solve("cluster.yaml")  # type: ignore[arg-type]


def test_rates_of_ones_own_share_time() -> None:
    """The default sharing is then tdm, and rdm is refused."""
    instance = fo.Instance([[1], [1]], [[1], [1]], rates=[[4, 2], [1, 2]])
    assert fo.solve(instance, "cdrf").sharing == "tdm"
    with pytest.raises(fo.Unsupported, match="can only be shared by time"):
        fo.solve(instance, "cdrf", sharing="rdm")


@pytest.mark.parametrize("notion", ["cdrf", "tsf", "asset", "max-min", "per-server-drf"])
def test_weights_per_resource_where_no_notion_takes_them(notion: str) -> None:
    """drf, drfh and uniform do; the message says so."""
    with pytest.raises(fo.Unsupported, match="takes one weight per user"):
        fo.solve(MIRROR.replace(weights=[[1, 1], [1, 1]]), notion)


def test_time_limit_tells_what_is_known() -> None:
    """Whole tasks of 40 users within a millisecond: NoSolution, with the levels that were final."""
    instance = uniform_instance(40, 6, 3, capacities=(5, 9), demands=(0.3, 1))
    with pytest.raises(fo.NoSolution, match=r"no answer within the time limit of 0\.001 s") as caught:
        fo.solve(instance, "drfh", integral=True, time_limit=0.001)
    assert "levels" in caught.value.known


def test_allocation_tells_everything() -> None:
    """Arrays, frames, dictionaries, repr: one allocation, many views."""
    allocation = fo.solve(MIRROR, "drfh")
    np.testing.assert_allclose(allocation.tasks_per_user, [10, 10])
    np.testing.assert_allclose(allocation.shares, [5 / 7, 5 / 7])
    np.testing.assert_allclose(allocation.usage, allocation.tasks.T @ MIRROR.demands)
    np.testing.assert_allclose(allocation.utilization, [[1, 5 / 6], [5 / 6, 1]], atol=1e-9)
    assert allocation.dominant_resources == ("memory", "cpu")
    assert allocation.level_of_user == (1, 1)
    assert [level.users for level in allocation.levels] == [("alice", "bob")]
    assert allocation.prices is not None
    assert allocation.prices.shape == (2, 2)
    # Prices prove the level: the cluster is worth exactly what is reached.
    assert (allocation.prices * MIRROR.row_capacity).sum() == pytest.approx(5 / 7)
    frame = allocation.to_frame()
    assert list(frame.index) == ["alice", "bob"]
    assert list(frame.columns) == ["tasks", "share", "level", "dominant_resource", "weight", "tasks @ A", "tasks @ B"]
    told = json.loads(json.dumps(allocation.to_dict()))
    assert {"notion", "solver", "users", "servers", "certificate", "seconds"} <= set(told)
    assert told["users"][0]["name"] == "alice"
    assert told["users"][0]["tasks"] == pytest.approx(10)
    assert repr(allocation).startswith("Allocation(drfh, sharing rdm, by highs: alice 10, bob 10 tasks; worst residual ")
    assert set(allocation.seconds) == {"formulate", "solve", "certify"}


def test_shares_per_server_where_the_notion_is() -> None:
    """DRF on each server by itself has a share on each."""
    allocation = fo.solve(MIRROR, "per-server-drf")
    assert allocation.shares.shape == (2, 2)
    np.testing.assert_allclose(allocation.shares, allocation.tasks / MIRROR.rates)


def test_prices_are_what_a_unit_is_worth() -> None:
    """One bottleneck, unique multipliers: one more unit of it raises the level by its price."""
    instance = fo.Instance([[9, 100]], [[1, 4], [3, 1]])
    allocation = fo.solve(instance, "drf")
    assert allocation.prices is not None
    more = fo.Instance([[9.01, 100]], [[1, 4], [3, 1]])
    share = (instance.demands / instance.total_capacity).max(axis=1)  # the yardstick stays that of the old cluster
    lift = (fo.solve(more, "max-min", utility=share).shares - allocation.shares) / 0.01
    np.testing.assert_allclose(lift, allocation.prices[0, 0], rtol=1e-6)
    assert allocation.prices[0, 1] == 0


def test_whole_tasks_use_single_servers() -> None:
    """Two servers of capacity 1 hold one task of 0.6 each, not three together; 0.1 + 0.2 of 0.3 fit."""
    assert fo.solve(fo.Instance([[1.0]], [[0.6]], counts=[2]), "drfh", integral=True).tasks_per_user == [2]
    exact = fo.Instance([[0.3]], [[0.1], [0.2]])
    np.testing.assert_array_equal(fo.solve(exact, "drfh", integral=True).tasks_per_user, [1, 1])
    allocation = fo.solve(exact, "drfh", integral=True)
    assert allocation.certificate.whole_tasks
    assert allocation.details["gap"] == 0
    assert allocation.prices is None


def test_whole_tasks_out_of_proportion_are_refused_at_once() -> None:
    """A billion servers are not expanded; the message says how many pairs there would be."""
    with pytest.raises(fo.Unsupported, match="1,000,000,000 single servers make 1,000,000,000 pairs"):
        fo.solve(fo.Instance([[1]], [[1]], counts=[10**9]), integral=True)


def test_allocations_are_read_only() -> None:
    """The certificate is about these numbers."""
    allocation = fo.solve(MIRROR, "drfh")
    with pytest.raises(ValueError, match="read-only"):
        allocation.tasks[0, 0] = 99


def test_a_class_is_a_notion_too() -> None:
    """By identifier, class or object."""
    np.testing.assert_array_equal(fo.solve(MIRROR, DRFH).tasks, fo.solve(MIRROR, "drfh").tasks)


def test_a_notion_of_ones_own_is_one_short_class() -> None:
    """Everything else works for it already, by class or by name."""

    class FirstResource(ShareNotion):
        """Leximin of the fraction of the first resource."""

        name, title, source = "first", "First resource only", "this test"

        def share_per_task(self, instance: fo.Instance) -> Any:
            return instance.demands[:, 0] / instance.total_capacity[0]

    allocation = fo.solve(MIRROR, FirstResource())
    assert np.ptp(allocation.shares) <= 1e-9
    fo.NOTIONS["first"] = FirstResource
    try:
        assert "First resource only" in str(fo.formulate(MIRROR, "first"))
        np.testing.assert_allclose(fo.solve(MIRROR, "first").tasks_per_user, allocation.tasks_per_user)
    finally:
        del fo.NOTIONS["first"]


def test_every_notion_tells_who_it_is() -> None:
    """Identifier, title, source; and every promise has a citation."""
    for name, notion in fo.NOTIONS.items():
        assert name == notion.name
        assert notion.title
        assert notion.source
        assert all(isinstance(promise, fo.Property) and source for promise, source in notion.satisfies.items())


@pytest.mark.parametrize("notion", ["drfh", "efficiency"])
def test_whole_tasks_report_gap_and_bound(notion: str) -> None:
    """The bound is on the goal, the smallest share or the weighted total, and a finished search leaves no gap."""
    instance = fo.Instance([[9, 18], [5, 5]], [[1, 4], [3, 1]], weights=[1, 2])
    allocation = fo.solve(instance, notion, integral=True, time_limit=60)
    reached = allocation.shares.min() if notion == "drfh" else instance.weights @ allocation.tasks_per_user
    assert allocation.details["gap"] == 0
    assert allocation.details["bound"] == pytest.approx(reached)


@pytest.mark.parametrize("notion", ["drfh", "efficiency"])
def test_time_limit_of_whole_tasks_leaves_the_best_so_far(notion: str) -> None:
    """An allocation that is feasible row by row, what it reaches, and a bound that no divisible one exceeds by much."""
    rng = np.random.default_rng(2)
    instance = fo.Instance(rng.integers(50, 99, (12, 4)), rng.integers(3, 40, (15, 4)), weights=rng.uniform(1, 2, 15), counts=[3] * 12)
    with pytest.raises(fo.NoSolution) as caught:
        fo.solve(instance, notion, integral=True, time_limit=0.3)
    known = caught.value.known
    tasks = known["tasks"]
    assert tasks.shape == (15, 12)
    assert (tasks == np.round(tasks)).all()
    assert (tasks.T @ instance.demands <= instance.row_capacity).all()
    fluid = fo.solve(instance, notion)
    if notion == "drfh":
        share = (instance.demands / instance.total_capacity).max(axis=1) / instance.weights
        reached, best = (share * tasks.sum(axis=1)).min(), fluid.shares.min()
    else:
        reached, best = instance.weights @ tasks.sum(axis=1), instance.weights @ fluid.tasks_per_user
    assert known["value"] == pytest.approx(reached)
    assert known["value"] <= known["bound"] * (1 + 1e-9)
    assert known["value"] <= best
    reached_and_bound = f"{figure(known['value'], 6)} was reached by then, and {figure(known['bound'], 6)} is a bound"
    assert reached_and_bound in str(caught.value) or known.get("levels")


@pytest.mark.parametrize("solver", ["highs", "cvxpy"])
@pytest.mark.parametrize("example", ["psdsf-figure-1.yaml", "kesidis.yaml"])
def test_prices_of_a_total_pay_for_all_of_it(example: str, solver: str) -> None:
    """Strong duality: capacity is all that there is, so its prices add up to the goal, and none hides in a bound of a column."""
    allocation = fo.solve(fo.load(EXAMPLES / example), "efficiency", solver=solver)
    assert allocation.prices is not None
    total = allocation.instance.weights @ allocation.tasks_per_user
    assert (allocation.prices * allocation.instance.row_capacity).sum() == pytest.approx(total, rel=1e-7)


@pytest.mark.parametrize("notion", [name for name in fo.NOTIONS if name not in ("drf", "bbf")])
def test_without_a_server_there_are_no_whole_tasks(notion: str) -> None:
    """All counts 0: 0 tasks, as of divisible ones, or the refusal that the notion has for whole tasks anyway."""
    empty = fo.Instance([[4, 4], [1, 1]], [[1, 1], [1, 2]], counts=[0, 0])
    assert fo.solve(empty, notion).tasks.tolist() == [[0, 0], [0, 0]]
    try:
        assert fo.solve(empty, notion, integral=True).tasks.tolist() == [[0, 0], [0, 0]]
    except fo.Unsupported:
        with pytest.raises(fo.Unsupported):
            fo.solve(empty.replace(counts=None), notion, integral=True)


@pytest.mark.parametrize(
    ("notion", "options", "advice"),
    [
        ("proportional", {"alpha": 1e300}, 'use "max-min"'),
        ("proportional", {"alpha": 1e-300}, "use alpha=0"),
        ("fds", {"beta": 1e300}, '"drfh" or "max-min"'),
        ("fds", {"beta": 1e-300}, 'or "efficiency"'),
        ("fds", {"beta": 2, "lam": -1e300}, 'or "efficiency"'),
        ("gfj", {"beta": 0.5, "lam": 1e300}, 'or "efficiency"'),
    ],
)
def test_options_beyond_double_precision_are_refused(notion: str, options: dict[str, Any], advice: str) -> None:
    """Before anything is solved, without a warning of NumPy, and with what to use in their place."""
    with pytest.raises(fo.InvalidInstance, match=advice):
        fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), notion, **options)


def test_identical_users_of_a_steep_goal_stay_apart() -> None:
    """The joint weight of two users at alpha = 1000 is 2^1000: too large for an instance, so they are solved one by one."""
    instance = fo.Instance([[9, 18]], [[1, 4], [3, 1], [3, 1]])
    assert merge(instance, alpha=1000.0).instance == instance
    assert merge(instance, alpha=10.0).instance.n_users == 2


@pytest.mark.parametrize("options", [{}, {"exact": True}, {"integral": True}])
def test_users_without_demand_run_where_their_tasks_are_worth_most(options: dict[str, Any]) -> None:
    """Nothing keeps them from their best server."""
    instance = fo.Instance([[1], [1], [1]], [[0], [1], [0]], tasks=[3, np.inf, 2], eligibility=[[1, 1, 1], [1, 1, 1], [1, 0, 1]])
    found = fo.solve(instance, "max-min", utility=[[1, 5, 2], [1, 1, 1], [4, 9, 4]], **options)
    assert found.tasks[0].tolist() == [0, 3, 0]
    assert found.tasks[2].tolist() == [2, 0, 0]


def test_exact_is_true_or_false() -> None:
    """The text "no" counts as true in Python."""
    pool = fo.Instance([[1]], [[1]])
    with pytest.raises(fo.Unsupported, match=r"exact is .*; give True or False"):
        fo.solve(pool, exact="no")  # type: ignore[arg-type]
    with pytest.raises(fo.Unsupported, match=r"exact is .*; give True or False"):
        fo.schedule(pool, exact=1)  # type: ignore[arg-type]
    with pytest.raises(fo.Unsupported, match=r"exact is .*; give True or False"):
        fo.precomputed_drf(pool, exact="no")  # type: ignore[arg-type]


@pytest.mark.parametrize(("alpha", "advice"), [(30, "exact=True, a smaller alpha"), (2.5, "try a smaller alpha"), (0.5, "try rescaled")])
def test_a_steep_goal_beyond_double_precision_is_told_what_to_do(alpha: float, advice: str) -> None:
    """A smaller alpha, or its limit; fractions where the power is a whole number. All engines that could solve it are asked here."""
    program = fo.formulate(MIRROR, "proportional", alpha=alpha)
    engines = candidates(program, None)
    with pytest.raises(fo.CertificateError) as refused:
        require(Certificate(0.0, 1.0, 1.0), program, engines, 1e-8)
    assert advice in str(refused.value)
    assert ('"max-min"' in str(refused.value)) == (alpha > 1)


def test_the_best_found_is_checked_by_the_tolerance_of_the_caller() -> None:
    """Whole tasks that exceed a limit by a millionth: refused by 1e-8, taken by 1e-5, which the answer keeps in its question."""
    instance = fo.Instance([[9 * (1 - 1e-6), 18]], [[1, 4], [3, 1]])
    known = {"tasks": np.array([[3.0], [2.0]]), "value": 0.5, "bound": 0.7, "solver": "highs"}
    question, error = Optimum(notion_of("drfh"), integral=True), fo.NoSolution("no answer within 1 s", known)
    with pytest.raises(fo.CertificateError, match=r"feasibility 1\.0e-06, optimality nan"):
        best_found(instance, question, "rdm", error)
    found = best_found(instance, replace(question, tolerance=1e-5), "rdm", error)
    assert found is not None
    assert found.certificate.feasibility == pytest.approx(1e-6, rel=1e-5)
    assert found.to_dict()["question"]["tolerance"] == 1e-5


def test_the_best_found_is_made_again_as_it_was_made() -> None:
    """With the solver and the options that were asked for."""
    known = {"tasks": np.array([[2.0], [2.0]]), "value": 4 / 9, "bound": 2 / 3, "solver": "highs"}
    question = Optimum(notion_of("drfh"), "highs", integral=True, solver_options={"random_seed": 3})
    found = best_found(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), question, "rdm", fo.NoSolution("no answer within 1 s", known))
    assert found is not None
    assert found.question is question
