"""All registries, as they were before a test that adds to them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from fairopt import registry

__all__ = ["registries_restored"]


@contextmanager
def registries_restored() -> Iterator[None]:
    """Take back what is added to the registries, the files that were read, their folders and the path of imports."""
    with ExitStack() as before:
        before.enter_context(patch.object(sys, "path", [*sys.path]))
        before.enter_context(patch.object(registry, "_FOLDERS", []))
        before.enter_context(patch.dict(registry._FILES))
        for each in registry._REGISTRIES.values():
            before.enter_context(patch.dict(each))
        yield
