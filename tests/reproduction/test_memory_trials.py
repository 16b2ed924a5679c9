"""Fairness with a memory: every row agrees, and each rule gives what is worked out by hand."""

from __future__ import annotations

import pytest

from fairopt.reproduction.memory_trials import memory_rows, received
from fairopt.reproduction.trials import Run, Verdict


def test_every_row_agrees() -> None:
    """Karma, dynamic DRF, and parallel jobs under two rules."""
    assert [row.verdict for row in memory_rows(Run())] == [Verdict.AGREES] * 5


def test_karma_guarantees_a_part() -> None:
    """With everything guaranteed C gets nothing back; with nothing it is first at once."""
    assert received("karma:alpha=1:period=1").tolist() == pytest.approx([6, 6, 3])
    assert received("karma:alpha=0:period=1").tolist() == pytest.approx([5, 5, 5])
