"""What the levels so far leave: smaller programs with the same answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.generators import random_graph
from fairopt.program import Leximin
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.levels import Course
from fairopt.solvers.polishing import polishes
from fairopt.solvers.via_highs import engine, level_programs
from fairopt.solvers.via_highs.faces import closed_columns, narrowed
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.levels import solve_levels
from fairopt.solvers.via_highs.settings import SETTINGS


@contextmanager
def sizes_of_smaller_programs() -> Iterator[list[int]]:
    """Note how many columns each smaller program has."""
    sizes: list[int] = []

    def kept(*arguments: object) -> LevelProblem | None:
        found = narrowed(*arguments)  # type: ignore[arg-type]
        sizes.extend([] if found is None else [found.columns.size])
        return found

    with mock.patch.object(level_programs, "narrowed", kept):
        yield sizes


@pytest.mark.parametrize("seed", range(6))
def test_smaller_programs_have_the_same_levels(seed: int) -> None:
    """Random networks, weighted, some flows with wanted rates: users with caps of their own that need no row."""
    rng = np.random.default_rng(seed)
    tasks = {f"flow-{n}": float(rng.uniform(0.1, 3)) for n in range(1, 60, 4)}
    links, flows = random_graph(flows=60, nodes=20, degree=4, paths=4, seed=seed)
    network = fo.Instance.from_paths(links, flows, weights=rng.uniform(0.2, 5, 60), tasks=tasks if seed % 2 else None)
    program = fo.formulate(network, "max-min")
    goal = program.goal
    assert isinstance(goal, Leximin)
    with sizes_of_smaller_programs() as sizes:
        smaller = solve_levels(program, goal, 1e-8, Deadline(None), narrows=True)
    everything = solve_levels(program, goal, 1e-8, Deadline(None))
    assert program.per_user(smaller.x) == pytest.approx(program.per_user(everything.x), rel=1e-9)
    assert len(sizes) > 2
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 0.5 * program.n_pairs


def test_programs_with_caps_become_smaller() -> None:
    """Jobs on one server at a time, on classes of different speeds: what each level leaves is a smaller program."""
    rng = np.random.default_rng(5)
    rates, ones = np.linspace(1, 6, 8) * rng.lognormal(0, 0.5, (120, 8)) * rng.lognormal(0, 1, (120, 1)), np.ones(120)
    weights = rng.integers(1, 6, 120)
    instance = fo.Instance(np.ones((8, 1)), ones[:, None], rates=rates, counts=np.full(8, 12), parallelism=ones, weights=weights)
    program = fo.formulate(instance, "drfh")
    goal = program.goal
    assert isinstance(goal, Leximin)
    with sizes_of_smaller_programs() as sizes:
        solution = solve_levels(program, goal, 1e-8, Deadline(None))
    assert min(certify(program, polished).worst for _, polished in polishes(program, solution)) <= 1e-8
    assert len(sizes) > 1
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 0.8 * program.n_pairs


def test_prices_close_pairs_and_decide_users() -> None:
    """Link a is full at 1 each: f does not take its dear path, so that it and g are decided, and only h rises."""
    links, flows = {"a": 2, "b": 3, "c": 9}, {"f": [["a"], ["a", "b"]], "g": [["a"]], "h": [["c"], ["b"]]}
    program = fo.formulate(fo.Instance.from_paths(links, flows), "max-min")
    goal = program.goal
    assert isinstance(goal, Leximin)
    problem = LevelProblem.of(program, goal)
    prices = np.zeros(len(program.limits))
    of = {link: int(np.flatnonzero(np.isclose(program.limits.bounds, links[link]))[0]) for link in links}
    prices[of["a"]], prices[of["b"]] = 1.0, 0.25
    pair = {(int(n), int(i)): p for p, (n, i) in enumerate(zip(program.pair_users, program.pair_servers, strict=True))}
    x = np.zeros(program.n_pairs)
    x[pair[0, 0]] = x[pair[1, 0]] = x[pair[2, 0]] = 1.0
    closed = closed_columns(problem, prices, 0.0, x)
    assert np.flatnonzero(closed).tolist() == sorted([pair[0, 1], pair[2, 1]])
    course = Course.together(np.ones(3, bool)).settled(np.array([0, 1]), np.ones(2))
    left = narrowed(problem, closed, course, x)
    assert left is not None
    assert left.columns.tolist() == [pair[2, 0]]
    assert left.members.tolist() == [False, False, True]
    assert left.decided[[pair[0, 0], pair[1, 0]]].tolist() == [1.0, 1.0]
    assert narrowed(problem, np.ones(problem.columns.size, bool), course, x) is None  # h would have no pair


def one_at_a_time(rates: list[list[float]]) -> LevelProblem:
    """Return the problem of jobs on one server at a time."""
    users, classes = len(rates), len(rates[0])
    instance = fo.Instance(np.ones((classes, 1)), np.ones((users, 1)), rates=rates, counts=np.full(classes, 9), parallelism=np.ones(users))
    program = fo.formulate(instance, "drfh")
    goal = program.goal
    assert isinstance(goal, Leximin)
    return LevelProblem.of(program, goal)


@pytest.mark.parametrize("full", [False, True])
def test_a_full_limit_of_its_own_decides_a_user_with_two_pairs(full: bool) -> None:
    """A half of the time on a server, and a half on one that is three times as fast: nothing else has this level, if no time is left."""
    problem = one_at_a_time([[1.0, 3.0], [2.0, 1.0]])
    nobody = np.zeros(problem.columns.size, bool)
    level = 0.5 * problem.per_level[0] * 1.0 + 0.5 * problem.per_level[1] * 3.0
    course = Course.together(np.ones(2, bool)).settled(np.array([0]), np.array([level]))
    rows = np.zeros(len(problem.program.limits), bool)
    rows[problem.own.rows[problem.own.users == 0]] = full
    x = np.zeros(problem.program.n_pairs)
    left = narrowed(replace(problem, full=rows), nobody, course, x, 1.0, by_own_limits=True)
    assert left is not None
    assert left.members.tolist() == [not full, True]
    if full:
        np.testing.assert_allclose(left.decided[problem.program.pair_users == 0], [0.5, 1.5], rtol=1e-14)
    kept = narrowed(replace(problem, full=rows), nobody, course, x, 1.0)
    assert kept is not None
    assert kept.members.all()


def test_a_user_at_its_cap_has_nothing_on_slower_servers() -> None:
    """It needs all its time on the fast one; a user below its cap may be on both."""
    problem = one_at_a_time([[1.0, 3.0], [3.0, 1.0], [2.0, 1.0]])
    cap = problem.own.caps()[0]
    course = Course.together(np.ones(3, bool)).settled(np.array([0, 1]), np.array([cap[0], 0.9 * cap[1]]))
    left = narrowed(problem, np.zeros(problem.columns.size, bool), course, np.zeros(problem.program.n_pairs), 1.0, by_own_limits=True)
    assert left is not None
    assert left.members.tolist() == [False, True, True]
    np.testing.assert_allclose(left.decided[:2], [0.0, 3.0], rtol=1e-14)


def test_answers_of_many_levels_are_polished_before_they_are_certified() -> None:
    """A network with so many pairs is solved so from the outside, and its answer says by what it was finished."""
    network = fo.Instance.from_paths(*random_graph(flows=40, nodes=16, degree=4, paths=3, seed=3))
    with mock.patch.object(engine, "SETTINGS", SETTINGS._replace(narrowed_columns=0, rough_levels=2)):
        answer = fo.solve(network, "max-min")
    assert answer.certificate.worst < 1e-9
    assert answer.tasks_per_user == pytest.approx(fo.solve(network, "max-min").tasks_per_user, rel=1e-9)
