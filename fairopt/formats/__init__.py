"""Instances in files: one schema in YAML or JSON, or a folder of CSV tables.

===========================  ==================================================================================================
``cluster.yaml``, ``.yml``   one document, for people: :mod:`fairopt.formats.document` describes it
``cluster.json``             the same document, for programs
``cluster/``                 ``servers.csv``, ``users.csv`` and ``queues.csv``, for spreadsheets: :mod:`fairopt.formats.tables`
``jobs.csv``, ``.parquet``   a trace, a row per job, for simulations: :mod:`fairopt.formats.traces`; `load_trace` reads it
===========================  ==================================================================================================

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

import os
from pathlib import Path
from typing import Any, NoReturn

from fairopt.errors import InvalidInstance
from fairopt.instance import Instance
from fairopt.trace import Trace

__all__ = ["load", "load_trace", "save", "schema"]

DOCUMENTS = (".yaml", ".yml", ".json")


def load(path: str | os.PathLike[str]) -> Instance:
    """Read an instance from a YAML or JSON file or from a folder of CSV tables.

    Parameters
    ----------
    path : str or path
        ``*.yaml``, ``*.yml`` or ``*.json``, or a folder that holds ``servers.csv`` and ``users.csv``, and where
        users are in queues ``queues.csv``.

    Raises
    ------
    InvalidInstance
        The message has the file and line, the user or server, what is wrong, and what to do.
    """
    path = Path(path)
    if path.is_dir() and path.suffix.lower() not in DOCUMENTS:
        from fairopt.formats import tables

        return tables.read(path)
    if path.suffix.lower() in DOCUMENTS:
        from fairopt.formats import document, syntax

        with syntax.without_collector():
            return document.instance_from(syntax.read(path))
    if path.exists() or path.suffix:
        _refuse(path, "read")
    raise InvalidInstance(f"there is no file or folder {path}; give an instance file ({', '.join(DOCUMENTS)}) or a folder of CSV tables")


def load_trace(
    path: str | os.PathLike[str],
    *,
    cluster: Instance | str | os.PathLike[str] | None = None,
    events: str | os.PathLike[str] | None = None,
    lenient: bool = False,
) -> Trace:
    """Read a trace from a table of jobs, CSV or Parquet: :mod:`fairopt.formats.traces` describes it.

    Parameters
    ----------
    path : str or path
    cluster : Instance, or the path of one, optional
        Needed if jobs say where they may run: the servers for the column ``servers``, the path of the file for ``requires``.
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

    file = None if cluster is None or isinstance(cluster, Instance) else Path(cluster)
    servers = load(file) if file is not None else cluster if isinstance(cluster, Instance) else None
    attributes = None if file is None else traces.server_attributes(file)
    return traces.read(Path(path), servers, attributes, None if events is None else Path(events), lenient=lenient)


def save(instance: Instance, path: str | os.PathLike[str]) -> None:
    """Write an instance such that ``load`` returns an equal one. An existing file is replaced only when everything is written.

    Parameters
    ----------
    instance : Instance
    path : str or path
        ``*.yaml``, ``*.yml`` or ``*.json`` for one file; an existing folder, or a path without suffix, for a folder of CSV tables.

    Raises
    ------
    InvalidInstance
        When the format cannot hold the instance (the message names one that can) or the file cannot be written.
    """
    path = Path(path)
    queues = [name for queue in instance.queues for name in (queue.name, *(quota.name for quota in queue.quotas))]
    for label in (*instance.users, *instance.servers, *instance.resources, *queues):
        if not label.isascii() and label != label.encode(errors="replace").decode():
            raise InvalidInstance(f"{path}: the label {label!a} is not text that a file can hold (half of a surrogate pair); rename it")
    if path.suffix.lower() in DOCUMENTS:
        from fairopt.formats import syntax

        syntax.write(instance.to_dict(), path)
    elif path.is_dir() or not path.suffix:
        from fairopt.formats import tables

        tables.write(instance, path)
    else:
        _refuse(path, "write")


def schema() -> dict[str, Any]:
    """Return the JSON Schema of instance files, for editors and other programs.

    >>> sorted(schema()["properties"])
    ['description', 'queues', 'resources', 'servers', 'title', 'users']
    """
    from fairopt.formats import entries

    return entries.schema()


def _refuse(path: Path, verb: str) -> NoReturn:
    hint = f"; give the folder that it is in, {path.parent}" if path.suffix.lower() == ".csv" else ""
    accepted = f"{', '.join(DOCUMENTS)}, or a folder of servers.csv and users.csv"
    raise InvalidInstance(f"{path}: fairopt does not {verb} this kind of file; it takes {accepted}{hint}")
