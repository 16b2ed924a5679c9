"""The prices of a level of a leximin, as a bound on that level in any other instance.

A leximin is proved level by level: the level t of user n has prices p >= 0 of the full limits (`fairopt.certificate.levels`). Let b be the
limits, R the users who stop at t or higher, and q[m] = min over the pairs of m of (price of a task) / (share of a task). Then

    p b = sum over m in R of q[m] t + sum over the other m of q[m] s[m].

By weak duality, the prices also bound the level in another instance with limits b', and q' from its shares and weights. If the users
outside R keep their tasks, which have the shares s'[m] there (smaller ones in a larger cluster), the users of R cannot all exceed

    t' = (p b' - sum over the other m of q'[m] s'[m]) / sum over m in R of q'[m].

So t' bounds the new level. For small changes, t' is the new level if the prices are unique. (A single user of the level may gain more, see
`fairopt.analysis.explanation.gains`.)

Some prices of higher levels leave out the lower levels (`fairopt.certificate.levels`). They do not reproduce their own level, and are not
used here.

>>> import fairopt as fo
>>> pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
>>> prices = LevelPrices.of(fo.solve(pool, "drf"), 0)
>>> round(prices.tasks(pool), 6), round(prices.tasks(pool.replace(weights=[2, 1])), 6)  # the second is a bound; the optimum is 4.153846
(3.0, 4.5)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.allocation import Allocation, Optimum
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.aggregation import merge, unmerged
from fairopt.models import Sharing
from fairopt.program import LimitKind

__all__ = ["LevelPrices"]

_PROVED = 1e-6  # relative: prices that do not reproduce their own level up to this are not used


@dataclass(frozen=True, slots=True, eq=False)
class LevelPrices:
    """The prices of one user's level, as a bound on that level in any other instance."""

    allocation: Allocation
    user: int
    value: float
    table: FloatArray
    of_cluster: dict[str, float]

    @classmethod
    def of(cls, allocation: Allocation, user: int) -> LevelPrices | None:
        """Return the prices of the user's level if it has prices that reproduce the level; else None."""
        number = allocation.level_of_user[user]
        if number is None or allocation.shares.ndim != 1 or not isinstance(allocation.question, Optimum):
            return None
        level = allocation.levels[number - 1]
        table = level.prices
        if table is None and allocation.instance.shared and level.queue_prices:  # only resources of the cluster have a price
            table = np.zeros((allocation.instance.n_servers, 1 if allocation.sharing == "tdm" else allocation.instance.n_server_resources))
        if table is None:
            return None
        found = cls(allocation, user, level.value, table, level.queue_prices)
        tasks = found.tasks(allocation.instance)
        own = float(allocation.work[user])
        return found if tasks is not None and abs(tasks - own) <= _PROVED * own else None

    def tasks(self, instance: Instance, servers: IntArray | None = None) -> float | None:
        """Return the tasks (with speeds, the work) of the user at t', the highest level that the prices allow in another instance."""
        allocation = self.allocation
        assert isinstance(allocation.question, Optimum)
        notion = allocation.question.notion.restricted(servers=servers)
        alpha = notion.merge_alpha if notion.treats_alike(instance) else None
        merging = unmerged(instance) if alpha is None else merge(instance, notion.utility, alpha)
        sharing: Sharing = "tdm" if allocation.sharing == "tdm" else "rdm"
        reduced = notion.restricted(*_firsts(merging.user_group, merging.server_group))
        program = reduced.formulate(merging.instance, sharing=sharing, integral=False)
        if not program.goal.has_levels:
            return None
        users, rows = _firsts(merging.user_group, merging.server_group)
        before = rows if servers is None else servers[rows]
        table = self.table[before]
        if sharing == "tdm":  # prices are of the time of a whole row; a merged row has the same price per server
            table = table * (merging.instance.counts / np.maximum(allocation.instance.counts[before], 1.0))[:, None]
        limits = program.limits
        prices = np.zeros(len(limits))
        shared = np.flatnonzero(limits.kinds == (LimitKind.TIME if sharing == "tdm" else LimitKind.CAPACITY))
        prices[shared] = table[limits.keys[shared, 0], np.maximum(limits.keys[shared, 1], 0)]
        for row in np.flatnonzero(limits.kinds == LimitKind.SHARED).tolist():
            prices[row] = self.of_cluster.get(program.limit_name(row), 0.0)

        weight = program.goal.weights
        per_level = program.utilities / weight[program.pair_users]
        cost = limits.matrix.T @ prices
        cheapest, per_share, least = (np.full(weight.size, np.inf) for _ in range(3))
        np.minimum.at(cheapest, program.pair_users, cost)
        np.minimum.at(per_share, program.pair_users, cost / per_level)
        np.minimum.at(least, program.pair_users, per_level)
        member = np.zeros(weight.size, bool)
        member[program.members] = True
        shares = allocation.shares[users]
        rising = member & (shares >= self.value * (1 - _PROVED))
        complete = member & ~rising & allocation.complete[users] & (instance.speeds_given is None)
        differ = np.zeros(weight.size, bool)  # worth differs between servers: a share does not determine a number of tasks
        differ[program.pair_users[per_level > least[program.pair_users] * (1 + _PROVED)]] = True
        by_share = member & ~rising & ~complete & differ
        by_tasks = member & ~rising & ~by_share
        held = np.bincount(merging.user_group, weights=allocation.tasks_per_user)
        budget = float(prices @ limits.bounds)
        budget -= float(per_share[by_share] @ shares[by_share]) + float(cheapest[by_tasks] @ held[by_tasks])
        total = float(per_share[rising].sum())
        group = int(merging.user_group[self.user])
        if total <= 0 or not rising[group]:
            return None
        level = max(budget, 0.0) / total
        own = np.flatnonzero(program.pair_users == group)
        worth = program.utilities[own]
        if instance.speeds_given is not None:  # of a unit of work
            worth = worth / merging.instance.speeds[group, program.pair_servers[own]]
        if np.ptp(worth) > _PROVED * worth.max():  # worth differs between servers: all tasks of the user grow in proportion to the level
            ratio = float(instance.weights[self.user] / allocation.instance.weights[self.user])
            return float(allocation.work[self.user]) * level / self.value * ratio
        part = float(merging.user_part[self.user])
        return level * float(weight[group]) * part / float(worth[0])


def _firsts(*groups: IntArray) -> tuple[IntArray, ...]:
    return tuple(np.unique(group, return_index=True)[1] for group in groups)
