"""The settings of the exact end of alpha-fair goals: which sets are tried, how steps become regular, and when they end.

``SETTINGS`` are those of the active sets, ``UNDER_RULES`` those of the primal-dual steps of programs with rules.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SETTINGS", "UNDER_RULES", "Settings", "UnderRules"]


class Settings(NamedTuple):
    """What the modules of active sets decide by numbers."""

    # Sets, and Newton's method on them (active_sets).
    rounds: int = 12  # corrections of the sets
    steps: int = 30  # of Newton's method on fixed sets
    patience: int = 4  # steps without progress before the sets are given up: on the way, sets are often wrong
    patience_at_end: int = 8  # the same for the sets of an answer, which are mostly right
    exact: float = 1e-11  # KKT violation of a solution that needs no other sets
    close: float = 1e-8  # residual at which steps without progress are the end, not a failure
    rounding: float = 1e-14  # a smaller residual of Newton's method is rounding
    nearly: float = 1e-13  # if steps stall between this residual
    mendable: float = 1e-5  # and this one, the metric may be the cause
    singular: float = 1e-10  # the multiple of the metric
    least: float = 1e-8  # least size in the metric: part of what a user holds, or of a limit's money
    weak: float = 1e-2  # the same in the weaker metric, used if steps stall
    absent: float = 1e20  # weight that keeps unused pairs, and prices of limits that are not full, at 0
    joins: float = 1e-12  # relative violation above which pairs join the sets
    overflows: float = 1e-13  # the same of limits
    nothing: float = 1e-9  # of an exact answer: part of what a user has, or of the highest price, that is rounding
    negligible: float = 1e-7  # relative to what a pair can hold
    nearly_cheapest: float = 1e-3  # relative excess over the lowest cost up to which a pair may turn out to be the cheapest

    # The linear system of a step (kkt).
    small: int = 40_000  # entries of B, zeros included, up to which everything is dense, and in one thread: benchmarks/results/choices.md
    dense: int = 1500  # unknowns up to which the factorisation is dense,
    least_entries: float = 0.05  # where at least this part of all entries is not 0
    pivots: float = 1e-3  # of the largest entry of its column: a smaller pivot is not taken from the diagonal
    regular: float = 1e-14  # relative; refinement takes it out again
    most_shared: int = 100  # rows that users share, up to which the others are eliminated user by user,
    widest: float = 24.0  # unknowns of a user, in the mean over unknowns: with more, blocks are slower (benchmarks/results/choices.md)
    entries_at_once: int = 300_000  # of blocks of users that stay in the cache
    refinements: int = 4
    rounded: float = 2e-15  # relative to the solution: a residual that is rounding
    equilibrations: int = 6

    # Users who are stopped (stopped), marginal worth (problem).
    full: float = 1e-6  # part of its tasks that a user may miss in an approximate answer
    paid: float = 2.0  # times the cost of a task on servers: its worth at a lower weight, with a part of the money of others besides
    least_elasticity: float = 1e-12  # below, the marginal worth is as good as constant

    # Trade-offs (tradeoff).
    exact_kappa: float = 1e-11  # relative error of kappa below which the steps end once they gain nothing more
    evaluations: int = 60  # of kappa
    longest: float = 4.0  # largest change of log kappa in a step


class UnderRules(NamedTuple):
    """What the polish under rules decides by numbers (ruled)."""

    # Where the steps begin, in units of the approximate answer.
    least: float = 1e-4  # slack or column
    least_for_price: float = 1e-3  # a smaller slack or column counts as this much where its price begins

    # A step.
    aim: int = 3  # the target of the products is this power of the part that the predictor leaves of them,
    least_left: float = 1e-3  # which counts as this much at least
    to_the_boundary: float = 0.99  # part of the way
    shortest: float = 1e-12  # length of a step: a shorter one has failed
    rounding: float = 1e-15  # part of the terms of a sum: a smaller residual is 0
    regular: float = 1e-12  # in the corner of the equations
    refinements: int = 3
    many_columns: float = 2.0  # times the rows: of so many columns, those without which no row is lost to rounding are eliminated
    drowned: float = 1e14  # times what is on the diagonal of a row: a column that adds more there is not eliminated
    pivot: float = 0.01  # part of the largest number of a column: a smaller number on the diagonal is no pivot

    # The end.
    steps: int = 150  # at most
    stalled: int = 20  # steps without a better point, after which they end
    exact: float = 1e-14  # residual of an exact answer
    near: float = 1e-6  # residual of an answer that is worth a check

    # From power to power.
    next_power: float = 1.25  # times the power before; its root if the steps do not reach that optimum
    least_next_power: float = 1.01  # with a smaller factor, no more powers are tried


SETTINGS = Settings()
UNDER_RULES = UnderRules()
