"""The settings of fractions: which sets are guessed from floats, how many digits are computed, how work is counted, and when to give up.

Work is counted in steps (`fairopt.solvers.backend.Deadline`). A step is the work for one entry of a sparse system of equations whose
numbers have few digits. Steps follow from sizes and digits alone, so that they are the same on every machine.

No setting is a tolerance of an answer, which is exact or proved to the digits that were asked for.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PATH", "SETTINGS", "PathSettings", "Settings"]


class Settings(NamedTuple):
    """What the modules of this engine decide by numbers."""

    # Points near floats (near, placing, level_programs).
    near: int = 10**10  # a free column is within this part of its float
    nothing: float = 1e-12  # and 0, if it is a smaller part of the largest float
    dependent: float = 1e-7  # of the size of a column
    unit_off: float = 1e4  # a level that differs from its unit by a larger factor is solved again in another unit

    # Alpha-fair goals (alpha_fair, reduced_kkt, enclosing).
    tolerances_of_sets: tuple[float, ...] = (1e-9, 1e-7, 1e-11, 1e-5, 1e-12, 1e-13)  # with which sets are read off the floats, in turn
    rounds_of_sets: int = 25  # of correcting the sets
    first_digits: int = 120  # with which sets are tried: users may differ by 10^-30, and what they hold by the square of that
    guard_digits: int = 12  # beyond those asked for
    steps_of_newton: int = 60
    most_bits_of_guess: int = 83  # of numerator and denominator of a rational solution that is guessed

    # Equilibria (equilibrium).
    tolerances_of_equilibria: tuple[float, ...] = (1e-9, 1e-7, 1e-11, 1e-5)
    most_trials: int = 400  # sets of holders and limits that are solved, at most
    few_pairs: int = 16  # up to which sets with fewer holders and fewer limits are tried as well
    most_trials_of_few: int = 3000  # such sets that are solved, at most
    close: float = 1e-6  # shares that differ by a smaller part may be equal
    rounds_of_equilibria: int = 40  # of leaving out pairs that turned negative

    # How long it takes (effort).
    seconds_of_a_term: float = 4e-9  # benchmarks/in_fractions.py
    sample: int = 2000  # coefficients whose digits are counted

    # Steps (systems, simplex, level_programs, alpha_fair).
    steps_of_a_copy: float = 0.4  # of an entry that is copied, or multiplied by whole numbers
    bits_of_a_step: float = 1000.0  # an entry takes a step more for each of these that its unknown has in the denominator
    cells_of_a_step: float = 10.0  # of the dense kernel of a system,
    products_of_a_step: float = 800.0  # of its inverse modulo a prime,
    lifted_of_a_step: float = 8000.0  # of its cells, times the bits that are lifted
    steps_of_an_iteration: float = 10.0  # of the simplex method in floats
    steps_of_a_cell: float = 0.5  # of (users + limits) x pairs, with each guess of active sets,
    steps_of_a_guess: float = 3000.0  # and beside them


class PathSettings(NamedTuple):
    """The path to the active sets of an alpha-fair goal that floats do not show (central_end)."""

    digits: tuple[int, ...] = (40, 80, 160)  # d: the sets are tried at points whose products are 10^-d of their units
    more_digits: int = 40  # that steps are computed with, beyond 2 d and twice the orders of magnitude between payments
    first_mu: float = 1e-6  # relative product of the first point
    inside: float = 0.999  # part of the limits that the first point fills
    steps: int = 200  # from one of these points to the next
    whole: float = 0.99  # part of itself by which a value may fall in a step that is taken as it is; then mu falls,
    central: float = 0.05  # and faster after a step in which no value changes by more than this
    furthest: float = 1e3  # factor by which a step changes a value at most
    fast: float = 1e-6  # factor of mu
    slow: float = 1e-3

    # Work of a step, in steps of fractions with numbers of 500 bits: benchmarks/results/choices.md.
    steps_of_a_pair: float = 20.0
    steps_of_an_entry: float = 0.4  # that changes where pairs, users and limits of single users are eliminated
    steps_of_a_product: float = 0.024  # of the dense system, which has the cube of its unknowns
    growth_of_entries: float = 0.5  # power of the bits that the work of pairs and entries grows with
    growth_of_products: float = 1.4


SETTINGS = Settings()
PATH = PathSettings()
