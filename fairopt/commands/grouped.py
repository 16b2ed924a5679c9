"""Options that belong together are one parameter of a command: a dataclass, whose fields are the options.

A class attribute ``panel`` names the panel of the help in which they are.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Solver:
...     name: str = "highs"  # as typer reads it: Annotated[str, typer.Option(help="An engine.")]
...     seconds: float = 60.0
>>> def solve(file: str, solver: Solver = Solver(seconds=5.0)) -> None:
...     print(file, solver)
>>> command = spread(solve)
>>> [(name, parameter.default) for name, parameter in inspect.signature(command).parameters.items() if name != "file"]
[('name', 'highs'), ('seconds', 5.0)]
>>> command(file="lab.yaml", name="cvxpy", seconds=5.0)
lab.yaml Solver(name='cvxpy', seconds=5.0)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, get_type_hints

from typer.models import OptionInfo

__all__ = ["options_of", "spread"]


def options_of(group: type) -> dict[str, Any]:
    """Return the types of the options of a group, as typer reads them, by name; in the ``panel`` of the group, if it has one."""
    hints = get_type_hints(group, include_extras=True)
    panel = getattr(group, "panel", None)
    return {field.name: hints[field.name] if panel is None else _in_panel(hints[field.name], panel) for field in fields(group)}


def _in_panel(kind: Any, panel: str) -> Any:
    """Return the type of an option in a panel of the help; its declaration, which other groups may share, stays as it is."""
    marks = [copy(mark) for mark in kind.__metadata__]
    for mark in marks:
        if isinstance(mark, OptionInfo):
            mark.rich_help_panel = panel
    return Annotated[(kind.__origin__, *marks)]


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes the options of its groups one by one; the command itself if it has no groups.

    An option has the default that the signature of the command gives its group; without one, the default of the class.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
    if not groups:
        return command
    own = inspect.signature(command)

    def parameters() -> Iterator[inspect.Parameter]:
        for name, parameter in own.parameters.items():
            if name not in groups:
                yield parameter.replace(annotation=hints[name])
                continue
            given = groups[name]() if parameter.default is inspect.Parameter.empty else parameter.default
            for option, kind in options_of(groups[name]).items():
                yield inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=getattr(given, option), annotation=kind)

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{option.name: given.pop(option.name) for option in fields(group)})
        command(**given)

    kinds = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters()]
    run.__signature__ = own.replace(parameters=kinds)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in kinds}
    return run
