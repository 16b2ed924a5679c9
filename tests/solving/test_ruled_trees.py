"""Trees of queues that obey rules, against an oracle that is given rows and rates and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference.ruled import filling, largest
from solving.test_rules import instance_with_rules, rows_of

import fairopt as fo
from fairopt.program import Program

ENGINES = ("highs", "cvxpy", "pyomo")
LAB = fo.Instance(
    [[12]],
    [[1], [1], [1]],
    users=["a", "b", "c"],
    servers=["s"],
    resources=["gpu"],
    queues=[fo.Queue("q"), fo.Queue("r")],
    queue_of=["q", "q", "r"],
)


def in_queues(seed: int) -> fo.Instance:
    """The instance of `instance_with_rules`, its first users in two queues, with a rule that names the first queue."""
    rng, instance = np.random.default_rng(seed), instance_with_rules(seed)
    queues = [fo.Queue("first", weight=float(rng.integers(1, 4))), fo.Queue("second", weight=float(rng.integers(1, 4)))]
    where = ["first", *("second" if rng.random() < 0.5 else "first" if rng.random() < 0.5 else None for _ in instance.users[1:])]
    queues = [queue for queue in queues if queue.name in where]
    return instance.replace(queues=queues, queue_of=where, rules=[*instance.rules, "x['queue:first'] >= 0.1 * x[u1]"])


def rates_of(instance: fo.Instance, tops: dict[str, float] | None = None) -> object:
    """Rates where the share of a queue is a sum: its weight, or its rate in ``tops``, divided by the weights of those who rise."""
    weight = {queue.name: queue.weight for queue in instance.queues}

    def rates(rising: np.ndarray) -> np.ndarray:
        together = {name: sum(instance.weights[n] for n in np.flatnonzero(rising) if instance.queue_of[n] == name) for name in weight}
        speed = np.zeros(rising.size)
        for n in np.flatnonzero(rising):
            name = instance.queue_of[n]
            of_queue = 1.0 if name is None else (weight[name] if tops is None else tops[name]) / together[name]
            speed[n] = instance.weights[n] * of_queue
        return speed

    return rates


def rows_of_tree(program: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shares of users by pair, not divided by weights; rows and right sides."""
    shares = np.zeros((len(program.users), program.n_pairs))
    shares[program.pair_users, np.arange(program.n_pairs)] = program.utilities
    _, rows, right = rows_of(program)
    return shares, rows, right


@pytest.mark.parametrize("seed", range(25))
def test_fillings_are_those_of_the_oracle(seed: int) -> None:
    """In floats and in fractions."""
    instance = in_queues(seed)
    shares, rows, right = rows_of_tree(fo.formulate(instance, "drfh", queue_share="sum"))
    users = instance.n_users
    expected = filling(shares, rows, right, rates_of(instance), np.zeros(users), np.ones(users, bool))  # type: ignore[arg-type]
    found = fo.solve(instance, "drfh", queue_share="sum")
    exact = fo.solve(instance, "drfh", queue_share="sum", exact=True)
    np.testing.assert_allclose(exact.shares, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.shares, exact.shares, rtol=1e-8, atol=1e-10)
    assert exact.certificate.exact


