"""Many users by way of a sample: the answer is that of the path for all of them, whatever the sample tells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import AlphaFair, Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point import by_sample
from fairopt.solvers.interior_point.alpha_fair import solve_alpha_fair
from fairopt.solvers.interior_point.settings import SAMPLES

NEVER = Deadline(None)


def by_rates(users: int, servers: int, seed: int, part: float = 1.0) -> fo.Instance:
    """Individual rates on every server, a part of the pairs eligible, and one of each user at least."""
    rng = np.random.default_rng(seed)
    rates = np.where(rng.random((users, servers)) < part, rng.uniform(20, 100, (users, servers)), 0.0)
    rates[np.arange(users), rng.integers(servers, size=users)] = 50.0
    return fo.Instance(np.ones((servers, 1)), np.ones((users, 1)), weights=rng.uniform(0.5, 2, users), rates=rates)


def solved(program: Program) -> Solution:
    """Follow the path alone."""
    assert isinstance(program.goal, AlphaFair)
    with np.errstate(all="ignore"):
        solution = solve_alpha_fair(program, program.goal, 1e-8, NEVER)
    assert solution is not None
    return solution


@pytest.mark.parametrize("alpha", [0.3, 1.0, 5.0])
@pytest.mark.parametrize(("part", "fewest"), [(1.0, 5), (1.0, 400), (0.5, 50)])
def test_a_sample_changes_nothing(monkeypatch: pytest.MonkeyPatch, alpha: float, part: float, fewest: int) -> None:
    """A sample of 100 of 1,000 users; if too few pairs are kept at its prices, the others join."""
    program = fo.formulate(by_rates(1000, 4, 4, part), "proportional", alpha=alpha, sharing="tdm")
    assert not by_sample.fits(program)
    whole = solved(program)
    settings = replace(SAMPLES, users_of_samples=400, sample=100, fewest=fewest, few=fewest)
    monkeypatch.setattr(by_sample, "SAMPLES", settings)
    assert by_sample.fits(program)
    sifted = solved(program)
    assert sifted.iterations > whole.iterations
    assert certify(program, sifted).worst <= 1e-9
    np.testing.assert_allclose(program.per_user(sifted.x), program.per_user(whole.x), rtol=1e-8)
    assert sifted.prices is not None
    assert whole.prices is not None
    np.testing.assert_allclose(sifted.prices, whole.prices, rtol=1e-8)


def test_a_limit_that_no_user_of_a_sample_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its price at the end of the sample's path says nothing: either it is found by more rounds, or the path takes all users."""
    instance = by_rates(600, 3, 1)
    eligibility = np.ones((600, 3), bool)
    eligibility[:, 2] = np.arange(600) % 60 == 0
    monkeypatch.setattr(by_sample, "SAMPLES", replace(SAMPLES, users_of_samples=400, sample=20))
    program = fo.formulate(instance.replace(eligibility=eligibility), "proportional", sharing="tdm")
    assert by_sample.fits(program)
    assert certify(program, solved(program)).worst <= 1e-9


def test_only_users_whose_pairs_use_one_limit() -> None:
    """Of one resource, or of servers' time; not of two resources, nor with limits on tasks."""
    many = by_rates(5000, 2, 0)
    assert by_sample.fits(fo.formulate(many, "proportional", sharing="tdm"))
    assert not by_sample.fits(fo.formulate(many.replace(tasks=np.full(5000, 3.0)), "proportional", sharing="tdm"))
    two = fo.Instance(np.ones((2, 2)), np.ones((5000, 2)), weights=many.weights)
    assert not by_sample.fits(fo.formulate(two, "proportional"))


def test_users_of_one_pair_each() -> None:
    """Nobody has a choice: x[n] is the part phi^(1 / alpha) demand^(1 / alpha - 1) of its server's users."""
    n, alpha = 4200, 2.0
    rng = np.random.default_rng(3)
    demands, weights, server = rng.uniform(0.1, 1, n), rng.uniform(1, 5, n), np.arange(n) % 3
    instance = fo.Instance([[5.0], [7.0], [9.0]], demands[:, None], weights, eligibility=server[:, None] == np.arange(3))
    program = fo.formulate(instance, "proportional", alpha=alpha)
    assert by_sample.fits(program)
    wanted = (weights / demands) ** (1 / alpha)
    used = np.bincount(server, weights=wanted * demands)
    np.testing.assert_allclose(solved(program).x, wanted * (np.array([5.0, 7.0, 9.0]) / used)[server], rtol=1e-10)
