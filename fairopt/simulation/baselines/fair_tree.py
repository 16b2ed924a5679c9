"""Slurm's fair tree: the order of users by shares over usage, level by level of the tree of accounts.

At each node, with sums over an association (an account or a user) and its siblings,

    S = shares of the association / shares of all,    U = usage of the association / usage of all,    level fairshare LF = S / U

Children of a node are sorted by LF, the highest first, and the tree is visited depth-first. Users get their ranks in the order in which
they are found. Ties: sibling users with the same LF have the same rank; the children of accounts with the same LF are merged; a user with
the LF of a sibling account has the rank of that account's first user. LF is infinite where nothing has been used, and 0 without shares.

Values of LF that differ by less than a part of 1e-11 are the same: the rest is rounding.

Source: R. Cox and L. Morrison, Fair Tree Fairshare Algorithm, Slurm documentation, https://slurm.schedmd.com/fair_tree.html.

>>> from fairopt.instance.queues import Queue
>>> from fairopt.instance.tree import Tree
>>> tree = FairTree(Tree.of([Queue("lab"), Queue("club")], ["lab", "lab", "club"]), np.ones(3))
>>> tree.ranks(np.array([6.0, 1.0, 9.0])).tolist()  # the lab has used less, and in it the second user has
[1, 0, 2]
>>> tree.ranks(np.array([0.0, 0.0, 9.0])).tolist()
[0, 0, 1]
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tree import Tree
from fairopt.simulation.baselines.siblings import Siblings
from fairopt.simulation.baselines.usage import same_digits

__all__ = ["FairTree"]


class FairTree:
    """The tree of accounts. Ranks depend on the usage alone.

    Attributes
    ----------
    siblings : Siblings
    shares : array (queues + users,)
        S of the queues, then of the users.
    """

    def __init__(self, tree: Tree, weights: FloatArray) -> None:
        self.siblings = Siblings(tree, weights)
        self.shares = self.siblings.parts()
        node = tree.user_node
        deepest = int(tree.depth.max(initial=0)) + 1
        self._way = np.full((weights.size, deepest), -1)  # associations from the root down; -1: beyond the user
        self._length = tree.depth[node] + 1
        for n, place in enumerate(node.tolist()):
            way = [tree.n_nodes - 1 + n]
            while place:
                way.append(place - 1)
                place = int(tree.parent[place])
            self._way[n, : len(way)] = way[::-1]

    def level_fairshare(self, usage: FloatArray, of_queues: FloatArray | None = None) -> FloatArray:
        """Return LF of the queues, then of the users, (queues + users,).

        ``usage`` is that of the users; ``of_queues``, (queues,), what queues used beyond their users.
        """
        nodes = self.siblings.of_nodes(usage, of_queues)
        used, of_parent = np.concatenate([nodes[1:], usage]), nodes[self.siblings.above]
        with np.errstate(divide="ignore", invalid="ignore"):
            level: FloatArray = self.shares * of_parent / used
        level[used == 0] = np.inf
        level[self.shares == 0] = 0.0
        return level

    def ranks(self, usage: FloatArray, of_queues: FloatArray | None = None) -> IntArray:
        """Return the rank of each user, (users,): 0 is the first, and users of the same rank are tied."""
        levels = np.append(same_digits(self.level_fairshare(usage, of_queues)), np.inf)  # the last is beyond a user, found at -1
        ways = levels[self._way]
        order = np.lexsort([self._length, *(-ways.T[::-1])])  # at the same levels, a user before the users of an account
        if order.size == 1:
            return np.zeros(1, np.int64)
        sorted_ways = ways[order]
        same = np.cumprod(sorted_ways[:-1] == sorted_ways[1:], axis=1).astype(bool)
        tied = same[np.arange(order.size - 1), self._length[order[:-1]] - 1]  # as far as the way of the user goes
        ranks = np.empty(order.size, np.int64)
        ranks[order] = np.concatenate([[0], np.cumsum(~tied)])
        return ranks
