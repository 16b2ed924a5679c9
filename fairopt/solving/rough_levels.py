r"""A rough leximin of many users on many servers: that of groups of similar users on groups of similar servers.

Users who may run on the same servers and demand the same resources are a class; so are servers on which the same users may run. Classes
are divided into groups of similar shape (`fairopt.solving.grouping.finer`). A group of users demands what its users demand together in a
unit of level; a group of servers has what its servers have together. The leximin of the groups is not that of the users, as a group
divides alike what its users would not, and a server's leftovers are no other server's gain. But its levels, and the servers that each of
them is about, are about right: an engine may begin with them (`fairopt.solvers.interior_point.regions`), and proves what it answers.
"""

from __future__ import annotations

import logging

import numpy as np

from fairopt.errors import FairoptError
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.models import Notion, ShareNotion, Sharing
from fairopt.program import Leximin, LimitKind, Program, Solution, Stage
from fairopt.solvers import candidates
from fairopt.solvers.backend import Deadline
from fairopt.solving.formulation import notion_of
from fairopt.solving.grouping import finer, sums
from fairopt.solving.policy import find

__all__ = ["fits_rough", "rough_levels"]

log = logging.getLogger(__name__)

_LEAST_PAIRS, _LEAST_LIMITS = 100_000, 600
_GROUPS, _SERVER_GROUPS = 300, 120  # at least, as far as there are as many users and servers
_PART = 0.5  # of the users, of the servers: with more groups nothing is gained
_TOLERANCE = 1e-6


def fits_rough(instance: Instance, notion: Notion, sharing: Sharing) -> bool:
    """Say whether a rough answer is worth its time: a leximin of shares with enough pairs and limits, which may have several levels."""
    if sharing != "rdm" or instance.is_tree or instance.weights.ndim > 1:
        return False
    if instance.eligibility.all() and (instance.demands > 0).all() and np.isinf(instance.tasks).all():  # one level
        return False
    if instance.n_servers * instance.demands.shape[1] < _LEAST_LIMITS or int(instance.eligibility.sum()) < _LEAST_PAIRS:
        return False
    if not isinstance(notion, ShareNotion) or type(notion).formulate is not ShareNotion.formulate:
        return False
    if instance.rates_per_server is not None or not np.isinf(instance.parallelism).all() or instance.zero_demand.any():
        return False
    if (instance.guarantees > 0).any() or not isinstance(notion.goal(instance.weights), Leximin):
        return False
    share = notion.share_per_task(instance)
    return share.ndim == 1 and bool((np.isfinite(share) & (share > 0)).all())


def rough_levels(instance: Instance, notion: Notion, program: Program, deadline: Deadline) -> Solution | None:
    """Return levels of about the right size, and prices of the program's limits that show which servers each is about.

    None where users, or servers, are so different that groups are hardly fewer, or where there is no answer. The answer has no points,
    only levels and prices.

    Raises
    ------
    NoSolution
        At the time limit; no level is final then.
    """
    assert isinstance(notion, ShareNotion)
    share, capacity = notion.share_per_task(instance), instance.row_capacity
    total = np.maximum(capacity.sum(axis=0), np.finfo(float).tiny)
    take = instance.demands * (instance.weights / share)[:, None]
    row = _classes(np.packbits(instance.eligibility.T, axis=1), capacity > 0)
    first = np.unique(row, return_index=True)[1]
    ends = np.isfinite(instance.tasks)
    group = _classes(np.packbits(instance.eligibility[:, first], axis=1), take > 0, ends[:, None])
    if group.max() >= _PART * group.size or row.max() >= _PART * row.size:
        return None
    row = finer(row, np.maximum(capacity / total, np.finfo(float).tiny), _SERVER_GROUPS)
    group = finer(group, take / total, _GROUPS)
    try:
        small = _formulated(instance, share, take, group, row)
        found = find(small, candidates(small, None), _TOLERANCE, deadline)
    except FairoptError as error:
        if deadline.left == 0.0:
            raise deadline.passed({"levels": [], "users": []}) from None
        log.info("no rough answer: %s", error)
        return None
    log.info("a rough answer: %d groups of users, %d of servers, %d levels", group.max() + 1, row.max() + 1, len(found.solution.stages))
    return Solution(np.zeros(0), tuple(_stage(stage, small, program, row) for stage in found.solution.stages if stage.prices is not None))


def _classes(*keys: np.ndarray) -> IntArray:
    """Number the different rows of some tables side by side."""
    return np.asarray(np.unique(np.hstack([np.asarray(key, np.uint8) for key in keys]), axis=0, return_inverse=True)[1]).ravel()


def _formulated(instance: Instance, share: FloatArray, take: FloatArray, group: IntArray, row: IntArray) -> Program:
    """Return the program of the groups, whose tasks are units of level."""
    weights = sums(group, instance.weights[:, None])[:, 0]
    user, server = (np.unique(of, return_index=True)[1] for of in (group, row))
    held = np.where(np.isfinite(instance.tasks), instance.tasks * share, 0.0)
    small = Instance(
        sums(row, instance.row_capacity),
        sums(group, take) / weights[:, None],
        weights=weights,
        eligibility=instance.eligibility[np.ix_(user, server)],
        tasks=np.where(np.isfinite(instance.tasks[user]), np.bincount(group, weights=held), np.inf),
    )
    return notion_of("max-min", utility=np.ones((weights.size, 1))).formulate(small, sharing="rdm", integral=False)


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
