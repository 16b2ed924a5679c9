"""Whole tasks, where they run, and in as few pairs of user and servers as possible: `fairopt.program.placement`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import FITS, WRITTEN
from fairopt.program.placement import WholePlacement
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_model import HighsModel, Outcome
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["Placed", "pack_servers", "place_numbers", "place_whole"]


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Whole tasks of pairs.

    Attributes
    ----------
    x : array (pairs,)
    rounded : bool
        Whether the numbers of tasks are proved to be the best, and not only the best that were found in time.
    fewest : bool
        Whether no placement of these tasks has fewer pairs.
    before : int
        Pairs of the placement from which the search for fewer started.
    least : int
        A number of pairs that no placement of these tasks goes below.
    iterations : int
        Steps of the simplex method that the searches took.
    """

    x: FloatArray
    rounded: bool
    fewest: bool
    before: int = 0
    least: int = 0
    iterations: int = 0


def place_whole(program: WholePlacement, time_limit: float | None = None, effort: float | None = None) -> Placed:
    """Solve the three goals in their order. Where branch and cut ends before it has proved an answer, the best one found is taken.

    The time limit is that of all three; the numbers of tasks have a part of it.
    With a time limit the linear program of many pairs has one of its own. ``effort`` limits each run of branch and cut: its checks times
    its columns; None: its nodes alone; inf: no limit. If no whole point was found in time, that of the linear program is rounded down: the
    caller fills up.
    """
    if not program.most.size:
        return Placed(np.zeros(0), True, True)
    deadline = Deadline(time_limit)
    if program.most.size > SETTINGS.pairs_of_milp:
        outcome, x = _divisible(program, deadline)
        return Placed(x, False, False, iterations=outcome.iterations)
    numbers = place_numbers(program, None if time_limit is None else SETTINGS.numbers_part * time_limit, effort)
    x = numbers.x
    pairs, before = _Pairs(program, x, effort), int((x > 0).sum())
    fewest = pairs.run(np.r_[np.zeros(x.size), -np.ones(x.size)], x.size, SETTINGS.search_part * deadline.left, x)
    proved = fewest.status is Status.OPTIMAL
    least_left = (1 - SETTINGS.search_part) * deadline.left  # engines look at the clock from time to time only
    x = pairs.better(fewest, x)
    if not proved:  # then which pairs are used is settled, and the search is small
        pairs.most = np.where(x > 0, pairs.most, 0.0)
    spread = pairs.run(np.r_[-program.servers_per_task, np.zeros(x.size)], int((x > 0).sum()), max(deadline.left, least_left), x)
    x = pairs.better(spread, x)
    least = int((x > 0).sum()) if proved else max(math.ceil(-fewest.bound - 1e-6), 0) if math.isfinite(fewest.bound) else 0
    return Placed(x, numbers.rounded, proved, before, least, numbers.iterations + fewest.iterations + spread.iterations)


def place_numbers(program: WholePlacement, time_limit: float | None = None, effort: float | None = None) -> Placed:
    """Solve for the numbers of tasks alone, and place the best that were found."""
    deadline = Deadline(time_limit)
    outcome = _numbers(program, deadline, effort)
    proved, iterations = outcome.status is Status.OPTIMAL, outcome.iterations
    found = np.round(outcome.x[: program.most.size]) if outcome.x.size else np.zeros(program.most.size)
    if not proved:
        divisible, rounded = _divisible(program, deadline)
        found = max(rounded, found, key=lambda x: _worth(program, x))
        iterations += divisible.iterations
    return Placed(found, proved, False, iterations=iterations)


def _worth(program: WholePlacement, x: FloatArray) -> float:
    """Return what is maximised of the numbers of tasks: remainders rounded up, and no task lost."""
    y = _sums(program) @ x
    return float(program.parts @ (y > program.floors) - (y.size + 1) * np.maximum(program.floors - y, 0.0).sum())


def pack_servers(
    capacity: FloatArray,
    count: int,
    demands: FloatArray,
    tasks: FloatArray,
    time_limit: float | None = None,
    effort: float | None = None,
) -> tuple[FloatArray, int]:
    """Place as many of these tasks, (users,), as possible on ``count`` servers of this capacity, (users, servers): branch and cut.

    Where it ends before an answer is proved, the best one found is returned. The second value is the number of steps of the simplex method.
    """
    users = tasks.size
    used = np.flatnonzero(capacity > 0)
    per_server = sp.csr_array((demands[:, used] / capacity[used]).T)
    each_server = sp.kron(sp.eye_array(count), per_server)  # columns: the users of the first server, then those of the second, ...
    sums = sp.hstack([sp.eye_array(users)] * count)
    rows = sp.vstack([each_server, sums])
    size = users * count
    model = HighsModel(
        np.ones(size),
        np.zeros(size),
        np.tile(tasks, count),
        sp.csc_array(rows),
        np.full(rows.shape[0], -np.inf),
        np.r_[np.ones(used.size * count), tasks],
        integral=np.arange(size),
    )
    model.set_options(mip_abs_gap=0.999)
    _limit(model, size, effort)
    outcome = model.run(float("inf") if time_limit is None else time_limit)
    found = np.round(outcome.x).reshape(count, users).T if outcome.x.size else np.zeros((users, count))
    return np.asarray(found), outcome.iterations


def _limit(model: HighsModel, columns: int, effort: float | None) -> None:
    """Limit branch and cut by ``effort``, as `place_whole` has it: where that is a number, its nodes have a limit, too."""
    if effort is None:
        model.set_options(mip_max_nodes=SETTINGS.most_nodes)
    elif effort < np.inf:
        model.set_options(mip_max_nodes=SETTINGS.few_nodes)
        model.end_after(max(SETTINGS.fewest_checks, int(effort / columns)))


