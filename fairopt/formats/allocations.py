"""Read an allocation from a table, CSV, Parquet or a spreadsheet: how many tasks each user runs on each server.

Wide, a row for each user and a column for each server::

    user,big-memory,big-cpu
    alice,10,0
    bob,0,10

or long, a row for each user and server with tasks, by the label of its row or by a host; pairs without a row have none::

    user,server,tasks
    alice,big-memory,10
    bob,big-cpu,10

or such a table for `fairopt.plan`, as ``fairopt import --current`` writes it: with the columns gang, protected and name, of which only a
plan takes notice, and any number of rows for a user and a server, which add up;

or as ``fairopt solve --csv`` and ``allocation.to_frame().to_csv()`` write it, with columns ``tasks @ big-memory`` among others. Labels must
be exactly those of the instance, in any order, or as fairopt writes them for spreadsheets (:mod:`fairopt.tables.spreadsheets`).

>>> import tempfile
>>> instance = Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], servers=["pool"])
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "mine.csv").write_text("user,server,tasks\\nB,pool,2\\n")
...     read(Path(folder, "mine.csv"), instance)
array([[0.],
       [2.]])
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairopt.formats.tables import MATRIX
from fairopt.instance import FloatArray, Instance
from fairopt.instance.fractions import as_written, fraction_of, written
from fairopt.tables import Mistakes, Table, aligned
from fairopt.tables import read as read_table
from fairopt.tables.spreadsheets import labels_of
from fairopt.wording import did_you_mean, exactly

__all__ = ["read"]

_LONG = ("user", "server", "tasks")
_OF_PLANS = ("gang", "protected", "name", "names")
_PREFIX = "tasks @ "


def read(path: Path, instance: Instance) -> FloatArray:
    """Read (users, servers) tasks.

    They are floats, or Fractions if a cell holds a number that a float would round, such as 1/3.

    Raises
    ------
    InvalidInstance
        A label is unknown, missing or repeated, or a cell is not a number of tasks: all such mistakes, with file and line.
    """
    mistakes = Mistakes()
    numbers = _numbers(read_table(path, MATRIX, mistakes=mistakes), instance)
    mistakes.refuse()
    return as_written(numbers)


def _numbers(table: Table, instance: Instance) -> list[list[float]]:
    """Return the numbers as they are written."""
    columns = set(table.columns)
    if set(_LONG) <= columns <= {*_LONG, *_OF_PLANS} and not columns - {"user"} <= set(instance.servers):
        return _long(table, instance, several=columns > set(_LONG))
    return _wide(table, instance)


def _wide(table: Table, instance: Instance) -> list[list[float]]:
    columns, labels = table.columns, table.raw("user")
    chosen = [*range(len(columns))]
    if any(column.startswith(_PREFIX) for column in columns) and not any(name.startswith(_PREFIX) for name in instance.servers):
        chosen = [j for j in chosen if j == 0 or columns[j].startswith(_PREFIX)]
        columns = ["user", *labels_of((columns[j] for j in chosen[1:]), instance.servers, _PREFIX)]
    cells = [[], *table.matrix()]
    users = labels_of(labels, instance.users)
    table = Table(table.file, MATRIX, columns, [users, *(cells[j] for j in chosen[1:])], table.lines, table.line, mistakes=table.mistakes)
    if not set(instance.servers) & set(table.columns):
        table.refuse("expected a column for each server, or the columns user, server and tasks")
    rows = aligned(table, instance.users, instance.servers)
    as_read = [[row[server] for server in instance.servers] for row in rows]
    tasks = np.array(as_read, float)
    given = {user: row for row, user in enumerate(users)}
    for n, i in np.argwhere(~(np.isfinite(tasks) & (tasks >= 0))):
        _wrong(table, float(tasks[n, i]), given[instance.users[n]], instance.servers[i])
    return as_read


def _long(table: Table, instance: Instance, several: bool) -> list[list[float]]:
    """Read a row for each user and server, or ``several``, which add up."""
    user_of = {name: n for n, name in enumerate(instance.users)}
    server_of = {host: i for i, own in enumerate(instance.hosts) for host in own}
    server_of |= {name: i for i, name in enumerate(instance.servers)}
    tasks = [[0.0] * instance.n_servers for _ in instance.users]
    seen: dict[tuple[str, str], int] = {}
    users, servers = labels_of(table.cells("user"), instance.users), labels_of(table.cells("server"), instance.servers)
    for row, (user, server, cell) in enumerate(zip(users, servers, table.cells("tasks"), strict=True)):
        for label, known, kind in ((user, user_of, "user"), (server, server_of, "server")):
            if label not in known:
                hint = did_you_mean(label, known)
                table.wrong(row, f'there is no {kind} "{label}"{hint}; the labels must be those of the instance', kind)
        value = table.number(cell, row, "tasks")
        if not (np.isfinite(value) and value >= 0):
            _wrong(table, value, row, "tasks")
        if user not in user_of or server not in server_of:
            continue
        if (user, server) in seen and not several:
            first = f"{table.line} {table.lines[seen[user, server]]}"
            table.wrong(row, f'"{user}" on "{server}" has a row already, on {first}; give their sum in one row')
        seen[user, server] = row
        there = tasks[user_of[user]][server_of[server]]
        tasks[user_of[user]][server_of[server]] = written(fraction_of(there) + fraction_of(value)) if there else value
    return tasks


def _wrong(table: Table, value: float, row: int, column: str) -> None:
    table.wrong(row, f"expected a finite number of tasks >= 0, found {exactly(value)}", column)
