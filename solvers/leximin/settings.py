"""The settings of leximins level by level: which gains count, how far points beyond a change look, and what a polish takes for rounding.

Tolerances that other rooms share are in `fairopt.instance.tolerances`.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SETTINGS", "Settings"]


class Settings(NamedTuple):
    """What the loop over levels, trees and the polish decide by numbers."""

    # The loop (levels).
    gain: float = 1e-11  # a smaller part of a level is none
    gain_of_least: float = 1e-6  # nor is a smaller part of the least by which levels are judged

    # Points beyond the next change of rates (tree).
    most_beyond: float = 2.0  # where even slices take more than this part of a limit, nothing nearby fits
    rounds_of_guess: int = 4  # in which users get what they lack
    further: float = 4.0  # how much further the next such point looks

    # The polish (polish, tree_polish, least_change).
    dear: float = 1e-9  # a pair that would waste this part of all spending, if its user had all its level there, is unused
    part_of_level: float = 1e-11  # a pair that gives its user a smaller part of its level is unused: rounding put it there
    priced: float = 1e-12  # a limit with a smaller part of all spending has no price
    singular: float = 1e-13  # the multiple of the identity
    singular_of_many: float = 1e-10  # the same where most equations follow from others: rounding must not fill what these leave free
    same: tuple[float, ...] = (
        1e-10,
        1e-7,
    )  # levels that differ by less are one: by rounding, or where a solver could not tell who shares one
    same_price: float = 1e-6  # relative: pairs of a user that cost more for a unit of its level than the cheapest are unused
    refinements: int = 4
    rounds_of_full: int = 4  # in which limits that the polished point exceeds join the full ones, in trees
    numbers_of_tree: int = 20_000_000  # rates of all users at all levels, up to which a tree is polished

    # The least prices (least_prices).
    clearly: float = 1e-9  # part of all spending: a pair that wastes more is closed, a limit that costs more full, who pays more pinned
    still_paid: float = 0.3  # part of what each user of a level pays now that it pays at least: the prices must stop all of them
    pivots_for_least: int = 50_000  # simplex iterations for a level

    # Programs of agents (agent_rows, agents, floors).
    relaxed: tuple[float, ...] = (1e-10, 1e-9, 1e-8)  # parts of what agents begin with by which it is relaxed where HiGHS finds no point
    settled_agent: float = 1e-9  # relative: an agent that can rise by less is settled
    least_of_reach: float = 1e-14  # of what an agent could have: of less, rows have coefficients that HiGHS refuses
    least_left: float = 1e-3  # of what an agent could have: the unit of t is no smaller where it has nearly all of that
    least_paid: float = 1e-9  # of what an agent could have: what it pays counts for as much where it has less
    met: float = 1e-10  # of the most that a guarantee could hold: what lacks less is met

    # Programs with rules (ruled).
    clearly_paying: float = 1e-3  # part of what users who rise pay on average: who pays less is settled by a later program
    excess: float = 1e-10  # part of its level that a user may have beyond it
    other_unit: float = 100.0  # levels that differ from their unit by more are solved in another one


SETTINGS = Settings()
