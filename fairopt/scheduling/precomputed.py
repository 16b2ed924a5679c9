r"""DRF of one pool without filling it task by task: precomputed DRF for whole tasks, the rounds of EDRF for divisible tasks.

Let w[n] = max_r d[n,r] / c[r] be the dominant share of one task of user n, divided by the weight of n, and let w* = max_n w[n]. Precomputed
DRF (Metin, *Precomputed Dominant Resource Fairness*, section 3.4, algorithm 1) gives user n

    x[n] = floor(k w* / w[n])   tasks,      k = min_r c[r] / sum_n (w* / w[n]) d[n,r].

**It is an approximation** of filling task by task (Ghodsi et al. 2011, algorithm 1). In the paper's trials, many users get one task less,
and a few users with small shares get more (``fairopt reproduce pdrf-tables``). EDRF (Parkes, Procaccia and Shah 2015) repeats the step
without the floor, in rounds. It gives the *exact* DRF of divisible tasks, ``fo.solve(instance, "drf")``.

A resource of the cluster is one more resource of the pool. So is a named limit, of which tasks take what they count in it; but limits count
in no share, as everywhere: w[n] is a dominant share of resources. Neither algorithm looks at anything but amounts and shares.

>>> pool = Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], resources=["cpu", "memory"])
>>> precomputed_drf(pool).tasks_per_user
array([3., 2.])
>>> for step in edrf_rounds(pool):
...     print(round(step.level, 4), step.saturated, step.users, step.tasks)
0.6667 ('cpu',) ('A', 'B') [3. 2.]
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from math import floor

import numpy as np

from fairopt.allocation import Allocation, ExactAnswer
from fairopt.certificate import Certificate, allocation_excess
from fairopt.errors import CertificateError, InvalidInstance, Unsupported
from fairopt.instance import FloatArray, Instance, require_instance, safe_ratio
from fairopt.instance.by_server import refuse_by_server
from fairopt.instance.packing_rules import as_limits
from fairopt.instance.tolerances import CERTIFIED, FITS
from fairopt.models import NOTIONS, ShareNotion
from fairopt.program.queue_limits import limit_rows
from fairopt.solvers import Cycle, fill_lowest_first, fill_lowest_in_fractions, precompute, precompute_in_fractions
from fairopt.solving import solve
from fairopt.validation import check_yes_or_no

__all__ = ["Round", "edrf_rounds", "precomputed_drf"]

_WHO = "precomputed DRF"  # the subject of a message about rules that are no limits


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One round of EDRF: all users rise together until a resource is saturated; then the users who demand this resource stop.

    Attributes
    ----------
    level : float
        Dominant share divided by weight, at the end of the round, of every user who rose in it.
    saturated : tuple of str
        The resources, and the rows of named limits, that became saturated.
    users : tuple of str
        The users who stop in this round: they demand a saturated resource. A user who reaches its task limit stops too, but no round lists
        this user.
    tasks : array (users,)
        Tasks of all users after the round.
    """

    level: float
    saturated: tuple[str, ...]
    users: tuple[str, ...]
    tasks: FloatArray


