"""Enclosures: what holds of the shares of all instances between the smallest and the largest data.

A *share per task* sigma[n](d, C) of `SHARES` grows with each demand of the user and falls as capacities grow. Counted in shares, y = sigma
x, a task takes a[n,r] = d[n,r] / sigma[n] of resource r. Here sigma(t d) = t sigma(d), or sigma is 1; so a[n,r] grows with d[n,r], falls as
the other demands of n grow, and grows with the capacities. Each is therefore smallest and largest at a corner of the ranges, where the
notion itself computes it. All ends are rounded outwards.

*Speeds.* With speeds v[n,i] shares count work: sigma = 1 / W[n], W the most work that a user could do with what the notion grants it, which
is convex in v with W(t v) = t W(v), and a[n,i,r] = d[n,r] W[n] / v[n,i]. So a falls as v[n,i] grows, and grows with the speeds elsewhere.

>>> import fairopt as fo
>>> from fairopt.analysis.bounds.boxes import Box
>>> box = Box.of(fo.Instance([[4, 8]], [[1, 1]]), {"demands": (1, 2)})
>>> found = Enclosure.of(box, box.ranges, fo.NOTIONS["drfh"]())
>>> found.share_low.round(9), found.share_high.round(9), found.amounts_low.round(9), found.amounts_high.round(9)
(array([0.25]), array([0.5]), array([[[4., 2.]]]), array([[[4., 8.]]]))
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
    """Ends of the share per task, (users,), and of the amounts per share, (users, servers, resources)."""

    share_low: FloatArray
    share_high: FloatArray
    amounts_low: FloatArray
    amounts_high: FloatArray

    @classmethod
    def of(cls, box: Box, ranges: Ranges, notion: Notion) -> Enclosure:
        """Return the enclosure for a notion of `SHARES`; any other counts tasks, a share of 1 each."""
        low, high = ranges.low["demands"], ranges.high["demands"]
        if notion.name not in SHARES or notion.name == "max-min":
            return cls.of_work(ranges)
        assert isinstance(notion, ShareNotion)
        if box.has_speeds:
            return cls._with_speeds(box, ranges, notion)
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
        everywhere = ranges.low["speeds"][:, :, None]  # 1
        return cls(down(many[-n:]), up(few[-n:]), down(amounts_low)[:, None] * everywhere, up(amounts_high)[:, None] * everywhere)

    @classmethod
    def of_work(cls, ranges: Ranges) -> Enclosure:
        """Return the enclosure where work is counted itself, a share of 1 for a unit of it."""
        ones = np.ones(len(ranges.low["demands"]))
        low, high = (side["demands"][:, None] for side in (ranges.low, ranges.high))
        if bool((ranges.low["speeds"] == 1).all() and (ranges.high["speeds"] == 1).all()):
            everywhere = ranges.low["speeds"][:, :, None]
            return cls(ones, ones, low * everywhere, high * everywhere)
        return cls(ones, ones, down(_over(low, ranges.high["speeds"])), up(_over(high, ranges.low["speeds"])))

    @classmethod
    def _with_speeds(cls, box: Box, ranges: Ranges, notion: ShareNotion) -> Enclosure:
        """Return the enclosure of shares of work: corners of demands, and of the speed on each server against those on the others."""
        (n, m), k = ranges.low["demands"].shape, box.instance.n_servers
        sides = [(side["demands"], side["speeds"]) for side in (ranges.low, ranges.high)]
        own, here = np.eye(m, dtype=bool)[:, None, None, :], np.eye(k, dtype=bool)[None, :, None, :]
        amounts = []
        for (d_own, s_own), (d_others, s_others), rows in (
            (sides[0], sides[1], ranges.low["capacities"]), (sides[1], sides[0], ranges.high["capacities"]),
        ):  # fmt: skip
            # The least that a task takes: its own demand is small, it is fast here, and all else is the other way about.
            demands = np.broadcast_to(np.where(own, d_own, d_others), (m, k, n, m))
            speeds = np.broadcast_to(np.where(here, s_others, s_own), (m, k, n, k))
            share = _shares(box, demands.reshape(-1, m), rows, notion, speeds.reshape(-1, k)).reshape(m, k, n).transpose(2, 1, 0)
            amounts.append(_over(d_own[:, None] / share, s_others))
        few = _shares(box, sides[1][0], ranges.low["capacities"], notion, sides[0][1])
        many = _shares(box, sides[0][0], ranges.high["capacities"], notion, sides[1][1])
        return cls(down(many), up(few), down(amounts[0]), up(amounts[1]))


def _over(amounts: FloatArray, speeds: FloatArray) -> FloatArray:
    """Return amounts per unit of work, (users, servers, resources); 0 where a user does none, and may not run."""
    each = np.broadcast_to(amounts, (*speeds.shape, amounts.shape[2]))
    return np.divide(each, speeds[:, :, None], out=np.zeros(each.shape), where=speeds[:, :, None] > 0)


def _shares(box: Box, demands: FloatArray, rows: FloatArray, notion: ShareNotion, speeds: FloatArray | None = None) -> FloatArray:
    """Return the share of a task (with speeds of a unit of work) for each of several demands of every user in turn, (demands,)."""
    instance = box.instance
    turns = len(demands) // instance.n_users
    placed = None if instance.placement is None else np.tile(instance.placement, (turns, 1))
    corner = type(instance)(
        rows / instance.counts[:, None],
        demands,
        eligibility=placed,
        counts=instance.counts,
        resources=instance.resources,
        speeds=speeds,
    )
    return np.asarray(notion.share_per_task(corner), float)
