"""The audit as an object, and as a command: order, options, who is left out, what cannot be judged, and how it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from instances import uniform_instance
from reference import witnesses
from support.deadlines import slow_clock
from typer.testing import CliRunner, Result

import fairopt as fo
from fairopt.analysis import rerun
from fairopt.analysis.measures import violations
from fairopt.analysis.properties import case, pareto
from fairopt.analysis.rerun import given
from fairopt.cli import app
from fairopt.processes.crew import Crew

EXAMPLES = Path(__file__).parents[2] / "examples"
PAPER = EXAMPLES / "psdsf-figure-1.yaml"
POOL = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], servers=["pool"], resources=["cpu", "memory"])
ORDER = [
    *("sharing-incentive", "envy-freeness", "pareto", "bottleneck-fairness", "single-resource-fairness"),
    *("population-monotonicity", "strategy-proofness", "no-justified-complaints", "psdsf", "max-min"),
]
QUICK = [name for name in ORDER if name != "strategy-proofness"]


def test_all_properties_in_order() -> None:
    """A mapping, with every promise of the notion's page beside its verdict."""
    told: list[str] = []
    audit = fo.audit(fo.solve(POOL, "drf"), effort=10, done=told.append)
    assert list(audit) == told == ORDER
    assert len(audit) == 10
    assert {name for name in audit if audit[name].promised} == {promise.value for promise in fo.NOTIONS["drf"].satisfies}
    assert audit["strategy-proofness"].searched == 10
    assert "a search, not a proof" in audit["strategy-proofness"].statement
    assert audit.violated == ["no-justified-complaints"]  # A has a third of the cpu, which alone is full, and is entitled to half
    assert np.isnan(audit["bottleneck-fairness"].violation)
    frame = audit.to_frame()
    assert list(frame.index) == ORDER
    assert json.loads(json.dumps(audit.to_dict()))["properties"][0]["property"] == "sharing-incentive"


def test_some_properties() -> None:
    """By identifier or by member of Property, in the order of the audit."""
    allocation = fo.solve(POOL, "drf")
    assert list(fo.audit(allocation, ["pareto", fo.Property.ENVY_FREENESS])) == ["envy-freeness", "pareto"]
    assert fo.audit(allocation, "pareto")[fo.Property.PARETO].holds  # type: ignore[index]  # a member is understood as well
    with pytest.raises(fo.Unsupported, match='did you mean "pareto"'):
        fo.audit(allocation, "paretto")
    with pytest.raises(fo.Unsupported, match="there is nothing to audit"):
        fo.audit(allocation, [])
    with pytest.raises(KeyError, match="there are pareto"):
        fo.audit(allocation, "pareto")["psdsf"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effort": 0}, "effort is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"workers": 0}, "workers is 0"),
        ({"time_limit": -1.0}, "time_limit is -1.0"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], message: str) -> None:
    """Refused before anything is computed."""
    with pytest.raises(fo.Unsupported, match=message):
        fo.audit(fo.solve(POOL), **options)


def test_what_is_no_allocation() -> None:
    """An array is not: nothing says of which instance."""
    with pytest.raises(fo.InvalidInstance, match="give an Allocation"):
        fo.audit(np.zeros((2, 1)))  # type: ignore[arg-type]


def test_users_who_take_no_part() -> None:
    """One who cannot run, one without tasks, one who demands nothing: none of them is envied, slighted or made to leave."""
    instance = fo.Instance(
        [[4, 4]], [[1, 1], [1, 2], [1, 0], [0, 0]], eligibility=[[1], [0], [1], [1]], tasks=[np.inf, np.inf, 0, 3], weights=[1, 1, 1, 1]
    )
    audit = fo.audit(fo.solve(instance, "drfh"), effort=20)
    assert audit.violated == []
    nobody = fo.Instance([[4.0]], [[1.0]], tasks=[0])
    assert fo.audit(fo.solve(nobody)).violated == []


def test_an_exact_allocation_violates_nothing_by_rounding() -> None:
    """Weights six orders of magnitude apart: the least user has a millionth of what the others have."""
    instance = uniform_instance(5, 3, weights=[1e-3, 1, 1, 10, 1e3])
    for notion in ("drfh", "tsf", "proportional"):
        audit = fo.audit(fo.solve(instance, notion), QUICK)
        assert audit["pareto"].holds
        assert audit["envy-freeness"].holds
        assert notion == "proportional" or audit["max-min"].holds


