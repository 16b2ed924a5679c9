"""``queues.csv``: a row for each queue, and a further row for each of its quotas on a group of servers.

==============================  =======================================================================================================
``name``                        the queue; rows of one name are one queue
``parent``                      the queue that it is in (empty: the root)
``weight``, ``tier``            empty: 1 and 0
``guarantee:gpu``               an amount, and so for every resource (empty: none)
``limit:gpu``                   an amount (empty or inf: none)
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

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from fairopt.errors import InvalidInstance
from fairopt.formats.entries import Queue, Quota, each_of, single_values
from fairopt.instance import Instance
from fairopt.tables import Column, Kind, Schema, Table, read
from fairopt.wording import did_you_mean, joined

__all__ = ["QUEUES", "QueueTable", "check", "columns_of", "known", "own_columns"]


def own_columns(model: type[BaseModel], *, without: Collection[str] = ()) -> Iterator[Column]:
    """Yield a column for each key of an entry that has one value."""
    for key, default in single_values(model).items():
        if key not in without:
            kind: Kind = "number" if isinstance(default, int | float) else "names" if key in ("servers", "hosts") else "text"
            number = float(default) if kind == "number" else None
            yield Column(key, kind, default if number is None else number, number)


_OF_QUEUE = tuple(own_columns(Queue, without=("quotas",)))
_OF_QUOTA = tuple(own_columns(Quota))
QUEUES = Schema(Column("name", "name"), *_OF_QUEUE, *_OF_QUOTA, Column("group", "name", ""))
AMOUNTS = tuple(each_of(Queue, "resource"))
LONGEST_CELL = 100_000  # Python's csv module stops reading at 131,072 characters


class QueueTable:
    """The queues of a table as entries of a document, and the line and column of each part.

    Parameters
    ----------
    table : Table, or the Path of a CSV file
    resources : sequence of str
    """

    def __init__(self, table: Table | Path, resources: Sequence[str]) -> None:
        if isinstance(table, Path):
            table = read(table, QUEUES)
        self._table = table
        self._amounts = self._columns_of_amounts(dict.fromkeys(resources))
        self._cells_of = {column: table.raw(column) for column in self._amounts}
        self._rows: list[list[int]] = []  # of each queue: its own, then one for each quota
        entries: dict[str, dict[str, Any]] = {}
        quotas = []
        names, parents, groups = (table.raw(column) for column in ("name", "parent", "group"))
        numbers = {column.name: table.numbers(column.name) for column in _OF_QUEUE if column.kind == "number"}
        everybody = set(names)
        cells = {column.name: table.cells(column.name) for column in (*_OF_QUEUE, *_OF_QUOTA)}
        servers = table.names("servers")
        for row, name in enumerate(names):
            if cells["on"][row] or cells["servers"][row]:
                quotas.append(row)
                continue
            if name in entries:
                table.refuse(f'queue "{name}" has a row already; rename one, or say with on or servers where this quota holds', row, "name")
            if groups[row].strip():
                table.refuse("a group is named, but no servers; fill in on or servers", row, "group")
            entries[name] = {"name": name, **{word: values[row] for word, values in numbers.items()}, **self._given(row), "quotas": []}
            if cells["parent"][row]:
                entries[name]["parent"] = known(parents[row], everybody)
            self._rows.append([row])
        position = {name: q for q, name in enumerate(entries)}
        for row in quotas:
            name = known(names[row], position)
            if name not in entries:
                table.refuse(f'queue "{name}" has a quota but no row of its own; add one without on and servers', row, "name")
            for column in (each.name for each in _OF_QUEUE):
                if cells[column][row]:
                    table.refuse(f"this row is a quota; the {column} stands in the queue's own row, so empty this cell", row, column)
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
        column = f"{rest[0]}:{rest[1]}" if len(rest) > 1 and rest[0] in AMOUNTS else rest[0] if rest else None
        return self._table.place(row, column)

    def _columns_of_amounts(self, resources: dict[str, None]) -> dict[str, tuple[str, str]]:
        """Return what each column of amounts is about: "guarantee" and a resource."""
        found = {}
        for column in self._table.columns:
            word, colon, resource = column.partition(":")
            if word in AMOUNTS and colon:
                if resource not in resources:
                    hint = did_you_mean(resource, resources) or f"; the resources are {joined([*resources], 8)}"
                    self._table.refuse(f'there is no resource "{resource}"{hint}', None, column)
                found[column] = (word, resource)
            elif column not in QUEUES:
                choices = [*QUEUES.columns, *(f"{each}:{resource}" for each in AMOUNTS for resource in resources)]
                hint = (
                    did_you_mean(column, choices)
                    or f"; there are {joined([*QUEUES.columns, f'{AMOUNTS[0]}:{next(iter(resources))} and the like'])}"
                )
                self._table.refuse(f'a queue has no "{column}"{hint}', None, column)
        return found

    def _given(self, row: int) -> dict[str, dict[str, float | str]]:
        """Return the amounts of a row."""
        amounts: dict[str, dict[str, float | str]] = {}
        for column, (word, resource) in self._amounts.items():
            cell = self._cells_of[column][row]
            if cell.strip():
                amounts.setdefault(word, {})[resource] = self._table.amount(cell, row, column)
        return amounts


def known(name: str, names: Collection[str]) -> str:
    """Return the name that a cell stands for: spaces around it count only where a name has them.

    >>> known(" lab", ["lab"]), known(" lab", [" lab"])
    ('lab', ' lab')
    """
    return name if name in names else name.strip()


# Writing -------------------------------------------------------------------------------------------------------------------------


def check(instance: Instance, place: Path, longest: int = LONGEST_CELL) -> None:
    """Refuse quotas whose servers a cell cannot hold."""
    for queue in instance.queues:
        for quota in queue.quotas:
            fits = all("|" not in name and name == name.strip() for name in quota.servers) and len("|".join(quota.servers)) < longest
            if not fits or "\0" in quota.name:
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
