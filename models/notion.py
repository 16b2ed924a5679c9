"""What a notion of fairness is: a name, a citation, what theory promises of it, and Instance -> Program.

A max-min notion states only its share of one task (`ShareNotion.share_per_task`); the rest of its program is written once, here:

    leximin over n of U[n] / phi[n],    U[n] = sum_i share_per_task[n] x[n,i]        over the eligible pairs (n, i)
    sum_n d[n,r] x[n,i] <= counts[i] c[i,r]       for each server i and resource r    resource division, sharing="rdm"
    sum_n x[n,i] / gamma[n,i] <= 1                for each server i                   time division, sharing="tdm"
    sum_i x[n,i] <= T[n]                          for each user n with finitely many tasks
    sum_i x[n,i] / rho[n,i] <= P[n]               for each user n with a parallelism below the number of servers where it may run,
                                                  rho[n,i] = gamma[n,i] / counts[i]

*Leximin* maximises the smallest share, then the second smallest, and so on. Shares are unique: the average of two optimal allocations
is feasible, and where they differ it lifts the smallest share that they do not have in common. So x[n] is unique wherever a task is
worth the same on every server; x[n,i] is not. x is optimal if and only if the users are settled level by level, t[1] < t[2] < ..., each
level with prices p >= 0 of the limits that are full, such that everybody at a lower level stays there and a user settled here can rise
only by more of a priced limit (`fairopt.certificate` has the inequality and the proof). As every x[n] counts, it is Pareto optimal.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import FloatArray, Instance, IntArray, safe_ratio
from fairopt.program import Equalize, Goal, Leximin, LimitKind, Limits, Program
from fairopt.program.filling import Criterion
from fairopt.validation import check, numbers, require_labels
from fairopt.wording import figure, joined, named, percent

__all__ = [
    "Condition",
    "Notion",
    "Property",
    "ShareNotion",
    "Sharing",
    "alone_on_each",
    "check_preference",
    "default_sharing",
    "dominant_part",
    "dominant_share",
    "preference_per_task",
    "restricted_preference",
]

Sharing: TypeAlias = Literal["rdm", "tdm"]


class Property(Enum):
    """Properties that the literature proves or refutes of notions of fairness."""

    SHARING_INCENTIVE = "sharing-incentive"
    ENVY_FREENESS = "envy-freeness"
    PARETO = "pareto"
    BOTTLENECK_FAIRNESS = "bottleneck-fairness"
    SINGLE_RESOURCE_FAIRNESS = "single-resource-fairness"
    POPULATION_MONOTONICITY = "population-monotonicity"
    STRATEGY_PROOFNESS = "strategy-proofness"
    NO_JUSTIFIED_COMPLAINTS = "no-justified-complaints"


class Condition(Enum):
    """What the proofs of a notion's properties assume of an instance; the value completes "proved where ..."."""

    RESOURCES = "resources are divided, not time"
    EVERYWHERE = "every user may run on every server"
    POSITIVE = "every user demands something of every resource"
    ENDLESS = "no user runs out of tasks"

    def met(self, instance: Instance, sharing: Sharing) -> bool:
        """Is the instance like that?"""
        return {
            Condition.RESOURCES: sharing == "rdm",
            Condition.EVERYWHERE: bool(instance.eligibility.all()),
            Condition.POSITIVE: bool((instance.demands > 0).all()),
            Condition.ENDLESS: bool(np.isinf(instance.tasks).all()),
        }[self]


def default_sharing(instance: Instance) -> Sharing:
    """Resource division, unless the instance brings rates of its own: then time is the only thing that is shared."""
    return "rdm" if instance.rates_per_server is None else "tdm"


