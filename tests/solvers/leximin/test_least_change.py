"""The least change that solves equations, against dense least squares."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.solvers.leximin.least_change import LeastChange, change_of_least


def test_of_underdetermined_equations_the_shortest_solution() -> None:
    """As the pseudo-inverse gives it."""
    matrix = np.random.default_rng(0).uniform(-1, 1, (4, 9))
    right = np.arange(1.0, 5.0)
    system = LeastChange.of(sp.csr_array(matrix))
    assert system is not None
    step, t = system.step(right)
    np.testing.assert_allclose(step, np.linalg.pinv(matrix) @ right, rtol=1e-9)
    assert t.size == 0


def test_equations_with_unknowns_of_their_own() -> None:
    """Minimise |z|^2 + |t|^2 subject to E z - B t = r, C t = c: the same as the pseudo-inverse of all rows."""
    rng = np.random.default_rng(1)
    matrix, shared, rows = rng.uniform(-1, 1, (4, 9)), rng.uniform(-1, 1, (4, 3)), rng.uniform(-1, 1, (1, 3))
    right, sides = np.arange(1.0, 5.0), np.array([0.5])
    system = LeastChange.of(sp.csr_array(matrix), sp.csr_array(shared), sp.csr_array(rows))
    assert system is not None
    z, t = system.step(right, sides)
    everything = np.block([[matrix, -shared], [np.zeros((1, 9)), rows]])
    np.testing.assert_allclose(np.append(z, t), np.linalg.pinv(everything) @ np.append(right, sides), rtol=1e-9)


def test_an_equation_without_an_entry_has_no_system() -> None:
    """Nothing can change it."""
    assert LeastChange.of(sp.csr_array(np.array([[1.0, 2.0], [0.0, 0.0]]))) is None


def test_many_equations_that_follow_from_a_few() -> None:
    """200 combinations of 3 equations in 5 unknowns: of all solutions of these 3, the one with the least sum of c z^2."""
    rng = np.random.default_rng(2)
    few, right = rng.uniform(-1, 1, (3, 5)), np.array([1.0, -2.0, 0.5])
    mix = rng.uniform(-1, 1, (200, 3))
    change = change_of_least(sp.csr_array(mix @ few))
    assert change is not None
    z = np.zeros(5)
    for _ in range(3):
        z += change(mix @ (right - few @ z))
    c = ((mix @ few) ** 2).sum(axis=0)
    np.testing.assert_allclose(z, np.linalg.pinv(few / np.sqrt(c)) @ right / np.sqrt(c), rtol=1e-3)
    np.testing.assert_allclose(few @ z, right, rtol=1e-9)
