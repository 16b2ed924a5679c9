"""Fillings of trees whose points or times are off in their last digits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Program, Solution, TreeFilling
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.tree_polish import polish_tree
from fairopt.solvers.via_highs.engine import HiGHS


def flows(seed: int, queues: list[fo.Queue] | None = None) -> Program:
    """40 flows of two paths each over 12 links: a path is a server, a link a quota of the queue that all flows are in."""
    rng = np.random.default_rng(seed)
    paths = [rng.choice(12, 3, replace=False) for _ in range(80)]
    names = [f"p{j}" for j in range(80)]
    over = [[names[j] for j, path in enumerate(paths) if link in path] for link in range(12)]
    eligibility = np.zeros((40, 80), bool)
    eligibility[np.arange(80) // 2, np.arange(80)] = True
    quotas = [fo.Quota(servers=each, limit={"flow": int(rng.integers(10, 100))}) for each in over if each]
    instance = fo.Instance(
        np.full((80, 1), 100),
        np.ones((40, 1)),
        resources=["flow"],
        servers=names,
        eligibility=eligibility,
        tasks=rng.integers(1, 40, 40),
        weights=rng.integers(1, 4, 40),
        queues=[fo.Queue("net", quotas=quotas), *(queues or [])],
        queue_of=["net" if not queues else queues[n % len(queues)].name for n in range(40)],
    )
    return fo.formulate(instance, "max-min")


def solved(program: Program) -> Solution:
    """By HiGHS, as it is."""
    return HiGHS().solve(program, tolerance=1e-8, deadline=Deadline(None))


def polished(program: Program, solution: Solution) -> Solution:
    """The polished solution, which there is."""
    found = polish_tree(program, program.goal_as(TreeFilling), solution)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(3))
def test_errors_of_the_last_digits_are_mended(seed: int) -> None:
    """Of x moved by up to 1e-9 of itself, and times by as much, nothing is left; users keep what they had up to that."""
    program = flows(seed)
    solution = solved(program)
    rng = np.random.default_rng(seed)
    moved = solution.x * (1 + 1e-9 * rng.uniform(-1, 1, solution.x.size))
    stages = tuple(replace(stage, value=stage.value * (1 - 1e-9)) for stage in solution.stages)
    rough = replace(solution, x=moved, parts=(moved,), stages=stages)
    assert certify(program, rough).worst > 1e-9
    mended = polished(program, rough)
    assert certify(program, mended).worst <= 1e-11
    np.testing.assert_allclose(program.per_user(program.utilities * mended.x), program.per_user(program.utilities * solution.x), rtol=1e-7)


def test_parts_are_polished_one_after_another() -> None:
    """Guarantees of two queues first, then the surplus."""
    instance = fo.Instance(
        [[20, 40], [30, 15]],
        [[1, 2], [2, 1], [1, 1], [3, 1]],
        resources=["cpu", "memory"],
        queues=[fo.Queue("a", guarantee={"cpu": 9}), fo.Queue("b", guarantee={"memory": 11}, weight=2)],
        queue_of=["a", "a", "b", "b"],
    )
    program = fo.formulate(instance, "drfh")
    assert len(program.goal_as(TreeFilling).parts) == 2
    solution = solved(program)
    ends = tuple(x * (1 - 1e-7) for x in solution.parts)
    rough = replace(solution, x=ends[-1], parts=ends)
    assert certify(program, rough).worst > 1e-8
    assert certify(program, polished(program, rough)).worst <= 1e-12


def test_a_clamp_has_other_equations() -> None:
    """Its trees are left as they are."""
    instance = fo.Instance([[10]], [[1], [1]], queues=[fo.Queue("a"), fo.Queue("b")], queue_of=["a", "b"])
    program = fo.formulate(instance, "drfh", guarantees="clamp")
    assert polish_tree(program, program.goal_as(TreeFilling), solved(program)) is None
