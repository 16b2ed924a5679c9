"""The report: the page says what the studies found, labels are text everywhere, and a study that fails leaves the rest alone."""

from __future__ import annotations

import base64
import importlib.util
import json
import shlex
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.html_page import Page
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app
from fairopt.reporting.composing import Report, report
from fairopt.reporting.tables.instance import limit_table, rule_table
from fairopt.reporting.tables.reports import bound_table
from fairopt.wording import residual

USERS = ("<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "</script><!--'שלום")
INSTANCE = fo.Instance(
    [[9, 12, 100], [12, 12, 0]],
    [[1, 2, 10], [1, 2, 1], [1, 2, 0]],
    weights=[1, 1, 2],
    users=USERS,
    servers=["{{7*7}}", "s&lt;${x}"],
    resources=["cpu\u2028", "<b>mem", "net"],
)
ASKED: dict[str, Any] = {"notions": ["drfh", "bbf", "tsf"], "schedules": ["drfh:best-fit"], "explain": [USERS[0]], "effort": 3}


_SECTIONS = ("Who gets what", "Summary", "The instance", "Allocations", "Properties", "What fairness costs", "Schedules")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A report on labels that would like to be code; bbf cannot be asked of two servers."""
    return report(INSTANCE, tmp_path_factory.mktemp("report") / "report.html", **ASKED)


@pytest.fixture(scope="module")
def page(written: Report) -> Page:
    """Its page."""
    return Page(written.path.read_text(encoding="utf-8"))


def rows(page: Page, name: str) -> list[dict[str, Any]]:
    """Return a data set of the charts."""
    found = page.data["sets"][name]
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def test_no_label_turns_the_numbers_of_a_sentence(tmp_path: Path) -> None:
    """A label may turn its own direction of writing, in a cell or a button of its own (or a command, to be copied), and nothing else."""
    user, resource = "a\u202eb", "cpu\u202e"
    turned = fo.Instance([[4, 6]], [[1, 2], [2, 1]], users=[user, "c"], resources=[resource, "memory"])
    page = Page(report(turned, tmp_path / "a.html", notions=["drfh"], explain=[user], effort=1).path.read_text(encoding="utf-8"))
    assert "4 cpu\\u202e and 6 memory in all" in page.text
    assert 'of "a\\u202eb"' in page.text
    alone = {user, resource, *(f"{resource} {what}" for what in ("of one", "of a task", "in use"))}
    assert [text for text in page.texts if "\u202e" in text and text not in alone and not text.startswith("fairopt report")] == []


# What it says --------------------------------------------------------------------------------------------------------------------


def test_the_charts_hold_what_was_solved(page: Page) -> None:
    """Tasks and shares of every user, and the parts of every server, to the digits that are kept."""
    for notion in ("drfh", "tsf"):
        allocation = fo.solve(INSTANCE, notion)
        users = {row["user"]: row for row in rows(page, "users") if row["notion"] == notion}
        np.testing.assert_allclose([users[user]["tasks"] for user in USERS], allocation.tasks_per_user, rtol=1e-5)
        whole = (INSTANCE.demands / INSTANCE.total_capacity).max(axis=1) * allocation.tasks_per_user / INSTANCE.weights
        np.testing.assert_allclose([users[user]["share"] for user in USERS], whole, rtol=1e-5)
        used = [row for row in rows(page, "use") if row["notion"] == notion]
        for i, server in enumerate(INSTANCE.servers):
            for r, resource in enumerate(INSTANCE.resources):
                part = sum(row["part"] for row in used if (row["server"], row["resource"]) == (server, resource))
                assert part == pytest.approx(allocation.utilization[i, r], abs=1e-5)


def test_every_chart_is_also_a_table(page: Page) -> None:
    """A figure is a caption, a chart and a table; each named chart has its place."""
    places = [attributes["id"] for _, attributes in page.elements if attributes.get("class") == "chart"]
    assert sorted(map(str, places)) == sorted(page.data["charts"])
    tags = [tag for tag, _ in page.elements]
    figures = [k for k, (tag, attributes) in enumerate(page.elements) if tag == "figure" and attributes.get("class") != "answer"]
    assert len(figures) == len(places) == 5
    assert all("table" in tags[start:end] for start, end in zip(figures, [*figures[1:], len(tags)], strict=True))


def test_sections_verdicts_and_certificates_are_there(page: Page, written: Report) -> None:
    """What audit, frontier, explain and formulate say is on the page, word for word."""
    for number, title in enumerate(_SECTIONS, start=1):
        assert f"{number}. {title}" in page.text
    found = written.findings.notions[0]
    assert found.audit.value is not None
    explained = found.explanations[USERS[0]].value
    assert explained is not None
    for verdict in found.audit.value.values():
        assert " ".join(verdict.statement.split()) in page.text
        assert verdict.witness is None or " ".join(verdict.witness.text.split()) in page.text
    for sentence in explained.sentences:
        assert " ".join(sentence.split()) in page.text
    assert "maximise leximin of U[n]" in page.text
    assert found.allocation is not None
    certificate = found.allocation.certificate
    residuals = [residual(value) for value in (certificate.feasibility, certificate.optimality, certificate.fairness)]
    assert " ".join([found.name, found.allocation.solver, "exact", *residuals]) in page.text


def test_the_summary_says_that_efficiency_is_by_weight(page: Page) -> None:
    """The part of the most tasks is another number, and stands in the same list."""
    assert "% of the most possible;" in page.text


def test_percentages_in_sentences_are_plain_text(page: Page) -> None:
    """Their no-break spaces are no control characters, which would be written as escapes."""
    sentence = next(text for text in page.texts if "In use: " in text)
    assert "\N{NO-BREAK SPACE}% of" in sentence
    assert "\\xa0" not in sentence


def test_a_study_that_fails_says_so_and_the_rest_stands(page: Page) -> None:
    """Bbf is defined on one pool."""
    assert 'This could not be computed: the notion "bbf" is defined on one pool' in page.text
    assert page.data["notions"] == ["drfh", "tsf"]


def test_a_report_of_nothing_but_failures_is_written_all_the_same(tmp_path: Path) -> None:
    """Nobody has a task; on the command line the exit status is 3."""
    nothing = fo.Instance([[1, 1], [1, 1]], [[1, 1]], tasks=[0])
    found = report(nothing, tmp_path / "nothing.html", notions=["bbf"], effort=1)
    assert found.findings.solved == ()
    assert "could not be computed" in found.path.read_text()
    fo.save(nothing, tmp_path / "nothing.yaml")
    arguments = ["report", str(tmp_path / "nothing.yaml"), "--notions", "bbf", "-o", str(tmp_path / "other.html")]
    assert CliRunner().invoke(app, arguments).exit_code == 3
    assert (tmp_path / "other.html").exists()


# Labels --------------------------------------------------------------------------------------------------------------------------


def test_labels_are_text(page: Page) -> None:
    """The parser sees them as text; no element comes from a label, and the data block ends where it should."""
    assert [tag for tag, _ in page.elements].count("script") == 3
    assert not {tag for tag, _ in page.elements} & {"img", "b"}
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    for label in (*USERS, *INSTANCE.servers):
        assert label in page.text
    assert page.data["users"] == list(USERS)
    assert "49" not in [cell for cell in page.texts if "7*7" in cell]


def test_the_data_block_cannot_end_early(written: Report) -> None:
    """No tag can begin in it, whatever a label holds."""
    text = written.path.read_text(encoding="utf-8")
    start = text.index('id="data">') + len('id="data">')
    block = text[start : text.index("</script>", start)]
    assert not set(block) & set("<>&'\u2028")
    assert json.loads(block)["users"] == list(USERS)


def test_labels_are_no_expressions(page: Page) -> None:
    """Charts name columns that fairopt chose; a label is only ever a value."""
    for chart in page.data["charts"].values():
        text = json.dumps({key: value for key, value in chart.items() if key != "config"}, ensure_ascii=False)
        without = text.replace(json.dumps(list(USERS), ensure_ascii=False), "").replace(json.dumps(list(INSTANCE.resources)), "")
        assert not [label for label in (*USERS, *INSTANCE.servers) if json.dumps(label, ensure_ascii=False)[1:-1] in without]


# The file ------------------------------------------------------------------------------------------------------------------------


def test_nothing_is_fetched_and_the_policy_forbids_it(page: Page, written: Report) -> None:
    """No address but places in the page and data; the policy names the hash of each script."""
    for tag, attributes in page.elements:
        for name in ("src", "href", "action", "poster", "srcset"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)
    (policy,) = [str(attributes["content"]) for _, attributes in page.elements if "http-equiv" in attributes]
    assert policy.startswith("default-src 'none'")
    assert "unsafe-inline" not in policy.partition("style-src")[0]
    assert written.path.stat().st_size < 5_000_000


def test_headings_are_in_order_and_ids_are_unique(page: Page) -> None:
    """One h1; no level is skipped; the language is said; all column and row headers have a scope."""
    levels = [int(tag[1]) for tag, _ in page.elements if tag in ("h1", "h2", "h3", "h4")]
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert ("html", {"lang": "en"}) in page.elements
    assert all("scope" in attributes for tag, attributes in page.elements if tag == "th")


def test_the_command_and_the_instance_in_the_page_give_the_same_page(tmp_path: Path) -> None:
    """Byte for byte: the page says how to make itself."""
    instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], resources=["cpu", "memory"])
    first = report(instance, tmp_path / "first.html", notions=["drfh", "proportional:alpha=2"], effort=2, title="Mine & yours")
    page = Page(first.path.read_text())
    (link,) = [attributes["href"] for _, attributes in page.elements if "download" in attributes]
    (tmp_path / "instance.yaml").write_bytes(base64.b64decode(str(link).partition("base64,")[2]))
    assert fo.load(tmp_path / "instance.yaml") == instance
    (line,) = [line for text in page.texts for line in text.splitlines() if line.startswith("fairopt report")]
    words = [str(tmp_path / word) if word in ("instance.yaml", "report.html") else word for word in shlex.split(line)[1:]]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "report.html").read_bytes() == first.path.read_bytes()


def test_a_thousand_users_fit(tmp_path: Path) -> None:
    """Under 5 MB, with curves instead of bars; every user is in the table."""
    number = np.arange(1000)
    demands = np.column_stack([1 + number % 5, 1 + number % 4])
    many = fo.Instance([[900, 700], [500, 800]], demands, counts=[30, 20], users=[f"team-{n}" for n in number])
    found = report(many, tmp_path / "many.html", notions=["drfh", "tsf"], schedules=["drfh:first-fit"], effort=1)
    assert found.path.stat().st_size < 5_000_000
    page = Page(found.path.read_text())
    assert len(rows(page, "users")) == 2000
    assert page.data["charts"]["chart-tasks"]["layer"][0]["mark"]["type"] == "area"
    assert sum("data-user" in attributes for tag, attributes in page.elements if tag == "tr") == 2 * 1000


# What is refused -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("report.pdf", {}, r"end its name in \.html"),
        ("nowhere/report.html", {}, "there is no folder .*nowhere"),
        ("report.html", {"notions": ["drhf"]}, 'there is no notion "drhf"'),
        ("report.html", {"schedules": ["drfh:best"]}, "best-fit"),
        ("report.html", {"notions": []}, "at least one notion"),
        ("report.html", {"effort": 0}, "effort is 0; give a whole number >= 1"),
        ("report.html", {"time_limit": -1}, "time_limit is -1"),
        ("report.html", {"explain": ["nobody"]}, 'there is no user "nobody"'),
        ("report.html", {"date": "26 November"}, "the date is '26 November'; write it as 2026-11-26"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(tmp_path: Path, name: str, options: dict[str, Any], message: str) -> None:
    """A message, and no file."""
    with pytest.raises(fo.FairoptError, match=message):
        report(INSTANCE, tmp_path / name, **options)
    assert not list(tmp_path.iterdir())


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is computed."""
    real = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, "fairopt.reporting.charts", None)
    for missing, words in (
        (["vl_convert"], "vl-convert-python"),
        (["altair", "jinja2", "vl_convert"], "altair, jinja2 and vl-convert-python"),
    ):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest, gone=missing: None if name in gone else real(name, *rest))
        with pytest.raises(
            fo.SolverUnavailable, match=rf"^a report needs {words}; install with: pip install '\.\[report\]' in the checkout of fairopt$"
        ):
            report(INSTANCE, tmp_path / "report.html")


