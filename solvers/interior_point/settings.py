"""The settings of the interior point: sizes from which it is tried first, and when its paths step, settle users and end.

Why a size or a tolerance has its value is in benchmarks/results/choices.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairopt.instance import FloatArray

__all__ = [
    "ALPHA_FAIR",
    "CENTRING",
    "ENGINE",
    "LEVELS",
    "LOGARITHMS",
    "RISING",
    "ROWS",
    "SAMPLES",
    "STEPS",
    "TOTALS",
    "AlphaFairSettings",
    "CentringSettings",
    "EngineSettings",
    "LevelSettings",
    "LogarithmSettings",
    "RisingSettings",
    "RowSettings",
    "SampleSettings",
    "StepSettings",
    "TotalSettings",
    "weights_differ",
]


class EngineSettings(NamedTuple):
    """Sizes from which the engine comes before others, and from which answers are judged in another way (engine, paths, market)."""

    size_of_levels: int = 50_000  # in general, for each group of users and servers that share nothing with others
    size_of_many_levels: int = 300_000  # where many levels are expected: a program much like it has several, or users have few servers:
    pairs_each: float = 3.0  # this many pairs a user, in the mean,
    part_each: float = 0.5  # or this part of all pairs, at most, where not everybody uses all resources;
    pairs_each_alike: float = 2.5  # this many, where everybody does
    pairs_of_most_levels: int = 22_000  # where users have few servers each, and use different resources
    most_spread: float = 1e4  # of the weights of a leximin: beyond, a gap of rounding does not prove that the lightest users cannot rise
    pairs_of_far_weights: int = 10_000  # where weights lie further apart, and all may stop at one level
    sizes_of_totals: tuple[tuple[int, int], ...] = ((20_000, 30), (2_000, 100))  # so many pairs, and so many for each limit: one of these
    pairs_of_trees: int = 3_000
    few_pairs: int = 50  # with fewer, all paths are tried until one is exact: a residual of 1e-12 may mean 1e-9 of x
    digit: float = 0.1  # of the tolerance, for levels and totals that HiGHS would solve as fast
    pairs_to_polish: int = 500  # below which answers are always polished, which takes as long as a few steps
    pairs_of_market: int = 20  # from which on the market is faster than best response: benchmarks/results/choices.md


class StepSettings(NamedTuple):
    """A step of Newton's method, of all paths but that in logarithms (steps)."""

    longest_part: float = 0.9995  # part of the way to the boundary near the end
    aim: int = 4  # the target of the products is this power of the part that the predictor leaves of them,
    aim_of_demand: int = 20  # with demands and corrections this one: benchmarks/results/choices.md
    correctors: int = 4
    users_of_uncorrected: int = 20  # for each limit, from which on steps with demands are not corrected, and aim nearer
    refinements: int = 2  # of a step near the end, half as many for the predictor; before, the next step removes the residual
    ahead: float = 0.5  # corrections look this much further than the step goes
    spread: float = 0.1  # a product further off its target than this factor is corrected
    gain: float = 0.02  # what a correction has to add to the lengths of the steps
    many_users: int = 6  # users for each limit: with fewer of them a step gains little by cuts
    cut: float = 0.3  # part of the gap that all cuts of a step together may be worth
    cut_rounds: int = 30  # of the search for the length of a step with cuts
    cut_digits: float = 0.01  # accuracy of this search
    target_of_cut: float = 0.5  # a cut pair keeps this part of the target in its product,
    value_of_cut: float = 0.2  # and at most this part of its value
    end: float = 1e-14  # the products never aim below this relative gap: it is rounding, and smaller ones spoil the steps
    end_of_demand: float = 1e-13  # the same with demands, relative to the money of each user
    end_across: float = 1e-12  # and with limits across servers, which lose a digit more of a step
    longest_of_kappa: float = 1.0  # largest change of the logarithm of a trade-off's kappa: benchmarks/results/choices.md
    least_part: float = 1e-4  # of a positive value that a step leaves; rounding would leave 0 or less
    least_part_of_stopped: float = 0.3  # of the price that a stopped user pays


