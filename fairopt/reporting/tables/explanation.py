"""An explanation: sentences, what leaves no room, and what would change the allocation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from fairopt.analysis.explanation import Blocker, Explanation, Gain
from fairopt.show.blocks import GAP, Block
from fairopt.show.table import Table, names, numbers, percents, words
from fairopt.wording import percent

__all__ = ["explanation_blocks"]

_ROWS = 12  # of each table


def explanation_blocks(explanation: Explanation) -> Iterator[Block]:
    """Yield the sentences, the full resources, and the changes."""
    yield from explanation.sentences
    if explanation.blockers:
        yield GAP
        yield from _blockers(explanation.blockers)
    gains = tuple(gain for gain in explanation.gains if gain.by_solving is not None or gain.by_price or gain.note)
    if gains:
        yield GAP
        yield from _gains(gains)


def _blockers(blockers: Sequence[Blocker]) -> Iterator[Block]:
    priced = any(isinstance(each.price, Fraction) for each in blockers)
    shown = blockers[:_ROWS]

    def part(each: Blocker, held: Any) -> Any:
        return held / (each.capacity if each.capacity > 0 else 1.0)

    def holders(each: Blocker) -> str:
        return ", ".join(f"{name} {percent(part(each, held))}" for name, held in each.holders[:2])

    yield Table.of(
        names("what leaves no room", (each.resource for each in shown)),
        names("on", (each.server for each in shown)),
        percents("in use", (part(each, each.used) for each in shown)),
        percents("its own", (part(each, each.own) for each in shown)),
        *([numbers("price", (each.price for each in shown))] if priced else []),
        words(
            "who else holds most", (", ".join(f"{name} {percent(part(each, held))}" for name, held in each.holders[:2]) for each in shown)
        ),
        words("stops it", ("yes" if each.bottleneck else "no" for each in shown)),
    )
    if len(blockers) > _ROWS:
        yield f"and {len(blockers) - _ROWS:,} more; --json has all"
    if priced:
        yield "price (dual): upper bound on the gain in the user's level, or in the objective, per extra unit of capacity."
    if not all(each.bottleneck for each in blockers):
        yield 'stops it: "no" if its holders have larger shares and would give way, or if its price is 0.'


def _gains(gains: Sequence[Gain]) -> Iterator[Block]:
    priced, shown = any(gain.by_price is not None for gain in gains), gains[:_ROWS]
    yield Table.of(
        words("what would change, in tasks", (gain.change for gain in shown)),
        *([numbers("by price", (gain.by_price for gain in shown), signed=True)] if priced else []),
        numbers("by solving", (gain.by_solving for gain in shown), signed=True),
    )
    if len(gains) > _ROWS:
        yield f"and {len(gains) - _ROWS:,} more; --json has all"
    if priced:
        yield (
            "by price: estimated from the dual prices; an upper bound on its level, exact for small changes if prices are unique.\n"
            "by solving: the allocation of the changed cluster. Empty: not solved; --resolves N solves more."
        )
