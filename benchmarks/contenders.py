"""What a user would write without fairopt, each returning tasks per user.

Every contender gets the instance and solves weighted DRFH, s[n] = w[n] x[n] / phi[n]; where the instance has rates, TSF: s[n] is
x[n] / phi[n] as a part of what n could run alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

import fairopt as fo


def notion(instance: fo.Instance) -> str:
    """Return the notion that the contenders solve."""
    return "drfh" if instance.rates_per_server is None else "tsf"


def fairopt_solve(instance: fo.Instance) -> np.ndarray:
    return fo.solve(instance, notion(instance)).tasks_per_user


def fairopt_by_highs(instance: fo.Instance) -> np.ndarray:
    return fo.solve(instance, "drfh", solver="highs").tasks_per_user


def fairopt_equalize(instance: fo.Instance) -> np.ndarray:
    return fo.solve(instance, "drfh", formulation="equalize").tasks_per_user


def _arrays(instance: fo.Instance) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Share of a task by user, and users and servers of the eligible pairs."""
    share = (instance.demands / instance.total_capacity).max(axis=1) / instance.weights
    return share, *np.nonzero(instance.eligibility)


def _matrices(instance: fo.Instance) -> tuple[np.ndarray, sp.csr_matrix, sp.csr_matrix]:
    """Share of each user, capacity rows and user rows over the pairs, x in tasks."""
    share, users, servers = _arrays(instance)
    m, pairs = instance.n_resources, users.size
    rows = (servers[:, None] * m + np.arange(m)).ravel()
    columns = np.repeat(np.arange(pairs), m)
    capacity = sp.csr_matrix((instance.demands[users].ravel(), (rows, columns)), shape=(instance.n_servers * m, pairs))
    by_user = sp.csr_matrix((share[users], (users, np.arange(pairs))), shape=(instance.n_users, pairs))
    return share, capacity, by_user


def cvxpy_one_lp(instance: fo.Instance) -> np.ndarray:
    """The first level only: max t, as a matrix program in CVXPY, solved by HiGHS."""
    import cvxpy as cp

    share, capacity, by_user = _matrices(instance)
    x, t = cp.Variable(capacity.shape[1], nonneg=True), cp.Variable()
    cp.Problem(cp.Maximize(t), [capacity @ x <= instance.row_capacity.ravel(), by_user @ x >= t]).solve(solver=cp.HIGHS)
    return (by_user @ x.value) / share


def cvxpy_leximin(instance: fo.Instance) -> np.ndarray:
    """The whole leximin in CVXPY and HiGHS: solve, fix the users whose rows have a positive dual, repeat."""
    import cvxpy as cp

    share, capacity, by_user = _matrices(instance)
    level = np.full(instance.n_users, np.nan)
    while np.isnan(level).any():
        rising = np.isnan(level)
        x, t = cp.Variable(capacity.shape[1], nonneg=True), cp.Variable()
        rise = by_user[rising] @ x >= t
        constraints = [capacity @ x <= instance.row_capacity.ravel(), rise]
        if not rising.all():
            constraints.append(by_user[~rising] @ x >= level[~rising] * (1 - 1e-9))
        cp.Problem(cp.Maximize(t), constraints).solve(solver=cp.HIGHS)
        dual = np.abs(rise.dual_value)
        saturated = np.flatnonzero(rising)[dual > max(1e-9, 1e-7 * dual.max())]
        level[saturated] = t.value
    return level / share


def cvxpy_leximin_package(instance: fo.Instance) -> np.ndarray:
    """The package cvxpy-leximin by saturation (its default, ordered outcomes, took more than ten minutes here), with HiGHS."""
    import cvxpy as cp
    from cvxpy_leximin import Leximin, Problem

    share, capacity, by_user = _matrices(instance)
    x = cp.Variable(capacity.shape[1], nonneg=True)
    utilities = [by_user[[n]] @ x for n in range(instance.n_users)]
    problem = Problem(Leximin([u[0] for u in utilities]), [capacity @ x <= instance.row_capacity.ravel()])
    problem.solve(method="saturation", solver=cp.HIGHS)
    return (by_user @ x.value) / share


