"""An instance as tables: a folder of CSV or Parquet files, the sheets of an .xlsx workbook, or pandas frames.

Each table is a file of the folder, such as ``servers.csv`` or ``servers.parquet``, a sheet of that name, or a frame.

===================  ==================================================================================================================
``servers``          ``name``, a column per resource, optional ``count`` and ``hosts`` (``cn[1,3,5]``, or names separated by ``|``); any
                     other column is an attribute (an empty cell: without it)
``users``            ``name``, a column per resource, optional ``weight``, ``queue`` (empty: the root), ``owner`` (empty: the queue,
                     else the user), ``guarantee`` (tasks), ``tasks`` and ``parallelism`` (empty or inf: no limit), ``requires``, and
                     ``servers`` (names separated by ``|``; empty: all)
``shared``           optional: ``name`` and ``capacity`` of each resource of the whole cluster, which no server has; if all are such,
                     ``servers`` may be left out
``queues``           optional: the tree of queues; :mod:`fairopt.formats.queue_tables` describes it
``limits``           optional: named limits; :mod:`fairopt.formats.limit_tables` describes it
``rules``            optional: ``rule``, a condition on tasks in each row, such as ``x[alice] >= 2 * x[bob]``
``on``               optional: demands and speeds by server; :mod:`fairopt.formats.on_tables` describes it
``eligibility``      optional: ``user``, a column per server, 1 where the user may run and 0 where not
``rates``            optional: ``user``, a column per server, tasks on one server alone
``weights``          optional: ``user``, a column per resource
``units``            optional: ``name`` of a resource and ``unit`` of its amounts, such as GiB, where its name does not say it
===================  ==================================================================================================================

The resources are the columns of ``users`` that have no other meaning; those that are shared have no column of servers, or an empty one.
Matrices have a table each; their labels must be exactly the users
and the servers or resources, in any order. The tables follow the schema of YAML files: :mod:`fairopt.formats.document` has it, with the
values that are allowed. Other files and other sheets are not read. A last row of servers, users or queues that is called total, sum,
average or the like (also in German and French) is refused, because it would count as one more.

Text is data here: a name that begins with ``=`` is stored as it is, in a workbook as text. In a Parquet file or a frame, missing values
(None, NaN, NA) are empty cells.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "servers.csv").write_text("name,gpu,cpu,count,model\\nA,8,64,2,V100\\nB,4,32,,T4\\n")
...     _ = Path(folder, "users.csv").write_text("name,gpu,cpu,requires\\nalice,1,4,\\nbob,1,0,model = T4\\n")
...     read(Path(folder))
Instance(2 users, 3 servers in 2 rows, 2 resources: 20 gpu, 160 cpu; 1 user cannot run on every server)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fairopt.errors import InvalidInstance
from fairopt.formats.doubts import read_and_doubt
from fairopt.formats.entries import Server, User
from fairopt.formats.limit_tables import LIMITS, entries_of
from fairopt.formats.messages import Source
from fairopt.formats.notes_in_tables import without_sentences, without_totals
from fairopt.formats.on_tables import ON, OnTable
from fairopt.formats.queue_tables import AMOUNTS, QUEUES, QueueTable, own_columns
from fairopt.instance import Instance
from fairopt.instance.numerals import numeral
from fairopt.instance.requirements import parse
from fairopt.instance.shared import CLUSTER
from fairopt.tables import Column, Mistakes, Schema, Table, aligned, read_book
from fairopt.tables import read as read_file
from fairopt.tables.cells import only_text
from fairopt.tables.schema import NUMBERS, spelled
from fairopt.wording import brief, did_you_mean, exactly, joined, named

__all__ = ["book_source", "folder_source", "from_frames", "read", "tables_in"]

SERVERS = Schema(Column("name", "name"), *own_columns(Server))
USERS = Schema(Column("name", "name"), *own_columns(User, without=("on",)))
MATRIX = Schema(Column("user", "name"), matrix=True)
UNITS = Schema(Column("name", "name"), Column("unit"))
SHARED = Schema(Column("name", "name"), Column("capacity", "number"))
RULES = Schema(Column("rule", "name"))
TABLES = {
    **{"servers": SERVERS, "users": USERS, "shared": SHARED, "queues": QUEUES, "limits": LIMITS, "rules": RULES, "on": ON},
    **{"eligibility": MATRIX, "rates": MATRIX, "weights": MATRIX, "units": UNITS},
}
"""The tables by name, and the columns of each."""
SUFFIXES = (".csv", ".parquet")
"""Of the files in a folder."""
_MOST = 5  # columns in a list
_MATRIX_OF = {"weight": "weights", "rates": "rates", "servers": "eligibility"}


class Tables:
    """The tables as one document that knows the place of each part: file, row and column.

    Parameters
    ----------
    whole : str
        What messages call all tables together.
    readers : mapping of str to function
        Each returns the table of this name, of those in `TABLES`, and keeps mistakes in it; servers and users are needed.

    Raises
    ------
    InvalidInstance
        Nothing can be read without a table or a column. All other mistakes are in ``mistakes``.
    """

    def __init__(self, whole: str, readers: Mapping[str, Callable[[Mistakes], Table]]) -> None:
        self._whole, self.mistakes = whole, Mistakes()
        tables: dict[str, Table] = {}
        for name, read_one in readers.items():
            with self.mistakes:
                tables[name] = read_one(self.mistakes)
        if len(tables) < len(readers):
            self.mistakes.refuse()
        with self.mistakes:
            self._read(tables)
            return
        self.mistakes.refuse()

    def _read(self, tables: Mapping[str, Table]) -> None:
        for name in ("servers", "users", "shared", "queues"):
            if name in tables:
                without_totals(tables[name], name)
            if name in ("servers", "users") and name in tables:  # a queue needs no more than a name
                without_sentences(tables[name])
        self._users, self._shared = tables["users"], tables.get("shared")
        self._servers = tables["servers"] if "servers" in tables else Table(self._users.file, SERVERS, ["name"], [[CLUSTER]], [1])
        self._shared_names = self._names_of_shared()
        self._matrices = {name: tables[name] for name in _MATRIX_OF.values() if name in tables}
        self._column_of = self._common_resources()
        self._resources = [*self._column_of, *self._shared_names]
        self._users.resources = [*self._column_of, *self._shared_names.values()]
        self._servers.resources = list(self._column_of.values())
        self._units = tables.get("units")
        self._unit_of = {} if self._units is None else _units(self._units, self._resources)
        self._queues = QueueTable(tables["queues"], self._resources, self._unit_of) if "queues" in tables else None
        names = self._servers.cells("name")
        self._limits, self._rules = tables.get("limits"), tables.get("rules")
        limits = None if self._limits is None else entries_of(self._limits, names, self._unit_of)
        known = self._users.cells("name"), names, self._resources, self._unit_of
        self._on = OnTable(tables["on"], *known) if "on" in tables else None
        self.data: object = {
            "resources": self._resources,
            **({} if self._units is None else {"units": self._unit_of}),
            "servers": self._server_entries(names),
            **({} if self._shared is None else {"shared": self._shared_amounts(self._shared)}),
            **({} if self._queues is None else {"queues": self._queues.entries}),
            **({} if limits is None else {"limits": limits}),
            **({} if self._rules is None else {"rules": self._rules.cells("rule")}),
            "users": self._user_entries(names),
        }

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is implausible in these tables, as sentences: columns of numbers that are read as attributes of servers."""
        data: Any = self.data
        asked = {clause.attribute for user in data["users"] for clause in parse(user.get("requires") or "")}
        conditions = (limit["servers"] for limit in data.get("limits", ()) if isinstance(limit.get("servers"), str))
        asked |= {clause.attribute for each in conditions for clause in parse(each)}
        quotas = (quota for queue in data.get("queues", ()) for quota in queue.get("quotas", ()))
        asked |= {clause.attribute for quota in quotas for clause in parse(quota.get("on") or "")}
        read = [column for column in self._attributes() if column not in asked and self._servers.is_numeric(column)]
        if not read:
            return ()
        one = len(read) == 1
        what = (
            "is a number and no user demands it: read as an attribute"
            if one
            else "are numbers and no user demands them: read as attributes"
        )
        return (f"{self._servers.file}: {joined([named(column) for column in read], _MOST)} {what}",)

    def _attributes(self) -> list[str]:
        taken = {*self._column_of.values(), *(spelled(name, self._servers.columns) for name in self._shared_names)}
        return [column for column in self._servers.columns if column not in SERVERS and column not in taken]

    def place(self, path: tuple[Any, ...]) -> str:
        """Return the file, line and column."""
        if path[:1] == ("queues",) and self._queues is not None:
            return self._queues.place(path)
        if path[:1] == ("limits",) and self._limits is not None:
            return self._limits.place(path[1] if len(path) > 1 else None, str(path[2]) if len(path) > 2 else None)
        if path[:1] == ("rules",) and self._rules is not None:
            return self._rules.place(path[1] if len(path) > 1 else None, "rule" if len(path) > 1 else None)
        if path[:1] == ("shared",) and self._shared is not None:
            row = [*self._shared_names].index(path[1]) if len(path) > 1 else None
            return self._shared.place(row, "capacity" if len(path) > 1 else None)
        if path[:1] == ("units",) and self._units is not None:
            names = [spelled(name, self._resources) for name in self._units.cells("name")]
            row = names.index(path[1]) if len(path) > 1 else None
            return self._units.place(row, "unit" if len(path) > 1 else None)
        if len(path) < 2 or path[0] not in ("servers", "users"):
            return {"servers": self._servers.file, "users": self._users.file}.get(path[0] if path else "", self._whole)
        kind, row, *rest = path
        if kind == "users" and rest[:1] == ["on"] and self._on is not None:
            return self._on.place(self._users.cells("name")[row], rest[1:])
        column = str(rest[1] if len(rest) > 1 and rest[0] != "servers" else rest[0]) if rest else None
        if kind == "users" and rest[:1] == ["demand"]:
            column = self._shared_names.get(str(column), column)
        table = self._servers if kind == "servers" else self._users
        if kind == "servers" and rest[:1] == ["capacity"]:
            column = self._column_of.get(str(column), column)
        matrix = {"rates": "rates", "weight": "weights"}.get(rest[0] if rest else "")
        if matrix in self._matrices:
            table = self._matrices[matrix]
            row = table.cells("user").index(self._users.cells("name")[row])
        return table.place(row, column)

    def literal(self, path: tuple[Any, ...]) -> str | None:
        """Return None: everything in a table is text."""
        return None

    def _names_of_shared(self) -> dict[str, str]:
        """Return the shared resources, each with its column of users."""
        if self._shared is None:
            return {}
        found: dict[str, str] = {}
        for row, name in enumerate(self._shared.cells("name")):
            if name in found:
                self._shared.wrong(row, f'"{name}" occurs twice; remove one', "name")
            found[name] = spelled(name, self._users.columns)
            if found[name] not in self._users:
                self._shared.wrong(row, f"{self._users.file} has no column for {named(name)}; add what a task needs of it", "name")
                del found[name]
        return found

    def _shared_amounts(self, table: Table) -> dict[str, float | str]:
        """Return how much there is of each shared resource."""
        cells = zip(table.cells("name"), table.plain("capacity"), strict=True)
        there = [(row, name, cell) for row, (name, cell) in enumerate(cells) if name in self._shared_names]
        return {name: table.amount(cell, row, "capacity", self._unit_of.get(name, "")) for row, name, cell in there}

    def _common_resources(self) -> dict[str, str]:
        """Return the resources of servers, each with its column of servers: the columns of users without a meaning of their own.

        Both tables must have them, in any case.
        """
        users, servers = self._users, self._servers
        there = [column for column in servers.columns if column not in SERVERS]
        free = [column for column in (*there, *USERS.columns) if spelled(column, users.columns) not in users]
        shared = {spelled(name, there) for name in self._shared_names} & set(there)
        for column in shared:
            for row, cell in enumerate(servers.cells(column)):
                if cell and not self._is_zero(cell):
                    message = f"{named(column)} is shared by the whole cluster, so no server has {brief(cell, 40)} of it; empty this column"
                    servers.wrong(row, message, column)
                    break
        asked = [column for column in users.columns if column not in USERS and column not in self._shared_names.values()]
        found: dict[str, str] = {}
        for column in asked:
            own = spelled(column, there)
            if own in found.values():
                users.wrong(None, f"another column is the resource {named(own)}, too; remove one", column)
            elif own in there and (text := only_text(users.cells(column))) and only_text(servers.cells(own)):
                what = f'the column holds text, such as "{brief(text, 40)}", here and in {servers.file}'
                users.wrong(None, f"{what}; rename both note if they are for people", column)
            elif own in there:
                found[column] = own
            else:
                word, _, resource = (part.strip() for part in column.casefold().partition(":"))
                hint = did_you_mean(column, free) or f"; a resource must be a column of {servers.file} too"
                message = f'there is no resource "{column}"{hint}'
                if only_text(users.cells(column)):
                    message += "; rename it note if it is for people"
                if word in AMOUNTS:
                    shown = f"{word}:{resource or next((each for each in asked if each in there), 'gpu')}"
                    message = (
                        f'a {word.replace("_", " ")} of resources belongs to a queue: put "{shown}" into the table queues, and name the '
                        'queue of each user in the column "queue" here'
                        + (', where "guarantee" counts tasks' if word == "guarantee" else "")
                    )
                users.wrong(None, message, column)
        if not asked and not shared and not self._shared_names:
            users.refuse(f"there is no column for a resource; add one for each, named as in {Path(servers.file).name}")
        if not found:
            self.mistakes.refuse()
        return found

    @staticmethod
    def _is_zero(cell: str) -> bool:
        read = numeral(cell)
        return read is not None and not float(read.plain)

    def _server_entries(self, names: list[str]) -> list[dict[str, Any]]:
        table = self._servers
        columns = [table.amounts(column, self._unit_of.get(r, "")) for r, column in self._column_of.items()]
        capacities = zip(*columns, strict=True) if columns else [()] * len(names)
        counts = table.numbers("count")
        attributes = self._attributes()
        values = zip(*(self._attribute_cells(a) for a in attributes), strict=True) if attributes else [()] * len(names)
        return [
            {
                "name": name,
                "capacity": dict(zip(self._column_of, capacity, strict=True)),
                "count": count,
                **({"hosts": hosts} if hosts else {}),
                "attributes": {a: value for a, value in zip(attributes, row, strict=True) if value},
            }
            for name, capacity, count, hosts, row in zip(names, capacities, counts, table.names("hosts"), values, strict=True)
        ]

    def _attribute_cells(self, column: str) -> list[str]:
        """Return the values of an attribute; where the table has decimal commas, numbers with a decimal point."""
        cells = self._servers.cells(column)
        if self._servers.decimal == "," and all(numeral(cell) for cell in cells if cell):
            return self._servers.plain(column)
        return cells

    def _user_entries(self, servers: list[str]) -> list[dict[str, Any]]:
        table = self._users
        names = table.cells("name")
        own_columns = {**{r: r for r in self._column_of}, **self._shared_names}
        demands = zip(*(table.amounts(column, self._unit_of.get(r, "")) for r, column in own_columns.items()), strict=True)
        numbers = {key: table.numbers(key) for key, column in USERS.columns.items() if column.kind in NUMBERS}
        entries: list[dict[str, Any]] = [
            {"name": name, "demand": dict(zip(self._resources, demand, strict=True)), **dict(zip(numbers, values, strict=True))}
            for name, demand, *values in zip(names, demands, *numbers.values(), strict=True)
        ]
        on = {} if self._on is None else self._on.entries
        for entry in entries:
            if entry["name"] in on:
                entry["on"] = on[entry["name"]]
        for entry, queue in zip(entries, table.cells("queue"), strict=True):
            if queue:
                entry["queue"] = queue
        for entry, owner in zip(entries, table.cells("owner"), strict=True):
            if owner:
                entry["owner"] = owner
        for entry, requires, confined in zip(entries, table.cells("requires"), table.names("servers"), strict=True):
            if requires:
                entry["requires"] = requires
            if confined:
                entry["servers"] = confined
        for key, columns in (("weight", self._resources), ("rates", servers), ("servers", servers)):
            matrix = _MATRIX_OF[key]
            if matrix in self._matrices:
                if key == "weight" and "weight" in table:
                    table.wrong(None, f"there are weights here and in {self._matrices[matrix].file}; remove one of them", "weight")
                for entry, values in zip(entries, aligned(self._matrices[matrix], names, columns, shares=key == "weight"), strict=True):
                    entry[key] = values if key != "servers" else self._allowed(entry, values)
        return entries

    def _allowed(self, entry: dict[str, Any], values: dict[str, float]) -> list[str]:
        """Return the servers that a row of eligibility allows, among those that the user's own row allows."""
        wrong = next((server for server, value in values.items() if value not in (0, 1)), None)
        if wrong is not None:
            table = self._matrices["eligibility"]
            row = table.cells("user").index(entry["name"])
            table.wrong(row, f"expected 1 (may run) or 0 (may not), found {exactly(values[wrong])}", wrong)
        return [server for server in entry.get("servers", values) if values.get(server, 1)]  # a server that does not exist is refused later


