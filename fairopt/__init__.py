"""fairopt: exact fair allocations of several resources in a heterogeneous cluster.

>>> import fairopt as fo
>>> instance = fo.Instance([[2, 12], [12, 2]], [[.2, 1], [1, .2]], users=["alice", "bob"], resources=["cpu", "memory"])
>>> fo.solve(instance, "drfh").tasks_per_user
array([10., 10.])
"""

from __future__ import annotations

import sys

# ``python -m fairopt`` puts the current folder first on the path. It is taken off before anything is imported, unless fairopt is there.
_run = sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)].removeprefix("-m") == "fairopt" and not sys.flags.safe_path
if _run and not __file__.startswith((f"{sys.path[0]}/", f"{sys.path[0]}\\")):
    del sys.path[0]

from typing import TYPE_CHECKING  # noqa: E402

from fairopt.doors import door  # noqa: E402

if TYPE_CHECKING:
    from fairopt.allocation import Allocation, Level
    from fairopt.analysis.auditing import Audit, audit
    from fairopt.analysis.bounds.worst_in_box import WorstCaseInBox
    from fairopt.analysis.comparing import compare
    from fairopt.analysis.comparison import Comparison
    from fairopt.analysis.explaining import explain
    from fairopt.analysis.explanation import Explanation
    from fairopt.analysis.frontiers import Frontier, frontier
    from fairopt.analysis.planning import Plan, plan
    from fairopt.analysis.regrets import Regret, regret
    from fairopt.analysis.what_ifs import WhatIf, what_if
    from fairopt.analysis.worst_cases.search import WorstCase, worst_case
    from fairopt.certificate import Certificate
    from fairopt.clusters.exported import Export
    from fairopt.clusters.gavel import import_gavel
    from fairopt.clusters.gavel_trace import trace_gavel
    from fairopt.clusters.google2011 import import_google2011, trace_google2011
    from fairopt.clusters.htcondor.importing import import_htcondor
    from fairopt.clusters.imported import Import
    from fairopt.clusters.openb import import_openb
    from fairopt.clusters.pbs.importing import import_pbs
    from fairopt.clusters.ray import import_ray
    from fairopt.clusters.swf import import_swf, trace_swf
    from fairopt.clusters.yarn.exporting import export_yarn
    from fairopt.clusters.yarn.importing import import_yarn
    from fairopt.errors import CertificateError, FairoptError, InvalidInstance, NoSolution, SolverUnavailable, Unsupported
    from fairopt.files.limits import reading_limit
    from fairopt.formats import load, load_trace, save
    from fairopt.generators import GENERATORS, generate, generate_trace
    from fairopt.histories.job_log import JobLog
    from fairopt.histories.result import History
    from fairopt.histories.running import history
    from fairopt.instance import Instance, Limit, Queue, Quota, Rule, tasks
    from fairopt.kubernetes.importing import import_kubernetes
    from fairopt.kubernetes.kai_export import export_kai
    from fairopt.kubernetes.kueue_export import export_kueue
    from fairopt.kubernetes.quota_export import export_resourcequota
    from fairopt.kubernetes.volcano_export import export_volcano
    from fairopt.kubernetes.yunikorn_export import export_yunikorn
    from fairopt.models import CRITERIA, NOTIONS, Notion, Property, ShareNotion
    from fairopt.program import Program
    from fairopt.reporting.composing import Report, report
    from fairopt.scheduling import BASELINES, schedule
    from fairopt.scheduling.precomputed import edrf_rounds, precomputed_drf
    from fairopt.simulation import Simulation
    from fairopt.simulation.arrival_curves import Arrivals
    from fairopt.simulation.arriving_tasks import arrivals
    from fairopt.simulation.priorities import PriorityExplanation, explain_priority
    from fairopt.simulation.side_by_side import SideBySide, compare_over_time
    from fairopt.simulation.simulating import simulate
    from fairopt.simulation.studying import study_over_time
    from fairopt.simulation.whole_period import period_bound
    from fairopt.slurm.exporting import export_slurm
    from fairopt.slurm.importing import import_slurm
    from fairopt.solvers import PLACEMENTS, SOLVERS
    from fairopt.solving import formulate, solve, to_cvxpy, to_pyomo
    from fairopt.studies.merging import merge_studies
    from fairopt.studies.paper_tables import StudyTable, study_table
    from fairopt.studies.sweep import study
    from fairopt.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "BASELINES",
    "CRITERIA",
    "GENERATORS",
    "NOTIONS",
    "PLACEMENTS",
    "SOLVERS",
    "Allocation",
    "Arrivals",
    "Audit",
    "Certificate",
    "CertificateError",
    "Comparison",
    "Explanation",
    "Export",
    "FairoptError",
    "Frontier",
    "History",
    "Import",
    "Instance",
    "InvalidInstance",
    "JobLog",
    "Level",
    "Limit",
    "NoSolution",
    "Notion",
    "Plan",
    "PriorityExplanation",
    "Program",
    "Property",
    "Queue",
    "Quota",
    "Regret",
    "Report",
    "Rule",
    "ShareNotion",
    "SideBySide",
    "Simulation",
    "SolverUnavailable",
    "StudyTable",
    "Trace",
    "Unsupported",
    "WhatIf",
    "WorstCase",
    "WorstCaseInBox",
    "arrivals",
    "audit",
    "compare",
    "compare_over_time",
    "edrf_rounds",
    "explain",
    "explain_priority",
    "export_kai",
    "export_kueue",
    "export_resourcequota",
    "export_slurm",
    "export_volcano",
    "export_yarn",
    "export_yunikorn",
    "formulate",
    "frontier",
    "generate",
    "generate_trace",
    "history",
    "import_gavel",
    "import_google2011",
    "import_htcondor",
    "import_kubernetes",
    "import_openb",
    "import_pbs",
    "import_ray",
    "import_slurm",
    "import_swf",
    "import_yarn",
    "load",
    "load_trace",
    "merge_studies",
    "period_bound",
    "plan",
    "precomputed_drf",
    "reading_limit",
    "regret",
    "report",
    "save",
    "schedule",
    "simulate",
    "solve",
    "study",
    "study_over_time",
    "study_table",
    "tasks",
    "to_cvxpy",
    "to_pyomo",
    "trace_gavel",
    "trace_google2011",
    "trace_swf",
    "what_if",
    "worst_case",
]

