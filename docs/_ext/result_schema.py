"""The keys of results, written from their JSON Schema.

```{result-schema}
```
    a section for each command, with its keys; then the parts that several results contain.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from fairopt.results.kinds.parts import DEFS
from fairopt.results.schema import KINDS


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("result-schema", ResultSchema)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class ResultSchema(SphinxDirective):
    """All keys of all results."""

    def run(self) -> list[nodes.Node]:
        """Write tables as Markdown."""
        return self.parse_text_to_nodes(markdown())


def markdown() -> str:
    """Return a table for each result and each part, in the order in which they are declared."""
    titles = {name: f"`{name}`: {each['description']}" for name, each in KINDS.items()}
    titles |= {name: f"Part `{name}`: {each['description']}" for name, each in DEFS.items()}
    return "\n\n".join(f"**{titles[name]}**\n\n{table(each)}" for name, each in (KINDS | DEFS).items())


def table(part: dict[str, Any]) -> str:
    """Return the keys of an object, and of the objects in it: what they hold, their unit, what they mean.

    >>> print(table({"properties": {"a": {"type": "number", "x-unit": "s", "description": "How long."}}, "required": []}))
    | key | holds | meaning |
    |---|---|---|
    | `a` (may be missing) | number, s | How long. |
    """
    return "\n".join(["| key | holds | meaning |", "|---|---|---|", *rows(part, "")])


def rows(part: dict[str, Any], before: str) -> Iterator[str]:
    """Yield a row for each key, followed by the keys of the objects that it holds: ``users[].name``, ``question.notion``."""
    for name, key in part["properties"].items():
        missing = "" if name in part["required"] or before.endswith("question.") else " (may be missing)"
        path = before + name
        yield f"| `{path}`{missing} | {holds(key)} | {' '.join(key.get('description', '').split()).replace('|', r'|')} |"
        inner, suffix = inside(key)
        if "properties" in inner:
            yield from rows(inner, f"{path}{suffix}.")


def inside(key: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return what a list or mapping holds, or the object itself, and how that is written after the key."""
    for choice in key.get("anyOf", ()):
        if "properties" in choice:
            return choice, ""
    if "items" in key:
        return key["items"], "[]"
    if isinstance(key.get("additionalProperties"), dict) and "properties" not in key:
        return key["additionalProperties"], "{}"
    return key, ""


def holds(key: dict[str, Any]) -> str:
    """Say what a value may be, and its unit.

    >>> holds({"type": ["number", "null"], "x-unit": "s"}), holds({"type": "array", "items": {"type": "string"}})
    ('number or null, s', 'list of text')
    """
    unit = f", {key['x-unit']}" if key.get("x-unit") not in (None, "1") else ""
    if "const" in key:
        return f"`{key['const']}`"
    if "enum" in key:
        return " or ".join(f"`{each}`" for each in key["enum"])
    if "anyOf" in key:
        return " or ".join(holds(choice) for choice in key["anyOf"]) + unit
    if "$ref" in key:
        name = key["$ref"].rpartition("/")[2]
        return "an instance, as in a file" if name == "instance" else f"`{name}`"
    words = {"string": "text", "integer": "whole number", "boolean": "true or false", "array": "list", "object": "object"}
    kinds = [key["type"]] if isinstance(key.get("type"), str) else key.get("type", [])
    found = " or ".join(words.get(kind, kind) for kind in kinds) or "anything"
    if "items" in key and "properties" not in key["items"]:
        return f"{found} of {holds(key['items'])}{unit}" if key["items"] else found
    if isinstance(key.get("additionalProperties"), dict) and "properties" not in key["additionalProperties"] and "properties" not in key:
        return f"{found} of {holds(key['additionalProperties'])} by name{unit}"
    return found + unit
