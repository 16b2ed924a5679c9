"""The warnings that a command has printed. Reading two files, or reading and solving, may find the same, and it is said once."""

from __future__ import annotations

__all__ = ["SAID"]

SAID: set[str] = set()
"""Emptied when a command starts."""
