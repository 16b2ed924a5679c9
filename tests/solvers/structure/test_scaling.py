"""Programs in the units of an interior point, against the program itself, and the factors and sums that are made of them."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.program import LimitKind
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.layouts import PairLists, PairTable
from fairopt.solvers.structure.pairs import Pairs
from fairopt.solvers.structure.scaling import ScaledProgram, obstacle
from fairopt.solvers.structure.server_blocks import ServerBlocks

# Three users, three servers, one of them without anything that user 3 needs, and one that nobody can use; tasks of user 2 end.
INSTANCE = fo.Instance(
    [[8, 6], [4, 0], [5, 5]],
    [[1, 2], [2, 0], [1, 3]],
    weights=[1, 2, 4],
    eligibility=[[True, False, False], [True, True, False], [True, False, False]],
    tasks=[np.inf, 3, np.inf],
)


@pytest.mark.parametrize(
    ("notion", "options"), [("drfh", {}), ("drfh", {"formulation": "equalize"}), ("efficiency", {}), ("proportional", {})]
)
def test_limits_and_worth_are_those_of_the_program(notion: str, options: dict[str, str]) -> None:
    """A x <= 1 is what servers have, W x what users get in parts of their reach, for any x; tasks and prices go back."""
    program = fo.formulate(INSTANCE, notion, **options)  # type: ignore[arg-type]
    scaled = ScaledProgram.of(program)
    assert (scaled.n_users, scaled.n_servers, scaled.n_pairs) == (3, 2, 4)
    x = np.random.default_rng(0).random(4)
    tasks = scaled.tasks(x)
    rows = np.flatnonzero(program.limits.kinds != LimitKind.TASKS)
    rows = rows[(program.limits.bounds[rows] > 0) & (np.diff(program.limits.matrix.indptr)[rows] > 0)]
    use = np.array(
        [
            scaled.A[slot, scaled.server == server] @ x[scaled.server == server]
            for slot, server in zip(scaled.row_slot, scaled.row_place, strict=True)
        ]
    )
    np.testing.assert_allclose(use, ((program.limits.matrix @ tasks) / program.limits.bounds)[scaled.row], rtol=1e-15)
    assert set(rows) <= set(scaled.row)
    weights = program.inner_goal.weights
    factor = weights if notion == "efficiency" else np.ones(3) if notion == "proportional" else 1 / weights
    np.testing.assert_allclose(
        scaled.sum_by_user(scaled.W * x) * scaled.reach, program.per_user(program.utilities * tasks) * factor, rtol=1e-14
    )
    np.testing.assert_allclose(scaled.sum_by_user(scaled.W), 1.0, rtol=1e-15)
    p, y = np.random.default_rng(1).random((scaled.n_slots, scaled.n_servers)), np.ones(scaled.limited.size)
    prices = scaled.prices(p, y)
    cost = np.array([p[:, server] @ scaled.A[:, pair] for pair, server in enumerate(scaled.server)]) + scaled.T * (scaled.user == 1)
    np.testing.assert_allclose((program.limits.matrix.T @ prices)[scaled.column] * scaled.scale, cost, rtol=1e-14)


def test_limits_on_tasks_are_caps_or_rows() -> None:
    """In parts of the reach of leximins and alpha-fair goals; rows T x <= 1 of the others."""
    levels = ScaledProgram.of(fo.formulate(INSTANCE, "drfh"))
    program = levels.program
    per_task = program.utilities[program.pair_users == 1][0] / 2  # of a level
    np.testing.assert_allclose(levels.cap, [np.inf, 3 * per_task / levels.reach[1], np.inf], rtol=1e-15)
    assert (levels.n_levels, levels.n_rows, levels.limited.size) == (3, 3, 0)
    total = ScaledProgram.of(fo.formulate(INSTANCE, "efficiency"))
    assert (total.n_levels, total.n_rows, total.limited.tolist()) == (0, 1, [1])
    np.testing.assert_allclose(total.T, np.where(total.user == 1, total.scale / 3, 0.0), rtol=1e-15)


def test_limits_on_servers_at_once_are_second_rows_where_they_may_be() -> None:
    """T x is the part of its limit that a user takes, at any x; prices of second rows are those of the program's limits."""
    program = fo.formulate(INSTANCE.replace(parallelism=[np.inf, 0.5, 0.25]), "proportional")
    assert obstacle(program, at_once=True) == ""
    scaled = ScaledProgram.of(program, at_once=True)
    assert scaled.limited.tolist() == [1, 2]
    assert (program.limits.kinds[scaled.second_row] == LimitKind.PARALLELISM).all()
    x = np.random.default_rng(0).random(scaled.n_pairs)
    taken = (program.limits.matrix @ scaled.tasks(x)) / program.limits.bounds
    np.testing.assert_allclose(scaled.sum_by_user(scaled.T * x)[scaled.limited], taken[scaled.second_row], rtol=1e-14)
    prices = scaled.prices(np.zeros((scaled.n_slots, scaled.n_places)), np.array([5.0, 7.0]))
    np.testing.assert_allclose(prices[scaled.second_row], [5 / 0.5, 7 / 0.25], rtol=1e-15)
    assert np.isfinite(scaled.cap[1])  # tasks of an alpha-fair goal are caps, beside it


