"""Rows of limits: which are dropped, and what is left of the others."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import fairopt as fo
from fairopt.models.drfh import DRFH
from fairopt.program import Program
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


class Apart(DRFH):
    """DRFH with a row of its own: a and b together have at most so many tasks on server-1."""

    name = "apart"

    def merges(self, instance: fo.Instance) -> bool:
        """Return False: the row tells users apart."""
        return False

    def formulate(self, instance: fo.Instance, *, sharing: Any, integral: bool) -> Program:
        """Return the program with the row."""
        program = super().formulate(instance, sharing=sharing, integral=integral)
        here = (program.pair_servers == 0) & np.isin(program.pair_users, (0, 1))
        row = Limits.of(LimitKind.NAMED, sp.csr_array(here[None, :].astype(float)), [0.1], [len(program.queue_limits)])
        limits = Limits.stack([program.limits, row])
        return replace(program, limits=limits, queue_limits=(*program.queue_limits, "a and b on server-1"))


def test_a_row_of_the_notions_own() -> None:
    """Its price proves the level, in floats and in fractions, where 0.1 is 1/10; an explanation names it."""
    instance = fo.Instance([[9, 18], [6, 6]], [[1, 4], [3, 1], [1, 1]], users=["a", "b", "c"])
    floats, exact = fo.solve(instance, Apart()), fo.solve(instance, Apart(), exact=True)
    assert exact.exact is not None
    assert exact.exact.tasks[:2, 0].sum() == Fraction(1, 10)
    np.testing.assert_allclose(floats.tasks_per_user, exact.tasks_per_user, rtol=1e-9)
    assert floats.queue_prices["a and b on server-1"] > 0
    assert 'Bottleneck: "a and b on server-1" of 0.1 is used up.' in str(fo.explain(floats, "a"))
    assert "used up" not in str(fo.explain(floats, "c"))
    for engine in ("interior-point", "cvxpy", "pyomo"):
        other = fo.solve(instance, Apart(), solver=engine)
        np.testing.assert_allclose(other.tasks_per_user, exact.tasks_per_user, rtol=1e-6)
    with pytest.raises(fo.Unsupported, match="rows that it does not know"):
        fo.solve(instance, Apart(), solver="large")


def test_slices_of_a_stranger_in_fractions() -> None:
    """A notion that has slices and says nothing of them in fractions is refused."""

    class Sliced(DRFH):
        def formulate(self, instance: fo.Instance, *, sharing: Any, integral: bool) -> Program:
            program = super().formulate(instance, sharing=sharing, integral=integral)
            keys = np.column_stack([program.pair_users, program.pair_servers])
            slices = Limits.of(LimitKind.SLICE, sp.eye_array(program.n_pairs, format="csr"), np.ones(program.n_pairs), keys)
            return replace(program, limits=Limits.stack([program.limits, slices]))

    with pytest.raises(fo.Unsupported, match="gives no slices in fractions; leave exact out"):
        fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), Sliced(), exact=True)


def test_long_rows_are_summed_in_pairs() -> None:
    """A row of a million terms is exact to a few units in the last place, rows without terms take nothing."""
    values = np.random.default_rng(0).uniform(0.1, 2.0, 1_000_000)
    matrix = sp.csr_array((values, np.arange(values.size), [0, 0, values.size, values.size]), shape=(3, values.size))
    rows = Limits(matrix, np.ones(3), np.zeros(3, np.int64), np.zeros((3, 2), np.int64))
    used = rows.used(np.ones(values.size))
    assert used[0] == used[2] == 0.0
    assert abs(used[1] / math.fsum(values) - 1) <= 22 * 1.2e-16
    np.testing.assert_array_equal(Limits.none(4).used(np.ones(4)), np.zeros(0))


def test_some_rows_are_those_rows() -> None:
    """The first ones, some in between, in another order, all and none, by positions or by a mask."""
    limits = fo.formulate(fo.Instance([[4, 5], [6, 7]], [[1, 2], [3, 1], [1, 1]], tasks=[2, np.inf, 3]), "max-min").limits
    for rows in ([0, 1, 2], [0], [1, 3], [4, 0], list(range(len(limits))), []):
        chosen = limits.select(np.array(rows, np.int64))
        assert chosen.matrix.toarray().tolist() == limits.matrix.toarray()[rows].tolist()
        assert (chosen.bounds.tolist(), chosen.kinds.tolist()) == (limits.bounds[rows].tolist(), limits.kinds[rows].tolist())
        assert chosen.keys.tolist() == limits.keys[rows].tolist()
        mask = np.isin(np.arange(len(limits)), rows)
        assert limits.select(mask).matrix.toarray().tolist() == limits.matrix.toarray()[mask].tolist()
