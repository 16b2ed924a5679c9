"""Alpha-fair goals and trade-offs with the total: the problem in scaled columns, the paths to its solution, and the polish of an answer."""
