"""Progressive filling of a tree of queues in fractions: the walk of `fairopt.program.filling`, decided without rounding.

For every task it computes anew which users can be given a task, to which unmet guarantees the task would add, and which limits bar a user.
That is slow, but simple enough to compare with the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import chain

import numpy as np

from fairopt.program.filling import Filling, Kind, Queues
from fairopt.solvers.filling.queue_state import QueueState
from fairopt.solvers.filling.servers_in_fractions import Servers

__all__ = ["Tree"]


class Tree:
    """The queues: what is held below each place, and what their guarantees and limits say of the next task of each user."""

    def __init__(self, servers: Servers, filling: Filling, queues: Queues) -> None:
        self.servers, self.queues = servers, queues
        shape = QueueState.begin(filling, queues, np.argsort(filling.order))
        self.parent, self.depth, self.closed = shape.parent.tolist(), shape.depth.tolist(), shape.closed.tolist()
        self.tier, self.leaf, self.level = shape.tier.tolist(), shape.leaf.tolist(), shape.level.tolist()
        starts, children = shape.children_from.tolist(), shape.children.tolist()
        self.children = [children[starts[node] : starts[node + 1]] for node in range(len(starts) - 1)]
        starts, accounts = shape.accounts_from.tolist(), shape.accounts.tolist()
        entries = list(zip(accounts, shape.adds.tolist(), shape.on_row.tolist(), strict=True))
        self.entries = [entries[starts[n] : starts[n + 1]] for n in range(len(servers.wanted))]
        self.rows: list[list[bool]] = shape.rows.tolist()
        self.counts = [self._rows_of_accounts(own) for own in self.entries]  # of each user: the rows on which an account counts it
        places = len(self.parent)
        self.weight = [*queues.weights, *queues.leaf_weights]
        self.promised = shape.promised.tolist()
        starts, given = shape.given_from.tolist(), shape.given.tolist()
        self.given = [given[starts[node] : starts[node + 1]] for node in range(len(starts) - 1)]
        self.upwards = shape.upwards.tolist()
        self.running = [0] * places
        width = 1 if queues.parts is None else queues.parts.shape[1]
        self.usage = [[Fraction(0)] * width for _ in range(places)]
        self.plain_usage = [[Fraction(0)] * width for _ in range(places)]  # where all resources count once
        self.held = [Fraction(0)] * len(queues.amounts)
        self.allowed = [[True] * len(row) for row in servers.eligible]  # on which rows a task of each user exceeds no limit
        for n in range(len(servers.wanted)):
            self._bar(n)

    def _rows_of_accounts(self, entries: list[tuple[int, Fraction, int]]) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        for a, _, only in entries:
            rows = {k for k, counts in enumerate(self.rows[a]) if counts and only in (-1, k)}
            found[a] = found.get(a, set()) | rows
        return found

    # What the next task of a user would do ---------------------------------------------------------------------------------------

    def _bar(self, n: int) -> None:
        """Let the user only on rows where its task exceeds no limit."""
        allowed = [True] * len(self.allowed[n])
        for a, adds, row in self.entries[n]:
            if self.queues.kinds[a] != Kind.GUARANTEE and adds > self._room(a):
                allowed = [
                    ok and not (counted and row in (-1, k)) for k, (ok, counted) in enumerate(zip(allowed, self.rows[a], strict=True))
                ]
        self.allowed[n] = allowed

    def _room(self, a: int) -> Fraction:
        """Return how much more the users of a limit may hold, or of a queue beside what others keep."""
        if self.queues.kinds[a] == Kind.LIMIT:
            left: Fraction = self.queues.amounts[a] - self.held[a]
            return left
        own = [each for each, keeping in enumerate(self.queues.keeping.tolist()) if keeping == self.queues.keeping[a]]
        above, keeps = self.queues.above.tolist(), self.queues.amounts
        counted = {each: self.held[each] for each in own}
        for each in reversed(own[:-1]):  # children before parents
            counted[above[each]] += max(keeps[each], counted[each])
        room: Fraction = keeps[own[-1]] - counted[own[-1]]
        while a != own[-1]:
            room += max(keeps[a] - counted[a], 0)
            a = above[a]
        return room

    def _unmet(self, n: int) -> Iterator[int]:
        """Yield the accounts of guarantees that are not met and that the user's tasks may add to."""
        for a in self.counts[n]:
            if self.queues.kinds[a] == Kind.GUARANTEE and self.held[a] < self.queues.amounts[a]:
                yield a

    def _below_own(self, n: int) -> bool:
        return bool(self.running[self.leaf[n]] < self.promised[self.leaf[n]])

    def _need(self, n: int, rows: Iterable[int]) -> int:
        """Return the depth of the deepest unmet guarantee that a task of n on one of these rows adds to; 0: none; -1: it may not run."""
        if self._below_own(n):
            need = self.depth[self.leaf[n]]
        else:
            unmet = list(self._unmet(n))
            rows = set(rows) if unmet else set()
            need = max((self.level[a] for a in unmet if self.counts[n][a] & rows), default=0)
        return -1 if need < self.closed[self.leaf[n]] else need  # a weight of 0 below that guarantee

    def _needs(self, fitting: Callable[[int], Iterable[int]]) -> dict[int, int]:
        """Return the need of each user whose task can be placed somewhere."""
        found = {}
        for n, allowed in enumerate(self.allowed):
            rows = (row for i in fitting(n) if allowed[row := self.servers.row[i]])
            for row in rows:
                need = self._need(n, chain([row], rows))
                if need >= 0:
                    found[n] = need
                break
        return found

    # The walk --------------------------------------------------------------------------------------------------------------------

    def next(self, fitting: Callable[[int], Iterable[int]], one_of: Callable[[list[int]], int]) -> tuple[int, list[bool]] | None:
        """Walk down from the root; return the user of the next task and the rows on which it adds to the guarantee that it must add to."""
        needs = self._needs(fitting)
        if not needs:
            return None
        of_leaf: dict[int, int] = {}
        best: dict[int, tuple[int, int]] = {}  # of each place: the largest need below it, and the highest tier with it
        for n, need in needs.items():
            place = self.leaf[n]
            of_leaf.setdefault(place, n)
            key = (need, self.tier[n])
            while place >= 0:
                best[place] = max(best.get(place, key), key)
                place = self.parent[place]
        parts = self._parts(best)
        place = depth = level = 0
        while place < len(self.children):
            depth += 1
            able = [child for child in self.children[place] if child in best]
            if any(best[child][0] >= depth for child in able):
                level = depth
            able = [child for child in able if best[child][0] >= level]
            if level == depth:
                measures = [parts[child] for child in able]
            else:
                top = max(best[child][1] for child in able)
                able = [child for child in able if level > 0 or best[child][1] == top]
                listed = self.queues.listed[place]
                measures = [Fraction(child) if listed else self._share(child, top) / self.weight[child] for child in able]
            tied = [child for child, measure in zip(able, measures, strict=True) if measure == min(measures)]
            place = one_of(tied)
        return of_leaf[place], self._rows(of_leaf[place], level)

    def _parts(self, best: dict[int, tuple[int, int]]) -> dict[int, Fraction]:
        """Return use / guarantee of each place at or below which a guarantee is unmet."""
        parts: dict[int, Fraction] = {}
        neediest: dict[int, Fraction] = {}  # of each place: the smallest part of its children
        for place in self.upwards:
            if place in best and best[place][0] >= self.depth[place]:
                parts[place] = self._part(place, neediest.get(place, Fraction(0)))
                above = self.parent[place]
                neediest[above] = min(neediest.get(above, parts[place]), parts[place])
        return parts

    def _part(self, place: int, neediest: Fraction) -> Fraction:
        """Return use / guarantee of a place, of which ``neediest`` is the smallest among its children."""
        if place >= len(self.children):
            return Fraction(self.running[place] / self.promised[place])
        amounts, kinds, totals = self.queues.amounts, self.queues.resources, self.queues.totals
        given = self.given[place]
        if all(self.held[a] >= amounts[a] for a in given):
            return neediest + 1 if given else neediest
        used = {kinds[a]: sum(min(self.held[b], amounts[b]) for b in given if kinds[b] == kinds[a]) / totals[kinds[a]] for a in given}
        return Fraction(max(used.values()) / self.promised[place])

    def _share(self, place: int, tier: int) -> Fraction:
        return max((self.plain_usage if tier < self.queues.lowest_tier else self.usage)[place])

    def _rows(self, n: int, level: int) -> list[bool]:
        """Return the rows on which a task of n exceeds no limit and adds to a guarantee of this depth or below; 0: to none."""
        if level == 0 or self._below_own(n):
            return self.allowed[n]
        accounts = [a for a in self._unmet(n) if self.level[a] >= level]
        return [ok and any(k in self.counts[n][a] for a in accounts) for k, ok in enumerate(self.allowed[n])]

    def place(self, n: int, i: int) -> None:
        """Place one task, and count it everywhere above and in the accounts."""
        servers, row, queues = self.servers, self.servers.row[i], self.queues
        servers.place(n, i)
        worth = servers.worth[n][row] * (self.tier[n] >= queues.lowest_tier)
        leaf = place = self.leaf[n]
        while place >= 0:
            self.running[place] += 1
            if place == leaf or queues.parts is None:
                self.usage[place][0] += worth
            else:
                for r in range(len(self.usage[place])):
                    self.usage[place][r] += queues.parts[n, r]
            if queues.last is not None:
                self._count_plainly(n, place)
            place = self.parent[place]
        barred = False
        for a, adds, on_row in self.entries[n]:
            if self.rows[a][row] and on_row in (-1, row):
                self.held[a] += adds
                barred |= bool(queues.kinds[a] != Kind.GUARANTEE)
        if barred:
            for other in range(len(servers.wanted)):
                self._bar(other)

    def _count_plainly(self, n: int, place: int) -> None:
        queues, usage = self.queues, self.plain_usage[place]
        if place == self.leaf[n] or queues.plain_parts is None:
            assert queues.plain_worths is not None
            usage[0] += queues.plain_worths[n]
            return
        for r in range(len(usage)):
            usage[r] += queues.plain_parts[n, r]
