"""Lazy imports (PEP 562): a package imports a name when it is first used, so that importing the package itself is fast.

Such a package imports its names for type checkers under ``if TYPE_CHECKING``, and tells `door` which of its modules has which names.
"""

from __future__ import annotations

import gc
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
        Its name, ``__name__``.
    names : mapping
        From each module of the package to the names that it defines.

    >>> door("email", {"message": ["Message"]})("Message").__name__
    'Message'
    """
    module_of = {name: module for module, inside in names.items() for name in inside}

    def find(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        collects = gc.isenabled()
        gc.disable()  # an import leaves hardly any garbage, and to look for it among all objects of large packages takes long
        try:
            value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        finally:
            if collects:
                gc.enable()
        setattr(sys.modules[package], name, value)
        return value

    return find
