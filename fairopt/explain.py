"""Why does a user get only this much, and what would help? In a few sentences, from the allocation itself.

What can be said depends on what made the allocation:

* an exact one: what its tasks are measured against (`Notion.yardstick`), its level and who shares it, what is full where it may run and
  who holds that, what more capacity, more weight or fewer constraints would give (`fairopt.gains`: by price and by solving again), and
  what it could run with what another user holds (`fairopt.measures`);
* a schedule: the same without levels and prices, and what the exact optimum of the same share would give;
* tasks that somebody else chose: what is full and who holds it, and what an exact optimum would give.

A resource *leaves no room* on a server row where nothing is left of it; for whole tasks, where less is left than a task demands.

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["alice", "bob"], servers=["pool"], resources=["cpu", "memory"])
>>> print(explain(fo.solve(instance, "drf"), "alice"))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fairopt.allocation import GIVEN, Allocation, Exact
from fairopt.errors import FairoptError, InvalidInstance, Unsupported
from fairopt.explanation import Blocker, Explanation, Gain
from fairopt.gains import gains
from fairopt.instance import FloatArray
from fairopt.measures import could_run_with, takes_part, violations
from fairopt.models import CRITERIA, NOTIONS, Notion
from fairopt.solve import solve
from fairopt.solvers.backend import Deadline
from fairopt.wording import figure, joined, named, percent, plural

__all__ = ["explain"]

_FULL = 1e-6  # relative: with less left, nothing is
_SAME = 1e-6  # relative: shares that differ by less are at one level
_HOLDERS = 3
_PLACES = 3
_NAMES = 3
_REFERENCE = "drfh"  # what tasks of no notion are compared with


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

    Parameters
    ----------
    allocation : Allocation
        What `solve` or `schedule` returned, or tasks of your own (`fairopt.question.given`).
    user : str
    against : str, optional
        A user to compare with. The default is the one with whose holdings, scaled by the weights, it could run most tasks, which is
        whom it would envy first.
    resolves : int
        How many changes are solved, at most; 0 for none. All of them are small: one unit of a resource on one server (a tenth of what it
        has where that is less than a unit), one more unit of weight, one kind of server that a constraint rules out.
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
    >>> explanation = explain(fo.schedule(instance, "drfh"), "bob", resolves=0)
    >>> [(each.server, each.resource, each.used, each.holders) for each in explanation.blockers]
    [('pool', 'cpu', 9.0, (('alice', 3.0),))]
    """
    if not isinstance(allocation, Allocation):
        raise InvalidInstance(
            f"allocation is {type(allocation).__name__}; give an Allocation, as fairopt.solve and fairopt.schedule return it"
        )
    if isinstance(resolves, bool) or not isinstance(resolves, int) or resolves < 0:
        raise Unsupported(f"resolves is {resolves!r}; give a whole number >= 0")
    if time_limit is not None and not (isinstance(time_limit, int | float) and time_limit > 0):
        raise Unsupported(f"time_limit is {time_limit!r}; give a number > 0")
    instance = allocation.instance
    n = instance.index(user)
    other = None if against is None else instance.index(against)
    if other == n:
        raise InvalidInstance(f'"{user}" cannot be compared with itself; leave against out, or name another user')
    deadline = Deadline(time_limit)
    story = _Story(allocation, n, other)
    blockers: tuple[Blocker, ...] = ()
    found: tuple[Gain, ...] = ()
    if instance.servable[n] and not story.nothing_to_do and not allocation.complete[n]:
        cells = story.cells()
        blockers = tuple(story.blocker(i, r) for i, r in cells)
    else:
        cells = []
    if allocation.question is not None and not story.nothing_to_do and not allocation.complete[n]:
        found = gains(allocation, n, cells, resolves=resolves, deadline=deadline, done=done)
    sentences = [
        story.outcome(),
        story.yardstick(),
        story.level(),
        *story.stops(blockers),
        story.money(),
        story.optimum(deadline),
        *story.helps(found),
        story.versus(blockers),
        story.excess(),
    ]
    return Explanation(
        user=user,
        against=None if story.other is None else instance.users[story.other],
        tasks=float(allocation.tasks_per_user[n]),
        sentences=tuple(sentence for sentence in sentences if sentence),
        blockers=blockers,
        gains=found,
    )


