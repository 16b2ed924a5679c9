"""Max-min fairness of any linear utility.

The caller gives u[n,i] > 0, what a task of user n is worth on server i; the notion is the leximin of

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

import numpy as np
import numpy.typing as npt

from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray, Instance
from fairopt.models.notion import ShareNotion, Sharing
from fairopt.validation import numbers, require_labels

__all__ = ["MaxMin"]


@dataclass(frozen=True, eq=False)
class MaxMin(ShareNotion):
    """Leximin of sum_i u[n,i] x[n,i] / phi[n] for utilities of the caller's own.

    Parameters
    ----------
    utility : array (users, servers) or (users,)
        Worth of a task, > 0 on every eligible pair. One number per user counts alike on every server. The default, 1, counts tasks.
    """

    utility: npt.ArrayLike | FloatArray | None = None  # type: ignore[assignment]

    name = "max-min"
    title = "Max-min fairness of given utilities"
    source = "Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari and Lambadaris (2018), equation (3)"

    def __post_init__(self) -> None:
        if self.utility is not None:
            array = numbers(self.utility, "utilities")
            if array.ndim not in (1, 2):
                raise InvalidInstance(f"the shape of the utility is {array.shape}; give (users, servers) or (users,)")
            object.__setattr__(self, "_given", self.utility)  # a frame's labels are compared with the instance's
            object.__setattr__(self, "utility", array[:, None] if array.ndim == 1 else array)

    def check(self, instance: Instance, sharing: Sharing) -> None:
        """Refuse utilities of the wrong shape or not positive, as well as what every notion refuses."""
        super().check(instance, sharing)
        require_labels(getattr(self, "_given", None), "utilities", instance.users, instance.servers)
        utility = self.share_per_task(instance)
        wrong = np.argwhere(instance.eligibility & ~((utility > 0) & np.isfinite(utility)))
        if wrong.size:
            n, i = wrong[0]
            raise InvalidInstance(
                f'the utility of user "{instance.users[n]}" on "{instance.servers[i]}" is {utility[n, i]:g}; it must be finite and > 0 '
                "wherever the user may run (make a pair ineligible to rule it out)"
            )

    def share_per_task(self, instance: Instance) -> FloatArray:
        """u[n,i]."""
        shape = (instance.n_users, instance.n_servers)
        utility = np.ones(shape) if self.utility is None else np.asarray(self.utility)
        if utility.shape not in (shape, (shape[0], 1)):
            raise InvalidInstance(f"the shape of the utility is {utility.shape}, expected {shape}: (users, servers), or one per user")
        return np.broadcast_to(utility, shape)
