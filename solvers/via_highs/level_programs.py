"""The linear programs of the levels, on one HiGHS model (``LevelModel``) that is changed and solved again from its last basis.

Settling a user takes t' out of its row and raises the row's bound: the last point stays feasible, and primal simplex goes on from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import ROUNDING
from fairopt.program import Program, Stage
from fairopt.solvers.backend import Deadline, Status, final_levels
from fairopt.solvers.highs_model import DUAL_SIMPLEX, PRIMAL_SIMPLEX, Outcome, first_solved, solved
from fairopt.solvers.leximin.levels import Course, Proof
from fairopt.solvers.via_highs.faces import closed_columns, narrowed
from fairopt.solvers.via_highs.level_model import LevelModel
from fairopt.solvers.via_highs.level_points import Point, paid_at, point_of, prices_at
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.settings import SETTINGS, Attempt
from fairopt.solvers.via_highs.starting_basis import greedy_columns

__all__ = ["LevelPrograms"]

# A run of few steps: against degeneracy it needs no perturbed bounds, and no test of factors that are new.
_FEW_STEPS = {"primal_simplex_bound_perturbation_multiplier": 0.0, "rebuild_refactor_solution_error_tolerance": 0.0}


class LevelPrograms:
    """The linear programs of all users: the present model, and what solving them took.

    ``asked`` is the program whose users an error names, if it is another one. ``decides``: smaller programs are without users whom limits
    of their own decide (``faces``).
    """

    def __init__(self, problem: LevelProblem, deadline: Deadline, asked: Program | None = None, decides: bool = False) -> None:
        self.problem, self.deadline, self.asked, self.decides = problem, deadline, asked, decides
        self.model: LevelModel | None = None
        self.slack = 0.0  # by how much the levels of settled users are relaxed
        self.magnified = SETTINGS.magnified  # factor of all numbers
        self.iterations = self.programs = 0
        self.last: Point | None = None  # that the present model has found
        self.floor = 0.0  # of t, in the units of the model

    # Models ----------------------------------------------------------------------------------------------------------------------

    def _build(self, course: Course, t_unit: float, cap: FloatArray | None) -> LevelModel:
        return LevelModel.of(self.problem, course, t_unit, cap, self.slack, self.magnified)

    def prepare(self, course: Course, t_unit: float, cap: FloatArray | None = None) -> None:
        """Make the model that of this course: build it, in these units, or bring it up to date where neither it nor this has caps."""
        model = self.model
        if model is None:
            self._start(course, t_unit, cap)
        elif cap is not None or model.capped:
            self._restart(course, t_unit, cap, model.highs.basis)
        else:
            wanted = course.rate * model.t_unit
            coefficient = -wanted / model.unit
            if coefficient.min(initial=0.0) < -SETTINGS.unit_off:  # somebody rises much faster than before
                self._restart(course, model.t_unit, None, model.highs.basis)
            else:
                self._write(course, wanted, coefficient)

    def in_units_of(self, course: Course) -> None:
        """Go on from the last basis in units of what the users who rise want at t = 1, where the present ones are several times off."""
        if self.model is None:
            return
        part = (course.rate / self.model.unit)[course.rising & self.problem.members]
        if part.size and not (1 / SETTINGS.other_unit <= part.min() and part.max() <= SETTINGS.other_unit):
            self._restart(course, 1.0, None, self.model.highs.basis)

    def go_on(self, problem: LevelProblem, course: Course, t_unit: float, basis: Any, new: BoolArray) -> None:
        """Go on with a problem that has more columns, the ``new`` ones, from the basis of the last run."""
        self.problem = problem
        self._restart(course, t_unit, None, None)
        self._now.highs.extend(basis, np.append(new, False))
        self._now.highs.set_options(solver="simplex", simplex_strategy=PRIMAL_SIMPLEX)

    def _start(self, course: Course, t_unit: float, cap: FloatArray | None) -> None:
        """Build the first model, with a first basis for primal simplex."""
        self.model = model = self._build(course, t_unit, cap)
        many = self.problem.columns.size >= SETTINGS.many_columns
        if many and (self.problem.rows.size >= SETTINGS.many_limits or np.count_nonzero(self.problem.members) >= SETTINGS.many_users):
            model.highs.set_options(solver="ipm")
            return
        uses, users = model.use_by_column.matrix, self.problem.users
        if (np.diff(uses.indptr) > 0).all():  # a column that uses no limit (of a user with a cap) has no place in it
            per_level = uses.data / np.repeat(model.worth * model.unit[users], np.diff(uses.indptr))
            columns = greedy_columns(sp.csr_array((per_level, uses.indices, uses.indptr), shape=uses.shape), users)
            model.highs.start_from(columns, model.user_rows[self.problem.members])
            model.highs.set_options(simplex_strategy=PRIMAL_SIMPLEX)

    def narrow(self, course: Course, proof: Proof, *, always: bool = False) -> None:
        """Leave out what the level that these prices prove has decided (``faces``), and go on from what is left of the basis.

        ``always``: where that is hardly less, too.
        """
        last = self.last
        if last is None or not proof.bound - last.t <= SETTINGS.proved_gap * last.t:
            return
        spent = proof.prices * self.problem.program.limits.bounds
        before = replace(self.problem, full=self.problem.full | (spent > SETTINGS.proved_gap * float(spent.sum())))
        closed = closed_columns(before, proof.prices, max(proof.bound / last.t - 1, 0.0), last.x)
        problem = narrowed(before, closed, course, last.x, 1.0 if always else SETTINGS.narrower, self.decides)
        if problem is None:
            return
        kept = np.append(np.isin(before.columns, problem.columns), True)
        rows = np.concatenate([np.isin(before.rows, problem.rows), problem.members[before.members]])
        basis = self._now.highs.basis
        self.problem = problem
        self._restart(course, self.t_unit, None, None)
        self._now.highs.keep(basis, kept, rows)
        self._now.highs.set_options(solver="simplex", simplex_strategy=PRIMAL_SIMPLEX, **_FEW_STEPS)
        self.last = last
        self._set_floor(course)

    def _restart(self, course: Course, t_unit: float, cap: FloatArray | None, basis: Any) -> None:
        """Build a model in other units, or for another guess, and go on from a basis, if there is one."""
        self.model, self.last, self.floor = self._build(course, t_unit, cap), None, 0.0
        if basis is not None:
            self.model.highs.basis = basis
            self.model.highs.set_options(solver="simplex", simplex_strategy=PRIMAL_SIMPLEX)

    def _write(self, course: Course, wanted: FloatArray, coefficient: FloatArray) -> None:
        """Bring the rows of users up to date, where they differ from the course; of a model without caps."""
        model = self._now
        model.wanted[:] = wanted
        lower = course.start / model.unit * (1 - self.slack)
        changed = ((coefficient != model.coefficient) & self.problem.members).nonzero()[0]
        if changed.size:
            model.highs.set_coefficients(model.user_rows[changed], self.problem.columns.size, coefficient[changed])
            model.coefficient[changed] = coefficient[changed]
        changed = ((lower != model.lower) & self.problem.members).nonzero()[0]
        if changed.size:
            model.highs.set_row_lower(model.user_rows[changed], lower[changed])
            model.lower[changed] = lower[changed]
        self._set_floor(course)

    def _set_floor(self, course: Course) -> None:
        """Let t be no lower than at the last point, if that is a point of this course too.

        t is basic, but where the rows of the users who stopped it have lost it, the basis is singular. HiGHS then takes a column out,
        which goes to its lower bound; with this floor t stays, and so does the point: primal simplex goes on from it.
        """
        last = self.last
        holds = last is not None and (last.levels >= course.at(last.t) * (1 - ROUNDING)).all()
        self.floor = last.part if last is not None and holds else 0.0
        self._now.highs.set_column_lower(self.problem.columns.size, self.floor)

    # Warm starts -----------------------------------------------------------------------------------------------------------------

    def reweigh(self, program: Program, factor: FloatArray) -> None:
        """Go on with a program of other tasks and weights: what a task adds to each user's level is multiplied by ``factor``, (users,).

        So is the user's unit of level: a column adds to its user's level as many units of it as before.
        """
        problem = self.problem
        self.problem = replace(
            problem, program=program, per_level=problem.per_level * factor[program.pair_users], reach=problem.reach * factor
        )
        if self.model is not None:
            self.model = replace(self.model, unit=self.model.unit * factor)
        self.slack, self.last = 0.0, None

    def go_on_with(self, program: Program) -> None:
        """Go on with a program of other tasks."""
        self.problem = replace(self.problem, program=program)
        self.slack, self.last = 0.0, None

    def bound_t(self, most: float) -> None:
        """Bound the level from above, and take its floor away."""
        self.floor = 0.0
        self._now.highs.set_column_bounds(self.problem.columns.size, self.floor, most / self.t_unit)

    def go_on_by_dual(self, basis: Any) -> None:
        """Start the next run from a basis, if there is one, whose prices are still good."""
        if basis is not None:
            self._now.highs.basis = basis
            self._now.highs.set_options(simplex_strategy=DUAL_SIMPLEX)

    @property
    def basis(self) -> Any:
        """Where the last run ended."""
        return self._now.highs.basis

    def basic_variables(self) -> tuple[IntArray, FloatArray | None]:
        """Return the variables that are basic after the last run: pairs, then slacks of limits, then surpluses of members.

        And who rises where t is basic, (members,); None: it is not.
        """
        model, pairs = self._now, self.problem.columns.size
        basic = model.highs.basic_variables
        variables = np.where(basic < 0, pairs - 1 - basic, basic)
        of_t = basic == pairs
        rising = (model.coefficient != 0)[self.problem.members].astype(np.float64)
        return variables[~of_t], rising if of_t.any() else None

    @property
    def _now(self) -> LevelModel:
        assert self.model is not None
        return self.model

    @property
    def t_unit(self) -> float:
        """The present unit of t."""
        return self._now.t_unit

    # Solves ----------------------------------------------------------------------------------------------------------------------

    def solve(self, course: Course, cap: FloatArray | None, known: Sequence[Stage]) -> Point:
        """Solve the present model, on a course and, where they are part of what is wanted, with caps; ``known`` is what is final."""
        outcome = self._attempt(course, cap, known)
        if cap is None and self._in_other_units(course, outcome):
            outcome = self._attempt(course, cap, known)
        return self.refined(course, outcome)

    def try_once(self, course: Course) -> Outcome | None:
        """Run the present model; None where that finds nothing."""
        outcome = self._run()
        if outcome.status is Status.OPTIMAL and self._in_other_units(course, outcome):
            outcome = self._run()
        return outcome if outcome.status is Status.OPTIMAL else None

    def _run(self) -> Outcome:
        highs = self._now.highs
        outcome = highs.run(self.deadline.left)
        self.iterations += outcome.iterations
        if outcome.status is Status.OPTIMAL and 0 < self.floor == outcome.x[-1]:  # the floor would have a part of the price of t
            self.floor = 0.0
            highs.set_column_lower(self.problem.columns.size, 0.0)
            outcome = highs.run(self.deadline.left)
            self.iterations += outcome.iterations
        return outcome

    def _in_other_units(self, course: Course, outcome: Outcome) -> bool:
        """Go on from the same basis in other units, where those of the model were wrong by orders of magnitude; say whether they were."""
        t = float(outcome.x[-1])
        if 1 / SETTINGS.unit_off < t < SETTINGS.unit_off:
            return False
        off = t > (SETTINGS.no_progress if course.start.any() else 0.0)  # what users have already is a measure of its own
        if off:
            self._restart(course, self.t_unit * t, None, self._now.highs.basis)
        return off

    def _attempt(self, course: Course, cap: FloatArray | None, known: Sequence[Stage]) -> Outcome:
        """Run the LP, which always has a solution; where the solver misses it, build it anew as the ``attempts`` of the settings say."""
        outcome = first_solved((self._run, *(partial(self._run_anew, course, cap, attempt) for attempt in SETTINGS.attempts)))
        if outcome.status is Status.OPTIMAL:
            return outcome
        return solved(outcome, self.deadline, final_levels(self.asked or self.problem.program, known))

    def _run_anew(self, course: Course, cap: FloatArray | None, attempt: Attempt) -> Outcome:
        self.slack, self.magnified = attempt.slack, attempt.magnified
        unit = self.t_unit * (attempt.unit if cap is None else 1.0)
        self._restart(course, unit, cap, self._now.highs.basis if attempt.keeps_basis else None)
        return self._run()

    def refined(self, course: Course, outcome: Outcome) -> Point:
        """Return the point of an outcome, refined as long as it violates the LP by more than rounding."""
        # From here on the last point is feasible (or almost), and primal simplex carries on from it, by a few steps.
        self._now.highs.set_options(solver="simplex", simplex_strategy=PRIMAL_SIMPLEX, **_FEW_STEPS)
        point, error = self._point(course, outcome)
        for _ in range(SETTINGS.most_refinements):
            if error <= SETTINGS.refine_above:
                break
            point, error = self._point(course, self._again(point.outcome))
        self.programs += 1
        self.last = point
        return point

    def sharper(self, course: Course, point: Point) -> Point:
        """Solve again for prices of more digits."""
        return self._point(course, self._again(point.outcome, of_prices=SETTINGS.sharper))[0]

    def _again(self, outcome: Outcome, of_prices: float = 1.0) -> Outcome:
        refined = self._now.highs.refine(outcome, self.deadline.left, of_prices=of_prices)
        self.iterations += refined.iterations - outcome.iterations
        return refined

    def _point(self, course: Course, outcome: Outcome) -> tuple[Point, float]:
        return point_of(self._now, self.problem, course, outcome, self.slack)

    # Prices ----------------------------------------------------------------------------------------------------------------------

    def paid(self, point: Point) -> FloatArray:
        """Return what each user pays for a unit of its level, in the prices of a proof, (users,)."""
        return paid_at(self._now, self.problem, point)

    def proof(self, course: Course, point: Point, cap: FloatArray | None) -> Proof:
        """Return what the multipliers of an LP prove, where nobody can pass its ``cap``, if there are caps."""
        return Proof.of(course, *self.prices(point), cap)

    def prices(self, point: Point) -> tuple[FloatArray, FloatArray, float]:
        """Return the prices of limits, (limits,), the cheapest price of a unit of level of each user, (users,), and all that is spent."""
        return prices_at(self._now, self.problem, point)
