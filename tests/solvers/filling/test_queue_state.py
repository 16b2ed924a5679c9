"""The arrays of a tree with which progressive filling begins."""

from __future__ import annotations

import numpy as np

import fairopt as fo
from fairopt.program.filling import Kind
from fairopt.scheduling import filling_of, queues_of
from fairopt.solvers.filling.queue_state import QueueState


def test_places_are_nodes_and_then_leaves() -> None:
    """The root, research, its queue of weight 0, then alice below that, bob below research and carol in the root."""
    queues = [fo.Queue("research", tier=3, guarantee={"gpu": 4}, limit={"gpu": 6}), fo.Queue("guests", parent="research", weight=0)]
    instance = fo.Instance(
        [[8]],
        [[1], [2], [1]],
        guarantees=[0, 1, 0],
        queues=queues,
        queue_of=["guests", "research", None],
        users=["alice", "bob", "carol"],
        resources=["gpu"],
    )
    notion = fo.NOTIONS["drfh"]()
    queues_as_arrays = queues_of(instance, instance, notion)
    assert queues_as_arrays is not None
    filling, _ = filling_of(instance, notion, "rdm", "index", queues=queues_as_arrays)
    state = QueueState.begin(filling, queues_as_arrays, np.arange(3))
    assert state.parent.tolist() == [-1, 0, 1, 2, 1, 0]
    assert state.depth.tolist() == [0, 1, 2, 3, 2, 1]
    assert state.leaf.tolist() == [3, 4, 5]
    assert state.closed.tolist() == [0, 0, 2, 2, 0, 0]  # guests have weight 0
    assert state.promised.tolist() == [0, 4 / 8, 0, 0, 1, 0]  # of the cluster; of a leaf in tasks
    assert state.kind[state.given].tolist() == [Kind.GUARANTEE]
    assert state.given_from.tolist() == [0, 0, 1, 1]
    assert [set(state.parent[state.upwards[k:]]) & set(state.upwards[:k]) for k in range(5)] == [set()] * 5
    assert state.children[state.children_from[1] : state.children_from[2]].tolist() == [2, 4]
    assert sorted(state.amount.tolist()) == [4, 6]
    assert not state.running.any()
    assert not state.usage.any()
