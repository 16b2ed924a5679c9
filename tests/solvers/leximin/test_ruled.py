"""Leximins and totals over polytopes that do not contain 0, by a plain linear program."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

import fairopt as fo
from fairopt.certificate import certify
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.ruled import solve_ruled
from fairopt.solvers.leximin.ruled_tree import solve_by_programs
from fairopt.solvers.via_highs.ruled import solve_ruled as by_highs
from fairopt.solvers.via_pyomo.ruled import solve_with_rules
from fairopt.solvers.via_pyomo.running import solver

RULED = fo.Instance([[12, 9]], [[1, 1], [1, 0], [2, 1]], users=["a", "b", "c"], rules=["x[a] >= 2 * x[b]", "x[c] >= 3/2"])


def by_scipy(cost: np.ndarray, matrix: sp.csr_array, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """SciPy's own interface to a simplex method."""
    found = linprog(-cost, A_ub=matrix.toarray(), b_ub=right + 1e-13 * np.abs(right), bounds=(0, None), method="highs-ds")
    assert found.status == 0
    return np.asarray(found.x), -np.asarray(found.ineqlin.marginals)


def test_levels_by_hand() -> None:
    """Levels: b 2, c 2, a 4 would take 10 of 12; b rises with half of what a has: b = t, c = t, a = 2 t, 5 t = 12."""
    program = fo.formulate(RULED, "max-min")
    for solution in (
        solve_ruled(program, by_scipy, Deadline(None)),
        by_highs(program, Deadline(None)),
        solve_with_rules(program, solver(None), Deadline(None)),
    ):
        tasks = program.per_user(solution.x)
        np.testing.assert_allclose(tasks, [4.8, 2.4, 2.4], rtol=1e-9)
        assert certify(program, solution).worst <= 1e-9


def test_totals_by_hand() -> None:
    """a and b share what c leaves, 9 of the first and 7.5 of the second: a has 7.5 and b 1.5."""
    program = fo.formulate(RULED, "efficiency")
    solution = solve_ruled(program, by_scipy, Deadline(None))
    np.testing.assert_allclose(program.per_user(solution.x), [7.5, 1.5, 1.5], rtol=1e-9)
    assert certify(program, solution).worst <= 1e-9


def test_a_wrong_leximin_is_not_proved() -> None:
    """A thousandth less for everybody, told truthfully, and prices of another sign."""
    from dataclasses import replace

    program = fo.formulate(RULED.replace(rules=["x[a] >= 2 * x[b]"]), "max-min")
    right = by_highs(program, Deadline(None))
    stages = tuple(replace(stage, value=stage.value * 0.999) for stage in right.stages)
    assert certify(program, replace(right, x=right.x * 0.999, stages=stages)).worst > 5e-4
    no_prices = tuple(replace(stage, prices=np.zeros(len(program.limits))) for stage in right.stages)
    assert certify(program, replace(right, stages=no_prices)).worst == np.inf


def test_a_tree_by_hand() -> None:
    """Queue q, of a and b, and c alone: a twice b, so that 3 t / 2 of q goes with t of c where a rests: 6, 3 and 9 of 18."""
    lab = fo.Instance([[18]], [[1], [1], [1]], users=["a", "b", "c"], queues=[fo.Queue("q")], queue_of=["q", "q", None])
    program = fo.formulate(lab.replace(rules=["x[a] >= 2 * x[b]"]), "max-min", queue_share="sum")
    solution = solve_by_programs(program, by_scipy, 1e-8, Deadline(None))
    np.testing.assert_allclose(program.per_user(solution.x), [36 / 5, 18 / 5, 36 / 5], rtol=1e-9)
    assert certify(program, solution).worst <= 1e-9