def test_a_tree_of_queues_has_a_table_and_its_queues_can_be_explained(tmp_path: Path) -> None:
    """The path of each queue, its guarantee and limit, and what it holds under each notion."""
    instance = fo.load(Path(__file__).parents[2] / "examples" / "research-queues.yaml")
    target = tmp_path / "tree.html"
    fo.report(instance, target, notions=["drfh", "drfh:guarantees=clamp"], effort=1, explain=["vision"])
    text = target.read_text()
    assert "The tree of queues: dominant share of what each holds" in text
    assert "research &gt; vision &gt; interns" in text
    assert "8 gpu on model = A100" in text
    assert "The queue vision, in research, holds" in text


def test_a_report_on_a_tree_asks_for_notions_that_take_trees(tmp_path: Path) -> None:
    """Of the default notions. Users stand beside their queue; what does not apply is said once; envy is that of siblings."""
    instance = fo.Instance(
        [[8], [4]], [[1], [1]], users=["ann", "bob"], queues=[fo.Queue("lab", limit={"resource-1": 3})], queue_of=["lab", None]
    )
    found = report(instance, tmp_path / "limited.html", effort=1)
    assert [each.name for each in found.findings.notions] == ["drfh", "tsf", "proportional"]  # which takes limits
    page = Page(found.path.read_text(encoding="utf-8"))
    assert "This could not be computed" not in page.text
    assert "They are in 1 queue of 1 level." in page.text
    assert "users user queue weight" in page.text
    assert "ann lab 1 1" in page.text
    assert "Nobody would run more with what a sibling, a user or a queue, holds" in page.text
    assert "Jain's index" not in page.text  # nor any other measure across queues
    assert page.text.count("it compares every user with every other by weight alone") == 3  # once for each notion
    flat = report(instance.replace(queues=None, queue_of=None), tmp_path / "flat.html", effort=1)
    assert [each.name for each in flat.findings.notions] == ["drfh", "tsf", "psdsf", "proportional"]


