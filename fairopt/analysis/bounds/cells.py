"""Cells: the parts into which a box is cut before the search, and the instances that a part of a cell stands for.

*Directions.* Shares of `fairopt.analysis.bounds.enclosures.SHARES` do not change if all demands of a user grow by one factor, as long as
its tasks have no end. Such a user is known by the direction of its demands, M - 1 numbers. With C the largest capacity of the cluster in
the box, there is a resource r with the largest d[n,r] / C[r], and scaled so that d[n,r] = C[r], every other demand d[n,s] is at most C[s].
A *cell* is a choice of r for each user; users who are alike are counted, not ordered. The ranges of a cell hold scaled demands. A part of a
cell has a direction of the box if and only if

    max over s of low[n,s] / d[n,s]  <=  min over s of high[n,s] / d[n,s]

for some d of it; with the largest d on the left and the smallest on the right, this says which parts can be left out.

*What a bound ignores.* If the heuristic gives a user as much whatever others demand, and the optimum only rises as they demand less, it is
enough to bound the instances in which they demand least.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairopt.analysis.bounds.boxes import Box, Ranges
from fairopt.analysis.bounds.safe_programs import down, up
from fairopt.instance import BoolArray, FloatArray

__all__ = ["Part", "parts_of"]

_MOST_CELLS = 20_000  # if there are more choices of dominant resources, demands are not scaled


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A part of a cell.

    Attributes
    ----------
    ranges : Ranges
        Ends of all numbers; demands of users in ``scaled`` are directions.
    user : int or None
        The user whose share is bounded; None for a total.
    scaled : (users,) of bool
    bound : float
        An upper bound on the regret of all its instances, if one is known; else the largest possible regret.
    """

    ranges: Ranges
    user: int | None
    scaled: BoolArray
    bound: float = 1.0

    def halves(self, bound: float) -> tuple[Part, Part]:
        """Return both halves, with the bound of the whole."""
        first, second = self.ranges.split()
        return replace(self, ranges=first, bound=bound), replace(self, ranges=second, bound=bound)

    def is_empty(self, box: Box) -> bool:
        """Say whether no direction of the part is one of the box."""
        n = self.scaled
        if not n.any():
            return False
        least = _ratio(box.ranges.low["demands"][n], up(self.ranges.high["demands"][n]), 0.0).max(axis=1)
        most = _ratio(box.ranges.high["demands"][n], down(self.ranges.low["demands"][n]), np.inf).min(axis=1)
        return bool((least > up(most)).any())

    def within(self, box: Box) -> Part | None:
        """Return the part without numbers that break a rule of the box; None if nothing is left."""
        ranges = box.cut(self.ranges)
        return None if ranges is None else replace(self, ranges=ranges)

    def instance_data(self, box: Box, part: float) -> Mapping[str, FloatArray]:
        """Return the data of an instance of the box near the point ``part`` of the way through this part."""
        data = dict(self.ranges.at(part).data)
        low, high, demands = box.ranges.low["demands"], box.ranges.high["demands"], data["demands"]
        factor = np.ones((len(demands), 1))
        if self.scaled.any():
            least = _ratio(low, demands, 0.0).max(axis=1)
            most = _ratio(high, demands, np.inf).min(axis=1)
            factor = np.where(self.scaled, np.where(least <= most, most, (least + most) / 2), 1.0)[:, None]
        data["demands"] = np.clip(demands * factor, low, high)
        return data


def _ratio(bounds: FloatArray, demands: FloatArray, nothing: float) -> FloatArray:
    """Return bounds / demands, and ``nothing`` where nothing is demanded."""
    return np.divide(bounds, demands, out=np.full_like(demands, nothing), where=demands > 0)


