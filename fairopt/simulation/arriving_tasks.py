"""How much of a resource is allocated as tasks arrive: greedy placements, compared with a bound on every allocation.

Tasks arrive one by one in random order, and no task ends. A task is placed at once if it fits, and turned away otherwise. Let C be the
capacity of the cluster in one resource r, d[n,r] the demand of a task of user n, and a[n] the number of tasks of n that have arrived. Then

    arrived     sum_n a[n] d[n,r] / C
    allocated   the same sum over the tasks that were placed: the *allocation ratio*
    bound       max sum_n d[n,r] x[n] / C   over divisible allocations x with x[n] <= a[n], where a task may only use servers that can
                hold a whole task

Limits of queues, named limits and resources of the cluster hold as well: a task that would exceed one is turned away. The bound keeps named
limits and resources of the cluster.

The bound is a linear program over the distinct tasks and servers. It is solved and certified at every point. It is a *fluid bound*, a
relaxation: no scheduler can allocate more, even if it knows the future tasks. Possibly no scheduler reaches it. A resource may come in
*cards* (``cards="gpu"``). Then a task that demands less than one card lies on a single card, and a larger task takes whole cards. The bound
ignores the cards and adds up fractions.

Where demands or speeds differ by server, a task that runs counts as in a guarantee: by its work, each unit as the least of the resource
that it takes where it may run (`fairopt.instance.by_server.counted_amounts`). So what is allocated does not grow if tasks run where they
take more. A task that arrives counts what it would where it counts most: that is d[n,r] above.

The figure is that of Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX
ATC 2023, for a cluster of GPUs: the allocated GPUs against the GPUs that tasks have demanded.

>>> import fairopt as fo
>>> cluster = fo.Instance([[4.0]], [[0.6], [2.0]], counts=[10], tasks=[40, 10], resources=["gpu"])
>>> found = fo.arrivals(cluster, "gpu", cards="gpu", seeds=range(3), step=0.1, workers=1)
>>> found
Arrivals(gpu in cards, until 130 %, 3 seeds: at 100 % arrived, first-fit 72 %, best-fit 72 %, bound 99 %)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, require_instance
from fairopt.instance.aggregation import number_distinct
from fairopt.instance.by_server import as_given, counted_amounts
from fairopt.instance.packing_rules import REWRITE, as_limits
from fairopt.instance.tolerances import FITS, SAME
from fairopt.processes.crew import check_workers, run
from fairopt.results import plain
from fairopt.simulation.arrival_curves import Arrivals
from fairopt.simulation.stream_limits import without_queues
from fairopt.solvers import Placement, check_arrivals, place_arrivals
from fairopt.solving import solve
from fairopt.specs import read_placement
from fairopt.validation import check_whole_number, is_number
from fairopt.wording import did_you_mean, exactly, named, plural, written

__all__ = ["arrivals"]

_MOST = 50_000_000  # arrivals of a seed
_MOST_POINTS = 10_000


def arrivals(
    instance: Instance,
    resource: str,
    placements: Sequence[str | Placement] = ("first-fit", "best-fit"),
    *,
    cards: str | None = None,
    until: float = 1.3,
    step: float = 0.01,
    seeds: Iterable[int] = range(10),
    workers: int = -1,
    backend: str = "loky",
    address: str | None = None,
    jobs: int | None = None,
    done: Callable[[int, int], object] | None = None,
) -> Arrivals:
    """Let the tasks of an instance arrive one by one; compare the allocation ratio of each placement with a bound on every allocation.

    Parameters
    ----------
    instance : Instance
        Every user has finitely many tasks. All of them arrive in random order. Then tasks drawn with replacement arrive, up to ``until``.
        Weights have no effect. First-fit takes servers in the order of the rows.
    resource : str
        The resource whose allocation ratio is measured.
    placements : sequence
        "first-fit", "best-fit:metric=tightest", ...: every placement of ``fo.PLACEMENTS`` that is a rule and takes the task before the
        server.
    cards : str, optional
        The resource that comes in cards of capacity 1. Default: fractions add up on a server.
    until : float
        Demand that arrives, as a fraction of the capacity: 1.3 is 130 %.
    step : float
        Distance between two points, as a fraction of the capacity.
    seeds : iterable of int
        One order of arrival for each seed.
    workers, backend, address
        Workers, as `fairopt.study` takes them; each computes one seed at a time. -1: one on each core.
    jobs : int, optional
        The former name of ``workers``.
    done : function of two ints, optional
        Called with the number of finished seeds and the number of all seeds.

    Returns
    -------
    Arrivals

    Raises
    ------
    InvalidInstance
        The resource does not exist, or no task demands it. A user has no task limit. A number of cards is not whole.
    Unsupported
        A placement cannot place tasks in order of arrival. The instance has rates, or users of limited parallelism.

    Examples
    --------
    >>> instance = Instance([[9, 18]], [[1, 4], [3, 1]], tasks=[4, 4], resources=["cpu", "memory"])
    >>> found = arrivals(instance, "memory", ["first-fit"], until=1.0, step=0.5, seeds=[2], workers=1)
    >>> found.points, found.arrived.round(3)
    (array([0. , 0.5, 1. ]), array([[0.   , 0.389, 0.889]]))
    >>> found.allocated["first-fit"].round(3), found.bound.round(3)
    (array([[0.   , 0.167, 0.167]]), array([[0.   , 0.37 , 0.778]]))

    Three tasks of 3 cores arrive first. No further task fits.
    """
    began = time.perf_counter()
    require_instance(instance)
    given, instance = instance, as_limits(instance, "the placement of arriving tasks", instead=REWRITE)
    measured, carded = _checked(instance, resource, cards, until, step)
    chosen = {name: check_arrivals(instance, placement, carded) for name, placement in map(read_placement, placements)}
    numbers = list(dict.fromkeys(seeds))
    if not chosen or not numbers:
        raise Unsupported("there is nothing to compute; give a placement and a seed")
    for seed in numbers:
        check_whole_number("a seed", seed, 0)
    workers = workers if jobs is None else jobs
    check_workers(workers, backend, address)
    if until / step > _MOST_POINTS:
        raise Unsupported(
            f"step is {written(step)}, which makes more than {_MOST_POINTS:,} points until {written(until)}; give a larger one, as 0.01"
        )
    points = np.unique(np.append(np.arange(0.0, until * (1 - SAME), step), until))
    cells = [_Cell(k, int(seed), instance, measured, tuple(chosen.values()), carded, points) for k, seed in enumerate(numbers)]
    outcomes: dict[int, _Outcome] = {}
    for outcome in run(_measure, cells, workers=workers, backend=backend, address=address):
        outcomes[outcome.position] = outcome
        if done is not None:
            done(len(outcomes), len(cells))
    in_order = [outcomes[k] for k in range(len(cells))]
    return Arrivals(
        instance=given,
        resource=resource,
        cards=cards,
        points=points,
        seeds=tuple(int(seed) for seed in numbers),
        arrived=np.array([outcome.arrived for outcome in in_order]),
        allocated={name: np.array([outcome.allocated[j] for outcome in in_order]) for j, name in enumerate(chosen)},
        bound=np.array([outcome.bound for outcome in in_order]),
        residual=max(outcome.residual for outcome in in_order),
        seconds=time.perf_counter() - began,
        question=plain(
            {
                **{"resource": resource, "placements": list(chosen), "cards": cards, "load": until, "load_step": step, "seeds": numbers},
                **{"until": until, "step": step},  # until 1.0
            }
        ),
    )


def _checked(instance: Instance, resource: str, cards: str | None, until: float, step: float) -> tuple[int, int | None]:
    """Check the arguments; return the position of the resource and of the resource in cards."""
    require_instance(instance)
    for name in (resource, cards):
        if name is not None and name not in instance.resources:
            hint = did_you_mean(str(name), instance.resources)
            raise InvalidInstance(f'there is no resource "{name}"{hint}; there are {", ".join(instance.resources)}')
    for word, value in (("until", until), ("step", step)):
        if not (is_number(value) and value > 0):
            raise Unsupported(f"{word} is {written(value)}; give a part of the capacity > 0, as 1.3 for 130 %")
    endless = np.flatnonzero(~np.isfinite(instance.tasks) | (instance.tasks != np.round(instance.tasks)))
    if endless.size:
        number = instance.tasks[endless[0]]
        has = f"{exactly(number)} tasks" if np.isfinite(number) else "no limit on its tasks"
        raise InvalidInstance(
            f"user {named(instance.users[endless[0]])} has {has}, and what arrives are whole tasks; give each user a number, as tasks: 40"
        )
    r = instance.resources.index(resource)
    capacity, demand = float(instance.total_capacity[r]), float(instance.tasks @ _counted(instance, r).max(axis=1))
    if capacity == 0 or demand == 0:
        raise InvalidInstance(f"there is no {named(resource)} {'on any server' if capacity == 0 else 'in what any task asks for'}")
    number = float(instance.tasks.sum()) * max(1.0, until * capacity / demand)
    if number > _MOST:
        raise InvalidInstance(f"{plural(number, 'task')} would arrive, more than {_MOST:,}; give fewer or larger tasks, or a smaller until")
    return r, None if cards is None else instance.resources.index(cards)


# One order of arrival ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Cell:
    """The task of one worker: one order of arrival."""

    position: int
    seed: int
    instance: Instance
    resource: int
    placements: tuple[Placement, ...]
    cards: int | None
    points: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Outcome:
    """The result of one order of arrival: fractions of the capacity, (points,), and (placements, points) for ``allocated``."""

    position: int
    arrived: FloatArray
    allocated: FloatArray
    bound: FloatArray
    residual: float


def _measure(cell: _Cell) -> _Outcome:
    """Let the tasks arrive in the order of one seed."""
    instance, capacity = cell.instance, cell.instance.total_capacity[cell.resource]
    counted = _counted(instance, cell.resource)
    of_task, row = counted.max(axis=1), np.repeat(np.arange(instance.n_servers), instance.counts.astype(np.int64))
    turns = _order(instance, of_task, float(cell.points[-1]) * capacity, np.random.default_rng(cell.seed))
    demand = of_task[turns]
    sums = _sums(demand)
    ends = np.searchsorted(sums, cell.points * capacity * (1 + SAME), side="right") - 1  # last moment with demand <= the point
    placed = [place_arrivals(instance, turns, placement, cards=cell.cards, seed=cell.seed) for placement in cell.placements]
    given = [np.where(one >= 0, counted[turns, row[one]], 0.0) for one in placed]
    allocated = np.array([_sums(one)[ends] for one in given]) / capacity
    # If with a placement every task counts what it can, the bound is the demand that has arrived: this allocation exists, and none can
    # exceed it.
    complete = np.array([_sums(one < demand)[ends] == 0 for one in given]).any(axis=0)
    bound, residual = sums[ends] / capacity, 0.0
    program = _Bound(instance, cell.resource)
    for k in np.flatnonzero(~complete):
        most, worst = program.largest(np.bincount(turns[: ends[k]], minlength=instance.n_users).astype(float))
        bound[k], residual = most / capacity, max(residual, worst)
    return _Outcome(cell.position, sums[ends] / capacity, allocated, bound, residual)


def _sums(values: FloatArray | BoolArray) -> FloatArray:
    """Return the sums of the first 0, 1, 2, ... values."""
    return np.concatenate([[0.0], np.cumsum(values)])


def _counted(instance: Instance, resource: int) -> FloatArray:
    """Return what a task counts where it runs, (users, servers)."""
    everybody, everywhere = np.ones(instance.n_users, bool), np.ones(instance.n_servers, bool)
    return np.asarray(counted_amounts(instance, everybody, everywhere, resource))


def _order(instance: Instance, demand: FloatArray, goal: float, rng: np.random.Generator) -> IntArray:
    """Return the user of each arriving task, in order, until the tasks demand ``goal``; ``demand`` is that of a task, (users,)."""
    takes_part = ~instance.zero_demand  # a task without demand always fits
    tasks = np.repeat(np.arange(instance.n_users), np.where(takes_part, instance.tasks, 0).astype(np.int64))
    rng.shuffle(tasks)
    parts, asked = [tasks], float(demand[tasks].sum())
    while asked < goal:
        parts.append(rng.choice(tasks, 1 + int((goal - asked) / demand[tasks].mean())))
        asked += float(demand[parts[-1]].sum())
    return np.concatenate(parts)


# The bound -----------------------------------------------------------------------------------------------------------------------


class _Bound:
    """The largest total of a resource over divisible allocations. Users with equal tasks are merged here, and equal servers by `solve`."""

    def __init__(self, instance: Instance, resource: int) -> None:
        counted, holds = _counted(instance, resource), _holds_a_whole_task(instance)
        if instance.differs_by_server:
            holds &= np.asarray(counted > 0, bool)
        self.users = np.flatnonzero(((counted > 0) & holds).any(axis=1))  # all other users contribute 0
        of_users = [instance.demands_by_kind[self.users], counted[self.users], holds[self.users]]
        alike = [each.reshape(self.users.size, int(np.prod(each.shape[1:]))) for each in of_users]
        if instance.limits:  # which count users by name
            alike.append(self.users[:, None])
        self.shape = number_distinct(alike) if self.users.size else np.empty(0, np.int64)
        first = self.users[np.unique(self.shape, return_index=True)[1]]
        self.worth = counted[first].max(axis=1)
        self.instance = (
            instance.replace(
                demands=as_given(instance.demands_by_kind[first], instance.kind_of),
                speeds=counted[first] / self.worth[:, None] if instance.differs_by_server else None,
                weights=self.worth,
                eligibility=holds[first],
                tasks=np.zeros(first.size),
                parallelism=None,
                guarantees=None,
                queues=None,  # without queues more fits: still a bound
                queue_of=None,
                limits=without_queues(instance, first),
                users=[instance.users[n] for n in first],
            )
            if first.size
            else None
        )

    def largest(self, arrived: FloatArray) -> tuple[float, float]:
        """Return the largest total when ``arrived`` tasks of each user have arrived, and the worst residual of its certificate."""
        if self.instance is None:
            return 0.0, 0.0
        tasks = np.bincount(self.shape, weights=arrived[self.users], minlength=self.worth.size)
        allocation = solve(self.instance.replace(tasks=tasks), "efficiency")
        return float(self.worth @ allocation.work), float(allocation.certificate.worst)


def _holds_a_whole_task(instance: Instance) -> BoolArray:
    """Return whether each server can hold at least one whole task of each user, (users, servers)."""
    holds = instance.eligibility.copy()
    for r in range(instance.n_resources):
        shared = r >= instance.n_server_resources
        most = instance.total_capacity[r] if shared else instance.capacities[:, r]
        holds &= np.asarray(instance.demands_by_kind[:, instance.kind_of, r] <= most * (1 + FITS), bool)
    return holds
