"""Finish-time ratios of users in a comparison: the formula of Themis, written down again, in every row and every form."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import fairopt as fo
from fairopt.analysis.finish_ratios import columns_of_ratios
from fairopt.cli import app
from fairopt.reporting.tables.comparison import comparison_blocks
from fairopt.show.terminal import print_blocks

LEFT, ELAPSED, ALONE = np.array([60.0, 600, 30]), np.array([0.0, 100, 30]), np.array([0.0, 50, 30])
NOTION = ("finish-time", {"left": LEFT, "elapsed": ELAPSED, "alone": ALONE})


def lab() -> fo.Instance:
    """Return two kinds of servers; ann's tasks take 2 GPUs and are half as fast on the second, bob weighs 2."""
    return fo.Instance(
        [[8], [12]], [[[1], [2]], [[2], [2]], [[1], [1]]], speeds=np.array([[1, 0.5], [1, 1], [1, 0.8]]), weights=[1, 2, 1],
        users=["ann", "bob", "cy"], servers=["a100", "v100"], resources=["gpu"],
    )  # fmt: skip


def test_every_row_has_the_ratios_of_its_users() -> None:
    """rho = (elapsed + left / rate) / (alone + left / rate alone), of exact allocations, schedules and given ones, by server."""
    own = np.array([[2.0, 1], [1, 3], [0, 4]])
    found = fo.compare(lab(), notions=["max-min", NOTION], schedules=["max-min:first-fit"], allocations={"mine": own})
    slices = np.array([1 / 4, 1 / 2, 1 / 4])
    rate_alone = slices * np.array([8 + 0.5 * 6, 4 + 6, 8 + 0.8 * 12])
    for row in found:
        assert row.allocation is not None
        rate = (row.allocation.tasks * lab().speeds).sum(axis=1)
        assert row.finish_ratios == pytest.approx((ELAPSED + LEFT / rate) / (ALONE + LEFT / rate_alone), rel=1e-9)
    fair = found.rows[1]
    assert fair.finish_ratios == pytest.approx(1 / fair.allocation.shares, rel=1e-7)  # type: ignore[union-attr]
    table = found.to_frame()
    assert table["finish_ratio_largest"].idxmin() == fair.name  # which minimises the largest
    assert table["finish_ratio_above_1"].tolist() == [int((np.asarray(row.finish_ratios) > 1 + 1e-8).sum()) for row in found]


def test_an_owner_has_the_largest_ratio_of_its_users() -> None:
    """In frames, in JSON and in the table by owner; and none where finish-time is not asked for."""
    owned = lab().replace(owners={"ann": "chemistry", "bob": "physics", "cy": "chemistry"})
    found = fo.compare(owned, notions=["max-min", NOTION])
    frame, rows = found.to_frame(by="owner"), found.to_dict(by="owner")["rows"]
    for row, plain in zip(found, rows, strict=True):
        assert row.finish_ratios is not None
        expected = {"chemistry": max(row.finish_ratios[[0, 2]]), "physics": row.finish_ratios[1]}
        assert frame.loc[row.name]["finish_ratio"].to_dict() == pytest.approx(expected)
        assert {each["name"]: each["finish_ratio"] for each in plain["owners"]} == pytest.approx(expected)
    console = Console(width=100, file=io.StringIO())
    print_blocks(console, comparison_blocks(found, console.width, by="owner"))
    assert "largest finish-time ratio, of owners" in console.file.getvalue()  # type: ignore[attr-defined]
    assert "finish_ratio" not in fo.compare(owned).to_frame(by="owner")


def test_who_holds_nothing_never_finishes() -> None:
    """inf in Python, null in JSON; who could do nothing alone has no ratio. Queues finish at no time, so a tree has no ratios."""
    pool = fo.Instance([[8], [1]], [[1], [1], [1]], users=["a", "b", "c"], eligibility=[[1, 0], [1, 0], [0, 1]], counts=[1, 0])
    found = fo.compare(pool, notions=["finish-time"], allocations={"mine": [[8, 0], [0, 0], [0, 0]]})
    ratios = found["mine"].finish_ratios
    assert ratios is not None
    assert (ratios[0], ratios[1], bool(np.isnan(ratios[2]))) == (1 / 3, np.inf, True)
    row = found.to_dict()["rows"][1]
    assert (row["finish_ratio_largest"], row["finish_ratio_above_1"]) == (None, 1)
    assert [user["finish_ratio"] for user in row["users"]] == [1 / 3, None, None]
    assert columns_of_ratios([np.array([0.5, np.inf, np.inf]), np.zeros(0)])["finish_ratio_median"][0] == np.inf
    tree = fo.Instance([[8]], [[1], [1]], queues=[fo.Queue("q")], queue_of=["q", None])
    assert fo.compare(tree, notions=["drfh", "finish-time"])["drfh"].finish_ratios is None
    assert "finish_ratio_largest" not in fo.compare(pool).to_frame()


def test_the_command_shows_them(tmp_path: Path) -> None:
    """As a table of its own, and in JSON."""
    path = tmp_path / "lab.yaml"
    fo.save(lab(), path)
    words = ["compare", str(path), "--notions", "finish-time:left=60+600+30:elapsed=0+100+30:alone=0+50+30,drfh"]
    shown, data = (CliRunner().invoke(app, [*words, *more]) for more in ([], ["--json"]))
    assert (shown.exit_code, data.exit_code) == (0, 0), shown.output
    assert "finish-time ratio, of users" in shown.stdout
    rows = json.loads(data.stdout)["rows"]
    assert rows[0]["finish_ratio_largest"] <= rows[1]["finish_ratio_largest"]
    assert all(user["finish_ratio"] > 0 for user in rows[1]["users"])
