"""A search for worst cases kept in a folder, so that it goes on from there after it was stopped, even by ``kill -9``.

Every search gives its state as arrays and takes it back: rounds of random instances (`fairopt.analysis.worst_cases.course`), instances
drawn from a box, and branch and bound (`fairopt.analysis.bounds`). Nothing of a file is believed before it is checked: a regret is that of
its instance, which is solved again. But how many instances were tried, the bounds of parts, and that no part is missing, only the run that
wrote the file knows. So it counts as one's own work: do not take it from a stranger.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol

from fairopt.errors import InvalidInstance, NoSolution, Unsupported
from fairopt.files.progress import Progress
from fairopt.files.stores import Arrays
from fairopt.models import Notion
from fairopt.registry import contents
from fairopt.results import options_of, plain

__all__ = ["Kept", "Search", "identity", "identity_of_notion"]

_WHO = "search for a worst case"


class Search(Protocol):
    """What is kept of a search."""

    def state(self) -> dict[str, Any]:
        """Return the state as arrays by name."""

    def restore(self, arrays: Arrays) -> None:
        """Go on from a state; raise KeyError, TypeError or ValueError if it is none, and NoSolution if it is more than is asked for."""


class Kept:
    """The file of a search, or none. As a context manager, it takes up what is there, is its only writer, and writes it at the end.

    Parameters
    ----------
    folder : path or None
        Nothing is kept without one.
    file : str
    request : mapping
        What was asked, by words that a message may show.
    search : Search
    """

    def __init__(self, folder: str | os.PathLike[str] | None, file: str, request: Mapping[str, Any], search: Search) -> None:
        self._progress = None if folder is None else Progress(folder, file, _WHO, plain(request))
        self._search = search
        self._stack = contextlib.ExitStack()
        self.has_gone_on = False

    def __enter__(self) -> Kept:
        if self._progress is not None:
            with contextlib.ExitStack() as stack:
                stack.enter_context(self._progress.writing())
                if (arrays := self._progress.read()) is not None:
                    self._restore(self._progress, arrays)
                self._stack = stack.pop_all()
        return self

    def _restore(self, progress: Progress, arrays: Arrays) -> None:
        try:
            self._search.restore(arrays)
        except NoSolution as error:
            raise InvalidInstance(f"{progress.path} {error}") from None
        except (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise progress.damaged(error) from error
        self.has_gone_on = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        with self._stack:
            if self._progress is not None:
                self._progress.write(self._search.state())

    def offer(self) -> None:
        """Write the state, if it is time."""
        if self._progress is not None:
            self._progress.offer(self._search.state)

    @property
    def hint(self) -> str:
        """How to go on after an error."""
        if self._progress is None:
            return "nothing is kept without a folder to resume from (resume=, --resume)"
        return f"what was tried is kept in {self._progress.path}; run the same search again to go on"


def identity(spec: Any) -> Any:
    """Return what tells a schedule or a notion from others: of a text, with a hash of the files that it names.

    Raises
    ------
    Unsupported
        It is a function, which nothing tells from another one.
    """
    if isinstance(spec, str):
        return f"{spec} {contents(spec)}".strip()
    if callable(spec) and not isinstance(spec, type):
        raise Unsupported("a search goes on only if its schedule is named by a text, such as mine.py:in_turn; leave resume out")
    return spec


def identity_of_notion(asked: Any, chosen: Notion, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what tells a notion from others: as it was asked for, if by a text, else its name and all its options."""
    if isinstance(asked, str):
        return {"notion": identity(asked), "options": dict(options)}
    return {"notion": chosen.name, "options": dict(options) if asked is None else options_of(chosen)}
