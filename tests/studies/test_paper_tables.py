"""Tables of studies for papers: the statistics by hand, what is missing is counted, and LaTeX that LaTeX can set."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.command_line import flat, run
from support.latex import check_latex

import fairopt as fo
from fairopt.reporting.notebook import html_of
from fairopt.reporting.tables.studies import study_blocks
from fairopt.studies.means import Interval, spread
from fairopt.studies.measures import chosen_measures
from fairopt.studies.sweep import summary
from fairopt.studies.titles import entry_title, instance_title, long_title

NASTY = ("a_b & 50% #1", "[c] $x^2$ ~{d}", "*e\\f", 'x <y> | "z" `u` -- v', "± ≥ … ∞")


def cells(table: fo.StudyTable) -> dict[str, tuple[str, ...]]:
    """Return the texts of each row, by entry."""
    return {row[0]: row[1:] for row in table.table.rows}


def study(values: dict[str, list[float]], **columns: Any) -> pd.DataFrame:
    """Return the rows of a study of one instance with these tasks, by seed."""
    rows = [
        {"instance": "lab", "seed": seed, "entry": entry, "kind": "exact", "tasks": tasks, "efficiency": tasks / 1000, "message": ""}
        for entry, tasks_of in values.items()
        for seed, tasks in enumerate(tasks_of)
    ]
    return pd.DataFrame(rows).assign(**columns)


# The statistics ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", ["se", "sd", "ci95"])
def test_intervals_are_those_of_the_textbook(interval: Interval) -> None:
    """s / sqrt n, s, and t s / sqrt n, the last one as scipy has it."""
    values = np.array([3.0, 5.0, 4.5, 7.25, 1.0])
    error = values.std(ddof=1) / math.sqrt(5)
    low, high = stats.t.interval(0.95, 4, loc=values.mean(), scale=error)
    expected = {"se": error, "sd": values.std(ddof=1), "ci95": (high - low) / 2}
    assert spread(values, interval) == pytest.approx(expected[interval])
    assert math.isnan(spread(values[:1], interval))


def test_a_mean_has_two_digits_of_its_error() -> None:
    """387, 399 and 411: the mean 399, s = 12, the error 12 / sqrt 3 = 6.9; or as many digits of the mean as are asked for."""
    rows = study({"drfh": [387.0, 399.0, 411.0]})
    assert cells(fo.study_table(rows, ["tasks"], interval="sd")) == {"DRFH": ("399 ± 12",)}
    assert cells(fo.study_table(rows, ["tasks", "efficiency"])) == {"DRFH": ("399.0 ± 6.9", "39.90 ± 0.69")}
    assert cells(fo.study_table(rows, ["tasks"], digits=2)) == {"DRFH": ("399 ± 7",)}
    assert cells(fo.study_table(rows, ["tasks"], digits=6)) == {"DRFH": ("399.000 ± 6.928",)}


def test_seeds_are_paired() -> None:
    """Two entries differ by 20, 22 and 24, however much the seeds differ: 22 ± 2 (their standard deviation)."""
    rows = study({"drfh": [100.0, 500.0, 300.0], "drfh:best-fit": [80.0, 478.0, 276.0]})
    table = fo.study_table(rows, ["tasks"], interval="sd", reference="drfh")
    assert cells(table)["DRFH, best-fit"] == ("280 ± 200", "-22.0 ± 2.0")
    assert cells(table)["DRFH"] == ("300 ± 200", "reference")
    assert table.to_frame()[["tasks difference", "tasks difference sd"]].to_numpy()[1].tolist() == [-22.0, 2.0]
    found = fo.study_table(rows, ["tasks"], interval="ci95", reference="drfh").to_frame().loc[[("lab", "drfh:best-fit")]]
    low, high = stats.t.interval(0.95, 2, loc=-22.0, scale=2.0 / math.sqrt(3))
    assert found["tasks difference"].tolist() == [-22.0]
    assert found["tasks difference ci95"].tolist() == pytest.approx([(high - low) / 2])


def test_a_difference_of_rounding_is_none() -> None:
    """Two engines agree to 1e-12."""
    rows = study({"drfh": [0.3, 7.0], "tsf": [0.1 + 0.2, 7.0 + 1e-12]})
    assert cells(fo.study_table(rows, ["tasks"], reference="drfh"))["TSF"][1] == "0"


def test_the_means_are_those_of_the_summary() -> None:
    """Of a real study: two ways to the same numbers."""
    from fairopt.studies.sweep import summary

    rows = fo.study({"pairs": "kesidis:users=4"}, schedules=["drfh:best-fit"], seeds=range(3), workers=1)
    table, means = fo.study_table(rows).to_frame(), summary(rows)
    for name in ("tasks", "tasks error", "efficiency", "regret level error", "jain"):
        assert table[name].to_numpy() == pytest.approx(means[name].to_numpy(), nan_ok=True)
    assert "Mean ± standard error over 3 seeds." in repr(fo.study_table(rows))


# What is missing is said -------------------------------------------------------------------------------------------------------------


def test_failures_are_counted() -> None:
    """Seed 1 of best fit has no allocation: its mean is that of 80 and 276, and the difference that of the same seeds."""
    rows = study({"drfh": [100.0, 500.0, 300.0], "drfh:best-fit": [80.0, math.nan, 276.0]})
    rows.loc[rows["tasks"].isna(), "message"] = "the time limit is reached"
    table = fo.study_table(rows, ["tasks"], reference="drfh")
    assert cells(table)["DRFH, best-fit"] == ("2 of 3", "178 ± 98", "-22.0 ± 2.0")
    assert "DRFH, best-fit: 1 of 3 seeds without an allocation (the time limit is reached), left out of its means." in table.notes
    assert table.to_frame()["failed"].tolist() == [0, 1]
    for text in (table.to_latex(), table.to_markdown(), table.to_html()):
        assert "without an allocation" in text


def test_rows_that_are_not_there_are_counted() -> None:
    """As are measures that some seeds do not have, and those that none has."""
    rows = study({"drfh": [100.0, 500.0, 300.0], "tsf": [80.0, 478.0, 276.0]}, envy=[1.0, math.nan, 3.0, 1.0, 2.0, 3.0], jain=math.nan)
    table = fo.study_table(rows.drop(index=3), ["tasks", "envy", "jain"], reference="drfh")
    assert [note for note in table.notes if "left out" in note or "envy of" in note or "No seed" in note] == [
        "DRFH: envy of 2 of 3 seeds.",
        "TSF: no row of 1 of 3 seeds, left out of its means.",
        "TSF: Δ envy of 1 pair of seeds.",
        "No seed has a value of Jain's index.",
    ]


def test_nothing_at_all() -> None:
    """A study in which all failed is a table that says so."""
    table = fo.study_table(study({"drfh": [math.nan, math.nan]}), reference="drfh")
    assert cells(table) == {"DRFH": ("0 of 2",)}
    assert "DRFH: 2 of 2 seeds without an allocation, left out of its means." in table.notes


def test_one_seed_has_no_interval() -> None:
    """And the notes say so."""
    table = fo.study_table(study({"drfh": [1.5]}), ["tasks"], interval="ci95")
    assert cells(table) == {"DRFH": ("1.5",)}
    assert table.notes[0] == "Values of one seed, so there is no interval."


# Words ---------------------------------------------------------------------------------------------------------------------------


def test_titles_in_the_place_of_identifiers() -> None:
    """Of every notion; one's own notions keep their names; an abbreviation is spelled out in the notes."""
    assert entry_title("psdsf:period=1, whole tasks") == "PS-DSF (period = 1), whole tasks"
    assert entry_title("mine.py:fair:best-fit") == "mine.py, fair, best-fit"
    assert instance_title("gpus:users=1:rate=0.3") == "gpus, 1 user, rate = 0.3"
    assert instance_title("C:users") == "C:users"
    for notion, chosen in fo.NOTIONS.items():
        assert entry_title(notion)[0].isupper(), notion
        assert long_title(notion) in ("", chosen.title)
    table = fo.study_table(study({"drfh": [1.0], "tsf": [2.0]}), ["tasks"], titles={"tsf": "Ours", "tasks": "run", "lab": "L"})
    assert (table.table.columns[1].title, list(cells(table))) == ("run", ["DRFH", "Ours"])
    assert "DRFH: dominant resource fairness, heterogeneous servers." in table.notes
    assert not any("task share" in note for note in table.notes)


