"""Residual per-server dominant shares (rPS-DSF), a criterion of progressive filling.

PS-DSF divides the tasks of a user by the number that it could run on the empty server. This criterion divides by the number that it could
run on what is left of the server:

    s[n,i] = x[n] max_r d[n,r] / (phi[n] (c[i,r] - sum_m x[m,i] d[m,r])).

A user goes to the server on which most of its own tasks would still fit, so servers fill up evenly. Source: Kesidis, Shan, Jain, Urgaonkar,
Khamse-Ashari and Lambadaris (2018), section VI. The criterion depends on the order of placements. It defines a schedule, not an optimum,
and `solve` refuses it.

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
    references = ("Kesidis2018",)

    def formulate(self, instance: Instance, *, sharing: Sharing, integral: bool) -> Program:
        """Refuse: the criterion has no program."""
        raise Unsupported('"rpsdsf" is the criterion of a schedule and has no optimum; use fairopt.schedule, or the notion "psdsf"')

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return the measure as text."""
        return "all its tasks, at each server against those that would still fit there"

    def criterion(self, instance: Instance) -> Criterion:
        """Return 1 for each user: progressive filling itself divides by what is left of the servers."""
        return Criterion(np.ones(instance.n_users), Measure.RESIDUAL)
