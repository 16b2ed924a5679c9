"""Whole tasks in a tree of queues: against enumeration in fractions, and where they are refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from queue_oracle import with_orders
from reference.whole_tree import best_whole_tasks, guaranteed

import fairopt as fo
from fairopt.errors import Unsupported
from fairopt.program import TreeFilling
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.whole_tree import Filling, solve_whole_tree
from fairopt.solving import formulate


def surplus(seed: int) -> fo.Instance:
    """Two resources, up to two servers, queues in queues, limits, weights, numbers of tasks."""
    rng = np.random.default_rng(seed)
    queues: list[fo.Queue] = []
    for q in range(int(rng.integers(1, 4))):
        parent = None if q == 0 or rng.random() < 0.5 else f"q{int(rng.integers(0, q))}"
        limit = {"r0": int(rng.integers(2, 7))} if rng.random() < 0.3 else {}
        queues.append(fo.Queue(f"q{q}", parent, weight=int(rng.integers(1, 4)), limit=limit))
    users, servers = int(rng.integers(2, 5)), int(rng.integers(1, 3))
    demands = rng.integers(0, 3, (users, 2))
    demands[:, 0] = np.maximum(demands[:, 0], 1)
    eligibility = rng.random((users, servers)) < 0.8
    eligibility[~eligibility.any(axis=1), 0] = True
    return fo.Instance(
        rng.integers(2, 7, (servers, 2)),
        demands,
        weights=rng.integers(1, 4, users),
        eligibility=eligibility,
        tasks=np.where(rng.random(users) < 0.3, rng.integers(1, 4, users), np.inf),
        queues=queues,
        queue_of=[None if rng.random() < 0.3 else f"q{int(rng.integers(0, len(queues)))}" for _ in range(users)],
        resources=["r0", "r1"],
    )


@pytest.mark.parametrize("draw", [surplus, guaranteed])
@pytest.mark.parametrize("first", range(0, 24, 6))
def test_tasks_and_levels_are_those_of_enumeration(draw: type, first: int) -> None:
    """Of all chains of whole tasks none has larger sorted stop times, and the levels of the answer are these."""
    for seed in range(first, first + 6):
        instance = draw(seed)
        times, tasks = best_whole_tasks(instance)
        found = fo.solve(instance, "drfh", integral=True, queue_share="sum")
        assert found.certificate.whole_tasks
        assert tuple(np.round(found.tasks_per_user).astype(int).tolist()) in tasks, seed
        levels = [level.value for level in found.levels for _ in level.users]
        by_part: dict[str, list[float]] = {}
        for level in found.levels:
            by_part.setdefault(level.part, []).extend([level.value] * len(level.users))
        assert len(levels) == sum(map(len, times))
        for expected, own in zip([each for each in times if each], by_part.values(), strict=True):
            assert own == pytest.approx([float(time) for time in expected], rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("draw", [surplus, guaranteed])
def test_tasks_of_listed_queues_are_those_of_enumeration(draw: type) -> None:
    """A user who waits stops no earlier than those before it, so its stop time is theirs and its own gain on top."""
    for seed in range(12):
        instance = with_orders(draw(seed), seed)
        times, tasks = best_whole_tasks(instance)
        found = fo.solve(instance, "drfh", integral=True, queue_share="sum")
        assert tuple(np.round(found.tasks_per_user).astype(int).tolist()) in tasks, seed
        levels = [level.value for level in found.levels for _ in level.users]
        assert sorted(levels) == pytest.approx(sorted(float(time) for each in times for time in each), rel=1e-6, abs=1e-12), seed


def test_rules_are_those_of_enumeration() -> None:
    """Ratios, floors and ceilings of users and of a queue; where no whole tasks obey them that is said."""
    answered = 0
    for seed in range(16):
        instance, rng = surplus(seed), np.random.default_rng(seed)
        a, b = rng.choice(instance.n_users, 2, replace=False).tolist()
        factor, least = int(rng.integers(1, 3)), int(rng.integers(0, 3))
        below = np.flatnonzero(instance.tree.below[1]).tolist()
        rules = [f"x['{instance.users[a]}'] >= {factor} * x['{instance.users[b]}']"]
        rules += [f"x['queue:{instance.queues[0].name}'] >= {least}"] if below else []
        ruled = instance.replace(rules=rules)

        def obeys(tasks: tuple[int, ...], a: int = a, b: int = b, k: int = factor, low: int = least, own: Any = tuple(below)) -> bool:
            return tasks[a] >= k * tasks[b] and sum(tasks[n] for n in own) >= (low if own else 0)

        times, tasks = best_whole_tasks(instance, obeys)
        if not tasks:
            with pytest.raises(fo.NoSolution):
                fo.solve(ruled, "drfh", integral=True, queue_share="sum")
            continue
        found = fo.solve(ruled, "drfh", integral=True, queue_share="sum")
        answered += 1
        assert tuple(np.round(found.tasks_per_user).astype(int).tolist()) in tasks, seed
        levels = [level.value for level in found.levels for _ in level.users]
        assert sorted(levels) == pytest.approx(sorted(float(time) for each in times for time in each), rel=1e-6, abs=1e-12), seed
    assert answered >= 10


def test_queues_of_one_user_are_the_leximin() -> None:
    """Each user in a queue of its weight: the sorted shares are those of whole tasks without queues."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        flat = fo.Instance(rng.integers(4, 12, (3, 2)), rng.integers(1, 4, (4, 2)), weights=rng.integers(1, 4, 4))
        queues = [fo.Queue(f"q{n}", weight=float(flat.weights[n])) for n in range(4)]
        tree = flat.replace(weights=None, queues=queues, queue_of=[queue.name for queue in queues])
        shares = [fo.solve(instance, "drfh", integral=True).shares for instance in (flat, tree)]
        assert np.sort(shares[1] / flat.weights) == pytest.approx(np.sort(shares[0]))


