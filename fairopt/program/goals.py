"""The goals of programs, as plain data about the utilities U[n] of the users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.program.nested import Nested
from fairopt.program.objective import Feature, Objective
from fairopt.program.tree_filling import TreeFilling

__all__ = [
    "AlphaFair",
    "Alternative",
    "AlternativeRow",
    "Clauses",
    "Disjunctive",
    "Equalize",
    "Equilibrium",
    "ExactDisjunctive",
    "FinishTimes",
    "Goal",
    "Leximin",
    "Separate",
    "Total",
    "Tradeoff",
]


@dataclass(frozen=True, slots=True, eq=False)
class _Levels(Objective):
    """A goal of levels: of U[n] / weights[n], or of numbers that rise with it."""

    in_shares: ClassVar = True

    weights: FloatArray

    def worth(self, utilities: FloatArray, users: IntArray) -> FloatArray:
        """Return what a task adds to the level U[n] / weights[n] of its user, (pairs,)."""
        return np.asarray(utilities / self.weights[users])


@dataclass(frozen=True, slots=True, eq=False)
class Leximin(_Levels):
    """Maximise the smallest U[n] / weights[n], then the second smallest, and so on."""

    feature: ClassVar = Feature.LEXIMIN
    has_levels: ClassVar = True
    tasks_are_caps: ClassVar = True


@dataclass(frozen=True, slots=True, eq=False)
class FinishTimes(_Levels):
    """Maximise the smallest z[n] / (1 + delay[n] z[n]) with z[n] = U[n] / weights[n], then the second smallest, and so on.

    With z[n] the rate of work in parts of the rate alone, and delay[n] the time that has passed in parts of the whole time alone, this is
    1 / rho[n], what a user finishes earlier than alone, concave in U[n]. It never reaches 1 / delay[n]. Without delays it is `Leximin`.
    """

    feature: ClassVar = Feature.FINISH_TIMES

    delay: FloatArray

    def levels(self, utilities: FloatArray) -> FloatArray:
        """Return z / (1 + delay z), (users,)."""
        z = utilities / self.weights
        return np.asarray(z / (1 + self.delay * z))


@dataclass(frozen=True, slots=True, eq=False)
class Equalize(_Levels):
    """Maximise the common value t of all U[n] / weights[n] = t."""

    feature: ClassVar = Feature.EQUALIZE
    has_levels: ClassVar = True
    is_equal: ClassVar = True

    @property
    def feature_of_whole_tasks(self) -> Feature:
        """One equal level of whole tasks."""
        return Feature.WHOLE_EQUAL


@dataclass(frozen=True, slots=True, eq=False)
class Total(Objective):
    """Maximise the sum of weights[n] U[n]."""

    feature: ClassVar = Feature.TOTAL

    weights: FloatArray

    def worth(self, utilities: FloatArray, users: IntArray) -> FloatArray:
        """Return what a task adds to the sum of weights[n] U[n], (pairs,)."""
        return np.asarray(self.weights[users] * utilities)


@dataclass(frozen=True, slots=True, eq=False)
class AlphaFair(Objective):
    """Maximise the sum of weights[n] g(U[n]), with g = log for alpha = 1, else U^(1 - alpha) / (1 - alpha); alpha > 0.

    ``divides`` says that the sum only stands for other conditions, which are those of divisible tasks.
    """

    feature: ClassVar = Feature.ALPHA_FAIR
    has_gradient: ClassVar = True
    tasks_are_caps: ClassVar = True
    efficiency: ClassVar = 0.0

    alpha: float
    weights: FloatArray
    divides: bool = False

    @property
    def feature_of_whole_tasks(self) -> Feature:
        """In the place of ``feature``: whole tasks take another search."""
        return Feature.WHOLE_DIVIDED if self.divides else Feature.WHOLE_ALPHA_FAIR

    @property
    def power(self) -> float:
        """The power of the utilities in the gradient."""
        return self.alpha

    def log_worth(self, utilities: FloatArray) -> FloatArray:
        """Return the logarithm of the gradient with respect to U[n], weights[n] U[n]^-alpha, (users,); inf where U[n] = 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.weights) - self.alpha * np.log(utilities))


