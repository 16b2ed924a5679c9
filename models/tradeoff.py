"""The base class of trade-offs between fairness and efficiency: f[beta, lambda] of Joe-Wong, Sen, Lan and Chiang, of any utilities U[n].

    f(U) = sgn(1 - beta) ( sum_n phi[n] (U[n] / S)^(1 - beta) )^(1 / beta)  S^lambda,      S = sum_n U[n]

The first factor depends only on the fractions U[n] / S. It measures fairness, the more strictly the larger beta is. The second factor is
efficiency. The weights multiply the terms, as in the weighted form of Lan, Kao, Chiang and Sabharwal (2010), and S is not weighted. So for
lambda = (1 - beta) / beta, where S cancels, f is an increasing function of sum_n phi[n] U[n]^(1 - beta) / (1 - beta), the weighted
`proportional` goal with alpha = beta.

*On a logarithmic scale.* With the power mean M(U) = (sum_n phi[n] U[n]^(1 - beta))^(1 / (1 - beta)),

    log |f| / lambda = (1 - e) log M(U) + e log S,      e = 1 - (1 - beta) / (beta lambda).

If lambda has the sign of 1 - beta, maximising f is the same as maximising this. |f(U)|^(1/lambda) is a weighted geometric mean of M, which
emphasises small utilities, and of the total S. e = 0 is alpha-fairness. As e tends to 1 (|lambda| to infinity), the largest total results.

*Which lambda.* 0 <= e < 1 means that lambda has the sign of 1 - beta and |lambda| >= |(1 - beta) / beta|. Exactly then f increases with
every U[n], so that its maximum is Pareto efficient (theorem of that paper), and log |f| / lambda is concave, because M is concave and the
logarithm is concave and increasing. For other lambda (e < 0, or opposite signs), more tasks for a user with a large U[n] can lower f,
because the fractions become less equal, and the term in log S is convex. Such a lambda is refused.

*beta = 1* is refused: at a fixed lambda the limit is S^lambda, the largest total; if lambda tends to 0 with beta, the limit depends on how
it does. The two useful limits have names: `efficiency`, and `proportional`, the limit for lambda = (1 - beta) / beta.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import SAME
from fairopt.models.notion import Property
from fairopt.models.proportional import LARGEST_POWER
from fairopt.models.share_notion import ShareNotion
from fairopt.program import Goal, Tradeoff
from fairopt.wording import exactly, written

__all__ = ["TradeoffNotion"]

_NONE = 1e-12  # 1 - e, the weight of the mean, below which only the total counts


@dataclass(frozen=True)
class TradeoffNotion(ShareNotion):
    """Maximum of f[beta, lambda] over the utilities of a subclass.

    Parameters
    ----------
    beta : float
        > 0 and <= 1e6, other than 1. The larger beta, the more small utilities count.
    lam : float, optional
        lambda, with the sign of 1 - beta and |lambda| >= |(1 - beta) / beta|. The larger |lambda|, the more the total counts. The default
        is 2 (1 - beta) / beta, for which fairness and total count alike, e = 1/2.
    """

    beta: float = 2.0
    lam: float | None = None

    satisfies: ClassVar = {Property.PARETO: "for |lambda| >= |(1 - beta) / beta|: Joe-Wong, Sen, Lan and Chiang (2013)"}

    def __post_init__(self) -> None:
        beta = _number(self.beta, "beta", "a number > 0 other than 1")
        if beta <= 0:
            raise InvalidInstance(f"beta is {beta:g}; give a number > 0 other than 1")
        if beta == 1:
            raise InvalidInstance(
                "beta is 1, where the family has no single limit: for a fixed lambda it is the largest total, and if lambda tends to 0, "
                'anything up to proportional fairness; use "efficiency", "proportional", or a beta near 1'
            )
        if beta > LARGEST_POWER:
            raise InvalidInstance(
                f"beta is {beta:g}; above {LARGEST_POWER:g} no engine can tell the goal from its limit; "
                'use a smaller beta, or the limit without weights: "drfh" or "max-min"'
            )
        if 1 - beta == 1:
            raise InvalidInstance(
                f"beta is {beta:g}; in double precision the goal is the total; "
                'use a larger beta, or "efficiency", the largest number of tasks'
            )
        least = (1 - beta) / beta
        lam = 2 * least if self.lam is None else _number(self.lam, "lam", "a number, or leave it out for 2 (1 - beta) / beta")
        if abs(lam - least) <= SAME * abs(least):  # equal to the bound but for rounding of decimals
            lam = least
        if lam * least < 0 or abs(lam) < abs(least):
            sign = ">=" if least > 0 else "<="
            raise InvalidInstance(
                f"lam is {exactly(lam)}, but at beta = {exactly(beta)} only lam {sign} (1 - beta) / beta = {exactly(least)} can be "
                "maximised: for other lam the goal is not concave, and more tasks of a user can lower it, so its maximum need not be "
                "Pareto efficient"
            )
        if abs(least / lam) < _NONE:
            raise InvalidInstance(
                f"lam is {lam:g}, so large that double precision sees only the total; "
                'use a smaller |lam|, or "efficiency", the largest number of tasks'
            )
        object.__setattr__(self, "beta", beta)
        object.__setattr__(self, "lam", lam)

    @property
    def merge_alpha(self) -> float:
        """Return beta: merged users divide their tasks in proportion to phi^(1/beta); the total does not depend on how."""
        return self.beta

    def goal(self, weights: FloatArray) -> Goal:
        """Return log |f| / lambda."""
        assert self.lam is not None
        return Tradeoff(self.beta, self.lam, weights)


def _number(value: Any, name: str, rule: str) -> float:
    try:
        if isinstance(value, bool | np.bool_):  # float() would take it for 0 or 1
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInstance(f"{name} is {written(value)}; give {rule}") from None
    if not np.isfinite(number):
        raise InvalidInstance(f'{name} is {number:g}; give a finite number (the limits have names: "max-min", "drfh", "efficiency")')
    return number
