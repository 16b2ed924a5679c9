"""Comparisons: every column from its definition in plain Python, files of one's own, rows that fail, the command line, pictures."""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from instances import uniform_instance
from matplotlib.patches import Rectangle
from reference import exact
from rich.console import Console
from strategies import instances
from typer.testing import CliRunner, Result

import fairopt as fo
from fairopt.analysis import comparing, rerun
from fairopt.analysis.measures import Envy, dominant_shares, jain_index, largest_envy, takes_part, violations
from fairopt.analysis.regrets import shortfall
from fairopt.cli import app
from fairopt.formats.allocations import read
from fairopt.reporting.tables.comparison import comparison_blocks
from fairopt.show.terminal import print_blocks

EXAMPLES = Path(__file__).parents[2] / "examples"
KESIDIS = fo.Instance([[100, 30], [30, 100]], [[5, 1], [1, 5]], users=["A", "B"], servers=["left", "right"], resources=["cpu", "memory"])


def run(*arguments: object, status: int = 0, width: int = 100) -> Result:
    """Run the command line in this process and check its exit status."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": str(width)})
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


# Every column, word for word -----------------------------------------------------------------------------------------------------


def shares_by_hand(instance: fo.Instance, tasks: np.ndarray) -> list[float]:
    """max_r d/C x/phi of the users who take part."""
    total = [sum(instance.counts[i] * instance.capacities[i, r] for i in range(instance.n_servers)) for r in range(instance.n_resources)]
    result = []
    for n in range(instance.n_users):
        if instance.eligibility[n].any() and instance.tasks[n] > 0:
            per_task = max(instance.demands[n, r] / total[r] for r in range(instance.n_resources) if instance.demands[n, r] > 0)
            result.append(per_task * tasks[n].sum() / instance.weights[n])
    return result


def envy_by_hand(instance: fo.Instance, tasks: np.ndarray) -> float:
    """Tasks that somebody could run with another's scaled holdings, server by server, beyond its own."""
    worst = 0.0
    for n, m in itertools.permutations(range(instance.n_users), 2):
        could = 0.0
        for i in range(instance.n_servers):
            if instance.eligibility[n, i]:
                scale = instance.weights[n] / instance.weights[m]
                could += min(
                    scale * tasks[m, i] * instance.demands[m, r] / instance.demands[n, r]
                    for r in range(instance.n_resources)
                    if instance.demands[n, r] > 0
                )
        worst = max(worst, min(could, instance.tasks[n]) - tasks[n].sum())
    return worst


def most_by_hand(instance: fo.Instance) -> float:
    """The largest weighted number of divisible tasks, from a rational simplex."""
    pairs = [(int(n), int(i)) for n, i in np.argwhere(instance.eligibility)]
    if not pairs:
        return 0.0
    rows, bounds = exact.limits(instance, pairs)
    return float(exact.maximise([Fraction(instance.weights[n]) for n, _ in pairs], rows, bounds))


@settings(max_examples=40)
@given(instance=instances(whole=True, max_users=4, max_servers=3))
def test_measures_by_definition(instance: fo.Instance) -> None:
    """Use, efficiency, smallest share, Jain's index and envy of an exact allocation and of a schedule."""
    comparison = fo.compare(instance, notions=["drfh"], schedules=["tsf:best-fit"])
    most = most_by_hand(instance)
    assert comparison.largest_total == pytest.approx(most)
    for row in comparison:
        assert row.allocation is not None
        tasks = row.allocation.tasks
        for r, name in enumerate(instance.resources):
            there = sum(instance.counts[i] * instance.capacities[i, r] for i in range(instance.n_servers))
            used = sum(tasks[n, i] * instance.demands[n, r] for n in range(instance.n_users) for i in range(instance.n_servers))
            assert row.use[name] == pytest.approx(used / there if there else 0.0)
        shares = shares_by_hand(instance, tasks)
        if shares:
            assert row.smallest_share == pytest.approx(min(shares), abs=1e-12)
            squares = sum(s * s for s in shares)
            assert row.jain == pytest.approx(sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0)
        else:
            assert math.isnan(row.smallest_share)
        assert row.envy is not None
        assert row.envy.tasks == pytest.approx(envy_by_hand(instance, tasks), rel=1e-6, abs=1e-6)
        total = sum(instance.weights[n] * tasks[n].sum() for n in range(instance.n_users))
        assert math.isnan(row.efficiency) if most == 0 else row.efficiency == pytest.approx(total / most)
        assert row.tasks == pytest.approx(tasks.sum())
        assert row.violations == ()


@settings(max_examples=30)
@given(instance=instances())
def test_nobody_envies_a_slice(instance: fo.Instance) -> None:
    """The uniform slice is free of envy, by definition; so is a single user's allocation."""
    assert largest_envy(fo.solve(instance, "uniform")).tasks <= 1e-6 * max(1.0, fo.solve(instance, "uniform").tasks.sum())
    assert largest_envy(fo.solve(instance.replace(**only_first(instance)), "drfh")).tasks == 0


@settings(max_examples=30)
@given(instance=instances())
def test_nobody_envies_under_psdsf(instance: fo.Instance) -> None:
    """Theorem 3 of the PS-DSF paper, server by server over the servers where one may run."""
    allocation = fo.solve(instance, "psdsf")
    assert largest_envy(allocation).tasks <= 1e-6 * max(1.0, allocation.tasks.sum())


