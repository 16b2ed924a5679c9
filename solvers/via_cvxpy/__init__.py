"""CVXPY: every convex goal, and programs as problems to extend and to solve."""
