"""What a user would write without fairopt.

Most contenders get an instance, solve weighted DRFH, s[n] = w[n] x[n] / phi[n]
(where it has rates, TSF: s[n] is x[n] / phi[n] as a part of what n could run alone),
and return tasks, (users, servers). The last one follows a trace.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

import fairopt as fo

if TYPE_CHECKING:
    import highspy


def notion(instance: fo.Instance) -> str:
    """Return the notion that the contenders solve."""
    return "drfh" if instance.rates_per_server is None else "tsf"


def fairopt_solve(instance: fo.Instance) -> np.ndarray:
    return fo.solve(instance, notion(instance)).tasks


def fairopt_by_highs(instance: fo.Instance) -> np.ndarray:
    return fo.solve(instance, "drfh", solver="highs").tasks


def fairopt_by_interior_point(instance: fo.Instance) -> np.ndarray:
    return fo.solve(instance, "drfh", solver="interior-point").tasks


def fairopt_equalize(instance: fo.Instance) -> np.ndarray:
    return fo.solve(instance, "drfh", formulation="equalize").tasks


def share_per_task(instance: fo.Instance) -> np.ndarray:
    """Return the weighted global dominant share of a task, by user."""
    return (instance.demands / instance.total_capacity).max(axis=1) / instance.weights


def _arrays(instance: fo.Instance) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Share of a task by user, and users and servers of the eligible pairs."""
    return share_per_task(instance), *np.nonzero(instance.eligibility)


def _matrices(instance: fo.Instance) -> tuple[np.ndarray, sp.csr_matrix, sp.csr_matrix]:
    """Share of each user, capacity rows and user rows over the pairs, x in tasks."""
    share, users, servers = _arrays(instance)
    m, pairs = instance.n_resources, users.size
    rows = (servers[:, None] * m + np.arange(m)).ravel()
    columns = np.repeat(np.arange(pairs), m)
    capacity = sp.csr_matrix((instance.demands[users].ravel(), (rows, columns)), shape=(instance.n_servers * m, pairs))
    by_user = sp.csr_matrix((share[users], (users, np.arange(pairs))), shape=(instance.n_users, pairs))
    return share, capacity, by_user


def _placed(instance: fo.Instance, x: np.ndarray) -> np.ndarray:
    """Tasks by user and server from those of the pairs."""
    tasks = np.zeros((instance.n_users, instance.n_servers))
    tasks[instance.eligibility] = x
    return tasks


def cvxpy_one_lp(instance: fo.Instance, solver: str = "HIGHS") -> np.ndarray:
    """The first level only: max t, as a matrix program in CVXPY, solved by one of its solvers."""
    import cvxpy as cp

    _, capacity, by_user = _matrices(instance)
    x, t = cp.Variable(capacity.shape[1], nonneg=True), cp.Variable()
    cp.Problem(cp.Maximize(t), [capacity @ x <= instance.row_capacity.ravel(), by_user @ x >= t]).solve(solver=solver)
    return _placed(instance, x.value)


def scipy_one_lp(instance: fo.Instance) -> np.ndarray:
    """The first level only, by SciPy's linprog as it comes."""
    from scipy.optimize import linprog

    _, capacity, by_user = _matrices(instance)
    rows = sp.bmat([[capacity, None], [-by_user, np.ones((instance.n_users, 1))]], format="csc")
    most = np.append(instance.row_capacity.ravel(), np.zeros(instance.n_users))
    found = linprog(np.append(np.zeros(capacity.shape[1]), -1.0), A_ub=rows, b_ub=most)
    return _placed(instance, found.x[:-1])


def cvxpy_leximin(instance: fo.Instance) -> np.ndarray:
    """The whole leximin in CVXPY and HiGHS: solve, fix the users whose rows have a positive dual, repeat."""
    import cvxpy as cp

    _, capacity, by_user = _matrices(instance)
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
    return _placed(instance, x.value)