def test_measures_by_any_spelling() -> None:
    """As the frame, JSON, the table and the command line write them."""
    rows = study(
        {"drfh": [1.0]}, smallest_share=0.5, **{"price of fairness": 0.1, "use of gpu": 0.5, "use of A100 GPU": 0.5, "seconds": 1.0}
    )
    names = ["price_of_fairness", "Min share", "smallest-share", "gpu", "use of gpu", "a100 gpu", "time (s)"]
    assert chosen_measures(rows, names) == ["price of fairness", "smallest_share", "use of gpu", "use of A100 GPU", "seconds"]
    assert chosen_measures(rows, ["use"]) == ["use of gpu", "use of A100 GPU"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["task"]}, r'no measure "task" \(did you mean "tasks"\?\)'),
        ({"columns": []}, "there is no column; choose from tasks"),
        ({"reference": "drf"}, r'no entry "drf" \(did you mean "drfh"\?\); choose from drfh, tsf'),
        ({"titles": {"tfs": "TSF"}}, r'a title is of "tfs" \(did you mean "tsf"\?\)'),
        ({"interval": "iqr"}, 'interval is \'iqr\'; give "se", "sd" or "ci95"'),
        ({"digits": 0}, "digits is 0; give a whole number >= 1"),
    ],
)
def test_refusals_name_the_choice(arguments: dict[str, Any], message: str) -> None:
    """What is there, and what is near."""
    with pytest.raises(fo.Unsupported, match=message):
        fo.study_table(study({"drfh": [1.0], "tsf": [2.0]}), **arguments)


