"""The result of an export: files for a scheduler, the whole tasks in them, and what must be said."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.clusters.amounts import notes_of_units
from fairopt.clusters.holdings import Holdings
from fairopt.clusters.read_back import Said, less_than_exported
from fairopt.clusters.rounding import Whole
from fairopt.errors import InvalidInstance
from fairopt.files import refuse_existing, write_files
from fairopt.results import result
from fairopt.show.equality import ComparesItself
from fairopt.wording import brief, joined, plural

__all__ = ["Export"]

_MOST = 5  # names in a sentence


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Export(ComparesItself):
    """Configuration of a scheduler that carries out an allocation. Nothing is ever run.

    Attributes
    ----------
    kind : str
        "slurm", "kueue", "volcano", "kai", "yunikorn", "yarn" or "resourcequota".
    files : dict
        Texts by what they are: ``limits`` and ``undo`` (slurm), ``queues`` (all others).
    whole : Whole
        The whole tasks, on groups of servers.
    names : dict
        Names of queues, accounts, namespaces and groups of servers in the files, by label; that of the queue where a label is of both.
    notes : tuple of str
        What was rounded, renamed, or cannot be expressed.
    less : tuple of str
        Who would have less than was exported under these files, read back and solved again (`fairopt.clusters.read_back`): nobody, if it is
        empty. The command line refuses such an export without ``--force``.
    question : mapping
        The arguments of the export, as plain data.
    """

    kind: str
    files: dict[str, str]
    whole: Whole
    names: dict[str, str]
    notes: tuple[str, ...]
    less: tuple[str, ...] = ()
    question: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        kind: str,
        files: Mapping[str, str],
        holdings: Holdings,
        names: Mapping[str, str],
        notes: Iterable[str],
        ordered: Collection[str] = (),
        written: Collection[str] = (),
        said: Said | None = None,
    ) -> Export:
        """Return an export whose notes begin with what rounding changed and how units are understood.

        ``ordered`` are the queues whose order the files say, ``written`` the resources of the cluster and the named limits in them.
        ``said`` is what they say of the queues: with it, the export is read back.
        """
        whole = holdings.whole
        tree = whole.instance.tree
        of_orders = (
            f'the order of queue "{tree.name(node)}", which serves one after the other, is not written: {kind} divides what it gets '
            "in its own way"
            for node in np.flatnonzero(tree.listed).tolist()
            if len(tree.users_of(node)) + len(tree.children(node)) > 1 and tree.name(node) not in ordered
        )
        instance = whole.instance
        there = [instance.amount(amount, name, 6) for name, amount in instance.shared.items() if name not in written]
        of_shared = [
            f"the whole tasks keep within the {joined(there, _MOST)} of the whole cluster, but these are on no server, and no file here "
            "limits them"
        ] * bool(there)
        of_limits = (
            f'limit "{limit.name}" is not written: {kind} has no such limit; the whole tasks keep it, and nothing here will later'
            for limit in whole.instance.limits
            if limit.name not in written
        )
        of_rules = (
            f'rule "{brief(rule.text)}" is not written: {kind} has no such condition; the divisible amounts keep it, and rounding to whole '
            "tasks may not"
            for rule in whole.instance.rules
        )
        of_servers = (
            f"{kind} does not know that a task takes other amounts, or does other work, on other servers: the amounts are those of the "
            "tasks where they are placed here"
            for _ in range(whole.instance.differs_by_server)
        )
        less, unread = less_than_exported(holdings, said, tuple(written)) if said else ([], [])
        return cls(
            kind,
            dict(files),
            whole,
            dict(names),
            (*whole.notes, *notes_of_units(holdings.measures), *of_servers, *of_shared, *of_limits, *of_rules, *of_orders, *notes, *unread),
            tuple(less),
        )

    @property
    def text(self) -> str:
        """The first file."""
        return next(iter(self.files.values()))

    @property
    def allocation(self) -> Allocation:
        """The whole tasks as an allocation of the instance."""
        return self.whole.as_allocation()

    def write(self, paths: Mapping[str, str | Path], *, force: bool = False) -> None:
        """Write files, all or none of them: ``export.write({"limits": "limits.sh", "undo": "undo.sh"})``.

        Parameters
        ----------
        paths : mapping
            The path of each text of ``files`` that is written.
        force : bool
            Replace files that exist.

        Raises
        ------
        InvalidInstance
            A file exists and ``force`` is False; a folder is missing or not writable; there is no such text.
        """
        for what in paths:
            if what not in self.files:
                raise InvalidInstance(f'this export has no "{what}"; it has {" and ".join(self.files)}')
        targets = {Path(path): self.files[what] for what, path in paths.items()}
        if len({os.path.realpath(path) for path in targets}) < len(paths):
            raise InvalidInstance(f"two texts cannot go to one file, {next(iter(targets))}; give each its own")
        for path in targets:
            refuse_existing(path, force=force)
        write_files(targets)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: whole tasks by user and group of servers, names, notes and files."""
        whole = self.whole
        found = {
            "kind": self.kind,
            "notion": whole.allocation.notion,
            "users": [
                {
                    "name": user,
                    "tasks": float(whole.allocation.tasks_per_user[n]),
                    "whole": int(whole.tasks_per_user[n]),
                    "placed": {group.name: int(whole.tasks[n, g]) for g, group in enumerate(whole.groups) if whole.tasks[n, g]},
                }
                for n, user in enumerate(whole.instance.users)
            ],
            "groups": [{"name": group.name, "servers": [whole.instance.servers[i] for i in group.rows]} for group in whole.groups],
            "names": dict(self.names),
            "notes": list(self.notes),
            "less": list(self.less),
            "files": dict(self.files),
        }
        return result("export", self.question, whole.instance.units, found)

    def __repr__(self) -> str:
        tasks = plural(self.whole.tasks.sum(), "whole task")
        return f"Export({self.kind}: {tasks} of {plural(self.whole.instance.n_users, 'user')}, {' and '.join(self.files)})"
