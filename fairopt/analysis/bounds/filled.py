"""Filling within a box: how high the smallest share can rise, in every instance of the box and in none.

With y[n,i] the share of user n that runs on server i (`fairopt.analysis.bounds.enclosures`), weights w[n] and caps k[n] on shares (tasks of
n times its share per task), an allocation is feasible if and only if

    sum_n a[n,r] y[n,i] <= c[i,r],   sum_i y[n,i] <= k[n].

*At most.* With the smallest a and w and the largest c and k, the polytope contains that of every instance of the box; so a bound on
max { L : sum_i y[n,i] >= w[n] L } is one on the smallest share of every allocation of every instance.

*At least.* With the largest a and w and the smallest c, every point is feasible in every instance, but for the caps. If it has a point in
which every user n holds min(L w[n], k[n]) for its largest cap k[n], the leximin s* of an instance gives everybody s[n] = min(L, k[n] /
w[n]) of the instance's own w and k. Proof: s is feasible there. If s*[n] < s[n], then s raises n, so by leximin it gives less to somebody m
with s*[m] <= s*[n]: s[m] < s*[m] <= s*[n] < s[n] <= L. So m is at its cap in s, and above its cap in s*: a contradiction.

The *level* L of a filling is computed from the solver's point: what exceeds a limit is scaled away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairopt.analysis.bounds.boxes import Box, Ranges
from fairopt.analysis.bounds.enclosures import Enclosure
from fairopt.analysis.bounds.safe_programs import SafeProgram, down, up
from fairopt.errors import NoSolution
from fairopt.instance import BoolArray, FloatArray, IntArray

__all__ = ["Filling", "Polytope", "at_least", "at_most", "filled"]

_MARGIN = 1e-7  # relative part by which a user is held above its cap, so that it is at the cap after what exceeds a limit is scaled away

_PRICED = 1e-9  # of the largest price: users with more stop a level


@dataclass(frozen=True, slots=True, eq=False)
class Polytope:
    """Feasible parts y of shares: pairs, a row for each server and resource, caps and weights by user.

    ``largest`` is the largest y of each pair alone.
    """

    users: IntArray
    servers: IntArray
    rows: FloatArray
    sides: FloatArray
    caps: FloatArray
    weights: FloatArray
    largest: FloatArray

    @classmethod
    def outer(cls, box: Box, ranges: Ranges, found: Enclosure, members: BoolArray | None = None, part: float = 1.0) -> Polytope:
        """Return the polytope that contains that of every instance; of some users only, on a part of every server."""
        caps = up(ranges.high["tasks"] * found.share_high)
        eligible = box.eligible[1] if members is None else box.eligible[1] & members[:, None]
        capacities = ranges.high["capacities"] if part == 1 else up(ranges.high["capacities"] * part)
        return cls._of(eligible, found.amounts_low, capacities, caps, ranges.low["weights"])

    @classmethod
    def inner(cls, box: Box, ranges: Ranges, found: Enclosure, members: BoolArray | None = None, part: float = 1.0) -> Polytope:
        """Return the polytope that every instance contains, but for its caps; of some users only, on a part of every server."""
        caps = up(ranges.high["tasks"] * found.share_high)
        eligible = box.eligible[0] if members is None else box.eligible[0] & members[:, None]
        capacities = ranges.low["capacities"] if part == 1 else down(ranges.low["capacities"] * part)
        return cls._of(eligible, found.amounts_high, capacities, caps, ranges.high["weights"])

    @classmethod
    def _of(cls, eligible: BoolArray, amounts: FloatArray, capacities: FloatArray, caps: FloatArray, weights: FloatArray) -> Polytope:
        users, servers = np.nonzero(eligible)
        rows = np.zeros((*capacities.shape, users.size))
        rows[servers, :, np.arange(users.size)] = amounts[users, servers]
        rows, sides = rows.reshape(-1, users.size), capacities.ravel()
        return cls(users, servers, rows, sides, caps, weights, _alone(rows, sides))

    def within(self, sides: FloatArray) -> Polytope:
        """Return the polytope with other capacities, (servers, resources)."""
        return replace(self, sides=sides.ravel(), largest=_alone(self.rows, sides.ravel()))

    def on_servers(self, kept: BoolArray) -> Polytope:
        """Return the polytope with some servers only, (servers,) of bool."""
        pairs = kept[self.servers]
        return replace(self, users=self.users[pairs], servers=self.servers[pairs], rows=self.rows[:, pairs], largest=self.largest[pairs])

    @property
    def by_user(self) -> FloatArray:
        """The rows that sum the parts of each user, (users, pairs)."""
        return np.asarray(np.arange(self.caps.size)[:, None] == self.users, float)

    def held(self, y: FloatArray) -> FloatArray:
        """Return the share of each user, scaled down until every limit is kept."""
        used = up(self.rows @ y)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = float(np.min(np.where(used > self.sides, self.sides / used, 1.0), initial=1.0))
        return down(self.by_user @ y * part)


def _alone(rows: FloatArray, sides: FloatArray) -> FloatArray:
    """Return the largest value of each column alone, rounded up."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return up(np.where(rows > 0, sides[:, None] / rows, np.inf).min(axis=0, initial=np.inf))