class _Story:
    """The sentences about one user of one allocation; each method returns one or several, or nothing where there is nothing to say."""

    def __init__(self, allocation: Allocation, user: int, other: int | None) -> None:
        instance = allocation.instance
        self.allocation, self.instance, self.n = allocation, instance, user
        self.who = named(instance.users[user])
        self.x = float(allocation.tasks_per_user[user])
        self.question = allocation.question
        self.exact = isinstance(self.question, Exact) and not allocation.certificate.best_found
        self.whole = allocation.certificate.whole_tasks
        self.notion = _notion_of(allocation)
        self.nothing_to_do = not takes_part(instance)[user]
        self.would = could_run_with(allocation, user)
        self.other = self._default_other() if other is None else other
        if allocation.sharing == "tdm":
            rates = instance.rates[user]
            self.things: tuple[str, ...] = ("time",)
            self.capacity = np.ones((instance.n_servers, 1))
            self.used = allocation.time_utilization[:, None]
            self.demand = np.divide(1.0, rates, out=np.zeros_like(rates), where=(rates > 0) & np.isfinite(rates))[:, None]
        else:
            self.things, self.capacity, self.used = instance.resources, instance.row_capacity, allocation.usage
            self.demand = np.broadcast_to(instance.demands[user], self.capacity.shape)

    # What it gets -------------------------------------------------------------------------------------------------------------

    def outcome(self) -> str:
        """How many tasks, by what, where."""
        tasks = self.instance.tasks[self.n]
        if not self.instance.servable[self.n]:
            return f"{self.who} gets nothing: {self._unservable()}"
        if tasks == 0:
            return f"{self.who} gets nothing because it has no tasks to run."
        if self.instance.effortless[self.n]:
            return f"A task of {self.who} demands nothing, so all its {figure(tasks)} tasks always fit, whatever others have."
        of_all = f" of its {figure(tasks)}" if np.isfinite(tasks) else ""
        return f"{self.who} runs {_tasks(self.x, of_all)} {self._made()}{self._places()}."

    def _made(self) -> str:
        allocation, certificate = self.allocation, self.allocation.certificate
        if allocation.solver == GIVEN:
            return "in the allocation that was given"
        if certificate.best_found:
            return f"in the best allocation of whole tasks that was found for {allocation.notion}, which is not proved to be an optimum"
        if certificate.reservation:
            return f"in the {certificate.reservation} allocation of {allocation.notion} by {allocation.solver}"
        return f"in the exact allocation of {allocation.notion}{' in whole tasks' if self.whole else ''}"

    def _places(self) -> str:
        held = self.allocation.tasks[self.n]
        order = [i for i in np.argsort(-held, kind="stable") if held[i] > _SAME * max(self.x, 1e-3)]
        if not order:
            return ""
        listed = [f"{figure(held[i])} on {named(self.instance.servers[i])}" for i in order[:_PLACES]]
        rest = order[_PLACES:]
        if len(order) == 1:
            return f", {'all ' if self.x != 1 else ''}on {named(self.instance.servers[order[0]])}"
        return f": {joined([*listed, *([f'{figure(held[rest].sum())} on {len(rest):,} more'] if rest else [])])}"

    def _unservable(self) -> str:
        instance, n = self.instance, self.n
        exists = instance.counts > 0
        asked = instance.demands[n] > 0
        lacking = exists & ((instance.capacities == 0) & asked).any(axis=1)
        forbidden = exists & ~lacking & (np.zeros(instance.n_servers, bool) if instance.placement is None else ~instance.placement[n])
        reasons = []
        if lacking.any():
            names = [named(instance.resources[r]) for r in np.flatnonzero(asked & (instance.capacities[lacking] == 0).any(axis=0))]
            reasons.append(f"{self._of_rows(lacking)} {joined(names[:_NAMES])}, which a task needs".replace("  ", " "))
        if forbidden.any():
            reasons.append(f"its constraints rule out {joined(self._some_servers(np.flatnonzero(forbidden)))}, where its tasks would fit")
        return f"no server is eligible. {'; '.join(reasons)[0].upper()}{'; '.join(reasons)[1:]}." if reasons else "no server is eligible."

    def _of_rows(self, rows: Any) -> str:
        number = int(rows.sum())
        return "no server has" if number == self.instance.n_servers else f"{joined(self._some_servers(np.flatnonzero(rows)))} lack"

    def _some_servers(self, rows: Any) -> list[str]:
        names = [named(self.instance.servers[i]) for i in rows[:_NAMES]]
        return [*names, *([f"{len(rows) - _NAMES:,} more"] if len(rows) > _NAMES else [])]

    # What it is measured by ---------------------------------------------------------------------------------------------------

    def yardstick(self) -> str:
        """What the notion says of it."""
        if self.nothing_to_do or self.notion is None or self.allocation.solver == GIVEN:
            return ""
        return f"It is measured by {self.notion.yardstick(self.instance, self.n)}."

    def level(self) -> str:
        """Its level and who shares it; or its share, and how many have less and more."""
        allocation, shares, n = self.allocation, self.allocation.shares, self.n
        if self.nothing_to_do or self.notion is None or allocation.solver == GIVEN:
            return ""
        if shares.ndim == 2:
            return self._level_at_a_server()
        number = allocation.level_of_user[n]
        if self.exact and not allocation.levels:
            return ""
        share = self._share(float(shares[n]))
        if number is None and allocation.levels:
            return ""
        if number is None:
            part = takes_part(self.instance)
            fewer = int((shares[part] < shares[n] * (1 - _SAME)).sum())
            more = int((shares[part] > shares[n] * (1 + _SAME)).sum())
            return f"Its share is {share}: {_users(fewer)} have a smaller one, {_users(more)} a larger one.".replace(
                "1 user have", "1 user has"
            )
        same = [name for name in allocation.levels[number - 1].users if name != self.instance.users[n]]
        lower, higher = (sum(len(level.users) for level in part) for part in (allocation.levels[: number - 1], allocation.levels[number:]))
        names = [named(name) for name in same[:_NAMES]]
        rest = [f"{len(same) - _NAMES:,} more"] if len(same) > _NAMES else []
        company = f"{joined([*names, *rest])} {'stop' if len(same) > 1 else 'stops'} there too" if same else "it stops there alone"
        return f"Its share is {share}: {company}; {_users(lower) or 'nobody'} lower, {_users(higher) or 'nobody'} higher."

    def _share(self, share: float) -> str:
        write = percent if self.notion is not None and self.notion.share_is_part else figure
        weights = self.instance.weights
        if weights.ndim == 2 or (weights == 1).all():
            return write(share)
        weight = float(weights[self.n])
        return f"{write(share * weight)}, which is {write(share)} for each unit of its weight {figure(weight)}"

    def _level_at_a_server(self) -> str:
        shares, held = self.allocation.shares, self.allocation.tasks[self.n]
        if not held.any():
            return ""
        i = int(held.argmax())
        mine = float(shares[self.n, i])
        there = [r for j, r in self.cells() if j == i]
        holders = np.zeros(self.instance.n_users, bool)
        for r in there:
            holders |= self._held_by_all(i, r) > 0
        nobody = bool(there) and bool((shares[holders, i] <= mine * (1 + _SAME)).all())
        what = joined([named(self.things[r]) for r in there])
        first = f"At {named(self.instance.servers[i])} its share is {self._share(mine)}"
        return f"{first}, and nobody who holds {what} there has a larger one{self._for_weight()}." if nobody else f"{first}."

    def _for_weight(self) -> str:
        return "" if (self.instance.weights == 1).all() else " for its weight"

    # What stops it ------------------------------------------------------------------------------------------------------------

    def cells(self) -> list[tuple[int, int]]:
        """Return (server, resource) that leave no room, the servers where it runs most first."""
        asks = (self.demand > 0) & self.instance.eligibility[self.n][:, None]
        left = self.capacity - self.used
        needs = self.demand * (1 - 1e-9) if self.whole else self.capacity * _FULL
        blocked = asks & (left < needs)
        rows = np.lexsort((-self.instance.rates[self.n], -self.allocation.tasks[self.n]))
        return [(int(i), int(r)) for i in rows for r in np.flatnonzero(blocked[i])]

    def _held_by_all(self, i: int, r: int) -> FloatArray:
        held = self.allocation.tasks[:, i]
        if self.allocation.sharing == "tdm":
            rates = self.instance.rates[:, i]
            return np.divide(held, rates, out=np.zeros_like(held), where=(rates > 0) & np.isfinite(rates))
        return np.asarray(held * self.instance.demands[:, r], float)

    def blocker(self, i: int, r: int) -> Blocker:
        """Return who holds what there."""
        held = self._held_by_all(i, r)
        return Blocker(
            self.instance.servers[i],
            self.things[r],
            float(self.capacity[i, r]),
            float(self.used[i, r]),
            float(held[self.n]),
            tuple((self.instance.users[m], float(held[m])) for m in self._largest(held)),
        )

    def _largest(self, held: FloatArray) -> list[int]:
        return [int(m) for m in np.argsort(-held, kind="stable")[: _HOLDERS + 1] if held[m] > 0 and m != self.n][:_HOLDERS]

    def stops(self, blockers: Sequence[Blocker]) -> list[str]:
        """What leaves no room where, and who holds it; all its tasks; constraints."""
        if self.nothing_to_do:
            return []
        if self.allocation.complete[self.n]:
            return ["It has all the tasks that it asks for, so nothing stops it."]
        instance = self.instance
        sentences = []
        cells = self.cells()
        by_resource: dict[int, list[int]] = {}
        for i, r in cells:
            by_resource.setdefault(r, []).append(i)
        roomy = sorted(set(np.flatnonzero(instance.eligibility[self.n]).tolist()) - {i for i, _ in cells})
        able = instance.counts > 0
        barred = int((able & ~instance.eligibility[self.n]).sum())
        where = f"the {plural(int(able.sum()) - barred, 'row')} of servers where it may run" if barred else "all servers"
        if by_resource:
            ordered = sorted(by_resource.items(), key=lambda item: -len(item[1]))
            parts = []
            for r, rows in ordered[:_NAMES]:
                everywhere = len(rows) == int((able & instance.eligibility[self.n]).sum()) > _NAMES
                parts.append(f"{named(self.things[r])} on {where if everywhere else joined(self._some_servers(rows))}")
            word = "not enough is left of" if self.whole else "nothing is left of"
            sentences.append(f"What stops it: {word} {joined(parts)}.")
            sentences.append(self._holders(*ordered[0]))
        if barred and len(by_resource) != 1:
            sentences.append(f"It may run on {int(able.sum()) - barred} of {plural(int(able.sum()), 'row')} of servers.")
        if roomy:
            sentences.append(self._room(roomy))
        return sentences

    def _holders(self, r: int, rows: list[int]) -> str:
        held = np.sum([self._held_by_all(i, r) for i in rows], axis=0)
        total = float(self.capacity[rows, r].sum())
        listed = [f"{named(self.instance.users[m])} {percent(held[m] / total)}" for m in self._largest(held)]
        own = f"{self.who} itself {percent(held[self.n] / total)}"
        return (
            f"Of that {named(self.things[r])}, {joined([*listed, own])} hold."
            if listed
            else f"All of that {named(self.things[r])} is its own."
        )

    def _room(self, rows: list[int]) -> str:
        names = joined(self._some_servers(rows))
        if not self.whole:
            if self.exact:
                return f"On {names} something is left of all that it needs: {self.allocation.notion} does not hand it out."
            return f"On {names} there is room for more of its tasks."
        blocked_by = self.allocation.details.get("blocked_by")
        if blocked_by is not None:
            return f"On {names} there is room left: the schedule ended when a task of {named(blocked_by)} did not fit."
        if self.question is not None:
            return f"On {names} enough is left in all, but not on any single server."
        return f"On {names} enough is left for another task, if it is not spread over several servers."

    # Prices, the optimum, what helps ------------------------------------------------------------------------------------------

    def money(self) -> str:
        """What its weight is spent on, where the goal is a sum and prices prove it."""
        allocation = self.allocation
        if not self.exact or allocation.prices is None or allocation.levels or self.nothing_to_do:
            return ""
        prices = np.maximum(allocation.prices, 0.0)
        spent = allocation.tasks[self.n][:, None] * self.demand * prices
        total = float(spent.sum())
        if total <= 0:
            cost = (self.demand * prices).sum(axis=1)[self.instance.eligibility[self.n]]
            return self._too_dear(float(cost.min(initial=np.inf)))
        order = np.argsort(-spent, axis=None, kind="stable")[:_NAMES]
        parts = [
            f"{percent(spent.flat[j] / total)} for {named(self.things[j % len(self.things)])} on "
            f"{named(self.instance.servers[j // len(self.things)])}"
            for j in order
            if spent.flat[j] > _SAME * total
        ]
        return f"At the prices that prove this optimum it pays {joined(parts)}."

    def _too_dear(self, cost: float) -> str:
        worth = float(self.instance.weights[self.n]) if self.instance.weights.ndim == 1 else 1.0
        if self.x > 0 or not np.isfinite(cost) or cost <= worth:
            return ""
        return f"At the prices that prove this optimum a task of it costs {figure(cost / worth)} times what it counts."

    def optimum(self, deadline: Deadline) -> str:
        """What an exact optimum would give, where this is none."""
        allocation = self.allocation
        if self.exact or self.nothing_to_do:
            return ""
        notion: Notion | str = _REFERENCE if self.notion is None else self.notion
        name = notion if isinstance(notion, str) else notion.name
        sharing: Any = allocation.sharing
        try:
            if deadline.left == 0.0:
                raise deadline.passed({})
            best = solve(self.instance, notion, sharing=sharing, time_limit=None if deadline.seconds is None else deadline.left)
        except FairoptError as error:
            return f"There is no exact allocation of {name} to compare with: {error}."
        would = float(best.tasks_per_user[self.n])
        if abs(would - self.x) <= _SAME * max(would, self.x):
            return f"The exact allocation of {name} (divisible tasks) would give it as much."
        return f"The exact allocation of {name} (divisible tasks) would give it {figure(would)} instead of {figure(self.x)}."

    def helps(self, found: Sequence[Gain]) -> list[str]:
        """The best change of each kind."""
        if not found:
            return []
        sentences = []
        for kinds, opening in ((("capacity", "server"), "What would help most:"), (("weight",), "With"), (("placement",), "If it")):
            best = next((gain for gain in found if gain.kind in kinds and gain.best_known > 0), None)
            if best is not None:
                sentences.append(f"{opening} {best.change} {'gives' if kinds[0] == 'capacity' else 'would give'} it {self._gain(best)}.")
        if not sentences:
            sentences.append(f"None of the {plural(len(found), 'change')} that were tried would give it more.")
        late = sum(bool(gain.note) for gain in found)
        if late:
            sentences.append(f"{plural(late, 'change')} could not be solved: {next(gain.note for gain in found if gain.note)}.")
        return sentences

    def _gain(self, gain: Gain) -> str:
        more = gain.best_known
        part = f" (+{percent(more / self.x)})" if self.x > 0 else ""
        text = f"{figure(more)} {'task' if figure(more) == '1' else 'tasks'} more{part}"
        if gain.by_solving is None:
            return f"up to {text}, by its price"
        if gain.by_price is None or abs(gain.by_price - more) <= 0.01 * max(abs(gain.by_price), more):
            return text
        return f"{text}; by its price {'up to ' if gain.by_price > more else ''}{figure(gain.by_price)}"

    # The others ---------------------------------------------------------------------------------------------------------------

    def _default_other(self) -> int | None:
        would = self.would.copy()
        would[self.n] = -1.0
        if would.max(initial=0.0) <= 0:
            would = np.where(np.arange(would.size) == self.n, -1.0, self.allocation.tasks_per_user)
        return int(would.argmax()) if would.size > 1 and would.max() > 0 else None

    def versus(self, blockers: Sequence[Blocker]) -> str:
        """What it could run with what the other holds, and why the other is higher."""
        m = self.other
        if m is None or self.nothing_to_do:
            return ""
        allocation, instance = self.allocation, self.instance
        name, theirs, would = named(instance.users[m]), float(allocation.tasks_per_user[m]), float(self.would[m])
        same_weight = bool(np.all(instance.weights[m] == instance.weights[self.n]))
        scaled = "" if same_weight else ", scaled to its own weight,"
        would = min(would, float(instance.tasks[self.n]))
        if would > self.x * (1 + _SAME) + 1e-9:
            verdict = f"{figure(would - self.x)} more than it has"
        elif would >= self.x * (1 - _SAME):
            verdict = "as many as it has: nothing to envy"
        else:
            verdict = f"fewer than its {figure(self.x)}: nothing to envy"
        return (
            f"{name} has {_tasks(theirs)}{self._why_higher(m)}. With what it holds{scaled} {self.who} could run {figure(would)}, {verdict}."
        )

    def _why_higher(self, m: int) -> str:
        """Return why the other's share is larger, where the data show it."""
        shares, instance, x = self.allocation.shares, self.instance, self.allocation.tasks
        if shares.ndim == 2 or self.allocation.solver == GIVEN or shares[m] <= shares[self.n] * (1 + _SAME):
            return ""
        elsewhere = float(x[m, ~instance.eligibility[self.n]].sum())
        if elsewhere > 0.5 * float(x[m].sum()):
            return f", most of them where {self.who} may not run"
        spared = {
            self.things[r] for i, r in self.cells() if x[m, i] > 0 and self.allocation.sharing == "rdm" and instance.demands[m, r] == 0
        }
        return f", which need no {joined(sorted(map(named, spared)))}" if spared else ""

    def excess(self) -> str:
        """Where a given allocation does not fit."""
        if self.allocation.solver != GIVEN:
            return ""
        wrong = violations(self.instance, self.allocation.tasks, self.allocation.sharing, _FULL)
        return f"The allocation does not fit: {'; '.join(map(str, wrong[:_NAMES]))}." if wrong else ""


def _notion_of(allocation: Allocation) -> Notion | None:
    """Return the notion with its options, or without them as far as its name tells."""
    if allocation.question is not None:
        return allocation.question.notion
    kind = {**NOTIONS, **CRITERIA}.get(allocation.notion)
    return None if kind is None else kind()


def _tasks(number: float, of_all: str = "") -> str:
    return f"{figure(number)}{of_all} task{'' if number == 1 else 's'}"


def _users(number: int) -> str:
    return plural(number, "user") if number else ""
