r"""Filling a tree of queues: the rates at which the shares of users rise, and how rates change when a user stops.

Let s[n] = U[n] be the share of user n, not divided by its weight. Shares rise together, in parts one after the other. Each part begins
with the shares S that the parts before it gave. At each moment the users who rise do so at the rates of the tree:

    root:                  a rising child c rises at rate w[c]
    node v with rate R:    its rising children c rise at R w[c] / m[v]

    queue_share="sum"         m[v] = sum of w[c] over rising children
    queue_share="dominant"    m[v] = max_r V[r],   V = sum of w[c] e[c] over rising children,   e[v] = V / m[v],
                              e[n] = parts of the cluster that a unit of n's share takes                (Bhattacharya et al. 2013, H-DRF)

A node rises while a user below it does. With one resource both are the same. In a queue of the order "listed" the first of its children
that are not stopped rises alone, at rate R; the others wait for it. (This does not apply to guaranteed nodes in the part of their own
guarantees.)

*One level:* maximise t such that a feasible x has s[n] >= S[n] + rate[n] t for users who rise and s[n] >= S[n] for the others. The prices
of this program show which users are stopped. They stay stopped for the rest of the part, and the rates of the others are computed anew. A
user with all its tasks stops, too.

*Guarantees* are parts of their own, from the inside out: a guaranteed node is in the part whose number is the longest chain of guaranteed
nodes below it. There it has its guarantee as an extra limit and rises in proportion to its guarantee (the largest part of the cluster in
it). Inside a guaranteed node weights divide. The extra limits end with the part. *The surplus* comes after the guarantees, tier by tier,
the highest first. How far guarantees are met together is decided before: `fairopt.program.guarantees`.

*Clamp:* of the children of a node only those rise whose share / weight is the smallest; the others wait until these have caught up. (This
does not apply to guaranteed nodes in the part of their own guarantees.) The share of a node is the integral of its rate.

All of this is written for floats and for fractions (arrays of objects): in fractions two shares are the same only if they are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import SAME
from fairopt.instance.tree import Tree
from fairopt.program.limits import Limits
from fairopt.program.objective import Feature, Objective

if TYPE_CHECKING:
    from fairopt.program.queue_limits import Row
    from fairopt.program.share_limits import ShareLimits

__all__ = ["Part", "Shares", "TreeCourse", "TreeFilling"]

_LEAST = 1e-5  # part of what a user could have alone: whether a smaller share can rise is judged as if it were this large


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A part of the filling: guarantees, or the surplus of one tier.

    Attributes
    ----------
    title : str
    users : bool array (users,)
        Who rises at its beginning.
    node_rates : array (nodes,)
        Of guaranteed nodes, the rate at which they rise; 0 of others. None in the surplus, where the tree gives the rates.
    user_rates : array (users,)
        The same of users with a guarantee of their own.
    extra : Limits or None
        The guarantees as limits. Where earlier parts gave more than a guarantee, the limit is raised (`fairopt.program.guarantees`).
    names : tuple of str
        Of the extra limits.
    rows : tuple of Row
        The extra limits as they were stated, in the order of ``extra``.
    owners : int array (extra limits,)
        Whose guarantee each is: the node of a queue, or the number of nodes plus that of a user.
    by_work : bool
        Do demands or speeds differ by server? Then promises count work (`fairopt.program.promises`).
    """

    title: str
    users: BoolArray
    node_rates: FloatArray | None = None
    user_rates: FloatArray | None = None
    extra: Limits | None = None
    names: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    owners: IntArray | None = None
    by_work: bool = False

    @property
    def guarantees(self) -> bool:
        """Are guarantees met in it? Else it is a surplus."""
        return self.node_rates is not None

    def limits(self, bounds: FloatArray | None) -> Limits | None:
        """Return the extra limits with these bounds, (extra limits,), or None: with their own; None where there are none."""
        if self.extra is None or not len(self.extra):
            return None
        return self.extra if bounds is None else self.extra.with_bounds(bounds)

    def of(self, tree: Tree, top: int) -> Part | None:
        """Return the part for the guarantees of a node and of those below it alone; None: there is none.

        ``top`` counts as in ``owners``.
        """
        if self.node_rates is None or self.user_rates is None or self.extra is None or self.owners is None:
            return None
        nodes, users = np.zeros(tree.n_nodes, bool), np.zeros(self.users.size, bool)
        if top < tree.n_nodes:
            nodes[top] = True
            for layer in tree.layers[::-1]:
                nodes[layer] |= nodes[tree.parent[layer]]
            users = tree.below[top]
        else:
            users[top - tree.n_nodes] = True
        mine = np.flatnonzero(np.append(nodes, users)[self.owners])
        if not (self.users & users).any() or not mine.size:
            return None
        zero, kept = self.node_rates[:1] * 0, self.extra.select(mine)
        return replace(
            self,
            users=self.users & users,
            node_rates=np.where(nodes, self.node_rates, zero),
            user_rates=np.where(users, self.user_rates, zero),
            extra=replace(kept, keys=np.column_stack([np.arange(mine.size), np.full(mine.size, -1)])),  # keys count the rows
            names=tuple(self.names[k] for k in mine),
            rows=tuple(self.rows[k] for k in mine),
            owners=self.owners[mine],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """What users, (users,), have, and where a clamp asks for it, what nodes have, (nodes,)."""

    users: FloatArray
    nodes: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class TreeFilling(Objective):
    """Fill a tree of queues.

    Attributes
    ----------
    weights : array (users,)
        Among the users of a queue.
    tree : Tree
    takes : array (users, resources) or None
        e[n]; None for ``queue_share="sum"``.
    clamp : bool
    parts : tuple of Part
        The guarantees from the inside out, then the tiers of the surplus from the highest down.
    rules_at_end : bool
        Do rules bind the end of the filling alone, and not its parts? So do those of a plan.
    """

    feature: ClassVar = Feature.TREE
    is_filling: ClassVar = True

    weights: FloatArray
    tree: Tree
    takes: FloatArray | None
    clamp: bool
    parts: tuple[Part, ...]
    rules_at_end: bool = False

    @property
    def feature_of_whole_tasks(self) -> Feature:
        """Whole tasks of a tree, where stop times (`fairopt.program.stop_times`) define their order."""
        return Feature.WHOLE_WITHOUT_STOP_TIMES if self.no_whole_tasks else Feature.WHOLE_BY_STOP_TIMES

    @property
    def no_whole_tasks(self) -> str:
        """Why stop times (`fairopt.program.stop_times`) have no closed form, and what to do, as the end of a sentence; else ""."""
        if self.clamp and any(part.node_rates is not None or part.user_rates is not None for part in self.parts):
            return 'with guarantees="clamp" siblings wait for each other; use guarantees="surplus"'
        if self.takes is None or not self.parts:
            return ""
        tree = self.tree
        for node, part in product(tree.children(0), self.parts):
            takes = self.takes[tree.below[node] & part.users]
            if len(takes) < 2:
                continue
            largest = takes.max(axis=1)
            if np.ptp(largest) > SAME * largest.max() or not (takes >= largest[:, None] * (1 - SAME)).all(axis=0).any():
                below = f'users below queue "{tree.name(int(node))}" have different dominant resources'
                return f'{below}, and its share is dominant; use queue_share="sum"'
        return ""

    def part_title(self, part: int) -> str:
        """Return the title of a part."""
        return self.parts[part].title

    def alone(self, owner: int) -> TreeFilling:
        """Return the filling of one guaranteed node alone, up to its guarantee, inner guarantees first; ``owner`` as in `Part.owners`."""
        last = next(k for k, part in enumerate(self.parts) if part.owners is not None and (part.owners == owner).any())
        parts = [part for each in self.parts[: last + 1] if (part := each.of(self.tree, owner)) is not None]
        return replace(self, parts=tuple(parts))

    def nothing(self) -> Shares:
        """Return the shares before the first part."""
        return Shares(self._zeros(self.weights.size), self._zeros(self.tree.n_nodes))

    @property
    def same(self) -> float:
        """Shares that differ by at most this part are the same: 0 in fractions."""
        return 0 if self.weights.dtype == object else SAME

    def _zeros(self, size: int) -> FloatArray:
        return np.zeros(size, dtype=self.weights.dtype)

    def active(self, users: BoolArray) -> BoolArray:
        """Return which nodes have one of these users below, (nodes,)."""
        active = np.zeros(self.tree.n_nodes, bool)
        active[self.tree.user_node[users]] = True
        for layer in self.tree.layers:
            active[self.tree.parent[layer[active[layer]]]] = True
        return active

    def inside(self, part: Part) -> BoolArray:
        """Return the nodes whose rates come from their parents, (nodes,): all but the root, or where guarantees are met those below one."""
        inside = np.zeros(self.tree.n_nodes, bool)
        if part.node_rates is None:
            inside[1:] = True
            return inside
        for v in self.tree.order[::-1]:
            above = self.tree.parent[v]
            inside[v] = inside[above] or part.node_rates[above] > 0
        return inside

    def rates(self, part: Part, users: BoolArray, nodes: BoolArray) -> FloatArray:
        """Return the rate of each user, (users,), where these users and nodes rise."""
        tree = self.tree
        node, parent = tree.user_node, tree.parent
        own = part.user_rates if part.user_rates is not None else self._zeros(users.size)
        mine = self.weights * (users & (own == 0))
        sums = self._gathered(mine)
        size = self._zeros(tree.n_nodes) + 1  # m
        for layer in tree.layers:
            total = sums[layer] if self.takes is None else sums[layer].max(axis=1)
            size[layer] = np.where(total > 0, total, 1)
            given = tree.weights[layer] * (nodes[layer] & (total > 0))
            np.add.at(sums, parent[layer], given if self.takes is None else (given / size[layer])[:, None] * sums[layer])
        of_root = sums[0] if self.takes is None else sums[0].max()
        size[0] = of_root if of_root > 0 else 1
        rate = self._zeros(tree.n_nodes)
        if part.node_rates is None:
            rate[0] = size[0]
        for layer in tree.layers[::-1]:
            above = parent[layer]
            rate[layer] = np.where(nodes[layer], rate[above] * tree.weights[layer] / size[above], 0)
            if part.node_rates is not None:
                rate[layer] = np.where(part.node_rates[layer] > 0, part.node_rates[layer], rate[layer])
        return np.where(users & (own > 0), own, rate[node] * mine / size[node])

    def _gathered(self, of_users: FloatArray) -> FloatArray:
        """Return the sums of values of the users right below each node, (nodes,); of what they take, (nodes, resources)."""
        tree = self.tree
        if of_users.dtype == object:
            exact = np.zeros(tree.n_nodes if self.takes is None else (tree.n_nodes, self.takes.shape[1]), dtype=object)
            np.add.at(exact, tree.user_node, of_users if self.takes is None else of_users[:, None] * self.takes)
            return exact
        if self.takes is None:
            return np.bincount(tree.user_node, weights=of_users, minlength=tree.n_nodes).astype(np.float64)
        kinds = self.takes.shape[1]
        place = (tree.user_node[:, None] * kinds + np.arange(kinds)).ravel()
        taken = np.bincount(place, weights=(of_users[:, None] * self.takes).ravel(), minlength=tree.n_nodes * kinds)
        return taken.reshape(tree.n_nodes, kinds).astype(np.float64)

    def node_rates(self, rates: FloatArray) -> FloatArray:
        """Return the rates at which the shares of nodes rise at these rates of users, (nodes,)."""
        tree, sums = self.tree, self._gathered(rates)
        for layer in tree.layers:
            np.add.at(sums, tree.parent[layer], sums[layer])
        return np.asarray(sums if self.takes is None else sums.max(axis=1, initial=0))

    def course(self, part: Part, shares: Shares, members: BoolArray, most: FloatArray, limits: ShareLimits) -> TreeCourse:
        """Return the course of a part that begins with these shares.

        Parameters
        ----------
        members : bool array (users,)
            Who can have anything.
        most : array (users,)
            The share that each user could have alone.
        limits : ShareLimits
            Of the program of the part.
        """
        full = limits.left(shares.users) <= 2 * SAME * limits.bounds  # twice: a guarantee may have been raised by as much
        rising = part.users & members & ~limits.users_of(full)
        return TreeCourse(self, part, shares, rising, _LEAST * most, limits)


class TreeCourse:
    """The course of a part: time t, the shares at t, and the rates. `advance` and `stop` move it on."""

    def __init__(
        self, goal: TreeFilling, part: Part, shares: Shares, rising: BoolArray, least: FloatArray, limits: ShareLimits | None
    ) -> None:
        self.goal, self.part, self.least, self.limits = goal, part, least, limits
        self.t: float = 0
        self.shares, self.rising = shares, rising.copy()
        self.inside = goal.inside(part)  # whose rates come from their parents
        self.tops = np.zeros(goal.tree.n_nodes, bool) if part.node_rates is None else part.node_rates > 0  # whose guarantees are met
        # Users and nodes that rise, or would rise if their queue did not wait: under a clamp, and in a queue of the order "listed".
        self.first_users, self.first_nodes = np.zeros(rising.size, bool), np.zeros(goal.tree.n_nodes, bool)
        self.renew(caught_up=False)

    def renew(self, caught_up: bool) -> None:
        """Compute the rates; with ``caught_up``, users and queues whose siblings have caught up with them rise, too."""
        goal = self.goal
        active = goal.active(self.rising)
        active[0] = False
        if goal.clamp:
            self._join(active, caught_up)
        else:
            self.first_users, self.first_nodes = self.rising, active
        self._in_turn(active)
        self.rate = goal.rates(self.part, self.first_users, self.first_nodes)
        self.node_rate = goal.node_rates(self.rate) if goal.clamp else np.zeros(goal.tree.n_nodes, dtype=self.rate.dtype)

    def _in_turn(self, active: BoolArray) -> None:
        """In a queue of the order "listed", let the first child alone rise; the others rise only for guarantees of their own."""
        tree = self.goal.tree
        if not tree.listed.any():
            return
        own = self.part.user_rates > 0 if self.part.user_rates is not None else np.zeros(self.rising.size, bool)
        users, nodes = tree.in_turn(self.rising & ~own, active & self.inside & ~self.tops)
        listed_users, listed_nodes = tree.listed[tree.user_node] & ~own, tree.listed[tree.parent] & self.inside & ~self.tops
        self.first_users = np.where(listed_users, users, self.first_users)
        self.first_nodes = np.where(listed_nodes, nodes, self.first_nodes)

    def _join(self, active: BoolArray, caught_up: bool) -> None:
        """Under a clamp, let the children with the smallest share / weight rise where none does, and those that siblings have reached."""
        tree = self.goal.tree
        self.first_users &= self.rising
        self.first_nodes &= active
        self.first_nodes |= active & ~self.inside
        if self.part.user_rates is not None:
            self.first_users |= self.rising & (self.part.user_rates > 0)
        level_users, level_nodes = self._levels()
        nodes = np.flatnonzero(active & self.inside)
        users = np.flatnonzero(self.rising)
        of_nodes, of_users = tree.parent[nodes], tree.user_node[users]
        same, kind = self.goal.same, level_users.dtype
        up_to = np.full(tree.n_nodes, -np.inf, dtype=kind)
        if caught_up:
            wait, next_level = self._until_caught_up()
            soon = wait <= (wait.min() + same * max(self.t, wait.min()) if same else wait.min())
            up_to[soon] = next_level[soon] * (1 + same)
        led = np.zeros(tree.n_nodes, bool)  # nodes where somebody rises already
        led[tree.user_node[self.first_users]] = True
        led[tree.parent[self.first_nodes & self.inside]] = True
        least = np.full(tree.n_nodes, np.inf, dtype=kind)
        np.minimum.at(least, of_users, level_users[users])
        np.minimum.at(least, of_nodes, level_nodes[nodes])
        up_to[~led] = least[~led] * (1 + same)
        self.first_users[users] |= level_users[users] <= up_to[of_users]
        self.first_nodes[nodes] |= level_nodes[nodes] <= up_to[of_nodes]

    def _levels(self) -> tuple[FloatArray, FloatArray]:
        """Return the share / weight of users and nodes; inf for weights of 0."""
        weights, of_nodes = self.goal.weights, self.goal.tree.weights
        users = np.divide(self.shares.users, weights, out=np.full_like(weights, np.inf), where=weights > 0)
        return users, np.divide(self.shares.nodes, of_nodes, out=np.full_like(of_nodes, np.inf), where=of_nodes > 0)

    def at(self, t: float) -> Shares:
        """Return the shares at t, which is not before now."""
        past = t - self.t
        return Shares(self.shares.users + self.rate * past, self.shares.nodes + self.node_rate * past)

    def event(self) -> tuple[float, IntArray]:
        """Return when the rates change next, limits of servers aside, and the users whom a full limit on shares stops then.

        In fractions limits on shares are not treated apart (``limits`` is None).
        """
        limits = self.limits
        caught = self._until_caught_up()[0].min() if self.goal.clamp else np.inf
        if limits is None:
            return self.t + caught, np.empty(0, np.int64)
        left, speed = limits.left(self.shares.users), limits.uses @ self.rate
        time = np.divide(left, speed, out=np.full(left.size, np.inf), where=speed > 0)
        first = max(float(time.min(initial=np.inf)), 0.0)
        caught = float(caught)
        if caught < first * (1 - SAME):
            return self.t + caught, np.empty(0, np.int64)
        if not np.isfinite(first):
            return np.inf, np.empty(0, np.int64)
        full = (left - speed * first <= SAME * limits.bounds) & (speed > 0)
        return self.t + first, np.flatnonzero(limits.users_of(full) & self.rising)

    def _until_caught_up(self) -> tuple[FloatArray, FloatArray]:
        """Return the time until a child of each node catches up with a waiting sibling, and the level of that sibling.

        Both have shape (nodes,) and are inf where no child waits.
        """
        goal, tree = self.goal, self.goal.tree
        level_users, level_nodes = self._levels()
        waiting_users = self.rising & ~self.first_users & ~tree.listed[tree.user_node]  # in a listed queue nobody catches up
        waiting_nodes = goal.active(self.rising) & self.inside & ~self.first_nodes & ~tree.listed[tree.parent]
        next_level, wait = (np.full(tree.n_nodes, np.inf, dtype=level_users.dtype) for _ in range(2))
        np.minimum.at(next_level, tree.user_node[waiting_users], level_users[waiting_users])
        np.minimum.at(next_level, tree.parent[waiting_nodes], level_nodes[waiting_nodes])
        for level, rate, weight, above in (
            (level_users, self.rate, goal.weights, tree.user_node),
            (level_nodes[1:], self.node_rate[1:], tree.weights[1:], tree.parent[1:]),
        ):
            going = np.flatnonzero((rate > 0) & (next_level[above] < np.inf) & (weight > 0))
            gap = np.maximum(next_level[above[going]] - level[going], 0)
            np.minimum.at(wait, above[going], gap * weight[going] / rate[going])
        return wait, next_level

    def advance(self, t: float) -> None:
        """Move on to time t."""
        self.shares, self.t = self.at(t), t

    def stop(self, users: IntArray) -> None:
        """Stop users, and compute the rates of the others. Without users to stop, a child has caught up with a sibling."""
        self.rising[users] = False
        self.renew(caught_up=users.size == 0)
