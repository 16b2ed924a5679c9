"""`fairopt.plan`: from what runs to what is fair, with the fewest stops."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.analysis.planning.held import Held, Part, rows_of
from fairopt.analysis.planning.order import ordered
from fairopt.analysis.planning.result import Plan
from fairopt.analysis.planning.split import Outcome, Split, best_within, fewest_stops
from fairopt.analysis.planning.targets import nearest
from fairopt.errors import InvalidInstance, NoSolution
from fairopt.instance import FloatArray, Instance, require_instance
from fairopt.instance.tolerances import FITS
from fairopt.models import Notion, Sharing
from fairopt.program import Program
from fairopt.results import options_of
from fairopt.solvers.backend import Deadline
from fairopt.solving import formulate, solve
from fairopt.solving.formulation import notion_of
from fairopt.solving.single_servers import expanded
from fairopt.specs import written
from fairopt.wording import joined, named, plural

__all__ = ["plan"]

_MOST = 5  # names in a sentence


def plan(
    instance: Instance,
    held: Any,
    notion: str | Notion | type[Notion] = "drfh",
    *,
    budget: int | None = None,
    sharing: Sharing | None = None,
    time_limit: float | None = None,
    **options: Any,
) -> Plan:
    """Return the way from what runs to the fair allocation of whole tasks with the fewest stops.

    The target is the tasks by user of the notion's answer in whole tasks. A stop is a task that no longer runs on its server; a task that
    moves is a stop and a start. A mixed-integer program finds the fewest stops, and proves how few there must be.

    Parameters
    ----------
    instance : Instance
    held : file, frame, mapping, array, Allocation, or list of HeldRow
        What runs: a table with the columns ``user``, ``server`` and ``tasks``, and if wanted ``gang``, ``protected`` and ``name``
        (:mod:`fairopt.analysis.planning.held`); or a mapping from (user, server) to tasks; or (users, servers) tasks.
    notion : str or Notion
        The target; options as in ``"proportional:alpha=2"``.
    budget : int, optional
        The most stops. If the target needs more, the plan reaches the best that so many stops reach: the notion's answer over these.
    sharing : {"rdm", "tdm"}, optional
        As in `fairopt.solve`.
    time_limit : float, optional
        Seconds, of each solve: of the target, of the budget, of the fewest stops. When it is reached, the best target and the best plan
        that are known count, with what is proved of them.

    Returns
    -------
    Plan

    Raises
    ------
    InvalidInstance
        What runs is not of this instance, or not of whole tasks; protected tasks cannot stay.
    Unsupported
        No engine finds whole tasks of the notion; or none under a budget.
    NoSolution
        At the time limit; or no plan has so few stops.

    >>> import fairopt as fo
    >>> lab = fo.Instance([[4], [4]], [[1], [1]], users=["a", "b"], servers=["x", "y"])
    >>> found = fo.plan(lab, {("a", "x"): 4, ("a", "y"): 3}, "drfh")
    >>> [(stop.user, stop.tasks) for stop in found.stops], found.target
    ([('a', 3)], {'a': 4, 'b': 4})
    """
    require_instance(instance)
    if budget is not None and (isinstance(budget, bool) or budget != int(budget) or budget < 0):
        raise InvalidInstance(f"the budget is {budget!r}; it is a whole number of stops >= 0")
    chosen = notion_of(notion, **options)
    single, row_of = expanded(instance)
    runs = Held.of(rows_of(held, instance, single), instance, single, row_of)
    program = formulate(instance, chosen, sharing=sharing, integral=True)
    notes = [*runs.notes, *_excess(program, runs, single)]
    try:
        target = _target(instance, chosen, single, (sharing, time_limit), program, notes)
    except NoSolution as error:
        if time_limit is None or "tasks" not in error.known:
            raise
        target = _whole(np.asarray(error.known["tasks"], float).sum(axis=1))
        notes.append(f"the target is the best that was found in {time_limit:g} s, and not proved to be the best there is")
    fair, best = target, None
    blocked = Split.of(program, runs).blocked
    for part in blocked:
        if part.protected:
            raise InvalidInstance(f"{_cells(part, single)}: the tasks are protected, and their user may not run there; leave protected out")
    if blocked:
        where = joined([_cells(part, single) for part in blocked], _MOST)
        notes.append(f"what runs where its user may not run must stop: {where}")
    try:
        split, best = fewest_stops(program, runs, target, Deadline(time_limit))
    except NoSolution as error:
        if not error.known.get("infeasible") or not any(part.protected for part in runs.parts):
            raise
        target = _with_protected(program, runs, Deadline(time_limit))
        notes.append("the fair numbers of tasks leave no room for the protected tasks; the target is the best that keeps these")
        fair = target
        split, best = fewest_stops(program, runs, target, Deadline(time_limit))
    if budget is not None and best.stops > budget:
        needed = best.bound
        target = _within(program, runs, int(budget), Deadline(time_limit))
        split, best = fewest_stops(program, runs, target, Deadline(time_limit))
        most = plural(int(budget), "stop allows", "stops allow")
        notes.append(f"the fair numbers of tasks need {plural(needed, 'stop')}; the plan reaches the best that {most}")
    return _plan(instance, single, split, best, target, fair, notes, (chosen, budget, program.source.sharing, time_limit))


def _target(
    instance: Instance, notion: Notion, single: Instance, how: tuple[Sharing | None, float | None], program: Program, notes: list[str]
) -> FloatArray:
    """Return the best whole tasks of a notion by user; in a tree where no engine finds them, those nearest to the divisible optimum."""
    sharing, time_limit = how
    if not program.goal.no_whole_tasks or program.source.sharing != "rdm":
        return _whole(solve(instance, notion, sharing=sharing, integral=True, time_limit=time_limit).tasks_per_user)
    divisible = solve(instance, notion, sharing=sharing, time_limit=time_limit)
    notes.append(
        f"no engine finds the best whole tasks in this tree: {program.goal.no_whole_tasks}. The target is the whole tasks nearest to the "
        "divisible optimum"
    )
    return nearest(single, divisible.tasks_per_user, time_limit)


def _with_protected(program: Program, runs: Held, deadline: Deadline) -> FloatArray:
    """Return the best tasks by user that keep what is protected."""
    try:
        return _whole(best_within(program, runs, None, deadline))
    except NoSolution as error:
        if not error.known.get("infeasible"):
            raise
        raise NoSolution("the protected tasks exceed what the cluster or its limits allow; protect fewer of them", error.known) from None


def _within(program: Program, runs: Held, budget: int, deadline: Deadline) -> FloatArray:
    """Return the best tasks by user of a budget."""
    try:
        return _whole(best_within(program, runs, budget, deadline))
    except NoSolution as error:
        if not error.known.get("infeasible"):
            raise
        raise NoSolution(
            f"no plan has so few stops as {budget}: what runs exceeds a limit, or must stop for another reason; raise the budget",
            error.known,
        ) from None


def _whole(tasks: FloatArray) -> FloatArray:
    return np.asarray(np.round(tasks), float)


def _cells(part: Part, single: Instance) -> str:
    n, i, _ = part.cells[0]
    return f"{named(single.users[n])} on {named(host_of(single, i))}"


def host_of(single: Instance, server: int) -> str:
    """Return the host of a single server where it is known, else its label."""
    own = single.hosts[server]
    return own[0] if len(own) == 1 else single.servers[server]


def _excess(program: Program, runs: Held, single: Instance) -> list[str]:
    """Say which limits what runs exceeds now."""
    table = runs.table(len(program.users), len(program.servers))
    x = table[program.pair_users, program.pair_servers]
    limits = program.limits
    over = np.flatnonzero(limits.matrix @ x > limits.bounds + 10 * FITS * np.maximum(np.abs(limits.bounds), 1e-300))
    if not over.size:
        return []
    what = joined([program.limit_name(int(k)) for k in over[: _MOST + 1].tolist()], _MOST)
    return [f"what runs exceeds {plural(over.size, 'limit')} now ({what}); the plan ends within {'it' if over.size == 1 else 'them'}"]


def _plan(
    instance: Instance,
    single: Instance,
    split: Split,
    best: Outcome,
    target: FloatArray,
    fair: FloatArray,
    notes: list[str],
    asked: tuple[Notion, int | None, Any, float | None],
) -> Plan:
    stops, starts = ordered(split, best, [host_of(single, i) for i in range(single.n_servers)])
    held = split.held.table(single.n_users, single.n_servers).sum(axis=1)
    whole = [dict(zip(instance.users, map(int, tasks.tolist()), strict=True)) for tasks in (held, target, fair)]
    return Plan(
        instance=instance,
        notion=written(asked[0]),
        stops=stops,
        starts=starts,
        held=whole[0],
        target=whole[1],
        fair=whole[2],
        bound=best.bound,
        notes=tuple(notes),
        question={
            "notion": asked[0].name,
            "options": options_of(asked[0]),
            "sharing": asked[2],
            "budget": asked[1],
            "time_limit_s": asked[3],
        },
    )
