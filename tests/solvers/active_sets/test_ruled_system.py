"""The forms of the linear system of steps under rules against a dense solution of its equations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fairopt.solvers.active_sets.kkt import KKTSystem
from fairopt.solvers.active_sets.ruled_system import Curvature, Form, RuledRows, by_rows, whole, whole_with_largest_pivots
from fairopt.solvers.active_sets.settings import UNDER_RULES

FORMS = [by_rows, whole, whole_with_largest_pivots]


def rows_of(seed: int, users: int, limits: int, each: int = 8) -> tuple[RuledRows, np.random.Generator]:
    """Return random limits of random sign, two equations, and users of so many columns each."""
    rng = np.random.default_rng(seed)
    columns = users * each
    A, E = (rng.normal(size=(size, columns)) * (rng.random((size, columns)) < 0.3) for size in (limits, 2))
    user = np.repeat(np.arange(users), each)
    v = sp.csr_array((rng.uniform(0.5, 1, columns), (np.arange(columns), user)), shape=(columns, users))
    return RuledRows(sp.csr_array(A), sp.csr_array(E), v), rng


def dense(rows: RuledRows, D: np.ndarray, F: np.ndarray, curvature: Curvature, right: np.ndarray) -> np.ndarray:
    """Return dy, dp and dq, with the second derivative in full."""
    V, A, E = rows.v.toarray(), rows.limits.toarray(), rows.equations.toarray()
    H = np.diag(curvature.own) + curvature.across * curvature.factors @ curvature.across.T
    nothing = np.zeros((F.size, 2))
    matrix = np.block([[np.diag(D) + V @ H @ V.T, A.T, E.T], [A, -np.diag(F), nothing], [E, nothing.T, np.zeros((2, 2))]])
    return np.linalg.solve(matrix, right)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("users", [5, 60])
def test_every_form_solves_the_equations(form: Form, users: int) -> None:
    """Few unknowns, which are dense, and many; with columns and limits that are nearly fixed."""
    rows, rng = rows_of(1, users, 2 * users)
    D, F = 10 ** rng.uniform(-4, 4, users * 8), 10 ** rng.uniform(-4, 4, 2 * users)
    curvature = Curvature(rng.uniform(0.5, 2, users), np.zeros((users, 0)), np.zeros(0))
    right = rng.normal(size=D.size + F.size + 2)
    found = np.concatenate(form(rows, D, F, curvature)(*np.split(right, [D.size, D.size + F.size])))
    np.testing.assert_allclose(found, dense(rows, D, F, curvature, right), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("form", [whole, whole_with_largest_pivots])
def test_terms_of_rank_one(form: Form) -> None:
    """Of either sign."""
    rows, rng = rows_of(2, 5, 4)
    D, F = rng.uniform(0.5, 2, 40), rng.uniform(0.5, 2, 4)
    curvature = Curvature(rng.uniform(0.5, 2, 5), rng.uniform(0, 0.3, (5, 2)), np.array([-0.5, 0.7]))
    right = rng.normal(size=46)
    found = np.concatenate(form(rows, D, F, curvature)(*np.split(right, [40, 44])))
    np.testing.assert_allclose(found, dense(rows, D, F, curvature, right), rtol=1e-9, atol=1e-11)


def test_columns_are_eliminated_where_no_row_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column at its middle goes; one that fills a limit whose slack is nearly 0 stays."""
    rows, _ = rows_of(3, 60, 120, each=10)
    kept: list[np.ndarray] = []
    factorised = KKTSystem.factorised

    def noted(*given: np.ndarray) -> KKTSystem:
        kept.append(given[-1])
        return factorised(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(KKTSystem, "factorised", noted)
    D, F = np.ones(600), np.ones(120)
    filled = int(np.flatnonzero(np.diff(rows.limits.indptr))[0])
    curvature = Curvature(np.ones(60), np.zeros((60, 0)), np.zeros(0))
    by_rows(rows, D, F, curvature)
    assert not kept[-1].any()
    F[filled] = 1e-3 / UNDER_RULES.drowned
    by_rows(rows, D, F, curvature)
    entries = rows.limits[[filled]]
    assert set(np.flatnonzero(kept[-1])) == {int(k) for k, a in zip(entries.indices, entries.data, strict=True) if a * a > 1e-3}
