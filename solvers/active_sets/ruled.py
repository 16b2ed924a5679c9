r"""The polish of answers under rules to goals with a gradient: from an approximate answer to the exact one, by primal-dual steps.

    maximise  G(t)    subject to   A y + s = b,   E y = f,   t = V'y,   y, s >= 0

with G(t) = sum of phi[n] g(t[n]), g'(t) = t^-alpha, or a trade-off, (1 - e) log M(t) + e log S. Bounds b may have any sign, so that no
limit is 1 and none is full in parts. A limit and a floor of the same sum, as of a rule with ==, are one row of E: as two rows of A they
would leave no slack, and the steps need some. y is optimal if and only if there are prices p >= 0, z >= 0 and q with

    A'p + E'q - z = V w(t),     w = the gradient of G,     p s = 0,     y z = 0.

Newton's method solves these equations with p s = y z = mu, and mu goes to 0 (Mehrotra's predictor and corrector). In each step dz and ds
are eliminated:

    [ diag(z / y)     A'        E'    V D ]  [dy]
    [      A     -diag(s / p)             ]  [dp]
    [      E                              ]  [dq]
    [     D V'                        -1  ]  [dh],        by `fairopt.solvers.active_sets.ruled_system`,

where -H is the second derivative of G, and H = D^2 = diag(alpha w / t) of an alpha-fair goal. The unknowns h = D V'dy keep the columns of a
user apart: V H V' would join each two of them, and with it go digits where a user has a column that is nearly 0. Of a trade-off, with
r = phi t^(-beta) / P, P the sum of phi t^(1 - beta), u the units of utilities and S the sum of u t,

    w = (1 - e) r + e u / S,     H = (1 - e) (diag(beta r / t) + (1 - beta) r r') + e u u' / S^2.

The last two terms, of rank one, are not in D. Each is one more unknown, k = f c'V'dy of a term f c c', with the row c'V'dy - k / f = 0.

Utilities are in units of those of the approximate answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.program import AlphaFair, Program, Solution, Tradeoff
from fairopt.solvers.active_sets.ruled_system import Curvature, Form, RuledRows, by_rows, whole, whole_with_largest_pivots
from fairopt.solvers.active_sets.settings import UNDER_RULES
from fairopt.solvers.backend import NO_LIMIT, Deadline
from fairopt.solvers.leximin.ruled import Scaled
from fairopt.solvers.structure.boundary import length

__all__ = ["polish_along_powers", "polish_ruled"]


def polish_ruled(program: Program, solution: Solution, deadline: Deadline = NO_LIMIT) -> Solution | None:
    """Return the optimum near a solution in which every user of the goal has something; None where the steps do not reach it.

    At the deadline the steps end where they are.

    >>> import fairopt as fo
    >>> pool = fo.Instance([[9]], [[1], [1]], users=["a", "b"], servers=["s"], rules=["x[a] >= 2 * x[b]"])
    >>> polish_ruled(fo.formulate(pool, "proportional"), Solution(np.array([5.5, 2.5]))).x.round(9)
    array([6., 3.])
    """
    goal = program.goal
    if not isinstance(goal, AlphaFair | Tradeoff):
        return None
    scaled = Scaled.of(program)
    users = program.pair_users[scaled.columns]
    some, user = np.unique(users, return_inverse=True)
    y = np.maximum(solution.x[scaled.columns] / scaled.scale, 0.0)
    utilities = program.utilities[scaled.columns] * scaled.scale
    unit = np.bincount(user, weights=utilities * np.maximum(y, UNDER_RULES.least))
    v = sp.csr_array((utilities / unit[user], (np.arange(user.size), user)), shape=(user.size, some.size))
    log_weight = np.log(goal.weights[some]) + (1 - goal.power) * np.log(unit)
    weight = np.exp(log_weight - log_weight.max())
    total = unit / unit.max() if isinstance(goal, Tradeoff) else None
    rows = _Rows.of(scaled.matrix, scaled.right)
    with np.errstate(all="ignore"):
        worth = _Worth(weight, goal.power) if total is None else _Worth(weight, goal.power, goal.efficiency, total)
        found = _Steps(scaled.matrix[rows.limits], scaled.right[rows.limits], rows, v, worth).solve(
            np.maximum(y, UNDER_RULES.least), deadline
        )
    if found is None:
        return None
    y, p, q, steps = found
    prices = np.zeros(scaled.size.size)
    prices[rows.limits] = p
    prices[rows.equal], prices[rows.opposite] = np.maximum(q, 0.0), np.maximum(-q, 0.0)
    return Solution(
        scaled.point(y), prices=prices / scaled.size, iterations=solution.iterations + steps, programs_solved=solution.programs_solved
    )


def polish_along_powers(program: Program, solution: Solution, deadline: Deadline = NO_LIMIT) -> Solution | None:
    """Return the optimum of an alpha-fair goal by way of smaller powers, from 1 on: each optimum is near the next one.

    Money, weight times t^(1 - alpha), differs by many orders of magnitude far from the optimum of a large alpha, and by few near it. If a
    power on the way is not reached, the optimum of the largest one that is: it may show which limits have a price, and who holds something
    where. None where alpha is at most 1, where power 1 is not reached, and where the deadline passes on the way.

    >>> import fairopt as fo
    >>> pool = fo.Instance([[9]], [[1], [1]], users=["a", "b"], servers=["s"], rules=["x[a] >= 2 * x[b]"])
    >>> polish_along_powers(fo.formulate(pool, "proportional", alpha=9), Solution(np.array([1e-3, 8.0]))).x.round(9)
    array([6., 3.])
    """
    goal = program.goal
    if not isinstance(goal, AlphaFair) or goal.alpha <= 1:
        return None
    power, near, factor = 1.0, polish_ruled(replace(program, goal=replace(goal, alpha=1.0)), solution, deadline), UNDER_RULES.next_power
    while near is not None and power < goal.alpha:
        if deadline.left == 0.0:
            return None
        further = min(power * factor, goal.alpha)
        found = polish_ruled(replace(program, goal=replace(goal, alpha=further)), near, deadline)
        if found is not None:
            power, near = further, found
        elif factor < UNDER_RULES.least_next_power:
            return near
        else:
            factor **= 0.5
    return near


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Which rows are limits, and which are the two sides of one equation; a row that is there twice is taken once.

    Attributes
    ----------
    limits, equal, opposite : int arrays
        Numbers of rows. Row ``opposite[k]`` is the negative of row ``equal[k]``.
    equations : sparse array (equations, columns)
        E, the rows ``equal``.
    right : array (equations,)
        f.
    """

    limits: IntArray
    equal: IntArray
    opposite: IntArray
    equations: sp.csr_array
    right: FloatArray

    @classmethod
    def of(cls, matrix: sp.csr_array, right: FloatArray) -> _Rows:
        """Find the rows whose negatives are there; of rows of the same numbers, the one with the lowest bound counts."""
        least: dict[tuple[bytes, bytes], int] = {}
        for row in range(right.size):
            entries = slice(matrix.indptr[row], matrix.indptr[row + 1])
            of_row = matrix.indices[entries].tobytes(), (matrix.data[entries] + 0.0).tobytes()
            if least.setdefault(of_row, row) != row and right[row] < right[least[of_row]]:
                least[of_row] = row
        sides = []
        for (indices, data), row in least.items():
            other = least.get((indices, (0.0 - np.frombuffer(data)).tobytes()), -1)
            if row < other and right[row] + right[other] <= 0.0:
                sides.append((row, other))
        equal, opposite = np.array(sides, dtype=np.int64).reshape(-1, 2).T
        limits = np.setdiff1d(np.fromiter(least.values(), dtype=np.int64), np.concatenate([equal, opposite]))
        return cls(limits, equal, opposite, sp.csr_array(matrix[equal]), right[equal])


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """Columns, slacks, prices of limits and of columns, all > 0, and prices of equations; or a step of them."""

    y: FloatArray
    s: FloatArray
    p: FloatArray
    z: FloatArray
    q: FloatArray

    def moved(self, step: _Point, length: float) -> _Point:
        """Return the point after a part of a step."""
        return _Point(*(getattr(self, name) + length * getattr(step, name) for name in ("y", "s", "p", "z", "q")))

    def length(self, step: _Point, part: float = 1.0) -> float:
        """Return how far to go along a step, 1 at most: this part of the way to where the first number that is > 0 becomes 0."""
        values, changes = (np.concatenate([point.y, point.s, point.p, point.z]) for point in (self, step))
        return length(np, values, changes, part)


