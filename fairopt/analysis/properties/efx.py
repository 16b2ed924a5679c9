"""Envy-freeness up to any task (EFX): no user would run more with what another holds, whichever task of the other is taken away.

As `fairopt.analysis.properties.ef1`, for all tasks of m that n values instead of one: the task that n values least decides (Caragiannis,
Kurokawa, Moulin, Procaccia, Shah and Wang 2019). EFX implies EF1. Whether goods can always be dealt so is known for three users at most
(Chaudhury, Garg and Mehlhorn 2020); no notion of fairopt promises it.
"""

from __future__ import annotations

from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.up_to_tasks import envy_without_a_task
from fairopt.analysis.properties.verdict import Verdict

__all__ = ["NAME", "check"]

NAME = "efx"


def check(case: Case) -> Verdict:
    """Compute the envy of every user towards every other one, without the task that it values least."""
    return envy_without_a_task(case, NAME, min, "the task of the other that it values least")
