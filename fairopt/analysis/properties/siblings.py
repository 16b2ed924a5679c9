r"""Children of one queue as agents: users, and queues with everything below them.

Weights, guarantees and tiers compare the children of one queue (or of the root) with each other. Let c be such a child, and

    H[c][i,r] = sum over users n below c of x[n,i] d[n,i,r]       what it holds on server i (of time, with x[n,i] / gamma[n,i]),
                                                                 and in one row more, of the whole cluster, of resources that are shared,
    G[c]      = the part of H[c] that c, or what is below c, is guaranteed.

*When a child is better off with a bundle B.* A user counts its own tasks. A queue has many users, and the tree has no rule for what one of
them may lose in favour of another. So a queue is better off with B only if nobody below it loses and somebody gains:

    maximise    sum over users n below c of (V'[n] - V[n])
    subject to  sum over these n of x'[n,i] d[n,i,r] <= B[i,r],  V' >= V,  their numbers of tasks, and the limits of c and of what is below;
                shared resources count on all servers together.

The optimum is the gain, in tasks or in work; without a feasible point there is none. For a user, `fairopt.analysis.measures`
defines the same.

*Which children are compared.* Those that take part, have a weight > 0 and are of one tier. What a child holds within its guarantee is
neither envied nor divided. The children of a queue of the order "listed" are not compared: those who come first are served first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy
import scipy.sparse as sp

from fairopt.analysis.bundles import rows_of_user
from fairopt.analysis.in_fractions import largest
from fairopt.analysis.properties.case import Case
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.keeping import Keeping
from fairopt.instance.tolerances import NOTHING
from fairopt.program.kept_parts import KeptParts
from fairopt.program.queue_limits import guarantees_of, limit_rows
from fairopt.solvers.backend import Deadline
from fairopt.wording import joined, named

__all__ = ["Child", "Families", "named_child", "not_compared"]

_OF_A_PROGRAM = 2_000.0  # steps of the linear program of a queue's gain, beside one for each pair
_OF_A_USER = 100.0  # steps of a user's gain
Part: TypeAlias = tuple[Any, IntArray, IntArray]  # of a matrix: values, rows, columns


@dataclass(frozen=True, slots=True, eq=False)
class Child:
    """A child of a queue: user ``user``, or the queue at ``node``, whose users below take part."""

    node: int
    user: int | None
    users: IntArray
    weight: Any  # a float, or a Fraction
    tier: int

    @property
    def is_queue(self) -> bool:
        """Is it a queue?"""
        return self.user is None


def named_child(case: Case, child: Child, *, first: bool = False) -> str:
    """Return the name of a child for a sentence, or for its beginning: a user in quotes, a queue as such."""
    return f'{"Q" if first else "q"}ueue "{case.instance.tree.name(child.node)}"' if child.user is None else case.name(child.user)


def not_compared(case: Case) -> str:
    """Return the sentence on queues that serve one after the other, for the end of a verdict; "" where there is none."""
    tree = case.instance.tree
    names = [named(tree.name(int(node))) for node in np.flatnonzero(tree.listed) if tree.below[node].sum() > 1]
    return f" Nobody is compared inside {joined(names, 3)}: the order is listed, first come, first served." if names else ""


class Families:
    """The children of each node of a tree, what they hold, and what they would do with a bundle."""

    def __init__(self, case: Case) -> None:
        self.case, self.instance, self.tree = case, case.instance, case.instance.tree
        self.limits = list(limit_rows(case.instance))
        self.kept = KeptParts.of(case.instance)
        self.by_time = case.sharing == "tdm"
        weights = case.instance.weights
        self.weights = weights if weights.ndim == 1 else np.ones(case.instance.n_users, weights.dtype)
        self._held: dict[int, FloatArray] = {}
        self._beyond: dict[tuple[int, int], FloatArray] = {}
        self._promised: dict[int, FloatArray] = {}

    def families(self) -> Iterator[tuple[int, list[Child]]]:
        """Yield each node with its children that take part, where they are compared: not in a queue that serves one after the other.

        Nobody is compared with those of weight 0, who have guarantees alone.
        """
        for node in np.flatnonzero(~self.tree.listed).tolist():
            tier = int(self.tree.tiers[node])
            users = [Child(node, int(n), np.array([n]), self.weights[n], tier) for n in self.tree.users_of(node) if self.case.part[n]]
            queues = [self.queue(int(child)) for child in self.tree.children(node)]
            children = users + [queue for queue in queues if queue.users.size]
            if children:
                yield node, children

    def queue(self, node: int) -> Child:
        """Return a queue as an agent."""
        below = np.flatnonzero(self.tree.below[node] & self.case.part)
        return Child(node, None, below, self.tree.weights[node], int(self.tree.tiers[node]))

    # What they hold --------------------------------------------------------------------------------------------------------------

    def uses(self, users: IntArray, told: Instance | None = None) -> FloatArray:
        """Return what a task of each of these users takes on each server, (users, servers, things); with ``told`` as that instance says.

        The last things are the shared resources.
        """
        instance = told or self.instance
        amounts = instance.demands_by_kind[users][:, instance.kind_of]
        if not self.by_time:
            return amounts
        rates = instance.rates[users]
        time = np.divide(1, rates, out=np.zeros(rates.shape, self.case.value.dtype), where=(rates > 0) & (rates < np.inf))[:, :, None]
        return np.concatenate([time, amounts[:, :, instance.n_server_resources :]], axis=2)

    def of_users(self, users: IntArray, tasks: FloatArray, told: Instance | None = None) -> FloatArray:
        """Return what these users hold with tasks, (users, servers), as (servers, things); with ``told`` by what that instance says."""
        instance = told or self.instance
        if self.by_time:
            of_servers = (tasks[users][:, :, None] * self.uses(users, told)[:, :, :1]).sum(axis=0)
        else:
            of_servers = instance.usage(tasks[users], users)
        return self._with_shared(np.asarray(of_servers), instance.usage_of_shared(tasks[users], users))

    def _with_shared(self, of_servers: FloatArray, of_cluster: FloatArray) -> FloatArray:
        """Return amounts of servers, (servers, their things), and of shared resources, (shared,), as (servers, things).

        The shared resources stand in a row of their own, that of the cluster; without them there is none.
        """
        if not of_cluster.size:
            return of_servers
        (rows, things), own = of_servers.shape, of_cluster.size
        table = np.zeros((rows + 1, things + own), of_servers.dtype)
        table[:rows, :things], table[rows, things:] = of_servers, of_cluster
        return table

    def _thing(self, resource: int) -> int:
        """Return which of the things a resource is, if it is one."""
        return resource if not self.by_time else resource - self.instance.n_server_resources + 1

    def _rows(self, servers: BoolArray, resource: int) -> IntArray:
        """Return the rows of a table of things where a resource on some servers is: that of the cluster, if it is shared."""
        if resource >= self.instance.n_server_resources:
            return np.array([self.instance.n_servers])
        return np.flatnonzero(servers)

    def held(self, child: Child) -> FloatArray:
        """H[c], (servers, things)."""
        if child.user is not None:
            return self.of_users(child.users, self.case.allocation.tasks)
        return self.held_below(child.node)

    def held_below(self, node: int) -> FloatArray:
        """H of a queue, or of the root, (servers, things)."""
        if node not in self._held:
            self._held[node] = self.of_users(np.flatnonzero(self.tree.below[node]), self.case.allocation.tasks)
        return self._held[node]

    def promised(self, child: Child) -> FloatArray:
        """G[c], (servers, things)."""
        return self._promised_to(child.user) if child.user is not None else self._promised_below(child.node)

    def _promised_to(self, user: int) -> FloatArray:
        has, own = self.case.allocation.tasks_per_user[user], self.instance.guarantees[user]
        part = min(own / has, 1) if has > 0 else 0
        return part * self.of_users(np.array([user]), self.case.allocation.tasks)

    def _promised_below(self, node: int) -> FloatArray:
        if node not in self._promised:
            held = self.held_below(node)
            own = np.zeros_like(held)
            for row in guarantees_of(self.instance, self.tree, node):
                if self.by_time and row.resource < self.instance.n_server_resources:
                    continue
                rows, r = self._rows(row.servers, row.resource), self._thing(row.resource)
                together = held[rows, r].sum()
                part = min(row.bound / together, 1) if together > 0 else 0
                own[rows, r] = np.maximum(own[rows, r], part * held[rows, r])
            below = np.zeros_like(own)
            for child in self.tree.children(node):
                below += self._promised_below(int(child))
            for n in self.tree.users_of(node):
                if self.instance.guarantees[n] > 0:
                    below += self._promised_to(int(n))
            self._promised[node] = np.maximum(own, below)
        return self._promised[node]

    def to_divide(self, node: int) -> FloatArray:
        """Return what the children of a node divide, (servers, things): all that the queue holds; of the root, the whole cluster."""
        if node:
            return self.held_below(node)
        time = np.where(self.instance.counts > 0, self._full(1, 1), 0)[:, None]
        there = time if self.by_time else self.instance.row_capacity
        return self._with_shared(np.asarray(there), self.instance.shared_capacity)

    def slice_of(self, node: int, child: Child, children: list[Child]) -> FloatArray:
        """Return what a child would have if all children of its tier had their parts by weight, (servers, things).

        What the others are guaranteed, and what those of other tiers hold, is set aside; so is what they keep and do not use.
        """
        left = np.maximum(self._left(node, child.tier, children) + self.promised(child), 0)
        for keeping in self.kept.keepings if self.kept is not None and node == 0 and not self.by_time else ():
            rows = self._rows(keeping.servers, keeping.resource)
            total = left[rows, keeping.resource].sum()
            if total > 0:
                left[rows, keeping.resource] *= max(total - self._idle(keeping, child), 0) / total
        return np.asarray(left * (child.weight / sum(other.weight for other in children if other.tier == child.tier)))

    def _idle(self, keeping: Keeping, child: Child) -> Any:
        """Return what queues keep of a resource on a group of servers and do not use, those of the child left out."""
        held = keeping.held(self.instance.kinds.held(self.case.allocation.tasks, keeping.servers, keeping.resource))
        counted = keeping.counted(held)
        others = [k for k in keeping.keepers(held) if not (child.is_queue and child.node in self._way(keeping.nodes[k]))]
        return sum(keeping.kept[k] - counted[k] for k in others)

    def _way(self, node: int) -> Iterator[int]:
        """Yield a queue and the queues above it."""
        while node:
            yield node
            node = int(self.tree.parent[node])

    def _left(self, node: int, tier: int, children: list[Child]) -> FloatArray:
        """Return what the children of a tier divide beyond all guarantees among them, (servers, things)."""
        if (node, tier) not in self._beyond:
            left = self.to_divide(node).copy()
            for other in children:
                left -= self.promised(other) if other.tier == tier else self.held(other)
            self._beyond[node, tier] = left
        return self._beyond[node, tier]

    def _still(self, child: Child) -> BoolArray:
        """Return which users below a child never have more than guarantees, by a weight of 0 on the way to them, (users below,)."""
        still: BoolArray = self.weights[child.users] == 0
        for j, n in enumerate(child.users):
            node = int(self.tree.user_node[n])
            while child.is_queue and node != child.node:
                still[j] |= self.tree.weights[node] == 0
                node = int(self.tree.parent[node])
        return still

    # What they would do with a bundle ---------------------------------------------------------------------------------------------

    def value(self, child: Child) -> Any:
        """Return the tasks that it runs."""
        return self.case.value[child.users].sum()

    def slack(self, child: Child) -> Any:
        """Return the tasks that count as rounding."""
        return self.case.slack[child.users].sum()

    def steps_of_a_gain(self, child: Child) -> float:
        """Return about how many steps of work `gain` takes."""
        return _OF_A_PROGRAM + child.users.size * self.instance.n_servers if child.is_queue else _OF_A_USER

    def gain(self, child: Child, bundle: FloatArray) -> Any:
        """Return by how many tasks it would be better off with a bundle, (servers, things); 0 where it would not."""
        users, case = child.users, self.case
        if case.complete[users].all():
            return 0
        if child.user is not None:
            uses = self.uses(users)[0]
            of_servers = uses.shape[1] - len(self.instance.shared)
            could = np.full(uses.shape, np.inf, uses.dtype)
            np.divide(bundle[: len(uses)], uses, out=could, where=uses > 0)
            possible = np.where(self.instance.eligibility[child.user], could[:, :of_servers].min(axis=1, initial=np.inf), 0)
            rows = rows_of_user(self.instance, child.user, bundle[-1, of_servers:], alone=False)
            return max(case.most_of(child.user, possible, rows) - case.value[child.user], 0)
        if case.worth is None and not self.by_time:
            # Whoever loses nothing takes as much as now: a bundle that has less of something is worse.
            places = np.ones(len(bundle), bool)
            places[: self.instance.n_servers] = self.instance.eligibility[users].any(axis=0)
            now = self.held_below(child.node).sum(axis=0)
            offered = bundle[places].sum(axis=0)
            small = case.same(NOTHING) * np.maximum(now, offered)
            if (offered < now - small).any() or not (offered > now + small).any():
                return 0
        return self._most(child, bundle)

    def _most(self, child: Child, bundle: FloatArray) -> Any:
        """Return the optimum of the linear program, 0 where it has no feasible point."""
        users, case, instance = child.users, self.case, self.instance
        which, rows = np.nonzero(instance.eligibility[users] & (instance.rates[users] > 0))
        mine = users[which]
        worth = self._full(mine.size, 1) if case.worth is None else case.worth[mine, rows]
        uses = self.uses(users)[which, rows]
        things = uses.shape[1]
        columns = np.arange(mine.size)
        of_servers = things - len(instance.shared)
        place = np.where(np.arange(things) < of_servers, rows[:, None], instance.n_servers)  # shared resources: in the row of the cluster
        parts: list[Part] = [(uses.ravel(), (place * things + np.arange(things)).ravel(), np.repeat(columns, things))]
        bounds: list[FloatArray] = [bundle.ravel()]
        one = self._full(mine.size, 1)
        most = np.where(self._still(child), np.minimum(case.allocation.tasks_per_user[users], instance.tasks[users]), instance.tasks[users])
        _add(parts, bounds, one, which, columns, most, most < np.inf)
        _add(parts, bounds, -worth, which, columns, -case.value[users] * (1 - case.same(NOTHING)), np.ones(users.size, bool))
        at_once = instance.parallelism[users]
        rates = instance.rates_of_one[mine, rows]
        part = np.divide(one, rates, out=self._full(mine.size, 0), where=(rates > 0) & (rates < np.inf))
        _add(parts, bounds, part, which, columns, at_once, at_once < np.inf)
        for row in self.limits:
            if not self._own(child, row.users):
                continue
            take = np.where(row.users[mine] & row.servers[rows], row.coefficients(instance.kinds, mine, rows), 0)
            parts.append((take, np.zeros(mine.size, np.int64), columns))
            bounds.append(np.array([row.bound]))
        for own in case.own_rows:
            table = self._full(instance.eligibility.size, 0).reshape(instance.eligibility.shape)
            table[own.at_users, own.at_servers] = own.values
            parts.append((table[mine, rows], np.zeros(mine.size, np.int64), columns))
            bounds.append(self._full(1, 0) + own.bound)
        offered = bundle[place, np.arange(things)]
        filled = np.divide(offered, uses, out=np.full(uses.shape, np.inf, uses.dtype), where=uses > 0).min(axis=1)
        if case.radius is not None:
            return self._in_fractions(child, worth, parts, bounds)
        most_alone = filled[np.isfinite(filled)].max(initial=0.0)  # who runs nothing now is measured by what the bundle could run
        size, limit = max(self.value(child), float(most_alone), NOTHING), np.concatenate(bounds)
        shapes = [(bound.size, mine.size) for bound in bounds]
        matrix = sp.vstack(
            [sp.csr_array((data, (row, column)), shape) for (data, row, column), shape in zip(parts, shapes, strict=True)], format="csr"
        )
        scale = np.divide(size, np.abs(limit), out=np.ones(limit.size), where=limit != 0)  # rows and columns near 1, whatever the units
        found: Any = scipy.optimize.linprog(-worth, A_ub=sp.diags_array(scale) @ matrix, b_ub=limit * scale / size, method="highs")
        return max(size * float(-found.fun) - self.value(child), 0.0) if found.status == 0 else 0.0

    def _in_fractions(self, child: Child, worth: FloatArray, parts: list[Part], bounds: list[FloatArray]) -> Any:
        """Return the optimum of the program in fractions."""
        first = np.cumsum([0, *(bound.size for bound in bounds)]).tolist()
        entries = [
            (above + int(row), int(column), value)
            for above, (data, rows, columns) in zip(first, parts, strict=False)
            for value, row, column in zip(data.tolist(), rows.tolist(), columns.tolist(), strict=True)
        ]
        point = largest(worth.tolist(), entries, np.concatenate(bounds).tolist(), Deadline(self.case.time_limit))
        return 0 if point is None else max(point @ worth - self.value(child), 0)

    def _full(self, size: int, value: int) -> Any:
        """Return an array of one number, in the arithmetic of the case."""
        return np.full(size, value, self.case.value.dtype)

    def _own(self, child: Child, users: BoolArray) -> bool:
        """Is it a limit of the child, or of what is below it?"""
        return not (users & ~self.tree.below[child.node]).any()


def _add(
    parts: list[Part], bounds: list[FloatArray], values: Any, row: IntArray, column: IntArray, bound: FloatArray, kept: BoolArray
) -> None:
    """Add those rows of a matrix that are kept, with their bounds."""
    here = kept[row]
    parts.append((values[here], (np.cumsum(kept) - 1)[row[here]], column[here]))
    bounds.append(bound[kept])
