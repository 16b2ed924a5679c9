"""The order of a plan: a start follows the stops that make room for it.

All stops are of step 1. A start is of step 2 where a task stops on its server, or in another limit that it enters: a resource of the
cluster, a named limit, a limit of a queue or of its user. Else it is of step 1, too, and waits for nothing.

Nothing is exceeded in between. Coefficients of limits are >= 0. In a limit in which nothing stops, usage only rises to that of the end,
which the limit allows. In a limit in which something stops, no start of step 1 enters it, and after all stops usage rises to that of the
end. (Rules have coefficients of any sign: of these only the end is promised. What queues keep of their guarantees is no row by itself:
there, every start follows every stop.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairopt.analysis.planning.result import Action
from fairopt.analysis.planning.split import Outcome, Split
from fairopt.instance import FloatArray
from fairopt.program import LimitKind

__all__ = ["ordered"]


def ordered(split: Split, outcome: Outcome, servers: Sequence[str]) -> tuple[tuple[Action, ...], tuple[Action, ...]]:
    """Return the stops and the starts of an outcome, each by step, server and user."""
    program, users = split.program, split.program.users
    stops: list[Action] = []
    stopped = np.zeros((len(users), len(servers)))
    for g, part in enumerate(split.held.parts):
        units = part.units - int(outcome.kept[g])
        if not units:
            continue
        gang = part.units == 1 and (len(part.cells) > 1 or part.cells[0][2] > 1)
        for n, i, tasks in part.cells:
            names = part.names if gang else part.names[:units]  # those that are protected are last
            stops.append(Action(users[n], servers[i], units * tasks, 1, names, gang))
            stopped[n, i] += units * tasks
    waits = _waits(split, stopped)
    starts = [
        Action(users[program.pair_users[p]], servers[program.pair_servers[p]], int(outcome.starts[p]), 2 if waits[p] else 1)
        for p in np.flatnonzero(outcome.starts).tolist()
    ]
    return tuple(stops), tuple(sorted(starts, key=lambda each: each.step))


def _waits(split: Split, stopped: FloatArray) -> FloatArray:
    """Return which pairs, (pairs,), enter a limit or a server in which something stops."""
    program = split.program
    if program.kept is not None:
        return np.full(program.n_pairs, bool(stopped.any()))
    waits = stopped.sum(axis=0)[program.pair_servers] > 0
    matrix = program.limits.select(program.limits.kinds != LimitKind.RULE).matrix
    entered = abs(matrix).sign()
    freed = entered @ stopped[program.pair_users, program.pair_servers] > 0
    return np.asarray(waits | ((entered.T @ freed.astype(float)) > 0))
