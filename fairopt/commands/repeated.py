"""An option that is given twice. Lists add up, as if all their words stood in one. Another option is refused, as one of its values would be
lost. Options that can be repeated, and flags, stay as they are."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import typer

__all__ = ["each_once"]


def each_once(arguments: Sequence[str], parts: Iterable[Any]) -> list[str]:
    """Return the arguments with each option of a command once. What follows an option is its value, and stays.

    Raises
    ------
    typer.BadParameter
        An option that is no list has two values.

    >>> from types import SimpleNamespace
    >>> plain = {"param_type_name": "option", "is_flag": False, "multiple": False, "nargs": 1}
    >>> notions = SimpleNamespace(name="notions", opts=["--notions"], metavar="ID,...", **plain)
    >>> each_once(["--notions", "drf", "x.yaml", "--notions=tsf", "--", "--notions"], [notions])
    ['--notions', 'drf,tsf', 'x.yaml', '--', '--notions']
    """
    options = {word: part for part in parts if part.param_type_name == "option" and not part.is_flag for word in part.opts}
    rest, result = deque(arguments), list[str]()
    place: dict[str, int] = {}  # of the value of each option in the result
    while rest:
        argument = rest.popleft()
        if argument == "--":
            return [*result, argument, *rest]
        word, equals, value = argument.partition("=")
        if not argument.startswith("--") and argument[:2] in options and len(argument) > 2:  # -oFILE
            word, equals, value = argument[:2], "=", argument[2:]
        part = options.get(word)
        if part is None or not (equals or rest):
            result.append(argument)
        elif part.multiple or part.nargs != 1:
            result.append(argument)
            result += [rest.popleft() for _ in range(0 if equals else min(part.nargs, len(rest)))]
        else:
            given = value if equals else rest.popleft()
            if part.name not in place:
                result += [word, given]
                place[part.name] = len(result) - 1
            elif "," in (part.metavar or ""):
                result[place[part.name]] += f",{given}"
            elif given != result[place[part.name]]:
                raise typer.BadParameter(f"it is given twice, {result[place[part.name]]} and {given}; give it once", param_hint=word)
    return result
