r"""Alpha-fair goals of many users on many servers: an exact answer from a few hundred groups of users.

As for a level (`fairopt.solvers.large.groups`), the dual of an alpha-fair goal involves the least of a few price vectors:

    minimise sum_i p[i].c[i] + sum_n phi[n] h(q[n])      subject to      q[n] <= p[i].d[n],           t[n] = (phi[n] / q[n])^(1 / alpha)

Users of a group have tasks in fixed proportions, t[n] = a[n] T: they are one user who demands sum a d, with the weight
sum phi a^(1 - alpha). That restricts the program, but not its optimum if the proportions are optimal and one price vector is the least for
all users of the group. So we

    group users of similar shape;  solve;  set the proportions by the prices;  split groups whose members have different least prices

until no group is split. The pieces at which each user buys are then known: `fairopt.solvers.large.piece_prices` computes the exact prices
and proportions, and `fairopt.solvers.large.group_polish` moves tasks until every priced resource is full.

Nothing is proved here: `fairopt.certificate.one_worth` checks the tasks of all users against the prices, pair by pair.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.program import AllPairs, AlphaFair, Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.paths import paths_of_alpha_fair
from fairopt.solvers.large.group_polish import pieces_of_groups, polished
from fairopt.solvers.large.groups import finer, joined_vertices, program_of, split, sums
from fairopt.solvers.large.piece_prices import Pieces, SplitUser, exact_prices
from fairopt.solvers.large.settings import SETTINGS
from fairopt.solvers.structure.arrays import NUMPY

__all__ = ["solve_alpha_fair"]

log = logging.getLogger(__name__)


class _Users(NamedTuple):
    """All users: demands of a task, and phi in units where a task is a unit of utility."""

    demands: FloatArray
    phi: FloatArray
    alpha: float

    def tasks(self, vertices: FloatArray) -> FloatArray:
        """Return the demand of each user at the least of these price vectors, in tasks, (users,)."""
        return np.asarray((self.phi / (self.demands @ vertices.T).min(axis=1)) ** (1 / self.alpha))


class _Groups(NamedTuple):
    """Groups as users of a program; a group's tasks are counted relative to its expected tasks."""

    part: FloatArray  # (users,)
    demands: FloatArray  # (groups, resources)
    weights: FloatArray  # (groups,)

    @classmethod
    def of(cls, users: _Users, group: IntArray, tasks: FloatArray) -> _Groups:
        """Group users by their expected tasks."""
        weights = sums(group, (users.phi * tasks ** (1 - users.alpha))[:, None])[:, 0]
        return cls(tasks, sums(group, users.demands * tasks[:, None]), weights)


class _Round(NamedTuple):
    """The answer to a program of groups: server i has the prices vertices[piece[i]], and groups have ``shares`` on it."""

    program: Program
    solution: Solution
    vertices: FloatArray
    piece: IntArray
    shares: FloatArray


def solve_alpha_fair(program: AllPairs, goal: AlphaFair, deadline: Deadline) -> Solution | None:
    """Return the optimum of an alpha-fair goal over all pairs; None if groups do not give one.

    Raises
    ------
    NoSolution
        At the time limit.
    """
    alpha, servers = goal.alpha, program.capacities
    users, total = _Users(program.demands, goal.weights * program.worths ** (1 - alpha), alpha), servers.sum(axis=0)
    tasks = users.tasks(1 / total[None])
    group = finer(np.zeros(tasks.size, np.int64), users.demands * tasks[:, None] / total, SETTINGS.first_groups)
    iterations, lost, gap, part = 0, 0, np.inf, 1.0
    for round_ in range(1, SETTINGS.most_rounds_of_alpha_fair + 1):
        groups = _Groups.of(users, group, tasks)
        last = _solved(groups, alpha, servers, deadline, part)
        if last is None:  # the path did not converge: more groups are another program
            lost += 1
            if lost > SETTINGS.most_lost:
                return None
            group = finer(group, users.demands * tasks[:, None] / total, int(group.max()) + 1 + SETTINGS.first_groups)
            continue
        iterations += last.solution.iterations
        exact = _exact(users, group, groups, last, servers) if gap < SETTINGS.near_end_of_alpha_fair else None
        vertices = last.vertices if exact is None else exact
        tasks = users.tasks(vertices)
        after = split(group, users.demands * tasks[:, None], vertices, SETTINGS.nearest)
        gap = after.gap
        log.info("round %d: %d groups, %d price vectors, gap %.1e", round_, group.max() + 1, len(vertices), gap)
        if not after.mixed and exact is not None:
            answer = _of_all_users(program, group, users, last._replace(vertices=exact))
            if answer is not None:
                return replace(answer, iterations=iterations, programs_solved=round_)
        if not after.mixed:  # the same program comes again: its answer was too rough
            part *= SETTINGS.less_rough
        group = after.group
        if group.max() >= min(SETTINGS.most_groups_of_alpha_fair, tasks.size // 2):
            return None
    return None


def _solved(groups: _Groups, alpha: float, servers: FloatArray, deadline: Deadline, part: float) -> _Round | None:
    """Return the answer to the program of groups, to a part of the usual tolerances; None if there is none."""
    small = Instance(servers, groups.demands, weights=groups.weights)
    program = program_of(small, AlphaFair(alpha, groups.weights))
    path, *_ = paths_of_alpha_fair(program, NUMPY)
    for rough in SETTINGS.rough:
        solution = path.follow(program, part * rough, deadline, None)
        if solution is not None and solution.prices is not None:
            break
    else:
        return None
    table = np.zeros(servers.shape)
    table[program.limits.keys[:, 0], program.limits.keys[:, 1]] = np.maximum(solution.prices, 0.0)
    vertices, piece = joined_vertices(table)
    return _Round(program, solution, vertices, piece, solution.x.reshape(len(groups.weights), len(servers)))


def _exact(users: _Users, group: IntArray, groups: _Groups, last: _Round, servers: FloatArray) -> FloatArray | None:
    """Return the exact prices if each user buys at the pieces of its group; None if there are none."""
    n = len(last.vertices)
    held = np.stack([last.shares[:, last.piece == k].sum(axis=1) for k in range(n)], axis=1)
    there = pieces_of_groups(held, groups.demands @ last.vertices.T, int(np.count_nonzero(last.vertices)))
    is_split = there.sum(axis=1) > 1
    divided = [
        SplitUser(groups.demands[g], float(groups.weights[g]), np.flatnonzero(there[g]), held[g, there[g]])
        for g in np.flatnonzero(is_split)
    ]
    whole = ~is_split[group]
    pieces = Pieces(last.vertices, sums(last.piece, servers), divided)
    return exact_prices(pieces, users.demands[whole], users.phi[whole], held.argmax(axis=1)[group[whole]], users.alpha)


def _of_all_users(program: AllPairs, group: IntArray, users: _Users, last: _Round) -> Solution | None:
    """Return the answer at exact prices as the one of all users and servers; None if tasks do not fill what has a price."""
    groups = _Groups.of(users, group, users.tasks(last.vertices))
    prices = last.vertices[last.piece]
    y = polished(last.shares, groups.demands, np.ones(len(groups.weights)), program.capacities, prices)
    if y is None:
        return None
    return Solution((y[group] * groups.part[:, None]).ravel(), prices=prices.ravel(), groups=len(groups.weights))