def only_first(instance: fo.Instance) -> dict[str, Any]:
    """Return the changes that leave the first user only."""
    one = {name: getattr(instance, name)[:1] for name in ("demands", "weights", "tasks", "parallelism", "users")}
    return one | {"eligibility": instance.eligibility[:1]}


def test_envy_by_hand() -> None:
    """B holds (6, 6) of a pool, which would be 6 tasks of (1, 1) for A, who runs 1; of what A holds B could run a third of a task."""
    pool = fo.Instance([[9, 9]], [[1, 1], [3, 3]], users=["A", "B"])
    mine = np.array([[1], [2]])
    (row,) = fo.compare(pool, notions=[], allocations={"mine": mine})
    assert row.envy is not None
    assert (row.envy.tasks, row.envy.user, row.envy.of) == (5, "A", "B")
    double = pool.replace(weights=[[2, 1], [1, 1]])  # for its weights A may have twice B's cpu, but of memory the same
    assert largest_envy(fo.compare(double, notions=["drfh"], allocations={"mine": mine})["mine"].allocation).tasks == 5  # type: ignore[arg-type]
    few = pool.replace(tasks=[3, np.inf])
    assert largest_envy(fo.compare(few, notions=[], allocations={"mine": mine})["mine"].allocation).tasks == 2  # type: ignore[arg-type]


def test_time_is_compared_under_time_division() -> None:
    """Rates 2 and 4 on one server: half the time each is 1 and 2 tasks; A would run 1 in B's half, not more."""
    channel = fo.Instance([[1]], [[0], [0]], rates=[[2], [4]], users=["A", "B"])
    comparison = fo.compare(channel, notions=["psdsf"], allocations={"uneven": np.array([[0.5], [3]])})
    row = comparison["uneven"]
    assert comparison.sharing == "tdm"
    assert row.use == {"time": 1.0}
    assert dominant_shares(row.allocation).tolist() == [0.25, 0.75]  # type: ignore[arg-type]
    assert row.jain == pytest.approx(1 / (2 * (0.0625 + 0.5625)))
    assert row.envy is not None
    assert row.envy.tasks == pytest.approx(1.0)  # 2 x 0.75 tasks of A in B's time, less its 0.5
    assert row.efficiency == pytest.approx(3.5 / 4)
    over = violations(channel, np.array([[1.0], [3.0]]), "tdm", 1e-6)
    assert [str(each) for each in over] == ["time @ server-1: 1.25, allowed 1"]


def test_envy_keeps_to_the_parallelism_of_the_envious_user() -> None:
    """2 tasks on each of two servers, scaled by 10, are worth 10 servers: "A" would fill its 2, 4 tasks each, and has 4 tasks now."""
    instance = fo.Instance([[4], [4]], [[1], [1]], weights=[10, 1], parallelism=[2, np.inf], users=["A", "B"])
    allocation = rerun.given(instance, np.full((2, 2), 2.0), "rdm")
    assert largest_envy(allocation) == Envy(4.0, "A", "B")
    assert fo.audit(allocation, ["envy-freeness"])["envy-freeness"].violation == pytest.approx(4)


def test_envy_by_worth_keeps_to_the_parallelism_too() -> None:
    """Worth 1 and 1/2 a task, 4 tasks and 12 fill a server: two servers' worth of time is best spent on the second, 24 tasks worth 12.

    Five times what "B" holds are 10 and 30 tasks, so 24 of these are there; "A" has 2 + 6/2 = 5 now.
    """
    utility = [[1, 0.5], [1, 0.5]]
    instance = fo.Instance([[4], [12]], [[1], [1]], weights=[5, 1], parallelism=[2, np.inf], users=["A", "B"])
    solved = fo.solve(instance, "max-min", utility=utility)
    allocation = dataclasses.replace(solved, tasks=np.array([[2.0, 6.0], [2.0, 6.0]]))
    assert fo.audit(allocation, ["envy-freeness"])["envy-freeness"].violation == pytest.approx(12 - 5)


def test_envy_has_no_meaning_for_time_with_weights_per_resource() -> None:
    """No one number scales a share of time: the row says none, and asking for it is refused."""
    channel = fo.Instance([[1, 1]], [[1, 0], [0, 1]], rates=[[2], [4]], weights=[[1, 2], [3, 1]], users=["A", "B"])
    row = fo.compare(channel, notions=[], allocations={"mine": np.array([[0.5], [3]])})["mine"]
    assert row.envy is None
    with pytest.raises(fo.Unsupported, match="weights per resource"):
        largest_envy(row.allocation)  # type: ignore[arg-type]


def test_jain_index_is_between_one_nth_and_one() -> None:
    """Whatever the unit; all equal is 1, all with one is 1/N."""
    assert jain_index(np.full(7, 1e-200)) == pytest.approx(1)
    assert jain_index(np.array([0, 0, 3e200])) == pytest.approx(1 / 3)
    assert jain_index(np.zeros(3)) == 1


# Rows ----------------------------------------------------------------------------------------------------------------------------


