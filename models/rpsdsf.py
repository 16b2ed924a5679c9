"""Residual per-server dominant shares (rPS-DSF), a criterion of progressive filling.

PS-DSF compares what a user has with what it could run on a whole server, this criterion with what it could run on what is left of it:

    s[n,i] = x[n] max_r d[n,r] / (phi[n] (c[i,r] - sum_m x[m,i] d[m,r])).

A user is sent where the largest number of its own tasks would still fit, so that servers fill up evenly. Kesidis, Shan, Jain, Urgaonkar,
Khamse-Ashari and Lambadaris (2018), section VI. It depends on the order in which tasks come, so it is the criterion of a schedule and not
a notion with an optimum: `solve` does not know it.

>>> import fairopt as fo
>>> instance = fo.Instance([[100, 30], [30, 100]], [[5, 1], [1, 5]])
>>> fo.schedule(instance, "rpsdsf", placement="joint").tasks
array([[19.,  2.],
       [ 2., 19.]])
"""

from __future__ import annotations

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import Instance
from fairopt.models.notion import Notion, Sharing
from fairopt.program import Program
from fairopt.program.filling import Criterion, Measure

__all__ = ["ResidualPSDSF"]


class ResidualPSDSF(Notion):
    """rPS-DSF: x[n] max_r d[n,r] / (phi[n] residual[i,r]), for progressive filling only."""

    name = "rpsdsf"
    title = "Residual per-server dominant shares"
    source = "Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari and Lambadaris (2018), section VI"

    def formulate(self, instance: Instance, *, sharing: Sharing, integral: bool) -> Program:
        """Refuse: it has no program."""
        raise Unsupported('"rpsdsf" is the criterion of a schedule and has no optimum; use fairopt.schedule, or the notion "psdsf"')

    def describe_measure(self, instance: Instance, user: int) -> str:
        """What is left of a server."""
        return "all its tasks, at each server against those that would still fit there"

    def criterion(self, instance: Instance) -> Criterion:
        """Return 1 for each user: the rest is what is left of the servers."""
        return Criterion(np.ones(instance.n_users), Measure.RESIDUAL)
