"""Comparisons, regrets, frontiers, what-ifs, studies and tables where demands and speeds differ by server: they count work."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pytest
from scipy.optimize import linprog

import fairopt as fo
from fairopt.analysis.owners import owner_holdings
from fairopt.analysis.rerun import given
from fairopt.reporting.tables.answers import answer_of
from fairopt.reporting.tables.comparison import comparison_blocks
from fairopt.reporting.tables.instance import user_table
from fairopt.reporting.tables.queues import tree_of
from fairopt.results.schema import KINDS, schema

LAB = fo.Instance(
    [[8], [8]], [[[1], [2]], [[1], [1]]], speeds=[[1.0, 0.5], [1.0, 1.0]], users=["a", "b"], servers=["s", "t"], resources=["gpu"]
)
MINE = np.array([[8, 0], [0, 4]])


def test_a_comparison_counts_work() -> None:
    """Efficiency is the work of all, in parts of the most; envy and regret are in work."""
    comparison = fo.compare(LAB, notions=["max-min", "efficiency"], allocations={"mine": MINE / 2}, reference="max-min")
    assert comparison.largest_total == pytest.approx(16)
    mine = comparison["mine"]
    best = fo.solve(LAB, "max-min").work.sum()
    assert mine.work == 6
    assert mine.efficiency == pytest.approx(6 / 16)
    assert mine.regret is not None
    assert mine.regret.total == pytest.approx((best - 6) / best)
    data = json.loads(json.dumps(comparison.to_dict()))
    jsonschema.validate(data, schema(KINDS["compare"]))
    assert [user["work"] for user in data["rows"][2]["users"]] == [4, 2]
    assert comparison.to_frame().loc["mine", "work of b"] == 2
    said = [str(block) for block in comparison_blocks(comparison, 200)]
    assert any("total: shortfall of all work together (negative: more work than the exact allocation)." in block for block in said)
    assert "work of each user" in str(comparison.plot().axes[0].get_title(loc="left")).lower()
    assert [each.dominant_share for each in owner_holdings(given(LAB, MINE, "rdm"))] == [0.5, 0.25]


def test_regrets_in_fractions_are_of_work() -> None:
    """The total of a schedule of whole tasks, against the exact optimum in fractions."""
    greedy = fo.schedule(LAB, "max-min", exact=True)
    found = fo.regret(greedy)
    best = fo.solve(LAB, "max-min", exact=True)
    assert found.exact is not None
    assert found.compared is not None
    assert best.exact is not None
    total = best.in_fractions.work.sum()
    assert found.exact["total"] == (total - greedy.in_fractions.work.sum()) / total
    assert found.compared.users[0][1] == greedy.work[0]


def test_the_frontier_of_work() -> None:
    """Its vertices are those of linear programs over pairs; alpha-fair points lie on or below it."""
    found = fo.frontier(LAB, alphas=[0, 1, np.inf], notions=["max-min", "cdrf"], of="shares")
    unit = np.array([1 / 10, 1 / 16])  # drfh: 8 on s and 4 of half the work on t; 16 everywhere
    use = np.array([[1, 0, 1, 0], [0, 2, 0, 1]])  # pairs a on s, a on t, b on s, b on t
    work = np.array([1, 0.5, 1, 1])
    shares = -np.array([[1, 0.5, 0, 0], [0, 0, 1, 1]]) * unit[:, None]
    for total, share in found.vertices:
        most: Any = linprog(-work, A_ub=np.vstack([use, shares]), b_ub=[8, 8, -share * (1 - 1e-12), -share * (1 - 1e-12)])
        assert -float(most.fun) == pytest.approx(total)
    assert found.largest_total == pytest.approx(16)
    assert (found.total_of, found.alpha_fair_in, fo.frontier(LAB, alphas=[1], notions=[]).alpha_fair_in) == ("work", "shares", "work")
    for point in found:
        assert point.allocation is not None, point.message
        assert point.total == pytest.approx(point.allocation.work.sum())
        assert point.below >= 0
    assert found["alpha=inf"].below == pytest.approx(0, abs=1e-7)  # max-min in these shares


def test_a_what_if_and_a_study_count_work() -> None:
    """A faster server is a difference of its own; a study has a column of work."""
    faster = LAB.replace(speeds=[[1, 1], [1, 1]])
    found = fo.what_if(LAB, faster, notions=["cdrf"])
    before, after = fo.solve(LAB, "cdrf").work, fo.solve(faster, "cdrf").work
    assert [change.change for change in found.changes("cdrf")] == pytest.approx((after - before).tolist())
    assert "users.a.on: gpu 2 and speed 0.5 on t -> gpu 2 on t" in str(found)
    study = fo.study({"lab": LAB}, notions=["max-min"], workers=1)
    assert study["work"].tolist() == pytest.approx([fo.solve(LAB, "max-min").work.sum()])


def test_tables_show_ranges() -> None:
    """Of what a task takes, and of what it does."""
    columns = {column.title: column for column in user_table(LAB).columns}
    assert "0.5 to 1" in str(columns["speed"])
    assert "1 to 2" in str(columns["gpu of a task"])


CELLS = Path(__file__).parents[2] / "benchmarks" / "results" / "replacing.json"


@pytest.mark.skipif(not CELLS.exists(), reason="about the repository, and this is a copy of the tests")
def test_every_counterexample_of_the_page_fails() -> None:
    """What the tables of docs/explanation/replacing.md say no to; lies are told again in the tests of audits."""
    cells = [cell for cell in json.loads(CELLS.read_text())["cells"] if cell["instance"] and cell["property"] != "strategy-proofness"]
    assert len(cells) > 15
    for cell in cells:
        tasks = [np.inf if each is None else each for each in cell["instance"].pop("tasks", [])] or None
        allocation = fo.solve(fo.Instance(**cell["instance"], tasks=tasks), cell["notion"])
        assert fo.audit(allocation, [cell["property"]]).violated, cell


@pytest.mark.skipif(not CELLS.exists(), reason="about the repository, and this is a copy of the tests")
def test_the_page_says_no_where_there_is_a_counterexample() -> None:
    """In both tables, of all notions that take such instances; "drf" and "bbf" are about one server."""
    page = (CELLS.parents[2] / "docs" / "explanation" / "replacing.md").read_text(encoding="utf-8")
    cells = json.loads(CELLS.read_text())["cells"]
    tables = [
        page.partition(f"| {head} |")[2].partition("\n\n")[0] for head in ("nobody runs out of tasks", "users have finitely many tasks")
    ]
    for tasks, table in zip((False, True), tables, strict=True):
        columns, _, *rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()]
        said = {
            (notion, name.lower().replace(" ", "-")): cell
            for first, *own in rows
            for notion in re.findall("`([a-z-]+)`", first)
            for name, cell in zip(columns, own, strict=True)
        }
        found = {(cell["notion"], cell["property"]): cell["instance"] is not None for cell in cells if cell["tasks"] == tasks}
        assert {key: cell == "no" for key, cell in said.items()} == found
        assert {notion for notion, _ in found} == {name for name, kind in fo.NOTIONS.items() if kind.by_server} - {"drf", "bbf"}


@pytest.mark.parametrize("notion", ["cdrf", "proportional"])
def test_what_is_proved_has_no_counterexample(notion: str) -> None:
    """Slices of `cdrf`, and slices and envy of `proportional`, where nobody runs out of tasks; and what the notion promises."""
    proved = ["sharing-incentive", "envy-freeness"] if notion == "proportional" else ["sharing-incentive"]
    for seed in range(8):
        rng = np.random.default_rng([seed, 50])
        n, r = int(rng.integers(2, 5)), int(rng.integers(1, 3))
        instance = fo.Instance(
            rng.uniform(1, 9, (3, r)), rng.uniform(0.3, 4, (n, 3, r)), speeds=rng.uniform(0.2, 4, (n, 3)), weights=rng.uniform(0.5, 2, n)
        )
        audit = fo.audit(fo.solve(instance, notion), proved)
        assert not audit.violated, seed
        assert all(verdict.promised is not None for verdict in audit.values())
        few = fo.solve(instance.replace(tasks=np.ones(n)), notion)
        assert all(verdict.promised is None for verdict in fo.audit(few, proved).values())


def test_queues_and_owners_do_the_work_of_their_users() -> None:
    """In the tree, in frames, in JSON and side by side; 8 and 4 tasks do 8 and 2 + 2 of work."""
    queues = [fo.Queue("ml"), fo.Queue("vision", "ml"), fo.Queue("guests")]
    lab = fo.Instance(
        [[8], [8]], [[1]] * 3, speeds=[[1, 0.5]] * 3, users=["a", "b", "c"], resources=["gpu"], queues=queues,
        queue_of=["vision", "ml", "guests"], owners=["x", "y", "x"],
    )  # fmt: skip
    allocation = given(lab, np.array([[3, 1], [2, 0], [0, 4]]), "rdm")
    work = {"the cluster": 7.5, "ml": 5.5, "vision": 3.5, "guests": 2.0}
    assert {each.name: each.work for each in allocation.queue_holdings()} == work
    assert allocation.to_frame(by="queue")["work"].to_dict() == work
    assert {each["name"]: each["work"] for each in allocation.to_dict()["queues"]} == {name: work[name] for name in list(work)[1:]}
    column = next(column for column in tree_of(allocation).table.columns if column.title == "work")
    assert list(column.values) == [5.5, 3.5, 3.5, 2, 2, 2, 7.5]  # ml, vision, a, b, guests, c, all
    assert [(each.name, each.work) for each in owner_holdings(allocation)] == [("x", 5.5), ("y", 2)]
    compared = fo.compare(lab, notions=["drfh"], allocations={"mine": allocation.tasks})
    jsonschema.validate(json.loads(json.dumps(compared.to_dict(by="owner"))), schema(KINDS["compare"]))
    assert compared.to_frame(by="owner").loc[("mine", "x"), "work"] == 5.5
    exact = fo.solve(lab, "drfh", exact=True).in_fractions.queue_holdings()
    assert exact[1].work + exact[3].work == exact[0].work == 12  # type: ignore[operator]
    assert [column.title for column in answer_of(compared["mine"], []).table.columns][:3] == ["queue, user", "tasks", "work"]
    plain = fo.solve(lab.replace(speeds=None), "drfh")
    assert "work" not in plain.to_dict()["queues"][0]
    assert "work" not in plain.to_frame(by="queue")
