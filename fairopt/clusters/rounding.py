"""The whole tasks of an allocation, on groups of identical servers: what an export gives to a scheduler.

Server rows that cannot be told apart (the same capacity, the same users may run there, the same quotas of queues, the same name that the
caller gives to their group) are one group. `fairopt.program.placement` rounds the tasks and places them on groups, in as few pairs of user
and group as possible; `fairopt.clusters.packing` then places them on the single servers of each group. Tasks that do not fit beside the
others go to any group with room; if some are still left over, and there are few servers, one program over all single servers looks for a
better packing. A note names the tasks that fit nowhere.

>>> import fairopt as fo
>>> pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], counts=[3])
>>> found = whole_tasks(fo.solve(pool, "drfh"))
>>> found.tasks_per_user, found.groups[0].count  # 9 and 6 divisible tasks; each server has room for 3 and 2
(array([9., 6.]), 3)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fairopt.allocation import Allocation
from fairopt.analysis.measures import violations
from fairopt.analysis.rerun import given
from fairopt.clusters.apart import Apart, taken_apart
from fairopt.clusters.packing import Budget, Packed, pack
from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.aggregation import expand, number_distinct, on_rows
from fairopt.instance.limit_merging import limit_keys, merged_limits
from fairopt.instance.tolerances import FITS, WRITTEN
from fairopt.program.kept_parts import without_breaking
from fairopt.program.placement import WholePlacement
from fairopt.program.queue_limits import Row
from fairopt.solvers import Placed, place_numbers, place_whole
from fairopt.validation import check_seconds
from fairopt.wording import did_you_mean, figure, joined, named, plural

__all__ = ["Group", "Whole", "whole_tasks"]

_FEW = 600  # pairs of user and single server, for one program over all of them
_LEAST = 0.1  # of the time limit, for each program: the rows of queues may ask for the numbers of tasks several times
_MOST = 5  # names in a sentence


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Identical servers.

    Attributes
    ----------
    name : str
        The name that the caller gives, else that of the first row, with the number of the other rows: ``cn001 +79``.
    rows : int array
        The rows of the instance.
    count : int
        Number of single servers.
    capacity : array (resources,)
        Of one server.
    """

    name: str
    rows: IntArray
    count: int
    capacity: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """Whole tasks, by user and group of servers.

    Attributes
    ----------
    allocation : Allocation
        The allocation that was rounded.
    groups : tuple of Group
    tasks : array (users, groups)
    packed : tuple of Packed
        The single servers of each group, with the tasks of the parts of users.
    apart : Apart
        The users, taken apart where their tasks differ by server.
    notes : tuple of str
        What rounding changed, and how the placement was chosen.
    """

    allocation: Allocation
    groups: tuple[Group, ...]
    tasks: FloatArray
    packed: tuple[Packed, ...]
    apart: Apart
    notes: tuple[str, ...]

    @property
    def instance(self) -> Instance:
        """The instance of the allocation."""
        return self.allocation.instance

    @property
    def tasks_per_user(self) -> FloatArray:
        """Number of whole tasks of each user, (users,)."""
        total: FloatArray = self.tasks.sum(axis=1)
        return total

    @property
    def capacity(self) -> FloatArray:
        """Capacity of each group, (groups, resources)."""
        return np.array([group.count * group.capacity for group in self.groups])

    def demands(self, group: int) -> FloatArray:
        """Return what a task of each user takes on the servers of a group, (users, resources)."""
        row = int(self.groups[group].rows[0])
        return np.asarray(self.instance.demands_by_kind[:, self.instance.kind_of[row]])

    def on_rows(self) -> FloatArray:
        """Return the whole tasks on the rows of servers of the instance, (users, servers)."""
        tasks = np.zeros((self.apart.user.size, self.instance.n_servers))
        for group, packed in zip(self.groups, self.packed, strict=True):
            tasks[:, group.rows] = packed.spread(self.instance.counts[group.rows].astype(int))
        return self.apart.together(tasks)

    def as_allocation(self) -> Allocation:
        """Return the whole tasks as an allocation of the instance."""
        return given(self.instance, self.on_rows(), "rdm")


