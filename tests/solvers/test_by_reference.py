"""A compiled step does with a named tuple what the same function does in Python, and keeps nothing of it."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.solvers.by_reference import ByReference, pass_by_reference


class Inner(NamedTuple):
    """A named tuple within another."""

    amounts: FloatArray


class Kit(NamedTuple):
    """Members of all kinds."""

    counts: IntArray
    table: FloatArray
    marks: BoolArray
    factor: float
    number: int
    is_open: bool
    nothing: None
    inner: Inner
    other: FloatArray


class Pair(NamedTuple):
    """Members of one kind."""

    first: FloatArray
    second: FloatArray


def kit(rows: int = 3) -> Kit:
    """Return a kit whose last two members share no memory with the table."""
    table = np.arange(2.0 * rows).reshape(rows, 2)
    return Kit(np.zeros(rows, np.int64), table, np.zeros(rows, bool), 0.5, 7, True, None, Inner(np.ones(2)), np.full(rows, 4.0))


def below(kit: Any, i: int) -> Any:
    """Change an array, and return a sum of what was changed before."""
    kit.counts[i] += kit.number
    kit.marks[i] = kit.is_open
    return kit.counts[: i + 1].sum()


def above(kit: Any, rounds: int) -> Any:
    """Read in a loop what the loop changes; use all members."""
    total = 0.0
    for k in range(rounds):
        for i in range(kit.table.shape[0]):
            total += below(kit, i)
            kit.table[i, 1] = total * kit.factor + kit.table[i - 1, 0]
            kit.table[i, 0] += kit.other[i] + kit.inner.amounts[k % 2]
            kit.inner.amounts[1] += 1.0
            if kit.nothing is None:
                total += 1.0
    return total


def compiled(function: Any, **names: Any) -> Any:
    """Return a function compiled, which reads these names."""
    return numba.njit(type(function)(function.__code__, {"range": range} | names))


@pytest.fixture(scope="module")
def steps() -> Any:
    """Compile both once."""
    pass_by_reference(kit())
    return compiled(above, below=compiled(below))


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_members_are_read_and_changed_as_in_python(rows: int, steps: Any) -> None:
    """What one step changes, the step that called it sees, and so does Python; another tuple has arrays of its own."""
    for rounds in (1, 5):
        ours, plain = kit(rows), kit(rows)
        assert steps(ours, rounds) == above(plain, rounds)
        for mine, expected in zip(ours[:3], plain[:3], strict=True):
            np.testing.assert_array_equal(mine, expected)
        np.testing.assert_array_equal(ours.inner.amounts, plain.inner.amounts)


def test_it_is_a_reference(steps: Any) -> None:
    """One kind of tuple is compiled for once, whatever the sizes of its arrays."""
    steps(kit(2), 1)
    ((argument, _),) = steps.signatures
    assert isinstance(argument, ByReference)


def test_members_of_one_kind() -> None:
    """numba stores those as an array."""
    pair = Pair(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    pass_by_reference(pair)
    assert compiled(lambda pair, k: pair.first[k] - 10 * pair.second[k])(pair, 1) == 2.0 - 40.0


def test_nothing_is_kept(steps: Any) -> None:
    """Neither the tuple nor its arrays."""
    given = kit()
    before = [sys.getrefcount(member) for member in (given, given.table, given.inner.amounts, given.other)]
    for _ in range(10):
        steps(given, 2)
    assert [sys.getrefcount(member) for member in (given, given.table, given.inner.amounts, given.other)] == before


def test_there_is_no_other_name(steps: Any) -> None:
    """As in Python, but when it is compiled."""
    with pytest.raises(numba.TypingError, match="number_of_them"):
        compiled(lambda kit: kit.number_of_them)(kit())
    pass_by_reference(1.0, np.ones(2), None)  # which are no named tuples
    assert numba.typeof(np.ones(2)) == numba.float64[::1]  # type: ignore[no-untyped-call]
