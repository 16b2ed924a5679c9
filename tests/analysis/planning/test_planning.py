"""Plans: against all placements of tiny instances, one by one; order, gangs, protected tasks, budgets, tables, commands.

Of every placement y of the target with A y <= b, stops = sum of max(0, h - y), where a gang that loses a task loses all of them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from reference.placements import placements

import fairopt as fo
from fairopt.analysis.planning import Action, HeldRow, read_held
from fairopt.analysis.planning.planning import plan

SMALL = 60  # random instances


def drawn(seed: int) -> tuple[fo.Instance, np.ndarray]:
    """Draw a tiny instance, and what runs in it: a random placement that fits."""
    rng = np.random.default_rng(seed)
    users, servers = int(rng.integers(2, 4)), int(rng.integers(1, 3))
    instance = fo.Instance(
        rng.integers(2, 5, (servers, 2)),
        rng.integers(1, 3, (users, 2)),
        tasks=[int(t) if t < 4 else np.inf for t in rng.integers(1, 6, users)],
        weights=rng.integers(1, 3, users),
    )
    all_of_them = list(placements(instance))
    return instance, all_of_them[int(rng.integers(len(all_of_them)))]


def kept_of(y: np.ndarray, single: np.ndarray, gang: np.ndarray) -> int:
    """Return the most tasks that go on where the end is y: single ones, and a gang as a whole or not at all."""
    best = int(np.minimum(y, single).sum())
    return max(best, int(gang.sum() + np.minimum(y - gang, single).sum())) if (gang <= y).all() else best


def leximin(instance: fo.Instance, tables: list[np.ndarray]) -> list[float]:
    """Return the largest sorted shares of some placements."""
    shares = instance.demands / instance.total_capacity
    per_task = shares.max(axis=1) / instance.weights
    return max(sorted((np.round(table.sum(axis=1) * per_task, 9)).tolist()) for table in tables)


@pytest.mark.parametrize("first", range(0, SMALL, 20))
def test_the_fewest_stops_of_all_placements(first: int) -> None:
    """Stops are the fewest of all placements of the target, the bound is met, and the end is a placement of it."""
    for seed in range(first, first + 20):
        instance, held = drawn(seed)
        rng = np.random.default_rng(1000 + seed)
        gang = np.minimum(held, rng.integers(0, 2, held.shape)) if seed % 2 else np.zeros_like(held)
        single = held - gang
        rows = [
            HeldRow(instance.users[n], instance.servers[i], int(tasks[n, i]), gang=word)
            for tasks, word in ((single, ""), (gang, "g"))
            for n, i in np.argwhere(tasks).tolist()
        ]
        found = plan(instance, rows or np.zeros(held.shape), "drfh")
        target = np.array([found.target[user] for user in instance.users])
        ends = [y for y in placements(instance) if (y.sum(axis=1) == target).all()]
        fewest = min(int(held.sum()) - kept_of(y, single, gang) for y in ends)
        assert (found.n_stops, found.bound) == (fewest, fewest)
        follow(instance, held, found)


def follow(instance: fo.Instance, held: np.ndarray, found: fo.Plan) -> None:
    """Take the actions step by step, those of a step in the order of least room: starts of the step first in step 1."""
    now = held.astype(float)
    place = {name: i for i, name in enumerate(instance.servers)}
    user = {name: n for n, name in enumerate(instance.users)}

    def change(actions: list[Action], sign: int) -> None:
        for each in actions:
            now[user[each.user], place[each.server]] += sign * each.tasks
            assert (now >= 0).all()
            assert (now.T @ instance.demands <= instance.capacities + 1e-9).all()
            assert (now.sum(axis=1) <= instance.tasks).all()

    assert {each.step for each in found.stops} <= {1}
    change([each for each in found.starts if each.step == 1], 1)
    change(list(found.stops), -1)
    change([each for each in found.starts if each.step == 2], 1)
    assert now.sum(axis=1).tolist() == [found.target[name] for name in instance.users]


@pytest.mark.parametrize("first", range(0, SMALL, 20))
def test_the_best_of_a_budget(first: int) -> None:
    """With N stops the sorted shares are the largest of all placements that stop at most N tasks."""
    for seed in range(first, first + 20):
        instance, held = drawn(seed)
        for budget in (0, 1):
            found = plan(instance, held, "drfh", budget=budget)
            assert found.n_stops <= budget
            within = [y for y in placements(instance) if np.maximum(held - y, 0).sum() <= budget]
            reached = np.array([found.target[user] for user in instance.users])
            ends = [y for y in placements(instance) if (y.sum(axis=1) == reached).all()]
            assert leximin(instance, ends) == pytest.approx(leximin(instance, within))
            follow(instance, held, found)


def test_limits_of_the_cluster_order_the_steps() -> None:
    """A start waits for the stop of a licence on another server; one that needs no licence does not."""
    lab = fo.Instance(
        [[2], [2]], [[1, 1], [1, 1], [1, 0]], users=["a", "b", "c"], servers=["x", "y"], shared={"licence": 2}, resources=["cpu", "licence"]
    )
    found = plan(lab, {("a", "x"): 2}, "drfh")
    steps = {(each.user, each.server): each.step for each in found.starts}
    assert found.target == {"a": 1, "b": 1, "c": 2}
    assert all(step == 2 for (user, _), step in steps.items() if user == "b")
    assert steps["c", "y"] == 1


def test_protected_tasks_go_on() -> None:
    """The target gives way to protected tasks, and the plan says so."""
    lab = fo.Instance([[4]], [[1], [1]], users=["a", "b"], servers=["x"])
    found = plan(lab, [HeldRow("a", "x", 1), HeldRow("a", "x", 3, protected=True)], "drfh")
    assert (found.n_stops, found.target) == (1, {"a": 3, "b": 1})
    assert "protected" in found.notes[0]
    with pytest.raises(fo.NoSolution, match="protected tasks exceed"):
        plan(lab, [HeldRow("a", "x", 5, protected=True)], "drfh")


def test_trees_limits_and_lending() -> None:
    """Queues, tiers and guarantees count by the target; one stop leaves 3 of the 6 that "p" is guaranteed. A clamp has none to compare."""
    lab = fo.Instance(
        [[8], [8]],
        [[1], [1], [1]],
        users=["a", "b", "c"],
        servers=["x", "y"],
        resources=["gpu"],
        queues=[fo.Queue("p", guarantee={"gpu": 6}), fo.Queue("q")],
        queue_of={"a": "p", "b": "p", "c": "q"},
    )
    found = plan(lab, {("c", "x"): 8, ("c", "y"): 6}, "drfh")
    assert found.target["a"] + found.target["b"] == 16 - found.target["c"]
    assert found.n_stops == found.bound == 14 - found.target["c"]
    one = plan(lab, {("c", "x"): 8, ("c", "y"): 6}, "drfh", budget=1)
    assert (one.n_stops, one.target["c"], sorted((one.target["a"], one.target["b"]))) == (1, 13, [1, 2])
    with pytest.raises(
        fo.Unsupported, match=r'no engine finds the best whole tasks under a budget .*use guarantees="surplus", or leave the budget'
    ):
        plan(lab, {("c", "x"): 8, ("c", "y"): 6}, "drfh:guarantees=clamp", budget=1)


def test_a_budget_that_nothing_meets() -> None:
    """What runs exceeds the server, so that two tasks must stop."""
    lab = fo.Instance([[4]], [[1], [1]], users=["a", "b"], servers=["x"], resources=["gpu"])
    with pytest.raises(fo.NoSolution, match="no plan has so few stops as 1: what runs exceeds a limit"):
        plan(lab, {("a", "x"): 6}, budget=1)
    found = plan(lab, {("a", "x"): 6}, budget=2)
    assert (found.n_stops, found.target) == (2, {"a": 4, "b": 0})
    assert found.notes[0].startswith("what runs exceeds 1 limit now (gpu @ x)")


def test_what_runs_as_a_frame_an_array_and_an_allocation() -> None:
    """All of them say the same."""
    pd = pytest.importorskip("pandas")
    lab = fo.Instance([[4], [4]], [[1], [1]], users=["a", "b"], servers=["x", "y"])
    frame = pd.DataFrame({"user": ["a", "a"], "server": ["x", "y"], "tasks": [4, 2]})
    array = np.array([[4, 2], [0, 0]])
    plans = [plan(lab, each) for each in (frame, array, {("a", "x"): 4, ("a", "y"): 2})]
    assert {found.n_stops for found in plans} == {2}
    with pytest.raises(fo.InvalidInstance, match="a plan is about whole tasks"):
        plan(lab, fo.solve(lab.replace(capacities=[[3], [4]]), "drfh"))
    with pytest.raises(fo.InvalidInstance, match="what runs has the shape"):
        plan(lab, np.zeros((3, 2)))


def test_hosts_and_rows(tmp_path: Path) -> None:
    """A host names one server of a row; a row of several is packed, with a note; a name is that of one thing."""
    lab = fo.Instance(
        [[4], [2]], [[1], [2]], users=["a", "b"], servers=["big", "small"], counts=[2, 1], hosts=[["n1", "n2"], ["n3"]], resources=["gpu"]
    )
    path = tmp_path / "held.csv"
    path.write_text("user,server,tasks,gang,protected,name\na,n1,2,,no,lab/p-0|lab/p-1\na,n2,4,,,job 7\na,small,2,,yes,\n")
    rows = read_held(path, lab)
    found = plan(lab, path)
    assert rows[0].names == ("lab/p-0", "lab/p-1")
    assert {each.server for each in found.stops} <= {"n1", "n2", "n3"}
    assert not any(each.server == "n3" for each in found.stops)
    lines = found.commands("kubectl")
    assert lines
    assert all("p-" in line or "job 7" in line for line in lines)
    assert plan(lab, {("a", "big"): 8}).notes[0].startswith("8 tasks run on a row of several servers, such as big")
    path.write_text("user,server,tasks,protected\nz,n1,2,\na,n9,1,\na,n1,1.5,\na,n1,1,maybe\n")
    with pytest.raises(fo.InvalidInstance) as refused:
        read_held(path, lab)
    assert [word in str(refused.value) for word in ('"z"', '"n9"', "1.5", '"maybe"')] == [True] * 4
