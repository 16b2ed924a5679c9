"""Why a user gets what it gets, and what would help, in a few sentences.

The sentences depend on how the allocation was made:

* exact: how the notion measures the user's tasks (`Notion.describe_measure`); the user's level, and which users stop at the same level;
  the full resources that limit the user, and who holds them (`fairopt.analysis.explanation.room`); what more capacity, more weight or
  fewer constraints would give, by price and by solving again (`fairopt.analysis.explanation.gains`); and what the user could run with the
  holdings of another user (`fairopt.analysis.measures`);
* a schedule: the same without levels and prices, and what the exact optimum of the same share would give;
* given tasks: the full resources and who holds them, and what an exact optimum would give.

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["alice", "bob"], servers=["pool"], resources=["cpu", "memory"])
>>> explain(fo.solve(instance, "drf"), "alice")
alice runs 3 tasks in the exact allocation of drf, on pool.
It is measured by its share of the server: a task takes 22.2 % of the memory, its dominant resource (11.1 % of the cpu).
Its share is 66.7 %; bob has the same share; nobody has less or more.
Bottleneck: cpu on pool is full.
Who has that cpu: bob 66.7 %, alice itself 33.3 %.
What would help: +1 cpu on pool would give it 0.103 tasks more (+3.45 %).
Weight 2 instead of 1 would give it 1.15 tasks more (+38.5 %); up to 1.5 by its price.
bob has 2 tasks. With what bob holds, alice could run 0.5 tasks, fewer than its 3: nothing to envy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairopt.allocation import Allocation, Optimum
from fairopt.allocation.records import question_of
from fairopt.analysis.explanation import Explanation, Gain, number
from fairopt.analysis.explanation.changes import of_rules
from fairopt.analysis.explanation.gains import gains, prices_of_level
from fairopt.analysis.explanation.of_cluster import blockers_of_cluster
from fairopt.analysis.explanation.optimum import against_optimum
from fairopt.analysis.explanation.queue_gains import gains_of_queue, what_would_help
from fairopt.analysis.explanation.queues import about_queue, queue_in_short, stops_of
from fairopt.analysis.explanation.room import Room
from fairopt.analysis.explanation.sentences import Sentences
from fairopt.analysis.explanation.weights import idle_weight
from fairopt.analysis.properties.stated_rules import with_rules_of_program
from fairopt.analysis.rerun import merged_servers
from fairopt.errors import InvalidInstance
from fairopt.results import plain
from fairopt.solvers.backend import Deadline
from fairopt.validation import check_time_limit, check_whole_number

__all__ = ["explain"]

_MANY = 50  # rows of servers; above this, identical rows are merged


def explain(
    allocation: Allocation,
    user: str | None = None,
    *,
    queue: str | None = None,
    against: str | None = None,
    resolves: int = 6,
    time_limit: float | None = None,
    done: Callable[[str], object] | None = None,
) -> Explanation:
    """Explain what one user gets, what limits it, and what would help.

    An allocation in fractions (``allocation.exact``, with a radius of 0) is explained in fractions, without a tolerance: full resources,
    equal shares, dual prices, and gains. Every change is solved again in fractions, and proved. If the optimum is irrational, the
    explanation is in floats.

    If there are more than 50 rows of servers, identical rows appear as one ("node-1 and 49 like it"), provided that the notion treats them
    alike.

    Parameters
    ----------
    allocation : Allocation
        The result of `solve` or `schedule`, or your own tasks (`fairopt.analysis.rerun.given`).
    user : str, optional
        Or the name of a queue, where no user has it.
    queue : str, optional
        Explain a queue instead: what it holds, what is missing of its guarantees, which limits are reached, what stops its users, what its
        siblings hold, and what would help: a larger limit that stops it (also of a queue above it, and what other queues lend), more
        weight, a larger guarantee, and more of a full resource. A gain is one of all users below it together.
    against : str, optional
        A user to compare with. The default is the user whose holdings, scaled by the weights, would run the most tasks of ``user``: if
        ``user`` envies anybody, it envies this user most.
    resolves : int
        The largest number of changes to solve; with 0, only prices are used. All changes are small: one unit more of a resource on one
        server, or of the weight (a tenth of the present amount if this is below one unit); under time division, one server more; or one
        kind of server that a constraint rules out. One change is the weight, up to two are constraints, the others are capacity.
    time_limit : float, optional
        Seconds for all solves together. A change that is not solved in time says so.
    done : function, optional
        Called with each change when it is solved.

    Raises
    ------
    InvalidInstance
        If the instance has no such user or queue.
    Unsupported
        If an option is out of range.

    Examples
    --------
    >>> import fairopt as fo
    >>> instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["alice", "bob"], servers=["pool"], resources=["cpu", "memory"])
    >>> explanation = explain(fo.solve(instance, "drf"), "alice")
    >>> [(each.server, each.resource, each.used, each.holders) for each in explanation.blockers]
    [('pool', 'cpu', 9.0, (('bob', 6.0),))]
    >>> explanation.to_frame()["by_solving"].round(3).to_dict()
    {'weight 2 instead of 1': 1.154, '+1 cpu on pool': 0.103}

    In fractions:

    >>> explanation = explain(fo.solve(instance, "drf", exact=True), "alice")
    >>> [(each.change, str(each.by_price), str(each.by_solving)) for each in explanation.gains]
    [('weight 2 instead of 1', '3/2', '15/13'), ('+1 cpu on pool', '3/29', '3/29')]
    >>> explanation.blockers[0].price
    Fraction(2, 27)
    """
    if not isinstance(allocation, Allocation):
        kind = type(allocation).__name__
        raise InvalidInstance(f"allocation is {kind}; give an Allocation, as fairopt.solve and fairopt.schedule return it")
    asked = question_of(allocation)
    allocation = with_rules_of_program(allocation, "an explanation does not know it")
    check_whole_number("resolves", resolves, 0)
    check_time_limit(time_limit)
    if (user is None) == (queue is None):
        raise InvalidInstance("give the name of a user, or queue= the name of a queue, and not both")
    names = [each.name for each in allocation.instance.queues]
    if user is not None and user not in allocation.instance.users and user in names:
        user, queue = None, user
    question = plain(
        {
            "allocation": asked, "user": user, "queue": queue, "against": against, "resolves": resolves,
            "time_limit_s": time_limit,
        }
    )  # fmt: skip
    if user is None:
        assert queue is not None
        if against is not None:
            raise InvalidInstance("only users are compared with each other; leave against out, or name a user")
        node = allocation.instance.tree.index(queue)
        below, view = np.flatnonzero(allocation.instance.tree.below[node]), allocation.as_known
        tasks, work = number(view.tasks_per_user[below].sum()), number(view.work[below].sum())
        of_work = "" if allocation.instance.speeds_given is None else "the work of "
        deadline = Deadline(time_limit)
        would = gains_of_queue(allocation, node, resolves=resolves, deadline=deadline, done=done)
        told = (*about_queue(view, node), *idle_weight(allocation, node=node), *what_would_help(would, work, of_work))
        if not isinstance(allocation.question, Optimum):
            told = (*told, against_optimum(allocation, below, deadline))
        return Explanation(None, None, tasks, told, (), would, queue, allocation.instance.units, question, queue_in_short(view, node))
    if allocation.instance.n_servers > _MANY and not allocation.instance.rules:
        allocation = merged_servers(allocation)
    instance = allocation.instance
    n = instance.index(user)
    other = None if against is None else instance.index(against)
    if other == n:
        raise InvalidInstance(f'"{user}" cannot be compared with itself; leave against out, or name another user')
    deadline = Deadline(time_limit)
    view = allocation.as_known
    room = Room(view, n)
    _, there = stops_of(view, n)
    room.helps = room.helps & ~there
    room.cells = [cell for cell in room.cells if not there[cell[0]]]  # a limit of a queue stops it there, whatever else is full
    sentences = Sentences(view, n, room, other, made=allocation)
    stopped = instance.tasks[n] > 0 and not instance.zero_demand[n] and not room.has_all
    prices = prices_of_level(allocation, n)
    of_servers = room.blockers(None if prices is None else prices.table) if stopped else ()
    of_cluster = blockers_of_cluster(view, n) if stopped else ()
    blockers = tuple(sorted((*of_cluster, *of_servers), key=lambda each: not each.bottleneck))
    found: tuple[Gain, ...] = ()
    if stopped and allocation.question is not None:
        cells = sorted(room.cells, key=lambda cell: not room.bottleneck(*cell))
        found = gains(allocation, n, cells, resolves=resolves, deadline=deadline, done=done)
    standing, stops = sentences.standing(), sentences.stops()
    stops = [*of_rules(view, n), *stops]
    told = (*standing, *stops, *sentences.worth(deadline), *sentences.helps(found), *sentences.versus())
    return Explanation(
        user=user,
        against=None if sentences.other is None else instance.users[sentences.other],
        tasks=number(view.tasks_per_user[n]),
        work=None if instance.speeds_given is None else number(view.work[n]),
        sentences=told,
        blockers=blockers,
        gains=found,
        units=instance.units,
        question=question,
        brief=(standing[0], *(stops[:1] or standing[1:2])),
    )