@pytest.mark.parametrize("seed", range(12))
def test_a_guarantee_is_raised_to_what_the_rules_force(seed: int) -> None:
    """One guaranteed queue: its stage goes up to its guarantee, or to the least that it holds under the rules; then all rise by weights."""
    instance = in_queues(seed)
    amount = float(np.random.default_rng(seed).choice([0.5, 2.0, 5.0]))
    first = fo.Queue("first", weight=instance.queues[0].weight, guarantee={"cpu": amount})
    instance = instance.replace(queues=[first, *instance.queues[1:]])
    program = fo.formulate(instance, "drfh", queue_share="sum")
    shares, rows, right = rows_of_tree(program)
    inside = np.array([name == "first" for name in instance.queue_of])
    takes = np.where(inside[program.pair_users], instance.demands[program.pair_users, 0], 0.0)
    bound = max(amount, -largest(-takes, rows, right))
    users, tops = instance.n_users, {queue.name: 1.0 for queue in instance.queues}
    members = inside & (instance.demands[:, 0] > 0) if amount else inside
    within = np.vstack([rows, takes]), np.append(right, bound * (1 + 1e-12))
    given = filling(shares, *within, rates_of(instance, tops), np.zeros(users), members)  # type: ignore[arg-type]
    expected = filling(shares, rows, right, rates_of(instance), given, np.ones(users, bool))  # type: ignore[arg-type]
    exact = fo.solve(instance, "drfh", queue_share="sum", exact=True)
    np.testing.assert_allclose(exact.shares, expected, rtol=1e-6, atol=1e-8)
    found = fo.solve(instance, "drfh", queue_share="sum")
    np.testing.assert_allclose(found.shares, exact.shares, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("tree", ["filling", "nested"])
@pytest.mark.parametrize("seed", range(5))
def test_rules_that_the_answer_obeys_change_nothing(seed: int, tree: str) -> None:
    """In trees of both readings, under a clamp with guarantees, too, as long as no rule forces a queue above its guarantee."""
    instance = in_queues(seed)
    guaranteed = [fo.Queue(queue.name, weight=queue.weight, guarantee={"cpu": 1}) for queue in instance.queues]
    plain = instance.replace(rules=[], **({} if tree == "nested" else {"queues": guaranteed}))
    options: dict[str, Any] = {"tree": "nested"} if tree == "nested" else {"guarantees": "clamp"}
    before = fo.solve(plain, "drfh", **options)
    first, second = before.tasks_per_user[:2]
    implied = [f"x[u0] <= {first * 1.01 + 1}", f"x[u0] + x[u1] <= {1.1 * (first + second)}", "amount[cpu, 'queue:first'] >= 0.01"]
    implied += [] if tree == "filling" else [f"x[u0] + x[u1] >= {0.9 * (first + second)}"]
    after = fo.solve(plain.replace(rules=implied), "drfh", **options)
    np.testing.assert_allclose(after.shares, before.shares, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_agree(engine: str) -> None:
    """On a filling with a ratio, a floor and a guarantee, worked out by hand.

    The rules force q to hold 5 of 12, so that its guarantee is raised from 2 to that; of the other 7, q and r have one half each.
    """
    ruled = LAB.replace(queues=[fo.Queue("q", guarantee={"gpu": 2}), fo.Queue("r")], rules=["x[a] >= 5", "x[b] == x[c] - 7/4"])
    found = fo.solve(ruled, "drfh", solver=engine)
    np.testing.assert_allclose(found.tasks_per_user, [6.75, 1.75, 3.5], rtol=1e-8)


def test_a_floor_by_rule_does_not_add_to_a_share() -> None:
    """b rests at 5 until the others have as much, and a user of weight 0 has what the rules force and nothing beyond."""
    np.testing.assert_allclose(fo.solve(LAB.replace(rules=["x[b] >= 5"]), "drfh").tasks_per_user, [7 / 3, 5, 14 / 3], rtol=1e-9)
    np.testing.assert_allclose(fo.solve(LAB.replace(rules=["x[b] >= 2"]), "drfh").tasks_per_user, [3, 3, 6], rtol=1e-9)
    idle = LAB.replace(weights={"b": 0}, rules=["x[b] >= 2", "x[b] + x[a] <= 9"])
    for exact in (False, True):
        np.testing.assert_allclose(fo.solve(idle, "drfh", exact=exact).tasks_per_user, [5, 2, 5], rtol=1e-9)


def test_a_tree_that_cannot_obey_names_why() -> None:
    """Guaranteed or not, filled or nested."""
    for queues in (LAB.queues, [fo.Queue("q", guarantee={"gpu": 2}), fo.Queue("r")]):
        kinds: list[dict[str, Any]] = [{}, {"exact": True}, *([{"tree": "nested"}] if queues is LAB.queues else [])]
        for options in kinds:
            with pytest.raises(fo.NoSolution, match=r'no allocation obeys the rules: the rule "x\[q\] >= 13" and gpu @ s \(at most 12\)'):
                fo.solve(LAB.replace(queues=queues, rules=["x[q] >= 13", "x[c] >= 1"]), "drfh", **options)


def test_guarantees_that_rules_keep_apart() -> None:
    """q and r are guaranteed 8 each of 12, and r has no more than half of q: they meet at 8 and 4, q holds all that it could alone."""
    both = LAB.replace(queues=[fo.Queue("q", guarantee={"gpu": 8}), fo.Queue("r", guarantee={"gpu": 8})], rules=["x[r] <= 0.5 * x[q]"])
    for exact in (False, True):
        np.testing.assert_allclose(fo.solve(both, "drfh", exact=exact).tasks_per_user, [4, 4, 4], rtol=1e-8)
