"""The program by server: the same pairs, limits and violations as in the program itself."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate.conditions import bottleneck_violation
from fairopt.errors import Unsupported
from fairopt.program import Equilibrium, LimitKind, Program
from fairopt.solvers.compiled import Steps
from fairopt.solvers.equilibrium import layout as module
from fairopt.solvers.equilibrium import violation_kernel
from fairopt.solvers.equilibrium.layout import Layout
from fairopt.solvers.equilibrium.settings import SETTINGS


def laid_out(seed: int = 0) -> tuple[Program, Equilibrium, Layout]:
    """Six users, some with few tasks, on four servers, some pairs missing."""
    rng = np.random.default_rng(seed)
    eligibility = rng.random((6, 4)) < 0.7
    eligibility[~eligibility.any(axis=1), 0] = True
    tasks = np.where(rng.random(6) < 0.4, rng.uniform(0.5, 3, 6), np.inf)
    instance = fo.Instance(rng.uniform(1, 9, (4, 2)), rng.uniform(0.1, 2, (6, 2)), eligibility=eligibility, tasks=tasks)
    program = fo.formulate(instance, "psdsf")
    assert isinstance(program.goal, Equilibrium)
    return program, program.goal, Layout.of(program, program.goal)


@pytest.mark.parametrize("seed", range(4))
def test_every_pair_keeps_its_user_its_server_and_its_limits(seed: int) -> None:
    """By loops over pairs, limits and entries."""
    program, goal, layout = laid_out(seed)
    dense = program.limits.matrix.toarray()
    for place, pair in enumerate(layout.order):
        server, user = program.pair_servers[pair], program.pair_users[pair]
        assert layout.start[server] <= place < layout.start[server + 1]
        assert layout.user[place] == user
        assert layout.g[place] == goal.weights[user] / program.utilities[pair]
        for row in np.flatnonzero(program.limits.kinds == LimitKind.CAPACITY):
            if program.limits.keys[row, 0] == server:
                slot = [s for s in range(layout.row_of.shape[1]) if layout.bounds[server, s] == program.limits.bounds[row]]
                assert len(slot) == 1
                assert layout.use[place, slot[0]] == dense[row, pair]
    for row in np.flatnonzero(program.limits.kinds == LimitKind.TASKS):
        assert layout.tasks[program.limits.keys[row, 0]] == program.limits.bounds[row]


def test_values_find_their_pairs_again() -> None:
    """by_pair inverts the order of the layout."""
    _, _, layout = laid_out()
    x = np.random.default_rng(1).random(layout.order.size)
    np.testing.assert_array_equal(layout.by_pair(x)[layout.order], x)


@pytest.mark.parametrize("seed", range(4))
def test_the_violation_is_the_worst_of_all_conditions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Excess of a limit, a negative number of tasks, or a user who could have more: for a few pairs, and by compiled code for many."""
    program, goal, layout = laid_out(seed)
    x = np.random.default_rng(seed).uniform(0, 0.7, program.n_pairs)
    limits, steps = program.limits, Steps(violation_kernel)
    for point in (x, 0.01 * x, 3 * x):
        excess = float(((limits.matrix @ point - limits.bounds) / limits.bounds).max())
        expected = max(excess, 0.0, bottleneck_violation(program, goal, point))
        assert layout.violation(point, steps) == pytest.approx(expected, rel=1e-12)
        monkeypatch.setattr(module, "SETTINGS", SETTINGS._replace(pairs_to_compile=0))
        assert layout.violation(point, steps) == pytest.approx(expected, rel=1e-12)
        monkeypatch.undo()
    assert layout.violation(np.where(np.arange(x.size) == 2, -5.0, 0.0), steps) >= 5.0


def test_the_state_goes_on_from_a_point() -> None:
    """Its totals are those of the users."""
    program, _, layout = laid_out()
    x = np.random.default_rng(2).random(program.n_pairs)
    state = layout.empty()
    assert not state.x.any()
    assert (layout.stops(state) == -1).all()
    state.go_to(layout, x[layout.order])
    np.testing.assert_allclose(state.total, program.per_user(x), rtol=1e-15)


def test_other_limits_are_refused() -> None:
    """Limits of queues are no limits of one server."""
    queue = fo.Queue("q", limit={"resource-1": 1.0})
    instance = fo.Instance([[4.0], [4.0]], [[1.0], [1.0]], queues=[queue], queue_of=["q", None])
    program = fo.formulate(instance, "drfh")
    with pytest.raises(Unsupported, match="limits of single servers"):
        Layout.of(program, Equilibrium(np.ones(2)))
