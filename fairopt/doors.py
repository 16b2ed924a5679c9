"""Packages whose names are imported when they are asked for first (PEP 562), so that a package is light until it is used.

A package with such a door imports its names for type checkers under ``if TYPE_CHECKING``, and says here in which of its modules they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["door"]


def door(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    Parameters
    ----------
    package : str
        Its name: ``__name__`` there.
    names : mapping
        From modules of the package to the names that are found there.

    >>> door("email", {"message": ["Message"]})("Message").__name__
    'Message'
    """
    module_of = {name: module for module, inside in names.items() for name in inside}

    def find(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