def test_an_excess_in_the_last_digits_can_be_read() -> None:
    """10.0000002 tasks of a cluster for 10: in six digits both are 10."""
    over = violations(fo.Instance([[10.0]], [[1.0]]), np.array([[10.0000002]]), "rdm", 1e-9)
    assert [str(each) for each in over] == ["resource-1 @ server-1: 10.0000002, allowed 10"]


def test_an_excess_has_the_unit() -> None:
    """640 of 512 GiB, as a number of GiB and of bytes; 640 of a resource that has the unit in its name; a limit of a queue."""
    tasks = np.array([[10.0]])
    for name, unit, size, shown in (("memory", "GiB", 1, " GiB"), ("memory", "B", 2**30, " GiB"), ("RAM (GB)", "GB", 1, "")):
        lab = fo.Instance([[512 * size]], [[64 * size]], resources=[name], servers=["s1"], units={name: unit})
        assert [str(each) for each in violations(lab, tasks, "rdm", 1e-9)] == [f"{name} @ s1: 640{shown}, allowed 512{shown}"]
    limit = fo.Instance(
        [[1024]], [[64]], resources=["memory"], units={"memory": "GiB"}, queues=[fo.Queue("q", limit={"memory": 512})], queue_of=["q"]
    )
    assert [str(each) for each in violations(limit, tasks, "rdm", 1e-9)] == ["limit of memory of q: 640 GiB, allowed 512 GiB"]


def test_an_allocation_that_exceeds_its_limits() -> None:
    """It is said, and audited all the same: no allocation that fits gives as much."""
    audit = fo.audit(rerun.given(POOL, np.array([[4.0], [3.0]]), "rdm"))
    assert [str(each) for each in audit.violations] == ["cpu @ pool: 13, allowed 9", "memory @ pool: 19, allowed 18"]
    assert audit["pareto"].holds is None
    assert "exceeds its limits" in audit["max-min"].statement or audit["max-min"].holds is not None
    assert audit["population-monotonicity"].holds is None
    assert audit["strategy-proofness"].holds is None
    assert "The allocation exceeds cpu @ pool" in repr(audit)


def test_a_server_where_nobody_may_be() -> None:
    """Tasks placed where their user may not run are not envied, in either division."""
    instance = fo.Instance([[1.0], [1.0]], [[1.0], [1.0]], eligibility=[[1, 0], [1, 1]])
    for sharing in ("rdm", "tdm"):
        audit = fo.audit(rerun.given(instance, np.array([[0.5, 0.5], [0.0, 0.0]]), sharing), QUICK)
        assert len(audit.violations) == 1
        assert np.isfinite(audit["envy-freeness"].violation)


def test_whole_tasks() -> None:
    """Exact ones are the leximin of whole tasks; a schedule may fall short of it, and one task that still fits is an improvement."""
    instance = fo.load(EXAMPLES / "kesidis.yaml")
    exact = fo.audit(fo.solve(instance, "drfh", integral=True), ["pareto", "max-min"])
    assert exact.violated == []
    assert all("among whole tasks" in verdict.statement for verdict in exact.values())
    first_fit = fo.audit(fo.schedule(instance, "drfh"), ["pareto", "max-min", "population-monotonicity", "strategy-proofness"], effort=20)
    assert first_fit["max-min"].holds is False
    witnesses.check(first_fit)
    wanting = fo.audit(rerun.given(instance, np.array([[19.0, 0.0], [0.0, 19.0]]), "rdm"), "pareto")["pareto"]
    assert wanting.holds is False
    assert wanting.witness is not None
    assert wanting.witness.tasks is not None
    assert witnesses.feasible(instance, wanting.witness.tasks)


