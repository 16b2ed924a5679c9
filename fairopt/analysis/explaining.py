"""Why does a user get only this much, and what would help? In a few sentences, from the allocation itself.

What can be said depends on what made the allocation:

* an exact one: the measure of its tasks (`Notion.describe_measure`), its level and who shares it, what leaves it no room and who holds that
  (`fairopt.analysis.explanation.room`), what more capacity, more weight or fewer constraints would give
  (`fairopt.analysis.explanation.gains`: by price, and by solving again), and what it could run with what another user holds
  (`fairopt.analysis.measures`);
* a schedule: the same without levels and prices, and what the exact optimum of the same share would give;
* tasks that somebody else chose: what leaves no room and who holds it, and what an exact optimum would give.

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["alice", "bob"], servers=["pool"], resources=["cpu", "memory"])
>>> explain(fo.solve(instance, "drf"), "alice")
alice runs 3 tasks in the exact allocation of drf, on pool.
It is measured by its share of the server: a task takes 22.2 % of the memory, its dominant resource (11.1 % of the cpu).
Its share is 66.7 %; bob stops at the same level, nobody stops lower or higher.
What stops it: nothing is left of cpu on pool.
Who has that cpu: bob 66.7 %, alice itself 33.3 %.
What would help: +1 cpu on pool would give it 0.103 tasks more (+3.45 %).
Weight 2 instead of 1 would give it 1.15 tasks more (+38.5 %); up to 1.5 by its price.
bob has 2 tasks. With what bob holds, alice could run 0.5 tasks, fewer than its 3: nothing to envy.
"""

from __future__ import annotations

from collections.abc import Callable

from fairopt.allocation import Allocation
from fairopt.analysis.explanation import Explanation, Gain
from fairopt.analysis.explanation.gains import gains
from fairopt.analysis.explanation.room import Room
from fairopt.analysis.explanation.sentences import Sentences
from fairopt.analysis.rerun import merged_servers
from fairopt.errors import InvalidInstance
from fairopt.solvers.backend import Deadline
from fairopt.validation import check_time_limit, check_whole_number

__all__ = ["explain"]

_MANY = 50  # rows of servers; of more, identical ones are told as one


def explain(
    allocation: Allocation,
    user: str,
    *,
    against: str | None = None,
    resolves: int = 6,
    time_limit: float | None = None,
    done: Callable[[str], object] | None = None,
) -> Explanation:
    """Explain what one user gets, what stops it, and what would help.

    Of more than 50 rows of servers, identical ones are told as one ("node-1 and 49 like it"), where the notion treats them alike.

    Parameters
    ----------
    allocation : Allocation
        What `solve` or `schedule` returned, or tasks of your own (`fairopt.analysis.rerun.given`).
    user : str
    against : str, optional
        A user to compare with. The default is the one with whose holdings, scaled by the weights, it could run most tasks, which is
        whom it would envy first.
    resolves : int
        How many changes are solved, at most; 0 for none, and what prices say alone. All of them are small: one unit of a resource on one
        server or of the weight (a tenth of what there is where that is less than a unit), under time division one more server, and one
        kind of server that a constraint rules out. One is the weight, up to two are constraints, the others capacity.
    time_limit : float, optional
        Seconds, of all that is solved here together. What is not solved by then says so.
    done : function, optional
        Called with each change when it is solved.

    Raises
    ------
    InvalidInstance
        For a user that the instance does not have.
    Unsupported
        For an option out of its range.

    Examples
    --------
    >>> import fairopt as fo
    >>> instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["alice", "bob"], servers=["pool"], resources=["cpu", "memory"])
    >>> explanation = explain(fo.solve(instance, "drf"), "alice")
    >>> [(each.server, each.resource, each.used, each.holders) for each in explanation.blockers]
    [('pool', 'cpu', 9.0, (('bob', 6.0),))]
    >>> explanation.to_frame()["by_solving"].round(3).to_dict()
    {'weight 2 instead of 1': 1.154, '+1 cpu on pool': 0.103}
    """
    if not isinstance(allocation, Allocation):
        kind = type(allocation).__name__
        raise InvalidInstance(f"allocation is {kind}; give an Allocation, as fairopt.solve and fairopt.schedule return it")
    check_whole_number("resolves", resolves, 0)
    check_time_limit(time_limit)
    if allocation.instance.n_servers > _MANY:
        allocation = merged_servers(allocation)
    instance = allocation.instance
    n = instance.index(user)
    other = None if against is None else instance.index(against)
    if other == n:
        raise InvalidInstance(f'"{user}" cannot be compared with itself; leave against out, or name another user')
    deadline = Deadline(time_limit)
    room = Room(allocation, n)
    sentences = Sentences(allocation, n, room, other)
    stopped = instance.tasks[n] > 0 and not instance.zero_demand[n] and not allocation.complete[n]
    blockers = room.blockers() if stopped else ()
    found: tuple[Gain, ...] = ()
    if stopped and allocation.question is not None:
        cells = sorted(room.cells, key=lambda cell: not room.bottleneck(*cell))
        found = gains(allocation, n, cells, resolves=resolves, deadline=deadline, done=done)
    told = (*sentences.standing(), *sentences.stops(), *sentences.worth(deadline), *sentences.helps(found), *sentences.versus())
    return Explanation(
        user=user,
        against=None if sentences.other is None else instance.users[sentences.other],
        tasks=float(allocation.tasks_per_user[n]),
        sentences=told,
        blockers=blockers,
        gains=found,
    )
