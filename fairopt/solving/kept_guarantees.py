r"""Guarantees under notions that follow no tree: `proportional`, `efficiency`, `fds` and `gfj`.

The stages of the guarantees are filled first, as in a tree (`fairopt.program.tree_filling`), by the notion's own share of a task: inside a
guaranteed queue users rise by their weights. Then the notion has the rows

    sum over users n below v, servers i in some groups, of d[n,r] x[n,i]  >=  what the stages gave v of r there       for each set of groups
    x[n]  >=  what the stages gave                                                                        for users guaranteed tasks

Where demands or speeds differ by server, a task counts its work there, times the least that a unit of work takes
(`fairopt.instance.by_server.counted_amounts`). With one group, such as the whole cluster, that is one row. With several groups the stages
give v an amount F of r, each group counted up to its guarantee G[g], and the rows say the same of every allocation: for each set of groups,
their use is at least F - sum of G of the others. The end of the stages obeys all rows and all rules of the instance, so that the rows can
never be infeasible. Where tasks are whole, those of the stages are, too.

The rows are rules (`fairopt.Rule`) that bear the names of the guarantees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from fairopt.certificate import Certificate
from fairopt.errors import CertificateError, InvalidInstance, NoSolution, Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.by_server import counted_amounts
from fairopt.instance.fractions import ExactArray, fraction_of, from_rational, rationals
from fairopt.instance.kept_together import groups_of
from fairopt.instance.requirements import Attributes
from fairopt.instance.rules import Rule
from fairopt.instance.rules import tasks as tasks_of
from fairopt.instance.tolerances import CERTIFIED
from fairopt.models import Notion, ShareNotion, Sharing, Stated
from fairopt.program import Program
from fairopt.program.queue_limits import Row
from fairopt.program.rule_limits import obeying
from fairopt.solvers import candidates
from fairopt.solvers.backend import Deadline
from fairopt.solving.answer import unexpanded
from fairopt.solving.contradictions import with_contradiction
from fairopt.solving.merged_notion import MergedNotion, with_utility
from fairopt.solving.policy import Found, find
from fairopt.solving.single_servers import columns, expanded

__all__ = ["keeps_guarantees", "refuse_whole", "with_guarantees"]

_MET = 1e-11  # relative: what lacks less of a guarantee is met; rows are relaxed by as much
_MOST_GROUPS = 12  # of one resource of a queue: of more, each group keeps what the stages gave it there


def keeps_guarantees(notion: Notion, instance: Instance) -> bool:
    """Does the notion keep guarantees as rows, and has the instance some?"""
    share = _share_notion(notion)
    return (
        share is not None and share.keeps_guarantees and _has_guarantees(instance) and not share.goal(np.ones(instance.n_users)).in_shares
    )


def with_guarantees(
    instance: Instance,
    notion: Notion,
    sharing: Sharing,
    *,
    exact: bool = False,
    integral: bool = False,
    tolerance: float = CERTIFIED,
    deadline: Deadline | None = None,
) -> tuple[Instance, list[Certificate]]:
    """Return the instance with what its guarantees give as rules, and the certificate of the stages; itself where the notion keeps none.

    Parameters
    ----------
    exact : bool
        In fractions.
    integral : bool
        In whole tasks.
    tolerance : float
        The largest residual of the certificate of the stages, in floats.
    deadline : Deadline, optional
        Of the stages.

    Raises
    ------
    CertificateError
        The stages are not proved within the tolerance.
    NoSolution
        At the deadline.

    >>> from fairopt.instance.queues import Queue
    >>> from fairopt.models import Efficiency
    >>> names = {"users": ["a", "b"], "resources": ["gpu"]}
    >>> pool = Instance([[8]], [[2], [1]], queues=[Queue("lab", guarantee={"gpu": 6})], queue_of=["lab", None], **names)
    >>> [(rule.text, float(rule.bound)) for rule in with_guarantees(pool, Efficiency(), "rdm")[0].rules]
    [('guaranteed gpu of lab', 6.0)]
    """
    if not keeps_guarantees(notion, instance):
        return instance, []
    share, deadline = _share_notion(notion), Deadline(None) if deadline is None else deadline
    assert share is not None
    if integral:
        tasks, proof = _whole_stages(instance, share, sharing, tolerance, deadline)
    else:
        tasks, proof = (
            _exact_stages(instance, share, sharing, deadline) if exact else _stages(instance, share, sharing, tolerance, deadline)
        )
    return instance.replace(rules=[*instance.rules, *_rules(instance.exact if exact else instance, tasks)]), proof


def refuse_whole(instance: Instance, notion: Notion) -> None:
    """Refuse whole tasks where the notion keeps guarantees and its goal is not linear.

    Raises
    ------
    Unsupported
    """
    share = _share_notion(notion)
    if keeps_guarantees(notion, instance) and share is not None and share.goal(np.ones(instance.n_users)).has_gradient:
        raise Unsupported(
            f'no engine finds whole tasks of "{notion.name}", whose goal is not linear; leave integral out, or use "efficiency", "drfh" '
            "or another notion that equalises a share"
        )


def _share_notion(notion: Notion) -> ShareNotion | None:
    inner = notion.notion if isinstance(notion, Stated) else notion
    return inner if isinstance(inner, ShareNotion) else None


def _has_guarantees(instance: Instance) -> bool:
    of_queues = any(each.guarantee for queue in instance.queues for each in queue.everywhere_and_on_groups)
    return of_queues or bool((instance.guarantees > 0).any())


# The stages ----------------------------------------------------------------------------------------------------------------------


def _stages(
    instance: Instance, notion: ShareNotion, sharing: Sharing, tolerance: float, deadline: Deadline
) -> tuple[FloatArray, list[Certificate]]:
    """Return the tasks, (users, servers), at the end of the stages, and the certificate of the filling."""
    merged, program, stages = _merged_filling(instance, notion, sharing)
    found = _certified(program, notion, tolerance, deadline)
    x = _end_of_stages(found, stages)
    return merged.merging.spread(program.table(x), merged.utility), [found.certificate]


def _exact_stages(instance: Instance, notion: ShareNotion, sharing: Sharing, deadline: Deadline) -> tuple[ExactArray, list[Certificate]]:
    """Return the same tasks in fractions, and no certificate: a proof in fractions has no residual."""
    from fairopt.certificate.exact import prove  # floats need neither
    from fairopt.solving.kept_rows import exactly_within_kept

    merged, program, stages = _merged_filling(instance, notion, sharing, exact=True)
    try:
        solved, solution = exactly_within_kept(merged.notion.in_fractions(merged.merging.instance.exact, program), deadline)
    except NoSolution as error:
        raise with_contradiction(program, error, deadline) from None
    prove(solved, solution)
    x = solution.parts[stages - 1] if stages else rationals(np.zeros(program.n_pairs))
    return merged.merging.spread(solved.table(x), merged.utility), []


def _whole_stages(
    instance: Instance, notion: ShareNotion, sharing: Sharing, tolerance: float, deadline: Deadline
) -> tuple[FloatArray, list[Certificate]]:
    """Return whole tasks, (users, servers), at the end of the stages, and their certificate."""
    single, row = expanded(instance)
    own = with_utility(notion, None if notion.utility is None else columns(notion.utility, row))
    assert isinstance(own, ShareNotion)
    program, stages = _filling(own, single, sharing, instance, row)
    found = _certified(program, notion, tolerance, deadline)
    x = _end_of_stages(found, stages)
    return unexpanded(instance, program.table(x), row, notion.utility), [found.certificate]


def _certified(program: Program, notion: Notion, tolerance: float, deadline: Deadline) -> Found:
    """Return the answer to the program of the stages, proved."""
    try:
        found = find(program, candidates(program, None), tolerance, deadline)
        found.certificate.require(tolerance, f"the guarantees under {notion.name}", found.engine)
    except (NoSolution, CertificateError) as error:
        raise with_contradiction(program, error, deadline) from None
    return found


def _end_of_stages(found: Found, stages: int) -> FloatArray:
    """Return the tasks of the pairs at the end of the stages; 0 where there are no stages, or nobody can run anything."""
    solution = found.solution
    return solution.parts[stages - 1] if stages and solution.parts else np.zeros_like(solution.x)


def _merged_filling(instance: Instance, notion: ShareNotion, sharing: Sharing, *, exact: bool = False) -> tuple[MergedNotion, Program, int]:
    """Return the notion on merged rows, the program that fills the guarantees there, and the number of its stages."""
    merged = MergedNotion.of(instance, notion, 1.0 if notion.is_symmetric and not instance.rules else None, exact=exact)
    floats = _share_notion(merged.in_floats)
    assert floats is not None
    return merged, *_filling(floats, merged.merging.instance, sharing)


def _filling(
    notion: ShareNotion, rows: Instance, sharing: Sharing, instance: Instance | None = None, row: IntArray | None = None
) -> tuple[Program, int]:
    """Return the program that fills the guarantees within the rules, and the number of its stages; ``row`` where tasks are whole."""
    program = notion.formulate(rows, sharing=sharing, integral=row is not None)
    goal = notion.filling(rows, notion.share_per_task(rows), program.pair_users, program.pair_servers)
    return obeying(replace(program, goal=goal), rows if instance is None else instance, row), sum(part.guarantees for part in goal.parts)


# The rules -----------------------------------------------------------------------------------------------------------------------


def _rules(instance: Instance, tasks: Any) -> Iterator[Rule]:
    """Yield what users and queues hold of their guarantees at some tasks, (users, servers), as rules."""
    x, exact = tasks_of(instance), instance.demands_by_kind.dtype == object
    for n in np.flatnonzero((instance.guarantees > 0) & ~instance.zero_demand).tolist():
        name, given = instance.users[n], instance.guarantees[n]
        bound = _kept(tasks[n].sum(), given, exact)
        if bound > 0:
            yield _named(f"guaranteed tasks of {name}", x[f"user:{name}"], bound)
    where = Attributes(instance.attributes)
    for node, queue in enumerate(instance.tree.queues, 1):
        users = instance.tree.below[node]
        of_resource: dict[str, list[tuple[str, BoolArray, Any]]] = {}
        for quota, servers, group in groups_of(instance, queue):
            for resource, amount in quota.guarantee.items():
                if amount > 0:
                    of_resource.setdefault(resource, []).append((group, servers, amount))
        for resource, groups in of_resource.items():
            r = instance.resources.index(resource)
            used = [_used(instance, users, servers, r, tasks) for _, servers, _ in groups]
            held = [_kept(use, amount, exact) for use, (_, _, amount) in zip(used, groups, strict=True)]
            for chosen, bound in _sets(held, [amount for _, _, amount in groups]):
                here = [groups[k][0] for k in chosen]
                total: Any = 0
                for k in chosen:
                    if instance.differs_by_server:
                        total = total + _work(instance, x, users, groups[k][1], r)
                    else:
                        total = total + _amount(instance, where, x, resource, queue.name, *groups[k][:2])
                on = " and ".join(group for group in here if group)
                yield _named(f"guaranteed {resource} of {queue.name}{f' on {on}' if on else ''}", total, bound)


def _used(instance: Instance, users: BoolArray, servers: BoolArray, r: int, tasks: Any) -> Any:
    """Return what tasks, (users, servers), count in a guarantee of a resource."""
    if instance.differs_by_server:
        return (counted_amounts(instance, users, servers, r) * tasks).sum()
    return Row("", users, servers, r, 0).used(instance.kinds, tasks)


def _work(instance: Instance, x: Any, users: BoolArray, servers: BoolArray, r: int) -> Any:
    """Return the same as a term."""
    total: Any = 0
    for (n, i), count in np.ndenumerate(counted_amounts(instance, users, servers, r)):
        if count > 0:
            total = total + fraction_of(count) * x[f"user:{instance.users[n]}", instance.servers[i]]
    return total


def _kept(held: Any, guarantee: Any, exact: bool) -> Any:
    """Return what is kept of a guarantee: all of it where rounding lacks of it, else a rounding less than what is held."""
    if exact:
        return min(held, guarantee)
    return guarantee if held >= guarantee * (1 - _MET) else held * (1 - _MET)


def _sets(held: Sequence[Any], guarantees: Sequence[Any]) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Yield sets of groups and the least that they hold together: F - sum of the guarantees of the others, F = sum of what is held.

    >>> [*_sets([3, 2], [4, 2])]
    [((0,), 3), ((1,), 1), ((0, 1), 5)]
    >>> [*_sets([4, 2], [4, 2])]
    [((0,), 4), ((1,), 2)]
    """
    lack: Any = sum(guarantees) - sum(held)
    if len(held) > _MOST_GROUPS:
        yield from (((k,), amount) for k, amount in enumerate(held) if amount > 0)
        return
    for size in range(1, len(held) + 1 if lack > 0 else 2):
        for chosen in combinations(range(len(held)), size):
            bound = sum(guarantees[k] for k in chosen) - lack
            if bound > 0 and (size == 1 or all(guarantees[k] > 0 for k in chosen)):
                yield chosen, bound


def _amount(instance: Instance, where: Attributes, x: Any, resource: str, queue: str, group: str, servers: BoolArray) -> Any:
    """Return the amount of a resource that a queue holds on a group of servers, as a term; a sum over servers where no word says them."""
    name = f"queue:{queue}"
    if servers.all():
        return x.amount[resource, name]
    if group not in instance.servers:
        try:
            if np.array_equal(where.where(group), servers):
                return x.amount[resource, name, group]
        except InvalidInstance:
            pass
    total: Any = 0
    for i in np.flatnonzero(servers).tolist():
        total = total + x.amount[resource, name, instance.servers[i]]
    return total


def _named(name: str, left: Any, bound: Any) -> Rule:
    rule: Rule = left >= (from_rational(bound) if not isinstance(bound, int | float | Fraction | np.floating) else bound)
    return rule.called(name)