class LevelSettings(NamedTuple):
    """The path to one level of a leximin (path, finish, levels, faces). A gap, and what is missing, is relative to the level."""

    steps_of_level: int = 300  # at most; a first level takes 10 to 30, the next ones 3 to 10, a cap on the way a few
    held: float = 1e-12  # a settled user may miss its level by this part of it while the others rise
    almost_held: float = 1e-9  # and by this where a cap is compared with what others reach: the certificate would see it
    least_gap: float = 2e-16  # one unit of rounding
    close: float = 1e-4  # users within this margin above the level may belong to it: the path goes on until that is decided
    stalled: int = 4  # steps that do not halve the error near the end, after which the path ends
    failed: int = 24  # the same before, after which it fails
    kept_above: float = 1e-5  # gap down to which points are kept to start again from
    kept_every: float = 0.2  # factor by which the gap falls from one kept point to the next
    most_kept: int = 12  # points
    caps_below: float = 0.01  # gap from which on caps are settled: before, the path would start again for one cap after another
    sets_below: float = 1e-6  # gap from which on the active sets may show
    sets_every: float = 0.01  # factor by which the gap falls from one trial of the sets to the next
    # Users at their caps leave the path, which goes on from a kept point. Caps are passed long before an end: from later points, near an
    # end that changes with the caps, it takes hundreds of short steps or fails.
    restart: float = 0.9  # part of the prices that users who rise have at such a point
    exact: float = 1e-14  # an error that is rounding
    dear: float = 1e-10  # part of its cost by which a used pair may cost more than its user's cheapest; rounding leaves 1e-15
    ambiguous: float = 1e-3  # of active sets with a larger ambiguity, it is not clear what the next level may use
    least_amid: float = 1.9  # twice the part of even slices that all need, below which a level starts between these and even slices
    least_slack: float = 0.03  # of a limit, or of a user's level, where a level starts
    refinements_of_end: int = 3  # of the equations of the active sets


class TotalSettings(NamedTuple):
    """The paths to a total and of a tree of queues (total, tree)."""

    steps_of_total: int = 100  # at most
    digit_of_total: float = 0.01  # the path to a total aims two digits below what is asked for
    stalled_of_total: int = 12  # steps that do not halve the gap, after which it fails
    part_at_start: float = 1e-3  # of an even part of a server: what each pair has where the path of a tree starts


class AlphaFairSettings(NamedTuple):
    """The path to an alpha-fair goal, and its end (alpha_fair, alpha_fair_path, alpha_fair_worths, alpha_fair_end)."""

    steps_of_alpha_fair: int = 1_000  # at most: 10 to 50, at a large alpha about six times alpha
    many_limits: int = 32  # of a server, from which on they may be rows of their own,
    few_entries: float = 0.25  # if users take at most this part of them
    digits: float = 3e-4  # times the tolerance: error at which the path ends
    good: float = 0.03  # times the tolerance: largest error of an answer
    fair: float = 0.1  # times the tolerance: an answer with a smaller error is not looked for once more
    pairs_of_rough_answers: int = 20_000  # up to which an answer with a larger error counts: its active sets may be right
    stalled_of_alpha_fair: int = 6  # steps near the end that halved neither the gap nor the error, after which the path ends
    steps_of_start: int = 25  # in which demands approach utilities by more than `far` a step
    steps_away: int = 100  # in which demands came no nearer to utilities, after which the path fails
    kept_on_way: float = 0.03  # factor by which the gap falls from one kept point to the next
    lost: int = 15  # steps that do not halve the products, after which the path fails
    dear_at_start: float = 2.0  # cost of all limits at the start, relative to all money
    least_cost: float = 0.1  # least reduced cost at the start, relative to the cost
    close_to_end: float = 1e-8  # relative gap below which the error is computed
    spread_of_money: float = 3.0  # largest distance of the money of a user from the median at the start, in logarithms
    far: float = 1.0  # distance of demands from utilities, in logarithms, from which on a step goes only so far, and the products stay
    near: float = 0.03  # the same before the last step of a rough path
    middle: float = 0.1  # to which the products fall by then, relative to all money
    part_of_costs: float = 0.1  # of a stopped user that its products are relative to
    least_of_limit: float = 1e-200  # least unit of the product of a limit where users are stopped, relative to the mean money
    slowly: float = 0.1  # a unit falls by this factor at most in a step
    end_of_tradeoff: float = 3e-12  # error at which the path of a trade-off ends,
    good_of_tradeoff: float = 1e-9  # and the largest of an answer
    large_beta: float = 5.0  # least beta of a trade-off whose steps are limited by the five settings below
    aim_of_tradeoff: float = 0.1  # least part of the products that a step leaves, while the gap is above `near_of_tradeoff`
    near_of_tradeoff: float = 1e-6  # relative gap from which on a step may leave a smaller part
    halvings: int = 6  # times that a step is halved at most, because demands are too far from utilities after it
    off_after_step: float = 0.3  # distance of demands from utilities after a step that is always allowed, in logarithms of prices
    farther_after_step: float = 2.0  # the distance after a step is also allowed up to this many times that before it
    poorest: float = 1e-280  # least unit of a product, relative to the mean
    free: float = 1e-6  # least mean money, relative to all that its tasks are worth to the user with the least
    least_elasticity: float = 1e-12  # of the marginal utility
    sets_show_below: float = 1e-2  # error below which the active sets are known
    refinements_on_sets: int = 3  # of a step on these sets
    held_price: float = 1e10  # in place of a utility whose price stays as it is
    nearly_full: float = 1 - 1e-4
    negligible: float = 1e-11  # part of all limits


