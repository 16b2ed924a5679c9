"""What commands and the command line above them both know: warnings, files, changes of the input, and the exit status after Ctrl-C.

Reading two files, or reading and solving, may find the same warning, and it is said once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType

__all__ = ["CHANGED", "INTERRUPTED", "SAID", "WRITTEN"]

INTERRUPTED = 130
SAID: set[str] = set()
"""Warnings; emptied when a command starts."""
WRITTEN: set[str] = set()
"""Files; emptied when a command starts."""
CHANGED: ContextVar[Mapping[str, Sequence[str]]] = ContextVar("changed", default=MappingProxyType({}))
"""What the command line of the command that runs changes of its file, for the question of a result; `fairopt.commands.command` sets it."""
