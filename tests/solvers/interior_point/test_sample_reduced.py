"""The program of users apart and of choices: which pairs join it at other prices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fairopt as fo
from fairopt.program import AlphaFair
from fairopt.solvers.interior_point.sample_reduced import Reduced
from fairopt.solvers.interior_point.sample_users import Users
from fairopt.solvers.interior_point.settings import SAMPLES


@pytest.mark.parametrize("change", [0.0, 5e-4, 0.02, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_pairs_that_join(seed: int, change: float) -> None:
    """Users without own limits: as by loops, and as where own limits exist of which nobody takes anything."""
    rng = np.random.default_rng(seed)
    n, servers = 120, 4
    instance = fo.Instance(np.ones((servers, 1)), np.ones((n, 1)), rng.uniform(0.5, 2, n), rates=rng.uniform(1, 1.2, (n, servers)))
    program = fo.formulate(instance, "proportional", sharing="tdm")
    assert isinstance(program.goal, AlphaFair)
    users = Users.of(program, program.goal)
    before = np.ones(servers)
    after = before * (1 + change * rng.uniform(-1, 1, servers))
    found = []
    for some in (users, replace(users, have_own=True)):
        with np.errstate(all="ignore"):
            bought, later = some.bought(before, 0.0), some.bought(after, 0.0)
            reduced = Reduced(some, bought, *some.apart(bought, some.margins(bought), 2e-3), is_rough=False)
            found.append(reduced.missing(later))
    np.testing.assert_array_equal(found[0], found[1])

    joins = np.zeros(n * servers, bool)
    reduced = Reduced(users, users.bought(before, 0.0), *users.apart(bought, users.margins(bought), 2e-3), is_rough=False)
    for user in range(n):
        pairs = np.flatnonzero(users.user == user)
        cost = (users.q * after[users.limit])[pairs]
        near = {int(pair) for pair in pairs[cost < (1 + SAMPLES.clear) * cost.min()]}
        has = {int(pair) for pair in pairs[reduced.kept[pairs]]} if reduced.apart[user] else {int(reduced.bought.first[user])}
        if not near <= has:
            joins[[*(near | has)]] = True
    np.testing.assert_array_equal(found[0], joins & ~reduced.kept)
    assert found[0].any() == (change > 1e-3)  # margins reach as far as 2e-3
