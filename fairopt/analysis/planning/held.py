"""What runs now: tasks on single servers, gangs that stop only as a whole, and protected tasks.

A table has the columns ``user``, ``server`` and ``tasks``, and may have

* ``gang``: tasks with the same word stop together or not at all;
* ``protected``: yes or 1 for tasks that must go on;
* ``name``: what the scheduler calls the tasks, ``namespace/pod`` or the number of a job. Several names are separated by ``|``, one for each
  task. A row of several tasks and one name is one thing, and stops as a whole.

A server is a host, a row that is one server, or a row of several. Where a row of several servers is named, nobody knows on which of them
the tasks run: they are packed, largest first, each on the first server with room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.tolerances import FITS, WRITTEN
from fairopt.tables import Column, Mistakes, Schema, Table, read
from fairopt.tables.spreadsheets import labels_of
from fairopt.wording import did_you_mean, exactly, named, plural

__all__ = ["Held", "HeldRow", "Part", "read_held", "rows_of"]

_TABLE = Schema(
    Column("user", "name"),
    Column("server", "name"),
    Column("tasks", "number"),
    Column("gang", default=""),
    Column("protected", default=""),
    Column("name", "names", default=None, aliases=("names",)),
)
_YES, _NO = ("1", "yes", "true", "y", "x"), ("", "0", "no", "false", "n")


@dataclass(frozen=True, slots=True)
class HeldRow:
    """Tasks of a user that run on a server.

    Attributes
    ----------
    user, server : str
    tasks : int
    gang : str
        Tasks of the same gang stop together; "": each by itself.
    protected : bool
        Whether they must go on.
    names : tuple of str
        What the scheduler calls them: one for each task, or one for all together.
    """

    user: str
    server: str
    tasks: int
    gang: str = ""
    protected: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """What stops in equal units: the tasks of a user on a server one by one, or a gang as a whole.

    Attributes
    ----------
    cells : tuple of (user, server, tasks)
        Positions, and the tasks of a unit there.
    units : int
        How many units run.
    protected : int
        How many of them go on.
    names : tuple of str
        Of the units, those that are protected last; empty where they have none.
    """

    cells: tuple[tuple[int, int, int], ...]
    units: int
    protected: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """What runs, in parts, on the single servers of an instance."""

    parts: tuple[Part, ...]
    notes: tuple[str, ...]

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return sum(part.units * sum(tasks for _, _, tasks in part.cells) for part in self.parts)

    def table(self, users: int, servers: int) -> FloatArray:
        """Return the tasks, (users, servers)."""
        found = np.zeros((users, servers))
        for part in self.parts:
            for n, i, tasks in part.cells:
                found[n, i] += part.units * tasks
        return found

    @classmethod
    def of(cls, rows: Sequence[HeldRow], instance: Instance, single: Instance, row_of: IntArray) -> Held:
        """Return what runs; ``single`` is the instance with a row for each server, ``row_of`` the original row of each.

        Raises
        ------
        InvalidInstance
            A user or a server is unknown.
        """
        users = {name: n for n, name in enumerate(instance.users)}
        first = np.searchsorted(row_of, np.arange(instance.n_servers))
        count = np.bincount(row_of, minlength=instance.n_servers)
        where = {host: int(first[i]) + j for i, own in enumerate(instance.hosts) for j, host in enumerate(own) if len(own) == int(count[i])}
        where |= {name: j for j, name in enumerate(single.servers)}
        several = {name: i for i, name in enumerate(instance.servers) if count[i] > 1}
        there = []
        for row in rows:
            if row.user not in users:
                raise InvalidInstance(f'there is no user "{row.user}"{did_you_mean(row.user, users)}; name users of the instance')
            if row.server not in several and row.server not in where:
                known = [*instance.servers, *where]
                raise InvalidInstance(
                    f'there is no server "{row.server}"{did_you_mean(row.server, known)}; name a host or a row of servers of the instance'
                )
            there.append(-1 if row.server in several else where[row.server])
        placed, spread = _packed(rows, there, users, several, instance, single, row_of)
        notes = []
        if spread:
            rows_named = list(dict.fromkeys(row.server for row, i in zip(rows, there, strict=True) if i < 0))
            notes.append(
                f"{plural(spread, 'task runs', 'tasks run')} on a row of several servers, such as {named(rows_named[0])}, and nothing says "
                "on which: the plan takes them as packed, each on the first server with room; name hosts for a plan by server"
            )
        return cls(tuple(_parts(placed, users)), tuple(notes))


def _packed(
    rows: Sequence[HeldRow],
    there: Sequence[int],
    users: Mapping[str, int],
    several: Mapping[str, int],
    instance: Instance,
    single: Instance,
    row_of: IntArray,
) -> tuple[list[tuple[HeldRow, int]], int]:
    """Return the rows on single servers, and how many tasks were packed because nothing says on which server they run."""
    free = single.capacities * (1 + FITS)
    demands, kind = single.demands_by_kind, single.kind_of

    def needs(row: HeldRow, i: int) -> FloatArray:
        return np.asarray(demands[users[row.user], kind[i], : free.shape[1]], float)

    placed = [(row, i) for row, i in zip(rows, there, strict=True) if i >= 0]
    for row, i in placed:
        free[i] -= row.tasks * needs(row, i)
    open_rows = [row for row, i in zip(rows, there, strict=True) if i < 0]
    copies = {name: np.flatnonzero(row_of == i) for name, i in several.items()}

    def size(row: HeldRow) -> float:
        i = int(copies[row.server][0])
        need = needs(row, i)
        return float((need / np.where(single.capacities[i] > 0, single.capacities[i], np.inf)).max(initial=0.0))

    for row in sorted(open_rows, key=size, reverse=True):
        left, names = row.tasks, row.names
        own = copies[row.server]
        need = needs(row, int(own[0]))
        whole = bool(names) and len(names) != row.tasks  # one thing of one name
        gang = row.gang or (f"\0{names[0]}" if whole else "")
        for i in own.tolist():
            room = np.where(need > 0, np.floor(free[i] / np.where(need > 0, need, 1.0)), np.inf).min(initial=np.inf)
            here = int(min(left, max(room, 0.0))) if i != own[-1] else left
            if here:
                placed.append((replace(row, tasks=here, gang=gang, names=names if whole else names[:here]), i))
                free[i] -= here * need
                left, names = left - here, names if whole else names[here:]
    return placed, sum(row.tasks for row in open_rows)


def _parts(placed: Sequence[tuple[HeldRow, int]], users: Mapping[str, int]) -> list[Part]:
    """Return what stops in equal units."""
    gangs: dict[str, list[tuple[HeldRow, int]]] = {}
    alone: dict[tuple[int, int], list[HeldRow]] = {}
    for row, i in placed:
        if not row.tasks:
            continue
        if row.gang or (row.names and len(row.names) != row.tasks):
            gangs.setdefault(row.gang or f"\0{row.names[0]}", []).append((row, i))
        else:
            alone.setdefault((users[row.user], i), []).append(row)
    parts = []
    for (n, i), rows in alone.items():
        rows = sorted(rows, key=lambda row: row.protected)
        names = tuple(name for row in rows for name in row.names)
        units, protected = sum(row.tasks for row in rows), sum(row.tasks for row in rows if row.protected)
        open_names = tuple(name for row in rows if not row.protected for name in row.names)
        parts.append(Part(((n, i, 1),), units, protected, names if len(open_names) == units - protected else ()))
    for gang, members in gangs.items():
        cells: dict[tuple[int, int], int] = {}
        for row, i in members:
            cells[users[row.user], i] = cells.get((users[row.user], i), 0) + row.tasks
        own = dict.fromkeys(name for row, _ in members for name in row.names)
        names = tuple(own) or ((gang,) if gang[:1] != "\0" else ())
        parts.append(Part(tuple((n, i, tasks) for (n, i), tasks in cells.items()), 1, int(any(row.protected for row, _ in members)), names))
    return parts


def rows_of(held: Any, instance: Instance, single: Instance) -> list[HeldRow]:
    """Return what runs as rows, from whatever `fairopt.plan` takes.

    Raises
    ------
    InvalidInstance
        A number of tasks is not whole, or an array has another shape.
    """
    if isinstance(held, str | Path):
        return read_held(Path(held), instance)
    if isinstance(held, Allocation):
        return _rows_of_array(held.tasks, held.instance.users, held.instance.servers)
    if isinstance(held, Mapping):
        return [HeldRow(str(user), str(server), whole(tasks, f"{user} on {server}")) for (user, server), tasks in held.items()]
    if hasattr(held, "columns"):
        from fairopt.tables.frames import from_frame

        return _rows(from_frame("the frame held", held, _TABLE, range(1, len(held) + 1)), instance)
    if len(held) and all(isinstance(row, HeldRow) for row in held):
        return list(held)
    tasks = np.asarray(held, float)
    for labels in (single.servers, instance.servers):
        if tasks.shape == (instance.n_users, len(labels)):
            return _rows_of_array(tasks, instance.users, labels)
    raise InvalidInstance(
        f"what runs has the shape {tasks.shape}; it must be (users, servers), here {(instance.n_users, single.n_servers)}, a mapping from "
        "(user, server) to tasks, a frame with the columns user, server and tasks, or an allocation"
    )


def _rows_of_array(tasks: FloatArray, users: Sequence[str], servers: Sequence[str]) -> list[HeldRow]:
    return [
        HeldRow(users[n], servers[i], whole(float(tasks[n, i]), f"{users[n]} on {servers[i]}"))
        for n, i in np.argwhere(np.asarray(tasks, float) != 0).tolist()
    ]


def whole(tasks: float, what: str) -> int:
    """Return a whole number of tasks.

    Raises
    ------
    InvalidInstance
        It is negative, or not whole.
    """
    value = float(tasks)
    if not _is_whole(value):
        raise InvalidInstance(f"{what}: a plan is about whole tasks, and {exactly(value)} is no whole number >= 0 of them")
    return round(value)


def _is_whole(tasks: float) -> bool:
    return bool(np.isfinite(tasks) and tasks >= 0 and abs(tasks - round(tasks)) <= WRITTEN)


def read_held(path: Path, instance: Instance) -> list[HeldRow]:
    """Read what runs from a table.

    Raises
    ------
    InvalidInstance
        With file and line: a label is unknown, or a cell is not what it must be.
    """
    mistakes = Mistakes()
    table = read(path, _TABLE, mistakes=mistakes)
    rows = _rows(table, instance)
    mistakes.refuse()
    return rows


def _rows(table: Table, instance: Instance) -> list[HeldRow]:
    users = labels_of(table.cells("user"), instance.users)
    servers = labels_of(table.cells("server"), instance.servers)
    known = {*instance.servers, *(host for own in instance.hosts for host in own)}
    numbers = [table.number(cell, row, "tasks") for row, cell in enumerate(table.cells("tasks"))]
    blank = [""] * len(numbers)
    gangs, flags = (table.cells(column) if column in table else blank for column in ("gang", "protected"))
    names = table.names("name") if "name" in table else [[] for _ in numbers]
    rows = []
    for k, (user, server, tasks, gang, flag, own) in enumerate(zip(users, servers, numbers, gangs, flags, names, strict=True)):
        if user not in instance.users:
            table.wrong(k, f'there is no user "{user}"{did_you_mean(user, instance.users)}', "user")
        if server not in known and "#" not in server:
            hint = did_you_mean(server, known)
            table.wrong(k, f'there is no server "{server}"{hint}; name a host or a row of servers of the instance', "server")
        if not _is_whole(tasks):
            table.wrong(k, f"expected a whole number of tasks >= 0, found {exactly(tasks)}: a plan is about whole tasks", "tasks")
            continue
        if flag.casefold() not in (*_YES, *_NO):
            table.wrong(k, f'expected yes or no, found "{flag}"', "protected")
        own = [name for name in own if name]
        if len(own) > 1 and len(own) != round(tasks):
            table.wrong(k, f"expected one name, or one for each of {plural(round(tasks), 'task')}, found {len(own)}", "name")
        rows.append(HeldRow(user, server, round(tasks), gang, flag.casefold() in _YES, tuple(own)))
    return rows
