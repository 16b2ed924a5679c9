"""A fixed sample of tests/heuristic_bounds.py: no sampled instance beats a bound, and enumeration stays below it."""

from __future__ import annotations

import pytest
from heuristic_bounds import KINDS, ROUNDING, enumerated, tried


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_no_sampled_instance_beats_the_bound(kind: int) -> None:
    """Of each kind of box; the instance found is no worse than the bound, either."""
    row = tried(kind, 3, samples=8, time_limit=0.2)
    assert row.beaten == 0
    assert row.value <= row.bound + ROUNDING


@pytest.mark.parametrize(
    ("heuristic", "notion", "measure", "vary"),
    [
        ("uniform", "drfh", "level", "demands"),
        ("uniform", "drfh", "user", "tasks"),
        ("drfh:pop:parts=2", "max-min", "level", "demands"),
        ("per-server-drf", "drfh", "user", "demands"),
        ("efficiency", "efficiency", "total", "tasks"),
        ("drfh:first-fit", "drfh", "level", "demands"),
        ("drfh:geometric-binning:first=0.05:ratio=4:part=0.2", "drfh", "total", "tasks"),
    ],
)
def test_all_instances_of_whole_numbers(heuristic: str, notion: str, measure: str, vary: str) -> None:
    """Every one of them is solved: the worst lies below the upper end."""
    found = enumerated(heuristic, notion, measure, vary, 1, time_limit=0.3)
    assert found.largest <= found.bound + ROUNDING
    assert found.value <= found.bound + ROUNDING
