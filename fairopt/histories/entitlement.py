"""The exact allocation to the streams that have tasks at a moment.

It is computed anew only if it may have changed: `fairopt.simulation.repeated` has the rule, and the leximins that start from the last
solution. Every allocation is certified.
"""

from __future__ import annotations

import logging

import numpy as np

from fairopt.analysis.properties.case import quietly
from fairopt.errors import CertificateError, NoSolution
from fairopt.histories.setting import Setting
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import CERTIFIED
from fairopt.models import Notion
from fairopt.simulation.repeated import Repeated, divided, of_all_moments, still_exact
from fairopt.solving import solve

__all__ = ["Entitlement"]

log = logging.getLogger(__name__)

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
        self.setting, self.notion = setting, of_all_moments(notion, setting.tasks.differ)
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
        return still_exact(self._tasks.sum(axis=1), self._limits, limits)

    def _solve(self, limits: FloatArray) -> FloatArray:
        if self._repeated is not None:
            try:
                return self._solve_again(self._repeated, limits)
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

    def _warm(self) -> Repeated | None:
        """Return a model that starts from its last solution; None if the notion or the size does not allow one."""
        setting = self.setting
        if setting.tree:
            return None
        most = np.maximum(np.bincount(setting.stream, weights=setting.log.tasks, minlength=setting.n_streams), 1.0)
        return Repeated.of(setting.instance(most)[0], self.notion)

    def _solve_again(self, repeated: Repeated, limits: FloatArray) -> FloatArray:
        setting = self.setting
        active = np.flatnonzero(limits > 0)
        weights = np.array(setting.weights[setting.owner])
        weights[active] = divided(setting.weights, setting.owner[active])
        tasks, certificate = repeated.solve(limits, weights)
        certificate.require(CERTIFIED, self.notion.name, "highs")
        self.residual = max(self.residual, certificate.worst)
        return tasks
