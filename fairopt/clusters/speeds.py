"""The speeds of an administrator: how much work a task does on which nodes, beside the exports of a scheduler that knows none.

============  =====================================================================================================
``servers``   the nodes: names, or kinds that the scheduler knows (separated by ``|``), or conditions on attributes
``speed``     the work that a task does there, 1 where no row says it; 0: the tasks cannot run there
``owner``     whose tasks these are; empty, or without the column: those of everybody without a row of its own there
============  =====================================================================================================

A kind of Slurm is a type of generic resource (``v100``, ``gpu:v100``) or a feature, a kind of Kueue is a ResourceFlavor; the attributes of
nodes of Kubernetes are their labels.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.table_rows import TableRows
from fairopt.errors import InvalidInstance
from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.requirements import CLAUSE, Attributes
from fairopt.tables import Column, Schema
from fairopt.wording import did_you_mean, joined, named

__all__ = ["Speeds", "read_speeds"]

SPEEDS = Schema(Column("servers"), Column("speed", "number"), Column("owner", default="", aliases=("account", "user", "namespace")))


@dataclass(frozen=True, slots=True)
class Speeds:
    """Speeds by owner and node.

    Attributes
    ----------
    everybody : array (nodes,)
        Of owners without a row of their own; nan where no row says it.
    own : mapping of str to array (nodes,)
        Of an owner.
    """

    everybody: FloatArray
    own: Mapping[str, FloatArray] = field(default_factory=dict)

    def of(self, owner: str) -> FloatArray:
        """Return the speeds of the tasks of an owner, (nodes,)."""
        own = self.own.get(owner, self.everybody)
        either = np.where(np.isnan(own), self.everybody, own)
        return np.where(np.isnan(either), 1.0, either)


def read_speeds(
    path: str | os.PathLike[str],
    nodes: Sequence[str],
    kinds: Mapping[str, Collection[str]],
    attributes: Sequence[Mapping[str, str]],
    owners: Collection[str],
    account: Account,
) -> Speeds:
    """Read a table of speeds.

    Parameters
    ----------
    nodes : sequence of str
    kinds : mapping
        The names of the nodes of each kind.
    attributes : sequence of mappings
        Of each node.
    owners : collection of str
        Those with tasks. A row of another owner is left out and counted.

    Raises
    ------
    InvalidInstance
        With file, line and column: no node is meant, or two rows of one owner are about one node.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "speeds.csv")
    ...     _ = path.write_text("servers,speed,owner\\nv100,0.5,\\nv100,0.8,vision\\n")
    ...     speeds = read_speeds(path, ["n1", "n2"], {"v100": {"n2"}}, [{}, {}], {"vision", "speech"}, Account(False))
    >>> speeds.of("speech"), speeds.of("vision")
    (array([1. , 0.5]), array([1. , 0.8]))
    """
    rows = TableRows(path, SPEEDS, "speed", account)
    cells, owner_of, speed = rows.filled("servers", "row needs servers"), rows.text("owner"), rows.numbers("speed")
    conditions = Attributes(attributes)
    told: dict[str, FloatArray] = {}
    for row in np.flatnonzero(rows.good()).tolist():
        if owner_of[row] and owner_of[row] not in owners:
            hint = did_you_mean(owner_of[row], owners)
            account.leave_out("speed", rows.place(row), f"there is no owner {named(owner_of[row])} with tasks{hint}")
            continue
        try:
            there = _nodes(cells[row], nodes, kinds, conditions)
        except InvalidInstance as error:
            rows.wrong(row, str(error), "servers")
            continue
        own = told.setdefault(owner_of[row], np.full(len(nodes), np.nan))
        if not np.isnan(own[there]).all():
            first = nodes[int(np.flatnonzero(there & ~np.isnan(own))[0])]
            rows.wrong(row, f"a row above is about {named(first)} and the same owner; name each node once", "servers")
            continue
        own[there] = speed[row]
    rows.good()  # refuses or counts what the loop found
    everybody = told.pop("", np.full(len(nodes), np.nan))
    return Speeds(everybody, told)


def _nodes(cell: str, nodes: Sequence[str], kinds: Mapping[str, Collection[str]], conditions: Attributes) -> BoolArray:
    """Return the nodes that a cell means, (nodes,)."""
    if CLAUSE.match(cell):
        found = conditions.where(cell)
        if not found.any():
            raise InvalidInstance("no node meets these conditions")
        return found
    known = {**dict.fromkeys(nodes, ()), **kinds}
    found = np.zeros(len(nodes), bool)
    for word in (part.strip() for part in cell.split("|")):
        if word not in known:
            there = did_you_mean(word, known) or f"; the kinds are {joined(sorted(kinds), 8) or 'not known'}"
            raise InvalidInstance(f"there is no node and no kind of nodes {named(word)}{there}")
        found |= np.isin(nodes, [word, *known[word]])
    return found
