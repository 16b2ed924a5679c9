"""The state of a branch and bound as arrays: the open parts, both ends, and the worst instance (`fairopt.analysis.worst_cases.kept`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fairopt.analysis.bounds.boxes import Box, Ranges
from fairopt.analysis.bounds.cells import Part
from fairopt.analysis.bounds.data_rules import VARY, Data
from fairopt.files.stores import Arrays
from fairopt.instance import FloatArray

__all__ = ["arrays_of_data", "arrays_of_parts", "data_of", "parts_of_arrays"]


def arrays_of_data(data: Data | None) -> dict[str, Any]:
    """Return the data of the worst instance as arrays; none if there is no instance."""
    return {} if data is None else {f"worst_{name}": data[name] for name in VARY}


def data_of(arrays: Arrays, box: Box) -> Data | None:
    """Return the data of the worst instance, None if there is none; KeyError or ValueError if the arrays are no such data."""
    if "worst_demands" not in arrays:
        return None
    data = {name: np.array(arrays[f"worst_{name}"], float) for name in VARY}
    for name, values in data.items():
        if values.shape != box.ranges.low[name].shape:
            raise ValueError(f"{name} has the shape {values.shape}")
    return data


def arrays_of_parts(parts: list[Part]) -> dict[str, Any]:
    """Return open parts as arrays."""
    sides = {
        f"{side}_{name}": np.array([getattr(part.ranges, side)[name] for part in parts]) for side in ("low", "high") for name in VARY
    }  # fmt: skip
    return sides | {
        "users": [-1 if part.user is None else part.user for part in parts], "bounds": [part.bound for part in parts],
        "scaled": [part.scaled for part in parts],
    }  # fmt: skip


def parts_of_arrays(arrays: Arrays, box: Box) -> Iterator[Part]:
    """Yield the open parts; KeyError, IndexError or ValueError if the arrays are none."""
    users, bounds, scaled = arrays["users"], arrays["bounds"], arrays["scaled"]
    sides: list[Mapping[str, FloatArray]] = [{name: arrays[f"{side}_{name}"] for name in VARY} for side in ("low", "high")]
    for side in sides:
        for name, values in side.items():
            if len(users) and values.shape != (len(users), *box.ranges.low[name].shape):
                raise ValueError(f"{name} has the shape {values.shape}")
    for index, user in enumerate(users.tolist()):
        low, high = ({name: np.array(values[index], float) for name, values in side.items()} for side in sides)
        yield Part(Ranges(low, high), None if user < 0 else int(user), np.array(scaled[index], bool), float(bounds[index]))
