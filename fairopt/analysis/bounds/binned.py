"""What geometric binning gives within a box at least, in every instance and in every answer that it may have.

`fairopt.scheduling.baselines.bins` has the programs. With y[n,i] the shares (`fairopt.analysis.bounds.enclosures`), m[n,b] what lies in bin
b, of width h[b], and v[b] what a unit in it is worth, the one program is

    max sum v[b] m[n,b]   subject to   sum_n a[n,r] y[n,i] <= c[i,r],   sum_i y[n,i] <= k[n],
                                       sum_b m[n,b] <= sum_i y[n,i] / w[n],   m[n,b] <= h[b],

and (y, m) is optimal if and only if prices p, t, q, z >= 0 exist with

    sum_r a[n,r] p[i,r] + t[n] >= q[n] / w[n],     q[n] + z[n,b] >= v[b],     sum v m >= sum c p + sum k t + sum h z.

All (y, m) for which there are such prices are considered, with each row relaxed to the whole box. Prices have ends: q <= max v and z <= v,
since a smaller q or z would do; then t <= q / w, and sum c p is at most what the bins hold.

*Bins in turn.* If everybody can fill the first bin together in every instance, everybody does. So the second bin is filled by one program
with floors: levels of at least T, or all tasks. Prices f[n] of the floors are added to q[n] in the first row, and - sum T f to the cost.
If everybody can have a level L > T, sum f (L - T) is at most what the bins hold; else only the floors are known. Of the bins above the
second nothing is used: the bound holds for every way to fill them, and may stay apart from the worst where they matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.analysis.bounds.boxes import Box, Ranges
from fairopt.analysis.bounds.enclosures import Enclosure
from fairopt.analysis.bounds.filled import Polytope, at_least
from fairopt.analysis.bounds.levels import own_caps
from fairopt.analysis.bounds.safe_programs import SafeProgram, down, up
from fairopt.errors import NoSolution, Unsupported
from fairopt.instance import BoolArray, FloatArray
from fairopt.models import Notion
from fairopt.scheduling.baselines.geometric_binning import GeometricBinning
from fairopt.wording import figure

__all__ = ["Binned", "binned"]

_LEAST_WORTH = 1e-5  # of a unit in the last bin: below, the optimum of the heuristic's solver may ignore it
_MOST_BINS = 60
_BELOW = 0.99  # of the level that everybody can have: a first bin that is advised ends there


@dataclass(frozen=True, slots=True, eq=False)
class Binned:
    """Geometric binning with a first bin that is given.

    Attributes
    ----------
    notion : Notion
        That it approximates.
    widths, worth : (bins,)
        Of bins in turn the first two as one, and 1.
    first : float
        The end of the first bin, which everybody reaches; 0 of the one program, where nobody need.
    level : float
        What everybody can have in every instance.
    """

    notion: Notion
    widths: FloatArray
    worth: FloatArray
    first: float
    level: float

    @property
    def scale_free(self) -> bool:
        """Say whether shares are counted, and not tasks."""
        return self.notion.name != "max-min"

    def reads(self, box: Box, user: int) -> BoolArray:
        """Return everybody."""
        return np.ones(box.instance.n_users, bool)

    def share(self, box: Box, ranges: Ranges, found: Enclosure, user: int) -> float:
        """Return the least weighted share of a user, counted as the other notion counts."""
        own = Enclosure.of(box, ranges, self.notion)
        floor = min(self.first, float(own_caps(ranges, own)[user]))
        worth = np.zeros(box.instance.n_users)
        worth[user] = 1.0
        least = max(floor, float(down(self._least(box, ranges, own, worth) / ranges.high["weights"][user])))
        same = bool((own.share_low == found.share_low).all() and (own.share_high == found.share_high).all())
        return least if same else float(down(least * found.share_low[user] / own.share_high[user]))

    def total(self, box: Box, ranges: Ranges) -> float:
        """Return the fewest tasks."""
        own = Enclosure.of(box, ranges, self.notion)
        return self._least(box, ranges, own, down(1 / own.share_high))

    def _least(self, box: Box, ranges: Ranges, own: Enclosure, worth: FloatArray) -> float:
        """Return min of worth @ shares over all that may be answers, rounded down."""
        outer = Polytope.outer(box, ranges, own)
        users, servers, pairs = outer.users, outer.servers, outer.users.size
        n, bins, m = worth.size, self.widths.size, own.amounts_low.shape[2]
        light, heavy = ranges.low["weights"], ranges.high["weights"]
        holds = float(up(n * (self.worth @ self.widths)))
        floors = np.minimum(self.first, own_caps(ranges, own)), np.full(n, self.first)
        room = min(self.level, float(own_caps(ranges, own).min())) - self.first  # that everybody can rise above the floors
        priced_floor = holds / room if self.first and room > 0 else 0.0
        small = ranges.low["capacities"].ravel()
        priced, limited = np.flatnonzero(small > 0), np.flatnonzero(np.isfinite(ranges.high["tasks"]))
        sure = np.flatnonzero(box.eligible[0][users, servers])
        parts = np.repeat(np.eye(n), bins, axis=1)  # sums over the bins of each user
        p = np.zeros((sure.size, small.size))
        p[np.arange(sure.size)[:, None], servers[sure][:, None] * m + np.arange(m)] = own.amounts_high[users[sure], servers[sure]]
        t = (users[sure][:, None] == limited).astype(float)
        q = -(users[sure][:, None] == np.arange(n)).astype(float) / heavy[users[sure], None]
        caps = down(ranges.low["tasks"] * own.share_low)[limited]
        sizes = (pairs, n * bins, priced.size, limited.size, n, n * bins, n)
        ends = np.cumsum((0, *sizes))

        def row(number: int, **blocks: FloatArray) -> FloatArray:
            """Return rows from their blocks, 0 elsewhere."""
            found = np.zeros((number, int(ends[-1])))
            for name, block in blocks.items():
                at = ("y", "m", "p", "t", "q", "z", "f").index(name)
                found[:, ends[at] : ends[at + 1]] = block
            return found

        by_level = -outer.by_user / light[:, None]
        cost = {"m": -np.tile(self.worth, n), "p": small[priced], "t": caps, "z": np.tile(self.widths, n), "f": -floors[1]}
        rows = np.concatenate([
            row(outer.sides.size, y=outer.rows),
            row(n, y=outer.by_user),
            row(n, y=by_level, m=parts),
            row(n, y=by_level),
            -row(sure.size, p=p[:, priced], t=t, q=q, f=q),
            -row(n * bins, q=parts.T, z=np.eye(n * bins)),
            row(1, **cost),
        ])  # fmt: skip
        sides = np.concatenate([
            outer.sides, outer.caps, np.zeros(n), -down(floors[0]), np.zeros(sure.size), -np.tile(self.worth, n), np.zeros(1),
        ])  # fmt: skip
        dearest = up(self.worth.max() + priced_floor)
        largest = np.concatenate([
            outer.largest, np.tile(self.widths, n), up((holds + n * priced_floor * self.first) / small[priced]),
            up(dearest / light[limited]), np.full(n, self.worth.max()), np.tile(self.worth, n), np.full(n, priced_floor),
        ])  # fmt: skip
        goal = np.zeros(int(ends[-1]))
        goal[:pairs] = -worth[users]
        if self.first and not priced_floor:  # nothing is known of the prices of floors: only that nobody is below
            kept = outer.sides.size + 3 * n
            rows, sides = rows[:kept], sides[:kept]
        try:
            bound = SafeProgram.of(goal, rows, sides, largest).solve(np.inf).bound
        except NoSolution:  # within tolerances: no answer is known, which is no proof
            return 0.0
        return max(0.0, -bound)


def binned(notion: Notion, baseline: GeometricBinning, box: Box) -> Binned:
    """Return the heuristic. The box has been checked.

    Raises
    ------
    Unsupported
        The first bin depends on the instance, or not everybody reaches its end, or there are too many bins.
    """
    ranges = box.ranges
    own = Enclosure.of(box, ranges, notion)
    level = at_least(Polytope.inner(box, ranges, own))
    advised = figure(_BELOW * level)
    if not baseline.first:
        raise Unsupported(
            f'a bound is known for "{baseline.name}" if its first bin is the same in every instance; give first, at most {advised}'
        )
    if baseline.first > level:
        raise Unsupported(
            f'the first bin of "{baseline.name}" ends at the level {figure(baseline.first)}, which not everybody can reach in every '
            f"instance of the box; give first, at most {advised}"
        )
    outer = Polytope.outer(box, ranges, own)
    highest = float((outer.by_user @ outer.largest / outer.weights).max())
    number = max(2, int(np.ceil(np.log(highest / baseline.first) / np.log(baseline.ratio))) + 1)
    if not baseline.part:
        return Binned(notion, np.array([baseline.first * baseline.ratio]), np.ones(1), baseline.first, level)
    worth = np.array([float(baseline.part) ** b for b in range(min(number, _MOST_BINS))])
    if number > _MOST_BINS or worth[-1] < _LEAST_WORTH:
        raise Unsupported(
            f'"{baseline.name}" would have {number} bins here, and a unit in the last one would be worth {figure(float(worth[-1]))}, too '
            f"little for a bound; give a larger ratio or part, or leave part out"
        )
    ends = baseline.first * baseline.ratio ** np.arange(number, dtype=float)
    return Binned(notion, np.diff(ends, prepend=0.0), worth, 0.0, level)
