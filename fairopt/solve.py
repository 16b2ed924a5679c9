"""Instance + notion -> certified allocation.

The way: check, merge identical rows, formulate, let an engine solve, certify, and bring the answer back to the rows that were given.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from typing import Any

import numpy as np

from fairopt.allocation import Allocation, Level
from fairopt.certificate import Certificate, allocation_excess, certify
from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.merging import Merging, expand, merge, unmerged
from fairopt.models import NOTIONS, Notion, Sharing, default_sharing
from fairopt.program import Disjunctive, Equilibrium, LimitKind, Program, Separate, Solution
from fairopt.solvers import choose
from fairopt.solvers.backend import Backend, Deadline
from fairopt.wording import did_you_mean, plural, some

__all__ = ["formulate", "notion_of", "solve"]

log = logging.getLogger(__name__)

_SAME_LEVEL = 1e-8  # relative


def notion_of(notion: str | Notion, **options: Any) -> Notion:
    """Return a notion by its identifier with its options, or the notion itself.

    >>> notion_of("drfh", formulation="equalize")
    DRFH(formulation='equalize')
    """
    if isinstance(notion, Notion):
        if options:
            raise Unsupported(f"options {', '.join(options)} cannot be added to a notion that is already made; pass them to its class")
        return notion
    if notion not in NOTIONS:
        raise Unsupported(f'there is no notion "{notion}"{did_you_mean(notion, NOTIONS)}; there are {", ".join(NOTIONS)}')
    kind = NOTIONS[notion]
    known: list[str] = [f.name for f in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    for word in options:
        if word not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes no options"
            raise Unsupported(f'the notion "{notion}" takes no option "{word}"{did_you_mean(word, known)}; {takes}')
    return kind(**options)


def formulate(
    instance: Instance, notion: str | Notion, *, sharing: Sharing | None = None, integral: bool = False, **options: Any
) -> Program:
    """Return the program of a notion on an instance, row for row; ``print`` it to read the mathematics.

    Parameters
    ----------
    sharing : {"rdm", "tdm"}, optional
        Whether users divide the resources of a server or its time. The default is "rdm", and "tdm" for instances with rates.
    integral : bool
        Whole tasks, on single servers: rows that stand for several servers are expanded.
    **options
        Of the notion: ``formulation`` (drfh), ``utility`` (max-min).

    >>> print(formulate(Instance([[9, 18]], [[1, 4], [3, 1]], resources=["cpu", "memory"], users=["A", "B"], servers=["pool"]), "drf"))
    drf: Dominant resource fairness
    <BLANKLINE>
    maximise    leximin of U[n]
    where
      U[A] = 0.222222 x[A, pool]
      U[B] = 0.333333 x[B, pool]
    subject to
      cpu @ pool    : x[A, pool] + 3 x[B, pool] <= 9
      memory @ pool : 4 x[A, pool] + x[B, pool] <= 18
      x >= 0 for 2 eligible pairs of 2 users and 1 servers
    <BLANKLINE>
    """
    chosen = notion_of(notion, **options)
    how = _sharing(instance, sharing)
    chosen.check(instance, how)
    if integral:
        instance, row = expand(instance)
        chosen = _with_utility(chosen, None if chosen.utility is None else _columns(chosen.utility, row))
    return chosen.formulate(instance, sharing=how, integral=integral)


def solve(
    instance: Instance,
    notion: str | Notion = "drfh",
    *,
    solver: str | None = None,
    integral: bool = False,
    sharing: Sharing | None = None,
    tolerance: float = 1e-8,
    time_limit: float | None = None,
    **options: Any,
) -> Allocation:
    """Solve for the exact fair allocation, with a certificate.

    Parameters
    ----------
    instance : Instance
    notion : str or Notion
        An identifier of ``fairopt.NOTIONS``, or a notion of your own.
    solver : str, optional
        An identifier of ``fairopt.SOLVERS``; the default is the first that can.
    integral : bool
        Whole tasks on single servers, by branch and cut.
    sharing : {"rdm", "tdm"}, optional
        Divide resources (default) or time (default for instances with rates).
    tolerance : float
        Largest residual of the certificate that is accepted, relative.
    time_limit : float, optional
        Seconds.
    **options
        Of the notion: ``formulation`` (drfh), ``utility`` (max-min).

    Raises
    ------
    InvalidInstance, Unsupported, SolverUnavailable
        Before anything is solved.
    NoSolution
        At the time limit; ``.known`` holds what is final.
    CertificateError
        If the engine's answer fails the check.

    Examples
    --------
    >>> instance = Instance([[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], weights=[1, 1, 2])
    >>> solve(instance, "drfh").tasks_per_user.round(3)
    array([2.609, 3.13 , 6.261])
    """
    if not isinstance(instance, Instance):
        raise InvalidInstance(f"expected an Instance, got {type(instance).__name__}; build one with fairopt.Instance or fairopt.load")
    if time_limit is not None and not time_limit > 0:
        raise Unsupported(f"time_limit is {time_limit}; give seconds > 0, or leave it out")
    if not 0 < tolerance < 1:
        raise Unsupported(f"tolerance is {tolerance}; give a relative error between 0 and 1, such as 1e-8")
    started = time.perf_counter()
    deadline = Deadline(time_limit)
    chosen = notion_of(notion, **options)
    how = _sharing(instance, sharing)
    chosen.check(instance, how)
    if instance.unservable:
        log.warning("%s cannot run anywhere and get nothing: %s", plural(len(instance.unservable), "user"), some(instance.unservable))
    alpha = chosen.merge_alpha
    if integral:
        small, row = expand(instance)
        reduced = _with_utility(chosen, None if chosen.utility is None else _columns(chosen.utility, row))
        merging = None
    else:
        merging = merge(instance, chosen.utility, alpha) if alpha is not None else unmerged(instance)
        small, row = merging.instance, np.empty(0, np.int64)
        reduced = _with_utility(chosen, merging.restrict(chosen.utility))
    program = reduced.formulate(small, sharing=how, integral=integral)
    engine = choose(program, solver)
    formulated = time.perf_counter()

    solution, parts = _run(program, engine, tolerance, deadline)
    solved = time.perf_counter()

    pairs = np.zeros((small.n_users, small.n_servers))
    pairs[program.pair_users, program.pair_servers] = solution.x
    tasks = merging.spread(pairs) if merging is not None else _unexpanded(instance, pairs, row)
    certificate = Certificate.combine([*parts, Certificate(allocation_excess(instance, tasks, how), 0.0, 0.0)])
    certificate.require(tolerance, chosen.name, engine.name)
    certified = time.perf_counter()

    return Allocation(
        instance=instance,
        notion=chosen.name,
        solver=engine.name,
        sharing=how,
        tasks=tasks,
        shares=_shares(chosen, instance, how, tasks),
        prices=_prices(program, solution, merging, how),
        levels=_levels(program, solution, merging, how),
        certificate=certificate,
        seconds={"formulate": formulated - started, "solve": solved - formulated, "certify": certified - solved, **solution.seconds},
        details=_details(solution),
        trace=solution.trace,
    )


# Running -------------------------------------------------------------------------------------------------------------------------


def _run(program: Program, engine: Backend, tolerance: float, deadline: Deadline) -> tuple[Solution, list[Certificate]]:
    """Solve a program, server by server where its goal is separate; return the solution and the certificates of its parts."""
    if program.n_pairs == 0:
        return Solution(np.empty(0), programs_solved=0), []
    if not isinstance(program.goal, Separate):
        solution = engine.solve(program, tolerance=tolerance, deadline=deadline)
        return solution, [certify(program, solution)]
    x = np.zeros(program.n_pairs)
    certificates = []
    iterations = programs = 0
    for server in np.unique(program.pair_servers):
        part, columns = program.part(int(server), x)
        solution = engine.solve(part, tolerance=tolerance, deadline=deadline)
        certificates.append(certify(part, solution))
        x[columns] = solution.x
        iterations += solution.iterations
        programs += solution.programs_solved
    return Solution(x, iterations=iterations, programs_solved=programs), certificates


def _sharing(instance: Instance, sharing: Sharing | None) -> Sharing:
    if sharing is None:
        return default_sharing(instance)
    if sharing not in ("rdm", "tdm"):
        raise Unsupported(f'there is no sharing "{sharing}"; use "rdm" (resources are divided) or "tdm" (time is)')
    return sharing


def _with_utility(notion: Notion, utility: FloatArray | None) -> Notion:
    return notion if utility is None else dataclasses.replace(notion, utility=utility)  # type: ignore[type-var]


def _columns(utility: FloatArray, row: IntArray) -> FloatArray:
    return utility if utility.shape[1] == 1 else utility[:, row]


# The way back --------------------------------------------------------------------------------------------------------------------


def _unexpanded(instance: Instance, pairs: FloatArray, row: IntArray) -> FloatArray:
    tasks = np.zeros((instance.n_users, instance.n_servers))
    np.add.at(tasks.T, row, pairs.T)
    for n in np.flatnonzero(instance.effortless & instance.servable):
        tasks[n, np.flatnonzero(instance.eligibility[n])[0]] = instance.tasks[n]
    return tasks


def _shares(notion: Notion, instance: Instance, sharing: Sharing, tasks: FloatArray) -> FloatArray:
    """U[n] / phi[n], (users,), or per server where the goal is separate."""
    program = notion.formulate(instance, sharing=sharing, integral=False)
    separate = isinstance(program.goal, Separate)
    goal = program.goal.goal if isinstance(program.goal, Separate) else program.goal
    if isinstance(goal, Equilibrium):  # virtual dominant shares: all that the user has, in the eyes of each server
        shares = np.zeros(tasks.shape)
        total = tasks.sum(axis=1)[program.pair_users]
        shares[program.pair_users, program.pair_servers] = program.utilities * total / goal.weights[program.pair_users]
        return shares
    weights = np.ones(len(program.users)) if isinstance(goal, Disjunctive) else goal.weights
    per_pair = program.utilities * tasks[program.pair_users, program.pair_servers] / weights[program.pair_users]
    if not separate:
        return program.per_user(per_pair)
    shares = np.zeros(tasks.shape)
    shares[program.pair_users, program.pair_servers] = per_pair
    return shares


def _spread_prices(program: Program, prices: FloatArray, merging: Merging | None, sharing: str) -> FloatArray | None:
    """Prices of limits -> (servers, resources), or (servers, 1) of time, of the original rows."""
    if merging is None:
        return None
    limits = program.limits
    kind, width = (LimitKind.CAPACITY, len(program.resources)) if sharing == "rdm" else (LimitKind.TIME, 1)
    table = np.zeros((len(program.servers), width))
    rows = limits.kinds == kind
    if not rows.any():  # a notion without shared capacity, such as the uniform slice
        return None
    keys = limits.keys[rows]
    table[keys[:, 0], np.maximum(keys[:, 1], 0)] = prices[rows]
    spread = table[merging.server_group]
    # A unit of a resource is worth the same in every server of a merged row; a server's time is a part of the row's.
    return spread if sharing == "rdm" else spread * merging.server_part[:, None]


def _prices(program: Program, solution: Solution, merging: Merging | None, sharing: str) -> FloatArray | None:
    if solution.prices is not None:
        return _spread_prices(program, solution.prices, merging, sharing)
    levels = _levels(program, solution, merging, sharing)
    return levels[0].prices if levels else None


def _levels(program: Program, solution: Solution, merging: Merging | None, sharing: str) -> tuple[Level, ...]:
    """Stages -> levels of the original users; prices become d(level) / d(capacity)."""
    levels: list[Level] = []
    for stage in solution.stages:
        merged = np.zeros(len(program.users), bool)
        merged[stage.users] = True
        members = merged if merging is None else merged[merging.user_group]
        names = program.users if merging is None else merging.original.users
        users = tuple(names[n] for n in np.flatnonzero(members))
        if levels and abs(stage.value - levels[-1].value) <= _SAME_LEVEL * stage.value:  # proved in two steps, one level all the same
            levels[-1] = dataclasses.replace(levels[-1], users=levels[-1].users + users)
            continue
        prices = None if stage.prices is None else _spread_prices(program, stage.prices, merging, sharing)
        levels.append(Level(float(stage.value), users, prices))
    return tuple(levels)


def _details(solution: Solution) -> dict[str, Any]:
    details: dict[str, Any] = {"iterations": solution.iterations, "programs_solved": solution.programs_solved}
    if solution.gap is not None:
        details["gap"] = solution.gap
    if solution.bound is not None:
        details["bound"] = solution.bound
    return details
