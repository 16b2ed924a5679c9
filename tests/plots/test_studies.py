"""The picture of a study: means with standard errors, names beside them, and a panel for each instance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app
from fairopt.plots import plot_study
from fairopt.plots.colours import NOTIONS

SMALL = fo.Instance([[9, 18]], [[1, 4], [3, 1]])


def study(instances: dict[str, list[float]]) -> pd.DataFrame:
    """Return what a study returns, with these efficiencies over the seeds."""
    rows = [
        {"instance": name, "seed": seed, "entry": entry, "kind": kind, "tasks": 3.0, "efficiency": value * part, "smallest_share": part / 2}
        for name, values in instances.items()
        for seed, value in enumerate(values)
        for entry, kind, part in (("drfh", "exact", 1.0), ("drfh:best-fit", "greedy", 0.5))
    ]
    return pd.DataFrame(rows).assign(jain=1.0, seconds=1.0)


def test_marks_are_means_and_bars_are_standard_errors() -> None:
    """0.6 and 0.8: 0.7, and 0.1 on both sides; the name stands beside it, and the mark has the colour of its notion."""
    figure = plot_study(study({"one": [0.6, 0.8]}))
    (axes,) = figure.axes
    mark = axes.containers[0].lines[0]  # type: ignore[attr-defined]
    assert np.ravel(mark.get_data()).tolist() == pytest.approx([0.7, 0.5])
    assert mark.get_color() == NOTIONS["drfh"]
    bars = [np.asarray(each.get_segments()[0]) for each in axes.containers[0].lines[2]]  # type: ignore[attr-defined]
    assert np.ptp(bars[0][:, 0]) == pytest.approx(0.2)
    assert sorted(text.get_text() for text in axes.texts if text.get_text()) == ["DRFH", "DRFH, best-fit"]
    assert figure.get_suptitle() == "Fairness against efficiency, mean and standard error of 2 seeds"


def test_bars_are_the_interval_of_the_table_beside_it() -> None:
    """Half widths of three seeds: the deviation, and Student's t with two degrees of freedom, 4.3027, times the error."""
    rows = study({"one": [0.6, 0.7, 0.8]})
    for interval, half in (("sd", 0.1), ("ci95", 4.302652729911275 * 0.1 / 3**0.5)):
        figure = plot_study(rows, interval=interval)  # type: ignore[arg-type]
        bars = [np.asarray(each.get_segments()[0]) for each in figure.axes[0].containers[0].lines[2]]  # type: ignore[attr-defined]
        assert np.ptp(bars[0][:, 0]) == pytest.approx(2 * half)
    assert " ".join(figure.get_suptitle().split()) == "Fairness against efficiency, mean and 95 % confidence interval of 3 seeds"
    with pytest.raises(fo.Unsupported, match='interval is \'iqr\'; give "se", "sd" or "ci95"'):
        plot_study(rows, interval="iqr")  # type: ignore[arg-type]


def test_names_as_in_the_table_beside_it() -> None:
    """Of entries and instances; an axis of parts ends at the whole."""
    titles = {"one": "A long name of an instance that is not cut but broken", "drfh:best-fit": "Best fit"}
    axes = plot_study(study({"one": [0.97, 1.0]}), titles=titles).axes[0]
    assert sorted(text.get_text() for text in axes.texts if text.get_text()) == ["Best fit", "DRFH"]
    assert axes.get_title(loc="left").replace("\n", " ") == titles["one"]
    assert max(axes.get_xticks()) <= 1.0


def test_a_panel_for_each_instance_and_no_more_than_nine() -> None:
    """The others are counted below."""
    figure = plot_study(study({f"i{n}": [0.5] for n in range(11)}))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [f"i{n}" for n in range(9)]
    assert figure.get_supxlabel() == "2 more instances not shown"


def test_jain_and_axes_of_the_caller() -> None:
    """An unknown measure, and a study without an allocation, are refused."""
    axes = Figure().subplots()
    plot_study(study({"one": [0.6, 0.8]}), "jain", ax=axes)
    assert axes.get_ylabel().startswith("Jain")
    with pytest.raises(fo.Unsupported, match='no picture of "envy"; choose from smallest_share, jain'):
        plot_study(study({"one": [0.6]}), "envy")  # type: ignore[arg-type]
    with pytest.raises(fo.Unsupported, match="no row of the study has an allocation"):
        plot_study(study({"one": [float("nan")]}))


def test_the_option_draws_it(tmp_path: Path) -> None:
    """Beside the table; another ending is refused before anything is computed."""
    fo.save(SMALL, tmp_path / "small.yaml")
    command = ["study", str(tmp_path / "small.yaml"), "--notions", "drf,efficiency", "--workers", "1", "--plot"]
    result = CliRunner().invoke(app, [*command, str(tmp_path / "out.svg")])
    assert result.exit_code == 0, result.output
    assert ">efficiency<" in (tmp_path / "out.svg").read_text()
    assert CliRunner().invoke(app, [*command, str(tmp_path / "own.svg"), "--rename", "drf=Ours"]).exit_code == 0
    assert ">Ours" in (tmp_path / "own.svg").read_text()
    drawn = ["study", "--generate", "google:users=4:servers=2", "--seeds", "2", "--interval", "ci95", "--workers", "1"]
    result = CliRunner().invoke(app, [*drawn, "--plot", str(tmp_path / "ci.svg"), "--table", str(tmp_path / "ci.md")])
    assert result.exit_code == 0, result.output
    assert "95 % confidence" in (tmp_path / "ci.svg").read_text()
    assert ">google, 4 users, 2 servers<" in (tmp_path / "ci.svg").read_text()
    assert CliRunner().invoke(app, [*command, str(tmp_path / "out.gif")]).exit_code == 2
