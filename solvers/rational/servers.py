"""The data of an equilibrium of servers in rationals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import fmpq

from fairopt.program import Equilibrium, LimitKind
from fairopt.program.exact import ExactProgram

__all__ = ["Servers"]


@dataclass(frozen=True, slots=True)
class Servers:
    """An equilibrium's data in rationals. ``limits`` are those of servers; limits on users' tasks are in ``tasks``.

    Attributes
    ----------
    user : list (pairs,)
        User of each pair.
    measure : list (pairs,)
        u[p] / weights[n]: what one task of the user adds to its share at the pair's server.
    limits : list of dicts from a pair to A[j,p] > 0, of the limits that concern a server
    bounds : list
    tasks : list (users,)
        T[n], None without a limit.
    """

    user: list[int]
    measure: list[fmpq]
    limits: list[dict[int, fmpq]]
    bounds: list[fmpq]
    tasks: list[fmpq | None]

    @classmethod
    def of(cls, program: ExactProgram) -> Servers:
        """Return the data of a program with an equilibrium as its goal, and limits of servers and on users' tasks only."""
        goal = program.goal_as(Equilibrium)
        rows: list[dict[int, fmpq]] = [{} for _ in range(program.bounds.size)]
        for j, p, value in zip(program.rows.tolist(), program.columns.tolist(), program.data.tolist(), strict=True):
            rows[j][p] = value
        kinds, keys = program.program.limits.kinds, program.program.limits.keys
        tasks: list[fmpq | None] = [None] * len(program.program.users)
        for j in np.flatnonzero(kinds == LimitKind.TASKS):
            tasks[keys[j, 0]] = program.bounds[j]
        of_servers = np.flatnonzero(program.program.limits.of_servers)
        users = program.program.pair_users
        measure = (program.utilities / goal.weights[users]).tolist()
        return cls(users.tolist(), measure, [rows[j] for j in of_servers], [program.bounds[j] for j in of_servers], tasks)

    def limits_of_pairs(self) -> list[list[int]]:
        """Return the limits that each pair uses."""
        found: list[list[int]] = [[] for _ in self.user]
        for j, row in enumerate(self.limits):
            for p in row:
                found[p].append(j)
        return found
