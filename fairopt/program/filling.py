"""The input of progressive filling: the share that chooses the next user (a `Criterion`), and the servers and users (a `Filling`).

Progressive filling gives one task at a time to the user with the smallest share. A criterion defines this share. With w the share of one
task, divided by the weight, x[n,i] the tasks of user n on server i and x[n] = sum_i x[n,i], it is one of

    OWN        s[n]   = sum_i w[n,i] x[n,i]                                  one share for all servers
    SERVER     s[n,i] = w[n,i] x[n]                                          one share for each server
    RESIDUAL   s[n,i] = w[n] x[n] max_r d[n,r] / (c[i,r] - usage[i,r])       one share for each server, relative to what is left of it

Decimal data are rounded to binary numbers. So exactly two comparisons have a tolerance: a task fits on a server if

    usage[i,r] + d[n,r] <= c[i,r] (1 + FITS)      for each resource r,

and two shares are equal if they differ relatively by at most ``SAME``.

With queues (`Queues`), the user is found by a walk down the tree, from the root. At each node it goes to one child. A child takes part if
some task below it can be placed: the task fits, exceeds no limit, leaves queues what they keep (`fairopt.instance.keeping`), and no weight
on its way is 0 (below a guarantee that is not yet met, only the weights below this guarantee count). Of these children, the walk takes

    first     those below a guarantee: some such task adds to a guarantee of the child, or of a node below it, that is not yet met;
              from there on, only such tasks are considered; of these children, the one with the smallest use / guarantee
    then      those of the highest tier (tiers divide only what no guarantee asks for; who demands nothing that counts is below all)
    then      the one with the smallest share / weight; in a queue of the order "listed" the first

*Use / guarantee.* Of a leaf it is its tasks over its guaranteed tasks. Of a queue it is the largest part of the cluster in what its users
hold, over the largest part of the cluster in what it is guaranteed. Both count the guaranteed resources, summed over the groups of servers
that have a guarantee, and what is held on a group counts up to its guarantee. A guarantee of a resource that no user below demands does not
count. A queue without a guarantee has the smallest use / guarantee of its children that are below one, so that a queue around a single node
changes nothing. A queue that has met its own guarantees has that, plus 1: it comes after those whose own guarantees are unmet. Weights do
not count here.

The share of a queue is the sum of the shares of its users ("sum"), or the largest part of a resource that its tasks take ("dominant").
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray

__all__ = ["Criterion", "Filling", "Kind", "Measure", "Queues", "Rule"]


class Measure(IntEnum):
    """Which of the three shares above. (Numbers, for compiled code.)"""

    OWN = 0
    SERVER = 1
    RESIDUAL = 2


class Rule(IntEnum):
    """How a server is chosen for a task, among the servers on which it fits."""

    FIRST = 0
    RANDOM = 1
    SMALLEST_SHARE = 2
    # The smallest score; of equal scores the first server:
    L1 = 3
    L2 = 4
    COSINE = 5
    DOT = 6
    TIGHTEST = 7
    LOOSEST = 8
    LARGEST_RESIDUAL = 9
    FASTEST = 10


class Kind(IntEnum):
    """What an account bounds: at least its amount first; at most its amount; at most what queues that keep a part leave."""

    GUARANTEE = 0
    LIMIT = 1
    KEPT = 2


@dataclass(frozen=True, slots=True, eq=False)
class Criterion:
    """The share that progressive filling compares, not divided by the weight.

    Attributes
    ----------
    per_task : array (users,) or (users, servers)
        The share of one task (on *one* server of the row), > 0 and finite for every eligible pair.
    measure : Measure
    """

    per_task: FloatArray
    measure: Measure = Measure.OWN


@dataclass(frozen=True, slots=True, eq=False)
class Queues:
    """A tree of queues, with leaves. A leaf is a user; over time it is an owner, with a "user" for each shape of its tasks.

    An *account* is an amount of a resource on some rows of servers, and the users whose tasks there count: those of a guarantee or a limit.

    An account of the kind KEPT is one of those of a `fairopt.program.kept_parts.Keeping`, which come together: one for each of its queues,
    parents before children, that counts the users whose nearest queue of these it is, and one that counts the users of none. Its amount is
    what the queue keeps, the last one's the capacity. These users may hold `Keeping.rooms` more. Over time the capacity is that of the
    servers that are there, and what queues keep is scaled to it (`Keeping.with_capacity`).

    Attributes
    ----------
    parent, weights : arrays (nodes,)
        Node 0 is the root, whose parent is -1.
    listed : bool array (nodes,)
        Whose children come one after the other: the nodes in their order, the leaves in theirs.
    leaf : int array (users,)
    leaf_parent, leaf_weights, leaf_tiers, leaf_guarantees : arrays (leaves,)
        The guarantee of a leaf is a number of tasks.
    parts : array (users, resources), optional
        Parts of the cluster that one task takes, if the share of a queue is "dominant"; None: "sum".
    demands : array (users, resources)
        What one task adds to the accounts, resource by resource.
    totals : array (resources,)
        The capacity of the cluster in these resources.
    of_server : array (rows, resources)
        The capacity of one server of each row in these resources.
    kinds, nodes, resources, amounts : arrays (accounts,)
        The node is the one whose guarantee it is.
    asked : array (accounts,)
        What the queue of an account of the kind KEPT keeps, as it says; 0 for others.
    keeping : int array (accounts,)
        Which keeping an account of the kind KEPT belongs to, 0, 1, ...; -1 for others.
    above : int array (accounts,)
        The account of the nearest queue above that keeps a part, or the last of its keeping; -1 for that one, and for others.
    rows : bool array (accounts, rows)
    counted : bool array (accounts, users)
    by_row : four arrays (entries,), optional
        Of accounts of limits and guarantees in which a task counts differently from row to row: account, user, row and what a task counts
        there. These accounts are ``counted`` for nobody.
    last : bool array (users,), optional
        Who demands nothing that counts, and so is of a tier below all others. ``parts`` of these are 0.
    plain_parts : array (users, resources), optional
        With ``last`` and ``parts``: parts of the cluster that one task takes where all resources count once, as they do in the lower tiers.
    plain_worths : array (users,), optional
        With ``last``: the share of one task there.
    """

    parent: IntArray
    weights: FloatArray
    listed: BoolArray
    leaf: IntArray
    leaf_parent: IntArray
    leaf_weights: FloatArray
    leaf_tiers: IntArray
    leaf_guarantees: FloatArray
    parts: FloatArray | None
    demands: FloatArray
    totals: FloatArray
    of_server: FloatArray
    kinds: IntArray
    nodes: IntArray
    resources: IntArray
    amounts: FloatArray
    asked: FloatArray
    keeping: IntArray
    above: IntArray
    rows: BoolArray
    counted: BoolArray
    by_row: tuple[IntArray, IntArray, IntArray, FloatArray] | None = None
    last: BoolArray | None = None
    plain_parts: FloatArray | None = None
    plain_worths: FloatArray | None = None

    @property
    def tiers(self) -> IntArray:
        """The tier of each user, (users,): of its leaf, and below all of those if it comes last."""
        tiers = self.leaf_tiers[self.leaf]
        return tiers if self.last is None else np.where(self.last, tiers - int(np.ptp(self.leaf_tiers)) - 1, tiers)

    @property
    def lowest_tier(self) -> int:
        """The lowest tier of users who do not come last."""
        return int(self.leaf_tiers.min(initial=0))


@dataclass(frozen=True, slots=True, eq=False)
class Filling:
    """Servers to fill and the users' tasks. A row may stand for several servers; a task runs on one of them.

    Attributes
    ----------
    capacities : array (rows, resources)
        Capacity of one server of the row. Under time division the only resource is time.
    counts : int array (rows,)
    demands : array (users, 1, resources) or (users, rows, resources)
        Demand of one task; per row if it differs between rows, as time does.
    eligibility : bool array (users, rows)
    tasks : int array (users,)
        Largest number of tasks of each user; 0 for a user that takes no part.
    criterion : Criterion
        Divided by the weights; not divided if there are queues.
    order : int array (users,)
        The users in the order in which ties between shares are broken.
    costs : array (users, rows), optional
        The part of the cluster that a unit of work takes on a row, of which the placement "fastest" takes the smallest. Default: all alike.
    scored : int, optional
        How many of the resources placements look at; the others, behind them, are limits of each server. Default: all.
    held : int array (users, single servers), optional
        Tasks that already run, and go on running; default none. They count in the shares and in ``tasks``.
    queues : Queues, optional
    """

    capacities: FloatArray
    counts: IntArray
    demands: FloatArray
    eligibility: BoolArray
    tasks: IntArray
    criterion: Criterion
    order: IntArray
    held: IntArray | None = None
    queues: Queues | None = None
    scored: int | None = None
    costs: FloatArray | None = None

    @property
    def n_scored(self) -> int:
        """How many of the resources placements look at."""
        return int(self.capacities.shape[1]) if self.scored is None else self.scored
