"""From what runs to what is fair: which tasks stop, which start, and in which order."""

from __future__ import annotations

from fairopt.analysis.planning.held import HeldRow, read_held
from fairopt.analysis.planning.planning import plan
from fairopt.analysis.planning.result import Action, Plan

__all__ = ["Action", "HeldRow", "Plan", "plan", "read_held"]