def test_rows_are_what_solve_and_schedule_return() -> None:
    """Names, kinds, options, and regrets against each schedule's own criterion."""
    comparison = fo.compare(
        KESIDIS,
        notions=["drfh", ("proportional", {"alpha": 2}), fo.NOTIONS["tsf"], "drfh"],
        schedules=[
            "tsf:best-fit:metric=l2",
            ("drfh", "worst-fit"),
            {"criterion": "psdsf", "placement": "joint", "ties": "random", "seed": 3},
        ],
        integral=True,
    )
    assert [(row.name, row.kind) for row in comparison] == [
        ("drfh", "exact"),
        ("drfh, whole tasks", "exact, whole tasks"),
        ("proportional:alpha=2", "exact"),
        ("proportional:alpha=2, whole tasks", "exact, whole tasks"),
        ("tsf", "exact"),
        ("tsf, whole tasks", "exact, whole tasks"),
        ("drfh (2)", "exact"),
        ("drfh, whole tasks (2)", "exact, whole tasks"),
        ("tsf:best-fit:metric=l2", "greedy"),
        ("drfh:worst-fit", "greedy"),
        ("psdsf:joint:ties=random:seed=3", "greedy"),
    ]
    expected = {
        "drfh": fo.solve(KESIDIS, "drfh"),
        "proportional:alpha=2": fo.solve(KESIDIS, "proportional", alpha=2),
        "tsf:best-fit:metric=l2": fo.schedule(KESIDIS, "tsf", placement="best-fit", metric="l2"),
        "psdsf:joint:ties=random:seed=3": fo.schedule(KESIDIS, "psdsf", placement="joint", ties="random", seed=3),
    }
    for name, allocation in expected.items():
        np.testing.assert_allclose(comparison[name].allocation.tasks_per_user, allocation.tasks_per_user)  # type: ignore[union-attr]
    regrets = {row.name: row.regret for row in comparison}
    assert regrets["drfh"] is None
    assert regrets["drfh, whole tasks"] == fo.regret(fo.solve(KESIDIS, "drfh", integral=True))
    assert regrets["tsf:best-fit:metric=l2"] == fo.regret(expected["tsf:best-fit:metric=l2"], integral=True)
    assert regrets["psdsf:joint:ties=random:seed=3"] == fo.regret(expected["psdsf:joint:ties=random:seed=3"])
    assert "no engine can solve" in comparison["psdsf:joint:ties=random:seed=3"].note
    with pytest.raises(KeyError, match=r'there is no row "drfg" \(did you mean "drfh"\?\)'):
        comparison["drfg"]


def test_one_reference_for_all() -> None:
    """Also for exact rows; the reference itself has no regret."""
    comparison = fo.compare(KESIDIS, notions=["drfh", "efficiency"], schedules=["tsf:first-fit"], reference="efficiency")
    assert {row.regret.notion for row in comparison if row.regret} == {"efficiency"}
    assert comparison["efficiency"].regret.goal == 0  # type: ignore[union-attr]
    assert comparison["tsf:first-fit"].regret == fo.regret(fo.schedule(KESIDIS, "tsf"), "efficiency")


def test_what_has_no_optimum_is_against_the_first_notion() -> None:
    """rpsdsf and allocations of one's own; nothing where no notion is named."""
    own = {"mine": np.array([[20, 0], [0, 20]])}
    comparison = fo.compare(KESIDIS, notions=["psdsf", "drfh"], schedules=["rpsdsf:joint"], allocations=own)
    assert [comparison[name].regret.notion for name in ("rpsdsf:joint", "mine")] == ["psdsf", "psdsf"]  # type: ignore[union-attr]
    assert fo.compare(KESIDIS, notions=[], allocations=own)["mine"].regret is None


def test_allocations_that_are_there_already() -> None:
    """A schedule keeps its kind; others are given. Not of another instance."""
    schedule = fo.schedule(KESIDIS, "drfh", placement="best-fit")
    whole = fo.solve(KESIDIS, "drfh", integral=True)
    comparison = fo.compare(
        KESIDIS, notions="drfh", schedules=[schedule, whole], allocations={"again": schedule, "exact": fo.solve(KESIDIS, "tsf")}
    )
    assert [(row.name, row.kind) for row in comparison] == [
        ("drfh", "exact"),
        ("drfh:best-fit", "greedy"),
        ("drfh:highs", "exact, whole tasks"),
        ("again", "given"),
        ("exact", "given"),
    ]
    assert comparison["drfh:best-fit"].regret == comparison["again"].regret == fo.regret(schedule)
    other = KESIDIS.replace(weights=[1, 2])
    for arguments in ({"schedules": [schedule]}, {"allocations": {"mine": schedule}}):
        with pytest.raises(fo.InvalidInstance, match="of another instance"):
            fo.compare(other, **arguments)


def hard() -> fo.Instance:
    """30 users on 12 servers: the best whole tasks take branch and cut far more than seconds."""
    rng = np.random.default_rng(0)
    return fo.Instance(rng.uniform(50, 99, (12, 3)), rng.uniform(3, 11, (30, 3)))


def test_a_row_that_fails_does_not_stop_the_others() -> None:
    """drf is of one server; a schedule that needs rates; the table says why."""
    comparison = fo.compare(KESIDIS, notions=["drf", "drfh"], schedules=["drf:best-fit", "drfh:best-fit"], integral=True)
    assert [row.name for row in comparison if row.allocation is not None] == ["drfh", "drfh, whole tasks", "drfh:best-fit"]
    assert "defined on one server" in comparison["drf"].message
    assert "defined on one server" in comparison["drf:best-fit"].message
    assert json.loads(json.dumps(comparison.to_dict(), allow_nan=False))["rows"][0]["users"] == []
    assert comparison.to_frame()["tasks of A"].isna().tolist() == [True, True, False, False, True, False]
    assert "drf: " in repr(comparison)