def cvxpy_leximin_package(instance: fo.Instance) -> np.ndarray:
    """The package cvxpy-leximin by saturation (its default, ordered outcomes, took more than ten minutes here), with HiGHS."""
    import cvxpy as cp
    from cvxpy_leximin import Leximin, Problem

    _, capacity, by_user = _matrices(instance)
    x = cp.Variable(capacity.shape[1], nonneg=True)
    utilities = [by_user[[n]] @ x for n in range(instance.n_users)]
    problem = Problem(Leximin([u[0] for u in utilities]), [capacity @ x <= instance.row_capacity.ravel()])
    problem.solve(method="saturation", solver=cp.HIGHS)
    return _placed(instance, x.value)


def _highs(limits: sp.csr_matrix, most: np.ndarray, shares: sp.csr_matrix, unit: float = 1.0) -> highspy.Highs:
    """A model of HiGHS: maximise t over x >= 0 with ``limits`` x <= ``most`` and, in the last rows, ``shares`` x >= ``unit`` t."""
    import highspy

    pairs, n = limits.shape[1], shares.shape[0]
    matrix = sp.bmat([[limits, None], [shares, -np.full((n, 1), unit)]], format="csc")
    matrix.eliminate_zeros()
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = pairs + 1, matrix.shape[0]
    lp.col_cost_ = np.append(np.zeros(pairs), 1.0)
    lp.col_lower_, lp.col_upper_ = np.zeros(pairs + 1), np.full(pairs + 1, np.inf)
    lp.row_lower_ = np.append(np.full(most.size, -np.inf), np.zeros(n))
    lp.row_upper_ = np.append(most, np.full(n, np.inf))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    lp.sense_ = highspy.ObjSense.kMaximize
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.passModel(lp)
    return highs


def _level_by_level(highs: highspy.Highs, n: int, primal: bool, unit: float = 1.0, kept: float = 1.0) -> np.ndarray:
    """Maximise t, fix the users whose rows have a positive dual at ``kept`` of their share, go on from the last basis; return x.

    The rows of the ``n`` users are the last ones of the model, and t is its last column.
    ``primal``: by primal simplex after the first LP, for which the last basis stays feasible; else as HiGHS chooses.
    """
    first, column = highs.getNumRow() - n, highs.getNumCol() - 1
    rising = np.ones(n, bool)
    while rising.any():
        highs.run()
        solution = highs.getSolution()
        x, dual = np.array(solution.col_value), np.abs(np.array(solution.row_dual)[first:])
        for user in np.flatnonzero(rising & (dual > max(1e-9, 1e-7 * dual[rising].max()))):
            highs.changeCoeff(int(first + user), column, 0.0)
            highs.changeRowBounds(int(first + user), unit * x[-1] * kept, np.inf)
            rising[user] = False
        if primal:
            highs.setOptionValue("simplex_strategy", 4)
    return x[:-1]


def highs_one_lp(instance: fo.Instance, method: str = "choose") -> np.ndarray:
    """The first level only: one LP handed to HiGHS with its defaults, or by one of its methods."""
    _, capacity, by_user = _matrices(instance)
    highs = _highs(capacity, instance.row_capacity.ravel(), by_user)
    highs.setOptionValue("solver", method)
    highs.run()
    return _placed(instance, np.array(highs.getSolution().col_value)[:-1])


def highs_levels(instance: fo.Instance, primal: bool) -> np.ndarray:
    """Level by level on one model, by primal simplex after the first LP or as HiGHS chooses."""
    _, capacity, by_user = _matrices(instance)
    return _placed(instance, _level_by_level(_highs(capacity, instance.row_capacity.ravel(), by_user), instance.n_users, primal))


