r"""Guaranteed nodes that a filling fills as it would fill them alone: nobody below them is stopped by what others hold.

A limit on shares (`fairopt.program.share_limits`) is a limit *of* a node if all users in it are below the node. The rates below a
guaranteed node v depend on who rises below v, and on nobody else. A node v is *undisturbed* if, in its part and in all parts before,

* a limit of v was full whenever a user below v stopped,
* and the guarantees of v and of the nodes below it are limits on shares.

Then the filling of v alone is the same one: at each time the same users rise at the same rates, limits of v are full at the same times, and
no other limit stops anybody earlier, because the users below v, without all others, can have these shares. So v holds the most that it
could hold, and nothing must be asked of it. This needs a program in which users may have less (`Program.down_closed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tree import Tree
from fairopt.program.share_limits import ShareLimits
from fairopt.program.solution import Stage
from fairopt.program.tree_filling import Part

__all__ = ["Undisturbed", "stop_times"]

_DEEPEST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Undisturbed:
    """The undisturbed nodes of some parts of a filling.

    Attributes
    ----------
    tree : Tree
    depth : int array (users,)
        The depth of the deepest node of which a limit stopped each user, the smallest of all parts; one more than the depth of its node for
        a limit of the user alone, and 0 where limits of servers stopped it.
    owners : frozenset of int
        The undisturbed nodes, and users with a guarantee of their own; as in `Part.owners`.
    """

    tree: Tree
    depth: IntArray
    owners: frozenset[int] = frozenset()

    @classmethod
    def before(cls, tree: Tree) -> Undisturbed:
        """Return what is known before the first part."""
        return cls(tree, np.full(tree.user_node.size, _DEEPEST))

    def after(
        self, part: Part, limits: ShareLimits, shares: FloatArray, stopped: FloatArray, able: BoolArray, tolerance: float
    ) -> Undisturbed:
        """Return what is known after one more part.

        Parameters
        ----------
        part : Part
            Of guarantees.
        limits : ShareLimits
            Of the program of the part, whose last limits are the guarantees.
        shares : array (users,)
            At the end of the part.
        stopped : array (users,)
            When each user stopped; 0 if it never rose.
        able : bool array (users,)
            Who can have anything.
        tolerance : float
            A limit of which no more is left is full, and times that differ by no more are the same. Relative.
        """
        if part.owners is None or not part.owners.size:
            return self
        tree, on_shares = self.tree, limits.rows[limits.rows.size - part.owners.size :]
        deepest = np.where(able, _deepest(tree, limits, shares, stopped, tolerance), _DEEPEST)
        for owner in set(part.owners[~on_shares].tolist()):
            deepest[tree.below[owner] if owner < tree.n_nodes else owner - tree.n_nodes] = 0
        depth = np.where(part.users, np.minimum(self.depth, deepest), self.depth)
        least = np.full(tree.n_nodes, _DEEPEST)  # of the users below each node
        np.minimum.at(least, tree.user_node, depth)
        for layer in tree.layers:
            np.minimum.at(least, tree.parent[layer], least[layer])
        held = np.append(least >= tree.depth, depth > tree.depth[tree.user_node])
        return replace(self, depth=depth, owners=self.owners | set(part.owners[held[part.owners]].tolist()))


def stop_times(stages: Sequence[Stage], users: int) -> FloatArray:
    """Return when each user stopped in a part with these levels, (users,); 0 if it never rose.

    >>> stop_times([Stage(1.5, np.array([0, 2]), None), Stage(2.0, np.array([1]), None)], 4).tolist()
    [1.5, 2.0, 1.5, 0.0]
    """
    times = np.zeros(users)
    for stage in stages:
        times[stage.users] = stage.value
    return times


def _deepest(tree: Tree, limits: ShareLimits, shares: FloatArray, stopped: FloatArray, tolerance: float) -> IntArray:
    """Return the depth of the deepest node of which a full limit stopped each user, (users,); 0 where none did."""
    found = np.zeros(shares.size, np.int64)
    some = np.flatnonzero(np.diff(limits.uses.indptr))
    if not some.size:
        return found
    ends = limits.uses.indptr.astype(np.int64)
    users, starts, sizes = limits.uses.indices.astype(np.int64), ends[some], np.diff(ends)[some]
    full = (limits.left(shares) <= tolerance * limits.bounds)[some]
    last = np.maximum.reduceat(stopped[users], starts)  # when the limit was full, if it is
    stops = np.repeat(full, sizes) & (stopped[users] >= np.repeat(last, sizes) * (1 - tolerance))
    np.maximum.at(found, users[stops], np.repeat(_depths(tree, users, starts, sizes), sizes)[stops])
    return found


def _depths(tree: Tree, users: IntArray, starts: IntArray, sizes: IntArray) -> IntArray:
    """Return the depth of the deepest node that has all users of each limit below it, (limits,); one more where that is one user."""
    nodes = tree.user_node[users]
    for depth in range(int(tree.depth.max(initial=0)), 0, -1):
        apart = np.minimum.reduceat(nodes, starts) < np.maximum.reduceat(nodes, starts)
        if not apart.any():
            break
        nodes = np.where(np.repeat(apart, sizes) & (tree.depth[nodes] == depth), tree.parent[nodes], nodes)
    return np.asarray(tree.depth[nodes[starts]] + (sizes == 1))
