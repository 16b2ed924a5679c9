"""Whole tasks in trees with guarantees under rules: against enumeration in fractions, and against divisible tasks of a large cluster."""

from __future__ import annotations

import numpy as np
import pytest
from reference.whole_tree import best_within_rules, feasible, guaranteed

import fairopt as fo
from fairopt.program import TreeFilling
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.whole_promises import solve_whole_promises


@pytest.mark.parametrize("first", range(0, 30, 6))
def test_tasks_and_levels_are_those_of_enumeration(first: int) -> None:
    """A ratio, a floor of a user and a floor of a queue, beside guarantees, tiers and weights of 0."""
    answered = 0
    for seed in range(first, first + 6):
        instance, rng = guaranteed(seed), np.random.default_rng(seed)
        a, b = rng.choice(instance.n_users, 2, replace=False).tolist()
        factor, least, floor = int(rng.integers(1, 3)), int(rng.integers(0, 3)), int(rng.integers(0, 3))
        below = np.flatnonzero(instance.tree.below[1]).tolist()
        rules = [f"x['{instance.users[a]}'] >= {factor} * x['{instance.users[b]}']", f"x['{instance.users[a]}'] >= {floor}"]
        rules += [f"x['queue:{instance.queues[0].name}'] >= {least}"] if below else []

        def obeys(
            tasks: tuple[int, ...], a: int = a, b: int = b, n: tuple[int, ...] = (factor, floor, least), own: tuple[int, ...] = (*below,)
        ) -> bool:
            return tasks[a] >= n[0] * tasks[b] and tasks[a] >= n[1] and sum(tasks[k] for k in own) >= (n[2] if own else 0)

        ruled = instance.replace(rules=rules)
        if not any(map(obeys, feasible(instance))):
            with pytest.raises(fo.NoSolution):
                fo.solve(ruled, "drfh", integral=True, queue_share="sum")
            continue
        times, ends = best_within_rules(instance, obeys)
        found = fo.solve(ruled, "drfh", integral=True, queue_share="sum")
        tasks = tuple(np.round(found.tasks_per_user).astype(int).tolist())
        assert obeys(tasks), seed
        if not times:  # nobody rises
            continue
        answered += 1
        assert tasks in ends, seed
        levels = [level.value for level in found.levels for _ in level.users]
        assert sorted(levels) == pytest.approx(sorted(float(time) for each in times for time in each), rel=1e-6, abs=1e-12), seed
    assert answered >= 2


@pytest.mark.parametrize(
    "rules",
    [["x[a1] >= 720"], ["x[a1] >= 2 * x[b]"], ["x[w] >= 100", "x[a2] <= 1/3 * x[a1]"], ["x[a1] + x[b] <= 500", "x[w] >= 1/2 * x[a2]"]],
)
def test_of_many_tasks_they_are_divisible_tasks_rounded(rules: list[str]) -> None:
    """A thousand GPUs: no user is more than four tasks away from the answer in divisible tasks, whatever the rules force nodes to hold."""
    queues = [fo.Queue("A", guarantee={"gpu": 400}), fo.Queue("B", weight=2, guarantee={"gpu": 150}), fo.Queue("idle", weight=0)]
    pool = fo.Instance(
        [[600], [401]],
        [[1]] * 4,
        queues=queues,
        users=["a1", "a2", "b", "w"],
        queue_of=["A", "A", "B", "idle"],
        resources=["gpu"],
        guarantees=[0, 90, 0, 0],
        rules=rules,
    )
    whole, divisible = (fo.solve(pool, "drfh", integral=integral).tasks_per_user for integral in (True, False))
    np.testing.assert_allclose(whole, divisible, atol=4)


def test_the_tasks_of_every_part_obey_the_rules() -> None:
    """a is guaranteed 4 of 13 GPUs, c 3, and must have 5 by rule: guarantees give 4 and 5, and then a and b gain 2 each."""
    pool = fo.Instance([[13]], [[1]] * 3, users=list("abc"), resources=["gpu"], guarantees=[4, 0, 3], rules=["x[c] == 5", "x[b] <= x[a]"])
    program = fo.formulate(pool, "drfh", integral=True)
    assert isinstance(program.goal, TreeFilling)
    found = solve_whole_promises(program, program.goal, Deadline(None))
    assert [program.per_user(x).tolist() for x in found.parts] == [[4, 0, 5], [6, 2, 5]]


def test_nobody_has_what_neither_the_filling_nor_a_rule_gives() -> None:
    """All weights are 0 but the guarantee of a: it has its two tasks, b as many by rule, and the other five GPUs stay idle."""
    pool = fo.Instance([[9]], [[1], [1]], users=["a", "b"], resources=["gpu"], weights=[0, 0], guarantees=[2, 0], rules=["x[b] >= x[a]"])
    assert fo.solve(pool, "drfh", integral=True).tasks_per_user.tolist() == [2, 2]
    assert fo.solve(pool.replace(guarantees=None), "drfh", integral=True).tasks_per_user.tolist() == [0, 0]
    forced = pool.replace(guarantees=None, rules=["x[a] >= 2.5", "x[b] >= x[a]"])
    assert fo.solve(forced, "drfh", integral=True).tasks_per_user.tolist() == [3, 3]


@pytest.mark.parametrize("solver", ["cvxpy", "pyomo"])
def test_other_engines_find_the_same(solver: str) -> None:
    """They search with solvers of their own."""
    pool = fo.Instance(
        [[8], [5]],
        [[1], [2], [1]],
        users=["a", "b", "c"],
        resources=["gpu"],
        guarantees=[0, 2, 0],
        rules=["x[a] >= 2 * x[b]", "x[c] <= x[a]"],
    )
    expected = fo.solve(pool, "drfh", integral=True)
    found = fo.solve(pool, "drfh", integral=True, solver=solver)
    assert sorted(level.value for level in found.levels) == pytest.approx(sorted(level.value for level in expected.levels))
