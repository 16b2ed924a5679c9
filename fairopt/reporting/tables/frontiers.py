"""A frontier: its vertices, the points on or below it with their prices, and why points are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairopt.analysis.frontiers import Frontier, FrontierPoint
from fairopt.reporting.tables.phrases import min_share, size_of
from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Table, names, numbers, percents, words
from fairopt.wording import printable

__all__ = ["frontier_blocks", "frontier_table", "point_table"]

_VERTICES = 8  # listed one by one


def frontier_blocks(found: Frontier) -> Iterator[Block]:
    """Yield the vertices, the points with their prices, and why points are missing."""
    yield Note(f" of {size_of(found.instance, found.sharing)}", "Frontier")
    yield GAP
    yield _vertices(found)
    done = [point for point in found if point.allocation is not None]
    if done:
        yield GAP
        yield point_table(found, done)
        yield GAP
        yield (
            "min share: smallest weighted dominant share.\n"
            f"price of fairness: {found.total_of} lost, of whatever weight, in % of the most possible.\n"
            "price of efficiency: min share lost, in % of the best possible.\n"
            f"slack: how much the min share could rise without losing {found.total_of}, in % of the best possible.\n"
            f"kind: alpha is alpha-fair in {found.alpha_fair_in} per unit of weight; greedy is a schedule, not an optimum; "
            "all others are exact."
        )
    for point in found:
        if point.message:
            yield Note(point.message, f"{printable(point.name)}: ")


def _vertices(found: Frontier) -> Table:
    """Return the vertices, or of many the first and the last."""
    vertices = found.vertices.tolist()
    rows = [("", *vertex) for vertex in vertices]
    rows[-1] = ("largest total", *vertices[-1])
    rows[0] = ("largest share" if len(vertices) > 1 else "both", *vertices[0])
    if len(rows) > _VERTICES:
        rows[1:-1] = [(f"{len(rows) - 2} vertices between", None, None)]
    where, tasks, shares = zip(*rows, strict=True)
    return Table.of(words("exact frontier", where), numbers(found.total_of, tasks, 4), numbers(min_share(found.instance), shares, 4))


def point_table(found: Frontier, points: Sequence[FrontierPoint]) -> Table:
    """Return points with their tasks, their smallest share, what they pay for each, and how far below the frontier they are."""
    return Table.of(
        names("points", (point.name for point in points)),
        words("kind", (point.kind for point in points)),
        numbers(found.total_of, (point.total for point in points), 4),
        numbers(min_share(found.instance), (point.smallest_share for point in points), 4),
        percents("price of fairness", (point.price_of_fairness for point in points), 1),
        percents("price of efficiency", (point.price_of_efficiency for point in points), 1),
        percents("slack", (point.below for point in points), 1),
    )


def frontier_table(found: Frontier, points: Sequence[FrontierPoint]) -> Table:
    """Return the vertices of the frontier and the points on or below it, with the message of each point that failed."""
    vertices = found.vertices.tolist()
    none = [None] * len(vertices)
    return Table.of(
        names("allocation", [*("vertex" for _ in vertices), *(point.name for point in points)]),
        words("kind", [*("frontier" for _ in vertices), *(point.kind for point in points)]),
        numbers(found.total_of, [*(total for total, _ in vertices), *(point.total for point in points)], 6),
        numbers(min_share(found.instance), [*(share for _, share in vertices), *(point.smallest_share for point in points)], 4),
        percents("price of fairness", [*none, *(point.price_of_fairness for point in points)], 1),
        percents("price of efficiency", [*none, *(point.price_of_efficiency for point in points)], 1),
        words("note", [*("" for _ in vertices), *(point.message for point in points)]),
        title=f"Smallest share against {found.total_of}",
    )
