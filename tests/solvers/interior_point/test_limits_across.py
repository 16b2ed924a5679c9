"""Limits across servers in the interior points of servers: what HiGHS, and the sparse system of all rows, find for the same programs."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.program import AlphaFair
from fairopt.solvers import choose
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.alpha_fair import solve_alpha_fair
from fairopt.solvers.interior_point.rows import RowPairs, ScaledRows


def with_limits(seed: int, users: int = 14, servers: int = 5) -> fo.Instance:
    """Licences, a limit of all users on some servers, one of some users on some, one on tasks; some of them do not bind."""
    rng = np.random.default_rng(seed)
    demands = np.hstack([rng.uniform(0.05, 1, (users, 2)), rng.uniform(0.1, 1, (users, 1)) * (np.arange(users) % 3 == 0)[:, None]])
    eligibility = rng.random((users, servers)) < (0.5 if seed % 2 else 1.0)
    eligibility[np.arange(users), rng.integers(servers, size=users)] = True
    instance = fo.Instance(
        rng.uniform(1, 10, (servers, 2)),
        demands,
        resources=["cpu", "gpu", "licence"],
        weights=rng.uniform(1, 4, users),
        eligibility=eligibility,
        shared={"licence": float(rng.uniform(0.5, 3))},
    )
    names, some = list(instance.servers), [user for user in instance.users if rng.random() < 0.5]
    return instance.replace(
        limits=[
            fo.Limit("power", float(rng.uniform(1, 5)), resource="cpu", servers=names[:3]),
            fo.Limit("project", float(rng.uniform(0.5, 4)), resource="gpu", servers=names[1:], users=some),
            fo.Limit("jobs", float(rng.uniform(4, 20)), servers=names[2:4]),
        ]
    )


@pytest.mark.parametrize("seed", range(6))
def test_levels_and_totals_are_those_of_highs(seed: int) -> None:
    """Several levels: the face of each keeps limits across servers that are full."""
    instance = with_limits(seed)
    for notion in ("max-min", "efficiency"):
        found = fo.solve(instance, notion, solver="interior-point")
        other = fo.solve(instance, notion, solver="highs")
        assert found.certificate.worst <= 1e-8
        if notion == "max-min":
            np.testing.assert_allclose(found.tasks_per_user, other.tasks_per_user, rtol=1e-7)
            assert len(found.levels) == len(other.levels)
        else:
            assert found.tasks_per_user @ instance.weights == pytest.approx(other.tasks_per_user @ instance.weights, rel=1e-8)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_utilities_are_those_of_the_system_of_all_rows(seed: int, alpha: float) -> None:
    """The optimum of an alpha-fair goal is unique in the utilities."""
    program = fo.formulate(with_limits(seed), "proportional", alpha=alpha)
    assert isinstance(program.goal, AlphaFair)
    with np.errstate(all="ignore"):
        found = solve_alpha_fair(program, program.goal, 1e-8, Deadline(None))
        other = solve_alpha_fair(program, program.goal, 1e-8, Deadline(None), pairs=RowPairs(ScaledRows.of(program)))
    assert found is not None
    assert other is not None
    np.testing.assert_allclose(program.per_user(found.x), program.per_user(other.x), rtol=1e-8)


def test_it_comes_first_for_large_programs_with_few_limits_across_servers() -> None:
    """As without them; where users have few servers each, and so levels are many, HiGHS does."""
    instance = with_limits(0, users=600, servers=60)
    for notion in ("max-min", "efficiency"):
        assert choose(fo.formulate(instance, notion), None).name == "interior-point"
    few = np.arange(60) % 20 == np.arange(1500)[:, None] % 20
    many_levels = with_limits(0, users=1500, servers=60).replace(eligibility=few)
    assert choose(fo.formulate(many_levels, "max-min"), None).name == "highs"
    in_groups = np.arange(60) % 10 == np.arange(1500)[:, None] % 10  # which share what is limited across servers
    assert choose(fo.formulate(many_levels.replace(eligibility=in_groups), "max-min"), None).name == "interior-point"
    few_levels = many_levels.replace(limits=[], shared=None, eligibility=np.arange(60) % 2 == np.arange(1500)[:, None] % 2)
    assert choose(fo.formulate(few_levels, "max-min"), None).name == "interior-point"
