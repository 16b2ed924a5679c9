"""Leximins of users with limits of their own: responses to prices, caps, LPs of torn users, and their way out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.leximin import levels_of
from scipy.optimize import linprog
from strategies import instances

import fairopt as fo
from fairopt.certificate import certify
from fairopt.instance import FloatArray
from fairopt.program import Leximin, LimitKind, Program, Solution
from fairopt.program.own_limits import OwnLimits
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.levels import Together
from fairopt.solvers.leximin.levels import solve_levels as by_levels
from fairopt.solvers.polishing import polishes
from fairopt.solvers.via_highs import levels as all_users
from fairopt.solvers.via_highs import sifting as sifted_levels
from fairopt.solvers.via_highs.engine import HiGHS
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.levels import CappedLevels, solve_levels
from fairopt.solvers.via_highs.responses import Users
from fairopt.solvers.via_highs.settings import SETTINGS
from fairopt.solvers.via_highs.sifting import solve_sifted, wins
from fairopt.solving.policy import find

NEVER = Deadline(None)


def jobs(number: int, classes: int = 3, load: float = 1.3, seed: int = 0) -> fo.Instance:
    """Jobs with speeds of their own on every class, on one server at a time, weights from 1 to 5, ``load`` jobs to a server."""
    rng = np.random.default_rng(seed)
    rates = np.linspace(1, 6, classes) * rng.lognormal(0, 0.5, (number, classes)) * rng.lognormal(0, 1, (number, 1))
    counts = np.maximum(np.round(np.full(classes, number / classes / load)), 1)
    return fo.Instance(
        np.ones((classes, 1)),
        np.ones((number, 1)),
        rates=rates,
        counts=counts,
        parallelism=np.ones(number),
        weights=rng.integers(1, 6, number),
    )


def on_kinds(number: int, kinds: int = 2, seed: int = 0, share: float = 0.5) -> fo.Instance:
    """Users whose tasks take other amounts and do other work on each kind of servers; a ``share`` of them has finite tasks."""
    rng = np.random.default_rng(seed)
    tasks = np.where(rng.random(number) < share, rng.uniform(0.5, 40, number), np.inf)
    demands = rng.uniform(0.5, 4, (number, 1, 2)) * rng.uniform(0.5, 2, (number, kinds, 2))
    capacities = rng.uniform(50, 100, (kinds, 2)) * number / 20
    return fo.Instance(capacities, demands, speeds=rng.uniform(0.3, 1, (number, kinds)), tasks=tasks, weights=rng.integers(1, 6, number))


def leximin_of(program: Program) -> Leximin:
    """Return the goal of a leximin."""
    assert isinstance(program.goal, Leximin)
    return program.goal


def levels(program: Program, solution: Solution) -> FloatArray:
    """Return U[n] / phi[n], (users,)."""
    return program.per_user(program.utilities * solution.x) / leximin_of(program).weights


def sifted(program: Program) -> Solution:
    """Solve by LPs of torn users alone."""
    solution = solve_sifted(program, leximin_of(program), 1e-8, NEVER)
    assert solution is not None
    return solution


# What users do at prices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_users_do_what_is_cheapest(seed: int) -> None:
    """The cost of the response is that of the user's own linear program, solved by SciPy, and q, y are its multipliers: qL - yP = e(L)."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 6))
    cost, own = rng.integers(0, 4, (5, k)) / 2.0, rng.integers(1, 5, (5, k)) / 3.0
    bound = np.where(rng.random(5) < 0.8, rng.uniform(1, 3, 5), np.inf)
    wanted = np.minimum(rng.uniform(0.1, 3, 5), np.where(np.isinf(bound), 3.0, bound / own.min(axis=1)))
    response = Users(np.repeat(np.arange(5), k), own.ravel(), bound).respond(cost.ravel(), wanted)
    for n in range(5):
        most = min(bound[n] * (1 + 1e-12), 1e6)
        equal = np.ones((1, k))
        least = linprog(cost[n], A_ub=own[[n]], b_ub=np.array([most]), A_eq=equal, b_eq=wanted[[n]], method="highs").fun
        chosen = response.level[n * k : (n + 1) * k]
        assert chosen.sum() == pytest.approx(wanted[n])
        assert own[n] @ chosen <= bound[n] * (1 + 1e-9)
        assert cost[n] @ chosen == pytest.approx(least, abs=1e-9)
        y = response.y[n]
        assert y >= 0
        assert (response.q[n] <= cost[n] + y * own[n] + 1e-12).all()
        assert response.q[n] * wanted[n] - (y * bound[n] if y else 0.0) == pytest.approx(least, abs=1e-9)


