"""Instances in files: one schema in YAML or JSON, a folder of CSV or Parquet tables, or a workbook.

===========================  ==================================================================================================
``cluster.yaml``, ``.yml``   one document, for people: :mod:`fairopt.formats.document` describes it
``cluster.json``             the same document, for programs
``cluster/``                 ``servers.csv``, ``users.csv`` and ``queues.csv``, for spreadsheets: :mod:`fairopt.formats.tables`
``cluster.parquet/``         the same tables as Parquet files, for programs
``cluster.xlsx``             the same tables as sheets of a workbook (needs openpyxl: the extra ``tables``)
``cluster.ods``              the same, only read
``jobs.csv``                 a trace, a row per job, for simulations; also ``.csv.gz``, ``.parquet``, ``.xlsx`` or ``.ods``:
                             :mod:`fairopt.formats.traces`; `load_trace` reads it
===========================  ==================================================================================================

The modules of this room:

===================  ========================================================================================
``syntax``           YAML and JSON text as plain data and back, with the line of every part
``yaml_core``        YAML by the core schema of version 1.2, as nodes that know their lines, and the way back
``json_places``      the place in a JSON text to which a path of keys and positions leads
``as_written``       numbers that floats would round, as they are written: ``1/3``, long decimals
``units``            quantities such as ``500m`` and ``64GiB`` as numbers
``entries``          the entries of an instance file as pydantic models, and their JSON Schema
``document``         the schema of instance files, and the instance that a document describes
``document_queues``  the queues of a document: tree, guarantees, limits and quotas
``document_limits``  the limits and rules of a document
``document_on``      ``on`` under a user: what its task takes, and how much work it does, on some servers
``changes``          changes to a document by the names in it: ``users.vision.weight=3``
``overrides``        a change to one server where an entry of ``on`` is about several
``removals``         what a removed queue, server or resource takes with it
``misspelt``         a hint where a change adds a resource that nobody demands
``doubts``           what is allowed in a file and yet implausible
``messages``         what is wrong with a document: file, line, user or server, and what to do
``tables``           an instance read from a folder of tables, a workbook or frames
``table_writing``    an instance written as a folder of tables or as a workbook
``queue_tables``     ``queues.csv``: a row for each queue, and one for each of its quotas
``limit_tables``     ``limits.csv``: a row for each named limit
``on_tables``        ``on.csv``: a row for what a task of a user takes on some servers
``notes_in_tables``  rows that are meant for people, such as totals: each is a mistake, named once
``frames``           an instance as frames of pandas, and arrays with labels for xarray
``traces``           traces of jobs, and of events, in tables of any kind of file
``allocations``      an allocation read from a table: tasks of each user on each server
``results``          tables of results as CSV, Parquet, workbooks, Markdown or LaTeX
``throughputs``      Gavel's table: the speeds of jobs on kinds of accelerators
``xml_elements``     XML of other programs as elements with their lines
===================  ========================================================================================

``save`` is the inverse of ``load``: ``load(path) == instance`` after ``save(instance, path)``, to the last bit of every number.

>>> import tempfile
>>> from pathlib import Path
>>> from fairopt.instance import Instance
>>> instance = Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], resources=["cpu", "memory"])
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "drf.yaml")
...     save(instance, path)
...     print(path.read_text(), load(path) == instance)
resources: [cpu, memory]
servers:
- name: server-1
  capacity: {cpu: 9, memory: 18}
users:
- name: A
  demand: {cpu: 1, memory: 4}
- name: B
  demand: {cpu: 3, memory: 1}
 True
"""

# The modules that read and write need pydantic and yaml. They are imported when called, so that ``import fairopt`` stays light.

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from fairopt.errors import InvalidInstance
from fairopt.instance import Instance

if TYPE_CHECKING:
    from fairopt.formats.messages import Source
    from fairopt.trace import Trace

__all__ = ["load", "load_trace", "save", "schema", "source_of"]


DOCUMENTS = (".yaml", ".yml", ".json")
FILES = (*DOCUMENTS, ".xlsx", ".ods")
"""The endings of instances that are one file, of which ``.ods`` is only read."""
WRITTEN = tuple(each for each in FILES if each != ".ods")


def load(path: str | os.PathLike[str], *, changes: Mapping[str, Any] | Sequence[str] = ()) -> Instance:
    """Read an instance from a YAML or JSON file, a workbook, or a folder of CSV or Parquet tables.

    What is allowed and yet implausible, such as a task that no server holds, is logged as a warning of the logger ``fairopt``:
    :mod:`fairopt.instance.doubts` and :mod:`fairopt.formats.doubts` list it.

    Parameters
    ----------
    path : str or path
        ``*.yaml``, ``*.yml``, ``*.json``, an ``*.xlsx`` or ``*.ods`` spreadsheet with the sheets servers and users, or a folder that holds
        ``servers.csv`` and ``users.csv`` (or ``.parquet``); where users are in queues, also the table queues.
    changes : mapping or sequence of str, optional
        Changes to the instance, by names: ``{"users.vision.weight": 3}``, or ``["servers.new.count+=2"]`` as on the command line
        (:mod:`fairopt.formats.changes`). The file stays as it is. A changed weight that has no effect in the tree of queues is warned of,
        with the weight that decides.

    Raises
    ------
    InvalidInstance
        The message has the file and line, the user or server, what is wrong, and what to do.
    SolverUnavailable
        A workbook needs openpyxl.
    """
    from fairopt.formats import doubts, syntax

    with syntax.without_collector():
        return doubts.read_and_doubt(source_of(Path(path), changes))


