"""The input of progressive filling: the share that chooses the next user (a `Criterion`), and the servers and users (a `Filling`).

Progressive filling gives one task at a time to the user with the smallest share. A criterion defines this share. With w the share of one
task, divided by the weight, x[n,i] the tasks of user n on server i and x[n] = sum_i x[n,i], it is one of

    OWN        s[n]   = sum_i w[n,i] x[n,i]                                  one share for all servers
    SERVER     s[n,i] = w[n,i] x[n]                                          one share for each server
    RESIDUAL   s[n,i] = w[n] x[n] max_r d[n,r] / (c[i,r] - usage[i,r])       one share for each server, relative to what is left of it

Decimal data are rounded to binary numbers. So exactly two comparisons have a tolerance: a task fits on a server if

    usage[i,r] + d[n,r] <= c[i,r] (1 + FITS)      for each resource r,

and two shares are equal if they differ relatively by at most ``TIE``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from fairopt.instance import BoolArray, FloatArray, IntArray

__all__ = ["FITS", "TIE", "Criterion", "Filling", "Measure", "Rule"]

FITS = 1e-9
TIE = 1e-12


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
        Divided by the weights.
    order : int array (users,)
        The users in the order in which ties between shares are broken.
    held : int array (users, single servers), optional
        Tasks that already run, and go on running; default none. They count in the shares and in ``tasks``.
    """

    capacities: FloatArray
    counts: IntArray
    demands: FloatArray
    eligibility: BoolArray
    tasks: IntArray
    criterion: Criterion
    order: IntArray
    held: IntArray | None = None
