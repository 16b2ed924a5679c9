"""What limits of a user's own let its level be: against the largest level of a linear program of the user alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.linear import largest
from strategies import limited_instances

import fairopt as fo
from fairopt.program import Leximin, Program
from fairopt.program.own_limits import OwnLimits


def own_limits(program: Program) -> tuple[OwnLimits, np.ndarray]:
    """Return the limits of single users, and the level of the user per task on each pair."""
    assert isinstance(program.goal, Leximin)
    per_level = program.utilities / program.goal.weights[program.pair_users]
    return OwnLimits(program, per_level), per_level


def alone(program: Program, per_level: np.ndarray, n: int, free: np.ndarray) -> float:
    """The largest level of user n on its free pairs, by its own limits alone, one at a time; inf where none of them bounds it."""
    pairs = np.flatnonzero((program.pair_users == n) & free)
    best = np.inf
    for row in np.flatnonzero(~program.limits.of_servers & (program.limits.keys[:, 0] == n)):
        best = min(best, largest(per_level[pairs], program.limits.matrix[[row]][:, pairs].toarray(), program.limits.bounds[[row]]))
    return best


@given(instance=limited_instances(rates=True), seed=st.integers(0, 99))
@settings(max_examples=40)
def test_a_cap_is_the_largest_level_that_one_of_them_allows(instance: fo.Instance, seed: int) -> None:
    """Of all pairs, and of those that are free of charge."""
    program = fo.formulate(instance, "tsf")
    if not program.n_pairs:
        return
    own, per_level = own_limits(program)
    some = np.random.default_rng(seed).random(program.n_pairs) < 0.6
    for free in (np.ones(program.n_pairs, bool), some):
        cap, which = own.caps(free)
        for n in range(instance.n_users):
            if free[program.pair_users == n].any():
                assert cap[n] == pytest.approx(alone(program, per_level, n, free), rel=1e-9)
            assert (which[n] < 0) == np.isinf(cap[n])
            assert which[n] < 0 or own.users[which[n]] == n


def test_an_even_limit_is_nothing_but_a_cap() -> None:
    """Tasks that are worth the same everywhere; servers at once are not, where the user is faster on one of them."""
    instance = fo.Instance([[1], [1]], [[1], [1]], rates=[[1, 4], [2, 2]], tasks=[3, np.inf], parallelism=[1, 1])
    program = fo.formulate(instance, "tsf")
    own, _ = own_limits(program)
    assert {(program.limit_name(int(row)), bool(even)) for row, even in zip(own.rows, own.even, strict=True)} == {
        ("tasks of user-1", True),
        ("servers of user-1", False),
        ("servers of user-2", True),
    }


def test_the_price_at_which_a_user_turns_to_another_pair() -> None:
    """One server at once, 1 task on the slow or 4 on the fast one: beyond the price y at which both cost the same, the fast one wins."""
    instance = fo.Instance([[1], [1]], [[1], [1]], rates=[[1, 4], [1, 1]], parallelism=[1, np.inf])
    program = fo.formulate(instance, "tsf")
    own, per_level = own_limits(program)
    free = np.array([True, False, True, True])  # the slow server is free for user 1, the fast one costs 6
    cost = np.array([0.0, 6.0, 0.0, 0.0])
    (k,) = np.flatnonzero(own.users == 0)
    price = own.price_beyond(int(k), cost, free)
    use = program.limits.matrix[[own.rows[k]]].toarray()[0]
    for part, cheapest in ((0.99, 0), (1.01, 1)):
        paid = ((cost + part * price * use) / per_level)[:2]
        assert int(paid.argmin()) == cheapest
    assert own.price_beyond(int(k), cost, np.ones(4, bool)) == np.inf  # nothing is left to buy