def test_a_user_has_one_second_row() -> None:
    """In a trade-off a limit on tasks is one, too."""
    instance = INSTANCE.replace(parallelism=[1, np.inf, np.inf])
    assert obstacle(fo.formulate(instance, "gfj"), at_once=True) == ""
    instance = INSTANCE.replace(parallelism=[np.inf, 1, np.inf])
    assert "on tasks and one on servers" in obstacle(fo.formulate(instance, "gfj"), at_once=True)
    assert obstacle(fo.formulate(instance, "proportional"), at_once=True) == ""


def test_a_part_is_the_same_program_without_the_other_pairs() -> None:
    """Numbered anew, in the same units."""
    scaled = ScaledProgram.of(fo.formulate(INSTANCE, "drfh"))
    kept = scaled.user != 0
    part = scaled.part(kept)
    assert (part.n_users, part.n_servers, part.n_pairs) == (2, 2, int(kept.sum()))
    np.testing.assert_array_equal(part.member, scaled.member[1:])
    np.testing.assert_array_equal(part.column, scaled.column[kept])
    np.testing.assert_array_equal(part.server, scaled.server[kept])
    np.testing.assert_array_equal(part.A, scaled.A[:, kept])
    np.testing.assert_array_equal(part.reach, scaled.reach[1:])
    np.testing.assert_array_equal(
        part.tasks(np.ones(part.n_pairs)), np.where(np.isin(np.arange(4), part.column), scaled.tasks(np.ones(4)), 0.0)
    )
    alone = scaled.part(scaled.server == 1)
    assert alone.n_servers == 1
    assert set(alone.row_place) == {0}


def test_what_does_not_fit() -> None:
    """Slices and limits on servers at once have no slot; the message says so."""
    assert "servers at once" in obstacle(fo.formulate(INSTANCE.replace(parallelism=[np.inf, 1, np.inf]), "drfh"))
    assert obstacle(fo.formulate(INSTANCE, "drfh")) == ""
    with pytest.raises(fo.Unsupported, match="slices"):
        ScaledProgram.of(fo.formulate(INSTANCE, "uniform"))


def test_factors_of_blocks_solve() -> None:
    """One symmetric matrix a server, as by a dense solve of each."""
    rng = np.random.default_rng(0)
    matrices = [root @ root.T + np.eye(3) for root in rng.random((5, 3, 3))]
    lower = [[np.array([matrix[r, c] for matrix in matrices]) for c in range(r + 1)] for r in range(3)]
    right = rng.random((3, 5))
    blocks = ServerBlocks(np, lower)
    solution = blocks.backward(blocks.forward(right))
    for server, matrix in enumerate(matrices):
        np.testing.assert_allclose(solution[:, server], np.linalg.solve(matrix, right[:, server]), rtol=1e-12)


@pytest.mark.parametrize("layout", [PairLists, PairTable])
def test_sums_over_pairs(layout: type[Pairs]) -> None:
    """Both layouts, by loops over the pairs."""
    scaled = ScaledProgram.of(fo.formulate(INSTANCE, "drfh"))
    pairs = layout(scaled, NUMPY)  # type: ignore[call-arg]
    rng = np.random.default_rng(0)
    x, p = rng.random(scaled.n_pairs), rng.random((scaled.n_slots, scaled.n_servers))
    use, level = np.zeros(p.shape), np.zeros(scaled.n_users)
    for pair, (n, i) in enumerate(zip(scaled.user, scaled.server, strict=True)):
        use[:, i] += scaled.A[:, pair] * x[pair]
        level[n] += scaled.W[pair] * x[pair]
    np.testing.assert_allclose(pairs.use(pairs.lay(x)), use, rtol=1e-15)
    np.testing.assert_allclose(pairs.level(pairs.lay(x)), level, rtol=1e-15)
    cost = np.array([p[:, i] @ scaled.A[:, pair] for pair, i in enumerate(scaled.server)])
    np.testing.assert_allclose(pairs.numbers(pairs.cost(p)), cost, rtol=1e-15)
    np.testing.assert_array_equal(pairs.numbers(pairs.lay(x)), x)
