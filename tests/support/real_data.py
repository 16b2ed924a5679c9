"""Where real exports and traces lie, which are not part of the project: in the folder that FAIROPT_DATA names, or beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__ = ["DATA", "needs"]

DATA = Path(os.environ.get("FAIROPT_DATA") or Path(__file__).parents[3] / "shared" / "data")


def needs(folder: str = "") -> pytest.MarkDecorator:
    """Skip a test, saying why, where a folder of them is absent."""
    return pytest.mark.skipif(not (DATA / folder).is_dir(), reason=f"{folder or 'real exports'}: not here; FAIROPT_DATA names the folder")
