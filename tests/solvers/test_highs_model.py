"""One HiGHS model that is changed and solved again: each answer is that of SciPy for the program as it stands."""

from __future__ import annotations

import os
from functools import partial
from unittest import mock

import highspy
import numpy as np
import pytest
import scipy.sparse as sp
from reference.linear import largest

import fairopt as fo
from fairopt.solvers import highs_model
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import HighsModel, Outcome, Status, _Threads, first_solved, solved, status_of
from fairopt.solvers.highs_options import given_options

A = np.array([[1.0, 3.0, 1.0], [4.0, 1.0, 2.0]])
COST, UPPER, MOST = np.array([2.0, 3.0, 1.0]), np.array([5.0, 5.0, 5.0]), np.array([9.0, 18.0])


def model(cost: np.ndarray = COST, matrix: np.ndarray = A, **options: object) -> HighsModel:
    """Max cost x over A x <= b, 0 <= x <= upper."""
    rows = np.full(len(matrix), -np.inf)
    return HighsModel(cost, np.zeros(cost.size), UPPER[: cost.size], sp.csc_array(matrix), rows, MOST, **options)  # type: ignore[arg-type]


def by_scipy(cost: np.ndarray, matrix: np.ndarray = A, most: np.ndarray = MOST, lower: np.ndarray | float = 0.0) -> float:
    """The same by SciPy."""
    return largest(cost, matrix, most, lower=lower, upper=UPPER)


@pytest.mark.parametrize("magnified", [1.0, 2.0**14])
def test_after_every_change_the_optimum_is_that_of_scipy(magnified: float) -> None:
    """The goal, an entry of the matrix, bounds of a column and of rows."""
    lp, matrix = model(magnified=magnified), A.copy()
    assert COST @ lp.run(np.inf).x == pytest.approx(by_scipy(COST))
    other = np.array([1.0, 0.5, 4.0])
    lp.set_costs(other)
    assert other @ lp.run(np.inf).x == pytest.approx(by_scipy(other))
    matrix[1, 2] = 7.0
    lp.set_coefficients(np.array([1]), 2, np.array([7.0]))
    assert other @ lp.run(np.inf).x == pytest.approx(by_scipy(other, matrix))
    lp.set_column_bounds(0, 0.5, 5.0)
    lp.set_column_lower(0, 1.0)
    assert other @ lp.run(np.inf).x == pytest.approx(by_scipy(other, matrix, lower=np.array([1.0, 0, 0])))
    lp.forget()
    assert other @ lp.run(np.inf).x == pytest.approx(by_scipy(other, matrix, lower=np.array([1.0, 0, 0])))


@pytest.mark.parametrize("magnified", [1.0, 2.0**14])
def test_rows_with_lower_bounds_alone(magnified: float) -> None:
    """Min 2 x + y over x + y >= b, x >= 0, y in [0, 1]: 1 at b = 1, and 1 + 2 (b - 1) beyond."""
    lp = HighsModel(
        np.array([-2.0, -1.0]),
        np.zeros(2),
        np.array([9.0, 1.0]),
        sp.csc_array(np.ones((1, 2))),
        np.ones(1),
        np.full(1, np.inf),
        magnified=magnified,
    )
    np.testing.assert_allclose(lp.run(np.inf).x, [0, 1], atol=1e-12)
    lp.set_row_lower(np.array([0]), np.array([3.0]))
    np.testing.assert_allclose(lp.run(np.inf).x, [2, 1], atol=1e-12)


def test_prices_prove_the_optimum() -> None:
    """Weak duality: p b and what columns are worth beyond their costs bound the goal, and at the optimum they are it."""
    found = model().run(np.inf)
    prices = found.row_duals
    assert (prices >= 0).all()
    assert prices @ MOST + np.maximum(COST - prices @ A, 0) @ UPPER == pytest.approx(COST @ found.x)


def test_whole_numbers() -> None:
    """Branch and cut without a gap."""
    found = model(integral=np.arange(3)).run(np.inf)
    np.testing.assert_allclose(found.x, np.round(found.x), atol=1e-9)
    assert COST @ found.x == pytest.approx(largest(COST, A, MOST, upper=UPPER, whole=True))
    assert found.gap == 0


