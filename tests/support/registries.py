"""The registries of notions and placements, as they were before a test that adds to them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import fairopt as fo
from fairopt import registry

__all__ = ["registries_restored"]


@contextmanager
def registries_restored() -> Iterator[None]:
    """Take back what is added to the registries, the files that were read, their folders and the path of imports."""
    with (
        patch.object(sys, "path", [*sys.path]),
        patch.object(registry, "_FOLDERS", []),
        patch.dict(fo.NOTIONS),
        patch.dict(fo.PLACEMENTS),
        patch.dict(registry._FILES),
    ):
        yield
