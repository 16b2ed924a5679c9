"""The sentences of an explanation. They are short, have numbers with units, and assume no knowledge of fairness notions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from fairopt.allocation import GIVEN, Allocation, Greedy, Optimum
from fairopt.analysis.explanation import Gain, Number, number
from fairopt.analysis.explanation.best_gains import what_helps
from fairopt.analysis.explanation.by_server import by_server
from fairopt.analysis.explanation.changes import stopped_by_rule
from fairopt.analysis.explanation.of_cluster import FullOfCluster
from fairopt.analysis.explanation.optimum import against_optimum
from fairopt.analysis.explanation.payments import paid
from fairopt.analysis.explanation.phrases import NAMES, either, number_of_tasks, some
from fairopt.analysis.explanation.queues import Stop, in_words, of_weight_0, path_of, stops_of
from fairopt.analysis.explanation.room import Room
from fairopt.analysis.explanation.weights import idle_weight
from fairopt.analysis.measures import could_run_with, envy_applies, takes_part, violations
from fairopt.analysis.rerun import notion_of_allocation
from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.by_server import work_in_words
from fairopt.instance.tolerances import NOTHING, WRITTEN
from fairopt.program import LimitKind, Program
from fairopt.program.kept_parts import counted_rows
from fairopt.solvers.backend import Deadline
from fairopt.wording import figure, joined, named, percent, plural

__all__ = ["Sentences"]


class Sentences:
    """The sentences about one user of one allocation; each public method returns the sentences on one topic, or none."""

    def __init__(self, allocation: Allocation, user: int, room: Room, other: int | None, made: Allocation | None = None) -> None:
        """Take an allocation, in fractions if they are known; ``made`` is the original, for computations in floats."""
        self.made = allocation if made is None else made
        self.allocation, self.instance, self.n, self.room = allocation, allocation.instance, user, room
        self.who = named(self.instance.users[user])
        self.x, self.does = number(allocation.tasks_per_user[user]), number(allocation.work[user])
        self.given = allocation.solver == GIVEN
        self.whole = allocation.certificate.whole_tasks
        self.exact = isinstance(allocation.question, Optimum) and not allocation.certificate.best_found
        self.takes_part = bool(takes_part(self.instance)[user])
        self.notion = notion_of_allocation(allocation)
        self.would = could_run_with(allocation, user)
        self.other = self._largest_bundle() if other is None else other

    # What it gets ---------------------------------------------------------------------------------------------------------------

    def standing(self) -> list[str]:
        """Return the user's tasks and where they run, how the notion measures them, its share, and who has less or more."""
        if not self.takes_part:
            return self._no_part()
        runs = number_of_tasks(self.x)
        if self.instance.tasks[self.n] < np.inf:
            all_its = number_of_tasks(number(self.instance.tasks[self.n]))
            everything = "its only task" if self.instance.tasks[self.n] == 1 else f"all its {all_its}"
            runs = everything if self.allocation.complete[self.n] else f"{figure(self.x)} of its {all_its}"
        sentences = [f"{self.who} runs {runs} {self._made()}{self._places()}.", *by_server(self.allocation, self.n)]
        sentences += [path] if (path := path_of(self.instance, self.n)) else []
        if self.notion is not None and not self.given:
            sentences.append(f"It is measured by {self.notion.describe_measure(self.instance, self.n)}.")
            sentences += self._share_there() if self.allocation.shares.ndim == 2 else self._level()
        return sentences

    def _made(self) -> str:
        allocation, certificate = self.allocation, self.allocation.certificate
        if self.given:
            return "in the allocation that was given"
        if certificate.best_found:
            return f"in the best allocation of whole tasks that was found for {allocation.notion}, which is not proved to be an optimum"
        if isinstance(allocation.question, Greedy):
            return f"in the greedy schedule {allocation.notion}:{allocation.solver.rpartition(':')[2]}"
        if certificate.qualifier:
            return f"in the {certificate.qualifier} allocation of {allocation.notion} by {allocation.solver}"
        return f"in the exact allocation of {allocation.notion}{' in whole tasks' if self.whole else ''}"

    def _places(self) -> str:
        held = self.allocation.tasks[self.n]
        order = [i for i in np.argsort(-held, kind="stable") if held[i] > self.room.rounding(WRITTEN) * max(self.x, 1e-3)]
        if len(order) < 2:
            return "".join(f", on {named(self.instance.servers[i])}" for i in order)
        places = [f"{figure(held[i])} on {named(self.instance.servers[i])}" for i in order[:NAMES]]
        rest = order[NAMES:]
        return f": {joined([*places, *([f'{figure(held[rest].sum())} on {len(rest):,} more'] if rest else [])])}"

    def _no_part(self) -> list[str]:
        instance, n = self.instance, self.n
        if instance.tasks[n] == 0:
            return [f"{self.who} gets nothing because it has no tasks to run."]
        if instance.servable[n]:
            return [
                f"A task of {self.who} demands nothing, so all its {number_of_tasks(number(instance.tasks[n]))} fit, whatever others have."
            ]
        exists, asked = instance.counts > 0, instance.demands_by_row(n) > 0
        scarce = asked[:, instance.n_server_resources :].all(axis=0) & (instance.shared_capacity == 0)
        asked = asked[:, : instance.n_server_resources]
        lacking = exists & ((instance.capacities == 0) & asked).any(axis=1)
        fits = exists & (instance.unconstrained_rates[n] > 0)
        if scarce.any():
            none = joined([named(name) for name, is_none in zip(instance.shared, scarce, strict=True) if is_none][:NAMES])
            return [f"{self.who} gets nothing: its tasks need {none}, and the cluster has none."]
        sentences = [f"{self.who} gets nothing: there is no server where it may run."]
        if lacking.any():
            missing = np.flatnonzero((asked & (instance.capacities == 0))[lacking].any(axis=0))
            what = joined([named(instance.resources[r]) for r in missing[:NAMES]])
            sentences.append(f"Its tasks need {what}, and {self._rows(lacking)} {'lacks' if lacking.sum() == 1 else 'lack'} it.")
        if fits.any():
            sentences.append(f"Its tasks would fit on {self._rows(fits)}, where its constraints do not let it run.")
        return sentences

    def _level(self) -> list[str]:
        allocation, n = self.allocation, self.n
        k = allocation.level_of_user[n]
        if allocation.complete[n] and self.exact:
            return []
        if k is not None and allocation.levels[k - 1].part:
            same = [named(name) for name in allocation.levels[k - 1].users if name != self.instance.users[n]]
            place = f"it stops in {allocation.levels[k - 1].part}, {f'together with {some(same)}' if same else 'alone'}"
        elif k is not None:
            same = [named(name) for name in allocation.levels[k - 1].users if name != self.instance.users[n]]
            weighted = "" if (self.instance.weights == 1).all() else " for their weight" if len(same) > 1 else " for its weight"
            company = f"{some(same) or 'nobody else'} {'have' if len(same) > 1 else 'has'} the same share{weighted}"
            before, after = allocation.levels[: k - 1], allocation.levels[k:]
            numbers = [sum(len(each.users) for each in part) for part in (before, after)]
            place = f"{company}; {either(numbers, 'has', 'less', 'more')}" if same or any(numbers) else "no other user is stopped"
        elif self.exact:  # the goal is a sum
            return []
        else:
            place = self._beside()
        share = self._share(number(allocation.shares[n]))
        return [f"Its share is {share}; {place}." if place else f"Its share is {share}."]

    def _beside(self) -> str:
        """Return how many users have a smaller or a larger share; in a tree users of the same queue for their weights; "" for nobody."""
        shares, rounding = self._for_weight(), self.room.rounding(WRITTEN)
        own, others = shares[self.n], takes_part(self.instance)
        others[self.n] = False
        if self.allocation.shares_by_weight:
            where, smaller, larger = "", "a smaller one", "a larger one"
        else:
            tree = self.instance.tree
            others &= tree.user_node == tree.user_node[self.n]
            where, smaller, larger = "beside it ", "less for each unit of weight", "more for each unit of weight"
            if not others.any() or tree.listed[tree.user_node[self.n]]:
                return ""
        lower, higher = (shares[others] < own * (1 - rounding)).sum(), (shares[others] > own * (1 + rounding)).sum()
        return where + either([int(lower), int(higher)], "has", smaller, larger)

    def _for_weight(self) -> FloatArray:
        """Return the shares divided by weights, (users,); a weight of 0 counts as 1, and weights per resource divide no sum."""
        allocation, weights = self.allocation, self.instance.weights
        return (
            allocation.shares if allocation.shares_by_weight or weights.ndim == 2 else allocation.shares / np.where(weights > 0, weights, 1)
        )

    def _share_there(self) -> list[str]:
        held = self.allocation.tasks[self.n]
        if not held.any():
            return []
        i = int(held.argmax())
        share = f"On {named(self.instance.servers[i])} its share is {self._share(number(self.allocation.shares[self.n, i]))}"
        there = [named(self.room.resources[r]) for j, r in self.room.cells if j == i and self.room.nobody_is_ahead(i, r)]
        weights = "" if (self.instance.weights == 1).all() else " for its weight"
        return [f"{share}, and nobody who holds {joined(there)} there has a larger one{weights}." if there else f"{share}."]

    def _share(self, share: Number) -> str:
        write = percent if self.notion is not None and self.notion.share_is_part else figure
        weights = np.asarray(self.instance.weights[self.n])
        if (weights == 1).all() or (weights == 0).all() or share == 0:
            return write(share)
        if weights.ndim:
            return f"{write(share)}, divided by its weights"
        weight = number(weights[()])
        held, for_each = (share * weight, share) if self.allocation.shares_by_weight else (share, share / weight)
        return f"{write(held)}, which is {write(for_each)} for each unit of its weight {figure(weight)}"

    # What stops it --------------------------------------------------------------------------------------------------------------

    def stops(self) -> list[str]:
        """Return what stops the user: all its tasks run, its slice is full, its parallelism, or full resources and who holds them."""
        if not self.takes_part:
            return []
        if self.room.has_all:
            return ["It has all the tasks that it asks for, so nothing stops it."]
        instance, room = self.instance, self.room
        exists, own = instance.counts > 0, instance.eligibility[self.n]
        if self._sliced():
            return [f"Bottleneck: its own slice of {self._rows(own)} is full, whatever others leave."]
        without = of_weight_0(self.instance, self.n) if self.allocation.equalizes else ""
        rows, everywhere = self._own_rows()
        stopped = [] if everywhere else self._stopped(own & (room.helps | ~exists), exists)
        if self.allocation.complete[self.n]:
            rows = ["All its tasks run; on other servers they would do more.", *rows]
        return [*rows, *self._kept_guarantees(), *stopped, *([f"It gets nothing beyond guarantees: {without}."] if without else [])]

    def _kept_guarantees(self) -> list[str]:
        """Return the sentence on the guarantees that are kept, where they stop the user."""
        levels = [level for level in self.allocation.levels if level.floors and self.instance.users[self.n] in level.users]
        if not levels:
            return []
        kept = joined([f"{name} ({figure(number(amount), 6)})" for name, amount in levels[0].floors.items()], NAMES)
        return [f"In {levels[0].part} it rises no further, so that what guarantees give together is kept: {kept}."]

    def _own_rows(self) -> tuple[list[str], bool]:
        """Return the sentence on rows of the notion's own that stop the user, and whether one covers all servers where it may run."""
        program = self._program if self.allocation.queue_prices else None
        if program is None:
            return [], False
        of_queues = {row.name for row in counted_rows(self.made.instance, self.made.tasks)}
        own, limits = program.pair_users == self.n, program.limits
        full, everywhere = [], False
        for row in np.flatnonzero(limits.of_kinds(LimitKind.QUEUE, LimitKind.NAMED)).tolist():
            name, used = program.limit_name(row), limits.matrix.indices[limits.matrix.indptr[row] : limits.matrix.indptr[row + 1]]
            if name in of_queues or name not in self.allocation.queue_prices or not own[used].any():
                continue
            full.append(f'"{name}" of {figure(limits.bounds[row])}')
            everywhere |= own[used].sum() == own.sum()
        return [f"Bottleneck: {joined(full)} {'is' if len(full) == 1 else 'are'} used up."] if full else [], bool(everywhere)

    @property
    def _has_own_rows(self) -> bool:
        """Has the notion rows of its own that the user is in? Then the holdings of another do not say what it could run with them."""
        if self.notion is None or self.notion.is_symmetric or self._program is None:
            return False
        limits, mine = self._program.limits, np.flatnonzero(self._program.pair_users == self.n)
        of_queues = {row.name for row in counted_rows(self.made.instance, self.made.tasks)}
        rows = np.flatnonzero(limits.of_kinds(LimitKind.QUEUE, LimitKind.NAMED))
        return any(self._program.limit_name(int(row)) not in of_queues and bool(limits.matrix[[row]][:, mine].nnz) for row in rows)

    def _stopped(self, own: BoolArray, exists: BoolArray) -> list[str]:
        """Return the limits of queues that are reached, and elsewhere what is full."""
        queues, there = stops_of(self.allocation, self.n)
        if queues:
            stopped = [f"Bottleneck: {in_words(queues, self.instance)}.", *self._holders_of_cluster(queues)]
            own = own & ~there
            if not (own & exists).any():
                return stopped
            return [*stopped, *self._full(own, exists, elsewhere=True)]
        return self._full(own, exists)

    def _full(self, own: BoolArray, exists: BoolArray, *, elsewhere: bool = False) -> list[str]:
        """Return the full resources that stop the user on some servers, and its parallelism."""
        instance, room = self.instance, self.room
        limit = [self._limit()] if room.at_its_limit else []
        if limit and not own.any():
            return limit
        stopping = [cell for cell in room.cells if room.bottleneck(*cell)]
        explained = {i for i, _ in stopping}
        by_resource: dict[int, list[int]] = {}
        for i, r in [*stopping, *(cell for cell in room.cells if cell[0] not in explained)]:
            by_resource.setdefault(r, []).append(i)
        everywhere = elsewhere or own[exists].all() or bool(limit)
        where = "" if everywhere else f"It may run on {int(own.sum())} of {self._servers(exists)}. "
        sentences = limit + ([where.strip()] if where and not by_resource else [])
        if by_resource:
            ordered = sorted(by_resource.items(), key=lambda item: -len(item[1]))
            all_rows = int(own.sum()) if own.sum() > NAMES else 0
            article = "the " if self.allocation.sharing == "tdm" else ""
            parts = []
            for r, rows in ordered[:NAMES]:
                parts.append(f"{article}{named(room.resources[r])} on {'all of them' if len(rows) == all_rows else self._rows(rows)}")
            one = len(parts) == 1
            full = f"{'has' if one else 'have'} no room for another task" if self.whole else f"{'is' if one else 'are'} full"
            what = f"{', and '.join(parts)} {full}."
            there = " there" if where or limit else ""
            stops = f"Elsewhere {what}" if elsewhere else f"{where}Bottleneck{there}: {what}"
            sentences += [stops, self._holders(by_resource)]
        if instance.users[self.n] in self.allocation.details.get("fits_nowhere", ()):
            sentences.append("No single server where it may run is large enough for one of its tasks.")
        elif room.open_rows:
            sentences.append(self._left_over(room.open_rows))
        return sentences

    def _limit(self) -> str:
        """Return the sentence on the user's parallelism, and on the servers where it would run faster."""
        allowed, faster = number(self.instance.parallelism[self.n]), self.room.helps
        opening = f"It is on {figure(self.room.at_once)} {'server' if allowed == 1 else 'servers'} at once, all that its parallelism allows"
        return f"{opening}; more time on {self._rows(faster)}, where it is faster, would help." if faster.any() else f"{opening}."

    def _sliced(self) -> bool:
        """Say whether each user has its own slice of the servers; slices have their own limits, and capacity has no prices."""
        if self.allocation.prices is not None or self._program is None:
            return False
        return bool(self._program.limits.of_kinds(LimitKind.SLICE).any())

    @cached_property
    def _program(self) -> Program | None:
        """The program of the allocation, None where it is no optimum of one."""
        if not self.exact or self.notion is None:
            return None
        sharing: Any = self.allocation.sharing
        return self.notion.formulate(self.made.instance, sharing=sharing, integral=False)

    def _holders(self, by_resource: Mapping[int, list[int]]) -> str:
        """Return who holds the resource that stops the user; of several, the resource of which others hold the largest part."""
        room = self.room
        parts: dict[int, FloatArray] = {}
        for r, rows in by_resource.items():
            parts[r] = np.sum([room.held(i, r) for i in rows], axis=0) / room.capacity[rows, r].sum()
        r = max(parts, key=lambda r: parts[r].sum() - parts[r][self.n])
        held, what = parts[r], f"that {named(room.resources[r])}"
        others = [f"{named(self.instance.users[m])} {percent(held[m])}" for m in room.largest_holders(held)]
        mine = f"{self.who} itself {percent(held[self.n])}" if held[self.n] > 0 else f"{self.who} none"
        return f"Who has {what}: {', '.join([*others, mine])}." if others else f"All of {what} that is in use is its own."

    def _holders_of_cluster(self, stops: Sequence[Stop | FullOfCluster]) -> list[str]:
        """Return who holds the first resource of the cluster that stops the user."""
        full = next((each for each in stops if isinstance(each, FullOfCluster)), None)
        if full is None:
            return []
        amount: Any = full.amount
        parts, name = full.held / amount, named(self.instance.resources[full.resource])
        others = [f"{named(self.instance.users[m])} {percent(parts[m])}" for m in self.room.largest_holders(full.held)]
        mine = f"{self.who} itself {percent(parts[self.n])}" if parts[self.n] > 0 else f"{self.who} none"
        return [f"Who has that {name}: {', '.join([*others, mine])}." if others else f"All of that {name} that is in use is its own."]

    def _left_over(self, rows: Sequence[int]) -> str:
        names = self._rows(rows)
        ended_by = self.allocation.details.get("blocked_by")
        if ended_by is not None:
            return f"On {names} there is room left: the schedule ended when a task of {named(ended_by)} did not fit."
        if stopped_by_rule(self.allocation, self.n):
            return f"On {names} there is room for more of its tasks, but the rule does not allow them."
        if self.whole and self.given:
            return f"On {names} enough is left for another task, if it is not spread over several servers."
        if self.whole:
            return f"On {names} enough is left in all, but not on any single server."
        return f"On {names} there is room for more of its tasks{f', and {self.allocation.notion} does not use it' if self.exact else ''}."

    # What it is worth, and what would help ---------------------------------------------------------------------------------------

    def worth(self, deadline: Deadline) -> list[str]:
        """Return what the user pays, if the goal is a sum; if the allocation is not exact, violated limits and the exact optimum."""
        if not self.takes_part:
            return []
        if self.exact:
            return [] if self.room.prices is None else paid(self.allocation, self.made, self.n, self.room, self._program)
        sentences = []
        if self.given:
            wrong = violations(self.instance, self.allocation.tasks, self.allocation.sharing, self.room.rounding(WRITTEN))
            more = f"; and {len(wrong) - NAMES:,} more" if len(wrong) > NAMES else ""
            sentences = [f"The allocation does not fit: {'; '.join(map(str, wrong[:NAMES]))}{more}."] if wrong else []
        return [*sentences, self._optimum(deadline)]

    def _optimum(self, deadline: Deadline) -> str:
        return against_optimum(self.made, [self.n], deadline)

    def helps(self, found: Sequence[Gain]) -> list[str]:
        """Return the best change of each kind, and what it would give."""
        of_work = "" if self.instance.speeds_given is None else "the work of "
        return what_helps(found, self.does, idle_weight(self.allocation, user=self.n), self.room.rounding, of_work)

    # The others -----------------------------------------------------------------------------------------------------------------

    def _largest_bundle(self) -> int | None:
        """Return the other user whose holdings would run the most tasks; if none would, the one with most tasks; None if none has any."""
        for values in (self.would, np.where(takes_part(self.instance), self.allocation.tasks_per_user, 0)):
            node = self.instance.tree.user_node
            others = np.where((np.arange(values.size) == self.n) | (node != node[self.n]), 0, values)  # of its own queue
            if others.max() > 0:
                return int(others.argmax())
        return None

    def versus(self) -> list[str]:
        """Return what the user could run with what the other user holds, and why the other has a larger share."""
        m = self.other
        if m is None or not self.takes_part:
            return []
        weights = self.instance.weights
        name = named(self.instance.users[m])
        has = f"{name} has {number_of_tasks(number(self.allocation.tasks_per_user[m]))}{self._why_ahead(m)}."
        node = self.instance.tree.user_node
        if node[m] != node[self.n]:
            return [f"{has} It is in another queue, so their weights do not compare them."]
        if self.instance.tree.listed[node[m]]:
            first, then = (name, self.who) if m < self.n else (self.who, name)
            return [f"{has} In their queue {first} is served before {then}, so their weights do not compare them."]
        if not envy_applies(self.allocation) or self._has_own_rows or (self.instance.weights[[self.n, m]] == 0).any():
            return [has]
        would, rounding = number(self.would[m]), self.room.rounding(WRITTEN)
        would = would if self.instance.speeds_given is not None else min(would, number(self.instance.tasks[self.n]))
        would = would if would > self.room.rounding(NOTHING) else would * 0
        if would > self.does * (1 + rounding) + self.room.rounding(NOTHING):
            limits = [stop for stop in stops_of(self.allocation, self.n)[0] if isinstance(stop, Stop)]
            reason = f", but a limit stops it: {in_words(limits, self.instance)}" if limits else f": it has reason to envy {name}"
            verdict = f"{figure(would - self.does)} more than it has{reason}"
        elif would >= self.does * (1 - rounding):
            verdict = f"as {'many' if self.instance.speeds_given is None else 'much'} as it has: nothing to envy"
        else:
            fewer = "fewer" if self.instance.speeds_given is None else "less"
            verdict = f"{fewer} than its {figure(self.does)}: nothing to envy"
        ratio = np.unique(np.atleast_1d(weights[self.n] / weights[m]))
        times = "" if (ratio == 1).all() else f", times {joined([figure(number(each)) for each in ratio])} for the weights"
        return [f"{has} With what {name} holds{times}, {self.who} could run {work_in_words(self.instance, would, 3)}, {verdict}."]

    def _why_ahead(self, m: int) -> str:
        instance, x = self.instance, self.allocation.tasks
        if self.allocation.shares.ndim == 2 or self.given:
            return ""
        shares = self._for_weight()
        if shares[m] <= shares[self.n] * (1 + self.room.rounding(WRITTEN)):
            return ""
        if 2 * x[m, ~instance.eligibility[self.n]].sum() > x[m].sum():
            return f", most of them where {self.who} may not run"
        if self.allocation.sharing == "tdm":
            return ""
        stopping = [(i, r) for i, r in self.room.cells if self.room.bottleneck(i, r)]
        spared = {named(self.room.resources[r]) for i, r in stopping if x[m, i] > 0 and instance.demands_by_row(m)[i, r] == 0}
        return f", which need no {joined(sorted(spared))}" if spared else ""

    def _servers(self, rows: Any) -> str:
        """Return the number of servers; if a row stands for several servers, the number of rows."""
        number = int(rows.sum())
        return plural(number, "server") if (self.instance.counts[rows] == 1).all() else f"{plural(number, 'row')} of servers"

    def _rows(self, rows: Iterable[Any]) -> str:
        chosen = np.asarray(list(rows))
        positions = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return some([named(self.instance.servers[i]) for i in positions])
