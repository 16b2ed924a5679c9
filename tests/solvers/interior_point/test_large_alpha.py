"""Alpha-fair goals at a large alpha: steps near the central path, an alpha that rises, and what a path does not reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instances import gpu_cluster

import fairopt as fo
from fairopt.certificate import certify
from fairopt.certificate.conditions import room_left
from fairopt.instance import FloatArray
from fairopt.program import AlphaFair, Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point import alpha_fair
from fairopt.solvers.interior_point.alpha_fair_centring import follow_centrally
from fairopt.solvers.interior_point.alpha_fair_end import error_of
from fairopt.solvers.interior_point.alpha_fair_path import Path
from fairopt.solvers.interior_point.alpha_fair_rising import RisingPath
from fairopt.solvers.interior_point.alpha_fair_worths import Worths
from fairopt.solvers.interior_point.settings import ALPHA_FAIR, CENTRING, RISING
from fairopt.solvers.interior_point.steps import Point
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.layouts import lay_out
from fairopt.solvers.structure.pairs import Pairs
from fairopt.solvers.structure.scaling import ScaledProgram

ERROR = 1e-9
NEVER = Deadline(None)


def program_of(users: int, seed: int, alpha: float, finite: bool = True) -> tuple[Program, AlphaFair, Pairs]:
    """A program, its goal and its pairs."""
    program = fo.formulate(gpu_cluster(users, seed, finite), "proportional", alpha=alpha)
    return program, program.goal_as(AlphaFair), lay_out(ScaledProgram.of(program), NUMPY)


def on_the_path(program: Program) -> Solution:
    """Solve by the path alone."""
    with np.errstate(all="ignore"):
        solution = alpha_fair.solve_alpha_fair(program, program.goal_as(AlphaFair), 1e-8, NEVER)
    assert solution is not None
    return solution


def utilities(program: Program, solution: Solution) -> FloatArray:
    """Return U[n], (users,)."""
    return program.per_user(program.utilities * solution.x)


def followed(path: Path) -> Path:
    """Follow a path to its end, and keep points on the way."""
    with np.errstate(all="ignore"):
        assert alpha_fair._followed(path, 1e-11, NEVER) is not None
    return path


def spread_of_zeros(users: int, servers: int, resources: int, seed: int) -> fo.Instance:
    """Demands over two orders of magnitude, three in ten of them zero; nobody has a limit on tasks."""
    rng = np.random.default_rng(seed)
    demands = rng.uniform(0.1, 2, (users, resources)) * 10 ** rng.uniform(-1, 1, (users, resources))
    nothing = rng.random(demands.shape) < 0.3
    nothing[nothing.all(axis=1)] = False
    return fo.Instance(rng.uniform(10, 100, (servers, resources)), np.where(nothing, 0.0, demands))


def servers_far_apart(seed: int) -> fo.Instance:
    """One resource, servers and demands over four orders of magnitude; half of the users have limits on tasks, and on servers at once."""
    rng, users, servers = np.random.default_rng(seed), 10, 8
    return fo.Instance(
        rng.uniform(1, 10, (servers, 1)) * 10 ** rng.uniform(0, 4, (servers, 1)),
        10 ** rng.uniform(-3, 2, (users, 1)),
        counts=rng.integers(1, 6, servers),
        tasks=np.where(rng.random(users) < 0.5, 10 ** rng.uniform(-2, 2, users), np.inf),
        parallelism=np.where(rng.random(users) < 0.6, rng.integers(1, 5, users), np.inf),
    )


@pytest.mark.parametrize("alpha", [2.0, 5.0, 8.0])
@pytest.mark.parametrize("finite", [True, False])
def test_steps_near_the_central_path_lead_to_the_end(alpha: float, finite: bool) -> None:
    """From points with a gap of 1e-8 and more, by which the error falls; the answer passes the certificate."""
    program, goal, pairs = program_of(40, 3, alpha, finite)
    path = followed(Path(Worths(pairs, goal.alpha, goal.weights)))
    start = path.near[1]
    with np.errstate(all="ignore"):
        before = error_of(path.worths, pairs.parts(start.primal)[0], pairs.parts(start.dual)[1])
        end, steps = follow_centrally(path, [start], ERROR, NEVER)
    assert end.error <= ERROR < before.error
    assert 0 < steps < CENTRING.steps_of_centring
    answer = Solution(pairs.tasks(end.x), prices=path.worths.prices(end.p, end.x))
    assert certify(program, answer).worst <= 1e-8


def test_steps_near_the_central_path_need_time() -> None:
    """No step without time."""
    _, goal, pairs = program_of(20, 1, 4.0)
    path = followed(Path(Worths(pairs, goal.alpha, goal.weights)))
    with np.errstate(all="ignore"), pytest.raises(fo.NoSolution):
        follow_centrally(path, path.near, 0.0, Deadline(1e-9))


def test_a_start_that_leads_nowhere_gives_way_to_the_one_before() -> None:
    """The last point has products that no step makes equal."""
    _, goal, pairs = program_of(30, 2, 5.0)
    path = followed(Path(Worths(pairs, goal.alpha, goal.weights)))
    spoilt = path.near[-1]
    spoilt.dual[: pairs.n_pairs : 2] *= 1e12
    with np.errstate(all="ignore"):
        end, _ = follow_centrally(path, [path.near[0], spoilt], ERROR, NEVER)
    assert end.error <= ERROR


@pytest.mark.parametrize("alpha", [3.0, 8.0, 20.0])
@pytest.mark.parametrize("finite", [True, False])
def test_an_alpha_that_rises_ends_at_the_same_answer(alpha: float, finite: bool) -> None:
    """As the path that has the alpha of the goal from the start."""
    program, goal, pairs = program_of(40, 3, alpha, finite)
    rising = RisingPath(pairs, goal)
    assert rising.worths.alpha == RISING.first_alpha
    with np.errstate(all="ignore"):
        found = alpha_fair._found(rising, 1e-10, 1e-12, NEVER)
    assert found is not None
    assert rising.worths.alpha == alpha
    answer = Solution(pairs.tasks(found.end.x), prices=rising.worths.prices(found.end.p, found.end.x))
    assert certify(program, answer).worst <= 1e-8
    np.testing.assert_allclose(utilities(program, answer), utilities(program, on_the_path(program)), rtol=1e-6)


def test_poor_users_take_what_limits_of_others_leave() -> None:
    """What is left of a limit that only users with much money fill is worth something to one with little, who may use it."""
    for seed in range(4):
        program = fo.formulate(spread_of_zeros(30, 8, 3, seed), "proportional", alpha=8)
        assert room_left(program, on_the_path(program).x) <= 1e-9


def test_a_hopeless_alpha_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Demands approach utilities by a factor e of prices a step: what is farther than the steps that are left is given up."""
    _, goal, pairs = program_of(20, 1, 1e5)
    steps: list[float] = []
    advanced = Path.advanced

    def counted(path: Path, point: Point, gap: float) -> Point:
        steps.append(gap)
        return advanced(path, point, gap)

    monkeypatch.setattr(Path, "advanced", counted)
    with np.errstate(all="ignore"):
        assert alpha_fair._followed(Path(Worths(pairs, goal.alpha, goal.weights)), 1e-11, NEVER) is None
    assert len(steps) < 2 * ALPHA_FAIR.steps_of_start


@pytest.mark.parametrize("seed", [19, 42, 86, 93])
def test_units_need_not_follow_users_who_are_stopped(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where users who pay nothing make the units of limits as small as nothing, a path may get lost; in other units it has a good end."""
    program = fo.formulate(servers_far_apart(seed), "proportional", alpha=8)
    followed: list[bool] = []
    found = alpha_fair._found

    def noted(path: Path, *arguments: Any) -> Any:
        followed.append(path.to_the_poorest)
        return None if path.to_the_poorest else found(path, *arguments)

    monkeypatch.setattr(alpha_fair, "_found", noted)
    assert certify(program, on_the_path(program)).worst <= 1e-8
    assert followed == [True, True, False]