def test_given_rates() -> None:
    """Time is what is shared: every check that is about resources says so, the others hold of the market of PS-DSF."""
    rates = [[4.0, 1.0], [2.0, 2.0], [1.0, 3.0]]
    instance = fo.Instance([[1.0], [1.0]], [[0.0]] * 3, rates=rates)
    audit = fo.audit(fo.solve(instance, "psdsf"), effort=30)
    assert [name for name, verdict in audit.items() if verdict.holds is None] == [
        "bottleneck-fairness",
        "single-resource-fairness",
        "no-justified-complaints",
    ]
    assert [name for name in audit.violated if name not in ("max-min", "population-monotonicity")] == []
    witnesses.check(audit)


def test_utilities_that_differ_from_server_to_server() -> None:
    """Worth is what counts: at alpha = 1 an equilibrium of equal incomes, in the worth of tasks and not in their number."""
    rng = np.random.default_rng(3)
    for seed in range(3):
        instance = fo.Instance(
            rng.uniform(1, 4, (3, 2)), rng.uniform(0.2, 1, (4, 2)), weights=[1, 2, 1, 1], tasks=[np.inf, np.inf, 0.5, np.inf]
        )
        utility = rng.uniform(0.5, 2, (4, 3))
        audit = fo.audit(fo.solve(instance, "proportional", utility=utility), ["sharing-incentive", "envy-freeness", "pareto"])
        assert audit.violated == [], seed
        leximin = fo.audit(fo.solve(instance, "max-min", utility=utility), ["pareto", "max-min", "population-monotonicity"])
        assert "pareto" not in leximin.violated
        assert leximin["max-min"].holds


def test_options_of_the_notion_survive() -> None:
    """The loss is that of alpha = 2: its own re-solve, and not the one of alpha = 1."""
    instance = fo.Instance([[5, 3]], [[3, 3], [1, 0], [2, 1]])
    for alpha in (1.0, 4.0):
        audit = fo.audit(fo.solve(instance, "proportional", alpha=alpha), "population-monotonicity")
        verdict = audit["population-monotonicity"]
        users = range(3)
        losses = [0.0]
        whole = fo.solve(instance, "proportional", alpha=alpha).tasks_per_user
        for z in users:
            stay = [n for n in users if n != z]
            left = fo.solve(fo.Instance(instance.capacities, instance.demands[stay]), "proportional", alpha=alpha).tasks_per_user
            losses.append(float((whole[stay] - left).max()))
        assert verdict.violation == pytest.approx(max(losses), rel=1e-5, abs=1e-6)


def test_weights_per_resource() -> None:
    """What takes one weight says that it does not apply."""
    instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], weights=[[1, 2], [2, 1]])
    audit = fo.audit(fo.solve(instance, "drfh"), effort=10)
    assert audit["psdsf"].holds is None
    assert audit["no-justified-complaints"].holds is None
    assert audit["max-min"].holds
    assert audit["pareto"].holds


def test_one_level_needs_no_solve() -> None:
    """In a leximin nobody below has tasks left; with several levels every kind of user that matters leaves once."""
    one = fo.audit(fo.solve(POOL, "drf"), "population-monotonicity")["population-monotonicity"]
    assert (one.holds, one.searched) == (True, 0)
    instance = fo.Instance([[1, 6], [5, 5]], [[0, 2], [0, 2], [1, 0], [1, 1], [1, 1]], eligibility=[[1, 0]] * 4 + [[0, 1]])
    audit = fo.audit(fo.solve(instance, "drfh"), "population-monotonicity")
    assert audit["population-monotonicity"].searched == 3  # users 1 and 2 are alike, user 5 is alone on its server
    assert audit.violated == ["population-monotonicity"]
    witnesses.check(audit)


def test_a_search_that_finds_no_lie_is_not_said_to_hold(tmp_path: Path) -> None:
    """It says how many were tried, in the text, the table and the report; where everybody has all its tasks, that is a proof."""
    pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"])
    found = fo.audit(fo.solve(pool, "drfh"), ["strategy-proofness"], effort=12)
    assert (found["strategy-proofness"].holds, found["strategy-proofness"].outcome) == (True, "no lie found (12 tried)")
    assert "strategy-proofness  no lie found (12 tried)" in repr(found)
    assert " holds " not in repr(found)
    path = tmp_path / "pool.yaml"
    fo.save(pool, path)
    line = next(line for line in run(path, "--effort", 12).output.splitlines() if line.startswith("strategy-proofness"))
    assert "no lie found (12 tried)" in line
    assert "holds" not in line
    page = tmp_path / "report.html"
    fo.report(pool, page, notions=["drfh"], effort=12)
    assert "no lie found (12 tried)" in page.read_text()
    done = fo.audit(fo.solve(pool.replace(tasks=[1, 1]), "drfh"), ["strategy-proofness"])
    assert done["strategy-proofness"].outcome == "holds"


