r"""Alpha-fair goals of many users on many servers: an exact answer from a few hundred groups of users.

As for a level (`fairopt.solving.grouping`), the dual of an alpha-fair goal involves the least of a few price vectors:

    minimise sum_i p[i].c[i] + sum_n phi[n] h(q[n])      subject to      q[n] <= p[i].d[n],           t[n] = (phi[n] / q[n])^(1 / alpha)

Users of a group have tasks in fixed proportions, t[n] = a[n] T: they are one user who demands sum a d, with the weight
sum phi a^(1 - alpha). That restricts the program, but not its optimum if the proportions are optimal and one price vector is the least for
all users of the group. So we

    group users of similar shape;  solve;  set the proportions by the prices;  split groups whose members have different least prices

until no group is split. The pieces at which each user buys are then known: `fairopt.solving.piece_prices` computes the exact prices and
proportions, and `fairopt.solving.group_polish` moves tasks until every priced resource is full.

The certificate does not rely on this: `fairopt.certificate.one_worth` checks the tasks of all users against the prices, pair by pair.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fairopt.certificate import certify_one_worth
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.aggregation import Merging
from fairopt.models import Notion, ShareNotion, Sharing
from fairopt.program import AlphaFair, Program, Solution
from fairopt.solvers import candidates
from fairopt.solvers.backend import Deadline
from fairopt.solving.formulation import notion_of
from fairopt.solving.group_polish import pieces_of_groups, polished
from fairopt.solving.grouping import InGroups, alike, finer, joined_vertices, split, sums
from fairopt.solving.piece_prices import Pieces, SplitUser, exact_prices
from fairopt.solving.policy import Found

__all__ = ["fits_worth", "solve_worth_in_groups"]

log = logging.getLogger(__name__)

_ENGINE = "interior-point"
_LEAST_ALPHA, _MOST_ALPHA = 0.7, 2.5  # in this range the path of a round is fast and nearly always converges
_FIRST_GROUPS = 64
_MOST_ROUNDS, _MOST_LOST, _MOST_GROUPS, _MOST_SERVERS = 16, 3, 4_000, 330
_NEAREST = 12  # users nearest to each boundary between pieces that become groups of their own near the end
_ROUGH = (1e-5, 1e-3)  # tolerances of a round, tried in turn: paths end four digits below, and the exact prices give the other digits
_NEAR_END = 1e-3  # relative gap below which the pieces at which each group buys may be known


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


def fits_worth(instance: Instance, notion: Notion, sharing: Sharing, solver: str | None) -> bool:
    """Is this an alpha-fair goal, alpha not far from 1, of enough users for groups to be faster?"""
    if solver not in (None, _ENGINE) or not isinstance(notion, ShareNotion) or type(notion).formulate is not ShareNotion.formulate:
        return False
    if instance.demands.shape[1] == 1 or instance.n_servers > _MOST_SERVERS or not alike(instance, sharing):
        return False
    goal = notion.goal(instance.weights)
    if not isinstance(goal, AlphaFair) or not _LEAST_ALPHA <= goal.alpha <= _MOST_ALPHA or not (instance.weights > 0).all():
        return False
    share = notion.share_per_task(instance)
    one_each = share.ndim == 1 or bool((share == share[:, :1]).all())
    return one_each and bool((np.isfinite(share) & (share > 0)).all())


def solve_worth_in_groups(instance: Instance, notion: Notion, tolerance: float, deadline: Deadline) -> InGroups | None:
    """Return the certified answer to an instance that `fits_worth`; None if groups do not give one.

    Raises
    ------
    NoSolution
        At the time limit.
    """
    from threadpoolctl import ThreadpoolController

    assert isinstance(notion, ShareNotion)
    goal, share = notion.goal(instance.weights), notion.share_per_task(instance)
    assert isinstance(goal, AlphaFair)
    with ThreadpoolController().limit(limits=1, user_api="blas"):  # in many small products threads only wait for each other
        return _in_rounds(instance, goal, share if share.ndim == 1 else share[:, 0], tolerance, deadline)


def _in_rounds(instance: Instance, goal: AlphaFair, share: FloatArray, tolerance: float, deadline: Deadline) -> InGroups | None:
    """Solve for groups of users and split groups, until no group is split."""
    alpha, servers = goal.alpha, instance.row_capacity
    users, total = _Users(instance.demands, instance.weights * share ** (1 - alpha), alpha), servers.sum(axis=0)
    tasks = users.tasks(1 / total[None])
    group = finer(np.zeros(instance.n_users, np.int64), users.demands * tasks[:, None] / total, _FIRST_GROUPS)
    iterations, lost, gap = 0, 0, np.inf
    for round_ in range(1, _MOST_ROUNDS + 1):
        groups = _Groups.of(users, group, tasks)
        last = _solved(groups, alpha, servers, deadline)
        if last is None:  # the path did not converge: more groups are another program
            lost += 1
            if lost > _MOST_LOST:
                return None
            group = finer(group, users.demands * tasks[:, None] / total, int(group.max()) + 1 + _FIRST_GROUPS)
            continue
        iterations += last.solution.iterations
        exact = _exact(users, group, groups, last, servers) if gap < _NEAR_END else None
        vertices = last.vertices if exact is None else exact
        tasks = users.tasks(vertices)
        after = split(group, users.demands * tasks[:, None], vertices, _NEAREST)
        gap = after.gap
        log.info("round %d: %d groups, %d price vectors, gap %.1e", round_, group.max() + 1, len(vertices), gap)
        if not after.mixed and exact is not None:
            answer = _certified(instance, goal, share, group, users, last._replace(vertices=exact), tolerance)
            if answer is not None:
                return answer.after(round_, iterations)
        group = after.group
        if group.max() >= min(_MOST_GROUPS, instance.n_users // 2):
            return None
    return None


def _solved(groups: _Groups, alpha: float, servers: FloatArray, deadline: Deadline) -> _Round | None:
    """Return the answer to the program of groups; None if there is none."""
    small = Instance(servers, groups.demands, weights=groups.weights)
    program = notion_of("proportional", alpha=alpha).formulate(small, sharing="rdm", integral=False)
    for rough in _ROUGH:
        first = candidates(program, _ENGINE)[0].ways(program, rough)[0]
        solution = first.solve(program, rough, deadline, None)
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


def _certified(
    instance: Instance, goal: AlphaFair, share: FloatArray, group: IntArray, users: _Users, last: _Round, tolerance: float
) -> InGroups | None:
    """Return the answer at exact prices with the certificate of all users and servers, None if that is not within the tolerance."""
    n_servers = instance.n_servers
    groups = _Groups.of(users, group, users.tasks(last.vertices))
    prices = last.vertices[last.piece]
    y = polished(last.shares, groups.demands, np.ones(len(groups.weights)), instance.row_capacity, prices)
    if y is None:
        return None
    merging = Merging(instance, instance, group, np.arange(n_servers), groups.part, np.ones(n_servers))
    tasks = merging.spread(y)
    certificate = certify_one_worth(instance, goal, share, tasks, prices)
    log.info("all users and servers: %.1e", certificate.worst)
    if not certificate.worst <= tolerance:
        return None
    keys = last.program.limits.keys
    solution = replace(last.solution, x=y.ravel(), prices=prices[keys[:, 0], keys[:, 1]])
    return InGroups(last.program, merging, Found(solution, certificate, _ENGINE, None, (_ENGINE,), last.program), tasks)