def test_one_remainder_of_a_queue() -> None:
    """Seven GPUs. A's two users have 2 and 1, B's one 4, or A's have 2 each and B 3: B stops at 4 of 8 at most, and A's users at 3 of 8.

    Stop times are in shares of a queue: with 2 and 1 tasks, a2 stops at 2/7 and a1 at 3/7, B at 4/7. With 2 and 2, both stop at 4/7 and B
    at 3/7: the smallest is larger.
    """
    instance = fo.Instance([[7]], [[1], [1], [1]], queues=[fo.Queue("A"), fo.Queue("B")], queue_of=["A", "A", "B"], users=["a1", "a2", "b"])
    found = fo.solve(instance, "drfh", integral=True)
    assert found.tasks_per_user.tolist() == [2, 2, 3]
    assert [level.users for level in found.levels] == [("b",), ("a1", "a2")]
    assert [level.value for level in found.levels] == pytest.approx([3 / 7, 4 / 7])


def test_guarantees_come_first_in_whole_tasks() -> None:
    """b's task takes 2 of its 3 guaranteed GPUs; of the 5 that are left a takes 3, and b one task more. What is missing is said."""
    queues = [fo.Queue("A"), fo.Queue("B", guarantee={"gpu": 3})]
    instance = fo.Instance([[7]], [[1], [2]], resources=["gpu"], queues=queues, queue_of=["A", "B"], users=["a", "b"])
    assert fo.solve(instance, "drfh", integral=True).tasks_per_user.tolist() == [3, 2]
    unmet = fo.solve(instance.replace(capacities=[[5]], queues=[fo.Queue("A", guarantee={"gpu": 3}), queues[1]]), "drfh", integral=True)
    assert unmet.tasks_per_user.tolist() == [3, 1]
    assert [each.guarantees[0].missing for each in unmet.queue_holdings()[1:]] == [0, 0]  # 1 gpu is no task of b


def test_a_dominant_share_of_one_resource_is_a_sum() -> None:
    """Both kinds of share give the same where all users below a queue have one dominant resource."""
    instance = fo.Instance([[8, 40]], [[1, 1], [1, 3], [2, 1]], queues=[fo.Queue("A"), fo.Queue("B")], queue_of=["A", "A", "B"])
    shares = [np.sort(fo.solve(instance, "drfh", integral=True, queue_share=share).shares) for share in ("dominant", "sum")]
    assert shares[0] == pytest.approx(shares[1])


def test_what_is_refused_is_said() -> None:
    """Different dominant resources below a queue, clamp with guarantees, and the nested reading; each with what to do instead."""
    queues = [fo.Queue("A"), fo.Queue("B", guarantee={"cpu": 2})]
    mixed = fo.Instance([[9, 9]], [[2, 1], [1, 2], [1, 1]], resources=["cpu", "memory"], queues=queues, queue_of=["A", "A", "B"])
    with pytest.raises(Unsupported, match=r'users below queue "A" have different dominant resources, .* use queue_share="sum"'):
        fo.solve(mixed, "drfh", integral=True)
    with pytest.raises(Unsupported, match=r'guarantees="clamp" .* use guarantees="surplus"'):
        fo.solve(mixed, "drfh", integral=True, queue_share="sum", guarantees="clamp")
    with pytest.raises(Unsupported, match=r'tree="nested" .* leave tree out'):
        fo.solve(mixed.replace(queues=[fo.Queue("A"), fo.Queue("B")]), "drfh", integral=True, tree="nested")
    assert fo.solve(mixed, "drfh", integral=True, queue_share="sum").certificate.whole_tasks
    assert "whole" in str(formulate(mixed, "drfh", integral=True))


def test_stages_have_the_parts_of_the_goal() -> None:
    """Of the program itself: guarantees are part 0, the surplus part 1, and all users who rise are in both."""
    queues = [fo.Queue("A"), fo.Queue("B", guarantee={"gpu": 3})]
    instance = fo.Instance([[7]], [[1], [2]], resources=["gpu"], queues=queues, queue_of=["A", "B"])
    program = formulate(instance, "drfh", integral=True)
    assert isinstance(program.goal, TreeFilling)
    found = solve_whole_tree(program, program.goal, Deadline(None))
    assert [(stage.part, stage.users.tolist()) for stage in found.stages] == [(0, [1]), (1, [1]), (1, [0])]
    assert found.stages[0].value == pytest.approx(2 / 3)  # 2 of the 3 guaranteed
    assert (found.gap, found.x.tolist()) == (0, [3, 2])


