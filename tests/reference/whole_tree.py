"""Whole tasks in a tree of queues by enumeration, in fractions: nothing of fairopt but the data of an instance.

The share of a queue is the sum of its users' shares. For every vector of gains the part of a filling is run as it is defined: users rise at
the rates of the tree, each stops when it has its gain, and the rates of the others change then (in a queue of the order "listed" the first
who has not stopped rises alone). Of all chains of whole tasks x[1] <= x[2]
<= ..., one for each part, those are best whose sorted stop times are largest, those of the first part first.

Guarantees are those of one resource in the whole cluster. How far they are met together comes first: completions are the whole tasks whose
sorted parts of guarantees are the largest, first of those in no other, then of those in one, and so on. A chain counts only if nobody has
more at its end than in some completion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import fairopt as fo

__all__ = ["best_ends", "best_whole_tasks", "best_within_rules", "feasible", "guaranteed", "shares_of_a_task"]

Tasks = tuple[int, ...]


@dataclass
class Agent:
    """A user or a queue in one part: how fast it rises beside its siblings, and who is in it."""

    weight: Fraction
    user: int | None = None
    children: tuple[Agent, ...] = ()
    listed: bool = False

    def users(self) -> set[int]:
        """Return all users below."""
        return {self.user} if self.user is not None else {n for child in self.children for n in child.users()}


def guaranteed(seed: int) -> fo.Instance:
    """One resource: guarantees of queues and users, tiers, weights of 0."""
    rng = np.random.default_rng(1000 + seed)
    queues = []
    for q in range(3):
        parent = None if q < 2 or rng.random() < 0.4 else f"q{int(rng.integers(0, 2))}"
        guarantee = {"r0": int(rng.integers(1, 5))} if rng.random() < 0.6 else {}
        tier = int(rng.integers(0, 2)) if parent is None and rng.random() < 0.4 else 0
        queues.append(fo.Queue(f"q{q}", parent, weight=int(rng.integers(0, 3)), guarantee=guarantee, tier=tier))
    users = int(rng.integers(2, 5))
    return fo.Instance(
        rng.integers(3, 6, (int(rng.integers(1, 3)), 1)),
        rng.integers(1, 3, (users, 1)),
        weights=rng.integers(0, 3, users),
        tasks=np.where(rng.random(users) < 0.3, rng.integers(1, 4, users), np.inf),
        guarantees=np.where(rng.random(users) < 0.25, 1, 0),
        queues=queues,
        queue_of=[None if rng.random() < 0.2 else f"q{int(rng.integers(0, 3))}" for _ in range(users)],
        resources=["r0"],
    )


def shares_of_a_task(instance: fo.Instance) -> list[Fraction]:
    """Return the dominant share of one task of each user."""
    total = [sum(Fraction(float(c)) for c in column) for column in instance.row_capacity.T]
    return [max(Fraction(float(d)) / c for d, c in zip(row, total, strict=True) if c) for row in instance.demands]


def stop_times(agents: Iterable[Agent], gains: dict[int, Fraction]) -> dict[int, Fraction]:
    """Run a part in which these agents rise at their weights until each user has its gain."""
    agents = list(agents)
    left, times, now = dict(gains), dict[int, Fraction](), Fraction(0)
    active = {n for agent in agents for n in agent.users()}
    while active:
        rates: dict[int, Fraction] = {}  # who waits in a listed queue has none, and stops when its turn comes
        for agent in agents:
            if agent.users() & active:
                _rates(agent, agent.weight, active, rates)
        step = min(left[n] / rate for n, rate in rates.items())
        now += step
        for n, rate in rates.items():
            left[n] -= step * rate
            if left[n] == 0:
                times[n] = now
                active.discard(n)
    return times


def _rates(agent: Agent, rate: Fraction, active: set[int], rates: dict[int, Fraction]) -> None:
    if agent.user is not None:
        rates[agent.user] = rate
        return
    rising = [child for child in agent.children if child.users() & active]
    rising = rising[:1] if agent.listed else rising
    for child in rising:
        _rates(child, rate * child.weight / sum(each.weight for each in rising), active, rates)


def feasible(instance: fo.Instance) -> set[Tasks]:
    """Return the whole numbers of tasks that users can run together."""
    pairs = [(n, i) for n in range(instance.n_users) for i in range(instance.n_servers) if instance.eligibility[n, i]]
    found: set[Tasks] = set()

    def place(k: int, used: list[list[float]], tasks: list[int]) -> None:
        if k == len(pairs):
            found.add(tuple(tasks))
            return
        n, i = pairs[k]
        number, demand = 0, instance.demands[n]
        while True:
            mine = [list(row) for row in used]
            mine[i] = [u + number * d for u, d in zip(used[i], demand, strict=True)]
            now = [*tasks[:n], tasks[n] + number, *tasks[n + 1 :]]
            if any(u > c for u, c in zip(mine[i], instance.row_capacity[i], strict=True)) or now[n] > instance.tasks[n]:
                return
            if not _within_limits(instance, now):
                return
            place(k + 1, mine, now)
            number += 1

    place(0, [[0.0] * instance.n_resources for _ in range(instance.n_servers)], [0] * instance.n_users)
    return found


def _within_limits(instance: fo.Instance, tasks: list[int]) -> bool:
    for node, queue in enumerate(instance.queues, 1):
        for resource, most in queue.limit.items():
            r = instance.resources.index(resource)
            if sum(tasks[n] * instance.demands[n, r] for n in range(len(tasks)) if instance.tree.below[node, n]) > most:
                return False
    return True


@dataclass
class Part:
    """Who rises in a part, and within which guarantees: users, and the amount of the one resource."""

    agents: list[Agent]
    bounds: list[tuple[list[int], float]]

    def users(self) -> set[int]:
        """Return who rises."""
        return {n for agent in self.agents for n in agent.users()}


def parts_of(instance: fo.Instance) -> Iterator[Part]:
    """Yield the parts: guarantees from the inside out, then the tiers of the surplus from the highest down."""
    tree, weights = instance.tree, [Fraction(float(w)) for w in instance.weights]
    total = Fraction(float(instance.total_capacity[0]))

    def agent(node: int, weight: Fraction, chosen: set[int]) -> Agent | None:
        users = [Agent(weights[n], int(n)) for n in tree.users_of(node) if n in chosen]
        queues = [agent(int(c), Fraction(float(tree.weights[c])), chosen) for c in tree.children(node) if tree.weights[c] > 0]
        children = tuple(each for each in (*users, *queues) if each is not None)
        return Agent(weight, None, children, node > 0 and tree.queues[node - 1].order == "listed") if children else None

    stage = stages_of(instance)
    for number in range(1, max(stage.values(), default=0) + 1):
        part, own = Part([], []), set[int]()
        for n in range(instance.n_users):
            if instance.guarantees[n] > 0 and number == 1:
                amount = float(instance.guarantees[n] * instance.demands[n, 0])
                own.add(n)
                part.agents.append(Agent(Fraction(amount) / total, n))
                part.bounds.append(([n], amount))
        for node, queue in enumerate(instance.queues, 1):
            if stage[node] == number:
                amount = next(iter(queue.guarantee.values()))
                inside = {n for n in range(instance.n_users) if weights[n] > 0 and n not in own}
                risen = agent(node, Fraction(amount) / total, inside)
                part.agents += [] if risen is None else [risen]
                part.bounds.append(([n for n in range(instance.n_users) if tree.below[node, n]], amount))
        if part.agents:
            yield part
    tiers = [int(tree.tiers[node]) for node in tree.user_node]
    rising = agent(0, Fraction(1), {n for n in range(instance.n_users) if weights[n] > 0})
    everybody = set[int]() if rising is None else rising.users()
    for tier in sorted({tiers[n] for n in everybody}, reverse=True):
        root = agent(0, Fraction(1), {n for n in everybody if tiers[n] == tier})
        assert root is not None
        yield Part(list(root.children), [])


def stages_of(instance: fo.Instance) -> dict[int, int]:
    """Return the part of the guarantee of each queue, by its node: the longest chain of guaranteed users and queues that ends there."""
    tree, stage = instance.tree, dict[int, int]()
    for node in tree.upwards():
        inner = [stage[v] for v in stage if v in _below(instance, node)] + [
            int(instance.guarantees[n] > 0) for n in np.flatnonzero(tree.below[node])
        ]
        promised = node > 0 and sum(tree.queues[node - 1].guarantee.values()) > 0
        stage[node] = max(inner, default=0) + 1 if promised else 0
    return stage | ({0: 1} if instance.guarantees.any() else {})


def _below(instance: fo.Instance, node: int) -> set[int]:
    children = [int(c) for c in instance.tree.children(node)]
    return {*children, *(v for c in children for v in _below(instance, c))}


@dataclass
class Promise:
    """A guarantee: who rises in its part and for it, its amount, its part of the filling, and how many guaranteed queues it is in."""

    own: set[int]
    users: set[int]
    amount: float
    part: int
    above: int


def promises_of(instance: fo.Instance) -> list[Promise]:
    """Return the guarantees; nobody rises in a queue for a guarantee below whom or above whom, up to it, a weight is 0."""
    tree, stage, found = instance.tree, stages_of(instance), list[Promise]()

    def above(node: int) -> int:
        return 0 if not node else above(int(tree.parent[node])) + int(stage[node] > 0)

    def rises(n: int, node: int) -> bool:
        path, v = [float(instance.weights[n])], int(tree.user_node[n])
        while v != node:
            path.append(float(tree.weights[v]))
            v = int(tree.parent[v])
        return min(path) > 0

    for n in np.flatnonzero(instance.guarantees > 0).tolist():
        amount = float(instance.guarantees[n] * instance.demands[n, 0])
        found.append(Promise({n}, {n}, amount, 1, above(int(tree.user_node[n]))))
    for node in sorted((v for v in stage if v and stage[v]), key=lambda v: stage[v]):
        below = {int(n) for n in np.flatnonzero(tree.below[node])}
        inner = set[int]().union(*(each.users for each in found if each.users <= below and each.part < stage[node]))
        own = {n for n in below if rises(n, node)}
        amount = next(iter(instance.queues[node - 1].guarantee.values()))
        found.append(Promise(own, own | inner, amount, stage[node], above(int(tree.parent[node]))))
    return [each for each in found if each.users]


def completions(instance: fo.Instance, possible: Iterable[Tasks]) -> list[Tasks]:
    """Return the whole tasks whose sorted parts are the largest; who rises for a guarantee alone counts no more than it."""
    use, promises = [float(d) for d in instance.demands[:, 0]], promises_of(instance)
    risen = {n for part in parts_of(instance) if not part.bounds for n in part.users()}
    last = {n: max(each.part for each in promises if n in each.own) for each in promises for n in each.own - risen}

    def within(tasks: Tasks) -> bool:
        for each in promises:
            only = {n for n in each.users if last.get(n) == each.part}
            inner = sum(other.amount for other in promises if other.part < each.part and other.users <= each.users and other.users & only)
            if only and sum(use[n] * tasks[n] for n in only) > max(each.amount, inner):
                return False
        return True

    def parts_at(tasks: Tasks) -> list[list[Fraction]]:
        held = [min(sum(use[n] * tasks[n] for n in each.users), each.amount) for each in promises]
        depths = sorted({each.above for each in promises})
        return [
            sorted(Fraction(h) / Fraction(each.amount) for h, each in zip(held, promises, strict=True) if each.above == d) for d in depths
        ]

    allowed = [tasks for tasks in possible if within(tasks)]
    best = max(map(parts_at, allowed))
    return [tasks for tasks in allowed if parts_at(tasks) == best]


def best_whole_tasks(
    instance: fo.Instance, obeys: Callable[[Tasks], bool] = lambda tasks: True, *, parts_first: bool = True
) -> tuple[list[list[Fraction]], set[Tasks]]:
    """Return the best sorted stop times of each part, and all numbers of tasks with which they are reached, of those that obey rules.

    Without ``parts_first`` the stages alone decide.
    """
    share, use = shares_of_a_task(instance), [float(d) for d in instance.demands[:, 0]]
    possible, reached, best_times = {*filter(obeys, feasible(instance))}, {(0,) * instance.n_users}, list[list[Fraction]]()
    if parts_first and possible and promises_of(instance):
        ends = completions(instance, possible)
        possible = {tasks for tasks in possible if any(all(x <= y for x, y in zip(tasks, end, strict=True)) for end in ends)}
    for part in parts_of(instance):
        users, best, keep = part.users(), list[Fraction](), set[Tasks]()
        for before in reached:
            for tasks in possible:
                if any(now < then or (now != then and n not in users) for n, (now, then) in enumerate(zip(tasks, before, strict=True))):
                    continue
                held = [[sum(use[n] * each[n] for n in below) for below, _ in part.bounds] for each in (tasks, before)]
                if any(now > max(most, then) for now, then, (_, most) in zip(*held, part.bounds, strict=True)):
                    continue
                times = sorted(stop_times(part.agents, {n: (tasks[n] - before[n]) * share[n] for n in users}).values())
                if not keep or times > best:
                    best, keep = times, {tasks}
                elif times == best:
                    keep.add(tasks)
        reached = keep
        best_times.append(best)
    return best_times, reached


def best_ends(instance: fo.Instance, ends: set[Tasks]) -> set[Tasks]:
    """Return the numbers of tasks at the end of the best chains, of those with such an end: the sorted stop times of all parts, in turn."""
    share, use = shares_of_a_task(instance), [float(d) for d in instance.demands[:, 0]]
    possible = feasible(instance)
    best: dict[Tasks, list[list[Fraction]]] = {(0,) * instance.n_users: []}
    for part in parts_of(instance):
        users, after = part.users(), dict[Tasks, list[list[Fraction]]]()
        for before, sofar in best.items():
            for tasks in possible:
                if any(now < then or (now != then and n not in users) for n, (now, then) in enumerate(zip(tasks, before, strict=True))):
                    continue
                held = [[sum(use[n] * each[n] for n in below) for below, _ in part.bounds] for each in (tasks, before)]
                if any(now > max(most, then) for now, then, (_, most) in zip(*held, part.bounds, strict=True)):
                    continue
                times = [*sofar, sorted(stop_times(part.agents, {n: (tasks[n] - before[n]) * share[n] for n in users}).values())]
                if tasks not in after or times > after[tasks]:
                    after[tasks] = times
        best = after
    chosen = {tasks: times for tasks, times in best.items() if tuple(map(int, tasks)) in ends}
    return {tasks for tasks, times in chosen.items() if times == max(chosen.values())}


def best_within_rules(instance: fo.Instance, obeys: Callable[[Tasks], bool]) -> tuple[list[list[Fraction]], set[Tasks]]:
    """Return the best sorted stop times of each part, and the tasks at the end of least share in all, where each part obeys the rules.

    Shares of the filling, as tasks, are at most what a user has; who does not rise keeps its own. In a part of guarantees their amounts are
    at most the guarantees, or the least that the shares so far and the rules allow, one guarantee after the other.
    """
    share, use = shares_of_a_task(instance), [float(d) for d in instance.demands[:, 0]]
    possible = [tasks for tasks in feasible(instance) if obeys(tasks)]
    reached, best_times, ends = {(0,) * instance.n_users}, list[list[Fraction]](), set[Tasks]()
    for part in parts_of(instance):
        users, best, keep = part.users(), list[Fraction](), set[Tasks]()
        ways = [(before, tasks) for before in reached for tasks in possible if all(b <= x for b, x in zip(before, tasks, strict=True))]
        for below, most in part.bounds:
            held = [sum(use[n] * tasks[n] for n in below) for _, tasks in ways]
            ways = [way for way, amount in zip(ways, held, strict=True) if amount <= max(most, min(held))]
        for before, tasks in ways:
            times = sorted(stop_times(part.agents, {n: (tasks[n] - before[n]) * share[n] for n in users}).values())
            now = tuple(x if n in users else b for n, (b, x) in enumerate(zip(before, tasks, strict=True)))
            if not keep or times > best:
                best, keep, ends = times, {now}, {tasks}
            elif times == best:
                keep.add(now)
                ends.add(tasks)
        reached = keep
        best_times.append(best)
    least = min((sum(s * x for s, x in zip(share, tasks, strict=True)) for tasks in ends), default=Fraction(0))
    return best_times, {tasks for tasks in ends if sum(s * x for s, x in zip(share, tasks, strict=True)) == least}
