"""A study whose cells wait from the sixth on, so that something can be killed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

import fairopt as fo

__all__ = ["ASK", "SEEDS", "SPEC", "at_the_gate", "cells_in", "gated"]

SPEC = "uniform:users=3:servers=2:size=10"
SEEDS = 12
ASK: dict[str, Any] = {"notions": ["drfh"], "schedules": ["drfh:best-fit"], "seeds": range(SEEDS)}


def gated(folder: Path) -> Callable[[int], fo.Instance]:
    """Return a generator that marks each seed with its process, and waits from the sixth on until there is a file "open"."""
    spec, where = SPEC, str(folder)

    def drawn(seed: int) -> fo.Instance:  # a closure: it travels by value
        import os
        import time
        from pathlib import Path

        from fairopt.specs import read_generator

        Path(where, f"seed-{seed}-{os.getpid()}").touch()
        while seed >= 6 and not Path(where, "open").exists():
            time.sleep(0.01)
        return read_generator(spec)(seed)

    return drawn


def at_the_gate(folder: Path) -> set[int]:
    """Return the processes that wait."""
    return {int(path.name.split("-")[2]) for path in folder.glob("seed-*") if int(path.name.split("-")[1]) >= 6}


def cells_in(file: Path) -> int:
    """Count the cells that a file has."""
    return len(pd.read_parquet(file)["seed"].unique()) if file.exists() else 0
