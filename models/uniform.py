"""The uniform slice: what every user would have if each server were divided in advance.

Every server is divided in proportion to the weights. User n may use the part phi[n] / sum_m phi[m] of each resource of *every* server on
which it is eligible, and nothing else:

    maximise sum_n U[n]   subject to   x[n,i] <= min_r  phi[n] / (sum_m phi[m]) * counts[i] c[i,r] / d[n,i,r],     sum_i x[n,i] <= T[n].

U[n] is the work of n, its number of tasks where no speeds are given. Of a resource of the cluster it may use the same part, wherever its
tasks run: sum_i d[n,i,r] x[n,i] <= phi[n] / (sum_m phi[m]) * S[r].

With weights per resource the slice of resource r is phi[n,r] / sum_m phi[m,r]. Under time division the slice is a part of each server's
time, which gives the same number of tasks. A user's slice of a server on which it is not eligible stays unused (Khamse-Ashari et al. 2017,
sections II-A and III-B).

The uniform slice is the reference of the *sharing incentive*: a notion has it if no user receives less than its slice. No two users share
a limit, so the optimum is x[n] = min(T[n], sum of the bounds on x[n,i]), which is unique.
Where demands or speeds differ by server it is a linear program, and U[n] is unique.

*Properties.* Envy-free: what m holds, scaled by phi[n] / phi[m], fits into the slice of n. Strategy-proof: a report changes only how a
user's own slice is filled. Not Pareto optimal: in figure 1 of the PS-DSF paper the slices run 1.5, 1.5 and 6 tasks and leave a quarter of
the memory unused, which "psdsf" fills with 3, 3 and 6 tasks.

>>> import fairopt as fo
>>> instance = fo.Instance([[2, 12], [12, 2]], [[.2, 1], [1, .2]])
>>> fo.solve(instance, "uniform").tasks_per_user
array([6., 6.])
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.fractions import rationals
from fairopt.instance.selections import is_own
from fairopt.models.notion import Notion, Property, Sharing
from fairopt.program import LimitKind, Limits, Program, Total
from fairopt.program.cluster_limits import eligible_pairs, user_limits
from fairopt.program.exact import ExactProgram
from fairopt.program.queue_limits import queue_limits
from fairopt.wording import joined, percent

__all__ = ["Uniform"]

_SOURCE = "by definition: everybody has exactly its slice"


def _slices(instance: Instance, users: IntArray, servers: IntArray) -> FloatArray:
    """Return how many tasks fit into each user's slice of a server, (pairs,)."""
    part = instance.weights / instance.weights.sum(axis=0)
    if part.ndim == 1:
        return np.asarray(part[users] * instance.rates[users, servers])
    bounds = np.full(users.size, np.inf, dtype=instance.demands_by_kind.dtype)
    for r in range(instance.n_server_resources):
        demand = instance.kinds.of_pairs(users, servers, r)
        asks = demand > 0
        alone = instance.row_capacity[servers[asks], r] / demand[asks]
        bounds[asks] = np.minimum(bounds[asks], part[users[asks], r] * alone)
    return bounds


def _shared_slices(instance: Instance, users: IntArray) -> tuple[IntArray, FloatArray]:
    """Return each user and resource of the cluster that it demands, (slices, 2), and how many tasks fit into its slice of it, (slices,).

    Where demands differ by server, the second is the amount of the slice.
    """
    part = instance.weights / instance.weights.sum(axis=0)
    has_column = np.zeros(instance.n_users, bool)
    has_column[users] = True
    demanded = (instance.demands_by_kind[:, :, instance.n_server_resources :] > 0).any(axis=1)
    n, shared = np.nonzero(demanded & has_column[:, None])
    r = shared + instance.n_server_resources
    amounts = (part[n] if part.ndim == 1 else part[n, r]) * instance.shared_capacity[shared]
    return np.column_stack([n, r]), amounts if instance.demands_by_kind.shape[1] > 1 else amounts / instance.demands[n, r]


