"""The solvers inside CVXPY: which options make their answers good enough for a certificate, and how each is told of a time limit.

What a solver leaves open, the certificate counts. So each is asked for the smallest tolerances that it reaches. Options that a user gives
come last: they replace these. Some solvers take their options in one argument (``scip_params``), whose entries are given here as any
others. Some ignore an option that they do not know, so their options are compared with a list.

>>> arguments("SCIP", {"limits/gap": 0.1}, 5.0)["scip_params"]["limits/time"]
5.0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fairopt.errors import SolverUnavailable, Unsupported
from fairopt.processes.streams import unheard, unwarned
from fairopt.processes.surroundings import refuse_settings
from fairopt.solvers.highs_options import check_options, without_banner
from fairopt.solvers.licence_texts import without_licence_text
from fairopt.wording import did_you_mean

__all__ = ["Inside", "arguments", "imported", "inside"]


@dataclass(frozen=True, slots=True)
class Inside:
    """How CVXPY's interface to one solver is used.

    Attributes
    ----------
    tight : mapping
        Options for answers that a certificate accepts.
    time_limit : str or None
        The option of a time limit in seconds.
    holder : str or None
        The argument that takes the options, where it is one.
    package : str
        What to install, "" where CVXPY brings it.
    prints : bool
        May it print on stdout when it is run?
    reads_files : bool
        May it read settings from a file of the current folder?
    ignores : bool
        Does it ignore options that it does not know?
    whole : mapping
        Options of programs of whole numbers: no gap is left.
    in_milliseconds : bool
        Is the time limit a whole number of milliseconds?
    """

    tight: Mapping[str, object] = field(default_factory=dict)
    time_limit: str | None = None
    holder: str | None = None
    package: str = ""
    prints: bool = False
    reads_files: bool = False
    ignores: bool = False
    whole: Mapping[str, object] = field(default_factory=dict)
    in_milliseconds: bool = False


_SIMPLEX = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_UNKNOWN = Inside(prints=True, reads_files=True)
_INSIDE = {
    "CLARABEL": Inside({"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12, "tol_ktratio": 1e-10}, "time_limit"),
    "SCS": Inside({"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 200_000}, "time_limit_secs"),
    "OSQP": Inside({"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iter": 200_000}, "time_limit", prints=True),
    "HIGHS": Inside(
        _SIMPLEX, "time_limit", package="highspy", whole={"mip_rel_gap": 0.0, "mip_abs_gap": 0.0, "mip_feasibility_tolerance": 1e-9}
    ),
    "SCIPY": Inside(_SIMPLEX, "time_limit", holder="scipy_options", ignores=True, whole={"mip_rel_gap": 0.0}),
    "ECOS": Inside({"abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11}, package="ecos"),
    "ECOS_BB": Inside({"abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11}, package="ecos"),
    "PIQP": Inside({"eps_abs": 1e-10, "eps_rel": 1e-10, "eps_duality_gap_abs": 1e-10, "eps_duality_gap_rel": 1e-10}, package="piqp"),
    "CBC": Inside(
        {}, "maximumSeconds", package="cylp", prints=True, reads_files=True, whole={"allowableGap": 0.0, "allowableFractionGap": 0.0}
    ),
    "SCIP": Inside(
        {"numerics/feastol": 1e-9, "numerics/dualfeastol": 1e-9},
        "limits/time",
        holder="scip_params",
        package="pyscipopt",
        whole={"limits/gap": 0.0, "limits/absgap": 0.0},
        reads_files=True,
    ),
    "GUROBI": Inside(
        {"FeasibilityTol": 1e-9, "OptimalityTol": 1e-9},
        "TimeLimit",
        package="gurobipy",
        reads_files=True,
        whole={"MIPGap": 0.0, "MIPGapAbs": 0.0, "IntFeasTol": 1e-9},
    ),
    "CPLEX": Inside(
        {"simplex.tolerances.feasibility": 1e-9, "simplex.tolerances.optimality": 1e-9},
        "timelimit",
        holder="cplex_params",
        package="cplex",
        whole={"mip.tolerances.mipgap": 0.0, "mip.tolerances.absmipgap": 0.0, "mip.tolerances.integrality": 1e-9},
        reads_files=True,
    ),
    "COPT": Inside(
        {"FeasTol": 1e-9, "DualTol": 1e-9},
        "TimeLimit",
        package="coptpy",
        prints=True,
        reads_files=True,
        whole={"RelGap": 0.0, "AbsGap": 0.0, "IntTol": 1e-9},
    ),
    "XPRESS": Inside(
        {"feastol": 1e-9, "optimalitytol": 1e-9},
        "timelimit",
        package="xpress",
        reads_files=True,
        ignores=True,
        whole={"miprelstop": 0.0, "mipabsstop": 0.0, "miptol": 1e-9},
    ),
    "GLOP": Inside({}, "time_limit_sec", package="ortools", ignores=True),
    "PDLP": Inside({}, "time_limit_sec", package="ortools", ignores=True),
    "CVXOPT": Inside(package="cvxopt", prints=True, ignores=True),
    "GLPK": Inside(package="cvxopt", prints=True, ignores=True),
    "GLPK_MI": Inside(
        {}, "tm_lim", package="cvxopt", prints=True, ignores=True, whole={"mip_gap": 0.0, "tol_int": 1e-9}, in_milliseconds=True
    ),
    "MOSEK": Inside({}, "MSK_DPAR_OPTIMIZER_MAX_TIME", holder="mosek_params", package="mosek", prints=True, reads_files=True),
    "DAQP": Inside({"primal_tol": 1e-10, "dual_tol": 1e-10}, package="daqp", prints=True),
}
_OF_ORTOOLS = ("time_limit_sec", "parameters_proto")
_OF_SCIPY = (
    *("method", "disp", "maxiter", "presolve", "time_limit", "dual_feasibility_tolerance", "primal_feasibility_tolerance"),
    *("simplex_dual_edge_weight_strategy", "ipm_optimality_tolerance", "mip_rel_gap", "node_limit"),
)
_OF_CVXOPT = ("max_iters", "abstol", "reltol", "feastol", "refinement", "kktsolver")
_OF_GLPK = ("glpk", "max_iters")  # the first a mapping of GLPK's own
_OF_GLPK_MI = ("max_iters", "msg_lev", "presolve", "tm_lim", "mip_gap", "tol_int", "tol_obj", "br_tech", "bt_tech", "pp_tech")
_OF_CVXPY = ("highs_options", "write_model_file")  # of its interface to HiGHS
_OF_XPRESS = ("write_mps", "save_iis")  # of CVXPY's own


def inside(solver: str) -> Inside:
    """Return how a solver is used; of one that is not known here, that it may print and read files."""
    return _INSIDE.get(solver, _UNKNOWN)


def imported(solver: str, options: Mapping[str, object]) -> Any:
    """Return CVXPY, with this solver, which takes these options.

    Raises
    ------
    SolverUnavailable
        CVXPY has no such solver here.
    Unsupported
        The solver may read a file of the current folder, or would ignore an option.
    """
    its = inside(solver)
    if its.reads_files:
        refuse_settings(f'the solver "{solver}" of CVXPY')
    with unwarned(), unheard():
        import cvxpy

        installed: list[str] = cvxpy.installed_solvers()  # type: ignore[no-untyped-call]
    if solver not in installed:
        how = f"install it with: pip install {its.package}; or use" if its.package else "there are"
        raise SolverUnavailable(f'CVXPY has no solver "{solver}" here{did_you_mean(solver, installed)}; {how} {", ".join(installed)}')
    if solver == "HIGHS":
        without_banner()
        check_options({name: value for name, value in options.items() if name not in _OF_CVXPY})
    if solver == "GUROBI":
        without_licence_text()
    if its.ignores:
        taken = _taken(solver)
        for name in options:
            if name not in taken:
                raise Unsupported(f'"{solver}" takes no option "{name}"{did_you_mean(name, taken)}; leave it out')
    return cvxpy


@cache
def _taken(solver: str) -> tuple[str, ...]:
    """Return the options that a solver takes which ignores others."""
    if solver == "XPRESS":
        import xpress

        return (*_OF_XPRESS, *vars(xpress.controls))
    return {"SCIPY": _OF_SCIPY, "CVXOPT": _OF_CVXOPT, "GLPK": _OF_GLPK, "GLPK_MI": _OF_GLPK_MI}.get(solver, _OF_ORTOOLS)


def arguments(solver: str, options: Mapping[str, object], seconds: float, *, tight: bool = True, whole: bool = False) -> dict[str, Any]:
    """Return the arguments of ``problem.solve`` for a solver.

    Parameters
    ----------
    options : mapping
        What the user gave; this replaces what is set here.
    seconds : float
        That are left, inf without a limit.
    tight : bool
        With our tolerances; else with the solver's own.
    whole : bool
        For a program of whole numbers.
    """
    its = inside(solver)
    chosen: dict[str, object] = (dict(its.tight) if tight else {}) | (dict(its.whole) if whole else {})
    if seconds < float("inf") and its.time_limit is not None:
        chosen[its.time_limit] = max(int(1000 * seconds), 1) if its.in_milliseconds else seconds
    if its.holder is None:
        return chosen | dict(options)
    own = options.get(its.holder, {})
    rest = {name: value for name, value in options.items() if name != its.holder}
    return {its.holder: chosen | rest | dict(own if isinstance(own, Mapping) else {})}