def test_a_search_cut_short_is_undecided() -> None:
    """Not all users could leave, and none of those who did is missed."""
    instance = fo.Instance([[1, 6], [6, 1]], [[2, 2], [1, 2], [1, 1], [1, 3]], eligibility=[[1, 0], [1, 1], [0, 1], [1, 1]])
    allocation = fo.solve(instance, "efficiency")
    verdict = fo.audit(allocation, "population-monotonicity", effort=1)["population-monotonicity"]
    assert verdict.searched == 1
    assert verdict.holds is None or verdict.violation > 0
    assert "1 of 4" in verdict.statement or verdict.violation > 0


def test_the_same_for_a_seed_with_any_number_of_workers() -> None:
    """Lies and users who leave are handed out in an order of their own."""
    instance = fo.load(EXAMPLES / "psdsf-figure-2.yaml")
    allocation = fo.schedule(instance, "tsf", placement="random-round-robin", seed=1)
    one, two = (fo.audit(allocation, ["population-monotonicity", "strategy-proofness"], effort=10, seed=3, workers=jobs) for jobs in (1, 2))
    assert one.to_dict() == two.to_dict()
    assert one["strategy-proofness"].searched == two["strategy-proofness"].searched


# The command -----------------------------------------------------------------------------------------------------------------------


def run(*arguments: object, status: int = 0) -> Result:
    """Run ``fairopt audit`` and check its exit status."""
    result = CliRunner().invoke(app, ["audit", *map(str, arguments)])
    assert result.exit_code == status, result.output
    return result


def test_command_prints_verdicts_and_witnesses() -> None:
    """For people: a table, and below it what shows the violations."""
    printed = " ".join(run(PAPER, "--notion", "tsf", "--effort", 5).stdout.split())
    assert "Audit of tsf, exact by highs: 3 users, 2 servers" in printed
    assert 'those who lose are "user-3" 8 to 6' in printed
    assert "No profitable lie found by 5 lies tried, seed 0: a search, not a proof." in printed
    few = run(PAPER, "--properties", "pareto,psdsf", "--all").stdout
    assert "prices of the allocation prove" in " ".join(few.split())
    assert "envy" not in few


def test_command_writes_json(tmp_path: Path) -> None:
    """For programs: the same verdicts, None where there is no number."""
    data = json.loads(run(PAPER, "--schedule", "drfh:best-fit", "--properties", "pareto,bottleneck-fairness", "--json").stdout)
    assert [each["property"] for each in data["properties"]] == ["pareto", "bottleneck-fairness"]
    run(PAPER, "--properties", "single-resource-fairness", "-o", tmp_path / "audit.json")
    assert json.loads((tmp_path / "audit.json").read_text())["properties"][0]["violation"] is None
    run(PAPER, "--properties", "pareto", "-o", tmp_path / "audit.txt")
    assert "pareto" in (tmp_path / "audit.txt").read_text()


def test_a_slice_that_could_run_more_than_is_asked_for() -> None:
    """Half of the server could run four tasks, and the user asks for one, which it lacks."""
    instance = fo.Instance([[8]], [[1], [1]], tasks=[1, np.inf], users=["a", "b"], servers=["s"])
    verdict = fo.audit(rerun.given(instance, np.array([[0.0], [8.0]]), "rdm"), "sharing-incentive")["sharing-incentive"]
    assert verdict.violation == 1
    assert verdict.witness is not None
    assert verdict.witness.text.endswith("of every server would run 4, and it asks for 1: 4 on s.")