@dataclass(frozen=True, slots=True, eq=False)
class Tradeoff(Objective):
    """Maximise (1 - e) log M(U) + e log sum U[n], with the power mean M(U) = (sum of weights[n] U[n]^(1 - beta))^(1 / (1 - beta)).

    This is log |f| / lam for f = sgn(1 - beta) (sum of weights[n] (U[n] / S)^(1 - beta))^(1 / beta) S^lam with S = sum U[n], and
    e = 1 - (1 - beta) / (beta lam), where 0 <= e < 1, beta > 0 and beta != 1. e = 0 is `AlphaFair` with alpha = beta. Users whose U[n] is 0
    in every allocation are left out of both sums.
    """

    feature: ClassVar = Feature.TRADEOFF
    has_gradient: ClassVar = True

    beta: float
    lam: float
    weights: FloatArray

    @property
    def feature_of_whole_tasks(self) -> Feature:
        """No engine finds them."""
        return Feature.WHOLE_TRADEOFF

    @property
    def power(self) -> float:
        """The power of the utilities in the gradient, but for the part of the total."""
        return self.beta

    @property
    def efficiency(self) -> float:
        """e, the weight of the total in the goal."""
        return max(0.0, 1.0 - (1.0 - self.beta) / (self.beta * self.lam))

    def log_total_worth(self, utilities: FloatArray) -> float:
        """Return log kappa, where the gradient of the goal is proportional to weights[n] U[n]^-beta + kappa; kappa is the total's part."""
        e, held = self.efficiency, utilities > 0
        if e == 0 or not held.any():
            return -np.inf
        powers = np.log(self.weights[held]) + (1 - self.beta) * np.log(utilities[held])
        return float(np.log(e / (1 - e)) + np.logaddexp.reduce(powers) - np.log(utilities.sum()))

    def log_worth(self, utilities: FloatArray) -> FloatArray:
        """Return the logarithm of weights[n] U[n]^-beta + kappa, the gradient up to a factor, (users,); inf where U[n] = 0."""
        with np.errstate(divide="ignore"):
            own = np.log(self.weights) - self.beta * np.log(utilities)
        return np.asarray(np.logaddexp(own, self.log_total_worth(utilities)))


@dataclass(frozen=True, slots=True, eq=False)
class Equilibrium(Objective):
    """Every server i maximises over its own columns the leximin of u[n,i] (sum over all servers j of x[n,j]) / weights[n].

    The problem of server i counts the tasks that users run on other servers. At an equilibrium no server can improve by changing its own
    columns. u[n,i] is the worth of a task of n as server i measures it, wherever the task runs.

    Any equilibrium is an answer. If there are several, the way in which servers take turns decides: ``order`` is "sequential" (always the
    given order), "random" (a new order each sweep) or "asynchronous" (each server acts at random times, on information up to ``delay``
    actions of others old). ``seed`` is that of the random numbers. An engine in which servers do not take turns may ignore all three.
    """

    feature: ClassVar = Feature.EQUILIBRIUM
    is_equilibrium: ClassVar = True
    in_shares: ClassVar = True

    weights: FloatArray
    order: str = "sequential"
    seed: int = 0
    delay: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """Rows lower <= matrix @ (x, auxiliary columns) <= upper, all of which must hold if this alternative is chosen."""

    matrix: sp.csr_array
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Disjunctive(Objective):
    """Maximise preference @ x over a union of polytopes: at least one alternative of every clause must hold.

    Alternatives may use auxiliary columns, which follow the pairs. Each is between 0 and its upper bound.
    """

    feature: ClassVar = Feature.DISJUNCTIVE

    preference: FloatArray
    clauses: tuple[tuple[Alternative, ...], ...]
    auxiliary_upper: FloatArray

    @classmethod
    def of(cls, preference: FloatArray, clauses: Clauses, auxiliary_upper: FloatArray) -> Disjunctive:
        """Return the goal of clauses that are given by their rows."""
        width = preference.size + auxiliary_upper.size

        def alternative(rows: Sequence[AlternativeRow]) -> Alternative:
            number = np.repeat(np.arange(len(rows)), [row.columns.size for row in rows])
            columns = np.concatenate([row.columns for row in rows])
            values = np.concatenate([np.asarray(row.values, float) for row in rows])
            matrix = sp.csr_array((values, (number, columns)), shape=(len(rows), width))
            return Alternative(matrix, *(np.array([getattr(row, side) for row in rows], float) for side in ("lower", "upper")))

        return cls(preference, tuple(tuple(map(alternative, clause)) for clause in clauses), auxiliary_upper)


@dataclass(frozen=True, slots=True, eq=False)
class AlternativeRow:
    """One row of an alternative by its entries: lower <= sum of values times columns <= upper, in floats or in fractions."""

    columns: npt.NDArray[np.integer[Any]]
    values: Any
    lower: Any = -np.inf
    upper: Any = np.inf


Clauses: TypeAlias = Sequence[Sequence[Sequence[AlternativeRow]]]
"""Of each clause its alternatives, of each alternative its rows."""


@dataclass(frozen=True, slots=True, eq=False)
class ExactDisjunctive(Objective):
    """The goal of `Disjunctive` in fractions."""

    feature: ClassVar = Feature.DISJUNCTIVE

    preference: Any
    clauses: Clauses
    auxiliary_upper: Any


@dataclass(frozen=True, slots=True, eq=False)
class Separate(Objective):
    """Every server, in order, pursues the goal over its own columns, within the limits on tasks that earlier servers leave."""

    feature: ClassVar = Feature.SEPARATE
    in_shares: ClassVar = True

    goal: Leximin

    @property
    def inner(self) -> Leximin:
        """The goal of each server."""
        return self.goal


Goal: TypeAlias = (
    TreeFilling | Nested | Leximin | FinishTimes | Equalize | Total | AlphaFair | Tradeoff | Separate | Equilibrium | Disjunctive
)
