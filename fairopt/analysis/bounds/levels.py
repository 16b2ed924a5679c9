"""Levels: what the leximin of every instance within a box gives each user at least, at its own level and not only at the first.

`fairopt.analysis.bounds.filled.at_least` says it of the first level. *The next levels.* Let s* be the leximin of an instance, x* an answer
that gives it, and D any set of users. Let D run as in x*, and let the others share what D leaves: of each resource of each server at least
what the smallest capacity leaves of the most that D can use there. If the others can hold min(L w[n], k[n]) each in that, then s*[n] >=
min(L, k[n] / w[n]) of each n outside of D. Proof: call that allocation s. If s*[n] < s[n] for some n outside of D, then s raises n, so by
leximin it gives less to somebody m with s*[m] <= s*[n]. m is not in D, since s and s* are equal there, and the proof of the first level
goes on from here.

Any D will do. Those with a price in the linear program of a level are the ones who stop there, so D grows by them, level by level.

*What D uses.* If each user demands some of each resource, D and richer users never share a server in a leximin: with less for the richer
there, D could have more. So all servers of D may be left out, and nothing is lost; the bound meets the share of every user as the box
shrinks to a point. Else D uses of each resource of each server at most what a linear program says, over all points where everybody has what
it has at least; the bound may then stay below for users above the second level, where D has a choice of servers.

Three users, one demand each: a runs on the first server alone, b also on the second, c on the second and the third:

>>> import fairopt as fo
>>> chain = fo.Instance([[3], [6], [12]], [[1], [1], [1]], eligibility=[[1, 0, 0], [1, 1, 0], [0, 1, 1]])
>>> box = Box.of(chain, {"demands": (1, 1.2)})
>>> least_shares(box, box.ranges, Enclosure.of(box, box.ranges, fo.NOTIONS["max-min"]())).round(6)
array([ 2.5,  5. , 10. ])
"""

from __future__ import annotations

import numpy as np

from fairopt.analysis.bounds.boxes import Box, Ranges
from fairopt.analysis.bounds.enclosures import Enclosure
from fairopt.analysis.bounds.filled import Polytope, at_most, filled
from fairopt.analysis.bounds.safe_programs import down, up
from fairopt.errors import NoSolution
from fairopt.instance import BoolArray, FloatArray

__all__ = ["least_shares", "own_caps"]


def own_caps(ranges: Ranges, found: Enclosure) -> FloatArray:
    """Return the weighted share of each user with all its tasks, at least."""
    return down(ranges.low["tasks"] * found.share_low / ranges.high["weights"])


def least_shares(
    box: Box, ranges: Ranges, found: Enclosure, members: BoolArray | None = None, part: float = 1.0, user: int | None = None
) -> FloatArray:
    """Return the weighted share that the leximin of every instance gives each user at least; 0 for users who are no members.

    Parameters
    ----------
    box, ranges, found
    members : (users,) of bool, optional
        Who shares; the default is everybody.
    part : float
        The part of every server that they share.
    user : int, optional
        The only user whose share is wanted: levels above its own are left out.
    """
    who = np.ones(box.instance.n_users, bool) if members is None else members
    caps = own_caps(ranges, found)
    least, below = np.zeros(who.size), np.zeros(who.size, bool)
    while (others := who & ~below).any() and (user is None or others[user]):
        rest = _rest(box, ranges, found, who, part, below, least)
        able = np.isin(np.arange(who.size), rest.users[rest.largest > 0])
        if (others & ~able).any():  # they have nothing beside D, so they run as in x*, too
            below |= others & ~able
            continue
        filling = filled(rest, others)
        least[others] = np.maximum(least, np.minimum(filling.level, caps))[others]
        if not filling.stopped.any():
            break
        below |= filling.stopped
    return least


def _rest(box: Box, ranges: Ranges, found: Enclosure, who: BoolArray, part: float, below: BoolArray, least: FloatArray) -> Polytope:
    """Return what the users who are not below can have beside those who are."""
    inner = Polytope.inner(box, ranges, found, who & ~below, part)
    if not below.any():
        return inner
    open_servers = np.asarray(~(box.eligible[1] & below[:, None]).any(axis=0))
    if (ranges.low["demands"] > 0).all():
        return inner.on_servers(open_servers)
    outer = Polytope.outer(box, ranges, found, who, part)
    floors, ceilings = np.where(who, least, 0.0), np.full(who.size, np.inf)
    try:
        for n in np.flatnonzero(below):
            ceilings[n] = at_most(outer, np.eye(who.size)[n][outer.users], floors, ceilings)
        used = [_most_used(outer, found, below, row, floors, ceilings) for row in np.flatnonzero((inner.rows > 0).any(axis=1)).tolist()]
    except NoSolution:  # within tolerances: nothing is known of what they use
        return inner.on_servers(open_servers)
    left = inner.sides.copy()
    left[(inner.rows > 0).any(axis=1)] -= up(np.array(used))
    return inner.within(down(np.maximum(left, 0.0)))


def _most_used(outer: Polytope, found: Enclosure, below: BoolArray, row: int, floors: FloatArray, ceilings: FloatArray) -> float:
    """Return the most that users who are below use of a resource of a server."""
    server, resource = divmod(row, found.amounts_high.shape[2])
    worth = np.where(below[outer.users] & (outer.servers == server), found.amounts_high[outer.users, server, resource], 0.0)
    return at_most(outer, worth, floors, ceilings) if worth.any() else 0.0
