"""Pictures as matplotlib figures, one kind per module, without pyplot: no global state changes, and no window opens."""

from __future__ import annotations

from fairopt.processes.surroundings import without_settings

with without_settings():
    import matplotlib  # noqa: F401  # first, so that a matplotlibrc in the current folder counts for nothing

from fairopt.plots.allocation import plot_allocation
from fairopt.plots.arrival_curves import plot_arrivals
from fairopt.plots.comparison import plot_comparison
from fairopt.plots.completion_ratios import plot_completion_ratios
from fairopt.plots.completion_times import plot_completion_times
from fairopt.plots.convergence import plot_convergence
from fairopt.plots.envy import plot_envy
from fairopt.plots.frontiers import plot_frontier
from fairopt.plots.histories import plot_history
from fairopt.plots.polytope import plot_polytope
from fairopt.plots.queues import plot_queues
from fairopt.plots.row_utilization import plot_row_utilization
from fairopt.plots.shares import plot_shares
from fairopt.plots.side_by_side import plot_side_by_side
from fairopt.plots.side_by_side_users import plot_side_by_side_users
from fairopt.plots.simulation import plot_simulation
from fairopt.plots.studies import plot_study
from fairopt.plots.style import figure_format, save_figure
from fairopt.plots.trajectory import plot_trajectory
from fairopt.plots.utilization import plot_utilization
from fairopt.plots.utilization_over_time import plot_utilization_over_time
from fairopt.plots.what_ifs import plot_what_if

__all__ = [
    "figure_format",
    "plot_allocation",
    "plot_arrivals",
    "plot_comparison",
    "plot_completion_ratios",
    "plot_completion_times",
    "plot_convergence",
    "plot_envy",
    "plot_frontier",
    "plot_history",
    "plot_polytope",
    "plot_queues",
    "plot_row_utilization",
    "plot_shares",
    "plot_side_by_side",
    "plot_side_by_side_users",
    "plot_simulation",
    "plot_study",
    "plot_trajectory",
    "plot_utilization",
    "plot_utilization_over_time",
    "plot_what_if",
    "save_figure",
]
