"""Search for the instance on which a schedule has the largest regret.

The regret of a schedule on one instance says little about another instance. This module searches small instances of whole numbers for the
largest regret against an exact notion. It then shrinks the worst instance: it removes everything that the regret does not need
(`fairopt.analysis.worst_cases.small_instances`). The result can be checked by hand.

It is a search. The instance found proves a **lower bound** on the worst case of instances of that size. If the search finds only small
regrets, this proves nothing.

The search runs in rounds. A round (`fairopt.analysis.worst_cases.local_search`) draws some instances at random, and starts a local search
from the worst of them. One step of the local search changes a few numbers, or swaps two users or servers (their order breaks ties); the
step is taken unless the regret gets smaller. The random numbers of a round depend on the seed and the number of the round, and rounds are
compared in order. So the result is the same with any number of workers, unless a time limit or Ctrl-C ends the search. The search ends
early at a regret of 1, the largest possible.

The reference of the regret is the best allocation of *whole* tasks, if an engine finds it. Against the optimum of divisible tasks, any
schedule has a large regret if a server has room for a task and a half. In every instance, a task of each user fits on some empty server.

In this example, first-fit places the first task of user 1 on the first server where it fits; then user 2 has no room:

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
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, cast, overload

import numpy as np

from fairopt.allocation import Allocation
from fairopt.allocation.exact_answer import as_text
from fairopt.analysis.bounds.worst_in_box import Asked, WorstCaseInBox, worst_in_box
from fairopt.analysis.regrets import Regret
from fairopt.analysis.shortfalls import tasks_in_fractions
from fairopt.analysis.worst_cases.course import Course
from fairopt.analysis.worst_cases.kept import Kept, identity, identity_of_notion
from fairopt.analysis.worst_cases.local_search import Rounds
from fairopt.analysis.worst_cases.objective import MEASURES, Schedule, Subject, objective_of
from fairopt.analysis.worst_cases.small_instances import VARIED, SmallInstances
from fairopt.errors import NoSolution, Unsupported
from fairopt.instance import Instance
from fairopt.instance.fractions import ExactArray
from fairopt.models import NOTIONS, Notion
from fairopt.processes.crew import Crew, check_workers
from fairopt.results import finite, plain, result
from fairopt.show.equality import ComparesItself
from fairopt.solving import notion_of
from fairopt.validation import check_time_limit, check_whole_number
from fairopt.wording import did_you_mean, figure, joined, plural

__all__ = ["MEASURES", "Schedule", "WorstCase", "worst_case"]

_ENDED = {"": "", "time limit": " within the time limit", "interrupted": " before the interruption"}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WorstCase(ComparesItself):
    """The worst instance found, after shrinking.

    Attributes
    ----------
    instance : Instance
        The instance after shrinking. Users, servers and resources are numbered.
    schedule, exact : Allocation
        The schedule of this instance, and its exact allocation.
    regret : Regret
        The regret of the schedule on this instance.
    value : float
        The value of ``measure`` on this instance.
    found : Instance
        The instance before shrinking; ``found_value`` is its value.
    name, measure : str
        The name of the schedule, and one of `MEASURES`.
    tries : int
        Number of instances tried. ``failed`` of them were not solved by any engine (a certificate failed, a time limit was reached), or
        were refused by the schedule or the notion (`InvalidInstance`, such as a user whose tasks are worth 0). Failed instances are
        skipped.
    seed : int
    stopped : str
        "" if the search ran to its end; else "time limit" or "interrupted", and another run may give another result.
    seconds : float
        How long the search took.
    question : mapping
        The arguments of `fairopt.worst_case`, as plain data.
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
    seconds: float = field(default=float("nan"), compare=False)
    question: Mapping[str, Any] = field(default_factory=dict)

    @property
    def proved(self) -> Fraction | None:
        """The value of ``measure`` as a Fraction, if the search was asked to prove it.

        None for measures that are irrational in general, and for ``condition``, which is computed in floats.
        """
        numbers = self.regret.exact or {}
        names = ("largest", "goal") if self.measure == "worst" else (self.measure,)
        return next((numbers[name] for name in names if name in numbers), None)

    @property
    def in_fractions(self) -> tuple[ExactArray, ExactArray] | None:
        """Tasks of the schedule and of the exact allocation as Fractions, (users, servers), which keep every limit in fractions.

        None unless the regret is `proved`, or only its number is computed in floats.
        """
        own, best = tasks_in_fractions(self.schedule), tasks_in_fractions(self.exact)
        return None if self.regret.exact is None or own is None or best is None else (own, best)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: instances in the schema of instance files, Fractions as text."""
        fractions = {} if self.in_fractions is None else dict(zip(("schedule", "exact"), map(as_text, self.in_fractions), strict=True))
        found = {
            "name": self.name,
            "schedule": self.name,  # until 1.0
            "notion": self.regret.notion,
            "measure": self.measure,
            "value": self.value,
            "regret": self.regret.numbers(),
            "instance": self.instance.to_dict(),
            "tasks": {
                "schedule": self.schedule.tasks.tolist(),
                "exact": self.exact.tasks.tolist(),
                **({"in_fractions": fractions} if fractions else {}),
            },
            **({} if self.proved is None else {"exact": str(self.proved)}),
            "found": {"value": self.found_value, "instance": self.found.to_dict()},
            "tries": self.tries,
            "failed": self.failed,
            "seed": self.seed,
            "stopped": self.stopped,
            "time_s": finite(self.seconds),
            "seconds": finite(self.seconds),  # until 1.0
        }
        return result("worst-case", self.question, self.instance.units, found)

    def __repr__(self) -> str:
        what = f"{self.name} against {self.regret.notion}, {'whole' if self.regret.whole else 'divisible'} tasks"
        number = "regret" if self.measure == "worst" else f"regret ({self.measure})"
        value = figure(self.value if self.proved is None else self.proved)
        stopped = f"; stopped: {self.stopped}" if self.stopped else ""
        return f"WorstCase({what}: {number} {value}, the largest of {self.tries:,} tried{stopped})"


_SEARCH: dict[str, Any] = {
    "users": 3, "servers": 2, "resources": 2, "capacities": (8, 16), "demands": (0, 4), "workers": 1, "keep_regret": 0.9, "local": True,
    "backend": "loky", "address": None,
}  # fmt: skip
"""The defaults of what only the search without a cluster takes."""


@overload
def worst_case(
    schedule: Schedule | Notion | type[Notion], notion: str | Notion | type[Notion] | None = ..., *, cluster: Instance, **arguments: Any
) -> WorstCaseInBox: ...
@overload
def worst_case(
    schedule: Schedule, notion: str | Notion | type[Notion] | None = ..., *, cluster: None = ..., **arguments: Any
) -> WorstCase: ...
@overload
def worst_case(
    schedule: Schedule, notion: str | Notion | type[Notion] | None = ..., *, cluster: Instance | None, **arguments: Any
) -> WorstCase | WorstCaseInBox: ...
def worst_case(
    schedule: Schedule | Notion | type[Notion],
    notion: str | Notion | type[Notion] | None = None,
    *,
    users: int = 3,
    servers: int = 2,
    resources: int = 2,
    capacities: tuple[int, int] = (8, 16),
    demands: tuple[int, int] = (0, 4),
    vary: Collection[str] | Mapping[str, Any] = (),
    measure: str | None = None,
    integral: bool | None = None,
    seed: int = 0,
    tries: int = 1000,
    time_limit: float | None = None,
    workers: int = 1,
    backend: str = "loky",
    address: str | None = None,
    jobs: int | None = None,
    keep_regret: float = 0.9,
    keep: float | None = None,
    local: bool = True,
    exact: bool = False,
    cluster: Instance | None = None,
    bound: bool = False,
    gap: float = 1e-3,
    resume: str | Path | None = None,
    where: Sequence[str] = (),
    done: Callable[..., object] | None = None,
    stop: Callable[[], bool] | None = None,
    **options: Any,
) -> WorstCase | WorstCaseInBox:
    """Search small instances for the largest regret of a schedule against an exact notion, and shrink the worst.

    With ``cluster``, the instances are those of a box instead: the topology is given, and ``vary`` says which data vary between which
    numbers. With ``bound=True``, no instance of the box has a larger regret than the result's ``bound``.

    Parameters
    ----------
    schedule : str, mapping or function
        "criterion:placement", such as "drfh:best-fit", with options "drfh:best-fit:metric=cosine"; the same as a mapping of the
        arguments of `fairopt.schedule`; or a function of an Instance that returns an Allocation, or tasks (users, servers). With
        ``cluster``, a notion such as "uniform", too: its exact answer is held to the other notion.
    notion : str or Notion, optional
        The notion of the exact allocation; the default is the criterion of the schedule.
    users, servers, resources : int
        Size of the instances, before shrinking. A server is a row.
    capacities, demands : (int, int)
        Smallest and largest number drawn. Shrinking does not go below the smallest number. By default, every server has room for two tasks
        of any user. If a server may have room for one task or none, tasks of one user can take the only places of another user. Then any
        schedule can reach a regret of 1, so the search does not distinguish schedules.
    vary : list of "weights", "constraints", "counts", "tasks", "demands-by-server", "speeds"
        What else is drawn: weights of 1 to 5; servers where a user may not run; rows of 1 to 3 servers; users with 1 to 5 tasks; other
        demands of a user on each server; speeds of 1 to 4 of a user on each server. With speeds, regret is in work. With ``cluster``: a
        mapping from "demands", "weights", "tasks", "capacities" or "speeds" to the smallest and the largest number, or array in the shape
        of the argument; all else is as in the cluster.
    measure : one of `MEASURES`, optional
        The default is "worst", and with ``bound`` "level". A bound is known for "level", "user" (the largest 1 - own / exact over the
        users who have something in the exact allocation) and "total".
    integral : bool, optional
        Whether the reference is of whole tasks. The default is True, unless no engine finds that optimum or the heuristic divides tasks.
    seed : int
    tries : int
        Instances to try, in rounds of 250.
    time_limit : float, optional
        Seconds for the search. Shrinking follows, and takes a few seconds more.
    workers, backend, address
        Workers, as `fairopt.study` takes them; the default is this process alone. A round that ends its worker, also alone, counts as
        instances that were not solved.
    keep_regret : float
        Shrinking keeps at least this part of the largest regret found, > 0 and <= 1.
    jobs, keep : optional
        The former names of ``workers`` and ``keep_regret``.
    local : bool
        Whether to use local search; if False, all instances are drawn at random.
    exact : bool
        Prove the regret of the instance in fractions once it is found: the schedule is replayed, and the reference solved, in fractions
        (of whole tasks: its limits are checked in fractions). ``regret.exact`` has the numbers. Each number is a proof: what the schedule
        does, and a better allocation beside it; that no allocation is better still is branch and cut's word, where tasks are whole.
    cluster : Instance, optional
        The topology. Sizes and ranges of random instances, workers, ``keep_regret`` and ``local`` then do not apply.
    bound : bool
        Compute a bound, too. It is known for the heuristics "uniform", "per-server-drf", "efficiency", the leximin notions, their "pop"
        and "geometric-binning", and greedy schedules of a few tasks, against the leximin notions, on clusters of servers, demands,
        weights, tasks, speeds and eligibility; and where only tasks and capacities vary, for the largest total, its "pop" and its
        "pinning", against "efficiency", on any cluster without rules (`fairopt.analysis.bounds`).
    gap : float
        The search for a bound ends once the bound is at most this much above the largest regret found.
    resume : path, optional
        A folder where the state of the search is kept, from the first instance on. A search that is killed loses at most 10 seconds; the
        next call with the same question goes on to the same answer. ``tries`` may be larger then. The schedule is named by a text.
    where : list of str
        Linear rules on the numbers of ``vary``, such as "tasks[a] + tasks[b] <= 12" or "demands['lab/a', gpu] >= 2 * demands[b, gpu]";
        also ``weights[user]``, ``speeds[user, server]`` and ``capacities[server, resource]``. ``'*'`` in the place of a name adds the
        numbers of all.
    done : function of an int and a float, optional
        Called with the number of instances tried since the last call, and with the largest regret so far; with ``cluster``, with the
        bound as a third argument (NaN without one).
    stop : function, optional
        Is asked again and again (with several workers every few seconds) if that should be the end, as Ctrl-C is: the result is then
        the worst so far.
    **options
        Options of the notion.

    Returns
    -------
    WorstCase or WorstCaseInBox
        Among instances of equal regret, the search prefers smaller numbers. The second with ``cluster``.

    Raises
    ------
    InvalidInstance, Unsupported
        If an argument is invalid, the schedule and the notion do not fit each other, or a function returns no valid allocation. If no bound
        is known, or the box is empty or has no end.
    NoSolution
        If the search ended before it tried an instance, or no instance was solved.
    """
    began = time.perf_counter()
    workers = workers if jobs is None else jobs
    keep_regret = keep_regret if keep is None else keep
    if cluster is not None:
        given = {"users": users, "servers": servers, "resources": resources, "capacities": capacities, "demands": demands}
        _check_unused(given | {"workers": workers, "keep_regret": keep_regret, "local": local, "backend": backend, "address": address})
        asked = Asked(measure, bound, gap, integral, seed, tries, time_limit, exact, None if resume is None else Path(resume), where)
        return worst_in_box(schedule, notion, cluster, cast(Any, vary), asked, done, stop, **options)
    if bound or where or isinstance(vary, Mapping):
        raise Unsupported(
            "bound=True, where= and ranges in vary= are for the instances of one cluster; give it, such as cluster=instance and "
            'vary={"demands": (1, 2)}'
        )
    measure = measure or "worst"
    subject = Subject.of(schedule, solves=False)
    name, run, criterion = subject.name, subject.run, subject.criterion
    if exact and subject.baseline is not None:
        raise Unsupported(f'"{name}" computes in floats, and nothing is proved of it in fractions; leave exact out')
    integral = False if integral is None and subject.is_divisible else integral
    if notion is None and (criterion is None or (isinstance(criterion, str) and criterion not in NOTIONS)):
        raise Unsupported(f'name the notion that "{name}" is measured against, such as notion="drfh"')
    chosen = notion_of(criterion if notion is None else notion, **options)
    check_workers(workers, backend, address)
    _check(users, servers, resources, capacities, demands, vary, measure, seed, tries, time_limit, keep_regret)
    size = SmallInstances(users, servers, resources, (capacities[0], capacities[1]), (demands[0], demands[1]), tuple(vary))
    objective = objective_of(run, chosen, measure, integral, size)
    deadline = None if time_limit is None else time.time() + time_limit  # wall clock: all processes share it
    course = Course(Rounds(objective, size, seed, local, deadline), tries)
    asked_of_file = {
        "search": "among random instances",
        "schedule": schedule if resume is None else identity(schedule), "users": users, "servers": servers, "resources": resources,
        "capacities": capacities, "demands": demands, "vary": sorted(vary), "measure": measure, "whole tasks": objective.whole,
        "seed": seed, "local": local, **identity_of_notion(notion, chosen, options),
    }  # fmt: skip
    kept, told = Kept(resume, "search.npz", asked_of_file, course), 0

    def watch() -> None:
        nonlocal told
        if done is not None and course.tried > told:
            done(course.tried - told, course.value)
            told = course.tried
        kept.offer()
        if stop is not None and stop():
            raise KeyboardInterrupt

    def keeps(instance: Instance) -> bool:
        return size.holds(instance) and objective.keeps(instance, keep_regret * course.value)

    small: Instance | None = None
    with kept:
        try:
            with Crew(workers, backend, address) as crew:
                course.run(crew, watch)
        except NoSolution as error:
            raise NoSolution(f"{error}; {kept.hint}") from error
        if course.best is not None and course.stopped != "interrupted":
            small = course.shrink(keep_regret, keeps, watch)
    tried, failed, best = course.tried, course.failed, course.best
    if best is None:
        raise NoSolution(
            f"of {plural(tried, 'instance')} none was solved{_ENDED[course.stopped]}; give more time, or ask for a smaller size"
        )
    small = best.instance if small is None else small
    small = small.replace(users=None, servers=None, resources=None)  # numbered anew
    answer = objective.answer(small)
    assert answer is not None
    allocation, best_allocation, found = objective.in_fractions(small, answer) if exact else answer
    question = {
        "schedule": name, "notion": chosen, "users": users, "servers": servers, "resources": resources, "capacities": capacities,
        "demands": demands, "vary": vary, "measure": measure, "integral": integral, "seed": seed, "tries": tries,
        "time_limit_s": time_limit, "keep_regret": keep_regret, "local": local, "exact": exact,
    }  # fmt: skip
    return WorstCase(
        instance=small,
        schedule=allocation,
        exact=best_allocation,
        regret=found,
        value=objective.value(answer),
        found=best.instance,
        found_value=best.value,
        name=name,
        measure=measure,
        tries=tried,
        failed=failed,
        seed=seed,
        stopped=course.stopped,
        seconds=time.perf_counter() - began,
        question=plain(question),
    )


def _check_unused(given: Mapping[str, Any]) -> None:
    """Refuse what does not apply with a cluster, where it is given."""
    if there := [word for word, value in given.items() if value != _SEARCH[word]]:
        raise Unsupported(
            f"with a cluster, leave {joined(there)} out: only a search among random instances takes {'them' if len(there) > 1 else 'it'}"
        )


# What is asked for ---------------------------------------------------------------------------------------------------------------


def _check(*given: Any) -> None:
    users, servers, resources, capacities, demands, vary, measure, seed, tries, time_limit, keep_regret = given
    if isinstance(vary, str):
        raise Unsupported(f'vary is the word "{vary}"; give a list, such as ["{vary if vary in VARIED else VARIED[0]}"]')
    for word, value, least in (
        *(("users", users, 1), ("servers", servers, 1), ("resources", resources, 1)),
        *(("tries", tries, 1), ("seed", seed, 0)),
    ):
        check_whole_number(word, value, least)
    check_time_limit(time_limit)
    if not (isinstance(keep_regret, int | float) and 0 < keep_regret <= 1):
        raise Unsupported(f"keep_regret is {keep_regret!r}; give the part of the regret that a smaller instance must keep, > 0 and <= 1")
    for word, pair, least in (("capacities", capacities, 1), ("demands", demands, 0)):
        numbers_given = isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(value, int | np.integer) for value in pair)
        if not (numbers_given and least <= pair[0] <= pair[1] >= 1):
            raise Unsupported(f"{word} is {pair!r}; give the smallest and the largest, whole numbers >= {least}, such as (8, 16)")
    for word in vary:
        if word not in VARIED:
            raise Unsupported(f'vary is "{word}"{did_you_mean(word, VARIED)}; give any of {", ".join(VARIED)}')
    if measure not in MEASURES:
        raise Unsupported(f'there is no measure "{measure}"{did_you_mean(measure, MEASURES)}; there are {", ".join(MEASURES)}')
