"""Equilibria in fractions: near ties, and what happens where floats do not show the active sets."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import fmpq

import fairopt as fo
from fairopt.program import Solution
from fairopt.program.exact import ExactProgram
from fairopt.solvers.backend import Deadline
from fairopt.solvers.rational.equilibrium import equilibrium_near, solve_equilibrium, unstopped
from fairopt.solvers.rational.servers import Servers

Instance: Any = fo.Instance  # array types do not know Fractions
solve: Any = fo.solve  # its answers have fractions here

HAIR = Fraction(1, 10**30)


def in_fractions(instance: fo.Instance, sharing: Any = "rdm") -> ExactProgram:
    """PS-DSF of an instance."""
    notion = fo.NOTIONS["psdsf"]()
    return notion.in_fractions(instance.exact, notion.formulate(instance, sharing=sharing, integral=False))


def test_the_data_by_hand() -> None:
    """Of two users and one server: two resources, and three tasks of the second user."""
    servers = Servers.of(in_fractions(Instance([[9, 18]], [[1, 4], [3, 1]], tasks=[np.inf, 3])))
    assert (servers.user, servers.bounds, servers.tasks) == ([0, 1], [fmpq(9), fmpq(18)], [None, fmpq(3)])
    assert servers.measure == [fmpq(4, 18), fmpq(3, 9)]
    assert servers.limits == [{0: fmpq(1), 1: fmpq(3)}, {0: fmpq(4), 1: fmpq(1)}]
    assert servers.limits_of_pairs() == [[0, 1], [0, 1]]


def test_an_exact_start_is_kept() -> None:
    """Two users on one server, from tasks that are off by 1e-12."""
    servers = Servers.of(in_fractions(Instance([[9, 18]], [[1, 4], [3, 1]])))
    assert equilibrium_near(servers, [3 + 1e-12, 2 - 1e-12]) == [fmpq(3), fmpq(2)]


def test_conditions_by_hand() -> None:
    """Full, ahead, behind, over, negative."""
    servers = Servers([0, 1], [fmpq(1), fmpq(1)], [{0: fmpq(1), 1: fmpq(1)}], [fmpq(2)], [None, fmpq(3)])
    assert unstopped(servers, [fmpq(1), fmpq(1)]) == []
    assert unstopped(servers, [fmpq(1), fmpq(1, 2)]) == [0, 1]  # nothing is full
    assert unstopped(servers, [fmpq(3, 2), fmpq(1, 2)]) == [1]  # behind
    assert unstopped(servers, [fmpq(3), fmpq(0)]) == [0, 1]  # too much
    assert unstopped(servers, [fmpq(-1), fmpq(3)]) == [0, 1]
    few = Servers([0, 1], servers.measure, servers.limits, servers.bounds, [None, fmpq(1, 2)])
    assert unstopped(few, [fmpq(3, 2), fmpq(1, 2)]) == []  # has all its tasks


def tied(seed: int) -> Any:
    """Small integers: equal users, equal servers, resources that are full at once, pairs that may or may not hold something."""
    rng = np.random.default_rng(seed)
    n, k, m = int(rng.integers(2, 9)), int(rng.integers(1, 6)), int(rng.integers(1, 4))
    demands = rng.integers(0, 4, (n, m))
    demands[demands.sum(axis=1) == 0, 0] = 1
    capacities = np.full((k, m), int(rng.integers(2, 13))) if seed % 2 else demands.sum(axis=0) * rng.integers(1, 4, (k, 1))
    tasks = np.where(rng.random(n) < 0.3, rng.integers(1, 9, n), np.inf)
    weights = rng.integers(1, 3, n)
    return Instance(capacities.tolist(), demands.tolist(), weights=weights.tolist(), tasks=tasks.tolist())


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@pytest.mark.parametrize("seed", range(30))
def test_ties_of_small_integers(seed: int, sharing: str) -> None:
    """Ties in floats that are ties in fractions as well: any of the limits that are full at once may stop a pair."""
    assert solve(tied(seed), "psdsf", sharing=sharing, exact=True).certificate.exact


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@pytest.mark.parametrize("seed", range(20))
def test_users_that_differ_by_a_hair(seed: int, sharing: str) -> None:
    """Ties in floats that are none in fractions: some of those who hold something in floats hold nothing."""
    rng = np.random.default_rng(seed)
    users, servers = rng.integers(2, 5), rng.integers(2, 4)
    demands = [[Fraction(int(v)) for v in row] for row in rng.integers(1, 3, (users, 2))]
    demands[-1] = [value + int(rng.integers(-2, 3)) * HAIR for value in demands[0]]
    capacities = rng.integers(1, 5, (servers, 2)).tolist()
    assert solve(Instance(capacities, demands), "psdsf", sharing=sharing, exact=True).certificate.exact


def test_decimals_that_are_proportional_in_floats_alone() -> None:
    """The memory of servers and users is twice their cores in floats, not as written: one of the two is full, and a pair holds nothing."""
    capacities = [[8.321187548833759, 16.642375097667518], [5.927164693143366, 11.854329386286732], [8.237998695606223, 16.475997391212445]]
    demands = [[0.5825527630674259, 1.1651055261348517], [0.8533596668016873, 1.7067193336033746]]
    instance = Instance(capacities, demands, eligibility=[[True, False, True], [True, True, True]])
    exact, floats = solve(instance, "psdsf", exact=True), solve(instance, "psdsf")
    assert exact.certificate.exact
    np.testing.assert_allclose(np.asarray(exact.tasks_per_user, float), floats.tasks_per_user, rtol=1e-12)
    assert np.count_nonzero(exact.tasks) < np.count_nonzero(floats.tasks)


@pytest.mark.parametrize("users", [3, 20])
def test_one_of_many_users_differs_by_a_hair(users: int) -> None:
    """The sets with fewer holders and limits, which are tried of few pairs alone, are not needed."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        demands = [[Fraction(int(v)) for v in row] for row in rng.integers(1, 3, (users, 2))]
        demands[-1] = [value + int(rng.integers(-2, 3)) * HAIR for value in demands[0]]
        answer = solve(Instance(rng.integers(1, 5, (2, 2)).tolist(), demands), "psdsf", sharing="tdm", exact=True)
        assert answer.certificate.exact


def test_many_users_that_all_differ_by_a_hair_are_solved_or_refused() -> None:
    """Of many pairs too few sets are tried: what is returned is proved, and what is not found is said. Two of six are found."""
    found = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        demands = [[int(v) + int(rng.integers(-2, 3)) * HAIR for v in row] for row in rng.integers(1, 3, (20, 2))]
        try:
            answer = solve(Instance(rng.integers(1, 5, (2, 2)).tolist(), demands), "psdsf", sharing="tdm", exact=True)
        except fo.NoSolution as refused:
            assert "nearly tied" in str(refused)  # noqa: PT017
        else:
            assert answer.certificate.exact
            found += 1
    assert found >= 1


def test_far_from_an_equilibrium_there_is_none() -> None:
    """Nothing is returned that is not proved."""
    program = in_fractions(Instance([[9, 18], [5, 5]], [[1, 4], [3, 1]]))
    with pytest.raises(fo.NoSolution, match="nearly tied"):
        solve_equilibrium(program, Solution(np.array([0.1, 0.0, 0.2, 0.0])), Deadline(None))
    with pytest.raises(fo.NoSolution, match="time limit"):
        solve_equilibrium(program, Solution(np.array([0.1, 0.0, 0.2, 0.0])), Deadline(0.0))