def precomputed_drf(instance: Instance, *, cycles: int | None = 1, finish: bool = False, exact: bool = False) -> Allocation:
    """Approximate DRF of whole tasks on one server in O(users x resources), without filling it task by task.

    Parameters
    ----------
    instance : Instance
        An instance of one server. A user gets at most its task limit. Only ``finish`` gives the difference to other users.
    cycles : int or None
        1: the algorithm as printed. More cycles divide the remaining resources (section 6.1): users are removed, from the largest dominant
        share down, until the resources suffice for a whole turn of the cycle of the other users. These get the tasks of the cycle *in
        addition*. None: until no cycle gives a task. The paper warns that fair cycles need not add up to a fair allocation.
    finish : bool
        At the end, give task by task to the user with the lowest share among the users whose task fits (section 5). Then no further task
        fits. Tasks from the cycles are kept.
    exact : bool
        In fractions, without tolerances: a quotient that is whole is whole. ``allocation.exact`` has the tasks and shares, and ``trace``
        holds Fractions.

    Returns
    -------
    Allocation
        Whole tasks by "precomputed-drf", an **approximation** of the notion "drf". Feasibility is checked. ``optimality`` and ``fairness``
        of the certificate are nan, because nothing is proved about them. ``shares`` are the weighted dominant shares. ``trace`` holds the
        cycles: turns k, tasks given, resources left.

    Raises
    ------
    Unsupported
        The instance has several servers, or rates.
    InvalidInstance
        ``cycles`` is not a number of cycles.

    >>> pool = Instance([[35]], [[2], [4], [10]])
    >>> precomputed_drf(pool).tasks_per_user, precomputed_drf(pool, finish=True).tasks_per_user
    (array([5., 2., 1.]), array([6., 3., 1.]))
    >>> precomputed_drf(pool, exact=True).trace[0].turns
    Fraction(7, 6)
    """
    started = time.perf_counter()
    if cycles is not None and not (isinstance(cycles, int) and cycles >= 1):
        raise InvalidInstance(f"cycles is {cycles!r}; give a whole number >= 1, or None for all")
    check_yes_or_no("exact", exact)
    require_instance(instance)
    given, instance = instance, as_limits(instance, _WHO)
    share = _share_per_task(instance)
    server = int(np.argmax(instance.counts))
    can = instance.eligibility[:, server]
    capacity, demands, _ = _pool(instance, server)
    can = can & ~(demands[:, capacity == 0] > 0).any(axis=1)
    share = np.where(can, share, 0.0)
    answer = None
    if exact:
        trace, answer = _in_fractions(instance, server, cycles, finish)
        x, share = answer.tasks[:, server].astype(float), share.astype(float)
    else:
        trace = precompute(capacity, demands, share, instance.tasks, cycles)
        x = sum((cycle.tasks for cycle in trace), np.zeros(instance.n_users))
        x[can & instance.zero_demand] = np.floor(instance.tasks[can & instance.zero_demand])
        if finish:
            x = fill_lowest_first(capacity, demands, share, instance.tasks, x)
    tasks = np.zeros((instance.n_users, instance.n_servers))
    tasks[:, server] = x
    solved = time.perf_counter()
    excess = 0.0 if exact else allocation_excess(given, tasks, "rdm")
    certificate = Certificate(excess, np.nan, np.nan, whole_tasks=True, approximate=True, exact=exact)
    certificate.require(CERTIFIED, "drf", "precomputed-drf")
    return Allocation(
        instance=given,
        notion="drf",
        solver="precomputed-drf",
        sharing="rdm",
        tasks=tasks,
        shares=x * share,
        prices=None,
        levels=(),
        certificate=certificate,
        seconds={"solve": solved - started, "certify": time.perf_counter() - solved},
        details={"cycles": len(trace), "finished": finish},
        trace=tuple(trace),
        exact=answer,
    )


def _in_fractions(instance: Instance, server: int, cycles: int | None, finish: bool) -> tuple[list[Cycle], ExactAnswer]:
    """Return the cycles, and whole tasks and shares in fractions, of which no limit is exceeded."""
    exact = instance.exact
    bounds, needs, _ = _pool(exact, server)
    can, zero = exact.eligibility[:, server] & ~(needs[:, bounds == 0] > 0).any(axis=1), Fraction(0)
    share = [each if ok else zero for each, ok in zip(_share_per_task(exact), can, strict=True)]
    capacity, demands, limits = bounds.tolist(), needs.tolist(), exact.tasks.tolist()
    trace = precompute_in_fractions(capacity, demands, share, limits, cycles)
    x = [sum((cycle.tasks[n] for cycle in trace), zero) for n in range(exact.n_users)]
    if finish:
        x = fill_lowest_in_fractions(capacity, demands, share, limits, x)
    for n in np.flatnonzero(can & exact.zero_demand):
        x[n] = Fraction(floor(limits[n]))
    used = [sum((number * row[r] for number, row in zip(x, demands, strict=True)), zero) for r in range(len(capacity))]
    if any(amount > most for amount, most in zip([*used, *x], [*capacity, *limits], strict=True)):
        raise CertificateError("precomputed DRF in fractions exceeds the capacity, a limit or a number of tasks")
    tasks = np.full((exact.n_users, exact.n_servers), zero, dtype=object)
    tasks[:, server] = x
    shares = np.array([number * each for number, each in zip(x, share, strict=True)], object)
    return trace, ExactAnswer(tasks, shares, np.empty(0, object))