def whole_tasks(allocation: Allocation, names: Mapping[str, str] | None = None, time_limit: float | None = None) -> Whole:
    """Round an allocation to whole tasks, and place them.

    Parameters
    ----------
    allocation : Allocation
    names : mapping, optional
        Name of the group of server rows: rows of one name are in groups of that name, rows of different names never in one group.
    time_limit : float, optional
        Seconds of the whole search: for the numbers of whole tasks, and for a placement on fewer rows and servers. By default the search
        ends after a number of steps, and its answer is the same on every machine.

    Raises
    ------
    Unsupported
        Under time division.
    InvalidInstance
        The allocation exceeds a limit; a name is given for a row that is not there.
    """
    apart = taken_apart(allocation.instance, allocation.tasks)
    instance = apart.instance
    if time_limit is not None:
        check_seconds("placement_time_limit", time_limit)
    if allocation.sharing != "rdm":
        raise Unsupported(
            "under time division users take turns on whole servers, which no quota or limit of a scheduler can express; "
            'solve with sharing="rdm", which divides resources, and without rates'
        )
    exceeded = violations(instance, apart.tasks, "rdm", WRITTEN)
    if exceeded:
        raise InvalidInstance(
            f"the allocation does not fit this instance: {joined([str(each) for each in exceeded], 3)}; give an allocation of this instance"
        )
    for row in names or {}:
        if row not in instance.servers:
            raise InvalidInstance(
                f'there is no server row "{row}"{did_you_mean(row, instance.servers)}; there are {_few(instance.servers)}'
            )
    groups, small = _grouped(instance, names or {})
    per_user = np.where(instance.zero_demand, 0.0, apart.tasks.sum(axis=1))
    budget = Budget(time_limit)
    program, placed, packed, together = without_breaking(small, lambda rows: _rounded(small, per_user, rows, budget))
    tasks = np.column_stack([each.placed for each in packed])
    notes = list(_said(instance, per_user, program, tasks))
    if tasks.any() and not placed.fewest:
        best = placed.rounded and not (tasks.sum(axis=1) < program.floors).any()
        notes.append(_gained(placed, int((tasks > 0).sum()), budget, best=best))
    elif together and tasks.any():
        notes.append("this placement has the fewest pairs of user and row found within the search limit; one with fewer may exist")
    if allocation.instance.speeds_given is not None:
        notes.append(_worked(allocation, apart, groups, tasks))
    return Whole(allocation, groups, apart.together(tasks), packed, apart, tuple(notes))


def _worked(allocation: Allocation, apart: Apart, groups: Sequence[Group], tasks: FloatArray) -> str:
    """Return a note on the work of the whole tasks, (parts, groups)."""
    instance = allocation.instance
    first = np.array([int(group.rows[0]) for group in groups])
    work = (instance.speeds[:, first] * apart.together(tasks)).sum()
    return f"the whole tasks do {figure(float(work), 6)} work together, the divisible ones {figure(float(allocation.work.sum()), 6)}"


def _gained(placed: Placed, pairs: int, budget: Budget, *, best: bool) -> str:
    """Return a note on a search that ended without a proof: what it gained, and how to search longer."""
    if not placed.before:
        return "there are too many pairs of user and row to search for the fewest; one with fewer may exist"
    gain = (
        f"{placed.before:,} pairs of user and row at first, {pairs:,} now" if pairs < placed.before else "no placement with fewer was found"
    )
    least = f"; at least {placed.least:,} are needed" if 0 < placed.least < pairs else ""
    more = "" if best else "; perhaps more tasks fit"
    end = f"after {budget.spent:.1f} s" if budget.seconds is not None else "after its usual number of steps"
    return f"the search for fewer pairs of user and row ended {end}: {gain}{least}{more} (placement_time_limit= searches longer)"