class CentringSettings(NamedTuple):
    """The last part of such a path in steps that stay near the central path (alpha_fair_centring)."""

    steps_of_centring: int = 100
    part_of_centring: float = 0.1  # to which a step lets the products fall, at first
    largest_part_of_centring: float = 0.8  # at last, after steps that led to no central point
    patience_of_centring: int = 8  # steps in which a point becomes central, or else the last step was too long
    uneven_of_centre: float = 2.0  # largest product of a central point, in parts of their mean
    missed_of_centre: float = 1e-9  # largest distance of its demands from utilities, in logarithms


class RisingSettings(NamedTuple):
    """Such a path on which alpha rises (alpha_fair_rising)."""

    first_alpha: float = 2.0
    first_from: float = 10.0  # beta of a trade-off from which on this path comes first
    last_beta: float = 1e3  # of a trade-off, the largest
    last_alpha: float = 128.0  # beyond, it rises in too many steps
    rise: float = 0.5  # by how much, in logarithms, marginal utilities differ from prices when alpha has risen; at half of that it rises
    rise_of_tradeoff: float = 0.25  # the same in a trade-off
    least_distance: float = 1e-3  # half of that of the smallest and the largest utility, in logarithms
    distance_of_alpha: float = 1e6  # added to how far alpha has to rise: more than any distance of demands from utilities


class RowSettings(NamedTuple):
    """The linear system of a path whose limits are rows of their own, and that in logarithms (rows)."""

    kept_pairs: float = 1e-2  # whose reduced cost is a smaller part of their worth stay in the system of rows
    many_kept: float = 2.0  # if these are more than so many times the rows, only those stay that would drown a row
    drowned: float = 1e12  # a row of F to which that much is added, relative to it, is lost to rounding


class SampleSettings(NamedTuple):
    """Many users of one limit a pair, and one of their own (by_sample, sample_users, sample_reduced)."""

    users_of_samples: int = 4_000  # from which on a sample is faster, in all
    users_per_limit: int = 20  # and for each limit of a server
    sample: int = 500  # users of a sample: at least,
    largest_sample: int = 10_000  # at most,
    one_in: int = 50  # and of so many of a large program
    rough: float = 3e-5  # gap at which a path ends whose prices only tell which users to set apart
    more: float = 2.0  # times the part of a limit that prices misplace: users set apart, of all, or without own limits pairs that they add
    fewest: int = 400  # of these users
    few: int = 1_000  # of these users, up to which a path goes on to its end at once
    clear: float = 1e-6  # part of its cost by which a pair that is not kept must exceed the least at the end
    rounds_of_samples: int = 8
    free: float = 1e-3  # part of the largest price: a limit with a smaller one may have room
    alike: float = 1e-4  # difference of two pairs of a user in what they take of its own limit, below which rounding would split it
    units_of_rounding: float = 8.0  # by which proportional numbers of an instance may miss their ratio
    even: float = 0.1  # part of an even share with which a path begins
    dear: float = 0.01  # of the largest or of a mean price, and of the money of a user for its own limit: least price there


