"""Many users by way of a sample: the answer is that of the path for all of them, whatever the sample tells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import AlphaFair, Program, Solution
from fairopt.solvers.active_sets.polish import polish
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point import alpha_fair, by_sample, sample_reduced, sample_users
from fairopt.solvers.interior_point.alpha_fair import solve_alpha_fair
from fairopt.solvers.interior_point.settings import SAMPLES

NEVER = Deadline(None)


def by_rates(users: int, servers: int, seed: int, part: float = 1.0) -> fo.Instance:
    """Individual rates on every server, a part of the pairs eligible, and one of each user at least."""
    rng = np.random.default_rng(seed)
    rates = np.where(rng.random((users, servers)) < part, rng.uniform(20, 100, (users, servers)), 0.0)
    rates[np.arange(users), rng.integers(servers, size=users)] = 50.0
    return fo.Instance(np.ones((servers, 1)), np.ones((users, 1)), weights=rng.uniform(0.5, 2, users), rates=rates)


def with_settings(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:
    """Solve programs by a sample that are small otherwise."""
    settings = SAMPLES._replace(**changed)
    for module in (by_sample, sample_reduced, sample_users):
        monkeypatch.setattr(module, "SAMPLES", settings)


def some_servers_at_once(seed: int) -> fo.Instance:
    """Rates, of which users may have some on every server, and numbers of servers at once, which some users do not have.

    Every third instance has rates of 1, 2 and 3 alone, so that many users are torn between servers.
    """
    rng = np.random.default_rng(seed)
    users, servers = int(rng.integers(300, 600)), int(rng.integers(2, 6))
    rates = rng.integers(1, 4, (users, servers)).astype(float) if seed % 3 == 0 else rng.uniform(0.05, 1, (users, servers))
    rates[rng.random((users, servers)) < (0.4 if seed % 2 else 0.0)] = 0.0
    rates[np.arange(users), rng.integers(servers, size=users)] = 1.0
    parallelism = np.where(rng.random(users) < 0.2 * (seed % 4), np.inf, rng.uniform(0.5, 2, users))
    counts = np.ceil(rng.uniform(0.02, 0.6, servers) * users)
    return fo.Instance(
        np.ones((servers, 1)), np.ones((users, 1)), rng.uniform(0.5, 2, users), counts=counts, rates=rates, parallelism=parallelism
    )


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
    assert not sample_users.fits(program)
    whole = solved(program)
    with_settings(monkeypatch, users_of_samples=400, sample=100, fewest=fewest, few=fewest)
    assert sample_users.fits(program)
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
    with_settings(monkeypatch, users_of_samples=400, sample=20)
    program = fo.formulate(instance.replace(eligibility=eligibility), "proportional", sharing="tdm")
    assert sample_users.fits(program)
    assert certify(program, solved(program)).worst <= 1e-9


def test_only_users_whose_pairs_use_one_limit() -> None:
    """Of one resource, or of servers' time; not of two resources, nor with limits on tasks."""
    many = by_rates(5000, 2, 0)
    assert sample_users.fits(fo.formulate(many, "proportional", sharing="tdm"))
    assert not sample_users.fits(fo.formulate(many.replace(tasks=np.full(5000, 3.0)), "proportional", sharing="tdm"))
    two = fo.Instance(np.ones((2, 2)), np.ones((5000, 2)), weights=many.weights)
    assert not sample_users.fits(fo.formulate(two, "proportional"))


def test_users_of_one_pair_each() -> None:
    """Nobody has a choice: x[n] is the part phi^(1 / alpha) demand^(1 / alpha - 1) of its server's users."""
    n, alpha = 4200, 2.0
    rng = np.random.default_rng(3)
    demands, weights, server = rng.uniform(0.1, 1, n), rng.uniform(1, 5, n), np.arange(n) % 3
    instance = fo.Instance([[5.0], [7.0], [9.0]], demands[:, None], weights, eligibility=server[:, None] == np.arange(3))
    program = fo.formulate(instance, "proportional", alpha=alpha)
    assert sample_users.fits(program)
    wanted = (weights / demands) ** (1 / alpha)
    used = np.bincount(server, weights=wanted * demands)
    np.testing.assert_allclose(solved(program).x, wanted * (np.array([5.0, 7.0, 9.0]) / used)[server], rtol=1e-10)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_users_with_limits_of_their_own(monkeypatch: pytest.MonkeyPatch, seed: int, alpha: float) -> None:
    """On some servers at once: the answer is that of the path for all users, polished, and every user's residual is rounding."""
    program = fo.formulate(some_servers_at_once(seed), "proportional", alpha=alpha)
    near = solved(program)
    whole = polish(program, near) or near
    with_settings(monkeypatch, users_of_samples=200, users_per_limit=10, sample=60, fewest=20, few=30)
    taken: list[Solution | None] = []

    def watched(*given: Any) -> Solution | None:
        taken.append(by_sample.solve_by_sample(*given))
        return taken[-1]

    monkeypatch.setattr(alpha_fair, "solve_by_sample", watched)
    sifted = solved(program)
    assert taken == [sifted]
    assert certify(program, sifted).worst <= 1e-11
    np.testing.assert_allclose(program.per_user(sifted.x), program.per_user(whole.x), rtol=2e-9)


def test_users_who_share_fast_servers() -> None:
    """4,200 users, each on one server at once, and half as many servers that are twice as fast as the others: t = phi 1.5 n / sum phi.

    phi / t is the same for all. A user with t tasks is on fast servers for the part t - 1 of its time, and t is between 1 and 2.
    """
    n = 4200
    weights = np.random.default_rng(0).uniform(1, 1.2, n)
    instance = fo.Instance(
        np.ones((2, 1)), np.ones((n, 1)), weights, counts=[n, n // 2], rates=np.tile([1.0, 2.0], (n, 1)), parallelism=np.ones(n)
    )
    program = fo.formulate(instance, "proportional")
    assert sample_users.fits(program)
    found = solved(program)
    np.testing.assert_allclose(program.per_user(found.x), weights * 1.5 * n / weights.sum(), rtol=1e-12)
    assert found.prices is not None
    np.testing.assert_allclose(found.prices[:2] / [n, n // 2], [0.0, weights.sum() / (1.5 * n)], rtol=1e-12, atol=1e-9)


def test_a_planted_error_is_found_among_users_with_limits_of_their_own() -> None:
    """One user has 1e-7 of its tasks less, or more: the certificate of the answer by a sample is not that of the changed one."""
    rng = np.random.default_rng(1)
    n = 5000
    rates = rng.uniform(0.1, 1, (n, 3))
    instance = fo.Instance(np.ones((3, 1)), np.ones((n, 1)), counts=[n // 2, n // 4, n // 8], rates=rates, parallelism=np.ones(n))
    program = fo.formulate(instance, "proportional")
    found = solved(program)
    assert certify(program, found).worst <= 1e-11
    for user in rng.choice(n, 5, replace=False):
        for part in (1 - 1e-7, 1 + 1e-7):
            changed = np.where(program.pair_users == user, part, 1.0) * found.x
            assert not certify(program, replace(found, x=changed)).worst <= 1e-8
