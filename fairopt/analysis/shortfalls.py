"""Relative shortfalls, of which the numbers of a regret are made: in floats up to the tolerance of a certificate, of fractions exactly."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.measures import violations
from fairopt.errors import Unsupported
from fairopt.instance import BoolArray
from fairopt.instance.fractions import ExactArray, from_rational, from_rationals, objects, rationals
from fairopt.instance.tolerances import CERTIFIED
from fairopt.models import Notion
from fairopt.program import Equalize, Leximin, Nested, Program, Separate, Total, TreeFilling
from fairopt.program.exact import ExactProgram

__all__ = ["in_fractions", "of_sorted", "shortfall", "tasks_in_fractions"]


def shortfall(best: Any, own: Any) -> Any:
    """Return (best - own) / max(best, own), and 0 if they are equal; floats up to the tolerance of a certificate.

    >>> shortfall(4.0, 3.0), shortfall(3.0, 4.0), shortfall(0.0, 0.0)
    (0.25, -0.25, 0.0)
    >>> shortfall(Fraction(1, 3), Fraction(1, 4)), shortfall(Fraction(0), Fraction(0))
    (Fraction(1, 4), Fraction(0, 1))
    """
    larger = max(best, own)
    if isinstance(larger, Fraction):
        return (best - own) / larger if larger else Fraction(0)
    return 0.0 if abs(best - own) <= CERTIFIED * larger else float((best - own) / larger)


def of_sorted(best: Sequence[Any], own: Sequence[Any]) -> tuple[Any, Any, int | None, Any]:
    """Return level, leximin, position and largest of two lists of shares, of which one entry at least is there.

    >>> of_sorted([3.0, 1.0], [1.0, 2.0])
    (0.0, 0.3333333333333333, 2, 0.3333333333333333)
    """
    shortfalls = [shortfall(a, b) for a, b in zip(sorted(best), sorted(own), strict=True)]
    largest = max(*shortfalls, 0 * shortfalls[0])
    k = next((k for k, value in enumerate(shortfalls) if value), None)
    return shortfalls[0], shortfalls[k or 0], None if k is None else k + 1, largest


# In fractions --------------------------------------------------------------------------------------------------------------------


def in_fractions(notion: Notion, program: Program, allocation: Allocation, exact: Allocation) -> dict[str, Fraction] | None:
    """Return the numbers of a regret that are rational: total, user, and by the goal level, leximin and largest, or goal.

    None where an allocation is not in fractions: it needs ``exact``, or whole tasks that exceed no limit by anything.
    """
    own, best = tasks_in_fractions(allocation), tasks_in_fractions(exact)
    if own is None or best is None:
        return None
    try:
        formulated = notion.in_fractions(allocation.instance.exact, program)
    except Unsupported:
        return None
    users, servers = program.pair_users, program.pair_servers
    able = np.array([value != 0 for value in formulated.per_user(objects(formulated.largest()))], bool)
    best, own = best[users, servers], own[users, servers]
    speeds = rationals(allocation.instance.exact.speeds[users, servers])
    found = {"total": shortfall(*(from_rational((speeds * rationals(each)).sum()) for each in (best, own)))}
    worth = [rationals(each) * formulated.utilities for each in (best, own)]
    shares = [[from_rational(value) for value in formulated.per_user(each)] for each in worth]
    found["user"] = max((1 - mine / most for most, mine in zip(*shares, strict=True) if most), default=Fraction(0))
    lost: dict[str, Fraction] = _lost(formulated.goal, formulated, worth, able)
    return found | lost


@singledispatch
def _lost(goal: Any, program: ExactProgram, worth: list[ExactArray], able: BoolArray) -> dict[str, Fraction]:
    """Return the regrets of a goal in Fractions; ``worth`` are the utilities of the pairs, (pairs,), of the optimum and of the other."""
    return {}


@_lost.register
def _(goal: Total, program: ExactProgram, worth: list[ExactArray], able: BoolArray) -> dict[str, Fraction]:
    weights: Any = goal.weights[able]
    return {"goal": shortfall(*(from_rationals(weights * program.per_user(each)[able]).sum() for each in worth))}


@_lost.register
def _(goal: TreeFilling | Nested, program: ExactProgram, worth: list[ExactArray], able: BoolArray) -> dict[str, Fraction]:
    pairs = [from_rationals(program.per_user(each)[able]) for each in worth]
    short = [shortfall(*pair) for pair in zip(*pairs, strict=True)]
    return {"level": shortfall(min(pairs[0]), min(pairs[1])), "largest": max(*short, Fraction(0))} if short else {}


@_lost.register
def _(goal: Separate, program: ExactProgram, worth: list[ExactArray], able: BoolArray) -> dict[str, Fraction]:
    users, servers = program.program.pair_users, program.program.pair_servers
    by_level = [from_rationals(each / goal.goal.weights[users]) for each in worth]
    groups = [np.flatnonzero(servers == i) for i in np.unique(servers)]
    return _of_lists([[each[group] for each in by_level] for group in groups])


@_lost.register
def _(goal: Leximin | Equalize, program: ExactProgram, worth: list[ExactArray], able: BoolArray) -> dict[str, Fraction]:
    weights: Any = goal.weights[program.program.pair_users]
    return _of_lists([[from_rationals(program.per_user(each / weights)[able]) for each in worth]] if able.any() else [])


def _of_lists(lists: list[list[ExactArray]]) -> dict[str, Fraction]:
    """Return the largest regrets of sorted lists."""
    compared: list[tuple[Any, ...]] = [of_sorted(*(each.tolist() for each in pair)) for pair in lists]
    names = ("level", "leximin", "largest")
    return {name: max((row[k] for row in compared), default=Fraction(0)) for name, k in zip(names, (0, 1, 3), strict=True)}


def tasks_in_fractions(allocation: Allocation) -> ExactArray | None:
    """Return tasks, (users, servers), as Fractions; None if they are not known exactly.

    They are known for an allocation in fractions whose ``radius`` is 0, and for whole tasks that keep every limit in fractions.
    """
    if allocation.exact is not None:
        return None if allocation.exact.radius else allocation.exact.tasks
    if not allocation.certificate.whole_tasks:
        return None
    tasks = objects([Fraction(int(value)) for value in np.round(allocation.tasks).ravel()], allocation.tasks.shape)
    return None if violations(allocation.instance.exact, tasks, allocation.sharing, 0) else tasks
