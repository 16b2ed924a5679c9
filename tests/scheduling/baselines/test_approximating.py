"""Baselines wherever a schedule is: schedules, comparisons, studies, frontiers, audits, worst cases, simulations, the command line."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import pytest
from support.baseline_cases import small_cluster
from support.command_line import EXAMPLES, flat, run

import fairopt as fo
from fairopt.analysis.rerun import rerun
from fairopt.instance import FloatArray
from fairopt.scheduling.baselines import Baseline, Case

LAB = fo.Instance([[100, 30], [30, 100]], [[5, 1], [1, 5]], users=["A", "B"], resources=["cpu", "memory"])


def test_an_allocation_says_that_it_is_approximate() -> None:
    """And what is proved, and how to make it again."""
    found = fo.schedule(LAB, "drfh:pop:parts=2:seed=3")
    assert found.certificate.approximate
    assert np.isnan(found.certificate.worst)
    assert found.proof.startswith("Approximate, so not an optimum. Limits recomputed: all kept. Proved of pop: none for a single instance")
    assert repr(found) == "Allocation(drfh, sharing rdm, approximate by pop: A 13, B 13 tasks; excess 0.0e+00, not an optimum)"
    assert found.to_dict()["question"]["baseline"] == {"name": "pop", "parts": 2, "seed": 3, "split": 0.0}
    assert rerun(found, LAB.replace(capacities=LAB.capacities * 2)).tasks_per_user == pytest.approx([26, 26])


def test_every_baseline_says_what_it_is() -> None:
    """A title, a source, a guarantee, and an example that runs."""
    for name, kind in fo.BASELINES.items():
        assert kind.name == name
        assert kind.title
        assert re.search(r"\(\d{4}\)", kind.source)
        assert kind.guarantee
        found = fo.schedule(small_cluster(0), kind.example)
        assert found.solver == name


def test_comparisons_frontiers_and_studies() -> None:
    """The regret is against the notion that the baseline approximates; a study gives its seeds to what has one."""
    rows = fo.compare(LAB, notions=["drfh"], schedules=["drfh:pop", "drfh:best-fit", "proportional:alpha=2:pop", "drfh:pooled"])
    assert [row.kind for row in rows] == ["exact", "approximate", "greedy", "approximate", "approximate"]
    assert rows["drfh:pop"].regret is not None
    assert rows["drfh:pop"].regret.level == pytest.approx(0.4)
    against = rows["proportional:pop:alpha=2"].regret
    assert against is not None
    assert against.notion.startswith("proportional")
    assert [point.kind for point in fo.frontier(LAB, notions=["drfh"], schedules=["drfh:pop"]).points][-1] == "approximate"
    table = fo.study({"lab": LAB}, schedules=["drfh:pop", "drfh:swan"], seeds=range(2), workers=1)
    assert set(table["kind"]) == {"exact", "approximate"}
    assert (table["message"] == "").all()


def test_pictures_and_reports(tmp_path: Path) -> None:
    """They have a mark, a hatch and a word for approximations."""
    assert fo.frontier(LAB, notions=["drfh"], schedules=["drfh:pop", "drfh:best-fit"]).plot().axes
    assert fo.compare(LAB, notions=["drfh"], schedules=["drfh:pop"]).plot().axes
    fo.report(LAB, tmp_path / "report.html", notions=["drfh"], schedules=["drfh:pop"], effort=1)
    assert "drfh:pop (approximate): 26 tasks" in (tmp_path / "report.html").read_text()


def test_exact_answers_are_refused() -> None:
    """A row says so, and a worst case is refused before the search."""
    row = fo.compare(LAB, notions=["drfh"], schedules=["drfh:pop"], exact=True)["drfh:pop"]
    assert row.message == '"pop" computes in floats; leave exact out'
    with pytest.raises(fo.Unsupported, match='"drfh:pop" computes in floats, and nothing is proved of it in fractions'):
        fo.worst_case("drfh:pop", exact=True, tries=1)


def test_worst_cases_are_of_divisible_tasks() -> None:
    """Half of one server, where one user is alone in a part."""
    found = fo.worst_case("drfh:pop", users=1, servers=1, resources=1, tries=5)
    assert found.value == pytest.approx(0.5)
    assert not found.regret.whole


def test_audits_and_explanations() -> None:
    """Pareto optimality fails, with a witness; the sentence names the baseline."""
    found = fo.schedule(LAB, "drfh:pop")
    assert not fo.audit(found)["pareto"].holds
    assert "in the approximate allocation of drfh by pop" in str(fo.explain(found, "A"))


def test_simulations_ask_at_every_event() -> None:
    """With half of the cluster, one user's work takes twice as long; whole tasks would be moved."""
    trace = fo.Trace(["A"], submit=[0], tasks=[130], demands=[[5, 1]], durations=[10], resources=["cpu", "memory"])
    alone = LAB.replace(weights=None)
    exact, found = (fo.simulate(trace, alone, spec) for spec in ("drfh", "drfh:pop:parts=2"))
    assert found.kind == "approximate, fluid"
    assert found.jobs["finished_s"].iloc[0] == pytest.approx(2 * exact.jobs["finished_s"].iloc[0])
    with pytest.raises(fo.Unsupported, match='"drfh:pooled" gives whole tasks anew at every event'):
        fo.simulate(trace, alone, "drfh:pooled")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"guarantees": [1, 0]}, '"pop" divides among a flat list of users, and the instance has queues, guarantees or weights of 0'),
        (
            {"rules": ["x['A'] >= x['B']"]},
            "the rule \"x['A'] >= x['B']\" lets more tasks of one allow more of another, and \"pop\" keeps only rules that are limits",
        ),
    ],
)
def test_what_no_baseline_follows(change: dict[str, Any], message: str) -> None:
    """It is refused in a sentence."""
    with pytest.raises(fo.Unsupported) as refused:
        fo.schedule(LAB.replace(**change), "drfh:pop")
    assert str(refused.value).startswith(message)


