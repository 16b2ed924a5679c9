"""A search for the instance on which a schedule is worst: how bad can it be?

The regret of a schedule on one instance says little of the next. This searches small instances of whole numbers for the largest regret
against an exact notion, and then takes out of the worst one everything that is not needed to be bad
(`fairopt.analysis.worst_cases.small_instances`). What comes back can be checked by hand.

It is a search: what it finds is a **lower bound** of the worst case of instances of that size, proved by the instance itself, and it
proves nothing if it finds little.

The search is in rounds. A round (`fairopt.analysis.worst_cases.local_search`) draws some at random and goes on from the worst of them by
local search: it
changes a few numbers, or swaps two users or servers (their order breaks ties), and moves there unless the regret is smaller. The random
numbers of a round come from the seed and the number of the round, and rounds are compared in order: the result is the same with any
number of workers, unless a time limit or Ctrl-C ends the search. Where no regret can be larger (1), it ends by itself.

The regret is against the best allocation of *whole* tasks, wherever an engine finds it: against the optimum of divisible tasks any schedule
is bad where a server has room for a task and a half. In every instance each user's task fits on some empty server.

First-fit puts the first task of user 1 where it fits first, and there is no room for user 2:

>>> worst = worst_case("drfh:first-fit", "drfh", users=2, servers=2, resources=1, capacities=(1, 4), tries=50)
>>> worst
WorstCase(drfh:first-fit against drfh, whole tasks: regret 1, the largest of 13 tried)
>>> worst.instance.capacities.tolist(), worst.instance.demands.tolist()
([[4.0], [1.0]], [[1.0], [4.0]])
>>> worst.schedule.tasks_per_user, worst.exact.tasks_per_user
(array([5., 0.]), array([1., 1.]))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.regrets import Regret
from fairopt.analysis.worst_cases.local_search import Candidate, rounds
from fairopt.analysis.worst_cases.objective import EQUAL, MEASURES, Schedule, objective_of, scheduler
from fairopt.analysis.worst_cases.small_instances import VARIED, SmallInstances, shrink
from fairopt.errors import NoSolution, Unsupported
from fairopt.instance import Instance
from fairopt.models import NOTIONS, Notion
from fairopt.solving import notion_of
from fairopt.validation import check_jobs, check_time_limit, check_whole_number
from fairopt.wording import did_you_mean, figure, plural

__all__ = ["MEASURES", "Schedule", "WorstCase", "worst_case"]

_ENDED = {"": "", "time limit": " within the time limit", "interrupted": " before the interruption"}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WorstCase:
    """The worst instance that was found, made small.

    Attributes
    ----------
    instance : Instance
        After shrinking. Users, servers and resources are numbered.
    schedule, exact : Allocation
        What the schedule makes of it, and the exact allocation.
    regret : Regret
        Of the schedule, on this instance.
    value : float
        The measure that was searched for.
    found : Instance
        Before shrinking; ``found_value`` is its value.
    name, measure : str
        The schedule by name, and one of `MEASURES`.
    tries : int
        Instances tried. ``failed`` is how many of them no engine solved (a certificate that failed, a time limit) or the schedule or notion
        refused (`InvalidInstance`, such as a user whose task is worth nothing to it); they count as not bad.
    seed : int
    stopped : str
        "" if the search ran to its end; else "time limit" or "interrupted": another run may then stop elsewhere.
    """

    instance: Instance
    schedule: Allocation
    exact: Allocation
    regret: Regret
    value: float
    found: Instance
    found_value: float
    name: str
    measure: str
    tries: int
    failed: int
    seed: int
    stopped: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; the instances in the schema of instance files."""
        return {
            "schedule": self.name,
            "notion": self.regret.notion,
            "measure": self.measure,
            "value": self.value,
            "regret": self.regret.to_dict(),
            "instance": self.instance.to_dict(),
            "tasks": {"schedule": self.schedule.tasks.tolist(), "exact": self.exact.tasks.tolist()},
            "found": {"value": self.found_value, "instance": self.found.to_dict()},
            "tries": self.tries,
            "failed": self.failed,
            "seed": self.seed,
            "stopped": self.stopped,
        }

    def __repr__(self) -> str:
        what = f"{self.name} against {self.regret.notion}, {'whole' if self.regret.whole else 'divisible'} tasks"
        number = "regret" if self.measure == "worst" else f"regret ({self.measure})"
        stopped = f"; stopped: {self.stopped}" if self.stopped else ""
        return f"WorstCase({what}: {number} {figure(self.value)}, the largest of {self.tries:,} tried{stopped})"


