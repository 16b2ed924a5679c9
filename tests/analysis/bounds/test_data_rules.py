"""Rules on the data of a box: what is cut breaks a rule, what is left closes both ends, and bad rules are named."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import fairopt as fo
from fairopt.analysis.bounds.boxes import Box, Ranges
from fairopt.cli import app

PAIR = fo.Instance([[10, 2], [2, 10]], np.ones((2, 2)), users=["a", "b"], resources=["cpu", "memory"])
LINKS = {"a-b": 10, "b-d": 10, "a-c": 10, "c-d": 10}
FLOWS = {"a to d": [["a-b", "b-d"], ["a-c", "c-d"]], "a to b": [["a-b"]], "b to d": [["b-d"]]}
NETWORK = fo.Instance.from_paths(LINKS, FLOWS).replace(tasks=[5, 5, 5])


def drawn(seed: int) -> tuple[Box, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A box of three users with two random rules, and the rules once more: coefficients of demands, and the most they sum to."""
    rng = np.random.default_rng(seed)
    rows = rng.choice([-2.0, -1.0, 0.0, 1.0, 3.0], (2, 3, 2))
    rows[:, 0, 0] = 1.0
    middle = rows.reshape(2, -1) @ np.full(6, 1.5)
    texts = [
        " + ".join(f"{value:g} * demands['user-{n + 1}', 'resource-{r + 1}']" for (n, r), value in np.ndenumerate(row)) + f" <= {most}"
        for row, most in zip(rows, middle, strict=True)
    ]
    box = Box.of(fo.Instance([[9, 7], [4, 8]], np.ones((3, 2))), {"demands": (1, 2)}, texts)
    return box, rows.reshape(2, -1), middle


@pytest.mark.parametrize("seed", range(12))
def test_nothing_that_keeps_the_rules_is_cut(seed: int) -> None:
    """Of random parts of the box, each point that keeps the rules lies in what is left; what is drawn keeps them."""
    box, rows, most = drawn(seed)
    rng = np.random.default_rng(seed)
    for _ in range(30):
        ends = np.sort(rng.uniform(1, 2, (2, 3, 2)), axis=0)
        low, high = ({**box.ranges.low, "demands": end} for end in ends)
        left = box.cut(Ranges(low, high))
        points = rng.uniform(ends[0], ends[1], (40, 3, 2))
        kept = [point for point in points if (rows @ point.ravel() <= most).all()]
        assert left is not None or not kept
        if left is not None:
            assert all((left.low["demands"] <= point).all() and (point <= left.high["demands"]).all() for point in kept)
        data = box.draw(rng)["demands"]
        assert (rows @ data.ravel() <= most + 1e-9).all()
        assert ((data >= 1) & (data <= 2)).all()


@pytest.mark.parametrize(
    "where",
    [
        ["demands[a, cpu] + demands[a, memory] <= 2.5"],
        ["demands[a, cpu] <= demands[b, cpu]", "demands[b, memory] <= demands[a, memory]"],
        ["demands['*', cpu] == 3"],
    ],
    ids=str,
)
def test_a_grid_of_what_keeps_the_rules(where: list[str]) -> None:
    """No point of a grid that keeps the rules, by Python's own arithmetic, is above the bound; the instance found keeps them."""
    asked: dict[str, Any] = {"cluster": PAIR, "vary": {"demands": (1, 2)}, "measure": "level", "where": where}
    worst = fo.worst_case("uniform", "drfh", **asked, bound=True, gap=0.05, time_limit=20)
    assert worst.bound is not None

    def keeps(demands: Any) -> bool:
        of = {(user, word): float(demands[n, r]) for n, user in enumerate("ab") for r, word in enumerate(("cpu", "memory"))}
        total = of["a", "cpu"] + of["b", "cpu"]
        return [
            of["a", "cpu"] + of["a", "memory"] <= 2.5 + 1e-9,
            of["a", "cpu"] <= of["b", "cpu"] + 1e-9 and of["b", "memory"] <= of["a", "memory"] + 1e-9,
            abs(total - 3) <= 1e-9,
        ][0 if "2.5" in where[0] else 1 if len(where) > 1 else 2]

    assert keeps(worst.instance.demands)
    found = []
    for point in itertools.product((1, 1.5, 2), repeat=4):
        demands = np.reshape(point, (2, 2))
        if keeps(demands):
            instance = PAIR.replace(demands=demands)
            found.append(fo.regret(fo.solve(instance, "uniform"), "drfh").level or 0.0)
    assert max(found) <= worst.bound + 1e-9
    assert worst.bound <= max(worst.value, *found) + 0.1
    searched = fo.worst_case("uniform", "drfh", **asked, tries=20)
    assert searched.bound is None
    assert keeps(searched.instance.demands)
    assert searched.value <= worst.bound + 1e-9


