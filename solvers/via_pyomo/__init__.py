"""Pyomo: programs as models to extend, to solve and to write."""
