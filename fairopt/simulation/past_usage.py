"""What owners had used before a simulation begins, for the schedulers that have a memory.

A site has such numbers: ``sshare -a -l -P`` (Slurm: ``RawUsage``, in seconds of billing, faded), ``condor_userprio`` (HTCondor: the real
priority, which is the faded use of cores by the second), or a table with a column ``name`` and one ``usage``, or ``usage_0``, ``usage_1``
... for the windows of a scheduler that has windows, the present one first.

An amount belongs to a user of the cluster, or to a queue. That of a queue is the use of users who are not in the cluster: it counts in
the queue, and for none of its users. Owners without a row begin at 0. Rows of nobody in the cluster are named.

>>> import fairopt as fo
>>> lab = fo.Instance([[64]], [[4], [1]], resources=["cpu"], users=["ada", "bob"])
>>> past_usage({"ada": 3600, "eve": 400}, lab).users.tolist()
[[3600.0], [0.0]]
>>> past_usage({"ada": 3600, "eve": 400}, lab).notes
('the usage of "eve" is left out: the cluster has no such owner; it is 10 % of what is stated',)
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from fairopt.clusters.htcondor.priorities import read_priorities
from fairopt.errors import InvalidInstance, Unsupported
from fairopt.files import first_line
from fairopt.instance import FloatArray, Instance
from fairopt.instance.tree import Tree
from fairopt.slurm.usage import Used, is_sshare, read_sshare
from fairopt.tables import Column, Schema, Table, read
from fairopt.wording import figure, joined, plural

__all__ = ["PastUsage", "UsageLike", "past_usage"]

UsageLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, float | Sequence[float]]"
"""A file, or amounts by the name of a user or a queue; several for windows."""

_TABLE = Schema(Column("name", aliases=("user", "owner", "queue", "account")), grows=True)
_WINDOW = re.compile(r"usage(?:_s)?(?:_(\d{1,3}))?", re.ASCII)
_TEXTS = (".txt", ".log", ".out", ".json", "")


@dataclass(frozen=True, slots=True, eq=False)
class PastUsage:
    """What owners had used when a simulation begins.

    Attributes
    ----------
    users : array (users, windows)
        In seconds of billing; or real priorities of HTCondor, if ``priorities``. One window, unless there are several.
    queues : array (queues, windows)
        What queues used beyond their users.
    priorities : bool
    notes : tuple of str
        What is left out.
    """

    users: FloatArray
    queues: FloatArray
    priorities: bool
    notes: tuple[str, ...]

    @property
    def windows(self) -> int:
        """The number of windows."""
        return int(self.users.shape[1])

    def faded(self, half_life: float) -> tuple[FloatArray, FloatArray]:
        """Return the faded usage of the users and of the queues, in seconds of billing, (users,) and (queues,).

        A real priority is the faded usage times ln 2 / half-life.

        Raises
        ------
        Unsupported
            The usage is that of several windows, or a priority where nothing fades.
        """
        if self.windows > 1:
            raise Unsupported(
                "the usage is given for several windows, and this scheduler has a half-life; give one number for each owner, or use "
                '"maui:interval=1d:depth=7:decay=0.8"'
            )
        if self.priorities and not math.isfinite(half_life):
            raise Unsupported("real priorities are those of a half-life; give a finite one, as in half_life=1d")
        factor = half_life / math.log(2) if self.priorities else 1.0
        return self.users[:, 0] * factor, self.queues[:, 0] * factor

    def of_windows(self, tree: Tree, targets: FloatArray) -> FloatArray:
        """Return the usage of users in windows, (users, windows); what queues used is divided among the users below by their targets.

        Raises
        ------
        Unsupported
            The usage is a priority.
        """
        if self.priorities:
            raise Unsupported("real priorities of HTCondor have a half-life, and this scheduler has windows; give usage in a table")
        return np.column_stack([self.divided(*each, tree, targets) for each in zip(self.users.T, self.queues.T, strict=True)])

    @staticmethod
    def divided(users: FloatArray, queues: FloatArray, tree: Tree, targets: FloatArray) -> FloatArray:
        """Return the usage of users, (users,), with that of each queue divided among the users below it by their targets."""
        found = users.copy()
        for queue in np.flatnonzero(queues).tolist():
            part = np.where(tree.below[queue + 1], targets, 0.0)
            if part.sum() > 0:
                found += queues[queue] * part / part.sum()
        return found


def past_usage(given: UsageLike, cluster: Instance, users: Sequence[str] | None = None) -> PastUsage:
    """Return what the users and queues of a cluster had used; ``users`` are those of a trace, where the cluster names none of them.

    Raises
    ------
    InvalidInstance
        With file, line and column; an amount is no number >= 0, or nothing is of an owner of the cluster.
    """
    priorities, factors = False, list[float]()
    if isinstance(given, Mapping):
        rows = [Used((str(name),), _amounts(name, amounts)) for name, amounts in given.items()]
        where = "usage"
    else:
        path, where = Path(given), os.fspath(given)
        head = first_line(path).decode(errors="replace")
        if is_sshare(head):
            rows = read_sshare(path)
        elif path.suffix.lower() in _TEXTS:
            rows, factors = _priorities(path)
            priorities = True
        else:
            rows = _of_table(read(path, _TABLE))
    found = _of_rows(rows, cluster.users if users is None else users, [queue.name for queue in cluster.queues], where, priorities)
    note = _other_weights(rows, factors, cluster) if priorities else None
    return found if note is None else replace(found, notes=(*found.notes, note))


def _other_weights(rows: Sequence[Used], factors: Sequence[float], cluster: Instance) -> str | None:
    """Return a note where priority factors are not the weights of the cluster, of which a weight is 1 / factor."""
    weight = dict(zip(cluster.users, np.asarray(cluster.weights, float).reshape(cluster.n_users, -1)[:, 0].tolist(), strict=True))
    products = []
    for row, factor in zip(rows, factors, strict=True):
        name = next((name for name in row.names if name in weight), None)
        if name is not None:
            products.append(weight[name] * factor)
    if not products or max(products) <= min(products) * (1 + 1e-9):
        return None
    return (
        "the priority factors of condor_userprio are left out: the weights of the cluster count, which are others (a weight is 1 / factor)"
    )


def _amounts(name: object, amounts: object) -> tuple[float, ...]:
    values = tuple(amounts) if isinstance(amounts, Sequence | np.ndarray) and not isinstance(amounts, str) else (amounts,)
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        numbers = (math.nan,)
    if not numbers or not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise InvalidInstance(f'usage of "{name}": {amounts!r}; give a number >= 0, in seconds of billing, or one for each window')
    return numbers


def _of_table(table: Table) -> list[Used]:
    columns: dict[int, str] = {}
    for name in table.columns:
        match = _WINDOW.fullmatch(name)
        if match:
            columns[int(match[1] or 0)] = name
    if sorted(columns) != list(range(len(columns))) or not columns:
        raise InvalidInstance(
            f'{table.file}: there must be a column "usage", or "usage_0", "usage_1" ... for windows, the present one first; there are '
            f"{joined(table.columns, 8)}"
        )
    amounts = np.column_stack([np.asarray(table.numbers(columns[k]), float) for k in range(len(columns))])
    for i, row in enumerate(amounts):
        if not (np.isfinite(row) & (row >= 0)).all():
            raise InvalidInstance(f"{table.place(i, columns[0])}: usage must be finite and >= 0")
    return [Used((name,), tuple(row.tolist())) for name, row in zip(table.cells("name"), amounts, strict=True)]


def _priorities(path: Path) -> tuple[list[Used], list[float]]:
    """Return real priorities and factors of ``condor_userprio``: its table (effective priority and factor), its long form, or JSON."""
    found = [each for each in read_priorities(path) if not each.is_group]
    if not found:
        raise InvalidInstance(
            f"{path}: this is neither what sshare -a -l -P prints, nor condor_userprio -allusers, nor a table (.csv) with the columns name "
            "and usage"
        )
    return [Used(_submitter(each.name), (each.effective / each.factor,)) for each in found], [each.factor for each in found]


def _submitter(name: str) -> tuple[str, ...]:
    """Return what a cluster may call a submitter of HTCondor.

    >>> _submitter("group_physics.ada@example.org")
    ('group_physics.ada@example.org', 'group_physics.ada', 'ada', 'group_physics')
    """
    short = name.partition("@")[0]
    group, found, user = short.rpartition(".")
    return (name, short, user, group) if found else (name, short)


def _of_rows(rows: Sequence[Used], names: Sequence[str], groups: Sequence[str], where: str, priorities: bool) -> PastUsage:
    windows = max((len(row.amounts) for row in rows), default=1)
    user, queue = ({name: k for k, name in enumerate(each)} for each in (names, groups))
    users, queues = np.zeros((len(user), windows)), np.zeros((len(queue), windows))
    nobody: list[Used] = []
    for row in rows:
        known = next((name for name in row.names if name in user or name in queue), None)
        if known is None:
            nobody.append(row)
            continue
        place = users[user[known]] if known in user else queues[queue[known]]
        place[: len(row.amounts)] += row.amounts
    notes: tuple[str, ...] = ()
    if nobody:
        left_out = sum(sum(row.amounts) for row in nobody)
        total = left_out + float(users.sum() + queues.sum())
        if len(nobody) == len(rows):
            raise InvalidInstance(
                f"{where}: none of its owners is in the cluster; it has {joined([row.names[0] for row in nobody], 5)}, and the cluster "
                f"{joined(names, 5)}"
            )
        unknown = joined([f'"{row.names[0]}"' for row in nobody], 5)
        no_such = "no such owner" if len(nobody) == 1 else f"no such owners ({plural(len(nobody), 'row')})"
        part = "" if priorities or not total else f"; it is {figure(100 * left_out / total, 3)} % of what is stated"
        notes = (f"the usage of {unknown} is left out: the cluster has {no_such}{part}",)
    return PastUsage(users, queues, priorities, notes)