def _units(table: Table, resources: Sequence[str]) -> dict[str, str]:
    """Return the unit of each resource."""
    found: dict[str, str] = {}
    for row, (cell, unit) in enumerate(zip(table.cells("name"), table.cells("unit"), strict=True)):
        name = spelled(cell, resources)
        if name in found:
            table.wrong(row, f'"{name}" occurs twice; remove one', "name")
        found[name] = unit
    return found


def read(folder: Path) -> Instance:
    """Read an instance from a folder of CSV or Parquet tables.

    Raises
    ------
    InvalidInstance
        With the file, line and column.
    """
    return read_and_doubt(folder_source(folder))


def folder_source(folder: Path) -> Source:
    """Return the document that a folder of CSV or Parquet tables stands for. The names of files may be in any case."""
    there = tables_in(folder)
    suffix = ".parquet" if any(path.suffix.lower() == ".parquet" for paths in there.values() for path in paths) else ".csv"
    for name, paths in there.items():
        if len(paths) > 1:
            raise InvalidInstance(f"the folder {folder} holds {paths[0].name} and {paths[1].name}; remove one of them")
        if name in ("servers", "users") and not paths and not (name == "servers" and there["shared"]):
            taken = [path.name for others in there.values() for path in others]
            others = sorted(path.name for path in folder.iterdir() if path.name not in taken)
            hint = did_you_mean(name + suffix, others) or f"; it must hold servers{suffix} and users{suffix}"
            raise InvalidInstance(f"the folder {folder} holds no {name}{suffix}{hint}")
    return Tables(str(folder), {name: _reader(read_file, path, TABLES[name]) for name, paths in there.items() for path in paths})


