"""Parts of cards: what fits on cards by trying, and what is said."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from fairopt.clusters.parts import Parts, effective_part, in_effective_parts


@given(st.fractions(min_value=Fraction(1, 40), max_value=1, max_denominator=1000), st.integers(1, 5))
def test_as_many_parts_fit_as_on_the_cards(part: Fraction, cards: int) -> None:
    """First fit on real cards holds as many as cards / effective part; an effective part is never less than the part."""
    left = [Fraction(1)] * cards
    placed = 0
    while (free := next((j for j, room in enumerate(left) if room >= part), None)) is not None:
        left[free] -= part
        placed += 1
    assert cards / effective_part(part) == placed
    assert effective_part(part) >= part


@given(st.integers(1, 500), st.integers(1, 1500))
def test_as_many_tasks_fit_as_their_pieces_do(pieces: int, asked: int) -> None:
    """A card of k pieces has room for floor(k/s) tasks of s pieces; what is more than a card takes whole cards and the rest of one."""
    whole, rest = divmod(asked, pieces)
    assert in_effective_parts(Fraction(asked, pieces)) == whole + (Fraction(1, pieces // rest) if rest else 0)


def test_decimals_are_what_they_are_written_as() -> None:
    """In floating point 1 / 0.1 and 1 / 0.7 are near misses; here 0.1 is a tenth, and 0.34 fits twice."""
    assert [effective_part(Fraction(text)) for text in ("0.1", "0.7", "0.34", "0.3334", "0.3333", "0.01")] == [
        Fraction(1, 10),
        1,
        Fraction(1, 2),
        Fraction(1, 2),
        Fraction(1, 3),
        Fraction(1, 100),
    ]


def test_parts_that_are_rounded_are_said_with_their_number() -> None:
    """Exact parts are not; unlike parts are, where one is rounded; long lists are cut."""
    exact = Parts()
    assert [exact.taken(Fraction(1, n)) for n in (2, 3)] == [Fraction(1, 2), Fraction(1, 3)]
    assert exact.notes("GPU") == []
    mixed = Parts()
    mixed.taken(Fraction("0.6"), 3)
    mixed.taken(Fraction("2.4"))
    assert mixed.notes("GPU", "pod") == [
        "a part of a GPU lies on one card: 0.4 takes an effective 1/2, as 2 fit on a card (1 pod) and "
        "0.6 takes an effective 1, as 1 fits on a card (3 pods); shares and quotas count what it takes",
        "parts of a GPU of unlike sizes (0.4 and 0.6) may share a card in the cluster, which does not count: a restriction",
    ]
    many = Parts()
    for n in range(51, 60):
        many.taken(Fraction(n, 100))
    assert "and 4 more" in many.notes("GPU")[0]
