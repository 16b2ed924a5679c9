"""What is out of reach in fractions is refused before it is tried."""

# mypy: disable-error-code="arg-type, union-attr"
# (fractions where the types say floats, and answers that are known to be in fractions)

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import fairopt as fo
from fairopt.errors import Unsupported
from fairopt.program.exact import ExactProgram
from fairopt.solvers.rational.effort import seconds_of_a_level
from fairopt.solving import fractions


def program_of(users: int, denominator: int = 10) -> ExactProgram:
    """A program of users whose demands have this denominator."""
    instance = fo.Instance([[100, 100]] * 3, [[Fraction(n + 1, denominator), 1] for n in range(users)], weights=range(1, users + 1))
    notion = fo.NOTIONS["drfh"]()
    return notion.in_fractions(instance.exact, notion.formulate(instance, sharing="rdm", integral=False))


def test_time_grows_with_users_and_digits() -> None:
    """By the cube of the number of users, and in proportion to digits."""
    small, large, long = (seconds_of_a_level(program_of(*size)) for size in ((10,), (100,), (10, 10**20 + 1)))
    assert large > 100 * small
    assert 3 * small < long < 30 * small


def test_what_would_take_hours_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the time that it would take, and what to do. Identical rows count once."""
    monkeypatch.setattr(fractions, "MOST_SECONDS", 0.01)
    rng = np.random.default_rng(0)
    many = fo.Instance(rng.uniform(1, 2, (10, 3)), rng.uniform(1, 2, (60, 3)))
    with pytest.raises(Unsupported, match=r"60 users that differ and 30 limits would take about .* ms a level.*leave exact out"):
        fo.solve(many, "drfh", exact=True)
    identical = fo.Instance([[9, 18]] * 10, [[1, 4]] * 300 + [[3, 1]] * 300)
    assert fo.solve(identical, "drfh", exact=True).exact.tasks_per_user.sum() == 50


def test_limits_of_a_single_pair_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices, of which there are as many as pairs, are divisions, not equations to be solved together."""
    monkeypatch.setattr(fractions, "MOST_SECONDS", 0.1)
    rng = np.random.default_rng(0)
    many = fo.Instance(rng.integers(1, 9, (12, 2)), rng.integers(1, 9, (40, 2)) + np.arange(40)[:, None])
    allocation = fo.solve(many, "uniform", exact=True)
    slices = (many.exact.capacities[None] / many.exact.demands[:, None]).min(axis=2) / 40
    assert allocation.exact.tasks.tolist() == slices.tolist()
