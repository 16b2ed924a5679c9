"""What the benchmark of growth concludes from its measurements, and that a run that was stopped goes on where it was."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairopt as fo

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="about the repository, and this is a copy of the tests")


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The scripts, which import each other from their own folder."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return {name: importlib.import_module(name) for name in ("growth", "growth_pages", "measuring")}


def rows_of(power: float, name: str = "fairopt") -> list[dict[str, Any]]:
    """Seconds like a power of the size."""
    return [
        {"series": "x", "size": n, "contender": name, "processor": 1e-6 * n**power, "peak_mib": 9.0, "error": 0.0, "gap": 0.0}
        for n in (1e4, 1e5, 1e6)
    ]


def test_slope_and_distance_from_a_straight_line(modules: dict[str, Any]) -> None:
    """A power is found again; of time like n^1.5 over two decades the last size is sqrt(10) times above the line."""
    pages = modules["growth_pages"]
    assert pages.slope(rows_of(1.5), "fairopt") == pytest.approx(1.5)
    assert pages.slope(rows_of(1.5)[:2], "fairopt") is None
    text = "\n".join(pages.table("title", "pairs", rows_of(1.5)))
    assert "to the power of 1.50** (asked: at most 1.3), from 10,000 to 1,000,000 pairs" in text
    assert f"exceeded by a factor of {10**0.5:.2f} at most" in text
    assert "Every size was solved once." in text
    repeated = [row | {"repeats": 3, "spread": 0.25} for row in rows_of(1.5)]
    assert "Repeats of one size differ by 25% at most." in "\n".join(pages.table("title", "pairs", repeated))


def test_the_reference_is_not_compared_with_itself(modules: dict[str, Any]) -> None:
    """Its certificate speaks for it; the others have an error and a gap. All rows are as wide as their heads."""
    reference = [row | {"engine": "highs", "residual": 3e-16} for row in rows_of(1.0)]
    lines = [line for line in modules["growth_pages"].table("title", "users", reference + rows_of(1.0, "HiGHS")) if line.startswith("|")]
    assert {line.count("|") for line in lines} == {9}
    assert lines[2].endswith("| fairopt (highs, residual 3e-16) | 0.010 | 1.00 |  | 9 | | |")
    assert lines[3].endswith("| 0e+00 | 0e+00 |")


def test_only_the_limit_of_time_is_called_that(modules: dict[str, Any], tmp_path: Path) -> None:
    """A process that the system ends for another reason, such as for want of memory, was not too slow."""
    script = tmp_path / "script.py"
    script.write_text("import os, signal, sys; os.kill(os.getpid(), getattr(signal, sys.argv[1]))")
    measured = modules["measuring"].in_own_process
    assert measured(str(script), ["SIGXCPU"], 5.0) == {"failed": "over 5 s"}
    assert measured(str(script), ["SIGKILL"], 5.0) == {"failed": "stopped by SIGKILL"}


def test_who_would_take_too_long_is_foreseen(modules: dict[str, Any]) -> None:
    """From the last two sizes, and linear at least."""
    expected = modules["growth"].expected
    assert expected([], 1e7) == 0
    assert expected(rows_of(1.5), 1e7) == pytest.approx(1e-6 * 1e7**1.5)
    assert expected(rows_of(0.5), 1e7) == pytest.approx(10 * 1e-6 * 1e6**0.5)


def test_a_stopped_run_goes_on(modules: dict[str, Any], tmp_path: Path) -> None:
    """What was measured is there again, but for a line that was being written; another question begins anew."""
    Journal = modules["growth"].Journal
    first = Journal(tmp_path / "rows", "this machine")
    for row in rows_of(1.0):
        first.add(row)
    with first.lines.open("a") as file:
        file.write('{"series": "x", "si')
    again = Journal(tmp_path / "rows", "this machine")
    assert list(again.rows.values()) == rows_of(1.0)
    again.add(rows_of(1.0, "HiGHS")[0])
    assert len(Journal(tmp_path / "rows", "this machine").rows) == 4
    assert Journal(tmp_path / "rows", "another machine").rows == {}


def test_exactness_of_an_answer(modules: dict[str, Any]) -> None:
    """A tenth too much for everybody is an error of a tenth and no gap; half of it for one of two is a gap of a half."""
    exactness = modules["measuring"].exactness
    instance = fo.Instance([[10.0]], [[1.0], [1.0]])
    certified, per_task = np.array([5.0, 5.0]), np.array([0.1, 0.1])
    assert exactness(instance, certified[:, None] * 1.1, certified, per_task) == pytest.approx({"error": 0.1, "gap": 0.0}, abs=1e-12)
    assert exactness(instance, np.array([[2.5], [5.0]]), certified, per_task) == pytest.approx({"error": 0.5, "gap": 0.5})
    assert exactness(instance, np.array([[2.5], [5.0]]), certified, None) == pytest.approx({"error": 0.5, "gap": 1 - 0.5**0.5})
    assert exactness(instance, np.array([[5.0], [9.0]]), certified, per_task, lowest=True)["error"] == 0.0


def test_every_curve_has_a_look_and_a_series_a_reference(modules: dict[str, Any]) -> None:
    """No contender is left out of the plots; the first of a series is ours, and the pairs reach from 1e4 to 1e6."""
    growth, pages = modules["growth"], modules["growth_pages"]
    names = {name for series in growth.ALL.values() for name in series.names}
    assert names <= set(pages._LOOKS)
    assert names <= set(growth.contenders.CONTENDERS)
    assert len(set(pages._LOOKS.values())) == len(pages._LOOKS) - 3  # the three of proportional fairness look like their namesakes
    assert all(series.names[0].startswith("fairopt") for series in growth.ALL.values())
    assert [series.sizes[::4] for series in growth.SERIES.values() if series.axis == "pairs"] == [(1e4, 1e6)] * 4
