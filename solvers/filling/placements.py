"""Placements of progressive filling: rules that choose the server of the next task, one small class each.

`PLACEMENTS` maps each identifier to its class. A built-in placement names a rule of the compiled kernel
(``fairopt.solvers.filling.kernel``). A custom placement is a function and runs in the same loop, uncompiled. Its arguments are the number
of the user, the free resources of every single server, (servers, resources), the demand of the task, (resources,), and the servers that the
task fits on, ascending. It returns one of these servers. All numbers are in the units of the instance (if time is shared, the demand is
time on each server, (servers, 1)):

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
from fairopt.instance.by_server import refuse_by_server
from fairopt.instance.tolerances import FITS
from fairopt.program.filling import Rule
from fairopt.registry import Registry
from fairopt.validation import check_whole_number
from fairopt.wording import did_you_mean

__all__ = ["PLACEMENTS", "Chooser", "Placement"]

Chooser: TypeAlias = Callable[[int, FloatArray, FloatArray, IntArray], int]

_METRICS = {"l1": Rule.L1, "l2": Rule.L2, "cosine": Rule.COSINE, "dot": Rule.DOT, "tightest": Rule.TIGHTEST}


class Placement:
    """A placement that the kernel knows: a rule that chooses a server, and its options."""

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    server_first: ClassVar[bool] = False  # is the server chosen before the user?
    too_large: ClassVar[str] = "is larger than every server where it may run"  # message about a task that fits on no server
    rule: Rule

    def prepare(self, instance: Instance) -> Instance:
        """Return the instance as this placement sees it."""
        return instance


class FirstFit(Placement):
    """The first server that the task fits on, in the order of the instance."""

    name = "first-fit"
    title = "The first server that the task fits on"
    source = "Wang, Li and Liang (2014), section V-B"
    rule = Rule.FIRST


@dataclass(frozen=True)
class BestFit(Placement):
    """The server whose free resources are most similar to the demand; the first one among equals.

    Let f be the free resources of the server and d the demand, both as fractions of the cluster. Let p be the first resource with d[p] > 0
    (the paper takes resource 1, which may have demand 0). The metrics are

    ``l1``        smallest || d / d[p] - f / f[p] ||_1             Wang, Li and Liang (2014), Best-Fit DRFH
    ``l2``        the same in the Euclidean norm
    ``cosine``    smallest angle between d and f
    ``dot``       largest d . f, as fractions of the server        Grandl et al. (2014), the alignment of Tetris
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
            *others, last = _METRICS
            raise Unsupported(f'best-fit has no metric "{self.metric}"{hint}; use {", ".join(others)} or {last}')
        object.__setattr__(self, "rule", _METRICS[self.metric])


class WorstFit(Placement):
    """The server with the most free resources, as a sum of fractions of the cluster; the first one among equals."""

    name = "worst-fit"
    title = "The server with the most free: tasks spread out"
    source = "classical"
    rule = Rule.LOOSEST


class Fastest(Placement):
    """The server on which a task does the most work for the part of the cluster that it takes there; the first one among equals.

    With d[n,i] what a task of user n takes on server i, and C the capacity of the cluster, the server has the largest

        speed[n,i] / max_r (d[n,i,r] / C[r]);          where time is shared, speed[n,i] / (the part of the server's time).

    Where demands and speeds do not differ by server, this is first-fit.
    """

    name = "fastest"
    title = "The server with the most work for the share that the task takes"
    source = "heterogeneous clusters, as in Gavel (Narayanan et al., 2020)"
    rule = Rule.FASTEST


class RandomRoundRobin(Placement):
    """Rounds over all servers in a new random order; each server takes a task of the user with the smallest share that fits on it."""

    name = "random-round-robin"
    title = "Servers in a random order, each gives one task; then a new order"
    source = "Kesidis et al. (2018), section VI: the default of Mesos"
    server_first = True
    rule = Rule.FIRST