def highs_leximin(instance: fo.Instance, primal: bool) -> np.ndarray:
    """Jobs, level by level on one model, by primal simplex after the first LP or as HiGHS chooses."""
    n, k = instance.n_users, instance.n_servers
    rates, users, servers = instance.rates / instance.counts, np.repeat(np.arange(n), k), np.tile(np.arange(k), n)
    gain = (rates / (instance.rates.sum(axis=1) * instance.weights)[:, None]).ravel()  # of the share, per server
    pairs, unit = n * k, float(instance.counts.sum() / n)
    y = np.arange(pairs)
    by_server = sp.csr_matrix((1.0 / instance.counts[servers], (servers, y)), (k, pairs))
    by_user = sp.csr_matrix((1.0 / instance.parallelism[users], (users, y)), (n, pairs))
    shares = sp.csr_matrix((gain / gain.mean(), (users, y)), (n, pairs))
    highs = _highs(sp.vstack([by_server, by_user], format="csr"), np.ones(k + n), shares, unit)
    x = _level_by_level(highs, n, primal, unit, kept=1 - 1e-9)
    return (x * rates.ravel()).reshape(n, k)


def best_fit_over_time(trace: fo.Trace, cluster: fo.Instance, patient: bool) -> tuple[np.ndarray, np.ndarray]:
    """Best-fit DRFH over time without a compiler: a heap of ends, and a vector over all servers for each task that is tried.

    Whenever something ends or comes, the user with the smallest share of those that wait is tried, its jobs in order, until nothing fits.
    ``patient`` remembers of each shape of tasks that it fitted nowhere, and looks then only at servers on which something ended: what one
    writes after having seen a profile. Returns start and end of each task, nan where it never started.
    """
    row = np.repeat(np.arange(cluster.n_servers), cluster.counts.astype(int))
    total = cluster.total_capacity
    free, limit = cluster.capacities[row] / total, cluster.capacities[row] / total * 1e-9
    kinds, shape = np.unique(np.column_stack([trace.user, trace.demands / total]), axis=0, return_inverse=True)  # by user, then demand
    owner, demand = kinds[:, 0].astype(int), kinds[:, 1:]
    share, pivot = demand.max(axis=1), (demand > 0).argmax(axis=1)
    ratio = demand / demand[np.arange(len(demand)), pivot][:, None]
    queue: list[list[int]] = [[] for _ in kinds]  # jobs, the next one last
    running, untried = np.zeros(len(kinds)), np.zeros(len(kinds), bool)
    waits = np.zeros(len(kinds), bool)
    next_task = np.cumsum(trace.tasks) - trace.tasks
    last_task = np.cumsum(trace.tasks)
    durations = trace.task_durations
    start, end = np.full(trace.n_tasks, np.nan), np.full(trace.n_tasks, np.nan)
    ends: list[tuple[float, int, int, int]] = []  # time, task, its shape and its server
    event, jobs = 0, trace.n_jobs
    while ends or event < jobs:
        now = min(ends[0][0] if ends else np.inf, trace.submit[event] if event < jobs else np.inf)
        freed = []
        while ends and ends[0][0] == now:
            _, _, k, i = heapq.heappop(ends)
            free[i] += demand[k]
            running[k] -= 1
            freed.append(i)
        while event < jobs and trace.submit[event] == now:
            k = shape[event]
            queue[k].insert(0, event)
            untried[k] |= not waits[k]
            waits[k] = True
            event += 1
        servers = np.unique(np.array(freed, int))
        hopeful = np.flatnonzero(waits)
        if patient:
            there = (demand[hopeful, None] <= free[servers] + limit[servers]).all(axis=2).any(axis=1)
            hopeful = hopeful[there | untried[hopeful]]
        while hopeful.size:
            shares = np.bincount(owner, weights=running * share)[owner[hopeful]]
            lowest = hopeful[shares <= shares.min() * (1 + 1e-12)]
            lowest = lowest[owner[lowest] == owner[lowest].min()]
            k = min(lowest, key=lambda k: queue[k][-1])
            where = servers if patient and not untried[k] else slice(None)
            room = free[where]
            fits = (demand[k] <= room + limit[where]).all(axis=1)
            if not fits.any():
                untried[k] = False
                hopeful = hopeful[hopeful != k]
                continue
            room = np.maximum(room, 0.0)
            scale = np.maximum(room[:, pivot[k]], 1e-300)[:, None]
            score = np.where(fits, np.floor(np.abs(ratio[k] - room / scale).sum(axis=1) * 1e9 + 0.2718), np.inf)
            i = int(score.argmin()) if isinstance(where, slice) else int(servers[score.argmin()])
            free[i] -= demand[k]
            running[k] += 1
            job = queue[k][-1]
            task = next_task[job]
            next_task[job] += 1
            start[task], end[task] = now, now + durations[task]
            heapq.heappush(ends, (end[task], task, k, i))
            if next_task[job] == last_task[job]:
                queue[k].pop()
                if not queue[k]:
                    waits[k] = untried[k] = False
                    hopeful = hopeful[hopeful != k]
        untried[:] = False  # nothing more of these fits now
    return start, end


