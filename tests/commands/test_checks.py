"""Checks for scripts and timers: ``compare --fail-if``, ``audit --fail-on``, and what a given allocation is measured by."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import flat, run

import fairopt as fo

CLUSTER = """
resources: [cpu, memory]
servers: [{name: s, capacity: {cpu: 9, memory: 18}}]
users:
- {name: a/one, demand: {cpu: 1, memory: 4}}
- {name: b, demand: {cpu: 3, memory: 1}}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Write the example of the DRF paper: 3 and 2 tasks are exact."""
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER)
    return path


def held(cluster: Path, name: str, a: float, b: float) -> Path:
    """Write an allocation."""
    path = cluster.parent / f"{name}.csv"
    path.write_text(f"user,server,tasks\na/one,s,{a}\nb,s,{b}\n")
    return path


def test_a_condition_fails_the_check_of_ones_own_allocation(cluster: Path) -> None:
    """1 and 2 tasks: the smallest share is a third of the exact one; the table is printed all the same."""
    own = held(cluster, "now", 1, 2)
    result = run("compare", cluster, "--allocation", own, "--fail-if", "regret > 0.1", "--fail-if", "envy > 100", status=1)
    assert "failed: now: regret is 0.6667, > 0.1" in flat(result.stderr)
    assert "envy is" not in result.stderr
    assert "drfh" in result.stdout
    for same in ("regret-worst", "worst"):  # as study and worst-case call it
        failed = run("compare", cluster, "--allocation", own, "--fail-if", f"{same} > 0.1", status=1)
        assert "failed: now: regret is 0.6667, > 0.1" in flat(failed.stderr)
    run("compare", cluster, "--allocation", own, "--fail-if", "level > 70%")
    run("compare", cluster, "--allocation", held(cluster, "exact", 3, 2), "--fail-if", "regret >= 1e-6")


def test_conditions_are_asked_of_schedules_and_else_of_all_rows(cluster: Path) -> None:
    """A schedule of the exact allocation passes; the exact allocation itself has no regret above 0, and an efficiency."""
    run("compare", cluster, "--schedules", "drfh:first-fit", "--fail-if", "efficiency > 2")
    assert (
        "drfh:first-fit: efficiency"
        in run("compare", cluster, "--schedules", "drfh:first-fit", "--fail-if", "efficiency > 0", status=1).stderr
    )
    assert "drfh: efficiency" in run("compare", cluster, "--fail-if", "efficiency < 99%", status=1).stderr


def test_a_measure_that_is_not_there_is_a_failed_check(cluster: Path) -> None:
    """A leximin has no violation of a condition; nothing passes because nothing was measured."""
    result = run("compare", cluster, "--allocation", held(cluster, "now", 3, 2), "--fail-if", "condition > 0.1", status=1)
    assert "now has no condition, so that it cannot be checked" in flat(result.stderr)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("regret", "is not a condition such as"),
        ("regret = 1", "is not a condition such as"),
        ("regret > 1.1.1", "is not a condition such as"),
        ("regret > 1e400", "is not a condition such as"),
        ("regert > 1", 'did you mean "regret"'),
    ],
)
def test_bad_conditions_have_status_2(cluster: Path, condition: str, message: str) -> None:
    """Before anything is computed."""
    assert message in flat(run("compare", cluster, "--fail-if", condition, status=2).stderr)


def test_a_regret_of_nothing_is_refused(cluster: Path) -> None:
    """Exact allocations have no regret, unless of whole tasks, or against a reference: a wrong command line, not a failed check."""
    for measure in ("regret", "level", "total"):
        refused = flat(run("compare", cluster, "--fail-if", f"{measure} > 0.1", status=2).stderr)
        assert f"--fail-if: {measure} is measured of schedules and of your own allocations; give --schedules or --allocation" in refused
    run("compare", cluster, "--fail-if", "envy > 0.1")
    run("compare", cluster, "--integral", "--fail-if", "regret > 1")
    run("compare", cluster, "--notions", "drfh,tsf", "--reference", "tsf", "--fail-if", "regret > 1")


def test_an_impossible_allocation_is_said_to_pass_for_nothing(cluster: Path) -> None:
    """1,000 tasks of each, of another cluster: nobody falls short, and the warning says that this proves little."""
    own = held(cluster, "other", 1000, 1000)
    result = run("compare", cluster, "--allocation", own, "--fail-if", "regret > 0.1")
    assert "warning: other exceeds capacity" in flat(result.stderr)
    result = run("audit", cluster, "--allocation", own, "--fail-on", "sharing-incentive")
    assert "warning: the allocation exceeds capacity" in flat(result.stderr)
    assert "exceeds" not in run("audit", cluster, "--allocation", held(cluster, "exact", 3, 2), "--fail-on", "sharing-incentive").stderr


def test_a_check_that_names_nothing_is_refused(cluster: Path) -> None:
    """An empty variable in a script would let everything pass."""
    for nothing in ("", " , "):
        assert "name at least one property" in flat(run("audit", cluster, "--fail-on", nothing, status=2).stderr)


def test_compare_by_owner(cluster: Path) -> None:
    """A row for each owner, with the allocations side by side; CSV and JSON have them too."""
    before, after = held(cluster, "before", 1, 2), held(cluster, "after", 3, 2)
    fo.save(fo.load(cluster, changes=["users.a/one.owner=a"]), cluster)
    arguments = ["compare", cluster, "--allocation", before, "--allocation", after, "--by", "owner"]
    text = run(*arguments).stdout
    (line,) = [line for line in text.splitlines() if line.startswith("a ")]
    assert line.split() == ["a", "1", "3", "66.7", "%", "1", "22.2", "%", "3", "66.7", "%"]
    data = json.loads(run(*arguments, "--json").stdout)
    assert [owner["tasks"] for owner in data["rows"][1]["owners"]] == [1, 2]
    assert "before,a,1,1.0,memory" in run(*arguments, "--csv").stdout


def test_compare_by_queue(tmp_path: Path) -> None:
    """A row for each queue in the order of the tree; a guarantee that is not met is marked. Envy is said to be that inside a queue."""
    queues = [fo.Queue("b", guarantee={"gpu": 6}), fo.Queue("a"), fo.Queue("a1", "a")]
    instance = fo.Instance([[8]], [[1], [1]], users=["x", "y"], servers=["s"], resources=["gpu"], queues=queues, queue_of=["b", "a1"])
    fo.save(instance, tmp_path / "tree.yaml")
    own = tmp_path / "now.csv"
    own.write_text("user,server,tasks\nx,s,3\ny,s,4\n")
    arguments = ["compare", tmp_path / "tree.yaml", "--allocation", own, "--by", "queue"]
    text = run(*arguments).stdout
    lines = [" ".join(line.split()) for line in text[text.index("queues ") :].splitlines()[2:5]]
    assert lines == ["b 7 87.5 % 3 37.5 % !", "a 1 12.5 % 4 50.0 %", "a1 1 12.5 % 4 50.0 %"]
    assert "guarantees: of queues and users, how many are met. Slices and envy of siblings: fairopt audit." in flat(text)
    assert "now,a1,a," in run(*arguments, "--csv").stdout
    queues_of = {entry["name"]: entry["queues"] for entry in json.loads(run(*arguments, "--json").stdout)["rows"]}
    assert [each["tasks"] for each in queues_of["now"]] == [3, 4, 4]
    fo.save(instance.replace(queues=None, queue_of=None), tmp_path / "flat.yaml")
    assert "has no queues" in flat(run("compare", tmp_path / "flat.yaml", "--by", "queue", status=2).stderr)


def test_what_a_guarantee_means_to_a_schedule_is_said(tmp_path: Path) -> None:
    """Greedy schedules fill to the larger of guarantee and weight; the exact allocation of the same meaning has no regret."""
    queues = [fo.Queue("a", guarantee={"gpu": 2}), fo.Queue("b", weight=3, guarantee={"gpu": 2})]
    instance = fo.Instance([[8]], [[1], [1]], resources=["gpu"], queues=queues, queue_of=["a", "b"])
    fo.save(instance, tmp_path / "tree.yaml")
    text = flat(run("compare", tmp_path / "tree.yaml", "--schedules", "drfh:best-fit").stdout)
    assert "Greedy schedules count guarantees as --guarantees clamp does" in text
    data = json.loads(run("compare", tmp_path / "tree.yaml", "--schedules", "drfh:best-fit", "--guarantees", "clamp", "--json").stdout)
    assert data["rows"][-1]["regret"]["largest"] == 0
    clamped = flat(run("compare", tmp_path / "tree.yaml", "--schedules", "drfh:best-fit", "--guarantees", "clamp").stdout)
    assert "Greedy schedules count" not in clamped


def test_a_property_fails_the_check(cluster: Path) -> None:
    """5 and 0 tasks: b gets nothing, and half of the server would be its slice."""
    own = held(cluster, "now", 4, 0)
    result = run("audit", cluster, "--allocation", own, "--properties", "pareto", "--fail-on", "sharing-incentive", status=1)
    assert "failed: sharing-incentive is violated, by" in flat(result.stderr)
    assert "sharing-incentive" in result.stdout
    run(
        "audit",
        cluster,
        "--allocation",
        held(cluster, "exact", 3, 2),
        "--properties",
        "pareto",
        "--fail-on",
        "sharing-incentive,guarantees",
    )
    assert 'no property "fairness"' in flat(run("audit", cluster, "--fail-on", "fairness", status=2).stderr)


def test_what_cannot_be_judged_is_no_violation_but_is_said(cluster: Path) -> None:
    """Nothing says how a given allocation was made, so nothing says what a lie would do to it."""
    own = held(cluster, "now", 1, 2)
    result = run("audit", cluster, "--allocation", own, "--properties", "pareto", "--fail-on", "strategy-proofness")
    assert "strategy-proofness could not be judged" in flat(result.stderr)


def test_an_allocation_is_audited_by_the_measure_of_a_notion(cluster: Path) -> None:
    """With drfh, max-min is judged: the smallest share can be three times as large."""
    own = held(cluster, "now", 1, 2)
    arguments = ["audit", cluster, "--allocation", own, "--notion", "drfh", "--properties", "max-min"]
    assert "Audit of given, measured by drfh" in flat(run(*arguments).stdout)
    assert "max-min is violated" in flat(run(*arguments, "--fail-on", "max-min", status=1).stderr)
    own = held(cluster, "now", 3, 2)
    run(*arguments, "--fail-on", "max-min")
    audited = run("audit", cluster, "--allocation", own, "--notion", "proportional:alpha=2", "--properties", "max-min")
    assert "Audit of given, measured by proportional:alpha=2" in flat(audited.stdout)
    assert 'did you mean "drfh"' in flat(run("audit", cluster, "--allocation", own, "--notion", "drfhh", status=2).stderr)


def test_an_explanation_is_measured_by_the_notion_with_its_options(cluster: Path) -> None:
    """The exact allocations of alpha 0, the largest total, and of alpha 1 differ, and so does what either would give."""
    own = held(cluster, "now", 1, 2)
    for spec in ("proportional:alpha=0", "proportional"):
        exact = fo.solve(fo.load(cluster), "proportional", alpha=0 if spec.endswith("0") else 1).tasks_per_user[1]
        text = flat(run("explain", cluster, "--user", "b", "--allocation", own, "--notion", spec).stdout)
        assert f"The exact allocation of {spec}, of divisible tasks, would give it {exact:.3g} instead of 2." in text
    data = json.loads(run("explain", cluster, "--user", "b", "--allocation", own, "--notion", "proportional:alpha=0", "--json").stdout)
    assert data["question"]["allocation"]["options"]["alpha"] == 0
