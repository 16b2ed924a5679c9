"""Strategy-proofness: no user can run more of its true tasks by a lie.

This is a *search*. A lie that pays refutes the property; if none is found, this proves nothing.

A liar n declares other demands (single entries up or down, 0 of a resource, more of a resource that is not dominant, or all scaled), hides
servers, claims servers where it may not run, or declares fewer or more tasks. If the instance has rates, n declares other rates. Where
demands or speeds differ by server, n declares other demands on servers of one kind, or other speeds. n never declares another parallelism.
The notion or schedule then runs again. If d' are the declared demands, n holds x'[n,i] d'[n,i,:] on server i. With that, n can run

    sum over the servers i where n may run of  x'[n,i] min_r d'[n,i,r] / d[n,i,r],  under division of time x'[n,i] gamma[n,i] / gamma'[n,i],

of its true tasks: at most T[n], and whole tasks if the allocation is of whole tasks. Where there are speeds, it is the work that counts. A
user with all its tasks where they do most has no reason to lie. Under a leximin or an alpha-fair optimum, several placements x' may be
optimal. A lie pays if it pays under one of them; its gain is the most, and the witness says what n runs at least
(`fairopt.analysis.properties.best_placement`).

Systematic lies are tried first; if there are too many, some are chosen at random. A local search with decreasing steps follows, around the
best lies. ``effort`` is the number of lies tried in all; a few more are tried to write the best lie with fewer digits. The same seed tries
the same lies with any number of workers, unless the search reaches its time limit.

*Queues lie too.* In a tree of queues a queue with several users may declare for all of them: more or less of a resource, all demands
scaled, or one user without tasks. A quarter of the effort goes to such lies. Each lie of a user is also a lie of every queue that the user
is below. A lie pays a queue if its users, with what they are given together, can run as much of their true tasks as without the lie, each
of them, and some can run more (`fairopt.analysis.properties.siblings`). Whole tasks of queues are not judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from fairopt.allocation import Optimum
from fairopt.analysis.properties.best_placement import best_placement
from fairopt.analysis.properties.case import Answered, Case, quietly, unanswered
from fairopt.analysis.properties.lies import Joint, Lie, lie_about
from fairopt.analysis.properties.siblings import Child, Families, named_child
from fairopt.analysis.properties.verdict import Verdict, Witness, does_not_apply, violated
from fairopt.analysis.rerun import rerun
from fairopt.errors import FairoptError
from fairopt.instance import BoolArray, FloatArray, Instance, safe_ratio
from fairopt.instance.fractions import fractions_of, objects
from fairopt.instance.tolerances import FITS, NOTHING
from fairopt.wording import figure, plural

__all__ = ["NAME", "check"]

NAME = "strategy-proofness"
_FACTORS = (0.0, 0.5, 0.8, 1.25, 2.0)
_SYSTEMATIC = 0.6  # of the effort
_ROUND = 4  # lies in one round of the local search
_BEST = 2  # the best lies, from which a round starts
_STEP = (0.5, 0.01)  # first and last step of the local search, in logarithms of the declared numbers
_OF_QUEUES = 4  # one part in so many of the effort goes to lies of queues
_DIGITS = 4  # of what is declared, in the local search in fractions
_SAME_GAIN = 7  # digits of a part of what a user could run alone: gains that differ by rounding start the same search
_AS_GOOD = 0.999  # part of the largest gain that a lie with fewer digits must reach


def check(case: Case) -> Verdict:
    """Search for a lie that pays."""
    allocation = case.allocation
    if allocation.question is None:
        return does_not_apply(NAME, "Does not apply: nothing says how the allocation was made, so no lie can be tried.")
    if case.whole and case.instance.limited.any():
        return does_not_apply(
            NAME, "Does not apply: with limited parallelism, the whole tasks that a user runs with its resources are not unique."
        )
    liars = case.members[~case.complete[case.members]]
    if not liars.size:
        return Verdict(NAME, True, 0.0, "Every user has all its tasks, so no lie can gain anything.", searched=0)
    search = _Search(case)
    search.try_all(search.systematic(liars))
    search.local()
    search.rounded()
    search.try_all(search.of_queues())
    if search.tried == 0:
        return does_not_apply(NAME, f"Undecided: no lie could be tried{f' ({search.failed})' if search.failed else ''}.", 0)
    paid, of_queue = search.paid(), search.paid_to_a_queue()
    lies = f"{plural(search.tried, 'lie')} tried, seed {case.seed}"
    ended = f", until the search reached {case.ended}" if search.late else ""
    if of_queue is not None and (not paid or of_queue[0] > paid[0][0] * (1 + NOTHING)):
        return _of_queue(case, search, *of_queue, f"the best of {lies}{ended}")
    if not paid:
        statement = f"No profitable lie found by {lies}{ended}: a search, not a proof."
        return Verdict(NAME, True, 0.0, statement, searched=search.tried, not_found=f"no lie found ({search.tried:,} tried)")
    gain, lie = paid[0]
    answer, _ = _ask(case, None, lie)
    assert not isinstance(answer, FairoptError)
    honest = case.value[lie.n]
    of_its_own = f"{figure(honest + gain, 6)} of its own instead of {figure(honest, 6)}"
    if case.instance.speeds_given is not None:
        of_its_own = f"{case.amount(honest + gain)} of its own instead of {figure(honest, 6)}"
    witness = Witness(
        f"{case.name(lie.n)} says that {lie.words(case.instance)}. It is then given {plural(answer[lie.n].sum(), 'task')} as declared, and "
        f"with their resources runs {of_its_own}.{_at_least(case, search, lie, honest + gain)}",
        (case.instance.users[lie.n],),
        tuple(case.instance.servers[i] for i in np.flatnonzero(answer[lie.n])),
        tasks=answer,
        instance=lie.told(case.instance),
    )
    return violated(NAME, gain, f"A lie pays: the best of {lies}{ended}.", witness, search.tried)


def _at_least(case: Case, search: _Search, lie: Lie, most: Any) -> str:
    """Say what the liar runs under the worst optimal placement, where that is less than the most."""
    answer, _ = _ask(case, None, lie, worst=True)
    assert not isinstance(answer, FairoptError)
    least = search.runs(lie, answer)
    if least >= most - case.slack[lie.n]:
        return ""
    return f" Other placements are as good under the notion, and with the worst of them it runs {figure(least, 6)}."


def _of_queue(case: Case, search: _Search, gain: Any, lie: Lie | Joint, node: int, of: str) -> Verdict:
    """Return the verdict on a lie that pays a queue."""
    (answer, _), queue = _ask(case, None, lie), search.families.queue(node)
    assert not isinstance(answer, FairoptError)
    said = lie.said if isinstance(lie, Joint) else f"says of {case.name(lie.n)} that {lie.words(case.instance)}"
    honest = search.families.value(queue)
    witness = Witness(
        f"{named_child(case, queue, first=True)} {said}. With what they are then given, its users run {figure(honest + gain, 6)} of their "
        f"own tasks instead of {figure(honest, 6)}, and none of them runs less.",
        tuple(case.instance.users[n] for n in queue.users),
        tasks=answer,
        instance=lie.told(case.instance),
    )
    return violated(NAME, gain, f"A lie pays a queue: {of}.", witness, search.tried)


class _Search:
    """The lies tried so far, and what each gained."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.rng = np.random.default_rng([case.seed, 0x11E])
        self.end = case.deadline(again=True)
        self.tried, self.failed, self.late = 0, "", False
        self.found: list[tuple[Any, Lie]] = []
        self.families = Families(case)
        self.queues = (
            []
            if case.whole
            else [queue for queue in map(self.families.queue, range(1, case.instance.tree.n_nodes)) if queue.users.size > 1]
        )
        self.effort = case.effort - (case.effort // _OF_QUEUES if self.queues else 0)
        self.found_of_queues: list[tuple[Any, Lie | Joint, int]] = []

    def try_all(self, lies: Sequence[Lie | Joint]) -> None:
        """Make the allocation again with each lie."""
        case = self.case
        crew = case.crew
        at_once = 1 if crew.alone else 8 * crew.size
        for first in range(0, len(lies), at_once):
            if self.end.left == 0.0:
                self.late = True
                return
            some = lies[first : first + at_once]
            for lie, (answer, work) in zip(some, crew.map(partial(_ask, case, self.end.seconds_left), some, unanswered), strict=True):
                if self.end.is_spent:  # as with any other number of workers
                    self.late = True
                    return
                self.end.spend(work)
                if isinstance(answer, FairoptError):
                    self.failed = str(answer)
                    continue
                self.tried += 1
                if isinstance(lie, Lie):
                    self.found.append((self.runs(lie, answer) - case.value[lie.n], lie))
                self._judge_queues(lie, answer)

    def runs(self, lie: Lie, answer: FloatArray) -> Any:
        """Return the worth of the true tasks that the liar can run."""
        case, instance, n = self.case, self.case.instance, lie.n
        given, true = answer[n], _true_tasks(case, lie)
        runs = np.where(given > 0, given * np.where(given > 0, true, 0), 0)
        if case.whole:  # in a row of several servers, the tasks of each server are unknown: round task by task, the lower bound
            runs = np.where(instance.counts == 1, _whole(runs), given * _whole(true))
        table = np.zeros_like(case.allocation.tasks)
        table[n] = runs
        return case.at_most(table)[n]

    def _judge_queues(self, lie: Lie | Joint, answer: FloatArray) -> None:
        """Note what each queue gains whose users lie."""
        told, families = None, self.families
        for queue in self.queues:
            if (isinstance(lie, Joint) and lie.node == queue.node) or (
                isinstance(lie, Lie) and self.case.instance.tree.below[queue.node, lie.n]
            ):
                told = told or _told(self.case, lie)
                gain = families.gain(queue, families.of_users(queue.users, answer, told))
                if gain > families.slack(queue):
                    self.found_of_queues.append((gain, lie, queue.node))

    def paid_to_a_queue(self) -> tuple[Any, Lie | Joint, int] | None:
        """Return the best lie that paid a queue."""
        return max(self.found_of_queues, key=lambda found: found[0], default=None)

    @cached_property
    def total_capacity(self) -> FloatArray:
        """Of each resource, (resources,)."""
        return self.case.instance.total_capacity

    @cached_property
    def parts(self) -> Any:
        """Part of each resource that a task takes, 0 of one that does not exist, (users, kinds, resources)."""
        demands, total = self.case.instance.demands_by_kind, self.total_capacity
        return np.divide(demands, total, out=np.zeros_like(demands), where=total > 0)

    @cached_property
    def possible(self) -> BoolArray:
        """Where users could run something if they were eligible, (users, servers)."""
        return np.asarray(self.case.instance.unconstrained_rates > 0, bool)

    # Lies ------------------------------------------------------------------------------------------------------------------------

    def systematic(self, liars: np.ndarray) -> list[Lie]:
        """Return simple lies of every user; if they exceed the effort, a random choice of them."""
        lies = [lie for n in liars[: self.case.effort * 50] for lie in self._simple(int(n))]
        most = max(1, int(self.effort * _SYSTEMATIC))
        chosen = range(len(lies)) if len(lies) <= most else np.sort(self.rng.choice(len(lies), most, replace=False))
        return [lies[j]() for j in chosen]

    def of_queues(self) -> list[Joint]:
        """Return lies that queues tell for all their users; if they exceed their part of the effort, a random choice of them."""
        lies = [lie for queue in self.queues for lie in self._joint(queue)]
        most = self.case.effort // _OF_QUEUES
        return lies if len(lies) <= most else [lies[j] for j in np.sort(self.rng.choice(len(lies), most, replace=False))]

    def _joint(self, queue: Child) -> Iterator[Joint]:
        instance, by_kind = self.case.instance, self.case.instance.demands_by_kind
        if instance.rates_per_server is None:
            for factor in self._factors((0.5, 2.0)):
                for r in np.flatnonzero((by_kind[queue.users] > 0).any(axis=(0, 1))):
                    asking = queue.users[(by_kind[queue.users, :, r] > 0).any(axis=1)]
                    times = np.where(np.arange(instance.n_resources) == r, factor, 1)
                    rows = [by_kind[n] * times for n in asking]
                    said = f"says that each task takes {figure(factor)} times its {instance.resources[r]}"
                    yield Joint(queue.node, tuple(Lie(int(n), demand=row) for n, row in zip(asking, rows, strict=True)), said)
                lies = tuple(Lie(int(n), demand=by_kind[n] * factor) for n in queue.users)
                yield Joint(queue.node, lies, f"says that each task takes {figure(factor)} times what it takes")
        for n in queue.users:
            if instance.guarantees[n] == 0:
                yield Joint(queue.node, (Lie(int(n), tasks=0.0),), f"says that {self.case.name(int(n))} has no tasks")

    def _simple(self, n: int) -> Iterator[Callable[[], Lie]]:
        """Yield the simple lies of a user, each as a function that returns it: most of them are never told."""
        instance = self.case.instance
        if instance.rates_per_server is not None:
            rates = instance.rates_per_server[n]
            for i in np.flatnonzero(instance.eligibility[n]).tolist():
                for factor in self._factors(_FACTORS[1:]):
                    yield partial(lie_about, n, "rates", rates, i, rates[i] * factor)
        else:
            demand, total, parts = instance.demands_by_kind[n], self.total_capacity, self.parts[n]
            for k in range(len(demand)):
                largest, asked = parts[k].max(), np.flatnonzero(demand[k] > 0)
                for r in asked.tolist():
                    for factor in self._factors(_FACTORS):
                        if factor or asked.size > 1:
                            yield partial(lie_about, n, "demand", demand, (k, r), demand[k, r] * factor)
                for r in np.flatnonzero((parts[k] < largest) & (total > 0)).tolist():  # make another resource dominant, or nearly so
                    for factor in self._factors((0.5, 1.0, 1.25)):
                        yield partial(lie_about, n, "demand", demand, (k, r), max(demand[k, r], factor * largest * total[r]))
            for factor in self._factors((0.5, 2.0)):
                yield partial(Lie, n, demand=demand * factor)
        if instance.speeds_given is not None:
            speeds = instance.speeds[n]
            for rows in self.alike(n):
                for factor in self._factors(_FACTORS[1:]):
                    yield partial(lie_about, n, "speeds", speeds, rows, speeds[rows] * factor)
        allowed = np.flatnonzero(instance.eligibility[n])
        if allowed.size > 1:
            for i in allowed.tolist():
                yield partial(lie_about, n, "servers", instance.eligibility[n], i, False)
            if allowed.size > 2:
                for i in allowed.tolist():
                    yield partial(lie_about, n, "servers", np.zeros(instance.n_servers, bool), i, True)
        if instance.placement is not None:
            for i in np.flatnonzero(~instance.placement[n] & self.possible[n]).tolist():  # elsewhere a claim changes nothing
                yield partial(lie_about, n, "servers", instance.eligibility[n], i, True)
        has, runs = instance.tasks[n], self.case.allocation.tasks_per_user[n]
        for tasks in (np.inf, 2 * has, has / 2) if has < np.inf else (2 * runs, runs, runs / 2):
            if tasks != has and tasks > 0:
                yield partial(Lie, n, tasks=math.ceil(tasks) if self.case.whole and tasks < np.inf else tasks)

    def alike(self, n: int) -> list[np.ndarray]:
        """Return the rows of servers where the user may run, those together on which its demand and its speed are equal."""
        instance = self.case.instance
        found: dict[Any, list[int]] = {}
        for i in np.flatnonzero(instance.eligibility[n]).tolist():
            found.setdefault((instance.kind_of[i], instance.speeds[n, i]), []).append(i)
        return [np.array(rows) for rows in found.values()]

    def local(self) -> None:
        """Change the best lies a little, in rounds of decreasing steps: the maximum of the gain is often sharp."""
        first = self.tried
        while not self.late and self.found and self.tried < self.effort:
            before = self.tried
            number = min(_ROUND, self.effort - before)
            step = _STEP[0] * (_STEP[1] / _STEP[0]) ** ((before - first) / (self.effort - first))
            best = self._best()
            self.try_all([self._changed(best[j % len(best)], step) for j in range(number)])
            if self.tried == before:
                return

    def _best(self) -> list[Lie]:
        """Return the lies that gain most. Many lies are equivalent (all demands doubled), so of those with equal gain, return one."""
        distinct: dict[tuple[int, float], Lie] = {}
        for found in sorted(self.found, key=lambda found: -round(self._part(found), _SAME_GAIN)):
            distinct.setdefault((found[1].n, round(self._part(found), _SAME_GAIN)), found[1])
        return list(distinct.values())[:_BEST]

    def paid(self) -> list[tuple[Any, Lie]]:
        """Return the best lie that paid, or no lie; among equally good lies, the last, which has fewer digits."""
        paid = [found for found in self.found if found[0] > self.case.slack[found[1].n]]
        most = max((gain for gain, _ in paid), default=0)
        return [found for found in reversed(paid) if found[0] >= float(most) * _AS_GOOD][:1]

    def rounded(self) -> None:
        """Try the best lie with fewer digits and fewer changes; keep it if it is as good."""
        instance = self.case.instance
        for _ in range(2):
            for lie in [found[1] for found in self.paid()]:
                own = {"demand": instance.demands_by_kind[lie.n], "rates": instance.rates_per_server, "speeds": instance.speeds[lie.n]}
                own["rates"] = None if own["rates"] is None else own["rates"][lie.n]
                said = [name for name in ("demand", "rates", "speeds", "servers", "tasks") if getattr(lie, name) is not None]
                lies: list[Lie] = []
                for name in said[: sum(name in own for name in said)]:
                    plain, true = self._with_digits(getattr(lie, name), 2), own[name]
                    same = [np.where(np.arange(plain.size).reshape(plain.shape) == j, true, plain) for j in np.flatnonzero(plain != true)]
                    lies += [replace(lie, **{name: row}) for row in (plain, *same)]
                if len(said) > 1:
                    lies += [_without(lie, name) for name in said]
                self.try_all(lies)

    def _with_digits(self, values: FloatArray, digits: int) -> Any:
        """Return numbers with fewer digits, in the arithmetic of the case."""
        plain = np.array([float(f"{float(value):.{digits}g}") for value in values.ravel()]).reshape(values.shape)
        return plain if self.case.radius is None else fractions_of(plain)

    def _factors(self, factors: Sequence[float]) -> Any:
        """Return factors in the arithmetic of the case."""
        return factors if self.case.radius is None else fractions_of(factors)

    def _part(self, found: tuple[Any, Lie]) -> float:
        gain, lie = found
        return float(gain / self.case.reach[lie.n]) if self.case.reach[lie.n] > 0 else 0.0

    def _changed(self, lie: Lie, step: float) -> Lie:
        instance, rng, n = self.case.instance, self.rng, lie.n
        kind = rng.integers(6)
        allowed = instance.eligibility[n]
        known = np.flatnonzero(allowed if instance.placement is None else instance.counts > 0)
        if kind == 0 and known.size > 1:
            shown = allowed.copy() if lie.servers is None else lie.servers.copy()
            i = int(rng.choice(known))
            shown[i] = not shown[i]
            if shown.any():
                return replace(lie, servers=shown)
        if kind == 1 and instance.tasks[n] < np.inf:
            return replace(lie, tasks=float(np.ceil(float(instance.tasks[n]) * np.exp(rng.normal(0.0, 1.0)))))
        about, own = "demand", instance.demands_by_kind[n]
        if instance.rates_per_server is not None:
            about, own = "rates", instance.rates_per_server[n]
        if instance.speeds_given is not None and rng.random() < 0.5:
            about, own = "speeds", instance.speeds[n]
        values = own if getattr(lie, about) is None else getattr(lie, about)
        chosen = rng.random(values.shape) < 0.6
        if not chosen.any():  # do not repeat the same lie
            chosen.ravel()[rng.integers(values.size)] = True
        moved = values * np.exp(rng.normal(0.0, step, values.shape) * chosen)
        if self.case.radius is not None:  # so that the fractions of the answer stay short
            moved = self._with_digits(moved, _DIGITS)
        return replace(lie, **{about: moved})


def _ask(case: Case, time_limit: float | None, lie: Lie | Joint, *, worst: bool = False) -> Answered:
    """Return the tasks that are given as declared, (users, servers), placed as is best for a user who lies, or ``worst``."""
    question = case.allocation.question

    def given() -> FloatArray:
        told = lie.told(case.instance)
        tasks: FloatArray = case.tasks_of(rerun(case.allocation, told, time_limit=time_limit))
        if isinstance(lie, Joint) or not isinstance(question, Optimum) or case.whole:
            return tasks.copy()
        worth = _true_tasks(case, lie) * case.worth_to(lie.n)
        if not _placement_matters(case, told, worth[told.eligibility[lie.n]]):
            return tasks.copy()
        sign = -1 if worst else 1
        return np.array(best_placement(question.notion, told, case.sharing, tasks, lie.n, sign * worth, time_limit))

    with quietly():
        return case.answered(given)


def _told(case: Case, lie: Lie | Joint) -> Instance:
    """Return the instance as declared, in the arithmetic of the case."""
    told = lie.told(case.instance)
    return told if case.radius is None else told.exact


def _placement_matters(case: Case, told: Instance, worth: Any) -> bool:
    """Can what the liar runs depend on the placement? Its tasks may be declared on servers where they are worth this."""
    return (
        case.worth is not None or told.rates_per_server is not None or told.demands_by_kind.shape[1] > 1 or bool((worth != worth[:1]).any())
    )


def _true_tasks(case: Case, lie: Lie) -> Any:
    """Return how many of its true tasks the liar can run with what one task takes as declared, (servers,)."""
    instance, n = case.instance, lie.n
    if case.sharing == "tdm":
        told = _told(case, lie)
        seen = told.rates[n]
        ratio = np.divide(instance.rates[n], seen, out=np.zeros_like(seen), where=(seen > 0) & (seen < np.inf))
        if lie.demand is not None and instance.shared:
            first = instance.n_server_resources
            true = instance.demands_by_kind[n, instance.kind_of, first:]
            demand = np.where(true > 0, told.demands_by_kind[n, told.kind_of, first:], np.inf)
            of_cluster = safe_ratio(demand, true).min(axis=1)
            ratio = np.minimum(np.where(seen < np.inf, ratio, np.inf), of_cluster)
    else:
        true = instance.demands_by_kind[n, instance.kind_of]
        said = true if lie.demand is None else lie.demand[instance.kind_of]
        ratio = safe_ratio(np.where(true > 0, said, np.inf), true).min(axis=1)
    return np.where(instance.eligibility[n], ratio, 0)


def _whole(tasks: Any) -> Any:
    """Return how many whole tasks there are, but for rounding."""
    return objects([math.floor(value) for value in tasks]) if tasks.dtype == object else np.floor(tasks + FITS)


def _without(lie: Lie, name: str) -> Lie:
    """Return the lie with the truth about one thing."""
    truth: dict[str, Any] = {name: None}
    return replace(lie, **truth)
