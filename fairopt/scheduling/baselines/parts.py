"""Parts of a program: some of its columns, within other bounds, solved exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.tolerances import CERTIFIED
from fairopt.program import Feature, Goal, LimitKind, Limits
from fairopt.program.queue_limits import limit_rows
from fairopt.scheduling.baselines.baseline import Case
from fairopt.solvers.backend import Deadline
from fairopt.solving.policy import find_by_reduction

__all__ = ["goal_of", "rows_of_one_user", "solved_part"]

_OWN = (LimitKind.TASKS, LimitKind.PARALLELISM, LimitKind.SLICE, LimitKind.WITH_PAST)


def goal_of(case: Case, name: str) -> Goal:
    """Return the goal of a case over a flat list of users.

    Raises
    ------
    Unsupported
        It is a choice among alternatives, or some users come last: neither can be asked of some of the columns.
    """
    notion, goal = case.notion, case.program.goal
    if goal.feature is Feature.DISJUNCTIVE:
        raise Unsupported(f'"{name}" solves parts of a program, and "{notion.name}" chooses among alternatives here; leave prefer out')
    if not goal.is_filling:
        return goal
    last = getattr(notion, "last", None)
    if last is not None and last(case.instance).any():
        raise Unsupported(f'"{name}" divides among users of one rank, and resource_weights= or only= let some come last; leave them out')
    flat: Goal = notion.goal(case.weights)  # type: ignore[attr-defined]  # only shares have a goal that is filled
    return flat


def rows_of_one_user(case: Case) -> BoolArray:
    """Return which limits of the program are a single user's own: its tasks, its parallelism, its slice, a named limit of each user.

    A named limit that counts the tasks of one user alone may still be a resource, such as the link that only one flow takes.
    """
    limits = case.program.limits
    named = {row.name for row in limit_rows(case.instance) if row.selection is not None and row.selection.limit.each == "user"}
    of_limits = np.flatnonzero(limits.of_kinds(LimitKind.LIMIT))
    found: BoolArray = limits.of_kinds(*_OWN)
    found[of_limits] = [case.program.queue_limits[key] in named for key in limits.keys[of_limits, 0]]
    return found


def solved_part(case: Case, columns: BoolArray, bounds: FloatArray, goal: Goal, name: str) -> FloatArray:
    """Return the exact answer over some of the columns, (pairs,), 0 elsewhere, within these bounds of all limits.

    Raises
    ------
    FairoptError
        As `fairopt.solve`.
    """
    program = case.program
    x = np.zeros(program.n_pairs)
    if not columns.any():
        return x
    limits = program.limits
    matrix = sp.csr_array(limits.matrix[:, columns])
    some = np.diff(matrix.indptr) > 0
    part = replace(
        program,
        pair_users=program.pair_users[columns],
        pair_servers=program.pair_servers[columns],
        utilities=program.utilities[columns],
        limits=Limits(matrix, bounds, limits.kinds, limits.keys).select(some),
        goal=goal,
        source=None,
    )
    found, engines = find_by_reduction(part, None, CERTIFIED, Deadline(None))
    found.certificate.require(CERTIFIED, case.notion.name, found.engine or engines[0].name, name)
    x[columns] = found.solution.x
    return x
