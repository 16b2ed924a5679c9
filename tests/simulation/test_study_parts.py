"""Parts of a grid of simulations: each simulation once, in one part; joined, they are the table of the whole grid."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.command_line import EXAMPLES, run

import fairopt as fo
from fairopt.simulation import side_by_side
from fairopt.simulation.simulating import simulate
from fairopt.simulation.study_parts import join_folders

LAB = EXAMPLES / "gpu-lab"
SCHEDULERS = ["fifo", "backfill", "drfh:random"]


def drawn(seed: int) -> tuple[fo.Trace, fo.Instance]:
    """Two users on one server, with jobs from the seed."""
    rng = np.random.default_rng(seed)
    cluster = fo.Instance([[4]], [[1], [2]], users=["a", "b"], resources=["cpu"])
    users = [cluster.users[n] for n in rng.integers(0, 2, 8)]
    return fo.Trace(users, np.sort(rng.integers(0, 60, 8)), [1] * 8, [[1]] * 8, rng.integers(5, 40, 8), resources=["cpu"]), cluster


GRID: dict[str, Any] = {"given": drawn(9), "drawn": drawn}


@pytest.mark.parametrize("shared", [True, False])
def test_parts_are_the_whole_when_they_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    """In one folder, or in a folder each: the table is that of one study, to the bit, and nothing is simulated twice."""
    whole = fo.study_over_time(GRID, SCHEDULERS, seeds=[2, 5], workers=1)
    asked: list[str] = []

    def counted(trace: fo.Trace, cluster: fo.Instance, scheduler: str, **options: Any) -> fo.Simulation:
        asked.append(scheduler)
        return simulate(trace, cluster, scheduler, **options)

    monkeypatch.setattr(side_by_side, "simulate", counted)
    folders = [tmp_path / ("all" if shared else f"part{k}") for k in (1, 2, 3)]
    there = []
    for k, folder in enumerate(folders, 1):
        part = fo.study_over_time(GRID, SCHEDULERS, seeds=[2, 5], workers=1, part=(k, 3), resume=folder)
        assert list(part.columns) == ["simulation", "seed", "scheduler", "message"]
        assert part["message"].eq("").all()
        there += part[["simulation", "seed", "scheduler"]].to_numpy().tolist()
    assert len(there) == len({tuple(each) for each in there}) == len(asked) == 13  # 5 of the pair that is given, 4 of each that is drawn
    assert join_folders(folders, tmp_path / "all") == (13, [])
    found = fo.study_over_time(GRID, SCHEDULERS, seeds=[2, 5], workers=1, resume=tmp_path / "all")
    pd.testing.assert_frame_equal(found, whole, check_exact=True)
    assert len(asked) == 13


def test_what_is_missing_or_does_not_fit_is_named(tmp_path: Path) -> None:
    """A part, simulations of a part that was killed, another question, a part that is there twice, a file that is none."""
    parts = {name: tmp_path / name for name in ("one", "two", "other")}
    for name, k, schedulers in (("one", 1, SCHEDULERS), ("two", 2, SCHEDULERS), ("other", 2, SCHEDULERS[:2])):
        fo.study_over_time(GRID, schedulers, workers=1, part=f"{k}/2", resume=parts[name])
    with pytest.raises(fo.InvalidInstance, match=r"are not of one study: they differ in schedulers"):
        join_folders([parts["one"], parts["other"]], tmp_path / "all")
    number, missing = join_folders([parts["one"]], tmp_path / "all")
    assert (number, len(missing)) == (4, 1)
    assert missing[0].startswith("1 part of 2 is missing: 2/2; run the part again")
    shutil.copytree(parts["one"], tmp_path / "copy")
    with pytest.raises(fo.InvalidInstance, match=r"are the same part; leave one of them out"):
        join_folders([parts["one"], tmp_path / "copy"], tmp_path / "all")
    file = parts["two"] / "part-2-of-2.json"
    said = json.loads(file.read_text())
    file.write_text(json.dumps(said | {"ended": said["ended"][:1]}))
    number, missing = join_folders([parts["one"], parts["two"]], tmp_path / "all")
    assert number == 5
    assert missing == [
        f"{file} has 1 of 4 simulations; run the part again and join again, or run the study without a part on the joined folder"
    ]
    for text in ("{", "[]", json.dumps(said | {"part": [3, 2]}), json.dumps(said | {"ended": 1})):
        file.write_text(text)
        with pytest.raises(fo.InvalidInstance, match=r"is no file of a part; delete it, and run that part again"):
            join_folders([parts["two"]], tmp_path / "all")
    with pytest.raises(fo.InvalidInstance, match="holds no part of a grid of simulations"):
        join_folders([tmp_path / "none"], tmp_path / "all")


def test_bad_parts_are_refused_at_once(tmp_path: Path) -> None:
    """With what to give."""
    with pytest.raises(fo.Unsupported, match="the study has 8 simulations; give fewer parts"):
        fo.study_over_time(GRID, SCHEDULERS, workers=1, part="1/9", resume=tmp_path)
    with pytest.raises(fo.Unsupported, match="part is '0/4'; give K/N"):
        fo.study_over_time(GRID, SCHEDULERS, workers=1, part="0/4", resume=tmp_path)
    with pytest.raises(fo.Unsupported, match="nothing would be kept of a part; give resume, a folder"):
        fo.study_over_time(GRID, SCHEDULERS, workers=1, part="1/4")


def test_the_commands_do_the_same(tmp_path: Path) -> None:
    """A part prints how much it has; study-merge says what is missing, and the whole study the table."""
    words = ["study", "--simulate", LAB / "jobs.csv", "--cluster", LAB, "--schedulers", "fifo,drfh:best-fit", "--workers", 1]
    assert "give --resume and a folder for this part" in run(*words, "--part", "1/2", status=2).stderr
    told = run(*words, "--part", "1/2", "--resume", tmp_path / "p1").stdout
    assert told.startswith("2 simulations of part 1/2, kept in ")
    assert "1 part of 2 is missing: 2/2" in run("study-merge", tmp_path / "p1", "-o", tmp_path / "some", status=1).stderr
    for form in ("--json", "--csv"):
        assert "a part has no table" in run(*words, "--part", "2/2", "--resume", tmp_path / "p2", form, status=2).stderr
        assert "parts of simulations have no table yet" in run("study-merge", tmp_path / "p1", "-o", tmp_path / "x", form, status=2).stderr
    run(*words, "--part", "2/2", "--resume", tmp_path / "p2")
    joined = ["study-merge", tmp_path / "p1", tmp_path / "p2", "-o", tmp_path / "some"]
    assert "is not empty; give another folder, or add to it with --force" in run(*joined, status=2).stderr
    assert run(*joined, "--force").stdout.startswith("3 simulations in ")
    whole = run(*words).stdout
    assert run(*words, "--resume", tmp_path / "some").stdout.startswith(whole)
