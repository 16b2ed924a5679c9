"""``fairopt reproduce``: what is compared, how means are compared, what a difference does, and what is printed."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import fairopt as fo
from fairopt.cli import app
from fairopt.commands.reproducing import _lost
from fairopt.papers import PAPERS, read
from fairopt.reproduction import reproducing, schedule_trials
from fairopt.reproduction.reproducing import EXPERIMENTS, Experiment, reproduce
from fairopt.reproduction.trials import Row, Run, Verdict, deviation_interval, interval, sample

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
KNOWN = {
    "psdsf-figure-3",
    "psdsf-figure-6-cpu",
    "psdsf-figure-6-at-once",
    "pdrf-section-6-1-first",
    "kesidis-table-2-bf-drf",
    "kesidis-table-4-bf-drf",
}
SILENT = {"bbf-section-3", "bbf-ring-largest", "psdsf-figure-6-drfh", "psdsf-figure-6-random-periods", "psdsf-figure-6-sweep-periods"}
SILENT |= {"gavel-max-min", "gavel-max-min-time"}
TRIALS = [
    "psdsf-table-1",
    "drfh-figure-4",
    "drfh-figure-4-over-time",
    "drfh-placements",
    "drfh-trace",
    "kesidis-tables",
    "pdrf-tables",
    "soroush-ratio",
]


def run(*arguments: str, status: int = 0, columns: int = 80) -> Result:
    """Run the command in this process and check its exit status."""
    result = CliRunner().invoke(app, ["reproduce", *arguments], env={"COLUMNS": str(columns)})
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper on DRF prints 4 tasks for A."""
    paper = read("drf")
    results = tuple(dataclasses.replace(result, published=np.array([4.0, 2.0])) for result in paper.results)
    monkeypatch.setattr(reproducing, "read", lambda name: dataclasses.replace(paper, results=results))


@pytest.fixture(scope="module")
def everything() -> list[tuple[Experiment, list[Row]]]:
    """All that ``fairopt reproduce --quick`` computes, once: the tests that read it are neighbours, so that one worker runs them."""
    return list(reproduce(quick=True, workers=2))


# What is compared ----------------------------------------------------------------------------------------------------------------


def test_all_small_results_are_reproduced_or_explained(everything: list[tuple[Experiment, list[Row]]]) -> None:
    """Those that differ are exactly these, each with its reason."""
    rows = [row for experiment, found in everything if not experiment.trials(True) for row in found]
    assert {row.id for row in rows if row.verdict is Verdict.KNOWN} == KNOWN
    assert {row.id for row in rows if row.verdict is Verdict.SILENT} == SILENT
    assert not [row.id for row in rows if row.verdict is Verdict.DIFFERS]
    assert {row.id for row in rows} >= {result.id for name in PAPERS for result in read(name).results}
    assert all(row.note for row in rows if row.verdict is Verdict.KNOWN)


def test_tables_1_and_2_of_precomputed_drf(everything: list[tuple[Experiment, list[Row]]]) -> None:
    """With few trials: as printed, but for the caption of the last row of table 2, which is far off; as it is read, that row is there."""
    rows = {row.id: row for experiment, found in everything if experiment.id == "pdrf-tables" for row in found}
    assert not [row for row in rows.values() if row.verdict is Verdict.DIFFERS]
    for which in ("fewer", "more"):
        assert rows[f"pdrf-table-2-b-{which}"].verdict is Verdict.KNOWN
        assert rows[f"pdrf-table-2-b-read-{which}"].verdict is Verdict.AGREES


def test_in_fractions() -> None:
    """The small examples only; the verdicts are those in floats, and what is irrational stays a decimal and says so."""
    found = {experiment.id: {row.id: row for row in rows} for experiment, rows in reproduce(["psdsf", "bbf"], exact=True)}
    assert found["psdsf"]["psdsf-figure-2"].ours == ["18/5", "18/5", "8", "8"]
    assert found["bbf"]["bbf-section-5-trajectory"].ours == ["1/2", "1/2", "1/2"]
    assert (found["bbf"]["bbf-ring-least"].ours, found["bbf"]["bbf-ring-largest"].ours) == (["1/4"], ["1/2"])
    assert found["bbf"]["bbf-section-3"].note == "section 3, parts granted is in floats: it is irrational"
    for name, rows in found.items():
        ((_, floats),) = reproduce([name])
        assert [row.verdict for row in rows.values()] == [row.verdict for row in floats]
    text = run("drf", "--exact").stdout
    assert "3, 2" in text
    assert [entry["id"] for entry in json.loads(run("drf", "drfh", "--exact", "--json").stdout)["experiments"]] == ["drf", "drfh"]


