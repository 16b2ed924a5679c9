"""The course of a part of a filling, by the definition alone: what the engines use (`fairopt.program.tree_filling`) is not trusted here.

A share that is a sum is a dominant share of one resource of which a unit of everybody's share takes 1. So there is one rule: with the
weights w of the children c of a node v who rise,

    V[v] = sum of w[c] e[c],     m[v] = max_r V[v,r],     e[v] = V[v] / m[v];   of a user, e is what a unit of its share takes
    R[c] = R[v] w[c] / m[v];     R[c] = w[c] of the children of the root, the rate of its guarantee where guarantees are met

Under a clamp, of the children of a node those rise whose share / weight is the smallest; siblings join them when these have caught up.
In a queue of the order "listed" the first child that is not stopped rises alone. Neither waits with the guarantees that a part meets.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.fractions import fractions_of
from fairopt.instance.tolerances import SAME
from fairopt.program.share_limits import ShareLimits
from fairopt.program.tree_filling import Part, Shares, TreeFilling

__all__ = ["Course"]


class Course:
    """Time t, the shares at t, who rises and at which rates. Works in fractions, too (``limits`` is None there)."""

    def __init__(self, goal: TreeFilling, part: Part, shares: Shares, able: BoolArray, limits: ShareLimits | None = None) -> None:
        """Begin a part with these shares; ``able`` are the users, (users,), who can have anything."""
        self.goal, self.part, self.limits, self.shares = goal, part, limits, shares
        self.t: float = 0
        self.same = 0 if goal.weights.dtype == object else SAME
        self.rising = part.users & able
        if limits is not None:
            self.rising &= ~limits.users_of(limits.left(shares.users) <= 2 * SAME * limits.bounds)
        tree = goal.tree
        self.node_weights = tree.weights if self.same else fractions_of(tree.weights)
        self.by_depth = [np.flatnonzero(tree.depth == d) for d in range(1, int(tree.depth.max(initial=0)) + 1)]
        takes = np.ones((goal.weights.size, 1), dtype=np.int64) if goal.takes is None else goal.takes
        self.takes = takes.astype(goal.weights.dtype)
        self.given = part.user_rates if part.user_rates is not None else self._zeros(goal.weights.size)
        tops = self._zeros(tree.n_nodes) if part.node_rates is None else part.node_rates
        self.is_top = tops > 0
        self.tops = tops
        self.inside = np.zeros(tree.n_nodes, bool)  # whose rate comes from its parent
        for nodes in self.by_depth:
            above = tree.parent[nodes]
            self.inside[nodes] = (part.node_rates is None) | self.inside[above] | self.is_top[above]
        ordered = np.array([queue.order == "listed" for queue in tree.queues], bool)
        self.listed_users = np.append(False, ordered)[tree.user_node] & ~(self.given > 0)
        self.listed_nodes = np.append(False, ordered)[np.maximum(tree.parent, 0)] & self.inside & ~self.is_top
        self.users, self.nodes = np.zeros(goal.weights.size, bool), np.zeros(tree.n_nodes, bool)
        self._go_on(joining=None)

    def at(self, t: float) -> Shares:
        """Return the shares at a time that is not before now."""
        return Shares(self.shares.users + self.rate * (t - self.t), self.shares.nodes + self.node_rate * (t - self.t))

    def change(self) -> float:
        """Return when rates change next, whatever servers allow: a limit on shares is full, or siblings have caught up."""
        caught = self._waits()[0].min()
        if self.limits is None:
            return self.t + caught  # type: ignore[no-any-return]
        speed = self.limits.uses @ self.rate
        left = self.limits.left(self.shares.users)
        times = np.divide(left, speed, out=np.full(left.size, np.inf), where=speed > 0)
        return float(self.t + min(float(caught), max(float(times.min(initial=np.inf)), 0.0)))

    def stop(self, t: float, users: IntArray) -> None:
        """Move on to a time at which these users stop; none: siblings have caught up."""
        self.shares, self.t = self.at(t), t
        self.rising[users] = False
        joining = None
        if not users.size and self.goal.clamp:
            waits, levels = self._waits()
            joining = np.where(waits <= waits.min() + self.same * max(self.t, 1) if self.same else waits == waits.min(), levels, -np.inf)
        self._go_on(joining)

    def _go_on(self, joining: FloatArray | None) -> None:
        """Compute who rises and the rates; under a clamp, children join whose level is at most ``joining`` of their node, (nodes,)."""
        goal, tree = self.goal, self.goal.tree
        active = self._active()
        if not goal.clamp:
            self.users, self.nodes = self.rising.copy(), active.copy()
        else:
            users, nodes = self.rising & ~(self.given > 0), active & self.inside
            self.users = self.rising & (self.users | (self.given > 0))
            self.nodes = active & (self.nodes | ~self.inside)
            led = np.zeros(tree.n_nodes, bool)
            led[tree.user_node[self.users]] = True
            led[tree.parent[self.nodes & self.inside]] = True
            of_users, of_nodes = self._levels()
            lowest = np.full(tree.n_nodes, np.inf, dtype=of_users.dtype)
            np.minimum.at(lowest, tree.user_node[users], of_users[users])
            np.minimum.at(lowest, tree.parent[nodes], of_nodes[nodes])
            most = np.where(led, -np.inf if joining is None else joining, lowest) * (1 + self.same)
            self.users |= users & (of_users <= most[tree.user_node])
            self.nodes |= nodes & (of_nodes <= most[tree.parent])
        for going, all_active, above, listed in (
            (self.users, self.rising, tree.user_node, self.listed_users),
            (self.nodes, active, tree.parent, self.listed_nodes),
        ):
            taken: set[int] = set()  # listed queues of which a child rises
            for child in np.flatnonzero(listed):
                going[child] = all_active[child] and int(above[child]) not in taken
                if going[child]:
                    taken.add(int(above[child]))
        self._compute_rates()

    def _compute_rates(self) -> None:
        goal, tree = self.goal, self.goal.tree
        zero = self._zero
        own = np.where(self.users & (self.given == 0), goal.weights, zero)
        taken = np.zeros((tree.n_nodes, self.takes.shape[1]), dtype=goal.weights.dtype)
        np.add.at(taken, tree.user_node, own[:, None] * self.takes)
        size = self._zeros(tree.n_nodes) + 1
        for nodes in reversed(self.by_depth):
            most = taken[nodes].max(axis=1)
            size[nodes] = np.where(most > 0, most, zero + 1)
            weight = np.where(self.nodes[nodes] & (most > 0), tree.weights[nodes], zero)
            np.add.at(taken, tree.parent[nodes], (weight / size[nodes])[:, None] * taken[nodes])
        if taken[0].max() > 0:
            size[0] = taken[0].max()
        rate = self._zeros(tree.n_nodes)
        rate[0] = size[0] if self.part.node_rates is None else zero
        for nodes in self.by_depth:
            above = tree.parent[nodes]
            of_parent = np.where(self.nodes[nodes], rate[above] * tree.weights[nodes] / size[above], zero)
            rate[nodes] = np.where(self.is_top[nodes], self.tops[nodes], of_parent)
        node = tree.user_node
        self.rate = np.where(self.users & (self.given > 0), self.given, rate[node] * own / size[node])
        self.node_rate = self._zeros(tree.n_nodes)
        if goal.clamp:
            held = np.zeros(taken.shape, dtype=taken.dtype)
            np.add.at(held, node, self.rate[:, None] * self.takes)
            for nodes in reversed(self.by_depth):
                np.add.at(held, tree.parent[nodes], held[nodes])
            self.node_rate = held.max(axis=1)

    def _waits(self) -> tuple[FloatArray, FloatArray]:
        """Return the time until somebody catches up with a waiting sibling, and the level of that sibling; (nodes,), inf without one."""
        goal, tree = self.goal, self.goal.tree
        of_users, of_nodes = self._levels()
        wait, level = (np.full(tree.n_nodes, np.inf, dtype=of_users.dtype) for _ in range(2))
        if not goal.clamp:
            return wait, level
        users, nodes = self.rising & ~self.users & ~self.listed_users, self._active() & self.inside & ~self.nodes & ~self.listed_nodes
        np.minimum.at(level, tree.user_node[users], of_users[users])
        np.minimum.at(level, tree.parent[nodes], of_nodes[nodes])
        goes_users = (self.rate > 0) & (goal.weights > 0) & (level[tree.user_node] < np.inf)
        goes_nodes = (self.node_rate > 0) & (tree.weights > 0) & (level[tree.parent] < np.inf)
        goes_nodes[0] = False
        for above, levels, weights, rates, goes in (
            (tree.user_node, of_users, goal.weights, self.rate, goes_users),
            (tree.parent, of_nodes, self.node_weights, self.node_rate, goes_nodes),
        ):
            behind = np.maximum(level[above[goes]] - levels[goes], 0)
            np.minimum.at(wait, above[goes], behind * weights[goes] / rates[goes])
        return wait, level

    def _levels(self) -> tuple[FloatArray, FloatArray]:
        """Return share / weight of users and of nodes; inf for weights of 0."""
        pairs = ((self.shares.users, self.goal.weights), (self.shares.nodes, self.node_weights))
        users, nodes = (
            np.divide(share, weight, out=np.full(share.shape, np.inf, share.dtype), where=(weight > 0).astype(bool))
            for share, weight in pairs
        )
        return users, nodes

    def _active(self) -> BoolArray:
        """Return the queues with somebody below who rises, (nodes,)."""
        tree = self.goal.tree
        active = np.zeros(tree.n_nodes, bool)
        active[tree.user_node[self.rising]] = True
        for nodes in reversed(self.by_depth):
            active[tree.parent[nodes[active[nodes]]]] = True
        active[0] = False
        return active

    @property
    def _zero(self) -> Any:
        """0 in floats, or in fractions: whole numbers would be divided into floats."""
        return Fraction(0) if self.goal.weights.dtype == np.dtype(object) else 0.0

    def _zeros(self, size: int) -> FloatArray:
        return np.full(size, self._zero, dtype=self.goal.weights.dtype)
