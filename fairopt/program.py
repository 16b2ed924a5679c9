"""The optimisation model that a notion of fairness declares and that an engine solves.

A small closed vocabulary, not a modelling language: with one column x[p] >= 0 for each eligible pair p = (user, server),

    U[n] = sum over the pairs p of n of u[p] x[p]          utilities, sparse: one coefficient a pair
    A x <= b,  A >= 0, b >= 0                              limits, named rows
    one goal over the U[n]                                 Leximin, Equalize, Total, AlphaFair, Tradeoff, Separate, Equilibrium,
                                                           Disjunctive

Nothing but the eligible pairs is ever allocated. All limits have coefficients >= 0 (resources are only used up), which engines and
certificates rely on: giving less is always feasible. ``print(program)`` is the mathematics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray, safe_ratio
from fairopt.wording import plural

__all__ = [
    "AlphaFair",
    "Alternative",
    "Disjunctive",
    "Equalize",
    "Equilibrium",
    "Feature",
    "Goal",
    "Leximin",
    "LimitKind",
    "Limits",
    "Program",
    "Separate",
    "Solution",
    "Stage",
    "Total",
    "Tradeoff",
]


class Feature(Enum):
    """What a program needs of an engine; its value completes the sentence "this program has ..."."""

    LEXIMIN = "a lexicographic max-min goal"
    EQUALIZE = "a goal of one equal level for all"
    TOTAL = "a linear goal"
    ALPHA_FAIR = "an alpha-fair goal"
    TRADEOFF = "a goal that weighs fairness against the total"
    EQUILIBRIUM = "an equilibrium of servers"
    DISJUNCTIVE = "a choice among alternatives"
    WHOLE_EQUAL = "one equal level of whole tasks, which seldom exists (use the leximin)"
    INTEGRAL = "whole tasks"
    SEVERAL_SERVERS = "users who may run on several servers"


# Goals ---------------------------------------------------------------------------------------------------------------------------


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

_FEATURE_OF_GOAL = {
    Leximin: Feature.LEXIMIN,
    Equalize: Feature.EQUALIZE,
    Total: Feature.TOTAL,
    AlphaFair: Feature.ALPHA_FAIR,
    Tradeoff: Feature.TRADEOFF,
    Equilibrium: Feature.EQUILIBRIUM,
    Disjunctive: Feature.DISJUNCTIVE,
}


# Limits --------------------------------------------------------------------------------------------------------------------------


class LimitKind(IntEnum):
    """What a limit row bounds, and what its two keys mean."""

    CAPACITY = 0  # (server, resource): use of the resource
    TIME = 1  # (server, -1): sum of x[n,i] / gamma[n,i]
    TASKS = 2  # (user, -1): tasks that the user has
    SLICE = 3  # (user, server): the part of a server that is set aside for a user


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Rows ``matrix @ x <= bounds``; row j is of kind ``kinds[j]`` and belongs to ``keys[j]``."""

    matrix: sp.csr_array
    bounds: FloatArray
    kinds: IntArray
    keys: IntArray

    @classmethod
    def of(cls, kind: LimitKind, matrix: sp.csr_array, bounds: npt.ArrayLike, keys: npt.ArrayLike) -> Limits:
        """Build rows of one kind; ``keys`` has one or two columns. Rows without an entry are dropped."""
        matrix = sp.csr_array(matrix)
        pairs = np.full((matrix.shape[0], 2), -1, dtype=np.int64)
        given = np.asarray(keys, dtype=np.int64)
        given = given[:, None] if given.ndim == 1 else given
        pairs[:, : given.shape[1]] = given
        limits = cls(matrix, np.asarray(bounds, float), np.full(matrix.shape[0], int(kind), dtype=np.int64), pairs)
        return limits.select(np.diff(matrix.indptr) > 0)

    @classmethod
    def stack(cls, blocks: Iterable[Limits]) -> Limits:
        """Put blocks of rows over the same columns below each other."""
        parts = list(blocks)
        return cls(
            sp.csr_array(sp.vstack([part.matrix for part in parts], format="csr")),
            np.concatenate([part.bounds for part in parts]),
            np.concatenate([part.kinds for part in parts]),
            np.concatenate([part.keys for part in parts]),
        )

    def select(self, rows: npt.NDArray[np.bool_] | IntArray) -> Limits:
        """Keep some rows."""
        return Limits(sp.csr_array(self.matrix[rows]), self.bounds[rows], self.kinds[rows], self.keys[rows])

    def __len__(self) -> int:
        return int(self.bounds.size)


