"""Text for people: a console that no text drives, and messages on stderr."""

from __future__ import annotations

from typing import Any

import rich.console
from rich.console import ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from fairopt.commands.in_options import in_options
from fairopt.wording import printable

__all__ = ["KEPT", "Console", "say"]

KEPT = "\n\N{NO-BREAK SPACE}"
"""Characters that are no letters, and drive no terminal."""


class Console(rich.console.Console):
    """A console on which no text drives the terminal: control characters are printed as escapes, wherever they come from."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.push_render_hook(_Printable())


class _Printable(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Clean(each) for each in renderables]


class _Clean:
    def __init__(self, of: ConsoleRenderable) -> None:
        self.of = of

    def __rich_console__(self, console: rich.console.Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.of, options):
            yield segment if segment.control else Segment(printable(segment.text, keep=KEPT), segment.style)


def say(kind: str, message: str) -> None:
    """Print a message on stderr."""
    console = Console(stderr=True, highlight=False)
    text = printable(in_options(message), keep=KEPT)
    console.print(Text.assemble((f"{kind}: ", "bold red" if kind == "error" else "bold yellow"), text), soft_wrap=True)