def test_placements_are_in_the_order_of_the_paper(everything: list[tuple[Experiment, list[Row]]]) -> None:
    """Best-fit over first-fit over slots, each by more than chance; no schedule exceeds the optimum's least share."""
    rows = {row.id: row for experiment, found in everything if experiment.id == "drfh-placements" for row in found}
    assert not [row.id for row in rows.values() if row.verdict is Verdict.DIFFERS]
    over = [row for row in rows.values() if "-over-" in row.id]
    assert len(over) == 2
    assert all(row.ours[0] > row.tolerance and row.verdict is Verdict.AGREES for row in over)
    assert all(0 < row.ours[0] <= 100 for row in rows.values() if "least-share" in row.id)


def test_the_readme_counts_what_comes_out(everything: list[tuple[Experiment, list[Row]]]) -> None:
    """What it says of the end of ``fairopt reproduce --quick``."""
    verdicts = Counter(row.verdict for _, rows in everything for row in rows)
    assert set(verdicts) == {Verdict.AGREES, Verdict.KNOWN, Verdict.SILENT}
    assert (
        f"ends with {verdicts.total()} results: {verdicts[Verdict.AGREES]} agree, {verdicts[Verdict.KNOWN]} differ for reasons that it "
        f"prints, and {verdicts[Verdict.SILENT]} have no printed number to compare with."
    ) in README


