"""Max-min fairness of any linear utility.

The caller gives u[n,i] > 0, the worth of a task of user n on server i. The notion is the leximin of

    s[n] = (1 / phi[n]) sum_i u[n,i] x[n,i]

over the same allocations as every other notion (Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari and Lambadaris 2018, equation (3)).
With u[n,i] the global dominant share of a task it is DRFH; with u = 1 it equalises task counts.

>>> import fairopt as fo
>>> instance = fo.Instance([[100, 30], [30, 100]], [[5, 1], [1, 5]])
>>> fo.solve(instance, "max-min", utility=[[1, 1], [1, 1]]).tasks_per_user.round(4)
array([21.6667, 21.6667])
"""

from __future__ import annotations

from dataclasses import dataclass

from fairopt.models.given_utility import GivenUtility

__all__ = ["MaxMin"]


@dataclass(frozen=True, eq=False)
class MaxMin(GivenUtility):
    """Leximin of sum_i u[n,i] x[n,i] / phi[n] for utilities u that the caller gives.

    Parameters
    ----------
    utility : array (users, servers) or (users,)
        Worth of a task, > 0 on every eligible pair. One number per user holds for every server. The default is 1: tasks are counted.
    """

    name = "max-min"
    title = "Max-min fairness of given utilities"
    source = "Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari and Lambadaris (2018), equation (3)"
    references = ("Kesidis2018",)
    symmetric = True
    by_server = True
