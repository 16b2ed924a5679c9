"""Words in which results are declared; each makes a piece of JSON Schema with a description, and a number with its unit.

>>> POINT = record("A point.", {"name": text("Its name."), "wait_s": nullable(number("Mean wait.", "s")), "x": optional(flag("Is it so?"))})
>>> POINT["required"], POINT["additionalProperties"]
(['name', 'wait_s'], False)
>>> POINT["properties"]["wait_s"]
{'type': ['number', 'null'], 'description': 'Mean wait.', 'x-unit': 's'}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

__all__ = [
    *("anything", "choice", "flag", "free", "items", "mapping", "nullable", "number", "number_or_inf", "old", "optional", "record"),
    *("reference", "text", "texts", "whole"),
]

Schema: TypeAlias = dict[str, Any]

_OPTIONAL = "optional"  # a mark that `record` takes away


def text(words: str) -> Schema:
    """Text."""
    return {"type": "string", "description": words}


def choice(words: str, *values: str) -> Schema:
    """One of these texts."""
    return {"type": "string", "enum": list(values), "description": words}


def flag(words: str) -> Schema:
    """True or false."""
    return {"type": "boolean", "description": words}


def number(words: str, unit: str) -> Schema:
    """A number in a unit: "tasks", "s", "fraction" (of a whole), "amount" (of a resource, in its unit)."""
    return {"type": "number", "description": words, "x-unit": unit}


def number_or_inf(words: str, unit: str) -> Schema:
    """A number in a unit, or the word "inf"."""
    return {"anyOf": [{"type": "number"}, {"const": "inf"}], "description": words, "x-unit": unit}


def whole(words: str, unit: str) -> Schema:
    """A whole number in a unit."""
    return {"type": "integer", "description": words, "x-unit": unit}


def anything(words: str) -> Schema:
    """Any JSON."""
    return {"description": words}


def free(words: str) -> Schema:
    """An object whose keys are not declared."""
    return {"type": "object", "description": words}


def texts(words: str) -> Schema:
    """A list of texts."""
    return {"type": "array", "items": {"type": "string"}, "description": words}


def items(of: Schema, words: str) -> Schema:
    """A list."""
    return {"type": "array", "items": of, "description": words}


def mapping(of: Schema, words: str) -> Schema:
    """An object whose keys are names."""
    return {"type": "object", "additionalProperties": of, "description": words}


def record(words: str, keys: Mapping[str, Schema]) -> Schema:
    """An object with these keys and no others; those that are not `optional` are always there."""
    return {
        "type": "object",
        "description": words,
        "properties": {name: {word: value for word, value in key.items() if word != _OPTIONAL} for name, key in keys.items()},
        "required": [name for name, key in keys.items() if _OPTIONAL not in key],
        "additionalProperties": False,
    }


def reference(name: str, words: str) -> Schema:
    """What is declared elsewhere under a name."""
    return {"$ref": f"#/$defs/{name}", "description": words}


def optional(key: Schema) -> Schema:
    """A key that may be missing."""
    return {**key, _OPTIONAL: True}


def nullable(key: Schema) -> Schema:
    """A value that may be null: it is missing, or has no meaning here."""
    if "type" in key and "enum" not in key:
        return {**key, "type": [key["type"], "null"]}
    return {"anyOf": [{word: value for word, value in key.items() if word not in ("description", _OPTIONAL)}, {"type": "null"}]} | {
        word: value for word, value in key.items() if word in ("description", _OPTIONAL)
    }


def old(key: Schema, now: str) -> Schema:
    """A key under its old name, which goes with version 1.0; ``now`` says what to read instead."""
    return {**key, _OPTIONAL: True, "deprecated": True, "description": f"Until 1.0; read {now}."}
