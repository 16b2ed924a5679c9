"""Floats against fractions on a few random instances (tests/exactness.py asks about more), ties, and numbers that floats refuse."""

# mypy: disable-error-code="arg-type, no-any-return, union-attr"
# (fractions where the types say floats, and answers that are known to be in fractions)

from __future__ import annotations

import logging
from fractions import Fraction

import numpy as np
import pytest
from exactness import Tally, compare

import fairopt as fo

HAIR = Fraction(1, 10**30)


def test_floats_are_near_or_say_that_they_are_not() -> None:
    """Every notion that has both, flat and in queues."""
    logging.disable(logging.CRITICAL)
    tallies: dict[str, Tally] = {}
    try:
        for seed in range(3):
            compare(seed, tallies)
    finally:
        logging.disable(logging.NOTSET)
    assert len(tallies) >= 12
    assert sum(tally.compared for tally in tallies.values()) > 30
    assert {label: tally.wrong for label, tally in tallies.items() if tally.wrong} == {}


def test_ties_are_ties() -> None:
    """Identical users have identical shares; who needs 10^-30 more has that much less, and is at a level of its own."""
    twins = fo.Instance([[1, 1]] * 2, [[1, Fraction(1, 3)]] * 3 + [[1 + HAIR, Fraction(1, 3)]])
    shares = fo.solve(twins, "max-min", exact=True).exact.tasks_per_user
    assert len(set(shares.tolist())) == 1
    capped = twins.replace(tasks=[shares[0] - HAIR, np.inf, np.inf, np.inf])
    exact = fo.solve(capped, "max-min", exact=True)
    assert len(exact.exact.levels) == len(exact.levels) == 2
    assert 0 < exact.exact.levels[1] - exact.exact.levels[0] < 2 * HAIR


@pytest.mark.parametrize("power", [6, 30])
def test_numbers_that_floats_refuse(power: int) -> None:
    """Weights, demands and capacities from 10^-30 to 10^30 in one program: the shares are equal, and proved."""
    rng = np.random.default_rng(power)

    def spread(*shape: int) -> list[object]:
        return np.vectorize(lambda k: Fraction(10) ** int(k), otypes=[object])(rng.integers(-power, power + 1, shape)).tolist()

    for _ in range(4):
        instance = fo.Instance(spread(3, 2), spread(6, 2), weights=spread(6))
        exact = fo.solve(instance, "drfh", exact=True)
        assert exact.certificate.exact
        usage = [
            sum(exact.exact.tasks[n, i] * instance.exact.demands[n, r] for n in range(6)) <= instance.exact.capacities[i, r]
            for i in range(3)
            for r in range(2)
        ]
        assert all(usage)
        assert min(exact.exact.shares) == exact.exact.levels[0] > 0
