"""Instance + notion -> certified allocation.

The way: check, merge identical rows, formulate, let an engine solve, certify, and bring the answer back to the rows that were given.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from typing import Any

import numpy as np

from fairopt.aggregation import Merging, expand, merge, unmerged
from fairopt.allocation import Allocation, Exact, Level
from fairopt.certificate import Certificate, allocation_excess, certify
from fairopt.errors import NoSolution, Unsupported
from fairopt.instance import FloatArray, Instance, IntArray, require_instance
from fairopt.models import NOTIONS, Notion, Sharing, default_sharing
from fairopt.program import AlphaFair, Disjunctive, LimitKind, Program, Separate, Solution, Total, Tradeoff
from fairopt.solvers import choose, to_model
from fairopt.solvers.backend import Backend, Deadline
from fairopt.validation import check_time_limit, check_tolerance
from fairopt.wording import did_you_mean, some

__all__ = ["best_found", "checked", "formulate", "notion_of", "solve", "to_pyomo"]

log = logging.getLogger(__name__)

_SAME_LEVEL = 1e-8  # relative
_MOST_WHOLE_PAIRS = 2_000_000


def notion_of(notion: str | Notion | type[Notion], **options: Any) -> Notion:
    """Return a notion by its identifier or class with its options, or the notion itself.

    >>> notion_of("drfh", formulation="equalize")
    DRFH(formulation='equalize')
    """
    if isinstance(notion, Notion):
        if options:
            raise Unsupported(f"options {', '.join(options)} cannot be added to a notion that is already made; pass them to its class")
        return notion
    if isinstance(notion, type) and issubclass(notion, Notion):
        return _made(notion, options)
    if not isinstance(notion, str) or notion not in NOTIONS:
        hint = did_you_mean(notion, NOTIONS) if isinstance(notion, str) else ""
        raise Unsupported(f'there is no notion "{notion}"{hint}; there are {", ".join(NOTIONS)}')
    return _made(NOTIONS[notion], options)


def _made(kind: type[Notion], options: dict[str, Any]) -> Notion:
    known: list[str] = [f.name for f in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    for word in options:
        if word not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes no options"
            raise Unsupported(f'the notion "{kind.name}" takes no option "{word}"{did_you_mean(word, known)}; {takes}')
    return kind(**options)


def formulate(
    instance: Instance, notion: str | Notion | type[Notion], *, sharing: Sharing | None = None, integral: bool = False, **options: Any
) -> Program:
    """Return the program of a notion on an instance, row for row; ``print`` it to read the mathematics.

    Parameters
    ----------
    sharing : {"rdm", "tdm"}, optional
        Whether users divide the resources of a server or its time. The default is "rdm", and "tdm" for instances with rates.
    integral : bool
        Whole tasks, on single servers: rows that stand for several servers are expanded.
    **options
        Of the notion: ``formulation`` (drfh, psdsf), ``utility`` (max-min, proportional), ``alpha`` (proportional), ``beta`` and
        ``lam`` (fds, gfj), ``prefer`` (bbf, psdsf), ``order``, ``seed`` and ``delay`` (psdsf).

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
      x >= 0 for 2 eligible pairs of 2 users and 1 server
    <BLANKLINE>
    """
    chosen, how = checked(instance, notion, sharing, options)
    if integral:
        instance, row = _expanded(instance)
        chosen = _with_utility(chosen, None if chosen.utility is None else _columns(chosen.utility, row))
    return chosen.formulate(instance, sharing=how, integral=integral)


def to_pyomo(
    instance: Instance,
    notion: str | Notion | type[Notion],
    *,
    sharing: Sharing | None = None,
    integral: bool = False,
    transformation: str | None = "bigm",
    **options: Any,
) -> Any:
    """Return the program of a notion as a Pyomo ConcreteModel, to extend, to solve and to write.

    Its variables are ``x[user,server]``, its limits ``capacity[resource @ server]``, ``time[server]`` and ``tasks[user]``. The goal of a
    leximin is its smallest level, with ``level`` and ``share[user]``: the first of the programs that find it.

    What ``model.write(path)`` can write is Pyomo's:

    * leximins, totals, and alternatives as a MILP: ``.lp``, ``.mps`` and ``.nl``;
    * alpha-fair goals (proportional with alpha > 0, bbf, psdsf as a market) and trade-offs (fds, gfj), which are not linear: ``.nl`` and
      what else may hold nonlinear terms. ``.lp`` and ``.mps`` cannot, and Pyomo says so in an error of its own;
    * disjunctions (``transformation=None``): nothing, until they are transformed. **Beware of** ``.mps``, which Pyomo writes *without*
      them and without a word: another, larger set of allocations. ``.lp`` and ``.nl`` are errors.

    Parameters
    ----------
    transformation : {"bigm", "hull", None}
        What turns the alternatives of a union of polytopes (bbf and psdsf with ``prefer``) into a MILP. None leaves them as disjunctions,
        for ``pyomo.environ.TransformationFactory("gdp.bigm").apply_to(model)`` or another of pyomo.gdp.

    Raises
    ------
    SolverUnavailable
        Without Pyomo.
    Unsupported
        For notions that are no single optimisation model.

    >>> model = to_pyomo(Instance([[9, 18]], [[1, 4], [3, 1]], resources=["cpu", "memory"], users=["A", "B"], servers=["pool"]), "drf")
    >>> print(model.capacity["cpu @ pool"].expr)
    x[A,pool] + 3.0*x[B,pool]  <=  9.0
    """
    return to_model(formulate(instance, notion, sharing=sharing, integral=integral, **options), transformation)


def solve(
    instance: Instance,
    notion: str | Notion | type[Notion] = "drfh",
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
        An identifier of ``fairopt.SOLVERS`` ("pyomo:NAME": with that solver inside); the default is the first that can.
    integral : bool
        Whole tasks on single servers, by branch and cut.
    sharing : {"rdm", "tdm"}, optional
        Divide resources (default) or time (default for instances with rates).
    tolerance : float
        Largest residual of the certificate that is accepted, relative.
    time_limit : float, optional
        Seconds.
    **options
        Of the notion: ``formulation`` (drfh, psdsf), ``utility`` (max-min, proportional), ``alpha`` (proportional), ``beta`` and
        ``lam`` (fds, gfj), ``prefer`` (bbf, psdsf), ``order``, ``seed`` and ``delay`` (psdsf).

    Raises
    ------
    InvalidInstance, Unsupported, SolverUnavailable
        Before anything is solved.
    NoSolution
        At the time limit; ``.known`` holds what is final: of whole tasks also the best allocation so far (``tasks``, which is feasible
        but not proved best), the ``value`` that it reaches (its smallest share; the total) and a ``bound`` on what any can reach.
        (`compare` and `regret` go on with that allocation, and say so.)
    CertificateError
        If the engine's answer fails the check.

    Examples
    --------
    >>> instance = Instance([[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], weights=[1, 1, 2])
    >>> solve(instance, "drfh").tasks_per_user.round(3)
    array([2.609, 3.13 , 6.261])
    """
    check_time_limit(time_limit)
    check_tolerance(tolerance)
    started = time.perf_counter()
    deadline = Deadline(time_limit)
    chosen, how = checked(instance, notion, sharing, options)
    if instance.unservable:
        log.warning("no server is eligible for %s: no tasks there, and no part in the goal", some(instance.unservable))
    alpha = chosen.merge_alpha if chosen.merges(instance) else None
    if integral:
        small, row = _expanded(instance)
        reduced = _with_utility(chosen, None if chosen.utility is None else _columns(chosen.utility, row))
        merging = None
    else:
        merging = merge(instance, chosen.utility, alpha) if alpha is not None else unmerged(instance)
        small, row = merging.instance, np.empty(0, np.int64)
        reduced = _with_utility(chosen, merging.restrict(chosen.utility))
    program = reduced.formulate(small, sharing=how, integral=integral)
    engine = choose(program, solver)
    if deadline.left == 0.0:
        raise deadline.passed({"levels": []})
    formulated = time.perf_counter()

    try:
        solution, parts = _run(program, engine, tolerance, deadline)
    except NoSolution as error:
        if integral and "tasks" in error.known:  # of the pairs of single servers
            error.known["tasks"] = _unexpanded(instance, _table(program, error.known["tasks"]), row)
            error.known["solver"] = engine.name
        raise
    solved = time.perf_counter()

    pairs = _table(program, solution.x)
    tasks = merging.spread(pairs) if merging is not None else _unexpanded(instance, pairs, row)
    certificate = Certificate.combine([*parts, Certificate(allocation_excess(instance, tasks, how), 0.0, 0.0, whole_tasks=integral)])
    certificate.require(tolerance, chosen.name, engine.name)
    certified = time.perf_counter()

    shares = chosen.shares(instance, tasks)
    return Allocation(
        instance=instance,
        notion=chosen.name,
        solver=engine.name,
        sharing=how,
        tasks=tasks,
        shares=_shares(program, pairs, merging) if shares is None else shares,
        prices=_prices(program, solution, merging, how),
        levels=_levels(program, solution, merging, how),
        certificate=certificate,
        seconds={"formulate": formulated - started, "solve": solved - formulated, "certify": certified - solved, **solution.seconds},
        details=_details(solution),
        trace=solution.trace,
        question=Exact(chosen, solver, integral, tolerance),
    )


