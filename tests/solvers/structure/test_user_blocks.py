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
from fairopt.solvers.structure.layouts import PairLists
from fairopt.solvers.structure.scaling import ScaledProgram
from fairopt.solvers.structure.settings import SETTINGS
from fairopt.solvers.structure.user_blocks import ColumnOrder, UserBlocks, same_servers


@pytest.fixture(params=[1.0, 1e9], ids=["by runs", "by columns"])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of small matrices, too; their products are added run by run, however short runs are, or column by column."""
    monkeypatch.setattr(user_blocks, "SETTINGS", SETTINGS._replace(products_of_a_block=0.0, products_of_a_sum=0, run=request.param))


def in_zones(seed: int) -> tuple[IntArray, BoolArray]:
    """Kinds of 40 users, and who may run on which of 12 servers: of each kind's servers each user has most."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(6, size=40)
    servers = rng.random((6, 12)) < np.array([0.2, 0.2, 0.3, 0.3, 0.9, 1.0])[:, None]
    servers[np.arange(6), rng.integers(12, size=6)] = True
    there = servers[kind] & (rng.random((40, 12)) < 0.8)
    there[np.arange(40), servers[kind].argmax(axis=1)] = True
    return kind, there


def blocks_in_zones(seed: int, slots: int) -> tuple[IntArray, IntArray, UserBlocks]:
    """User and server of each of these pairs, and the blocks of the users."""
    kind, there = in_zones(seed)
    user, server = np.nonzero(there)
    blocks = UserBlocks.of(kind, user, server, 12, slots)
    assert blocks is not None
    return user, server, blocks


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("slots", [1, 3])
def test_products_are_those_of_the_table(seed: int, slots: int) -> None:
    """With vectors, from both sides, and of all columns with each other."""
    user, server, blocks = blocks_in_zones(seed, slots)
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
    columns = blocks.order.column
    np.testing.assert_allclose(matrix.gram(), (table.T @ table)[np.ix_(columns, columns)], atol=1e-12)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("slots", [1, 3])
def test_a_system_of_columns_is_solved_in_their_order(seed: int, slots: int) -> None:
    """The products of columns and values between the slots of each server, both triangles; a right-hand side in the usual order."""
    user, _, blocks = blocks_in_zones(seed, slots)
    rng = np.random.default_rng(seed)
    matrix = blocks.matrix(rng.normal(size=(slots, user.size)))
    gram = matrix.gram()
    expected = np.array([matrix.T @ (matrix @ unit) for unit in np.eye(slots * 12)])
    for r in range(slots):
        for c in range(slots):
            values = rng.uniform(1, 2, 12) + 9 * (r == c)
            matrix.add_to_gram(gram, values, r, c)
            expected[r * 12 : (r + 1) * 12, c * 12 : (c + 1) * 12] += np.diag(values)
    right = rng.normal(size=slots * 12)
    solved = matrix.in_order(lambda values: np.asarray(np.linalg.solve(gram, values), np.float64))(right)
    np.testing.assert_allclose(solved, np.linalg.solve(expected, right), atol=1e-9)


def test_columns_of_servers_that_blocks_share_are_next_to_each_other() -> None:
    """Servers 0, 2 and 4 are of the first block alone, 1 and 3 of both, 5 of none."""
    order = ColumnOrder.of(np.array([[1, 1, 1, 1, 1, 0], [0, 1, 0, 1, 0, 0]], bool), 2)
    np.testing.assert_array_equal(order.column[order.place], np.arange(12))
    runs = [{0, 2, 4, 6, 8, 10}, {1, 3, 7, 9}, {5, 11}]  # the columns of the second slot are 6 more
    for run in runs:
        place = np.sort(order.place[list(run)])
        np.testing.assert_array_equal(place, np.arange(place[0], place[0] + len(run)))
    np.testing.assert_array_equal(order.first + order.step, order.place[6:])


def test_where_a_table_is_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where most users have most servers, where users are all different, and where a table is so small that calls take longer."""
    kind, there = in_zones(0)
    user, server = np.nonzero(there)
    assert UserBlocks.of(kind, user, server, 12, 3) is None
    monkeypatch.setattr(user_blocks, "SETTINGS", SETTINGS._replace(products_of_a_block=0.0, products_of_a_sum=0))
    assert UserBlocks.of(kind, user, server, 12, 3) is not None
    monkeypatch.setattr(user_blocks, "SETTINGS", SETTINGS._replace(products_of_a_block=0.0, products_of_a_sum=40))
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


def test_users_of_rare_kinds_have_blocks_where_these_are_faster() -> None:
    """A user alone of its kind is a block where all columns are so many that the sum of its products takes less; else it is with others."""
    for servers, alone in ((1_200, 5), (400, 0)):
        zone = np.arange(servers) % 40
        kind = np.append(np.repeat(np.arange(20), 100), np.arange(20, 25))
        user, server = np.nonzero(zone == kind[:, None])
        blocks = UserBlocks.of(kind, user, server, servers, 3)
        assert blocks is not None
        assert sum(block.users.size == 1 for block in blocks.blocks) == alone
        assert sum(block.columns.size == 3 * servers for block in blocks.blocks) == (alone == 0)


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
