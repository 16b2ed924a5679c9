r"""Many users on many servers: an exact answer from a few hundred groups of users.

If every user may run everywhere, demands every resource and has no task limit, a leximin of shares has one level. In units of that level
user n takes v[n,r] = phi[n] d[n,r] / u[n] of resource r, and

    maximise t   subject to   sum_n v[n,r] y[n,i] <= c[i,r],   sum_i y[n,i] = t,   y >= 0          dual prices p[i,r] >= 0
    minimise sum_i p[i].c[i]   subject to   q[n] <= p[i].v[n],   sum_n q[n] = 1.

So each server has, among all price vectors that cost no user less than q, the one at which its capacity is worth least. Few distinct price
vectors p[l] occur: the dual function q(v) = min over l of p[l].v has few pieces, whatever the number of users and servers.

*Groups of users* that spread over the servers in the same proportions are one user with the sum of their v. That restricts the program,
but not its optimum if the same piece is the least for all users of the group: then q(sum of v) is the sum of the q(v). *Groups of servers*
are one server with the sum of their c. That relaxes the program, but not its dual optimum under the same condition. So we

    group users, and servers, of similar shape;  solve;  split each group whose members have different least pieces;  solve again,

first with few groups of servers, at last with every server by itself. It ends when no group of users is split: the gap between the level
and the bound is the sum over groups of q(sum of v) - sum of q(v), which is then 0. Boundaries between pieces move less in each round, so
few users lie between an old and a new boundary; near the end, the users nearest to a boundary become groups of their own.

Nothing is proved here: `fairopt.certificate.one_level` checks the tasks of all users against the prices, pair by pair.

>>> split(np.array([0, 0, 1]), np.array([[2.0, 1.0], [1.0, 2.0], [1.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])).group
array([2, 1, 0])
"""

from __future__ import annotations

import heapq
import logging
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.program import AllPairs, Equalize, Goal, Program, Solution, Stage
from fairopt.program.cluster_limits import eligible_pairs, sharing_limits
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.levels import solve_levels
from fairopt.solvers.large.group_polish import polished, tied
from fairopt.solvers.large.settings import SETTINGS

__all__ = ["Split", "finer", "joined_vertices", "program_of", "solve_level", "split", "sums"]

log = logging.getLogger(__name__)


class Split(NamedTuple):
    """Groups after a split.

    Attributes
    ----------
    group : int array (members,)
    worth : float
        Sum of the least prices of all members.
    gap : float
        By how much that of the groups before the split was larger, relative.
    mixed : int
        How many groups were split.
    """

    group: IntArray
    worth: float
    gap: float
    mixed: int


class _Round(NamedTuple):
    """The answer to a program of groups: the prices of server i are vertices[piece[i]]."""

    program: Program
    solution: Solution
    piece: IntArray
    vertices: FloatArray

    @property
    def shares(self) -> FloatArray:
        """Shares of groups on servers, (groups, servers)."""
        return self.solution.x.reshape(len(self.program.users), len(self.program.servers))


