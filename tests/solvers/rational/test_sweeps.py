"""Where turns of servers lead: a geometric series, a drift, and neither."""

from __future__ import annotations

from flint import fmpq

from fairopt.solvers.rational.servers import Servers
from fairopt.solvers.rational.sweeps import ahead, groups_of, shortened, swept


def numbers(*values: int) -> list[fmpq]:
    """As rationals."""
    return [fmpq(value) for value in values]


def test_a_geometric_series_has_its_limit() -> None:
    """1 was moved, then 1/2: 1/2 more follow; a pair that would fall below 0 ends it."""
    half = fmpq(1, 2)
    assert ahead(numbers(3, 4), numbers(1, -1), [half, -half]) == [fmpq(7, 2), fmpq(7, 2)]
    assert ahead([fmpq(3), fmpq(1, 4)], numbers(1, -1), [half, -half]) == [fmpq(13, 4), fmpq(0)]


def test_a_drift_ends_where_a_pair_holds_none() -> None:
    """The same each time: from 3 and 4 to 7 and 0."""
    assert ahead(numbers(3, 4), numbers(1, -1), numbers(1, -1)) == numbers(7, 0)
    assert ahead(numbers(3, 4), numbers(1, 1), numbers(1, 1)) == numbers(3, 4)  # nobody loses: no end


def test_other_turns_are_left_alone() -> None:
    """Another direction, and nothing at all."""
    assert ahead(numbers(3, 4), numbers(1, -1), numbers(1, 1)) == numbers(3, 4)
    assert ahead(numbers(3, 4), numbers(0, 0), numbers(0, 0)) == numbers(3, 4)


def test_a_sweep_of_two_servers() -> None:
    """User 0 on both, user 1 on the second, 2 of everything: from nothing, 0 has 2, then 1 all of the second."""
    one = fmpq(1)
    servers = Servers([0, 0, 1], [one, one, one], [{0: one}, {1: one, 2: one}], numbers(2, 2), [None, None])
    groups = groups_of(servers)
    assert groups == [([0], [0]), ([1, 2], [1])]
    (holds, complete, stop), x = swept(servers, groups, numbers(0, 0, 0))
    assert x == numbers(2, 0, 2)
    assert (holds, complete, stop) == (frozenset({0, 2}), frozenset(), (0, 1, 1))


def test_digits_are_cut_far_behind_a_hair() -> None:
    """A third keeps its name; a number of 10,000 bits does not."""
    assert shortened(fmpq(1, 3)) == fmpq(1, 3)
    long = fmpq(1, 3**7000)
    assert 0 <= long - shortened(long) < fmpq(1, 10**1000)
