"""Progressive filling of servers with whole tasks, of one instance or over time, and its approximations."""