def test_no_error_of_one_row_stops_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that fails in an unexpected way, a placement that raises, a total that no engine certifies: each says so."""

    def broken(*arguments: object) -> int:
        raise OverflowError("too large")

    def uncertified(instance: fo.Instance, notion: Any, **options: Any) -> fo.Allocation:
        name = notion if isinstance(notion, str) else notion.name
        if name == "efficiency":
            raise fo.CertificateError("the answer is not within the tolerance")
        if name == "psdsf":
            raise OverflowError("too large")
        return fo.solve(instance, notion, **options)

    monkeypatch.setattr(comparing, "solve", uncertified)
    schedules: Any = ["drfh:best-fit", ("drfh", broken), "psdsf:joint"]
    comparison = fo.compare(KESIDIS, notions=["psdsf", "drfh", "efficiency"], schedules=schedules)
    assert [row.allocation is not None for row in comparison] == [False, True, False, True, False, True]
    rows = list(comparison)
    assert "OverflowError: too large" in rows[0].message
    assert "not within the tolerance" in rows[2].message
    assert "OverflowError: too large" in rows[4].message
    assert "no task efficiency: the answer is not within the tolerance" in rows[1].note
    assert "no regret against psdsf: failed unexpectedly with OverflowError" in rows[5].note
    assert json.loads(json.dumps(comparison.to_dict(), allow_nan=False))["largest_total"] is None
    print_blocks(Console(), comparison_blocks(comparison, 100))


def test_whole_tasks_found_within_a_time_limit_are_not_thrown_away() -> None:
    """They are a row, not said to be exact; what they reach, the bound and the gap are those that solve reports; regret is against them."""
    instance = hard()
    comparison = fo.compare(instance, notions="drfh", schedules="drfh:best-fit", integral=True, time_limit=2)
    found, greedy = comparison["drfh, whole tasks"], comparison["drfh:best-fit"]
    assert (found.kind, found.violations) == ("whole tasks, best found", ())
    assert "no answer within the time limit of 2 s" in found.note
    assert found.allocation is not None
    assert (found.allocation.tasks == np.round(found.allocation.tasks)).all()
    shares = found.allocation.tasks_per_user * (instance.demands / instance.total_capacity).max(axis=1)
    details = found.allocation.details
    assert 0 < shares.min() <= details["bound"] * (1 + 1e-9)
    assert details["value"] == pytest.approx(shares.min())
    assert details["gap"] == pytest.approx((details["bound"] - shares.min()) / details["bound"], abs=1e-12)
    assert greedy.regret is not None
    assert (greedy.regret.whole, greedy.regret.best_found, greedy.regret.gap) == (True, True, details["gap"])
    assert greedy.allocation is not None
    assert details["bound"] >= greedy.allocation.shares.min()
    assert greedy.regret.level == pytest.approx(shortfall(shares.min(), greedy.allocation.shares.min()))
    assert "best whole tasks found for drfh" in greedy.note
    entry = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))["rows"][2]["regret"]
    assert (entry["best_found"], entry["gap"]) == (True, details["gap"])
    console = Console(width=100, file=io.StringIO())
    print_blocks(console, comparison_blocks(comparison, console.width))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert re.search(r"drfh, whole tasks +best found", text)
    assert re.search(r"drfh:best-fit +drfh, best found .* %\s*$", text, re.MULTILINE)
    assert "not proved to be an optimum" in " ".join(text.split())
    comparison.plot().draw_without_rendering()
    alone = fo.regret(greedy.allocation, integral=True, time_limit=2)
    assert alone.best_found
    assert "best found of whole tasks" in repr(alone)


def test_no_whole_tasks_within_a_time_limit_is_a_row_that_failed() -> None:
    """Then the schedule is measured against divisible tasks, and says so."""
    instance = hard()
    comparison = fo.compare(instance, notions=[], schedules="drfh:best-fit", integral=True, time_limit=1e-6)
    row = comparison["drfh:best-fit"]
    assert row.regret is None
    assert row.note.startswith("no regret against drfh: no answer within")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"notions": ["drff"]}, r'there is no notion "drff" \(did you mean "drf"\?\)'),
        ({"notions": ["drfh:x"]}, r'"drfh:x": "x" is no option; write option=value'),
        ({"notions": [("drfh", "x")]}, "a notion is"),
        ({"notions": ["proportional:alfa=2"]}, r'takes no option "alfa" \(did you mean "alpha"\?\)'),
        ({"schedules": ["drfh:bestfit"]}, r'there is no placement "bestfit" \(did you mean "best-fit"\?\)'),
        ({"schedules": ["drf-h"]}, 'there is no criterion "drf-h"'),
        ({"schedules": ["drfh:best-fit:metrik=l2"]}, r'takes no option "metrik" \(did you mean "metric"\?\)'),
        ({"schedules": ["drfh:best-fit:metric=l9"]}, 'best-fit has no metric "l9"; use l1, l2, cosine, dot or tightest'),
        ({"schedules": ["drfh:first-fit:metric=l2"]}, '"metric" is an option of the placement "best-fit"'),
        ({"schedules": ["drfh:first-fit:ties=randm"]}, r'ties cannot be "randm" \(did you mean "random"\?\)'),
        ({"schedules": [{"placement": "best-fit", "metric": ["l2"]}]}, "best-fit has no metric"),
        ({"schedules": [7]}, "a schedule is 7"),
        ({"schedules": [{"sharing": "tdm"}]}, "sharing is the same for all rows"),
        ({"notions": "drff"}, 'there is no notion "drff"'),
        ({"sharing": "both"}, 'there is no sharing "both"'),
        ({"reference": "best"}, 'there is no notion "best"'),
        ({"time_limit": 0}, "time_limit is 0; give a number of seconds > 0"),
        ({"allocations": {"mine": [[1, 2]]}}, r'the shape of tasks of the allocation "mine" is \(1, 2\), expected \(2, 2\)'),
        (
            {"allocations": {"mine": [[1, -2], [0, 0]]}},
            r'the number of tasks in "mine" of "A" for "right" is -2; it must be finite and >= 0',
        ),
    ],
)
def test_what_no_row_can_be_made_of(arguments: dict[str, Any], message: str) -> None:
    """Said at once, before anything is solved."""
    with pytest.raises((fo.InvalidInstance, fo.Unsupported), match=message):
        fo.compare(KESIDIS, **arguments)


def test_nothing_to_compare() -> None:
    """An empty table says so."""
    assert repr(fo.compare(KESIDIS, notions=[])).splitlines()[1:] == ["nothing to compare"]


def test_a_warning_names_its_row(caplog: pytest.LogCaptureFixture) -> None:
    """Each server has the largest of one resource and a quarter of the other: not one slot of 2."""
    instance = fo.Instance([[4, 1], [1, 4]], [[1.0, 1.0], [2.0, 0.5]], users=["A", "B"])
    comparison = fo.compare(instance, schedules=["drfh:first-fit", "drfh:slots:slots=2"])
    row = comparison["drfh:slots:slots=2"]
    assert row.allocation is not None
    assert row.allocation.details["fits_nowhere"] == ["A", "B"]
    assert [record.getMessage() for record in caplog.records] == [
        "drfh:slots:slots=2: a task of A and B needs more slots than any server has where it may run; such tasks do not run"
    ]


def test_not_an_instance() -> None:
    """The path of one, for example."""
    with pytest.raises(fo.InvalidInstance, match="expected an Instance, got str"):
        fo.compare("cluster.yaml")  # type: ignore[arg-type]


def test_many_users_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Envy in blocks of users is that of all at once."""
    rng = np.random.default_rng(5)
    instance = fo.Instance(rng.uniform(5, 9, (3, 2)), rng.uniform(0.1, 1, (40, 2)), weights=rng.uniform(1, 2, 40))
    schedule = fo.schedule(instance, "tsf")
    whole = largest_envy(schedule)
    monkeypatch.setattr("fairopt.analysis.measures._BLOCK", 7 * 40)
    assert largest_envy(schedule) == whole
    assert whole.tasks == pytest.approx(envy_by_hand(instance, schedule.tasks))


