"""Progressive filling of servers with whole tasks, for one instance or over time, and precomputed DRF, which approximates it."""
