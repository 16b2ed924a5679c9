"""A deadline that passes where a test wants it to."""

from __future__ import annotations

from fairopt.solvers.backend import Deadline

__all__ = ["Late"]


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