def tables_in(folder: Path) -> dict[str, list[Path]]:
    """Return the files of each table in a folder: one whose name is spelled as that of the table, or else in another case."""
    there: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in SUFFIXES and path.is_file():
            there.setdefault(path.name.lower(), []).append(path)
    found: dict[str, list[Path]] = {}
    for name in TABLES:
        alike = [there.get(f"{name}{suffix}", []) for suffix in SUFFIXES]
        found[name] = [path for paths in alike for path in ([each for each in paths if each.name == each.name.lower()] or paths)]
    return found


def book_source(path: Path) -> Source:
    """Return the document that the sheets of a spreadsheet stand for. The names of sheets may be in any case."""
    book = read_book(path)
    needed = [name for name in TABLES if name in book or name == "users" or (name == "servers" and "shared" not in book)]
    return Tables(str(path), {name: partial(book.table, name, TABLES[name], others=TABLES) for name in needed})


def from_frames(frames: Mapping[str, object]) -> Instance:
    """Return the instance that pandas frames stand for, by the names of the tables.

    Raises
    ------
    InvalidInstance
        With the frame, the label of the row and the column.
    """
    from fairopt.tables.frames import from_frame

    return read_and_doubt(
        Tables("the frames", {name: _reader(from_frame, f"the frame {name}", frame, TABLES[name]) for name, frame in frames.items()})
    )


def _reader(read_one: Callable[..., Table], *arguments: object) -> Callable[[Mistakes], Table]:
    return lambda mistakes: read_one(*arguments, mistakes=mistakes)
