"""YAML by the core schema of version 1.2, as nodes that know their lines, and the way back.

What unquoted text means is decided here, not by PyYAML, which reads YAML 1.1: there ``010`` is eight, and ``no``, ``1:30`` and
``2024-01-01`` are false, ninety and a date. Text that either version would take for something else is written in quotes.

>>> [SCALARS[compose(text).tag](text) for text in ("1e12", "010", "no", "1:30", "0x1f")]
[1000000000000.0, 10, 'no', '1:30', 31]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from fairopt.instance.fractions import written

try:  # libyaml is ten times as fast; PyYAML has it in all its wheels
    from yaml import CSafeDumper as _BaseDumper
    from yaml import CSafeLoader as _BaseLoader
except ImportError:  # pragma: no cover
    from yaml import SafeDumper as _BaseDumper  # type: ignore[assignment]
    from yaml import SafeLoader as _BaseLoader  # type: ignore[assignment]

__all__ = ["SCALARS", "compose", "copies", "dump", "scalars"]

MAX_DEPTH = 50  # an instance has 6 levels; at some ten thousand libyaml itself may overflow the stack of the process
_OWN_LIMIT = "maximum nesting depth"  # of libyaml in PyYAML 6.0.4: a thousand

# What unquoted text means, by its first characters: the core schema of YAML 1.2, section 10.3.2.
RESOLVERS = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", list("-+.0123456789")),
)
SCALARS: dict[str, Callable[[str], object]] = {
    "tag:yaml.org,2002:str": str,
    "tag:yaml.org,2002:null": lambda text: None,
    "tag:yaml.org,2002:bool": lambda text: text.lower() == "true",
    "tag:yaml.org,2002:int": lambda text: _whole(text),
    "tag:yaml.org,2002:float": lambda text: written(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
}


def _whole(text: str) -> int:
    """Return a whole number; one that Python would not write in decimals is refused in every notation."""
    number = int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    str(number)  # a ValueError
    return number


# What is never written without quotes, because some reader takes it for a number, a date, a truth value, nothing or a merge of mappings.
# kubectl, for one, reads 18371e12 and 0o7 as numbers, where PyYAML reads text.
_NO_TEXT = re.compile(
    r"(?:[-+._]*[0-9][-+.0-9a-fox_:,tz ]*|[-+.]+(?:inf|nan|e[-+.0-9]*)?|y|n|yes|no|on|off|true|false|null|~|=|<<)$",
    re.ASCII | re.IGNORECASE,
)
_UNSEEN = re.compile("[^\x20-\x7e\n]")


class _Loader(_BaseLoader):
    """Composes nodes; `SCALARS` and the caller decide what they mean, not PyYAML's constructors."""

    yaml_implicit_resolvers: dict[str, Any] = {}
    depth = 0

    def descend_resolver(self, current_node: yaml.Node | None, current_index: object) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            mark = current_node.start_mark if current_node else None
            raise yaml.composer.ComposerError(None, None, f"lists or mappings nested more than {MAX_DEPTH} deep", mark)

    def ascend_resolver(self) -> None:
        self.depth -= 1


class _Dumper(_BaseDumper):
    """Writes text in quotes where any reader of YAML could take it for something else; inherited are the rules of PyYAML."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    plain = all(character.isprintable() or character == "\n" for character in text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _text)
for _tag, _pattern, _first in RESOLVERS:
    for _side in (_Loader, _Dumper):
        _side.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first)


_Dumper.add_implicit_resolver("tag:yaml.org,2002:not-text", _NO_TEXT, None)  # asked after the others


def compose(text: str) -> yaml.Node | None:
    """Return the nodes of a text; None if it is empty.

    libyaml reads ahead and may refuse a depth before our loader does; the text before that place is deep enough for our refusal.

    >>> compose("[\\n" * 5000)
    Traceback (most recent call last):
    yaml.composer.ComposerError: lists or mappings nested more than 50 deep
      in "<unicode string>", line 50, column 1
    """
    try:
        return _composed(text)
    except yaml.MarkedYAMLError as error:
        if error.problem_mark is None or _OWN_LIMIT not in (error.problem or ""):
            raise
        _composed(text[: error.problem_mark.index])
        raise


def _composed(text: str) -> yaml.Node | None:
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def copies(root: yaml.Node) -> int:
    """Return how many nodes the aliases stand for, beyond those that are written; a node that contains itself counts once.

    >>> copies(compose("[&a [1, 2], *a, *a]")), copies(compose("[&a [1, 2], &b [*a, *a], *b]"))
    (6, 13)
    """
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:  # as deep as the text is, not as deep as the aliases make it: what they stand for comes before them
        if id(node) not in sizes:
            sizes[id(node)] = 1
            if not isinstance(node, yaml.ScalarNode):
                parts = (part for item in node.value for part in (item if isinstance(item, tuple) else (item,)))
                sizes[id(node)] = 1 + sum(map(size, parts))
        return sizes[id(node)]

    return size(root) - len(sizes)


def scalars(node: yaml.Node, seen: set[int]) -> Iterator[yaml.ScalarNode]:
    """Yield the scalars in the order of the text, each once."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        yield node
    else:
        for item in node.value:
            for part in item if isinstance(item, tuple) else (item,):
                yield from scalars(part, seen)


def dump(data: Any, *, blocks: bool = False) -> str:
    """Return plain data as YAML: one entry a line, the innermost mappings and lists on one line unless ``blocks`` is true.

    Characters that nobody sees are written as escapes, so that the text can be printed.

    >>> print(dump([{"18371e12": "on", "x": ["0o7", "1 GPU", "2026-01-01", "n-1"]}, "a\\u202eb"]), end="")
    - '18371e12': 'on'
      x: ['0o7', 1 GPU, '2026-01-01', n-1]
    - "a\\u202Eb"
    """
    flow = False if blocks else None
    text = str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=flow, width=120))
    return text if text.isprintable() else _UNSEEN.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    """Return the escape of a character, which stands in double quotes, if nobody sees it."""
    character = match[0]
    if character.isprintable():
        return character
    return f"\\u{ord(character):04X}" if ord(character) < 1 << 16 else f"\\U{ord(character):08X}"
