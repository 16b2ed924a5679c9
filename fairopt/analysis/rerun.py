"""Make an allocation again, for another instance.

``allocation.question`` records how an allocation was made: the notion with its options, or the criterion and placement of a schedule. So
one call gives the allocation if a server were larger, or if a user left.

>>> import fairopt as fo
>>> pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"])
>>> allocation = fo.solve(pool, "proportional", alpha=2)
>>> rerun(allocation, pool.replace(capacities=[[18, 36]])).tasks_per_user / allocation.tasks_per_user
array([2., 2.])
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairopt.allocation import GIVEN, Allocation, Approximation, ExactAnswer, Optimum
from fairopt.analysis.measures import dominant_shares
from fairopt.certificate import Certificate, allocation_excess
from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.aggregation import merge, on_rows
from fairopt.instance.by_server import by_server_on
from fairopt.instance.exact_merging import merge_exactly
from fairopt.instance.fractions import fractions_of
from fairopt.models import CRITERIA, NOTIONS, Notion
from fairopt.solving import solve_again
from fairopt.validation import numbers

__all__ = ["given", "merged_servers", "notion_of_allocation", "rerun"]


def rerun(
    allocation: Allocation,
    instance: Instance,
    *,
    users: IntArray | None = None,
    servers: IntArray | None = None,
    time_limit: float | None = None,
) -> Allocation:
    """Solve or schedule another instance in the same way: with the same notion or schedule, options, sharing and engine.

    Parameters
    ----------
    allocation : Allocation
    instance : Instance
    users, servers : int arrays, optional
        For each row of ``instance``, the position of the same row in ``allocation.instance``. They are needed if the rows differ and an
        option (``utility``, ``prefer``) has one entry per row, and they select its entries. A position may occur twice.
    time_limit : float, optional
        Seconds; only for exact allocations.

    Raises
    ------
    Unsupported
        If the allocation was given, and not made by fairopt; or the rows differ, an option has one entry per row, and ``users`` or
        ``servers`` is missing.
    FairoptError
        Whatever `fairopt.solve` or `fairopt.schedule` raises.

    >>> import fairopt as fo
    >>> three = fo.Instance([[9]], [[1], [1], [2]], users=["A", "B", "C"])
    >>> allocation = fo.solve(three, "max-min", utility=[1, 2, 1])
    >>> two = fo.Instance([[9]], [[1], [2]], users=["A", "C"])
    >>> rerun(allocation, two, users=np.array([0, 2])).tasks_per_user
    array([3., 3.])
    """
    question = allocation.question
    if question is None:
        raise Unsupported(
            f'nothing says how the allocation "{allocation.notion}" by "{allocation.solver}" was made, so it cannot be made again'
        )
    before = allocation.instance
    for rows, old, new, word in ((users, before.users, instance.users, "users"), (servers, before.servers, instance.servers, "servers")):
        if rows is None and old != new and question.notion.restricted(**{word: np.arange(len(old))}) is not question.notion:
            raise Unsupported(f'the options of "{question.notion.name}" name {word}, and this instance has others; say which with {word}=')
    notion = question.notion.restricted(users, servers)
    sharing: Any = allocation.sharing
    if isinstance(question, Optimum):
        return solve_again(allocation, replace(question, notion=notion), instance, time_limit)
    from fairopt.scheduling import schedule  # most allocations need none of its placements

    if isinstance(question, Approximation):
        return schedule(instance, notion, placement=question.baseline, integral=question.integral, sharing=sharing)
    return schedule(
        instance,
        notion,
        placement=question.placement,
        ties=question.ties,
        seed=question.seed,
        stop=question.stop,
        sharing=sharing,
        exact=question.exact,
    )


def merged_servers(allocation: Allocation) -> Allocation:
    """Merge identical server rows of an exact allocation of divisible tasks; a merged row is named after its first row.

    Any other allocation is returned unchanged, because its identical rows may hold different tasks.

    >>> import fairopt as fo
    >>> allocation = fo.solve(fo.Instance([[1], [1], [3]], [[1], [2]], servers=["a", "b", "c"]), "drfh")
    >>> merged_servers(allocation).instance.servers
    ('a and 1 like it', 'c')
    """
    question, instance = allocation.question, allocation.instance
    if not isinstance(question, Optimum) or allocation.certificate.whole_tasks:
        return allocation
    if not (question.notion.is_symmetric and question.notion.merges(instance)):
        return allocation
    exact = None if allocation.exact is None or allocation.exact.radius else allocation.exact
    if exact is None:
        view, written, merging = allocation, instance, merge(instance, question.notion.utility)
    else:
        view, written, merging = allocation.in_fractions, instance.exact, merge_exactly(instance, question.notion.exact_utility)
    group = merging.server_group
    first, size = np.unique(group, return_index=True, return_counts=True)[1:]
    names = [instance.servers[i] + (f" and {number - 1:,} like it" if number > 1 else "") for i, number in zip(first, size, strict=True)]
    if first.size == instance.n_servers or len(set(names)) < len(names):
        return allocation
    merged = np.searchsorted(np.unique(group), group)
    small = instance.replace(
        queues=on_rows(written, first[merged].tolist(), [names[k] for k in merged]),
        capacities=written.capacities[first],
        counts=np.bincount(group, weights=instance.counts),
        eligibility=None if instance.placement is None else instance.eligibility[:, first],
        rates=None if written.rates_per_server is None else written.rates_per_server[:, first],
        servers=names,
        **by_server_on(written, first),
    )
    tasks = np.zeros((instance.n_users, first.size), view.tasks.dtype)
    np.add.at(tasks.T, np.searchsorted(np.unique(group), group), view.tasks.T)
    notion = question.notion.restricted(servers=first)
    shares = notion.shares(small if exact is None else small.exact, tasks) if view.shares.ndim == 2 else view.shares
    shares = view.shares[:, first] if shares is None else shares
    part = merging.server_part[first][:, None] if allocation.sharing == "tdm" else 1  # the time of a row is a part of the merged row's time

    def cut(prices: FloatArray | None) -> FloatArray | None:
        return None if prices is None else prices[first] / part

    if exact is not None:
        exact = replace(
            exact,
            tasks=tasks,
            shares=shares,
            prices=cut(exact.prices),
            proved_levels=tuple(replace(level, prices=cut(level.prices)) for level in exact.proved_levels),
            steps=tuple(replace(step, prices=cut(step.prices)) for step in exact.steps),
        )
    return replace(
        allocation,
        instance=small,
        tasks=tasks.astype(np.float64),
        shares=shares.astype(np.float64),
        exact=exact,
        prices=cut(allocation.prices),
        levels=tuple(replace(level, prices=cut(level.prices)) for level in allocation.levels),
        question=replace(question, notion=notion),
        trace=None,
    )


def given(instance: Instance, tasks: npt.ArrayLike, sharing: str, notion: str | Notion = GIVEN, *, exact: bool = False) -> Allocation:
    """Return given tasks, (users, servers), as an allocation. Nothing is proved of it, and it may exceed limits.

    ``shares`` are the weighted dominant shares; of a tree of queues, where weights count among siblings only, they are not weighted.
    ``notion`` may name a notion to compare the allocation with, or be one with options. With ``exact`` it is in fractions: ints and
    Fractions as they are, a float by its shortest decimal.

    Raises
    ------
    InvalidInstance
        If the tasks have another shape, or are negative or not finite.
    Unsupported
        If the sharing does not exist.

    >>> given(Instance([[9]], [[1]], users=["A"]), [[3]], "rdm")
    Allocation(given, sharing rdm, given: A 3 tasks; excess 0.0e+00, not an optimum)
    """
    if sharing not in ("rdm", "tdm"):
        raise Unsupported(f'there is no sharing "{sharing}"; use "rdm" (resources are divided) or "tdm" (time is)')
    as_given = tasks
    tasks = numbers(tasks, "tasks", instance.eligibility.shape, "(users, servers)")  # a copy: an allocation freezes what it holds
    for n, i in np.argwhere(~((tasks >= 0) & (tasks < np.inf)))[:1]:
        raise InvalidInstance(
            f'user "{instance.users[n]}" has {tasks[n, i]:g} tasks on "{instance.servers[i]}"; give finite numbers >= 0 '
            "(np.maximum(tasks, 0), if that is rounding)"
        )
    excess = allocation_excess(instance, tasks, sharing)
    some = tasks[tasks != 0]  # few: a copy of all pairs may be large
    whole = bool((some == np.round(some)).all())
    certificate = Certificate(excess, np.nan, np.nan, whole_tasks=whole, greedy=True)
    name, measure = (notion, None) if isinstance(notion, str) else (notion.name, notion)
    bare = Allocation(instance, name, GIVEN, sharing, tasks, np.zeros(instance.n_users), None, (), certificate, measured_by=measure)
    if not exact:
        return replace(bare, shares=_shares(bare))
    fractions, none = fractions_of(as_given), np.empty(0, dtype=object)
    whole = all(value.denominator == 1 for value in fractions.ravel().tolist())
    shares = _shares(replace(bare, instance=instance.exact, tasks=fractions))
    answer = ExactAnswer(fractions, shares, none)
    certificate = replace(certificate, whole_tasks=whole)
    return replace(bare, shares=shares.astype(np.float64), certificate=certificate, exact=answer)


def notion_of_allocation(allocation: Allocation) -> Notion | None:
    """Return the notion with its options; of an allocation that only names one, that notion without options; None if there is none.

    >>> import fairopt as fo
    >>> pool = Instance([[9]], [[1]], users=["A"])
    >>> [notion_of_allocation(given(pool, [[3]], "rdm", each)) for each in ("given", "drfh", fo.NOTIONS["proportional"](alpha=2))]
    [None, DRFH(formulation='leximin'), Proportional(utility=None, alpha=2.0)]
    """
    if allocation.question is not None:
        return allocation.question.notion
    kind = {**NOTIONS, **CRITERIA}.get(allocation.notion)
    return allocation.measured_by or (None if kind is None else kind())


def _shares(allocation: Allocation) -> FloatArray:
    """Return the weighted dominant shares; of a tree of queues not weighted."""
    instance, shares = allocation.instance, dominant_shares(allocation)
    if instance.is_tree and instance.weights.ndim == 1:
        shares = shares * np.where(instance.weights > 0, instance.weights, 1)
    return shares