def test_command_audits_an_allocation_of_ones_own(tmp_path: Path) -> None:
    """Of a CSV file, also where it does not fit."""
    own = tmp_path / "mine.csv"
    own.write_text("user,server,tasks\nuser-1,server-1,9\n")
    printed = " ".join(run(PAPER, "--allocation", own).stdout.split())
    assert "Audit of given" in printed
    assert "not feasible: memory @ server-1: 18, allowed 12" in printed
    assert "so no lie can be tried" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--properties", "envy-fre"], 'there is no property "envy-fre" (did you mean "envy-freeness"?)'),
        (
            ["--notion", "drfh", "--schedule", "drfh:best-fit"],
            "--notion and --schedule: each names an allocation, and the command is about one; choose one",
        ),
        (["--schedule", "drfh:best-fit", "--integral"], "--integral: it is for an allocation that --notion computes; leave it out"),
        (["--notion", "drfhh"], 'did you mean "drfh"'),
        (["--allocation", "missing.csv"], "missing.csv"),
        (["--sharing", "xdm"], '--sharing: there is no "xdm" (did you mean "tdm"?); use rdm or tdm'),
        (["--effort", "0"], "effort is 0"),
    ],
)
def test_command_refuses(arguments: list[str], message: str) -> None:
    """Exit status 2, and a message that says what to do."""
    output = " ".join(run(PAPER, *arguments, status=2).output.replace("│", " ").split())
    assert message in output


def test_many_who_could_gain_are_counted_once() -> None:
    """Each gain says "more", and so does the number of those that are not named."""
    instance = fo.Instance(np.full((5, 1), 3.0), np.ones((5, 1)), users=list("abcde"))
    case: Any = SimpleNamespace(
        part=np.ones(5, bool), value=np.ones(5), slack=np.zeros(5), instance=instance, name=instance.users.__getitem__,
        values=lambda tasks: tasks.sum(axis=1), amount="{:g} tasks".format,
    )  # fmt: skip
    witness = pareto._verdict(case, 3 * np.eye(5), "", "").witness
    assert witness is not None
    assert "and 2 more, and takes nothing from anybody" in witness.text
    assert "more more" not in witness.text
    assert witness.text.count(" more (") == 3


def test_named_limits_are_kept_by_what_applies() -> None:
    """Comparisons by weights alone do not apply; Pareto optimality and levels are asked within the limits, also of whole tasks."""
    lab = fo.Instance(
        [[8, 64], [8, 32]],
        [[1, 4], [2, 4], [1, 8]],
        users=["a", "b", "c"],
        servers=["s", "t"],
        resources=["gpu", "cpu"],
        limits=[fo.Limit("long", 3, resource="gpu", users=["a", "b"]), fo.Limit("two", 2, users=["c"], servers=["t"])],
    )
    for found in (fo.solve(lab, "drfh"), fo.solve(lab, "drfh", exact=True), fo.solve(lab, "drfh", integral=True)):
        audit = fo.audit(found, ["sharing-incentive", "envy-freeness", "pareto", "max-min"])
        assert [audit[name].holds for name in audit.verdicts] == [None, None, True, True]
        assert 'limits: "long" and "two"' in audit["envy-freeness"].statement
    greedy = fo.audit(fo.schedule(lab, "drfh"), ["pareto", "max-min"])  # the tasks of a and b are on s, in the way of three of c
    assert [greedy[name].violation for name in greedy.verdicts] == [3, 3]
    more = fo.audit(rerun.given(lab, np.array([[4.0, 0.0], [0.0, 0.0], [4.0, 2.0]]), "rdm"), ["pareto"])
    assert [each.limit for each in more.violations] == ["limit long"]


def test_the_notion_is_named_with_its_options() -> None:
    """In the title of an audit, of a regret, and of a plan: whoever reads it can ask for the same."""
    lab = fo.Instance([[4, 4]], [[1, 2], [2, 1]], resources=["cpu", "gpu"])
    answer = fo.solve(lab, "drfh:only=gpu")
    assert repr(fo.audit(answer, ["pareto"])).startswith("Audit of drfh:only=gpu by ")
    assert fo.regret(answer).notion == "drfh:only=gpu"
    assert fo.plan(lab, {(lab.users[0], lab.servers[0]): 1}, "drfh:only=gpu").notion == "drfh:only=gpu"
    assert fo.plan(lab, {(lab.users[0], lab.servers[0]): 1}, "drfh").notion == "drfh"