def at_most(
    polytope: Polytope,
    worth: FloatArray | None = None,
    floors: FloatArray | None = None,
    ceilings: FloatArray | None = None,
) -> float:
    """Return a bound on the level, or on the sum of parts y times their ``worth``, (pairs,), of every feasible point.

    ``floors`` and ``ceilings`` are the smallest and largest weighted shares that the points have, (users,).

    Raises
    ------
    NoSolution
        There is no such point.
    """
    by_user, nothing = polytope.by_user, np.zeros(polytope.caps.size)
    goal, largest = np.zeros(polytope.users.size + 1), np.append(polytope.largest, 0.0)
    caps = polytope.caps if ceilings is None else np.minimum(polytope.caps, up(ceilings))
    rows = [_with_column(polytope.rows, np.zeros(polytope.sides.size)), _with_column(by_user, nothing)]
    sides = [polytope.sides, caps]
    if worth is None:
        goal[-1] = 1.0
        largest[-1] = up((by_user @ polytope.largest / polytope.weights).min())
        rows.append(_with_column(-by_user, polytope.weights))
        sides.append(nothing)
    else:
        goal[:-1] = worth
    if floors is not None:
        rows.append(_with_column(-by_user, nothing))
        sides.append(-down(floors * polytope.weights))
    return SafeProgram.of(goal, np.concatenate(rows), np.concatenate(sides), largest).solve(np.inf).bound


def _with_column(rows: FloatArray, column: FloatArray) -> FloatArray:
    return np.column_stack([rows, column])


@dataclass(frozen=True, slots=True, eq=False)
class Filling:
    """A level L such that some point gives every member min(L weight, cap), and the members who stop there, (users,) of bool."""

    level: float
    stopped: BoolArray


def at_least(polytope: Polytope, members: BoolArray | None = None) -> float:
    """Return a level L such that some point gives every member min(L weight, cap)."""
    return filled(polytope, members).level


def filled(polytope: Polytope, members: BoolArray | None = None) -> Filling:
    """Return how high all members can be raised together, and the prices of whom stop them."""
    who = np.ones(polytope.caps.size, bool) if members is None else members
    full, stopped = np.zeros(who.size, bool), np.zeros(who.size, bool)  # full: users who are held at their caps
    level = 0.0
    while not full[who].all():
        held, prices = _raised(polytope, who, full)
        if held is None or (held < polytope.caps)[full].any():
            break
        rising = who & ~full
        level = max(level, float(down(held[rising] / polytope.weights[rising]).min()))
        stopped = who & (prices > _PRICED * prices.max(initial=0.0))
        at_cap = rising & (polytope.caps <= level * polytope.weights)
        if not at_cap.any():
            break
        full |= at_cap
    return Filling(level, stopped & ~full)


def _raised(polytope: Polytope, who: BoolArray, full: BoolArray) -> tuple[FloatArray | None, FloatArray]:
    """Return what everybody holds where the level of those who are not full is as high as it can be, and the prices of their rows.

    None if there is no such point.
    """
    by_user, rising = polytope.by_user, who & ~full
    goal = np.append(np.zeros(polytope.users.size), 1.0)
    rows = [_with_column(polytope.rows, np.zeros(polytope.sides.size)), _with_column(-by_user, np.where(rising, polytope.weights, 0.0))]
    sides = [polytope.sides, np.where(full, -polytope.caps * (1 + _MARGIN), 0.0)]
    # twice as high as anybody can be raised alone, so that it is rows that stop the level, and their prices say whose
    ends = (by_user @ polytope.largest)[rising] / polytope.weights[rising]
    program = SafeProgram.of(goal, np.concatenate(rows), np.concatenate(sides), np.append(polytope.largest, 2 * ends.min()))
    try:
        optimum = program.solve(np.inf)
    except NoSolution:
        return None, np.zeros(who.size)
    return polytope.held(optimum.x[:-1]), optimum.prices[-who.size :]