def test_caps_of_own_limits() -> None:
    """P max_i u[n,i] / (phi[n] a[n,i]) over the pairs that are free: 2 servers at once, on which a user runs 3 and 5 tasks, phi = 2."""
    instance = fo.Instance([[1.0], [1.0]], [[1.0], [1.0]], rates=[[3, 5], [1, 1]], counts=[9, 9], parallelism=[2, np.inf], weights=[2, 1])
    program = fo.formulate(instance, "max-min")
    own = OwnLimits(program, program.utilities / leximin_of(program).weights[program.pair_users])
    np.testing.assert_allclose(own.caps()[0], [2 * 5 / 2, np.inf])
    only_first = program.pair_servers == 0
    np.testing.assert_allclose(own.caps(only_first)[0], [2 * 3 / 2, np.inf])
    # Who has no free pair is stopped by prices: no limit of its own says where.
    nothing_free = own.caps(np.zeros(program.n_pairs, bool))
    assert (nothing_free[0].tolist(), nothing_free[1].tolist()) == ([np.inf, np.inf], [-1, -1])
    # Each task there instead of on the first server saves 1/3 - 1/5 of a server, and costs 1: so a server is worth 1 / (1/3 - 1/5).
    assert own.price_beyond(0, np.where(only_first, 0.0, 1.0), only_first) == pytest.approx(1 / (1 / 3 - 1 / 5))
    assert not own.even.any()
    assert OwnLimits(fo.formulate(instance.replace(tasks=[4, 4], parallelism=None), "max-min"), own.per_level).even.all()


def test_prices_that_stop_who_is_at_its_cap_stop_nobody_else() -> None:
    """Both reach what they can run alone at once: one by its own limit, the other by a server, which needs prices of its own."""
    instance = fo.Instance([[7], [7], [3]], [[2], [1]], eligibility=[[1, 0, 1], [0, 0, 1]], parallelism=[0.5, np.inf])
    allocation = fo.solve(instance, "cdrf")
    np.testing.assert_allclose(allocation.tasks_per_user, [1.75, 3])
    assert allocation.certificate.worst < 1e-12


# Answers ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("load", [0.4, 1.0, 2.0])
def test_levels_by_definition(seed: int, load: float) -> None:
    """Both kinds of LPs against the definition of a leximin."""
    program = fo.formulate(jobs(6, load=load, seed=seed), "tsf")
    expected = levels_of(program, leximin_of(program).weights)
    for solution in (sifted(program), solve_levels(program, leximin_of(program), 1e-8, NEVER)):
        np.testing.assert_allclose(levels(program, solution), expected, rtol=1e-6)
        assert certify(program, solution).worst <= 1e-8


