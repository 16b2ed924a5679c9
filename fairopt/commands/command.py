"""What every command is: how it reads a command line, and what its help shows.

A command line is read in this order: today's spellings in the place of former ones (`fairopt.commands.retired`), each option once
(`fairopt.commands.repeated`), then each value, which is refused in plain words if the option does not take it (`fairopt.commands.usage`).
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from fairopt.commands.in_options import name_options
from fairopt.commands.repeated import each_once
from fairopt.commands.retired import with_todays_spellings
from fairopt.commands.said import CHANGED
from fairopt.commands.usage import ERRORS, flowing, in_panels, refuse_extra, shown, with_plain_refusals

__all__ = ["Command"]

_CHANGING = {"--set": "changes", "--rule": "rules"}  # options that change what is read, and their keys in the question of a result


class Command(TyperCommand):
    """A command of fairopt."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.help = flowing(self.help)
        for part in self.params:
            with_plain_refusals(part)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the arguments and options, as help shows them."""
        return in_panels(shown(super().get_params(ctx)))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words after the name of the command."""
        words = with_todays_spellings(_path(ctx), self.params, args, quiet=ctx.resilient_parsing)
        if not ctx.resilient_parsing:  # a shell asks what completes the line
            words = each_once(words, self.params)
        name_options(self.params)
        ctx.allow_extra_args = True
        try:
            rest = super().parse_args(ctx, words)
        except ERRORS.UsageError as error:
            error.ctx = error.ctx or ctx  # the parser does not tell it of each
            raise
        refuse_extra(rest, ctx)
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; the question of its result names what the command line changes of the file."""
        keys = {part.name: key for part in self.params for option, key in _CHANGING.items() if option in part.opts}
        before = CHANGED.set({key: [*ctx.params[name]] for name, key in keys.items() if ctx.params[name]})
        try:
            return super().invoke(ctx)
        finally:
            CHANGED.reset(before)


def _path(context: Any) -> str:
    """Return the words that name a command after the name of the program, such as ``solve`` or ``export slurm``."""
    names = []
    while context.parent is not None:
        names.append(str(context.info_name))
        context = context.parent
    return " ".join(reversed(names))
