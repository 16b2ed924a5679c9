r"""The end of the central path of an alpha-fair goal in a hundred digits and more: which pairs are used, and which limits have a price.

At a large alpha users pay amounts that lie many orders of magnitude apart. Where a user who pays much runs may decide what a user who pays
little gets, and floats do not show where that is: if the costs of two servers agree in 15 digits, only the next digits have the prices that
the second user pays. So the active sets of `fairopt.solvers.rational.alpha_fair` do not show in floats. With enough digits they do.

With tasks x, slack s, prices p, reduced costs z, utilities U and marginal worths m, a point of the path solves

    A x + s = b,    V x = U,    A'p - V'm = z,    log m + alpha log U = log phi,    x z = mu unit,    s p = mu unit,    mu -> 0.

Newton's method begins near the floats. The unit of a product x z is what the user of the pair pays; that of s p is the least that a user of
the limit pays. A step eliminates pairs and users, then the limits of single users; a dense system of the other limits is left. At the end,
of the two factors of a product the larger one, in its own unit, counts as positive.

*Positive values.* A step that Newton's method takes far would leave values negative. Were all changes cut to one part, the smallest of the
values would decide how far everything else may go, and points far from the path would creep. So each value is changed on its own: one that
would fall by the part c of itself, near 1 or above, is divided by 1 + c. The factor of a product that grows by c leaves the product as it
is then, and the linear equations are solved again by later steps. mu falls after each step that was taken as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from flint import arb, arb_mat, ctx

from fairopt.solvers.rational.enclosing import BITS, Enclosing, digits_apart, utilities_of
from fairopt.solvers.rational.placing import Sets
from fairopt.solvers.rational.settings import PATH

__all__ = ["ends_of_path"]


def ends_of_path(
    goal: Enclosing, x: Sequence[float], prices: Sequence[arb], go_on: Callable[[float], bool]
) -> Iterator[tuple[Sets, list[float], list[arb], list[arb]]]:
    """Yield the used pairs and priced limits, x, the prices and the utilities at points nearer and nearer to the end.

    Nothing under rules, or for a trade-off.

    Parameters
    ----------
    goal : Enclosing
    x, prices : sequences
        Near the optimum; prices in the unit of phi U^-alpha.
    go_on : function
        Asked before each step whether there is time and work left for it; it takes the work, in steps of fractions.
    """
    if goal.rules or goal.efficiency != 0:
        return
    path, apart = None, digits_apart(goal, utilities_of(goal, [arb(value) for value in x]))
    for digits in PATH.digits:
        ctx.prec = int((2 * digits + 2 * apart + PATH.more_digits) * BITS)
        path = path or _Path(goal, x, prices)
        if not path.follow((arb(10) ** -digits).mid(), go_on):
            return
        yield path.sets(), [float(value) for value in path.x], list(path.p), list(path.U)


@dataclass(frozen=True, slots=True)
class _Step:
    """Changes of x, z (pairs,), s, p (limits,), U, m (users,)."""

    x: list[arb]
    z: list[arb]
    s: list[arb]
    p: list[arb]
    U: list[arb]
    m: list[arb]


class _Path:
    """A point of the path. Only the midpoints of balls are kept: Newton's method corrects rounding, which their radii would bound."""

    def __init__(self, goal: Enclosing, x: Sequence[float], prices: Sequence[arb]) -> None:
        self.user, self.n_users = goal.user, len(goal.phi)
        self.u, self.b, self.phi = ([arb(value) for value in values] for values in (goal.worth, goal.bounds, goal.phi))
        self.alpha, self.mu = arb(goal.alpha), arb(PATH.first_mu)
        self.entries: list[list[tuple[int, arb]]] = [[] for _ in goal.user]
        for j, row in enumerate(goal.limits):
            for k, a in row.items():
                self.entries[k].append((j, arb(a)))
        users_of = [{goal.user[k] for k in row} for row in goal.limits]
        self.own = [j for j, users in enumerate(users_of) if len(users) == 1]  # limits of single users
        self._sparse, self._dense = self._count(users_of)
        least = self.mu.sqrt().mid()
        self.x = self._inside([arb(max(value, 0.0)) for value in x], least)
        self.U = self._per_user(self.x)
        self.m = [(phi * (-self.alpha * U.log()).exp()).mid() for phi, U in zip(self.phi, self.U, strict=True)]
        self.s = [(b - use).mid() for b, use in zip(self.b, self._use(self.x), strict=True)]
        money = [(m * U).mid() for m, U in zip(self.m, self.U, strict=True)]
        self.unit_of_pair, self.unit_of_limit = [money[n] for n in self.user], self._least_of_users(money)
        self.p = [_larger(price, self.mu * unit / b) for price, unit, b in zip(prices, self.unit_of_limit, self.b, strict=True)]
        cost = self._cost(self.p)
        self.z = [_larger(c - u * self.m[n], least * c) for c, u, n in zip(cost, self.u, self.user, strict=True)]

    def _inside(self, x: Sequence[arb], least: arb) -> list[arb]:
        """Return x within the limits, where no pair has less than the part ``least`` of what its user has on a pair in the mean."""
        level, pairs = self._per_user(x), Counter(self.user)
        x = [_larger(value, least * level[n] / (u * pairs[n])) for value, n, u in zip(x, self.user, self.u, strict=True)]
        fullest = _largest(use / b for use, b in zip(self._use(x), self.b, strict=True))
        return [(value * PATH.inside / fullest).mid() for value in x]

    def _least_of_users(self, money: Sequence[arb]) -> list[arb]:
        """Return the least that a user of each limit pays; where nobody takes anything from it, the most that anybody pays."""
        least: list[arb | None] = [None] * len(self.b)
        for own, n in zip(self.entries, self.user, strict=True):
            for j, _ in own:
                held = least[j]
                least[j] = money[n] if held is None or money[n] < held else held
        most = _largest(money)
        return [most if value is None else value for value in least]

    def _count(self, users_of: Sequence[set[int]]) -> tuple[float, float]:
        """Return the work of a step at 500 bits: of pairs and of entries that elimination changes, and of the dense system."""
        limits, own = [0] * self.n_users, [0] * self.n_users
        for users in users_of:
            for n in users:
                limits[n] += 1
                own[n] += len(users) == 1
        entries = sum(len(each) ** 2 for each in self.entries) + sum(k**2 * (1 + j) for k, j in zip(limits, own, strict=True))
        dense = (len(self.b) - len(self.own)) ** 3
        return PATH.steps_of_a_pair * len(self.u) + PATH.steps_of_an_entry * entries, PATH.steps_of_a_product * dense

    @property
    def work(self) -> float:
        """The work of a step at the present precision."""
        longer = ctx.prec / 500
        return float(self._sparse * longer**PATH.growth_of_entries + self._dense * longer**PATH.growth_of_products)

    def follow(self, last: arb, go_on: Callable[[float], bool]) -> bool:
        """Take steps until the products are ``last`` of their units; return False where they do not get there."""
        for _ in range(PATH.steps):
            if not go_on(self.work):
                return False
            step = self._newton()
            if step is None:
                return False
            moved = self._take(step)
            if moved <= PATH.whole and self.mu <= last:
                return True
            if moved <= PATH.whole:
                self.mu = _larger(self.mu * (PATH.fast if moved <= PATH.central else PATH.slow), last)
        return False

    def sets(self) -> Sets:
        """Return the used pairs, and the limits with a price."""
        cost = self._cost(self.p)
        tied = {k for k, n in enumerate(self.user) if self.x[k] * self.u[k] / self.U[n] > self.z[k] / cost[k]}
        priced = {j for j, b in enumerate(self.b) if self.p[j] * b / self.unit_of_limit[j] > self.s[j] / b}
        return frozenset(tied), frozenset(priced)

    def _newton(self) -> _Step | None:
        """Return Newton's step to the point of the path with the present mu; None where its system is singular."""
        pairs, limits, users = range(len(self.u)), range(len(self.b)), range(self.n_users)
        use, level, cost = self._use(self.x), self._per_user(self.x), self._cost(self.p)
        r_limit = [self.b[j] - use[j] - self.s[j] for j in limits]
        r_level = [self.U[n] - level[n] for n in users]
        r_worth = [self.phi[n].log() - self.m[n].log() - self.alpha * self.U[n].log() for n in users]
        r_cost = [self.z[k] - cost[k] + self.u[k] * self.m[self.user[k]] for k in pairs]
        r_pair = [self.mu * self.unit_of_pair[k] - self.x[k] * self.z[k] for k in pairs]
        r_slack = [self.mu * self.unit_of_limit[j] - self.s[j] * self.p[j] for j in limits]
        # dx = g - theta (A'dp - u dm), dU = U / alpha (r_worth - dm / m)
        theta = [(self.x[k] / self.z[k]).mid() for k in pairs]
        g = [((r_pair[k] + self.x[k] * r_cost[k]) / self.z[k]).mid() for k in pairs]
        S: list[dict[int, arb]] = [{j: self.s[j] / self.p[j]} for j in limits]
        right = [r_slack[j] / self.p[j] - r_limit[j] for j in limits]
        of_user: list[dict[int, arb]] = [{} for _ in users]  # theta u a, by limit
        D = [self.U[n] / (self.alpha * self.m[n]) for n in users]
        of_level = [r_level[n] + self.U[n] / self.alpha * r_worth[n] for n in users]
        for k in pairs:
            n, u = self.user[k], self.u[k]
            D[n] += theta[k] * u * u
            of_level[n] -= u * g[k]
            for j, a in self.entries[k]:
                right[j] += a * g[k]
                along = theta[k] * a
                of_user[n][j] = of_user[n].get(j, _ZERO) + along * u
                for i, other in self.entries[k]:
                    S[j][i] = S[j].get(i, _ZERO) + along * other
        for n in users:
            for j, value in of_user[n].items():
                part = (value / D[n]).mid()
                right[j] += part * of_level[n]
                for i, other in of_user[n].items():
                    S[j][i] = S[j].get(i, _ZERO) - part * other
        dp = _solved(S, right, self.own)
        if dp is None:
            return None
        dm = [((of_level[n] + sum((value * dp[j] for j, value in of_user[n].items()), _ZERO)) / D[n]).mid() for n in users]
        dz = [(sum((a * dp[j] for j, a in self.entries[k]), _ZERO) - self.u[k] * dm[self.user[k]] - r_cost[k]).mid() for k in pairs]
        dx = [((r_pair[k] - self.x[k] * dz[k]) / self.z[k]).mid() for k in pairs]
        dU = [(self.U[n] / self.alpha * (r_worth[n] - dm[n] / self.m[n])).mid() for n in users]
        ds = [(left - used).mid() for left, used in zip(r_limit, self._use(dx), strict=True)]
        return _Step(dx, dz, ds, dp, dU, dm)

    def _take(self, step: _Step) -> float:
        """Go a step, as far as every value stays positive; return the largest change that it would be, in parts of a value."""
        both = ((self.x, step.x), (self.z, step.z), (self.s, step.s), (self.p, step.p), (self.U, step.U), (self.m, step.m))
        most = 0.0
        for values, changes in both:
            for k, (value, change) in enumerate(zip(values, changes, strict=True)):
                part = float(change / value)
                most = max(most, abs(part))
                values[k] = (value + change if -PATH.whole <= part <= PATH.furthest else value * _factor(part)).mid()
        if self.alpha >= 1:  # of m and U, the one that hardly changes follows from the other
            self.U = [((phi / m).log() / self.alpha).exp().mid() for phi, m in zip(self.phi, self.m, strict=True)]
        else:
            self.m = [(phi * (-self.alpha * U.log()).exp()).mid() for phi, U in zip(self.phi, self.U, strict=True)]
        return most

    def _per_user(self, x: Sequence[arb]) -> list[arb]:
        level = [_ZERO] * self.n_users
        for u, n, value in zip(self.u, self.user, x, strict=True):
            level[n] += u * value
        return [value.mid() for value in level]

    def _use(self, x: Sequence[arb]) -> list[arb]:
        use = [_ZERO] * len(self.b)
        for own, value in zip(self.entries, x, strict=True):
            for j, a in own:
                use[j] += a * value
        return [value.mid() for value in use]

    def _cost(self, p: Sequence[arb]) -> list[arb]:
        return [sum((a * p[j] for j, a in own), _ZERO).mid() for own in self.entries]


