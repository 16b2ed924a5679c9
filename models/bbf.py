r"""Bottleneck-based fairness (BBF): no justified complaints.

The notion is of one pool of resources. User n requests the fraction r[n,j] of each resource j, is granted the fraction x[n] <= 1 of its
request, and has the entitlement e[n], where sum_n e[n] = 1. A resource j that is full, sum_n x[n] r[n,j] = 1, is a bottleneck. The
allocation x is fair if every user n

    has its full request, x[n] = 1,   or has its entitlement at some bottleneck j:   x[n] r[n,j] >= e[n].

A user that has its entitlement of a full resource can gain only at the expense of other entitled users: it has no justified complaint
(Dolev, Feitelson, Halpern, Kupferman and Linial 2012, equation (2)).

*In an* `Instance`: there is one server with capacities c. The request of user n is T[n] tasks of demand d[n], and x[n] is a number of
tasks. **If the instance does not limit the tasks of a user, its request is one task**, T[n] = 1. The entitlements are the weights, divided
by their sum. The conditions read

    x[n] = T[n]     or     sum_m d[m,j] x[m] = c[j]  and  d[n,j] x[n] >= e[n] c[j]  for some j.

A fair allocation exists (theorem 1 of the paper). The proof follows a trajectory x(t) on the level sets of a barrier function,

    f(x) = -sum_j log(1 - sum_n x[n] r[n,j]) = t,       x[n] sum_j r[n,j] / (1 - sum_m x[m] r[m,j]) = c(t) e[n],

where each user also has a dummy resource of its own, which caps x[n] at its request. Every limit point is fair.

**Theorem.** The trajectory converges to the weighted Nash optimum, the maximum of sum_n e[n] log x[n] over all allocations, and this
optimum is fair.

Proof. Let u[j] be the part of resource j in use, dummy resources included. By the second equation x(t) maximises the strictly concave
function c(t) sum_n e[n] log x[n] + sum_j log(1 - u[j]). So x(t) is a central path: along it the goal is within (number of resources) / c(t)
of its optimum, and c(t) -> inf. The goal is strictly concave, so x(t) converges. At the limit there are prices p >= 0 of full resources
and q >= 0 of full requests with e[n] = x[n] (sum_j p[j] r[n,j] + q[n]). Summing over n gives sum p + sum q = 1. If x[n] < 1, then q[n] = 0
and e[n] = sum_j p[j] (r[n,j] x[n]) <= max over j with p[j] > 0 of r[n,j] x[n]: the user has its entitlement at a bottleneck.

The default program is therefore this optimum, and the engine "trajectory" follows the path of the paper to it. There may be many other fair
allocations; the paper leaves open how to choose among them (section 5.5). They form a union of polytopes: for each user, one of the
alternatives

    x[n] >= T[n],      or for some j with d[n,j] > 0:   sum_m d[m,j] x[m] >= c[j]  and  d[n,j] x[n] >= e[n] c[j],

holds. ``prefer`` maximises a linear function over this union: the mean utilization, or a weighted sum of the x[n].

The paper's example of many fair allocations, x = (z, 1-z, 1-z) for 0.5 <= z <= 0.7:

>>> import fairopt as fo
>>> pool = fo.Instance([[1, 1]], [[1, 1], [0, 1], [1, 0]], weights=[.5, .3, .2])
>>> fo.solve(pool, "bbf").tasks_per_user.round(9)
array([0.5, 0.5, 0.5])
>>> fo.solve(pool, "bbf", prefer=[1, 0, 0]).tasks_per_user.round(9)
array([0.7, 0.3, 0.3])
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.by_server import refuse_by_server
from fairopt.instance.fractions import rationals
from fairopt.instance.shared import refuse_shared
from fairopt.instance.task_limits import as_tasks
from fairopt.models.notion import Notion, Property, Sharing
from fairopt.models.preference import check_preference, preference_per_task, restricted_preference
from fairopt.program import AlphaFair, Disjunctive, Goal, LimitKind, Limits, Program
from fairopt.program.cluster_limits import eligible_pairs, sharing_limits
from fairopt.program.exact import ExactProgram
from fairopt.program.goals import AlternativeRow, Clauses, ExactDisjunctive
from fairopt.wording import percent

__all__ = ["BBF"]

_PAPER = "Dolev et al. (2012), section 4"


@dataclass(frozen=True, eq=False)
class BBF(Notion):
    """Bottleneck-based fairness on one pool: every user has its full request, or its entitlement at a bottleneck.

    Parameters
    ----------
    prefer : None, "utilization" or array (users,)
        None: the limit of the paper's trajectory, the weighted Nash optimum. Otherwise the fair allocation with the largest sum of
        utilizations, or with the largest sum_n prefer[n] x[n] (x in tasks; prefer[n] may be negative).
    """

    prefer: npt.ArrayLike | None = None

    name = "bbf"
    title = "Bottleneck-based fairness: no justified complaints"
    source = "Dolev, Feitelson, Halpern, Kupferman and Linial (2012)"
    references = ("Dolev2012",)
    symmetric = True
    by_server = True  # on one pool work is tasks times a speed, and the bottleneck of a user is about neither
    divides_requests = True
    # The paper also claims strategy-proofness, but a lie can make another resource the bottleneck; the tests have a counterexample.
    # It derives envy-freeness from that. Envy-freeness holds for the Nash optimum (equal incomes), but not for every fair allocation.
    satisfies: ClassVar = {
        Property.NO_JUSTIFIED_COMPLAINTS: "Dolev et al. (2012), equation (2): by definition",
        Property.SHARING_INCENTIVE: _PAPER,
        Property.PARETO: f"{_PAPER}: whoever lacks something uses a resource that is full",
    }

    @property
    def merge_alpha(self) -> float | None:
        """None, so that nothing is merged: a user without a limit requests one task, and two merged users would together request one."""
        return None

    def restricted(self, users: IntArray | None = None, servers: IntArray | None = None) -> BBF:
        """Return the notion with the preference of these users."""
        prefer = restricted_preference(self.prefer, users)
        return self if prefer is self.prefer else dataclasses.replace(self, prefer=prefer)

    def check(self, instance: Instance, sharing: Sharing) -> None:
        """Refuse several servers, resources of the cluster, time division and limited parallelism, and what every notion refuses."""
        super().check(instance, sharing)
        if instance.counts.sum() != 1:
            refuse_by_server(instance, 'the notion "bbf" is defined on one pool', 'use "cdrf", "tsf" or "proportional"')
            raise Unsupported(
                f'the notion "bbf" is defined on one pool, but the instance has {instance.counts.sum():g} servers; '
                "describe the pool as one server (in Python, instance.pooled() does)"
            )
        refuse_shared(
            instance,
            'the notion "bbf" is defined on one pool',
            "describe them as resources of the pool (in Python, instance.pooled() does)",
        )
        if sharing == "tdm":
            raise Unsupported('the notion "bbf" divides resources, not time; leave sharing="tdm" out')
        if instance.limited.any():
            raise Unsupported(
                f'the notion "bbf" limits a user only by its request, but user "{instance.users[int(instance.limited.argmax())]}" has a '
                "parallelism smaller than the pool; give the user fewer tasks, and leave parallelism out"
            )
        for limit in as_tasks(instance).limits:
            raise Unsupported(
                f'the notion "bbf" has no place for limit "{limit.name}": no fair allocation need exist, as nobody has a bottleneck there; '
                "limit the tasks of one user, or leave it out"
            )
        check_preference(self.prefer, instance, self.name)

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return its entitlement as text."""
        part = instance.weights[user] / instance.weights[instance.servable & ~instance.zero_demand].sum()
        return f"its entitlement: all that it asks for, or {percent(part)} of some resource that is used up"

    def formulate(self, instance: Instance, *, sharing: Sharing, integral: bool) -> Program:
        """Return the program: the weighted Nash optimum, or the union of polytopes of all fair allocations."""
        instance = as_tasks(instance)
        requests = instance.replace(tasks=np.where(np.isfinite(instance.tasks), instance.tasks, 1.0))
        users, servers = eligible_pairs(requests)
        weights = requests.weights / requests.weights[users].sum() if users.size else requests.weights
        limits = sharing_limits(requests, users, servers, sharing)
        return Program(
            name=self.name,
            title=self.title,
            users=requests.users,
            servers=requests.servers,
            resources=requests.resources,
            pair_users=users,
            pair_servers=servers,
            utilities=np.ones(users.size),
            limits=limits,
            goal=self._goal(requests, users, weights, limits),
            integral=integral,
        )

    def in_fractions(self, instance: Instance, program: Program) -> ExactProgram:
        """Return the program in fractions: the weighted Nash optimum."""
        instance = as_tasks(instance)
        requests = instance.replace(tasks=np.where(instance.tasks < np.inf, instance.tasks, 1)).exact
        weights = rationals(requests.weights)
        part = weights[program.pair_users].sum() if program.n_pairs else 1
        exact = ExactProgram.of(program, requests, np.ones(program.n_pairs, dtype=np.int64), AlphaFair(1.0, weights / part))
        if self.prefer is None:
            return exact
        users = program.pair_users
        clauses = _no_complaints(program.limits, exact.data, exact.bounds, users, requests.tasks, weights / part)
        preference = rationals(preference_per_task(self.prefer, requests)[users])
        return dataclasses.replace(exact, goal=ExactDisjunctive(preference, clauses, np.empty(0, dtype=object)))

    def _goal(self, requests: Instance, users: IntArray, weights: FloatArray, limits: Limits) -> Goal:
        if self.prefer is None:
            return AlphaFair(1.0, weights, divides=True)
        preference = preference_per_task(self.prefer, requests)[users]
        clauses = _no_complaints(limits, limits.matrix.data, limits.bounds, users, requests.tasks, weights)
        return Disjunctive.of(preference, clauses, np.empty(0))


def _no_complaints(
    program_limits: Limits, data: FloatArray, bounds: FloatArray, users: IntArray, tasks: FloatArray, weights: FloatArray
) -> Clauses:
    """Return the alternatives of each user: all its tasks, or its entitlement of a full resource that it uses; in floats or fractions."""
    indptr, indices = program_limits.matrix.indptr, program_limits.matrix.indices
    clauses = []
    for column, n in enumerate(users):
        own = np.array([column])
        alternatives = [[AlternativeRow(own, np.ones(1, np.int64), lower=tasks[n])]]
        for row in np.flatnonzero(program_limits.kinds == LimitKind.CAPACITY):
            span = slice(int(indptr[row]), int(indptr[row + 1]))
            mine = data[span][indices[span] == column]
            if mine.size and mine[0] > 0:
                full = AlternativeRow(indices[span], data[span], lower=bounds[row])
                alternatives.append([full, AlternativeRow(own, mine, lower=weights[n] * bounds[row])])
        clauses.append(alternatives)
    return clauses
