"""What the exact allocation of the notion would give the users that are explained.

>>> import fairopt as fo
>>> pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["alice", "bob"])
>>> against_optimum(fo.schedule(pool, "drf"), [1], Deadline(None))
'The exact allocation of drf, of divisible tasks, would give it as much.'
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from fairopt.allocation import Allocation
from fairopt.analysis.explanation import number
from fairopt.analysis.rerun import notion_of_allocation
from fairopt.errors import FairoptError
from fairopt.instance import IntArray
from fairopt.instance.tolerances import WRITTEN
from fairopt.models import Notion
from fairopt.solvers.backend import Deadline
from fairopt.solving import solve
from fairopt.specs import written
from fairopt.wording import figure

__all__ = ["against_optimum"]

_REFERENCE = "drfh"  # the notion to compare with, if the allocation has none


def against_optimum(allocation: Allocation, users: Sequence[int] | IntArray, deadline: Deadline) -> str:
    """Return what the exact allocation of the notion would give these users together."""
    notion: Notion | str = notion_of_allocation(allocation) or _REFERENCE
    name = notion if isinstance(notion, str) else written(notion) if allocation.measured_by else notion.name
    sharing: Any = allocation.sharing
    try:
        if deadline.left == 0.0:
            raise deadline.passed({})
        limit, exactly = None if deadline.seconds is None else deadline.left, allocation.as_known is not allocation
        best = solve(allocation.instance, notion, sharing=sharing, time_limit=limit, exact=exactly)
    except FairoptError as error:
        return f"There is no exact allocation of {name} to compare with: {error}."
    has, would = (number(each.work[users].sum()) for each in (allocation.as_known, best.as_known))
    rounding = 0 if isinstance(has, Fraction) and isinstance(would, Fraction) else WRITTEN
    same = abs(would - has) <= rounding * max(would, has)
    what = "" if allocation.instance.speeds_given is None else "work of "
    how_many = "as much" if same else f"{what}{figure(would)} instead of {figure(has)}"
    return f"The exact allocation of {name}, of divisible tasks, would give it {how_many}."
