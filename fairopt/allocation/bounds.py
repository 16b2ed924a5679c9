"""What an allocation uses of shared resources and named limits, and both sides of its rules.

>>> import fairopt as fo
>>> pool = fo.Instance([[9, 9]], [[1, 2], [1, 0]], users=["a", "b"], resources=["cpu", "gpu"],
...     limits=[fo.Limit("gpus", 4, resource="gpu")], rules=["x[b] >= 4"])
>>> for each in bounds_of(fo.solve(pool)):
...     print(each.name, round(each.used, 6), each.sense, each.bound, each.reached)
gpus 4.0 <= 4.0 True
x[b] >= 4 7.0 >= 4.0 False
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairopt.allocation.promises import number
from fairopt.instance import FloatArray, Instance
from fairopt.instance.fractions import rounding
from fairopt.instance.rule_sides import Side, sides
from fairopt.instance.shared import limit_name
from fairopt.instance.tolerances import REACHED
from fairopt.program.queue_limits import Row, limit_rows, stack_rows

if TYPE_CHECKING:
    from fairopt.allocation.allocation import Allocation

__all__ = ["Bounded", "bounds_of"]


@dataclass(frozen=True, slots=True)
class Bounded:
    """A shared resource, a row of a named limit, or a rule, at an allocation.

    Attributes
    ----------
    kind : {"shared", "limit", "rule"}
    name : str
        Of the resource, of the row, or the text of the rule.
    counts_tasks : bool
        Of a limit, whether each task counts 1.
    resource : str or None
        The resource that a shared resource or a limit counts, if it counts one.
    used, bound : numbers
        Of a rule both sides of its comparison, moved so that no term is below 0. Fractions of an allocation in fractions.
    sense : {"<=", "==", ">="}
        How ``used`` compares with ``bound``.
    price : float or None
        Dual price, as in `fairopt.Allocation.queue_prices`.
    reached, broken : bool
        Whether both are equal, up to rounding; whether the bound is exceeded.
    """

    kind: Literal["shared", "limit", "rule"]
    name: str
    counts_tasks: bool
    resource: str | None
    used: Any
    bound: Any
    sense: str
    price: float | None
    reached: bool
    broken: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; Fractions are as they are."""
        found: dict[str, Any] = {"name": self.name}
        if self.kind == "limit":
            found["resource"] = self.resource
        elif self.kind == "rule":
            found["sense"] = self.sense
        return {**found, "bound": self.bound, "used": self.used, "reached": self.reached, "price": self.price}


def bounds_of(allocation: Allocation) -> Iterator[Bounded]:
    """Yield the shared resources, the rows of the named limits, and the rules, each in the order of the instance.

    Of an allocation in fractions the numbers are Fractions.
    """
    known = allocation.as_known
    instance, tasks, prices = known.instance, known.tasks, known.queue_prices
    used = instance.usage_of_shared(tasks)
    for name, amount, own in zip(instance.shared, instance.shared_capacity, used, strict=True):
        yield _bounded("shared", name, False, name, own, amount, prices.get(limit_name(name)))
    rows = [row for row in limit_rows(instance) if row.selection is not None]
    for row, own in zip(rows, _used(instance, rows, tasks), strict=True):
        resource = instance.resources[row.resource] if row.resource >= 0 else None
        tasks_alone = row.selection is not None and row.selection.limit.counts_tasks
        yield _bounded("limit", row.name, tasks_alone, resource, own, row.bound, prices.get(row.name))
    for side in sides(instance, tasks):
        yield _of_rule(side, tasks, prices)


def _bounded(
    kind: Literal["shared", "limit"], name: str, counts_tasks: bool, resource: str | None, used: Any, bound: Any, price: float | None
) -> Bounded:
    used, bound = number(used), number(bound)
    same = rounding(REACHED, np.asarray(used))
    return Bounded(kind, name, counts_tasks, resource, used, bound, "<=", price, used >= bound * (1 - same), used > bound * (1 + same))


def _used(instance: Instance, rows: list[Row], tasks: FloatArray) -> list[Any]:
    """Return what tasks count in rows, (rows,)."""
    if tasks.dtype == object:
        return [row.used(instance.kinds, tasks) for row in rows]
    users, servers = np.nonzero(tasks)
    limits = stack_rows(instance.kinds, rows, users, servers)
    used = np.zeros(len(rows))
    used[limits.keys[:, 0]] = limits.used(tasks[users, servers])
    return used.tolist()


def _of_rule(side: Side, tasks: FloatArray, prices: Mapping[str, float]) -> Bounded:
    rule, same = side.rule, rounding(REACHED, tasks)
    used, bound = (side.allowed, side.used) if rule.sense == ">=" else (side.used, side.allowed)
    return Bounded(
        "rule",
        rule.text,
        False,
        None,
        number(used),
        number(bound),
        rule.sense,
        prices.get(rule.text),
        side.is_full(same),
        side.is_broken(same),
    )
