"""Whole tasks and their placement, against every whole point of small programs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import fairopt as fo
from fairopt.instance import FloatArray
from fairopt.program.placement import WholePlacement
from fairopt.program.queue_limits import limit_rows
from fairopt.solvers.via_highs.placement import pack_servers, place_whole


def points(program: WholePlacement) -> FloatArray:
    """Return every whole point of the limits, (points, pairs)."""
    ranges = [range(int(most) + 1) for most in program.most]
    every = np.array(list(itertools.product(*ranges)), float)
    inside: FloatArray = every[(every @ program.limits.matrix.T.toarray() <= program.limits.bounds + 1e-9).all(axis=1)]
    return inside


@pytest.mark.parametrize("seed", range(8))
def test_each_goal_in_its_turn(seed: int) -> None:
    """Fewest tasks short, largest remainders, fewest pairs, fewest servers: the best of all points in this order."""
    rng = np.random.default_rng(seed)
    instance = fo.Instance(rng.integers(2, 6, (2, 2)), rng.integers(1, 3, (3, 2)), counts=[1, 1 + seed % 2])
    tasks = fo.solve(instance, "drfh").tasks_per_user
    program = WholePlacement.of(instance, tasks, list(limit_rows(instance)))
    sums = np.zeros((3, program.most.size))
    sums[program.pair_users, np.arange(program.most.size)] = 1.0

    def worth(x: FloatArray) -> tuple[float, ...]:
        y = sums @ x
        if (y > program.floors + (program.parts > 0)).any():
            return (-np.inf,)
        more = np.maximum(y - program.floors, 0.0)
        short = np.maximum(program.floors - y, 0.0)
        pairs, servers = float((x > 0).sum()), float(program.servers_per_task @ x)
        first = np.arange(3) * 1e-8  # of equal remainders that of the first user is rounded up
        return -short.sum(), round(float((program.parts - first) @ more), 10), -pairs, -round(servers, 9)

    placed = place_whole(program)
    assert placed.rounded
    assert placed.fewest
    best = max(points(program).tolist(), key=lambda x: worth(np.array(x)))
    assert worth(placed.x) == pytest.approx(worth(np.array(best)), abs=1e-9)


def test_large_tasks_count_on_single_servers() -> None:
    """Two servers of 4 GPUs: no third task of 3 GPUs beside two of them, though 8 GPUs are 9 less 1; a task of 1 fits beside each."""
    instance = fo.Instance([[4]], [[3], [3], [1]], counts=[2])
    program = WholePlacement.of(instance, np.array([1.0, 1.0, 2.0]), list(limit_rows(instance)))
    assert place_whole(program).x.tolist() == [1, 1, 2]
    program = WholePlacement.of(instance, np.array([2.0, 1.0, 0.0]), list(limit_rows(instance)))
    assert place_whole(program).x.sum() == 2


def test_servers_are_packed_where_heuristics_fail() -> None:
    """10 and 7 tasks of (8, 16) and (4, 48) on two servers of (64, 256): only as 4 and 4 beside 6 and 3."""
    packed, _ = pack_servers(np.array([64.0, 256.0]), 2, np.array([[8.0, 16.0], [4.0, 48.0]]), np.array([10.0, 7.0]))
    assert sorted(packed.T.tolist()) == [[4, 4], [6, 3]]


def test_a_program_without_a_pair_has_no_tasks() -> None:
    """Nobody may run anywhere."""
    instance = fo.Instance([[0.0]], [[1]], tasks=[1])
    assert place_whole(WholePlacement.of(instance, np.zeros(1), list(limit_rows(instance)))).x.size == 0


def test_a_time_limit_is_of_the_whole_search() -> None:
    """Whatever is found by then fits; the numbers of tasks are at least those of the linear program, rounded down."""
    rng = np.random.default_rng(5)
    capacities, demands = rng.uniform(8, 64, (6, 3)).round(2), rng.uniform(0.5, 5, (40, 3)).round(2)
    pool = fo.Instance(capacities, demands, counts=[7] * 6)
    program = WholePlacement.of(pool, fo.solve(pool, "drfh").tasks_per_user, list(limit_rows(pool)))
    placed = place_whole(program, 0.02)
    assert (program.limits.matrix @ placed.x <= program.limits.bounds * (1 + 1e-9)).all()
    assert (placed.x == np.round(placed.x)).all()
    assert placed.x.sum() > 0
    assert placed.iterations > 0
