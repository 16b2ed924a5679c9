"""Shared resources, named limits and rules of an allocation: what is used of each, what each allows, and whether it is reached.

Of one allocation, more than 20 are cut down to those that are reached first, unless everything is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairopt.allocation import Allocation
from fairopt.allocation.bounds import Bounded, bounds_of
from fairopt.instance import Instance
from fairopt.instance.units import bare_amount
from fairopt.show.blocks import Block
from fairopt.show.table import Style, Table, names, numbers, words
from fairopt.wording import figure, plural

__all__ = ["PRICE", "bound_blocks", "bounds_beside"]

_ROWS = 20  # of one allocation, more are left out
_BESIDE = 100  # of several, more are left out
PRICE = "price (dual): upper bound on the gain in its users' level, or in the objective, per extra unit of the limit."
_SENSES = {"<=": "at most", "==": "exactly", ">=": "at least"}


def bound_blocks(allocation: Allocation, *, everything: bool = False) -> Iterator[Block]:
    """Yield the table, a line that says what it leaves out, if anything, and what its columns mean.

    Yields nothing where the instance has no shared resources, named limits and rules.
    """
    found = list(bounds_of(allocation))
    if not found:
        return
    shown = found if everything or len(found) <= _ROWS else sorted(found, key=lambda each: not each.reached)[:_ROWS]
    instance = allocation.as_known.instance
    yield _table(instance, shown)
    if len(found) > len(shown):
        left = sum(not each.reached for each in found) - sum(not each.reached for each in shown)
        reached = "none of them reached" if left == len(found) - len(shown) else f"{len(found) - len(shown) - left:,} of them reached"
        yield f"Not shown: {plural(len(found) - len(shown), 'bound')}, {reached}; --all shows everything."
    rules = any(each.kind == "rule" for each in shown)
    lines = ["used, bound: of a rule its two sides, without terms below 0."] if rules else []
    if any(each.reached for each in shown):
        lines.append("reached: all of the bound is used" + ("; the two sides of a rule are equal." if rules else "."))
    if any(each.price is not None for each in shown):
        lines.append(PRICE)
    yield from ["\n".join(lines)] if lines else []


def _table(instance: Instance, shown: Sequence[Bounded]) -> Table:
    columns = [
        names("shared, limit, rule", (each.name for each in shown)),
        words("kind", (each.kind for each in shown)),
        numbers("used", (_amount(instance, each, each.used) for each in shown)),
        numbers("bound", (_allowed(instance, each) for each in shown)),
        numbers("price", (each.price for each in shown)),
        words("state", map(_state, shown), styles=tuple(_style(each) for each in shown)),
    ]
    return Table.of(*(column for column in columns if not column.is_empty))


def bounds_beside(made: Sequence[tuple[str, Allocation]]) -> Table | None:
    """Return what allocations of one cluster, by their names, use of each named limit, and both sides of each rule.

    None where there are none. A column for each allocation. More than 100 rows are cut down to those that some allocation reaches first.
    """
    rows: dict[str, dict[str, Bounded]] = {}
    for name, allocation in made:
        for each in bounds_of(allocation):
            if each.kind != "shared":
                rows.setdefault(each.name, {})[name] = each
    if not rows:
        return None
    shown = (
        list(rows) if len(rows) <= _BESIDE else sorted(rows, key=lambda row: not any(each.reached for each in rows[row].values()))[:_BESIDE]
    )
    columns = [
        words(name, (_held(allocation.instance, rows[row][name]) if name in rows[row] else "" for row in shown))
        for name, allocation in made
    ]
    return Table.of(names("limit or rule", shown), *columns, title="Use of limits, and both sides of rules without terms below 0")


def _held(instance: Instance, each: Bounded) -> str:
    """Return what is used, what the bound allows, and whether it is reached: "8 gpu, at most 8 gpu: reached"."""
    state = _state(each)
    return f"{_amount(instance, each, each.used)}, {_allowed(instance, each)}{f': {state}' if state else ''}"


def _allowed(instance: Instance, each: Bounded) -> str:
    """Return what a bound allows: "at most 8 gpu", "at least 4"."""
    return f"{_SENSES[each.sense]} {_amount(instance, each, each.bound)}"


def _amount(instance: Instance, each: Bounded, value: Any) -> str:
    if each.kind == "shared":
        return bare_amount(value, each.name, instance.units.get(each.name, ""), 6)
    if each.resource is not None:
        return instance.amount(value, each.resource, 6)
    return plural(value, "task", digits=6) if each.counts_tasks else figure(value, 6)


def _state(each: Bounded) -> str:
    return "exceeded" if each.broken else "reached" if each.reached else ""


def _style(each: Bounded) -> Style:
    return "bad" if each.broken else ""
