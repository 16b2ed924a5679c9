"""Every error that fairopt raises on purpose.

::

    Exception
    └── FairoptError
        ├── InvalidInstance     (also a ValueError) the instance or its file is wrong; what is wrong, where, and what to do
        ├── Unsupported         what was asked for can never work; what works instead
        ├── SolverUnavailable   the engine exists, but its package is not installed; what to install
        ├── NoSolution          the engine stopped without an answer; what it had found by then
        └── CertificateError    the engine's answer failed fairopt's own check, so it is not returned

A message says what is wrong, where (user, server, file and line) and what to do about it. A solver's own exceptions
never leave ``fairopt.solvers``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairopt.wording import printable

__all__ = [
    "CertificateError",
    "FairoptError",
    "InvalidInstance",
    "NoSolution",
    "SolverUnavailable",
    "Unsupported",
]


_LONGEST = 10_000  # characters of a message


def _bounded(message: str) -> str:
    """Return a message without its middle where it is very long, because of what stood in a file."""
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST // 2]} ... {message[-_LONGEST // 4 :]}"


class FairoptError(Exception):
    """Base of all errors that fairopt raises on purpose. A message is never very long, and shows control characters as escapes."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*(printable(_bounded(each), keep="\n\N{NO-BREAK SPACE}") if isinstance(each, str) else each for each in args))


class InvalidInstance(FairoptError, ValueError):
    """The instance, or the file that describes it, is wrong."""


class Unsupported(FairoptError):
    """What was asked for can never work; the message says what works instead."""


class SolverUnavailable(FairoptError):
    """The engine's package is not installed; the message says how to install it."""


class NoSolution(FairoptError):
    """The engine stopped without an answer, for instance at a time limit or when memory ran out.

    Attributes
    ----------
    known : mapping
        What the engine had found by then, for instance ``{"levels": [0.25], "users": ["alice"]}``. Every value in it is final.
    """

    def __init__(self, message: str, known: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.known: dict[str, Any] = dict(known or {})


class CertificateError(FairoptError):
    """The engine's answer failed the check that fairopt makes of every answer."""
