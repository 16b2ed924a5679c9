"""The settings of the linear programs: when sifting and greedy bases pay, what rounding may cost, and where searches of whole tasks end.

Why a size or a tolerance has its value is in benchmarks/results/choices.md. What is called relative is relative to the number that is
compared; tolerances that other rooms share are in `fairopt.instance.tolerances`.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SETTINGS", "Attempt", "Settings"]


_MAGNIFIED = 2.0**14  # factor of all numbers of an LP


class Attempt(NamedTuple):
    """How an LP of a level is built anew, where HiGHS misses its solution.

    ``unit`` is the next unit of t in parts of the last one; with caps the unit is the guess, and stays. Levels of settled users are relaxed
    by ``slack``, a part of them. All numbers are multiplied by ``magnified``.
    """

    unit: float
    slack: float
    keeps_basis: bool = False
    magnified: float = _MAGNIFIED


class Settings(NamedTuple):
    """What the modules of this engine decide by numbers."""

    # Linear programs of one level (level_programs, level_model, levels).
    # The first LP: primal simplex from a greedy basis, unless there are many columns and many limits or users; then the interior point,
    # with crossover.
    many_columns: int = 30_000
    many_limits: int = 200
    many_users: int = 3_000
    attempts: tuple[Attempt, ...] = (
        # Where HiGHS misses a solution that exists, first rounding is allowed for (it can make the LP infeasible by 1e-14), then comes a
        # fresh start, then one with HiGHS's own tolerances, then larger units (a level far above its unit looks unbounded), then more is
        # allowed; the certificate judges.
        Attempt(1.0, 1e-14, keeps_basis=True),
        Attempt(1.0, 1e-14),
        Attempt(1.0, 1e-14, magnified=1.0),
        Attempt(1e3, 1e-14),
        Attempt(1e3, 1e-14),
        Attempt(1e-6, 1e-11),
        Attempt(1.0, 1e-10),
        Attempt(1.0, 1e-9),
    )
    refine_above: float = 1e-14  # a point that violates its limits by more is refined: it is a large error for users with small demands
    most_refinements: int = 3  # of an LP
    sharper: float = 1e6  # factor by which prices that stop nobody are refined,
    in_doubt: float = 1e3  # or which leave users who could rise by so many times as much as those who are stopped
    unit_off: float = 100.0  # a level this many times larger or smaller than its unit asks for new units
    other_unit: float = 4.0  # the same of what a single user needs at a guess of its finish time
    no_progress: float = 1e-8  # a smaller part of its unit is no level in another unit but none, where users begin with what they have
    least_of_wanted: float = 1e-3  # part of what a user wants of t that its unit of level has at least: a start below 0 may cancel the rest
    vanishing: float = 1e-6  # a column that can carry only this part of its user's level
    # HiGHS's tolerance, 1e-10, is a large relative error for users with small demands; levels are known to rounding.
    magnified: float = _MAGNIFIED
    reached: float = 1e-11  # relative: a guess counts as reached if all users come this close
    further_guess: float = 1.5  # times the last level: the first guess of the next one, and so on
    same_cap: float = 1e-14  # relative
    consistent: float = 1e-6  # relative: the largest change of a settled level that the equations of all levels may make
    # What earlier levels leave (faces).
    narrowed_columns: int = 1_500  # from so many on programs become smaller
    narrower: float = 0.9  # part of the columns, at most, with which a smaller program is made
    dear: float = 1e-10  # part of all spending, at least, that a user would waste if it had all its level on a pair that is closed,
    rough_levels: int = 20  # from so many on an answer is polished before anything else
    gaps: float = 1e3  # and so many times the gap of the prices
    proved_gap: float = 1e-9  # prices with a larger gap decide nothing
    at_cap: float = 1e-13  # relative: a user this near to a cap has it
    takes_more: float = 1e-9  # relative: a pair that takes so much more of a limit for a unit of level cannot be used at the cap
    least_apart: float = 1e-6  # relative: two pairs that take the same of a limit for a unit of level do not decide their user
    free_pair: float = 1e-9  # a pair is free if filling it costs at most this part of all spending

    # Levels by the prices of another answer (known_prices).
    over_decided: float = 1e-9  # relative: users who are decided may exceed a limit by this, and the certificate judges it
    relaxed: float = 1e-13  # part of all levels that they may lack in the linear program: more than rounding
    full: float = 1e-9  # a limit is full if this part of it is free, or less

    # Sifting: LPs of some pairs (sifting, engine).
    sifted_users: int = 200  # from so many users on,
    sifted_users_per_limit: int = 30  # and from so many for each limit of a server
    sifted_digits: float = 0.01  # of the tolerance, above which to polish: many users feel the rounding of few prices
    rounds_of_prices: int = 40  # of multiplicative-weights prices
    perturbed_prices: int = 8  # to which the responses are kept, too
    perturbation: float = 0.01  # in logarithms
    wider: float = 4.0  # its growth after an infeasible LP
    parts_of_the_way: tuple[float, ...] = (0.5, 0.25, 0.125, 0.0625)  # from the best prices to those of an LP that prove less
    most_lps: int = 60  # for a level
    rounding_of_level: float = 1e-13  # part of a user's level
    least_theta: float = 1e-3  # of responses: at 0 no pair would be chosen

    # The basis that is kept from one program to the next (kept_basis).
    most_rows: int = 600  # a dense inverse of more is slower than HiGHS
    most_pivots: int = 20
    refactor_every: int = 40  # pivots until the inverse is computed anew
    negative: float = 1e-13  # of a user's or a limit's own size: rounding
    least_pivot: float = 1e-8
    refinements_of_basis: int = 3
    sharp: float = 1e-15  # a smaller error of a row is rounding
    singular: float = 1e-11
    over: float = 1e-14  # relative: a smaller excess over a limit is rounding
    over_with_past: float = 1e-12  # the same with a past: right-hand sides are differences, which have fewer digits
    wrong_price: float = 1e-10  # of the largest price: prices below the negative of this are more than rounding

    # Finish times (finish_times).
    most_steps: int = 60  # for a level
    near_whole: float = 1e-6  # of the whole: a part that does not come nearer to it from there on is rounding

    # Rules (under_rules, contradictions).
    something: float = 1e-9  # of what a user could have without rules: less is nothing
    enough: float = 0.01  # of an even part of that: who can have so much has something, and HiGHS need not look for more
    feasible: float = 1e-9  # excess of all rows together, in units of their largest numbers: less is none
    rounding_of_proof: float = 1e-13  # relative error of a sum of products of rows and prices: what proves less proves nothing

    # Trees of queues (tree).
    all_pairs: int = 4_000  # with fewer pairs, the LPs hold all
    cheapest_pairs: int = 3  # of each user to begin with,
    random_pairs: int = 6  # and as many at random
    ahead: float = 1.1  # t is bounded at this multiple of the distance to the next change of rates,
    further: int = 16  # and at as many times more whenever an LP reaches a change
    apart: float = 1e-6  # relative to t or its unit: a nearer change is no bound, because tolerances are nearly as large
    added_pairs: int = 3  # of a user in one round, at most
    cheaper: float = 1e-10  # relative: a smaller reduced cost counts as 0

    # Whole tasks (whole_levels, whole_tasks, whole_tree, identical_servers, packing).
    told_apart: float = 1e-6  # relative: levels of a user whose tasks differ in worth, and stop times, are told apart down to this
    rounds_of_totals: int = 8  # of limits that divisible totals violate, before whole ones are looked for
    greedy_tasks: int = 100_000  # of the greedy start
    pairs_with_start: int = 2_000  # from so many on a start is looked for: branch and cut ends sooner where there are fewer
    near_bound: float = 1e-3  # relative: a start this near to a bound is not improved by first fit
    light: float = 0.01  # relative: how near to the lightest totals are that are packed
    level_kept: float = 1e-7  # relative: in later programs a level may be missed by this
    rounded_down: float = 1e-6  # of the divisible tasks that are rounded down
    tolerance_of_trees: float = 1e-9  # of HiGHS: well below the last two, and below what is certified
    violated: float = 1e-7  # relative: a limit is added if whole totals violate it by more,
    clearly_violated: float = 1e-3  # or divisible totals, which only help to find whole ones, by this
    most_patterns: int = 1_000_000  # that are listed
    most_entries: int = 20_000_000  # numbers in a list of patterns
    random_orders: int = 8  # greedy packings after those by size

    # Programs of whole numbers (integer_program, cp_sat).
    missed: float = 1e-6  # of a row or of a whole number: a point that misses more is none
    same_goal: float = 1e-9  # a smaller difference of two goals is none
    bits_of_sums: int = 53  # of the largest sum of a row, for an engine of whole numbers

    # Alpha-fair whole tasks (whole_alpha_fair).
    lines: int = 8  # of each user at the start
    proved_whole: float = 1e-10  # gap, at which rounds end
    risen: float = 1e-3  # relative: a smaller rise of the least utility is no reason for a round
    rounds_of_lines: int = 100

    # Placement of given tasks (placement).
    pairs_of_milp: int = 2_000  # programs with more are solved as linear ones
    cost_of_misfit: float = 1e3  # of a task that does not fit in the linear program, in pairs
    most_nodes: int = 500  # of branch and cut: a limit that gives the same answer on every machine
    few_nodes: int = 100  # the same beside a limit on effort
    fewest_checks: int = 10  # of branch and cut, after which it may end
    rounding_s: float = 10.0  # for the linear program of the numbers of tasks, beside a time limit
    numbers_part: float = 0.75  # of the time limit, for the numbers of whole tasks
    search_part: float = 0.75  # of the time limit, for the fewest pairs; the rest is for the fewest servers
    ties: float = 1e-8  # of two users with the same remainder the first one gets the task

    # Work of branch and cut, where it is limited (rows).
    steps_of_a_check: float = 4000.0  # of HiGHS, whether to go on,
    steps_of_an_entry: float = 40.0  # and of each entry of the matrix, with each check

    # Pareto frontiers (pareto).
    refined: float = 1e-10  # an answer that leaves more is computed again with smaller tolerances
    magnified_goal: float = 1e4  # a goal in larger numbers has prices of more digits, as HiGHS's tolerances do not grow with it


SETTINGS = Settings()