# One's own -----------------------------------------------------------------------------------------------------------------------


def test_infeasible_allocations_are_rows() -> None:
    """Each limit that is not kept, the worst first, with how much of how much."""
    instance = KESIDIS.replace(eligibility=[[True, False], [True, True]], tasks=[np.inf, 10])
    row = fo.compare(instance, allocations={"mine": [[20, 1], [5, 25]]})["mine"]
    assert [str(violation) for violation in row.violations] == [
        "tasks of A @ right, where it may not run: 1, allowed 0",
        "tasks of B: 30, allowed 10",
        "memory @ left: 45, allowed 30",
        "memory @ right: 126, allowed 100",
        "cpu @ left: 105, allowed 100",
    ]
    assert row.regret is not None
    assert repr(row.allocation).startswith("Allocation(given, sharing rdm, given: A 21, B 30 tasks; excess ")
    labels = [text.get_text() for text in fo.compare(instance, allocations={"mine": [[20, 1], [5, 25]]}).plot().axes[1].get_yticklabels()]
    assert labels[:3] == ["cpu", "drfh", "mine (not feasible)"]
    rounded = fo.compare(KESIDIS, allocations={"mine": fo.solve(KESIDIS, "drfh").tasks * (1 + 1e-7)})["mine"]
    assert rounded.violations == ()


WIDE = "user,right,left\nB,20,0\nA,1,19\n"
LONG = "server,user,tasks\n"


def test_a_file_may_name_hosts(tmp_path: Path) -> None:
    """What is held on the hosts of a row is held on the row, in fractions too; the label of a row is not taken for a host."""
    cluster = fo.Instance([[9], [9]], [[1]], counts=[3, 1], hosts=["cn[1,3,5]", "a"], servers=["a", "cn2"], users=["u"])
    path = tmp_path / "held.csv"
    path.write_text("user,server,tasks\nu,cn1,1/3\nu,cn5,1/3\nu,a,1\nu,cn2,2\n")
    assert read(path, cluster).tolist() == [[Fraction(5, 3), 2]]
    path.write_text("user,server,tasks\nu,cn4,1\n")
    with pytest.raises(fo.InvalidInstance, match='there is no server "cn4"'):
        read(path, cluster)


