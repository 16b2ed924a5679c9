"""Enclosures: what holds of the shares of all instances between the smallest and the largest data.

A *share per task* sigma[n](d, C) of `SHARES` grows with each demand of the user and falls as capacities grow. Counted in shares, y = sigma
x, a task takes a[n,r] = d[n,r] / sigma[n] of resource r. Here sigma(t d) = t sigma(d), or sigma is 1; so a[n,r] grows with d[n,r], falls as
the other demands of n grow, and grows with the capacities. Each is therefore smallest and largest at a corner of the ranges, where the
notion itself computes it. All ends are rounded outwards.

>>> import fairopt as fo
>>> from fairopt.analysis.bounds.boxes import Box
>>> box = Box.of(fo.Instance([[4, 8]], [[1, 1]]), {"demands": (1, 2)})
>>> found = Enclosure.of(box, box.ranges, fo.NOTIONS["drfh"]())
>>> found.share_low.round(9), found.share_high.round(9), found.amounts_low.round(9), found.amounts_high.round(9)
(array([0.25]), array([0.5]), array([[4., 2.]]), array([[4., 8.]]))
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.analysis.bounds.boxes import Box, Ranges
from fairopt.analysis.bounds.safe_programs import down, up
from fairopt.instance import FloatArray
from fairopt.models import Notion
from fairopt.models.share_notion import ShareNotion

__all__ = ["SHARES", "Enclosure"]

SHARES = ("drfh", "drf", "asset", "tsf", "cdrf", "max-min")
"""Notions whose share per task is monotone in the data, as the module says."""


@dataclass(frozen=True, slots=True, eq=False)
class Enclosure:
    """Ends of the share per task, (users,), and of the amounts per share, (users, resources)."""

    share_low: FloatArray
    share_high: FloatArray
    amounts_low: FloatArray
    amounts_high: FloatArray

    @classmethod
    def of(cls, box: Box, ranges: Ranges, notion: Notion) -> Enclosure:
        """Return the enclosure for a notion of `SHARES`; any other counts tasks, a share of 1 each."""
        low, high = ranges.low["demands"], ranges.high["demands"]
        if notion.name not in SHARES or notion.name == "max-min":
            ones = np.ones(len(low))
            return cls(ones, ones, low, high)
        assert isinstance(notion, ShareNotion)
        n, m = low.shape
        own = np.eye(m, dtype=bool)[:, None, :]  # of corner r: its own resource
        least, most = np.where(own, low, high), np.where(own, high, low)  # (corners, users, resources)
        small, large = ranges.low["capacities"], ranges.high["capacities"]
        few = _shares(box, np.concatenate([least.reshape(-1, m), high]), small, notion)  # capacities are small, so shares are large
        many = _shares(box, np.concatenate([most.reshape(-1, m), low]), large, notion)
        shares_of_least, shares_of_most = few[:-n].reshape(m, n).T, many[:-n].reshape(m, n).T
        same = bool((low == high).all() and (small == large).all())
        amounts_low, amounts_high = low / shares_of_least, high / shares_of_most
        if same:  # rounded once, so that a point stays as narrow as it can be
            amounts_low = amounts_high = low / few[-n:, None]
        return cls(down(many[-n:]), up(few[-n:]), down(amounts_low), up(amounts_high))


def _shares(box: Box, demands: FloatArray, rows: FloatArray, notion: ShareNotion) -> FloatArray:
    """Return the share per task of each of several demands of every user in turn, (demands,)."""
    instance = box.instance
    turns = len(demands) // instance.n_users
    placed = None if instance.placement is None else np.tile(instance.placement, (turns, 1))
    corner = type(instance)(
        rows / instance.counts[:, None], demands, eligibility=placed, counts=instance.counts, resources=instance.resources
    )
    return np.asarray(notion.share_per_task(corner), float)
