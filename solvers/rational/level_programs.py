"""The linear program of one level in rational numbers: solved in floats, lifted, and finished by rational pivots.

    maximise t   subject to   A x <= b,   sum of worth x  >=  start[a] + rate[a] t  for each agent a,   x, t >= 0

An *agent* is a user; of a nested leximin also a queue, whose worth is that of all users below it. Who is settled has rate 0. Each row is
multiplied by the common denominator of its coefficients: whole numbers are what FLINT is fast with.

*In floats* the program is scaled, so that a solver's tolerances suit all users: a unit of x is what makes one unit of its user's level,
and each limit and each agent's level is 1. The scales are computed from fractions; numbers beyond floats do not matter, because only the
basis is used: which columns are positive and which rows are full. From there on everything is rational
(`fairopt.solvers.rational.simplex`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from flint import fmpq, fmpz

from fairopt.errors import FairoptError, NoSolution
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.fractions import ExactArray
from fairopt.instance.tolerances import TINY
from fairopt.program.agents import AgentProgram
from fairopt.program.exact import ExactProgram
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_model import FINEST, PRIMAL_SIMPLEX, HighsModel
from fairopt.solvers.rational.settings import SETTINGS
from fairopt.solvers.rational.simplex import InfeasibleError, RationalProgram
from fairopt.solvers.rational.systems import Column, common_denominator

__all__ = ["Level", "LevelPrograms"]

log = logging.getLogger(__name__)

_ZERO = fmpq(0)


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """What one program shows, in rationals.

    Attributes
    ----------
    t : fmpq
        The largest one.
    x : array (pairs,)
    prices : array (limits,)
    pays : list of fmpq (agents,)
        The multipliers: an agent with a positive one is stopped at t.
    """

    t: Any
    x: ExactArray
    prices: ExactArray
    pays: list[fmpq]


class LevelPrograms:
    """The programs of the levels of a goal, each from the basis of the last.

    Parameters
    ----------
    program : ExactProgram or AgentProgram
    agents : sequence of (pairs, worths)
        Of each agent, the pairs that count for it, and what a task on each is worth to it.
    check : callable
        Takes steps of work; raises where nothing is left.
    """

    def __init__(
        self,
        program: ExactProgram | AgentProgram,
        agents: Sequence[tuple[IntArray, Sequence[fmpq]]],
        deadline: Deadline,
        check: Callable[..., None],
    ) -> None:
        self.program, self.deadline, self.check = program, deadline, check
        self.programs = self.pivots = self.iterations = 0
        self._largest: Any = program.largest()
        largest = self._largest
        self.pairs = [pair for pair, most in enumerate(largest) if most > 0]
        self.place = {pair: j for j, pair in enumerate(self.pairs)}
        ruled = program.rules
        self.rows = [k for k, bound in enumerate(program.bounds.tolist()) if bound > 0 or k in ruled]
        self.n, self.m = len(self.pairs), len(self.rows)
        self._float_largest = np.array([_as_float(largest[pair]) for pair in self.pairs])
        self._limits()
        self._agents(agents)
        self.basis: list[int] = [self.n + 1 + i for i in range(self.m + len(agents))]
        self.begun = False

    # In whole numbers --------------------------------------------------------------------------------------------------------------

    def _limits(self) -> None:
        """Collect the entries of limits by column, in whole numbers, and the same in floats: the part of the limit at the largest x."""
        program = self.program
        row_of = {k: i for i, k in enumerate(self.rows)}
        indptr, indices = program.indptr, program.columns
        self.columns: list[Column] = [[] for _ in range(self.n)]
        self.scales: list[fmpz] = []
        self.right: list[fmpq] = []
        entries: list[tuple[int, int, float]] = []
        self._upper = np.ones(self.m)
        for k, i in row_of.items():
            span = range(int(indptr[k]), int(indptr[k + 1]))
            values, bound = [program.data[e] for e in span], program.bounds[k]
            scale = common_denominator([*values, bound])
            self.scales.append(scale)
            self.right.append(bound * scale)
            unit = bound
            if k in program.rules:
                reached = self._reached(values, indices[span.start : span.stop])
                unit = max([abs(bound), *(abs(value) * largest for value, largest in reached)])
                unit = unit if unit > 0 else fmpq(1)
                self._upper[i] = _as_float(bound / unit)
            for e, value in zip(span, values, strict=True):
                j = self.place.get(int(indices[e]))
                if j is not None:
                    self.columns[j].append((i, (value * scale).p))
                    entries.append((i, j, _as_float(value / unit) * float(self._float_largest[j])))
        self._use = _sparse(entries, (self.m, self.n))

    def _reached(self, values: Sequence[fmpq], pairs: IntArray) -> Iterator[tuple[fmpq, fmpq]]:
        """Yield the coefficients of a rule, and the most that each of their columns can take."""
        yield from ((value, self._largest[pair]) for value, pair in zip(values, pairs.tolist(), strict=True) if pair in self.place)

    def _agents(self, agents: Sequence[tuple[IntArray, Sequence[fmpq]]]) -> None:
        entries: list[tuple[int, int, float]] = []
        self.agent_scales: list[fmpz] = []
        for a, (pairs, worths) in enumerate(agents):
            kept = [(self.place[pair], worth) for pair, worth in zip(pairs.tolist(), worths, strict=True) if pair in self.place]
            scale = common_denominator([worth for _, worth in kept])
            self.agent_scales.append(scale)
            for j, worth in kept:
                self.columns[j].append((self.m + a, (worth * scale).p))
                entries.append((a, j, _as_float(worth) * float(self._float_largest[j])))
        self._worth = _sparse(entries, (len(agents), self.n))
        self.reach = np.asarray(self._worth.sum(axis=1)).ravel()
        # Of each column, the agent of fewest pairs that it counts for: its user.
        number = np.diff(sp.csr_array(self._worth).indptr)
        self._owner = (
            np.array(
                [
                    min(span, key=lambda a: number[a]) if len(span) else -1
                    for span in np.split(self._worth.indices, self._worth.indptr[1:-1])
                ],
                np.int64,
            )
            if self.n
            else np.zeros(0, np.int64)
        )

    # One level ---------------------------------------------------------------------------------------------------------------------

    def solve(self, start: Sequence[fmpq], rate: Sequence[fmpq]) -> Level:
        """Return the largest t, with its proof.

        Parameters
        ----------
        start, rate : sequences of fmpq (agents,)
        """
        scaled = [value * scale for value, scale in zip(rate, self.agent_scales, strict=True)]
        unit = common_denominator(scaled)
        of_t: Column = [(self.m + a, -(value * unit).p) for a, value in enumerate(scaled) if value != 0]
        right = [*self.right, *(value * scale for value, scale in zip(start, self.agent_scales, strict=True))]
        at_most = [True] * self.m + [False] * len(start)
        rational = RationalProgram([*self.columns, of_t], right, at_most, [*[_ZERO] * self.n, fmpq(1)])
        try:
            found = rational.optimise(self._float_basis(start, rate), self.check)
        except InfeasibleError:
            raise NoSolution("nothing is feasible", {"infeasible": True}) from None
        self.basis, self.begun = found.basis, True
        self.programs, self.pivots = self.programs + 1, self.pivots + found.pivots
        x = np.full(self.program.n_pairs, _ZERO, dtype=object)
        for pair, value in zip(self.pairs, found.z, strict=False):
            x[pair] = value
        prices = np.full(self.program.bounds.size, _ZERO, dtype=object)
        for k, price, scale in zip(self.rows, found.prices, self.scales, strict=False):
            prices[k] = price * scale * unit
        pays = [-price * scale * unit for price, scale in zip(found.prices[self.m :], self.agent_scales, strict=True)]
        return Level(found.z[self.n] * unit, x, prices, pays)

    # In floats ---------------------------------------------------------------------------------------------------------------------

    def _float_basis(self, start: Sequence[fmpq], rate: Sequence[fmpq]) -> list[int]:
        """Return an optimal basis of the program in floats; if HiGHS finds none, the last one."""
        begin, speed = np.array([_as_float(value) for value in start]), np.array([_as_float(value) for value in rate])
        unit = self._first_unit(begin, speed)
        for _ in range(3):
            try:
                basis, t = self._run(begin, speed, unit)
            except FairoptError as error:
                log.info("no basis in floats: %s", error)
                break
            if not basis:
                break
            if t > 0 and not unit / SETTINGS.unit_off <= t <= unit * SETTINGS.unit_off and np.isfinite(t):
                unit = t
                self.basis = basis
                continue
            return basis
        return self.basis

    def _first_unit(self, begin: FloatArray, speed: FloatArray) -> float:
        """Return a t between that of equal parts and that of what the least can reach alone."""
        up = (speed > 0) & (self.reach > 0)
        if not up.any():
            return 1.0
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            alone = np.maximum(self.reach[up] - begin[up], 1e-3 * self.reach[up]) / speed[up]
            unit = float(alone.min() / np.sqrt(up.sum()))
        return unit if 0 < unit < np.inf else 1.0

    def _run(self, begin: FloatArray, speed: FloatArray, unit: float) -> tuple[list[int], float]:
        """Return the basis of a run, and its t; no basis where the run failed."""
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            wanted = np.where(speed > 0, begin + speed * unit, begin)
            size = np.where(wanted > 0, np.minimum(wanted, np.maximum(self.reach, TINY)), np.maximum(self.reach, TINY))
            size[~(size > 0)] = 1.0
            worth = sp.csr_array(self._worth)
            owner = self._owner
            own = np.asarray(sp.csc_array(self._worth)[owner, np.arange(self.n)]).ravel() if self.n else np.zeros(0)
            scale = np.clip(np.where(own > 0, size[owner] / np.where(own > 0, own, 1.0), 1.0), 1e-200, 1.0)
            use = sp.csr_array(self._use @ sp.diags_array(scale))
            rows = sp.csr_array(sp.diags_array(1.0 / size) @ (worth @ sp.diags_array(scale)))
            of_t = sp.csr_array(-(speed * unit / size)[:, None])
            matrix = (
                sp.csr_array(sp.block_array([[use, None], [rows, of_t]], format="csr")) if self.m else sp.csr_array(sp.hstack([rows, of_t]))
            )
            lower = np.concatenate([np.full(self.m, -np.inf), begin / size])
        if not (np.isfinite(matrix.data).all() and np.isfinite(lower[self.m :]).all()):
            return [], 0.0
        n = self.n + 1
        upper = np.concatenate([self._upper, np.full(begin.size, np.inf)])
        model = HighsModel(np.append(np.zeros(self.n), 1.0), np.zeros(n), np.full(n, np.inf), matrix, lower, upper, tolerance=FINEST)
        if self.begun:
            structural = np.array([j for j in self.basis if j < n], np.int64)
            slack = {j - n for j in self.basis if j >= n}
            model.start_from(structural, np.array([i for i in range(lower.size) if i not in slack], np.int64))
            model.set_options(simplex_strategy=PRIMAL_SIMPLEX)
        outcome = model.run(self.deadline.left)
        if outcome.status is Status.TIME_LIMIT:
            self.check()
        self.iterations += outcome.iterations
        self.check(SETTINGS.steps_of_an_iteration * outcome.iterations + matrix.nnz)
        columns, basic_rows = model.basic()
        if columns.size + basic_rows.size != lower.size:
            return [], 0.0
        t = float(outcome.x[-1]) * unit if outcome.x.size and outcome.status is Status.OPTIMAL else 0.0
        return [*columns.tolist(), *(basic_rows + n).tolist()], t


def _sparse(entries: Sequence[tuple[int, int, float]], shape: tuple[int, int]) -> sp.csc_array:
    """Return a matrix from rows, columns and values."""
    row, column, value = (np.array([entry[k] for entry in entries]) for k in range(3))
    return sp.csc_array((value.astype(np.float64), (row.astype(np.int64), column.astype(np.int64))), shape=shape)


def _as_float(value: fmpq | float) -> float:
    """Return the nearest float; beyond floats the largest and the smallest."""
    if isinstance(value, float):
        return value
    try:
        return float(int(value.p) / int(value.q))
    except OverflowError:
        return 1e300
