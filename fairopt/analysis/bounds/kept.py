"""A branch and bound kept in a folder, so that it goes on from there after it was stopped.

The folder holds one file, ``bound.npz``: the request in words, the open parts, both ends, and the worst instance. A file of another request
is refused. Nothing of it is believed before it is checked: the value is that of the instance, which is solved again; but the bounds of
parts, and that no part is missing, only the run that wrote the file knows. So it counts as one's own work: do not take it from a stranger.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fairopt.analysis.bounds.boxes import Box, Ranges
from fairopt.analysis.bounds.branching import Course
from fairopt.analysis.bounds.cells import Part
from fairopt.analysis.bounds.data_rules import VARY
from fairopt.errors import InvalidInstance
from fairopt.files.stores import Arrays, Pace, Store
from fairopt.instance import FloatArray

__all__ = ["Kept"]

_FILE = "bound.npz"
_LEAST, _EFFORT = 5.0, 20.0  # seconds between two writes, and as a multiple of the time of one
_PART, _MOST = 0.02, 8.0  # a killed search loses at most this fraction of the time so far, or this many seconds


class Kept:
    """The folder of one branch and bound."""

    def __init__(self, folder: Path, request: Mapping[str, Any]) -> None:
        self._store, self._request = Store(folder), json.dumps(request, sort_keys=True)
        self._pace = Pace(_LEAST, _EFFORT, _PART, _MOST)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only process that writes the file."""
        with self._store.writing(_FILE, "search for a worst case"):
            yield

    def restore(self, course: Course, box: Box) -> bool:
        """Go on from the file, if there is one.

        Raises
        ------
        InvalidInstance
            The file is damaged, or answers another question.
        """
        arrays = self._store.arrays(_FILE)
        if arrays is None:
            return False
        try:
            request = bytes(arrays["request"]).decode()
        except (KeyError, UnicodeDecodeError) as error:
            raise self._damaged(error) from error
        if request != self._request:
            raise InvalidInstance(f"{self._store.path(_FILE)} is of another question; give another folder, or ask the same")
        try:
            worst = {name: arrays[f"worst_{name}"] for name in VARY} if "worst_demands" in arrays else None
            parts = list(_parts(arrays, box))
            closed, nodes = float(arrays["closed"]), int(arrays["nodes"])
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise self._damaged(error) from error
        course.add(parts)
        course.closed, course.nodes = closed, nodes
        if worst is not None:
            course.take(worst)
        return True

    def _damaged(self, error: Exception) -> InvalidInstance:
        return InvalidInstance(f"{self._store.path(_FILE)} is damaged ({error}); give another folder")

    def write_now_and_then(self, course: Course) -> None:
        """Write the file, if it is time."""
        import time

        if time.monotonic() >= self._pace.due:
            with self._pace.write():
                self.write(course)

    def write(self, course: Course) -> None:
        """Write the file."""
        parts = list(course.parts)
        arrays: dict[str, Any] = {
            "request": np.frombuffer(self._request.encode(), np.uint8), "closed": course.closed, "nodes": course.nodes,
            "users": [-1 if part.user is None else part.user for part in parts], "bounds": [part.bound for part in parts],
            "scaled": [part.scaled for part in parts],
        }  # fmt: skip
        for side in ("low", "high"):
            for name in VARY:
                arrays[f"{side}_{name}"] = np.array([getattr(part.ranges, side)[name] for part in parts])
        if course.worst is not None:
            arrays |= {f"worst_{name}": values for name, values in course.worst.items()}
        self._store.write(_FILE, arrays)


def _parts(arrays: Arrays, box: Box) -> Iterator[Part]:
    """Yield the open parts."""
    users, bounds, scaled = arrays["users"], arrays["bounds"], arrays["scaled"]
    sides: list[Mapping[str, FloatArray]] = [{name: arrays[f"{side}_{name}"] for name in VARY} for side in ("low", "high")]
    for side in sides:
        for name, values in side.items():
            if len(users) and values.shape != (len(users), *box.ranges.low[name].shape):
                raise ValueError(f"{name} has the shape {values.shape}")
    for index, user in enumerate(users.tolist()):
        low, high = ({name: np.array(values[index], float) for name, values in side.items()} for side in sides)
        yield Part(Ranges(low, high), None if user < 0 else int(user), np.array(scaled[index], bool), float(bounds[index]))
