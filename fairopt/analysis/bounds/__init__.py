"""How bad a heuristic can be at most: bounds that hold for every instance of a box of data on a given topology."""
