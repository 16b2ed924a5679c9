"""The children of every node of a tree, queues first and then users: what part of their weights, and of their usage, each of them has.

>>> from fairopt.instance.queues import Queue
>>> tree = Siblings(Tree.of([Queue("lab", weight=3), Queue("club")], ["lab", "lab", "club"]), np.array([1.0, 2.0, 1.0]))
>>> tree.parts().tolist()
[0.75, 0.25, 0.3333333333333333, 0.6666666666666666, 1.0]
>>> tree.of_nodes(np.array([6.0, 1.0, 9.0]), np.array([2.0, 0.0])).tolist()  # of the root and the queues; 2 of the lab itself
[18.0, 9.0, 9.0]
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.tree import Tree

__all__ = ["Siblings"]


class Siblings:
    """The children of a tree of queues with weighted users.

    Attributes
    ----------
    tree : Tree
    above : int array (queues + users,)
        The node that each child is in.
    weights : array (queues + users,)
    """

    def __init__(self, tree: Tree, weights: FloatArray) -> None:
        self.tree = tree
        self.above = np.concatenate([tree.parent[1:], tree.user_node])
        self.weights = np.concatenate([np.asarray(tree.weights[1:], float), np.asarray(weights, float)])
        queues = tree.n_nodes - 1
        self._inside = np.concatenate([np.zeros((tree.n_nodes, queues)), tree.below.astype(float)], axis=1)  # of each node
        for queue in range(1, tree.n_nodes):
            above = queue
            while above >= 0:
                self._inside[above, queue - 1] = 1.0
                above = int(tree.parent[above])

    @property
    def n_queues(self) -> int:
        """Number of queues."""
        return self.tree.n_nodes - 1

    def of_nodes(self, users: FloatArray, queues: FloatArray | None = None) -> FloatArray:
        """Return the usage of the nodes, (nodes,), from that of users, and of what queues used beyond their users."""
        own = np.zeros(self.n_queues) if queues is None else queues
        return np.asarray(self._inside @ np.concatenate([own, users]))

    def parts(self, active: BoolArray | None = None) -> FloatArray:
        """Return the part of the weights of its siblings that each child has, (queues + users,).

        ``active``, (users,): of those users, and of queues with such users; the others have the part 0.
        """
        weights = self.weights
        if active is not None:
            weights = weights * np.concatenate([self.of_nodes(active.astype(float))[1:] > 0, active])
        of_all = np.bincount(self.above, weights=weights, minlength=self.tree.n_nodes)[self.above]
        return np.asarray(np.divide(weights, of_all, out=np.zeros(weights.size), where=of_all > 0))
