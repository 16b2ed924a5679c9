"""Per-server dominant-share fairness (PS-DSF).

Every server decides for itself. Let gamma[n,i] be the number of tasks that user n could run alone on row i, and

    s[n,i] = x[n] / gamma[n,i],    x[n] = sum over all servers j of x[n,j],

its *virtual dominant share* at i: the part of its dominant resource at i that all its tasks would take, wherever they run. An allocation is
PS-DSF if no user n can get more without taking, at some server i, from a user m with s[m,i]/phi[m] <= s[n,i]/phi[n] (Khamse-Ashari et al.
2017, definition 5).

*Conditions that can be checked.* A resource r of server i is a *bottleneck* of user n there if d[n,r] > 0, r is full, and
s[n,i]/phi[n] >= s[m,i]/phi[m] for every m with x[m,i] d[m,r] > 0.

* Resource division (theorem 1): x is PS-DSF if and only if every user has a bottleneck at every server where it may run.
* Time division (theorem 2): x is PS-DSF if and only if the time of every server is used up, and x[m,i] > 0 implies that s[m,i]/phi[m] is
  the smallest at i.

A user that runs all its (finitely many) tasks needs no bottleneck. So each server solves a problem of its own: the leximin of s[n,i]/phi[n]
over its own x[n,i], given the tasks of its users elsewhere. PS-DSF is a point at which no server can improve: an `Equilibrium`.

*Time division* is a convex program, the market of Eisenberg and Gale (1959),

    maximise  sum_n phi[n] log x[n]   subject to   sum_n x[n,i] / gamma[n,i] <= 1,     x[n] <= T[n].

Its optimum is PS-DSF. Proof: there are prices p[i] >= 0 of time and q[n] >= 0 of tasks, with q[n] = 0 unless x[n] = T[n], such that

    phi[n] / x[n] <= p[i] / gamma[n,i] + q[n]     for every pair, with equality where x[n,i] > 0.

For a user n with tasks left this reads s[n,i]/phi[n] >= 1/p[i], and s[m,i]/phi[m] <= 1/p[i] for every m with x[m,i] > 0. That is (13) of
theorem 2. Moreover p[i] > 0 where n may run, so the time of i is used up. With unlimited tasks all steps can be reversed: PS-DSF and the
optimum are the same, x[n] is unique, and gamma may be any rates (coprocessors, radio channels). With finitely many tasks PS-DSF is not
unique: a user with few tasks may run them on one server or another, which changes what is left for others. The market's optimum is one of
these allocations. ``formulation="market"`` declares this program, for any engine for alpha-fair goals: a second way to the same x[n], with
prices of time. The engine "interior-point" uses it by itself if there are many users; its answer is still checked by the condition of the
equilibrium.

*Resource division* is not convex, and x[n] is *not unique*, even with unlimited tasks; the paper does not mention this. With c = (1,4),
(4,4), d = (3,0), (0,2), (3,2) and user 2 on the second server only, x = (5/6, 4/3, 5/6) and (5/6, 3/2, 5/6) are both PS-DSF, and the
second dominates the first. By default the servers take turns as in the paper's algorithm I, starting from DRF on each server in order.
``order`` changes how they take turns, and ``prefer`` chooses among all PS-DSF allocations:

    for each pair (n, i):             some resource r that n uses: r is full at i and s[n,i]/phi[n] >= L[i,r];  or x[n] = T[n]
    for each (i, r), each m using r:  x[m,i] = 0  or  s[m,i]/phi[m] <= L[i,r]

is the set of all PS-DSF allocations, a union of polytopes with the levels L as auxiliary columns. It has a choice for each pair and
resource, so it can be solved for small instances only.

*Demands and speeds by server.* With demands d[n,i,r] gamma[n,i] is by the demand there. With speeds work is compared,

    s[n,i] = U[n] / (speed[n,i] gamma[n,i]),     U[n] = sum over all servers j of speed[n,j] x[n,j],

and the columns of the program count work: a unit of it on server i takes d[n,i,r] / speed[n,i]. So all of the above holds of units of work.
Who has finitely many tasks needs one speed wherever it may run: else a server could raise U[n] by taking over a task from a slower one.

Figure 1 of the paper, and figures 2 and 3:

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], weights=[1, 1, 2])
>>> fo.solve(instance, "psdsf").tasks_per_user.round(9)
array([3., 3., 6.])
>>> instance = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1.5, 1, 10], [1, 2, 10], [.5, 1, 0], [1, .5, 0]])
>>> fo.solve(instance, "psdsf").tasks_per_user.round(9)
array([3.6, 3.6, 8. , 8. ])
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance, IntArray, safe_ratio
from fairopt.instance.by_server import refuse_by_server
from fairopt.instance.fractions import rationals
from fairopt.instance.shared import refuse_shared
from fairopt.instance.task_limits import refuse_across_servers
from fairopt.instance.tolerances import NOTHING
from fairopt.instance.work_units import in_tasks, in_units_of_work, refuse_counted_tasks
from fairopt.models.notion import Condition, Property, Sharing
from fairopt.models.preference import check_preference, preference_per_task, restricted_preference
from fairopt.models.share_notion import ShareNotion, alone_on_each
from fairopt.program import AlphaFair, Disjunctive, Equilibrium, Goal, LimitKind, Program
from fairopt.program.exact import ExactProgram
from fairopt.program.filling import Criterion, Measure
from fairopt.program.goals import AlternativeRow, Clauses, ExactDisjunctive
from fairopt.validation import check_whole_number

__all__ = ["PSDSF"]

_THEOREM = "Khamse-Ashari et al. (2017), theorem 3"
_ORDERS = ("sequential", "random", "asynchronous")
_END = 2**31  # bound of seeds and delays: a delay is added to the clock of the servers, which has 64 bits


@dataclass(frozen=True, eq=False)
class PSDSF(ShareNotion):
    """PS-DSF: at each server i, given the tasks on the other servers, the leximin of x[n] / (phi[n] gamma[n,i]).

    Parameters
    ----------
    formulation : {"equilibrium", "market"}
        "market" is the convex program of time division. It goes with none of the other options.
    order : {"sequential", "random", "asynchronous"}
        How servers take turns: in the given order, in a new random order each sweep, or each server at random times of its own.
    seed : int
        Seed of the random order or times; >= 0 and < 2^31.
    delay : int
        Asynchronous servers only: a server acts on information up to ``delay`` actions of others old; >= 0 and < 2^31.
    prefer : array (users,) or "utilization", optional
        Choose among all PS-DSF allocations one that maximises sum_n prefer[n] x[n] (prefer[n] of any sign), or the mean utilization of the
        resources. (Under time division with unlimited tasks x[n] is unique, and there is nothing to choose.) Servers do not take turns
        then, so neither ``order`` nor ``seed`` can be given.

    Raises
    ------
    Unsupported
        For an unknown option, or options that exclude each other.

    >>> PSDSF(prefer="utilization", order="random")
    Traceback (most recent call last):
        ...
    fairopt.errors.Unsupported: prefer chooses among all PS-DSF allocations at once, without turns of servers; leave order and seed out
    """

    formulation: Literal["equilibrium", "market"] = "equilibrium"
    order: Literal["sequential", "random", "asynchronous"] = "sequential"
    seed: int = 0
    delay: int = 0
    prefer: npt.ArrayLike | str | None = None

    name = "psdsf"
    title = "Per-server dominant-share fairness"
    source = "Khamse-Ashari, Lambadaris, Kesidis, Urgaonkar and Zhao (2017), definition 5"
    references = ("KhamseAshari2017",)
    symmetric = True
    by_server = True
    satisfies: ClassVar = {  # proved for both divisions; Pareto optimality and strategy-proofness are proved for time division only
        Property.SHARING_INCENTIVE: _THEOREM,
        Property.ENVY_FREENESS: f"{_THEOREM}; of what others hold on the servers where one may run",
        Property.BOTTLENECK_FAIRNESS: _THEOREM,
        Property.SINGLE_RESOURCE_FAIRNESS: _THEOREM,
    }
    conditions = frozenset({Condition.ENDLESS})
    share_is_part = True

    def promise(self, wanted: Property, instance: Instance, sharing: Sharing) -> str | None:
        """Return the citation; for bottleneck fairness only if one resource is dominant for every user on every eligible server."""
        if wanted is Property.BOTTLENECK_FAIRNESS:
            if instance.differs_by_server:
                return None
            parts = [safe_ratio(d[:, None], c[None]) for d, c in zip(instance.demands.T, instance.capacities.T, strict=True)]
            largest = np.maximum.reduce(parts) * (1 - NOTHING)
            if not any(((part >= largest) | ~instance.eligibility).all() for part in parts):
                return None
        return super().promise(wanted, instance, sharing)

    def __post_init__(self) -> None:
        if self.formulation not in ("equilibrium", "market"):
            raise Unsupported(f'psdsf has no formulation "{self.formulation}"; it has "equilibrium" and "market"')
        if self.order not in _ORDERS:
            raise Unsupported(f'psdsf has no order "{self.order}"; it has {", ".join(_ORDERS)}')
        for name, value in (("seed", self.seed), ("delay", self.delay)):
            check_whole_number(f"the {name} of psdsf", value, 0, below=_END)
        if self.delay and self.order != "asynchronous":
            raise Unsupported('only asynchronous servers have a delay; use order="asynchronous"')
        turns = self.order != "sequential" or self.seed != 0
        if self.formulation == "market" and (turns or self.prefer is not None):
            raise Unsupported('formulation="market" is one program, without turns of servers or a choice; leave order, seed and prefer out')
        if self.prefer is not None and turns:
            raise Unsupported("prefer chooses among all PS-DSF allocations at once, without turns of servers; leave order and seed out")

    @property
    def merge_alpha(self) -> float | None:
        """Return None, so that nothing is merged, where an allocation is preferred: it may treat identical users differently."""
        return 1.0 if self.prefer is None else None

    def restricted(self, users: IntArray | None = None, servers: IntArray | None = None) -> PSDSF:
        """Return the notion with the preference of these users."""
        prefer = restricted_preference(self.prefer, users)
        return self if prefer is self.prefer else dataclasses.replace(self, prefer=prefer)

    def check(self, instance: Instance, sharing: Sharing) -> None:
        """Refuse shared resources, limited parallelism, the market under resource division, and what every notion refuses."""
        super().check(instance, sharing)
        refuse_shared(
            instance, '"psdsf" decides server by server', 'use "drfh", "cdrf" or another notion that looks at all servers together'
        )
        if instance.limited.any():
            n = int(instance.limited.argmax())
            raise Unsupported(
                f'psdsf decides server by server, and no server can check that user "{instance.users[n]}" is on at most '
                f"{instance.parallelism[n]:g} servers in total; leave parallelism out, or use the notion proportional with sharing='tdm', "
                "which is the same as psdsf if no user is limited"
            )
        if self.formulation == "market" and sharing == "rdm":
            raise Unsupported(
                'formulation="market" is the program of time division, and resource division has none; '
                'use sharing="tdm", or leave formulation out'
            )
        refuse_across_servers(instance, self.name)
        refuse_counted_tasks(instance, '"psdsf" lets each server compare all that a user does')
        check_preference(self.prefer, instance, self.name)

    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return 1 / gamma[n,i], (users, servers); inf for pairs that are not eligible, which have no column."""
        return safe_ratio(1.0, instance.rates)

    def shares(self, instance: Instance, tasks: FloatArray) -> FloatArray:
        """Return s[n,i] / phi[n], (users, servers): all tasks of n, or its work, measured at server i; 0 where n may not run."""
        held, gamma = instance.work(tasks)[:, None], instance.weights[:, None] * instance.rates
        gamma = gamma if instance.speeds_given is None else gamma * instance.speeds
        virtual: FloatArray = np.divide(held, gamma, out=0 * tasks, where=gamma > 0)
        return virtual

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return the measure as text: all tasks of the user, against what it could run alone on each server."""
        alone = alone_on_each(instance, user)
        return f"all its tasks, wherever they run, at each server against those that it could run there alone: {alone}"

    def goal(self, weights: FloatArray) -> Goal:
        """Return the equilibrium, or the goal of the market."""
        if self.formulation == "market":
            return AlphaFair(1.0, weights, divides=True)
        return Equilibrium(weights, self.order, int(self.seed), int(self.delay))

    def in_fractions(self, instance: Instance, program: Program) -> ExactProgram:
        """Return the program in fractions: the equilibrium, or the market."""
        instance = in_units_of_work(instance)
        if self.prefer is not None and program.n_pairs:
            equilibrium = dataclasses.replace(program, goal=self.goal(np.ones(len(program.users))))
            exact = super().in_fractions(instance, equilibrium)
            numbers = exact.utilities, exact.data, exact.bounds, _array(exact.largest(), exact.data)
            clauses, levels = _all_allocations(program, *numbers, rationals(instance.weights))
            preference = rationals(preference_per_task(self.prefer, instance)[program.pair_users])
            goal = ExactDisjunctive(preference, clauses, rationals(np.ones(levels, np.int64)))
            return dataclasses.replace(exact, program=program, goal=goal)
        exact = super().in_fractions(instance, program)
        if self.formulation != "market":
            return exact
        return dataclasses.replace(exact, utilities=rationals(np.ones(program.n_pairs, dtype=np.int64)))

    def criterion(self, instance: Instance) -> Criterion:
        """Return x[n] / gamma[n,i] for progressive filling, with gamma[n,i] that of one server of the row."""
        if instance.speeds_given is not None:
            refuse_by_server(
                instance, 'progressive filling by "psdsf" counts tasks', 'use "cdrf", or leave demands and speeds by server out'
            )
        return Criterion(safe_ratio(instance.counts, instance.rates), Measure.SERVER)

    def in_tasks(self, instance: Instance, table: FloatArray) -> FloatArray:
        """Return the tasks of work, which the columns of the program count."""
        return in_tasks(instance, table)

    def formulate(self, instance: Instance, *, sharing: Sharing, integral: bool) -> Program:
        """Return the program: the equilibrium, the market, or with ``prefer`` the union of all PS-DSF allocations."""
        by_work, instance = instance.speeds_given is not None, in_units_of_work(instance)
        program = super().formulate(instance, sharing=sharing, integral=integral)
        if by_work:
            program = dataclasses.replace(program, title=f"{self.title} (x counts work)")
        if self.formulation == "market":  # its U[n] is x[n]: a task counts the same wherever it runs
            return dataclasses.replace(program, utilities=np.ones(program.n_pairs))
        if self.prefer is None or program.n_pairs == 0:
            return program
        preference = preference_per_task(self.prefer, instance)[program.pair_users]
        numbers = program.utilities, program.limits.matrix.data, program.limits.bounds, program.largest()
        clauses, levels = _all_allocations(program, *numbers, instance.weights)
        return dataclasses.replace(program, goal=Disjunctive.of(preference, clauses, np.ones(levels)))


def _all_allocations(
    program: Program, utilities: FloatArray, data: FloatArray, bounds: FloatArray, largest: FloatArray, weights: FloatArray
) -> tuple[Clauses, int]:
    """Return the set of all PS-DSF allocations as clauses over (x, L), and the number of levels L.

    L[j] is divided by the largest level possible at limit j. Of the program only the structure counts; the numbers, utilities, (pairs,),
    coefficients, (entries,), and bounds, (limits,), are in floats or in fractions.
    """
    limits, pairs = program.limits, program.n_pairs
    indptr, indices = limits.matrix.indptr, limits.matrix.indices
    rows = np.flatnonzero(limits.of_servers)
    tasks = {int(limits.keys[j, 0]): j for j in np.flatnonzero(limits.kinds == LimitKind.TASKS)}
    own = [np.flatnonzero(program.pair_users == n) for n in range(len(program.users))]
    per_task = utilities / weights[program.pair_users]  # s[n,i] / phi[n] of a task
    reach = [sum(largest[columns].tolist()) for columns in own]
    spans = [slice(int(indptr[j]), int(indptr[j + 1])) for j in range(len(limits))]
    upper = [max([reach[program.pair_users[p]] * per_task[p] for p in indices[spans[j]]], default=0) or 1 for j in rows]

    def ahead(p: int, j: int, sign: str) -> AlternativeRow:
        """Return s[p] - L[j], divided by the largest level at limit j, on one side of 0."""
        columns = own[program.pair_users[p]]
        values = [*[per_task[p] / upper[j]] * columns.size, -1]
        return AlternativeRow(np.append(columns, pairs + j), _array(values, data), **{sign: 0})

    clauses: list[Sequence[Sequence[AlternativeRow]]] = []
    used_by_pair: list[list[int]] = [[] for _ in range(pairs)]
    for j, row in enumerate(rows):
        for p in indices[spans[row]].tolist():
            if largest[p] > 0:
                used_by_pair[p].append(j)
                nothing = AlternativeRow(np.array([p]), _array([1], data), upper=0)
                clauses.append([[nothing], [ahead(p, j, "upper")]])
    for p, used in enumerate(used_by_pair):
        choices = []
        for j in used:
            span = spans[rows[j]]
            full = AlternativeRow(indices[span], data[span] / bounds[rows[j]], lower=1)
            choices.append([full, ahead(p, j, "lower")])
        cap = tasks.get(int(program.pair_users[p]))
        if cap is not None and used:
            choices.append([AlternativeRow(indices[spans[cap]], data[spans[cap]], lower=bounds[cap])])
        if choices:
            clauses.append(choices)
    return clauses, rows.size


def _array(values: Sequence[Any], like: FloatArray) -> Any:
    """Return numbers as an array of the arithmetic of another one."""
    array = np.empty(len(values), like.dtype)
    array[:] = values
    return array
