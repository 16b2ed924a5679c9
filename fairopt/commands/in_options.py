"""Messages of the library in the words of the command line: ``--sharing tdm`` in the place of ``sharing="tdm"``.

The library does not know who calls it, so its messages name arguments of Python. `in_options` renames those that are options of the command
that runs; of the others, such as options of a notion, it only drops Python's quotation marks.

>>> name_options([])  # those of no command
>>> OPTIONS.update({"exact": "--exact", "sharing": "--sharing"}), FLAGS.add("exact")
(None, None)
>>> in_options('leave exact out, or use sharing="tdm", with order="asynchronous"')
'leave --exact out, or use --sharing tdm, with order=asynchronous'
>>> in_options('"proportional:alpha=2" needs exact=True or --exact; use fairopt.solve')
'"proportional:alpha=2" needs --exact; use fairopt solve'
>>> OPTIONS["time_limit"] = "--time-limit"
>>> in_options("time_limit is 0; leave exact or the rules out")
'--time-limit is 0; leave --exact or the rules out'
>>> OPTIONS["seed"] = "--seed"
>>> in_options("seed is -3; give a whole number >= 0"), in_options("the seed is new")
('--seed is -3; give a whole number >= 0', 'the seed is new')
>>> name_options([])
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = ["FLAGS", "OPTIONS", "in_options", "name_options"]

OPTIONS: dict[str, str] = {}
"""The options of the command that runs, by the names of arguments."""
FLAGS: set[str] = set()
"""Those that take no value."""

_WRITTEN = {
    ("set", "replace(limits=[])"): "--set limits.NAME=",
    ("vary", 'vary={"demands": (1, 2)}'): '--vary "demands=1:2"',
    ("cluster", "cluster=instance"): "--cluster FILE",
}
"""Arguments whose values are written in another way after an option: (option, argument) -> what is written."""

_OTHER_WORDS = {"owners": "users", "load": "until", "load_step": "step"}
"""Options that have another word than the argument that they give: option -> argument."""

_VALUE = re.compile(r"""(?<![\w.:"'-])(?P<name>[a-z_]+)=(?P<value>"[^"\s]*"|'[^'\s]*'|True\b|False\b|)""")
"""An argument and its value, as ``sharing="tdm"`` or ``exact=True``, or the beginning ``seed=``; no part of ``proportional:alpha=2``."""
_LEFT_OUT = re.compile(r"(?<=\bleave )[a-z_]+(?:(?:, | and | or )(?:the )?[a-z_]+)*(?= out\b)")
"""The arguments, and other words, between *leave* and *out*: ``leave exact, sharing or the rules out``."""
_SUBJECT = re.compile(r"""(?<![\w.:"'-])[a-z]+(?:_[a-z]+)+(?= is )|^[a-z]+(?= is [^;]*; (?:give|leave) )""")
"""An argument that *is* wrong: ``time_limit is 0`` anywhere, but one word only where the message is about it: ``seed is -3; give ...``."""
_FUNCTION = re.compile(r"\bfairopt\.([a-z_]+)\b(?![.(])")
"""A function, as ``fairopt.solve``; neither a call nor a module."""
_TWICE = re.compile(r"(--[\w-]+(?: [\w-]+)?)(?: or \1| \(\1\))")
"""The same option twice, as ``--exact or --exact``, where a message names the argument and the option."""
_CALLED = ("solve", "schedule", "compare", "audit", "explain", "frontier", "simulate", "history", "study", "what_if", "worst_case")
"""The functions that messages name and that are commands."""


def name_options(parts: Iterable[Any]) -> None:
    """Have messages name these options from now on: those of the command that begins."""
    OPTIONS.clear()
    FLAGS.clear()
    for part in parts:
        if part.param_type_name == "option" and not part.hidden:
            word = max(part.opts, key=len)
            name = word.removeprefix("--").replace("-", "_")
            OPTIONS[_OTHER_WORDS.get(name, name)] = word
            if part.is_flag:
                FLAGS.add(name)


def in_options(message: str) -> str:
    """Return a message with options of the command in the place of arguments."""
    for (name, argument), option in _WRITTEN.items():
        if name in OPTIONS:
            message = message.replace(argument, option)
    message = _VALUE.sub(_option, message)
    message = _LEFT_OUT.sub(lambda found: re.sub(r"[a-z_]+", lambda word: OPTIONS.get(word[0], word[0]), found[0]), message)
    message = _SUBJECT.sub(lambda found: OPTIONS.get(found[0], found[0]), message)
    message = _FUNCTION.sub(lambda found: f"fairopt {found[1].replace('_', '-')}" if found[1] in _CALLED else found[0], message)
    return _TWICE.sub(r"\1", message)


def _option(found: re.Match[str]) -> str:
    name, value = found["name"], found["value"].strip("\"'")
    if name not in OPTIONS:
        return f"{name}={value}"
    if name in FLAGS:
        return f"no {OPTIONS[name]}" if value == "False" else OPTIONS[name]
    follows = found.string[found.end() : found.end() + 1]
    return f"{OPTIONS[name]}{' ' if value or follows.isalnum() else ''}{value}"
