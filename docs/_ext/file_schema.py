"""The keys of instance files, written from their JSON Schema.

```{file-schema}
```
    a table for the document, and one for each kind of entry: a server, a queue, a quota, a user.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from fairopt.formats import schema

_TITLES = {"Server": "A server", "User": "A user", "Queue": "A queue", "Quota": "One of the quotas of a queue", "Limit": "A named limit"}


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("file-schema", FileSchema)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class FileSchema(SphinxDirective):
    """All keys."""

    def run(self) -> list[nodes.Node]:
        """Write tables as Markdown."""
        whole = schema()
        parts = [("The document", whole), *((title, whole["$defs"][name]) for name, title in _TITLES.items())]
        return self.parse_text_to_nodes("\n\n".join(f"**{title}**\n\n{table(part)}" for title, part in parts))


def table(part: dict[str, Any]) -> str:
    """Return the keys of one object: which are needed, what they hold, what they mean."""
    rows = ["| key | holds | meaning |", "|---|---|---|"]
    for name, entry in part["properties"].items():
        needed = " (needed)" if name in part.get("required", ()) else ""
        rows.append(f"| `{name}`{needed} | {holds(entry)} | {_text(entry)} |")
    return "\n".join(rows)


def _text(entry: dict[str, Any]) -> str:
    return " ".join(entry.get("description", "").split()).replace("|", r"\|")


def holds(entry: dict[str, Any]) -> str:
    """Say what a value may be.

    >>> holds({"type": "object", "patternProperties": {".": {"minimum": 0, "type": "number"}}})
    'names, each with number >= 0'
    """
    if "anyOf" in entry or "oneOf" in entry:
        return " or ".join(holds(choice) for choice in entry.get("anyOf", entry.get("oneOf", ())) if choice.get("type") != "null")
    if "$ref" in entry:
        return str(entry["$ref"]).rpartition("/")[2].lower()
    if entry.get("format") == "quantity":
        return "quantity"
    kind = entry.get("type", "")
    if kind == "array":
        return f"list of {holds(entry['items'])}"
    if kind == "object":
        return " ".join(f"names, each with {holds(value)}" for value in entry["patternProperties"].values())
    words = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    name = " or ".join(words.get(word, word) for word in ([kind] if isinstance(kind, str) else kind))
    bounds = {"minimum": " >= ", "exclusiveMinimum": " > "}
    return name + "".join(f"{sign}{entry[key]}" for key, sign in bounds.items() if key in entry)