@pytest.mark.parametrize("columns", [80, 120])
def test_everything_quick(columns: int, everything: list[tuple[Experiment, list[Row]]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every experiment is there and the lines fit; nothing differs unexpectedly."""
    monkeypatch.setattr(reproducing, "reproduce", lambda ids, **options: iter(everything))
    text = run("--quick", columns=columns).stdout
    assert max(map(len, text.splitlines())) <= columns
    assert all(f"[{name}]" in text for name in EXPERIMENTS)
    assert "interval of the difference from the published mean" in text
    assert "DIFFERS" not in text


def test_an_experiment_is_printed_before_the_next_one_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of one is there when the other begins; Ctrl-C in it says which results there are. JSON is written at the end."""
    found, printed = list(reproduce(["drf", "bbf"])), list[str]()

    def one_by_one(ids: list[str], **options: Any) -> Iterator[tuple[Experiment, list[Row]]]:
        for each in found:
            out: Any = sys.stdout
            out.flush()
            printed.append(out.buffer.getvalue().decode())
            yield each

    monkeypatch.setattr(reproducing, "reproduce", one_by_one)
    text = run("drf", "bbf").stdout
    assert printed[0] == ""
    assert "[drf]" in printed[1]
    assert "[bbf]" not in printed[1]
    assert text.startswith(printed[1])
    assert text.count("[drf]") == text.count("[bbf]") == 1
    printed.clear()
    assert [each["name"] for each in json.loads(run("drf", "bbf", "--json").stdout)["experiments"]] == ["drf", "bbf"]
    assert printed == ["", ""]
    assert _lost([]) == "there is no result, and no file was changed"
    assert _lost(found[:1]) == "the results of drf are complete; the other experiments have none"


def test_each_row_is_told_as_soon_as_it_is_known() -> None:
    """One after another, before their experiment ends."""
    told: list[Row] = []
    ((_, rows),) = reproduce(["drf"], known=told.append)
    assert told == rows
    assert told
    steps = iter(reproduce(["drf", "bbf"], known=lambda row: told.append(row)))
    next(steps)
    assert len(told) == 2 * len(rows)


def test_experiments_are_the_papers_with_results_and_the_trials() -> None:
    """In the order in which they are printed; only trials have a bar to show."""
    assert list(EXPERIMENTS) == [
        "drf",
        "drfh",
        "psdsf",
        "kesidis",
        "bbf",
        "pdrf",
        "gavel",
        "metaopt",
        "drfh-table-1",
        "psdsf-figure-6",
        "memory",
        *TRIALS,
    ]
    assert [name for name, experiment in EXPERIMENTS.items() if experiment.trials(True)] == TRIALS
    assert EXPERIMENTS["pdrf-tables"].trials(False) == 7000


def test_there_is_no_such_experiment() -> None:
    """Said before anything is run."""
    with pytest.raises(fo.InvalidInstance, match=r'no experiment "bfb" \(did you mean "bbf"\?\)'):
        reproduce(["drf", "bfb"])


# Means ---------------------------------------------------------------------------------------------------------------------------


def by_the_book(capacity: Any, demands: Any) -> tuple[list[int], list[int]]:
    """Return the tasks of precomputed DRF and of algorithm 1, as the paper writes them, on plain integers."""
    users, resources = range(len(demands)), range(len(capacity))
    share = [max(demands[n][r] / capacity[r] for r in resources) for n in users]
    top = max(share)
    turn = [sum(top / share[n] * demands[n][r] for n in users) for r in resources]
    k = min(capacity[r] / turn[r] for r in resources)
    cycle = [int(k * top / share[n] + 1e-9) for n in users]
    x, left = [0 for _ in users], list(capacity)
    while True:
        n = min(users, key=lambda n: (round(x[n] * share[n], 12), n))
        if any(demands[n][r] > left[r] for r in resources):
            return cycle, x
        x[n] += 1
        left = [left[r] - demands[n][r] for r in resources]


def test_a_trial_counts_users() -> None:
    """Fewer and more tasks by precomputed DRF than by algorithm 1: by the book, on the same random numbers."""
    setting = {"reserves": [100, 200], "demands": [1, 9], "resources": 3}
    seen = np.zeros(2)
    for j in range(200):
        rng = np.random.default_rng(j)
        capacity, demands = rng.integers(100, 201, 3).tolist(), rng.integers(1, 10, (6, 3)).tolist()
        cycle, x = by_the_book(capacity, demands)
        expected = [sum(a < b for a, b in zip(cycle, x, strict=True)), sum(a > b for a, b in zip(cycle, x, strict=True))]
        assert reproducing._fewer_and_more(setting, 6, np.random.default_rng(j)).tolist() == expected
        seen += expected
    assert (seen > 0).all()


def test_trials_do_not_depend_on_workers_nor_on_how_many_there_are() -> None:
    """Number j is the j-th, and each is told of once."""

    def trial(rng: np.random.Generator) -> np.ndarray:
        return rng.random(2)

    told: list[int] = []
    one = sample(trial, "name", 120, Run(workers=1, done=told.append))
    assert sum(told) == 120
    np.testing.assert_array_equal(one, sample(trial, "name", 120, Run(workers=2)))
    np.testing.assert_array_equal(one[:40], sample(trial, "name", 40, Run(workers=3)))
    assert len(np.unique(one)) == 240
    assert not np.isin(one, sample(trial, "other", 120, Run())).any()


def test_the_interval_holds_what_it_says() -> None:
    """Means of 50 of one distribution and of 1000 more differ by more once in a thousand, if they are the same."""
    rng = np.random.default_rng(1)
    outside = 0
    for _ in range(20_000):
        few, mean, deviation = rng.normal(3, 2, 50), rng.normal(3, 2 / np.sqrt(1000)), 2 * np.sqrt(rng.chisquare(1000) / 1000)
        outside += abs(few.mean() - mean) > interval(few, deviation, 1000)
    assert 5 <= outside <= 45


def test_the_interval_of_deviations_holds_what_it_says() -> None:
    """Of samples of 200 of one skewed distribution, one in a thousand pairs is further apart, or a few more: the kurtosis is estimated."""
    rng = np.random.default_rng(2)
    outside = 0
    for _ in range(5_000):
        one, other = rng.gamma(4, 1, 200), rng.gamma(4, 1, 200)
        outside += abs(one.std(ddof=1) - other.std(ddof=1)) > deviation_interval(one, 200)
    assert 1 <= outside <= 50
    assert deviation_interval(np.full(9, 2.0), 200) == 0


# Schedules -----------------------------------------------------------------------------------------------------------------------


def test_tables_ii_to_v_of_kesidis() -> None:
    """200 trials as in the paper: all agree but table V of RRR-PS-DSF, which repeats table III."""
    rows = {row.id: row for _, found in reproduce(["kesidis-tables"], workers=2) for row in found}
    assert {row.id for row in rows.values() if row.verdict is not Verdict.AGREES} <= {
        "kesidis-psdsf-unused-deviation",
        "kesidis-drf-rounds-placed-deviation",
    }
    assert rows["kesidis-psdsf-unused-deviation"].verdict is Verdict.KNOWN
    assert not [row for row in rows.values() if row.verdict is Verdict.DIFFERS]
    assert rows["kesidis-psdsf-placed-mean"].tolerance < 0.5


def test_a_trial_of_kesidis_is_a_schedule() -> None:
    """Tasks, then what they leave, which is never enough for another task: 5 and 1 of some server."""
    setting = {"criterion": "psdsf", "placement": "random-server"}
    for j in range(20):
        a, b, c, d, *left = schedule_trials._random_servers(setting, np.random.default_rng(j)).tolist()
        assert left == [100 - 5 * a - c, 30 - a - 5 * c, 30 - 5 * b - d, 100 - b - 5 * d]
        assert all(min(left[2 * i] // 5, left[2 * i + 1]) < 1 and min(left[2 * i], left[2 * i + 1] // 5) < 1 for i in range(2))


def test_an_order_that_is_not_there_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """If best-fit were no better than first-fit, it would be said; so would other numbers than those that are known."""

    def swapped(study: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
        return np.array([[90, 99, 0.02], [80, 90, 0.019], [85, 95, 0.018], *([40, 48, 0.003] for _ in range(5))]) * rng.uniform(0.99, 1)

    monkeypatch.setattr(schedule_trials, "_placements", swapped)
    rows = {row.id: row for _, found in reproduce(["drfh-placements"], quick=True) for row in found}
    assert rows["drfh-placements-best-fit-over-first-fit"].verdict is Verdict.DIFFERS
    assert rows["drfh-placements-best-fit-cpu-memory"].verdict is Verdict.DIFFERS


# The command ---------------------------------------------------------------------------------------------------------------------


def test_json_has_every_row() -> None:
    """With the numbers, not their pictures."""
    data = json.loads(run("pdrf", "drf", "--json").stdout)
    assert (data["quick"], data["unexpected"], [entry["id"] for entry in data["experiments"]]) == (False, 0, ["pdrf", "drf"])
    first = data["experiments"][0]["results"][1]
    assert first["id"] == "pdrf-section-6-1-first"
    assert (first["published"], first["ours"], first["verdict"], first["mean"]) == ([26.0], [28.0], "known difference", False)
    assert set(first) == {"name"} | {field.name for field in dataclasses.fields(Row)}


@pytest.mark.usefixtures("wrong")
def test_an_unexpected_difference_is_status_1() -> None:
    """And is printed, as text and as JSON."""
    assert "DIFFERS *" in run("drf", status=1).stdout
    assert json.loads(run("drf", "--json", status=1).stdout)["unexpected"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["nobody"], 'there is no experiment "nobody"'), (["drf", "--workers", "0"], "give a number of workers, or -1")],
)
def test_bad_input_is_status_2(arguments: list[str], message: str) -> None:
    """One message, no traceback."""
    assert message in " ".join(run(*arguments, status=2).stderr.split())


@pytest.mark.parametrize("known", [None, [4.0, 2.0]])
def test_a_reason_does_not_excuse_another_number(known: list[float] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A known difference is one of a known size."""
    paper = read("drf")
    first = dataclasses.replace(
        paper.results[0], published=np.array([5.0, 5.0]), ours=None if known is None else np.array(known), differs="a reason"
    )
    monkeypatch.setattr(reproducing, "read", lambda name: dataclasses.replace(paper, results=(first,)))
    ((_, (row,)),) = reproduce(["drf"])
    assert row.verdict is Verdict.DIFFERS
    assert row.note == "Unexpected: please report it."


def test_each_result_says_what_it_claims() -> None:
    """Exact ones have a certificate; a schedule and an approximation have none; what is no allocation claims nothing."""
    rows = {row.id: row for _, found in reproduce(["drf", "psdsf", "metaopt", "pdrf"]) for row in found}
    kinds = {name: row.kind for name, row in rows.items()}
    assert [kinds[name] for name in ("drf-example", "drf-algorithm-1", "psdsf-table-3")] == ["exact", "greedy", ""]
    assert {kinds[name] for name in kinds if name.startswith("pdrf")} == {"approximate", "greedy"}
    assert all((row.residual is not None) == (row.kind == "exact") for row in rows.values())
    assert max(row.residual for row in rows.values() if row.residual is not None) < 1e-8
    printed = " ".join(run("drf").stdout.split())
    assert "exact: what a notion defines, certified. greedy: a schedule, one task at a time, which claims no optimum." in printed
    assert "Largest relative error of 1 certificate: " in printed


def test_what_is_not_installed_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is; nothing that was not run counts as reproduced."""
    monkeypatch.setattr(fo.SOLVERS["pyomo"], "available", classmethod(lambda cls: False))
    verdicts = [row["verdict"] for row in json.loads(run("bbf", "--json").stdout)["experiments"][0]["results"]]
    assert {"agrees", "not run"} <= set(verdicts)
    printed = run("bbf").stdout
    assert "Not run: " in printed
    assert f"{verdicts.count('not run')} not run" in printed
