"""What a heuristic gives within a box at least, in every instance and in every answer that it may have.

Each heuristic bounds the weighted share of one user (counted as the notion that it is held to counts), and the tasks of a user, from below:

* "uniform": w[n] / sum w of what n runs alone on each server, which falls as its demands grow. It reads no other user.
* "per-server-drf": on each server i a leximin of the shares g x, g[n,i] = max_r d[n,r] / c[i,r]. Its first level is

      1 / max_r sum_n w[n] e[n,r],     e[n,r] = d[n,r] / (c[i,r] g[n,i]) <= 1,

  over the users who may run there, and nobody gets less unless it has no more tasks. With demands of all resources there is no other level.
* a leximin of shares (`fairopt.analysis.bounds.enclosures.SHARES`), alone or of each of several parts of users on an equal part of every
  server, as `fairopt.BASELINES` "pop" splits them: what `fairopt.analysis.bounds.levels` says of the part.
* "geometric-binning" of one of these: `fairopt.analysis.bounds.binned`.
* "efficiency": an optimum of a linear program. Every x that keeps the rows, for which prices exist that keep the rows of the dual and cost
  no more than x is worth, is considered, with each row relaxed to the whole box; so every answer is. Prices are at most what the total is
  worth at most over the capacity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fairopt.analysis.bounds.binned import binned
from fairopt.analysis.bounds.boxes import Box, Ranges
from fairopt.analysis.bounds.enclosures import SHARES, Enclosure
from fairopt.analysis.bounds.filled import Polytope, at_most
from fairopt.analysis.bounds.levels import least_shares, own_caps
from fairopt.analysis.bounds.safe_programs import SafeProgram, down, up
from fairopt.errors import NoSolution, Unsupported
from fairopt.instance import BoolArray, FloatArray
from fairopt.models import Notion
from fairopt.scheduling.baselines import Baseline, Case
from fairopt.scheduling.baselines.equal_binning import EqualBinning
from fairopt.scheduling.baselines.geometric_binning import GeometricBinning
from fairopt.scheduling.baselines.pop import POP

__all__ = ["KNOWN", "Heuristic", "LargestTotal", "LeximinOfParts", "PerServer", "Slices", "bounded"]


class Heuristic(Protocol):
    """A heuristic with a bound from below."""

    @property
    def scale_free(self) -> bool:
        """Do the shares stay as they are if all demands of a user grow by one factor?"""

    def reads(self, box: Box, user: int) -> BoolArray:
        """Return whose demands may change what a user gets, (users,)."""

    def share(self, box: Box, ranges: Ranges, found: Enclosure, user: int) -> float:
        """Return the weighted share of a user at least."""

    def total(self, box: Box, ranges: Ranges) -> float:
        """Return the tasks of all users at least."""


def _alone(capacities: FloatArray, amounts: FloatArray, eligible: BoolArray) -> FloatArray:
    """Return min over r of c[i,r] / a[n,i,r], (users, servers), 0 where a user may not run; rounded down."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(amounts > 0, capacities[None] / amounts, np.inf).min(axis=2)
    return down(np.where(eligible, ratio, 0.0))


@dataclass(frozen=True, slots=True)
class Slices:
    """The uniform slice of every server."""

    scale_free: bool = True

    def reads(self, box: Box, user: int) -> BoolArray:
        """Return the user alone."""
        return np.asarray(np.arange(box.instance.n_users) == user)

    def share(self, box: Box, ranges: Ranges, found: Enclosure, user: int) -> float:
        """Return what it runs alone over the sum of all weights."""
        amounts = _alone(ranges.low["capacities"], found.amounts_high[[user]], box.eligible[0][[user]])
        slices = down(amounts.sum() / ranges.high["weights"].sum())
        return min(float(down(slices)), float(own_caps(ranges, found)[user]))

    def total(self, box: Box, ranges: Ranges) -> float:
        """Return the sum of the slices."""
        alone = _alone(ranges.low["capacities"], Enclosure.of_work(ranges).amounts_high, box.eligible[0]).sum(axis=1)
        least, most = ranges.low["weights"], ranges.high["weights"]
        part = down(least / (least + (most.sum() - most)))
        return float(down(np.minimum(down(part * alone), ranges.low["tasks"]).sum()))


