"""Progressive filling with queues as one would write it on paper: in fractions, every task and every server tried each time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache, cached_property
from typing import TypeAlias

import numpy as np
from reference.kept import kept_of
from reference.schedule import Reference, draw, order_of, take_turns

import fairopt as fo

Place: TypeAlias = tuple[str, int]  # ("queue", node), node 0 being the root, or ("user", number)
Pair: TypeAlias = tuple[int, int]  # a user (over time: a job), and a single server on which its next task can be placed


@cache
def exact(value: float) -> Fraction:
    """Return the fraction with a small denominator that is meant."""
    return Fraction(float(value)).limit_denominator(10**6)


class TreeReference(Reference):
    """Servers and users as without queues, and above them the queues."""

    def __init__(self, instance: fo.Instance, criterion: str, queue_share: str, slots: int | None = None) -> None:
        super().__init__(instance, criterion, slots)
        self.instance, self.queue_share = instance, queue_share
        self.tree = instance.tree
        self.demands = [[exact(value) for value in row] for row in instance.demands]  # of resources, also with slots
        self.of_server = [[exact(value) for value in instance.capacities[i]] for i in self.row]
        self.promised = [exact(value) for value in instance.guarantees]
        self.chains = [self._chain(user) for user in range(self.n)]
        self.users_of = [[user for user in range(self.n) if self.tree.user_node[user] == node] for node in range(self.tree.n_nodes)]
        self.queues_of = [[int(child) for child in self.tree.children(node)] for node in range(self.tree.n_nodes)]
        self.quotas_of = [self._quotas(node) for node in range(self.tree.n_nodes)]
        self.users_below = {place: [user for user in range(self.n) if place in self.chains[user]] for way in self.chains for place in way}

    def _chain(self, user: int) -> list[Place]:
        node = int(self.tree.user_node[user])
        chain: list[Place] = [("user", user)]
        while node >= 0:
            chain.append(("queue", node))
            node = int(self.tree.parent[node])
        return chain[::-1]

    def chain(self, user: int) -> list[Place]:
        """Return the places from the root to the user."""
        return self.chains[user]

    def below(self, place: Place) -> list[int]:
        """Return the users below a place."""
        return self.users_below.get(place, [])

    def weight(self, place: Place) -> Fraction:
        """Return the weight among the siblings."""
        kind, number = place
        return exact(self.instance.weights[number] if kind == "user" else self.tree.weights[number])

    def _quotas(self, node: int) -> list[tuple[fo.Queue | fo.Quota, list[int]]]:
        if node == 0:
            return []
        queue = self.tree.queues[node - 1]
        groups = [[i for i in self.servers if self.instance.servers[self.row[i]] in quota.servers] for quota in queue.quotas]
        return [(queue, list(self.servers)), *zip(queue.quotas, groups, strict=True)]

    def quotas(self, node: int) -> list[tuple[fo.Queue | fo.Quota, list[int]]]:
        """Return what the queue of a node gives and takes, and the servers for which it does."""
        return self.quotas_of[node]

    def usage(self, users: list[int], r: int, servers: Sequence[int]) -> Fraction:
        """Return what these users have of a resource on these servers."""
        tasks = {user: sum(self.x[user][i] for i in servers) for user in users}
        return sum((number * self.demands[user][r] for user, number in tasks.items() if number), Fraction(0))

    def task_of(self, subject: int) -> tuple[int, list[Fraction]]:
        """Return the user of a pair, and the demand of its next task."""
        return subject, self.demands[subject]

    def number(self, user: int) -> int:
        """Return how many tasks a user has."""
        return sum(self.x[user])

    def within_limits(self, subject: int, i: int) -> bool:
        """Does one task more exceed no limit, and leave queues what they keep?"""
        user, demand = self.task_of(subject)
        for node in range(1, self.tree.n_nodes):
            inside = self.below(("queue", node))
            for quota, servers in self.quotas(node):
                if i not in servers:
                    continue
                for name, limit in quota.limit.items():
                    r = self.instance.resources.index(name)
                    if user in inside and demand[r] and self.usage(inside, r, servers) + demand[r] > exact(limit):
                        return False
        return all(
            i not in servers or not demand[r] or self.counted(0, r, tuple(servers), user, demand[r], capacity) <= capacity
            for servers, r in self.kept_on
            for capacity in [self.capacity(servers, r)]
        )

    @cached_property
    def kept_on(self) -> list[tuple[list[int], int]]:
        """The groups of servers, and the resources, of which some queue keeps a part."""
        quotas = [each for node in range(1, self.tree.n_nodes) for each in self.quotas(node)]
        found = [
            (servers, self.instance.resources.index(name))
            for quota, servers in quotas
            for name, lent in quota.lending_limit.items()
            if exact(lent) < exact(quota.guarantee[name])
        ]
        return [each for k, each in enumerate(found) if each not in found[:k]]

    def capacity(self, servers: list[int], r: int) -> Fraction:
        """Return how much of a resource there is on these servers."""
        return sum((self.of_server[j][r] for j in servers), Fraction(0))

    @cache  # noqa: B019
    def _keeps(self, node: int, r: int, servers: tuple[int, ...]) -> Fraction:
        """Return what a queue keeps of a resource on a group of servers, where guarantees are met together on all of them."""
        return self._kept(r, servers).get(node - 1, Fraction(0))

    @cache  # noqa: B019
    def _kept(self, r: int, servers: tuple[int, ...]) -> dict[int, Fraction]:
        rows = {int(self.row[j]) for j in servers}
        found = (kept for kept in kept_of(self.instance, exact) if kept.resource == r and set(kept.servers) & set(self.row) == rows)
        return next((kept.amounts for kept in found), {})

    @cache  # noqa: B019
    def _factor(self, r: int, servers: tuple[int, ...], capacity: Fraction) -> Fraction:
        """Return by what kept parts are scaled so that they fit together into this capacity."""

        def together(node: int) -> Fraction:
            below = sum((together(child) for child in self.queues_of[node]), Fraction(0))
            return max(self._keeps(node, r, servers), below)

        return min(Fraction(1), capacity / together(0)) if together(0) else Fraction(1)

    def counted(self, node: int, r: int, servers: tuple[int, ...], user: int, more: Fraction, capacity: Fraction) -> Fraction:
        """Return z of a node if a user held more: what its own users use and what counts of its children; at least what it keeps."""
        own = self.users_of[node]
        used = self.usage(own, r, servers) + (more if user in own else 0)
        used += sum(self.counted(child, r, servers, user, more, capacity) for child in self.queues_of[node])
        kept = self._keeps(node, r, servers)
        return max(used, kept * self._factor(r, servers, capacity)) if kept else used

    def needs(self, subject: int, i: int) -> list[int]:
        """Return the depths of the unmet guarantees that a task on the server would add to; 0: it needs none.

        A guarantee counts if all weights below it are positive; no guarantee at all, if all weights are.
        """
        user, demand = self.task_of(subject)
        chain = self.chain(user)
        found = [] if any(self.weight(place) == 0 for place in chain[1:]) else [0]
        for depth, (kind, number) in enumerate(chain):
            if any(self.weight(place) == 0 for place in chain[depth + 1 :]):
                continue
            if kind == "user":
                if self.number(user) < self.promised[user]:
                    found.append(depth)
                continue
            for quota, servers in self.quotas(number):
                for name, amount in quota.guarantee.items():
                    r = self.instance.resources.index(name)
                    missing = self.usage(self.below((kind, number)), r, servers) < exact(amount)
                    if i in servers and demand[r] and missing:
                        found.append(depth)
        return found

    def demand_any(self, users: list[int], r: int) -> bool:
        """Do tasks of these users take anything of a resource?"""
        return any(self.demands[user][r] for user in users)

    def part_of_guarantee(self, place: Place, needs: dict[Pair, int]) -> Fraction:
        """Return use / guarantee of a place that is below a guarantee; ``needs`` are the deepest needs of the tasks that can be placed."""
        kind, number = place
        if kind == "user":
            return self.number(number) / self.promised[number]
        users = self.below(place)
        use, guarantee, unmet = dict[int, Fraction](), dict[int, Fraction](), False
        for quota, servers in self.quotas(number):
            for name, amount in quota.guarantee.items():
                r = self.instance.resources.index(name)
                if amount and self.total_of(r) and self.demand_any(users, r):
                    held = self.usage(users, r, servers)
                    unmet |= held < exact(amount)
                    use[r] = use.get(r, Fraction(0)) + min(held, exact(amount))
                    guarantee[r] = guarantee.get(r, Fraction(0)) + exact(amount)
        if unmet:
            return max(use[r] / self.total_of(r) for r in use) / max(guarantee[r] / self.total_of(r) for r in use)
        depth = self.chain(users[0]).index(place) + 1
        inside = {pair: need for pair, need in needs.items() if need >= depth}
        children = [self.part_of_guarantee(child, self.pairs_below(child, inside)) for child in self.children_of(place, inside)]
        return min(children) + (1 if guarantee else 0)

    def children_of(self, place: Place, pairs: dict[Pair, int]) -> list[Place]:
        """Return the children of a queue below which there are such pairs, all of which are below the queue."""
        chains = [self.chain(self.task_of(subject)[0]) for subject, _ in pairs]
        return list(dict.fromkeys(chain[chain.index(place) + 1] for chain in chains))

    def pairs_below(self, place: Place, pairs: dict[Pair, int]) -> dict[Pair, int]:
        """Return the pairs below a place."""
        return {pair: need for pair, need in pairs.items() if place in self.chain(self.task_of(pair[0])[0])}

    def tier_of(self, subject: int) -> int:
        """Return the tier of the queue of a pair's user."""
        return int(self.tree.tiers[self.tree.user_node[self.task_of(subject)[0]]])

    def total_of(self, r: int) -> Fraction:
        """Return the capacity of the cluster in a resource."""
        return sum((capacity[r] for capacity in self.of_server), Fraction(0))

    def share_of(self, place: Place) -> Fraction:
        """Return the share of a user or a queue, before weights."""
        kind, number = place
        if kind == "user":
            return self.unweighted(number)
        users = self.below(place)
        if self.queue_share == "sum":
            return sum((self.unweighted(user) for user in users), Fraction(0))
        totals = [sum((sum(self.x[user]) * self.d[user][r] for user in users), Fraction(0)) for r in range(self.m)]
        return max((totals[r] / self.total[r] for r in range(self.m) if self.total[r]), default=Fraction(0))

    def unweighted(self, user: int) -> Fraction:
        """Return the share of a user, not divided by its weight."""
        phi, self.phi[user] = self.phi[user], Fraction(1)
        share = self.share(user, 0)
        self.phi[user] = phi
        return share

    def turn(self, pairs: list[Pair], rank: list[int], ties: str, rng: np.random.Generator) -> tuple[int, list[int]] | None:
        """Walk down from the root; return the user (over time: its first job) of the next task, and the servers where it may be placed."""
        can = {pair: max(needs) for pair in pairs if (needs := self.needs(*pair))}
        if not can:
            return None
        place: Place = ("queue", 0)
        depth = 0
        needy = False
        while place[0] == "queue":
            depth += 1
            if below := {pair: need for pair, need in can.items() if need >= depth}:
                can, needy = below, True
            children = {child: self.pairs_below(child, can) for child in self.children_of(place, can)}
            if not needy:
                tier = {child: max(self.tier_of(subject) for subject, _ in own) for child, own in children.items()}
                children = {child: own for child, own in children.items() if tier[child] == max(tier.values())}
            if below:
                measure = {child: self.part_of_guarantee(child, own) for child, own in children.items()}
            elif place[1] and self.tree.queues[place[1] - 1].order == "listed":
                measure = {child: Fraction(child[1]) for child in children}
            else:
                measure = {child: self.share_of(child) / self.weight(child) for child in children}
            tied = [child for child in measure if measure[child] == min(measure.values())]
            tied.sort(key=lambda child: min(rank.index(user) for user in self.below(child)))
            place = tied[draw(rng, len(tied))] if ties == "random" else tied[0]
            can = children[place]
        first = min(subject for subject, _ in can)
        return first, sorted(i for subject, i in can if subject == first)