class _Worth:
    """The gradient of a goal, and its second derivative; ``units`` are those of the total of a trade-off."""

    def __init__(self, weight: FloatArray, power: float, e: float = 0.0, units: FloatArray | None = None) -> None:
        self.weight, self.power, self.e, self.units = weight, power, e, units
        self.money = float(weight.sum()) if units is None else 1.0

    def gradient(self, t: FloatArray) -> FloatArray:
        """Return w, (users,)."""
        own = self.weight * t**-self.power
        if self.units is None:
            return own
        return np.asarray((1 - self.e) * own / (own @ t) + self.e * self.units / (self.units @ t))

    def curvature(self, t: FloatArray) -> Curvature:
        """Return -H."""
        own = self.weight * t**-self.power
        if self.units is None:
            return Curvature(self.power * own / t, np.zeros((t.size, 0)), np.zeros(0))
        r, total = own / (own @ t), self.units / (self.units @ t)
        factors = np.array([(1 - self.e) * (1 - self.power), self.e])
        return Curvature((1 - self.e) * self.power * r / t, np.column_stack([r, total])[:, factors != 0], factors[factors != 0])


class _Steps:
    """The primal-dual steps of one program."""

    def __init__(self, matrix: sp.csr_array, right: FloatArray, rows: _Rows, v: sp.csr_array, worth: _Worth) -> None:
        self.matrix, self.right, self.v, self.worth = matrix, right, v, worth
        self.equations, self.equal_to = rows.equations, rows.right
        self.rows = RuledRows(matrix, rows.equations, v)
        self.by_column, self.by_user, self.by_equation = self.rows.by_column, self.rows.by_user, self.rows.by_equation
        self.forms = [by_rows, whole, whole_with_largest_pivots] if worth.units is None else [whole, whole_with_largest_pivots]
        self.money = worth.money
        self.user = v.indices
        self.each = sp.csr_array((np.ones(v.nnz), (self.user, np.arange(v.nnz))), shape=v.T.shape)  # (users, columns): whose column it is
        self.row = np.repeat(np.arange(right.size), np.diff(matrix.indptr))  # of each number of the matrix

    def solve(self, y: FloatArray, deadline: Deadline) -> tuple[FloatArray, FloatArray, FloatArray, int] | None:
        """Return columns, prices of limits and of equations, and the number of steps; None where the steps stall, or have no time."""
        s = np.maximum(self.right - self.matrix @ y, UNDER_RULES.least)
        mean, least = self.money / (y.size + s.size), UNDER_RULES.least_for_price
        now = _Point(y, s, mean / np.maximum(s, least), mean / np.maximum(y, least), np.zeros(self.equal_to.size))
        best, kept, since, steps, forms = np.inf, now, 0, 0, self.forms.copy()
        while steps < UNDER_RULES.steps:
            steps += 1
            residual = self._residual(now)
            if not np.isfinite(residual):
                break
            if residual < best:
                best, kept, since = residual, now, steps
            if residual <= UNDER_RULES.exact or steps - since > UNDER_RULES.stalled or deadline.left == 0.0:
                break
            moved = self._step(now, forms[0])
            if moved is None and len(forms) == 1:
                break
            if moved is None:
                forms.pop(0)
            now = kept if moved is None else moved
        return (kept.y, kept.p, kept.q, steps) if best <= UNDER_RULES.near else None

    def _residuals(self, at: _Point) -> tuple[FloatArray, FloatArray, FloatArray]:
        dual = self.by_column @ at.p + self.by_equation @ at.q - at.z - self.v @ self.worth.gradient(self.by_user @ at.y)
        return dual, self.matrix @ at.y + at.s - self.right, self.equations @ at.y - self.equal_to

    def _beyond_rounding(self, at: _Point) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the residuals, 0 where they are rounding: a slack that is smaller would have no step without it."""
        gradient = self.v @ self.worth.gradient(self.by_user @ at.y)
        sizes = (
            abs(self.by_column) @ at.p + abs(self.by_equation) @ np.abs(at.q) + at.z + gradient,
            abs(self.matrix) @ at.y + at.s + np.abs(self.right),
            abs(self.equations) @ at.y + np.abs(self.equal_to),
        )
        dual, primal, equal = (
            np.where(np.abs(residual) <= UNDER_RULES.rounding * size, 0.0, residual)
            for residual, size in zip(self._residuals(at), sizes, strict=True)
        )
        return dual, primal, equal

    def _residual(self, at: _Point) -> float:
        """Return the largest residual: of a user's columns in parts of its money, of a limit in parts of that of the poorest user in it."""
        dual, primal, equal = self._residuals(at)
        users = self.by_user @ at.y
        money = users * self.worth.gradient(users)
        lost = np.asarray(self.each @ (np.abs(dual) * at.y + at.y * at.z))
        of_columns = float((lost / money).max(initial=0.0))
        poorest = np.full(at.s.size, self.money)
        np.minimum.at(poorest, self.row, money[self.user[self.matrix.indices]])
        of_limits = float((at.s * at.p / poorest).max(initial=0.0))
        return max(of_columns, of_limits) + float(np.abs(primal).max(initial=0.0) + np.abs(equal).max(initial=0.0))

    def _step(self, at: _Point, form: Form) -> _Point | None:
        """Return the next point, by this form of the linear system; None where it fails, or the step is short."""
        y, s, p, z = at.y, at.s, at.p, at.z
        dual, primal, equal = self._beyond_rounding(at)
        try:
            solve = form(self.rows, z / y, s / p, self.worth.curvature(self.by_user @ y))
        except (RuntimeError, ValueError, ArithmeticError):
            return None

        def direction(columns: FloatArray, rows: FloatArray) -> _Point:
            """Return the step to y z = columns and s p = rows, first-order."""
            dy, dp, dq = solve(-dual + columns / y - z, -primal - rows / p + s, -equal)
            return _Point(dy, rows / p - s - s / p * dp, dp, columns / y - z - z / y * dy, dq)

        count = y.size + s.size
        mu = float(y @ z + s @ p) / count
        first = direction(np.zeros(y.size), np.zeros(s.size))
        ahead = at.moved(first, at.length(first))
        left = float(ahead.y @ ahead.z + ahead.s @ ahead.p) / count
        centre = mu * min(max(left / mu, UNDER_RULES.least_left), 1.0) ** UNDER_RULES.aim if mu > 0 else 0.0
        step = direction(centre - first.y * first.z, centre - first.s * first.p)
        part = at.length(step, UNDER_RULES.to_the_boundary)
        return at.moved(step, part) if np.isfinite(part) and part >= UNDER_RULES.shortest else None
