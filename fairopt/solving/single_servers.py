"""Whole tasks run on single servers: the instance in which each of them has a row of its own."""

from __future__ import annotations

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.aggregation import expand
from fairopt.wording import figure

__all__ = ["columns", "expanded"]

_MOST_WHOLE_PAIRS = 2_000_000


def expanded(instance: Instance) -> tuple[Instance, IntArray]:
    """Give every server a row of its own, unless that is out of all proportion."""
    pairs = float(instance.eligibility.sum(axis=0) @ instance.counts)
    if pairs > _MOST_WHOLE_PAIRS:
        raise Unsupported(
            f"whole tasks on {figure(instance.counts.sum())} single servers make {figure(pairs)} pairs of user and server, more than "
            f"{_MOST_WHOLE_PAIRS:,}; leave integral out (the fluid optimum bounds the whole one), or ask about a part of the cluster"
        )
    return expand(instance)


def columns(utility: FloatArray, row: IntArray) -> FloatArray:
    """Return the utility of single servers, ``row`` being the row that each belongs to."""
    return utility if utility.shape[1] == 1 else utility[:, row]
