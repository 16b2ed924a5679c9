"""The exact allocation to the streams that have tasks at a moment.

It is computed anew only if it may have changed. If the same streams have tasks, and every limit that changed is slack before and after,
then the last allocation is still exact. Leximins of a flat list start from the last solution (`fairopt.solvers.RepeatedLevels`); every
allocation is certified.
"""

from __future__ import annotations

import logging

import numpy as np

from fairopt.analysis.properties.case import quietly
from fairopt.certificate import Certificate, allocation_excess, certify
from fairopt.errors import CertificateError, FairoptError, NoSolution
from fairopt.histories.setting import Setting
from fairopt.instance import BoolArray, FloatArray
from fairopt.models import Notion
from fairopt.models.share_notion import ShareNotion
from fairopt.solvers import RepeatedLevels, choose
from fairopt.solving import solve

__all__ = ["Entitlement"]

log = logging.getLogger(__name__)

_SLACK = 1e-9
_MOST_PAIRS = 20_000  # of streams and rows of servers, in a model of all of them
_REMEMBERED = 4_000_000  # numbers in all allocations that are remembered


class Entitlement:
    """Exact allocations, one after the other.

    Attributes
    ----------
    solved : int
        Allocations that were computed.
    residual : float
        The worst residual of their certificates.
    """

    def __init__(self, setting: Setting, notion: Notion) -> None:
        self.setting, self.notion = setting, notion
        self.solved, self.residual = 0, 0.0
        self._limits = np.zeros(setting.n_streams)
        self._tasks = np.zeros((setting.n_streams, setting.cluster.n_servers))
        self._seen: dict[bytes, FloatArray] = {}
        promises = any(queue.guarantee or queue.lending_limit or queue.quotas for queue in setting.queues)
        self._reusable = not promises and not setting.guarantees.any()
        self._repeated = self._warm()

    def at(self, limits: FloatArray) -> FloatArray:
        """Return the exact allocation, (streams, rows), when each stream has so many tasks, (streams,)."""
        if self._reusable and self._still_exact(limits):
            self._limits = limits.copy()
            return self._tasks
        key = limits.tobytes()
        tasks = self._seen.get(key)
        if tasks is None:
            tasks = self._solve(limits)
            self.solved += 1
            if len(self._seen) * tasks.size >= _REMEMBERED:
                self._seen.clear()
            self._seen[key] = tasks
        self._limits, self._tasks = limits.copy(), tasks
        return tasks

    def _still_exact(self, limits: FloatArray) -> bool:
        """Say whether the last allocation is exact for these limits."""
        if not self.solved or ((limits > 0) != (self._limits > 0)).any():
            return False
        x = self._tasks.sum(axis=1)

        def slack(bounds: FloatArray) -> BoolArray:
            return np.asarray(x < bounds * (1 - _SLACK))

        return bool(((limits == self._limits) | (slack(self._limits) & slack(limits))).all())

    def _solve(self, limits: FloatArray) -> FloatArray:
        if self._repeated is not None:
            try:
                return self._solve_again(limits)
            except (NoSolution, CertificateError) as error:
                log.info("the allocation is computed afresh: %s", error)
                self._repeated = self._warm()
        instance, active = self.setting.instance(limits)
        with quietly():  # no warning of queues without users at this moment
            allocation = solve(instance, self.notion.restricted(active))
        self.residual = max(self.residual, allocation.certificate.worst)
        tasks = np.zeros(self._tasks.shape)
        tasks[active] = allocation.tasks
        return tasks

    def _warm(self) -> RepeatedLevels | None:
        """Return a model that starts from its last solution; None if the notion or the size does not allow one."""
        setting = self.setting
        if setting.tree or not isinstance(self.notion, ShareNotion) or setting.eligibility.size > _MOST_PAIRS:
            return None
        most = np.maximum(np.bincount(setting.stream, weights=setting.log.tasks, minlength=setting.n_streams), 1.0)
        instance, _ = setting.instance(most)
        try:
            self.notion.check(instance, "rdm")
            program = self.notion.formulate(instance, sharing="rdm", integral=False)
            if not RepeatedLevels.suits(program) or choose(program, None).name != "highs":
                return None
        except FairoptError:
            return None
        self._whole = instance.replace(tasks=None)
        return RepeatedLevels(program)

    def _solve_again(self, limits: FloatArray) -> FloatArray:
        setting = self.setting
        assert self._repeated is not None
        active = np.flatnonzero(limits > 0)
        owner = setting.owner
        weights = np.array(setting.weights[owner])
        weights[active] /= np.bincount(owner[active], minlength=len(setting.owners))[owner[active]]
        program, solution = self._repeated.solve_again(limits, weights)
        tasks = np.zeros(self._tasks.shape)
        tasks[program.pair_users, program.pair_servers] = solution.x
        excess = Certificate(allocation_excess(self._whole, tasks, "rdm"), 0.0, 0.0)
        certificate = Certificate.combine([certify(program, solution), excess])
        certificate.require(1e-8, self.notion.name, "highs")
        self.residual = max(self.residual, certificate.worst)
        return tasks
