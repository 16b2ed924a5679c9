"""The speeds of an administrator: how much work a task does on which nodes, beside the exports of a scheduler that knows none.

============  =====================================================================================================
``servers``   the nodes: names, or kinds that the scheduler knows (separated by ``|``), or conditions on attributes
``speed``     the work that a task does there, 1 where no row says it; 0: the tasks cannot run there
``factor``    optional: how many times as much a task takes there of ``resource``; 1 where no row says it
``resource``  of what it takes so much, such as ``gpu`` (several separated by ``|``)
``owner``     whose tasks these are; empty, or without the column: those of everybody without a row of its own there
============  =====================================================================================================

A kind of Slurm is a type of generic resource (``v100``, ``gpu:v100``) or a feature, a kind of Kueue is a ResourceFlavor; the attributes of
nodes of Kubernetes are their labels.

**Factors.** A task that runs takes what the export says where it runs. One that waits takes what it asks for where its factors are 1; if it
may run on no such node, it was made for another kind, and takes what it asks for on the first node where it may run.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fairopt.clusters.account import Account
from fairopt.clusters.shapes import SOMEWHERE, Tasks
from fairopt.clusters.table_rows import TableRows
from fairopt.errors import InvalidInstance
from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.requirements import CLAUSE, Attributes
from fairopt.tables import Column, Schema
from fairopt.wording import did_you_mean, joined, named

__all__ = ["Speeds", "demands_by_kind", "read_speeds"]

SPEEDS = Schema(
    Column("servers"),
    Column("speed", "number"),
    Column("owner", default="", aliases=("account", "user", "namespace")),
    Column("factor", "number", default=float("nan"), empty=float("nan")),
    Column("resource", "names", default=None),
)


@dataclass(frozen=True, slots=True)
class Speeds:
    """Speeds by owner and node.

    Attributes
    ----------
    everybody : array (nodes,)
        Of owners without a row of their own; nan where no row says it.
    own : mapping of str to array (nodes,)
        Of an owner.
    factors : mapping of (str, str) to array (nodes,)
        By owner ("": everybody) and resource; nan where no row says it.
    """

    everybody: FloatArray
    own: Mapping[str, FloatArray] = field(default_factory=dict)
    factors: Mapping[tuple[str, str], FloatArray] = field(default_factory=dict)

    def of(self, owner: str) -> FloatArray:
        """Return the speeds of the tasks of an owner, (nodes,)."""
        own = self.own.get(owner, self.everybody)
        either = np.where(np.isnan(own), self.everybody, own)
        return np.where(np.isnan(either), 1.0, either)

    def factors_of(self, owner: str, resources: Sequence[str]) -> FloatArray:
        """Return how many times as much the tasks of an owner take on each node, (nodes, resources)."""
        found = np.ones((self.everybody.size, len(resources)))
        for whose in ("", owner):
            for r, resource in enumerate(resources):
                told = self.factors.get((whose, resource))
                if told is not None:
                    found[:, r] = np.where(np.isnan(told), found[:, r], told)
        return found


def demands_by_kind(
    speeds: Speeds, tasks: Tasks, kind: IntArray | None, resources: Sequence[str]
) -> tuple[npt.NDArray[np.float64], IntArray | None]:
    """Return the demands of tasks by kind of node, (groups, kinds, resources), and the kind of each node, where factors make them differ.

    ``kind`` is that of each node before, as in `fairopt.clusters.assembly.Nodes`; without factors all is as it was.
    """
    if not speeds.factors:
        return tasks.demands, kind
    number = speeds.everybody.size
    owners = {owner: k for k, owner in enumerate(dict.fromkeys(tasks.owner))}
    factors = np.array([speeds.factors_of(owner, resources) for owner in owners])  # (owners, nodes, resources)
    before = np.zeros(number, np.int64) if kind is None else kind
    usual = (factors == 1).all(axis=2)
    keys = np.column_stack([before, ~usual.all(axis=0), factors.transpose(1, 0, 2).reshape(number, -1)])
    _, first, kinds = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    owner = np.array([owners[each] for each in tasks.owner], np.int64)
    allowed = tasks.allowed[tasks.place]
    at_usual = allowed & usual[owner]
    base = np.where(at_usual.any(axis=1), at_usual.argmax(axis=1), allowed.argmax(axis=1))
    for group, node, _ in tasks.running:
        base[group] = node if node != SOMEWHERE else base[group]
    demands = tasks.demands if tasks.demands.ndim == 3 else tasks.demands[:, None]
    return demands[:, before[first]] * factors[owner][:, first] / factors[owner, base][:, None], np.asarray(kinds.reshape(-1), np.int64)


def read_speeds(
    path: str | os.PathLike[str],
    nodes: Sequence[str],
    kinds: Mapping[str, Collection[str]],
    attributes: Sequence[Mapping[str, str]],
    owners: Collection[str],
    account: Account,
    resources: Collection[str] = (),
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
    resources : collection of str
        Those that factors may be of.

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
    factor, factor_of = _factors(rows, resources)
    conditions = Attributes(attributes)
    factors: dict[tuple[str, str], FloatArray] = {}
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
        for resource in factor_of.get(row, ()):
            factors.setdefault((owner_of[row], resource), np.full(len(nodes), np.nan))[there] = factor[row]
    rows.good()  # refuses or counts what the loop found
    everybody = told.pop("", np.full(len(nodes), np.nan))
    return Speeds(everybody, told, factors)


def _factors(rows: TableRows, resources: Collection[str]) -> tuple[FloatArray, dict[int, tuple[str, ...]]]:
    """Return the factors, (rows,), and the resources that those of some rows are of."""
    factor, names = rows.numbers("factor"), rows.table.names("resource")
    found = {}
    for row in range(len(rows.table)):
        asked = tuple(names[row] or ())
        if np.isnan(factor[row]) and not asked:
            continue
        unknown = [name for name in asked if name not in resources]
        if np.isnan(factor[row]) or not asked:
            rows.wrong(row, "factor and resource belong together: 2 of gpu is twice as many gpu; give both, or none", "factor")
        elif unknown:
            there = did_you_mean(unknown[0], resources) or f"; there are {joined(sorted(resources), 8)}"
            rows.wrong(row, f"there is no resource {named(unknown[0])}{there}", "resource")
        elif not (factor[row] > 0 and np.isfinite(factor[row])):
            rows.wrong(row, "a factor is finite and > 0; where tasks cannot run, give the speed 0", "factor")
        else:
            found[row] = asked
    return factor, found


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
