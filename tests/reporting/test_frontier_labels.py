"""The names in the frontier's chart of a report: those of the picture, each once, in the colours of the pictures."""

from __future__ import annotations

import pytest

import fairopt as fo
from fairopt.plots.colours import NOTIONS, PLACEMENTS
from fairopt.reporting.charts import charts
from fairopt.reporting.data import data
from fairopt.reporting.findings import Findings, study

POOL = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"])


@pytest.fixture(scope="module")
def findings() -> Findings:
    """Return the analyses of a pool of two users."""
    return study(
        POOL,
        ["drf", "efficiency"],
        ["drf:best-fit"],
        [],
        allocations={"$mine$": [[1], [1]]},
        sharing=None,
        effort=1,
        seed=0,
        time_limit=None,
        done=lambda _: None,
    )


def test_every_point_is_named_once_in_its_colour(findings: Findings) -> None:
    """Points in one place share one label; a dollar is a dollar."""
    table = data(findings)["points"]
    rows = {row[0]: dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}
    labels = [row["label"] for row in rows.values() if row["label"]]
    words = "\n".join(labels)
    for name in ("drf", "efficiency", "$mine$"):
        assert sum(name in label.replace("\n", " ").replace(",", " ").replace(";", " ").split() for label in labels) == 1
    assert "\N{GREEK SMALL LETTER ALPHA}" in words
    assert "\\" not in words
    assert rows["drf"]["colour"] == NOTIONS["drf"]
    assert rows["efficiency"]["colour"] == NOTIONS["efficiency"]
    assert rows["drf:best-fit"]["colour"] == PLACEMENTS["best-fit"]
    for row in rows.values():  # a label keeps off its mark
        assert not row["label"] or max(abs(row["dx"]), abs(row["dy"])) >= 8


def test_the_chart_writes_them(findings: Findings) -> None:
    """As text beside the marks, whose colours are those of the data."""
    chart = charts(findings)["chart-frontier"]
    (text,) = [layer for layer in chart["layer"] if layer["mark"]["type"] == "text"]
    assert text["encoding"]["text"]["field"] == "label"
    assert (text["mark"]["dx"], text["mark"]["dy"]) == ({"expr": "datum.dx"}, {"expr": "datum.dy"})
    (points,) = [layer for layer in chart["layer"] if layer["mark"]["type"] == "point"]
    assert points["encoding"]["color"] == {"field": "colour", "scale": None, "type": "nominal"}