def test_rows_of_something_else_are_refused() -> None:
    """A frame of another shape, none at all, a seed twice, a reference that an instance lacks."""
    rows = study({"drfh": [1.0], "tsf": [2.0]})
    with pytest.raises(fo.Unsupported, match="rows have no column instance and entry"):
        fo.study_table(pd.DataFrame({"seed": [1], "tasks": [1.0]}))
    with pytest.raises(fo.Unsupported, match="there are no rows"):
        fo.study_table(rows.iloc[:0])
    with pytest.raises(fo.Unsupported, match='"drfh" of "lab" has seed 0 twice'):
        fo.study_table(pd.concat([rows, rows]))
    with pytest.raises(fo.Unsupported, match='"other" has no row of "tsf"'):
        fo.study_table(pd.concat([rows, rows.iloc[:1].assign(instance="other")]), reference="tsf")


# Documents -----------------------------------------------------------------------------------------------------------------------


def test_the_reader_of_latex_is_strict() -> None:
    """What LaTeX would refuse, or read as something else, it refuses."""
    good = fo.study_table(study({"drfh": [387.0, 411.0]}), ["tasks"]).to_latex()
    assert "$399 \\pm 12$" in check_latex(good)
    for change in (
        ("399", "3_99"),
        ("DRFH &", "DRFH"),
        ("$399", "399"),
        ("\\pm", "\\plusminus"),
        ("{tabular}", "tabular"),
        ("DRFH", "Größe"),
    ):
        with pytest.raises((AssertionError, ValueError, IndexError)):
            check_latex(good.replace(*change, 1))


@pytest.mark.parametrize("several", [False, True])
def test_latex_can_set_the_table(several: bool) -> None:
    """Whatever names hold, in every option; labels beyond ASCII are left as they are, for engines that know them."""
    rows = study({name: [387.0, 399.0, 411.0 + k] for k, name in enumerate(NASTY)}, **{f"use of {NASTY[0]}": 0.5, "seconds": 1e-7})
    rows["message"] = NASTY[1]
    rows.loc[0, "tasks"] = math.nan
    if several:
        rows = pd.concat([rows.assign(instance=name) for name in NASTY], ignore_index=True)
    table = fo.study_table(rows, ["tasks", "efficiency", "use", "seconds"], reference=NASTY[2], interval="ci95", titles={"tasks": NASTY[3]})
    found = check_latex(table.to_latex())
    assert any(cell.endswith(r"a\_b \& 50\% \#1") for cell in found)
    assert (r"\multicolumn" in table.to_latex()) == several


def test_html_and_markdown_are_escaped() -> None:
    """Names are text, also in the notes; a notebook shows the table, with a title for each instance."""
    rows = pd.concat([study({"<b>a|b": [1.0, math.nan]}).assign(instance=name) for name in ("<i>1", "2")])
    table = fo.study_table(rows, ["tasks"])
    for page in (table.to_html(), html_of(table), table._repr_html_()):
        assert "&lt;b&gt;a|b" in page
        assert "<i>" not in page
    lines = table.to_markdown().splitlines()
    assert lines[2].count(" | ") == lines[0].count(" | ")
    assert r"\<b\>a\|b" in lines[2]


