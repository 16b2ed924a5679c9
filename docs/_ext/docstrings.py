"""Docstrings as pages. They stay readable in the source; this module adds the marks that Sphinx needs.

* An indented paragraph is a formula: it keeps its line breaks, and is not set as a quotation.
* Examples are a section of their own, even if they have no heading.
* The docstring of a property is prose. Without this module, napoleon would read the words before a colon as a type.
* Types are written by their names alone in signatures, such as ``ArrayLike``.
* `Name` in single quotes links to its page. A name without a page is set as code; a name that does not exist is a warning.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import PyObject
from sphinx.environment import BuildEnvironment
from sphinx.util.inspect import TypeAliasForwardRef

_NO_PROSE = (".. ", "* ", "- ", ">>> ", "... ", ":")


def setup(app: Sphinx) -> dict[str, Any]:
    """Do it before napoleon reads the sections."""
    app.connect("autodoc-process-docstring", _process, priority=400)
    app.connect("autodoc-process-signature", _signature)
    TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # type: ignore[method-assign]  # of an alias in a union, it is what is written
    for kind in PyObject.doc_field_types:
        if kind.name == "variable":
            kind.label = "Attributes"
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _process(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    lines[:] = with_literal_formulas(with_heading_of_examples(lines))
    if what in ("attribute", "data", "property") and lines:
        lines[:1] = lines[0].replace(": ", ":\n", 1).split("\n")  # what stands before a colon inside a line would be a type


def _signature(
    app: Sphinx, what: str, name: str, obj: object, options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    return short(signature), short(returns)


def short(signature: str | None) -> str | None:
    """Write types by their names alone, and a default that is made anew each time, or that the class states, as ``...``.

    >>> short("(of: ~fairopt.instance.Instance, more: dict = <factory>)")
    '(of: Instance, more: dict = ...)'
    """
    if signature is None:
        return None
    return re.sub(r"<factory>|(?<=\W)Ellipsis\b", "...", re.sub(r"~(?:\w+\.)+(\w+)", r"\1", signature))


def _resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement) -> nodes.Node | None:
    """Look in the module that the docstring is in, in those around it, and in fairopt itself."""
    if node.get("refdomain") != "py" or node.get("reftype") not in ("obj", "mod", "class", "func"):
        return None
    target, domain = node["reftarget"], env.domains.python_domain
    within = (node.source or "").partition("docstring of ")[2].split(".")
    for prefix in [*(".".join(within[:depth]) for depth in range(len(within), 0, -1)), "fairopt", "fairopt.program", ""]:
        name = f"{prefix}.{target}".strip(".")
        if name in domain.objects:
            entry = domain.objects[name]
            assert app.builder is not None
            uri = app.builder.get_relative_uri(node["refdoc"], entry.docname)
            return nodes.reference("", "", content, internal=True, refuri=f"{uri}#{entry.node_id}")
        if _is_there(name):
            return content
    return None


def _is_there(name: str) -> bool:
    """Is there a module, or something in one, of this name? (A function may hide the module that it is in.)"""
    parts = name.split(".")
    for depth in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:depth]))
        except ImportError:
            continue
        for part in parts[depth:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def with_heading_of_examples(lines: list[str]) -> list[str]:
    """Put the heading before the first example, if there are sections and it has none."""
    underlines = [row for row, line in enumerate(lines) if line and not line.strip("-")]
    first = next((row for row, line in enumerate(lines) if line.startswith(">>>")), None)
    if not underlines or first is None or first < underlines[0] or "Examples" in lines:
        return lines
    return [*lines[:first], "Examples", "--------", *lines[first:]]


def with_literal_formulas(lines: list[str]) -> list[str]:
    """Make each indented paragraph that follows prose a block."""
    result: list[str] = []
    prose = ""
    for line in lines:
        starts = line.startswith(" ") and result and not result[-1].strip()
        if starts and prose and not prose.startswith(" ") and not prose.endswith("::") and not prose.startswith(_NO_PROSE):
            result += [".. code-block:: text", ""]
        if line.strip():
            prose = line
        result.append(line)
    return result
