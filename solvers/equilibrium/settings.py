"""The settings of the equilibria of servers: when sweeps get help, when they end, and which pairs count as empty.

``kernel`` has numbers of its own, which are compiled with it (`fairopt.solvers.compiled`).
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SETTINGS", "Settings"]


class Settings(NamedTuple):
    """What the modules of this engine decide by numbers."""

    # Sweeps (sweeping). A change is relative to the most that a pair can hold.
    most_sweeps: int = 20_000
    help_after: float = 200.0  # sweeps, after which the other methods begin,
    help_after_pairs: float = 300_000.0  # or pairs in all sweeps so far
    aim: float = 1e-10  # residual at which no better point is tried
    spare: int = 10  # attempts at a better point once the tolerance is met
    stuck: int = 30  # attempts without change or improvement, after which the sweeps end
    every: int = 10  # sweeps between attempts to solve the equations
    near: float = 0.03  # a change below which the limit that stops each pair mostly stays the same
    patience: int = 2_000  # sweeps in a random or asynchronous order before servers take turns
    gains: float = 0.9  # asynchronous: ratio of changes that is progress
    stalled: int = 50  # rounds without progress before steps are shortened,
    shorter: float = 0.5  # by this factor,
    shortest: float = 0.05  # down to this part of a step
    pair_seconds: float = 1e-5  # of plain Python for one pair in a sweep, or one server that acts and one user, roughly

    # The limit of sweeps whose sets have settled (settled).
    settled: int = 2  # sweeps that change no set, after which it is tried
    squarings: int = 20  # of a sweep: after a million sweeps they converge too slowly

    # Which pairs are empty and what is tried (proposals, polish, layout).
    empty: tuple[float, ...] = (1e-9, 1e-6, 1e-4, 1e-2)  # a pair below this part of its largest value is taken to be empty; tried in turn
    creep: float = 1e-9  # a change below which the sweeps need no help, and the equations may have any number of pairs
    close: float = 1e-5  # a change below which few pairs are in doubt
    few_pairs: int = 300  # up to which everything is tried
    same_way: float = 0.9  # with this ratio of two changes or more, a pair makes nearly the same change each sweep
    pairs_to_compile: int = 100_000  # from which on compiled code checks the condition
    most_numbers: int = 2_000_000  # of the record of sweeps

    # Help (proposals).
    better: float = 0.5  # of the violation of the sweeps, and of the last such point: the sweeps go on from there
    worse_interior: float = 10.0  # times the violation of the sweeps: they do not go on from an interior point
    worse_drift: float = 2.0  # or from the end of a long step
    longer: float = 1.25  # factor on the wait after an interior point that is no better
    rest: int = 5  # the equations are tried again after a further 1/5 of the sweeps so far,
    rest_if_few: int = 20  # or 1/20, with few pairs

    # The equations of the pairs that are used (equations).
    dense_equations: int = 200  # unknowns up to which everything is dense: building sparse matrices would take most of the time
    factor_seconds: float = 1e-9  # of one of its products, roughly
    regular: float = 1e-11  # multiple of the identity that is added
    refinements: int = 6
    rounds: int = 12  # of correcting the sets

    # Smoothing (smoothing): Newton's method on mu > 0.
    most_equations: int = 4_000  # a dense system of these takes a second or two
    steps: int = 60
    end: float = 1e-12  # mu at the end
    start: float = 1e-6  # of its largest value is the least that a pair starts with
    slack: float = 0.05  # by which levels begin below the least share, in logarithms; or the last change of the sweeps, if that is less
    centre: float = 0.3  # of a step, below which one towards equal products is tried
    keep: float = 0.01  # of the distance of a pair above its level is left after a step, at least
    halvings: int = 20  # of a step that would leave less
    short: float = 0.01  # part of a step that is no progress
    shorts: int = 3  # of these in a row end the steps
    dense_products: float = 10.0  # tables may take this many times the products of the kernel: they are faster, product for product,
    small_table: float = 5e6  # or this many in any case: the kernel, in plain Python, takes longer
    product_seconds: float = 3e-7  # of plain Python for one product, roughly
    far: float = 0.2  # above a level, in logarithms, from which on an empty pair is left out
    least_aim: float = 1e-3  # factor on mu in a step, at least
    to_the_boundary: float = 0.95  # part of the way to where the first number would become 0 that a step goes


SETTINGS = Settings()
