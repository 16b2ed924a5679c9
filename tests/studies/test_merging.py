"""Parts of a study, as the tasks of a job array compute them, and the table that they make together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import fairopt as fo
from fairopt.cli import app
from fairopt.studies.parts import cells_of, numbers_of, part_of, runs_of

ASK: dict[str, Any] = {
    "instances": {"one": "uniform:users=3:servers=2:size=10", "two": "kesidis:users=4"},
    "notions": ["drfh"],
    "schedules": ["drfh:best-fit"],
    "seeds": range(5),
    "workers": 1,
}


def parts(folder: Path, of: int = 3, **changes: Any) -> list[Path]:
    """Compute all parts; return their files."""
    files = [folder / f"part{k}.parquet" for k in range(1, of + 1)]
    for k, file in enumerate(files, 1):
        fo.study(**{**ASK, **changes}, part=f"{k}/{of}", resume=file)
    return files


def same(one: pd.DataFrame, two: pd.DataFrame) -> None:
    """All but the seconds is the same, to the last bit."""
    pd.testing.assert_frame_equal(one.drop(columns="seconds"), two.drop(columns="seconds"), check_exact=True)


def run(*arguments: object, status: int) -> Result:
    """Run the command in this process and check its exit status."""
    result = CliRunner().invoke(app, ["study-merge", *map(str, arguments)], env={"COLUMNS": "300"})
    assert result.exit_code == status, result.output
    return result


@given(st.integers(1, 4), st.lists(st.integers(0, 100), min_size=1, max_size=9, unique=True), st.integers(1, 36))
def test_parts_are_all_cells_once(names: int, seeds: list[int], of: int) -> None:
    """As even as can be; with more seeds, a cell stays in its part."""
    labels = [f"x{j}" for j in range(names)]
    whole = cells_of(labels, seeds, None)
    if of > len(whole):
        with pytest.raises(fo.Unsupported, match="give fewer parts"):
            cells_of(labels, seeds, (1, of))
        return
    pieces = [cells_of(labels, seeds, (k, of)) for k in range(1, of + 1)]
    assert sorted(key for piece in pieces for key in piece) == sorted(whole)
    assert max(map(len, pieces)) - min(map(len, pieces)) <= 1
    assert all(set(piece) <= set(cells_of(labels, [*seeds, 101, 102], (k, of))) for k, piece in enumerate(pieces, 1))
    assert list(numbers_of(runs_of(seeds))) == seeds


@pytest.mark.parametrize("part", ["0/4", "5/4", "x/4", "3", (0, 2), (3, 2), (1, 2, 3), 3, (1.0, 2), "-1/4", "1/0"])
def test_a_part_that_is_none_is_refused(part: Any) -> None:
    """With what to give."""
    with pytest.raises(fo.Unsupported, match=r"part is .*; give K/N, the K-th of N parts with 1 <= K <= N, as in 3/40"):
        part_of(part)


def test_the_parts_together_are_the_study(tmp_path: Path) -> None:
    """And its file, with which the study goes on; more seeds come to it."""
    files = parts(tmp_path)
    whole = fo.study(**ASK)
    joined = fo.merge_studies(files, tmp_path / "all")
    same(joined, whole)
    assert pd.read_parquet(tmp_path / "all" / "study.parquet").equals(joined)
    started: list[int] = []
    again = fo.study(**ASK | {"seeds": range(6)}, resume=tmp_path / "all", done=lambda finished, total: started.append(finished))
    assert started[0] == 10
    same(again, fo.study(**ASK | {"seeds": range(6)}))
    result = run(*reversed(files), "-o", tmp_path / "again.parquet", "--csv", status=0)
    assert len(result.stdout.splitlines()) == 1 + 2 * 2  # a row for each instance and allocation
    assert pd.read_parquet(tmp_path / "again.parquet").equals(joined)
    assert "exists" in run(*files, "-o", tmp_path / "again.parquet", status=2).stderr


def test_what_is_missing_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A part that is not there, and cells of a part that was stopped; the rest is joined, and the study without parts does them."""
    files = parts(tmp_path, 4)
    files[1].unlink()
    with pytest.raises(KeyboardInterrupt):
        fo.study(**ASK, part=(2, 4), resume=files[1], stop=lambda: True)
    some = [files[0], files[1], files[3]]
    text = run(*some, "-o", tmp_path / "all", status=1).stderr
    assert "1 part of 4 is missing: 3/4; run the part again and join again, or run the study without a part on the joined file" in text
    assert f"{files[1]} lacks 2 cells: " in text.replace("\n", "")
    frame = fo.merge_studies(some)
    assert "1 part of 4 is missing: 3/4" in caplog.text
    assert len(frame) == 2 * (10 - 2 - 2)
    same(fo.study(**ASK, resume=tmp_path / "all"), fo.study(**ASK))