@dataclass(frozen=True, slots=True)
class PerServer:
    """DRF on each server by itself."""

    scale_free: bool = True

    def reads(self, box: Box, user: int) -> BoolArray:
        """Return everybody who may run on a server of the user."""
        some = box.eligible[1]
        return np.asarray((some & some[user]).any(axis=1))

    def share(self, box: Box, ranges: Ranges, found: Enclosure, user: int) -> float:
        """Return the sum over servers of the first level there times what a share of the server is worth."""
        alone = _alone(ranges.low["capacities"], found.amounts_high[[user]], box.eligible[0][[user]])[0]
        return min(float(down((self._levels(box, ranges) * alone).sum())), float(own_caps(ranges, found)[user]))

    def total(self, box: Box, ranges: Ranges) -> float:
        """Return the sum over users of their tasks at the first levels."""
        alone = _alone(ranges.low["capacities"], Enclosure.of_work(ranges).amounts_high, box.eligible[0])
        tasks = down(ranges.low["weights"] * (alone * self._levels(box, ranges)).sum(axis=1))
        return float(down(np.minimum(tasks, ranges.low["tasks"]).sum()))

    @staticmethod
    def _levels(box: Box, ranges: Ranges) -> FloatArray:
        """Return the first level of each server at least, (servers,)."""
        low, high = ranges.low["demands"][:, None], ranges.high["demands"][:, None]
        small, large = ranges.low["capacities"], ranges.high["capacities"]
        with np.errstate(divide="ignore", invalid="ignore"):
            largest, smallest = (
                np.where(high > 0, high / small, 0.0),
                np.where(low > 0, low / large, 0.0),
            )  # of d / c, (users, servers, resources)
            others = np.stack([np.delete(smallest, r, axis=2).max(axis=2, initial=0.0) for r in range(largest.shape[2])], axis=2)
            used = np.where(largest > 0, np.minimum(1.0, up(largest / others)), 0.0)
        weights = np.where(box.eligible[1], ranges.high["weights"][:, None], 0.0)
        taken = up((weights[:, :, None] * used).sum(axis=0).max(axis=1))
        return down(np.divide(1.0, taken, out=np.zeros_like(taken), where=taken > 0))


@dataclass(frozen=True, slots=True, eq=False)
class LeximinOfParts:
    """The leximin of shares of a notion, of each part of the users on an equal part of every server.

    Attributes
    ----------
    notion : Notion
    part_of : (users,) of int
        The part that each user is in.
    parts : int
    """

    notion: Notion
    part_of: tuple[int, ...]
    parts: int = 1

    @property
    def scale_free(self) -> bool:
        """Say whether shares are counted, and not tasks."""
        return self.notion.name != "max-min"

    def reads(self, box: Box, user: int) -> BoolArray:
        """Return the part of the user."""
        return np.asarray(np.array(self.part_of) == self.part_of[user])

    def share(self, box: Box, ranges: Ranges, found: Enclosure, user: int) -> float:
        """Return the least weighted share in the leximin of its part, counted as the other notion counts."""
        own = Enclosure.of(box, ranges, self.notion)
        least = float(least_shares(box, ranges, own, self.reads(box, user), 1 / self.parts, user)[user])
        same = bool((own.share_low == found.share_low).all() and (own.share_high == found.share_high).all())
        return least if same else float(down(least * found.share_low[user] / own.share_high[user]))

    def total(self, box: Box, ranges: Ranges) -> float:
        """Return the sum of the tasks at the least shares."""
        own = Enclosure.of(box, ranges, self.notion)
        tasks = np.zeros(box.instance.n_users)
        for part in range(self.parts):
            members = np.array(self.part_of) == part
            if members.any():
                least = least_shares(box, ranges, own, members, 1 / self.parts)
                tasks[members] = (least * ranges.low["weights"] / own.share_high)[members]
        return float(down(tasks.sum()))


