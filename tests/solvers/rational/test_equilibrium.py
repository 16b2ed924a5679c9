"""Equilibria in fractions: near ties, and what happens where floats do not show the active sets."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import fmpq

import fairopt as fo
from fairopt.certificate.exact_equilibrium import prove_equilibrium
from fairopt.program import Solution
from fairopt.program.exact import ExactProgram
from fairopt.solvers.backend import Deadline
from fairopt.solvers.rational.equilibrium import Servers, equilibrium_near, solve_equilibrium, unstopped

Instance: Any = fo.Instance  # array types do not know Fractions
solve: Any = fo.solve  # its answers have fractions here

HAIR = Fraction(1, 10**30)


def in_fractions(instance: fo.Instance, sharing: Any = "rdm") -> ExactProgram:
    """PS-DSF of an instance."""
    notion = fo.NOTIONS["psdsf"]()
    return notion.in_fractions(instance.exact, notion.formulate(instance, sharing=sharing, integral=False))


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


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@pytest.mark.parametrize("seed", range(25))
def test_users_that_differ_by_a_hair(seed: int, sharing: str) -> None:
    """Ties in floats that are none in fractions: the pairs that hold something are found by exchanges."""
    rng = np.random.default_rng(seed)
    n, k, m = int(rng.integers(2, 5)), int(rng.integers(1, 4)), int(rng.integers(1, 3))

    capacities = rng.integers(1, 5, (k, m)).tolist()
    demands = [[Fraction(int(v)) for v in row] for row in rng.integers(0, 3, (n, m))]
    for row in demands:
        row[0] = row[0] or Fraction(1)
    demands[-1] = [value + int(rng.integers(-2, 3)) * HAIR if value else value for value in demands[0]]
    program = in_fractions(Instance(capacities, demands), sharing)
    floats = solve(Instance(np.array(capacities, float), np.array(demands, float)), "psdsf", sharing=sharing)
    near = Solution(floats.tasks[program.program.pair_users, program.program.pair_servers])
    prove_equilibrium(program, solve_equilibrium(program, near, Deadline(None)))


@pytest.mark.parametrize("seed", [0, 5, 9, 19, 37, 43, 46, 86])
def test_resources_that_are_full_to_a_hair(seed: int) -> None:
    """All resources are one but for 10^-10 to 10^-30 of it: floats do not show which is full, and the servers' answers do."""
    rng = np.random.default_rng(seed)
    users, servers, resources = int(rng.integers(2, 6)), int(rng.integers(1, 4)), int(rng.integers(2, 4))
    hair = Fraction(1, 10 ** int(rng.choice([10, 12, 13, 14, 16, 20, 30])))
    base, size = rng.integers(1, 5, users), rng.integers(2, 7, servers)
    demands = [[int(a) + int(rng.integers(-3, 4)) * hair for _ in range(resources)] for a in base]
    capacities = [[int(c) + int(rng.integers(-3, 4)) * hair for _ in range(resources)] for c in size]
    answer = solve(Instance(capacities, demands, weights=rng.integers(1, 3, users).tolist()), "psdsf", exact=True)
    assert answer.certificate.exact


def test_far_from_an_equilibrium_there_is_none() -> None:
    """Nothing is returned that is not proved."""
    program = in_fractions(Instance([[9, 18], [5, 5]], [[1, 4], [3, 1]]))
    with pytest.raises(fo.NoSolution, match="nearly tied"):
        solve_equilibrium(program, Solution(np.array([0.1, 0.0, 0.2, 0.0])), Deadline(None))
    with pytest.raises(fo.NoSolution, match="time limit"):
        solve_equilibrium(program, Solution(np.array([0.1, 0.0, 0.2, 0.0])), Deadline(0.0))
