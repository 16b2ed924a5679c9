"""The search for whole levels, with lists of all whole tasks in place of a solver."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import fairopt as fo
from fairopt.instance import FloatArray, IntArray
from fairopt.program import Program
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_model import Outcome
from fairopt.solvers.via_highs.rows import Rows
from fairopt.solvers.via_highs.whole_levels import Condition, WholeLevels

NOTHING: FloatArray = np.empty(0)


class Listed(WholeLevels):
    """A search of all whole tasks on the pairs of a small program, one after another."""

    def __init__(self, program: Program) -> None:
        most = np.floor(program.largest() + 1e-9)
        ranges = (range(int(tasks) + 1) for tasks in most)
        limits = program.limits
        self.all = [x for x in map(np.array, product(*ranges)) if (limits.matrix @ x <= limits.bounds + 1e-9).all()]
        super().__init__(program, Deadline(None), np.arange(program.n_pairs), most, np.zeros(program.n_pairs))

    def search(self, condition: Condition) -> tuple[IntArray, Outcome]:
        """Count by loops who misses which need."""
        best: tuple[int, list[float]] | None = None
        for x in self.all:
            have = np.bincount(self.position, weights=condition.worth * x[self.kept], minlength=self.member.size)
            misses = [int((have < need * condition.scale - 1e-9).sum()) for need in condition.needs]
            allowed = [0, *condition.allowed, *([self.member.size] if condition.minimises else [])]
            if all(missed <= most for missed, most in zip(misses, allowed, strict=True)) and (best is None or misses[-1] < best[0]):
                best = misses[-1], x.tolist()
        if best is None:
            return np.empty(0, np.int64), Outcome(Status.INFEASIBLE, NOTHING, NOTHING, np.inf, 0)
        x = np.array([*best[1], best[0]], float)
        return np.array([x.size - 1]), Outcome(Status.OPTIMAL, x, NOTHING, 0.0, 0)

    def spread(self, outcome: Outcome) -> FloatArray:
        """All of these fit."""
        return outcome.x[: self.program.n_pairs]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
def test_the_levels_are_the_largest_in_lexicographic_order(seed: int, uneven: bool) -> None:
    """The sorted shares of every whole allocation are compared; a task may be worth more on some servers."""
    rng = np.random.default_rng(seed)
    instance = fo.Instance(rng.integers(3, 7, (2, 2)), rng.integers(1, 4, (3, 2)), weights=rng.integers(1, 4, 3))
    program = fo.formulate(instance, "drfh", integral=True)
    if uneven:
        program = replace(program, utilities=program.utilities * rng.choice([1.0, 1.5], program.n_pairs))
    search = Listed(program)
    shares = [np.sort(program.per_user(x * program.worth)[program.members]).tolist() for x in search.all]
    found = search.solve()
    reached = np.sort(program.per_user(found.x * program.worth)[program.members])
    np.testing.assert_allclose(reached, max(shares), rtol=2e-6)


def test_a_condition_is_one_row_for_each_member() -> None:
    """a needs 1 task and then 3, b 1 and then 2, and one of them may miss the second need: with 4 tasks in all that is b."""
    rows = Rows()
    columns = rows.columns(np.array([9.0, 9.0]))
    rows.row({0: 1.0, 1: 1.0}, upper=4.0)
    condition = Condition(np.ones(2), [np.array([1.0, 1.0]), np.array([3.0, 2.0])], np.ones(2), ())
    below = condition.add_to(rows, columns, np.arange(2))
    assert condition.minimises
    outcome = rows.model(dict.fromkeys(below.tolist(), -1.0)).run(60.0)
    assert outcome.x[below].sum() == pytest.approx(1.0)
    assert (outcome.x[:2] >= np.where(outcome.x[below] > 0.5, [1.0, 1.0], [3.0, 2.0]) - 1e-9).all()
