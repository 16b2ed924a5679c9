r"""The trajectory of Dolev et al.: proportional fairness as the end of a path that an ordinary differential equation describes.

Let the limits be scaled to A x <= 1, s = 1 - A x what is left of each, and let the weights phi sum to 1. The goal is sum phi[n] log
U[n]. The path holds, for every c > 0, the maximiser of

    c sum_n phi[n] log U[n]  +  sum_j log s[j]  +  sum_p log x[p]          (the last over the pairs of users who have several)

At it, with g[p] = sum_j A[j,p] / s[j], and m[p] = 1 for the pairs of the last sum, else 0,

    x[p] g[p] - m[p] = c w[p],     w[p] = phi[n] u[p] x[p] / U[n]          so that c = x.g - sum m

and differentiating gives  [diag(g) + diag(x) A' diag(s)^-2 A - c dw/dx] dx = w dc.  The parameter is t = -sum_j log s[j] - sum m log
x, which grows along the path; dt = 1 fixes dc. With one pair per user w = phi, and this is the trajectory of the paper (section 5.4)
word for word: level sets f(x) = t, x_i sum_j r_ij / (1 - u_j) = c(t) e_i, from x = 0 at t = 0; the limits on tasks are its dummy
resources. With several pairs the path starts near the analytic centre instead, at c = 0.01.

The path is the central path of a barrier method: the multipliers 1 / (c s[j]) are prices with an error of (limits + m) / c, so the
path ends at a weighted Nash optimum. It is integrated (LSODA) in log s and, where m = 1, log x: these cannot leave the interior, and lose
no digits where 1 - u would. The integration ends at c = 1e8. From there Newton's method on the same equations, with s a variable of its
own, brings 1/c down to 1e-16. What is left is for the polish of alpha-fair answers.

Dense linear algebra, cubic in the number of pairs: for pools and clusters that one looks at, not for thousands of pairs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray
from fairopt.processes.streams import unwarned
from fairopt.program import AlphaFair, Feature, Program, Solution
from fairopt.show.drawing import draw
from fairopt.solvers.backend import ALWAYS, Backend, Deadline, Method, nothing_to_solve
from fairopt.solvers.trajectory.central_path import CentralPath, Point, falling, solve_rows
from fairopt.solvers.trajectory.settings import SETTINGS
from fairopt.wording import exactly

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Path", "Trajectory"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """The trajectory, step by step.

    Attributes
    ----------
    t : array (steps,)
        The parameter: f(x(t)) = t.
    x : array (steps, pairs)
        Tasks of each pair.
    utilization : array (steps, limits)
        Part of each limit that is used.
    multipliers : array (steps, limits)
        1 / (c(t) (1 - utilization)), of limits scaled to 1 and weights that sum to 1: they tend to prices of the whole of each limit.
        Infinite at t = 0, where c = 0.
    parts : array (limits, pairs)
        A: the part of each limit that a task of each pair takes, so that utilization = A x; 0 for a limit of 0.
    bottlenecks : bool array (limits,)
        Which limits are full at the end.
    pairs : tuple of (str, str)
        User and server of each pair.
    limits : tuple of str
        Names of the limits.
    """

    t: FloatArray
    x: FloatArray
    utilization: FloatArray
    multipliers: FloatArray
    parts: FloatArray
    bottlenecks: BoolArray
    pairs: tuple[tuple[str, str], ...]
    limits: tuple[str, ...]

    def plot(self, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None) -> Figure:
        """Draw the tasks of each pair and the use of the limits that fill up, over t; returns a matplotlib figure.

        ``ax``: axes of yours to draw into (two). ``figsize``: of a new figure, in inches. ``title``: in place of the default ("": none).

        >>> import fairopt as fo
        >>> pool = fo.Instance([[1, 1]], [[1, 1], [0, 1], [1, 0]], weights=[.5, .3, .2])
        >>> figure = fo.solve(pool, "bbf", solver="trajectory").trace.plot()
        >>> [axes.get_xlabel() for axes in figure.axes]
        ['t', 't']
        """
        return draw("trajectory", self, ax=ax, figsize=figsize, title=title)

    def plot_polytope(
        self,
        points: Mapping[str, npt.ArrayLike] | None = None,
        *,
        ax: Axes | Sequence[Axes] | None = None,
        figsize: tuple[float, float] | None = None,
        title: str | None = None,
    ) -> Figure:
        """Draw the path inside the polytope of two or three pairs, and other allocations by name: `fairopt.plots.plot_polytope`."""
        return draw("polytope", self, points=points, ax=ax, figsize=figsize, title=title)


class Trajectory(Backend):
    """The central path as an ordinary differential equation."""

    name = "trajectory"
    title = "The trajectory of Dolev et al.: proportional fairness as the end of a path"
    features = frozenset({Feature.ALPHA_FAIR, Feature.SEVERAL_SERVERS})
    most_pairs = 500  # take 40 s: the time grows faster than their cube

    @classmethod
    def suits(cls, program: Program) -> bool:
        """Is the goal proportional fairness, of so few pairs and limits that the dense matrices and the path fit into memory?"""
        pairs, limits = program.n_pairs, len(program.limits)
        numbers = SETTINGS.matrices * (2 * pairs + limits) ** 2 + 3 * SETTINGS.most_steps_of_path * (pairs + limits)
        return program.goal.feature is Feature.ALPHA_FAIR and program.goal_as(AlphaFair).alpha == 1 and 8 * numbers <= SETTINGS.memory

    def methods(self, program: Program, tolerance: float) -> Sequence[Method]:
        """Return the one method; its answer is always polished."""
        (method,) = super().methods(program, tolerance)
        return (replace(method, polish_above=ALWAYS),)  # where a limit is full at price 0, x is off by the root of the residual

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Follow the path to its end; return it with its prices.

        Raises
        ------
        Unsupported
            For other goals than proportional fairness.
        NoSolution
            At the deadline.
        """
        goal = program.goal_as(AlphaFair)
        if goal.alpha != 1:
            raise Unsupported(
                f'"{self.name}" follows the path of proportional fairness only, and "{program.name}" has alpha = {exactly(goal.alpha)} '
                "here; use alpha = 1, or another engine for alpha-fair goals (fairopt.SOLVERS)"
            )
        if not program.scaled().n_columns:
            return nothing_to_solve(program)
        path = CentralPath.of(program, goal)
        t, states, evaluations = _integrated(path, deadline)
        y, s = _split(path, states[-1])
        last = path.at(y, s, path.c(y, s))
        end, steps = path.follow(last, falling(float(np.median(last.s * last.p))), deadline)
        x, prices = path.scaled.tasks(end.y), path.scaled.prices(end.p * path.total)
        return Solution(x, prices=prices, iterations=evaluations + steps, trace=_trace(path, t, states, end))


