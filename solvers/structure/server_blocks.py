"""Cholesky factors of one small matrix for each server, all at once.

A matrix is given and kept as the rows of its lower half; an entry is that of all servers, (servers,), in any arrays. Vectors are
(slots, servers).
"""

from __future__ import annotations

from typing import Any

from fairopt.solvers.structure.pairs import Pairs
from fairopt.solvers.structure.settings import SETTINGS

__all__ = ["ServerBlocks"]


class ServerBlocks:
    """The lower factors of positive definite matrices.

    Where all that runs on a server takes the same of two full limits, the last pivot is smaller than its rounding error, and may come out
    as 0 or less. It is at least a small part of the diagonal: the prices of the two limits then change by the same.
    """

    def __init__(self, xp: Any, lower: list[list[Any]]) -> None:
        self.xp = xp
        self.rows: list[list[Any]] = []
        for r, given in enumerate(lower):
            row: list[Any] = []
            for c, entry in enumerate(given):
                for j in range(c):
                    entry = entry - row[j] * (row[j] if c == r else self.rows[c][j])
                row.append(entry / self.rows[c][c] if c < r else xp.sqrt(xp.maximum(entry, SETTINGS.least_pivot * given[r])))
            self.rows.append(row)

    def forward(self, values: Any) -> Any:
        """Solve with the factors."""
        out: list[Any] = []
        for r, row in enumerate(self.rows):
            left = values[r, ...]
            for c in range(r):
                left = left - row[c] * out[c]
            out.append(left / row[r])
        return self.xp.stack(out)

    def forward_pairs(self, pairs: Pairs, values: Any) -> None:
        """Solve at every pair with the factor of its server, values (slots, pairs), in place."""
        view = pairs.view(values)
        for r, row in enumerate(self.rows):
            for c in range(r):
                view[r, ...] -= pairs.at_servers(row[c]) * view[c, ...]
            view[r, ...] /= pairs.at_servers(row[r])

    def along_factor(self, values: Any) -> Any:
        """Multiply values (slots, ..., servers) from the left with the transposes of the factors."""
        n = len(self.rows)
        return self.xp.stack([sum(self.rows[r][c] * values[r, ...] for r in range(c, n)) for c in range(n)])

    def backward(self, values: Any) -> Any:
        """Solve with their transposes."""
        out: list[Any] = [None] * len(self.rows)
        for r in reversed(range(len(out))):
            left = values[r, ...]
            for c in range(r + 1, len(out)):
                left = left - self.rows[c][r] * out[c]
            out[r] = left / self.rows[r][r]
        return self.xp.stack(out)
