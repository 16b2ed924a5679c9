r"""A rough leximin of many users on many servers: that of groups of similar users on groups of similar servers.

Users who may run on the same servers and demand the same resources are a class; so are servers on which the same users may run. Classes
are divided into groups of similar shape (`fairopt.solvers.large.groups.finer`). A group of users demands what its users demand together in
a unit of level; a group of servers has what its servers have together. The leximin of the groups is not that of the users, as a group
divides alike what its users would not, and a server's leftovers are no other server's gain. But its levels, and the servers that each of
them is about, are about right: an engine may begin with them (`fairopt.solvers.large.regions`), and proves what it answers."""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np

from fairopt.errors import FairoptError
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.program import Leximin, LimitKind, Program, Solution, Stage
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.levels import solve_levels
from fairopt.solvers.large.groups import finer, program_of, sums
from fairopt.solvers.large.settings import SETTINGS

__all__ = ["rough_levels"]

log = logging.getLogger(__name__)


class _Tables(NamedTuple):
    """What the limits of a program say."""

    capacities: FloatArray  # (servers, resources)
    demands: FloatArray  # (users, resources)
    eligibility: BoolArray  # (users, servers)
    tasks: FloatArray  # (users,)
    worths: FloatArray  # (users,), of a task

    @classmethod
    def of(cls, program: Program) -> _Tables:
        """Read them from a program of capacities and task limits."""
        limits, n, k, m = program.limits, len(program.users), len(program.servers), len(program.resources)
        rows = np.flatnonzero(limits.kinds == LimitKind.CAPACITY)
        keys, matrix = limits.keys[rows], limits.matrix[rows]
        capacities, demands, eligibility = np.zeros((k, m)), np.zeros((n, m)), np.zeros((n, k), bool)
        capacities[keys[:, 0], keys[:, 1]] = limits.bounds[rows]
        demands[program.pair_users[matrix.indices], np.repeat(keys[:, 1], np.diff(matrix.indptr))] = matrix.data
        eligibility[program.pair_users, program.pair_servers] = True
        tasks, worths = np.full(n, np.inf), np.ones(n)
        of_tasks = limits.kinds == LimitKind.TASKS
        tasks[limits.keys[of_tasks, 0]] = limits.bounds[of_tasks]
        worths[program.pair_users] = program.utilities
        return cls(capacities, demands, eligibility, tasks, worths)


def rough_levels(program: Program, deadline: Deadline) -> Solution | None:
    """Return levels of about the right size, and prices of the program's limits that show which servers each is about.

    None where users, or servers, are so different that groups are hardly fewer, or where there is no answer. The answer has no points,
    only levels and prices.

    Raises
    ------
    NoSolution
        At the time limit; no level is final then.
    """
    assert isinstance(program.goal, Leximin)
    tables, weights = _Tables.of(program), program.goal.weights
    capacity = tables.capacities
    total = np.maximum(capacity.sum(axis=0), np.finfo(float).tiny)
    take = tables.demands * (weights / tables.worths)[:, None]
    row = _classes(np.packbits(tables.eligibility.T, axis=1), capacity > 0)
    first = np.unique(row, return_index=True)[1]
    ends = np.isfinite(tables.tasks)
    group = _classes(np.packbits(tables.eligibility[:, first], axis=1), take > 0, ends[:, None])
    if group.max() >= SETTINGS.part_of_rough * group.size or row.max() >= SETTINGS.part_of_rough * row.size:
        return None
    row = finer(row, np.maximum(capacity / total, np.finfo(float).tiny), SETTINGS.server_groups_of_rough)
    group = finer(group, take / total, SETTINGS.groups_of_rough)
    try:
        small = _formulated(tables, weights, take, group, row)
        assert isinstance(small.goal, Leximin)
        found = solve_levels(small, small.goal, SETTINGS.tolerance_of_rough, deadline)
    except FairoptError as error:
        if deadline.left == 0.0:
            raise deadline.passed({"levels": [], "users": []}) from None
        log.info("no rough answer: %s", error)
        return None
    if found is None:  # then the path of all users does not converge, either
        log.info("no rough answer: the path of the groups did not converge")
        return None
    log.info("a rough answer: %d groups of users, %d of servers, %d levels", group.max() + 1, row.max() + 1, len(found.stages))
    return Solution(np.zeros(0), tuple(_stage(stage, small, program, row) for stage in found.stages if stage.prices is not None))


def _classes(*keys: np.ndarray) -> IntArray:
    """Number the different rows of some tables side by side."""
    return np.asarray(np.unique(np.hstack([np.asarray(key, np.uint8) for key in keys]), axis=0, return_inverse=True)[1]).ravel()


def _formulated(tables: _Tables, weights: FloatArray, take: FloatArray, group: IntArray, row: IntArray) -> Program:
    """Return the program of the groups, whose tasks are units of level."""
    of_group = sums(group, weights[:, None])[:, 0]
    user, server = (np.unique(of, return_index=True)[1] for of in (group, row))
    held = np.where(np.isfinite(tables.tasks), tables.tasks * tables.worths, 0.0)
    small = Instance(
        sums(row, tables.capacities),
        sums(group, take) / of_group[:, None],
        weights=of_group,
        eligibility=tables.eligibility[np.ix_(user, server)],
        tasks=np.where(np.isfinite(tables.tasks[user]), np.bincount(group, weights=held), np.inf),
    )
    return program_of(small, Leximin(of_group))


def _stage(stage: Stage, small: Program, program: Program, row: IntArray) -> Stage:
    """Return a level of the groups with its prices on all servers, and no users."""
    assert stage.prices is not None
    table = np.zeros((len(small.servers), len(small.resources)))
    of_servers = small.limits.kinds == LimitKind.CAPACITY
    keys = small.limits.keys[of_servers]
    table[keys[:, 0], keys[:, 1]] = stage.prices[of_servers]
    prices, of_servers = np.zeros(len(program.limits)), program.limits.kinds == LimitKind.CAPACITY
    keys = program.limits.keys[of_servers]
    prices[of_servers] = table[row[keys[:, 0]], keys[:, 1]]
    return Stage(stage.value, np.empty(0, np.int64), prices)
