"""Rows that a notion of one's own, or a program, has beside the limits of the instance: audits judge within them.

What a user could run alone, or with what another holds, is judged within its rows as if it were alone in them; whether somebody could have
more, within all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairopt.analysis.bundles import Row
from fairopt.instance import Instance
from fairopt.instance.fractions import from_rational, from_rationals
from fairopt.models import Notion, Sharing
from fairopt.program import LimitKind
from fairopt.program.kept_parts import KeptParts
from fairopt.program.queue_limits import limit_rows
from fairopt.program.stated_rows import StatedRow

__all__ = ["rows_about", "rows_of"]


def rows_of(notion: Notion, instance: Instance, sharing: Sharing, *, exactly: bool) -> tuple[StatedRow, ...]:
    """Return the rows of a notion's own for an instance in floats; with ``exactly``, their numbers are fractions."""
    program = notion.formulate(instance, sharing=sharing, integral=False)
    kept = KeptParts.of(instance)
    known = {row.name for row in limit_rows(instance)} | ({kept.row(each).name for each in program.kept_rows} if kept else set())
    limits = program.limits
    rows = [int(j) for j in np.flatnonzero(limits.of_kinds(LimitKind.NAMED, LimitKind.QUEUE)) if program.limit_name(int(j)) not in known]
    if not rows:
        return ()
    exact = notion.exactly.in_fractions(instance.exact, program) if exactly else None
    found = []
    for j in rows:
        span = slice(int(limits.matrix.indptr[j]), int(limits.matrix.indptr[j + 1]))
        pairs = limits.matrix.indices[span]
        values: Any = limits.matrix.data[span] if exact is None else from_rationals(exact.data[span])
        bound: Any = float(limits.bounds[j]) if exact is None else from_rational(exact.bounds[j])
        at = program.pair_users[pairs], program.pair_servers[pairs]
        found.append(StatedRow(program.limit_name(j), program.users, program.servers, *at, values, bound))
    return tuple(found)


def rows_about(instance: Instance, rows: Sequence[StatedRow], user: int) -> list[Row]:
    """Return these rows as limits on the tasks of one user, as if it were alone in them."""
    found = []
    for row in rows:
        mine = row.at_users == user
        if mine.any():
            per_task = np.zeros(instance.n_servers, instance.capacities.dtype)
            per_task[row.at_servers[mine]] = row.values[mine]
            found.append(Row(per_task, row.bound))
    return found