_ZERO = arb(0)


def _factor(part: float) -> float:
    """Return the factor of a value that would change by a part of itself beyond what a step may change it by as it is."""
    if part > 0:
        return PATH.furthest
    return max(min(1 - PATH.whole, 1 / (1 - part)), 1 / PATH.furthest)


def _solved(S: list[dict[int, arb]], right: Sequence[arb], first: Sequence[int]) -> list[arb] | None:
    """Solve a positive definite system, in units in which its diagonal is 1; None where rounding leaves it singular.

    The unknowns ``first`` are eliminated one by one, and the others together.
    """
    if not all(row[j] > 0 for j, row in enumerate(S)):
        return None
    units = [(1 / row[j].sqrt()).mid() for j, row in enumerate(S)]
    rows = [{i: (value * units[j] * units[i]).mid() for i, value in row.items()} for j, row in enumerate(S)]
    b = [(value * unit).mid() for value, unit in zip(right, units, strict=True)]
    for j in first:
        pivot = rows[j].pop(j)
        if not pivot > 0:
            return None
        for i, value in rows[j].items():
            part = (value / pivot).mid()
            row = rows[i]
            del row[j]
            b[i] = (b[i] - part * b[j]).mid()
            for k, other in rows[j].items():
                row[k] = (row.get(k, _ZERO) - part * other).mid()
        rows[j][j] = pivot
    done = set(first)
    left = [j for j in range(len(S)) if j not in done]
    found = [_ZERO] * len(S)
    if left:
        place = {j: k for k, j in enumerate(left)}
        matrix = arb_mat(len(left), len(left))
        for j in left:
            for i, value in rows[j].items():
                matrix[place[j], place[i]] = value
        try:
            solved = matrix.solve(arb_mat(len(left), 1, [b[j] for j in left]), algorithm="approx")
        except ZeroDivisionError:
            return None
        for j, k in place.items():
            found[j] = solved[k, 0].mid()
    for j in reversed(first):
        pivot = rows[j].pop(j)
        found[j] = ((b[j] - sum((value * found[i] for i, value in rows[j].items()), _ZERO)) / pivot).mid()
    return [(value * unit).mid() for value, unit in zip(found, units, strict=True)]


def _larger(first: arb, second: arb) -> arb:
    return (first if first > second else second).mid()


def _largest(values: Iterator[arb] | Sequence[arb]) -> arb:
    most = _ZERO
    for value in values:
        most = value if value > most else most
    return most
