"""Users with the same choice as one user: at any prices it buys what they buy together, and they share that as they would buy it."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.instance import FloatArray
from fairopt.program import AlphaFair
from fairopt.solvers.interior_point.sample_choices import Choices
from fairopt.solvers.interior_point.sample_users import Bought, Users


def parts_of_limits(users: Users, bought: Bought) -> FloatArray:
    """What users buy at each pair, in parts of its limit, (pairs,)."""
    z = np.zeros(users.q.size)
    for pair, part in zip((bought.first, bought.second), users.parts(bought), strict=True):
        for n in range(users.n):
            if pair[n] >= 0:
                z[pair[n]] = part[n] * np.exp(bought.log_t[n]) * users.q[pair[n]]
    return z


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_one_user_buys_what_its_users_buy_together(alpha: float, seed: int) -> None:
    """Users with and without own limits, with one and with two pairs; what the one user buys follows from its program alone."""
    rng = np.random.default_rng(seed)
    n, servers = 200, 3
    instance = fo.Instance(
        np.ones((servers, 1)),
        np.ones((n, 1)),
        rng.uniform(0.5, 2, n),
        counts=rng.integers(10, 40, servers),
        rates=rng.uniform(0.2, 2, (n, servers)),
        parallelism=np.where(rng.random(n) < 0.6, rng.uniform(0.5, 2, n), np.inf),
    )
    program = fo.formulate(instance, "proportional")
    assert isinstance(program.goal, AlphaFair)
    users = Users.of(program, AlphaFair(alpha, program.goal.weights))
    prices = users.kappa * rng.uniform(0.1, 1, servers)
    with np.errstate(all="ignore"):
        bought = users.bought(prices, 0.0)
        choices = Choices.of(users, bought, np.arange(n))
        z = parts_of_limits(users, bought)
        for others in (np.arange(n), np.arange(5)):  # choices of few users are numbered otherwise
            kinds = [
                (
                    users.limit[bought.first[user]],
                    users.limit[bought.second[user]] if bought.second[user] >= 0 else -1,
                    bought.own[user] > 0,
                )
                for user in others
            ]
            choice = Choices.of(users, bought, others).choice
            assert len({*zip(kinds, choice.tolist(), strict=True)}) == len({*kinds}) == len({*choice.tolist()})
        together = choices.together_of(z)
        assert (bought.second >= 0).any()
        assert ((bought.second < 0) & (bought.own > 0)).any()
        assert choices.size.sum() == n
        columns, goal = choices.columns.program(users)
        ones = Users.of(columns, goal)
        of_ones = ones.bought(prices * np.exp(-choices.columns.log_unit), 0.0)
        np.testing.assert_allclose(parts_of_limits(ones, of_ones), together, rtol=1e-11)
    shared = np.zeros(z.size)
    choices.share(shared, together)
    np.testing.assert_allclose(shared, z, rtol=1e-10, atol=1e-14)