# Program -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A notion of fairness applied to an instance.

    Attributes
    ----------
    name, title : str
        Of the notion.
    users, servers, resources : tuples of str
        Labels.
    pair_users, pair_servers : int arrays (pairs,)
        The columns, sorted by user, then by server.
    utilities : array (pairs,)
        u[p] > 0.
    limits : Limits
    goal : Goal
        Its weights are (users,); users without a pair are in no goal.
    integral : bool
        Whole tasks only.
    """

    name: str
    title: str
    users: tuple[str, ...]
    servers: tuple[str, ...]
    resources: tuple[str, ...]
    pair_users: IntArray
    pair_servers: IntArray
    utilities: FloatArray
    limits: Limits
    goal: Goal
    integral: bool = False

    @property
    def n_pairs(self) -> int:
        """Number of columns."""
        return int(self.pair_users.size)

    @property
    def members(self) -> IntArray:
        """The users who have a column, and so are in the goal."""
        return np.unique(self.pair_users)

    @property
    def inner_goal(self) -> Leximin | Equalize | Total | AlphaFair | Tradeoff | Equilibrium | Disjunctive:
        """The goal, or the one that every server pursues for itself."""
        return self.goal.goal if isinstance(self.goal, Separate) else self.goal

    def features(self) -> frozenset[Feature]:
        """Return what an engine must be able to do to solve this."""
        goal = self.inner_goal
        needs = {_FEATURE_OF_GOAL[type(goal)]}
        if self.integral:
            needs.add(Feature.WHOLE_EQUAL if isinstance(goal, Equalize) else Feature.INTEGRAL)
        if not isinstance(self.goal, Separate) and self.members.size < self.n_pairs:
            needs.add(Feature.SEVERAL_SERVERS)
        return frozenset(needs)

    def per_user(self, values: FloatArray) -> FloatArray:
        """Sum a value per pair over the pairs of each user, (users,)."""
        return np.bincount(self.pair_users, weights=values, minlength=len(self.users)).astype(np.float64)

    def largest(self) -> FloatArray:
        """Return the largest value that each column can take by itself, min over rows of b / a, (pairs,)."""
        best = np.full(self.n_pairs, np.inf)
        entries = self.limits.matrix.tocoo()
        np.minimum.at(best, entries.col, safe_ratio(self.limits.bounds[entries.row], entries.data))
        return best

    def part(self, server: int, x: FloatArray) -> tuple[Program, IntArray]:
        """Return the program of one server's own columns when x is given elsewhere, and which columns those are."""
        assert isinstance(self.goal, Separate)
        columns = np.flatnonzero(self.pair_servers == server)
        rest = x.copy()
        rest[columns] = 0.0
        matrix = sp.csr_array(self.limits.matrix[:, columns])
        left = self.limits.bounds - self.limits.matrix @ rest
        left[left < 1e-12 * self.limits.bounds] = 0.0  # rounding leaves no tasks
        limits = Limits(matrix, left, self.limits.kinds, self.limits.keys).select(np.diff(matrix.indptr) > 0)
        part = replace(
            self,
            pair_users=self.pair_users[columns],
            pair_servers=self.pair_servers[columns],
            utilities=self.utilities[columns],
            limits=limits,
            goal=self.goal.goal,
        )
        return part, columns

    # Mathematics ---------------------------------------------------------------------------------------------------------------

    def limit_name(self, row: int) -> str:
        """Name a limit: ``cpu @ server-3``, ``tasks of alice``, ``time of channel-2``, ``slice of alice @ server-3``."""
        kind = LimitKind(self.limits.kinds[row])
        first, second = self.limits.keys[row]
        if kind is LimitKind.CAPACITY:
            return f"{self.resources[second]} @ {self.servers[first]}"
        if kind is LimitKind.TIME:
            return f"time of {self.servers[first]}"
        if kind is LimitKind.TASKS:
            return f"tasks of {self.users[first]}"
        return f"slice of {self.users[first]} @ {self.servers[second]}"

    def to_text(self, lines: int | None = None, terms: int | None = None) -> str:
        """Write the program as mathematics; ``lines`` a block and ``terms`` a sum at most (default: all)."""
        return "\n".join(self._text(lines, terms)) + "\n"

    def __str__(self) -> str:
        return self.to_text(lines=30, terms=8)

    def __repr__(self) -> str:
        goal = type(self.goal).__name__
        return f"Program({self.name}: {goal} over {self.members.size} users, {self.n_pairs} pairs, {len(self.limits)} limits)"

    def _text(self, lines: int | None, terms: int | None) -> Iterator[str]:
        yield f"{self.name}: {self.title}"
        yield ""
        yield f"maximise    {self._goal_text()}"
        yield "where"
        columns = np.split(np.arange(self.n_pairs), np.flatnonzero(np.diff(self.pair_users)) + 1) if self.n_pairs else []
        rows = [(f"U[{self.users[n]}]", own) for n, own in zip(self.members, columns, strict=True)]
        width = max((len(name) for name, _ in rows), default=0)
        for name, own in rows[:lines]:
            if isinstance(self.goal, Equilibrium):  # a task has another worth in the eyes of each server
                total = self._sum_text(np.ones(own.size), own, terms)
                seen = ", ".join(f"{self.utilities[p]:.6g} at {self.servers[self.pair_servers[p]]}" for p in own[:terms])
                yield f"  {name:<{width}} = u ({total}), u = {seen}"
            else:
                yield f"  {name:<{width}} = {self._sum_text(self.utilities[own], own, terms)}"
        yield from _more(len(rows), lines, "utilities")
        yield "subject to"
        shown = range(len(self.limits))[:lines]
        names = [self.limit_name(row) for row in shown]
        width = max(map(len, names), default=0)
        matrix = self.limits.matrix
        for row, name in zip(shown, names, strict=True):
            span = slice(matrix.indptr[row], matrix.indptr[row + 1])
            left = self._sum_text(matrix.data[span], matrix.indices[span].astype(np.int64), terms)
            yield f"  {name:<{width}} : {left} <= {self.limits.bounds[row]:.6g}"
        yield from _more(len(self.limits), lines, "limits")
        whole = ", whole numbers" if self.integral else ""
        pairs, users = plural(self.n_pairs, "eligible pair"), plural(self.members.size, "user")
        yield f"  x >= 0{whole} for {pairs} of {users} and {plural(len(self.servers), 'server')}"

    def _goal_text(self) -> str:
        goal = self.inner_goal
        if isinstance(goal, Disjunctive):
            choices = max((len(clause) for clause in goal.clauses), default=0)
            return f"preference x, where of each of {len(goal.clauses)} clauses one of up to {choices} alternatives holds"
        weights = goal.weights[self.members]
        each, where = "U[n]", ""
        if isinstance(goal, AlphaFair):
            each = "log U[n]" if goal.alpha == 1 else f"U[n]^{1 - goal.alpha:g} / {1 - goal.alpha:g}"
        if isinstance(goal, Tradeoff):
            each = f"U[n]^{1 - goal.beta:g}"
        if isinstance(goal, Equilibrium):
            each = "U[n]"
        if (weights != 1).any():
            listed = ", ".join(f"{w:.6g}" for w in weights[:8]) + (", ..." if weights.size > 8 else "")
            each = f"phi[n] {each}" if isinstance(goal, Total | AlphaFair | Tradeoff) else f"{each} / phi[n]"
            where = f", phi = ({listed})"
        if isinstance(goal, Tradeoff):
            e = goal.efficiency
            mean = f"log (sum of {each})^{1 / (1 - goal.beta):.6g}"
            return (f"{1 - e:.6g} {mean} + {e:.6g} log sum of U[n]" if e else mean) + where
        opening = {
            Leximin: "leximin of ",
            Equalize: "the common value of ",
            Total: "sum of ",
            AlphaFair: "sum of ",
            Equilibrium: "at each server i, given the others: leximin of ",
        }
        text = opening[type(goal)] + each + where
        return f"on each server by itself, {text}" if isinstance(self.goal, Separate) else text

    def _sum_text(self, coefficients: FloatArray, columns: IntArray, terms: int | None) -> str:
        parts = [
            f"{'' if value == 1 else f'{value:.6g} '}x[{self.users[self.pair_users[p]]}, {self.servers[self.pair_servers[p]]}]"
            for value, p in zip(coefficients[:terms], columns[:terms], strict=True)
        ]
        hidden = len(columns) - len(parts)
        return " + ".join(parts) + (f" + ... ({hidden} more terms)" if hidden else "")


