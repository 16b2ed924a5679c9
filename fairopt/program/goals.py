"""What a program maximises: plain data over the utilities U[n] of its users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray

__all__ = ["AlphaFair", "Alternative", "Disjunctive", "Equalize", "Equilibrium", "Goal", "Leximin", "Separate", "Total", "Tradeoff"]


@dataclass(frozen=True, slots=True, eq=False)
class Leximin:
    """Maximise the smallest U[n] / weights[n], then the second smallest, and so on."""

    weights: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Equalize:
    """Maximise the common value t of all U[n] / weights[n] = t."""

    weights: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Total:
    """Maximise the sum of weights[n] U[n]."""

    weights: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class AlphaFair:
    """Maximise the sum of weights[n] g(U[n]), with g = log for alpha = 1, else U^(1 - alpha) / (1 - alpha); alpha > 0."""

    alpha: float
    weights: FloatArray

    def log_worth(self, utilities: FloatArray) -> FloatArray:
        """Return the logarithm of what one more unit of each U[n] is worth, weights[n] U[n]^-alpha, (users,); inf where U[n] = 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.weights) - self.alpha * np.log(utilities))


@dataclass(frozen=True, slots=True, eq=False)
class Tradeoff:
    """Maximise (1 - e) log M(U) + e log sum U[n], with the power mean M(U) = (sum of weights[n] U[n]^(1 - beta))^(1 / (1 - beta)).

    It is the logarithm of a power of f = sgn(1 - beta) (sum of weights[n] (U[n] / S)^(1 - beta))^(1 / beta) S^lam, S = sum U[n], where
    e = 1 - (1 - beta) / (beta lam), 0 <= e < 1. beta > 0, beta != 1. e = 0 is `AlphaFair` with alpha = beta. Users whose U[n] is 0 in
    every allocation are in neither sum.
    """

    beta: float
    lam: float
    weights: FloatArray

    @property
    def efficiency(self) -> float:
        """e, the part of the total in the goal."""
        return max(0.0, 1.0 - (1.0 - self.beta) / (self.beta * self.lam))

    def log_total_worth(self, utilities: FloatArray) -> float:
        """Return log kappa: by how much a unit of the total is worth more than the power mean's part, weights[n] U[n]^-beta, says."""
        e, held = self.efficiency, utilities > 0
        if e == 0 or not held.any():
            return -np.inf
        powers = np.log(self.weights[held]) + (1 - self.beta) * np.log(utilities[held])
        return float(np.log(e / (1 - e)) + np.logaddexp.reduce(powers) - np.log(utilities.sum()))

    def log_worth(self, utilities: FloatArray) -> FloatArray:
        """Return the logarithm of the gradient, weights[n] U[n]^-beta + kappa, up to a constant, (users,); inf where U[n] = 0."""
        with np.errstate(divide="ignore"):
            own = np.log(self.weights) - self.beta * np.log(utilities)
        return np.asarray(np.logaddexp(own, self.log_total_worth(utilities)))


@dataclass(frozen=True, slots=True, eq=False)
class Equilibrium:
    """Every server maximises, in its own columns, the leximin of u[n,i] (sum over all servers j of x[n,j]) / weights[n].

    A fixed point: server i's problem counts what users have elsewhere, and no server can improve on its own. u[n,i] is the worth of
    a task of n, wherever it runs, in the eyes of server i.

    Any such point is an answer; where there are several, how servers take turns chooses: ``order`` is "sequential" (always the given
    order), "random" (a new order each sweep) or "asynchronous" (each acts at times of its own, on what it saw up to ``delay`` actions of
    others ago), drawn from ``seed``. An engine that does not take turns may ignore it.
    """

    weights: FloatArray
    order: str = "sequential"
    seed: int = 0
    delay: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """Rows lower <= matrix @ (x, auxiliary columns) <= upper, all of which hold where this alternative is chosen."""

    matrix: sp.csr_array
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Disjunctive:
    """Maximise preference @ x over a union of polytopes: of every clause at least one alternative holds.

    Alternatives may use auxiliary columns behind the pairs, each between 0 and its upper bound.
    """

    preference: FloatArray
    clauses: tuple[tuple[Alternative, ...], ...]
    auxiliary_upper: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Separate:
    """Every server pursues the goal for itself, in order, seeing only its own columns (and the tasks that earlier servers left)."""

    goal: Leximin


Goal: TypeAlias = Leximin | Equalize | Total | AlphaFair | Tradeoff | Separate | Equilibrium | Disjunctive
