"""The place of a user in the order of a scheduler: why, who is next, and when that changes."""

from __future__ import annotations

from collections.abc import Iterator

from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Table, names, numbers
from fairopt.simulation.priorities import PriorityExplanation

__all__ = ["priority_blocks"]


def priority_blocks(found: PriorityExplanation) -> Iterator[Block]:
    """Yield the rank, the way from the root down, and the sentences."""
    yield Note(f": rank {found.rank} of {found.ranks} under {found.scheduler}", found.user)
    yield GAP
    if found.way:
        yield Table.of(
            names("from the root down", (each.name for each in found.way)),
            numbers("shares, %", (100 * each.shares for each in found.way), 3),
            numbers("usage, %", (100 * each.used for each in found.way), 3),
            numbers("level", (each.level for each in found.way), 3),
            numbers("place", (each.place for each in found.way), 10),
            numbers("of", (each.of for each in found.way), 10),
        )
        yield "shares, usage: parts of those of all children there. level: shares / usage."
        yield GAP
    yield from found.sentences()
    for note in found.notes:
        yield GAP
        yield Note(f"Note: {note}", whole=True)