@pytest.mark.parametrize("less", [0.0, 1e-12])
@pytest.mark.parametrize("name", ["max-min", "sharing-incentive", "no-justified-complaints"])
def test_of_users_who_differ_by_rounding_the_first_is_the_witness(name: str, less: float) -> None:
    """Two users with one task each, of 8/3 that are theirs; the last digits of the second one do not make it the worst."""
    pool = fo.Instance([[8]], [[1], [1], [1]], users=["a", "b", "c"], tasks=[8 / 3] * 3)
    verdict = fo.audit(given(pool, np.array([[1.0], [1.0 - less], [2.5]]), "rdm"))[name]
    assert verdict.violation == pytest.approx(5 / 3)
    assert verdict.witness is not None
    assert verdict.witness.users[0] == "a"


SEARCHES = ["sharing-incentive", "envy-freeness", "population-monotonicity", "strategy-proofness", "pareto", "max-min"]


def told(audit: fo.Audit) -> list[tuple[str, bool | None, str, int | None]]:
    """What an audit says of each property."""
    return [(verdict.statement, verdict.holds, str(verdict.violation), verdict.searched) for verdict in audit.values()]


@pytest.mark.parametrize("whole", [False, True])
def test_a_busy_machine_finds_the_same(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour passes between any two looks at the clock: without a time limit nobody looks."""
    in_queues = fo.generate("uniform", users=4, servers=2, queues=2, seed=1)
    instance = fo.Instance([[7, 9], [8, 7]], [[2, 3], [3, 2], [2, 2]], tasks=[2, 2, 2]) if whole else in_queues
    allocation = fo.solve(instance, "drfh", integral=whole)
    quiet = told(fo.audit(allocation, SEARCHES, effort=4))
    slow_clock(monkeypatch)
    assert told(fo.audit(allocation, SEARCHES, effort=4)) == quiet


def test_a_search_ends_at_the_same_step_with_any_number_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each solve takes some 3,000 steps: of ten lies and six users, those are tried that begin before 10,000 are taken."""
    allocation = fo.solve(fo.generate("constrained", of="uniform", users=6, servers=3, rate=0.4, seed=1), "drfh")
    monkeypatch.setattr(case, "PATIENCE", 1e4)
    some = ["population-monotonicity", "strategy-proofness"]
    alone, again, two = (told(fo.audit(allocation, some, effort=10, seed=3, workers=jobs)) for jobs in (1, 1, 2))
    assert alone == again == two
    assert alone[0][0].endswith("; the search reached its usual number of steps (a time limit searches longer).")
    assert "until the search reached its usual number of steps (a time limit searches longer)" in alone[1][0]
    assert [searched for *_, searched in alone] == [4, 4]


@pytest.mark.parametrize(("solver", "seconds"), [(None, None), ("highs", None), ("highs:cp-sat", 60.0), ("pyomo:highs", 60.0)])
def test_whole_tasks_of_a_solver_that_counts_no_steps_have_a_minute(solver: str | None, seconds: float | None) -> None:
    """Where the question is asked again; else branch and cut of fairopt decides."""
    allocation = fo.solve(POOL, "drf", integral=True)
    question = replace(allocation.question, solver=solver)  # type: ignore[type-var]  # it has one
    asked = case.Case.of(replace(allocation, question=question), 1, 0, Crew(1, "loky", None), None)
    assert asked.deadline(again=True).seconds == seconds
    assert asked.deadline().seconds is None
    assert asked.deadline(again=True).limits_work
    assert asked.deadline().limits_work


def test_branch_and_cut_of_a_search_ends_after_some_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the verdict says so; with a time limit it goes on, and finds a better allocation."""
    allocation = fo.schedule(fo.generate("constrained", of="uniform", users=6, servers=3, rate=0.4, seed=2), "drfh")
    monkeypatch.setattr(case, "PATIENCE", 1.0)
    first, again = (told(fo.audit(allocation, "max-min")) for _ in range(2))
    assert first == again
    assert first[0][1] is None
    assert "before it reached its usual number of steps (a time limit searches longer)" in first[0][0]
    assert fo.audit(allocation, "max-min", time_limit=60)["max-min"].holds is False
