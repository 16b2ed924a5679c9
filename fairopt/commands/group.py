"""A group of commands: without a command its help is an error message, on stderr, since stdout has results alone."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from typer.core import TyperGroup

__all__ = ["Group"]


class Group(TyperGroup):
    """Commands; without one of them the help goes to stderr, and the exit status is 2."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        from fairopt.commands.usage import flowing

        super().__init__(*arguments, **options)
        self.help = flowing(self.help)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of the group itself, as help shows them."""
        from fairopt.commands.usage import shown

        return shown(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments of the group itself."""
        with contextlib.nullcontext() if args else contextlib.redirect_stdout(sys.stderr):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that the arguments name; a misspelt one is refused with the closest."""
        from fairopt.wording import did_you_mean

        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command '{name}'{did_you_mean(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)
