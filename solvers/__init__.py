"""The engines, one folder or file each: Program -> Solution. No engine knows a notion, and none calls another.

A name is imported when it is first used. `choosing` has the registry `SOLVERS` and the `candidates` for a program; `polishing` makes their
answers exact. `fairopt.solving.policy` tries the candidates in order, certifies their answers, and polishes them.

Choosing an engine asks every engine what it can solve. So a module ``engine`` only declares this, and imports the code that solves when it
solves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairopt.doors import door

if TYPE_CHECKING:
    from fairopt.solvers.backend import Backend
    from fairopt.solvers.choosing import SOLVERS, candidates, choose
    from fairopt.solvers.equilibrium.asynchronous import AsynchronousServers, Turns
    from fairopt.solvers.filling.arrival_order import check_arrivals, place_arrivals
    from fairopt.solvers.filling.event_loop import run_events
    from fairopt.solvers.filling.in_fractions import fill_in_fractions, seconds_expected
    from fairopt.solvers.filling.placements import PLACEMENTS, Chooser, Placement
    from fairopt.solvers.filling.precomputed import Cycle, fill_lowest_first, precompute
    from fairopt.solvers.filling.precomputed_in_fractions import fill_lowest_in_fractions, precompute_in_fractions
    from fairopt.solvers.filling.progressive_filling import Filled, fill
    from fairopt.solvers.polishing import long_polishes, polishes
    from fairopt.solvers.rational import EXACT_GOALS, largest_exactly, points_near, seconds_of_a_level, solve_exactly
    from fairopt.solvers.via_cvxpy.engine import to_problem
    from fairopt.solvers.via_highs.contradictions import contradiction
    from fairopt.solvers.via_highs.memory import RememberedLevels
    from fairopt.solvers.via_highs.pareto import Pareto, pareto_frontier
    from fairopt.solvers.via_highs.placement import Placed, pack_servers, place_numbers, place_whole
    from fairopt.solvers.via_highs.under_rules import able_users
    from fairopt.solvers.via_highs.warm_start import RepeatedLevels
    from fairopt.solvers.via_pyomo.engine import to_model
    from fairopt.solvers.via_pyomo.files import model_files

__all__ = [
    "EXACT_GOALS",
    "PLACEMENTS",
    "SOLVERS",
    "AsynchronousServers",
    "Backend",
    "Chooser",
    "Cycle",
    "Filled",
    "Pareto",
    "Placed",
    "Placement",
    "RememberedLevels",
    "RepeatedLevels",
    "Turns",
    "able_users",
    "candidates",
    "check_arrivals",
    "choose",
    "contradiction",
    "fill",
    "fill_in_fractions",
    "fill_lowest_first",
    "fill_lowest_in_fractions",
    "largest_exactly",
    "long_polishes",
    "model_files",
    "pack_servers",
    "pareto_frontier",
    "place_arrivals",
    "place_numbers",
    "place_whole",
    "points_near",
    "polishes",
    "precompute",
    "precompute_in_fractions",
    "run_events",
    "seconds_expected",
    "seconds_of_a_level",
    "solve_exactly",
    "to_model",
    "to_problem",
]

__getattr__ = door(  # a name is imported when it is first used: nobody needs every engine
    __name__,
    {
        "backend": ["Backend"],
        "choosing": ["SOLVERS", "candidates", "choose"],
        "equilibrium.asynchronous": ["AsynchronousServers", "Turns"],
        "filling.arrival_order": ["check_arrivals", "place_arrivals"],
        "filling.event_loop": ["run_events"],
        "filling.in_fractions": ["fill_in_fractions", "seconds_expected"],
        "filling.placements": ["PLACEMENTS", "Chooser", "Placement"],
        "filling.precomputed": ["Cycle", "fill_lowest_first", "precompute"],
        "filling.precomputed_in_fractions": ["fill_lowest_in_fractions", "precompute_in_fractions"],
        "filling.progressive_filling": ["Filled", "fill"],
        "polishing": ["long_polishes", "polishes"],
        "rational": ["EXACT_GOALS", "largest_exactly", "points_near", "seconds_of_a_level", "solve_exactly"],
        "via_highs.under_rules": ["able_users"],
        "via_highs.contradictions": ["contradiction"],
        "via_cvxpy.engine": ["to_problem"],
        "via_highs.memory": ["RememberedLevels"],
        "via_highs.pareto": ["Pareto", "pareto_frontier"],
        "via_highs.placement": ["Placed", "pack_servers", "place_numbers", "place_whole"],
        "via_highs.warm_start": ["RepeatedLevels"],
        "via_pyomo.engine": ["to_model"],
        "via_pyomo.files": ["model_files"],
    },
)
