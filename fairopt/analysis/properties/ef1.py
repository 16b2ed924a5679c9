"""Envy-freeness up to one task (EF1): no user would run more with what another holds, if one task of the other is taken away.

For all users n and m of whole tasks, some task of m, on a server j, is such that

    min(T[n], sum_i x[m,i] u[n,m,i] - u[n,m,j]) <= x[n],

u[n,m,i] being what a task of m on server i is worth to n (`fairopt.analysis.properties.up_to_tasks`). The task that n values most decides.
With weights it is WEF1 (Chakraborty, Igarashi, Suksompong and Zick 2021). Of goods that can be dealt at will there is always such an
allocation (Lipton, Markakis, Mossel and Saberi 2004; Budish 2011). Tasks must fit on servers: there may be none, and no notion of fairopt
promises it. Parkes, Procaccia and Shah (2015, section 5) take away what one task of the envious user takes instead.
"""

from __future__ import annotations

from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.up_to_tasks import envy_without_a_task
from fairopt.analysis.properties.verdict import Verdict

__all__ = ["NAME", "check"]

NAME = "ef1"


def check(case: Case) -> Verdict:
    """Compute the envy of every user towards every other one, without the task that it values most."""
    return envy_without_a_task(case, NAME, max, "the task of the other that it values most")
