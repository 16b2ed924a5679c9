"""What a task of a user takes, and how much work it does, on some servers: ``on`` under a user of an instance file.

:mod:`fairopt.formats.document` has the schema, and :mod:`fairopt.instance.by_server` the meaning.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.formats.as_written import AsWritten
from fairopt.formats.entries import Document, On
from fairopt.formats.messages import Path, Source, check_known, check_unique, refuse, servers_meeting
from fairopt.instance import BoolArray
from fairopt.instance.fractions import fractions_of
from fairopt.instance.requirements import Attributes
from fairopt.tables import Mistakes

__all__ = ["by_server"]


def by_server(
    source: Source,
    document: Document,
    demands: Any,
    resources: dict[str, int],
    attributes: Attributes,
    numbers: AsWritten,
    mistakes: Mistakes,
) -> tuple[Any, Any]:
    """Return demands and speeds as an instance takes them: by server where some user says ``on``, else as they are, and None.

    Parameters
    ----------
    demands : array (users, resources)
        What users demand wherever nothing else is said.
    """
    users, servers = document.users, {server.name: i for i, server in enumerate(document.servers)}
    if not any(user.on for user in users):
        return demands, None
    of_pairs = np.repeat(demands[:, None, :], len(servers), axis=1)
    speeds: Any = np.ones((len(users), len(servers)))
    for n, user in enumerate(users):
        told = np.full(len(servers), -1)
        for j, override in enumerate(user.on):
            path = ("users", n, "on", j)
            with mistakes:
                if not override.model_fields_set & {"demand", "speed"}:
                    refuse(source, path, "neither a demand nor a speed is given; give one of them, or remove the entry")
                rows = _rows(source, path, override, servers, attributes)
                if (told[rows] >= 0).any():
                    i = int(np.flatnonzero(rows & (told >= 0))[0])
                    other = user.on[told[i]].servers
                    said = f'number {told[i] + 1} ("{other if isinstance(other, str) else ", ".join(other)}")'
                    refuse(
                        source, path, f'"{document.servers[i].name}" is in two entries, this one and {said}; name each server in one entry'
                    )
                told[rows] = j
                check_known(source, (*path, "demand"), override.demand, resources, "resource")
                for name, amount in override.demand.items():
                    of_pairs = _with(of_pairs, (n, rows, resources[name]), numbers.at(*path, "demand", name, given=amount))
                speeds = _with(speeds, (n, rows), numbers.at(*path, "speed", given=override.speed))
    return of_pairs, speeds


def _with(values: Any, place: tuple[Any, ...], number: Any) -> Any:
    """Return an array with a number in some places; an array of fractions if the number is one."""
    if not isinstance(number, float) and values.dtype != object:
        values = fractions_of(values)
    values[place] = number if values.dtype != object else fractions_of([number])[0]
    return values


def _rows(source: Source, path: Path, override: On, servers: dict[str, int], attributes: Attributes) -> BoolArray:
    """Return the rows of servers that an entry is about, (servers,)."""
    there = (*path, "servers")
    if isinstance(override.servers, list) or override.servers in servers:
        names = override.servers if isinstance(override.servers, list) else [override.servers]
        check_known(source, there, names, servers, "server")
        check_unique(source, there, names)
        rows = np.isin(list(servers), names)
    else:
        rows = servers_meeting(source, there, override.servers, attributes, servers)
    if not rows.any():
        refuse(source, there, "no server is meant; compare it with the names and the attributes of the servers, or remove the entry")
    return np.asarray(rows)
