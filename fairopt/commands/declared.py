"""Commands of one family, such as ``fairopt import KIND``: what is their own is declared, what they share is written once.

>>> def show(given: dict[str, Any]) -> None:
...     print(given)
>>> command = declared(show, "Show a number.", {"number": Option(Annotated[int, typer.Option(help="A number.")], 1)})
>>> list(inspect.signature(command).parameters)
['number']
>>> command(number=2)
{'number': 2}
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["NEEDED", "Option", "arguments", "assigned", "declared", "file", "files"]

NEEDED = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command, or an argument, and the parameter of the public function that takes its value.

    Attributes
    ----------
    type : annotation
        As Typer reads it: ``Annotated[float, typer.Option(help="...")]``.
    default : value
        `NEEDED`: the option must be given.
    parameter : str
        The name of the parameter, where that is not the name of the option.
    read : function, optional
        Makes the value of the parameter from that of the option.
    """

    type: Any
    default: Any = None
    parameter: str = ""
    read: Callable[[Any], Any] | None = None


def file(help: str, default: Any = None) -> Option:
    """Return an option that takes a file."""
    return Option(Annotated[Path if default is NEEDED else Path | None, typer.Option(metavar="FILE", help=help)], default)


def files(help: str) -> Option:
    """Return an option that takes a file, and can be repeated."""
    return Option(
        Annotated[list[Path] | None, typer.Option(metavar="FILE", help=f"{help} Can be repeated.")], read=lambda paths: paths or ()
    )


def declared(run: Callable[[dict[str, Any]], None], does: str, options: Mapping[str, Option]) -> Callable[..., None]:
    """Return a command that calls ``run`` with the values of its options by name; ``does`` is its help."""

    def command(**given: Any) -> None:
        run(given)

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=option.type)
        for name, option in options.items()
    ]
    command.__doc__ = does
    command.__annotations__ = {name: option.type for name, option in options.items()}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def arguments(options: Mapping[str, Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the public function: the values of these options under the names of its parameters."""
    return {option.parameter or name: given[name] if option.read is None else option.read(given[name]) for name, option in options.items()}


def assigned(given: list[str] | None, option: str, what: str, number: str = "") -> dict[str, Any]:
    """Read options of the form NAME=VALUE; ``number`` is an example where values are numbers.

    >>> assigned(["lab/gpu=nvidia.com/gpu"], "--resource-name", "NAME"), assigned(["a=2"], "--weight", "OWNER", "batch=2")
    ({'lab/gpu': 'nvidia.com/gpu'}, {'a': 2.0})
    """
    pairs: dict[str, Any] = {}
    for text in given or []:
        name, equals, value = text.rpartition("=")
        try:
            if not (equals and name and value):
                raise ValueError
            found = float(value) if number else value
        except ValueError:
            kind = f"NUMBER, such as {number}" if number else "VALUE"
            raise typer.BadParameter(f'"{text}" is not {what}={kind}', param_hint=option) from None
        if name in pairs:
            raise typer.BadParameter(f'"{name}" is given twice; give each {what} once', param_hint=option)
        pairs[name] = found
    return pairs