class Notion(ABC):
    """A notion of fairness. One short subclass declares one; registering it makes it known everywhere.

    Class attributes: ``name`` (the identifier), ``title``, ``source`` (citation), ``satisfies`` (property -> citation: what theory
    promises), ``conditions`` (what its proofs assume of an instance; none: they hold for all), ``weights_per_resource`` (does it
    read weights of shape (users, resources)).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    satisfies: ClassVar[Mapping[Property, str]] = {}
    conditions: ClassVar[frozenset[Condition]] = frozenset()
    weights_per_resource: ClassVar[bool] = False
    divides_requests: ClassVar[bool] = False
    """Does it divide whole requests, so that a user without a number of tasks asks for one?"""
    share_is_part: ClassVar[bool] = False
    """Is a share a part of something, which is written in percent?"""

    utility: FloatArray | None = None
    """Data of the notion's own about pairs, (users, servers), if it has any: rows that differ in it are not merged."""

    def promise(self, wanted: Property, instance: Instance, sharing: Sharing) -> str | None:
        """Return the citation of a property that is proved for this instance, or None: it is not, or this is no such instance.

        No proof that is cited knows of limits on parallelism, but those of Pareto optimality, which hold for any limits.
        """
        if wanted is not Property.PARETO and instance.limited.any():
            return None
        return self.satisfies.get(wanted) if all(condition.met(instance, sharing) for condition in self.conditions) else None

    def restricted(self, users: IntArray | None = None, servers: IntArray | None = None) -> Notion:
        """Return this notion for an instance whose rows are those of the present one at these positions; None: the same rows.

        Data of the notion's own about users and servers is taken along. The default knows ``utility``; a notion with other such data
        extends it.
        """
        if self.utility is None:
            return self
        rows = self.utility if users is None else self.utility[users]
        columns = rows if servers is None or rows.shape[1] == 1 else rows[:, servers]
        return dataclasses.replace(self, utility=columns) if columns is not self.utility else self  # type: ignore[type-var]

    def merges(self, instance: Instance) -> bool:
        """Do identical rows of this instance merge without changing the answer? They do for every notion that is symmetric in them."""
        return True

    @property
    def merge_alpha(self) -> float | None:
        """Identical users divide what one user of their joint weight would get by phi^(1/alpha); None: merge nothing."""
        return 1.0

    def check(self, instance: Instance, sharing: Sharing) -> None:
        """Raise where the notion does not apply; extended by subclasses.

        Raises
        ------
        Unsupported, InvalidInstance
        """
        if instance.rates_per_server is not None and sharing == "rdm":
            raise Unsupported(
                "the instance gives rates, so its servers can only be shared by time, and sharing='rdm' has no meaning for it; "
                "leave sharing out or use sharing='tdm'"
            )
        if instance.weights.ndim == 2 and not self.weights_per_resource:
            raise Unsupported(
                f'the notion "{self.name}" takes one weight per user, but the instance has one per user and resource; '
                'give weights of shape (users,), or use "drf" or "drfh"'
            )

    @abstractmethod
    def formulate(self, instance: Instance, *, sharing: Sharing, integral: bool) -> Program:
        """Declare the program."""

    def shares(self, instance: Instance, tasks: FloatArray) -> FloatArray | None:
        """Return the notion's own shares of (users, servers) tasks, (users,) or (users, servers).

        The default, None, stands for those that the goal compares, sum_i u[n,i] x[n,i] / phi[n]; a notion whose goal is an `Equilibrium`
        compares others.
        """
        return None

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return the measure of a user (given by its position), as the end of a sentence that begins "alice is measured by".

        `fairopt.explain` prints the sentence. The default names the notion; a subclass may say more.
        """
        return f"the rules of {self.name} ({self.title})"

    def yardstick(self, instance: Instance, user: int) -> str:
        """Return `describe_measure`; the former name of this hook. A subclass that overrides it is heard."""
        return self.describe_measure(instance, user)

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "yardstick" in vars(cls) and "describe_measure" not in vars(cls):
            cls.describe_measure = cls.yardstick  # type: ignore[method-assign]

    def criterion(self, instance: Instance) -> Criterion:
        """Return the share by which progressive filling says whose turn it is.

        Raises
        ------
        Unsupported
            For a notion that equalises no share.
        """
        raise Unsupported(
            f'"{self.name}" equalises no share of a user, so it cannot say whose turn it is; '
            'use a max-min notion such as "drfh", or "psdsf"'
        )


class ShareNotion(Notion):
    """Leximin of weighted shares, U[n] = sum_i share_per_task[n] x[n,i]."""

    @abstractmethod
    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return the share that one task is worth, before weights, (users,) or (users, servers)."""

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Say what share a task is worth, from the least to the most where it differs from server to server."""
        share = self.share_per_task(instance)[user]
        worth = np.asarray(share[instance.eligibility[user]] if share.ndim else share, float)
        write = percent if self.share_is_part else figure
        if not worth.size:
            return super().describe_measure(instance, user)
        low, high = write(float(worth.min())), write(float(worth.max()))
        return f"the shares of its tasks: each counts {low}" + (f" to {high}, from server to server" if high != low else "")

    def goal(self, weights: FloatArray) -> Goal:
        """Return the goal; the default is `Leximin`."""
        return Leximin(weights)

    def criterion(self, instance: Instance) -> Criterion:
        """Return the same share for progressive filling, if its leximin is the goal."""
        if not isinstance(self.goal(np.ones(instance.n_users)), Leximin | Equalize):
            return super().criterion(instance)
        return Criterion(self.share_per_task(instance))

    def formulate(self, instance: Instance, *, sharing: Sharing, integral: bool) -> Program:
        """Declare the program: eligible pairs, shares as utilities, limits, goal."""
        users, servers = eligible_pairs(instance)
        share = self.share_per_task(instance)
        utilities = share[users, servers] if share.ndim == 2 else share[users]
        valueless = np.flatnonzero(~((utilities > 0) & np.isfinite(utilities)))
        if valueless.size:
            n, i = users[valueless[0]], servers[valueless[0]]
            raise InvalidInstance(
                f'a task of user "{instance.users[n]}" on "{instance.servers[i]}" is worth a share of {utilities[valueless[0]]:g} under '
                f'"{self.name}", which cannot be equalised; give the user a demand > 0, or use "max-min" with a utility of your own'
            )
        return Program(
            name=self.name,
            title=self.title,
            users=instance.users,
            servers=instance.servers,
            resources=instance.resources,
            pair_users=users,
            pair_servers=servers,
            utilities=utilities,
            limits=sharing_limits(instance, users, servers, sharing),
            goal=self.goal(instance.weights if instance.weights.ndim == 1 else np.ones(instance.n_users)),
            integral=integral,
        )


def dominant_share(instance: Instance, capacity: FloatArray) -> FloatArray:
    """Return max_r d[n,r] / C[r], where weights are (users, resources) max_r d[n,r] / (C[r] phi[n,r]), shape (users,).

    ``capacity`` is C, (resources,): of one server, or of the whole cluster.
    """
    ratio = safe_ratio(instance.demands, capacity)
    share: FloatArray = (ratio / instance.weights if instance.weights.ndim == 2 else ratio).max(axis=1)
    return share


def dominant_part(instance: Instance, user: int, capacity: FloatArray, pool: str) -> str:
    """Say which resource of ``pool`` dominates the demand of a user, and what part of it a task takes; ``capacity`` is (resources,)."""
    parts = safe_ratio(instance.demands[user], capacity)
    weighted = parts / instance.weights[user] if instance.weights.ndim == 2 else parts
    order = np.argsort(-weighted, kind="stable")
    first = named(instance.resources[order[0]])
    others = [f"{percent(parts[r])} of the {named(instance.resources[r])}" for r in order[1:] if parts[r] > 0]
    also = f" ({joined(others[:3])})" if others else ""
    for_weight = " for its weights" if instance.weights.ndim == 2 else ""
    return f"its share of {pool}: a task takes {percent(parts[order[0]])} of the {first}, its dominant resource{for_weight}{also}"


def alone_on_each(instance: Instance, user: int, most: int = 3) -> str:
    """Say how many tasks a user could run on each server row if it had it to itself, the largest first."""
    rates = instance.rates[user]
    order = [i for i in np.argsort(-rates, kind="stable") if rates[i] > 0]
    listed = [f"{figure(rates[i])} on {named(instance.servers[i])}" for i in order[:most]]
    return joined([*listed, *([f"fewer on {len(order) - most:,} more"] if len(order) > most else [])]) or "none"


# What notions with several fair allocations share ---------------------------------------------------------------------------------


def check_preference(prefer: npt.ArrayLike | None, instance: Instance, notion: str) -> None:
    """Refuse a preference that is neither None, nor "utilization", nor a finite number of any sign for each user.

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
    """Return the preference for the users at these positions."""
    return prefer if users is None or prefer is None or isinstance(prefer, str) else np.asarray(prefer)[users]


