"""A folder of CSV tables.

===================  ==============================================================================================================
``servers.csv``      ``name``, a column per resource, optional ``count``; any other column is an attribute (an empty cell: without it)
``users.csv``        ``name``, a column per resource, optional ``weight``, ``queue`` (empty: the root), ``guarantee`` (tasks), ``tasks`` and
                     ``parallelism`` (empty or inf: no limit), ``requires``, and ``servers`` (names separated by ``|``; empty: all)
``queues.csv``       optional: the tree of queues; :mod:`fairopt.formats.queue_tables` describes it
``eligibility.csv``  optional: ``user``, a column per server, 1 where the user may run and 0 where not
``rates.csv``        optional: ``user``, a column per server, tasks on one server alone
``weights.csv``      optional: ``user``, a column per resource
===================  ==============================================================================================================

The resources are the columns of ``users.csv`` that have no other meaning. Matrices have a file each; their labels must be exactly the users
and the servers or resources, in any order. The tables follow the schema of YAML files: :mod:`fairopt.formats.document` has it, with the
values that are allowed.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "servers.csv").write_text("name,gpu,cpu,count,model\\nA,8,64,2,V100\\nB,4,32,,T4\\n")
...     _ = Path(folder, "users.csv").write_text("name,gpu,cpu,requires\\nalice,1,4,\\nbob,1,0,model = T4\\n")
...     read(Path(folder))
Instance(2 users, 3 servers in 2 rows, 2 resources: 20 gpu, 160 cpu; 1 user cannot run on every server)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairopt.errors import InvalidInstance
from fairopt.files import write_files
from fairopt.formats.cells import read_table, to_csv
from fairopt.formats.document import instance_from
from fairopt.formats.messages import Source
from fairopt.formats.queue_tables import LONGEST_CELL, QueueTable, check, columns_of, known, raw
from fairopt.instance import Instance
from fairopt.wording import did_you_mean, exactly

__all__ = ["folder_source", "read", "write"]

OF_SERVERS = ("name", "count")
OF_USERS = ("name", "weight", "queue", "guarantee", "tasks", "parallelism", "requires", "servers")
MATRICES = ("eligibility.csv", "rates.csv", "weights.csv")


class _Folder:
    """The tables as one document that knows the file, line and column of each part."""

    def __init__(self, folder: Path) -> None:
        for name in ("servers.csv", "users.csv"):
            if not (folder / name).is_file():
                others = sorted(path.name for path in folder.iterdir())
                hint = did_you_mean(name, others) or "; it must hold servers.csv and users.csv"
                raise InvalidInstance(f"the folder {folder} holds no {name}{hint}")
        self._folder = str(folder)
        self._servers = read_table(folder / "servers.csv", "name")
        self._users = read_table(folder / "users.csv", "name")
        self._matrices = {name: read_table(folder / name, "user") for name in MATRICES if (folder / name).exists()}
        self._resources = self._common_resources()
        self._queues = QueueTable(folder / "queues.csv", self._resources) if (folder / "queues.csv").exists() else None
        names = raw(self._servers, "name")
        self.data: object = {
            "resources": self._resources,
            "servers": self._server_entries(names),
            **({} if self._queues is None else {"queues": self._queues.entries}),
            "users": self._user_entries(names),
        }

    def place(self, path: tuple[Any, ...]) -> str:
        """Return the file, line and column."""
        if path[:1] == ("queues",) and self._queues is not None:
            return self._queues.place(path)
        if len(path) < 2 or path[0] not in ("servers", "users"):
            return {"servers": self._servers.file, "users": self._users.file}.get(path[0] if path else "", self._folder)
        kind, row, *rest = path
        column = str(rest[1] if len(rest) > 1 and rest[0] != "servers" else rest[0]) if rest else None
        table = self._servers if kind == "servers" else self._users
        matrix = {"rates": "rates.csv", "weight": "weights.csv"}.get(rest[0] if rest else "")
        if matrix in self._matrices:
            table = self._matrices[matrix]
            user = self._users.rows[row][self._users.columns.index("name")]
            row = [cells[0] for cells in table.rows].index(user)
        return table.place(row, column)

    def literal(self, path: tuple[Any, ...]) -> str | None:
        """Return None: everything in a table is text."""
        return None

    def _common_resources(self) -> list[str]:
        """Return the resources: the columns of users.csv without a meaning of their own, which servers.csv must have too."""
        resources = [column for column in self._users.columns if column not in OF_USERS]
        if not resources:
            self._users.refuse("there is no column for a resource; add one for each, named as in servers.csv")
        for column in resources:
            if column in OF_SERVERS or column not in self._servers.columns:
                choices = [c for c in self._servers.columns if c not in OF_SERVERS] + list(OF_USERS)
                hint = did_you_mean(column, choices) or f"; a resource must be a column of {self._servers.file} too"
                self._users.refuse(f'there is no resource "{column}"{hint}', None, column)
        return resources

    def _server_entries(self, names: list[str]) -> list[dict[str, Any]]:
        table = self._servers
        capacities = zip(*(table.amounts(r) for r in self._resources), strict=True)
        counts = table.numbers("count", empty=1.0)
        attributes = [column for column in table.columns if column not in OF_SERVERS and column not in self._resources]
        values = zip(*(table.cells(a) for a in attributes), strict=True) if attributes else [()] * len(names)
        return [
            {
                "name": name,
                "capacity": dict(zip(self._resources, capacity, strict=True)),
                "count": count,
                "attributes": {a: value for a, value in zip(attributes, row, strict=True) if value},
            }
            for name, capacity, count, row in zip(names, capacities, counts, values, strict=True)
        ]

    def _user_entries(self, servers: list[str]) -> list[dict[str, Any]]:
        table = self._users
        names = raw(table, "name")
        demands = zip(*(table.amounts(r) for r in self._resources), strict=True)
        weights, endless = table.numbers("weight", empty=1.0), float("inf")
        tasks, at_once = table.numbers("tasks", empty=endless), table.numbers("parallelism", empty=endless)
        guarantees = table.numbers("guarantee", empty=0.0)
        entries: list[dict[str, Any]] = [
            {
                "name": name,
                "demand": dict(zip(self._resources, demand, strict=True)),
                "weight": weight,
                "guarantee": guarantee,
                "tasks": number,
                "parallelism": servers_at_once,
            }
            for name, demand, weight, guarantee, number, servers_at_once in zip(
                names, demands, weights, guarantees, tasks, at_once, strict=True
            )
        ]
        queues = {entry["name"] for entry in self._queues.entries} if self._queues is not None else set()
        for entry, queue in zip(entries, raw(table, "queue"), strict=True):
            if queue.strip():
                entry["queue"] = known(queue, queues)
        for entry, requires, confined in zip(entries, table.cells("requires"), table.cells("servers"), strict=True):
            if requires:
                entry["requires"] = requires
            if confined:
                entry["servers"] = [part.strip() for part in confined.split("|")]
        for key, matrix, columns in (
            ("weight", "weights.csv", self._resources),
            ("rates", "rates.csv", servers),
            ("servers", "eligibility.csv", servers),
        ):
            if matrix in self._matrices:
                if key == "weight" and "weight" in table.columns:
                    table.refuse(f"there are weights here and in {self._matrices[matrix].file}; remove one of them", None, "weight")
                for entry, values in zip(entries, self._matrices[matrix].aligned(names, columns), strict=True):
                    entry[key] = values if key != "servers" else self._allowed(entry, values)
        return entries

    def _allowed(self, entry: dict[str, Any], values: dict[str, float]) -> list[str]:
        """Return the servers that a row of eligibility.csv allows, among those that users.csv allows."""
        wrong = next((server for server, value in values.items() if value not in (0, 1)), None)
        if wrong is not None:
            table = self._matrices["eligibility.csv"]
            row = [cells[0] for cells in table.rows].index(entry["name"])
            table.refuse(f"expected 1 (may run) or 0 (may not), found {exactly(values[wrong])}", row, wrong)
        return [server for server in entry.get("servers", values) if values.get(server, 1)]  # a server that does not exist is refused later


def read(folder: Path) -> Instance:
    """Read an instance from a folder of CSV tables.

    Raises
    ------
    InvalidInstance
        With the file, line and column.
    """
    return instance_from(_Folder(folder))


def folder_source(folder: Path) -> Source:
    """Return the document that a folder of CSV tables stands for."""
    return _Folder(folder)


def write(instance: Instance, folder: Path) -> None:
    """Write an instance as a folder of CSV tables, and remove the tables of an earlier instance that it does not need.

    Raises
    ------
    InvalidInstance
        These tables cannot hold a label, such as a resource called "weight"; YAML can hold any.
    """
    check(instance, folder)
    queues = [queue.name for queue in instance.queues]
    for kind, labels in (("resource", instance.resources), ("server", instance.servers), ("user", instance.users), ("queue", queues)):
        for label in labels:
            if kind == "resource" and label in (*OF_SERVERS, *OF_USERS):
                raise InvalidInstance(
                    f'{folder}: a resource cannot be called "{label}" in CSV tables, where that is a column; save as .yaml'
                )
            if "\0" in label:
                raise InvalidInstance(f"{folder}: the {kind} label {label!r} holds a null character; save as .yaml")
    document = instance.to_dict()
    per_resource, rates = instance.weights.ndim == 2, instance.rates_per_server
    confined = [user.get("servers") for user in document["users"]]
    # An empty cell of "servers" means all servers, so it cannot mean none; and names there cannot contain "|" or begin or end with a space.
    fits = not any("|" in name or name != name.strip() for name in instance.servers)
    by_name = all(names is None or (fits and names and len("|".join(names)) < LONGEST_CELL) for names in confined)
    servers, users = document["servers"], document["users"]
    texts = {
        "servers.csv": _by_column(
            {
                "name": [server["name"] for server in servers],
                **{r: [server["capacity"][r] for server in servers] for r in instance.resources},
                **_optional("count", [server.get("count", "") for server in servers]),
            }
        ),
        "users.csv": _by_column(
            {
                "name": [user["name"] for user in users],
                **{r: [user["demand"][r] for user in users] for r in instance.resources},
                **_optional("weight", [] if per_resource else [user.get("weight", "") for user in users]),
                **_optional("queue", [user.get("queue", "") for user in users]),
                **_optional("guarantee", [user.get("guarantee", "") for user in users]),
                **_optional("tasks", [user.get("tasks", "") for user in users]),
                **_optional("parallelism", [user.get("parallelism", "") for user in users]),
                **_optional("servers", ["|".join(names or ()) for names in confined] if by_name else []),
            }
        ),
    }
    if instance.queues:
        texts["queues.csv"] = _by_column(columns_of(document["queues"], instance.resources))
    for name, needed, labels, matrix in (
        ("eligibility.csv", not by_name, instance.servers, instance.eligibility.astype(int)),
        ("rates.csv", rates is not None, instance.servers, rates),
        ("weights.csv", per_resource, instance.resources, instance.weights),
    ):
        if needed and matrix is not None:
            texts[name] = to_csv(["user", *labels], ([user, *row] for user, row in zip(instance.users, matrix.tolist(), strict=True)))
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        reason = error.strerror
        if folder.exists():
            reason = "there is a file of this name; choose another or remove it"
        elif not folder.parent.is_dir():
            reason = f"there is no folder {folder.parent}; make it first"
        raise InvalidInstance(f"{folder} cannot be made a folder: {reason}") from None
    write_files({folder / name: text for name, text in texts.items()})
    for name in {*MATRICES, "queues.csv"} - set(texts):
        (folder / name).unlink(missing_ok=True)


def _optional(name: str, cells: list[Any]) -> dict[str, list[Any]]:
    """Return a column, or none if all its cells are empty."""
    return {name: cells} if any(cell != "" for cell in cells) else {}


def _by_column(columns: dict[str, list[Any]]) -> str:
    return to_csv(list(columns), zip(*columns.values(), strict=True))
