"""Levels of many users with limits of their own and few shared limits, by sifting: restricted linear programs over split users.

At the prices of an optimal level nearly every user has a unique response (``responses``): its cheapest pair, or, if a limit of its own
rules that out, a mixture of two pairs. The use of such a *sure* user is a linear function of its level, and it needs no variables. Only
users with several responses, split across pairs, have variables in the restricted LP. Multiplicative-weights prices give a first guess of
the level and of the split users. With w[n] = min(guess, cap[n]), and L[n] the level of a settled user:

    maximise theta   subject to   use of split users + (use of sure users at theta w, L) <= 1
                                  sum_i l[n,i] >= theta w[n], L[n],     own limits, l >= 0            (n split)

Then all users respond to the prices of the LP. By weak duality the responses bound the level of the full program. A user who chooses other
pairs than before is split in the next LP, with these pairs. The point of the LP is feasible, so when its level meets the bound, the level
is optimal for the full program. Mostly two LPs of a few hundred split users give a level of thousands of users.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program import Feature, Leximin, LimitKind, Program, Solution, Stage
from fairopt.program.own_limits import OwnLimits
from fairopt.solvers.backend import Deadline, Status, final_levels
from fairopt.solvers.highs_model import FINEST, HighsModel, Outcome, solved
from fairopt.solvers.leximin.levels import Course, NotConverged, Proof, Together, settle_below, solve_levels
from fairopt.solvers.via_highs.faces import closed_columns
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.levels import CappedLevels, Tried
from fairopt.solvers.via_highs.responses import Response, Users
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["solve_sifted", "wins"]

log = logging.getLogger(__name__)


def wins(program: Program) -> bool:
    """Is sifting faster for this leximin of users with limits of their own? See ``SETTINGS.sifted_users``."""
    limits = program.limits
    if program.goal.feature is not Feature.LEXIMIN or limits.of_kinds(LimitKind.SLICE, LimitKind.PAST).any():
        return False
    shared = int(limits.of_servers.sum())
    users = program.members.size
    if not shared or users < max(SETTINGS.sifted_users, SETTINGS.sifted_users_per_limit * shared):
        return False
    own = OwnLimits(program, program.worth)
    uneven = own.users[~own.even]
    some = uneven.size > 0 or bool((limits.kinds == LimitKind.PARALLELISM).any())
    return some and bool(np.bincount(uneven, minlength=1).max() <= 1)


def solve_sifted(program: Program, goal: Leximin, tolerance: float, deadline: Deadline) -> Solution | None:
    """Return the leximin of a program for which this `wins`, None where an LP failed or the bound and the level did not meet."""
    problem = LevelProblem.of(program, goal)
    programs = _SiftedPrograms(_SiftedProblem.of(problem), deadline)
    try:
        with np.errstate(all="ignore"):  # an overflow makes an answer that fails its certificate
            solver = CappedLevels(programs, problem)
            found = solve_levels(program, problem.per_level, solver, Together(problem.members), settle_below(tolerance))
    except NotConverged as failure:
        log.info("%s", failure)
        return None
    return replace(found, iterations=programs.iterations, programs_solved=programs.programs)


@dataclass(frozen=True, slots=True, eq=False)
class _SiftedProblem:
    """The data of all LPs. Users are those who can have anything ("members"), pairs those with room, levels l in units of U / phi.

    Attributes
    ----------
    problem : LevelProblem
    members : int array (members,)
        Positions of the members among the users of the program.
    user : int array (columns,)
        Position of the user of each pair among the members.
    shared : int array (shared,)
        Limits that members share.
    use, use_by_column : sparse matrices (shared, columns), (columns, shared)
        Part of a shared limit that a unit of level takes on the pair.
    own_row : int array (members,)
        The limit of the user's own that is more than a cap, -1 without one.
    responses : Users
    closed : bool array (columns,)
        Pairs that levels so far have closed.
    """

    problem: LevelProblem
    members: IntArray
    user: IntArray
    shared: IntArray
    use: Any
    use_by_column: Any
    own_row: IntArray
    responses: Users
    closed: BoolArray

    @classmethod
    def of(cls, problem: LevelProblem) -> _SiftedProblem:
        """Return the parts of a problem."""
        limits, own = problem.program.limits, problem.own
        per_level, members = problem.per_level[problem.columns], np.flatnonzero(problem.members)
        user = np.searchsorted(members, problem.users)
        shared = np.flatnonzero(limits.of_servers & (limits.bounds > 0))
        matrix = limits.matrix[:, problem.columns]
        use: Any = sp.csc_array(matrix[shared] / limits.bounds[shared][:, None] / per_level)
        uneven = own.rows[~own.even]
        uneven = uneven[problem.members[limits.keys[uneven, 0]]]
        own_row, bound = np.full(members.size, -1), np.full(members.size, np.inf)
        own_row[np.searchsorted(members, limits.keys[uneven, 0])] = uneven
        bounded = np.flatnonzero(own_row >= 0)
        bound[bounded] = limits.bounds[own_row[bounded]]
        takes = np.asarray(matrix[uneven].sum(axis=0)).ravel() / per_level
        return cls(problem, members, user, shared, use, sp.csr_array(use.T), own_row, Users(user, takes, bound), np.zeros(user.size, bool))

    @property
    def bounded(self) -> IntArray:
        """Members with a limit of their own that is more than a cap."""
        return np.flatnonzero(self.own_row >= 0)

    def wanted(self, course: Course, cap: FloatArray, t: float) -> FloatArray:
        """Return what everybody shall have when those who rise reach t, (members,)."""
        return np.asarray(np.where(course.rising, np.minimum(cap, t), course.start)[self.members])

    def respond(self, price: FloatArray, wanted: FloatArray, course: Course, cap: FloatArray) -> tuple[Response, Proof]:
        """Return what users do at prices of whole shared limits, and what that proves."""
        limits, bounded = self.problem.program.limits, self.bounded
        response = self.responses.respond(np.where(self.closed, np.inf, self.use_by_column @ price), wanted)
        full, q = np.zeros(len(limits)), np.zeros(cap.size)
        full[self.shared] = price / limits.bounds[self.shared]
        full[self.own_row[bounded]] = response.y[bounded]
        q[self.members] = response.q
        spent = float(price.sum() + response.y[bounded] @ self.responses.bound[bounded])
        return response, Proof.of(course, full, q, spent, cap)

    def have(self, pairs: BoolArray) -> BoolArray:
        """Say which members have one of these pairs, (members,)."""
        return np.asarray(np.bincount(self.user[pairs], minlength=self.members.size) > 0)


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    """The pairs that users choose at prices near the best ones (``kept``, (columns,)), and the users with several (``split``, (members,)).

    ``near`` are the best prices so far, ``width`` the size of their perturbations, ``tries`` the number of LPs of this level.
    """

    kept: BoolArray
    split: BoolArray
    near: FloatArray
    width: float = SETTINGS.perturbation
    tries: int = 0

    def with_response(self, problem: _SiftedProblem, response: Response) -> tuple[_Choice, bool]:
        """Keep the pairs of a response; users whose pairs changed are split. Return the choice, and whether anything is new."""
        chosen = response.level > 0
        changed = problem.have(chosen != self.kept)
        new = bool((changed & ~self.split).any() or (chosen & ~self.kept).any())
        return replace(self, kept=self.kept | chosen, split=self.split | changed), new

    def with_choices_around(self, problem: _SiftedProblem, wanted: FloatArray, course: Course, cap: FloatArray) -> _Choice:
        """Keep the responses to perturbations of the best prices."""
        rng, choice = np.random.default_rng(0), self
        for _ in range(SETTINGS.perturbed_prices):
            price = self.near * np.exp(self.width * rng.uniform(-1, 1, self.near.size))
            choice, _ = choice.with_response(problem, problem.respond(price, wanted, course, cap)[0])
        return choice


class _SiftedPrograms:
    """The LPs of split users."""

    def __init__(self, problem: _SiftedProblem, deadline: Deadline) -> None:
        self.problem, self.deadline = problem, deadline
        self.x = np.zeros(problem.problem.program.n_pairs)
        self.choice: _Choice | None = None  # of the present level
        self.bound = np.inf  # of it, the lowest so far
        self.iterations = self.programs = 0

    def narrow(self, course: Course, proof: Proof, t: float) -> None:
        """Let nobody respond with the pairs that these prices close."""
        problem, gap = self.problem, max(proof.bound / t - 1, 0.0)
        if gap <= SETTINGS.proved_gap:
            left, closed = np.flatnonzero(~problem.closed), problem.closed.copy()
            of_left = replace(problem.problem, columns=problem.problem.columns[left], users=problem.problem.users[left])
            closed[left] = closed_columns(of_left, proof.prices, gap, self.x)
            self.problem = replace(problem, closed=closed)

    def first_guess(self, course: Course, caps: FloatArray) -> tuple[float, Proof | None]:
        """Return the lowest bound by multiplicative-weights prices, and keep the responses to prices near the best of these."""
        problem, best = self.problem, None
        t = float(np.minimum(caps, problem.problem.reach)[course.rising].max(initial=0.0))
        near = price = np.full(problem.shared.size, 1.0 / problem.shared.size)
        for step in range(SETTINGS.rounds_of_prices):
            response, proof = problem.respond(price, problem.wanted(course, caps, t), course, caps)
            if best is None or proof.bound < best.bound:
                best, near = proof, price
            t = min(t, best.bound)
            load = problem.use @ response.level
            price = price * np.exp((load / load.max() - 1) * 2 / np.sqrt(step + 1))
            price /= price.sum()
        choice = _Choice(response.level > 0, np.zeros(problem.members.size, bool), near)
        choice = choice.with_choices_around(problem, problem.wanted(course, caps, t), course, caps)
        # What settled users have now is always possible.
        held = np.where(course.rising[problem.members][problem.user], choice.kept, self.x[problem.problem.columns] > 0)
        self.choice = replace(choice, kept=choice.kept | held, split=choice.split | problem.have(held != choice.kept))
        assert best is not None
        self.bound = best.bound
        return best.bound, best

    def attempt(self, guess: float, course: Course, caps: FloatArray, stages: Sequence[Stage]) -> Tried:
        """Solve an LP, with more split users if it is infeasible; then let all users respond to its prices."""
        problem, choice = self.problem, self.choice
        assert choice is not None
        wanted, rising = problem.wanted(course, caps, guess), course.rising[problem.members]
        while True:
            choice = replace(choice, tries=choice.tries + 1)
            if choice.tries > SETTINGS.most_lps:
                raise NotConverged("level and bound did not meet")
            lp = _SplitLP.of(problem, choice, wanted, rising)
            outcome = lp.model.run(self.deadline.left)
            if outcome.status in (Status.OPTIMAL, Status.TIME_LIMIT):
                break
            mixing = ~choice.split & (np.bincount(problem.user[choice.kept], minlength=problem.members.size) > 1)
            if outcome.status is not Status.INFEASIBLE or not mixing.any():
                raise NotConverged(f"HiGHS: {outcome.status.value}")
            choice = replace(choice, width=choice.width * SETTINGS.wider)  # mixtures of sure users use too much: split more of them
            if choice.width < 1:
                choice = choice.with_choices_around(problem, wanted, course, caps)
            else:
                choice = replace(choice, split=choice.split | mixing)
        outcome = lp.model.refine(solved(outcome, self.deadline, final_levels(problem.problem.program, stages)), self.deadline.left)
        self.iterations += outcome.iterations
        self.programs += 1

        theta = float(outcome.x[-1])
        level = lp.levels(problem, outcome, wanted)
        wrong = problem.have(level < -SETTINGS.rounding_of_level * wanted[problem.user])  # mixtures with a negative level on a pair
        level = np.maximum(level, 0.0)
        level /= max(1.0, float((problem.use @ level).max()))
        self.x = np.zeros(self.x.size)
        self.x[problem.problem.columns] = level / problem.problem.per_level[problem.problem.columns]
        reached = np.bincount(problem.user, weights=level, minlength=problem.members.size)
        price = np.maximum(outcome.row_duals[: problem.shared.size], 0.0)
        at = np.where(rising, min(max(theta, SETTINGS.least_theta), 1.0), 1.0)
        near, response, proof = self._priced(price if price.any() else choice.near, wanted * at, course, caps)
        choice, new = replace(choice, near=near, split=choice.split | wrong).with_response(problem, response)
        self.choice, self.bound = choice, min(self.bound, proof.bound)
        log.debug("%d split, %d columns, theta %.12g", int(choice.split.sum()), lp.columns.size, theta)
        part = float((reached[rising] / wanted[rising]).min())
        # With negative levels on pairs the point may be far from feasible; the next LP does not rely on its levels.
        return Tried(self.x, None, part, guess, proof, new or bool(wrong.any()))

    def _priced(self, price: FloatArray, wanted: FloatArray, course: Course, caps: FloatArray) -> tuple[FloatArray, Response, Proof]:
        """Return the prices to go on from, what users do at them, and what that proves: those of the LP, unless these lead astray.

        An LP of few split users has wild prices, at which half of the others would leave their pairs. Where they prove less than is known,
        prices on the way to them from the best ones may prove more, and split fewer users, if any.
        """
        problem, choice = self.problem, self.choice
        assert choice is not None
        best = (price, *problem.respond(price, wanted, course, caps))
        if best[2].bound <= self.bound:
            return best
        for part in SETTINGS.parts_of_the_way:
            between = (1 - part) * choice.near + part * price
            response, proof = problem.respond(between, wanted, course, caps)
            if proof.bound < best[2].bound and choice.with_response(problem, response)[1]:
                best = between, response, proof
        return best


@dataclass(frozen=True, slots=True, eq=False)
class _SplitLP:
    """The LP of split users. Levels of sure users are ``constant`` + ``multiple`` theta, (columns of the program,).

    Columns: the pairs of split users, relative to their wanted levels, then theta. Rows: shared limits, own limits, split users.
    """

    columns: IntArray
    constant: FloatArray
    multiple: FloatArray
    model: HighsModel

    @classmethod
    def of(cls, problem: _SiftedProblem, choice: _Choice, wanted: FloatArray, rising: BoolArray) -> _SplitLP:
        """Build it."""
        constant, multiple = _sure(problem, choice, wanted, rising)
        columns = np.flatnonzero(choice.kept & choice.split[problem.user])
        user, bound = problem.user[columns], problem.responses.bound
        own = problem.responses.own[columns] * wanted[user]
        split = np.flatnonzero(choice.split)
        rises = rising[split]
        limited = np.flatnonzero(np.isfinite(bound[split]))
        by_user = sp.csr_array((np.ones(columns.size), (np.searchsorted(split, user), np.arange(columns.size))), (split.size, columns.size))
        theta = np.concatenate([problem.use @ multiple, np.zeros(limited.size), -rises.astype(float)])
        matrix = sp.vstack(
            [
                problem.use[:, columns] * wanted[user],
                by_user[limited] * np.where(np.isfinite(bound[user]), own / bound[user], 0.0),
                by_user,
            ]
        )
        lowest = np.full(problem.shared.size + limited.size, -np.inf)
        model = HighsModel(
            np.append(np.zeros(columns.size), 1.0),
            np.zeros(columns.size + 1),
            np.full(columns.size + 1, np.inf),
            sp.csc_array(sp.hstack([matrix, sp.csc_array(theta[:, None])])),
            np.concatenate([lowest, np.where(rises, 0.0, 1.0)]),
            np.concatenate([1 - problem.use @ constant, np.ones(limited.size), np.full(split.size, np.inf)]),
            tolerance=FINEST,
        )
        return cls(columns, constant, multiple, model)

    def levels(self, problem: _SiftedProblem, outcome: Outcome, wanted: FloatArray) -> FloatArray:
        """Return the level that each pair gives its user at a point, (columns of the program,); those of mixtures may be negative."""
        level = self.constant + self.multiple * float(outcome.x[-1])
        level[self.columns] = outcome.x[:-1] * wanted[problem.user[self.columns]]
        return np.asarray(level)


def _sure(problem: _SiftedProblem, choice: _Choice, wanted: FloatArray, rising: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return levels of the pairs of sure users, (columns,), as a constant and a multiple of theta.

    One pair has all of it. Two, at the limit b of the user's own, solve l + l' = theta w and a l + a' l' = b.
    """
    user, own = problem.user, problem.responses.own
    constant, multiple = np.zeros(user.size), np.zeros(user.size)
    pairs = np.flatnonzero(choice.kept & ~choice.split[user])
    first = np.flatnonzero(np.diff(user[pairs], prepend=-1))
    number = np.diff(np.append(first, pairs.size))
    one, two, other = pairs[first[number == 1]], pairs[first[number == 2]], pairs[first[number == 2] + 1]
    multiple[one] = wanted[user[one]]
    bound, both = problem.responses.bound[user[two]], wanted[user[two]]
    apart = own[two] - own[other]
    constant[two], constant[other] = bound / apart, -bound / apart
    multiple[two], multiple[other] = -own[other] * both / apart, own[two] * both / apart
    settled = ~rising[user]
    return constant + np.where(settled, multiple, 0.0), np.where(settled, 0.0, multiple)