def source_of(path: Path, changes: Mapping[str, Any] | Sequence[str] = ()) -> Source:
    """Return the document that a file or folder holds, with changes."""
    source: Source
    if path.is_dir() and path.suffix.lower() not in FILES:
        from fairopt.formats.tables import folder_source

        source = folder_source(path)
    elif path.suffix.lower() in DOCUMENTS:
        from fairopt.formats.syntax import read

        source = read(path)
    elif path.suffix.lower() in FILES:
        from fairopt.formats.tables import book_source

        source = book_source(path)
    elif path.exists() or path.suffix:
        _refuse(path, "read")
    else:
        raise InvalidInstance(
            f"there is no file or folder {path}; give an instance file ({', '.join(FILES)}) or a folder of CSV or Parquet tables"
        )
    if not changes:
        return source
    from fairopt.formats.changes import Changed

    return Changed(source, changes)


def load_trace(
    path: str | os.PathLike[str],
    *,
    cluster: Instance | str | os.PathLike[str] | None = None,
    changes: Mapping[str, Any] | Sequence[str] = (),
    events: str | os.PathLike[str] | None = None,
    lenient: bool = False,
) -> Trace:
    """Read a trace from a table of jobs, of any kind of file: :mod:`fairopt.formats.traces` describes it.

    Parameters
    ----------
    path : str or path
    cluster : Instance, or the path of one, optional
        Needed if jobs say where they may run: its servers for the column ``servers``, their attributes for ``requires``.
    changes : mapping or sequence of str, optional
        Changes to that cluster, as for `load`, where its path is given.
    events : str or path, optional
        A table of users that join or leave and of servers that are added or removed.
    lenient : bool
        Leave bad rows out and list them in ``trace.left_out``, instead of refusing the table.

    Raises
    ------
    InvalidInstance
        The message has the file and line, what is wrong, and what to do.
    """
    from fairopt.formats import traces

    if cluster is not None and not isinstance(cluster, Instance):
        cluster = load(cluster, changes=changes)
    return traces.read(Path(path), cluster, None if events is None else Path(events), lenient=lenient)


def save(instance: Instance, path: str | os.PathLike[str]) -> None:
    """Write an instance such that ``load`` returns an equal one. An existing file is replaced only when everything is written.

    Parameters
    ----------
    instance : Instance
    path : str or path
        ``*.yaml``, ``*.yml``, ``*.json`` or ``*.xlsx`` for one file; an existing folder, or a path without suffix, for a folder of CSV
        tables; ``*.parquet`` for a folder of Parquet tables, which an existing folder with ``servers.parquet`` is too.

    Raises
    ------
    InvalidInstance
        When the format cannot hold the instance (the message names one that can) or the file cannot be written.
    SolverUnavailable
        A workbook needs openpyxl.
    """
    path = Path(path)
    queues = [name for queue in instance.queues for name in (queue.name, *(quota.name for quota in queue.quotas))]
    queues += [name for limit in instance.limits for name in (limit.name, *([limit.servers] if isinstance(limit.servers, str) else []))]
    facts = [text for each in instance.attributes for pair in each.items() for text in pair if isinstance(text, str)]
    facts += [owner for owner in instance.owners if owner is not None]
    for label in itertools.chain(instance.users, instance.servers, instance.resources, queues, facts, *instance.hosts):
        if not label.isascii() and label != label.encode(errors="replace").decode():
            raise InvalidInstance(f"{path}: the label {label!a} is not text that a file can hold (half of a surrogate pair); rename it")
    if path.suffix.lower() in DOCUMENTS:
        from fairopt.formats import syntax

        syntax.write(instance.to_dict(), path)
    elif path.suffix.lower() == ".xlsx":
        from fairopt.formats import table_writing

        table_writing.write_workbook(instance, path)
    elif path.is_dir() or path.suffix.lower() in ("", ".parquet"):
        from fairopt.formats import table_writing

        table_writing.write(instance, path)
    else:
        _refuse(path, "write")


def schema() -> dict[str, Any]:
    """Return the JSON Schema of instance files, for editors and other programs.

    >>> sorted(schema()["properties"])
    ['description', 'limits', 'queues', 'resources', 'rules', 'servers', 'shared', 'title', 'units', 'users']
    """
    from fairopt.formats import entries

    return entries.schema()


def _refuse(path: Path, verb: str) -> NoReturn:
    kind = path.suffix.lower()
    hint = f"; give the folder that it is in, {path.parent}" if kind in (".csv", ".parquet") else ""
    hint = hint or ("; save it as .xlsx" if kind in (".xls", ".xlsm", ".xlsb", ".ods") else "")
    accepted = f"{', '.join(FILES if verb == 'read' else WRITTEN)}, or a folder of servers.csv and users.csv"
    raise InvalidInstance(f"{path}: fairopt does not {verb} this kind of file; it takes {accepted}{hint}")