def _rounded(
    small: Instance, per_user: FloatArray, rows: Sequence[Row], budget: Budget
) -> tuple[tuple[WholePlacement, Placed, tuple[Packed, ...], bool], FloatArray]:
    """Return the program within these rows of queues, its answer, the single servers, and whether one program packed them together.

    Beside them, the tasks, (users, groups).
    """
    program = WholePlacement.of(small, per_user, rows)
    with budget.spending():
        placed = place_whole(program, budget.left(least=_LEAST), budget.effort)
        budget.steps += placed.iterations
    wanted = np.zeros((small.n_users, small.n_servers))
    wanted[program.pair_users, program.pair_servers] = placed.x
    aim = np.maximum(wanted.sum(axis=1), program.floors + (0.0 if placed.rounded else program.parts > 0))
    packed = _on_single_servers(small, program, wanted, aim, budget)
    together = None
    if _worth(program, np.column_stack([each.placed for each in packed])) < _worth(program, wanted) - FITS:
        together = _together(small, per_user, program, packed, rows, wanted, budget)
    packed = together or packed
    return (program, placed, packed, together is not None), np.column_stack([each.placed for each in packed])


def _few(words: tuple[str, ...]) -> str:
    return joined([named(word) for word in words], _MOST)


def _grouped(instance: Instance, names: Mapping[str, str]) -> tuple[tuple[Group, ...], Instance]:
    """Return the groups, and the instance with a row for each of them."""
    quotas = {quota.servers for queue in instance.queues for quota in queue.quotas}
    inside = np.array([np.isin(instance.servers, servers) for servers in quotas], bool).reshape(len(quotas), instance.n_servers)
    labels = [names.get(row, "") for row in instance.servers]
    label_of = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    label = np.array([[label_of[each]] for each in labels], float)
    everybody, pull = np.arange(instance.n_users), np.ones(instance.n_users)
    alike = [instance.capacities, instance.eligibility.T, inside.T, label, *limit_keys(instance, pull)[1]]
    group = number_distinct([np.asarray(each, float) for each in alike])
    first = np.unique(group, return_index=True)[1]
    counts = np.bincount(group, weights=instance.counts)
    members = np.bincount(group)
    groups = tuple(
        Group(
            labels[i] or instance.servers[i] + (f" +{members[g] - 1}" if members[g] > 1 else ""),
            np.flatnonzero(group == g),
            int(counts[g]),
            instance.capacities[i],
        )
        for g, i in enumerate(first)
    )
    small = instance.replace(
        capacities=instance.capacities[first],
        counts=counts,
        eligibility=instance.eligibility[:, first],
        rates=None if instance.rates_per_server is None else instance.rates_per_server[:, first],
        servers=[instance.servers[i] for i in first],
        queues=on_rows(instance, [int(first[g]) for g in group]),
        limits=merged_limits(instance, everybody, group, pull),
        rules=None,
    )
    return groups, small


def _on_single_servers(
    instance: Instance, program: WholePlacement, wanted: FloatArray, aim: FloatArray, budget: Budget
) -> tuple[Packed, ...]:
    """Return the single servers with the tasks that fit there: as placed, then towards the aim wherever there is room.

    The whole parts of users come first, and then the largest remainders.
    """
    surplus = np.maximum(wanted.sum(axis=1) - program.floors, 0.0)
    packed: list[Packed] = []
    for i in range(instance.n_servers):
        arguments = instance.capacities[i], int(instance.counts[i]), instance.server_demands
        each = pack(*arguments, wanted[:, i], budget)
        if (each.placed < wanted[:, i]).any():  # then nobody is rounded up before everybody has its whole part
            each = pack(*arguments, np.maximum(wanted[:, i] - surplus, 0.0), budget)
        packed.append(each)
    column = {(int(n), int(i)): p for p, (n, i) in enumerate(zip(program.pair_users, program.pair_servers, strict=True))}
    tasks = np.column_stack([each.placed for each in packed])
    bounds = program.limits.bounds
    held = program.limits.matrix @ tasks[program.pair_users, program.pair_servers]
    matrix = sp.csc_array(program.limits.matrix)
    lacking = np.flatnonzero(aim > tasks.sum(axis=1))
    for n in lacking[np.lexsort((lacking, -program.parts[lacking], aim[lacking] > program.floors[lacking]))]:
        own = sorted(np.flatnonzero(instance.eligibility[n]).tolist(), key=lambda i: (wanted[n, i] == 0, i))
        for i in own:
            p = column[int(n), int(i)]
            span = slice(matrix.indptr[p], matrix.indptr[p + 1])
            rows, values = matrix.indices[span], matrix.data[span]
            room = float(np.floor((bounds[rows] - held[rows]) / values + FITS).min(initial=np.inf))
            more = int(min(aim[n] - tasks[n].sum(), room))
            added = packed[i].add(int(n), more)
            tasks[n, i] += added
            held[rows] += added * values
    return tuple(packed)


