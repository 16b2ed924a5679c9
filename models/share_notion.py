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
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import wraps
from typing import Any, ClassVar, Self, get_args

import numpy as np

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, safe_ratio
from fairopt.instance.by_server import refuse_by_server
from fairopt.instance.fractions import ExactArray, fractions_of, rationals
from fairopt.models.counting import Counting, only_text, weights_mapping
from fairopt.models.notion import Notion, Property, Sharing
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
from fairopt.program.most_work import work_of_pool
from fairopt.program.queue_limits import queue_limits
from fairopt.program.share_limits import ShareLimits
from fairopt.program.tree_filling import TreeFilling
from fairopt.wording import figure, joined, named, percent

__all__ = ["ShareNotion", "alone_on_each", "dominant_share"]


_MANY = 10_000  # pairs; of fewer, a leximin level by level takes no second


_AS_STATED: Any = ...
"""The default of an option by keyword in a call: the value that the class states."""
_OPTIONS = (*OPTIONS_OF_TREES, "resource_weights", "only")


@dataclass(frozen=True, eq=False, repr=False)
class ShareNotion(Notion):
    """Leximin of weighted shares, U[n] = sum_i share_per_task[n] x[n,i]; in a tree of queues its filling.

    Every such notion has the options of trees (`fairopt.models.queue_tree`) and of what counts (`fairopt.models.counting`), by keyword. A
    subclass may state one as an attribute of the class, such as ``queue_share = "sum"``; an argument overrides it. A subclass with options
    of its own is a dataclass, which must be frozen, as this class is: ``@dataclass(frozen=True)``.

    Parameters
    ----------
    guarantees : {"surplus", "clamp"}
    queue_share : {"dominant", "sum"}, optional
        The share of a queue; the default is ``default_queue_share``, and "sum" where demands or speeds differ by server.
    tree : {"filling", "nested"}
    resource_weights : mapping, optional
        How often each resource counts in a share; a resource that is not named counts once. Of `drf`, `drfh`, `asset`, and of the dominant
        shares of queues.
    only : str, optional
        The resources that count, joined by "+"; a list of names is joined. All others count 0.
    """

    guarantees: Guarantees = field(default=_AS_STATED, kw_only=True)
    queue_share: QueueShare | None = field(default=_AS_STATED, kw_only=True)
    tree: Reading = field(default=_AS_STATED, kw_only=True)
    resource_weights: Mapping[str, Any] | None = field(default=_AS_STATED, kw_only=True, metadata={"if given": True})
    only: str | None = field(default=_AS_STATED, kw_only=True, metadata={"if given": True})

    default_queue_share: ClassVar[QueueShare] = "sum"
    keeps_guarantees: ClassVar[bool] = True
    """Of a notion that follows no tree: is what guarantees give kept (`fairopt.solving.kept_guarantees`)?"""
    counts_resources: ClassVar[bool] = False
    """Is a share a measure of resources of the cluster, in which ``resource_weights`` count?"""

    def __post_init__(self) -> None:
        """Take the options by keyword that are not given from the class, and read what counts."""
        for name in _OPTIONS:
            if getattr(self, name) is _AS_STATED:
                object.__setattr__(self, name, getattr(type(self), name))
        self._read_what_counts()

    def _read_what_counts(self) -> None:
        if self.resource_weights is not None and self.only is not None:
            raise Unsupported("resource_weights= and only= both say what counts; give one of them")
        object.__setattr__(self, "resource_weights", weights_mapping(self.resource_weights))
        object.__setattr__(self, "only", only_text(self.only))

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if (own := vars(cls).get("__post_init__")) is not None:  # which need not call that of its base class

            @wraps(own)
            def after(self: ShareNotion, *arguments: object) -> None:
                ShareNotion.__post_init__(self)
                own(self, *arguments)

            cls.__post_init__ = after  # type: ignore[method-assign]

    def changed(self, **values: object) -> Self:
        """Return a copy with other values of some attributes that the notion has, read as arguments are."""
        changed = super().changed(**values)
        changed._read_what_counts()
        return changed

    def check(self, instance: Instance, sharing: Sharing) -> None:
        """Refuse weights of resources that cannot count, and what every notion refuses."""
        super().check(instance, sharing)
        if self.resource_weights is None and self.only is None:
            return
        counting = Counting(instance, self.resource_weights, self.only)
        by_queues = self.queue_share_of(instance) == "dominant" and self.goal(np.ones(instance.n_users)).feature is Feature.LEXIMIN
        if not (self.counts_resources or by_queues):
            raise Unsupported(
                f'the shares of "{self.name}" do not add up resources of the cluster, so it takes neither resource_weights= '
                'nor only=; use "drfh", "drf" or "asset", or queue_share="dominant"'
            )
        if not (counting.m > 0).any():
            raise Unsupported("resource_weights is 0 for all resources, so nothing counts; give one a weight > 0")
        last = self.last(instance)
        if not last.any():
            return
        who = f"user {named(instance.users[int(last.argmax())])} demands nothing that counts, and comes after all others"
        if self.tree == "nested":
            raise Unsupported(f'{who}; tree="nested" knows no such order, so leave tree out')
        if self.goal(np.ones(instance.n_users)).feature is not Feature.LEXIMIN:
            raise Unsupported(f'{who}; "{self}" equalises all shares, so use formulation="leximin"')
        if self.guarantees == "clamp" and instance.is_tree and self.queue_share_of(instance) == "dominant":
            raise Unsupported(
                f'{who}; under guarantees="clamp" its queue would be measured in two ways at once, so use guarantees="surplus"'
            )

    def counting(self, instance: Instance) -> Counting | None:
        """Return what counts in shares of this instance; None if all resources count once and that was not asked."""
        if self.resource_weights is None and self.only is None:
            return None
        return Counting(instance, self.resource_weights, self.only)

    def last(self, instance: Instance) -> BoolArray:
        """Return the users who demand nothing that counts, (users,): they come after all others."""
        counting = self.counting(instance)
        if counting is None or not (self.counts_resources or (instance.is_tree and self.queue_share_of(instance) == "dominant")):
            return np.zeros(instance.n_users, bool)
        return counting.last

    def refuse_last(self, instance: Instance, why: str) -> None:
        """Refuse users who demand nothing that counts, where shares of everybody are added up or compared; ``why`` ends the sentence.

        Raises
        ------
        Unsupported
        """
        last = self.last(instance)
        if last.any():
            raise Unsupported(f"user {named(instance.users[int(last.argmax())])} demands nothing that counts, and {why}")

    def promise(self, wanted: Property, instance: Instance, sharing: Sharing) -> str | None:
        """Return the citation; proofs of other properties than Pareto optimality know of no weights of resources."""
        counting = self.counting(instance)
        if wanted is not Property.PARETO and counting is not None and not counting.changes_nothing:
            return None
        return super().promise(wanted, instance, sharing)

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
            options = joined([f"{option}=" for option in OPTIONS_OF_TREES])
            raise Unsupported(f'"{self.name}" follows no tree of queues, so it takes no {options}; leave these out')
        if self.tree not in get_args(Reading):
            raise Unsupported(f'there is no reading "{self.tree}" of a tree; use "filling" or "nested"')
        if not instance.is_tree:
            return
        if not goal.in_shares:
            check_limits_alone(self.name, instance, guarantees=goal.feature in (Feature.TOTAL, Feature.ALPHA_FAIR, Feature.TRADEOFF))
        elif goal.feature is not Feature.LEXIMIN:
            fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(self) if dataclasses.is_dataclass(self) else ()
            usual = {field.name: field.default for field in fields}
            told = [f"{key}={value}" for key, value in self.chosen_options.items() if str(value) != str(usual.get(key))]
            check_no_queues(":".join([self.name, *told]), instance)
        elif self.tree == "nested":
            check_nested(self.name, instance)
            if self.queue_share == "dominant":
                raise Unsupported('tree="nested" adds up shares; use queue_share="sum", or leave it out')
        elif self.queue_share == "dominant" and instance.differs_by_server:
            what = "what a unit of work takes of the cluster depends on the server, so a queue has no dominant share"
            refuse_by_server(instance, what, 'use queue_share="sum", or leave it out')
        elif self.queue_share_of(instance) == "dominant" and self.share_per_task(instance).ndim == 2:
            raise Unsupported(
                f'the share of a task under "{self.name}" depends on the server, so a queue has no dominant share; use queue_share="sum"'
            )

    def queue_share_of(self, instance: Instance) -> QueueShare:
        """Return what the share of a queue is: as asked, else the default; "sum" where demands or speeds differ by server."""
        return self.queue_share or ("sum" if instance.differs_by_server else self.default_queue_share)

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
        if instance.speeds_given is not None and high == low:
            return f"the work of its tasks: that of one task counts {low}"
        return f"the shares of its tasks: each counts {low}" + (f" to {high}, from server to server" if high != low else "")

    def goal(self, weights: FloatArray) -> Goal:
        """Return the goal; the default is `Leximin`."""
        return Leximin(weights)

    def criterion(self, instance: Instance) -> Criterion:
        """Return the same share for progressive filling, if the goal is its leximin."""
        if not self.goal(np.ones(instance.n_users)).has_levels:
            return super().criterion(instance)
        exact = instance.capacities.dtype == object
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
                return np.asarray(by_work(instance, share))
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
            goal = self.filling(instance, share, users, servers)
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
        return np.asarray(by_work(instance, fractions_of(share)))

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
        if goal.feature is Feature.LEXIMIN and (instance.is_tree or self.last(instance).any()):
            if self.tree == "nested":
                goal = Nested.of(instance.tree, goal.weights, np.bincount(users, minlength=instance.n_users) > 0)
            else:
                goal = self.filling(instance, share, users, servers)
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
            filling = tree_filling(instance, share, users, servers, "surplus", None)  # the same levels: a tree of its root alone
            return program.with_goal(filling)
        return program.keeping(KeptParts.of(instance))

    def filling(self, instance: Instance, share: FloatArray, users: IntArray, servers: IntArray) -> TreeFilling:
        """Return the goal of filling the tree of an instance; of a flat list of users, if somebody comes last, a tree of its root alone."""
        counting, parts = self.counting(instance), None
        if self.queue_share_of(instance) == "dominant" and instance.is_tree:
            parts = safe_ratio(instance.demands, instance.total_capacity) if counting is None else counting.own_parts
        return tree_filling(instance, share, users, servers, self.guarantees, parts, self.last(instance), counting)


