"""A study as a grid: what it asks, how one cell of it is computed, on which workers, and the file that keeps the rows."""
