"""Which nodes of a graph are joined, directly or through others.

SciPy's graphs load its linear algebra, which takes longer than most programs.
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import IntArray

__all__ = ["components"]


def components(one: IntArray, other: IntArray, size: int) -> IntArray:
    """Return the component of each of ``size`` nodes, named by its lowest node; links join ``one`` and ``other``, (links,).

    >>> components(np.array([3, 1]), np.array([4, 3]), 5)
    array([0, 1, 2, 1, 1])
    """
    part = np.arange(size)
    while (apart := part[one] != part[other]).any():
        one, other = one[apart], other[apart]
        low, high = np.minimum(part[one], part[other]), np.maximum(part[one], part[other])
        np.minimum.at(part, high, low)  # the lowest nodes of components are joined, and then everybody follows
        while (part[part] != part).any():
            part = part[part]
    return part