def _worth(program: WholePlacement, tasks: FloatArray) -> float:
    """Return what is maximised of the numbers of tasks, (users, groups): remainders rounded up, and no task lost."""
    now = tasks.sum(axis=1)
    return float(program.parts @ (now > program.floors) - (now.size + 1) * np.maximum(program.floors - now, 0.0).sum())


def _together(
    instance: Instance,
    per_user: FloatArray,
    program: WholePlacement,
    packed: tuple[Packed, ...],
    rows: Sequence[Row],
    wanted: FloatArray,
    budget: Budget,
) -> tuple[Packed, ...] | None:
    """Return a better packing of few servers, by one program over all of them; None if there is none.

    At first each user stays on the rows where it is wanted; on others, too, if that would not do. Within a time limit, some of it is left
    for this in any case.
    """
    if not instance.counts.any() or instance.n_users * instance.counts.sum() > _FEW or (budget.seconds is None and budget.is_spent):
        return None
    single, row = expand(instance)
    each = WholePlacement.of(single, per_user, [replace(each, servers=each.servers[row]) for each in rows])
    tasks = np.zeros((single.n_users, single.n_servers))
    there = wanted[each.pair_users, row[each.pair_servers]] > 0
    with budget.spending():
        numbers = place_numbers(replace(each, most=np.where(there, each.most, 0.0)), budget.left(least=_LEAST), budget.effort)
        budget.steps += numbers.iterations
    tasks[each.pair_users, each.pair_servers] = numbers.x
    if _worth(program, tasks) < _worth(program, wanted) - FITS:
        with budget.spending():
            anywhere = place_whole(each, budget.left(least=_LEAST), budget.effort)
            budget.steps += anywhere.iterations
        others = np.zeros_like(tasks)
        others[each.pair_users, each.pair_servers] = anywhere.x
        tasks = others if _worth(program, others) > _worth(program, tasks) + FITS else tasks
    if (tasks.T @ instance.server_demands > single.capacities * (1 + FITS)).any():
        return None
    if _worth(program, tasks) <= _worth(program, np.column_stack([group.placed for group in packed])) + FITS:
        return None
    result = tuple(Packed(instance.capacities[i], int(instance.counts[i]), instance.server_demands) for i in range(instance.n_servers))
    for i, group in enumerate(result):
        group.place(np.arange(instance.n_users), tasks[:, row == i])
    return result


def _said(instance: Instance, per_user: FloatArray, program: WholePlacement, tasks: FloatArray) -> list[str]:
    """Return notes on what rounding changed."""
    notes = []
    now = tasks.sum(axis=1)
    parts = np.flatnonzero(np.abs(now - per_user) > WRITTEN * np.maximum(per_user, 1.0))
    if parts.size:
        up = int((now[parts] > per_user[parts]).sum())
        notes.append(
            f"whole tasks: {figure(per_user.sum(), 6)} tasks become {figure(now.sum(), 6)}; {plural(up, 'user')} rounded up, "
            f"{plural(parts.size - up, 'user')} down, the largest remainders up where there is room"
        )
    short = np.flatnonzero(now < program.floors)
    if short.size:
        each = [f"{named(instance.users[n])} {figure(program.floors[n] - now[n], 6)}" for n in short]
        notes.append(f"whole tasks that do not fit between the others on single servers are left out: {joined(each, _MOST)}")
    none = [named(instance.users[n]) for n in np.flatnonzero((now == 0) & instance.servable)]
    if none:
        notes.append(
            f"{joined(none, _MOST)} {'gets' if len(none) == 1 else 'get'} no whole task, and a quota of 0 where the owner has no other"
        )
    split = int(((tasks > 0).sum(axis=1) > 1).sum())
    pairs = plural(int((tasks > 0).sum()), "pair of user and row", "pairs of user and row")
    where = "" if not split else f"; {plural(split, 'user')} on more than one row"
    notes.append(f"placement: each user on as few rows of servers as possible ({pairs}{where}), then on as few servers as possible")
    return notes
