"""``limits.csv``: a row for each named limit.

==============  ===================================================================================================
``name``        the limit
``bound``       a number, or an amount of the resource: ``256GiB``
``resource``    what counts is the demand for it (empty: each task counts 1)
``users``       the users that it selects (names separated by ``|``; empty: all)
``queues``      the queues whose users it selects (the same)
``servers``     the servers that it selects: names, or conditions on attributes such as ``model = A100`` (empty: all)
``each``        ``user``, ``queue`` or ``server``: one limit for each of them (empty: one for all together)
==============  ===================================================================================================

Limits whose tasks count amounts of their own need a YAML or JSON file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairopt.errors import InvalidInstance
from fairopt.instance import Instance
from fairopt.instance.requirements import parse
from fairopt.tables import Column, Schema, Table

__all__ = ["LIMITS", "check", "columns_of", "entries_of", "servers_of"]

_LISTS = ("users", "queues")
LIMITS = Schema(
    *(Column("name", "name"), Column("bound"), Column("resource", default="")),
    *(
        Column("users", "names", default=""),
        Column("queues", "names", default=""),
        Column("servers", default=""),
        Column("each", default=""),
    ),
)


def entries_of(table: Table, servers: Collection[str], units: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the limits of a table as entries of a document."""
    entries: list[dict[str, Any]] = []
    cells = {word: table.cells(word) for word in ("name", "resource", "servers", "each")}
    lists, bounds = {word: table.names(word) for word in _LISTS}, table.shares("bound")
    for row, name in enumerate(cells["name"]):
        entry: dict[str, Any] = {"name": name}
        if bounds[row]:
            entry["bound"] = 1.0
            with table.kept():
                entry["bound"] = table.amount(bounds[row], row, "bound", units.get(cells["resource"][row], ""))
        entry |= {word: cells[word][row] for word in ("resource", "each") if cells[word][row]}
        entry |= {word: lists[word][row] for word in _LISTS if lists[word][row]}
        if cells["servers"][row]:
            entry["servers"] = servers_of(cells["servers"][row], servers)
        entries.append(entry)
    return entries


def servers_of(cell: str, known: Collection[str]) -> str | list[str]:
    """Return names, or conditions where no name is known and the cell can be read as such."""
    names = [name.strip() for name in cell.split("|")]
    if not any(name in known for name in names):
        try:
            parse(cell)
        except InvalidInstance:
            return names
        return cell
    return names


# Writing -------------------------------------------------------------------------------------------------------------------------


def check(instance: Instance, place: Path, longest: int) -> None:
    """Refuse limits that a row cannot hold: with amounts, or names that do not fit into a cell."""
    for limit in instance.limits:
        if limit.amounts is not None:
            raise InvalidInstance(f'{place}: the amounts of limit "{limit.name}" do not fit into a table; save as .yaml')
        lists = [names for names in (limit.users, limit.queues, limit.servers) if isinstance(names, tuple)]
        fits = all("|" not in name and name == name.strip() for names in lists for name in names)
        if not fits or any(len("|".join(names)) >= longest for names in lists) or limit.name != limit.name.strip() or "\0" in limit.name:
            raise InvalidInstance(f'{place}: limit "{limit.name}" has names that do not fit into a cell; save as .yaml')


def columns_of(limits: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return the columns of the table, from the entries of a document; without those that would be empty."""
    columns = {
        word: ["|".join(value) if isinstance(value := limit.get(word, ""), list) else value for limit in limits] for word in LIMITS.columns
    }
    return {word: cells for word, cells in columns.items() if word in ("name", "bound") or any(cells)}
