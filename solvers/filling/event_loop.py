"""Progressive filling over time: tasks end, users and servers come and go, jobs are submitted, and at each such moment filling goes on.

Nothing is taken back: a task that was started runs to its end, also where its user leaves or its server is removed (which then takes no
more). Greedy, as each filling is.

    at each moment   tasks end, and their servers have their demands back
                     users leave and join; servers are removed and added; jobs are submitted
                     progressive filling goes on (``fairopt.solvers.filling.progressive_filling``), from what runs
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairopt.instance import FloatArray, IntArray, safe_ratio
from fairopt.program.events import Work
from fairopt.program.filling import Filling
from fairopt.solvers.filling.event_state import STARTED, Run
from fairopt.solvers.filling.placements import Placement
from fairopt.solvers.filling.progressive_filling import state_of

__all__ = ["run_events"]

_BATCH = 2_000  # moments between two looks at the clock


def run_events(
    filling: Filling,
    work: Work,
    placement: Placement,
    *,
    random_ties: bool,
    seed: int,
    until: float,
    done: Callable[[float, int], object],
    stopped: Callable[[], bool],
) -> tuple[FloatArray, IntArray, float]:
    """Return when each task was started (nan: never) and on which server (-1), and up to when all that happened is known.

    Parameters
    ----------
    filling : Filling
        Its users are the streams; rows count all servers that there ever are. ``tasks`` and ``held`` are not read.
    done : function
        Told the time and the number of tasks that were started, now and then.
    stopped : function
        Asked now and then whether to end it here.
    """
    from fairopt.solvers.filling import kernel  # numba is slow to import

    scale = safe_ratio(filling.counts.sum(), filling.counts @ filling.capacities)
    scale[np.isinf(scale)] = 1.0
    state = state_of(filling, placement, scale, random_ties, False)
    run = Run.begin(filling, work)
    if run.closed.any() or (work.amounts > 0).any():
        state.begun[:] = state.start[1:]  # servers of a row are no longer all alike from the first empty one on
        kernel.close_absent(state, run)
    rng = np.random.default_rng(seed)
    now = -np.inf
    while True:
        now = kernel.advance(state, run, rng, placement.server_first, until, _BATCH)
        if now > until or np.isinf(now):
            return run.start, run.server, until
        done(now, int(run.progress[STARTED]))
        if stopped():
            return run.start, run.server, float(now)
