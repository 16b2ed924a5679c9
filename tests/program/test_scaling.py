"""A program in units of its own, and the way back."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import instances

import fairopt as fo
from fairopt.program import Program


@settings(max_examples=50, deadline=None)
@given(instances())
def test_every_column_reaches_one(instance: fo.Instance) -> None:
    """max over the limits of use[j, p] = 1 for every column p that has room."""
    scaled = fo.formulate(instance, "drfh").scaled()
    if scaled.n_columns:
        assert np.asarray(scaled.use.max(axis=0).toarray()).ravel() == pytest.approx(1.0, rel=1e-14)


@settings(max_examples=50, deadline=None)
@given(instances())
def test_the_way_back(instance: fo.Instance) -> None:
    """With x = tasks(y) and p = prices(price): A x = b * (use y), U = per_user(utilities y), and p A x = price use y."""
    program = fo.formulate(instance, "drfh")
    scaled = program.scaled()
    rng = np.random.default_rng(0)
    y, price = rng.uniform(0, 1, scaled.n_columns), rng.uniform(0, 1, scaled.rows.size)
    x, p = scaled.tasks(y), scaled.prices(price)
    used = program.limits.matrix @ x
    assert used[scaled.rows] == pytest.approx(program.limits.bounds[scaled.rows] * (scaled.use @ y), rel=1e-12)
    assert program.per_user(program.utilities * x)[scaled.members] == pytest.approx(scaled.per_user(scaled.utilities * y), rel=1e-12)
    assert p @ used == pytest.approx(price @ (scaled.use @ y), rel=1e-12)
    assert scaled.tasks(np.ones(scaled.n_columns)) == pytest.approx(program.largest(), rel=1e-14)


def test_numbers_are_dense() -> None:
    """A user without tasks and a server without room are left out; the others are numbered from 0 on, in their order."""
    instance = fo.Instance([[4, 4], [0, 0], [2, 8]], [[1, 1], [1, 2], [1, 1]], tasks=[3, 0, np.inf])
    scaled = fo.formulate(instance, "drfh").scaled()
    assert scaled.members.tolist() == [0, 2]
    assert scaled.servers.tolist() == [0, 2]
    assert scaled.user.tolist() == [0, 0, 1, 1]
    assert scaled.server.tolist() == [0, 1, 0, 1]
    assert scaled.first.tolist() == [0, 2]
    assert scaled.scale.tolist() == [3, 2, 4, 2]


def program() -> Program:
    """Two users on one server."""
    return fo.formulate(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), "drf")


def test_largest_values_are_computed_once() -> None:
    """And nobody can write to them."""
    once = program()
    assert once.largest() is once.largest()
    with pytest.raises(ValueError, match="read-only"):
        once.largest()[0] = 1.0


def test_a_changed_program_has_largest_values_of_its_own() -> None:
    """Twice the bounds, twice the largest values; copies through pickle keep what they know."""
    once = program()
    before = once.largest()
    twice = replace(once, limits=replace(once.limits, bounds=2 * once.limits.bounds))
    assert twice.largest().tolist() == (2 * before).tolist()
    assert once.largest().tolist() == before.tolist()
    assert pickle.loads(pickle.dumps(once)).largest().tolist() == before.tolist()
