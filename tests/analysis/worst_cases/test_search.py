"""The search for the worst instance: finds what is known to be bad, tells how bad by numbers that are recomputed here, is repeatable."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.processes import process
from typer.testing import CliRunner, Result

import fairopt as fo
from fairopt.analysis.worst_cases.local_search import ROUND
from fairopt.analysis.worst_cases.small_instances import SmallInstances, simpler
from fairopt.cli import app
from fairopt.instance import FloatArray
from fairopt.reporting.tables import worst_case_blocks

TINY: dict[str, Any] = {"users": 2, "servers": 2, "resources": 1, "capacities": (1, 4), "demands": (1, 4)}


def whole_leximin(instance: fo.Instance) -> list[float]:
    """The best sorted shares of DRFH over all whole allocations, by trying every one: one resource, no limits, weights 1."""
    capacity, demand = instance.capacities[:, 0], instance.demands[:, 0]
    per_server = [
        [x for x in itertools.product(*(range(int(c // d) + 1) for d in demand)) if np.dot(x, demand) <= c] for c in capacity.tolist()
    ]
    shares = demand / capacity.sum()
    return max(sorted((np.sum(parts, axis=0) * shares).tolist()) for parts in itertools.product(*per_server))


def run(*arguments: object, status: int = 0, columns: int = 80) -> Result:
    """Run the command in this process and check its exit status."""
    result = CliRunner().invoke(app, ["worst-case", *map(str, arguments)], env={"COLUMNS": str(columns)})
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


# What is found -------------------------------------------------------------------------------------------------------------------


def test_first_fit_starves_somebody() -> None:
    """c = (2), (1) and d = 1, 2: the first task of user 1 takes the only place for user 2. Regret 1, found and shrunk to this size."""
    worst = fo.worst_case("drfh:first-fit", "drfh", **TINY, tries=60)
    assert (worst.value, worst.found_value, worst.stopped, worst.regret.whole) == (1, 1, "", True)
    assert worst.schedule.tasks_per_user.min() == 0
    assert worst.exact.tasks_per_user.min() > 0
    assert worst.instance.users == ("user-1", "user-2")
    assert worst.tries <= 60


@pytest.mark.parametrize("schedule", ["drfh:first-fit", "drfh:worst-fit"])
def test_the_regret_by_trying_every_allocation(schedule: str) -> None:
    """Shortfall position by position, against the best sorted shares that there are; the instance alone is enough to see it."""
    worst = fo.worst_case(schedule, **TINY, tries=30, seed=1)
    own = fo.schedule(worst.instance, "drfh", placement=schedule.partition(":")[2])
    np.testing.assert_array_equal(own.tasks, worst.schedule.tasks)
    shares = np.sort(own.tasks_per_user * worst.instance.demands[:, 0] / worst.instance.total_capacity[0])
    best = np.array(whole_leximin(worst.instance))
    np.testing.assert_allclose(np.sort(worst.exact.shares), best, rtol=1e-9)
    expected = max((a - b) / max(a, b) if a != b else 0.0 for a, b in zip(best, shares, strict=True))
    assert worst.value == pytest.approx(expected, abs=1e-8)
    assert worst.value > 0.3


def test_it_is_minimal() -> None:
    """No single step keeps 0.9 of the regret that was found within the ranges asked for."""
    worst = fo.worst_case("drfh:best-fit", **TINY | {"users": 3}, vary=["weights", "constraints", "counts"], tries=25)
    assert worst.value >= 0.9 * worst.found_value > 0
    size = SmallInstances(3, 2, 1, (1, 4), (1, 4))
    for candidate in simpler(worst.instance):
        if size.holds(candidate):
            own = fo.regret(fo.schedule(candidate, "drfh", placement="best-fit"), "drfh", integral=True)
            assert own.worst is not None
            assert own.worst < 0.9 * worst.found_value


def test_plain_parts_shrink_away() -> None:
    """Weights, constraints and counts that are not needed to be bad are gone."""
    worst = fo.worst_case("drfh:first-fit", **TINY, vary=["weights", "constraints", "counts", "tasks"], tries=60)
    assert worst.value == 1
    assert set(worst.instance.to_dict()["users"][0]) == {"name", "demand"}
    assert set(worst.instance.to_dict()["servers"][0]) == {"name", "capacity"}
    assert (worst.instance.n_users, worst.instance.n_servers) == (2, 2)


def test_an_exact_schedule_has_no_regret() -> None:
    """The optimum of whole tasks as a schedule of one's own: 0 at every try."""

    def optimum(instance: fo.Instance) -> fo.Allocation:
        return fo.solve(instance, "drfh", integral=True)

    worst = fo.worst_case(optimum, "drfh", **TINY, tries=15)
    assert (worst.value, worst.tries, worst.name) == (0, 15, "optimum")


