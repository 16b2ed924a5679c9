"""HiGHS: leximins level by level, totals, whole tasks, Pareto frontiers."""
