"""Rows of limits: which are dropped, and what is left of the others."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.program.limits import LimitKind, Limits


def test_rows_without_an_entry_are_dropped() -> None:
    """The others keep their entries, their bounds and their keys, wherever the empty ones are."""
    for empty in ([], [0], [3], [1, 2], [0, 3], [0, 1, 2, 3]):
        dense = np.arange(1.0, 13.0).reshape(4, 3)
        dense[empty] = 0.0
        limits = Limits.of(LimitKind.CAPACITY, sp.csr_array(dense), 10.0 + np.arange(4), np.arange(4))
        left = np.delete(np.arange(4), empty)
        np.testing.assert_array_equal(limits.matrix.toarray(), dense[left])
        assert limits.bounds.tolist() == (10.0 + left).tolist()
        assert limits.keys.tolist() == [[row, -1] for row in left]
        assert limits.kinds.tolist() == [LimitKind.CAPACITY] * left.size


def test_blocks_are_stacked_over_the_same_columns() -> None:
    """In their order; a block of no rows adds nothing, and the matrix stays sparse by rows."""
    one = Limits.of(LimitKind.TASKS, sp.csr_array(np.array([[1.0, 0.0]])), [2.0], [0])
    other = Limits.of(LimitKind.TIME, sp.csr_array(np.array([[0.0, 3.0], [1.0, 1.0]])), [4.0, 5.0], [[0, 1], [2, 3]])
    both = Limits.stack([one, Limits.none(2), other])
    assert isinstance(both.matrix, sp.csr_array)
    np.testing.assert_array_equal(both.matrix.toarray(), [[1, 0], [0, 3], [1, 1]])
    assert both.bounds.tolist() == [2, 4, 5]
    assert both.keys.tolist() == [[0, -1], [0, 1], [2, 3]]
    assert both.kinds.tolist() == [LimitKind.TASKS, LimitKind.TIME, LimitKind.TIME]
    assert len(Limits.stack([Limits.none(2), Limits.none(2)])) == 0
