"""Answers of servers in rationals: by hand."""

from __future__ import annotations

from flint import fmpq

from fairopt.solvers.rational.responses import respond

ONE, TWO, HAIR = fmpq(1), fmpq(2), fmpq(1, 10**30)


def test_the_lowest_share_is_filled_first() -> None:
    """3 of one resource; the second user has 1 elsewhere, the third 5: they come to 2 each, and the third runs nothing here."""
    measure, elsewhere = dict.fromkeys(range(3), ONE), {0: fmpq(0), 1: ONE, 2: fmpq(5)}
    found = respond([0, 1, 2], measure, elsewhere, dict.fromkeys(range(3)), {4: (dict.fromkeys(range(3), ONE), fmpq(3))})
    assert found.tasks == {0: TWO, 1: ONE, 2: fmpq(0)}
    assert found.stop == {0: 4, 1: 4, 2: 4}


def test_resources_that_differ_by_a_hair() -> None:
    """2 and 2 + 10^-30: the first one stops both; the user that does not need it takes the hair."""
    rows = {0: ({0: ONE, 1: ONE}, TWO), 1: ({0: ONE, 1: ONE, 2: HAIR}, TWO + HAIR)}
    found = respond([0, 1, 2], dict.fromkeys(range(3), ONE), dict.fromkeys(range(3), fmpq(0)), dict.fromkeys(range(3)), rows)
    assert found.tasks == {0: ONE, 1: ONE, 2: ONE}
    assert (found.stop[0], found.stop[1]) == (0, 0)


def test_who_has_all_its_tasks_leaves_the_rest() -> None:
    """One of 5 has a half left, one has none; the third takes what is free."""
    left = {0: fmpq(1, 2), 1: fmpq(-1), 2: None}
    found = respond(
        [0, 1, 2], dict.fromkeys(range(3), ONE), dict.fromkeys(range(3), fmpq(0)), left, {0: (dict.fromkeys(range(3), ONE), fmpq(5))}
    )
    assert found.tasks == {0: fmpq(1, 2), 1: fmpq(0), 2: fmpq(9, 2)}
    assert found.stop == {0: -1, 1: -1, 2: 0}
