"""Prices of limits of queues that stop users of a tree without a program.

A limit of a queue for the whole cluster is mostly a limit on shares alone (`fairopt.program.share_limits`), sum of k[n] U[n] <= b. Users
rise at rates R[n], so the limit is full at the time at which it is, and one more unit of b moves that time by

    1 / sum of k[n] R[n]        over the users who rise,

or by less if something else stops them first. That is its price.
"""

from __future__ import annotations

import numpy as np

from fairopt.instance.tolerances import FITS
from fairopt.program import LimitKind, Program, Solution, TreeFilling
from fairopt.program.limits import ACROSS_SERVERS
from fairopt.program.share_limits import ShareLimits, during

__all__ = ["prices_at_events"]


def prices_at_events(program: Program, goal: TreeFilling, solution: Solution) -> list[dict[str, float]]:
    """Return the prices of limits of queues at each stage that a limit on shares ends, by name; nothing for the other stages."""
    per_level = program.utilities
    most = program.per_user(program.largest() * per_level)
    found: list[dict[str, float]] = [{} for _ in solution.stages]
    if all(stage.prices is not None for stage in solution.stages):
        return found
    if len(solution.parts) != len(goal.parts) or len(solution.extra_bounds) not in (0, len(goal.parts)):
        return found
    shares = goal.nothing()
    for number, part in enumerate(goal.parts):
        of_part = during(program, part, solution.bounds_of_part(number))
        on_shares = ShareLimits.of(of_part)
        names = _names(program, of_part, on_shares)
        way = goal.course(part, shares, program.per_user(of_part.largest() * per_level) > 0, most, on_shares)
        for prices, stage in zip(found, solution.stages, strict=True):
            if stage.part != number:
                continue
            if stage.prices is None and stage.users.size:
                full = on_shares.left(way.at(stage.value).users) <= FITS * on_shares.bounds
                speed = on_shares.uses @ way.rate
                stopped = np.flatnonzero(full & (speed > 0))
                prices |= {names[row]: float(1.0 / speed[row]) for row in stopped if names[row]}
            way.advance(stage.value)
            way.stop(stage.users)
        shares = way.shares
    return found


def _names(program: Program, of_part: Program, on_shares: ShareLimits) -> list[str]:
    """Return the name of each limit on shares across servers, "" for the others and for guarantees."""
    limits, rows = of_part.limits, np.flatnonzero(on_shares.rows)
    named = limits.of_kinds(LimitKind.NAMED, *ACROSS_SERVERS)[rows] & (rows < len(program.limits))
    return [program.limit_name(row) if name else "" for row, name in zip(rows.tolist(), named.tolist(), strict=True)]
