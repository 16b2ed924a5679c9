"""``--solver-option NAME=VALUE``: options of the solver that ``--solver`` names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

__all__ = ["SolverOptions", "read_solver_options"]

SolverOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--solver-option",
        metavar="NAME=VALUE",
        help="An option of the solver that --solver names, by its own name for it: threads=4 of highs, Threads=4 of cvxpy:GUROBI. Can be "
        "repeated.",
    ),
]
_WORDS = {"true": True, "false": False}


def read_solver_options(texts: Sequence[str] | None) -> dict[str, object]:
    """Return options by name. A value is a whole number, another number, true or false, or text.

    Raises
    ------
    typer.BadParameter
        A text is no NAME=VALUE, or an option has two values.

    >>> read_solver_options(["threads=4", "mip_rel_gap=1e-3", "presolve=off", "limits/time=20", "verbose=false"])
    {'threads': 4, 'mip_rel_gap': 0.001, 'presolve': 'off', 'limits/time': 20, 'verbose': False}
    """
    found: dict[str, object] = {}
    for text in texts or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise typer.BadParameter(f'"{text}" is no option of a solver; write NAME=VALUE, as in threads=4', param_hint="--solver-option")
        if name in found and found[name] != _read(value):
            raise typer.BadParameter(f"{name} is given twice, {found[name]} and {value}; give it once", param_hint="--solver-option")
        found[name] = _read(value)
    return found


def _read(value: str) -> object:
    for number in (int, float):
        try:
            return number(value)
        except ValueError:
            continue
    return _WORDS.get(value.lower(), value)
