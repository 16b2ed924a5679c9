"""A group of commands: without a command its help is an error message, on stderr, since stdout has results alone."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from typer.core import TyperGroup

__all__ = ["Group"]


class Group(TyperGroup):
    """Commands; without one of them the help goes to stderr, and the exit status is 2."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments of the group itself."""
        with contextlib.nullcontext() if args else contextlib.redirect_stdout(sys.stderr):
            return super().parse_args(ctx, args)