def parts_of(box: Box, users: Sequence[int | None], scaled: BoolArray, kinds: Sequence[object], ignored: BoolArray) -> Iterator[Part]:
    """Yield the cells with each user whose share is to be bounded. Users about whose demands there is a rule are not scaled.

    Parameters
    ----------
    box : Box
    users : list of int or None
    scaled : (users,) of bool
        Whose demands may be scaled.
    kinds : (users,) of any
        What tells users apart beyond their data; users who are alike in all are interchangeable.
    ignored : (users, users) of bool
        Whether the bound of the user of a row may take the users of columns at their smallest demands.
    """
    n = box.instance.n_users
    alike, scaled, ignored = _alike(box, kinds), scaled & ~box.ruled, ignored & ~box.ruled
    dominant = [_dominant(box, user) if scaled[user] else [-1] for user in range(n)]
    groups = [[user for user in range(n) if alike[user] == group] for group in sorted(set(alike))]
    number = np.prod([float(_choices(len(dominant[group[0]]), len(group))) for group in groups])
    if number > _MOST_CELLS:
        scaled, dominant = np.zeros(n, bool), [[-1]] * n
    choices = [list(itertools.combinations_with_replacement(dominant[group[0]], len(group))) for group in groups]
    for chosen in itertools.product(*choices):
        of_user = {user: r for group, resources in zip(groups, chosen, strict=True) for user, r in zip(group, resources, strict=True)}
        ranges = _cell(box, of_user)
        seen = set()
        for user in users:
            if user is None:
                yield Part(ranges, None, scaled)
            elif (alike[user], of_user[user]) not in seen:
                seen.add((alike[user], of_user[user]))
                yield Part(_least(ranges, ignored[user]), user, scaled)


def _choices(kinds: int, members: int) -> int:
    """Return how many ways there are to give each of some members, who are alike, one of the kinds."""
    from math import comb

    return comb(kinds + members - 1, members)


def _alike(box: Box, kinds: Sequence[object]) -> list[int]:
    """Return a number for each user, the same for users who are alike."""
    always, some = box.eligible
    seen: dict[object, int] = {}
    numbers = []
    tied = box.tied
    for n, kind in enumerate((kind, n if tied[n] else -1) for n, kind in enumerate(kinds)):
        data = [side[name][n].tobytes() for side in (box.ranges.low, box.ranges.high) for name in ("demands", "weights", "tasks", "speeds")]
        numbers.append(seen.setdefault((*data, always[n].tobytes(), some[n].tobytes(), kind), len(seen)))
    return numbers


def _dominant(box: Box, user: int) -> list[int]:
    """Return the resources that may be the dominant one of a user."""
    low, high, total = box.ranges.low["demands"][user], box.ranges.high["demands"][user], box.total_capacity
    shares_low = np.divide(low, total, out=np.zeros_like(low), where=total > 0)
    shares_high = np.divide(high, total, out=np.zeros_like(high), where=total > 0)
    return [r for r in range(len(low)) if high[r] > 0 and up(shares_high[r]) >= shares_low.max()]


def _cell(box: Box, dominant: Mapping[int, int]) -> Ranges:
    """Return the ranges of a cell; a dominant resource of -1 leaves the demands as they are."""
    low, high, total = box.ranges.low["demands"].copy(), box.ranges.high["demands"].copy(), box.total_capacity
    for user, r in dominant.items():
        if r < 0:
            continue
        least, most = low[user].copy(), high[user].copy()
        low[user] = down(least * total[r] / most[r])
        high[user] = np.minimum(total, up(most * total[r] / least[r])) if least[r] > 0 else np.where(most > 0, total, 0.0)
        low[user] = np.minimum(low[user], high[user])
        low[user, r] = high[user, r] = total[r]
    return Ranges({**box.ranges.low, "demands": low}, {**box.ranges.high, "demands": high})


def _least(ranges: Ranges, ignored: BoolArray) -> Ranges:
    """Return the ranges with some users at their smallest demands."""
    high = np.where(ignored[:, None], ranges.low["demands"], ranges.high["demands"])
    return Ranges(ranges.low, {**ranges.high, "demands": high})