def fairopt_proportional(instance: fo.Instance) -> np.ndarray:
    return fo.solve(instance, "proportional").tasks


def cvxpy_proportional(instance: fo.Instance, solver: str = "CLARABEL") -> np.ndarray:
    """Proportional fairness of time as CVXPY's users write it, by one of its solvers: time[n, i] of server i, rates as data."""
    import cvxpy as cp

    time = cp.Variable((instance.n_users, instance.n_servers), nonneg=True)
    tasks = cp.multiply(instance.rates, time)
    worth = instance.weights @ cp.log(cp.sum(tasks, axis=1))
    cp.Problem(cp.Maximize(worth), [cp.sum(time, axis=0) <= 1]).solve(solver=solver)
    return np.asarray(tasks.value)


FIRST_LEVEL_ONLY = (
    "fairopt equalize",
    "CVXPY + HiGHS, one LP",
    "CVXPY + Clarabel, one LP",
    "CVXPY + SCS, one LP",
    "CVXPY + ECOS, one LP",
    "SciPy linprog, one LP",
    "HiGHS, one LP",
    "HiGHS simplex, one LP",
    "HiGHS interior point, one LP",
    "HiGHS PDLP, one LP",
)

# Beyond what "pip install -e .[dev]" brings: measured where it is installed. (OR-Tools has a HiGHS of its own inside, and cannot be loaded
# into a process that has highspy.)
PACKAGES = {"CVXPY + ECOS, one LP": "ecos"}

CONTENDERS: dict[str, Callable[[fo.Instance], np.ndarray]] = {
    "fairopt": fairopt_solve,
    "fairopt, proportional": fairopt_proportional,
    "CVXPY + Clarabel, proportional": cvxpy_proportional,
    "CVXPY + SCS, proportional": lambda instance: cvxpy_proportional(instance, "SCS"),
    "fairopt by HiGHS": fairopt_by_highs,
    "fairopt by interior point": fairopt_by_interior_point,
    "fairopt equalize": fairopt_equalize,
    "CVXPY + HiGHS, one LP": cvxpy_one_lp,
    "CVXPY + Clarabel, one LP": lambda instance: cvxpy_one_lp(instance, "CLARABEL"),
    "CVXPY + SCS, one LP": lambda instance: cvxpy_one_lp(instance, "SCS"),
    "CVXPY + ECOS, one LP": lambda instance: cvxpy_one_lp(instance, "ECOS"),
    "SciPy linprog, one LP": scipy_one_lp,
    "CVXPY + HiGHS, leximin": cvxpy_leximin,
    "cvxpy-leximin": cvxpy_leximin_package,
    "HiGHS, one LP": highs_one_lp,
    "HiGHS simplex, one LP": lambda instance: highs_one_lp(instance, "simplex"),
    "HiGHS interior point, one LP": lambda instance: highs_one_lp(instance, "ipm"),
    "HiGHS PDLP, one LP": lambda instance: highs_one_lp(instance, "pdlp"),
    "HiGHS, leximin as it comes": lambda instance: highs_leximin(instance, primal=False),
    "HiGHS, leximin, primal simplex": lambda instance: highs_leximin(instance, primal=True),
}
