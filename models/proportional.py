"""Proportional fairness and the alpha family: from efficiency (alpha = 0) to max-min (alpha to infinity).

    maximise  sum_n phi[n] g(U[n]),        U[n] = sum_i u[n,i] x[n,i],
    g(U) = U^(1 - alpha) / (1 - alpha),    g = log for alpha = 1                                                  g'(U) = U^-alpha

over the same allocations as every other notion. u = 1, so that U[n] is the number of tasks, unless the caller gives u.

*Source.* Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari and Lambadaris (2018), objective (15). The family is that of Mo and Walrand (2000).
alpha = 1 is the proportional fairness of Kelly, Maulloo and Tan (1998) and Nash's bargaining solution; alpha = 0 is the total. The weights
multiply g and do not divide U. At alpha = 1 this is the same. As alpha grows, phi^(1/alpha) tends to 1, so the limit is the max-min of U,
not of U / phi.

*Optimality.* U is unique. It is optimal if and only if for every feasible allocation x' (proposition 2 there; corollary 1 for any U)

    sum_n phi[n] (U'[n] - U[n]) / U[n]^alpha  <=  0.

The left side is linear in x', so its maximum is a linear program, whose dual prices are the proof: p >= 0 of the capacities, with p = 0
for a resource that is not full, such that

    phi[n] U[n]^-alpha u[n,i]  <=  sum_r p[i,r] d[n,r]  for every eligible (n, i), with equality where x[n,i] > 0.

At alpha = 1 these are the prices of an equilibrium with incomes phi (Eisenberg and Gale 1959): multiplied by x[n,i] and summed over i, the
equalities say that every user with unlimited tasks spends exactly phi[n], on the pairs with the best worth for their cost. Users that
cannot run anything are left out of the goal.

*Properties.* It is Pareto optimal, because g increases with every U[n]. At alpha = 1 two more properties follow from the prices, also under
placement constraints and limits on tasks, because no user spends more than phi[n] and all capacity together costs at most sum_m phi[m].

* Sharing incentive: the slice phi[n] / sum_m phi[m] of every server costs at most phi[n], so user n could have bought it.
* Envy-freeness: user n could also have bought what m holds, scaled by phi[n] / phi[m] (Varian 1974).

Both proofs need users that always want more tasks. With ``utility``, a user that runs all its tasks, but would prefer other servers, may
spend less than phi[n] and have less worth than in its slice. For other alpha neither property holds: in `efficiency` a user may get
nothing, and in the max-min of U a user with large tasks takes whatever it needs to reach the common level. The notion is not
strategy-proof: in the example below user 2 runs 1.636 tasks, and 1.8 if it reports a demand of (3, 2).

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
>>> allocation = fo.solve(instance, "proportional")
>>> allocation.tasks_per_user.round(6)
array([4.090909, 1.636364])
>>> (instance.demands @ allocation.prices[0] * allocation.tasks_per_user).round(9)  # spending of each user
array([1., 1.])
>>> fo.solve(instance, "proportional", alpha=10).tasks_per_user.round(3)
array([2.44 , 2.187])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray, Instance
from fairopt.models.given_utility import GivenUtility
from fairopt.models.notion import Property, Sharing
from fairopt.program import AlphaFair, Goal, Total
from fairopt.wording import figure, written

__all__ = ["LARGEST_POWER", "Proportional"]

LARGEST_POWER = 1e6  # of alpha and beta: a relative difference of 1e-6 between utilities becomes a factor of e

_EQUAL_INCOMES = "for alpha = 1: an equilibrium with incomes phi, Eisenberg and Gale (1959), Eisenberg (1961); Varian (1974)"


@dataclass(frozen=True, eq=False)
class Proportional(GivenUtility):
    """Maximum of sum_n phi[n] g(U[n]), g' = U^-alpha.

    Parameters
    ----------
    utility : array (users, servers) or (users,)
        Worth of a task, > 0 on every eligible pair. One number per user holds for every server. The default is 1: tasks are counted.
    alpha : float
        >= 0 and <= 1e6. 0 is the largest total, 1 is proportional fairness. The larger alpha, the nearer the answer is to max-min.
    """

    alpha: float = 1.0

    name = "proportional"
    title = "Proportional and alpha-fairness"
    source = "Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari and Lambadaris (2018), (15) and corollary 1; Mo and Walrand (2000)"
    references = ("Kesidis2018", "MoWalrand2000")
    symmetric = True
    by_server = True
    proofs_cover_work = frozenset({Property.ENVY_FREENESS, Property.SHARING_INCENTIVE})  # work is as homogeneous as tasks
    proofs_cover_shared = True  # they have prices as the resources of servers have
    satisfies: ClassVar = {
        Property.PARETO: "every U[n] counts: Mo and Walrand (2000)",
        Property.ENVY_FREENESS: _EQUAL_INCOMES,
        Property.SHARING_INCENTIVE: _EQUAL_INCOMES,
    }

    def promise(self, wanted: Property, instance: Instance, sharing: Sharing) -> str | None:
        """Return the citation. Proofs by equal incomes need alpha = 1, and unlimited tasks or the same worth of a task on all servers.

        The worth is the utility of a task, and the work that it does where it runs.
        """
        speeds, own = instance.speeds, instance.eligibility
        fastest, slowest = np.where(own, speeds, 0).max(axis=1), np.where(own, speeds, np.inf).min(axis=1)
        one_speed = bool((np.isinf(instance.tasks) | (slowest >= fastest)).all())
        alike = self.utility is None or self.utility.shape[1] == 1 or bool(np.isinf(instance.tasks).all())  # type: ignore[union-attr]
        if wanted is not Property.PARETO and not (self.alpha == 1 and alike and one_speed):
            return None
        return super().promise(wanted, instance, sharing)

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            if isinstance(self.alpha, bool | np.bool_):  # float() would take it for 0 or 1
                raise TypeError
            alpha = float(self.alpha)
        except (TypeError, ValueError, OverflowError):
            raise InvalidInstance(f"alpha is {written(self.alpha)}; give a number >= 0") from None
        if not (alpha >= 0 and np.isfinite(alpha)):
            raise InvalidInstance(f'alpha is {alpha:g}; give a finite number >= 0 (for the limit of large alpha use "max-min")')
        if alpha > LARGEST_POWER:
            raise InvalidInstance(
                f'alpha is {alpha:g}; above {LARGEST_POWER:g} no engine can tell the goal from its limit; use "max-min", or a smaller alpha'
            )
        if alpha > 0 and 1 - alpha == 1:
            raise InvalidInstance(f"alpha is {alpha:g}; in double precision U^(1 - alpha) is U; use alpha=0, the largest total")
        object.__setattr__(self, "alpha", alpha)

    @property
    def merge_alpha(self) -> float:
        """Return alpha: merged users divide their tasks in proportion to phi^(1/alpha)."""
        return self.alpha

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return what one more task is worth, as text."""
        if self.alpha == 0:
            return f"what it adds to the total, the only thing that counts: {figure(instance.weights[user])} a task"
        worth = "its tasks" if self.utility is None else "what its tasks are worth"
        worth = "the work of its tasks" if instance.speeds_given is not None and self.utility is None else worth
        counts = "by the part that it adds to those it has" if self.alpha == 1 else f"the more the fewer it has (alpha {self.alpha:g})"
        return f"{worth}: one more counts {counts}"

    def goal(self, weights: FloatArray) -> Goal:
        """Return the alpha-fair goal; for alpha = 0 the total."""
        return AlphaFair(self.alpha, weights) if self.alpha > 0 else Total(weights)
