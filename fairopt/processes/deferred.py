"""Parts of NumPy that no command uses, loaded when somebody uses them.

NumPy loads them when they are first used. But SciPy, as it is imported, asks NumPy for each of its public names, and so loads them all: the
wrapper of Fortran and the tools of tests, and what these need, up to sockets. That takes longer than a small answer. So before SciPy is
first imported, a module that loads itself (`importlib.util.LazyLoader`) takes the place of each. The command line does so, as the process
is its own; ``import fairopt`` changes nothing of other packages.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["defer_before_scipy"]

_UNUSED = ("f2py", "testing")  # of numpy


def defer_before_scipy() -> None:
    """Have the unused parts of NumPy load themselves when they are used, from the moment at which SciPy is first imported."""
    if "scipy" not in sys.modules and not any(isinstance(finder, _BeforeScipy) for finder in sys.meta_path):
        sys.meta_path.insert(0, _BeforeScipy())


class _BeforeScipy:
    """Python asks it about each import, and so it knows when SciPy is imported."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find nothing but SciPy, which the other finders find once the unused parts are deferred."""
        if fullname != "scipy":
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        for name in _UNUSED:
            _defer(name)
        return find_spec(fullname)  # Python would pass over one finder, as the list that it goes through is shorter now


def _defer(name: str) -> None:
    """Put a module that loads itself in the place of a part of NumPy, where that has not been loaded."""
    from importlib.util import LazyLoader, find_spec, module_from_spec

    import numpy as np

    whole = f"numpy.{name}"
    spec = None if whole in sys.modules else find_spec(whole)
    if spec is None or spec.loader is None:
        return
    spec.loader = LazyLoader(spec.loader)
    module = module_from_spec(spec)
    sys.modules[whole] = module
    spec.loader.exec_module(module)
    setattr(np, name, module)
