"""Where the next task goes: the placements of progressive filling, one small class each.

`PLACEMENTS` maps each identifier to its class. The built-in ones name a rule of the compiled kernel (``fairopt.solvers.filling.kernel``).
One of your own is a function, and runs through the same loop, uncompiled. It is given the number of the user, what is free on every
single server, (servers, resources), the demand of the task, (resources,), and the servers where it fits, ascending; it returns one of
those. All are in the units of the instance (where time is shared, the demand is one of time, (servers, 1)):

>>> import fairopt as fo
>>> def last_fit(user, free, demand, fits):
...     return fits[-1]
>>> fo.schedule(fo.Instance([[2, 12], [12, 2]], [[.2, 1], [1, .2]]), placement=last_fit).tasks
array([[5., 1.],
       [1., 5.]])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance, IntArray, safe_ratio
from fairopt.program.filling import Rule
from fairopt.validation import check_whole_number
from fairopt.wording import did_you_mean

__all__ = ["PLACEMENTS", "Chooser", "Placement"]

Chooser: TypeAlias = Callable[[int, FloatArray, FloatArray, IntArray], int]

_METRICS = {"l1": Rule.L1, "l2": Rule.L2, "cosine": Rule.COSINE, "dot": Rule.DOT, "tightest": Rule.TIGHTEST}
_DIGITS = 1e-9  # a server is cut into a whole number of slots up to rounding


class Placement:
    """A placement that the kernel knows: a rule by which a server is chosen, and the options it takes."""

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    server_first: ClassVar[bool] = False  # is the server chosen before the user?
    too_large: ClassVar[str] = "is larger than every server where it may run"  # said of a task that fits nowhere
    rule: Rule

    def prepare(self, instance: Instance) -> Instance:
        """Return the instance as this placement sees it."""
        return instance


class FirstFit(Placement):
    """The first server, in the order of the instance, that the task fits on."""

    name = "first-fit"
    title = "The first server that the task fits on"
    source = "Wang, Li and Liang (2014), section V-B"
    rule = Rule.FIRST


@dataclass(frozen=True)
class BestFit(Placement):
    """The server whose free resources look most like the demand; of equals the first.

    With f what is free on the server and d the demand, both in parts of the cluster, and p the first resource that the user demands
    (the paper takes resource 1, which a user need not demand):

    ``l1``        smallest || d / d[p] - f / f[p] ||_1             Wang, Li and Liang (2014), Best-Fit DRFH
    ``l2``        the same in the Euclidean norm
    ``cosine``    smallest angle between d and f
    ``dot``       largest d . f, both in parts of the server       Grandl et al. (2014), the alignment of Tetris
    ``tightest``  smallest sum of f                                classical best fit

    Parameters
    ----------
    metric : {"l1", "l2", "cosine", "dot", "tightest"}
    """

    metric: Literal["l1", "l2", "cosine", "dot", "tightest"] = "l1"

    name = "best-fit"
    title = "The server whose free resources look most like the demand"
    source = "Wang, Li and Liang (2014), section V-B"

    def __post_init__(self) -> None:
        if not isinstance(self.metric, str) or self.metric not in _METRICS:
            hint = did_you_mean(self.metric, _METRICS) if isinstance(self.metric, str) else ""
            raise Unsupported(f'best-fit has no metric "{self.metric}"{hint}; it has {", ".join(_METRICS)}')
        object.__setattr__(self, "rule", _METRICS[self.metric])


class WorstFit(Placement):
    """The server with the most free, as a sum of parts of the cluster; of equals the first."""

    name = "worst-fit"
    title = "The server with the most free: tasks spread out"
    source = "classical"
    rule = Rule.LOOSEST


class RandomRoundRobin(Placement):
    """In rounds, each of a new random order of the servers, each server gives one task to the lowest user that fits on it."""

    name = "random-round-robin"
    title = "Servers in a random order, each gives one task; then a new order"
    source = "Kesidis et al. (2018), section VI: the default of Mesos"
    server_first = True
    rule = Rule.FIRST


class RandomServer(Placement):
    """Any server at all, each time anew, gives one task to the lowest user that fits on it.

    The means and deviations that Kesidis et al. (2018) print for their random round robin, tables II and III, are near those of this
    placement: drawn anew, 6.54 +- 2.33 tasks of user 1 on server 1 under DRF, where the paper has 6.55 +- 2.31. In rounds it is 6.9 +- 2.9;
    with 200 trials the means do not tell the two apart.
    """

    name = "random-server"
    title = "A random server each time gives one task"
    source = "Kesidis et al. (2018), tables II and III"
    server_first = True
    rule = Rule.RANDOM


class Random(Placement):
    """Any server that the task fits on, each as likely."""

    name = "random"
    title = "Any server that the task fits on, at random"
    source = "classical"
    rule = Rule.RANDOM


class Joint(Placement):
    """The pair of user and server with the smallest share, of equals the first user and then the first server.

    It is meant for server-specific criteria. Under any other, a user's share is the same everywhere, and this is first-fit.
    """

    name = "joint"
    title = "User and server together: the smallest server-specific share"
    source = "Kesidis et al. (2018), section IV"
    rule = Rule.SMALLEST_SHARE


@dataclass(frozen=True)
class Slots(Placement):
    """First-fit of slots, the one resource that there is then: what fair schedulers did before DRF.

    A slot is 1/slots of the largest server, resource by resource. A server has as many as fit into it (a resource that it lacks apart), a
    task takes enough of them, on one server, to cover its largest demand, and the criterion is applied to slots: DRFH then equalises
    slots held by weight.

    Parameters
    ----------
    slots : int
        Of the largest server.
    """

    slots: int = 14

    name = "slots"
    title = "Equal slots instead of resources: the baseline"
    source = "Wang, Li and Liang (2014), section VI: the Hadoop Fair Scheduler"
    too_large = "needs more slots than any server has where it may run"
    rule = Rule.FIRST

    def __post_init__(self) -> None:
        check_whole_number("slots", self.slots, 1, meaning=", the slots of the largest server")

    def prepare(self, instance: Instance) -> Instance:
        """Return the instance with slots as its one resource."""
        if instance.rates_per_server is not None:
            raise Unsupported(
                'slots are cut from resources, and an instance with rates shares time; use another placement, such as "first-fit"'
            )
        if instance.weights.ndim == 2:
            raise Unsupported("slots are one resource, but the instance has weights per resource; give weights of shape (users,)")
        slot = instance.capacities.max(axis=0) / self.slots
        filled = safe_ratio(instance.capacities, slot)
        whole = np.where(instance.capacities > 0, np.floor(filled * (1 + _DIGITS)), np.inf).min(axis=1)
        needed = np.ceil(safe_ratio(instance.demands, slot) * (1 - _DIGITS)).max(axis=1)
        return Instance(
            np.where(np.isfinite(whole), whole, 0.0)[:, None],
            np.where(np.isfinite(needed), needed, 1.0)[:, None],  # what no server has: its user has no tasks below
            weights=instance.weights,
            eligibility=instance.eligibility,
            counts=instance.counts,
            tasks=np.where(instance.servable, instance.tasks, 0.0),
            users=instance.users,
            servers=instance.servers,
            resources=["slots"],
        )


PLACEMENTS: dict[str, type[Placement] | Chooser] = {
    placement.name: placement for placement in (FirstFit, BestFit, WorstFit, RandomRoundRobin, RandomServer, Random, Joint, Slots)
}