def test_parts_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    """With what is different."""
    one, two, three = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    for folder in (one, two, three):
        folder.mkdir()
    first = parts(one)
    for changes, message in (
        ({"notions": ["tsf"]}, r"are not of one study: .*drfh.*tsf"),
        ({"time_limit": 9}, "are not of one study: time limit was None and is 9"),
        ({"seeds": range(4)}, "are not of one study: the seeds differ"),
        ({"instances": {**ASK["instances"], "two": "kesidis:users=2"}}, 'are not of one study: "two" is another instance'),
        ({"of": 2}, "one is part 1/3 and the other part 2/2"),
    ):
        for path in two.iterdir():
            path.unlink()
        with pytest.raises(fo.InvalidInstance, match=message):
            fo.merge_studies([first[0], parts(two, **changes)[1]])
    with pytest.raises(fo.InvalidInstance, match=r"both have (one|two), seed \d; leave one of them out"):
        fo.merge_studies([first[0], first[0]])
    with pytest.raises(fo.InvalidInstance, match=r"there is no .*nowhere; give the files or folders"):
        fo.merge_studies([tmp_path / "nowhere"])
    with pytest.raises(fo.InvalidInstance, match=r"holds the results of another study: it was part 1/3 and is part 2/3"):
        fo.study(**ASK, part="2/3", resume=first[0])
    with pytest.raises(fo.Unsupported, match="part is 3/40, and the study has 10 cells; give fewer parts"):
        fo.study(**ASK, part="3/40", resume=three)


def test_the_output_may_be_a_folder_that_exists(tmp_path: Path) -> None:
    """An empty one is filled, also by the right command after a wrong one, which leaves none; a study there is replaced only by --force."""
    first, second = parts(tmp_path, 2)
    folder = tmp_path / "all"
    assert "both have" in run(first, first, "-o", folder, status=2).stderr
    assert not folder.exists()
    folder.mkdir()
    assert (
        "has no rows yet: study.parquet is missing there; run this part again" in run(first, folder, "-o", tmp_path / "x", status=2).stderr
    )
    run(first, second, "-o", folder, status=0)
    before = (folder / "study.parquet").read_bytes()
    assert "study.parquet exists; give another name, or replace it with --force" in run(first, "-o", folder, status=2).stderr
    assert (folder / "study.parquet").read_bytes() == before
    run(first, "-o", folder, "--force", status=1)
    assert len(pd.read_parquet(folder / "study.parquet")) == 10
    assert "is read here, and would be replaced" in run(folder, "-o", folder / "study.parquet", "--force", status=2).stderr


def test_studies_of_other_seeds_are_joined_too(tmp_path: Path) -> None:
    """As by hand before there were parts."""
    files = [tmp_path / f"{k}.parquet" for k in range(2)]
    for k, file in enumerate(files):
        fo.study(**ASK | {"seeds": range(6)[k::2]}, resume=file)
    same(fo.merge_studies(files), fo.study(**ASK | {"seeds": range(6)}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--part", "0/4", "--resume", "x"), "part is '0/4'; give K/N"),
        (("--part", "1/2"), "nothing would be kept to join; give --resume"),
        (("--part", "3/40", "--resume", "x"), "part is 3/40, and the study has 2 cells; give fewer parts"),
    ],
)
def test_bad_options_are_status_2(arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One message, no traceback; nothing is written."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["study", "--generate", "kesidis", "--seeds", "2", "--workers", "1", *arguments])
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert not list(tmp_path.rglob("*.parquet"))