def _more(total: int, shown: int | None, what: str) -> Iterator[str]:
    if shown is not None and total > shown:
        yield f"  ... and {total - shown:,} more {what}"


# Solution ------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One level of a leximin: these users' U[n] / weights[n] cannot exceed ``value`` without lowering somebody at or below it.

    ``prices`` (limits,) are the multipliers that prove it: see ``fairopt.certificate``; None for whole tasks, where there are none.
    """

    value: float
    users: IntArray
    prices: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What an engine returns.

    Attributes
    ----------
    x : array (pairs,)
    stages : of Leximin and Equalize, in ascending order
    prices : array (limits,), or None
        Multipliers of the limits, of Total, AlphaFair and Tradeoff
    gap : float, or None
        For whole tasks: the largest relative gap between incumbent and bound that the engine reports of its stages
    bound : float, or None
        For whole tasks and Total: the engine's bound on the goal (on the smallest level, of Leximin)
    iterations : int
        Of the engine, in its own units
    programs_solved : int
        LPs or MILPs solved
    auxiliary : array, or None
        Values of the auxiliary columns of Disjunctive
    trace : object
        A record of the way there, of engines that keep one
    seconds : mapping
        Parts of the engine's time that it tells apart, such as ``compile``
    finished_by : str, or None
        What made an engine's approximate answer exact, where that is something else
    """

    x: FloatArray
    stages: tuple[Stage, ...] = ()
    prices: FloatArray | None = None
    gap: float | None = None
    bound: float | None = None
    iterations: int = 0
    programs_solved: int = 1
    auxiliary: FloatArray | None = None
    trace: Any = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    finished_by: str | None = None