def preference_per_task(prefer: npt.ArrayLike, instance: Instance) -> FloatArray:
    """Return what a task of each user counts, (users,): the number given, or the parts of all capacity that it takes, summed."""
    if isinstance(prefer, str):
        parts: FloatArray = safe_ratio(instance.demands, instance.total_capacity).sum(axis=1)
        return parts
    return np.asarray(prefer, dtype=np.float64)


# Columns and rows that all notions share ------------------------------------------------------------------------------------------


def eligible_pairs(instance: Instance) -> tuple[IntArray, IntArray]:
    """Return users and servers of the columns. Users who demand nothing have none: all their tasks always fit."""
    users, servers = np.nonzero(instance.eligibility & ~instance.zero_demand[:, None])
    return users, servers


def sharing_limits(instance: Instance, users: IntArray, servers: IntArray, sharing: Sharing) -> Limits:
    """Return what bounds every allocation: resources or time of each server, and the tasks and the parallelism of each user."""
    shared = capacity_limits if sharing == "rdm" else time_limits
    return Limits.stack([shared(instance, users, servers), user_limits(instance, users, servers)])


def user_limits(instance: Instance, users: IntArray, servers: IntArray) -> Limits:
    """Return what bounds a user by itself: its tasks and its parallelism."""
    return Limits.stack([task_limits(instance, users), parallelism_limits(instance, users, servers)])


