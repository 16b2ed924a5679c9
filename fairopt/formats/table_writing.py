"""An instance as tables, written: a folder of CSV or Parquet files, or an .xlsx workbook; :mod:`fairopt.formats.tables` reads them.

Text is written as it is, and every number with all of its digits. What a table cannot hold is refused: a name that begins or ends with a
space, or a resource whose name is that of another column, or of a comment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairopt.errors import InvalidInstance
from fairopt.files import write_files
from fairopt.formats import limit_tables, on_tables
from fairopt.formats.notes_in_tables import is_total
from fairopt.formats.queue_tables import LONGEST_CELL, check, columns_of
from fairopt.formats.tables import SERVERS, TABLES, USERS
from fairopt.instance import Instance
from fairopt.instance.attributes import text_of
from fairopt.instance.fractions import plain
from fairopt.tables.schema import is_comment, spelled
from fairopt.wording import brief, found

__all__ = ["columns_of_tables", "write", "write_workbook"]

_EXACT = 2**53  # whole numbers below it are floats without loss


def write(instance: Instance, folder: Path) -> None:
    """Write an instance as a folder of tables, and remove the tables of an earlier instance that it does not need.

    They are Parquet tables if the name of the folder ends in .parquet or if such tables are there, else CSV.

    Raises
    ------
    InvalidInstance
        These tables cannot hold a label, such as a resource called "weight"; YAML can hold any.
    """
    parquet = folder.suffix.lower() == ".parquet" or (folder / "servers.parquet").exists()
    tables = columns_of_tables(instance, folder, "Parquet tables" if parquet else "CSV tables", LONGEST_CELL)
    contents: dict[Path, str | bytes] = {}
    if parquet:
        from fairopt.tables.parquet import to_parquet

        contents = {folder / f"{name}.parquet": to_parquet(names, columns) for name, (names, columns) in tables.items()}
    else:
        from fairopt.tables.csv_files import to_csv

        contents = {folder / f"{name}.csv": to_csv(names, zip(*columns, strict=True)) for name, (names, columns) in tables.items()}
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        reason = error.strerror
        if folder.exists():
            reason = "there is a file of this name; choose another or remove it"
        elif not folder.parent.is_dir():
            reason = f"there is no folder {folder.parent}; make it first"
        raise InvalidInstance(f"{folder} cannot be made a folder: {reason}") from None
    written, other = (".parquet", ".csv") if parquet else (".csv", ".parquet")
    for name in tables:
        if (folder / f"{name}{other}").exists():
            raise InvalidInstance(
                f"{folder} holds {name}{other}, which would stand beside {name}{written}; remove it, or choose another folder"
            )
    write_files(contents)
    for path in folder.iterdir():  # tables of an earlier instance, in any case
        is_table = path.stem.lower() in TABLES and path.suffix.lower() == written and path.is_file()
        if is_table and not any(path.samefile(each) for each in contents):
            path.unlink()


def write_workbook(instance: Instance, path: Path) -> None:
    """Write an instance as an .xlsx workbook.

    Raises
    ------
    SolverUnavailable, InvalidInstance
        openpyxl is not installed. A workbook cannot hold a label, or so many rows.
    """
    from fairopt.tables.workbooks import LONGEST_TEXT, require_openpyxl, to_xlsx

    require_openpyxl(f"writing {path}")
    tables = columns_of_tables(instance, path, "a workbook", LONGEST_TEXT // 7)  # a character may become seven
    write_files({path: to_xlsx({name: (names, zip(*columns, strict=True)) for name, (names, columns) in tables.items()}, str(path))})


def columns_of_tables(instance: Instance, place: Path, what: str, longest: int) -> dict[str, tuple[list[str], list[list[Any]]]]:
    """Return the tables of an instance by name: the names of the columns, and the columns; an empty text is an empty cell.

    ``longest`` is how long a list of servers in a cell may be.

    Raises
    ------
    InvalidInstance
        A table cannot hold a label.
    """
    check(instance, place, longest)
    for rule in instance.rules:
        if "\0" in rule.text or len(rule.text) >= longest:
            raise InvalidInstance(f'{place}: the rule "{brief(rule.text)}" does not fit into a cell; save as .yaml')
    limit_tables.check(instance, place, longest)
    on_tables.check(instance, place, longest)
    queues = [queue.name for queue in instance.queues]
    for kind, labels in (("resource", instance.resources), ("server", instance.servers), ("user", instance.users), ("queue", queues)):
        for label in labels:
            if kind == "resource" and _has_meaning(label):
                raise InvalidInstance(f'{place}: a resource cannot be called "{label}" in {what}, where that is a column; save as .yaml')
            if "\0" in label or label != label.strip():
                why = "holds a null character" if "\0" in label else "begins or ends with a space, which means nothing in a table"
                raise InvalidInstance(f"{place}: the {kind} label {label!r} {why}; save as .yaml")
    for kind, labels in (("server", instance.servers), ("user", instance.users), ("queue", queues)):
        if len(labels) > 1 and is_total(labels[-1]):
            raise InvalidInstance(f'{place}: in {what}, the last {kind}, "{labels[-1]}", would be taken for a total; save as .yaml')
    document = instance.to_dict()
    _check_facts(instance, document, place, what, longest)
    per_resource, rates = instance.weights.ndim == 2, instance.given("rates_per_server")
    confined = [user.get("servers") for user in document["users"]]
    # An empty cell of "servers" means all servers, so it cannot mean none; and names there cannot contain "|" or begin or end with a space.
    fits = not any("|" in name or name != name.strip() for name in instance.servers)
    by_name = all(names is None or (fits and names and len("|".join(names)) < longest) for names in confined)
    servers, users = document["servers"], document["users"]
    tables = {
        "servers": _table(
            {
                "name": [server["name"] for server in servers],
                **{r: [server["capacity"][r] for server in servers] for r in instance.server_resources},
                **_optional("count", [server.get("count", "" if instance.server_resources else 1) for server in servers]),
                **_optional("hosts", [server.get("hosts", "") for server in servers]),
                **_attribute_columns(servers),
            }
        ),
        "users": _table(
            {
                "name": [user["name"] for user in users],
                **{r: [user["demand"][r] for user in users] for r in instance.resources},
                **_optional("weight", [] if per_resource else [user.get("weight", "") for user in users]),
                **_optional("queue", [user.get("queue", "") for user in users]),
                **_optional("owner", [user.get("owner", "") for user in users]),
                **_optional("guarantee", [user.get("guarantee", "") for user in users]),
                **_optional("tasks", [user.get("tasks", "") for user in users]),
                **_optional("parallelism", [user.get("parallelism", "") for user in users]),
                **_optional("servers", ["|".join(names or ()) for names in confined] if by_name else []),
            }
        ),
    }
    if shared := document.get("shared"):
        tables["shared"] = _table({"name": list(shared), "capacity": list(shared.values())})
    units = document.get("units", {})
    if units:
        tables["units"] = _table({"name": list(units), "unit": list(units.values())})
    if instance.queues:
        tables["queues"] = _table(columns_of(document["queues"], instance.resources))
    if instance.limits:
        tables["limits"] = _table(limit_tables.columns_of(document["limits"]))
    if any("on" in user for user in users):
        tables["on"] = _table(on_tables.columns_of(users, instance.resources))
    if instance.rules:
        tables["rules"] = _table({"rule": document["rules"]})
    for name, needed, labels, matrix in (
        ("eligibility", not by_name, instance.servers, instance.eligibility.astype(int)),
        ("rates", rates is not None, instance.servers, rates),
        ("weights", per_resource, instance.resources, instance.given("weights")),
    ):
        if needed and matrix is not None:
            cells = [[plain(value) for value in column] for column in matrix.T.tolist()] if matrix.dtype == object else matrix.T.tolist()
            tables[name] = (["user", *labels], [list(instance.users), *cells])
    return tables


def _has_meaning(resource: str) -> bool:
    """Return whether a column of this name is read as something else."""
    return is_comment(resource) or any(spelled(resource, schema.columns) in schema for schema in (SERVERS, USERS))


def _check_facts(instance: Instance, document: dict[str, Any], place: Path, what: str, longest: int) -> None:
    """Refuse hosts, attributes and owners that a cell cannot hold: text with spaces around it, or none, or too much of it."""

    def check_cell(whose: str, text: str) -> None:
        if not text or text != text.strip() or "\0" in text or len(text) >= longest:
            raise InvalidInstance(f"{place}: {whose} {found(text)}, which a cell cannot hold; save as .yaml")

    for user in document["users"]:
        check_cell(f'the owner of "{user["name"]}" is', user.get("owner", "-"))
    for server in document["servers"]:
        of_server = f'of server "{server["name"]}"'
        check_cell(f"the hosts {of_server} are", server.get("hosts", "-"))
        for name, value in server.get("attributes", {}).items():
            if is_comment(name) or spelled(name, SERVERS.columns) in SERVERS or name in instance.resources:
                raise InvalidInstance(
                    f'{place}: an attribute cannot be called "{name}" in {what}, where that is another column; save as .yaml'
                )
            check_cell(f"the name of an attribute {of_server} is", name)
            check_cell(f'the attribute "{name}" {of_server} is', str(value))


def _attribute_columns(servers: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return a column for each attribute; as text where a number would lose digits."""
    names = dict.fromkeys(name for server in servers for name in server.get("attributes", ()))
    return {name: [_attribute(server.get("attributes", {}).get(name, "")) for server in servers] for name in names}


def _attribute(value: Any) -> Any:
    plain_number = isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < _EXACT)
    return value if plain_number else text_of(value)


def _optional(name: str, cells: list[Any]) -> dict[str, list[Any]]:
    """Return a column, or none if all its cells are empty."""
    return {name: cells} if any(cell != "" for cell in cells) else {}


def _table(columns: dict[str, list[Any]]) -> tuple[list[str], list[list[Any]]]:
    return list(columns), list(columns.values())
