"""Progressive filling over time: tasks end, users and servers join and leave, jobs are submitted, and filling continues at each event.

No task is stopped: a started task runs to its end, even if its user leaves or its server is removed. A removed server takes no further
task. The simulation is greedy, as filling is.

    at each moment   tasks end, and their demands become free on their servers
                     users leave and join; servers are removed and added; jobs are submitted
                     progressive filling (``fairopt.solvers.filling.progressive_filling``) continues from the running tasks
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fairopt.instance import FloatArray, IntArray
from fairopt.program.events import Change, Work
from fairopt.program.filling import Filling
from fairopt.solvers.compiled import Steps
from fairopt.solvers.filling import kernel
from fairopt.solvers.filling.event_state import FIXED, STARTED, Run, check_restored
from fairopt.solvers.filling.placements import Chooser, Placement
from fairopt.solvers.filling.progressive_filling import chosen_server, demand_of, room_of, state_of, tree_of
from fairopt.solvers.filling.queue_state import QueueState
from fairopt.solvers.filling.settings import SETTINGS
from fairopt.solvers.filling.state import State

__all__ = ["run_events"]


def run_events(
    filling: Filling,
    work: Work,
    placement: Placement | Chooser,
    *,
    random_ties: bool,
    seed: int,
    until: float,
    done: Callable[[float, int], object],
    stopped: Callable[[], bool],
    begun: Mapping[str, Any] | None = None,
    keep: Callable[[Callable[[], dict[str, Any]], bool], object] | None = None,
) -> tuple[FloatArray, IntArray, float]:
    """Return the start of each task (nan: never), its server (-1: none), and the time up to which the simulation ran.

    Parameters
    ----------
    filling : Filling
        Its users are the streams. Its counts include all servers that ever exist. ``tasks`` and ``held`` are not read.
    placement : Placement or function
        A function is called with the owner of the stream for the user.
    done : function
        Called from time to time with the simulated time and the number of started tasks.
    stopped : function
        Called from time to time; True ends the simulation.
    begun : mapping, optional
        The state of a simulation of the same work, as ``keep`` got it, from which this one goes on.
    keep : function, optional
        Called from time to time with a function that returns the state, as arrays by name, and at the end, with True.
    """
    steps = Steps(kernel)
    state = state_of(filling, placement, random_ties, False)
    run = Run.begin(filling, work)
    if run.closed.any() or (work.amounts > 0).any():
        state.begun[:] = state.start[1:]  # empty servers of a row may differ: some are closed
        steps.run("close_absent", state, run)
    tree = None
    if filling.queues is not None:
        tree = tree_of(state, filling, filling.queues, work.rank, steps)
        if run.closed.any():
            steps.run("resize", state, run, tree)
    rng = np.random.default_rng(seed)
    if begun is not None:
        _restore((state, run, tree), rng, begun)
        check_restored(state, run, tree, Run.begin(filling, work))
    keeping = (keep or (lambda state, at_once: None), lambda: _state((state, run, tree), rng))
    now = -np.inf
    if not isinstance(placement, Placement):
        return _run_by(placement, filling, state, run, tree, rng, until, done, stopped, keeping)
    name = "advance" if tree is None else "advance_in_tree"
    expected = (
        SETTINGS.seconds_of_moment * _busiest(work) * (state.row.size + work.owner.size) + SETTINGS.seconds_of_moment * state.eligible.size
    )
    while True:
        batch = steps.size(name, SETTINGS.moments_at_once)
        now = steps.run(name, state, run, tree, rng, placement.server_first, until, batch, seconds=expected)
        over = now > until or np.isinf(now)
        if not over:
            done(now, int(run.progress[STARTED]))
        stops = over or stopped()
        keeping[0](keeping[1], stops)
        if stops:
            return run.start, run.server, until if over else float(now)


_Keeping = tuple[Callable[[Callable[[], dict[str, Any]], bool], object], Callable[[], dict[str, Any]]]
_Parts = tuple[State, Run, QueueState | None]


def _state(parts: _Parts, rng: np.random.Generator) -> dict[str, Any]:
    """Return the arrays that change in a simulation, by name, and the state of random numbers."""
    found: dict[str, Any] = {"random": json.dumps(rng.bit_generator.state)}
    for part in parts:
        for name, value in () if part is None else part._asdict().items():
            if isinstance(value, np.ndarray) and name not in FIXED[type(part).__name__]:
                found[f"{type(part).__name__}.{name}"] = value
    return found


def _restore(parts: _Parts, rng: np.random.Generator, begun: Mapping[str, Any]) -> None:
    """Go back to a state."""
    rng.bit_generator.state = json.loads(str(begun["random"]))
    for part in parts:
        for name, value in () if part is None else part._asdict().items():
            if isinstance(value, np.ndarray) and name not in FIXED[type(part).__name__]:
                value[...] = begun[f"{type(part).__name__}.{name}"]
    state = parts[0]
    scored = state.free.shape[0]
    np.subtract(state.capacity[state.row].T[:scored], state.used.T[:scored], out=state.free)
    state.inverse[...] = 0.0
    np.divide(1.0, state.free, out=state.inverse, where=state.free > 0)


def _run_by(
    choose: Chooser,
    filling: Filling,
    state: State,
    run: Run,
    tree: QueueState | None,
    rng: np.random.Generator,
    until: float,
    done: Callable[[float, int], object],
    stopped: Callable[[], bool],
    keeping: _Keeping,
) -> tuple[FloatArray, IntArray, float]:
    """Advance as the kernel does (`kernel.advance`), step by step, but let the function ``choose`` choose the server.

    It sees amounts in the units of the instance.
    """
    room = room_of(filling, state)
    progress = run.progress
    moments = 0
    while True:
        now = kernel.next_moment(run)
        if np.isinf(now) or now > until:
            keeping[0](keeping[1], True)
            return run.start, run.server, until
        if moments % SETTINGS.moments_of_functions == 0 and moments:
            done(now, int(progress[STARTED]))
            stops = stopped()
            keeping[0](keeping[1], stops)
            if stops:
                return run.start, run.server, float(now)
        moments += 1
        kernel.begin_moment(state, run, tree, now)
        while True:
            n = int(kernel.next_stream(state, run, rng) if tree is None else kernel.next_stream_in_tree(state, run, tree, rng))
            if n < 0:
                break
            number = kernel.fitting(state, n) if tree is None else kernel.fitting_in_tree(state, tree, n)
            free = np.where(run.closed[:, None], 0.0, room())
            i = chosen_server(choose, int(run.owner[n]), free, demand_of(filling, state, n), state.fits[:number].copy())
            kernel.start_task(state, run, tree, n, i, now)
            kernel.drop_those_without(state, run, i)
        kernel.end_moment(state, run, tree)


def _busiest(work: Work) -> int:
    """Return how many tasks are submitted at one time, at most: so many may start in one moment, which is one call of a step."""
    jobs = work.changes == Change.SUBMIT
    _, moment = np.unique(work.times[jobs], return_inverse=True)
    return int(np.bincount(moment, weights=work.tasks[work.subjects[jobs]], minlength=1).max())
