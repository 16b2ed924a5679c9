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
        there = dict(registry._REGISTRIES)
        for each in there.values():
            before.enter_context(patch.dict(each))
        yield
        for kind in registry._REGISTRIES.keys() - there.keys():  # their modules were imported meanwhile
            for name in registry._REGISTRIES[kind]._added():
                del registry._REGISTRIES[kind][name]
