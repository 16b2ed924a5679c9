"""What commands and the command line above them both know: the warnings that were printed, and the exit status after Ctrl-C.

Reading two files, or reading and solving, may find the same warning, and it is said once.
"""

from __future__ import annotations

__all__ = ["CHANGED", "INTERRUPTED", "SAID", "WRITTEN"]

INTERRUPTED = 130
SAID: set[str] = set()
"""Warnings; emptied when a command starts."""
WRITTEN: set[str] = set()
"""Files; emptied when a command starts."""
CHANGED: dict[str, list[str]] = {}
"""What was changed of the file that was read, for the question of a result: "changes" and "rules"; emptied when a command starts."""
