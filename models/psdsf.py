"""Per-server dominant-share fairness (PS-DSF).

No server needs to know the others. Let gamma[n,i] be what user n would run with row i to itself, and

    s[n,i] = x[n] / gamma[n,i],    x[n] = sum over all servers j of x[n,j],

its *virtual dominant share* at i: the part of its dominant resource there that all its tasks would take, wherever they run. An
allocation is PS-DSF if nobody can get more without taking, at some server i, from a user m with s[m,i]/phi[m] <= s[n,i]/phi[n]
(Khamse-Ashari et al. 2017, definition 5). Two theorems make that a condition that can be checked. A resource r of server i is a
*bottleneck* of user n there if d[n,r] > 0, r is used up, and s[n,i]/phi[n] >= s[m,i]/phi[m] for every m with x[m,i] d[m,r] > 0.

* Resource division (theorem 1): x is PS-DSF if and only if every user has a bottleneck at every server where it may run.
* Time division (theorem 2): if and only if every server's time is used up, and x[m,i] > 0 implies that s[m,i]/phi[m] is the
  smallest at i.

A user with finitely many tasks who runs them all needs no bottleneck. So each server solves a problem of its own, a leximin over
s[n,i]/phi[n] of its own x[n,i], given what its users have elsewhere, and PS-DSF is where no server can improve: an `Equilibrium`.

Time division is a convex program. Its conditions are those of max sum_n phi[n] log x[n] under sum_n x[n,i] / gamma[n,i] <= 1 (a
Fisher market; Eisenberg and Gale 1959), so x[n] is unique, and gamma may be any rates: coprocessors, radio channels. (With finitely
many tasks it is not: where a user with few tasks runs them is free, and others feel it. The market's optimum is then one PS-DSF
allocation of several.) Resource division is not convex, and x[n] is *not unique* even with unlimited tasks, which the paper does
not say. With c = (1,4), (4,4), d = (3,0), (0,2), (3,2) and user 2 on the second server only, x = (5/6, 4/3, 5/6) and (5/6, 3/2,
5/6) are both PS-DSF, and the second dominates the first. By default the servers take turns as in the paper's algorithm I, from DRF
on each in order; ``order`` lets them act in another, and ``prefer`` chooses in the whole set:

    for each pair (n, i):             some resource r that n uses: r is full at i and s[n,i]/phi[n] >= L[i,r];  or x[n] = T[n]
    for each (i, r), each m using r:  x[m,i] = 0  or  s[m,i]/phi[m] <= L[i,r]

is that set, a union of polytopes with the levels L as auxiliary columns. It has a choice for each pair and resource: small
instances only.

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
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.filling import Criterion, Measure
from fairopt.instance import FloatArray, Instance, safe_ratio
from fairopt.models.notion import Property, ShareNotion, Sharing
from fairopt.program import Alternative, Disjunctive, Equilibrium, Goal, LimitKind, Program

__all__ = ["PSDSF"]

_THEOREM = "Khamse-Ashari et al. (2017), theorem 3"
_ORDERS = ("sequential", "random", "asynchronous")


@dataclass(frozen=True, eq=False)
class PSDSF(ShareNotion):
    """PS-DSF: at each server, given the others, the leximin of x[n] / (phi[n] gamma[n,i]).

    Parameters
    ----------
    order : {"sequential", "random", "asynchronous"}
        How servers take turns: in order, in a new order each sweep, or each at times of its own.
    seed : int
        Of the last two.
    delay : int
        Asynchronously, for how many actions of others a server's decision may be on its way.
    prefer : array (users,) or "utilization", optional
        Under resource division, choose among all PS-DSF allocations one that maximises the sum of prefer[n] x[n] (of any sign), or
        the mean utilization of the resources.
    """

    order: Literal["sequential", "random", "asynchronous"] = "sequential"
    seed: int = 0
    delay: int = 0
    prefer: npt.ArrayLike | str | None = None

    name = "psdsf"
    title = "Per-server dominant-share fairness"
    source = "Khamse-Ashari, Lambadaris, Kesidis, Urgaonkar and Zhao (2017), definition 5"
    satisfies: ClassVar = {  # under both divisions; Pareto optimality and strategy-proofness only where time is divided
        Property.SHARING_INCENTIVE: _THEOREM,
        Property.ENVY_FREENESS: _THEOREM,
        Property.BOTTLENECK_FAIRNESS: _THEOREM,
        Property.SINGLE_RESOURCE_FAIRNESS: _THEOREM,
    }

    def __post_init__(self) -> None:
        if self.order not in _ORDERS:
            raise Unsupported(f'psdsf has no order "{self.order}"; it has {", ".join(_ORDERS)}')
        if self.delay < 0 or (self.delay and self.order != "asynchronous"):
            raise Unsupported(
                'a delay is a number >= 0 of actions, and only servers that act asynchronously have one; use order="asynchronous"'
            )
        if isinstance(self.prefer, str) and self.prefer != "utilization":
            raise Unsupported(f'psdsf cannot prefer "{self.prefer}"; prefer "utilization" or give a number for each user')

    @property
    def merge_alpha(self) -> float | None:
        """Identical users need not get the same where one allocation is preferred."""
        return 1.0 if self.prefer is None else None

    def check(self, instance: Instance, sharing: Sharing) -> None:
        """Refuse a preference that is not one, as well as what every notion refuses."""
        super().check(instance, sharing)
        if self.prefer is None:
            return
        if sharing == "tdm":
            raise Unsupported("under time division there is one PS-DSF x[n], so nothing to prefer; leave prefer out or use sharing='rdm'")
        if not isinstance(self.prefer, str):
            array = np.asarray(self.prefer, dtype=np.float64)
            if array.shape != (instance.n_users,) or not np.isfinite(array).all():
                raise InvalidInstance(f"prefer has shape {array.shape}; give a finite number for each of the {instance.n_users} users")

    def share_per_task(self, instance: Instance) -> FloatArray:
        """1 / gamma[n,i], (users, servers); inf where n may not run, which has no column."""
        return safe_ratio(1.0, instance.rates)

    def goal(self, weights: FloatArray) -> Goal:
        """Return the leximin of each server, given the others."""
        return Equilibrium(weights, self.order, int(self.seed), int(self.delay))

    def criterion(self, instance: Instance) -> Criterion:
        """x[n] / gamma[n,i] for progressive filling, gamma that of one server of the row."""
        return Criterion(safe_ratio(instance.counts, instance.rates), Measure.SERVER)

    def formulate(self, instance: Instance, *, sharing: Sharing, integral: bool) -> Program:
        """Declare the equilibrium, or where one is preferred the set of all."""
        program = super().formulate(instance, sharing=sharing, integral=integral)
        if self.prefer is None or program.n_pairs == 0:
            return program
        if isinstance(self.prefer, str):
            parts = safe_ratio(instance.demands, instance.total_capacity).mean(axis=1)
        else:
            parts = np.asarray(self.prefer, dtype=np.float64)
        return dataclasses.replace(program, goal=_all_allocations(program, instance.weights, parts[program.pair_users]))


def _all_allocations(program: Program, weights: FloatArray, preference: FloatArray) -> Disjunctive:
    """Write the set of all PS-DSF allocations as clauses over (x, L); L[j] is in parts of the largest level that can matter to limit j."""
    limits, pairs = program.limits, program.n_pairs
    rows = np.flatnonzero(limits.kinds != LimitKind.TASKS)
    tasks = {int(limits.keys[j, 0]): j for j in np.flatnonzero(limits.kinds == LimitKind.TASKS)}
    per_task = program.utilities / weights[program.pair_users]  # s[n,i] / phi[n] of a task
    largest = program.largest()
    most = program.per_user(largest)[program.pair_users] * per_task
    entries = limits.matrix[rows].tocoo()
    upper = np.zeros(rows.size)
    np.maximum.at(upper, entries.row, most[entries.col])
    upper[upper == 0] = 1.0
    own = [np.flatnonzero(program.pair_users == n) for n in range(len(program.users))]
    width = pairs + rows.size

    def row_of(values: npt.ArrayLike, columns: npt.ArrayLike) -> sp.csr_array:
        where = np.asarray(columns)
        return sp.csr_array((np.broadcast_to(np.asarray(values, float), where.shape), (np.zeros(where.size, int), where)), shape=(1, width))

    def ahead(p: int, j: int) -> sp.csr_array:
        """Row of s[p] - L[j], in units of L[j]'s largest."""
        columns = own[program.pair_users[p]]
        return row_of(np.append(np.full(columns.size, per_task[p] / upper[j]), -1.0), np.append(columns, pairs + j))

    clauses: list[tuple[Alternative, ...]] = []
    used_by_pair: list[list[int]] = [[] for _ in range(pairs)]
    for j, p in zip(entries.row.tolist(), entries.col.tolist(), strict=True):
        if largest[p] > 0:
            used_by_pair[p].append(j)
            nothing = Alternative(row_of(1.0, [p]), np.array([-np.inf]), np.zeros(1))
            clauses.append((nothing, Alternative(ahead(p, j), np.array([-np.inf]), np.zeros(1))))
    for p, used in enumerate(used_by_pair):
        choices = []
        for j in used:
            columns, values = _row(limits.matrix, int(rows[j]))
            full = row_of(values / limits.bounds[rows[j]], columns)
            choices.append(Alternative(sp.csr_array(sp.vstack([full, ahead(p, j)])), np.array([1.0, 0.0]), np.full(2, np.inf)))
        cap = tasks.get(int(program.pair_users[p]))
        if cap is not None and used:
            columns, values = _row(limits.matrix, int(cap))
            choices.append(Alternative(row_of(values, columns), limits.bounds[[cap]], np.array([np.inf])))
        if choices:
            clauses.append(tuple(choices))
    return Disjunctive(preference, tuple(clauses), np.ones(rows.size))


def _row(matrix: sp.csr_array, j: int) -> tuple[npt.NDArray[np.integer], FloatArray]:
    span = slice(matrix.indptr[j], matrix.indptr[j + 1])
    return matrix.indices[span], matrix.data[span]