def test_three_forms_of_one_file(tmp_path: Path) -> None:
    """Wide, long, and as an allocation is written; labels in any order."""
    path = tmp_path / "mine.csv"
    for text in (WIDE, "user,server,tasks\nB,right,20\nA,left,19\nA,right,1\n", "user,tasks,server\nA,1,right\nB,20,right\nA,19,left\n"):
        path.write_text(text)
        np.testing.assert_array_equal(read(path, KESIDIS), [[19, 1], [0, 20]])
    allocation = fo.schedule(KESIDIS, "drfh", placement="best-fit")
    path.write_text(allocation.to_frame().to_csv())
    np.testing.assert_array_equal(read(path, KESIDIS), allocation.tasks)
    odd = fo.Instance([[1], [1]], [[1]], users=["A"], servers=["server", "tasks"])  # whose wide file looks long
    path.write_text("user,server,tasks\nA,0.25,0.5\n")
    np.testing.assert_array_equal(read(path, odd), [[0.25, 0.5]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user,left,wright\nA,1,1\nB,1,1\n", r'column "wright": there is no "wright" \(did you mean "right"\?\)'),
        ("user,left\nA,1\nB,1\n", 'there is no column for "right"; add it'),
        ("user,left,right\nA,1,1\n", 'there is no row for user "B"; add it'),
        ("user,left,right\nA,1,1\nC,1,1\nB,1,1\n", 'line 3: there is no user "C"'),
        ("user,left,right\nA,1,1\nB,x,1\n", 'line 3, column "left": expected a number, found the text "x"'),
        ("user,left,right\nA,1,1\nB,1,-1\n", 'line 3, column "right": expected a finite number of tasks >= 0, found -1'),
        ("user,left,right\nA,inf,1\nB,1,1\n", 'line 2, column "left": expected a finite number of tasks >= 0, found inf'),
        ("user,server,tasks\nA,left,1\nA,lefd,1\n", r'line 3, column "server": there is no server "lefd" \(did you mean "left"\?\)'),
        ("user,server,tasks\na,left,1\n", 'line 2, column "user": there is no user "a"'),
        ("user,server,tasks\nA,left,1\nA,left,2\n", 'line 3: "A" on "left" has a row already, on line 2; give their sum in one row'),
        ("user,server,tasks\nA,left,nan\n", 'line 2, column "tasks": expected a finite number of tasks >= 0, found nan'),
        ("user,server,tasks\nA,left,\n", 'line 2, column "tasks": the cell is empty'),
    ],
)
def test_wrong_files_are_refused_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    """From Python and, with exit status 2, on the command line."""
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(fo.InvalidInstance, match=message):
        fo.compare(KESIDIS, allocations={"mine": path})
    fo.save(KESIDIS, tmp_path / "cluster.json")
    assert "mine.csv" in run("compare", tmp_path / "cluster.json", "--allocation", path, status=2).output


# The command line ----------------------------------------------------------------------------------------------------------------


def test_table_names_everything(tmp_path: Path) -> None:
    """Tasks of each user, measures, regrets, and what is wrong with single rows."""
    (tmp_path / "mine.csv").write_text("user,server,tasks\nframework-1,server-1,30\n")
    arguments = ("--notions", "drfh,drf", "--schedules", "drfh:best-fit,psdsf:joint", "--allocation", tmp_path / "mine.csv", "--integral")
    for width in (80, 120):
        output = run("compare", EXAMPLES / "kesidis.yaml", *arguments, width=width).output
        assert max(map(len, output.splitlines())) <= width
        lines = [line.split() for line in output.splitlines()]
        assert ["tasks", "kind", "framework-1", "framework-2", "all", "seconds"] in lines
        assert any(line[:5] == ["drfh:best-fit", "greedy", "21", "21", "42"] for line in lines)
        assert any(line[:6] == ["drfh,", "whole", "tasks", "exact", "21", "21"] for line in lines)
        assert any(line[:3] == ["drfh:best-fit", "drfh,", "whole"] for line in lines)
        text = " ".join(output.split())
        assert 'drf: "drf" is defined on one server' in text
        assert "mine: not feasible: cpu @ server-1: 150, allowed 100" in text or "mine: not feasible: resource-1 @ server-1: 150" in text


def test_many_users_are_summarised() -> None:
    """Lowest, median and highest instead of 8 columns that do not fit."""
    lines = [line.split() for line in run("compare", EXAMPLES / "gpu-lab", width=80).output.splitlines()]
    assert ["tasks", "kind", "lowest", "median", "highest", "all", "seconds"] in lines
    assert ["user", "weight", "drfh"] in lines
    assert ["vision", "2", "4.8"] in lines
    assert "user  " not in run("compare", EXAMPLES / "gpu-lab", width=140).output


def test_all_users_in_rows(tmp_path: Path) -> None:
    """20 of them, and how many more there are; with --all every one; in Markdown and LaTeX, users are rows, too, where there are many."""
    many = fo.Instance([[40.0]], np.ones((25, 1)), users=[f"team-{n:02}" for n in range(25)])
    fo.save(many, tmp_path / "many.yaml")
    rows = [line.split() for line in run("compare", tmp_path / "many.yaml", width=80).output.splitlines()]
    assert sum(line[:1] == [f"team-{n:02}"] for n in range(25) for line in rows) == 20
    assert ["and", "5", "more", "users", "(--all", "shows", "them)"] in rows
    rows = [line.split() for line in run("compare", tmp_path / "many.yaml", "--all", width=80).output.splitlines()]
    assert sum(line[:1] == [f"team-{n:02}"] for n in range(25) for line in rows) == 25
    run("compare", tmp_path / "many.yaml", "--notions", "drfh,tsf", "-o", tmp_path / "many.md", width=80)
    lines = (tmp_path / "many.md").read_text().splitlines()
    assert lines[0] == "| of each allocation | drfh | tsf |"
    assert "| tasks of team-07 | 1.6 | 1.6 |" in lines