def schedule(
    instance: fo.Instance,
    criterion: str,
    placement: str,
    queue_share: str,
    *,
    ties: str = "index",
    seed: int = 0,
    metric: str = "l1",
    slots: int = 3,
) -> list[Pair]:
    """Return (user, single server) of each task in the order of placement."""
    rng = np.random.default_rng(seed)
    state = TreeReference(instance, criterion, queue_share, slots if placement == "slots" else None)
    rank = order_of(state, ties)

    def can_place(servers: list[int]) -> list[Pair]:
        return [(user, i) for user in range(state.n) for i in servers if state.fits(user, i) and state.within_limits(user, i)]

    if placement in ("random-round-robin", "random-server"):
        _by_server(state, can_place, rank, ties, rng, in_rounds=placement == "random-round-robin")
        return state.placed
    while (turn := state.turn(can_place(list(state.servers)), rank, ties, rng)) is not None:
        user, found = turn
        if placement == "random":
            i = found[draw(rng, len(found))]
        elif placement in ("best-fit", "worst-fit"):
            how = metric if placement == "best-fit" else "loosest"
            i = min(found, key=lambda i: (state.score(how, user, i), i))
        else:
            i = found[0]
        state.place(user, i)
    return state.placed


def _by_server(state: TreeReference, can_place: object, rank: list[int], ties: str, rng: np.random.Generator, in_rounds: bool) -> None:
    def serve(i: int) -> bool:
        turn = state.turn(can_place([i]), rank, ties, rng)  # type: ignore[operator]
        if turn is not None:
            state.place(turn[0], i)
        return turn is not None

    take_turns(list(state.servers), rng, in_rounds, serve)
