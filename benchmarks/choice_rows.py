"""What ``choices.py`` has measured: its file, and what it says of the engines that fairopt takes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from choice_cells import Cell, grid
from measuring import write

ANSWERED, REFUSED, STOPPED = "answered", "refused", "stopped"
IMPORTED = ("cvxpy", "pyomo")  # whose packages take more than half a second to import, which is not measured:
GAIN = 0.5  # seconds that one of these has to gain
_TYPES = {"str": str, "int": int, "float": float}


@dataclass(frozen=True, slots=True)
class Measured:
    """An engine on a cell. ``seconds``: the least processor time; of a solve that was stopped, its limit."""

    cell: Cell
    engine: str
    outcome: str
    seconds: float


def read(path: Path) -> list[Measured]:
    """Return the rows of a file, none if there is none."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Measured(
                Cell(**{field.name: _TYPES[str(field.type)](row[field.name]) for field in fields(Cell)}),
                row["engine"],
                row["outcome"],
                float(row["seconds"]),
            )
            for row in csv.DictReader(file)
        ]


def save(path: Path, rows: Iterable[Measured]) -> None:
    """Write all rows at once, in the order of the grid."""
    place = {cell: number for number, cell in enumerate(grid())}
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*(field.name for field in fields(Cell)), "engine", "outcome", "seconds"])
    for row in sorted(rows, key=lambda row: place[row.cell]):
        table.writerow([*astuple(row.cell), row.engine, row.outcome, f"{row.seconds:.3g}"])
    write(path, text.getvalue())


def by_cell(rows: Iterable[Measured]) -> dict[Cell, dict[str, Measured]]:
    """Return the rows of each cell, by engine."""
    cells: dict[Cell, dict[str, Measured]] = {}
    for row in rows:
        cells.setdefault(row.cell, {})[row.engine] = row
    return cells


def fastest(found: dict[str, Measured]) -> Measured | None:
    """Return the fastest of the engines that answered, None if none did."""
    return min((row for row in found.values() if row.outcome == ANSWERED), key=lambda row: row.seconds, default=None)


def default_seconds(found: dict[str, Measured], order: Sequence[str]) -> float:
    """Return what fairopt takes that tries engines in this order: all up to the first that answers; inf if none does.

    A solve that was stopped, or was not tried because such solves are too slow, counts as one that never ends.
    """
    spent = 0.0
    for engine in order:
        row = found.get(engine)
        if row is None or row.outcome == STOPPED:
            break
        spent += row.seconds
        if row.outcome == ANSWERED:
            return spent
    return float("inf")


def times_the_best(found: dict[str, Measured], order: Sequence[str]) -> float | None:
    """Return the default's time in parts of that of the fastest engine; None where no engine has an answer.

    An engine of which the import takes longer than all else counts only where it would gain `GAIN` seconds.
    """
    if fastest(found) is None:
        return None
    taken = default_seconds(found, order)
    answers = [row for row in found.values() if row.outcome == ANSWERED]
    return taken / min([taken, *(row.seconds for row in answers if row.engine not in IMPORTED or taken - row.seconds >= GAIN)])