def test_json_and_csv_are_the_comparison(tmp_path: Path) -> None:
    """With --json, --csv, and by the suffix of --output."""
    arguments = ("compare", EXAMPLES / "kesidis.yaml", "--schedules", "drfh:best-fit")
    data = json.loads(run(*arguments, "--json").stdout)
    assert [row["name"] for row in data["rows"]] == ["drfh", "drfh:best-fit"]
    greedy = data["rows"][1]
    assert greedy["users"][0] == {"name": "framework-1", "tasks": 21.0, "share": pytest.approx(21 / 26)}
    assert greedy["regret"]["level"] == pytest.approx(1 - 21 / (65 / 3))
    assert greedy["regret"]["goal"] is None
    assert data["largest_total"] == pytest.approx(130 / 3)
    table = run(*arguments, "--csv").stdout.splitlines()
    assert table[0].startswith("allocation,kind,tasks,smallest_share,use of ")
    assert table[0].endswith(",tasks of framework-1,tasks of framework-2,share of framework-1,share of framework-2,name")
    assert len(table) == 3
    for name in ("out.csv", "out.json", "out.txt"):
        assert run(*arguments, "-o", tmp_path / name).stdout == ""
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == table[0]
    assert json.loads((tmp_path / "out.json").read_text())["rows"][1]["regret"] == greedy["regret"]
    assert (tmp_path / "out.txt").read_text().startswith("2 allocations of 2 users, 2 servers")


def test_failures_stand_below_the_table_and_in_the_heading() -> None:
    """How many of how many, and why the others have no row, before the columns are explained."""
    lines = run("compare", EXAMPLES / "kesidis.yaml", "--notions", "drf,drfh,tsf").output.splitlines()
    assert lines[0] == "2 of 3 allocations of 2 users, 2 servers; 1 failed"
    why, measures = (next(j for j, line in enumerate(lines) if line.startswith(word)) for word in ("drf: ", "measures"))
    assert next(j for j, line in enumerate(lines) if line.startswith("tsf")) < why < measures
    assert sum(line.startswith("drf: ") for line in lines) == 1


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--notions", "drff"], 2, 'there is no notion "drff"'),
        (["--schedules", "drfh:best"], 2, 'there is no placement "best"'),
        (["--notions", ","], 2, "there is nothing to compare"),
        (["--schedules", "drfh:best-fit:metrik=l2"], 2, 'did you mean "metric"'),
        (["--allocation", "no.csv"], 2, "there is no file no.csv"),
        (["--plot", "out.gif"], 2, "cannot tell the format of the picture"),
        (["-o", "no/out.csv"], 2, "there is no folder no"),
        (["--notions", "drf"], 3, '"drf" is defined on one server'),
    ],
)
def test_status_of_bad_input(arguments: list[str], status: int, message: str) -> None:
    """2, and 3 where no row could be computed."""
    output = run("compare", EXAMPLES / "kesidis.yaml", *arguments, status=status).output
    assert message in " ".join(output.replace("│", " ").split())


# Pictures ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("users", "servers", "sharing"), [(2, 2, "rdm"), (10, 3, "rdm"), (10, 3, "tdm"), (40, 12, "rdm")])
def test_picture_shows_every_allocation(users: int, servers: int, sharing: Any) -> None:
    """A bar a user and allocation or a mark of them; a stack of server rows as long as the use."""
    instance = uniform_instance(users, servers, seed=users, capacities=(3, 9)).replace(resources=["$cpu$", "memory"])
    comparison = fo.compare(instance, notions=["drfh", "bbf"], schedules=["drfh:best-fit", "tsf:first-fit"], sharing=sharing)
    figure = comparison.plot()
    left, right = figure.axes
    things = 1 if sharing == "tdm" else 2
    if users <= 10:
        assert len([patch for patch in left.patches if isinstance(patch, Rectangle)]) == 3 * users
        widths = sorted(patch.get_width() for patch in left.patches if isinstance(patch, Rectangle))
        held = [row.allocation.tasks_per_user for row in comparison if row.allocation is not None]
        np.testing.assert_allclose(widths, np.sort(np.concatenate(held)))
    else:
        named = {line.get_label(): line for line in left.lines}
        order = [instance.users.index(label.get_text()) for label in left.get_yticklabels()]
        assert sorted(order) == list(range(users))
        for row in comparison:
            if row.allocation is not None:
                np.testing.assert_allclose(np.asarray(named[row.name].get_xdata(), float), row.dominant_shares[order])
        assert left.get_title(loc="left") == "Share of each user"
    layers = servers if servers <= 10 else 1
    drawn = [patch.get_width() for patch in right.patches if isinstance(patch, Rectangle)]
    assert len(drawn) == 3 * things * (1 + layers)
    used = sum(sum(row.use.values()) for row in comparison if row.allocation is not None)
    assert sum(drawn) == pytest.approx(used + 3 * things)
    assert [text.get_text() for text in right.get_yticklabels()][1:4] == ["drfh", "drfh:best-fit", "tsf:first-fit"]
    figure.draw_without_rendering()


