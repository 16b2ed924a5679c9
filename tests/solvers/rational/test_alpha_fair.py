"""Alpha-fair goals to any number of digits: random instances, ties, near ties, magnitudes, and wrong floats to start from."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from instances import instance_of_everything

import fairopt as fo
from fairopt.certificate.enclosure import proved_radius
from fairopt.program import Solution
from fairopt.program.exact import ExactProgram
from fairopt.solvers.backend import Deadline
from fairopt.solvers.rational.alpha_fair import points_near
from fairopt.solvers.rational.enclosing import Enclosing
from fairopt.solvers.rational.near import rational
from fairopt.solvers.rational.placing import placed_near
from fairopt.solvers.rational.reduced_kkt import reduced_conditions
from fairopt.solving.enclosures import answer_in_floats

Instance: Any = fo.Instance  # array types do not know Fractions
solve: Any = fo.solve  # its answers have fractions here

GOALS: list[tuple[str, dict[str, Any]]] = [
    ("proportional", {}),
    ("proportional", {"alpha": 0.3}),
    ("proportional", {"alpha": 7.5}),
    ("fds", {}),
    ("gfj", {"beta": 0.5, "lam": 1.5}),
]
HAIR = Fraction(1, 10**30)


def in_fractions(instance: fo.Instance, notion: str = "proportional", sharing: Any = "rdm", **options: Any) -> ExactProgram:
    """A program in fractions."""
    chosen = fo.NOTIONS[notion](**options)
    return chosen.in_fractions(instance.exact, chosen.formulate(instance, sharing=sharing, integral=False))


def radius_near(program: ExactProgram, near: Solution, digits: int = 100) -> Fraction:
    """The best radius that is proved from points near a solution in floats."""
    return min(proved_radius(program, point, digits + 30) for point in points_near(program, near, digits, Deadline(None)))


@pytest.mark.parametrize(("notion", "options"), GOALS)
def test_random_instances(notion: str, options: dict[str, Any]) -> None:
    """30 digits and more, and the floats agree; with zero demands, constraints, counts, few tasks."""
    for seed in range(6):
        program = in_fractions(instance_of_everything(seed), notion, **options)
        floats = answer_in_floats(program, Deadline(None))
        points = points_near(program, floats, 80, Deadline(None))
        assert min(proved_radius(program, point, 110) for point in points) < Fraction(1, 10**30), seed
        utility = np.array([float(value) for value in program.per_user(program.utilities * points[-1].x)])
        near = program.program.per_user(program.program.utilities * floats.x)
        assert np.allclose(utility, near, rtol=1e-6, atol=1e-9 * near.max(initial=0.0)), seed


def test_digits_by_hand() -> None:
    """x0 = sqrt(12) x1 of x0 + 3 x1 = 9 at alpha = 2 with weights 4 and 1, to 300 digits: x1 satisfies a quadratic equation."""
    exact = solve(Instance([[9]], [[1], [3]], weights=[4, 1]), "proportional", alpha=2, exact=True, digits=300).exact
    x1 = exact.tasks_per_user[1]
    assert abs((9 - 3 * x1) ** 2 - 12 * x1**2) < Fraction(1, 10**297)
    assert exact.radius <= Fraction(1, 10**300)


def test_a_trade_off_whose_goal_hardly_depends_on_who_has_what() -> None:
    """On the second server phi U^-200 is the same for all, and so small beside kappa that guessed fractions of z and kappa have no U."""
    eligibility = [[1, 0]] * 3 + [[0, 1]] * 3
    pool = Instance([[3], [9]], [[1]] * 6, weights=[1, 1, 1, 3, 4, 1], eligibility=eligibility)
    exact = solve(pool, "gfj", beta=200, lam=Fraction(-2189, 2000), exact=True).exact
    assert exact.radius < Fraction(1, 10**30)
    powers = np.array([3.0, 4.0, 1.0]) ** (1 / 200)
    np.testing.assert_allclose(np.asarray(exact.tasks_per_user[3:], float), 9 * powers / powers.sum(), rtol=1e-14)
    assert exact.tasks_per_user[:3].tolist() == pytest.approx([1, 1, 1], abs=1e-30)


@pytest.mark.parametrize("alpha", [1, 1.5])
def test_ties_of_small_integers(alpha: float) -> None:
    """Equal users, equal servers, and resources that are full at once."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        demands = rng.integers(0, 3, (4, 2))
        demands[:, 0] = np.maximum(demands[:, 0], 1)
        demands[1] = demands[0]
        capacities = demands.sum(axis=0) * rng.integers(1, 3, (3, 1))
        program = in_fractions(Instance(capacities.tolist(), demands.tolist()), alpha=alpha)
        assert radius_near(program, answer_in_floats(program, Deadline(None))) < Fraction(1, 10**30), seed


def test_magnitudes() -> None:
    """Weights from 10^-20 to 10^20 and tasks of 10^-15 of a server."""
    tiny, huge = Fraction(1, 10**20), Fraction(10**20)
    instance = Instance([[1, 3]], [[1, 1], [Fraction(1, 10**15), 1], [1, 2]], weights=[tiny, 1, huge])
    exact = solve(instance, "proportional", exact=True).exact
    assert exact.radius <= Fraction(1, 10**30)
    used = sum(exact.tasks_per_user * instance.exact.demands[:, 0], Fraction(0))
    assert 0 <= 1 - used < Fraction(1, 10**28)
    assert abs(exact.tasks_per_user[0] * 10**40 - 1) < Fraction(1, 10**9)  # the price of the full resource is that of the heavy user