# The command ---------------------------------------------------------------------------------------------------------------------


def test_the_command_writes_what_python_does(tmp_path: Path) -> None:
    """In every form; also on the terminal and as CSV, where a table is asked for."""
    asked = (
        "study",
        "--generate",
        "kesidis:users=4",
        "--schedules",
        "drfh:best-fit",
        "--seeds",
        "3",
        "--workers",
        "1",
        "--backend",
        "threading",
    )
    options = ("--columns", "tasks,jain", "--interval", "ci95", "--reference", "drfh", "--rename", "drfh:best-fit=Best fit")
    rows = fo.study({"kesidis:users=4": "kesidis:users=4"}, schedules=["drfh:best-fit"], seeds=range(3), workers=1, backend="threading")
    table = fo.study_table(rows, ["tasks", "jain"], interval="ci95", reference="drfh", titles={"drfh:best-fit": "Best fit"})
    printed = run(*asked, *options, "--table", tmp_path / "t.tex").stdout
    assert (tmp_path / "t.tex").read_text(encoding="utf-8") == table.to_latex()
    check_latex((tmp_path / "t.tex").read_text(encoding="utf-8"))
    assert "Best fit" in printed
    assert "Student's t with 2 degrees of freedom" in flat(printed)
    run(*asked, *options, "--table", tmp_path / "t.md")
    assert (tmp_path / "t.md").read_text(encoding="utf-8") == table.to_markdown()
    run(*asked, *options, "--table", tmp_path / "t.html")
    assert table.to_html() in (tmp_path / "t.html").read_text(encoding="utf-8")
    run(*asked, *options, "--table", tmp_path / "t.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "t.csv", index_col=[0, 1]), table.to_frame(), check_dtype=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--columns", "task"), 'no measure "task" (did you mean "tasks"?); choose from tasks, efficiency, price-of-fairness, min-share'),
        (("--columns", "regret-wrst"), 'no measure "regret-wrst" (did you mean "regret-worst"?)'),
        (("--reference", "drf"), 'there is no entry "drf" (did you mean "drfh"?)'),
        (("--rename", "drfh"), '"drfh" gives no name; give NAME=TEXT'),
        (("--mean-digits", "3", "--csv"), "--csv has all digits; leave it out"),
        (("--mean-digits", "3", "--json"), "it is about a table, and --json is none; give --table FILE"),
    ],
)
def test_words_that_are_wrong_are_refused_before_anything_is_computed(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    """The store is not even made."""
    refused = run("study", "--generate", "kesidis:users=4", *options, "--workers", "1", "--resume", tmp_path / "here.parquet", status=2)
    assert message in flat(refused.stderr)
    assert not (tmp_path / "here.parquet").exists()


def test_the_title_of_a_file_is_that_of_its_instance(tmp_path: Path) -> None:
    """Unless another one is given."""
    for name in ("one", "two"):
        text = f"title: Title of {name}\nservers: [{{name: s, capacity: {{cpu: 4}}}}]\nusers: [{{name: a, demand: {{cpu: 1}}}}]\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    files = (tmp_path / "one.yaml", tmp_path / "two.yaml")
    run("study", *files, "--workers", "1", "--backend", "threading", "--rename", "two=Other", "--table", tmp_path / "t.tex")
    assert re.findall(r"textit\{(.*?)\}", (tmp_path / "t.tex").read_text()) == ["Title of one", "Other"]


def test_a_sentence_says_what_fairness_costs() -> None:
    """Below the measures of each instance, of notions that lose tasks; and a table with a reference has three measures by default."""
    rows = fo.study({"pairs": "kesidis:users=4"}, notions=["drfh", "efficiency"], schedules=["drfh:best-fit"], seeds=range(3), workers=1)
    text = [block for block in study_blocks(rows, summary(rows), {"pairs": "kesidis:users=4"}) if isinstance(block, str)]
    (told,) = [block for block in text if block.startswith("What fairness costs")]
    assert re.fullmatch(
        r"What fairness costs, on the mean of 3 seeds: drfh loses [\d.]+ ± [\d.]+ % of the most possible tasks \(by weight\)\.", told
    )
    assert len(fo.study_table(rows, reference="drfh").table.columns) == 7
