"""The fields that an import reads, notes and ignores, from their declaration beside the reader.

```{import-fields} fairopt.slurm.fields
```
    a table for each kind of record that the module declares in DECLARED.
"""

from __future__ import annotations

import importlib
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from fairopt.clusters.fields import Fields


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("import-fields", ImportFields)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class ImportFields(SphinxDirective):
    """The tables of one importer."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write tables as Markdown."""
        declared = importlib.import_module(self.arguments[0]).DECLARED
        return self.parse_text_to_nodes("\n\n".join(table(fields) for fields in declared))


def table(fields: Fields) -> str:
    """Return the fields of a kind of record, by what becomes of them."""
    rows = [f"**A {fields.record}**", "", "| fields | | why |", "|---|---|---|"]
    for field in fields.fields:
        rows.append(f"| {', '.join(f'`{name}`' for name in field.names)} | {field.use} | {field.why} |")
    return "\n".join(rows)
