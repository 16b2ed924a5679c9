"""The path to one level of a leximin: a primal-dual interior point on the structure of users and servers.

In the units of ``structured_pairs``, with a[n] = 1 / reach for the users who rise and 0 for those settled at b[n],

    maximise t   subject to   A x + s = 1,   W x - v = a t + b,     x, s, v >= 0         duals z, p, m >= 0
                              A'p - W'm - z = 0,   a m = 1,

and on the path x z = s p = v m = mu. Steps are Mehrotra's predictor and corrector with further corrections for single products that went astray
(Gondzio), and lengths of their own for the two sides.

What counts is not mu but the gap that the certificate will see: from the prices alone, and from the level that everybody who rises has once x is
scaled back into the limits. So a path that has lost its way can only be slow or give up; it cannot be wrong. The strictly complementary solution
in the middle of the optimal face, at which an interior point ends, has a positive price for every user who is settled at this level.

A user whose cap lies below what all reach already is settled on the way: t can only rise by that. A user who is settled
leaves the others' prices as they are, up to their unit (a m = 1); so a point of the path, not too near its end, is a point near the
path of the next program, and that is where it starts.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from fairopt.instance import BoolArray, FloatArray
from fairopt.solvers.backend import Deadline
from fairopt.solvers.structured_newton import NewtonSystem, Residuals
from fairopt.solvers.structured_pairs import Pairs

__all__ = ["LevelPath", "Reached"]

log = logging.getLogger(__name__)

_STEPS = 100  # a level takes 5 to 30
_SHORT, _LONG = 0.8, 0.9995  # part of the way to the boundary, before and after ...
_NEAR = 1e-6  # ... this relative gap
_CORRECTORS = 4
_SPREAD = 0.1  # a product further off its target than this factor is corrected
_GAIN = 0.02  # what a correction has to add to the lengths of the steps
_DIGITS = 1e-14  # relative precision to which limits are taken to be known, as in the certificate
_HELD = 1e-12  # a settled user may miss its level by this part of it while the others rise
_END = 1e-14
_LOWEST = 2e-14  # relative gap below which rounding is all that moves
_STALLED = 4  # steps that do not lower the gap
_KEEP = (1e-5, 0.2)  # relative gap down to which points are kept to start again from, and by how much it has fallen from one to the next
_RESTART = 0.1  # part of the prices that is left to those who rise where the next level starts


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Values x, s, v in one vector, their duals z, p, m in another, and the level."""

    primal: FloatArray
    dual: FloatArray
    t: float


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """What a point proves: ``level`` can be reached by ``x``, scaled back into the limits, and by ``prices`` nobody can pass ``bound``."""

    level: float
    bound: float
    x: FloatArray
    prices: FloatArray  # (slots, servers)
    user_prices: FloatArray  # the cheapest price of a unit of each level, (users,)
    saturated: BoolArray  # who seems to be stopped here: its price outweighs what it has above the level, (users,)
    missing: float  # largest part of its level that a settled user lacks there

    @property
    def gap(self) -> float:
        """Relative gap; inf where nothing is proved."""
        return (self.bound - self.level) / self.level if self.level > 0 else np.inf

    @property
    def error(self) -> float:
        """What is left to be mended, of the gap and of the levels of the settled users."""
        return max(self.gap, self.missing if self.missing > _HELD else 0.0)


