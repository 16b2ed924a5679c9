"""The trajectory: the paper's equations hold along it, and it ends at an exact optimum on any cluster."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import instances

import fairopt as fo
from fairopt.certificate import certify
from fairopt.models import Sharing
from fairopt.program import AlphaFair, Program
from fairopt.program.cluster_limits import eligible_pairs, sharing_limits
from fairopt.solvers import candidates, choose
from fairopt.solvers.active_sets.polish import polish
from fairopt.solvers.backend import Deadline
from fairopt.solvers.trajectory.engine import Trajectory

SECTION_3 = fo.Instance([[1, 1, 1]], [[1 / 2, 1 / 2, 2 / 3], [1 / 2, 5 / 8, 1 / 2], [1, 1, 1 / 3]], weights=[1 / 2, 3 / 8, 1 / 8])


def nash(instance: fo.Instance, sharing: Sharing = "rdm") -> Program:
    """Return the weighted Nash optimum over all that the instance allows."""
    users, servers = eligible_pairs(instance)
    limits = sharing_limits(instance, users, servers, sharing)
    goal = AlphaFair(1.0, instance.weights)
    return Program("nash", "", instance.users, instance.servers, instance.resources, users, servers, np.ones(users.size), limits, goal)


def test_path_of_the_paper() -> None:
    """f(x(t)) = t, and x_i sum_j r_ij / (1 - u_j) = c(t) e_i, dummy resources included, at every step from x = 0 on."""
    trace = fo.solve(SECTION_3, "bbf", solver="trajectory").trace
    assert trace.t[0] == 0.0
    assert (trace.x[0] == 0).all()
    assert (np.diff(trace.t) > 0).all()
    r = np.hstack([SECTION_3.demands, np.eye(3)])  # users, resources and dummies
    free = 1 - trace.x @ r
    readable = (free > 1e-4).all(axis=1)  # from x alone: 1 - u has lost its digits later
    assert readable.sum() > 20
    np.testing.assert_allclose(-np.log(free[readable]).sum(axis=1), trace.t[readable], rtol=1e-5, atol=1e-6)
    pull = (trace.x @ np.zeros((3, 1)) + trace.x * ((1 / free) @ r.T))[readable][1:]
    c = pull.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(pull / c, np.broadcast_to(SECTION_3.weights, pull.shape), rtol=1e-4)
    np.testing.assert_allclose(trace.multipliers[readable][1:], 1 / (c * free[readable][1:]), rtol=1e-3)


def test_end_of_the_path() -> None:
    """The multipliers tend to prices of the bottlenecks, which sum to 1; the limits are named."""
    allocation = fo.solve(SECTION_3, "bbf", solver="trajectory")
    trace = allocation.trace
    assert [name for name, full in zip(trace.limits, trace.bottlenecks, strict=True) if full] == [
        "resource-2 @ server-1",
        "resource-3 @ server-1",
    ]
    assert allocation.prices is not None
    np.testing.assert_allclose(trace.multipliers[-1][:3], allocation.prices[0], atol=1e-6)
    np.testing.assert_allclose(trace.x[-1], allocation.tasks_per_user, atol=2e-6)
    assert allocation.prices.sum() == pytest.approx(1, abs=1e-9)
    spent = allocation.tasks_per_user * (SECTION_3.demands @ allocation.prices[0])
    np.testing.assert_allclose(spent, SECTION_3.weights, rtol=1e-12)  # no request is met in full: everybody spends its entitlement


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@given(instance=instances(max_users=6))
@settings(max_examples=25, deadline=None)
def test_any_cluster(sharing: Sharing, instance: fo.Instance) -> None:
    """Several servers, constraints, limits on tasks, zero demands, weights over three orders of magnitude: optimal to 1e-12.

    The end of the path shows its active sets; on these it is.
    """
    program = nash(instance, sharing)
    if not (program.largest() > 0).any():
        return
    end = Trajectory().solve(program, tolerance=1e-8, deadline=Deadline(None))
    assert (end.x >= 0).all()
    solution = polish(program, end)
    assert solution is not None
    assert solution.trace is end.trace
    assert certify(program, solution).worst <= 1e-12
    assert (solution.x >= 0).all()


def test_time_limit() -> None:
    """A deadline that has passed is an error of its own."""
    with pytest.raises(fo.NoSolution, match="time limit"):
        fo.solve(SECTION_3, "bbf", solver="trajectory", time_limit=1e-9)


def test_other_alphas_are_refused() -> None:
    """The path is that of proportional fairness."""
    program = nash(SECTION_3)
    program = dataclasses.replace(program, goal=AlphaFair(2.0, SECTION_3.weights))
    with pytest.raises(fo.Unsupported, match="alpha = 2 here; use alpha = 1"):
        choose(program, "trajectory").solve(program, tolerance=1e-8, deadline=Deadline(None))
    with pytest.raises(fo.Unsupported, match="no choice of solvers inside"):
        choose(nash(SECTION_3), "trajectory:fast")


def test_is_not_tried_unasked_where_it_would_take_long_or_fill_the_memory() -> None:
    """Beyond 500 pairs, where the dense matrices of its pairs and limits exceed 1 GiB, and for goals that it does not follow."""

    def tried(program: Program) -> bool:
        return "trajectory" in [engine.name for engine in candidates(program, None)]

    assert tried(nash(SECTION_3))
    assert not tried(fo.formulate(SECTION_3, "proportional", alpha=2))
    rng = np.random.default_rng(0)
    wide = fo.Instance(rng.uniform(1, 2, (26, 1)), rng.uniform(1, 2, (20, 1)))
    assert not tried(nash(wide))
    assert choose(nash(wide), "trajectory").name == "trajectory"
    few = nash(fo.Instance(rng.uniform(1, 2, (1, 6000)), rng.uniform(1, 2, (2, 6000))))
    assert few.n_pairs == 2
    assert not Trajectory.suits(few)
