"""What commercial solvers say of their licences: Gurobi prints it on stdout, and CVXPY keeps the reason of a refusal to itself."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache
from typing import Any

from fairopt.processes.streams import unheard

__all__ = ["refusal", "without_licence_text"]


@cache
def without_licence_text() -> None:
    """Have Gurobi print it where nobody hears it; call this before any package makes a model of Gurobi."""
    with unheard(), contextlib.suppress(Exception):  # what is wrong with the licence, the solve says
        import gurobipy

        gurobipy.Model().dispose()


def refusal(solver: str, columns: int, rows: int) -> str:
    """Return why a solver refuses every program of this size, in its own words; "" where it does not, or is not known here.

    >>> refusal("CLARABEL", 10**6, 10**6)
    ''
    """
    probe = _PROBES.get(solver)
    if probe is None:
        return ""
    try:
        with unheard():
            probe(columns, rows)
    except Exception as error:  # of the solver's own
        return str(error).strip().rstrip(".")
    return ""


def _of_gurobi(columns: int, rows: int) -> None:
    import gurobipy

    model: Any = gurobipy.Model()
    model.setParam("OutputFlag", 0)
    x = model.addMVar(columns)
    model.addConstrs(x[j % columns] <= 1 for j in range(rows))
    model.optimize()


def _of_cplex(columns: int, rows: int) -> None:
    import cplex

    model: Any = cplex.Cplex()
    for stream in (model.set_log_stream, model.set_error_stream, model.set_warning_stream, model.set_results_stream):
        stream(None)
    model.variables.add(ub=[1.0] * columns)
    model.linear_constraints.add(rhs=[1.0] * rows, senses="L" * rows)
    model.solve()


_PROBES: dict[str, Callable[[int, int], None]] = {"GUROBI": _of_gurobi, "CPLEX": _of_cplex}