def worst_case(
    schedule: Schedule,
    notion: str | Notion | type[Notion] | None = None,
    *,
    users: int = 3,
    servers: int = 2,
    resources: int = 2,
    capacities: tuple[int, int] = (8, 16),
    demands: tuple[int, int] = (0, 4),
    vary: Collection[str] = (),
    measure: str = "worst",
    integral: bool | None = None,
    seed: int = 0,
    tries: int = 1000,
    time_limit: float | None = None,
    jobs: int = 1,
    keep: float = 0.9,
    local: bool = True,
    done: Callable[[int, float], object] | None = None,
    stop: Callable[[], bool] | None = None,
    **options: Any,
) -> WorstCase:
    """Search small instances for the largest regret of a schedule against an exact notion, and shrink the worst.

    Parameters
    ----------
    schedule : str, mapping or function
        "criterion:placement", such as "drfh:best-fit", with options "drfh:best-fit:metric=cosine"; the same as a mapping of the
        arguments of `fairopt.schedule`; or a function of an Instance that returns an Allocation, or tasks (users, servers).
    notion : str or Notion, optional
        What it is measured against; the default is the criterion of the schedule.
    users, servers, resources : int
        Size of the instances, before shrinking. A server is a row.
    capacities, demands : (int, int)
        Smallest and largest number drawn. Shrinking goes no lower than the smallest either. By default every server has room for two tasks
        of anybody. Where it has for one, or none, the worst is soon that the tasks of one user take the only places for another's: regret
        1, of which any schedule is capable (with capacities (4, 12), best-fit after 60 instances), and which tells no two of them apart.
    vary : of "weights", "constraints", "counts", "tasks"
        What else instances have: weights 1 to 5; servers where a user may not run; rows of 1 to 3 servers; users with 1 to 5 tasks.
    measure : one of `MEASURES`
    integral : bool, optional
        Against the best allocation of whole tasks, or of divisible ones. The default is whole tasks, unless no engine finds that optimum.
    seed : int
    tries : int
        Instances to try, in rounds of 250.
    time_limit : float, optional
        Seconds, of the search. The shrinking that follows takes a few more.
    jobs : int
        Worker processes; -1 for one on each core.
    keep : float
        Shrink as long as the regret is at least this part of the largest that was found, > 0 and <= 1.
    local : bool
        False is a search at random.
    done : function of an int and a float, optional
        Is told of how many more instances were tried, and of the largest regret so far.
    stop : function, optional
        Is asked again and again (with several workers after every round) if that should be the end, as Ctrl-C is: the result is then
        the worst so far.
    **options
        Of the notion.

    Returns
    -------
    WorstCase
        Of instances of the same regret, a smaller one.

    Raises
    ------
    InvalidInstance, Unsupported
        For arguments, schedules and notions that do not fit each other, and for a function that returns what is not an allocation.
    NoSolution
        If nothing was tried before the end, or no instance was solved.
    """
    name, run, criterion = scheduler(schedule)
    if notion is None and (criterion is None or (isinstance(criterion, str) and criterion not in NOTIONS)):
        raise Unsupported(f'name the notion that "{name}" is measured against, such as worst_case(schedule, "drfh")')
    chosen = notion_of(criterion if notion is None else notion, **options)
    _check(users, servers, resources, capacities, demands, vary, measure, seed, tries, time_limit, jobs, keep)
    size = SmallInstances(users, servers, resources, (capacities[0], capacities[1]), (demands[0], demands[1]), tuple(vary))
    objective = objective_of(run, chosen, measure, integral, size)
    deadline = None if time_limit is None else time.time() + time_limit  # the clock that processes share

    def halt() -> None:
        if stop is not None and stop():
            raise KeyboardInterrupt

    best: Candidate | None = None
    tried = failed = 0
    stopped = ""
    try:
        for round_ in rounds(objective, size, seed, tries, local, deadline, jobs, done, halt):
            tried, failed, stopped = tried + round_.tries, failed + round_.failed, round_.stopped
            if round_.best is not None and (best is None or round_.best.key > best.key):
                best = round_.best
            if jobs != 1 and done is not None:
                done(round_.tries, 0.0 if best is None else best.value)
            if not stopped:
                halt()
            if stopped or (best is not None and best.value >= 1 - EQUAL):
                break
    except KeyboardInterrupt:
        stopped = "interrupted"
    if best is None:
        raise NoSolution(f"of {plural(tried, 'instance')} none was solved{_ENDED[stopped]}; give more time, or ask for a smaller size")
    small, least = best.instance, keep * best.value

    def keeps(instance: Instance) -> bool:
        halt()
        return size.holds(instance) and objective.keeps(instance, least)

    try:
        for smaller in shrink(best.instance, keeps) if stopped != "interrupted" else ():
            small = smaller
    except KeyboardInterrupt:
        stopped = "interrupted"
    small = small.replace(users=None, servers=None, resources=None)  # numbered anew
    answer = objective.answer(small)
    assert answer is not None
    allocation, exact, found = answer
    return WorstCase(
        instance=small,
        schedule=allocation,
        exact=exact,
        regret=found,
        value=objective.value(answer),
        found=best.instance,
        found_value=best.value,
        name=name,
        measure=measure,
        tries=tried,
        failed=failed,
        seed=seed,
        stopped=stopped,
    )


# What is asked for ---------------------------------------------------------------------------------------------------------------


def _check(*given: Any) -> None:
    users, servers, resources, capacities, demands, vary, measure, seed, tries, time_limit, jobs, keep = given
    if isinstance(vary, str):
        raise Unsupported(f'vary is the word "{vary}"; give a list, such as ["{vary if vary in VARIED else VARIED[0]}"]')
    for word, value, least in (
        *(("users", users, 1), ("servers", servers, 1), ("resources", resources, 1)),
        *(("tries", tries, 1), ("seed", seed, 0)),
    ):
        check_whole_number(word, value, least)
    check_jobs(jobs)
    check_time_limit(time_limit)
    if not (isinstance(keep, int | float) and 0 < keep <= 1):
        raise Unsupported(f"keep is {keep!r}; give the part of the regret that a smaller instance must keep, > 0 and <= 1")
    for word, pair, least in (("capacities", capacities, 1), ("demands", demands, 0)):
        numbers_given = isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(value, int | np.integer) for value in pair)
        if not (numbers_given and least <= pair[0] <= pair[1] >= 1):
            raise Unsupported(f"{word} is {pair!r}; give the smallest and the largest, whole numbers >= {least}, such as (8, 16)")
    for word in vary:
        if word not in VARIED:
            raise Unsupported(f'vary cannot be "{word}"{did_you_mean(word, VARIED)}; use any of {", ".join(VARIED)}')
    if measure not in MEASURES:
        raise Unsupported(f'there is no measure "{measure}"{did_you_mean(measure, MEASURES)}; there are {", ".join(MEASURES)}')
