"""Who is named where somebody loses: those who lose most first, whatever the last digits of the engine that answered."""

from __future__ import annotations

import numpy as np

import fairopt as fo
from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.population_monotonicity import _witness
from fairopt.processes.crew import Crew


def test_who_lose_as_much_are_named_in_the_order_of_the_instance() -> None:
    """Losses of 3, 3 less rounding, 1 and 3 more rounding, without "e"."""
    instance = fo.Instance([[60.0]], np.ones((5, 1)), users=["a", "b", "c", "d", "e"])
    case = Case.of(fo.solve(instance, "drfh"), 1, 0, Crew(), None)
    loss = np.array([1.0, 3.0 - 1e-8, 0.0, 3.0 + 1e-8, 0.0])
    witness = _witness(case, 4, np.zeros((4, 1)), case.value - loss, loss)
    assert witness.users == ("b", "d", "a", "e")
    assert (
        witness.text == 'Without "e", "b" runs 9 tasks instead of 12, "d" runs 9 tasks instead of 12 and "a" runs 11 tasks instead of 12.'
    )
