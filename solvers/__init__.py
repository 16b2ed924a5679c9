"""The engines, one folder or file each: Program -> Solution. No engine knows a notion, and none calls another.

`SOLVERS` maps each identifier to its class, in the order of preference. A set difference decides: an engine can solve a program when the
program's features are among its own. One that is faster for a program than those before it says so (`Backend.wins`), and comes first.
`fairopt.solving.policy` tries the `candidates` in order, certifies what they find, and improves it by `polishes`.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairopt.errors import FairoptError, SolverUnavailable, Unsupported
from fairopt.program import Equalize, Equilibrium, Feature, Leximin, Program, Solution
from fairopt.registry import Registry, words
from fairopt.solvers.alpha_fair import polish as alpha_fair_polish
from fairopt.solvers.backend import Backend
from fairopt.solvers.equilibrium import polish as equilibrium_polish
from fairopt.solvers.equilibrium.asynchronous import AsynchronousServers, Turns
from fairopt.solvers.equilibrium.engine import BestResponse
from fairopt.solvers.filling.arrival_order import check_arrivals, place_arrivals
from fairopt.solvers.filling.event_loop import run_events
from fairopt.solvers.filling.placements import PLACEMENTS, Chooser, Placement
from fairopt.solvers.filling.precomputed import Cycle, fill_lowest_first, precompute
from fairopt.solvers.filling.progressive_filling import Filled, fill
from fairopt.solvers.interior_point.engine import InteriorPoint
from fairopt.solvers.leximin import polish as leximin_polish
from fairopt.solvers.trajectory.engine import Trajectory
from fairopt.solvers.via_cvxpy import CVXPY
from fairopt.solvers.via_highs.engine import HiGHS
from fairopt.solvers.via_highs.pareto import Pareto, pareto_frontier
from fairopt.solvers.via_highs.placement import Placed, pack_servers, place_whole
from fairopt.solvers.via_highs.warm_start import RepeatedLevels
from fairopt.solvers.via_pyomo.engine import Pyomo, to_model
from fairopt.solvers.water_filling import WaterFilling
from fairopt.wording import did_you_mean

__all__ = [
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
    "RepeatedLevels",
    "Turns",
    "candidates",
    "check_arrivals",
    "choose",
    "fill",
    "fill_lowest_first",
    "pack_servers",
    "pareto_frontier",
    "place_arrivals",
    "place_whole",
    "polishes",
    "precompute",
    "run_events",
    "to_model",
]

# The closed form first: where it applies nothing is faster or more exact.
SOLVERS: Registry[type[Backend]] = Registry(
    "solver",
    "fairopt.solvers",
    {engine.name: engine for engine in (WaterFilling, HiGHS, BestResponse, InteriorPoint, CVXPY, Trajectory, Pyomo)},
    lambda entry: "" if isinstance(entry, type) and issubclass(entry, Backend) else "it must be a subclass of fairopt.solvers.Backend",
)


def candidates(program: Program, solver: str | None) -> list[Backend]:
    """Return the engine asked for ("pyomo:NAME": with that solver inside), or all that can solve the program, in the order to try them.

    The order is that of `SOLVERS`, but an engine that is the fastest by measurement (`Backend.wins`) comes first. After the first, engines
    that would take too long for a program of this size (`Backend.most_pairs`) are left out.

    Raises
    ------
    Unsupported
        The engine can never solve it, or there is no such engine; the message says which engines can.
    SolverUnavailable
        Its package is not installed; the message says what to install.
    """
    needs = program.features()
    capable = [name for name, engine in SOLVERS.items() if needs <= engine.features]
    if solver is None:
        there = [SOLVERS[name] for name in capable if SOLVERS[name].available()]
        if there:
            first = next((engine for engine in there if engine.wins(program)), there[0])
            others = (other for other in there if other is not first and program.n_pairs <= other.most_pairs)
            return [engine() for engine in (first, *others)]
        if capable:
            raise SolverUnavailable(f"no engine for this program is installed; {_install(SOLVERS[capable[0]])}")
        raise Unsupported(f"no engine can solve a program with {_list(needs)}")
    name, *inside = words(solver) if isinstance(solver, str) else [solver]
    within = ":".join(inside)
    if name not in SOLVERS:
        hint = did_you_mean(name, SOLVERS) if isinstance(name, str) else ""
        raise Unsupported(f'there is no solver "{name}"{hint}; there are {", ".join(SOLVERS)}')
    engine = SOLVERS[name]
    missing = needs - engine.features
    if missing:
        raise _cannot(engine, program, missing, capable)
    if not engine.available():
        raise SolverUnavailable(f'the solver "{name}" is not installed; {_install(engine)}')
    return [engine(within or None)]


def choose(program: Program, solver: str | None) -> Backend:
    """Return the first of the `candidates`."""
    return candidates(program, solver)[0]


def polishes(program: Program, solution: Solution) -> Iterator[tuple[str, Solution]]:
    """Yield what may be better than an approximate answer from any engine, with the name of the method: solutions of its own equations.

    Nothing for goals that have no polish, and where the equations do not show. Whether a polished answer is better, the caller certifies.
    """
    if program.integral:
        return
    if isinstance(program.goal, Leximin | Equalize):
        yield from (("level equations", found) for found in leximin_polish.polishes(program, solution))
        return
    of_active_sets = equilibrium_polish.polish if isinstance(program.goal, Equilibrium) else alpha_fair_polish.polish
    found = of_active_sets(program, solution)
    if found is not None:
        yield "active sets", found


def _cannot(engine: type[Backend], program: Program, missing: frozenset[Feature], capable: list[str]) -> FairoptError:
    instead = f"use {' or '.join(capable)}" if capable else "no engine here can"
    return Unsupported(f'"{engine.name}" cannot solve "{program.name}" here: the program has {_list(missing)}; {instead}')


def _list(features: frozenset[Feature]) -> str:
    return " and ".join(sorted(feature.value for feature in features))


def _install(engine: type[Backend]) -> str:
    return f"install it with: {engine.requirement}"
