"""What is shown of each result: its tables and sentences (`fairopt.show`), one module for each kind of result.

A function ``..._blocks`` yields all that the command line prints; a notebook shows the same. Pages choose tables from these modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairopt.doors import door

if TYPE_CHECKING:
    from fairopt.reporting.tables.allocation import Choice, allocation_blocks
    from fairopt.reporting.tables.arriving import arrival_blocks
    from fairopt.reporting.tables.audits import audit_blocks
    from fairopt.reporting.tables.comparison import comparison_blocks
    from fairopt.reporting.tables.explanation import explanation_blocks
    from fairopt.reporting.tables.exports import export_blocks
    from fairopt.reporting.tables.frontiers import frontier_blocks
    from fairopt.reporting.tables.histories import history_blocks
    from fairopt.reporting.tables.imports import import_blocks
    from fairopt.reporting.tables.plans import plan_blocks
    from fairopt.reporting.tables.priorities import priority_blocks
    from fairopt.reporting.tables.side_by_side import side_by_side_blocks
    from fairopt.reporting.tables.simulated_studies import simulated_study_blocks
    from fairopt.reporting.tables.simulation import simulation_blocks
    from fairopt.reporting.tables.studies import study_blocks
    from fairopt.reporting.tables.what_ifs import what_if_blocks
    from fairopt.reporting.tables.worst_cases import worst_case_blocks, worst_in_box_blocks

__all__ = [
    "Choice",
    "allocation_blocks",
    "arrival_blocks",
    "audit_blocks",
    "comparison_blocks",
    "explanation_blocks",
    "export_blocks",
    "frontier_blocks",
    "history_blocks",
    "import_blocks",
    "plan_blocks",
    "priority_blocks",
    "side_by_side_blocks",
    "simulated_study_blocks",
    "simulation_blocks",
    "study_blocks",
    "what_if_blocks",
    "worst_case_blocks",
    "worst_in_box_blocks",
]

__getattr__ = door(  # help, completion and lists print none of them
    __name__,
    {
        "allocation": ["Choice", "allocation_blocks"],
        "arriving": ["arrival_blocks"],
        "audits": ["audit_blocks"],
        "comparison": ["comparison_blocks"],
        "explanation": ["explanation_blocks"],
        "exports": ["export_blocks"],
        "frontiers": ["frontier_blocks"],
        "histories": ["history_blocks"],
        "imports": ["import_blocks"],
        "plans": ["plan_blocks"],
        "priorities": ["priority_blocks"],
        "side_by_side": ["side_by_side_blocks"],
        "simulated_studies": ["simulated_study_blocks"],
        "simulation": ["simulation_blocks"],
        "studies": ["study_blocks"],
        "what_ifs": ["what_if_blocks"],
        "worst_cases": ["worst_case_blocks", "worst_in_box_blocks"],
    },
)
