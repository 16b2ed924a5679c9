"""What a guaranteed node could hold alone: its guarantee filled in the empty cluster, up to the guarantee, inner guarantees first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.instance import FloatArray, Instance
from fairopt.instance.aggregation import merge, unmerged
from fairopt.instance.tolerances import CERTIFIED
from fairopt.models import NOTIONS, Notion, ShareNotion, Sharing, Stated
from fairopt.program import TreeFilling
from fairopt.program.guarantees import alone_in
from fairopt.solvers import candidates
from fairopt.solvers.backend import Deadline
from fairopt.solving.policy import find

__all__ = ["tasks_alone"]


def tasks_alone(instance: Instance, notion: Notion | None, sharing: Sharing, owner: int) -> FloatArray:
    """Return the tasks, (users, servers), that the guarantee of one node gives if nobody else holds anything.

    Parameters
    ----------
    notion : Notion, optional
        By whose share users rise inside a queue; `drfh` for one that has no share, and for None.
    owner : int
        The node of a queue, or the number of nodes plus that of a user.

    >>> from fairopt.instance.queues import Queue
    >>> queues = [Queue("A", guarantee={"gpu": 5}), Queue("B", guarantee={"gpu": 4})]
    >>> pool = Instance([[4], [2]], [[1], [1]], resources=["gpu"], eligibility=[[1, 0], [1, 1]], queues=queues, queue_of=["A", "B"])
    >>> tasks_alone(pool, None, "rdm", 1).sum(axis=1)
    array([4., 0.])
    """
    inner = notion.notion if isinstance(notion, Stated) else notion
    share = inner if isinstance(inner, ShareNotion) else NOTIONS["drfh"]()
    assert isinstance(share, ShareNotion)
    merging = merge(instance, share.utility, 1.0) if share.is_symmetric and owner < instance.tree.n_nodes else unmerged(instance)
    small = merging.instance
    reduced = share if share.utility is None else share.changed(utility=merging.restrict(share.utility))
    program = reduced.formulate(small, sharing=sharing, integral=False)
    goal = reduced.filling(small, reduced.share_per_task(small), program.pair_users, program.pair_servers)
    x = np.zeros(program.n_pairs)
    if any(part.owners is not None and (part.owners == owner).any() for part in goal.parts):
        alone, columns = alone_in(replace(program, goal=goal), goal, owner)
        if alone.goal_as(TreeFilling).parts:
            found = find(alone, candidates(alone, None), CERTIFIED, Deadline(None))
            found.certificate.require(CERTIFIED, "a guarantee alone", found.engine)
            x[columns] = found.solution.x
    return merging.spread(program.table(x), share.utility)