def one_each(instance: fo.Instance) -> FloatArray:
    """User n gets one task on the first server where it fits alone, if nobody is there yet."""
    tasks = np.zeros((instance.n_users, instance.n_servers))
    for n, i in itertools.product(range(instance.n_users), range(instance.n_servers)):
        if tasks[n].sum() == 0 and tasks[:, i].sum() == 0 and (instance.demands[n] <= instance.capacities[i]).all():
            tasks[n, i] = 1
    return tasks


def test_a_function_of_ones_own() -> None:
    """An array of tasks will do; here a server never has tasks of two users."""
    worst = fo.worst_case(one_each, "drfh", users=3, servers=2, resources=1, tries=10, keep=1)
    assert (worst.value, worst.name) == (1, "one_each")
    assert worst.schedule.tasks.sum() < worst.instance.n_users
    np.testing.assert_array_equal(one_each(worst.instance), worst.schedule.tasks)


def test_a_scheduler_of_ones_own_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users who demand nothing of resource 1 are worth nothing to its share: such instances are skipped and counted."""

    class CpuTime(fo.ShareNotion):
        name, title, source = "cpu-time", "Share of the first resource alone", "folklore"

        def share_per_task(self, instance: fo.Instance) -> FloatArray:
            share: FloatArray = instance.demands[:, 0] / instance.total_capacity[0]
            return share

    def emptiest(user: int, free: FloatArray, demand: FloatArray, fits: Any) -> int:
        return int(fits[free[fits].sum(axis=1).argmax()])

    monkeypatch.setitem(fo.NOTIONS, "cpu-time", CpuTime)
    monkeypatch.setitem(fo.PLACEMENTS, "emptiest", emptiest)
    worst = fo.worst_case("cpu-time:emptiest", tries=20, integral=False)
    assert 0 < worst.failed < 20
    assert (worst.found.demands[:, 0] > 0).all()
    assert worst.value > 0
    with pytest.raises(fo.InvalidInstance, match="refuses every one of 25 instances"):
        fo.worst_case("cpu-time:emptiest", tries=20, demands=(0, 4), users=40, capacities=(400, 400))


def test_other_goals_and_measures() -> None:
    """The theorem of PS-DSF, of divisible tasks; a sum; tasks in all."""
    psdsf = fo.worst_case("psdsf:joint", users=2, tries=10)
    assert not psdsf.regret.whole
    assert psdsf.regret.condition is not None
    assert psdsf.value == psdsf.regret.condition > 0
    sums = fo.worst_case("drfh:first-fit", "efficiency", users=2, tries=10, measure="goal")
    assert sums.value == sums.regret.goal == pytest.approx(sums.regret.total)
    assert sums.value > 0
    fluid = fo.worst_case("drfh:first-fit", "drfh", integral=False, measure="level", users=2, tries=10)
    assert fluid.value == fluid.regret.level
    assert not fluid.regret.whole


# Repeatable ----------------------------------------------------------------------------------------------------------------------


def test_a_seed_is_a_search_with_any_number_of_workers() -> None:
    """The same instance and the same numbers; with another seed others."""
    options: dict[str, Any] = {"users": 2, "capacities": (12, 24), "integral": False, "tries": ROUND + 30}
    one = fo.worst_case("drfh:first-fit", **options)
    two = fo.worst_case("drfh:first-fit", **options, workers=2)
    other = fo.worst_case("drfh:first-fit", **options | {"tries": 30}, seed=1)
    first, second = ({key: value for key, value in found.to_dict().items() if key not in ("seconds", "time_s")} for found in (one, two))
    assert first == second
    assert one.tries == ROUND + 30
    assert one.found.to_dict() != other.found.to_dict()


def test_local_search_finds_worse_than_drawing_at_random() -> None:
    """The same number of instances of divisible tasks, several seeds, before shrinking."""
    options: dict[str, Any] = {"users": 2, "capacities": (12, 24), "demands": (1, 4), "integral": False, "tries": 80, "keep": 1}
    found = {
        local: np.mean([fo.worst_case("drfh:first-fit", **options, seed=seed, local=local).found_value for seed in range(3)])
        for local in (True, False)
    }
    assert found[True] > found[False]


def test_progress_is_told_and_the_search_can_be_ended() -> None:
    """Every instance counts once; the worst so far is the answer, not shrunk."""
    told: list[tuple[int, float]] = []
    worst = fo.worst_case(
        "drfh:first-fit",
        users=2,
        tries=50,
        integral=False,
        done=lambda more, value: told.append((more, value)),
        stop=lambda: len(told) >= 7,
    )
    assert sum(more for more, _ in told) == worst.tries == 7
    assert [value for _, value in told] == sorted(value for _, value in told)
    assert worst.stopped == "interrupted"
    assert worst.value == worst.found_value == told[-1][1]
    assert "stopped: interrupted" in repr(worst)


def test_a_time_limit_ends_the_search() -> None:
    """Soon after; with no time at all there is nothing to tell."""
    fo.worst_case("drfh:first-fit", users=2, tries=1, capacities=(12, 24), integral=False)  # loading engines is not what is timed
    started = time.process_time()
    worst = fo.worst_case("drfh:first-fit", users=2, tries=10**6, capacities=(12, 24), integral=False, time_limit=1.0)
    assert worst.stopped == "time limit"
    assert 0 < worst.tries < 10**6
    assert time.process_time() - started < 60
    with pytest.raises(fo.NoSolution, match="give more time"):
        fo.worst_case("drfh:first-fit", time_limit=1e-9)


# Bad input -----------------------------------------------------------------------------------------------------------------------


def too_much(instance: fo.Instance) -> FloatArray:
    """Everybody alone on everything."""
    return np.floor(instance.rates) + 1


@pytest.mark.parametrize(
    ("schedule", "options", "message"),
    [
        ("drfh:bestfit", {}, 'no placement "bestfit"'),
        ("drhf:best-fit", {}, 'no criterion "drhf"'),
        ("rpsdsf:joint", {}, "name the notion"),
        (one_each, {}, "name the notion"),
        ("drfh:best-fit", {"notion": "dfrh"}, 'no notion "dfrh"'),
        ("drfh:best-fit", {"notion": "drf"}, "defined on one server"),
        ("drfh:best-fit", {"measure": "wors"}, 'no measure "wors"'),
        ("drfh:best-fit", {"measure": "goal"}, 'has no number "goal"; it has worst, level, leximin, largest, user, total'),
        ("drfh:best-fit", {"users": 0}, "users is 0"),
        ("drfh:best-fit", {"tries": 1.5}, r"tries is 1\.5"),
        ("drfh:best-fit", {"seed": -1}, "seed is -1"),
        ("drfh:best-fit", {"jobs": 0}, "workers is 0"),
        ("drfh:best-fit", {"keep": 0}, "keep_regret is 0"),
        ("drfh:best-fit", {"time_limit": 0}, "time_limit is 0"),
        ("drfh:best-fit", {"vary": ["weight"]}, 'vary is "weight" .did you mean "weights"'),
        ("drfh:best-fit", {"capacities": (3, 2)}, r"capacities is \(3, 2\)"),
        ("drfh:best-fit", {"capacities": 4}, "capacities is 4; give the smallest and the largest"),
        ("drfh:best-fit", {"time_limit": "x"}, "time_limit is 'x'"),
        ("drfh:best-fit", {"keep": "x"}, "keep_regret is 'x'"),
        ("drfh:best-fit", {"vary": "weights"}, r'vary is the word "weights"; give a list, such as \["weights"\]'),
        ("drfh:best-fit:metrik=l2", {}, 'no option "metrik" .did you mean "metric"'),
        ("drfh:best-fit", {"demands": (0, 0)}, r"demands is \(0, 0\)"),
        ("psdsf:joint", {"integral": True}, "whole"),
        (too_much, {"notion": "drfh"}, "exceeds a limit"),
        (lambda instance: [1.0], {"notion": "drfh"}, r"tasks of shape \(1,\)"),
        (lambda instance: np.full((3, 2), 1e-3), {"notion": "drfh"}, "returned parts of tasks"),
        (lambda instance: np.full((3, 2), np.nan), {"notion": "drfh"}, "return finite numbers"),
        (3, {"notion": "drfh"}, "a schedule is 3"),
        (fo.schedule(fo.Instance([[1]], [[1]])), {}, "an allocation of one instance"),
    ],
)
def test_bad_input_says_what_to_do(schedule: Any, options: dict[str, Any], message: str) -> None:
    """Before the search, in one message."""
    with pytest.raises(fo.FairoptError, match=message):
        fo.worst_case(schedule, **options)


# The command ---------------------------------------------------------------------------------------------------------------------


def test_the_command_prints_and_writes_the_instance(tmp_path: Path) -> None:
    """What is written loads, and is as bad as it says."""
    arguments = ("drfh:first-fit", "--users", 2, "--resources", 1, "--capacities", 1, 4, "--demands", 1, 4, "--tries", 60)
    text = run(*arguments, "--instance", tmp_path / "worst.yaml").stdout
    assert "drfh:first-fit against drfh, whole tasks" in text
    assert "A search gives a lower bound" in text
    instance = fo.load(tmp_path / "worst.yaml")
    assert fo.regret(fo.schedule(instance), integral=True).worst == 1
    data = json.loads(run(*arguments, "--json").stdout)
    assert (data["schedule"], data["notion"], data["value"], data["measure"], data["seed"]) == ("drfh:first-fit", "drfh", 1, "worst", 0)
    assert data["instance"] == instance.to_dict()
    assert data == json.loads(run(*arguments, "--json").stdout) | {key: data[key] for key in ("time_s", "seconds")}


def test_the_command_prints_the_counterexample_in_fractions() -> None:
    """A counterexample is a proof: what is printed is enough to compute the regret again, without a float."""
    arguments = ("drfh:first-fit", "--users", 2, "--servers", 1, "--tries", 10, "--divisible", "--exact")
    data = json.loads(run(*arguments, "--json").stdout)
    own, best = ([[Fraction(x) for x in row] for row in data["tasks"]["in_fractions"][each]] for each in ("schedule", "exact"))
    assert [[float(x) for x in row] for row in best] == data["tasks"]["exact"]
    capacity = [Fraction(value) for value in data["instance"]["servers"][0]["capacity"].values()]
    demands = [[Fraction(value) for value in user["demand"].values()] for user in data["instance"]["users"]]
    shares: list[list[Fraction]] = []
    for (a,), (b,) in (own, best):
        used = [a * x + b * y for x, y in zip(*demands, strict=True)]
        assert all(part <= whole for part, whole in zip(used, capacity, strict=True))
        shares.append(sorted(x * max(d / c for d, c in zip(row, capacity, strict=True)) for x, row in zip((a, b), demands, strict=True)))
    short = [(y - x) / max(x, y) for x, y in zip(*shares, strict=True)]
    assert Fraction(data["exact"]) == max(short) > 0
    assert any(row[0].denominator > 1 for row in best)
    text = run(*arguments).stdout
    for n, (x,) in enumerate(best):
        assert f"{x} of user-{n + 1} on server-1" in text
        assert re.search(rf"^user-{n + 1} .* {x} *$", text, re.MULTILINE)
    assert "Proved in fractions" in text
    assert "Not proved" not in text


def test_the_command_says_what_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The theorem of PS-DSF is judged in floats, though both allocations are in fractions; an irrational optimum has not even these."""
    arguments = ("psdsf", "--users", 2, "--servers", 1, "--tries", 3)
    text = " ".join(run(*arguments, "--exact").stdout.split())
    assert "Not proved in fractions: the regret is computed in floating point. In fractions, both allocations keep every limit." in text
    assert re.search(r"\d/\d+ of user-", text.partition("Exact:")[2])
    in_floats = fo.worst_case("psdsf", users=2, servers=1, tries=3)
    assert in_floats.in_fractions is None
    monkeypatch.setattr(fo, "worst_case", lambda *_, **__: in_floats)
    text = " ".join(run(*arguments, "--exact").stdout.split())
    assert "Not proved in fractions: the regret is computed in floating point. A search" in text
    text = run(*arguments).stdout
    assert "roved in fractions" not in text
    assert "/" not in text.partition("Largest")[0]


