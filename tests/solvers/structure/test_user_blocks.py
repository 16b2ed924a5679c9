"""The matrix of blocks is the table it stands for, and is used where it is smaller."""

from __future__ import annotations

import numpy as np
import pytest
from instances import instance_in_zones

import fairopt as fo
from fairopt.certificate import certify
from fairopt.instance import BoolArray, IntArray
from fairopt.program import Leximin
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.levels import solve_levels
from fairopt.solvers.structure import user_blocks
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.pairs import PairLists
from fairopt.solvers.structure.scaling import ScaledProgram
from fairopt.solvers.structure.settings import SETTINGS
from fairopt.solvers.structure.user_blocks import UserBlocks, same_servers


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of small matrices, too."""
    monkeypatch.setattr(user_blocks, "SETTINGS", SETTINGS._replace(products_of_a_block=0.0, products_of_a_sum=0, least_users=0))


def in_zones(seed: int) -> tuple[IntArray, BoolArray]:
    """Kinds of 40 users, and who may run on which of 12 servers: of each kind's servers each user has most."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(6, size=40)
    servers = rng.random((6, 12)) < np.array([0.2, 0.2, 0.3, 0.3, 0.9, 1.0])[:, None]
    servers[np.arange(6), rng.integers(12, size=6)] = True
    there = servers[kind] & (rng.random((40, 12)) < 0.8)
    there[np.arange(40), servers[kind].argmax(axis=1)] = True
    return kind, there


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("slots", [1, 3])
def test_products_are_those_of_the_table(seed: int, slots: int) -> None:
    """With vectors, from both sides, and of all columns with each other."""
    kind, there = in_zones(seed)
    user, server = np.nonzero(there)
    blocks = UserBlocks.of(kind, user, server, 12, slots)
    assert blocks is not None
    assert len(blocks.blocks) <= 5  # the last two kinds have most servers, and are one
    rng = np.random.default_rng(seed)
    values, table = rng.normal(size=(slots, user.size)), np.zeros((40, slots * 12))
    for r in range(slots):
        table[user, r * 12 + server] = values[r]
    matrix = blocks.matrix(values)
    of_users, of_columns = rng.normal(size=40), rng.normal(size=slots * 12)
    np.testing.assert_allclose(matrix @ of_columns, table @ of_columns, atol=1e-12)
    np.testing.assert_allclose(matrix.T @ of_users, table.T @ of_users, atol=1e-12)
    np.testing.assert_allclose(matrix.T.T @ of_columns, table @ of_columns, atol=1e-12)
    np.testing.assert_allclose(matrix.gram(), table.T @ table, atol=1e-12)


def test_where_a_table_is_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where most users have most servers, where users are all different, and where a table is so small that calls take longer."""
    kind, there = in_zones(0)
    user, server = np.nonzero(there)
    assert UserBlocks.of(kind, user, server, 12, 3) is None
    monkeypatch.setattr(user_blocks, "SETTINGS", SETTINGS._replace(products_of_a_block=0.0, products_of_a_sum=0))
    assert UserBlocks.of(kind, user, server, 12, 3) is not None
    assert UserBlocks.of(np.arange(40), user, server, 12, 3) is None
    user, server = np.nonzero(np.ones((40, 12), bool))
    assert UserBlocks.of(kind, user, server, 12, 3) is None


def test_users_who_all_differ_are_in_no_blocks() -> None:
    """However few servers each has: the products of each would be added to those of all others."""
    rng = np.random.default_rng(0)
    there = rng.random((3_000, 400)) < 0.1
    there[:, 0] = True
    user, server = np.nonzero(there)
    assert UserBlocks.of(np.arange(3_000), user, server, 400, 3) is None
    assert UserBlocks.of(np.arange(3_000) % 5, user, server, 400, 3) is None  # kinds whose users have most servers together
    zone = np.arange(400) % 20
    user, server = np.nonzero(zone == np.arange(3_000)[:, None] % 20)
    assert UserBlocks.of(np.arange(3_000) % 20, user, server, 400, 3) is not None


def test_kinds_have_the_same_servers() -> None:
    """However many."""
    user, server = np.array([0, 0, 1, 2, 2, 3]), np.array([1, 9, 1, 9, 1, 0])
    kind = same_servers(user, server, (5, 10))
    assert kind[0] == kind[2]
    assert len({*kind.tolist()}) == 4  # the last user has none


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(3))
def test_a_path_with_blocks_has_the_same_levels(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many users on few servers, where limits are fewer than users."""
    program = fo.formulate(instance_in_zones(150, 12, 6, seed), "drfh")
    assert isinstance(program.goal, Leximin)
    assert PairLists(ScaledProgram.of(program), NUMPY)._blocks is not None
    with np.errstate(all="ignore"):  # as in ``paths``
        blocks = solve_levels(program, program.goal, 1e-8, Deadline(None))
        monkeypatch.setattr(user_blocks, "SETTINGS", SETTINGS._replace(worth=0.0))
        assert PairLists(ScaledProgram.of(program), NUMPY)._blocks is None
        table = solve_levels(program, program.goal, 1e-8, Deadline(None))
    assert blocks is not None
    assert table is not None
    assert certify(program, blocks).worst < 1e-8
    np.testing.assert_allclose(program.per_user(blocks.x), program.per_user(table.x), rtol=1e-7)