@pytest.mark.parametrize("heuristic", ["efficiency:pinning:threshold=2", "efficiency:pop:parts=2:seed=3"])
def test_one_program_with_rules(heuristic: str) -> None:
    """Every instance of whole numbers of tasks that keeps the rules, solved: none is above the bound; without rules, one is worse."""
    where = ["tasks['*'] <= 9", "tasks['a to d'] >= tasks['b to d']", "capacities['*', '*'] >= 0"]
    vary = {"tasks": (1, 5)}
    asked: dict[str, Any] = {"cluster": NETWORK, "vary": vary, "measure": "total", "bound": True}
    worst = fo.worst_case(heuristic, "efficiency", **asked, where=where[:2])
    assert worst.bound is not None
    found = []
    for tasks in itertools.product(range(1, 6), repeat=3):
        if sum(tasks) <= 9 and tasks[0] >= tasks[2]:
            instance = NETWORK.replace(tasks=tasks)
            found.append(fo.regret(fo.schedule(instance, heuristic), "efficiency", exact=fo.solve(instance, "efficiency")).total or 0.0)
    assert max(found) <= worst.bound + 1e-7
    assert worst.instance.tasks.sum() <= 9 + 1e-6
    assert worst.instance.tasks[0] >= worst.instance.tasks[2] - 1e-6
    assert worst.bound <= worst.value + 1e-4


def test_capacities_that_no_row_has() -> None:
    """By hand: nobody demands memory, and 1 <= tasks <= memory - 3 with memory up to 6. With 3 tasks, half a server of 4 runs 2: 1/3."""
    cluster = fo.Instance([[4, 5]], [[1, 0]], users=["a"], servers=["s"], resources=["cpu", "memory"], tasks=[3])
    vary = {"tasks": (1, 5), "capacities": ([[4, 4]], [[4, 6]])}
    asked: dict[str, Any] = {"cluster": cluster, "vary": vary, "measure": "total", "bound": True}
    worst = fo.worst_case("efficiency:pop:parts=2", "efficiency", **asked, where=["tasks[a] <= capacities[s, memory] - 3"])
    assert worst.instance.tasks[0] <= worst.instance.capacities[0, 1] - 3 + 1e-6
    assert [worst.value, worst.bound] == pytest.approx([1 / 3, 1 / 3], abs=1e-5)