def solve_level(program: AllPairs, tolerance: float, deadline: Deadline) -> Solution | None:
    """Return the leximin of a program of all pairs, which has one level; None if groups do not give one.

    Raises
    ------
    NoSolution
        At the time limit.
    """
    weights = program.goal.weights
    users, servers = program.demands * (weights / program.worths)[:, None], program.capacities
    total = servers.sum(axis=0)
    phases = [(size, aim) for size, aim in SETTINGS.server_groups if size < len(servers)]
    group, row = finer(np.zeros(len(users), np.int64), users / total, SETTINGS.first_groups), np.arange(len(servers))
    if phases:
        row = finer(np.zeros(len(servers), np.int64), servers / total, phases[0][0])
    iterations, lost = 0, 0
    for round_ in range(1, SETTINGS.most_rounds + 1):
        last = _solved(_program(users, weights, servers, group, row), tolerance, deadline)
        if last is None:  # the path did not converge: try a program with more groups
            lost += 1
            if lost > SETTINGS.most_lost:
                return None
            group = finer(group, users / total, int(group.max()) + 1 + SETTINGS.first_groups)
            continue
        iterations += last.solution.iterations
        if not phases:
            last = last._replace(vertices=tied(last.vertices, last.piece, last.shares, sums(group, users)))
        of_users = split(group, users, last.vertices, 0 if phases else SETTINGS.nearest)
        gap = float((last.vertices[last.piece] * sums(row, servers)).sum()) / of_users.worth / last.solution.stages[0].value - 1
        log.info("round %d: %d groups of users, %d of servers, gap %.1e", round_, group.max() + 1, row.max() + 1, gap)
        if not phases and not of_users.mixed:
            return replace(_of_all_users(program, group, last), iterations=iterations, programs_solved=round_)
        group, row = of_users.group, split(row, servers, last.vertices).group if phases else row
        if group.max() >= min(SETTINGS.most_groups, len(users) // 2):
            return None
        if phases and gap < phases[0][1]:
            del phases[0]
            row = finer(row, servers / total, phases[0][0]) if phases else np.arange(len(servers))
    return None


# Groups --------------------------------------------------------------------------------------------------------------------------


def finer(group: IntArray, vectors: FloatArray, number: int) -> IntArray:
    """Split groups until there are this many: the one whose members differ most in shape, weighted by their size, into halves.

    Parameters
    ----------
    group : int array (members,)
    vectors : array (members, resources)
        In parts of the cluster.
    number : int
    """
    size = vectors.sum(axis=1)
    shape = vectors / size[:, None]

    def entry(members: IntArray) -> tuple[float, int, int, IntArray]:
        spread = np.ptp(shape[members], axis=0)
        along = int(spread.argmax())
        return -float(spread[along] * size[members].sum()), int(members[0]), along, members

    order = np.argsort(group, kind="stable")
    heap = [entry(members) for members in np.split(order, np.flatnonzero(np.diff(group[order])) + 1)]
    heapq.heapify(heap)
    while len(heap) < number and heap[0][0] < 0:
        _, _, along, members = heapq.heappop(heap)
        members = members[np.argsort(shape[members, along], kind="stable")]
        for half in np.array_split(members, 2):
            heapq.heappush(heap, entry(half))
    split_up = np.empty(len(vectors), np.int64)
    for place, (_, _, _, members) in enumerate(heap):
        split_up[members] = place
    return split_up


def split(group: IntArray, vectors: FloatArray, vertices: FloatArray, nearest: int = 0) -> Split:
    """Split the groups whose members have different least pieces of the dual function.

    Parameters
    ----------
    group : int array (members,)
    vectors : array (members, resources)
    vertices : array (pieces, resources)
        Prices.
    nearest : int
        Near the end, this many members nearest to each boundary between pieces become groups of their own.
    """
    cost = vectors @ vertices.T
    piece = cost.argmin(axis=1)
    own = cost[np.arange(len(cost)), piece]
    of_group = (sums(group, vectors) @ vertices.T).min(axis=1)
    lost = of_group - np.bincount(group, weights=own)
    mixed = lost > SETTINGS.same_worth * of_group
    worth, gap = float(own.sum()), float(lost[mixed].sum()) / float(own.sum())
    label = np.where(mixed[group], of_group.size + group * len(vertices) + piece, group)
    if mixed.any() and gap < SETTINGS.near_end and nearest and len(vertices) > 1:
        alone = _nearest(cost, mixed[group], nearest)
        label[alone] = -1 - alone
    return Split(np.unique(label, return_inverse=True)[1], worth, gap, int(mixed.sum()))


def _nearest(cost: FloatArray, mixed: BoolArray, number: int) -> IntArray:
    """Return ``number`` members nearest to each boundary between two pieces, for boundaries that divide a mixed group."""
    two = np.argpartition(cost, 1, axis=1)[:, :2]
    each = np.arange(len(cost))[:, None]
    ratio = np.ptp(cost[each, two], axis=1) / cost[each, two].min(axis=1)
    boundary = two.min(axis=1) * cost.shape[1] + two.max(axis=1)
    alone = []
    for one in np.unique(boundary[mixed]):
        members = np.flatnonzero(boundary == one)
        alone.append(members[np.argsort(ratio[members], kind="stable")[:number]])
    return np.concatenate(alone)


def sums(group: IntArray, vectors: FloatArray) -> FloatArray:
    """Sum the vectors of the members of each group, (groups, resources)."""
    return np.stack([np.bincount(group, weights=column) for column in vectors.T], axis=1)


# Programs and answers ------------------------------------------------------------------------------------------------------------


def program_of(small: Instance, goal: Goal) -> Program:
    """Return the program of groups of users on groups of servers; a task of a group is a unit of its share."""
    users, servers = eligible_pairs(small)
    return Program(
        name="groups",
        title="",
        users=small.users,
        servers=small.servers,
        resources=small.resources,
        pair_users=users,
        pair_servers=servers,
        utilities=np.ones(users.size),
        limits=sharing_limits(small, users, servers, "rdm"),
        goal=goal,
    )


def _program(users: FloatArray, weights: FloatArray, servers: FloatArray, group: IntArray, row: IntArray) -> Program:
    """Return the program of the one level of groups of users on groups of servers.

    The goal is one equal level, not a leximin: prices hardly prove that a group with a millionth of all spending stops at this level, and
    the path would look for a second level.
    """
    of_group = sums(group, weights[:, None])[:, 0]
    small = Instance(sums(row, servers), sums(group, users) / of_group[:, None], weights=of_group)
    return program_of(small, Equalize(of_group))


def _solved(program: Program, tolerance: float, deadline: Deadline) -> _Round | None:
    """Return the answer to a program, with equal prices for servers whose prices differ by rounding only; None if there is none.

    Otherwise rounding would separate pairs of equal cost, and a user with a millionth of all spending would seem to waste much of it.

    Raises
    ------
    NoSolution
        At the time limit.
    """
    assert isinstance(program.goal, Equalize)
    solution = solve_levels(program, program.goal, tolerance, deadline)
    if solution is None or not solution.stages or solution.stages[0].prices is None:
        return None
    keys, table = program.limits.keys, np.zeros((len(program.servers), len(program.resources)))
    table[keys[:, 0], keys[:, 1]] = np.maximum(solution.stages[0].prices, 0.0)
    vertices, piece = joined_vertices(table / table.max())
    return _Round(program, solution, piece, vertices)


def joined_vertices(table: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct rows of a table of prices (servers, resources), and the position of each server's row among them.

    Rows that differ by rounding only are one row, and prices next to 0 become 0.
    """
    largest = float(table.max())
    _, of, members = np.unique(np.round(table / (SETTINGS.same_prices * largest)), axis=0, return_inverse=True, return_counts=True)
    vertices = sums(of.ravel(), table) / members[:, None]
    vertices[vertices < SETTINGS.priced * largest] = 0.0
    return vertices, of.ravel()


def _of_all_users(program: AllPairs, group: IntArray, last: _Round) -> Solution:
    """Return the answer in groups as the one of all users and servers, with its last digits."""
    weights = sums(group, program.goal.weights[:, None])[:, 0]
    part = program.goal.weights / (weights[group] * program.worths)
    take = sums(group, program.demands * part[:, None])
    prices, y = last.vertices[last.piece], last.shares
    for small in SETTINGS.no_prices:
        fewer = _without_small_prices(last, small, take)
        exact = polished(y, take, weights, program.capacities, fewer)
        if exact is not None:
            prices, y = fewer, exact
            break
    level = float((y.sum(axis=1) / weights).min())
    told = (prices * (level / float((prices * program.capacities).sum()))).ravel()  # d(level) / d(capacity): all limits are worth the level
    x = (y[group] * part[:, None]).ravel()
    return Solution(x, (Stage(level, np.arange(group.size), told),), groups=weights.size)


def _without_small_prices(last: _Round, small: float, take: FloatArray) -> FloatArray:
    """Return the prices of servers, (servers, resources), with 0 for prices that are a smaller part of the largest.

    Where users pay for a limit a billionth of all that is paid, the end of a path does not tell its price from 0.
    """
    if small == 0:
        return last.vertices[last.piece]
    largest = float(last.vertices.max())
    vertices, piece = joined_vertices(np.where(last.vertices < small * largest, 0.0, last.vertices)[last.piece])
    return tied(vertices, piece, last.shares, take)[piece]
