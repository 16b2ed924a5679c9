"""Exact allocations with named limits: against an oracle of rows, and what must not change the answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instances import instance_of_everything
from queue_oracle import ask, exact_shares, random_tree
from reference.named_limits import with_limits

import fairopt as fo

NOTIONS = ("drfh", "tsf", "asset", "max-min")


@pytest.mark.parametrize("seed", range(24))
def test_levels_are_those_of_the_oracle(seed: int) -> None:
    """In flat lists and in trees, with limits of all selections."""
    instance = with_limits(instance_of_everything(seed) if seed % 2 else random_tree(seed), seed)
    try:
        found, expected = ask(instance, NOTIONS[seed % 4], "clamp" if seed % 3 == 1 else "surplus", None)
    except ValueError:  # a later stage would depend on where the tasks of an earlier one are
        return
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("seed", range(12))
def test_fractions_are_those_of_the_oracle(seed: int) -> None:
    """On one server with whole numbers: equal as fractions, without a tolerance."""
    rng = np.random.default_rng(seed)
    users = int(rng.integers(3, 7))
    pool = fo.Instance(
        rng.integers(5, 30, (1, 2)),
        rng.integers(1, 4, (users, 2)),
        weights=rng.integers(1, 4, users),
        queues=[fo.Queue("q", weight=2), fo.Queue("r", parent="q")],
        queue_of=[(None, "q", "r")[int(place)] for place in rng.integers(3, size=users)],
    )
    instance = with_limits(pool, seed, round_to=1)
    expected = exact_shares(instance, np.ones(users), queue_share="sum")
    answer = fo.solve(instance, "max-min", exact=True).exact
    assert answer is not None
    assert answer.tasks_per_user.tolist() == list(expected)


@pytest.mark.parametrize("solver", ["highs", "cvxpy", "pyomo", "interior-point"])
@pytest.mark.parametrize("notion", ["drfh", "proportional", "efficiency"])
def test_engines_agree(solver: str, notion: str) -> None:
    """Each engine that can solve the program finds the same numbers of tasks."""
    for seed in (1, 5, 9):
        instance = with_limits(instance_of_everything(seed), seed)
        reference = fo.solve(instance, notion)
        try:
            found = fo.solve(instance, notion, solver=solver)
        except (fo.Unsupported, fo.SolverUnavailable):
            continue
        alone = np.maximum(instance.rates.sum(axis=1), 1e-9)
        if notion == "efficiency":
            assert found.tasks_per_user @ instance.weights == pytest.approx(reference.tasks_per_user @ instance.weights, rel=1e-7)
        else:
            np.testing.assert_allclose(found.tasks_per_user / alone, reference.tasks_per_user / alone, atol=2e-7)


@pytest.mark.parametrize("notion", ["drfh", "proportional", "max-min", "psdsf"])
def test_a_limit_that_repeats_a_capacity_changes_nothing(notion: str) -> None:
    """The row is there already."""
    instance = fo.Instance([[8, 30], [12, 6]], [[1, 2], [2, 1], [1, 1]], weights=[1, 2, 1], resources=["gpu", "cpu"])
    limits = [
        fo.Limit(f"gpu on {name}", float(instance.row_capacity[i, 0]), resource="gpu", servers=[name])
        for i, name in enumerate(instance.servers)
    ]
    same = instance.replace(limits=limits)
    np.testing.assert_allclose(fo.solve(same, notion).tasks_per_user, fo.solve(instance, notion).tasks_per_user, rtol=1e-8)


def test_limits_as_queues_and_tasks_say_the_same() -> None:
    """A limit of a queue, a number of tasks, and the same as named limits."""
    base: dict[str, Any] = {"capacities": [[20], [10]], "demands": [[1], [2], [1]], "resources": ["gpu"], "queue_of": ["q", "q", None]}
    by_queue = fo.Instance(**base, queues=[fo.Queue("q", limit={"gpu": 6})], tasks=[2, np.inf, np.inf])
    named = fo.Instance(
        **base,
        queues=[fo.Queue("q")],
        limits=[fo.Limit("q gpus", 6, resource="gpu", queues=["q"]), fo.Limit("two", 2, users=["user-1"])],
    )
    np.testing.assert_allclose(fo.solve(named, "proportional").tasks_per_user, fo.solve(by_queue, "proportional").tasks_per_user, rtol=1e-8)
    for notion in ("drfh", "tsf"):
        np.testing.assert_allclose(fo.solve(named, notion).tasks_per_user, fo.solve(by_queue, notion).tasks_per_user, rtol=1e-8)
        one, other = (fo.solve(each, notion, integral=True) for each in (named, by_queue))
        np.testing.assert_allclose(one.tasks_per_user, other.tasks_per_user)
    one, other = (fo.schedule(each, "drfh") for each in (named, by_queue))
    np.testing.assert_array_equal(one.tasks, other.tasks)


def test_notions_of_single_servers_say_what_they_take() -> None:
    """One server, or the tasks of one user; a slice takes limits of single users, and bottlenecks none."""
    two = fo.Instance([[8], [8]], [[1], [2]], resources=["gpu"])
    across = two.replace(limits=[fo.Limit("both", 3, resource="gpu")])
    for notion, words in (
        ("psdsf", "decides server by server"),
        ("per-server-drf", "decides server by server"),
        ("uniform", "several users"),
    ):
        with pytest.raises(fo.Unsupported, match=words):
            fo.solve(across, notion)
    with pytest.raises(fo.Unsupported, match="nobody has a bottleneck"):
        fo.solve(across.pooled(), "bbf")
    each = two.replace(limits=[fo.Limit("each", 3, resource="gpu", each="server"), fo.Limit("one", 1, users=["user-1"])])
    np.testing.assert_allclose(fo.solve(each, "psdsf").tasks_per_user, [1, 2.5])
    np.testing.assert_allclose(fo.solve(two.replace(limits=[fo.Limit("one", 1, each="user")]), "uniform").tasks_per_user, [1, 1])


def test_a_bound_of_0_leaves_its_users_out() -> None:
    """The others are served as if they were alone."""
    instance = fo.Instance([[8]], [[1], [2]], limits=[fo.Limit("none", 0, users=["user-1"])])
    for notion in ("drfh", "proportional", "efficiency"):
        np.testing.assert_allclose(fo.solve(instance, notion).tasks_per_user, [0, 4])


def test_a_repeated_row_of_flows() -> None:
    """Published: a network of four paths, asymmetric links (100, 800/49, 1650/49)."""
    links = {"p0-1": 100, "p1-2": 7, "p1-3": 10, "p2-3": 40}
    users, servers = ["c0", "c1", "c2"], ["p0-1", "p1-2-3", "p1-3", "p2-3"]
    instance = fo.Instance(
        np.full((4, 1), 200),
        np.ones((3, 1)),
        weights=[0.8, 16, 33],
        eligibility={"c0": ["p0-1"], "c1": ["p1-2-3", "p1-3"], "c2": ["p2-3"]},
        users=users,
        servers=servers,
        limits=[
            fo.Limit("p0-1", links["p0-1"], servers=["p0-1"]),
            fo.Limit("p1-2", links["p1-2"], servers=["p1-2-3"]),
            fo.Limit("p1-3", links["p1-3"], servers=["p1-3"]),
            fo.Limit("p2-3", links["p2-3"], servers=["p1-2-3", "p2-3"]),
        ],
    )
    np.testing.assert_allclose(fo.solve(instance, "max-min").tasks_per_user, [100, 800 / 49, 1650 / 49], rtol=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_a_tree_of_its_root_alone_has_the_same_levels(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What large programs become where all rows across servers are limits on shares, resources of the cluster too; and in fractions."""
    rng = np.random.default_rng(seed)
    demands = np.hstack([rng.integers(1, 4, (6, 2)), rng.integers(0, 2, (6, 1))])
    pool = fo.Instance(
        rng.integers(5, 20, (3, 2)), demands, weights=rng.integers(1, 4, 6), resources=["gpu", "cpu", "licence"], shared={"licence": 6}
    )
    users = [pool.users[n] for n in rng.choice(6, size=3, replace=False)]
    instance = pool.replace(limits=[fo.Limit("three", 5, resource="gpu", users=users), fo.Limit("each", 4, each="user")])
    expected = [fo.solve(instance, notion, exact=True).exact for notion in ("drfh", "tsf")]
    monkeypatch.setattr("fairopt.models.share_notion._MANY", 1)
    assert fo.formulate(instance, "drfh").goal.is_filling
    for notion, answer in zip(("drfh", "tsf"), expected, strict=True):
        assert answer is not None
        np.testing.assert_allclose(fo.solve(instance, notion).tasks_per_user, answer.tasks_per_user.astype(float), rtol=1e-8)
        again = fo.solve(instance, notion, exact=True).exact
        assert again is not None
        assert again.tasks_per_user.tolist() == answer.tasks_per_user.tolist()


