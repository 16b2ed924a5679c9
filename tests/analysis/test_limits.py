"""What-if, frontier and regret with named limits, against linear programs over rows that are written down one by one."""

import itertools
from typing import Any

import numpy as np
import pytest
from reference.rows import Rows, leximin
from scipy.optimize import linprog

import fairopt as fo

LAB = fo.Instance(
    [[8, 32], [4, 32]],
    [[1.0, 4.0], [1.0, 1.0], [0.5, 8.0]],
    users=["a", "b", "c"],
    servers=["new", "old"],
    resources=["gpu", "cpu"],
    limits=[
        fo.Limit("few gpu", 3, resource="gpu", users=["a", "b"], servers=["new"]),
        fo.Limit("five", 5, users=["c"]),
        fo.Limit("old", 4, amounts={"a": 2, "c": 1}, servers=["old"]),
    ],
)
SHARE = (LAB.demands / LAB.capacities.sum(axis=0)).max(axis=1)  # of a task
PAIRS = list(itertools.product(range(3), range(2)))


def rows_of(few: float) -> Rows:
    """Return the rows of the lab; ``few`` is the bound of its first limit."""
    rows = Rows(PAIRS)
    for i, r in itertools.product(range(2), range(2)):
        rows.add([float(LAB.demands[n, r]) if k == i else 0.0 for n, k in PAIRS], float(LAB.capacities[i, r]))
    rows.add([1.0 if n < 2 and k == 0 else 0.0 for n, k in PAIRS], few)
    rows.add([1.0 if n == 2 else 0.0 for n, k in PAIRS], 5.0)
    rows.add([[2.0, 0.0, 1.0][n] if k == 1 else 0.0 for n, k in PAIRS], 4.0)
    return rows


def drfh(few: float) -> np.ndarray:
    """Return the tasks of each user under drfh, by the oracle of rows."""
    return np.asarray(leximin(rows_of(few), [float(SHARE[n]) for n, _ in PAIRS], 3) / SHARE)


def most_tasks(few: float) -> float:
    """Return the largest number of tasks."""
    rows = rows_of(few)
    found: Any = linprog(-np.ones(len(PAIRS)), A_ub=np.array(rows.matrix), b_ub=rows.bounds)
    return float(-found.fun)


@pytest.mark.parametrize("few", [1.0, 6.0, 20.0])
def test_a_what_if_solves_both_limits(few: float) -> None:
    """What each user gains or loses is the difference of two leximins."""
    found = fo.what_if(LAB, LAB.replace(limits={"few gpu": {"bound": few}}))
    changes = {each.name: each.change for each in found.changes("drfh")}
    np.testing.assert_allclose(np.array([changes[user] for user in LAB.users], float), drfh(few) - drfh(3.0), atol=1e-6)


def test_a_frontier_ends_at_the_most_tasks_within_the_limits() -> None:
    """And at the largest smallest number of tasks; every point between them is within the limits."""
    for few in (1.0, 3.0):
        found = fo.frontier(LAB.replace(limits={"few gpu": {"bound": few}}))
        totals = {point.name: point.total for point in found.points}
        assert totals["alpha=0"] == pytest.approx(most_tasks(few), rel=1e-7)
        assert totals["alpha=inf"] == pytest.approx(leximin(rows_of(few), [1.0] * len(PAIRS), 3).sum(), rel=1e-6)
        assert max(total for total in totals.values() if np.isfinite(total)) <= most_tasks(few) * (1 + 1e-8)


def test_a_regret_compares_with_the_best_within_the_limits() -> None:
    """A schedule misses the part of the oracle's shares that its own tasks lack; the exact answer misses nothing."""
    best, made = drfh(3.0), fo.schedule(LAB, "drfh")
    rows = rows_of(3.0)
    assert (np.array(rows.matrix) @ made.tasks.ravel() <= np.array(rows.bounds) + 1e-9).all()
    found = fo.regret(made)
    assert found.total == pytest.approx(1 - made.tasks_per_user.sum() / best.sum(), abs=1e-6)
    due, held = np.sort(best * SHARE), np.sort(made.tasks_per_user * SHARE)  # shares are compared by their position
    assert found.largest == pytest.approx(max(1 - held / due), abs=1e-6)
    assert fo.regret(fo.solve(LAB, "drfh")).largest == pytest.approx(0, abs=1e-9)


def test_an_audit_drops_a_limit_with_its_users() -> None:
    """Without a, nobody is below the queue of the limit; b and c then have 4 each, not less than before."""
    pool = fo.Instance(
        [[8]],
        [[1], [1], [1]],
        users=["a", "b", "c"],
        queues=[fo.Queue("q"), fo.Queue("r")],
        queue_of=["q", "r", None],
        limits=[fo.Limit("few", 2, queues=["q"]), fo.Limit("one", 1, queues=["q"], users=["a", "c"])],
    )
    assert fo.audit(fo.solve(pool), "population-monotonicity")["population-monotonicity"].holds