@pytest.mark.parametrize("seed", [65, 102, 126, 129, 222, 339, 372])
def test_a_start_that_is_not_the_best_is_not_returned(seed: int) -> None:
    """Max c x over whole x from a feasible start, which HiGHS 1.16 returns for the optimum here; SciPy starts from nothing."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(4, 16)), int(rng.integers(2, 12))
    matrix = np.round(rng.uniform(0, 1, (m, n)) * (rng.random((m, n)) < 0.5), 2)
    cost = -(rng.random(n) < 0.5).astype(float) if rng.random() < 0.5 else rng.integers(-3, 4, n).astype(float)
    upper = rng.integers(1, 15, n).astype(float)
    start = np.floor(rng.random(n) * (upper + 1))
    used = matrix @ start
    least, most = np.where(rng.random(m) < 0.5, used - rng.random(m) * 0.5, -np.inf), used + rng.random(m) * 2
    search = HighsModel(cost, np.zeros(n), upper, sp.csr_array(matrix), least, most, integral=np.arange(n))
    search.start_at(start)
    found = search.run(np.inf)
    bounded = np.isfinite(least)
    best = largest(cost, np.vstack([matrix, -matrix[bounded]]), np.append(most, -least[bounded]), upper=upper, whole=True)
    assert found.status is Status.OPTIMAL
    assert cost @ found.x == pytest.approx(best)
    assert found.bound == pytest.approx(best)
    assert found.gap == 0


def test_a_basis_is_taken_along() -> None:
    """From the basis of the optimum, and from one put together by hand, no step is left or the answer is the same."""
    first = model()
    best = COST @ first.run(np.inf).x
    second = model()
    second.basis = first.basis
    again = second.run(np.inf)
    assert again.iterations == 0
    assert COST @ again.x == pytest.approx(best)
    third = model()
    third.start_from(np.array([0]), np.array([1]))
    assert COST @ third.run(np.inf).x == pytest.approx(best)


def test_a_magnified_model_has_smaller_tolerances() -> None:
    """Max x <= 1, x >= 1 + excess: an excess within the tolerance is none, and counts in a model magnified by 1,000."""

    def status(excess: float, magnified: float) -> Status:
        at_least = np.array([1 + excess])
        return (
            HighsModel(
                np.ones(1), np.zeros(1), np.ones(1), sp.csc_array(np.ones((1, 1))), at_least, np.full(1, np.inf), None, 1e-7, magnified
            )
            .run(np.inf)
            .status
        )

    assert status(1e-9, 1.0) is Status.OPTIMAL
    assert status(1e-9, 1e3) is Status.INFEASIBLE


def test_refinement_takes_away_what_the_tolerance_leaves() -> None:
    """A point moved by 1e-6 comes back to the optimum, with its prices."""
    lp = model()
    found = lp.run(np.inf)
    moved = Outcome(found.status, found.x - 1e-6, found.row_duals, found.gap, found.iterations)
    for of_prices in (1.0, 1e3):
        refined = lp.refine(moved, np.inf, of_prices=of_prices)
        assert refined.iterations >= found.iterations > 0
        np.testing.assert_allclose(refined.x, found.x, atol=1e-12)
        np.testing.assert_allclose(refined.row_duals, found.row_duals, atol=1e-12)
    assert COST @ lp.run(np.inf).x == pytest.approx(COST @ found.x)  # the model is as it was


def test_a_model_that_runs_again_says_how_many_threads_there_are() -> None:
    """max x0 + 2 x1 with x0 + x1 <= 3, x1 <= k is 3 + k, from the last basis, whichever number of threads is tried first."""

    def values(model: HighsModel) -> list[float]:
        found = [float(model.run(np.inf).x @ [1.0, 2.0])]
        for most in (2.0, 3.0):
            model.set_column_bounds(1, 0.0, most)
            found.append(float(model.run(np.inf).x @ [1.0, 2.0]))
        return found

    def model(integral: list[int] | None = None) -> HighsModel:
        upper, matrix, whole = np.array([np.inf, 1.0]), sp.csr_array([[1.0, 1.0]]), None if integral is None else np.array(integral)
        return HighsModel(np.array([1.0, 2.0]), np.zeros(2), upper, matrix, np.array([-np.inf]), np.array([3.0]), integral=whole)

    def told(model: HighsModel) -> int:
        return int(model._highs.getOptionValue("threads")[1])

    native = model()
    native.run(np.inf)
    number = next(
        n
        for n in range(1, (os.cpu_count() or 1) + 1)
        if native._highs.setOptionValue("threads", n) == highspy.HighsStatus.kOk and native._highs.run() == highspy.HighsStatus.kOk
    )
    for guesses, left in (((number + 1, number), (number,)), ((number + 1, number + 2), ()), ((number, number + 1), (number, number + 1))):
        with mock.patch.object(highs_model, "_THREADS", _Threads()) as threads:
            threads._guesses = guesses
            one, other, whole = model(), model(), model(integral=[0, 1])
            assert values(one) == values(other) == values(whole) == pytest.approx([4.0, 5.0, 6.0])
            assert threads._guesses == left
            assert told(one) == told(other) == (number if left else 0)
            assert told(whole) == 0
            with given_options({"simplex_strategy": 1}):
                kept = model()
            assert values(kept) == pytest.approx([4.0, 5.0, 6.0])
            assert told(kept) == 0


def test_the_number_of_threads_is_likely_to_be_that_of_the_cores() -> None:
    """Or of every other processor."""
    guess = _Threads().guess()
    assert guess is not None
    assert 1 <= guess <= (os.cpu_count() or 1)


def test_what_has_no_optimum_is_told_apart() -> None:
    """No feasible point, a goal without end, and every status that HiGHS may add one day."""
    none = model()
    none.set_column_bounds(0, 6.0, 6.0)  # takes 24 of 18
    assert none.run(np.inf).status is Status.INFEASIBLE
    endless = HighsModel(np.ones(1), np.zeros(1), np.full(1, np.inf), sp.csc_array((0, 1)), np.empty(0), np.empty(0))
    assert endless.run(np.inf).status is Status.UNBOUNDED
    statuses = highspy.HighsModelStatus
    assert status_of(statuses.kOptimal) is Status.OPTIMAL
    assert status_of(statuses.kTimeLimit) is Status.TIME_LIMIT
    assert {status_of(each) for each in statuses.__members__.values()} <= set(Status)


def test_an_interrupted_run_without_a_time_limit_is_no_answer() -> None:
    """HiGHS says kInterrupt where something stops it from outside; there is no limit to name."""
    stopped = Outcome(status_of(highspy.HighsModelStatus.kInterrupt), np.empty(0), np.empty(0), 0.0, 0)
    with pytest.raises(fo.NoSolution, match="the solver was interrupted before it had an answer; 1 level was final by then") as caught:
        solved(stopped, Deadline(None), {"levels": [0.5]})
    assert caught.value.known == {"levels": [0.5]}


def test_only_an_optimum_is_passed_on() -> None:
    """Else NoSolution, with what is known."""
    found = model().run(np.inf)
    assert solved(found, Deadline(None), {}) is found
    for status, said in ((Status.TIME_LIMIT, "within the time limit of 1 s"), (Status.INFEASIBLE, "the program has no feasible point")):
        with pytest.raises(fo.NoSolution, match=said) as caught:
            solved(Outcome(status, np.empty(0), np.empty(0), 0.0, 0), Deadline(1.0), {"levels": [1.0, 2.0]})
        assert caught.value.known == {"levels": [1.0, 2.0]}


def test_branch_and_cut_ends_at_a_check() -> None:
    """At the first one nothing is proved, and the bound that it states is one; a later one comes after the end. Twice it is the same."""
    rng = np.random.default_rng(3)
    cost, matrix = rng.integers(20, 60, 40).astype(float), sp.csr_array(rng.integers(10, 60, (6, 40)).astype(float))
    rows = np.full(6, -np.inf), np.asarray(matrix.sum(axis=1)) / 3

    def ended(checks: int) -> Outcome:
        whole = HighsModel(cost, np.zeros(40), np.ones(40), matrix, *rows, integral=np.arange(40))
        whole.end_after(checks)
        return whole.run(np.inf)

    best = ended(1_000_000)
    assert best.status is Status.OPTIMAL
    for checks in (1, 5):
        first, again = ended(checks), ended(checks)
        assert (first.status, first.x.tolist(), first.iterations) == (again.status, again.x.tolist(), again.iterations)
        assert first.bound >= cost @ best.x - 1e-6
    assert ended(1).status is Status.TIME_LIMIT


def test_runs_go_on_until_one_has_an_answer() -> None:
    """The first that is optimal or at the time limit, and none after it; else the last."""
    made: list[int] = []

    def run(number: int, status: Status) -> Outcome:
        made.append(number)
        return Outcome(status, np.array([float(number)]), np.empty(0), 0.0, 0)

    order = (Status.INFEASIBLE, Status.OPTIMAL, Status.FAILED)
    assert first_solved(partial(run, k, status) for k, status in enumerate(order)).x.tolist() == [1]
    assert made == [0, 1]
    assert first_solved([partial(run, 7, Status.TIME_LIMIT), partial(run, 8, Status.OPTIMAL)]).x.tolist() == [7]
    assert first_solved([partial(run, 5, Status.FAILED), partial(run, 6, Status.UNBOUNDED)]).status is Status.UNBOUNDED