def test_a_time_limit_leaves_the_best_found() -> None:
    """Before the last part these are the divisible tasks rounded down; they fit, and the value is no more than its bound."""
    queues = [fo.Queue("A", guarantee={"gpu": 3}), fo.Queue("B")]
    instance = fo.Instance([[7], [6]], [[1], [2], [1]], resources=["gpu"], queues=queues, queue_of=["A", "B", "B"])
    program = formulate(instance, "drfh", integral=True)
    assert isinstance(program.goal, TreeFilling)
    exact = fo.solve(instance, "drfh")
    divisible = exact.tasks_per_user
    assert exact.levels[0].part == "the guarantees"

    for programs in range(3):
        filling = Filling(program, program.goal, Deadline(None))
        run, left = filling._run, [programs]

        def some(rows: Any, maximise: Any, run: Any = run, left: list[int] = left, filling: Any = filling) -> None:
            if not left[0]:
                filling.deadline = Deadline(0.0)
            left[0] -= 1
            run(rows, maximise)

        filling._run = some  # type: ignore[method-assign]
        with pytest.raises(fo.NoSolution) as caught:
            filling.solve()
        known = caught.value.known
        tasks = np.asarray(known["tasks"])
        assert (program.limits.matrix @ tasks <= program.limits.bounds * (1 + 1e-9)).all()
        assert (tasks == np.round(tasks)).all()
        assert (program.per_user(tasks) <= divisible + 1e-6).all()
        assert tasks.sum() >= divisible.sum() - program.n_pairs
        assert 0 <= float(known["value"]) <= float(known["bound"]) <= exact.levels[0].value * (1 + 1e-5)


def test_a_rule_gives_to_users_of_lower_tiers_and_of_weight_0() -> None:
    """7 GPUs: w has one by rule, and c as many as a, who comes first; nothing is left for b."""
    queues = [fo.Queue("first", tier=1), fo.Queue("resting", weight=0)]
    pool = fo.Instance([[7]], [[1]] * 4, users=list("abcw"), queues=queues, queue_of=["first", None, None, "resting"])
    found = fo.solve(pool.replace(rules=["x[c] >= x[a]", "x[w] >= 1"]), "drfh", integral=True)
    assert found.tasks_per_user.tolist() == [3, 0, 3, 1]
    assert fo.solve(pool.replace(rules=["x[b] == 2"]), "drfh", integral=True).tasks_per_user.tolist() == [5, 2, 0, 0]


@pytest.mark.parametrize("seed", range(6))
def test_rules_in_tiers_are_those_of_enumeration(seed: int) -> None:
    """Of all whole tasks that obey, those with the largest sorted shares by weight of the higher tier, then of the lower one."""
    rng = np.random.default_rng(seed)
    demand, weight, tier = rng.integers(1, 3, 4), [1, 2, 1, 0], rng.integers(0, 2, 4)
    a, b, c, d = rng.permutation(4).tolist()
    queues = [fo.Queue(f"q{n}", weight=w, tier=int(t)) for n, (w, t) in enumerate(zip(weight, tier, strict=True))]
    rules = [f"x[u{a}] + 1 >= 2 * x[u{b}]", f"x[u{c}] + x[u{d}] >= {int(rng.integers(1, 4))}"]
    pool = fo.Instance([[9]], demand[:, None], users=[f"u{n}" for n in range(4)], queues=queues, queue_of=[queue.name for queue in queues])
    found = fo.solve(pool.replace(rules=rules), "drfh", integral=True)

    def times(x: Any) -> list[list[float]]:
        own = [[x[n] * demand[n] / 9 / weight[n] for n in range(3) if tier[n] == t] for t in (1, 0)]
        return [sorted(np.round(each, 9).tolist()) for each in own]

    every = (x for x in itertools.product(*(range(9 // int(each) + 1) for each in demand)) if np.dot(x, demand) <= 9)
    obeying = [x for x in every if x[a] + 1 >= 2 * x[b] and x[c] + x[d] >= int(rules[1].split()[-1])]
    assert times(found.tasks_per_user) == max(times(x) for x in obeying)
    assert tuple(found.tasks_per_user.astype(int)) in obeying


def test_a_gap_that_is_rounding() -> None:
    """u1 has 2 of the 5 GPUs that the queue may hold, and u0 or u2 has 3; the bound of HiGHS is not as far off as its tolerance."""
    pool = fo.Instance([[3], [3]], [[3], [1], [3]], queues=[fo.Queue("q", limit={"gpu": 5})], queue_of=["q"] * 3, resources=["gpu"])
    tasks = fo.solve(pool, "drfh", integral=True).tasks_per_user
    assert (tasks[1], tasks[0] + tasks[2]) == (2, 1)
