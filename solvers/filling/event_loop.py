"""Progressive filling over time: tasks end, users and servers join and leave, jobs are submitted, and filling continues at each event.

No task is stopped: a started task runs to its end, even if its user leaves or its server is removed. A removed server takes no further
task. The simulation is greedy, as filling is.

    at each moment   tasks end, and their demands become free on their servers
                     users leave and join; servers are removed and added; jobs are submitted
                     progressive filling (``fairopt.solvers.filling.progressive_filling``) continues from the running tasks
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairopt.instance import FloatArray, IntArray, safe_ratio
from fairopt.program.events import Change, Work
from fairopt.program.filling import Filling
from fairopt.solvers.compiled import Steps
from fairopt.solvers.filling import kernel
from fairopt.solvers.filling.event_state import STARTED, Run
from fairopt.solvers.filling.placements import Placement
from fairopt.solvers.filling.progressive_filling import state_of, tree_of

__all__ = ["run_events"]

_BATCH = 2_000  # moments between two calls of ``done`` and ``stopped``
_SECONDS = 1e-6  # of plain Python for one task and one server or stream, roughly


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
    """Return the start of each task (nan: never), its server (-1: none), and the time up to which the simulation ran.

    Parameters
    ----------
    filling : Filling
        Its users are the streams. Its counts include all servers that ever exist. ``tasks`` and ``held`` are not read.
    done : function
        Called from time to time with the simulated time and the number of started tasks.
    stopped : function
        Called from time to time; True ends the simulation.
    """
    steps = Steps(kernel)
    scale = safe_ratio(filling.counts.sum(), filling.counts @ filling.capacities)
    scale[np.isinf(scale)] = 1.0
    state = state_of(filling, placement, scale, random_ties, False)
    run = Run.begin(filling, work)
    if run.closed.any() or (work.amounts > 0).any():
        state.begun[:] = state.start[1:]  # empty servers of a row may differ: some are closed
        steps.run("close_absent", state, run)
    tree = None
    if filling.queues is not None:
        tree = tree_of(state, filling, filling.queues, work.rank, steps)
    rng = np.random.default_rng(seed)
    now = -np.inf
    name, queues = ("advance", ()) if tree is None else ("advance_in_tree", (tree,))
    expected = _SECONDS * _busiest(work) * (state.row.size + work.owner.size) + _SECONDS * state.eligible.size
    while True:
        batch = steps.size(name, _BATCH)
        now = steps.run(name, state, run, *queues, rng, placement.server_first, until, batch, seconds=expected)
        if now > until or np.isinf(now):
            return run.start, run.server, until
        done(now, int(run.progress[STARTED]))
        if stopped():
            return run.start, run.server, float(now)


def _busiest(work: Work) -> int:
    """Return how many tasks are submitted at one time, at most: so many may start in one moment, which is one call of a step."""
    jobs = work.changes == Change.SUBMIT
    _, moment = np.unique(work.times[jobs], return_inverse=True)
    return int(np.bincount(moment, weights=work.tasks[work.subjects[jobs]], minlength=1).max())
