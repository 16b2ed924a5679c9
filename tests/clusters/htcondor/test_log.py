"""Histories from ads of HTCondor: small ones whose numbers are worked out by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.htcondor_ads import job, slot

import fairopt as fo
from fairopt.clusters.htcondor.log import read_htcondor_log

ZERO = 1_780_272_000  # 2026-06-01 00:00:00 UTC
CLUSTER = fo.Instance([[8, 16]], [[1, 1]], users=["ada"], servers=["w1"], resources=["cpu", "memory"])
_TIMES = ("QDate", "JobStartDate", "JobCurrentStartDate", "CompletionDate", "EnteredCurrentStatus")


def ended(number: int, owner: str, /, *times: float, status: int = 4, **attributes: Any) -> dict[str, Any]:
    """Return the ad of a job that was submitted, started, and ended at these times, in seconds from the first of June."""
    submit, start, end = times
    ad: dict[str, Any] = dict(zip(_TIMES, (submit, start, start, end, end), strict=True))
    ad |= {"RemoteWallClockTime": end - start, "LastRemoteHost": "slot1_1@w1"} | attributes
    ad |= {name: ZERO + ad[name] for name in _TIMES if ad[name] is not None}
    if ad["CompletionDate"] is None:
        ad["CompletionDate"] = 0
    return job(number, owner, status=status, **{name: value for name, value in ad.items() if value is not None})


def written(folder: Path, *ads: Any) -> Path:
    """Return the file of a log."""
    (folder / "history.json").write_text(json.dumps(ads))
    return folder / "history.json"


def runs(folder: Path, *ads: Any) -> list[list[float]]:
    """Return submission, start and end of each run, in seconds from the first of June."""
    records = read_htcondor_log([written(folder, *ads)], CLUSTER)
    return [[time - ZERO for time in each] for each in zip(records.submit, records.start, records.end, strict=True)]


def test_two_owners_of_one_machine(tmp_path: Path) -> None:
    """8 cores for an hour: ada holds 8, and ben, who asks for 4, waits: he was due a half hour of the pool, and has none of it."""
    log = written(tmp_path, ended(1, "ada", 0, 0, 3600, cpus=8), ended(2, "ben", 0, 3600, 7200, cpus=4))
    cluster = fo.Instance([[8]], [[1], [1]], users=["ada", "ben"], servers=["w1"], resources=["cpu"])
    found = fo.history(log, cluster)
    assert found.to_frame()["received"].to_dict() == pytest.approx({"ada": 1, "ben": 0.5})
    assert found.to_frame()["shortfall"].to_dict() == pytest.approx({"ada": 0, "ben": 0.5})


def test_runs_of_a_job(tmp_path: Path) -> None:
    """One run; two, of which the first lasted 30 s; one that never started; one that runs, and one that waits, when the log ends."""
    nan = pytest.approx(np.nan, nan_ok=True)
    assert runs(tmp_path, ended(1, "ada", 0, 10, 50)) == [[0, 10, 50]]
    twice = ended(2, "ada", 0, 10, 100, JobCurrentStartDate=60, RemoteWallClockTime=70, NumJobStarts=2)
    assert runs(tmp_path, twice) == [[0, 10, 40], [40, 60, 100]]
    never = ended(3, "ada", 5, 0, 0, status=3, JobStartDate=None, JobCurrentStartDate=None, CompletionDate=None, EnteredCurrentStatus=80)
    assert runs(tmp_path, never) == [[5, nan, 80]]
    now = ended(4, "ada", 0, 10, 0, status=2, CompletionDate=None, EnteredCurrentStatus=10, RemoteWallClockTime=0)
    assert runs(tmp_path, now) == [[0, 10, nan]]
    evicted = ended(5, "ada", 0, 10, 0, status=1, CompletionDate=None, EnteredCurrentStatus=90, RemoteWallClockTime=30)
    assert runs(tmp_path, evicted) == [[0, 10, 40], [90, nan, nan]]
    removed = ended(6, "ada", 0, 10, 0, status=3, CompletionDate=None, EnteredCurrentStatus=35, RemoteWallClockTime=25)
    assert runs(tmp_path, removed) == [[0, 10, 35]]


def test_jobs_of_several_access_points(tmp_path: Path) -> None:
    """Two jobs of one number, which ran at the same time, are no runs of one job."""
    ads = [ended(1, owner, 0, 0, 60, GlobalJobId=f"{point}#1.0#1") for owner, point in (("ada", "ap1"), ("ben", "ap2"))]
    assert read_htcondor_log([written(tmp_path, *ads)], CLUSTER).job.tolist() == ["1.0 of ap1", "1.0 of ap2"]


def test_what_was_given_counts_before_what_was_asked_for(tmp_path: Path) -> None:
    """A dynamic slot may have more than the job asked for."""
    given = ended(1, "ada", 0, 0, 9, cpus=1, memory=100, CpusProvisioned=2, MemoryProvisioned=1024)
    records = read_htcondor_log([written(tmp_path, given)], CLUSTER)
    assert records.demands[records.shape].tolist() == [[2, 1]]
    assert records.row.tolist() == [0]


def test_waits_of_held_jobs_are_excluded(tmp_path: Path) -> None:
    """Nobody can say how long it was held; jobs outside of the slots are left out."""
    log = written(
        tmp_path,
        ended(1, "ada", 0, 1800, 3600, NumHolds=1),
        ended(2, "ada", 0, 0, 3600),
        ended(3, "ada", 0, 0, 9, JobUniverse=7),
    )
    unjudged = {each.why: each.jobs for each in fo.history(log, CLUSTER).setting.log.unjudged}
    assert unjudged == {"was held for a time, and the log does not say when": 1, "it ran outside of the slots": 1}


def test_several_files_lines_and_groups_without_an_import(tmp_path: Path) -> None:
    """A packed file with an ad in each line, and the queue; the slots, of which one belongs to its owner now, are the pool."""
    lines = "\n".join(json.dumps(ended(n, "ada", 0, 0, 3600, cpus=4, group="group_physics")) for n in (1, 2))
    (tmp_path / "old.json.gz").write_bytes(gzip.compress(lines.encode()))
    log = written(tmp_path, ended(3, "ben", 0, 0, 3600, cpus=8, LastRemoteHost="slot1@w2"))
    slots = [slot("slot1@w1"), slot("slot1_1@w1", 4, kind="Dynamic"), slot("slot1@w2", kind="Static", State="Owner")]
    (tmp_path / "slots.json").write_text(json.dumps(slots))
    for users, owner in (("submitter", "group_physics.ada"), ("group", "group_physics"), ("user", "ada")):
        found = fo.history([tmp_path / "old.json.gz", log], nodes=tmp_path / "slots.json", users=users)
        assert found.to_frame()["received"][owner] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"RequestCpus": "/Expr(f(1))/"}, r"history\.json: \[0\]\.RequestCpus: .*the function f is not known"),
        ({"CompletionDate": 1e12}, r"history\.json: \[0\]\.CompletionDate: expected seconds up to the year 5000, found 1e\+12"),
        ({"QDate": "yesterday"}, r"history\.json: \[0\]\.QDate: expected a number"),
        ({"LastRemoteHost": "slot1@w9"}, r'history\.json: \[0\]: .*it ran on "slot1@w9", which the cluster does not have'),
    ],
)
def test_bad_ads_are_refused_or_counted(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """With the file, the ad and the attribute; a lenient history leaves them out, and says so."""
    log = written(tmp_path, ended(1, "ada", 0, 0, 9) | change, ended(2, "ada", 0, 0, 9))
    with pytest.raises(fo.InvalidInstance, match=message):
        fo.history(log, CLUSTER)
    assert fo.history(log, CLUSTER, lenient=True).setting.log.unjudged