def capacity_limits(instance: Instance, users: IntArray, servers: IntArray) -> Limits:
    """sum_n d[n,r] x[n,i] <= counts[i] c[i,r], a row for each (i, r) that somebody uses."""
    k, m = instance.n_servers, instance.n_resources
    rows = servers[:, None] * m + np.arange(m)
    columns = np.broadcast_to(np.arange(users.size)[:, None], rows.shape)
    values = instance.demands[users]
    used = values > 0
    matrix = sp.csr_array((values[used], (rows[used], columns[used])), shape=(k * m, users.size))
    keys = np.column_stack([np.repeat(np.arange(k), m), np.tile(np.arange(m), k)])
    return Limits.of(LimitKind.CAPACITY, matrix, instance.row_capacity.ravel(), keys)


def time_limits(instance: Instance, users: IntArray, servers: IntArray) -> Limits:
    """sum_n x[n,i] / gamma[n,i] <= 1, a row for each server i."""
    matrix = sp.csr_array((1.0 / instance.rates[users, servers], (servers, np.arange(users.size))), shape=(instance.n_servers, users.size))
    return Limits.of(LimitKind.TIME, matrix, np.ones(instance.n_servers), np.arange(instance.n_servers))


def task_limits(instance: Instance, users: IntArray) -> Limits:
    """sum_i x[n,i] <= T[n], a row for each user n with finitely many tasks."""
    limited = np.flatnonzero(np.isfinite(instance.tasks))
    row = np.full(instance.n_users, -1)
    row[limited] = np.arange(limited.size)
    columns = np.flatnonzero(row[users] >= 0)
    matrix = sp.csr_array((np.ones(columns.size), (row[users[columns]], columns)), shape=(limited.size, users.size))
    return Limits.of(LimitKind.TASKS, matrix, instance.tasks[limited], limited)


def parallelism_limits(instance: Instance, users: IntArray, servers: IntArray) -> Limits:
    """sum_i x[n,i] / rho[n,i] <= P[n], a row for each user n with limited parallelism; rho[n,i] is what it runs on one server of i."""
    mine = np.flatnonzero(instance.limited[users])  # the limits of servers imply the rows of the others
    values = 1.0 / instance.rates_of_one[users[mine], servers[mine]] if mine.size else np.empty(0)
    matrix = sp.csr_array((values, (users[mine], mine)), shape=(instance.n_users, users.size))
    return Limits.of(LimitKind.PARALLELISM, matrix, instance.parallelism, np.arange(instance.n_users))
