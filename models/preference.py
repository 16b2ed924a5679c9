"""A preference among the fair allocations of a notion that has several, the option ``prefer`` of "psdsf" and "bbf".

It is None, "utilization" (the sum over all resources of the part in use), or a number a[n] for each user, for the sum of a[n] x[n].
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import FloatArray, Instance, IntArray, safe_ratio
from fairopt.instance.fractions import fractions_of
from fairopt.validation import check, numbers, require_labels

__all__ = ["check_preference", "preference_per_task", "restricted_preference"]


def check_preference(prefer: npt.ArrayLike | None, instance: Instance, notion: str) -> None:
    """Refuse anything but None, "utilization" or a finite number (of any sign) for each user.

    Raises
    ------
    Unsupported, InvalidInstance
    """
    if prefer is None or (isinstance(prefer, str) and prefer == "utilization"):
        return
    if isinstance(prefer, str):
        raise Unsupported(f'{notion} cannot prefer "{prefer}"; use None, "utilization", or one weight for each user')
    require_labels(prefer, "weights of prefer", instance.users)
    weights = numbers(prefer, "weights of prefer")
    if weights.shape != (instance.n_users,):
        raise InvalidInstance(f"prefer has shape {weights.shape}; give one weight for each user, shape ({instance.n_users},)")
    check(weights, np.isfinite(weights), "weight of prefer", "finite", instance.users)


def restricted_preference(prefer: npt.ArrayLike | None, users: IntArray | None) -> npt.ArrayLike | None:
    """Return the preference of the users at these positions; all of it where ``users`` is None."""
    return prefer if users is None or prefer is None or isinstance(prefer, str) else np.asarray(prefer)[users]


def preference_per_task(prefer: npt.ArrayLike, instance: Instance) -> FloatArray:
    """Return the preference for one task of each user, (users,): the number given, or sum_r d[n,r] / C[r] with C the total capacity."""
    if isinstance(prefer, str):
        parts: FloatArray = safe_ratio(instance.demands, instance.total_capacity).sum(axis=1)
        return parts
    if instance.demands.dtype == object:
        return fractions_of(np.asarray(prefer))
    return np.asarray(prefer, dtype=np.float64)
