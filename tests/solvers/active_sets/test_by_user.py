"""The system of a Newton step user by user: a dense solve of the same matrix says what it must give."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fairopt.instance import FloatArray
from fairopt.solvers.active_sets import kkt
from fairopt.solvers.active_sets.by_user import Rows, UserBlocks
from fairopt.solvers.active_sets.kkt import KKTSystem
from fairopt.solvers.active_sets.settings import SETTINGS


def _rows(rng: np.random.Generator, users: int, most: int, shared: int) -> Rows:
    """Users with 1 to ``most`` columns each: a utility each, a limit of its own of every other one, shared limits, and one of nobody."""
    user = np.repeat(np.arange(users), rng.integers(1, most + 1, users))
    columns = user.size
    own = sp.csr_array((rng.uniform(0.1, 1, columns), (user, np.arange(columns))), shape=(users, columns))
    limits = sp.csr_array((rng.uniform(0.1, 1, columns), (rng.integers(shared, size=columns), np.arange(columns))), shape=(shared, columns))
    nobody = sp.csr_array((1, columns))
    return Rows(sp.csr_array(sp.vstack([limits, nobody, own[::2], -own], format="csr")), user)


def _matrix(rows: Rows, D: FloatArray, F: FloatArray) -> FloatArray:
    """[[D, B'], [B, -F]]."""
    B = rows.B.toarray()
    return np.block([[np.diag(D), B.T], [B, -np.diag(F)]])


@pytest.mark.parametrize(("users", "most", "shared"), [(1, 3, 1), (7, 1, 2), (40, 4, 3), (60, 6, 20)])
@pytest.mark.parametrize("orders", [0.0, 3.0])
def test_a_system_is_solved_as_by_a_dense_solver(users: int, most: int, shared: int, orders: float) -> None:
    """Whatever sizes blocks have, with D and F over some orders of magnitude; the solution in units is K u = right."""
    rng = np.random.default_rng(users)
    rows = _rows(rng, users, most, shared)
    assert rows.blocks is not None
    D, F = (10 ** rng.uniform(-orders, orders, n) for n in rows.Bt.shape)
    units, solve = rows.blocks.factorised(rows, D, F)
    matrix = _matrix(rows, D, F) * units * units[:, None]
    x = rng.normal(size=units.size)
    np.testing.assert_allclose(solve(matrix @ x), x, rtol=1e-7, atol=1e-7)


def test_units_make_the_largest_entry_of_each_row_1() -> None:
    """Of rows of the whole symmetric matrix, whatever D and F are."""
    rng = np.random.default_rng(1)
    rows = _rows(rng, 30, 4, 3)
    for orders in (1.0, 6.0, 12.0):
        D, F = (10 ** rng.uniform(-orders, orders, n) for n in rows.Bt.shape)
        assert rows.blocks is not None
        units, _ = rows.blocks.factorised(rows, D, F)
        scaled = np.abs(_matrix(rows, D, F) * units * units[:, None])
        np.testing.assert_allclose(scaled.max(axis=1), 1.0, rtol=1e-12)


def test_a_block_with_small_diagonals_needs_pivots() -> None:
    """One user on two servers, both with room to spare for it, whose limit is full: D and F are 0 but for its utility."""
    B = sp.csr_array(np.array([[1.0, 1.0], [1.0, 0.5], [-0.9, -0.3]]))
    rows = Rows(B, np.zeros(2, np.int64))
    D, F = np.full(2, 1e-12), np.array([1e-12, 1e-12, 1.0])
    assert rows.blocks is not None
    units, solve = rows.blocks.factorised(rows, D, F)
    right = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    found = units * solve(units * right)
    np.testing.assert_allclose(found, np.linalg.solve(_matrix(rows, D, F), right), rtol=1e-9)


def test_no_blocks_where_they_would_be_large() -> None:
    """Many shared rows, and users with many columns, are for the sparse factorisation."""
    rng = np.random.default_rng(2)
    many = int(SETTINGS.most_shared) + 5
    assert _rows(rng, 4000, 3, many).blocks is None
    assert _rows(rng, 40, 200, 3).blocks is None


def test_a_singular_block_is_left_to_the_sparse_factorisation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where blocks fail, the step is that of the whole matrix."""

    def singular(*_: object) -> None:
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr(kkt, "SETTINGS", SETTINGS._replace(small=0))
    rng = np.random.default_rng(3)
    rows = _rows(rng, 30, 3, 2)
    D, F = (rng.uniform(0.5, 2, n) for n in rows.Bt.shape)
    right = rng.normal(size=D.size + F.size)
    expected = np.linalg.solve(_matrix(rows, D, F), right)
    for blocks in (rows.blocks.factorised if rows.blocks else singular, singular):
        monkeypatch.setattr(UserBlocks, "factorised", lambda _, *given, blocks=blocks: blocks(*given))
        found = KKTSystem.factorised(rows, D, F, np.ones(D.size, bool)).step(right[: D.size], right[D.size :])
        np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-9, atol=1e-12)
