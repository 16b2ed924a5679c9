"""The greedy placement that a leximin starts from: one pair of each user, the fullest limit as empty as it can be."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fairopt.solvers.via_highs.starting_basis import greedy_columns


def test_largest_first_by_hand() -> None:
    """Two limits. The user of 0.9 goes first, and takes limit 0; that of 0.5 the other; that of 0.3 limit 1, which is emptier then."""
    use = sp.csr_array(np.array([[0.3, 0], [0, 0.3], [0.9, 0], [0, 0.95], [0.5, 0], [0, 0.5]]))
    assert greedy_columns(use, np.array([0, 0, 1, 1, 2, 2])).tolist() == [1, 2, 5]


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_nobody_is_better_off_elsewhere_when_its_turn_comes(seed: int) -> None:
    """From the largest user on: of its own columns each takes one that leaves the fullest limit it touches emptiest."""
    rng = np.random.default_rng(seed)
    users = np.sort(np.concatenate([np.arange(5), rng.integers(0, 5, 7)]))
    use = rng.uniform(0.1, 1, (users.size, 4)) * (rng.random((users.size, 4)) < 0.6)
    use[use.sum(axis=1) == 0, 0] = 0.5
    chosen = greedy_columns(sp.csr_array(use), users)
    assert users[chosen].tolist() == list(range(5))
    size = np.array([use[users == n].max(axis=1).min() for n in range(5)])
    load = np.zeros(4)
    for n in np.argsort(-size):
        fullest = [np.where(column > 0, load + column, 0).max() for column in use[users == n]]
        assert np.where(use[chosen[n]] > 0, load + use[chosen[n]], 0).max() == pytest.approx(min(fullest))
        load += use[chosen[n]]
