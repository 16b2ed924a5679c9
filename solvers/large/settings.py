"""The settings of very large programs: from which sizes on groups and regions are faster, and how groups and regions are formed.

Sizes are measured in benchmarks/results/large.md and choices.md. What is called relative is relative to the number that is compared.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SETTINGS", "Settings"]


class Settings(NamedTuple):
    """What the modules of this engine decide by numbers."""

    # When the engine is faster than the path of all pairs (engine).
    least_pairs: float = 100_000
    least_users: int = 300
    least_servers: int = 2
    users_for_a_server: tuple[int, ...] = (2, 2, 2, 150, 1_000, 7_000)  # of 1, 2, ... resources: with fewer, groups would be too many
    pairs_of_levels: float = 300_000  # of leximins with fewer pairs,
    users_of_levels: int = 20  # so many users for a server, unless their weights are too different for the path of all pairs
    most_servers: int = 330  # of alpha-fair goals
    least_alpha: float = 0.7  # from this alpha
    most_alpha: float = 2.5  # to this one the path of a round is fast and nearly always converges
    pairs_of_regions: int = 100_000
    limits_of_regions: int = 600

    # Groups (groups, alpha_fair_groups).
    first_groups: int = 64  # of users
    nearest: int = 12  # users nearest to each boundary between pieces that become groups of their own near the end
    most_lost: int = 3  # rounds without an answer
    server_groups: tuple[tuple[int, float], ...] = ((64, 1e-3), (256, 1e-4))  # until the relative gap is below this; then all servers
    most_rounds: int = 24
    most_groups: int = 2_500
    near_end: float = 1e-4  # relative gap below which users near a boundary become groups of their own
    same_prices: float = 1e-7  # relative to the largest
    same_worth: float = 1e-13  # relative: what groups lose by rounding
    most_rounds_of_alpha_fair: int = 16
    most_groups_of_alpha_fair: int = 4_000
    near_end_of_alpha_fair: float = 1e-3  # relative gap below which the pieces at which each group buys may be known
    rough: tuple[float, ...] = (
        1e-5,
        1e-3,
    )  # tolerances of a round, tried in turn: paths end four digits below, and the exact prices give the other digits

    less_rough: float = 0.1  # part of them that is left after a round that found no exact answer, though its groups are fine enough

    # The exact end of groups (group_polish, piece_prices).
    priced: float = 1e-9  # of the largest price: a smaller one is none
    no_prices: tuple[float, ...] = (0.0, 1e-8, 1e-6)  # parts of the largest price, tried in turn: smaller prices may be 0
    cheapest: float = 1e-8  # relative: pairs that cost no more than this beyond the cheapest are used
    close: float = 1e-6  # relative: prices that would change by more are not near those that are sought
    rank: float = 1e-13  # relative: smaller eigenvalues are rounding
    steps: int = 4
    split: float = 1e-6  # part of a group that is on servers of another piece: less is noise
    least_use: float = 1e-12  # of a group's mean use of a server, for pairs that may be used
    steps_of_prices: int = 20
    exact: float = 5e-14  # relative residual of an equation at the end
    part_of_the_way: float = 0.9  # to where a price becomes 0 that a step may go

    # Regions (regions, placing, rough_levels).
    priced_in_region: float = 1e-6  # of the largest price of a level, of whole limits
    same_level: float = 0.02  # relative: regions with nearer expected levels are solved together, and what is higher is not as expected
    large: float = 0.3  # part of the open pairs from which on a region is no smaller than the whole
    below: float = 0.95  # of an expected level: lower caps are settled beforehand
    begin: float = 0.9  # a path begins where those who rise have this part of the last level,
    nearly: float = 0.999  # and all have this part of theirs
    least_of_slice: float = 0.1  # of even slices, that every pair has there
    good: float = 1e-12  # an error with which later levels can live: else the path is tried from another beginning
    together: float = 1e-9  # relative: by how much the levels may fail to be had at once
    lower: float = 1e-8  # relative: by how much a level may be lower than one before it, as each may be off by a digit less
    starts: int = 6  # at most; the last one goes on where levels do not ascend
    exact_placing: float = 1e-10  # to which the path is followed to its end, and to which levels may be placed already
    steps_of_placing: int = 30  # to a point that is only enough
    pairs_of_level_groups: int = 100_000  # of users with many servers from which on groups of them may be faster
    level_groups: int = 100  # of users with many servers, at least, as far as there are as many
    users_of_level_group: float = 4  # and so many users for each: with more groups there is little to gain
    servers_of_level_group: float = 0.3  # part of the servers that are many
    part_in_level_groups: float = 0.5  # of the pairs, at least, that are theirs
    moved_of_level_group: float = 1e-9  # x by which a settled user may be off the proportions of its group
    dear_of_level_group: float = 1e-9  # part of its cost by which a pair may cost more than its user's cheapest to stay open
    groups_of_rough: int = 300  # of users, at least, as far as there are as many
    server_groups_of_rough: int = 120  # the same of servers
    part_of_rough: float = 0.5  # of the users, of the servers: with more groups nothing is gained
    tolerance_of_rough: float = 1e-6


SETTINGS = Settings()