def test_parallelism_and_whole_tasks() -> None:
    """Fractions keep a limit on parallelism; whole tasks cannot."""
    limited = LAB.replace(parallelism=[1, np.inf])
    assert fo.schedule(limited, "drfh:pop").certificate.feasibility < 1e-9
    with pytest.raises(fo.Unsupported, match="whole tasks of a baseline cannot limit parallelism"):
        fo.schedule(limited, "drfh:pop", integral=True)


def test_one_of_ones_own() -> None:
    """A subclass under a name."""

    @dataclass(frozen=True)
    class Nothing(Baseline):
        """Nobody gets anything."""

        name: ClassVar[str] = "nothing"
        title: ClassVar[str] = "Nothing"
        source: ClassVar[str] = "a test"
        example: ClassVar[str] = "drfh:nothing"
        guarantee: ClassVar[str] = "none"

        def tasks(self, case: Case) -> tuple[FloatArray, dict[str, Any]]:
            """Return zeros."""
            return case.tasks(np.zeros(case.program.n_pairs)), {}

    with patch.dict(fo.BASELINES):
        fo.BASELINES["nothing"] = Nothing
        assert fo.schedule(LAB, "drfh:nothing").tasks.tolist() == [[0.0, 0.0], [0.0, 0.0]]
        with pytest.raises(fo.Unsupported, match='"no" is no baseline: it must be a subclass'):
            fo.BASELINES["no"] = int  # type: ignore[assignment]


def test_the_command_line() -> None:
    """Schedules, comparisons, lists; a misspelt name is answered from the list."""
    file = EXAMPLES / "drfh-figure-1.yaml"
    text = flat(run("schedule", file, "--schedule", "drfh:pop:parts=2").stdout)
    assert "approximate by pop" in text
    assert "Proved of pop" in text
    whole = json.loads(run("schedule", file, "--schedule", "drfh:pop", "--integral", "--json").stdout)
    assert whole["question"]["integral"]
    assert whole["certificate"]["approximate"]
    run("compare", file, "--schedules", "drfh:pop", "--fail-if", "regret>0.5")
    run("compare", file, "--schedules", "drfh:pop", "--fail-if", "regret>0.3", status=1)
    assert "approximate" in run("compare", file, "--schedules", "drfh:pop,tsf:swan").stdout
    listed = json.loads(run("placements", "--json").stdout)["placements"]
    assert [each["name"] for each in listed if each["kind"] == "baseline"] == list(fo.BASELINES)
    wrong = run("schedule", file, "--schedule", "drfh:geometric-bining", status=2)
    assert '(did you mean "geometric-binning"?)' in flat(wrong.stderr)