@dataclass(frozen=True, slots=True)
class LargestTotal:
    """The largest weighted number of tasks, whichever answer is given."""

    scale_free: bool = False

    def reads(self, box: Box, user: int) -> BoolArray:
        """Return everybody."""
        return np.ones(box.instance.n_users, bool)

    def share(self, box: Box, ranges: Ranges, found: Enclosure, user: int) -> float:
        """Return the share of the fewest tasks of the user."""
        worth = np.zeros(box.instance.n_users)
        worth[user] = 1.0
        return float(down(self._fewest(box, ranges, worth) * found.share_low[user] / ranges.high["weights"][user]))

    def total(self, box: Box, ranges: Ranges) -> float:
        """Return the fewest tasks of an optimum."""
        return self._fewest(box, ranges, np.ones(box.instance.n_users))

    @staticmethod
    def _fewest(box: Box, ranges: Ranges, worth: FloatArray) -> float:
        """Return min of worth @ x over all x that may be optimal in an instance of the box, rounded down."""
        counted = Enclosure.of_work(ranges)
        outer = Polytope.outer(box, ranges, counted)
        small, best = ranges.low["capacities"].ravel(), at_most(outer, ranges.high["weights"][outer.users])
        users, servers, pairs, m = outer.users, outer.servers, outer.users.size, ranges.low["demands"].shape[1]
        limited = np.flatnonzero(np.isfinite(ranges.high["tasks"]))
        priced = np.flatnonzero(small > 0)
        dearest = np.concatenate([up(best / small[priced]), ranges.high["weights"][limited]])
        duals = np.zeros((pairs, priced.size + limited.size))  # what a task pays, at the largest demands
        full = np.zeros((pairs, small.size))
        full[np.arange(pairs)[:, None], servers[:, None] * m + np.arange(m)] = counted.amounts_high[users, servers]
        duals[:, : priced.size] = full[:, priced]
        duals[:, priced.size :] = users[:, None] == limited
        sure = box.eligible[0][users, servers]  # of other pairs nothing is known: they may have no tasks
        sides = np.concatenate([small[priced], ranges.low["tasks"][limited]])
        rows = np.block([
            [outer.rows, np.zeros((len(outer.rows), duals.shape[1]))],
            [outer.by_user, np.zeros((len(worth), duals.shape[1]))],
            [np.zeros((int(sure.sum()), pairs)), -duals[sure]],
            [-ranges.high["weights"][users][None], sides[None]],
        ])  # fmt: skip
        right = np.concatenate([outer.sides, ranges.high["tasks"], -ranges.low["weights"][users][sure], [0.0]])
        goal = np.concatenate([-worth[users], np.zeros(duals.shape[1])])
        try:
            bound = SafeProgram.of(goal, rows, right, np.concatenate([outer.largest, dearest])).solve(np.inf).bound
        except NoSolution:  # within tolerances: no x is known to be optimal, which is no proof
            return 0.0
        return max(0.0, -bound)


def bounded(notion: Notion, baseline: Baseline | None, box: Box) -> Heuristic | None:
    """Return the heuristic that a notion is, or a baseline of it; None if it has no bound. The box has been checked.

    Parts are dealt on an instance of the box, of which each user can run tasks: the instance that the box is made of need not be one.

    Raises
    ------
    Unsupported
        The parts of a baseline are not the same in every instance of a box.
    """
    known: Mapping[str, Heuristic] = {"uniform": Slices(), "per-server-drf": PerServer(), "efficiency": LargestTotal()}
    if isinstance(baseline, POP) and notion.name in SHARES:
        if baseline.split:
            raise Unsupported('a bound is known for "pop" with one deal of whole users; leave split out')
        dealt = baseline.dealt(Case.of(box.at(box.ranges.low), notion, "rdm"))
        return LeximinOfParts(notion, tuple(map(int, dealt.argmax(axis=1))), baseline.parts)
    if isinstance(baseline, GeometricBinning) and notion.name in SHARES:
        return binned(notion, baseline, box)
    if isinstance(baseline, EqualBinning):
        raise Unsupported(
            f'no bound is known for "{baseline.name}", whose bins end at other levels in every instance; use geometric-binning with first'
        )
    if baseline is not None:
        return None
    return LeximinOfParts(notion, (0,) * box.instance.n_users) if notion.name in SHARES else known.get(notion.name)


KNOWN = ("uniform", "per-server-drf", "efficiency", *SHARES, "drfh:pop", "drfh:geometric-binning", "drfh:first-fit")
"""Heuristics that have a bound, as they are asked for; baselines and placements also of the other notions of shares."""
