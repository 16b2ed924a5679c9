"""The polish of nested leximins, against fractions and where a queue is kept at a hundred thousand times what others pay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Nested, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.nested_polish import polish_nested
from fairopt.solvers.via_highs.nested import solve_nested


def departments(seed: int, users: int, servers: int) -> fo.Instance:
    """Four departments of two groups each, weights over two orders, half the users barred from some servers."""
    random = np.random.default_rng(seed)
    capacity, demands = random.uniform(5, 50, (servers, 3)), random.uniform(0.1, 2, (users, 3)) * (random.random((users, 3)) < 0.8)
    demands[:, 0] = np.maximum(demands[:, 0], 0.1)

    def weight() -> float:
        return float(10 ** random.uniform(-1, 1))

    groups = [f"{department}{group}" for department in "abcd" for group in (1, 2)]
    queues = [fo.Queue(name, weight=weight()) for name in "abcd"] + [fo.Queue(name, parent=name[0], weight=weight()) for name in groups]
    return fo.Instance(
        capacity,
        demands,
        eligibility=(random.random((users, servers)) < 0.7) | (np.arange(servers) == 0),
        weights=10 ** random.uniform(-1, 1, users),
        queues=queues,
        queue_of=[groups[n % 8] for n in range(users)],
    )


def solved(instance: fo.Instance) -> tuple[fo.Program, Nested, Solution]:
    """The program of a nested tree, its goal, and the answer of linear programs."""
    program = fo.formulate(instance, "drfh", tree="nested")
    assert isinstance(program.goal, Nested)
    return program, program.goal, solve_nested(program, program.goal, Deadline(None))


@pytest.mark.parametrize("seed", range(4))
def test_as_in_fractions(seed: int) -> None:
    """From an answer that is wrong in the eighth digit to that of fractions."""
    instance = departments(seed, 8, 3)
    program, goal, found = solved(instance)
    noise = 1 + 1e-8 * np.random.default_rng(seed).standard_normal(program.n_pairs)
    polished = polish_nested(program, goal, replace(found, x=found.x * noise))
    assert polished is not None
    exact = fo.solve(instance, "drfh", tree="nested", exact=True).tasks_per_user
    assert np.bincount(program.pair_users, weights=polished.x) == pytest.approx(exact, rel=1e-10, abs=1e-10)
    assert certify(program, polished).worst <= 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_what_departments_keep_is_dear(seed: int) -> None:
    """A hundred users of departments, whose levels a solver alone does not find to eight digits."""
    instance = departments(seed, 100, 12)
    program, goal, rough = solved(instance)
    polished = polish_nested(program, goal, rough)
    assert polished is not None
    assert certify(program, polished).worst <= 1e-8
    assert fo.solve(instance, "drfh", tree="nested").certificate.worst <= 1e-8


def test_equations_without_an_answer() -> None:
    """Nobody has anything: there is nothing to polish."""
    program, goal, found = solved(departments(0, 8, 3))
    assert polish_nested(program, goal, replace(found, x=np.zeros(program.n_pairs))) is None