def highs_one_lp(instance: fo.Instance) -> np.ndarray:
    """The first level only: one LP handed to HiGHS with its defaults."""
    import highspy

    share, capacity, by_user = _matrices(instance)
    pairs = capacity.shape[1]
    matrix = sp.bmat([[capacity, None], [by_user, -np.ones((instance.n_users, 1))]], format="csc")
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = pairs + 1, matrix.shape[0]
    lp.col_cost_ = np.append(np.zeros(pairs), 1.0)
    lp.col_lower_, lp.col_upper_ = np.zeros(pairs + 1), np.full(pairs + 1, np.inf)
    lp.row_lower_ = np.append(np.full(capacity.shape[0], -np.inf), np.zeros(instance.n_users))
    lp.row_upper_ = np.append(instance.row_capacity.ravel(), np.full(instance.n_users, np.inf))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    lp.sense_ = highspy.ObjSense.kMaximize
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.passModel(lp)
    highs.run()
    return (by_user @ np.array(highs.getSolution().col_value)[:-1]) / share


def highs_leximin(instance: fo.Instance, primal: bool) -> np.ndarray:
    """Jobs, level by level on one model: solve, fix the users whose rows have a positive dual, go on from the last basis.

    ``primal``: by primal simplex after the first LP, for which the last basis stays feasible; else as HiGHS chooses.
    """
    import highspy

    n, k = instance.n_users, instance.n_servers
    rates, users, servers = instance.rates / instance.counts, np.repeat(np.arange(n), k), np.tile(np.arange(k), n)
    gain = (rates / (instance.rates.sum(axis=1) * instance.weights)[:, None]).ravel()  # of the share, per server
    pairs, unit = n * k, float(instance.counts.sum() / n)
    y = np.arange(pairs)
    blocks = [
        [sp.csr_matrix((1.0 / instance.counts[servers], (servers, y)), (k, pairs)), None],
        [sp.csr_matrix((1.0 / instance.parallelism[users], (users, y)), (n, pairs)), None],
        [sp.csr_matrix((gain / gain.mean(), (users, y)), (n, pairs)), -np.full((n, 1), unit)],
    ]
    matrix = sp.bmat(blocks, format="csc")
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = pairs + 1, matrix.shape[0]
    lp.col_cost_ = np.append(np.zeros(pairs), 1.0)
    lp.col_lower_, lp.col_upper_ = np.zeros(pairs + 1), np.full(pairs + 1, np.inf)
    lp.row_lower_ = np.append(np.full(k + n, -np.inf), np.zeros(n))
    lp.row_upper_ = np.append(np.ones(k + n), np.full(n, np.inf))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    lp.sense_ = highspy.ObjSense.kMaximize
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.passModel(lp)
    rising = np.ones(n, bool)
    while rising.any():
        highs.run()
        solution = highs.getSolution()
        x, dual = np.array(solution.col_value), np.abs(np.array(solution.row_dual)[k + n :])
        for j in np.flatnonzero(rising & (dual > max(1e-9, 1e-7 * dual[rising].max()))):
            highs.changeCoeff(int(k + n + j), pairs, 0.0)
            highs.changeRowBounds(int(k + n + j), unit * x[-1] * (1 - 1e-9), np.inf)
            rising[j] = False
        if primal:
            highs.setOptionValue("simplex_strategy", 4)
    return np.bincount(users, weights=x[:-1] * rates.ravel(), minlength=n)


FIRST_LEVEL_ONLY = ("CVXPY + HiGHS, one LP", "HiGHS, one LP", "fairopt equalize")

CONTENDERS: dict[str, Callable[[fo.Instance], np.ndarray]] = {
    "fairopt": fairopt_solve,
    "fairopt by HiGHS": fairopt_by_highs,
    "fairopt equalize": fairopt_equalize,
    "CVXPY + HiGHS, one LP": cvxpy_one_lp,
    "CVXPY + HiGHS, leximin": cvxpy_leximin,
    "cvxpy-leximin": cvxpy_leximin_package,
    "HiGHS, one LP": highs_one_lp,
    "HiGHS, leximin as it comes": lambda instance: highs_leximin(instance, primal=False),
    "HiGHS, leximin, primal simplex": lambda instance: highs_leximin(instance, primal=True),
}
