"""The state of one long search in one file, with the question that it answers, so that the search goes on from there after a stop.

The state is arrays by name (`fairopt.files.stores`), and is written from time to time: a search that is killed loses a few seconds. A state
of another question is refused, and the message names what differs.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     progress = Progress(folder, "search.npz", "search", {"seed": 1, "notion": "drfh"})
...     with progress.writing():
...         progress.write({"tried": 250})
...     print(progress.read()["tried"])
...     try:
...         Progress(folder, "search.npz", "search", {"seed": 2, "notion": "drfh"}).read()
...     except InvalidInstance as error:
...         print(str(error).partition("search.npz ")[2])
250
keeps another search: seed was 1 and is 2; give another folder, or ask the same
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.files.stores import Arrays, Pace, Store
from fairopt.wording import was_and_is

__all__ = ["Progress", "of_text", "text_of"]

_LEAST, _EFFORT = 1.0, 20.0  # seconds between two writes, and as a multiple of the time of one
_PART, _MOST = 0.02, 6.0  # a killed search loses at most this fraction of the time so far, or this many seconds and one step
_REQUEST = "request"


class Progress:
    """The file of one search.

    Parameters
    ----------
    folder : path
        Made if it is not there.
    file : str
        The name of the file.
    who : str
        What is kept, for messages: "search".
    request : mapping
        The question by words, as plain data. The version of fairopt belongs to every question.
    """

    def __init__(self, folder: str | os.PathLike[str], file: str, who: str, request: Mapping[str, Any]) -> None:
        self._store, self._file, self._who = Store(folder), file, who
        self.path = self._store.path(file)
        version = {"version of fairopt": str(sys.modules["fairopt"].__version__)}
        self._request: dict[str, Any] = json.loads(json.dumps(version | dict(request)))
        self._pace = Pace(_LEAST, _EFFORT, _PART, _MOST, at_once=True)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only process that writes the file."""
        with self._store.writing(self._file, self._who):
            yield

    def read(self) -> Arrays | None:
        """Return the state; None if there is none yet.

        Raises
        ------
        InvalidInstance
            The file is damaged, or answers another question.
        """
        arrays = self._store.arrays(self._file)
        if arrays is None:
            return None
        try:
            request = json.loads(text_of(arrays.pop(_REQUEST)))
        except (KeyError, ValueError, RecursionError) as error:
            raise self.damaged(error) from error
        if request != self._request:
            there = request if isinstance(request, dict) else {}
            words = [word for word in {**self._request, **there} if there.get(word) != self._request.get(word)]
            differences = "; ".join(was_and_is(word, there.get(word), self._request.get(word)) for word in words)
            raise InvalidInstance(f"{self.path} keeps another {self._who}: {differences}; give another folder, or ask the same")
        return arrays

    def damaged(self, error: Exception) -> InvalidInstance:
        """Return the refusal of a state from which nothing can go on."""
        return InvalidInstance(f"{self.path} is damaged ({type(error).__name__}: {error}); give another folder")

    def offer(self, state: Callable[[], Mapping[str, Any]]) -> None:
        """Write what the function returns, if it is time."""
        if self._pace.is_due:
            self.write(state())

    def write(self, state: Mapping[str, Any]) -> None:
        """Write the state: completely or not at all."""
        with self._pace.write():
            self._store.write(self._file, {**state, _REQUEST: of_text(json.dumps(self._request))})


def of_text(text: str) -> np.ndarray[Any, Any]:
    """Return a text as an array, which `text_of` reads."""
    return np.frombuffer(text.encode(), np.uint8)


def text_of(array: np.ndarray[Any, Any]) -> str:
    """Return the text of an array.

    Raises
    ------
    UnicodeDecodeError
        The array is no text, a ValueError.
    """
    return bytes(array).decode()
