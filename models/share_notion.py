"""The base class of the max-min notions of fairness.

A max-min notion declares only the share of one task (`ShareNotion.share_per_task`). The rest of its program is the same for all:

    leximin over n of U[n] / phi[n],    U[n] = sum_i share_per_task[n] x[n,i]        over the eligible pairs (n, i)
    sum_n d[n,r] x[n,i] <= counts[i] c[i,r]       for each server i and resource r    resource division, sharing="rdm"
    sum_n x[n,i] / gamma[n,i] <= 1                for each server i                   time division, sharing="tdm"
    sum_n,i d[n,r] x[n,i] <= S[r]                 for each resource r of the whole cluster, under both
    sum_i x[n,i] <= T[n]                          for each user n with finitely many tasks
    sum_i x[n,i] / rho[n,i] <= P[n]               for each user n with a parallelism below the number of servers where it may run,
                                                  rho[n,i] = gamma[n,i] / counts[i]

*Leximin* maximises the smallest share, then the second smallest, and so on.

* The shares are unique. Proof: the average of two optimal allocations is feasible. If their shares differ, the average raises the
  smallest share that differs, a contradiction.
* So x[n] is unique where a task of n has the same worth on every server. x[n,i] is not.
* x is optimal if and only if the users can be settled level by level, t[1] < t[2] < ..., each level with prices p >= 0 of full limits that
  prove it: without more of a priced limit, a user of the level rises only if a user at or below the level falls.
  `fairopt.certificate.levels` has the inequality and the proof.
* x is Pareto optimal, because every x[n] has a positive coefficient.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import wraps
from typing import Any, ClassVar, cast, get_args

import numpy as np

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import FloatArray, Instance, safe_ratio
from fairopt.instance.by_server import refuse_by_server
from fairopt.instance.fractions import ExactArray, fractions_of, rationals
from fairopt.models.notion import Notion, Sharing
from fairopt.models.queue_tree import (
    OPTIONS_OF_TREES,
    Guarantees,
    QueueShare,
    Reading,
    check_limits_alone,
    check_nested,
    check_no_queues,
    tree_filling,
)
from fairopt.program import AllPairs, AlphaFair, Feature, Goal, Leximin, Limits, Nested, Program
from fairopt.program.all_pairs import has_all_pairs
from fairopt.program.cluster_limits import eligible_pairs, sharing_limits
from fairopt.program.exact import ExactProgram
from fairopt.program.filling import Criterion
from fairopt.program.kept_parts import KeptParts
from fairopt.program.limits import ACROSS_SERVERS
from fairopt.program.queue_limits import queue_limits
from fairopt.program.share_limits import ShareLimits
from fairopt.wording import figure, joined, named, percent

__all__ = ["ShareNotion", "alone_on_each", "dominant_part", "dominant_share"]


_MANY = 10_000  # pairs; of fewer, a leximin level by level takes no second


class _Unstated:
    """The default of an option of trees, which a subclass may state otherwise. No notion holds it."""

    def __init__(self, value: str | None) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


_SURPLUS, _FILLING, _OF_THE_NOTION = (cast(Any, _Unstated(value)) for value in ("surplus", "filling", None))


@dataclass(frozen=True, eq=False, repr=False)
class ShareNotion(Notion):
    """Leximin of weighted shares, U[n] = sum_i share_per_task[n] x[n,i]; in a tree of queues its filling.

    Every such notion has the options of trees (`fairopt.models.queue_tree`), by keyword. A subclass may state one as an attribute of the
    class, such as ``queue_share = "sum"``; an argument overrides it. A subclass with options of its own is a dataclass, which must be
    frozen, as this class is: ``@dataclass(frozen=True)``.

    Parameters
    ----------
    guarantees : {"surplus", "clamp"}
    queue_share : {"dominant", "sum"}, optional
        The share of a queue; the default is ``default_queue_share``.
    tree : {"filling", "nested"}
    """

    guarantees: Guarantees = field(default=_SURPLUS, kw_only=True)
    queue_share: QueueShare | None = field(default=_OF_THE_NOTION, kw_only=True)
    tree: Reading = field(default=_FILLING, kw_only=True)

    default_queue_share: ClassVar[QueueShare] = "sum"

    def __post_init__(self) -> None:
        """Take the options of trees that are not given from the class."""
        for name in OPTIONS_OF_TREES:
            if isinstance(getattr(self, name), _Unstated):
                object.__setattr__(self, name, getattr(type(self), name))

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if (own := vars(cls).get("__post_init__")) is not None:  # which need not call that of its base class

            @wraps(own)
            def after(self: ShareNotion, *arguments: object) -> None:
                ShareNotion.__post_init__(self)
                own(self, *arguments)

            cls.__post_init__ = after  # type: ignore[method-assign]

    def check_queues(self, instance: Instance) -> None:
        """Allow a tree of queues if the goal is a leximin, limits of queues if it is a sum, and no queues otherwise.

        Raises
        ------
        Unsupported
            The goal does not take these queues, or an option of trees has an unknown value.
        """
        if self.guarantees not in get_args(Guarantees):
            raise Unsupported(f'there is no meaning "{self.guarantees}" of guarantees; use "surplus" or "clamp"')
        if self.queue_share is not None and self.queue_share not in get_args(QueueShare):
            raise Unsupported(f'there is no queue_share "{self.queue_share}"; use "dominant" or "sum"')
        goal = self.goal(np.ones(instance.n_users))
        if goal.feature is not Feature.LEXIMIN and (self.guarantees, self.queue_share, self.tree) != ("surplus", None, "filling"):
            raise Unsupported(f'"{self.name}" follows no tree of queues, so it takes no {joined(OPTIONS_OF_TREES)}; leave these out')
        if self.tree not in get_args(Reading):
            raise Unsupported(f'there is no reading "{self.tree}" of a tree; use "filling" or "nested"')
        if not instance.is_tree:
            return
        if not goal.in_shares:
            check_limits_alone(self.name, instance)
        elif goal.feature is not Feature.LEXIMIN:
            check_no_queues(self.name, instance)
        elif self.tree == "nested":
            check_nested(self.name, instance)
            if self.queue_share == "dominant":
                raise Unsupported('tree="nested" adds up shares; use queue_share="sum", or leave it out')
        elif self._queue_share() == "dominant" and self.share_per_task(instance).ndim == 2:
            raise Unsupported(
                f'the share of a task under "{self.name}" depends on the server, so a queue has no dominant share; use queue_share="sum"'
            )

    def _queue_share(self) -> QueueShare:
        return self.queue_share or self.default_queue_share

    @abstractmethod
    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return the share of one task, not divided by the weight, of shape (users,) or (users, servers)."""

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return the share of one task as text; its range, where it differs between servers."""
        share = np.asarray(self.share_per_task(instance)[user])
        worth = np.atleast_1d(share)[instance.eligibility[user]] if share.ndim else np.atleast_1d(share)
        write = percent if self.share_is_part else figure
        if not worth.size:
            return super().describe_measure(instance, user)
        low, high = write(worth.min()), write(worth.max())
        return f"the shares of its tasks: each counts {low}" + (f" to {high}, from server to server" if high != low else "")

    def goal(self, weights: FloatArray) -> Goal:
        """Return the goal; the default is `Leximin`."""
        return Leximin(weights)

    def criterion(self, instance: Instance) -> Criterion:
        """Return the same share for progressive filling, if the goal is its leximin."""
        if not self.goal(np.ones(instance.n_users)).has_levels:
            return super().criterion(instance)
        refuse_by_server(instance, "schedules take tasks that are the same everywhere", "solve the notion instead")
        exact = instance.demands.dtype == object
        return Criterion(self._exact_share(instance) if exact else self._checked_share(instance))

    def _checked_share(self, instance: Instance) -> FloatArray:
        """Return ``share_per_task``, which a notion of the user's own may have wrong."""
        given = self.share_per_task(instance)
        shapes = ((instance.n_users,), (instance.n_users, instance.n_servers))
        try:
            share = np.asarray(given, float)
        except (TypeError, ValueError):
            found = f"a {type(given).__name__} that is no array of numbers"
        else:
            if share.shape in shapes:
                return by_work(instance, share)
            found = f"an array of shape {share.shape}"
        raise InvalidInstance(
            f'share_per_task of "{self.name}" returned {found}; return numbers of shape (users,) = {shapes[0]}, '
            f"or (users, servers) = {shapes[1]}"
        )

    def in_fractions(self, instance: Instance, program: Program) -> ExactProgram:
        """Return the program in fractions: shares as utilities, and the goal with weights in fractions."""
        users, servers = program.pair_users, program.pair_servers
        share = self._exact_share(instance)
        utilities = share[users, servers] if share.ndim == 2 else share[users]
        weights = instance.weights if instance.weights.ndim == 1 else np.full(instance.n_users, Fraction(1))
        goal = self.goal(rationals(weights))
        if program.goal.feature is Feature.NESTED:
            goal = Nested.of(instance.tree, weights, np.bincount(users, minlength=instance.n_users) > 0)
        elif program.goal.is_filling:
            goal = tree_filling(instance, share, users, servers, self.guarantees, self._queue_share())
        return ExactProgram.of(program, instance, utilities, goal)

    def _exact_share(self, instance: Instance) -> ExactArray:
        """Return ``share_per_task`` of an instance in fractions, which must give fractions; whole floats are fractions too."""
        share = np.asarray(self.share_per_task(instance))
        wrong = [each for each in share.ravel().tolist() if isinstance(each, float) and not (each.is_integer() or np.isinf(each))]
        if wrong:
            raise Unsupported(
                f'share_per_task of "{self.name}" gives {wrong[0]!r} for an instance in fractions, which is a float; compute it without '
                "floats of your own (Fraction(1, 2) for 0.5), or leave exact out"
            )
        return by_work(instance, fractions_of(share))

    def formulate(self, instance: Instance, *, sharing: Sharing, integral: bool) -> Program:
        """Return the program: eligible pairs, shares as utilities, limits, goal.

        Raises
        ------
        InvalidInstance
            A task of a user is worth no share > 0.
        """
        share = self._checked_share(instance)
        if not integral and has_all_pairs(instance, sharing):
            goal, each = self.goal(instance.weights), share if share.ndim == 1 else share[:, 0]
            alike = share.ndim == 1 or bool((share == share[:, :1]).all())
            if alike and isinstance(goal, Leximin | AlphaFair) and bool((np.isfinite(each) & (each > 0)).all()):
                return AllPairs.of(instance, each, goal, self.name, self.title)
        users, servers = eligible_pairs(instance)
        utilities = share[users, servers] if share.ndim == 2 else share[users]
        valueless = np.flatnonzero(~((utilities > 0) & np.isfinite(utilities)))
        if valueless.size:
            n, i = users[valueless[0]], servers[valueless[0]]
            raise InvalidInstance(
                f'a task of user "{instance.users[n]}" on "{instance.servers[i]}" is worth a share of {utilities[valueless[0]]:g} under '
                f'"{self.name}", but shares must be > 0; give the user a demand > 0, or use "max-min" with a utility of your own'
            )
        goal = self.goal(instance.weights if instance.weights.ndim == 1 else np.ones(instance.n_users))
        if instance.is_tree and goal.feature is Feature.LEXIMIN:
            if self.tree == "nested":
                goal = Nested.of(instance.tree, goal.weights, np.bincount(users, minlength=instance.n_users) > 0)
            else:
                goal = tree_filling(instance, share, users, servers, self.guarantees, self._queue_share())
        of_queues, names = queue_limits(instance, users, servers)
        program = Program(
            name=self.name,
            title=self.title,
            users=instance.users,
            servers=instance.servers,
            resources=instance.resources,
            pair_users=users,
            pair_servers=servers,
            utilities=utilities,
            limits=Limits.stack([sharing_limits(instance, users, servers, sharing), of_queues]),
            goal=goal,
            integral=integral,
            queue_limits=names,
        )
        if goal.feature is Feature.LEXIMIN and not integral and _across_servers_alone(program):
            filling = tree_filling(instance, share, users, servers, "surplus", "sum")  # the same levels: a tree of its root alone
            return dataclasses.replace(program, goal=filling)
        return program.keeping(KeptParts.of(instance))


