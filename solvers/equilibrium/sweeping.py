r"""Best response: each server in turn solves its own problem, until no server can improve.

Every server i solves its own problem, a leximin over (y[n] + x[n,i]) / g[n,i] given what its users have elsewhere, in closed form
(`fairopt.solvers.equilibrium.kernel`). The first sweep starts from the empty allocation, so it is DRF on each server in order. This is
Algorithm I of Khamse-Ashari et al. (2017), with its inner loop replaced by its limit.

Most instances converge in a few sweeps, or in some dozens; some converge geometrically, over thousands. Where servers take turns and few
pairs hold something, their end is computed as soon as the active sets (which pairs hold something, and which limit stopped each) have
stayed the same for a few sweeps (`fairopt.solvers.equilibrium.settled`). After 200 sweeps (fewer where a sweep has many pairs and takes
long) three methods propose points that may be better:

* the equations of the active sets that the sweeps have found are solved now and then (`fairopt.solvers.equilibrium.equations`); where
  their solution satisfies the condition of the equilibrium, it is the answer;
* if each sweep makes nearly the same small change, one step makes them all, until some pair is empty;
* if sweeps converge slowly, an interior point (`fairopt.solvers.equilibrium.smoothing`) finds which pairs hold something, given the limit
  that stops each pair.

The equations are solved here, and not only in the polish of the answer, because they end the sweeps: the last change of a sequence that
converges geometrically does not bound its error.

Near the end, only the sweeps go on, as long as they halve the violation: the other two methods know eight digits of the answer only, and
the sweeps would return to the same points. `fairopt.solvers.equilibrium.proposals.Help` decides which method is tried when, and which
points the sweeps go on from. A point that is good enough is returned after ten more attempts at a better one.

Asynchronous servers act one at a tick, in random order, and carry out a decision up to ``delay`` ticks later, when others have moved. If
they overshoot together, all steps are shortened, by half whenever the servers stop converging. In a random or asynchronous order only the
equations help, so the record shows the servers alone; after 2,000 sweeps without an equilibrium, the servers take turns.

A point is returned only if its violation of the condition is within the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import numpy as np

from fairopt.errors import NoSolution
from fairopt.instance import IntArray
from fairopt.instance.tolerances import ROUNDING
from fairopt.program import Equilibrium, Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.compiled import Steps
from fairopt.solvers.equilibrium import kernel, violation_kernel
from fairopt.solvers.equilibrium.layout import Layout, State
from fairopt.solvers.equilibrium.proposals import Help
from fairopt.solvers.equilibrium.record import Record
from fairopt.solvers.equilibrium.settings import SETTINGS
from fairopt.solvers.equilibrium.settled import limit_of_sweeps

__all__ = ["find_equilibrium"]


def find_equilibrium(program: Program, goal: Equilibrium, tolerance: float, deadline: Deadline) -> Solution:
    """Sweep until a point satisfies the condition of the equilibrium.

    Raises
    ------
    NoSolution
        At the time limit, after 20,000 sweeps, or once servers in turn change nothing more. The error holds the point reached and its
        violation of the condition.
    """
    layout = Layout.of(program, goal)
    state, record = layout.empty(), Record(layout)
    steps, checks = Steps(kernel), Steps(violation_kernel)
    act = _turns(goal, layout, state, steps)
    in_turn = goal.order == "sequential"
    best, violation = layout.by_pair(state.x), np.inf
    sets, same = b"", 0
    due, last, spare, stuck = 1, np.inf, SETTINGS.spare, 0
    help_ = Help(layout, checks, deadline)
    for sweep in range(1, SETTINGS.most_sweeps + 1):
        if sweep == SETTINGS.patience and not in_turn:
            act, in_turn = _turns(Equilibrium(goal.weights), layout, state, steps), True
        change = act()
        record.add(change, state)
        same = same + 1 if (now := state.sets()) == sets else 0
        sets = now
        if in_turn and same == SETTINGS.settled:
            end = limit_of_sweeps(layout, state)
            if end is not None and (worst := layout.violation(end, checks)) <= SETTINGS.aim:
                best, violation = end, worst
                break
        if change <= ROUNDING or sweep >= due or deadline.left == 0.0:
            due = min(2 * sweep, sweep + SETTINGS.every)
            near, before = layout.by_pair(state.x), violation
            reached = nearest = record.violations[-1] = layout.violation(near, checks)
            for x in chain([near], help_.answers(state, sweep, change, reached)):
                worst = reached if x is near else layout.violation(x, checks)
                if worst < violation:
                    best, violation = x, worst
                if worst < nearest:
                    near, nearest = x, worst
                if violation <= SETTINGS.aim:
                    break
            stuck = stuck + 1 if in_turn and change <= ROUNDING and violation == before else 0
            enough = violation <= 0.1 * tolerance
            spare -= enough
            good = violation <= SETTINGS.aim or (enough and (change <= ROUNDING or not spare))
            if good or stuck == SETTINGS.stuck or deadline.left == 0.0:
                break
            alone = enough or (change < SETTINGS.close and reached < 0.5 * last)  # the sweeps converge by themselves
            last = reached
            ahead = help_.ahead(state, record.recent, sweep, change, reached, near, nearest, alone) if in_turn else None
            if ahead is not None:
                state.go_to(layout, ahead)
                record.forget_changes(state)
    if not violation <= tolerance:  # the sweeps aim lower, but the tolerance decides
        known = {"x": best, "residual": violation, "sweeps": sweep, "change": change}
        if deadline.left == 0.0:
            raise deadline.passed(known)
        raise NoSolution(
            f"the servers found no equilibrium in {sweep:,} sweeps; the best point violates its condition by {violation:.1e}; "
            f'try another order ("random", another seed) or a larger tolerance',
            known,
        )
    trace = record.finished(state, best, violation)
    return Solution(best, iterations=sweep, programs_solved=0, trace=trace, seconds={"load": steps.loading + checks.loading})


def _turns(goal: Equilibrium, layout: Layout, state: State, steps: Steps) -> Callable[[], float]:
    """Return the function that lets each server act once, on average, and returns the largest change."""
    arrays = layout.arrays(state)
    rng = np.random.default_rng(goal.seed)
    once = SETTINGS.pair_seconds * state.x.size
    servers: IntArray = np.flatnonzero(np.diff(layout.start))
    if goal.order == "sequential":
        return lambda: float(steps.run("sweep", servers, *arrays, seconds=once))
    if goal.order == "random":
        return lambda: float(steps.run("sweep", rng.permutation(servers), *arrays, seconds=once))
    planned = np.zeros(state.x.size)
    due = np.full(layout.start.size - 1, -1)
    clock, part, least, stalled = 0, 1.0, np.inf, 0

    def act() -> float:
        nonlocal clock, part, least, stalled
        actors = rng.choice(servers, servers.size)
        delays = rng.integers(0, goal.delay + 1, servers.size)
        change = float(steps.run("act_asynchronously", actors, delays, part, *arrays, planned, due, clock, seconds=once))
        clock += servers.size
        if change < SETTINGS.gains * least:
            least, stalled = change, 0
        else:
            stalled += 1
            if stalled >= SETTINGS.stalled:
                part, stalled, least = max(SETTINGS.shorter * part, SETTINGS.shortest), 0, change
        return change

    return act
