"""The half that the two families of trade-offs share: f[beta, lambda] of Joe-Wong, Sen, Lan and Chiang, over any utilities U[n].

    f(U) = sgn(1 - beta) ( sum_n phi[n] (U[n] / S)^(1 - beta) )^(1 / beta)  S^lambda,      S = sum_n U[n]

The first factor depends on the fractions U[n] / S alone, a measure of fairness that beta makes strict; the second is efficiency. Weights
multiply, as in the weighted form of Lan, Kao, Chiang and Sabharwal (2010), and S is of U itself: then for lambda = (1 - beta) / beta, where
S cancels, f grows with sum_n phi[n] U[n]^(1 - beta) / (1 - beta), the weighted `proportional` goal of alpha = beta.

*In one scale.* With the power mean M(U) = (sum_n phi[n] U[n]^(1 - beta))^(1 / (1 - beta)),

    log |f| / lambda = (1 - e) log M(U) + e log S,      e = 1 - (1 - beta) / (beta lambda),

and maximising f is maximising this, for either sign of 1 - beta, if lambda has it too: |f(U)|^(1/lambda) is the geometric mean of a mean
that looks at the poor and of the total. e = 0 is alpha-fairness, and as e tends to 1 (|lambda| to infinity), the largest total.

*Which lambda.* |lambda| >= |(1 - beta) / beta|, with the sign of 1 - beta, is 0 <= e < 1. That is when f grows with every U[n], whatever
the others have, so that its maximum is Pareto efficient (theorem of that paper), and exactly then log |f| / lambda is concave: M is a
concave function, the logarithm is concave and grows. Elsewhere e < 0 (or both signs differ): more for a user who has much lowers f, as it
makes the fractions less equal, and log S enters with a negative sign, which is convex. Such a lambda is refused.

*beta = 1* is no member: at a fixed lambda the limit is S^lambda alone, the largest total, and where lambda tends to 0 with beta the limit
depends on how. The useful ones have names: `efficiency`, and `proportional`, to which lambda = (1 - beta) / beta leads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray
from fairopt.models.notion import Property, ShareNotion
from fairopt.program import Goal, Tradeoff
from fairopt.wording import exactly

__all__ = ["TradeoffNotion"]

_ROUNDING = 1e-12


@dataclass(frozen=True)
class TradeoffNotion(ShareNotion):
    """Maximum of f[beta, lambda] over the utilities of a subclass.

    Parameters
    ----------
    beta : float
        > 0, other than 1: how much the poor count.
    lam : float, optional
        lambda, of the sign of 1 - beta and with |lambda| >= |(1 - beta) / beta|: how much the total counts. The default is twice
        (1 - beta) / beta, where both count alike, e = 1/2.
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
                "at beta = 1 the family has no limit of its own: it is the largest total for a fixed lambda, and anything up to "
                'proportional fairness for one that tends to 0; use "efficiency", "proportional", or a beta near 1'
            )
        least = (1 - beta) / beta
        lam = 2 * least if self.lam is None else _number(self.lam, "lam", "a number, or leave it out for 2 (1 - beta) / beta")
        if abs(lam - least) <= _ROUNDING * abs(least):  # as written in decimals
            lam = least
        if lam * least < 0 or abs(lam) < abs(least):
            sign = ">=" if least > 0 else "<="
            raise InvalidInstance(
                f"lam is {exactly(lam)}, but at beta = {exactly(beta)} only lam {sign} (1 - beta) / beta = {exactly(least)} can be "
                "maximised: beyond it more tasks for a user can lower the goal, so its maximum need not be Pareto efficient, and the goal "
                "is not concave"
            )
        object.__setattr__(self, "beta", beta)
        object.__setattr__(self, "lam", lam)

    @property
    def merge_alpha(self) -> float:
        """Identical users divide by phi^(1/beta): the total does not mind who of them runs a task."""
        return self.beta

    def goal(self, weights: FloatArray) -> Goal:
        """f, in the scale of its logarithm."""
        assert self.lam is not None
        return Tradeoff(self.beta, self.lam, weights)


def _number(value: Any, name: str, rule: str) -> float:
    try:
        if isinstance(value, bool | np.bool_):  # would be 0 or 1: hardly what was meant
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInstance(f"{name} is {value!r}; give {rule}") from None
    if not np.isfinite(number):
        raise InvalidInstance(f'{name} is {number:g}; give a finite number (the limits have names: "max-min", "drfh", "efficiency")')
    return number
