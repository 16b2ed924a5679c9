"""Guarantees as far as they can be met together: numbers worked out by hand, an oracle in fractions, and what must hold of every tree."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from queue_oracle import exact_shares, share_per_task
from reference.simplex import maximise
from scipy.optimize import linprog

import fairopt as fo

GPU = ("gpu",)
ENGINES = ["highs", "interior-point", "cvxpy", "pyomo"]


def pool(capacity: float, queues: Sequence[fo.Queue], queue_of: Sequence[str | None], **data: Any) -> fo.Instance:
    """One server with one resource, of which each task takes 1."""
    return fo.Instance([[capacity]], np.ones((len(queue_of), 1)), queues=queues, queue_of=queue_of, resources=GPU, **data)


def promised(name: str, amount: float, parent: str | None = None, **data: Any) -> fo.Queue:
    """A queue that is guaranteed GPUs."""
    return fo.Queue(name, parent, guarantee={"gpu": amount}, **data)


def two_servers(weights: Sequence[float]) -> fo.Instance:
    """Two servers of 4. A has a user for each, B one for the first; both are guaranteed 4."""
    return fo.Instance(
        [[4], [4]],
        [[1]] * 3,
        weights=weights,
        eligibility=[[1, 0], [0, 1], [1, 0]],
        queues=[promised("A", 4), promised("B", 4)],
        queue_of=["A", "A", "B"],
        resources=GPU,
    )


def weightless_inside(*between: fo.Queue) -> fo.Instance:
    """The same servers. In A there is z, without weight and guaranteed 1, whose user has the second server to itself."""
    return two_servers([1, 1, 1]).replace(
        queues=[
            promised("A", 4),
            *between,
            promised("z", 1, between[0].name if between else "A", weight=0 if not between else 1),
            promised("B", 4),
        ],
        queue_of=["A", "z", "B"],
    )


A_AND_B = [promised("A", 4), promised("B", 4)]
INSTANCES: list[tuple[str, fo.Instance, Sequence[F | int]]] = [
    *((f"a user is guaranteed {g} inside", pool(4, A_AND_B, ["A", "B"], guarantees=[g, 0]), [2, 2]) for g in (0.5, 1, 2, 4)),
    *(
        (f"two users are guaranteed 4 each, of {c}", pool(c, A_AND_B, ["A", "A", "B"], guarantees=[4, 4, 0]), [c // 4, c // 4, c // 2])
        for c in (4, 8)
    ),
    ("900 and 100 of 500", pool(500, [promised("A", 900), promised("B", 100)], ["A", "B"]), [450, 50]),
    ("900 and 100 of 100", pool(100, [promised("A", 900), promised("B", 100)], ["A", "B"]), [90, 10]),
    ("few tasks", pool(50, [promised("A", 90), promised("B", 50)], ["A", "B"], tasks=[10, np.inf]), [10, 40]),
    ("a guarantee before the weights inside", two_servers([1, 1, 1]), [0, 4, 4]),
    ("who has no weight cannot help", two_servers([1, 0, 1]), [2, 0, 2]),
    (
        "each resource by itself",
        fo.Instance(
            [[8, 8]],
            [[1, 0], [0, 1], [0, 1], [1, 0]],
            queues=[
                fo.Queue("A", guarantee={"gpu": 4, "cpu": 8}),
                fo.Queue("B", guarantee={"cpu": 8}),
                fo.Queue("C", guarantee={"gpu": 8}),
            ],
            queue_of=["A", "A", "B", "C"],
            resources=["gpu", "cpu"],
        ),
        [F(8, 3), 4, 4, F(16, 3)],
    ),
    ("a queue around a user", pool(4, [fo.Queue("q")], ["q", None], guarantees=[4, 4]), [2, 2]),
    ("a queue and a user", pool(4, [promised("q", 4)], ["q", None], guarantees=[0, 4]), [2, 2]),
]


@pytest.mark.parametrize(("instance", "expected"), [case[1:] for case in INSTANCES], ids=[case[0] for case in INSTANCES])
def test_guarantees_that_do_not_fit_together(instance: fo.Instance, expected: Sequence[F | int]) -> None:
    """Both in floats, certified, and in fractions, proved."""
    assert fo.solve(instance, "drfh").tasks_per_user == pytest.approx([float(value) for value in expected], abs=1e-9)
    exact = fo.solve(instance, "drfh", exact=True).exact
    assert exact is not None
    assert exact.tasks_per_user.tolist() == expected


@pytest.mark.parametrize("solver", ENGINES)
@pytest.mark.parametrize("case", [0, 5, 9, 11])
def test_every_engine_keeps_floors(case: int, solver: str) -> None:
    """The same numbers, certified."""
    _, instance, expected = INSTANCES[case]
    found = fo.solve(instance, "drfh", solver=solver)
    assert found.solver == solver
    assert found.tasks_per_user == pytest.approx([float(value) for value in expected], abs=1e-7)


def test_the_simplex_method_of_the_oracle() -> None:
    """A point that is not feasible at first, an optimum with a tie, and programs without one."""
    assert maximise([1, 1], [[1, 2], [3, 1]], [4, 6]) == (F(14, 5), [F(8, 5), F(6, 5)])
    assert maximise([-1], [[-1]], [-2]) == (F(-2), [F(2)])
    with pytest.raises(ArithmeticError, match="feasible"):
        maximise([1], [[1], [-1]], [1, -2])
    with pytest.raises(ArithmeticError, match="bound"):
        maximise([1], [[-1]], [0])


def tiny_tree(seed: int) -> fo.Instance:
    """At most three users and two servers; guarantees on three levels that often exceed them."""
    rng = np.random.default_rng(seed)
    servers, users, resources = int(rng.integers(1, 3)), int(rng.integers(2, 4)), int(rng.integers(1, 3))
    names = ["gpu", "cpu"][:resources]

    def promise() -> dict[str, float]:
        return {name: float(rng.integers(1, 7)) for name in names if rng.random() < 0.6}

    queues = [
        fo.Queue("a", weight=float(rng.integers(1, 3)), guarantee=promise()),
        fo.Queue("b", "a", weight=float(rng.integers(0, 3)), guarantee=promise()),
        fo.Queue("c", guarantee=promise(), limit={"gpu": 7.0} if rng.random() < 0.3 else {}),
    ]
    demands = rng.integers(0, 3, (users, resources))
    demands[:, 0] = np.where(demands.sum(axis=1) == 0, 1, demands[:, 0])
    eligibility = rng.random((users, servers)) < 0.7
    eligibility[:, 0] |= ~eligibility.any(axis=1)
    return fo.Instance(
        rng.integers(2, 7, (servers, resources)),
        demands,
        weights=rng.integers(1, 3, users),
        eligibility=eligibility,
        tasks=np.where(rng.random(users) < 0.3, rng.integers(1, 4, users), np.inf),
        guarantees=np.where(rng.random(users) < 0.3, 1, 0),
        queues=queues,
        queue_of=[str(rng.choice(["a", "b", "c"])) for _ in range(users)],
        resources=names,
    )


@pytest.mark.parametrize("first", range(0, 12, 3))
def test_fractions_are_those_of_the_oracle(first: int) -> None:
    """Shares of tiny trees by LPs in fractions that share no code with fairopt; floats are the same."""
    for seed in range(first, first + 3):
        instance = tiny_tree(seed)
        per_task = [F(0) if d is None else d for d in _dominant(instance)]
        options: dict[str, Any] = {"guarantees": "clamp" if seed % 3 == 1 else "surplus", "queue_share": "sum" if seed % 2 else "dominant"}
        expected = [
            share / unit if unit else F(0) for share, unit in zip(exact_shares(instance, per_task, **options), per_task, strict=True)
        ]
        exact = fo.solve(instance, "drfh", exact=True, **options).exact
        assert exact is not None
        assert exact.tasks_per_user.tolist() == expected, seed
        assert fo.solve(instance, "drfh", **options).tasks_per_user == pytest.approx([float(value) for value in expected], abs=1e-8)


def tree_without_weights(seed: int) -> fo.Instance:
    """The same with a queue of weight 0 between, one in it of weight 0 or 1, and users of weights 0 to 2."""
    rng = np.random.default_rng(seed)
    servers, users, resources = int(rng.integers(1, 3)), int(rng.integers(3, 5)), int(rng.integers(1, 3))
    names = ["gpu", "cpu"][:resources]

    def promise() -> dict[str, float]:
        return {name: float(rng.integers(1, 7)) for name in names if rng.random() < 0.6}

    queues = [
        fo.Queue("a", guarantee=promise()),
        fo.Queue("z", "a", weight=0, guarantee=promise()),
        fo.Queue("y", "z", weight=float(rng.integers(0, 2)), guarantee=promise()),
        fo.Queue("c", guarantee=promise()),
    ]
    demands = rng.integers(0, 3, (users, resources))
    demands[:, 0] = np.where(demands.sum(axis=1) == 0, 1, demands[:, 0])
    eligibility = rng.random((users, servers)) < 0.6
    eligibility[:, 0] |= ~eligibility.any(axis=1)
    return fo.Instance(
        rng.integers(2, 7, (servers, resources)),
        demands,
        weights=rng.integers(0, 3, users),
        eligibility=eligibility,
        guarantees=np.where(rng.random(users) < 0.3, 1, 0),
        queues=queues,
        queue_of=[str(rng.choice(["a", "z", "y", "c"])) for _ in range(users)],
        resources=names,
    )


def test_who_has_no_weight_counts_up_to_its_guarantee() -> None:
    """Against the LPs in fractions; a user below a weight of 0 counts for the guarantees above it, too."""
    for seed in (13, 26, 27, 31, 36, 38):
        instance = tree_without_weights(seed)
        per_task = [F(0) if d is None else d for d in _dominant(instance)]
        expected = [share / unit for share, unit in zip(exact_shares(instance, per_task), per_task, strict=True)]
        exact = fo.solve(instance, "drfh", exact=True).exact
        assert exact is not None
        assert exact.tasks_per_user.tolist() == expected, seed
        assert fo.solve(instance, "drfh").tasks_per_user == pytest.approx([float(value) for value in expected], abs=1e-8)


def _dominant(instance: fo.Instance) -> list[F | None]:
    """The dominant share of a task in fractions."""
    total = [F(value) for value in (instance.counts @ instance.capacities).tolist()]
    return [max((F(d) / c for d, c in zip(row, total, strict=True) if d > 0), default=None) for row in instance.demands.tolist()]


# What must hold of every tree ----------------------------------------------------------------------------------------------------


@st.composite
def trees(draw: st.DrawFn) -> tuple[fo.Instance, list[fo.Queue]]:
    """Up to three queues, one or two servers, one resource; guarantees that may exceed it."""
    amounts, weights = st.integers(0, 6), st.integers(1, 3)
    parents = [None, draw(st.sampled_from([None, "q0"])), draw(st.sampled_from([None, "q0", "q1"]))]
    queues = [
        fo.Queue(f"q{k}", parent, float(draw(weights)), {"gpu": float(amount)} if (amount := draw(amounts)) else {})
        for k, parent in enumerate(parents)
    ]
    users = draw(st.integers(2, 4))
    servers = draw(st.integers(1, 2))
    instance = fo.Instance(
        [[float(draw(st.integers(2, 8)))] for _ in range(servers)],
        [[1.0]] * users,
        weights=[draw(weights) for _ in range(users)],
        tasks=[draw(st.sampled_from([1.0, 3.0, np.inf])) for _ in range(users)],
        guarantees=None,
        eligibility=[[True] * servers if draw(st.booleans()) else [k == n % servers for k in range(servers)] for n in range(users)],
        queues=queues,
        queue_of=[draw(st.sampled_from(["q0", "q1", "q2"])) for _ in range(users)],
        resources=GPU,
    )
    return instance, queues


@settings(max_examples=15)
@given(trees(), st.integers(0, 2))
def test_a_queue_without_properties_around_a_queue_changes_nothing(tree: tuple[fo.Instance, list[fo.Queue]], k: int) -> None:
    """It has the weight of the queue in it."""
    instance, queues = tree
    inner = queues[k]
    around = fo.Queue("around", inner.parent, inner.weight)
    wrapped = [fo.Queue(q.name, "around", q.weight, q.guarantee) if q is inner else q for q in queues]
    found = fo.solve(instance.replace(queues=[around, *wrapped]), "drfh").tasks_per_user
    assert found == pytest.approx(fo.solve(instance, "drfh").tasks_per_user, abs=1e-7)


@settings(max_examples=15)
@given(trees())
def test_a_queue_that_is_split_keeps_its_sum(tree: tuple[fo.Instance, list[fo.Queue]]) -> None:
    """Two queues with half the weight, the guarantee, the tasks and copies of the users, instead of the last queue."""
    instance, queues = tree
    mine = [n for n, name in enumerate(instance.queue_of) if name == "q2"]
    last = queues[2]
    half = {"gpu": last.guarantee["gpu"] / 2} if last.guarantee else {}
    halves = [fo.Queue(name, last.parent, last.weight / 2, half) for name in ("left", "right")]
    everybody = [*range(instance.n_users), *mine]
    queue_of = ["left" if name == "q2" else name for name in instance.queue_of] + ["right"] * len(mine)
    tasks = [instance.tasks[n] / (2 if n in mine else 1) for n in everybody]
    split = fo.Instance(
        instance.capacities,
        instance.demands[everybody],
        weights=instance.weights[everybody],
        tasks=tasks,
        eligibility=instance.eligibility[everybody],
        queues=[*queues[:2], *halves],
        queue_of=queue_of,
        resources=GPU,
    )
    before, after = (fo.solve(each, "drfh").tasks_per_user for each in (instance, split))
    assert after[mine].sum() + after[instance.n_users :].sum() == pytest.approx(before[mine].sum(), abs=1e-7)


@settings(max_examples=20)
@given(trees())
def test_guarantees_that_can_all_be_met_are_met(tree: tuple[fo.Instance, list[fo.Queue]]) -> None:
    """Whether they can is one LP: some allocation gives each queue what it is guaranteed."""
    instance, queues = tree
    users, servers = np.nonzero(instance.eligibility)
    below = {q.name: np.isin(np.array(instance.queue_of), [p.name for p in queues if _is_in(queues, p, q.name)]) for q in queues}
    rows = [(servers == i).astype(float) for i in range(instance.n_servers)]
    rows += [(users == n).astype(float) for n in range(instance.n_users) if np.isfinite(instance.tasks[n])]
    bounds = [*instance.capacities[:, 0], *instance.tasks[np.isfinite(instance.tasks)]]
    promises = [q for q in queues if q.guarantee]
    rows += [-below[q.name][users].astype(float) for q in promises]
    bounds += [-q.guarantee["gpu"] for q in promises]
    possible = linprog(np.zeros(users.size), A_ub=np.array(rows), b_ub=bounds).status == 0
    found = fo.solve(instance, "drfh")
    for q in promises if possible else ():
        assert found.tasks_per_user[below[q.name]].sum() >= q.guarantee["gpu"] * (1 - 1e-8)


def _is_in(queues: Sequence[fo.Queue], queue: fo.Queue, name: str) -> bool:
    """Is a queue the one with this name, or in it?"""
    parents = {q.name: q.parent for q in queues}
    at: str | None = queue.name
    while at is not None and at != name:
        at = parents[at]
    return at == name


def test_a_share_of_a_task_is_that_of_the_oracle() -> None:
    """The fractions of this file, and the floats of the oracle."""
    instance = INSTANCES[11][1]
    assert share_per_task(instance, "drfh").tolist() == [float(share or 0) for share in _dominant(instance)]


def test_a_tiny_guarantee_beside_large_ones_is_proved() -> None:
    """40 queues are guaranteed 1.4 times the cluster; the smallest guarantee is a thousandth of the largest."""
    rng = np.random.default_rng(0)
    amounts = rng.dirichlet(np.ones(40)) * 1.4 * 60
    names = [f"q{k}" for k in range(40)]
    pool = fo.Instance(
        [[20.0], [40.0]],
        rng.uniform(0.1, 1, (200, 1)),
        weights=rng.uniform(1, 5, 200),
        resources=GPU,
        queues=[promised(name, amount) for name, amount in zip(names, amounts.tolist(), strict=True)],
        queue_of=[names[n % 40] for n in range(200)],
    )
    answer = fo.solve(pool, "drfh")
    assert answer.certificate.worst <= 1e-8
    held = [pool.demands[n::40, 0] @ answer.tasks_per_user[n::40] for n in range(40)]
    assert held == pytest.approx(amounts / 1.4, rel=1e-7)


def test_a_guarantee_whose_users_can_run_nothing_is_not_raised() -> None:
    """A limit of 0 CPUs leaves ann nothing. The limit of 0 CPUs that the guarantee of rest is becomes the 8 of eve's 4 tasks."""
    queues = [
        fo.Queue("lab", guarantee={"gpu": 5, "cpu": 0}),
        fo.Queue("inner", parent="lab", guarantee={"gpu": 3, "cpu": 0}, limit={"cpu": 0}),
        fo.Queue("rest", guarantee={"gpu": 4, "cpu": 0}),
    ]
    users: dict[str, Any] = {"users": ["ann", "eve"], "queue_of": ["inner", "rest"], "guarantees": [0, 4]}
    cluster = fo.Instance([[9, 8]], [[0, 2], [1, 2]], resources=["gpu", "cpu"], queues=queues, **users)
    for solver in ("highs", "cvxpy"):
        assert fo.solve(cluster, solver=solver).tasks_per_user == pytest.approx([0, 4])
    exact = fo.solve(cluster, exact=True).exact
    assert exact is not None
    assert exact.tasks_per_user.tolist() == [0, 4]
