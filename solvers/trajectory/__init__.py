"""Proportional fairness as the end of a path that is recorded."""