def _across_servers_alone(program: Program) -> bool:
    """Is it a large program whose rows across servers are limits on shares? The engines of trees know when such limits are full."""
    across = program.limits.of_kinds(*ACROSS_SERVERS)
    return (
        program.n_pairs >= _MANY and bool(across.any()) and bool(ShareLimits.of(program).rows[across & (program.limits.bounds > 0)].all())
    )


# What this class states. A dataclass takes the defaults of calls from attributes of the class, so these are set when it is made.
ShareNotion.guarantees, ShareNotion.queue_share, ShareNotion.tree = "surplus", None, "filling"
ShareNotion.resource_weights = ShareNotion.only = None


def by_work(instance: Instance, share: Any) -> Any:
    """Return the share of one task from the share of a unit of work, speed[n,i] times as much."""
    if instance.speeds_given is None:
        return share
    speeds = instance.speeds
    runs = speeds > 0  # who does no work anywhere has an infinite share
    each = np.broadcast_to(share[:, None] if share.ndim == 1 else share, speeds.shape)
    return np.multiply(each, speeds, out=np.zeros(speeds.shape, speeds.dtype), where=runs)


def share_of_work(instance: Instance, counting: Counting | None) -> FloatArray:
    """Return 1 / W[n], (users,), the share of a unit of work where demands or speeds differ by server (`fairopt.program.most_work`)."""
    if instance.weights.ndim == 2:
        refuse_by_server(instance, "weights per resource are defined for one demand on all servers", "give each user one weight")
    return safe_ratio(1, work_of_pool(instance) if counting is None else counting.work_of_pool)


def dominant_share(instance: Instance, capacity: FloatArray, counting: Counting | None = None) -> FloatArray:
    """Return max_r m[r] d[n,r] / C[r], (users,); with weights per resource, max_r m[r] d[n,r] / (C[r] phi[n,r]).

    ``capacity`` is C, (resources,), of one server or of the cluster; m is 1, or what counts. Of users who demand nothing that counts, m is
    1.
    """
    ratio = safe_ratio(instance.demands, capacity) if counting is None else counting.own_parts
    share: FloatArray = (ratio / instance.weights if instance.weights.ndim == 2 else ratio).max(axis=1)
    return share


def alone_on_each(instance: Instance, user: int, most: int = 3) -> str:
    """Return as text how many tasks a user could run alone on each server row, the largest number first."""
    rates = instance.rates[user]
    order = [i for i in np.argsort(-rates, kind="stable") if rates[i] > 0]
    listed = [f"{figure(rates[i])} on {named(instance.servers[i])}" for i in order[:most]]
    return joined([*listed, *([f"fewer on {len(order) - most:,} more"] if len(order) > most else [])]) or "none"
