"""The base class of notions whose utilities the caller gives: u[n,i] > 0 is the worth of a task of user n on server i.

U[n] = sum_i u[n,i] x[n,i].        The default is u = 1: U[n] = x[n], the number of tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray, Instance
from fairopt.instance.fractions import ExactArray, kept
from fairopt.models.notion import Sharing
from fairopt.models.share_notion import ShareNotion
from fairopt.validation import check, numbers, require_labels

__all__ = ["GivenUtility"]


@dataclass(frozen=True, eq=False)
class GivenUtility(ShareNotion):
    """A notion whose utilities are given as data. They are checked, and kept as an array (users, servers) or (users, 1)."""

    utility: npt.ArrayLike | FloatArray | None = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.utility is not None:
            array = numbers(self.utility, "utilities")
            if array.ndim not in (1, 2):
                raise InvalidInstance(f"the shape of the utility is {array.shape}; give (users, servers) or (users,)")
            object.__setattr__(self, "_given", self.utility)  # a pandas frame has labels, which `check` compares with those of the instance
            exact = kept(self.utility, array)
            if exact is not None:
                object.__setattr__(self, "_exact", exact[:, None] if array.ndim == 1 else exact)
            object.__setattr__(self, "utility", array[:, None] if array.ndim == 1 else array)

    def _identity(self) -> tuple[Any, ...]:
        exact = getattr(self, "_exact", None)
        return *super()._identity(), None if exact is None else tuple(exact.ravel().tolist())

    @property
    def exact_utility(self) -> ExactArray | None:
        """The utilities as they were given, in fractions."""
        exact: ExactArray | None = getattr(self, "_exact", None)
        return super().exact_utility if exact is None else exact

    def check(self, instance: Instance, sharing: Sharing) -> None:
        """Refuse utilities of the wrong shape, not positive or of extreme size, and what every notion refuses."""
        super().check(instance, sharing)
        require_labels(getattr(self, "_given", None), "utilities", instance.users, instance.servers)
        utility = self.share_per_task(instance)
        used = np.where(instance.eligibility, utility, 1.0)  # values of pairs that are not eligible do not matter
        rule = "finite and > 0 wherever the user may run (make a pair ineligible to rule it out)"
        check(used, np.isfinite(used) & (used > 0), "utility", rule, instance.users, instance.servers)

    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return u[n,i]."""
        shape = (instance.n_users, instance.n_servers)
        utility = np.ones(shape, dtype=instance.demands_by_kind.dtype) if self.utility is None else np.asarray(self.utility)
        if utility.shape not in (shape, (shape[0], 1)):
            raise InvalidInstance(f"the shape of the utility is {utility.shape}, expected {shape}: (users, servers), or one per user")
        return np.broadcast_to(utility, shape)
