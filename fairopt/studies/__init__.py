"""Studies: the grid of a study, the computation of one cell, the workers, and the file that keeps the rows."""