class RandomServer(Placement):
    """A new random server each time; it takes a task of the user with the smallest share that fits on it.

    Kesidis et al. (2018) print means and deviations for their random round robin in tables II and III. They are close to those of this
    placement (``fairopt reproduce kesidis-tables``).
    """

    name = "random-server"
    title = "A random server each time gives one task"
    source = "Kesidis et al. (2018), tables II and III"
    server_first = True
    rule = Rule.RANDOM


class Random(Placement):
    """A random server that the task fits on; all are equally likely."""

    name = "random"
    title = "Any server that the task fits on, at random"
    source = "classical"
    rule = Rule.RANDOM


class Joint(Placement):
    """The pair of user and server with the smallest share; among equals, the first user and then the first server.

    The placement is meant for server-specific criteria. Under other criteria, a user's share is the same on all servers, and the placement
    equals first-fit.
    """

    name = "joint"
    title = "User and server together: the smallest server-specific share"
    source = "Kesidis et al. (2018), section IV"
    rule = Rule.SMALLEST_SHARE


@dataclass(frozen=True)
class Slots(Placement):
    """First-fit with slots as the only resource, as fair schedulers worked before DRF.

    A slot is 1/slots of the largest server, resource by resource. A server has as many slots as fit into it; resources that the server
    lacks do not count. A task takes enough slots of one server to cover each of its demands for resources of servers, and at least one if
    anything counts it. The criterion is applied to slots, so DRFH equalises slots divided by weight. Resources of the cluster and named
    limits are no slots: no task exceeds them, and they count in no share.

    Parameters
    ----------
    slots : int
        Number of slots of the largest server.
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
        """Return the instance with slots as its only resource."""
        if instance.rates_per_server is not None:
            raise Unsupported(
                'slots are cut from resources, and an instance with rates shares time; use another placement, such as "first-fit"'
            )
        what = "slots are equal parts of servers, of which a task takes the same number everywhere"
        refuse_by_server(instance, what, 'use another placement, such as "first-fit" or "fastest"')
        if instance.weights.ndim == 2:
            raise Unsupported("slots are one resource, but the instance has weights per resource; give weights of shape (users,)")
        slot = instance.capacities[instance.counts > 0].max(axis=0, initial=0.0) / self.slots  # a row of no servers says nothing
        filled = safe_ratio(instance.capacities, slot)
        whole = np.where(instance.capacities > 0, np.floor(filled * (1 + FITS)), np.inf).min(axis=1)
        needed = np.ceil(safe_ratio(instance.server_demands, slot) * (1 - FITS)).max(axis=1, initial=0.0)
        needed = np.where(instance.zero_demand, needed, np.maximum(needed, 1.0))
        enough = np.asarray((instance.shared_demands <= instance.shared_capacity * (1 + FITS)).all(axis=1))
        return Instance(
            np.where(np.isfinite(whole), whole, 0.0)[:, None],
            np.where(np.isfinite(needed), needed, 1.0)[:, None],  # no server has the resource: the user gets 0 tasks below
            weights=instance.weights,
            eligibility=instance.eligibility & enough[:, None],
            counts=instance.counts,
            tasks=np.where(instance.servable, instance.tasks, 0.0),
            users=instance.users,
            servers=instance.servers,
            resources=["slots"],
        )


def _wrong(entry: object) -> str:
    if isinstance(entry, type):
        return "" if issubclass(entry, Placement) else "a class must be a subclass of fairopt.solvers.Placement"
    return "" if callable(entry) else "it must be a function (user, free, demand, fits) -> server"


_ALL = (FirstFit, BestFit, WorstFit, Fastest, RandomRoundRobin, RandomServer, Random, Joint, Slots)
PLACEMENTS: Registry[type[Placement] | Chooser] = Registry(
    "placement",
    "fairopt.placements",
    {placement.name: placement for placement in _ALL},
    _wrong,
)
