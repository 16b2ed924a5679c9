"""What progressive filling is told: whose turn it is (a `Criterion`), and the arrays that it fills (a `Filling`).

Progressive filling gives one whole task at a time to the user with the smallest share. A criterion is that share, in data. With w the
share of one task, weights included, x[n,i] the tasks of user n on server i and x[n] their sum, it is one of

    OWN        s[n]   = sum_i w[n,i] x[n,i]                                  the same in the eyes of every server
    SERVER     s[n,i] = w[n,i] x[n]                                          server-specific
    RESIDUAL   s[n,i] = w[n] x[n] max_r d[n,r] / (c[i,r] - usage[i,r])       server-specific, against what is left of the server

Numbers are binary and data are decimal, so two comparisons have room for rounding, and no others: a task fits on a server where

    usage[i,r] + d[n,r] <= c[i,r] (1 + FITS)      for each resource r,

and shares within a part ``TIE`` of the smallest are equal to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from fairopt.instance import BoolArray, FloatArray, IntArray

__all__ = ["FITS", "TIE", "Criterion", "Filling", "Measure", "Rule"]

FITS = 1e-9
TIE = 1e-12


class Measure(IntEnum):
    """Which of the three shares above (a number, because compiled code reads it)."""

    OWN = 0
    SERVER = 1
    RESIDUAL = 2


class Rule(IntEnum):
    """How a server is chosen for a user's task, among those that it fits on."""

    FIRST = 0
    RANDOM = 1
    SMALLEST_SHARE = 2
    # The smallest score, of equals the first:
    L1 = 3
    L2 = 4
    COSINE = 5
    DOT = 6
    TIGHTEST = 7
    LOOSEST = 8
    LARGEST_RESIDUAL = 9


@dataclass(frozen=True, slots=True, eq=False)
class Criterion:
    """The share that progressive filling compares, before weights.

    Attributes
    ----------
    per_task : array (users,) or (users, servers)
        w: the share that one task is worth (on *one* server of the row). > 0 and finite wherever the user may run.
    measure : Measure
    """

    per_task: FloatArray
    measure: Measure = Measure.OWN


@dataclass(frozen=True, slots=True, eq=False)
class Filling:
    """Servers to fill, users who want to, and in which order. Rows may stand for several servers; tasks lie on single ones.

    Attributes
    ----------
    capacities : array (rows, resources)
        Of one server of the row. Under time division the one resource is time.
    counts : int array (rows,)
    demands : array (users, 1, resources) or (users, rows, resources)
        Of one task; of one task on that row where they differ, as time does.
    eligibility : bool array (users, rows)
    tasks : int array (users,)
        How many tasks each user may have; 0 for one who takes no part.
    criterion : Criterion
        With the weights in it.
    order : int array (users,)
        The users in the order in which ties between shares are broken.
    held : int array (users, single servers), optional
        Tasks that run already, and go on running; default none. They count in the shares and in ``tasks``.
    """

    capacities: FloatArray
    counts: IntArray
    demands: FloatArray
    eligibility: BoolArray
    tasks: IntArray
    criterion: Criterion
    order: IntArray
    held: IntArray | None = None
