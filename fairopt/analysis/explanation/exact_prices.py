"""The prices of a level of a leximin in fractions, as a bound on that level in any other instance.

The bound t' is that of `fairopt.analysis.explanation.level_prices`. Here it has no tolerance, the program is not merged, and
`fairopt.certificate.exact_levels` computes what users pay.

>>> import fairopt as fo
>>> pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
>>> prices = ExactLevelPrices.of(fo.solve(pool, "drf", exact=True), 0)
>>> prices.tasks(pool), prices.tasks(pool.replace(weights=[2, 1]))  # the second is a bound; the optimum is 54/13
(Fraction(3, 1), Fraction(9, 2))
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.allocation import Allocation, Level, Optimum
from fairopt.certificate.exact_levels import cheapest, closed_pairs, dot
from fairopt.instance import Instance, IntArray
from fairopt.instance.fractions import ExactArray, from_rational, objects, rational, rationals
from fairopt.models import Sharing
from fairopt.program import LimitKind
from fairopt.program.exact import ExactProgram
from fairopt.program.limits import ACROSS_SERVERS

__all__ = ["ExactLevelPrices"]


@dataclass(frozen=True, slots=True, eq=False)
class ExactLevelPrices:
    """The prices of one user's level, as a bound on that level in any other instance; all in fractions.

    Attributes
    ----------
    allocation : Allocation
        In fractions (`fairopt.Allocation.in_fractions`).
    user : int
    level : Level
        The step of the proof that settles the user (`fairopt.allocation.ExactAnswer.steps`).
    """

    allocation: Allocation
    user: int
    level: Level

    @classmethod
    def of(cls, allocation: Allocation, user: int) -> ExactLevelPrices | None:
        """Return the prices of the user's level if it has prices that reproduce the level; else None."""
        view = allocation.in_fractions
        assert view.exact is not None
        level = next((step for step in view.exact.steps if view.instance.users[user] in step.users), None)
        if level is None or level.prices is None or view.shares.ndim != 1 or not isinstance(view.question, Optimum):
            return None
        found = cls(view, user, level)
        return found if found.tasks(allocation.instance) == view.work[user] else None

    @property
    def table(self) -> Any:
        """The prices of capacity or time, (servers, resources) or (servers, 1)."""
        return self.level.prices

    def tasks(self, instance: Instance, servers: IntArray | None = None) -> Fraction | None:
        """Return the tasks (with speeds, the work) of the user at t', the highest level that the prices allow in another instance.

        ``servers`` has, for each row of the instance, the position of the same row in the present one.
        """
        view, question = self.allocation, self.allocation.question
        assert isinstance(question, Optimum)
        sharing: Sharing = "tdm" if view.sharing == "tdm" else "rdm"
        notion = question.notion.restricted(servers=servers)
        program = notion.exactly.in_fractions(instance.exact, notion.formulate(instance, sharing=sharing, integral=False))
        goal, names = program.goal, program.program
        if not goal.has_levels:
            return None
        prices = self._of_limits(program, servers)
        weights: Any = goal.weights
        per_level, cost, closed = program.utilities / weights[names.pair_users], program.cost(prices), closed_pairs(program)
        of_share = cheapest(program, cost, per_level, closed)
        of_task = cheapest(program, cost, rationals(np.ones(program.n_pairs, np.int64)), closed)
        member = np.zeros(weights.size, bool)
        member[names.members] = True
        rising = member & (view.shares >= self.level.value)
        worth: list[set[Any]] = [set() for _ in range(weights.size)]
        for n, each in zip(names.pair_users.tolist(), per_level.tolist(), strict=True):
            worth[n].add(each)
        differ = np.array([len(each) > 1 for each in worth], bool)  # a share does not determine a number of tasks
        by_share = member & ~rising & (~view.complete | (instance.speeds_given is not None)) & differ
        by_tasks = member & ~rising & ~by_share
        budget = dot(prices.tolist(), program.bounds.tolist())
        budget -= dot(of_share[by_share].tolist(), rationals(view.shares[by_share]).tolist())
        budget -= dot(of_task[by_tasks].tolist(), rationals(view.tasks_per_user[by_tasks]).tolist())
        total = sum(of_share[rising].tolist(), rational(0))
        if total <= 0 or not rising[self.user]:
            return None
        level = max(budget, rational(0)) / total
        own = worth[self.user]
        if instance.speeds_given is not None:  # of a unit of work
            mine, speeds = np.flatnonzero(names.pair_users == self.user), rationals(instance.exact.speeds[self.user])
            own = {per_level[j] / speeds[names.pair_servers[j]] for j in mine.tolist()}
        if len(own) == 1:
            return from_rational(level / next(iter(own)))
        grown = from_rational(level) / self.level.value  # all tasks of the user grow in proportion to the level
        ratio = instance.exact.weights[self.user] / view.instance.weights[self.user]
        tasks: Fraction = view.work[self.user] * grown * ratio
        return tasks

    def _of_limits(self, program: ExactProgram, servers: IntArray | None) -> ExactArray:
        """Return the price of each limit of a program; 0 for limits of single users, because their tasks are counted instead."""
        names, counts = program.program, self.allocation.instance.counts
        prices: list[Any] = []
        for kind, keys in zip(names.limits.kinds.tolist(), names.limits.keys.tolist(), strict=True):
            if kind in (LimitKind.NAMED, *ACROSS_SERVERS):
                prices.append(self.level.queue_prices.get(names.limit_name(len(prices)), 0))
                continue
            if kind not in (LimitKind.CAPACITY, LimitKind.TIME):
                prices.append(0)
                continue
            before = keys[0] if servers is None else servers[keys[0]]
            price = self.table[before, max(keys[1], 0)] if self.table.shape[1] > 1 else self.table[before, 0]
            if kind == LimitKind.TIME:  # the price is for the time of all servers of a row
                price = price * program.instance.counts[keys[0]] / max(counts[before], 1)
            prices.append(price)
        return rationals(objects(prices))
