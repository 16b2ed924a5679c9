"""The limits of a program: named sparse rows, matrix @ x <= bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.program.sparse_rows import selected, stacked

__all__ = ["ACROSS_SERVERS", "LimitKind", "Limits"]


class LimitKind(IntEnum):
    """What a limit row bounds, and what its two keys mean."""

    CAPACITY = 0  # (server, resource): usage of the resource
    TIME = 1  # (server, -1): sum of x[n,i] / gamma[n,i]
    TASKS = 2  # (user, -1): tasks that the user has
    SLICE = 3  # (user, server): the part of a server reserved for a user; (user, servers + resource): that of a resource of the cluster
    PARALLELISM = 4  # (user, -1): sum of x[n,i] / rho[n,i], the number of servers that the user is on at once
    QUEUE = 5  # (position in Program.queue_limits, -1): what the users below a queue, or all others, hold of a resource on some servers
    NAMED = 6  # (position in Program.queue_limits, -1): a row of the notion's own
    PAST = 7  # (user, -1): the past of a user, `fairopt.program.past`
    WITH_PAST = 8  # (user, -1): the tasks that a user has, in units of its share, and its past
    LIMIT = 11  # (position in Program.queue_limits, -1): a named limit of the instance, `fairopt.Limit`
    LARGE_TASKS = 9  # (number, -1): tasks of which only a few fit on one server, `fairopt.program.placement`
    SHARED = 10  # (resource, -1): what all tasks take of a resource of the cluster, which no server has
    RULE = 12  # (position in Program.queue_limits, -1): a row of any sign, `fairopt.Rule`


_N_KINDS = max(LimitKind) + 1
ACROSS_SERVERS = (LimitKind.QUEUE, LimitKind.SHARED, LimitKind.LIMIT)
"""Rows of amounts over several servers: of a user's tasks it does not matter on which of these servers they run."""


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Rows ``matrix @ x <= bounds``. Row j is of kind ``kinds[j]``, and ``keys[j]`` names its server, user or resource (`LimitKind`)."""

    matrix: sp.csr_array
    bounds: FloatArray
    kinds: IntArray
    keys: IntArray
    _of_rows: dict[str, Any] = field(default_factory=dict, init=False, repr=False)  # computed once for all bounds

    @classmethod
    def of(cls, kind: LimitKind, matrix: sp.csr_array, bounds: npt.ArrayLike, keys: npt.ArrayLike) -> Limits:
        """Return limits of one kind; ``keys`` has one or two columns. Rows without an entry are dropped."""
        matrix = matrix if isinstance(matrix, sp.csr_array) else sp.csr_array(matrix)
        pairs = np.full((matrix.shape[0], 2), -1, dtype=np.int64)
        given = np.asarray(keys, dtype=np.int64)
        given = given[:, None] if given.ndim == 1 else given
        pairs[:, : given.shape[1]] = given
        bounds, ends = np.asarray(bounds, float), matrix.indptr[1:]
        some = ends > matrix.indptr[:-1]
        if not some.all():  # the others own no entry, and only their ends go: SciPy takes longer to select rows
            ends, bounds, pairs = ends[some], bounds[some], pairs[some]
            matrix = sp.csr_array((matrix.data, matrix.indices, np.append(0, ends)), shape=(ends.size, matrix.shape[1]))
        return cls(matrix, bounds, np.full(bounds.size, int(kind), dtype=np.int64), pairs)

    @classmethod
    def none(cls, columns: int) -> Limits:
        """Return no rows over these columns."""
        return cls(_no_rows(columns), np.zeros(0), np.zeros(0, np.int64), np.zeros((0, 2), np.int64))

    @classmethod
    def stack(cls, blocks: Iterable[Limits]) -> Limits:
        """Stack blocks of rows over the same columns."""
        blocks = list(blocks)
        parts = [block for block in blocks if len(block)] or blocks[:1]
        if len(parts) == 1:
            return parts[0]
        return cls(
            stacked([part.matrix for part in parts]),
            np.concatenate([part.bounds for part in parts]),
            np.concatenate([part.kinds for part in parts]),
            np.concatenate([part.keys for part in parts]),
        )

    def select(self, rows: npt.NDArray[np.bool_] | IntArray) -> Limits:
        """Return some of the rows."""
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
            if rows.size == len(self):
                return self
        return Limits(selected(self.matrix, rows), self.bounds[rows], self.kinds[rows], self.keys[rows])

    def with_bounds(self, bounds: FloatArray) -> Limits:
        """Return the same rows with other bounds; what has been computed from the rows alone is kept."""
        limits = Limits(self.matrix, bounds, self.kinds, self.keys)
        object.__setattr__(limits, "_of_rows", self._of_rows)
        return limits

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return a value that does not depend on the bounds, computed when it is first asked for."""
        if name not in self._of_rows:
            self._of_rows[name] = compute()
        return self._of_rows[name]

    def used(self, x: FloatArray) -> FloatArray:
        """Return A x, (limits,), what columns x, (columns,), take of each limit.

        NumPy sums the terms of a row in pairs, so that a sum of k terms >= 0 has a relative error of at most (2 + log2 k) 1.1e-16 (Higham,
        Accuracy and Stability of Numerical Algorithms, sections 3.1 and 4.2), where a sum from left to right may have k 1.1e-16: among a
        million users one term is as small as that.
        """
        matrix, used = self.matrix, np.zeros(len(self))
        some = np.flatnonzero(np.diff(matrix.indptr))
        if some.size:
            used[some] = np.add.reduceat(matrix.data * x[matrix.indices], matrix.indptr[some])
        return used

    @property
    def transposed(self) -> Any:
        """The transposed matrix, (pairs, limits), sparse."""
        return self.once("transposed", lambda: self.matrix.T)

    @property
    def of_servers(self) -> npt.NDArray[np.bool_]:
        """Which rows are limits of servers, (rows,). The others limit a user's tasks or parallelism, over all servers."""
        return ~self.of_kinds(LimitKind.TASKS, LimitKind.PARALLELISM, LimitKind.WITH_PAST)

    def of_kinds(self, *kinds: LimitKind) -> npt.NDArray[np.bool_]:
        """Return which rows are of one of these kinds, (rows,)."""
        wanted = np.zeros(_N_KINDS, bool)
        wanted[[*kinds]] = True
        return np.asarray(wanted[self.kinds])

    def __len__(self) -> int:
        return int(self.bounds.size)


@lru_cache(maxsize=64)
def _no_rows(columns: int) -> sp.csr_array:
    """Return the matrix of no limits. Most programs have no limit of some kind, and SciPy checks each matrix that it makes."""
    return sp.csr_array((0, columns))
