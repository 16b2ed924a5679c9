"""What every result has in common as plain data, and the JSON Schema that declares all results.

``result.to_dict()`` and ``fairopt COMMAND --json`` give one object: a head of five keys, then what the command found.

============  ==============================================================================================
``schema``    1; another number, if a key is taken away or changes its meaning
``version``   of fairopt that computed it
``command``   what it is: the command that prints it
``question``  what was asked, with all options
``units``     the unit of each resource of which it is known
============  ==============================================================================================

:mod:`fairopt.results.kinds` declares each result, and ``fairopt schema result`` prints the declarations as JSON Schema
(:mod:`fairopt.results.schema`). Instances and questions of the same kind have the same keys, whatever the numbers.

>>> found = result("frontier", {"alphas": [1, float("inf")], "sharing": None}, {"memory": "GiB"}, {"gap": 0.0})
>>> found  # doctest: +NORMALIZE_WHITESPACE +ELLIPSIS
{'schema': 1, 'version': '...', 'command': 'frontier', 'question': {'alphas': [1, 'inf'], 'sharing': None},
 'units': {'memory': 'GiB'}, 'gap': 0.0}
"""

from __future__ import annotations

import dataclasses
import math
import os
import sys
from collections.abc import Iterable, Mapping
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["SCHEMA", "finite", "options_of", "or_inf", "plain", "records", "result"]

SCHEMA = 1
"""The number of the schema."""


def result(command: str, question: Mapping[str, Any], units: Mapping[str, str], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as plain data: its head, then what was found."""
    version = str(sys.modules["fairopt"].__version__)
    return {"schema": SCHEMA, "version": version, "command": command, "question": plain(question), "units": dict(units)} | dict(found)


def plain(value: Any) -> Any:
    """Return an argument as plain data for JSON.

    Numbers and text stay; an infinite number and a Fraction become text; a notion becomes its name, or its name with its options where
    it has any; arrays become lists; anything else becomes its name.

    >>> plain({"alpha": float("inf"), "beta": Fraction(1, 3), "seeds": range(2), "own": plain})
    {'alpha': 'inf', 'beta': '1/3', 'seeds': [0, 1], 'own': 'plain'}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Fraction | os.PathLike):
        return str(value)
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, np.ndarray):
        return [plain(each) for each in value.tolist()]
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, type):
        return [plain(each) for each in value]
    name = str(getattr(value, "name", "") or getattr(value, "__name__", "") or type(value).__name__)
    return {"name": name} | options if (options := options_of(value)) else name


def options_of(notion: Any) -> dict[str, Any]:
    """Return the options of a notion, by name, as plain data; nothing of what is no notion.

    >>> from fairopt.models import NOTIONS
    >>> options_of(NOTIONS["drfh"]())
    {'guarantees': 'surplus', 'queue_share': None, 'tree': 'filling', 'formulation': 'leximin'}
    """
    if isinstance(notion, type):
        return {}
    if not dataclasses.is_dataclass(notion):
        options = getattr(notion, "options", {})
        return {name: plain(value) for name, value in options.items()} if isinstance(options, Mapping) else {}
    fields = [each.name for each in dataclasses.fields(notion)]
    own = [name for name in getattr(notion, "__dict__", ()) if name not in fields]  # of a class with an __init__ of its own
    silent = {each.name for each in dataclasses.fields(notion) if "if given" in each.metadata and getattr(notion, each.name) is None}
    return {name: plain(getattr(notion, name)) for name in (*fields, *own) if not name.startswith("_") and name not in silent}


def finite(value: Any) -> Any:
    """Return a number, or None in place of one that is missing or infinite; anything else as it is.

    >>> [finite(each) for each in (1.5, np.int64(2), float("nan"), "text")]
    [1.5, 2, None, 'text']
    """
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def or_inf(value: float) -> float | str | None:
    """Return a number, the word "inf" in place of an infinite one, and None in place of one that is missing.

    >>> [or_inf(each) for each in (3600.0, float("inf"), float("nan"))]
    [3600.0, 'inf', None]
    """
    return "inf" if value == math.inf else finite(value)


def records(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a frame as plain data, missing and infinite numbers as None.

    >>> import pandas as pd
    >>> records(pd.DataFrame({"x": [1.0, np.nan]}, index=pd.Index(["a", "b"], name="user")).reset_index())
    [{'user': 'a', 'x': 1.0}, {'user': 'b', 'x': None}]
    """
    return [{str(key): finite(value) for key, value in row.items()} for row in frame.to_dict("records")]