class LogarithmSettings(NamedTuple):
    """The path in logarithms (logarithmic_path)."""

    steps_of_attempt: int = 250
    steps_of_attempts: int = 700  # after which there is no other: benchmarks/results/choices.md
    first_mu: float = 0.1  # until phi is right
    last_mu: float = 1e-11  # below, rounding moves tasks between equally good servers
    products_of_sets: float = 1e-4  # from which on the active sets may show
    residuals_of_sets: float = 1e-3  # the same
    hopeless_products: float = 1e-7  # two attempts that get stuck above are all: benchmarks/results/choices.md
    good_attempt: float = 1e-9  # KKT violation at which no other attempt is made
    allowed_residual: float = 0.3  # of a linear condition on the way, in logarithms
    first_change: float = 1.5  # largest change of a logarithm in the first step,
    shortest_change: float = 0.3  # in any step at least,
    longest_change: float = 60.0  # and at most
    steps_on_sets: int = 30  # of Newton's method on the active sets of the end
    stalled_at_end: int = 15  # steps without progress
    quiet: int = 20  # steps in which neither products nor residuals fell by a tenth: Newton's method on the active sets may get on
    stuck: int = 40  # such steps in a row, active sets tried or not, after which an attempt fails
    used: float = 1e-7  # part of a user's utility from which on a column counts as used
    rounding: float = 1e-13  # a smaller residual
    part_at_start: float = 0.5  # of an even slice of every limit
    dear_at_start: float = 2.0  # least cost of a column at the start, relative to its worth
    off_when_settled: float = 0.1  # largest residual of the marginal worth, in logarithms, once phi counts as right,
    above_first_mu: float = 1.0  # distance of the largest product above first_mu, in logarithms, at which it does,
    even: float = 2.0  # and at alpha <= 1, distance of the largest product from the smallest
    spread: float = 4.6  # the same from which on products become equal before mu falls,
    spread_of_large_alpha: float = 12.0  # and at alpha > 1
    progress: float = 0.9  # factor by which products or residuals fall in a step that is not quiet
    progress_at_end: float = 0.5  # the same of residuals at the end
    progress_at_halt: float = 0.5  # the same in a step that only removes residuals
    sets_every: float = 1e-2  # factor by which products fall from one trial of the active sets to the next
    steps_on_early_sets: int = 4  # of Newton's method on the active sets before the end
    near_last_mu: float = 3.0  # products below this many times last_mu are at the end
    largest_mend: float = 3.0  # change of a logarithm that a full step for the residuals may make
    parts_tried: int = 4  # of the wanted change, in a step
    residual_of_root: float = 100.0  # times the root of the products: allowed residual near the end
    small_residual: float = 0.4  # of the allowed one, below which the next change is longer,
    longer: float = 2.0  # by this factor
    large_residual: float = 0.7  # of the allowed one, above which it is shorter,
    shorter: float = 0.7  # by this factor
    much_shorter: float = 0.4  # the same after a change that left too large a residual
    halvings: int = 30  # of a step for the residuals alone
    least_gain: float = 0.2  # of such a step, relative to its length


ENGINE = EngineSettings()
STEPS = StepSettings()
LEVELS = LevelSettings()
TOTALS = TotalSettings()
ALPHA_FAIR = AlphaFairSettings()
CENTRING = CentringSettings()
RISING = RisingSettings()
ROWS = RowSettings()
SAMPLES = SampleSettings()
LOGARITHMS = LogarithmSettings()


def weights_differ(weights: FloatArray) -> bool:
    """Do the weights of a leximin lie so far apart that its path proves nothing of the lightest users?"""
    return bool((weights > ENGINE.most_spread * weights.min(initial=np.inf)).any())
