"""How far a step goes: to where the first value would become 0, or a part of the way."""

from __future__ import annotations

from typing import Any

__all__ = ["length"]


def length(xp: Any, values: Any, change: Any, part: float = 1.0) -> float:
    """Return how far to go along a change, 1 at most: this part of the way to where the first of some positive values becomes 0.

    ``xp`` is the namespace of the arrays, which have one value at least.

    >>> import numpy as np
    >>> length(np, np.array([1.0, 2.0]), np.array([-4.0, 1.0]))
    0.25
    """
    steepest = -float(xp.min(change / values))
    return 1.0 if steepest <= part else part / steepest
