"""Both sides of rules at an allocation: what is compared, whom a rule that holds with equality stops, and whom it raises.

A rule  sum of a y <= b  is written with what counts against it on the left, and all else on the right, so that no side is below 0:

    sum over a > 0 of a y + max(-b, 0)    <=    sum over a < 0 of -a y + max(b, 0)

>>> from fairopt.instance import Instance
>>> pool = Instance([[9]], [[1], [1]], users=["a", "b"], rules=["x[a] >= 2 * x[b]"])
>>> (side,) = sides(pool, np.array([[6.0], [3.0]]))
>>> float(side.used), float(side.allowed), side.is_full(), side.stops.tolist(), side.raises.tolist()
(6.0, 6.0, True, [False, True], [True, False])
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.instance.rule_rows import RuleRow, rule_rows
from fairopt.instance.rules import Rule
from fairopt.instance.tolerances import WRITTEN
from fairopt.validation import BoolArray, FloatArray

if TYPE_CHECKING:
    from fairopt.instance.instance import Instance

__all__ = ["Side", "applying_without", "sides"]


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """A rule at an allocation; of an equation the direction that is broken, or the one from above.

    Attributes
    ----------
    rule : Rule
    used, allowed : number
        Both sides.
    stops : bool array (users,)
        Who counts on the left: with more tasks of theirs, the rule would be broken where both sides are equal.
    raises : bool array (users,)
        Who counts on the right: with fewer tasks of theirs it would be.
    least : array (users,)
        The least that a task of a user, where it may run, adds to the left side; inf of who counts on the right, too.
    """

    rule: Rule
    used: Any
    allowed: Any
    stops: BoolArray
    raises: BoolArray
    least: Any

    def is_full(self, relative: float = WRITTEN) -> bool:
        """Are both sides equal, up to rounding?"""
        return bool(self.used >= self.allowed - relative * (self.used + self.allowed))

    def allows_no_task(self, user: int, relative: float = WRITTEN) -> bool:
        """Would one task more of a user break the rule, wherever it runs? So it is asked of whole tasks."""
        return bool(self.used + self.least[user] > self.allowed + relative * (self.used + self.allowed))

    def is_broken(self, relative: float) -> bool:
        """Is the left side larger by more than this part of both?"""
        return bool(self.used > self.allowed + relative * (self.used + self.allowed))


def sides(instance: Instance, tasks: FloatArray) -> list[Side]:
    """Return both sides of each rule at tasks, (users, servers); in fractions of an instance in fractions."""
    return [_side(row, instance, tasks) for row in rule_rows(instance)]


def _side(row: RuleRow, instance: Instance, tasks: FloatArray) -> Side:
    users, servers = np.indices(instance.eligibility.shape).reshape(2, -1)
    each = row.coefficients(instance, users, servers).reshape(tasks.shape)
    exact = tasks.dtype == object
    bound: Any = row.rule.bound if exact else float(row.rule.bound)
    zero: Any = Fraction(0) if exact else 0.0
    both = []
    for sign in {"<=": (1,), ">=": (-1,), "==": (1, -1)}[row.rule.sense]:
        signed = each * sign
        over, under = np.where(signed > 0, signed, 0), np.where(signed < 0, -signed, 0)
        used, allowed = (over * tasks).sum() + max(-bound * sign, zero), (under * tasks).sum() + max(bound * sign, zero)
        stops, raises = np.asarray((over > 0).any(axis=1)), np.asarray((under > 0).any(axis=1))
        least = np.where(instance.eligibility, over, np.inf).min(axis=1)
        both.append(Side(row.rule, used, allowed, stops, raises, np.where(raises, np.inf, least)))
    return max(both, key=lambda side: side.used - side.allowed)


def applying_without(instance: Instance, user: int) -> list[Rule]:
    """Return the rules that apply without a user: those that do not name it, alone or as the last of a queue."""
    stay = np.arange(instance.n_users) != user
    return [row.rule for row in rule_rows(instance) if all((part.users & stay).any() for part in row.parts)]
