"""An import: the resources, the owners, what was left out, and notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fairopt.clusters.imported import Import
from fairopt.reporting.tables.phrases import servers_in_rows
from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Table, names, numbers, percents, words
from fairopt.wording import figure, plural

__all__ = ["import_blocks"]

_ROWS = 20  # owners that are shown
_LINES = 12  # reasons that are listed


def import_blocks(imported: Import, *, everything: bool = False) -> Iterator[Block]:
    """Yield the resources, the owners, what was left out, and notes."""
    data, instance = imported.to_dict(), imported.instance
    summary = {key: value for key, value in imported.summary.items() if isinstance(value, int | float)}
    counts = ", ".join(f"{key} {figure(value, 10)}" for key, value in summary.items() if key not in ("owners", "at"))
    yield Note(f": {counts}", imported.kind)
    for key, value in imported.summary.items():
        if isinstance(value, dict):
            yield f"{key}: {', '.join(f'{name} {figure(number, 6)}' for name, number in value.items())}"
    yield f"Instance: {plural(len(data['owners']), 'owner')}, {plural(instance.n_users, 'user')}, {servers_in_rows(instance)}"
    yield GAP
    endless = bool(np.isinf(instance.tasks).all())  # then nobody asks for, or holds, a definite part of the cluster
    yield _resources(data["resources"], endless)
    yield GAP
    owners = sorted(data["owners"], key=lambda owner: -owner["asks"])
    shown = owners if everything else owners[:_ROWS]
    yield _owners(shown, endless)
    if len(shown) < len(owners):
        less = "more" if endless else "that ask for less"
        yield f"and {plural(len(owners) - len(shown), 'owner')} {less} (--all shows them)"
    if not endless:
        yield "asks, holds: dominant share of all the owner's tasks"
    yield from _account(data)


def _resources(resources: dict[str, dict[str, Any]], endless: bool) -> Table:
    rows = list(resources.values())
    columns = []
    for key in () if endless else ("asked", "held"):
        columns.append(numbers(key, (each[key] for each in rows), 6))
        columns.append(percents("", (each[key] / each["capacity"] if each["capacity"] else 0.0 for each in rows), 1))
    unit = words("unit", (each["unit"] for each in rows))
    return Table.of(names("resource", resources), unit, numbers("capacity", (each["capacity"] for each in rows), 6), *columns)


def _owners(owners: list[dict[str, Any]], endless: bool) -> Table:
    columns = [
        names("owner", (owner["owner"] for owner in owners)),
        numbers("weight", (owner["weight"] for owner in owners), 6),
        numbers("users", (owner["users"] for owner in owners), 9),
        numbers("tasks", ("no limit" if owner["tasks"] is None else owner["tasks"] for owner in owners), 6),
    ]
    if not endless:
        columns.append(numbers("running", (owner["running"] for owner in owners), 6))
        columns += [percents(key, (owner[key] for owner in owners), 2) for key in ("asks", "holds")]
    return Table.of(*columns)


def _account(data: dict[str, Any]) -> Iterator[Block]:
    if data["left_out"]:
        yield GAP
        yield Note("", "Left out")
        for each in data["left_out"][:_LINES]:
            first = each["first"] if each["number"] == 1 else f"the first: {each['first']}"
            yield Note(f"{plural(each['number'], each['what'])}: {each['why']}; {first}", whole=True)
        if len(data["left_out"]) > _LINES:
            yield f"and {plural(len(data['left_out']) - _LINES, 'other reason')} (--json lists them)"
    if data["notes"]:
        yield GAP
    for note in data["notes"]:
        yield Note(f"Note: {note}", whole=True)