@settings(max_examples=60, deadline=None)
@given(instance=instances(), seed=st.integers(0, 1000), load=st.sampled_from([0.3, 1.0, 3.0]), alike=st.booleans())
def test_sifted_levels_agree_with_those_of_all_users(instance: fo.Instance, seed: int, load: float, alike: bool) -> None:
    """On jobs, also where classes are as fast for everybody, and on instances without parallelism."""
    some = jobs(2 + seed % 30, 1 + seed % 5, load, seed)
    if alike:
        some = some.replace(rates=np.arange(1, some.n_servers + 1) * np.ones((some.n_users, 1)))
    for program in (fo.formulate(some, "tsf"), fo.formulate(instance, "drfh")):
        if program.n_pairs and program.limits.of_servers.any():
            solution = solve_sifted(program, leximin_of(program), 1e-8, NEVER)
            if solution is None or not certify(program, solution).worst <= 1e-8:
                continue  # lost, and the engine would go on to the LPs of all users
            other = solve_levels(program, leximin_of(program), 1e-8, NEVER)
            np.testing.assert_allclose(levels(program, solution), levels(program, other), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("load", [0.5, 1.3])
def test_many_levels_take_few_programs(load: float) -> None:
    """There are not more real levels than shared limits, here three classes; the others are caps."""
    program = fo.formulate(jobs(400, load=load), "tsf")
    solution = sifted(program)
    assert certify(program, solution).worst <= 1e-8
    assert np.unique(levels(program, solution).round(9)).size > 20
    assert solution.programs_solved <= 15


@pytest.mark.parametrize(("number", "classes", "seed"), [(60, 12, 0), (100, 12, 3), (120, 8, 5)])
def test_levels_keep_their_digits_where_prices_would_add_up(number: int, classes: int, seed: int) -> None:
    """Many levels of jobs on many classes: with pairs that are closed, the prices of settled users were millions of times the others'."""
    program = fo.formulate(jobs(number, classes, seed=seed), "drfh")
    goal = leximin_of(program)
    solution = solve_levels(program, goal, 1e-8, NEVER)
    assert len(solution.stages) > 3
    best = min(certify(program, polished).worst for _, polished in polishes(program, solution))
    assert best <= 1e-9
    other = solve_sifted(program, goal, 1e-8, NEVER)
    assert other is not None
    np.testing.assert_allclose(levels(program, other), levels(program, solution), rtol=1e-8)
    answer = fo.solve(jobs(number, classes, seed=seed), "drfh", solver="highs")
    assert answer.certificate.worst <= 1e-8


def test_a_closed_pair_is_no_response() -> None:
    """Jobs on eight classes: pairs that a level has closed stay so, and nobody whose cap needs a price responds with them."""
    program = fo.formulate(jobs(120, 8, seed=0), "drfh")
    problem = LevelProblem.of(program, leximin_of(program))
    programs = sifted_levels._SiftedPrograms(sifted_levels._SiftedProblem.of(problem), NEVER)
    found = by_levels(program, problem.per_level, CappedLevels(programs, problem), Together(problem.members), 1e-9)
    closed = programs.problem.closed
    assert 0 < closed.sum() < closed.size
    assert (found.x[problem.columns[closed]] == 0).all()
    assert programs.problem.have(~closed).all()


@pytest.mark.parametrize(("seed", "share"), [(0, 0.5), (1, 0.02), (2, 1.0)])
def test_finite_tasks_that_are_worth_more_on_one_server(seed: int, share: float) -> None:
    """Against the LPs of all users: a task that is slower elsewhere caps no level, but is a limit of its user's own."""
    program = fo.formulate(on_kinds(250, 3, seed, share), "cdrf")
    assert wins(program)
    solution = sifted(program)
    assert certify(program, solution).worst <= 1e-9
    other = solve_levels(program, leximin_of(program), 1e-8, NEVER)
    np.testing.assert_allclose(levels(program, solution), levels(program, other), rtol=1e-8)


def test_prices_that_prove_less_than_is_known_split_few_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of the way to the prices of an LP of few users, not all of it, where half of the others would leave their pairs."""
    program = fo.formulate(on_kinds(2000, 14, seed=2), "cdrf")
    most: list[int] = []
    solved_lp = sifted_levels._SplitLP.of

    def counted(problem: Any, choice: Any, wanted: FloatArray, rising: Any) -> Any:
        most.append(int(choice.split.sum()))
        return solved_lp(problem, choice, wanted, rising)

    monkeypatch.setattr(sifted_levels._SplitLP, "of", counted)
    solution = sifted(program)
    few, whole = max(most), levels(program, solution)
    most.clear()
    monkeypatch.setattr(sifted_levels, "SETTINGS", SETTINGS._replace(parts_of_the_way=()))
    np.testing.assert_allclose(levels(program, sifted(program)), whole, rtol=1e-8)
    assert few < 0.5 * max(most)


def test_dispatch() -> None:
    """Sifted LPs where users with limits of their own are many and shared limits few; not for one total, nor without such limits."""
    assert wins(fo.formulate(on_kinds(300), "cdrf"))
    assert not wins(fo.formulate(on_kinds(300, share=0.0), "cdrf"))
    assert not wins(fo.formulate(on_kinds(300).replace(speeds=None), "cdrf"))
    assert wins(fo.formulate(jobs(300), "tsf"))
    assert not wins(fo.formulate(jobs(30), "tsf"))
    assert not wins(fo.formulate(jobs(300, 20), "tsf"))
    assert not wins(fo.formulate(jobs(300).replace(parallelism=None), "tsf"))
    assert not wins(fo.formulate(jobs(300), "efficiency"))


def test_a_lost_way_ends_in_the_lps_of_all_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no LP allowed, the answer is the same."""
    instance = jobs(220, seed=3)
    expected = fo.solve(instance, "tsf", solver="highs")
    monkeypatch.setattr(sifted_levels, "SETTINGS", SETTINGS._replace(most_lps=0))
    program = fo.formulate(instance, "tsf")
    assert solve_sifted(program, leximin_of(program), 1e-8, NEVER) is None
    again = fo.solve(instance, "tsf", solver="highs")
    np.testing.assert_allclose(again.tasks_per_user, expected.tasks_per_user, rtol=1e-7)


def test_time_limit_says_what_is_final() -> None:
    """No time: no level is known."""
    with pytest.raises(fo.NoSolution, match="time limit"):
        fo.solve(jobs(300), "tsf", time_limit=1e-6)


def test_a_user_at_a_limit_of_its_own_needs_no_proof() -> None:
    """The certificate takes the cap instead of a level, and only where the cap is reached."""
    program = fo.formulate(jobs(8, load=0.05), "tsf")  # servers for all
    assert (program.limits.kinds == LimitKind.PARALLELISM).sum() == 8
    solution = sifted(program)
    assert solution.stages == ()
    assert certify(program, solution).worst <= 1e-12
    assert certify(program, Solution(solution.x * 0.999)).worst == np.inf


def test_what_rounding_leaves_is_sharpened(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that misses the tolerance by a little is mended on its sets; the LPs of all users, which take minutes, are not asked."""
    program = fo.formulate(jobs(1000), "tsf")
    good = sifted(program)
    on_a_level = np.isin(program.pair_users, np.concatenate([stage.users for stage in good.stages]))  # the others have all that they may
    rough = replace(good, x=good.x * np.where(on_a_level, 1 - 1e-8, 1.0))
    assert certify(program, rough).worst > 1e-8

    def none(*_: object) -> Solution:
        raise AssertionError("all users were solved for")

    monkeypatch.setattr(sifted_levels, "solve_sifted", lambda *_: rough)
    monkeypatch.setattr(all_users, "solve_levels", none)
    found = find(program, [HiGHS()], 1e-8, NEVER)
    assert found.finished_by == "level equations"
    assert found.certificate == certify(program, found.solution)
    assert found.certificate.worst <= 1e-9