def test_alphas_from_nearly_linear_to_nearly_max_min() -> None:
    """At alpha = 0.01, and at 500, where marginal worths differ by hundreds of digits."""
    instance = Instance([[9], [4]], [[1], [3]])
    shares = []
    for alpha in (0.01, 20, 500):
        exact = solve(instance, "proportional", alpha=alpha, exact=True).exact
        assert exact is not None
        assert exact.radius <= Fraction(1, 10**30)
        assert abs(exact.tasks_per_user[0] + 3 * exact.tasks_per_user[1] - 13) < Fraction(1, 10**28)
        shares.append(exact.tasks_per_user[0] / exact.tasks_per_user[1])
    assert shares[0] > shares[1] > shares[2] > 1
    assert float(shares[2]) == pytest.approx(3 ** (1 / 500), abs=1e-12)


def test_from_wrong_floats_nothing_is_proved() -> None:
    """Points far from the optimum have a radius that says so, or there are none."""
    program = in_fractions(Instance([[9, 18], [3, 2]], [[1, 4], [3, 1]]), alpha=2)
    wrong = Solution(np.array([1e-3, 1e-3, 1.0, 0.1]), prices=np.array([1.0, 0.0, 0.0, 0.0]))
    try:
        points = points_near(program, wrong, 40, Deadline(None))
    except fo.NoSolution:
        return
    for point in points:
        assert min(point.x) >= 0  # feasible, whatever else
        assert all(used <= bound for used, bound in zip(program.usage(point.x), program.bounds, strict=True))


def test_at_the_deadline() -> None:
    """No guess is begun."""
    program = in_fractions(Instance([[9, 18]], [[1, 4], [3, 1]]))
    near = answer_in_floats(program, Deadline(None))
    with pytest.raises(fo.NoSolution, match="time limit"):
        points_near(program, near, 40, Deadline(0.0))


@pytest.mark.parametrize("alpha", [1, 2, 3, 5, 10])
def test_more_priced_limits_than_the_optimum_needs(alpha: int) -> None:
    """Two users who are each stopped by their servers at once: the prices are not unique, and only some of them keep pairs away."""
    jobs = Instance(np.full((3, 1), 6), np.ones((2, 1)), rates=[[1, 2, 6], [7, 5, 1]], tasks=[18, 18], parallelism=[1, 1])
    answer = solve(jobs, "proportional", alpha=alpha, exact=True)
    assert answer.certificate.exact
    assert answer.tasks_per_user.tolist() == [6, 7]


@pytest.mark.parametrize("seed", [0, 2, 5])
def test_users_whose_payments_are_far_apart(seed: int) -> None:
    """Jobs with few tasks and with many, from floats that are wrong in all digits: the path in many digits leads to the optimum."""
    draw = np.random.default_rng(seed)
    rates = np.linspace(1, 6, 8) * draw.lognormal(0, 0.5, (10, 8)) * draw.lognormal(0, 1, (10, 1)) * (draw.random((10, 8)) < 0.5)
    rates[np.arange(10), draw.integers(8, size=10)] = 2.0
    tasks = np.where(draw.random(10) < 0.3, np.inf, rates.max(axis=1) * draw.uniform(0.1, 1, 10))
    jobs = Instance(np.ones((8, 1)), np.ones((10, 1)), rates=rates, tasks=tasks, parallelism=np.ones(10))
    program, wrong = in_fractions(jobs, alpha=20), np.random.default_rng(seed)
    x = program.program.largest() * 10 ** -wrong.uniform(1, 14, program.n_pairs)
    assert radius_near(program, Solution(x, prices=10 ** -wrong.uniform(0, 20, program.bounds.size))) < Fraction(1, 10**30)


def test_what_can_hold_nothing_is_left_out() -> None:
    """A user without tasks, and a server without capacity."""
    instance = Instance([[4, 4], [2, 0]], [[1, 0], [1, 1], [2, 1]], tasks=[np.inf, 0, np.inf])
    goal, pairs, limits = Enclosing.of(in_fractions(instance))
    assert len(goal.phi) == 2
    assert len(pairs) == len(goal.user) == 3
    assert all(bound > 0 for bound in goal.bounds)
    assert len(limits) == len(goal.bounds)


def test_placements_fit_the_utilities() -> None:
    """Two servers of one resource, three users of one price: one at a vertex is found, or what is wrong is said."""
    goal, _, _ = Enclosing.of(in_fractions(Instance([[2], [1]], [[1], [1], [1]])))
    everything, both = frozenset(range(6)), frozenset({0, 1})
    reduced = reduced_conditions(goal, everything, both, [arb(1), arb(1)], [arb(1)] * 3)
    assert reduced is not None
    x = [0.5, 0.5, 0.7, 0.3, 0.8, 0.2]
    placed = placed_near(goal, reduced, everything, both, [rational(Fraction(1))] * 3, x)
    assert isinstance(placed, list)
    assert [placed[2 * n] + placed[2 * n + 1] for n in range(3)] == [1, 1, 1]
    assert sum(value != 0 for value in placed) <= 4
    some = frozenset({0, 3, 5})  # two users on the small server, one on the large: too much there
    wrong = placed_near(goal, reduced, some, frozenset(), [rational(Fraction(1))] * 3, [1.0, 0.0, 0.0, 1.0, 0.0, 1.0])
    assert not isinstance(wrong, list)
