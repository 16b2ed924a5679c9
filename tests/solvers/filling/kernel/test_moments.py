"""What happens at one time; simulations and their oracle, event by event, are in tests/simulation."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np

from fairopt.program.filling import Rule
from fairopt.solvers.filling.event_state import EVENT, RUNNING
from fairopt.solvers.filling.kernel import moments


def test_the_next_moment() -> None:
    """The first end of a task that runs, or the next event, whichever comes first; inf when nothing is left."""
    run = SimpleNamespace(ends=np.array([3.0, 9.0]), times=np.array([1.0, 2.0, 5.0]), progress=np.zeros(6, int))
    assert moments.next_moment(run) == 1
    run.progress[RUNNING], run.progress[EVENT] = 1, 2
    assert moments.next_moment(run) == 3
    run.progress[RUNNING] = 0
    assert moments.next_moment(run) == 5
    run.progress[EVENT] = 3
    assert moments.next_moment(run) == math.inf


def test_nothing_happens_after_the_end_nor_beyond_the_number_of_moments() -> None:
    """The time of the next moment is returned, and nothing else is touched."""
    state = SimpleNamespace(rule=int(Rule.FIRST))
    run = SimpleNamespace(ends=np.zeros(1), times=np.array([4.0]), progress=np.zeros(6, int))
    rng = np.random.default_rng(0)
    assert moments.advance(state, run, None, rng, False, 3.0, 10) == 4.0
    assert moments.advance(state, run, None, rng, False, 9.0, 0) == 4.0
    run.progress[EVENT] = 1
    assert moments.advance(state, run, None, rng, False, 9.0, 10) == math.inf
