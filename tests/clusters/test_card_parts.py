"""The effective part of a card, against counting in whole numbers how many tasks fit on it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.clusters.card_parts import effective_part


@given(st.integers(1, 500), st.integers(1, 1500))
def test_as_many_tasks_fit_as_their_pieces_do(pieces: int, asked: int) -> None:
    """A card of k pieces has room for floor(k/s) tasks of s pieces; what is more than a card takes whole cards and the rest of one."""
    whole, rest = divmod(asked, pieces)
    expected = whole + (Fraction(1, pieces // rest) if rest else 0)
    assert effective_part(asked / pieces) == pytest.approx(float(expected))
    if asked <= pieces:
        assert effective_part(asked / pieces) == 1 / (pieces // asked)