@pytest.mark.parametrize("columns", [80, 120])
def test_lines_fit(columns: int) -> None:
    """With all that an instance may have."""
    arguments = itertools.chain.from_iterable(("--vary", word) for word in ("weights", "constraints", "counts", "tasks"))
    options = ("--divisible", "--tries", 20, "--keep-regret", 1, *arguments)
    text = run("drfh:worst-fit", *options, columns=columns).stdout
    assert max(map(len, text.splitlines())) <= columns


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("drfh:bestfit",), "no placement"),
        (("drfh:best-fit", "--vary", "weight"), '--vary is "weight" (did you mean "weights"?); give any of weights, constraints'),
        (("drfh:best-fit", "--instance", "worst.txt"), "ends in .yaml or .json"),
        (("drfh:best-fit", "--instance", "nowhere/worst.yaml"), "there is no folder"),
    ],
)
def test_bad_options_are_status_2(arguments: tuple[str, ...], message: str) -> None:
    """One message, no traceback."""
    assert message in " ".join(run(*arguments, status=2).stderr.replace("│", " ").split())


TELLING = """

from rich.progress import Progress
from fairopt.cli import main

update = Progress.update

def tell(self, *args, **kwargs):
    update(self, *args, **kwargs)
    print("tried", flush=True)

Progress.update = tell
main()
"""  # the command, which says on stdout when it has something


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_gives_the_worst_so_far(jobs: int) -> None:
    """One line about it, the answer on stdout, status 0."""
    program = (sys.executable, "-c", TELLING)
    options = ("--divisible", "--json", "--capacities", "12", "24", "--tries", "1000000", "--workers", str(jobs))
    with process(*program, "worst-case", "drfh:first-fit", *options) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "tried\n"
        time.sleep(0.1)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: workers hear it too
        out, err = running.communicate(timeout=180)
    assert running.returncode == 0, err
    found = json.loads(out[out.index("{") :])
    assert found["stopped"] == "interrupted"
    assert 0 < found["tries"] < 10**6
    assert err.startswith("interrupted:")
    assert "Traceback" not in err


def test_demands_and_speeds_by_server() -> None:
    """The regret is in work, and computed again from the instance that is found; the table says each number of each server."""
    size: dict[str, Any] = {"users": 2, "servers": 2, "resources": 1, "capacities": (4, 6), "demands": (1, 3)}
    worst = fo.worst_case("drfh:best-fit", **size, vary=["demands-by-server", "speeds"], tries=6, keep_regret=1.0)
    assert worst.found.differs_by_server
    assert worst.found.speeds_given is not None
    assert worst.instance.n_servers == 2
    again = fo.regret(fo.schedule(worst.instance, "drfh", placement="best-fit"), exact=fo.solve(worst.instance, "drfh", integral=True))
    assert again.worst == pytest.approx(worst.value)
    assert worst.value > 0.1
    text = "\n".join(map(str, worst_case_blocks(worst)))
    assert "on server-1, server-2, in this order" in text
