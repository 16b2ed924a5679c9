"""``on.csv``: a row for what a task of a user takes, and how much work it does, on some servers.

==============  ===================================================================================================
``user``        the user
``servers``     names (separated by ``|``), or conditions on attributes such as ``model = V100``
``speed``       the work that a task does there (empty: 1; 0: the user cannot run there)
a resource      what a task takes there (empty: as elsewhere)
==============  ===================================================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairopt.errors import InvalidInstance
from fairopt.formats.limit_tables import servers_of
from fairopt.instance import Instance
from fairopt.tables import Column, Schema, Table
from fairopt.tables.schema import spelled
from fairopt.wording import did_you_mean, joined, named

__all__ = ["ON", "OnTable", "check", "columns_of"]

ON = Schema(Column("user", "name"), Column("servers"), Column("speed", default=""))


class OnTable:
    """The rows of such a table, by user.

    Attributes
    ----------
    entries : dict
        Of each user with a row, the entries of ``on`` in a document.
    """

    def __init__(
        self, table: Table, users: Collection[str], servers: Collection[str], resources: Collection[str], units: Mapping[str, str]
    ) -> None:
        self._table, self.entries, self._rows = table, dict[str, list[dict[str, Any]]](), dict[str, list[int]]()
        columns: dict[str, str] = {}
        for column in table.columns:
            if column in ON:
                continue
            resource = spelled(column, resources)
            if resource not in resources:
                table.wrong(None, f'there is no resource "{column}"{did_you_mean(column, [*resources, *ON.columns])}', column)
                continue
            columns[resource] = column
        table.resources = list(columns.values())
        amounts = {resource: table.shares(column) for resource, column in columns.items()}
        cells, speeds = table.cells("servers"), table.plain("speed") if "speed" in table else [""] * len(table)
        for row, user in enumerate(table.cells("user")):
            if user not in users:
                there = did_you_mean(user, users) or f"; there are {joined([*users], 5)}"
                table.wrong(row, f"there is no user {named(user)}{there}", "user")
                continue
            if not cells[row]:
                table.wrong(row, 'no servers are named; name them, or "a|b", or conditions such as model = V100', "servers")
                continue
            entry: dict[str, Any] = {"servers": servers_of(cells[row], servers)}
            with table.kept():
                if speeds[row]:
                    entry["speed"] = table.amount(speeds[row], row, "speed")
                there_taken = {
                    resource: table.amount(own[row], row, columns[resource], units.get(resource, ""))
                    for resource, own in amounts.items()
                    if own[row]
                }
                entry |= {"demand": there_taken} if there_taken else {}
            self.entries.setdefault(user, []).append(entry)
            self._rows.setdefault(user, []).append(row)

    def place(self, user: str, path: Sequence[Any]) -> str:
        """Return the file, line and column of a part of an entry; the path begins with the number of the entry."""
        row = self._rows[user][path[0]] if path else None
        column = str(path[2] if path[1:2] == ["demand"] and len(path) > 2 else path[1]) if len(path) > 1 else None
        return self._table.place(row, None if column is None else spelled(column, self._table.columns))


def check(instance: Instance, place: Path, longest: int) -> None:
    """Refuse lists of servers that do not fit into a cell.

    Raises
    ------
    InvalidInstance
    """
    if not instance.differs_by_server:
        return
    wrong = next((name for name in instance.servers if "|" in name or name != name.strip()), None)
    if wrong is not None or len("|".join(instance.servers)) >= longest:
        why = f"the name of server {named(wrong)} does not" if wrong is not None else "all their servers do not"
        raise InvalidInstance(f"{place}: demands and speeds by server are a table of servers, and {why} fit into a cell; save as .yaml")
    taken = next((name for name in instance.resources if spelled(name, ON.columns) in ON), None)
    if taken is not None:
        raise InvalidInstance(f'{place}: a resource cannot be called "{taken}" in the table "on", where that is a column; save as .yaml')


def columns_of(users: Sequence[dict[str, Any]], resources: Sequence[str]) -> dict[str, list[Any]]:
    """Return the columns of the table, from the users of a document; without resources and speeds that no row has."""
    rows = [{"user": user["name"], **entry} for user in users for entry in user.get("on", ())]
    columns: dict[str, list[Any]] = {
        "user": [row["user"] for row in rows],
        "servers": ["|".join(row["servers"]) for row in rows],
        "speed": [row.get("speed", "") for row in rows],
        **{resource: [row.get("demand", {}).get(resource, "") for row in rows] for resource in resources},
    }
    return {name: cells for name, cells in columns.items() if name in ("user", "servers") or any(cell != "" for cell in cells)}
