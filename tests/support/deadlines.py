"""A deadline that passes where a test wants it to, a clock of a busy machine, and the work that is counted."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from fairopt.solvers import backend
from fairopt.solvers.backend import Deadline

__all__ = ["Late", "slow_clock", "steps_spent"]


def slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an hour pass from each look at the clock of deadlines to the next."""
    hours = itertools.count(0.0, 3600.0)
    monkeypatch.setattr(backend, "time", SimpleNamespace(monotonic=lambda: next(hours)))


def steps_spent(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list that will have the work of each time that work is spent."""
    spent: list[float] = []
    count = Deadline.spend

    def spend(deadline: Deadline, work: float) -> None:
        spent.append(work)
        count(deadline, work)

    monkeypatch.setattr(Deadline, "spend", spend)
    return spent


class Late(Deadline):
    """It passes after it has been looked at so many times."""

    def __init__(self, looks: int) -> None:
        super().__init__(1.0)
        self.looks = looks

    @property
    def left(self) -> float:
        """One second, then none."""
        self.looks -= 1
        return float(self.looks > 0)
