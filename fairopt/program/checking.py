"""What a program says of itself, checked: a notion of one's own, or a program changed by hand, may have it wrong.

Engines and certificates rely on coefficients, bounds and utilities >= 0: reducing x then keeps it feasible. A row with a negative
coefficient would be solved, and certified, as another one. Rules (`fairopt.Program.with_rule`) may have any sign, and say so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray
from fairopt.program.all_pairs import AllPairs
from fairopt.program.limits import LimitKind
from fairopt.program.program import Program
from fairopt.wording import named

__all__ = ["check_program"]


def check_program(program: Program) -> None:
    """Refuse a program whose arrays do not fit together, or that has a negative or infinite number where none may be.

    Raises
    ------
    InvalidInstance
        It names the limit, the user and the server.
    """
    if isinstance(program, AllPairs):  # made of an instance, whose tables are checked, and of worths > 0
        return
    _check_shapes(program)
    limits, found = program.limits, f'the program of "{program.name}"'

    def pair(p: int) -> str:
        return f"{named(program.users[program.pair_users[p]])} on {named(program.servers[program.pair_servers[p]])}"

    if (p := _first_wrong(program.utilities)) is not None:
        raise InvalidInstance(f"{found}: the utility of a task of {pair(p)} is {program.utilities[p]:g}; utilities must be finite and >= 0")
    ruled = limits.kinds == LimitKind.RULE
    if (j := _first_wrong(np.where(ruled, abs(limits.bounds), limits.bounds))) is not None:
        raise InvalidInstance(
            f"{found}: the bound of the limit {named(program.limit_name(j))} is {limits.bounds[j]:g}; bounds must be finite and >= 0"
        )
    of_rules = np.repeat(ruled, np.diff(limits.matrix.indptr))
    if (k := _first_wrong(np.where(of_rules, abs(limits.matrix.data), limits.matrix.data))) is not None:
        j = int(np.searchsorted(limits.matrix.indptr, k, side="right")) - 1
        raise InvalidInstance(
            f"{found}: the limit {named(program.limit_name(j))} has the coefficient {limits.matrix.data[k]:g} of "
            f"{pair(limits.matrix.indices[k])}; coefficients of limits must be finite and >= 0, so that fewer tasks keep every limit; "
            "state a condition of any sign by program.with_rule"
        )


def _first_wrong(values: FloatArray) -> int | None:
    """Return the position of the first number that is negative, infinite or nan."""
    wrong = np.flatnonzero(~((values >= 0) & (values < np.inf)))
    return int(wrong[0]) if wrong.size else None


def _check_shapes(program: Program) -> None:
    limits, pairs = program.limits, program.n_pairs
    rows = limits.matrix.shape[0]
    wanted: list[tuple[str, Any, int]] = [
        ("pair_servers", program.pair_servers, pairs),
        ("utilities", program.utilities, pairs),
        ("bounds of limits", limits.bounds, rows),
        ("kinds of limits", limits.kinds, rows),
        ("keys of limits", limits.keys, rows),
    ]
    for what, array, size in wanted:
        if len(array) != size:
            raise InvalidInstance(f'the program of "{program.name}" has {len(array)} {what}, and needs {size}')
    if limits.matrix.shape[1] != pairs:
        raise InvalidInstance(f'the limits of "{program.name}" have {limits.matrix.shape[1]} columns, and its pairs are {pairs}')
    for what, places, names in (("users", program.pair_users, program.users), ("servers", program.pair_servers, program.servers)):
        if pairs and not (places.min() >= 0 and places.max() < len(names)):
            raise InvalidInstance(f'the pairs of "{program.name}" name {what} from {places.min()} to {places.max()} of {len(names)}')
    place = program.pair_users * max(len(program.servers), 1) + program.pair_servers
    if (np.diff(place) <= 0).any():
        raise InvalidInstance(f'the pairs of "{program.name}" are not sorted by user, then by server, each once; sort them')
