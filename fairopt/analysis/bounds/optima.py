"""The exact allocation within a box: how large its smallest share, the share of one user, or its total is at most.

*Level.* No allocation of any instance has a larger smallest share than `fairopt.analysis.bounds.filled.at_most` says: of the optimum, only
that it is feasible is used.

*User.* The leximin gives everybody at least what `fairopt.analysis.bounds.levels` says. So a bound on the share of one user is one on all
feasible points that give the others as much. Where these bounds meet what the others have, as the box shrinks, this one does, too.

*One level.* If all users demand the same resources in every instance, may run on the same servers and have tasks without end, all shares of
a leximin are equal. Proof: if some user had more than the smallest share, less of it would leave some of each resource that the others
demand on a server where they may run, and all who have the smallest share could rise together. So no share is larger than the level.

*Total.* The tasks of all points that give everybody as much as the leximin does at least, and at one level no more than at most.
"""

from __future__ import annotations

import numpy as np

from fairopt.analysis.bounds.boxes import Box, Ranges
from fairopt.analysis.bounds.enclosures import SHARES, Enclosure
from fairopt.analysis.bounds.filled import Polytope, at_most
from fairopt.analysis.bounds.levels import least_shares
from fairopt.analysis.bounds.safe_programs import up
from fairopt.errors import Unsupported
from fairopt.models import Notion
from fairopt.wording import joined

__all__ = ["check_notion", "has_one_level", "largest_level", "largest_share", "largest_total"]


def check_notion(notion: Notion, measure: str) -> None:
    """Refuse a notion whose optimum has no bound in this measure.

    Raises
    ------
    Unsupported
    """
    if getattr(notion, "resource_weights", None) is not None or getattr(notion, "only", None) is not None:
        raise Unsupported(
            f'no bound is known where resources count differently ("{notion.name}" with resource_weights or only); leave them out'
        )
    if notion.name in SHARES or (notion.name == "efficiency" and measure == "total"):
        return
    also = ' (and "efficiency" with measure="total")'
    raise Unsupported(f'no bound is known against "{notion.name}"; bounds are known against {joined(SHARES)}{also}')


def has_one_level(box: Box) -> bool:
    """Say whether all shares of every leximin in the box are equal, as the module proves."""
    always, some = box.eligible
    demanded = [box.ranges.low["demands"] > 0, box.ranges.high["demands"] > 0]
    alike = all(bool((each == each[0]).all()) for each in (always, some, *demanded))
    same = bool((always == some).all() and (demanded[0] == demanded[1]).all())
    return alike and same and bool(np.isinf(box.ranges.low["tasks"]).all())


def largest_level(box: Box, ranges: Ranges, found: Enclosure) -> float:
    """Return a bound on the smallest weighted share."""
    return at_most(Polytope.outer(box, ranges, found))


def largest_share(box: Box, ranges: Ranges, found: Enclosure, user: int) -> float:
    """Return a bound on the weighted share of one user."""
    if has_one_level(box):
        return largest_level(box, ranges, found)
    worth = np.zeros(box.instance.n_users)
    worth[user] = up(1 / ranges.low["weights"][user])
    outer = Polytope.outer(box, ranges, found)
    return at_most(outer, worth[outer.users], least_shares(box, ranges, found))


def largest_total(box: Box, ranges: Ranges, found: Enclosure, notion: Notion) -> float:
    """Return a bound on the number of tasks of all users."""
    outer = Polytope.outer(box, ranges, found)
    worth = up(1 / found.share_low)[outer.users]
    if notion.name == "efficiency":
        return at_most(outer, worth)
    ceilings = largest_level(box, ranges, found) * ranges.high["weights"] if has_one_level(box) else None
    return at_most(outer, worth, least_shares(box, ranges, found), ceilings)