__getattr__ = door(  # a name is imported when it is first used, so that ``import fairopt`` is light
    __name__,
    {
        "allocation": ["Allocation", "Level"],
        "analysis.auditing": ["Audit", "audit"],
        "analysis.comparing": ["compare"],
        "analysis.comparison": ["Comparison"],
        "analysis.explaining": ["explain"],
        "analysis.explanation": ["Explanation"],
        "analysis.frontiers": ["Frontier", "frontier"],
        "analysis.regrets": ["Regret", "regret"],
        "analysis.what_ifs": ["WhatIf", "what_if"],
        "analysis.bounds.worst_in_box": ["WorstCaseInBox"],
        "analysis.worst_cases.search": ["WorstCase", "worst_case"],
        "certificate": ["Certificate"],
        "clusters.exported": ["Export"],
        "clusters.gavel": ["import_gavel"],
        "clusters.gavel_trace": ["trace_gavel"],
        "clusters.google2011": ["import_google2011", "trace_google2011"],
        "clusters.imported": ["Import"],
        "clusters.openb": ["import_openb"],
        "clusters.ray": ["import_ray"],
        "clusters.swf": ["import_swf", "trace_swf"],
        "clusters.yarn.importing": ["import_yarn"],
        "clusters.yarn.exporting": ["export_yarn"],
        "errors": ["CertificateError", "FairoptError", "InvalidInstance", "NoSolution", "SolverUnavailable", "Unsupported"],
        "formats": ["load", "load_trace", "save"],
        "generators": ["GENERATORS", "generate", "generate_trace"],
        "histories.job_log": ["JobLog"],
        "histories.result": ["History"],
        "histories.running": ["history"],
        "instance": ["Instance", "Limit", "Queue", "Quota", "Rule", "tasks"],
        "kubernetes.importing": ["import_kubernetes"],
        "kubernetes.kai_export": ["export_kai"],
        "kubernetes.kueue_export": ["export_kueue"],
        "kubernetes.quota_export": ["export_resourcequota"],
        "kubernetes.volcano_export": ["export_volcano"],
        "kubernetes.yunikorn_export": ["export_yunikorn"],
        "files.limits": ["reading_limit"],
        "models": ["CRITERIA", "NOTIONS", "Notion", "Property", "ShareNotion"],
        "analysis.planning": ["Plan", "plan"],
        "program": ["Program"],
        "reporting.composing": ["Report", "report"],
        "scheduling": ["BASELINES", "schedule"],
        "scheduling.precomputed": ["edrf_rounds", "precomputed_drf"],
        "simulation": ["Simulation"],
        "simulation.arrival_curves": ["Arrivals"],
        "simulation.arriving_tasks": ["arrivals"],
        "simulation.priorities": ["PriorityExplanation", "explain_priority"],
        "simulation.side_by_side": ["SideBySide", "compare_over_time"],
        "simulation.simulating": ["simulate"],
        "simulation.studying": ["study_over_time"],
        "simulation.whole_period": ["period_bound"],
        "clusters.htcondor.importing": ["import_htcondor"],
        "clusters.pbs.importing": ["import_pbs"],
        "slurm.exporting": ["export_slurm"],
        "slurm.importing": ["import_slurm"],
        "solvers": ["PLACEMENTS", "SOLVERS"],
        "solving": ["formulate", "solve", "to_cvxpy", "to_pyomo"],
        "studies.merging": ["merge_studies"],
        "studies.paper_tables": ["StudyTable", "study_table"],
        "studies.sweep": ["study"],
        "trace": ["Trace"],
    },
)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
