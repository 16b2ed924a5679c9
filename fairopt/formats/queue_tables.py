"""``queues.csv``: a row for each queue, and a further row for each of its quotas on a group of servers.

==============================  =======================================================================================================
``name``                        the queue; rows of one name are one queue
``parent``                      the queue that it is in (empty: the root)
``weight``, ``tier``            empty: 1 and 0
``order``                       ``listed``: first come, first served (empty: ``fair``)
``guarantee:gpu``               an amount, and so for every resource (empty: none); for a queue in the root also ``50 %`` of the cluster
``limit:gpu``                   the same (empty or inf: none)
``lending_limit:gpu``           an amount (empty: all of the guarantee)
``on``                          makes the row a quota, on the servers with these attributes, such as ``model = A100``
``servers``                     makes the row a quota, on these servers (names separated by ``|``)
``group``                       a word for the servers of a quota (empty: what ``on`` says, or the servers)
==============================  =======================================================================================================

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "queues.csv")
...     _ = path.write_text("name,parent,weight,servers,guarantee:gpu\\nlab,,2,,8\\nlab,,,A|B,4\\nvision,lab,,,\\n")
...     queues = QueueTable(path, ["gpu"])
>>> for entry in queues.entries:
...     print(entry)
{'name': 'lab', 'weight': 2.0, 'tier': 0.0, 'guarantee': {'gpu': 8.0}, 'quotas': [{'guarantee': {'gpu': 4.0}, 'servers': ['A', 'B']}]}
{'name': 'vision', 'weight': 1.0, 'tier': 0.0, 'quotas': [], 'parent': 'lab'}
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from fairopt.errors import InvalidInstance
from fairopt.formats.entries import Queue, Quota, each_of, single_values
from fairopt.instance import Instance
from fairopt.tables import Column, Kind, Schema, Table, read
from fairopt.tables.schema import NUMBERS, spelled
from fairopt.wording import did_you_mean, joined

__all__ = ["QUEUES", "QueueTable", "check", "columns_of", "own_columns"]


_COUNTS = {"count": "servers", "guarantee": "tasks", "tasks": "tasks", "parallelism": "servers"}


def own_columns(model: type[BaseModel], *, without: Collection[str] = ()) -> Iterator[Column]:
    """Yield a column for each key of an entry that has one value."""
    for key, default in single_values(model).items():
        if key not in without:
            kind: Kind = "names" if key in ("servers", "hosts") else "text"
            number = float(default) if isinstance(default, int | float) else None
            if number is not None:
                kind = "share" if key == "weight" else "number"
            yield Column(key, kind, default if number is None else number, number, counts=_COUNTS.get(key, ""))


_OF_QUEUE = tuple(own_columns(Queue, without=("quotas",)))
_OF_QUOTA = tuple(own_columns(Quota))
QUEUES = Schema(Column("name", "name"), *_OF_QUEUE, *_OF_QUOTA, Column("group", default=""))
AMOUNTS = tuple(each_of(Queue, "resource"))
LONGEST_CELL = 100_000  # Python's csv module stops reading at 131,072 characters


class QueueTable:
    """The queues of a table as entries of a document, and the line and column of each part.

    Parameters
    ----------
    table : Table, or the Path of a CSV file
    resources : sequence of str
    units : mapping of str to str, optional
        The units of resources.
    """

    def __init__(self, table: Table | Path, resources: Sequence[str], units: Mapping[str, str] | None = None) -> None:
        if isinstance(table, Path):
            table = read(table, QUEUES)
        self._table, self._units = table, units or {}
        self._amounts = self._columns_of_amounts(dict.fromkeys(resources))
        self._column_of = {amount: column for column, amount in self._amounts.items()}
        table.resources = list(self._amounts)
        self._cells_of = {column: table.shares(column) for column in self._amounts}
        self._rows: list[list[int]] = []  # of each queue: its own, then one for each quota
        entries: dict[str, dict[str, Any]] = {}
        quotas = []
        names, parents, groups = (table.cells(column) for column in ("name", "parent", "group"))
        numbers = {column.name: table.numbers(column.name) for column in _OF_QUEUE if column.kind in NUMBERS}
        cells = {column.name: table.cells(column.name) for column in (*_OF_QUEUE, *_OF_QUOTA)}
        servers = table.names("servers")
        for row, name in enumerate(names):
            if cells["on"][row] or cells["servers"][row]:
                quotas.append(row)
                continue
            if name in entries:
                table.wrong(row, f'queue "{name}" has a row already; rename one, or say with on or servers where this quota holds', "name")
                continue
            if groups[row]:
                table.wrong(row, "a group is named, but no servers; fill in on or servers", "group")
            entries[name] = {"name": name, **{word: values[row] for word, values in numbers.items()}, **self._given(row), "quotas": []}
            if cells["parent"][row]:
                entries[name]["parent"] = parents[row]
            if cells["order"][row]:
                entries[name]["order"] = cells["order"][row].strip().casefold()
            self._rows.append([row])
        position = {name: q for q, name in enumerate(entries)}
        for row in quotas:
            name = names[row]
            if name not in entries:
                table.wrong(row, f'queue "{name}" has a quota but no row of its own; add one without on and servers', "name")
                continue
            for column in (each.name for each in _OF_QUEUE):
                if cells[column][row]:
                    table.wrong(row, f"this row is a quota; the {column} stands in the queue's own row, so empty this cell", column)
            quota: dict[str, Any] = self._given(row) | ({"name": groups[row]} if groups[row] else {})
            if cells["on"][row]:
                quota["on"] = cells["on"][row]
            if servers[row]:
                quota["servers"] = servers[row]
            entries[name]["quotas"].append(quota)
            self._rows[position[name]].append(row)
        self.entries = list(entries.values())

    def place(self, path: tuple[Any, ...]) -> str:
        """Return the file, line and column of a part of a document, whose path begins with "queues"."""
        if len(path) < 2:
            return self._table.file
        row, *quotas = self._rows[path[1]]
        rest = path[2:]
        if rest[:1] == ("quotas",):
            row, rest = quotas[rest[1]], rest[2:]
        column = self._column_of.get(rest[:2]) if len(rest) > 1 and rest[0] in AMOUNTS else rest[0] if rest else None
        return self._table.place(row, column)

    def _columns_of_amounts(self, resources: dict[str, None]) -> dict[str, tuple[str, str]]:
        """Return what each column of amounts is about: "guarantee" and a resource. Case and spaces around the parts do not count."""
        found: dict[str, tuple[str, str]] = {}
        columns = [column for column in self._table.columns if column not in QUEUES]
        free = [column for column in (f"{each}:{resource}" for each in AMOUNTS for resource in resources) if column not in columns]
        free += [column for column in QUEUES.columns if column not in self._table]
        for column in columns:
            word, colon, resource = (part.strip() for part in column.partition(":"))
            word, resource = word.casefold(), spelled(resource, resources)
            if word in AMOUNTS and colon and resource in resources:
                if (word, resource) in found.values():
                    self._table.wrong(None, f"another column is the {word} of {resource}, too; remove one", column)
                else:
                    found[column] = (word, resource)
                continue
            hint = did_you_mean(column, free) if resource or not colon else ""
            if word in AMOUNTS and colon:
                hint = did_you_mean(resource, [each for each in resources if f"{word}:{each}" in free]) if resource else ""
                self._table.wrong(
                    None, f'there is no resource "{resource}"{hint or f"; the resources are {joined([*resources], 8)}"}', column
                )
            else:
                there = f"; there are {joined([*QUEUES.columns, f'{AMOUNTS[0]}:{next(iter(resources))} and the like'])}"
                self._table.wrong(None, f'a queue has no "{column}"{hint or there}', column)
        return found

    def _given(self, row: int) -> dict[str, dict[str, float | str]]:
        """Return the amounts of a row."""
        amounts: dict[str, dict[str, float | str]] = {}
        for column, (word, resource) in self._amounts.items():
            if cell := self._cells_of[column][row]:
                with self._table.kept():
                    amount = self._table.amount(cell, row, column, self._units.get(resource, ""), shares=True)
                    amounts.setdefault(word, {})[resource] = amount
        return amounts


# Writing -------------------------------------------------------------------------------------------------------------------------


def check(instance: Instance, place: Path, longest: int = LONGEST_CELL) -> None:
    """Refuse quotas whose servers a cell cannot hold."""
    for queue in instance.queues:
        for quota in queue.quotas:
            fits = all("|" not in name and name == name.strip() for name in quota.servers) and len("|".join(quota.servers)) < longest
            if not fits or "\0" in quota.name or quota.name != quota.name.strip():
                raise InvalidInstance(f'{place}: a quota of queue "{queue.name}" has servers that do not fit into a cell; save as .yaml')


def columns_of(queues: Sequence[dict[str, Any]], resources: Sequence[str]) -> dict[str, list[Any]]:
    """Return the columns of the table, from the entries of a document; without those that would be empty."""
    rows: list[dict[str, Any]] = []
    for queue in queues:
        rows.append(queue)
        for quota in queue.get("quotas", ()):
            rows.append({**quota, "name": queue["name"], "group": quota.get("name", ""), "servers": "|".join(quota["servers"])})
    columns = {column: [row.get(column, "") for row in rows] for column in QUEUES.columns}
    for word in AMOUNTS:
        for resource in resources:
            columns[f"{word}:{resource}"] = [row.get(word, {}).get(resource, "") for row in rows]
    return {name: cells for name, cells in columns.items() if any(cell != "" for cell in cells)}
