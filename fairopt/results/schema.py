"""The JSON Schema of results: one declaration per command, told apart by the key ``command``.

>>> found = schema({"type": "object"})
>>> len(found["oneOf"]) == len(KINDS), found["$defs"]["frontier"]["properties"]["gap"]["x-unit"]
(True, 'fraction')
"""

from __future__ import annotations

from typing import Any

from fairopt.results.declaring import Schema
from fairopt.results.kinds import allocations, data, explanations, over_time, programs
from fairopt.results.kinds.parts import DEFS

__all__ = ["KINDS", "schema"]

KINDS: dict[str, Schema] = {**allocations.KINDS, **explanations.KINDS, **over_time.KINDS, **programs.KINDS, **data.KINDS}
"""The declaration of each result, by its command."""


def schema(instance: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of results.

    Parameters
    ----------
    instance : dict
        The JSON Schema of instances (`fairopt.formats.schema`), which some results contain.
    """
    parts = instance.get("$defs", {})
    whole = {name: part for name, part in instance.items() if name not in ("$defs", "$schema")}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Result of fairopt",
        "description": "What fairopt prints with --json, and what result.to_dict() returns. x-unit is the unit of a number.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in KINDS],
        "$defs": {**KINDS, **DEFS, "instance": whole, **parts},
    }