def _across_servers_alone(program: Program) -> bool:
    """Is it a large program whose rows across servers are limits on shares? The engines of trees know when such limits are full."""
    across = program.limits.of_kinds(*ACROSS_SERVERS)
    return (
        program.n_pairs >= _MANY and bool(across.any()) and bool(ShareLimits.of(program).rows[across & (program.limits.bounds > 0)].all())
    )


for _name in OPTIONS_OF_TREES:  # of the class itself, the value
    setattr(ShareNotion, _name, getattr(ShareNotion, _name).value)


def by_work(instance: Instance, share: Any) -> Any:
    """Return the share of one task from the share of a unit of work, speed[n,i] times as much."""
    if instance.speeds_given is None:
        return share
    return (share[:, None] if share.ndim == 1 else share) * instance.speeds


def dominant_share(instance: Instance, capacity: FloatArray) -> FloatArray:
    """Return max_r d[n,r] / C[r], (users,); with weights per resource, max_r d[n,r] / (C[r] phi[n,r]).

    ``capacity`` is C, (resources,), of one server or of the cluster.
    """
    ratio = safe_ratio(instance.demands, capacity)
    share: FloatArray = (ratio / instance.weights if instance.weights.ndim == 2 else ratio).max(axis=1)
    return share


def dominant_part(instance: Instance, user: int, capacity: FloatArray, pool: str) -> str:
    """Return a sentence's end on the dominant resource of a user: which resource, and what part of it a task takes.

    ``capacity`` is that of the pool, (resources,); ``pool`` its name, such as "the server".
    """
    parts = safe_ratio(instance.demands[user], capacity)
    weighted = parts / instance.weights[user] if instance.weights.ndim == 2 else parts
    order = np.argsort(-weighted, kind="stable")
    first = named(instance.resources[order[0]])
    others = [f"{percent(parts[r])} of the {named(instance.resources[r])}" for r in order[1:] if parts[r] > 0]
    also = f" ({joined(others[:3])})" if others else ""
    for_weight = " for its weights" if instance.weights.ndim == 2 else ""
    return f"its share of {pool}: a task takes {percent(parts[order[0]])} of the {first}, its dominant resource{for_weight}{also}"


def alone_on_each(instance: Instance, user: int, most: int = 3) -> str:
    """Return as text how many tasks a user could run alone on each server row, the largest number first."""
    rates = instance.rates[user]
    order = [i for i in np.argsort(-rates, kind="stable") if rates[i] > 0]
    listed = [f"{figure(rates[i])} on {named(instance.servers[i])}" for i in order[:most]]
    return joined([*listed, *([f"fewer on {len(order) - most:,} more"] if len(order) > most else [])]) or "none"