def test_servers_of_a_row_are_counted() -> None:
    """Two servers a row: a rule is on the capacity of one of them."""
    cluster = fo.Instance([[4.0]], [[1.0]], counts=[2], users=["a"], servers=["s"], resources=["cpu"])
    box = Box.of(cluster, {"capacities": (1, 4)}, ["capacities[s, cpu] <= 3"])
    assert box.ranges.high["capacities"] == pytest.approx(6)
    assert box.at(box.ranges.high).capacities == pytest.approx(3)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (["demands[a, cpu] >= 5"], 'the box is empty: no instance of it keeps the rule "demands[a, cpu] >= 5"; leave a rule out'),
        (
            ["demands[a, cpu] >= 1.9", "demands[b, cpu] >= 1.9", "demands['*', cpu] <= 2.5", "demands[a, memory] <= 2"],
            'keeps the rules "demands[a, cpu] >= 1.9" and "demands[\'*\', cpu] <= 2.5"',
        ),
        (
            ["x[a] <= 3"],
            'the rule "x[a] <= 3" has x[...], and there are demands[...], weights[...], tasks[...], capacities[...] and speeds[...]',
        ),
        (["demands[a] <= 3"], "write demands[USER, RESOURCE], or '*' for all"),
        (["demands[z, cpu] <= 3"], 'the rule "demands[z, cpu] <= 3" names no user of the cluster: "z"'),
        (["capacities[a, cpu] <= 3"], 'names no server of the cluster: "a"'),
        (["weights[a] <= 2"], 'the rule "weights[a] <= 2" is about nothing that varies'),
        (["tasks[a] <= 2"], "is about tasks of a user who has no task limit"),
        (["demands[a, cpu] * demands[b, cpu] <= 2"], "a rule is linear"),
        (["demands[a, cpu] < 2"], "compares by something else than <=, == or >="),
        (["1 <= demands[a, cpu] <= 2"], "is a chain of comparisons"),
        (["demands[a, cpu"], "cannot be read at character"),
        ("demands[a, cpu] <= 2", "give a list of rules on the numbers that vary"),
    ],
    ids=str,
)
def test_bad_rules(where: Any, message: str) -> None:
    """What, where, and what to do."""
    with pytest.raises(fo.InvalidInstance) as error:
        fo.worst_case("uniform", "drfh", cluster=PAIR, vary={"demands": (1, 2)}, bound=True, where=where)
    assert message in str(error.value)


def test_numbers_of_which_a_user_has_several() -> None:
    """Demands by server, and weights by resource: a rule means one number, so such a rule is refused, and others are kept."""
    kinds = PAIR.replace(demands=[[[1, 1], [2, 1]], [[1, 1], [1, 1]]], tasks=[9, 9])
    vary = {"tasks": (1, 9)}
    with pytest.raises(
        fo.InvalidInstance, match=r"has demands\[a, memory\], and the demands of this cluster differ by server; leave the rule"
    ):
        Box.of(kinds, vary, ["tasks[a] + demands[a, memory] <= 8"])
    assert Box.of(kinds, vary, ["tasks[a] + tasks[b] <= 8"]).ranges.high["tasks"].round(6).tolist() == [7, 7]
    weighted = PAIR.replace(weights=[[1, 2], [1, 1]], tasks=[9, 9])
    with pytest.raises(fo.InvalidInstance, match="the weights of this cluster differ by resource"):
        Box.of(weighted, vary, ["tasks[a] + weights[a] <= 8"])


def test_rules_need_a_cluster() -> None:
    """A search among random instances has no numbers that can be named."""
    with pytest.raises(fo.Unsupported, match="are for the instances of one cluster"):
        fo.worst_case("drfh:first-fit", where=["demands[a, cpu] <= 2"])


def test_on_the_command_line(tmp_path: Path) -> None:
    """The option takes several rules; a bad one is an error with status 2."""
    path = tmp_path / "pair.yaml"
    fo.save(PAIR, path)
    base = ["worst-case", "uniform", "--notion", "drfh", "--cluster", str(path), "--vary", "demands=1:2", "--bound", "--gap", "0.2"]
    found = CliRunner().invoke(app, [*base, "--where", "demands[a, cpu] == 1", "--where", "demands[a, memory] == 2"])
    assert found.exit_code == 0, found.output
    assert "No instance within the ranges has more than" in found.output
    wrong = CliRunner().invoke(app, [*base, "--where", "demands[a, gpu] <= 1"])
    assert wrong.exit_code == 2
    assert 'names no resource of the cluster: "gpu"' in " ".join(wrong.output.replace("│", " ").split())
