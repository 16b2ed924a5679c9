"""Rows made by hand are those that SciPy makes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fairopt.program.sparse_rows import Products, by_rows, entries_of, selected, stacked


def drawn(seed: int, rows: int, columns: int) -> sp.csr_array:
    """Return a matrix with entries of 0, which stay, and rows without any."""
    rng = np.random.default_rng(seed)
    there = rng.random((rows, columns)) < 0.4
    row, column = np.nonzero(there)
    return by_rows(rng.integers(0, 3, row.size).astype(float), row, column, (rows, columns))


def same(one: sp.csr_array, other: sp.csr_array) -> bool:
    """Have both the same entries in the same places, those of 0 included?"""
    return one.shape == other.shape and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("data", "indices", "indptr")
    )


@given(seed=st.integers(0, 10**6), rows=st.integers(0, 6), columns=st.integers(1, 5))
@settings(max_examples=60)
def test_as_scipy_does_it(seed: int, rows: int, columns: int) -> None:
    """Made from entries in any order of rows, selected by numbers, in any order and several times, and by booleans, and stacked."""
    rng = np.random.default_rng(seed)
    matrix = drawn(seed, rows, columns)
    entries = sp.coo_array(matrix)
    by_column = np.lexsort((entries.coords[0], entries.coords[1]))
    row, column = (axis[by_column].astype(np.int64) for axis in entries.coords)
    assert same(by_rows(entries.data[by_column], row, column, matrix.shape), matrix)
    numbers = rng.integers(0, rows, 4) if rows else np.zeros(0, np.int64)
    some = rng.random(rows) < 0.5
    for chosen in (numbers, some, np.flatnonzero(some), np.arange(rows // 2)):
        assert same(selected(matrix, chosen), matrix[chosen])
    other = drawn(seed + 1, 3, columns)
    assert same(stacked([matrix, other, matrix]), sp.vstack([matrix, other, matrix], format="csr"))


def test_positions_of_entries() -> None:
    """Row by row, as they are named: the last row has two entries, the first has one, and the one between none."""
    matrix = by_rows(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 2]), np.array([1, 0, 1]), (3, 2))
    where, sizes = entries_of(matrix, np.array([2, 1, 0]))
    assert where.tolist() == [1, 2, 0]
    assert sizes.tolist() == [2, 0, 1]


@given(seed=st.integers(0, 10**6), rows=st.integers(0, 6), columns=st.integers(1, 5))
@settings(max_examples=60)
def test_products_are_those_of_scipy(seed: int, rows: int, columns: int) -> None:
    """Of whole numbers exactly; rows without entries give 0."""
    matrix = drawn(seed, rows, columns)
    x = np.random.default_rng(seed).integers(-3, 4, columns).astype(float)
    assert np.array_equal(Products.of(matrix)(x), matrix @ x)