def edrf_rounds(instance: Instance) -> tuple[Round, ...]:
    """Return the rounds of EDRF, which end in the exact DRF of divisible tasks.

    In each round, the dominant shares (divided by the weights) of all remaining users rise together until a resource is saturated. The
    users who demand this resource stop, and the others continue. The first round ends at the level (Parkes, Procaccia and Shah 2015; Metin,
    section 3.2)

        x = 1 / max_r sum_n d'[n,r],    d'[n,r] = (d[n,r] / c[r]) / w[n].

    Raises
    ------
    Unsupported
        The instance has several servers, or rates.

    >>> pool = Instance([[4, 6]], [[1, 0], [1, 1], [0, 1]], resources=["cpu", "memory"])
    >>> [(step.saturated, step.tasks.tolist()) for step in edrf_rounds(pool)]
    [(('cpu',), [2.0, 2.0, 3.0]), (('memory',), [2.0, 2.0, 4.0])]
    """
    require_instance(instance)
    instance = as_limits(instance, _WHO)
    share = _share_per_task(instance)
    final = solve(instance, "drf")
    capacity, demands, columns = _pool(instance, int(np.argmax(instance.counts)))
    full = np.zeros(len(columns), bool)
    rounds = []
    for level in final.levels:
        tasks = np.minimum(final.tasks_per_user, safe_ratio(level.value, share))
        used = tasks @ demands
        now = (used > 0) & (used >= capacity * (1 - FITS))
        names = tuple(columns[r] for r in np.flatnonzero(now & ~full))
        if not names:  # users who have all their tasks
            continue
        rounds.append(Round(level.value, names, level.users, tasks))
        full = now
    return tuple(rounds)


def _pool(instance: Instance, server: int) -> tuple[FloatArray, FloatArray, list[str]]:
    """Return amounts of a pool, what a task of each user takes of them, (users, amounts), and their names.

    They are the resources of the only server and of the cluster, and then the rows of named limits that count tasks there.
    """
    bounds, columns, names = [instance.total_capacity], [instance.demands], list(instance.resources)
    for row in limit_rows(instance):
        each = row.per_task(instance.kinds)
        each = each if each.ndim == 1 else each[:, server]
        if row.servers[server] and (each > 0).any():
            bounds.append(np.array([row.bound], instance.demands.dtype))
            columns.append(each[:, None].astype(instance.demands.dtype))
            names.append(row.name)
    return np.concatenate(bounds), np.hstack(columns), names


def _share_per_task(instance: Instance) -> FloatArray:
    """Return the dominant share of one task divided by the weight, (users,), for an instance of one server."""
    require_instance(instance)
    refuse_by_server(instance, "precomputed DRF and EDRF place tasks that are the same everywhere", "use fairopt.schedule or fairopt.solve")
    notion = NOTIONS["drf"]()
    assert isinstance(notion, ShareNotion)
    if instance.rates_per_server is not None:
        raise Unsupported("precomputed DRF and EDRF divide resources, and the instance gives rates, of which only time can be shared")
    if instance.limited.any():
        raise Unsupported('precomputed DRF and EDRF support no limit on parallelism; use solve(instance, "drf"), or leave parallelism out')
    if instance.is_tree:
        raise Unsupported(
            'precomputed DRF and EDRF do not support queues, guarantees or weights of 0; use schedule or solve with "drf", '
            "or leave them out"
        )
    notion.check(instance, "rdm")
    share = notion.share_per_task(instance)
    return share / instance.weights if instance.weights.ndim == 1 else share