class LevelPath:
    """A leximin on its way: who still rises, who is settled at which level, and the points where the next level may start.

    Levels are in parts of a user's reach, t in units of ``unit``.
    """

    def __init__(self, pairs: Pairs, unit: float, deadline: Deadline) -> None:
        self.pairs, self.deadline = pairs, deadline
        self.per_t = unit / pairs.reach
        self.rising = np.ones(pairs.n_users, bool)
        self.settled_at = np.zeros(pairs.n_users)
        self.steps = 0
        self.cut = pairs.n_pairs, pairs.n_pairs + pairs.n_slots * pairs.n_servers
        self.points = [self._start()]

    def _start(self) -> Point:
        """Half of every limit, divided evenly among those who can use the server; the same price for the same part of a level."""
        pairs = self.pairs
        crowd = np.bincount(pairs.server, minlength=pairs.n_servers)
        x = 0.5 / crowd[pairs.server]
        s = 1 - pairs.use(x)
        level = pairs.level(x)
        t = 0.5 * float((level / self.per_t).min())
        v = level - self.per_t * t
        gives = np.bincount(pairs.server, weights=pairs.W, minlength=pairs.n_servers) / crowd
        p = np.broadcast_to(gives, s.shape)
        m = 0.5 * pairs.cheapest(p)
        z = pairs.cost(p) - pairs.W * pairs.spread(m)
        dual = np.concatenate([z, p.ravel(), m])
        return Point(np.concatenate([x, s.ravel(), v]), dual / float(self.per_t @ m), t)

    def settle(self, users: BoolArray, levels: FloatArray) -> None:
        """Settle users, (users,), at their levels, and go back to the last point that is a good start without them."""
        self.rising &= ~users
        self.settled_at = np.where(users, levels, self.settled_at)
        if not self.rising.any():
            return
        a = self.per_t * self.rising
        left = [float(a @ point.dual[self.cut[1] :]) for point in self.points]
        good = [i for i, part in enumerate(left) if part >= _RESTART]
        chosen = good[-1] if good else int(np.argmax(left))
        self.points = [Point(p.primal, p.dual / part, p.t) for p, part in zip(self.points[: chosen + 1], left, strict=False)]

    def climb(self, enough: float) -> Reached:
        """Follow the path until all who seem to be settled are proved to be, up to ``enough``, or nothing more can be gained."""
        point, best, since, kept = self.points[-1], None, 0, np.inf
        for _ in range(_STEPS):
            if self.deadline.left == 0.0:
                raise self.deadline.passed({})
            now = self._proved(point)
            capped = self.rising & (self.pairs.cap <= self.per_t * now.level * (1 + 1e-15)) & (now.missing <= _HELD * 1e3)
            if capped.any():
                self.settle(capped, self.pairs.cap)
                if not self.rising.any():
                    return now
                point, best, since, kept = self.points[-1], None, 0, np.inf
                now = self._proved(point)
            log.debug("step %d: t %.9g, gap %.1e, missing %.1e", self.steps, now.level, now.gap, now.missing)
            since = 0 if best is None or now.error < 0.5 * best.error else since + 1
            if best is None or now.error < best.error:
                best = now
            done = best.error <= enough and (since >= _STALLED or self._all_proved(best, enough))
            if done or best.error <= _LOWEST or since > 3 * _STALLED:
                break
            if _KEEP[0] < now.error < _KEEP[1] * kept:
                kept = now.error
                self.points.append(point)
            try:
                point = self._advance(point, _SHORT if now.error > _NEAR else _LONG)
            except np.linalg.LinAlgError:
                break
            self.steps += 1
        assert best is not None
        return best

    def rises(self, reached: Reached) -> FloatArray:
        """Return by how much each user could rise above the level at most, relative to it, (users,); inf where the prices do not tell."""
        weight = self.per_t * self.rising * reached.user_prices
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = weight.sum() * max(reached.gap, 0.0) / weight
        return np.where(weight > 0, rise, np.inf)

    def _all_proved(self, reached: Reached, enough: float) -> bool:
        return bool((self.rises(reached)[reached.saturated] <= enough).all())

    def _proved(self, point: Point) -> Reached:
        """Return the level and the bound, of a point that need not fulfil anything."""
        pairs, rising = self.pairs, self.rising
        x, _, v = np.split(point.primal, self.cut)
        _, p, m = np.split(point.dual, self.cut)
        prices = p.reshape(pairs.n_slots, pairs.n_servers)
        level = pairs.level(x) / max(1.0, float(pairs.use(x).max()))
        settled = self.settled_at > 0
        missing = float((1 - level[settled] / self.settled_at[settled]).max(initial=0.0))
        reached = float((level[rising] / self.per_t[rising]).min())
        q = pairs.cheapest(prices)
        sigma = float(self.per_t[rising] @ q[rising])
        bound = (float(prices.sum()) * (1 - _DIGITS) - float(q[~rising] @ self.settled_at[~rising])) / sigma
        saturated = rising & (m * self.per_t * point.t > v / self.per_t)
        return Reached(reached, bound, x, prices, q, saturated, missing)

    def _advance(self, point: Point, part: float) -> Point:
        """Take a step."""
        pairs, a = self.pairs, self.per_t * self.rising
        primal, dual = point.primal, point.dual
        x, s, v = np.split(primal, self.cut)
        z, p, m = np.split(dual, self.cut)
        prices = p.reshape(pairs.n_slots, pairs.n_servers)
        residuals = Residuals(
            1 - pairs.use(x) - s.reshape(prices.shape),
            self.settled_at * ~self.rising + a * point.t + v - pairs.level(x),
            z - pairs.cost(prices) + pairs.W * pairs.spread(m),
            1 - float(a @ m),
        )
        system = NewtonSystem(pairs, primal, dual, a)
        product = primal * dual
        mu = float(product.mean())
        step = system.step(-product, residuals)
        lengths = _length(primal, step[0]), _length(dual, step[1])
        ahead = float(((primal + lengths[0] * step[0]) * (dual + lengths[1] * step[1])).mean())
        aim = max(min((ahead / mu) ** 3, 1.0) * mu, _END * abs(point.t) / product.size)
        wanted = aim - product - step[0] * step[1]
        step = system.step(wanted, residuals)
        lengths = _length(primal, step[0]), _length(dual, step[1])
        for _ in range(_CORRECTORS):
            far = [min(1.0, 1.5 * length + 0.1) for length in lengths]
            there = (primal + far[0] * step[0]) * (dual + far[1] * step[1])
            wanted = wanted + np.clip(there, _SPREAD * aim, aim / _SPREAD) - there.clip(None, 2 * aim / _SPREAD)
            other = system.step(wanted, residuals)
            longer = _length(primal, other[0]), _length(dual, other[1])
            if sum(longer) < sum(lengths) + _GAIN:
                break
            step, lengths = other, longer
        along, across = (max(part, min(length**2, _LONG)) * length if length < 1 else 1.0 for length in lengths)
        log.debug("  mu %.1e aim %.1e steps %.2f %.2f", mu, aim, *lengths)
        return Point(primal + along * step[0], dual + across * step[1], point.t + along * step[2])


def _length(values: FloatArray, change: FloatArray) -> float:
    """Return how far one can go, 1 at most, before a value becomes 0."""
    steepest = float((-change / values).max(initial=0.0))
    return 1.0 if steepest <= 1 else 1.0 / steepest