def test_marks_of_an_infeasible_allocation_do_not_overlap() -> None:
    """7 times the capacity: a few round percentages instead of quarters."""
    axis = fo.compare(KESIDIS, allocations={"mine": [[100, 90], [10, 5]]}).plot().axes[1]
    axis.figure.draw_without_rendering()  # type: ignore[union-attr]
    low, high = axis.get_xlim()
    marks = [place for place in axis.get_xticks() if low <= place <= high]
    assert high > 5
    assert 3 <= len(marks) <= 7
    assert min(np.diff(marks)) > 0.1 * high


def test_plot_option_writes_a_picture(tmp_path: Path) -> None:
    """Beside the table."""
    run("compare", EXAMPLES / "kesidis.yaml", "--schedules", "drfh:best-fit", "--plot", tmp_path / "out.svg")
    assert "drfh:best-fit" in (tmp_path / "out.svg").read_text()


def test_who_takes_part() -> None:
    """Users who cannot run, demand nothing or have no tasks are not compared."""
    instance = fo.Instance(
        [[1.0]], [[1.0], [1.0], [0.0], [1.0]], eligibility=[[True], [False], [True], [True]], tasks=[np.inf, np.inf, 5, 0]
    )
    assert takes_part(instance).tolist() == [True, False, False, False]
    row = fo.compare(instance)["drfh"]
    assert (row.jain, row.smallest_share) == (1, 1)


def test_task_efficiency_in_a_tree_is_within_the_limits_of_its_queues() -> None:
    """10 cores, at most 4 for a: 6 tasks of b and 2 of a, of 2 cores each. Weights and guarantees of queues do not bound the total."""
    queues = [fo.Queue("a", weight=3, guarantee={"cpu": 2}, limit={"cpu": 4}), fo.Queue("b", weight=2)]
    instance = fo.Instance([[10]], [[2], [1]], tasks=[5, 6], resources=["cpu"], queues=queues, queue_of=["a", "b"])
    comparison = fo.compare(instance, allocations={"mine": [[1], [5]]})
    assert comparison.largest_total == pytest.approx(8)
    assert comparison["mine"].efficiency == pytest.approx(6 / 8)


def test_rows_by_queue() -> None:
    """One row for each allocation and queue, as the allocation has them; the page of a report shows the tree."""
    instance = fo.load(EXAMPLES / "research-queues.yaml")
    comparison = fo.compare(instance, notions=["drfh", "drfh:guarantees=clamp"])
    frame = comparison.to_frame(by="queue")
    assert list(frame.index.get_level_values("allocation").unique()) == ["drfh", "drfh:guarantees=clamp"]
    for row in comparison:
        assert row.allocation is not None
        assert frame.loc[row.name]["tasks"].tolist() == pytest.approx(row.allocation.to_frame(by="queue")["tasks"].tolist())
    with pytest.raises(fo.Unsupported, match='there are no rows by "server"'):
        comparison.to_frame(by="server")  # type: ignore[arg-type]


def test_the_regret_of_queues() -> None:
    """In the table by queue, in JSON, and as the largest on the page: of the exact row 0, of the schedule what fo.regret says."""
    instance = fo.load(EXAMPLES / "research-queues.yaml")
    comparison = fo.compare(instance, notions=["drfh"], schedules=["drfh:first-fit"], reference="drfh")
    frame, found = comparison.to_frame(by="queue"), comparison["drfh:first-fit"].regret
    assert found is not None
    assert frame.loc["drfh"]["regret"].abs().max() == 0
    assert frame.loc["drfh:first-fit"]["regret"].tolist() == found.to_frame(by="queue")["shortfall"].tolist()
    assert comparison.to_frame()["regret queue"]["drfh:first-fit"] == found.queue
    assert found.queue
    queues = {queue["name"]: queue for queue in comparison.to_dict()["rows"][1]["queues"]}
    assert queues[found.worst_queue]["regret"] == found.queue
    page = " ".join(run("compare", EXAMPLES / "research-queues.yaml", "--schedules", "drfh:first-fit", width=140).output.split())
    assert f"% ({found.worst_queue})" in page
    assert "queue: the largest gap of a queue's share." in page


def test_the_picture_by_queue(tmp_path: Path) -> None:
    """Where there are queues; elsewhere the option is refused before anything is solved."""
    result = run("compare", EXAMPLES / "research-queues.yaml", "--plot-queues", tmp_path / "queues.svg")
    assert result.exit_code == 0
    assert "Share of each queue" in (tmp_path / "queues.svg").read_text()
    refused = run("compare", EXAMPLES / "drf.yaml", "--plot-queues", tmp_path / "none.svg", status=2)
    assert "has no queues to draw" in " ".join(refused.output.replace("│", " ").split())


def test_the_page_has_what_each_queue_holds() -> None:
    """Of all queues where they fit, else of those in the root; a missing guarantee is marked."""
    wide = run("compare", EXAMPLES / "research-queues.yaml", width=140).output
    line = next(line for line in wide.splitlines() if line.startswith("queues "))
    assert line.split() == ["queues", "research", "vision", "interns", "language", "teaching", "guests"]
    narrow = run("compare", EXAMPLES / "research-queues.yaml", width=60).output
    line = next(line for line in narrow.splitlines() if line.startswith("queues "))
    assert line.split() == ["queues", "research", "teaching", "guests"]
    assert "!: below its guarantee" in wide
