"""The table of running tasks."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from fairopt.instance import FloatArray
from fairopt.simulation.baselines.backfill_kernel import COLUMNS, END, ENDS, JOB, NUMBER, SERVER, STREAM, TASKS
from fairopt.simulation.baselines.pool import Place

__all__ = ["Running"]

_ROOM = 64  # rows of the table of running tasks at first


class Running:
    """The tasks that run, in the order in which they are expected to end: of those that started together a row for each server."""

    def __init__(self) -> None:
        self._keys: list[tuple[float, int]] = []
        self._table = np.zeros((_ROOM, COLUMNS))  # in the same order

    @property
    def table(self) -> FloatArray:
        """What `backfill_kernel` reads, (rows, columns)."""
        return self._table[: len(self._keys)]

    @table.setter
    def table(self, table: FloatArray) -> None:
        if table.ndim != 2 or table.shape[1] != COLUMNS:
            raise ValueError(f"a table of running tasks has {COLUMNS} columns")
        self._table = table
        self._keys = list(zip(table[:, END].tolist(), table[:, NUMBER].astype(np.int64).tolist(), strict=True))

    def groups(self) -> list[tuple[float, int, int, Place, float]]:
        """Return of tasks that started together when they end, their number, their job and place, and when they are expected to end."""
        first = np.flatnonzero(np.diff(self.table[:, NUMBER], prepend=-1.0))
        found = []
        for rows in np.split(self.table, first[1:]) if first.size else ():
            servers, tasks = rows[:, SERVER].astype(np.int64), rows[:, TASKS].astype(np.int64)
            place = Place(servers, tasks, int(tasks.sum()))
            found.append((float(rows[0, ENDS]), int(rows[0, NUMBER]), int(rows[0, JOB]), place, float(rows[0, END])))
        return found

    def add(self, end: float, number: int, stream: int, place: Place, ends: float, job: int) -> None:
        """Add tasks; their number is larger than those before."""
        at, size, before = bisect_left(self._keys, (end, number)), place.servers.size, len(self._keys)
        self._keys[at:at] = [(end, number)] * size
        while before + size > len(self._table):
            self._table = np.concatenate([self._table, np.zeros((_ROOM + before, COLUMNS))])
        self._table[at + size : before + size] = self._table[at:before]
        new = self._table[at : at + size]
        new[:, SERVER], new[:, TASKS] = place.servers, place.tasks
        new[:, [END, NUMBER, STREAM, ENDS, JOB]] = end, number, stream, ends, job

    def remove(self, end: float, number: int) -> None:
        """Remove tasks by their expected end and their number."""
        at, behind = bisect_left(self._keys, (end, number)), bisect_left(self._keys, (end, number + 1))
        self._table[at : len(self._keys) - behind + at] = self._table[behind : len(self._keys)]
        del self._keys[at:behind]
