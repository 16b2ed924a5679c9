"""The polish of equilibria of servers, and the equations of their active sets, against solutions by hand and in fractions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import fairopt as fo
from fairopt.certificate.conditions import bottleneck_violation
from fairopt.program import Equilibrium, Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.equilibrium import equations
from fairopt.solvers.equilibrium.equations import Structure
from fairopt.solvers.equilibrium.polish import polish
from fairopt.solvers.equilibrium.settings import SETTINGS
from fairopt.solvers.structure.factors import factorised

# Capacities (cpu, memory) (9, 12) and (12, 12); users 1 and 2 need (1, 2) and (1, 1) on either server, user 3 (1, 2) on server 2 only.
INSTANCE = fo.Instance([[9, 12], [12, 12]], [[1, 2], [1, 1], [1, 2]], eligibility=[[True, True], [True, True], [False, True]])


def near(program: Program, x: np.ndarray, noise: float, seed: int = 0) -> Solution:
    """Return tasks with relative noise, and a trace of rounding where there are none."""
    rng = np.random.default_rng(seed)
    return Solution(x * (1 + noise * rng.uniform(-1, 1, x.size)) + 1e-12 * rng.random(x.size), prices=np.ones(1), iterations=7)


@pytest.mark.parametrize("noise", [1e-9, 1e-6])
@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@pytest.mark.parametrize("tasks", [None, [np.inf, 1.5, np.inf]])
def test_a_spoiled_equilibrium_is_exact_again(noise: float, sharing: str, tasks: list[float] | None) -> None:
    """Whatever divides the servers, with limits on tasks, too."""
    instance = INSTANCE if tasks is None else INSTANCE.replace(tasks=tasks)
    program = fo.formulate(instance, "psdsf", sharing=sharing)  # type: ignore[arg-type]
    assert isinstance(program.goal, Equilibrium)
    x = fo.solve(instance, "psdsf", sharing=sharing).tasks[program.pair_users, program.pair_servers]  # type: ignore[arg-type]
    rough = near(program, x, noise)
    assert bottleneck_violation(program, program.goal, rough.x) > 0.01 * noise
    polished = polish(program, rough)
    assert polished is not None
    assert bottleneck_violation(program, program.goal, polished.x) <= 1e-14
    assert (program.limits.matrix @ polished.x <= program.limits.bounds * (1 + 1e-15)).all()
    assert (polished.x >= 0).all()
    assert polished.iterations == 7
    assert polished.prices is None
    np.testing.assert_allclose(program.per_user(polished.x), program.per_user(x), rtol=10 * noise)


def test_an_equilibrium_by_hand() -> None:
    """One server: all rise to one share of what each could run alone, 6 and 9 tasks, until memory is full: 2 (6 s) + 9 s = 12."""
    program = fo.formulate(fo.Instance([[9, 12]], [[1, 2], [1, 1]]), "psdsf")
    alone = [Fraction(6), Fraction(9)]
    share = min(Fraction(12) / (2 * alone[0] + alone[1]), Fraction(9) / (alone[0] + alone[1]))
    polished = polish(program, Solution(np.array([3.43, 5.14])))
    assert polished is not None
    np.testing.assert_allclose(polished.x, [float(share * tasks) for tasks in alone], rtol=1e-15)


def test_what_there_is_nothing_to_polish_of() -> None:
    """Other goals, and points without anything: None, and no error."""
    program = fo.formulate(INSTANCE, "psdsf")
    assert polish(fo.formulate(INSTANCE, "drfh"), Solution(np.ones(5))) is None
    assert polish(program, Solution(np.zeros(program.n_pairs))) is None


def test_equations_in_fractions() -> None:
    """Two users at one level of one limit, a third with all its tasks: x1 = x2 = (12 - 3) / 3 exactly, from a point nearby."""
    use = sp.csr_array(np.array([[1.0, 2.0, 1.0]]))
    start = np.array([2.9, 3.1, 3.0])
    structure = Structure(
        user=np.arange(3),
        g=np.ones(3),
        tasks=np.array([np.inf, np.inf, 3.0]),
        use=use,
        bounds=np.array([12.0]),
        x=start,
        stop=np.array([0, 0, -1]),
    )
    exact = structure.solve(np.ones(3, bool))
    assert exact is not None
    np.testing.assert_allclose(exact, [float(Fraction(12 - 3, 3))] * 2 + [3.0], rtol=1e-15)


def test_pairs_that_turn_negative_leave() -> None:
    """A user on two servers whose first is overfull without it: it holds nothing there."""
    use = sp.csr_array(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]))  # pairs (1, a), (2, a), (2, b), (3, b)
    structure = Structure(
        user=np.array([0, 1, 1, 2]),
        g=np.ones(4),
        tasks=np.full(3, np.inf),
        use=use,
        bounds=np.array([2.0, 10.0]),
        x=np.array([2.0, 1e-3, 5.0, 5.0]),
        stop=np.array([0, 0, 1, 1]),
    )
    exact = structure.solve(np.ones(4, bool))
    assert exact is not None
    np.testing.assert_allclose(exact, [2.0, 0.0, 5.0, 5.0], rtol=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_equations_of_levels_that_follow_from_others(seed: int) -> None:
    """Without them the equations have the same solutions: ranks, with the right sides, stay; where all agree, the rest is independent."""
    rng = np.random.default_rng(seed)
    users, limits = np.nonzero(rng.random((rng.integers(2, 9), rng.integers(2, 7))) < rng.choice([0.5, 0.8, 1.0]))
    ratio = rng.normal(size=9)[users] - rng.normal(size=7)[limits]
    wrong = rng.random(users.size) < rng.choice([0.0, 0.2])
    ratio[wrong] += 0.5
    system = np.zeros((users.size, 17))
    system[np.arange(users.size), users], system[np.arange(users.size), 9 + limits], system[:, 16] = 1.0, -1.0, ratio
    kept = ~equations._implied(users, limits, ratio)
    assert np.linalg.matrix_rank(system[kept]) == np.linalg.matrix_rank(system)
    if users.size >= np.unique(users).size + np.unique(limits).size and not wrong.any():
        assert np.count_nonzero(kept) == np.linalg.matrix_rank(system)


@pytest.mark.parametrize("seed", [0, 1])
def test_many_ties_take_a_system_of_users_and_limits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers, one resource: nearly every pair holds something at the same levels, and thousands of equations are a few hundred."""
    rng = np.random.default_rng(seed)
    users, servers = 120, 40
    tasks = np.ceil(rng.uniform(0.2, 3.0, users))
    instance = fo.Instance(
        rng.integers(1, 13, (servers, 1)), rng.integers(1, 4, (users, 1)), eligibility=rng.random((users, servers)) < 0.8
    )
    program = fo.formulate(instance.replace(tasks=tasks), "psdsf")
    assert isinstance(program.goal, Equilibrium)
    answer = fo.solve(instance.replace(tasks=tasks), "psdsf")
    x = answer.tasks[program.pair_users, program.pair_servers]
    sizes: list[int] = []

    def counted(matrix: sp.csc_array, last: np.ndarray, pivots: float) -> Callable[[np.ndarray], np.ndarray]:
        sizes.append(matrix.shape[0])
        return factorised(matrix, last, pivots)

    monkeypatch.setattr(equations, "factorised", counted)
    polished = polish(program, near(program, x, 1e-9))
    assert polished is not None
    assert bottleneck_violation(program, program.goal, polished.x) <= 1e-12
    assert np.count_nonzero(x) > 1000
    assert sizes
    assert max(sizes) <= 4 * (users + servers)
    sizes.clear()
    monkeypatch.setattr(equations, "SETTINGS", SETTINGS._replace(factor_seconds=1.0))
    assert polish(program, near(program, x, 1e-9), Deadline(600.0)) is None  # it would take longer, and is not begun
    assert not sizes
    assert polish(program, near(program, x, 1e-9)) is not None


def test_nothing_changes_but_the_answer() -> None:
    """The solution that is given stays as it is."""
    program = fo.formulate(INSTANCE, "psdsf")
    rough = near(program, fo.solve(INSTANCE, "psdsf").tasks[program.pair_users, program.pair_servers], 1e-6)
    before = dataclasses.replace(rough, x=rough.x.copy())
    polish(program, rough)
    np.testing.assert_array_equal(rough.x, before.x)
