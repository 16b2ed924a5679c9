"""The loop over the parts of a filling, with parts that are filled by hand, and in floats and fractions on the same trees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from instances import instance_in_queues, with_lenders

import fairopt as fo
from fairopt.instance import FloatArray
from fairopt.program import Solution, Stage, TreeFilling
from fairopt.program.tree_filling import Shares
from fairopt.solvers import solve_exactly
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.parts import Filled, Filling

NEVER = Deadline(None)


class ByHand(Filling):
    """Each part adds one task for everybody, and says where it began."""

    def __init__(self, program: fo.Program, goal: TreeFilling, *, down_closed: bool) -> None:
        super().__init__(program, goal, np.zeros(program.n_pairs), _no_agents, down_closed=down_closed)
        self.began: list[tuple[int, Any, list[float]]] = []

    def climbed(self, number: int, bounds: Any, before: Filled, keeping: Any) -> Filled:
        """One more task on every pair."""
        assert keeping is None
        self.began.append((number, None if bounds is None else bounds.tolist(), before.x.tolist()))
        stages = (*before.stages, Stage(float(number), np.empty(0, np.int64), None, number))
        return replace(before, x=before.x + 1, shares=Shares(before.shares.users + 1, before.shares.nodes), stages=stages)

    def alone(self, program: Any, goal: TreeFilling, owner: int, large: bool) -> tuple[Solution, Any]:
        """Nothing is in doubt."""
        raise AssertionError

    def keeping(self, promised: Any, *, everywhere: bool, after: Any) -> Any:
        """Nor is any floor kept."""
        raise AssertionError

    def users(self, shares: Shares) -> FloatArray:
        """As they are."""
        return shares.users

    def least(self, x: FloatArray, shares: Shares) -> FloatArray:
        """As it is."""
        return x

    def exactly(self, x: FloatArray, users: FloatArray) -> FloatArray:
        """As it is."""
        return x


def _no_agents(_: Any) -> Any:
    raise AssertionError("no program of agents is needed")


@pytest.mark.parametrize("down_closed", [True, False])
def test_each_part_begins_where_the_one_before_it_ended(down_closed: bool) -> None:
    """A guarantee of 6 GPUs and the surplus of 8: two parts. The first one has bounds to look at under rules alone."""
    queues = [fo.Queue("lab", guarantee={"gpu": 6})]
    pool = fo.Instance([[8]], [[2], [1]], resources=["gpu"], queues=queues, queue_of=["lab", None])
    program = fo.formulate(pool, "drfh")
    goal = program.goal_as(TreeFilling)
    filling = ByHand(program, goal, down_closed=down_closed)
    found = filling.solve(compare=False)
    assert [number for number, _, _ in filling.began] == [0, 1]
    assert [x for _, _, x in filling.began] == [[0, 0], [1, 1]]
    assert (filling.began[0][1] is None) == down_closed
    assert [x.tolist() for x in found.parts] == [[1, 1], [2, 2]]
    assert found.x.tolist() == [2, 2]
    assert [stage.part for stage in found.stages] == [0, 1]
    assert len(found.extra_bounds) == 2


@pytest.mark.parametrize("seed", range(8))
def test_floats_and_fractions_fill_the_same_parts(seed: int) -> None:
    """Users have the same at the end of every part, in trees whose queues lend."""
    instance = with_lenders(instance_in_queues(seed), seed)
    program = fo.formulate(instance, "drfh")
    if not isinstance(program.goal, TreeFilling):
        pytest.skip("a tree that needs no filling")
    floats = fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=NEVER)
    notion = fo.NOTIONS["drfh"]()
    exact = notion.in_fractions(instance.exact, program)
    fractions = solve_exactly(exact, NEVER, lambda: floats)
    assert len(floats.parts) == len(fractions.parts) == len(program.goal.parts)
    for mine, theirs in zip((*floats.parts, floats.x), (*fractions.parts, fractions.x), strict=True):
        there = program.per_user(program.utilities * np.array([float(int(each.p) / int(each.q)) for each in theirs]))
        np.testing.assert_allclose(program.per_user(program.utilities * mine), there, rtol=1e-7, atol=1e-9)
