"""Resources of the cluster in programs and answers: published values, an oracle of rows, and what must change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from reference.rows import Rows, leximin

import fairopt as fo
from fairopt.errors import Unsupported
from fairopt.program import LimitKind

LICENCES = fo.Instance([[20]], [[1, 1], [1, 0]], shared={"licences": 10}, resources=["cpu"], users=["L", "C"])
EQUALISING = ("drfh", "cdrf", "tsf", "asset", "max-min")
ACROSS = (*EQUALISING, "proportional", "efficiency", "fds", "gfj", "uniform")
ENGINES = ("highs", "cvxpy", "pyomo")


def drawn(seed: int, servers: int = 3, users: int = 5) -> fo.Instance:
    """A random cluster with two shared resources, weights, placement constraints, and a user who needs nothing of servers."""
    rng = np.random.default_rng(seed)
    demands = rng.integers(0, 4, (users, 4)).astype(float)
    demands[:, 0] = np.maximum(demands[:, 0], 1)
    demands[0] = [0, 0, rng.integers(1, 4), 0]
    return fo.Instance(
        rng.integers(4, 20, (servers, 2)),
        demands,
        weights=rng.integers(1, 4, users),
        eligibility=np.vstack([rng.random((users - 1, servers)) < 0.8, np.ones(servers, bool)]),
        counts=rng.integers(1, 3, servers),
        tasks=np.where(rng.random(users) < 0.3, rng.integers(1, 8, users), np.inf),
        shared={"ansys": float(rng.integers(3, 30)), "uplink": float(rng.integers(3, 30))},
    )


def rows_of(instance: fo.Instance) -> Rows:
    """Return the limits of an instance as rows, written down from the definition."""
    columns = [(n, i) for n in range(instance.n_users) for i in range(instance.n_servers) if instance.eligibility[n, i]]
    rows, m = Rows(columns), instance.capacities.shape[1]
    for i in range(instance.n_servers):
        for r in range(m):
            rows.add([instance.demands[n, r] * (k == i) for n, k in columns], instance.counts[i] * instance.capacities[i, r])
    for r, amount in enumerate(instance.shared.values(), m):
        rows.add([instance.demands[n, r] for n, _ in columns], amount)
    for user in np.flatnonzero(np.isfinite(instance.tasks)):
        rows.add([float(n == user) for n, _ in columns], instance.tasks[user])
    return rows


def share_of(instance: fo.Instance, notion: str) -> list[float]:
    """Return what a task of each user counts, from the definition of the notion."""
    total = [*(instance.counts @ instance.capacities), *instance.shared.values()]
    m, found = instance.capacities.shape[1], []
    for n, demand in enumerate(instance.demands):
        parts = [d / c for d, c in zip(demand, total, strict=True) if d]
        on_servers = [
            instance.counts[i] * min([c / d for c, d in zip(instance.capacities[i], demand[:m], strict=True) if d], default=np.inf)
            for i in range(instance.n_servers)
            if notion == "tsf" or instance.eligibility[n, i]
        ]
        alone = min([sum(on_servers), *(s / d for s, d in zip(instance.shared.values(), demand[m:], strict=True) if d)])
        found.append({"drfh": max(parts), "asset": sum(parts), "max-min": 1.0}.get(notion) or (1 / alone if alone else np.nan))
    return found


@pytest.mark.parametrize("notion", ["drf", "drfh", "cdrf", "tsf"])
def test_licences(notion: str) -> None:
    """20 cpu, 10 licences; L needs one of each, C a cpu: dominant shares of 2/3 for both."""
    assert fo.solve(LICENCES, notion).tasks_per_user == pytest.approx([20 / 3, 40 / 3])
    exact = fo.solve(LICENCES, notion, exact=True).exact
    assert exact is not None
    assert exact.tasks_per_user.tolist() == [Fraction(20, 3), Fraction(40, 3)]


def test_a_full_shared_resource_has_a_price() -> None:
    """U[L] = 4/10: the licences end first, and one more of them would raise the level by 1/10."""
    scarce = LICENCES.replace(shared={"licences": 4}, tasks=[np.inf, 5])
    answer = fo.solve(scarce, "max-min")
    assert answer.tasks_per_user == pytest.approx([4, 5])
    assert answer.queue_prices == pytest.approx({"licences of the cluster": 1.0})
    assert answer.shared_usage == pytest.approx([4])
    assert answer.shared_utilization == pytest.approx([1])
    assert answer.usage == pytest.approx(np.array([[9.0]]))


@pytest.mark.parametrize("notion", EQUALISING)
@pytest.mark.parametrize("seed", range(12))
def test_the_oracle_of_rows(seed: int, notion: str) -> None:
    """The levels are those that SciPy finds from rows alone."""
    instance = drawn(seed)
    share, rows = share_of(instance, notion), rows_of(instance)
    worth = [share[n] / instance.weights[n] for n, _ in rows.columns]
    answer = fo.solve(instance, notion)
    assert answer.shares == pytest.approx(leximin(rows, worth, instance.n_users), rel=1e-6, abs=1e-9)
    tasks = np.array([answer.tasks[n, i] for n, i in rows.columns])
    assert (np.array(rows.matrix) @ tasks <= np.array(rows.bounds) * (1 + 1e-8) + 1e-9).all()


@pytest.mark.parametrize("notion", ["drfh", "cdrf", "proportional", "efficiency"])
@pytest.mark.parametrize("seed", range(4))
def test_engines_agree(seed: int, notion: str) -> None:
    """Engines know the rows by their coefficients, and fractions by their kind."""
    instance = drawn(100 + seed, servers=2, users=4)
    answers = [fo.solve(instance, notion, solver=engine) for engine in ENGINES if notion != "proportional" or engine == "cvxpy"]
    answers.append(fo.solve(instance, notion))
    exact = fo.solve(instance, notion, exact=True).exact
    assert exact is not None
    for answer in answers:
        found, expected = (answer.tasks_per_user, exact.tasks_per_user.astype(float))
        if notion == "efficiency":  # only the sum is unique
            found, expected = found @ instance.weights, expected @ instance.weights
        assert found == pytest.approx(expected, rel=1e-6 if notion == "proportional" else 1e-8, abs=1e-8)


def _on_the_server(instance: fo.Instance) -> fo.Instance:
    """Return an instance of one server that has the shared resources itself."""
    capacities = np.concatenate([instance.capacities, instance.shared_capacity[None]], axis=1)
    return instance.replace(capacities=capacities, shared=None, resources=instance.resources)


def _trees() -> Iterator[tuple[str, dict[str, Any]]]:
    lab = fo.Queue("lab", guarantee={"ansys": 2}, limit={"uplink": 6})
    yield "flat", {}
    yield "limits", {"queues": [fo.Queue("lab", limit={"ansys": 3})], "queue_of": ["lab", "lab", "lab", None]}
    yield "guarantees", {"queues": [lab], "queue_of": ["lab", "lab", "lab", None]}
    yield "lending", {"queues": [fo.Queue("a", guarantee={"ansys": 2}, lending_limit={"ansys": 1})], "queue_of": [None, "a", "a", None]}
    yield "of users", {"guarantees": [0, 1, 0, 0.5]}
    yield "weight 0", {"weights": [1, 0, 2, 1], "guarantees": [0, 0.5, 0, 0]}


@pytest.mark.parametrize("tree", [name for name, _ in _trees()])
@pytest.mark.parametrize("notion", ["drf", "drfh", "cdrf", "tsf", "asset"])
def test_a_shared_resource_on_the_only_server(notion: str, tree: str) -> None:
    """On one server a resource may as well be shared: shares, tasks, what is used, fractions and all."""
    pool = drawn(7, servers=1, users=4).replace(counts=None, eligibility=None, tasks=None, **dict(_trees())[tree])
    other = _on_the_server(pool)
    mine, theirs = fo.solve(pool, notion), fo.solve(other, notion)
    assert mine.shares == pytest.approx(theirs.shares, rel=1e-9)
    assert mine.tasks_per_user == pytest.approx(theirs.tasks_per_user, rel=1e-9)
    assert [*mine.usage[0], *mine.shared_usage] == pytest.approx(theirs.usage[0], rel=1e-9)
    if notion == "drfh":
        exact, known = (fo.solve(each, notion, exact=True).exact for each in (pool, other))
        assert exact is not None
        assert known is not None
        assert exact.tasks_per_user.tolist() == known.tasks_per_user.tolist()


def test_whole_tasks() -> None:
    """Branch and cut keeps the rows of shared resources: 3 licences, so 3 whole tasks of L."""
    answer = fo.solve(LICENCES.replace(shared={"licences": 3.5}), "drfh", integral=True)
    assert answer.tasks_per_user.tolist() == [3, 17]


@pytest.mark.parametrize("notion", ACROSS)
def test_units_and_split_servers_change_nothing(notion: str) -> None:
    """A licence counted in tenths, and a row of servers cut in two."""
    instance = drawn(3).replace(tasks=None)
    tenths = instance.replace(demands=instance.demands * [1, 1, 10, 1], shared={"ansys": instance.shared["ansys"] * 10})
    rows = [0, *range(instance.n_servers)]
    split = instance.replace(
        capacities=instance.capacities[rows] / np.where(np.array(rows) == 0, 2, 1)[:, None],
        servers=["first half", *instance.servers],
        counts=instance.counts[rows],
        eligibility=instance.eligibility[:, rows],
    )
    now = fo.solve(instance, notion)
    for other in (tenths, split):
        then = fo.solve(other, notion)
        if notion == "efficiency":
            assert then.tasks_per_user @ instance.weights == pytest.approx(now.tasks_per_user @ instance.weights, rel=1e-8)
        else:
            assert then.tasks_per_user == pytest.approx(now.tasks_per_user, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("notion", EQUALISING)
def test_a_user_split_in_two_keeps_its_sum(notion: str) -> None:
    """Two users of half the weight, as merging does it."""
    instance = drawn(5).replace(tasks=None)
    rows = [0, *range(instance.n_users)]
    half = np.where(np.array(rows) == 0, 0.5, 1.0)
    split = instance.replace(
        demands=instance.demands[rows],
        weights=instance.weights[rows] * half,
        eligibility=instance.eligibility[rows],
        tasks=None,
        parallelism=None,
        users=["twin", *instance.users],
    )
    found = fo.solve(split, notion).tasks_per_user
    assert [found[0] + found[1], *found[2:]] == pytest.approx(fo.solve(instance, notion).tasks_per_user, rel=1e-7)


def test_a_tree_on_several_servers() -> None:
    """A shared resource is a limit of everybody's: of a queue around all others, on servers that have plenty of it."""
    instance = drawn(11).replace(tasks=None, eligibility=None)
    queues = [fo.Queue("a", weight=2), fo.Queue("b", parent="a"), fo.Queue("c")]
    places = ["a", "b", "b", "c", None]
    plenty = instance.replace(
        capacities=np.concatenate([instance.capacities, np.tile(instance.shared_capacity, (instance.n_servers, 1))], axis=1),
        resources=instance.resources,
        shared=None,
        queues=[fo.Queue("all", limit=instance.shared), *(fo.Queue(q.name, q.parent or "all", q.weight) for q in queues)],
        queue_of=[place or "all" for place in places],
    )
    here = instance.replace(queues=queues, queue_of=places)
    mine, theirs = (fo.solve(each, "max-min") for each in (here, plenty))
    assert mine.tasks_per_user == pytest.approx(theirs.tasks_per_user, rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_merging_spreads_answers(seed: int) -> None:
    """Ten copies of each user and server, and ten times the shared amounts: every copy has what one has."""
    instance = drawn(200 + seed).replace(tasks=None)
    n, k = instance.n_users, instance.n_servers
    users, servers = np.tile(np.arange(n), 10), np.tile(np.arange(k), 10)
    many = fo.Instance(
        instance.capacities[servers],
        instance.demands[users],
        weights=instance.weights[users],
        eligibility=instance.eligibility[np.ix_(users, servers)],
        counts=instance.counts[servers],
        shared={name: 10 * amount for name, amount in instance.shared.items()},
        resources=instance.resources,
    )
    assert fo.solve(many, "cdrf").tasks_per_user == pytest.approx(np.tile(fo.solve(instance, "cdrf").tasks_per_user, 10), rel=1e-7)


def test_time_division_keeps_rows_of_amounts() -> None:
    """With rates, servers share time; a licence is a licence."""
    instance = fo.Instance([[1]], [[0, 1], [0, 0]], rates=[[10], [10]], shared={"licences": 2}, resources=["gpu"])
    assert fo.solve(instance, "proportional").tasks_per_user == pytest.approx([2, 8])
    program = fo.formulate(instance, "proportional")
    assert [LimitKind(kind).name for kind in program.limits.kinds] == ["TIME", "SHARED"]


@pytest.mark.parametrize("notion", ["psdsf", "per-server-drf", "bbf"])
def test_notions_of_servers_refuse(notion: str) -> None:
    """A sentence with the name of the resource; in a pool it is a resource as any other."""
    with pytest.raises(Unsupported, match=r"^licences is a resource of the whole cluster, on no server, and .*; "):
        fo.solve(LICENCES, notion)
    assert fo.solve(LICENCES.pooled(), notion).tasks_per_user.sum() > 0


def test_uniform_slices() -> None:
    """Half of the cpu and of the licences each."""
    assert fo.solve(LICENCES, "uniform").tasks_per_user.tolist() == [5, 10]
    exact = fo.solve(LICENCES.replace(weights=[1, 2]), "uniform", exact=True).exact
    assert exact is not None
    assert exact.tasks_per_user.tolist() == [Fraction(10, 3), Fraction(40, 3)]


def test_names_of_rows() -> None:
    """In text, and in Pyomo's model."""
    program = fo.formulate(LICENCES, "drfh")
    assert "licences of the cluster : x[L, server-1] <= 10" in str(program)
    assert "(licences of the cluster)" in program.to_latex()
    assert "licences of the cluster" in program.to_mathml().replace("&#160;", " ")
    model = fo.to_pyomo(LICENCES, "drfh")
    assert [*model.shared] == ["licences"]