def test_given_allocations_are_on_the_page_side_by_side(tmp_path: Path) -> None:
    """Before and after a change: their regret, their audits, a table by owner, and the commands that compute them."""
    instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["a/one", "b"], resources=["cpu", "memory"])
    given = {"before": [[1.0], [2.0]], "after": [[3.0], [2.0]]}
    found = report(instance, tmp_path / "page.html", notions=["drfh"], allocations=given, effort=2)
    assert [row.name for row in found.findings.given] == ["before", "after"]
    assert found.findings.audits["before"].value is not None
    assert "sharing-incentive" in found.findings.audits["before"].value
    text = found.path.read_text()
    assert "7. Your allocations, and schedules" in text
    assert "<bdi>before</bdi> (given)" in text
    assert "before (given): 3 tasks, at worst 66.7" in text
    assert "What each owner holds" in text
    assert "--allocation before.csv --allocation after.csv" in text
    assert "fairopt audit instance.yaml --allocation after.csv" in text


def test_limits_and_resources_of_the_cluster_are_tables_of_the_instance() -> None:
    """With whom they select; rules stand below as they were given."""
    instance = fo.Instance(
        [[8], [8]],
        [[1, 1], [1, 0]],
        users=["ann", "ben"],
        servers=["n1", "n2"],
        resources=["gpu"],
        shared={"ansys": 6},
        attributes=[{"zone": "a"}, {"zone": "b"}],
        limits=[fo.Limit("long", 6, resource="gpu", users=["ben"], servers="zone = a"), fo.Limit("few", 7, each="user")],
        rules=["x[ann] >= 1"],
    )
    limits, rules = limit_table(instance), rule_table(instance)
    assert limits is not None
    assert rules is not None
    assert list(limits.rows) == [("long", "6 gpu", "ben", "zone = a", "-"), ("few", "7 tasks", "all users", "all servers", "user")]
    assert list(rules.rows) == [("x[ann] >= 1",)]
    assert limit_table(INSTANCE) is rule_table(INSTANCE) is None


def test_use_of_limits_and_rules_is_a_table_of_all_allocations(tmp_path: Path) -> None:
    """8 gpu: ben stops at his limit of 2, ann has the others; a rule shows both sides."""
    pool = fo.Instance(
        [[8]], [[1], [1]], users=["ann", "ben"], resources=["gpu"], limits=[fo.Limit("long", 2, users=["ben"])], rules=["x[ann] >= 1"]
    )
    found = report(pool, tmp_path / "report.html", notions=["drfh", "tsf"], effort=1)
    table = bound_table(found.findings)
    assert table is not None
    assert list(table.rows) == [
        ("long", *["2 tasks, at most 2 tasks: reached"] * 2),
        ("x[ann] >= 1", *["6, at least 1"] * 2),
    ]
    assert table.title in (tmp_path / "report.html").read_text()
