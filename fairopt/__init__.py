"""fairopt: exact fair allocations of several resources in a heterogeneous cluster.

>>> import fairopt as fo
>>> instance = fo.Instance([[2, 12], [12, 2]], [[.2, 1], [1, .2]], users=["alice", "bob"], resources=["cpu", "memory"])
>>> fo.solve(instance, "drfh").tasks_per_user
array([10., 10.])
"""

from __future__ import annotations

from fairopt.allocation import Allocation, Level
from fairopt.audit import Audit, audit
from fairopt.certificate import Certificate
from fairopt.compare import compare
from fairopt.comparison import Comparison
from fairopt.errors import (
    CertificateError,
    FairoptError,
    InvalidInstance,
    NoSolution,
    SolverUnavailable,
    Unsupported,
)
from fairopt.explain import explain
from fairopt.explanation import Explanation
from fairopt.formats import load, load_trace, save
from fairopt.frontier import Frontier, frontier
from fairopt.generators import GENERATORS, generate
from fairopt.imports import (
    Import,
    import_gavel,
    import_google2011,
    import_kubernetes,
    import_openb,
    import_slurm,
    import_swf,
    import_yarn,
    trace_google2011,
    trace_swf,
)
from fairopt.instance import Instance
from fairopt.models import CRITERIA, NOTIONS, Notion, Property, ShareNotion
from fairopt.precomputed import edrf_rounds, precomputed_drf
from fairopt.program import Program
from fairopt.regret import Regret, regret
from fairopt.report import Report, report
from fairopt.schedule import schedule
from fairopt.simulate import simulate
from fairopt.simulation import Simulation
from fairopt.solve import formulate, solve, to_pyomo
from fairopt.solvers import PLACEMENTS, SOLVERS
from fairopt.study import study
from fairopt.trace import Trace
from fairopt.worst_case import WorstCase, worst_case

__version__ = "0.1.0"

__all__ = [
    "CRITERIA",
    "GENERATORS",
    "NOTIONS",
    "PLACEMENTS",
    "SOLVERS",
    "Allocation",
    "Audit",
    "Certificate",
    "CertificateError",
    "Comparison",
    "Explanation",
    "FairoptError",
    "Frontier",
    "Import",
    "Instance",
    "InvalidInstance",
    "Level",
    "NoSolution",
    "Notion",
    "Program",
    "Property",
    "Regret",
    "Report",
    "ShareNotion",
    "Simulation",
    "SolverUnavailable",
    "Trace",
    "Unsupported",
    "WorstCase",
    "audit",
    "compare",
    "edrf_rounds",
    "explain",
    "formulate",
    "frontier",
    "generate",
    "import_gavel",
    "import_google2011",
    "import_kubernetes",
    "import_openb",
    "import_slurm",
    "import_swf",
    "import_yarn",
    "load",
    "load_trace",
    "precomputed_drf",
    "regret",
    "report",
    "save",
    "schedule",
    "simulate",
    "solve",
    "study",
    "to_pyomo",
    "trace_google2011",
    "trace_swf",
    "worst_case",
]