def _scaled(program: WholePlacement) -> tuple[sp.csr_array, FloatArray]:
    """Return the limits with bound 1, and the largest whole value of each column, 0 where a bound is 0."""
    bounds, matrix = program.limits.bounds, program.limits.matrix
    upper = program.most.copy()
    upper[np.unique(matrix[np.flatnonzero(bounds <= 0)].indices)] = 0.0
    positive = np.flatnonzero(bounds > 0)
    return sp.csr_array(matrix[positive] / bounds[positive, None]), upper


def _sums(program: WholePlacement) -> sp.csr_array:
    """Return the rows whose products with x are the tasks of each user."""
    number = program.most.size
    return sp.csr_array((np.ones(number), (program.pair_users, np.arange(number))), shape=(program.floors.size, number))


def _numbers(program: WholePlacement, deadline: Deadline, effort: float | None) -> Outcome:
    matrix, upper = _scaled(program)
    pairs, users = upper.size, program.floors.size
    each = sp.eye_array(users, format="csr")
    rows = sp.vstack([sp.hstack([matrix, sp.csr_array((matrix.shape[0], 2 * users))]), sp.hstack([_sums(program), -each, each])])
    more = program.parts - SETTINGS.ties * np.arange(users) / max(users, 1)
    model = HighsModel(
        np.r_[np.zeros(pairs), np.where(program.parts > 0, more, 0.0), np.full(users, -(users + 1.0))],
        np.zeros(pairs + 2 * users),
        np.r_[upper, (program.parts > 0).astype(float), program.floors],
        sp.csc_array(rows),
        np.r_[np.full(matrix.shape[0], -np.inf), program.floors],
        np.r_[np.ones(matrix.shape[0]), program.floors],
        integral=np.arange(pairs + 2 * users),
    )
    _limit(model, pairs + 2 * users, effort)
    return model.run(deadline.left)


def _divisible(program: WholePlacement, deadline: Deadline) -> tuple[Outcome, FloatArray]:
    """Solve the linear program, and round its vertex down; with a deadline, which may be over, it has a limit of its own."""
    matrix, upper = _scaled(program)
    pairs, users = upper.size, program.floors.size
    tasks = program.floors + program.parts
    rows = sp.vstack([sp.hstack([matrix, sp.csr_array((matrix.shape[0], users))]), sp.hstack([_sums(program), sp.eye_array(users)])])
    model = HighsModel(
        np.r_[-1.0 / np.maximum(upper, 1.0), np.full(users, -SETTINGS.cost_of_misfit)],
        np.zeros(pairs + users),
        np.r_[upper, tasks],
        sp.csc_array(rows),
        np.r_[np.full(matrix.shape[0], -np.inf), tasks],
        np.r_[np.ones(matrix.shape[0]), tasks],
    )
    outcome = model.run(float("inf") if deadline.seconds is None else SETTINGS.rounding_s)
    return outcome, np.floor(outcome.x[:pairs] * (1 + FITS) + WRITTEN) if outcome.x.size else np.zeros(pairs)


class _Pairs:
    """The placements of given numbers of tasks, and which pairs they use."""

    def __init__(self, program: WholePlacement, x: FloatArray, effort: float | None) -> None:
        matrix, upper = _scaled(program)
        self.effort = effort
        self.size, sums = upper.size, _sums(program)
        self.tasks = sums @ x
        self.most = np.minimum(upper, self.tasks[program.pair_users])
        nothing = sp.csr_array((matrix.shape[0], self.size))
        each = sp.eye_array(self.size, format="csr")
        used = sp.csr_array((np.ones(self.size), (np.zeros(self.size, int), np.arange(self.size))), shape=(1, self.size))
        self.rows = sp.csc_array(
            sp.vstack(
                [
                    sp.hstack([matrix, nothing]),
                    sp.hstack([sums, sp.csr_array((self.tasks.size, self.size))]),
                    sp.hstack([each, -sp.diags_array(self.most)]),
                    sp.hstack([sp.csr_array((1, self.size)), used]),
                ]
            )
        )
        self.limits, self.sums, self.matrix = matrix.shape[0], sums, matrix

    def run(self, cost: FloatArray, pairs: int, seconds: float, known: FloatArray) -> Outcome:
        """Maximise a goal over the placements with at most so many pairs, from a known one."""
        scale = np.abs(cost).max() or 1.0
        model = HighsModel(
            cost / scale,
            np.zeros(2 * self.size),
            np.r_[self.most, np.ones(self.size)],
            self.rows,
            np.r_[np.full(self.limits, -np.inf), self.tasks, np.full(self.size + 1, -np.inf)],
            np.r_[np.ones(self.limits), self.tasks, np.zeros(self.size), float(pairs)],
            integral=np.arange(2 * self.size),
        )
        model.set_options(mip_rel_gap=1e-6)
        _limit(model, 2 * self.size, self.effort)
        model.start_at(np.r_[known, (known > 0).astype(float)])
        return model.run(seconds)

    def better(self, outcome: Outcome, x: FloatArray) -> FloatArray:
        """Return the placement of an outcome, or the one before where there is none."""
        if not outcome.x.size:
            return x
        found = np.round(outcome.x[: self.size])
        kept = np.array_equal(self.sums @ found, self.tasks) and bool((self.matrix @ found <= 1 + FITS).all())
        return found if kept else x