def best_found(instance: Instance, notion: Notion, sharing: Sharing, error: NoSolution) -> Allocation | None:
    """Return the whole tasks that were found before a time limit as an allocation, None if there are none.

    It is feasible (checked), and not proved to be the best: its certificate says "best found". ``details`` has the ``value`` that it
    reaches (its smallest share; the total), a ``bound`` on what any can, and the ``gap`` (bound - value) / bound between them. Of a leximin
    that is about the lowest level alone: a gap of 0 proves this level, and none above it.

    >>> instance = Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"])
    >>> known = {"tasks": np.array([[2.0], [2.0]]), "value": 4 / 9, "bound": 2 / 3, "solver": "highs"}
    >>> best_found(instance, notion_of("drfh"), "rdm", NoSolution("no answer within 1 s", known))
    Allocation(drfh, sharing rdm, best found by highs: A 2, B 2 tasks; excess 0.0e+00, not an optimum)
    """
    tasks = error.known.get("tasks")
    if tasks is None or not tasks.any():
        return None
    value, bound = float(error.known["value"]), float(error.known["bound"])
    certificate = Certificate(allocation_excess(instance, tasks, sharing), np.nan, np.nan, whole_tasks=True, best_found=True)
    certificate.require(1e-8, notion.name, error.known["solver"])
    shares = notion.shares(instance, tasks)
    return Allocation(
        instance=instance,
        notion=notion.name,
        solver=error.known["solver"],
        sharing=sharing,
        tasks=tasks,
        shares=_shares(notion.formulate(instance, sharing=sharing, integral=False), tasks, None) if shares is None else shares,
        prices=None,
        levels=(),
        certificate=certificate,
        details={"value": value, "bound": bound, "gap": max(bound - value, 0.0) / bound if bound > 0 else 0.0, "why": str(error)},
        question=Exact(notion, integral=True),
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


def checked(
    instance: Instance, notion: str | Notion | type[Notion], sharing: Sharing | None, options: dict[str, Any]
) -> tuple[Notion, Sharing]:
    """Return the notion and the sharing, after all that can be said without solving."""
    require_instance(instance)
    chosen = notion_of(notion, **options)
    how = _sharing(instance, sharing)
    chosen.check(instance, how)
    return chosen, how


def _expanded(instance: Instance) -> tuple[Instance, IntArray]:
    """Give every server a row of its own, unless that is out of all proportion."""
    pairs = float(instance.eligibility.sum(axis=0) @ instance.counts)
    if pairs > _MOST_WHOLE_PAIRS:
        raise Unsupported(
            f"whole tasks on {instance.counts.sum():,.0f} single servers make {pairs:,.0f} pairs of user and server, more than "
            f"{_MOST_WHOLE_PAIRS:,}; leave integral out (the fluid optimum bounds the whole one), or ask about a part of the cluster"
        )
    return expand(instance)


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


def _table(program: Program, x: FloatArray) -> FloatArray:
    table = np.zeros((len(program.users), len(program.servers)))
    table[program.pair_users, program.pair_servers] = x
    return table


def _unexpanded(instance: Instance, pairs: FloatArray, row: IntArray) -> FloatArray:
    tasks = np.zeros((instance.n_users, instance.n_servers))
    np.add.at(tasks.T, row, pairs.T)
    for n in np.flatnonzero(instance.zero_demand & instance.servable):
        tasks[n, np.flatnonzero(instance.eligibility[n])[0]] = instance.tasks[n]
    return tasks


def _shares(program: Program, pairs: FloatArray, merging: Merging | None) -> FloatArray:
    """U[n] / phi[n] of max-min goals, which all users of a group share, U[n] of sums; (users,), or per server where the goal is."""
    goal = program.inner_goal
    users, servers = program.pair_users, program.pair_servers
    weights = np.ones(len(program.users)) if isinstance(goal, Disjunctive) else goal.weights
    counted = pairs[users, servers]
    per_pair = program.utilities * counted / weights[users]
    if isinstance(goal, Total | AlphaFair | Tradeoff):  # a sum has no common level: the share is what a user's tasks are worth
        worth = program.per_user(program.utilities * counted)
        return worth if merging is None else worth[merging.user_group] * merging.user_part
    if not isinstance(program.goal, Separate):
        shares = program.per_user(per_pair)
        return shares if merging is None else shares[merging.user_group]
    table = np.zeros(pairs.shape)
    table[users, servers] = per_pair
    return table if merging is None else table[np.ix_(merging.user_group, merging.server_group)]


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
    if solution.finished_by is not None:
        details["finished_by"] = solution.finished_by
    return details
