"""Pictures, one a file, as matplotlib figures without pyplot: nothing global is touched, and nothing is shown by itself."""

from __future__ import annotations

from fairopt.plots.allocation import plot_allocation
from fairopt.plots.comparison import plot_comparison
from fairopt.plots.frontier import plot_frontier
from fairopt.plots.style import figure_format, save_figure
from fairopt.plots.trajectory import plot_trajectory

__all__ = ["figure_format", "plot_allocation", "plot_comparison", "plot_frontier", "plot_trajectory", "save_figure"]
