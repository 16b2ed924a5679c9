"""Who gets what, at the top of a report and on its one page: the table, its bars, the complaints, trees, and what fairness costs there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app
from fairopt.reporting.answering import Answered, answered
from fairopt.reporting.composing import report
from fairopt.reporting.findings import Findings, study
from fairopt.reporting.tables.answers import answer_of, parts_of_users
from fairopt.reporting.tables.reports import glance_table

LAB = Path(__file__).parents[2] / "examples" / "gpu-lab"
QUEUES = LAB.with_name("research-queues.yaml")


def studied(instance: fo.Instance, *notions: str, **options: Any) -> Findings:
    """Return the analyses of one page."""
    how: dict[str, Any] = {"allocations": {}, "sharing": None, "effort": 1, "seed": 0, "time_limit": None, "done": lambda _: None}
    return study(instance, notions or ("drfh",), (), options.pop("explain", ()), **how, **{"one_page": True, **options})


def said(findings: Findings) -> Answered:
    """Return what the page says first."""
    found = answered(findings, one_page=True)
    assert found is not None
    return found


def short_queues() -> fo.Instance:
    """20 GPUs, of which two queues are guaranteed 18 and 6."""
    return fo.Instance(
        [[8, 64], [4, 32]],
        [[1, 4], [2, 4]],
        counts=[2, 1],
        users=["ann", "carla"],
        resources=["gpu", "cpu"],
        queues=[fo.Queue("research", guarantee={"gpu": 18}, limit={"gpu": 19}), fo.Queue("teaching", guarantee={"gpu": 6})],
        queue_of=["research", "teaching"],
    )


# The table and its bars --------------------------------------------------------------------------------------------------------------


def test_users_against_weight_and_guarantee() -> None:
    """12 CPUs, tasks of 1, weights 2 and 1: 8 and 4 tasks, 2/3 and 1/3 of the cluster, which are the parts by weight; b is promised 3."""
    instance = fo.Instance([[12]], [[1], [1]], weights=[2, 1], users=["a", "b"], resources=["cpu"], guarantees=[0, 3])
    found = answer_of(studied(instance, "drfh:guarantees=clamp").solved[0].row)
    assert [column.title for column in found.table.columns] == ["user", "tasks", "holds", "weight", "by weight", "guarantee"]
    assert found.table.rows[1] == ("b", "4", "33.3 % cpu", "1", "33.3 %", "3 tasks, met")
    a, b = found.bars
    assert a is not None
    assert b is not None
    assert (a.part, a.by_weight) == pytest.approx((2 / 3, 2 / 3))
    assert (b.part, b.guarantee, b.missing) == pytest.approx((1 / 3, 1 / 4, 0))
    assert a.guarantee is None


def test_of_many_users_those_with_least_for_their_weight() -> None:
    """50 users of one CPU each: the table has twelve, and says so; nobody who has all its tasks is among them."""
    number = np.arange(50)
    instance = fo.Instance([[100]], np.ones((50, 1)), weights=1.0 + number % 3, tasks=np.where(number < 10, 1, np.inf))
    found = answer_of(studied(instance).solved[0].row)
    assert len(found.table) == len(found.bars) == 12
    assert found.left_out == "The 12 users that hold least for their weight among those that want more, of 50."
    assert not {f"user-{n}" for n in range(1, 11)} & set(found.table.columns[0].values)


def test_a_tree_shows_what_is_missing() -> None:
    """Of the 20 GPUs the queues hold 15 and 5, in proportion to the guarantees: 3 and 1 are missing."""
    found = answer_of(studied(short_queues()).solved[0].row)
    research = found.bars[0]
    assert research is not None
    assert (research.part, research.guarantee, research.limit, research.missing) == pytest.approx((15 / 20, 18 / 20, 19 / 20, 3 / 20))
    assert found.bars[-1] is None  # the cluster as a whole
    guarantees = next(column for column in found.table.columns if column.title == "guarantee")
    assert guarantees.texts[0] == "18 gpu, 3 missing"
    assert guarantees.styles[0] == "bad"
    assert found.measure == "gpu of the cluster"


def test_guarantees_of_several_resources_have_bars_of_their_own() -> None:
    """6 of 10 GPUs for "ai", guaranteed 5; 60 of 100 CPUs for "web", guaranteed 50; "rest" shows what it holds most of."""
    instance = fo.Instance(
        [[100, 10]],
        [[1, 1], [10, 0], [10, 1]],
        users=["a", "w", "r"],
        resources=["cpu", "gpu"],
        tasks=[6, 6, 3],
        queues=[fo.Queue("ai", guarantee={"gpu": 5}), fo.Queue("web", guarantee={"cpu": 50}), fo.Queue("rest")],
        queue_of=["ai", "web", "rest"],
    )
    found = answer_of(studied(instance).solved[0].row)
    held = next(column for column in found.table.columns if column.title == "holds").texts
    bars = {name.strip(): (text, bar) for name, text, bar in zip(found.table.columns[0].values, held, found.bars, strict=True)}
    assert bars["ai"][0] == "60.0 % gpu"
    assert bars["ai"][1] is not None
    assert (bars["ai"][1].part, bars["ai"][1].guarantee) == pytest.approx((0.6, 0.5))
    assert bars["web"][0] == "60.0 % cpu"
    assert bars["web"][1] is not None
    assert (bars["web"][1].part, bars["web"][1].guarantee) == pytest.approx((0.6, 0.5))
    assert bars["rest"][0].endswith(("% cpu", "% gpu"))
    assert found.measure == "cluster, of the resource beside it: that of a guarantee, else of a limit, else the largest part"


def test_bars_are_drawn_once_for_each_row() -> None:
    """A bar for each user, a mark of its weight, and an axis; they are hidden from readers of text, who have the numbers."""
    html = str(said(studied(fo.load(LAB))).table)
    assert html.count('class="bar"') == html.count('<line class="weight"') == 8
    assert html.count('class="axis"') == 1
    assert html.count("<svg class") == html.count('aria-hidden="true"')
    widths = [float(width) for width in re.findall(r'class="held"[^>]*width="([0-9.]+)%"', html)]
    assert len(widths) == 8
    assert max(widths) <= 100


# Complaints ------------------------------------------------------------------------------------------------------------------------


def test_where_nobody_complains_the_page_says_why() -> None:
    """What the audit found to hold."""
    found = said(studied(fo.load(LAB)))
    assert found.complaints == []
    assert found.none == (
        "Nobody has reason to complain: everyone runs at least what its slice by weight could run and nobody would run more with what "
        "another holds."
    )


def test_limits_are_named_and_are_why_nobody_judges_complaints() -> None:
    """The limit that stops b, and not the one that stops nobody; slices and envy know weights alone."""
    limits = [fo.Limit("few", 3, users=["b"]), fo.Limit("ample", 99, resource="cpu")]
    instance = fo.Instance([[12]], [[1], [1]], users=["a", "b"], resources=["cpu"], limits=limits)
    found = said(studied(instance))
    assert "Limits that stop users: all 3 tasks of limit few are in use." in found.says
    assert found.none == (
        "Whether anyone has reason to complain is not judged: slices and envy compare users by weights alone, and there are limits: "
        '"few" and "ample".'
    )


def test_a_complaint_is_a_fact_and_a_reason() -> None:
    """Missing guarantees, queue by queue."""
    found = said(studied(short_queues()))
    assert [each.title for each in found.complaints] == ["Queue research", "Queue teaching"]
    fact, reason = found.complaints[0].sentences
    assert fact == "It holds 15 of the 18 gpu that it is guaranteed, and asks for 3 more."
    assert "the guarantees together do not fit" in reason


def test_who_can_run_nowhere_and_who_envies() -> None:
    """Efficiency gives all to the users of small tasks; a user that needs both resources fits nowhere."""
    instance = fo.Instance([[4, 0], [0, 8]], [[1, 1], [1, 0], [4, 0]], users=["both", "small", "large"], resources=["gpu", "cpu"])
    found = {each.title: " ".join(each.sentences) for each in said(studied(instance, "efficiency")).complaints}
    assert list(found) == ["both", "Less than by weight", "Envy"]
    assert "there is no server where it may run" in found["both"]
    assert '"large" runs 0 tasks' in found["Envy"]


def test_envy_of_a_sibling_says_what_lies_beyond_its_guarantee() -> None:
    """Physics holds 80 CPU, 60 of them guaranteed, and 80 memory, none guaranteed: bio would run min(20 / 1, 80 / 6) with the rest."""
    queues = [fo.Queue("physics", guarantee={"cpu": 60}), fo.Queue("bio")]
    instance = fo.Instance(
        [[100, 100]], [[6, 6], [1, 6]], users=["p", "b"], resources=["cpu", "memory"], queues=queues, queue_of=["physics", "bio"]
    )
    envy = next(each for each in said(studied(instance)).complaints if each.title == "Envy")
    assert 'what queue "physics" holds of each resource beyond its guarantee of this resource it would run 13.3333' in envy.sentences[1]


def test_many_complaints_are_counted() -> None:
    """Five are told, and the others are named."""
    instance = fo.Instance([[4, 0], [0, 8]], [[1, 1]] * 8 + [[1, 0]], users=[*"abcdefgh", "fits"])
    found = said(studied(instance)).complaints
    assert [each.title for each in found] == [*"abcde", "3 more"]
    assert found[-1].sentences == ("The same is true of f, g and h.",)


def test_who_asked_is_told_in_two_sentences() -> None:
    """What it has, and what stops it: two of those of the explanation."""
    findings = studied(fo.load(LAB), explain=("vision",))
    (told,) = said(findings).asked
    explanation = findings.notions[0].explanations["vision"].value
    assert explanation is not None
    assert told.title == "vision"
    assert told.sentences == explanation.brief
    assert set(told.sentences) <= set(explanation.sentences)
    assert "is full" in told.sentences[1]


def test_a_queue_in_short() -> None:
    """What is missing of its guarantee comes before what stops its users."""
    allocation = fo.solve(short_queues(), "drfh")
    brief = fo.explain(allocation, "research", resolves=0).brief
    assert brief[0].startswith("The queue research holds 15 gpu")
    assert "3 are missing" in brief[1]


# The page ----------------------------------------------------------------------------------------------------------------------------


def test_one_page_needs_no_script(tmp_path: Path) -> None:
    """Date, units, the table, the complaints, the proof and the command; no chart library, and far smaller than a report."""
    path = tmp_path / "page.html"
    written = report(fo.load(LAB), path, one_page=True, date="2026-11-26", explain=["vision"])
    text = path.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "26 November 2026. 8 users share 37 servers" in text
    assert "Explanations asked for" in text
    assert "--date 2026-11-26" in text
    assert "--one-page" in text
    assert "@page { size: A4" in text
    assert len(text) < 100_000
    assert written.to_dict()["solved"] == ["drfh"]


def test_one_page_has_other_notions_beside_the_first(tmp_path: Path) -> None:
    """A column of tasks for each; the command line writes the same."""
    out = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["report", str(QUEUES), "--notions", "drfh,tsf", "--one-page", "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "kB)" in done.output
    text = out.read_text(encoding="utf-8")
    assert "tasks, tsf" in text
    assert "<b>research</b>" in text


def test_one_page_and_stderr_say_which_notion_has_no_allocation(tmp_path: Path) -> None:
    """On the page of another notion; if it is the only one, the exit status says it, too."""
    path = tmp_path / "lab.yaml"
    path.write_text(
        "servers: [{name: s, capacity: {cpu: 9}, count: 2}]\nshared: {ansys: 9}\nusers: [{name: L, demand: {cpu: 1, ansys: 1}}]\n"
    )
    for notions, status in (("psdsf,drfh", 0), ("psdsf", 3)):
        out = tmp_path / f"page-{status}.html"
        done = CliRunner().invoke(app, ["report", str(path), "--notions", notions, "--one-page", "-o", str(out)])
        assert done.exit_code == status, done.output
        assert done.stderr.startswith("warning: psdsf has no allocation: ")
        text = out.read_text(encoding="utf-8")
        assert "psdsf: this could not be computed" in text
        assert ("Who gets what" in text) == (status == 0)


def test_a_page_of_nothing_but_failures(tmp_path: Path) -> None:
    """It says why."""
    nothing = fo.Instance([[1, 1], [1, 1]], [[1, 1]], tasks=[0])
    found = report(nothing, tmp_path / "nothing.html", notions=["bbf"], one_page=True)
    assert found.findings.solved == ()
    assert "this could not be computed" in found.path.read_text(encoding="utf-8")


def test_a_tree_is_measured_by_its_own_rules(tmp_path: Path) -> None:
    """Guarantees, slices and envy of siblings; no smallest share across queues, and no red box where there is no frontier."""
    found = report(fo.load(QUEUES), tmp_path / "tree.html", notions=["drfh"], schedules=["drfh:best-fit"], effort=1)
    table = glance_table(found.findings)
    titles = [column.title for column in table.columns]
    assert {"guarantees", "short of its slice", "envy of a sibling"} <= set(titles)
    assert not {"min share", "min share / weight", "Jain's index", "largest envy"} & set(titles)
    exact, greedy = table.rows
    assert exact[titles.index("guarantees")] == "all 5 met"
    assert exact[titles.index("short of its slice")] == "0"
    assert greedy[titles.index("envy of a sibling")] != ""
    text = found.path.read_text(encoding="utf-8")
    costs = text[text.index('id="frontier"') : text.index('id="schedules"')]
    assert 'class="failed"' not in costs
    assert "price of fairness" in costs
    assert "smallest share of all users, and not all shares are to be the same here: queue" in costs
    assert "use compare" not in text
    assert "7. Schedules" in text
    assert "Explanations" not in text  # nobody asked for any
    assert "8. The programs" in text
    assert "chart-queues" in text
    assert "chart-shares" not in text


def test_a_limit_of_another_resource_leaves_bars_comparable() -> None:
    """All that is guaranteed is GPUs: bars are parts of the GPUs, those of a queue with a limit of CPUs too."""
    instance = fo.Instance(
        [[40, 8]],
        [[4, 1], [1, 1]],
        users=["a", "b"],
        resources=["cpu", "gpu"],
        queues=[fo.Queue("A", limit={"cpu": 8}), fo.Queue("B", guarantee={"gpu": 2})],
        queue_of=["A", "B"],
    )
    found = answer_of(studied(instance).solved[0].row)
    assert found.measure == "gpu of the cluster"
    assert [bar.part for bar in found.bars if bar is not None] == pytest.approx([2 / 8, 2 / 8, 6 / 8, 6 / 8])


def test_bars_are_of_what_is_held_where_speeds_differ() -> None:
    """Two users who share all GPUs hold all of them in sum, whatever work they do there."""
    instance = fo.Instance([[8], [8]], [[1], [1]], speeds=[[1.0, 0.25], [1.0, 1.0]], resources=["gpu"])
    held, _ = parts_of_users(fo.solve(instance, "drfh"))
    assert held.sum() == pytest.approx(1)
    assert held[0] != pytest.approx(held[1])
