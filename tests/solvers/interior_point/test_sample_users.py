"""What users buy at given prices: no other pair, and no other mixture of two pairs, is better for any of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import fairopt as fo
from fairopt.program import AlphaFair, LimitKind, Limits, Program
from fairopt.solvers.interior_point import sample_users
from fairopt.solvers.interior_point.sample_users import Users, fits
from fairopt.solvers.interior_point.settings import SAMPLES


def servers_at_once(users: int, servers: int, seed: int, own: float = 0.7) -> Program:
    """Users with rates and, a part of them, with numbers of servers at once."""
    rng = np.random.default_rng(seed)
    parallelism = np.where(rng.random(users) < own, rng.uniform(0.5, 2, users), np.inf)
    instance = fo.Instance(
        np.ones((servers, 1)),
        np.ones((users, 1)),
        rng.uniform(0.5, 2, users),
        counts=rng.integers(2, 20, servers),
        rates=rng.uniform(0.2, 2, (users, servers)),
        parallelism=parallelism,
    )
    return fo.formulate(instance, "proportional")


def best_worth(phi: float, alpha: float, cost: np.ndarray, h: np.ndarray) -> float:
    """The largest phi g(t) - cost of one user, by trying one pair after another and all mixtures of two that fill its own limit.

    Of a mixture, utility is linear in its cost, so its best t is where phi t^-alpha is the price of more of it, or one of its ends.
    """

    def worth(t: float, spent: float) -> float:
        return float(phi * (np.log(t) if alpha == 1 else t ** (1 - alpha) / (1 - alpha)) - spent)

    found = []
    for c, part in zip(cost, h, strict=True):
        t = (phi / c) ** (1 / alpha)
        t = min(t, 1 / part) if part > 0 else t
        found.append(worth(t, c * t))
    for a, b in combinations(range(cost.size), 2):
        low, high = sorted((a, b), key=lambda pair: -h[pair])
        if h[low] <= h[high]:
            continue
        spent = [cost[low] / h[low], cost[high] / h[high]]
        ends = [1 / h[low], 1 / h[high]]
        price = (spent[1] - spent[0]) / (ends[1] - ends[0])
        t = np.clip((phi / price) ** (1 / alpha), *ends) if price > 0 else ends[1]
        found.append(worth(t, spent[0] + price * (t - ends[0])))
    return max(found)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_else_is_better(alpha: float, seed: int) -> None:
    """At any prices, some of them far too low; and no own limit is exceeded."""
    program = servers_at_once(40, 5, seed)
    assert isinstance(program.goal, AlphaFair)
    users = Users.of(program, AlphaFair(alpha, program.goal.weights))
    rng = np.random.default_rng(seed)
    for _ in range(3):
        prices = 10 ** rng.uniform(-1, 2, 5)
        with np.errstate(all="ignore"):
            bought = users.bought(prices, 0.0)
            parts = users.parts(bought)
        for n in range(users.n):
            pairs = np.flatnonzero(users.user == n)
            cost, h, phi = (users.q * prices[users.limit])[pairs], users.h[pairs], np.exp(users.log_phi[n])
            t, mine = np.exp(bought.log_t[n]), {int(bought.first[n]): parts[0][n]}
            if bought.second[n] >= 0:
                mine[int(bought.second[n])] = parts[1][n]
            assert min(mine.values()) >= 0
            assert sum(users.h[pair] * part * t for pair, part in mine.items()) <= 1 + 1e-12
            spent = sum(users.q[pair] * prices[users.limit[pair]] * part * t for pair, part in mine.items())
            own = phi * (np.log(t) if alpha == 1 else t ** (1 - alpha) / (1 - alpha)) - spent
            assert own == pytest.approx(best_worth(float(phi), alpha, cost, h), rel=1e-12, abs=1e-12)


def test_margins_tell_the_price_at_which_a_choice_changes() -> None:
    """A user on one server at once, with rates 1 and 2 at prices 0.1 of the slow and 0.1 + D of the fast: t = 1 / D where it has both.

    It has the slow one alone where D >= 1: D = 1.25, the fast pair costs (0.1 + 1.25 + 0.9) / 2 of its least cost, 1, a unit. At D = 2 / 3
    it has each for half of the time, t = 1.5, and is at either end if prices change by a third. At D = 0.4 it has the fast one alone: its
    least cost is 1 / 2, its own limit costs 0.5, and a unit of the slow pair 0.6.
    """
    instance = fo.Instance([[1.0], [1.0]], [[1.0]], rates=[[1.0, 2.0]], parallelism=[1.0])
    program = fo.formulate(instance, "proportional")
    assert isinstance(program.goal, AlphaFair)
    users = Users.of(program, program.goal)
    for extra, pairs, t, margin in [(1.25, (0, -1), 1.0, 0.125), (2 / 3, (0, 1), 1.5, 1 / 3), (0.4, (1, -1), 2.0, 0.2)]:
        with np.errstate(all="ignore"):
            bought = users.bought(np.array([0.1, 0.1 + extra]), 0.0)
            assert (int(bought.first[0]), int(bought.second[0])) == pairs
            assert np.exp(bought.log_t[0]) == pytest.approx(t)
            assert users.margins(bought)[0] == pytest.approx(margin)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("tied", [False, True])
def test_users_without_own_limits_buy_as_if_these_never_bound(alpha: float, tied: bool) -> None:
    """Two ways to the same answer: by least costs alone, and by own limits of which nobody takes anything. Rates of 1 and 2 alone tie."""
    rng = np.random.default_rng(0)
    rates = rng.integers(1, 3, (60, 4)) if tied else rng.uniform(0.2, 2, (60, 4))
    rates = rates * (rng.random((60, 4)) < 0.8)
    rates[:, 1] = 1.0
    program = fo.formulate(
        fo.Instance(np.ones((4, 1)), np.ones((60, 1)), rng.uniform(0.5, 2, 60), rates=rates), "proportional", sharing="tdm"
    )
    assert isinstance(program.goal, AlphaFair)
    users = Users.of(program, AlphaFair(alpha, program.goal.weights))
    assert not users.have_own
    general = replace(users, have_own=True)
    prices = np.ones(4) if tied else rng.uniform(0.5, 2, 4)
    with np.errstate(all="ignore"):
        bought, same = users.bought(prices, 0.5), general.bought(prices, 0.5)
        np.testing.assert_array_equal(bought.first, same.first)
        np.testing.assert_array_equal(bought.second, same.second)
        np.testing.assert_allclose(bought.excess, same.excess, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(bought.log_t, same.log_t, rtol=1e-14)
        np.testing.assert_allclose(users.parts(bought), general.parts(same))
        np.testing.assert_allclose(users.margins(bought), general.margins(same), rtol=1e-12, atol=1e-15)


def test_without_own_limits_a_number_of_pairs_is_kept_besides_the_cheapest() -> None:
    """The threshold is an excess at which just so many pairs of users apart are kept besides those that they buy at."""
    rng = np.random.default_rng(0)
    program = fo.formulate(fo.Instance(np.ones((5, 1)), np.ones((80, 1)), rates=rng.uniform(1, 2, (80, 5))), "proportional", sharing="tdm")
    assert isinstance(program.goal, AlphaFair)
    users = Users.of(program, program.goal)
    bought = users.bought(rng.uniform(0.9, 1.1, 5), 0.0)
    margins = users.margins(bought)
    for besides in (1, 7, 30, 79):
        apart, kept = users.apart(bought, margins, users.threshold(bought, margins, besides))
        assert int(kept.sum()) - int(apart.sum()) == besides
        of_least = np.sort(np.delete(bought.excess, bought.first))[:besides]
        np.testing.assert_array_equal(np.sort(np.setdiff1d(bought.excess[kept], [0.0])), of_least)
    assert users.threshold(bought, margins, 80) == np.inf


def test_which_programs_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pair uses one limit of a server, and one of its user's own in proportion; limits on tasks are others."""
    monkeypatch.setattr(sample_users, "SAMPLES", SAMPLES._replace(users_of_samples=30, users_per_limit=5))
    program = servers_at_once(40, 3, 0)
    assert fits(program)
    limits = program.limits
    of_own = np.repeat(limits.kinds == LimitKind.PARALLELISM, np.diff(limits.matrix.indptr))
    uneven = limits.matrix.copy()
    uneven.data = np.where(of_own, uneven.data * np.random.default_rng(0).uniform(1, 2, uneven.nnz), uneven.data)
    assert not fits(replace(program, limits=Limits(uneven, limits.bounds, limits.kinds, limits.keys)))
    rng = np.random.default_rng(0)
    one = fo.Instance(np.ones((3, 1)), rng.uniform(0.1, 1, (40, 1)), parallelism=np.ones(40))
    assert fits(fo.formulate(one, "proportional"))
    assert not fits(fo.formulate(one.replace(tasks=np.full(40, 3.0)), "proportional"))
    two = fo.Instance(np.ones((3, 2)), rng.uniform(0.1, 1, (40, 2)), parallelism=np.ones(40))
    assert not fits(fo.formulate(two, "proportional"))
