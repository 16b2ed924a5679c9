"""Every error that fairopt raises on purpose.

::

    Exception
    └── FairoptError
        ├── InvalidInstance     (also a ValueError)  the question is not well posed: what, where, what to do
        ├── Unsupported         this can never be done that way: which way can
        ├── SolverUnavailable   the engine exists but its package is not installed: what to install
        ├── NoSolution          the engine stopped without an answer: what it had found until then
        └── CertificateError    the engine's answer failed fairopt's own check: never returned silently

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


class FairoptError(Exception):
    """Base of all errors that fairopt raises on purpose. Control characters of labels in its message are shown as escapes."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*(printable(each, keep="\n") if isinstance(each, str) else each for each in args))


class InvalidInstance(FairoptError, ValueError):
    """The instance (or the file that describes it) is not well posed."""


class Unsupported(FairoptError):
    """The combination asked for can never work; the message names one that does."""


class SolverUnavailable(FairoptError):
    """The engine's package is not installed; the message says how to install it."""


class NoSolution(FairoptError):
    """The engine stopped without an answer, for instance at a time limit, or as memory ran out.

    Attributes
    ----------
    known : mapping
        What had been established until then, for instance ``{"levels": [0.25], "users": ["alice"]}``: every value in it
        is final.
    """

    def __init__(self, message: str, known: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.known: dict[str, Any] = dict(known or {})


class CertificateError(FairoptError):
    """The engine's answer did not pass the check that fairopt makes of every answer."""
