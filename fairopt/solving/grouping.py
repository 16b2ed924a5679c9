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

The certificate does not rely on this: `fairopt.certificate.one_level` checks the tasks of all users against the prices, pair by pair.

>>> split(np.array([0, 0, 1]), np.array([[2.0, 1.0], [1.0, 2.0], [1.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])).group
array([2, 1, 0])
"""

from __future__ import annotations

import heapq
import logging
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fairopt.certificate import certify_one_level
from fairopt.errors import NoSolution
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.aggregation import Merging
from fairopt.models import Notion, ShareNotion, Sharing
from fairopt.program import Equalize, Leximin, Program, Stage
from fairopt.solvers import candidates
from fairopt.solvers.backend import Deadline
from fairopt.solving.formulation import notion_of
from fairopt.solving.group_polish import polished, tied
from fairopt.solving.policy import Found, find

__all__ = ["InGroups", "Split", "alike", "finer", "fits", "joined_vertices", "solve_in_groups", "split", "sums"]

log = logging.getLogger(__name__)

_ENGINE, _OTHER_ENGINE = "interior-point", "highs"
_MOST_PAIRS_OF_OTHER = 200_000  # of groups and servers: HiGHS solves no larger programs of groups
_TIGHT = 1e-16  # its tolerance: prices of users with little of all worth need every digit
_LEAST_PAIRS, _LEAST_USERS, _LEAST_SERVERS = 1_000_000, 3_000, 50
_USERS_FOR_A_SERVER = 2  # with fewer of them the groups would be as many as the users
_FIRST_GROUPS = 64  # of users
_SERVER_GROUPS = ((64, 1e-3), (256, 1e-4))  # until the relative gap is below this; then all servers
_MOST_ROUNDS, _MOST_LOST = 24, 3
_MOST_GROUPS = 2_500
_SAME_PRICES = 1e-7  # relative to the largest
_NO_PRICE = 1e-9  # relative to the largest
_SAME_WORTH = 1e-13  # relative: what groups lose by rounding
_NEAREST, _NEAR_END = 12, 1e-4  # users nearest to each boundary that become groups of their own; the relative gap below which they do


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


@dataclass(frozen=True, slots=True, eq=False)
class InGroups:
    """An answer in groups of users.

    Attributes
    ----------
    program : Program
        Of the groups, whose tasks are counted in units of share.
    merging : Merging
        From the users to the groups.
    found : Found
        The answer to this program. Its certificate is that of all users and servers.
    tasks : array (users, servers)
    """

    program: Program
    merging: Merging
    found: Found
    tasks: FloatArray

    def after(self, rounds: int, iterations: int) -> InGroups:
        """Return the answer with the work of all rounds."""
        solution = replace(self.found.solution, iterations=iterations, programs_solved=rounds)
        return replace(self, found=replace(self.found, solution=solution))


class _Round(NamedTuple):
    """The answer to a program of groups: the prices of server i are vertices[piece[i]]."""

    program: Program
    found: Found
    piece: IntArray
    vertices: FloatArray

    @property
    def shares(self) -> FloatArray:
        """Shares of groups on servers, (groups, servers)."""
        return self.found.solution.x.reshape(len(self.program.users), len(self.program.servers))


def fits(instance: Instance, notion: Notion, sharing: Sharing, solver: str | None) -> bool:
    """Say whether the leximin of a notion has one level for sure, and is so large that groups of users are faster."""
    if solver not in (None, _ENGINE) or not alike(instance, sharing):
        return False
    if not isinstance(notion, ShareNotion) or type(notion).formulate is not ShareNotion.formulate:
        return False
    share = notion.share_per_task(instance)
    one_each = isinstance(share, np.ndarray) and share.shape == (instance.n_users,) and bool((np.isfinite(share) & (share > 0)).all())
    return one_each and isinstance(notion.goal(instance.weights), Leximin)


def alike(instance: Instance, sharing: Sharing) -> bool:
    """Are all users eligible everywhere, with positive demands and no limits, and are there enough pairs for groups to be faster?"""
    n, k = instance.n_users, instance.n_servers
    if sharing != "rdm" or instance.is_tree or instance.weights.ndim > 1:
        return False
    if n * k < _LEAST_PAIRS or k < _LEAST_SERVERS or n < max(_LEAST_USERS, _USERS_FOR_A_SERVER * k):
        return False
    endless = bool(np.isinf(instance.tasks).all() and np.isinf(instance.parallelism).all())
    return endless and instance.rates_per_server is None and bool((instance.demands > 0).all() and instance.eligibility.all())


def solve_in_groups(instance: Instance, notion: Notion, tolerance: float, deadline: Deadline, solver: str | None = None) -> InGroups | None:
    """Return the certified answer to an instance that `fits`; None where groups lead nowhere, and the program has to be solved as it is.

    Raises
    ------
    NoSolution
        At the time limit.
    """
    assert isinstance(notion, ShareNotion)
    share = notion.share_per_task(instance)
    users, servers = instance.demands * (instance.weights / share)[:, None], instance.row_capacity
    total = servers.sum(axis=0)
    phases = [(size, aim) for size, aim in _SERVER_GROUPS if size < len(servers)]
    group, row = finer(np.zeros(len(users), np.int64), users / total, _FIRST_GROUPS), np.arange(len(servers))
    if phases:
        row = finer(np.zeros(len(servers), np.int64), servers / total, phases[0][0])
    engine, iterations, lost = _ENGINE, 0, 0
    for round_ in range(1, _MOST_ROUNDS + 1):
        last = _solved(_program(users, instance.weights, servers, group, row), engine, tolerance, deadline)
        if last is None:  # the engine did not converge: try a program with more groups
            lost += 1
            if lost > _MOST_LOST:
                return None
            group = finer(group, users / total, int(group.max()) + 1 + _FIRST_GROUPS)
            continue
        iterations += last.found.solution.iterations
        if not phases:
            last = last._replace(vertices=tied(last.vertices, last.piece, last.shares, sums(group, users)))
        of_users = split(group, users, last.vertices, 0 if phases else _NEAREST)
        gap = float((last.vertices[last.piece] * sums(row, servers)).sum()) / of_users.worth / last.found.solution.stages[0].value - 1
        log.info("round %d: %d groups of users, %d of servers, gap %.1e", round_, group.max() + 1, row.max() + 1, gap)
        if not phases and not of_users.mixed:
            answer = _certified(instance, share, group, last, tolerance)
            if answer is None and solver is None and engine == _ENGINE and last.program.n_pairs <= _MOST_PAIRS_OF_OTHER:
                # Near a degenerate optimum the interior point stops before it knows the prices of users with little of all worth.
                engine = _OTHER_ENGINE
                continue
            return None if answer is None else answer.after(round_, iterations)
        group, row = of_users.group, split(row, servers, last.vertices).group if phases else row
        if group.max() >= min(_MOST_GROUPS, len(users) // 2):
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
    mixed = lost > _SAME_WORTH * of_group
    worth, gap = float(own.sum()), float(lost[mixed].sum()) / float(own.sum())
    label = np.where(mixed[group], of_group.size + group * len(vertices) + piece, group)
    if mixed.any() and gap < _NEAR_END and nearest and len(vertices) > 1:
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


def _program(users: FloatArray, weights: FloatArray, servers: FloatArray, group: IntArray, row: IntArray) -> Program:
    """Return the program of the one level of groups of users on groups of servers; a task is a unit of share.

    The goal is one equal level, not a leximin: prices hardly prove that a group with a millionth of all spending stops at this level, and
    the engine would look for a second level.
    """
    of_group = sums(group, weights[:, None])[:, 0]
    small = Instance(sums(row, servers), sums(group, users) / of_group[:, None], weights=of_group)
    program = notion_of("max-min", utility=np.ones((of_group.size, 1))).formulate(small, sharing="rdm", integral=False)
    return replace(program, goal=Equalize(of_group))


def _solved(program: Program, engine: str, tolerance: float, deadline: Deadline) -> _Round | None:
    """Return an engine's answer to a program, with equal prices for servers whose prices differ by rounding only; None if there is none.

    Otherwise rounding would separate pairs of equal cost, and a user with a millionth of all spending would seem to waste much of it.

    Raises
    ------
    NoSolution
        At the time limit.
    """
    try:
        found = find(program, candidates(program, engine), tolerance if engine == _ENGINE else _TIGHT, deadline)
    except NoSolution:
        if deadline.left == 0.0:
            raise
        return None
    stages, keys = found.solution.stages, program.limits.keys
    if not stages or stages[0].prices is None:
        return None
    table = np.zeros((len(program.servers), len(program.resources)))
    table[keys[:, 0], keys[:, 1]] = np.maximum(stages[0].prices, 0.0)
    vertices, piece = joined_vertices(table / table.max())
    engines = tuple(dict.fromkeys((_ENGINE, *found.engines)))
    return _Round(program, replace(found, engines=engines), piece, vertices)


def joined_vertices(table: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct rows of a table of prices (servers, resources), and the position of each server's row among them.

    Rows that differ by rounding only are one row, and prices next to 0 become 0.
    """
    largest = float(table.max())
    _, of, members = np.unique(np.round(table / (_SAME_PRICES * largest)), axis=0, return_inverse=True, return_counts=True)
    vertices = sums(of.ravel(), table) / members[:, None]
    vertices[vertices < _NO_PRICE * largest] = 0.0
    return vertices, of.ravel()


def _certified(instance: Instance, share: FloatArray, group: IntArray, last: _Round, tolerance: float) -> InGroups | None:
    """Return the answer with the certificate of all users and servers, None if that is not within the tolerance."""
    program, n = last.program, len(last.program.users)
    weights, n_servers = sums(group, instance.weights[:, None])[:, 0], instance.n_servers
    part = instance.weights / (weights[group] * share)
    merging = Merging(instance, instance, group, np.arange(n_servers), part, np.ones(n_servers))
    take = sums(group, instance.demands * part[:, None])
    prices = last.vertices[last.piece]
    exact = polished(last.shares, take, weights, instance.row_capacity, prices)
    y = last.shares if exact is None else exact
    level = float((y.sum(axis=1) / weights).min())
    tasks = merging.spread(y)
    certificate = certify_one_level(instance, share, tasks, level, prices)
    log.info("all users and servers: %.1e", certificate.worst)
    if not certificate.worst <= tolerance:
        return None
    limits = program.limits
    told = prices[limits.keys[:, 0], limits.keys[:, 1]]
    told = told * (level / float(told @ limits.bounds))  # d(level) / d(capacity): all limits are worth the level
    solution = replace(last.found.solution, x=y.ravel(), stages=(Stage(level, np.arange(n), told),))
    return InGroups(program, merging, replace(last.found, solution=solution, certificate=certificate, finished_by=None), tasks)