class Uniform(Notion):
    """A slice of every server in proportion to the weight, the reference of the sharing incentive."""

    name = "uniform"
    title = "Uniform slice of every server"
    source = "Khamse-Ashari et al. (2017), section II-A"
    references = ("KhamseAshari2017",)
    symmetric = True
    proofs_cover_shared = True
    proofs_cover_work = frozenset({Property.SHARING_INCENTIVE, Property.ENVY_FREENESS, Property.STRATEGY_PROOFNESS})
    satisfies: ClassVar = {
        Property.SHARING_INCENTIVE: _SOURCE,
        Property.ENVY_FREENESS: _SOURCE,
        Property.STRATEGY_PROOFNESS: _SOURCE,
    }
    weights_per_resource = True
    by_server = True

    def check(self, instance: Instance, sharing: Sharing) -> None:
        """Refuse weights per resource under time division, and what every notion refuses."""
        super().check(instance, sharing)
        if sharing == "tdm" and instance.weights.ndim == 2:
            raise Unsupported(
                "under time division a user has one slice of each server's time, but the instance has weights per resource; "
                "give weights of shape (users,), or use sharing='rdm'"
            )

        for selection in instance.selections:
            if not is_own(selection):
                raise Unsupported(
                    f'"uniform" gives everybody a slice of its own, and limit "{selection.limit.name}" is about several users together; '
                    'limit each user by itself (each="user"), or leave it out'
                )

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return its slice as text."""
        part = (instance.weights / instance.weights.sum(axis=0))[user]
        everything = "every server and every resource of the cluster" if instance.shared else "every server"
        return f"nothing but its own slice, {joined(sorted({percent(p) for p in np.atleast_1d(part)}))} of {everything}"

    def in_fractions(self, instance: Instance, program: Program) -> ExactProgram:
        """Return the program in fractions: slices, and tasks as the total."""
        users, servers = program.pair_users, program.pair_servers
        of_servers = _slices(instance, users, servers)
        slices = rationals(np.concatenate([of_servers[of_servers < np.inf], _shared_slices(instance, users)[1]]))
        worth = np.ones(users.size, dtype=np.int64) if instance.speeds_given is None else instance.speeds[users, servers]
        return ExactProgram.of(program, instance, rationals(worth), Total(rationals(np.ones(instance.n_users))), slices)

    def formulate(self, instance: Instance, *, sharing: Sharing, integral: bool) -> Program:
        """Return the program: one limit per pair, its slice, and the total number of tasks as the goal."""
        users, servers = eligible_pairs(instance)
        bounds = _slices(instance, users, servers)
        slices = Limits.of(LimitKind.SLICE, sp.eye_array(users.size, format="csr"), bounds, np.column_stack([users, servers]))
        slices = slices.select(bounds < np.inf)  # who needs nothing of servers has its slices of the cluster alone
        whose, shared = _shared_slices(instance, users)
        first = np.searchsorted(users, np.arange(instance.n_users + 1))
        tasks = sp.csr_array((np.ones(users.size), np.arange(users.size), first), shape=(instance.n_users, users.size))
        taken = tasks[whose[:, 0]]
        if instance.demands_by_kind.shape[1] > 1:
            r = np.repeat(whose[:, 1], np.diff(taken.indptr))
            taken.data = instance.demands_of(users, servers)[taken.indices, r]
            taken.eliminate_zeros()
        of_cluster = Limits.of(LimitKind.SLICE, taken, shared, whose + np.array([0, instance.n_servers]))
        of_limits, names = queue_limits(instance, users, servers)
        return Program(
            name=self.name,
            title=self.title,
            users=instance.users,
            servers=instance.servers,
            resources=instance.resources,
            pair_users=users,
            pair_servers=servers,
            utilities=np.ones(users.size) if instance.speeds_given is None else instance.speeds[users, servers],
            limits=Limits.stack([slices, of_cluster, user_limits(instance, users, servers), of_limits]),
            goal=Total(np.ones(instance.n_users)),
            integral=integral,
            queue_limits=names,
        )
