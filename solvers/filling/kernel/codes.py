"""Measures, rules, kinds of accounts and events as plain numbers, which plain Python compares faster than members of enums."""

from __future__ import annotations

from fairopt.program.events import Change
from fairopt.program.filling import Kind, Measure, Rule

__all__ = [
    *("OWN", "RESIDUAL", "SERVER"),
    *("COSINE", "DOT", "FASTEST", "FIRST", "L1", "L2", "LARGEST_RESIDUAL", "LOOSEST", "RANDOM", "SMALLEST_SHARE", "TIGHTEST"),
    *("GUARANTEE", "KEPT", "LIMIT"),
    *("ADD", "JOIN", "LEAVE", "REMOVE", "SUBMIT"),
]

OWN, SERVER, RESIDUAL = map(int, Measure)
FIRST, RANDOM, SMALLEST_SHARE, L1, L2, COSINE, DOT, TIGHTEST, LOOSEST, LARGEST_RESIDUAL, FASTEST = map(int, Rule)
GUARANTEE, LIMIT, KEPT = map(int, Kind)
LEAVE, JOIN, REMOVE, ADD, SUBMIT = map(int, Change)
