"""Equilibria and alpha-fair goals through the door: ``solve(..., exact=True, digits=...)``."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from instances import degenerate_instance, instance_of_everything, instance_of_extremes

import fairopt as fo
from fairopt.solving.enclosures import DIGITS, in_floats_above

Instance: Any = fo.Instance  # array types do not know Fractions
solve: Any = fo.solve  # its answers have fractions here

QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("psdsf", {}),
    ("psdsf", {"sharing": "tdm"}),
    ("proportional", {}),
    ("proportional", {"alpha": 2, "sharing": "tdm"}),
    ("fds", {"beta": 0.5}),
    ("gfj", {}),
]
FIGURE_2 = Instance([[9, 12, 100], [12, 12, 0]], [[1.5, 1, 10], [1, 2, 10], [0.5, 1, 0], [1, 0.5, 0]])


def instances_of_all_kinds(seed: int) -> list[fo.Instance]:
    """Everything that an instance may have, magnitudes, and ties."""
    return [instance_of_everything(seed), instance_of_extremes(seed), degenerate_instance(seed)[1]]


@pytest.mark.parametrize(
    ("notion", "options"), QUESTIONS, ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.values()))
)
def test_floats_agree(notion: str, options: dict[str, Any]) -> None:
    """Within 1e-9, user by user; in fractions all limits are kept to the last digit."""
    for seed in range(1):
        for instance in instances_of_all_kinds(seed):
            answer = solve(instance, notion, exact=True, **options)
            floats = solve(instance, notion, **options)
            held = np.maximum(answer.tasks_per_user, 1e-300)
            assert (np.abs(answer.tasks_per_user - floats.tasks_per_user) <= 1e-9 * held).all(), seed
            exact = answer.exact
            assert exact is not None
            assert exact.radius <= Fraction(1, 10**DIGITS)
            assert answer.certificate.exact == (exact.radius == 0)
            if options.get("sharing") != "tdm":
                used = exact.tasks.T @ instance.exact.demands
                assert (used <= instance.exact.row_capacity).all()


def test_figure_2_of_the_psdsf_paper() -> None:
    """3.6 is 18/5."""
    answer = solve(FIGURE_2, "psdsf", exact=True)
    assert answer.exact is not None
    assert answer.exact.tasks_per_user.tolist() == [Fraction(18, 5), Fraction(18, 5), 8, 8]
    assert answer.exact.shares[0].tolist() == [Fraction(3, 5), 0]
    assert (answer.certificate.worst, answer.certificate.exact) == (0, True)


def test_the_market_is_the_equilibrium() -> None:
    """Two programs for PS-DSF under time division have the same fractions."""
    for seed in range(6):
        instance = instance_of_everything(seed).replace(tasks=None)
        market, equilibrium = (
            solve(instance, "psdsf", sharing="tdm", exact=True, **options).exact for options in ({"formulation": "market"}, {})
        )
        assert market is not None
        assert equilibrium is not None
        assert market.radius <= Fraction(1, 10**30)
        pairs = zip(market.tasks_per_user, equilibrium.tasks_per_user, strict=True)
        assert all(abs(a - b) <= market.radius * b for a, b in pairs), seed


def test_digits() -> None:
    """As many as asked for, and only with exact."""
    for digits in (1, 17, 120):
        answer = solve(FIGURE_2, "proportional", alpha=3, exact=True, digits=digits)
        assert answer.exact is not None
        assert 0 < answer.exact.radius <= Fraction(1, 10**digits)
    with pytest.raises(fo.Unsupported, match="exact=True"):
        solve(FIGURE_2, "proportional", digits=20)
    for wrong in (0, 1.5, 10**6):
        with pytest.raises(fo.Unsupported, match="whole number"):
            solve(FIGURE_2, "proportional", exact=True, digits=wrong)


def test_nobody_and_nothing() -> None:
    """A cluster in which nobody can run, and users without tasks or demand."""
    nobody = solve(Instance([[0.0]], [[1.0]]), "proportional", exact=True)
    assert nobody.exact is not None
    assert nobody.exact.tasks_per_user.tolist() == [0]
    for notion in ("proportional", "psdsf", "fds"):
        few = solve(Instance([[4]], [[1], [0], [1]], tasks=[np.inf, 3, 0]), notion, exact=True)
        assert few.exact is not None
        assert few.exact.tasks_per_user.tolist() == [4, 3, 0]


def test_a_choice_among_several_is_answered() -> None:
    """Section 5.5 of the paper: the fair set is (z, 1 - z, 1 - z) with z from 1/2 to 7/10."""
    pool = Instance([[1, 1]], [[1, 1], [0, 1], [1, 0]], weights=[0.5, 0.3, 0.2])
    for prefer, ends in (([-1, 0, 0], [0.5, 0.5, 0.5]), ([1, 0, 0], [0.7, 0.3, 0.3])):
        found = solve(pool, "bbf", prefer=prefer, exact=True)
        assert found.exact is not None
        assert found.exact.tasks_per_user.tolist() == [Fraction(str(end)) for end in ends]
        assert found.certificate.exact


def test_a_float_above() -> None:
    """Never below, also where the nearest float is."""
    for value in (Fraction(1, 3), Fraction(1, 10), Fraction(1, 10**400)):
        assert Fraction(in_floats_above(value)) >= value
