"""Fairness among queues first, and inside them second: a leximin of the children of the root, then of the next depth, and so on.

Let S[v] be the sum of the shares U[n] of the users below node v; of a user, its share. At depth 1: the leximin of S[v] / w[v] over the
children of the root. At each further depth, with all sums kept: the leximin of S[c] / (w[c] S[parent]) over the nodes and users there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import NOTHING
from fairopt.instance.tree import Tree
from fairopt.program.objective import Feature, Objective

__all__ = ["Nested"]


@dataclass(frozen=True, slots=True, eq=False)
class Nested(Objective):
    """The leximin of each depth of a tree. Its *agents* are the queues with somebody below, and the users.

    Attributes
    ----------
    weights : array (users,)
    tree : Tree
    depth : int array (agents,)
        1 of the children of the root.
    below : sparse array (agents, users)
        1 for the users of each agent.
    weight : array (agents,)
    parent : int array (agents,)
        The agent that each is in; -1 of the children of the root.
    users : int array
        The users among the agents, who come last.
    """

    feature: ClassVar = Feature.NESTED

    weights: FloatArray
    tree: Tree
    depth: IntArray
    below: sp.csr_array
    weight: FloatArray
    parent: IntArray
    users: IntArray

    @property
    def feature_of_whole_tasks(self) -> Feature:
        """None has it: the order of whole tasks is not defined."""
        return Feature.WHOLE_WITHOUT_STOP_TIMES

    @property
    def no_whole_tasks(self) -> str:
        """Why the order of whole tasks is not defined."""
        return 'tree="nested" divides by shares of queues that are not unique then; leave tree out'

    def part_title(self, part: int) -> str:
        """Return the name of a depth."""
        return f"depth {part}"

    @classmethod
    def of(cls, tree: Tree, weights: FloatArray, members: BoolArray) -> Nested:
        """Return the goal for the users who can have something, ``members``."""
        below = tree.below & members
        nodes = np.flatnonzero(below.any(axis=1))
        nodes = nodes[nodes > 0]
        users = np.flatnonzero(members)
        place = np.full(tree.n_nodes, -1)
        place[nodes] = np.arange(nodes.size)
        single = sp.csr_array((np.ones(users.size), (np.arange(users.size), users)), shape=(users.size, members.size))
        return cls(
            weights,
            tree,
            np.concatenate([tree.depth[nodes], tree.depth[tree.user_node[users]] + 1]),
            sp.csr_array(sp.vstack([sp.csr_array(below[nodes].astype(np.float64)), single])),
            np.concatenate([tree.weights[nodes], weights[users]]),
            np.concatenate([place[tree.parent[nodes]], place[tree.user_node[users]]]),
            users,
        )

    def sums(self, shares: FloatArray) -> FloatArray:
        """Return what each agent has, (agents,)."""
        return np.asarray(self.below @ shares)

    def units(self, depth: int, sums: FloatArray, reach: FloatArray) -> FloatArray:
        """Return what an agent of this depth has at a level of 1, w S[parent], (agents,).

        It is 0 of agents of other depths, and of those whose parent has nothing, next to ``reach``, (agents,), what it could have alone.
        """
        above = np.where(self.parent >= 0, np.where(sums > NOTHING * reach, sums, 0.0)[self.parent], 1.0)
        return np.where(self.depth == depth, self.weight * above, 0.0)

    def sizes(self, levels: FloatArray, reach: FloatArray) -> FloatArray:
        """Return the scale of residuals, (agents,): what an agent has, or if that is nothing, a part of what it could have alone."""
        return np.where(levels > NOTHING * reach, levels, 1e-3 * reach)
