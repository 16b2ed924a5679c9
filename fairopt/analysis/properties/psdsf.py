"""The PS-DSF condition: a user can gain at a server only by taking from a user whose share at that server is no larger.

Let s[n,i] = x[n] / (phi[n] gamma[n,i]). User n has a *bottleneck* at server i if a resource that n uses at i is full, and every user m who
holds some of this resource at i has s[m,i] <= s[n,i]. An allocation is PS-DSF if and only if every user has all its tasks, or has a
bottleneck at every server where it may run (Khamse-Ashari et al. 2017, definition 5, theorems 1 and 2). Under time division, the resource
is time.

The violation is the largest number z of tasks that some user n could add on some server i. User n takes what is free on i, and what it gets
from users m whose s[m,i] stays at or above the new s[n,i]. So z is the largest number with

    z d[n,r] <= free[i,r] + sum over m of d[m,r] min(x[m,i], max(0, x[m] - S phi[m] gamma[m,i])),    S = (x[n] + z) / (phi[n] gamma[n,i]),

for every r that n uses, and z <= T[n] - x[n]. Parts of tasks count.

*Speeds.* Where tasks do other work on other servers all of this is said of units of work, as in `fairopt.models.psdsf`: x is work, a unit
of it takes d[n,i,r] / speed[n,i] on server i, and gamma[n,i] is speed[n,i] times as large. A user with finitely many tasks needs one speed.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.verdict import Verdict, Witness, does_not_apply, holds, violated
from fairopt.instance import FloatArray, IntArray, safe_ratio
from fairopt.instance.fractions import objects
from fairopt.instance.tolerances import NOTHING, SAME
from fairopt.wording import figure, joined, named, plural

__all__ = ["NAME", "check"]

NAME = "psdsf"
_HALVINGS = 60
_AT_ONCE = 256  # users, so that memory stays small


def check(case: Case) -> Verdict:
    """Look for a bottleneck of every user at every server."""
    instance = case.instance
    if instance.weights.ndim == 2:
        return does_not_apply(NAME, "Does not apply: it takes one weight per user, and there is one for each resource.")
    if instance.shared:
        names = joined([*map(named, instance.shared)], 3)
        return does_not_apply(NAME, f"Does not apply: no single server can check what there is of {names} in the whole cluster.")
    if instance.limited.any():
        return does_not_apply(NAME, "Does not apply: a user has limited parallelism, which no single server can check.")
    if instance.speeds_given is not None:
        usable = np.where(instance.eligibility, instance.speeds, 0)
        slowest = np.where(usable > 0, usable, np.inf).min(axis=1)
        several = (instance.tasks < np.inf).astype(bool) & case.part & (slowest < usable.max(axis=1))
        if several.any():
            who = case.name(int(several.argmax()))
            return does_not_apply(NAME, f"Does not apply: {who} has finitely many tasks, and its tasks do other work on other servers.")
    best: Any = 0
    where, lacking = (0, 0), np.zeros(instance.n_users, bool)
    for i in range(instance.n_servers):
        server = _Server(case, i)
        open_to = np.flatnonzero(instance.eligibility[:, i] & case.part & ~case.complete)
        bounds = server.at_most(open_to)
        suspects = bounds > case.slack[open_to]
        order = open_to[suspects][np.argsort(-bounds[suspects], kind="stable")]
        bounds = np.sort(bounds[suspects])[::-1]
        for some in range(0, order.size, _AT_ONCE):
            part = slice(some, some + _AT_ONCE)
            open_question = (bounds[part] > best) | ~lacking[order[part]]
            users = order[part][open_question]
            gains = server.gains(users, bounds[part][open_question])
            gains[gains <= case.slack[users]] = 0
            lacking[users] |= gains > 0
            if gains.max(initial=0) > best:
                best, where = gains.max(), (int(users[gains.argmax()]), i)
    if not lacking.any():
        return holds(NAME, "Everybody has a bottleneck at every server where it may run, or all its tasks.")
    n, i = where
    witness = _Server(case, i).witness(n, best)
    return violated(NAME, best, f"{plural(lacking.sum(), 'user has', 'users have')} no bottleneck at some server.", witness)


class _Server:
    """One server: its free capacity, and what each user holds."""

    def __init__(self, case: Case, i: int) -> None:
        self.case, self.i = case, i
        instance, x, of_work = case.instance, case.allocation.tasks, case.instance.speeds_given is not None
        speeds = instance.speeds[:, i]
        self.gamma = case.rates[:, i] * speeds if of_work else case.rates[:, i]
        if case.sharing == "tdm":
            self.needs = safe_ratio(self.gamma > 0, self.gamma)[:, None]
        else:
            demands = instance.demands_by_kind[:, instance.kind_of[i]]
            self.needs = demands / np.where(speeds > 0, speeds, 1)[:, None] if of_work else demands
        self.capacity = case.zeros(1) + 1 if case.sharing == "tdm" else instance.row_capacity[i]
        self.unit = instance.weights * self.gamma  # tasks for one unit of share
        self.total = case.allocation.work
        self.x = x[:, i] * speeds if of_work else x[:, i]
        self.tasks = np.where(speeds > 0, instance.tasks * np.where(speeds > 0, speeds, 1), 0) if of_work else instance.tasks
        self.holders: IntArray = np.flatnonzero((self.x > case.same(NOTHING) * self.gamma) & (self.gamma > 0))
        self.free = np.maximum(self.capacity - self.x @ self.needs, 0)

    def share(self, n: IntArray) -> FloatArray:
        """s[n,i], (users,)."""
        shares: FloatArray = self.total[n] / self.unit[n]
        return shares

    def _room(self, level: FloatArray) -> FloatArray:
        """Return what is free, or held by users above each level of s, (levels, resources).

        A holder m gives min(x[m,i], max(0, x[m] - S unit[m])): all of x[m,i] up to one level, and nothing from another one on. Between
        these it is linear in S, and so are sums over the holders who have passed the first level, less those over who has passed both.
        """
        (starts, given_from, slope_from), (ends, given_to, slope_to) = self._giving
        first, last = np.searchsorted(starts, level), np.searchsorted(ends, level)
        given = given_from[first] - given_to[last] - level[:, None] * (slope_from[first] - slope_to[last])
        room: FloatArray = np.maximum(self.free + self.x[self.holders] @ self.needs[self.holders] + given, self.free)
        return room

    @cached_property
    def _giving(self) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """The levels at which holders begin to give less than all that they have, and those at which they have given all, with sums.

        The sums, (holders + 1, resources), are over those whose level is passed: what they have left beside what they hold here, or in all,
        and by how much this falls for each unit of the level.
        """
        holders, needs = self.holders, self.needs[self.holders]
        found: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        for left in (self.total[holders] - self.x[holders], self.total[holders]):
            levels = left / self.unit[holders]
            order = np.argsort(levels, kind="stable")
            zero = np.zeros((1, needs.shape[1]), needs.dtype)
            given, slope = (
                np.concatenate([zero, np.cumsum((each[:, None] * needs)[order], axis=0)]) for each in (left, self.unit[holders])
            )
            found.append((levels[order], given, slope))
        return found

    def at_most(self, users: IntArray) -> FloatArray:
        """Return an upper bound on the tasks that each user could add: its z if its share did not grow."""
        needs = self.needs[users]
        room = self._room(self.share(users))
        tasks = np.divide(room, needs, out=np.full(room.shape, np.inf, room.dtype), where=needs > 0).min(axis=1, initial=np.inf)
        bound: FloatArray = np.minimum(tasks, self.tasks[users] - self.total[users])
        return bound

    def gains(self, users: IntArray, bounds: FloatArray) -> FloatArray:
        """Return the z of each user: by bisection between 0 and its bound; in fractions at the end of the last piece that is enough."""
        if self.case.radius is not None:
            return objects([self._gain_in_fractions(int(n), bound) for n, bound in zip(users, bounds, strict=True)])
        low, high, needs = np.zeros(users.size), bounds.copy(), self.needs[users]
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            room = self._room((self.total[users] + middle) / self.unit[users])
            enough = ((room >= middle[:, None] * needs) | (needs == 0)).all(axis=1)
            low, high = np.where(enough, middle, low), np.where(enough, high, middle)
        return low

    def _gain_in_fractions(self, n: int, bound: Any) -> Any:
        """Return z of a user: what z takes of each thing, less what there is for it, is linear between the z at which somebody gives."""
        holders, total, unit = self.holders, self.total[n], self.unit[n]
        levels = np.concatenate([(self.total - self.x)[holders] / self.unit[holders], self.total[holders] / self.unit[holders]])
        between = [z for z in levels * unit - total if 0 < z < bound]
        steps = sorted({Fraction(0), *between, Fraction(bound)})
        asks = np.flatnonzero(self.needs[n] > 0)

        def left(z: Any) -> Any:
            return (self._room(np.array([(total + z) / unit]))[0] - z * self.needs[n])[asks]

        first = bisect_left(range(1, len(steps)), True, key=lambda k: bool((left(steps[k]) < 0).any())) + 1
        if first == len(steps):
            return steps[-1]
        low, high = steps[first - 1], steps[first]
        at_low, at_high = left(low), left(high)
        short = at_high < 0
        return low + (high - low) * min(at_low[short] / (at_low - at_high)[short])

    def witness(self, n: int, gain: Any) -> Witness:
        """Say of every resource that the user uses: it is free, or who holds it with a larger share."""
        case, instance = self.case, self.case.instance
        things = ("time",) if case.sharing == "tdm" else instance.resources
        own = self.total[n] / self.unit[n]
        reasons, others = [], []
        for r in np.flatnonzero(self.needs[n] > 0):
            holders = self.holders[self.needs[self.holders, r] > 0]
            above = holders[self.share(holders) > own * (1 + case.same(SAME))]
            m = int(above[self.share(above).argmax()]) if above.size else -1
            if self.free[r] > case.tolerance * self.capacity[r]:
                reasons.append(f"{figure(self.free[r], 6)} of {figure(self.capacity[r], 6)} {things[r]} is free")
            elif m >= 0:
                reasons.append(f"{things[r]} is held by {case.name(m)} (share {figure(self.total[m] / self.unit[m], 6)})")
                others.append(instance.users[m])
        more = f"another {plural(gain, 'task')}" if instance.speeds_given is None else f"{case.amount(gain)} more"
        text = (
            f"On {instance.servers[self.i]}, {case.name(n)} has a share of {figure(own, 6)}: it has {case.amount(self.total[n])}, and a "
            f"share of 1 is {case.amount(self.unit[n])}. There, {joined(reasons, 3)}. {case.name(n)} could run {more}. This takes only "
            f"what is free, or held by users whose share stays at or above the new share of {case.name(n)}."
        )
        return Witness(text, (instance.users[n], *dict.fromkeys(others)), (instance.servers[self.i],))