def _split(path: CentralPath, state: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return y and s of a state: (y, or its logarithm for users with several columns; log s)."""
    n = path.u.size
    y = np.maximum(state[:n], 0.0)
    y[path.several] = np.exp(state[:n][path.several])
    return y, np.exp(state[n:])


def _slope(path: CentralPath, state: FloatArray) -> FloatArray:
    """Return d state / dt."""
    y, s = _split(path, state)
    g = path.a.T @ (1 / s)
    c = path.c(y, s)
    dy: FloatArray
    if c > 1:  # d/dc of the equations of Newton's method, whose coefficients stay bounded
        right = np.concatenate([np.zeros(y.size), np.ones(s.size + int(path.several.sum()))])
        dy = -solve_rows(path.jacobian(path.at(y, s, c)), right)[: y.size]
    else:
        w: FloatArray = path.phi
        dw = np.zeros(path.same.shape)
        if path.several.any():
            utility = path.utility(y)
            w = np.where(path.several, path.phi * path.u * y / utility, path.phi)
            dw = np.where(path.same & path.several, np.diag(path.phi * path.u / utility) - np.outer(w / utility, path.u), 0.0)
        dy = solve_rows(np.diag(g) + y[:, None] * ((path.a / s[:, None] ** 2).T @ path.a) - c * dw, w)
    relative = np.divide(dy, y, out=np.zeros_like(y), where=path.several)
    dy /= g @ dy - relative.sum()
    relative = np.divide(dy, y, out=np.zeros_like(y), where=path.several)
    return np.concatenate([np.where(path.several, relative, dy), -(path.a @ dy) / s])


def _integrated(path: CentralPath, deadline: Deadline) -> tuple[FloatArray, FloatArray, int]:
    """Integrate from the start to c = SETTINGS.c_at_end; return t, the states (steps, ...) and the number of slopes that were computed."""
    from scipy.integrate import LSODA

    y, s, t = np.zeros(path.u.size), np.ones(len(path.a)), 0.0
    if path.several.any():
        inside = 0.5 / path.a.sum(axis=1).max()
        y[:] = inside
        s = 1 - path.a @ y
        start = path.follow(path.at(y, s, 1.0), (1 / SETTINGS.c_at_start for _ in range(SETTINGS.centrings)), deadline)[0]
        y, s = start.y, start.s
        t = float(-np.log(s).sum() - np.log(y[path.several]).sum())
    state = np.concatenate([np.where(path.several, np.log(np.where(path.several, y, 1.0)), y), np.log(s)])

    def slope(_: float, state: FloatArray) -> FloatArray:
        if deadline.left == 0.0:
            raise deadline.passed({})
        return _slope(path, state)

    times, states, evaluations = [t], [state], 0
    with unwarned(), np.errstate(all="ignore"):
        try:
            run = LSODA(slope, t, state, SETTINGS.longest, rtol=SETTINGS.rtol, atol=SETTINGS.atol)
            while (
                run.status == "running"
                and len(times) < SETTINGS.most_steps_of_path
                and path.c(*_split(path, states[-1])) < SETTINGS.c_at_end
            ):
                message = run.step()
                if message is not None or not np.isfinite(run.y).all():
                    log.info("the integration stops at t = %g: %s; Newton's method goes on from there", times[-1], message)
                    break
                times.append(float(run.t))
                states.append(np.array(run.y))
            evaluations = int(run.nfev)
        except (np.linalg.LinAlgError, ValueError) as error:
            log.info("the integration stops at t = %g: %s; Newton's method goes on from there", times[-1], error)
    return np.array(times), np.array(states), evaluations


def _trace(path: CentralPath, t: FloatArray, states: FloatArray, end: Point) -> Path:
    """Return the states in the pairs and limits of the program."""
    scaled, program = path.scaled, path.scaled.program
    x = np.zeros((t.size, program.n_pairs))
    utilization = np.zeros((t.size, len(program.limits)))
    multipliers = np.zeros((t.size, len(program.limits)))
    for step, state in enumerate(states):
        y, s = _split(path, state)
        x[step] = scaled.tasks(y)
        utilization[step, scaled.rows] = path.a @ y
        c = path.c(y, s)
        multipliers[step, scaled.rows] = 1 / (c * s) if c > 0 else np.inf
    parts = np.zeros(multipliers.shape[1:] + x.shape[1:])
    parts[scaled.rows] = program.limits.matrix[scaled.rows].toarray() / program.limits.bounds[scaled.rows, None]
    full = np.zeros(len(program.limits), bool)
    full[scaled.rows] = end.s <= SETTINGS.full
    return Path(
        t,
        x,
        utilization,
        multipliers,
        parts,
        full,
        tuple((program.users[n], program.servers[i]) for n, i in zip(program.pair_users, program.pair_servers, strict=True)),
        tuple(program.limit_name(row) for row in range(len(program.limits))),
    )
