"""Which engines can solve a program, and in what order to try them.

`SOLVERS` maps each identifier to its class, in the order of preference. A set difference decides: an engine can solve a program when it
lacks none of the program's features (`Backend.lacks`). One that is faster for a program than those before it says so (`Backend.wins`), and
comes first.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairopt.errors import FairoptError, SolverUnavailable, Unsupported
from fairopt.program import Feature, Program
from fairopt.registry import Registry, words
from fairopt.solvers.backend import Backend
from fairopt.solvers.equilibrium.engine import BestResponse
from fairopt.solvers.interior_point.engine import InteriorPoint
from fairopt.solvers.large.engine import Large
from fairopt.solvers.trajectory.engine import Trajectory
from fairopt.solvers.via_cvxpy.engine import CVXPY
from fairopt.solvers.via_highs.engine import HiGHS
from fairopt.solvers.via_pyomo.engine import Pyomo
from fairopt.solvers.water_filling import WaterFilling
from fairopt.wording import did_you_mean

__all__ = ["SOLVERS", "candidates", "choose"]

# The closed form first: where it applies nothing is faster or more exact.
SOLVERS: Registry[type[Backend]] = Registry(
    "solver",
    "fairopt.solvers",
    {engine.name: engine for engine in (WaterFilling, HiGHS, BestResponse, Large, InteriorPoint, CVXPY, Trajectory, Pyomo)},
    lambda entry: "" if isinstance(entry, type) and issubclass(entry, Backend) else "it must be a subclass of fairopt.solvers.Backend",
)


def candidates(program: Program, solver: str | None, options: Mapping[str, object] | None = None) -> list[Backend]:
    """Return the engine asked for ("pyomo:NAME": with that solver inside), or all that can solve the program, in the order to try them.

    The order is that of `SOLVERS`, but engines that are faster by measurement (`Backend.wins`) come first. After the first, engines that
    would take too long for a program of this size (`Backend.most_pairs`) are left out. ``options`` are for the solver that is named.

    Raises
    ------
    Unsupported
        The engine can never solve it, or there is no such engine; the message says which engines can.
    SolverUnavailable
        Its package is not installed; the message says what to install.
    """
    capable = [name for name, engine in SOLVERS.items() if not engine.lacks(program) and engine.suits(program)]
    if solver is None and options:
        raise Unsupported(f'options of a solver, as {next(iter(options))} is, need its name: solver="highs", "cvxpy:NAME" or "pyomo:NAME"')
    if solver is None:
        there = [SOLVERS[name] for name in capable if SOLVERS[name].available()]
        if there:
            first, *others = sorted(there, key=lambda engine: not engine.wins(program))
            return [first(), *(other() for other in others if program.n_pairs <= other.most_pairs)]
        if capable:
            raise SolverUnavailable(f"no engine for this program is installed; {_install(SOLVERS[capable[0]])}")
        raise Unsupported(f"no engine can solve a program with {_list(program.features())}")
    name, *inside = words(solver) if isinstance(solver, str) else [solver]
    within = ":".join(inside)
    if name not in SOLVERS:
        hint = (_inside_others(name) or did_you_mean(name, SOLVERS)) if isinstance(name, str) else ""
        raise Unsupported(f'there is no solver "{name}"{hint}; there are {", ".join(SOLVERS)}')
    engine = SOLVERS[name]
    missing = engine.lacks(program)
    if missing:
        raise _cannot(engine, program, missing, capable)
    if not engine.available():
        raise SolverUnavailable(f'the solver "{name}" is not installed; {_install(engine)}')
    return [engine(within or None, options) if options else engine(within or None)]


def choose(program: Program, solver: str | None) -> Backend:
    """Return the first of the `candidates`."""
    return candidates(program, solver)[0]


def _inside_others(name: str) -> str:
    """Return how to name a solver that other engines reach, or the empty string."""
    reached = [f"{own}:{found}" for own, engine in SOLVERS.items() if engine.available() and (found := engine.solver_inside(name))]
    return f"; other engines reach it: {', '.join(reached)}" if reached else ""


def _cannot(engine: type[Backend], program: Program, missing: frozenset[Feature], capable: list[str]) -> FairoptError:
    instead = f"use {' or '.join(capable)}" if capable else "no engine here can"
    return Unsupported(f'"{engine.name}" cannot solve "{program.name}" here: the program has {_list(missing)}; {instead}')


def _list(features: frozenset[Feature]) -> str:
    return " and ".join(sorted(feature.value for feature in features))


def _install(engine: type[Backend]) -> str:
    return f"install it with: {engine.requirement}"
