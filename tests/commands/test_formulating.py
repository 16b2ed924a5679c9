"""``fairopt formulate``: a model that another solver reads, and what it cannot be."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import highspy
import pytest
from support.command_line import EXAMPLES, PAPER, flat, run

import fairopt as fo


def test_the_mathematics_is_printed() -> None:
    """As ``print(program)``."""
    assert run("formulate", PAPER, "--notion", "tsf").stdout == fo.formulate(fo.load(PAPER), "tsf").to_text()


@pytest.mark.parametrize("options", [(), ("--integral",)])
def test_an_answer_from_elsewhere_passes_the_audit(options: tuple[str, ...], tmp_path: Path) -> None:
    """Write, solve with HiGHS alone, and let fairopt judge it: its total is that of the exact allocation, also where a row has servers."""
    instance = fo.Instance([[5, 3], [3, 4]], [[2.0, 1.0], [1.0, 1.5]], counts=[3, 1])
    file = tmp_path / "pool.yaml"
    fo.save(instance, file)
    model, names, held = (tmp_path / name for name in ("model.mps", "names.csv", "held.csv"))
    found = run("formulate", file, "--notion", "efficiency", *options, "-o", model, "--names", names)
    assert flat(found.stdout).startswith(f"{model}, {names}: ")
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(model))
    highs.run()
    value = dict(zip(highs.getLp().col_names_, highs.getSolution().col_value, strict=True))
    with names.open() as table:
        tasks: defaultdict[tuple[str, str], float] = defaultdict(float)
        for row in csv.DictReader(table):
            tasks[row["user"], row["server"]] += value[row["name"]]
    held.write_text("user,server,tasks\n" + "".join(f"{user},{server},{number!r}\n" for (user, server), number in tasks.items()))
    best = fo.solve(instance, "efficiency", integral=bool(options)).tasks_per_user.sum()
    assert sum(tasks.values()) == pytest.approx(best, rel=1e-9)
    run("audit", file, "--allocation", held, "--notion", "efficiency", "--properties", "pareto", "--fail-on", "pareto")


def test_other_files(tmp_path: Path) -> None:
    """Mathematics as LaTeX and as text; .nl with its names beside it, which are not replaced without --force."""
    run("formulate", PAPER, "-o", tmp_path / "a.tex")
    assert "\\begin{array}" in (tmp_path / "a.tex").read_text()
    run("formulate", PAPER, "-o", tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text() == fo.formulate(fo.load(PAPER), "drfh").to_text()
    (tmp_path / "a.col").write_text("mine")
    assert "a.col exists" in run("formulate", PAPER, "--notion", "proportional", "-o", tmp_path / "a.nl", status=2).stderr
    assert not (tmp_path / "a.nl").exists()
    run("formulate", PAPER, "--notion", "proportional", "-o", tmp_path / "a.nl", "--force")
    assert {path.name for path in tmp_path.iterdir()} == {"a.tex", "a.txt", "a.nl", "a.col", "a.row"}
    said = run("formulate", EXAMPLES / "gpu-lab", "-o", tmp_path / "a.mps").stderr
    assert 'note: "drfh" takes several linear programs' in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "model.docx"), "error: --output: model.docx is no file of a model; end it with .mps, .lp, .nl, .tex, .txt"),
        (("--names", "names.csv"), "error: --names: names are those of a model"),
        (
            ("--notion", "proportional", "-o", "model.mps"),
            'error: the goal of "proportional" is not linear, and .mps holds linear programs',
        ),
        (("--notion", "psdsf", "-o", "model.nl"), 'error: "psdsf" is not a single optimisation model here'),
        (("--notion", "drff"), 'error: there is no notion "drff" (did you mean'),
    ],
)
def test_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str) -> None:
    """Nothing is written."""
    monkeypatch.chdir(tmp_path)
    assert words in flat(run("formulate", PAPER, *arguments, status=2).stderr)
    assert not list(tmp_path.iterdir())