AMOUNTS: list[tuple[Any, list[float]]] = [
    ({"a": 1, "b": 2}, [4, 2]),  # by task
    ({"a": {"s": 1, "t": 0}, "b": 1}, [9, 4]),  # by task and server: nothing counts of a on t
    ({"a": {"s": 1, "t": 1}, "b": {"s": 1, "t": 2}}, [4, 4]),
]


@pytest.mark.parametrize(("amounts", "tasks"), AMOUNTS)
@pytest.mark.parametrize("exact", [False, True])
def test_users_alike_but_for_the_amounts_of_a_limit_of_each_are_told_apart(amounts: Any, tasks: list[float], exact: bool) -> None:
    """At most 4 of each, on servers of 5 and 8. Once they were merged: floats were refused, and fractions were wrong and proved."""
    pool = fo.Instance([[5], [8]], [[1], [1]], users=["a", "b"], servers=["s", "t"], resources=["gpu"])
    limited = pool.replace(limits=[fo.Limit("each", 4, amounts=amounts, each="user")])
    assert fo.solve(limited, "efficiency", exact=exact).tasks_per_user.sum() == pytest.approx(sum(tasks))
    assert fo.solve(limited, "drfh", exact=exact).tasks_per_user.tolist() == pytest.approx(tasks)


def test_fractions_that_break_a_limit_after_merging_are_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof is that of merged rows; what users share is checked, too."""
    monkeypatch.setattr("fairopt.instance.aggregation.limit_keys", lambda *_: ([], []))
    monkeypatch.setattr("fairopt.instance.exact_merging.limit_keys", lambda *_: ([], []), raising=False)
    pool = fo.Instance([[5], [8]], [[1], [1]], users=["a", "b"], servers=["s", "t"], resources=["gpu"])
    limited = pool.replace(limits=[fo.Limit("each", 4, amounts={"a": 1, "b": 2}, each="user")])
    with pytest.raises(fo.CertificateError, match="exceeds a limit of the instance"):
        fo.solve(limited, "drfh", exact=True)
