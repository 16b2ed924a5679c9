"""Histories from accounting records of PBS: small ones whose numbers are worked out by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.pbs_records import vnode

import fairopt as fo
from fairopt.clusters.pbs.accounting import read_runs
from fairopt.clusters.pbs.log import read_pbs_log
from fairopt.clusters.pbs.syntax import cpus_of_hosts

ZERO = 1_780_272_000  # 2026-06-01 00:00:00 UTC
CLUSTER = fo.Instance([[8, 32]], [[1, 1]], counts=[2], users=["ann"], servers=["n1 +1"], hosts=[["n1", "n2"]], resources=["cpu", "memory"])


def line(kind: str, job: str, at: float, user: str = "ann", local: float = 0, **fields: Any) -> str:
    """Return a record at this time, in seconds from the first of June; with ``local`` hours between local time and UTC."""
    stamp = np.datetime64(int(ZERO + at + 3600 * local), "s").item().strftime("%m/%d/%Y %H:%M:%S")
    inner = {"user": user, "group": "phys", "project": "_pbs_project_default", "jobname": "a job", "queue": "workq"} | fields
    times = {key: ZERO + int(inner[key]) for key in ("ctime", "qtime", "etime", "start", "end") if key in inner}
    text = " ".join(f'{key}="{value}"' if " " in str(value) else f"{key}={value}" for key, value in (inner | times).items())
    return f"{stamp};{kind};{job};{text}"


def ended(job: str, submit: float, start: float, end: float, vnodes: str, select: str = "1:ncpus=1", **fields: Any) -> str:
    """Return the record of a job that ended."""
    asked: dict[str, Any] = {"Resource_List.select": select, "Resource_List.place": fields.pop("place", "free"), "exec_vnode": vnodes}
    return line("E", job, end, ctime=submit, qtime=submit, etime=submit, start=start, end=end, **asked, **fields)


def runs(folder: Path, *lines: str, **options: Any) -> list[tuple[str, float, float, float]]:
    """Return job, submission, start and end of each run, in seconds from the first of June."""
    (folder / "log").write_text("\n".join(lines) + "\n")
    return [(run.job, run.submit - ZERO, run.start - ZERO, run.end - ZERO) for run in read_runs([folder / "log"], **options)[0]]


def test_two_owners_of_one_host(tmp_path: Path) -> None:
    """8 CPUs for an hour: ann holds 8, and ben, who asks for 4, waits: he was due a half hour of the cluster, and has none of it."""
    lines = [
        ended("1.head", 0, 0, 3600, "(n1:ncpus=8)", "1:ncpus=8"),
        ended("2.head", 0, 3600, 7200, "(n1:ncpus=4)", "1:ncpus=4", user="ben"),
    ]
    (tmp_path / "log").write_text("\n".join(lines))
    cluster = fo.Instance([[8]], [[1], [1]], users=["ann", "ben"], servers=["n1"], resources=["cpu"])
    found = fo.history(tmp_path / "log", cluster)
    assert found.to_frame()["received"].to_dict() == pytest.approx({"ann": 1, "ben": 0.5})
    assert found.to_frame()["shortfall"].to_dict() == pytest.approx({"ann": 0, "ben": 0.5})


def test_chunks_lie_where_exec_vnode_says(tmp_path: Path) -> None:
    """Two chunks on two hosts are two tasks; with place=pack one; with place=excl each takes its host; Torque's records say CPUs."""
    memory: dict[str, Any] = {"Resource_List.mem": "8gb"}
    lines = [
        ended("1.head", 0, 0, 9, "(n1:ncpus=2:mem=1048576kb)+(n2:ncpus=2:mem=1048576kb)", "2:ncpus=2:mem=1gb"),
        ended("2.head", 10, 10, 19, "(n1:ncpus=1)+(n1:ncpus=1)", "2:ncpus=1", place="pack"),
        ended("3.head", 20, 20, 29, "(n2:ncpus=1)", place="scatter:excl"),
        line("E", "4.head", 39, ctime=30, qtime=30, etime=30, start=30, end=39, exec_host="n1/0*3+n2/0", **memory),
    ]
    (tmp_path / "log").write_text("\n".join(lines))
    records = read_pbs_log([tmp_path / "log"], CLUSTER)
    held = {
        job: [
            (records.tasks[n], records.demands[records.shape[n]].tolist(), int(records.row[n]))
            for n in np.flatnonzero(records.job == f"{job}.head")
        ]
        for job in (1, 2, 3, 4)
    }
    assert held == {1: [(2, [2, 1], 0)], 2: [(1, [2, 0], 0)], 3: [(1, [8, 32], 0)], 4: [(1, [3, 6], 0), (1, [1, 2], 0)]}


def test_hosts_without_vnodes() -> None:
    """A job may hold no CPU of a host; a range that ends before it begins is refused."""
    assert cpus_of_hosts("n1/0*0+n2/0-2") == [[("n1", {"cpu": 0})], [("n2", {"cpu": 3})]]
    with pytest.raises(ValueError, match="has a range of CPUs that ends before it begins"):
        cpus_of_hosts("n1/5-3")


def test_suspended_jobs_give_back_what_they_hold(tmp_path: Path) -> None:
    """It runs, is suspended, waits, and runs again; one that ends while suspended waits to its end."""
    start: dict[str, Any] = {"ctime": 0, "qtime": 0, "etime": 5, "start": 10}
    assert runs(
        tmp_path,
        line("Q", "1.head", 0),
        line("S", "1.head", 10, **start),
        line("z", "1.head", 40),
        line("r", "1.head", 60),
        line("z", "1.head", 70),
        line("E", "1.head", 90, end=90, **start),
    ) == [
        ("1.head", 0, 10, 40),
        ("1.head", 40, 60, 70),
        ("1.head", 70, pytest.approx(np.nan, nan_ok=True), 90),
    ]


def test_requeued_deleted_and_left_jobs(tmp_path: Path) -> None:
    """A requeued job waits again; one that was deleted left the queue; what runs or waits when the log ends has no end."""
    nan = pytest.approx(np.nan, nan_ok=True)
    first: dict[str, Any] = {"ctime": 0, "qtime": 0, "etime": 0, "start": 10}
    assert runs(
        tmp_path,
        line("S", "1.head", 10, **first),
        line("R", "1.head", 30, **first),
        line("S", "1.head", 50, **(first | {"start": 50})),
        line("Q", "2.head", 20, qtime=20),
        line("D", "2.head", 60, requestor="root@head"),
        line("Q", "3.head", 70, qtime=70),
        line("L", "license", 71),
        line("S", "4[].head", 72),
    ) == [("1.head", 0, 10, 30), ("2.head", 20, nan, 60), ("1.head", 30, 50, nan), ("3.head", 70, nan, nan)]


def test_vnodes_that_are_given_back(tmp_path: Path) -> None:
    """From two hosts to one: two runs, one after the other."""
    start: dict[str, Any] = {"ctime": 0, "qtime": 0, "etime": 0, "start": 0, "Resource_List.select": "2:ncpus=4"}
    lines = [
        line("S", "1.head", 0, exec_vnode="(n1:ncpus=4)+(n2:ncpus=4)", **start),
        line("u", "1.head", 50, exec_vnode="(n1:ncpus=4)+(n2:ncpus=4)", **start),
        line("s", "1.head", 50, exec_vnode="(n1:ncpus=4)", **start),
        line("E", "1.head", 80, end=80, exec_vnode="(n1:ncpus=4)+(n2:ncpus=4)", **start),
    ]
    assert [each[2:] for each in runs(tmp_path, *lines)] == [(0, 50), (50, 80)]
    records = read_pbs_log([tmp_path / "log"], CLUSTER)
    assert records.tasks.tolist() == [2, 1]


def test_local_times_are_told_by_the_times_inside(tmp_path: Path) -> None:
    """Two hours between them: a job that is deleted left at the time in UTC; with the zone given, the same."""
    lines = [ended("1.head", 0, 0, 3600, "(n1:ncpus=1)"), line("Q", "2.head", 0, qtime=0), line("D", "2.head", 1800, requestor="ann")]
    moved = [line("E", "1.head", 3600, local=2, ctime=0, qtime=0, etime=0, start=0, end=3600), *(_later(each) for each in lines[1:])]
    assert runs(tmp_path, *moved)[1][3] == 1800
    assert runs(tmp_path, *moved, timezone="Europe/Berlin")[1][3] == 1800


def _later(text: str) -> str:
    """Return a record written in a zone two hours before UTC."""
    hour = int(text[11:13]) + 2
    return f"{text[:11]}{hour:02}{text[13:]}"


def test_several_files_in_any_order_and_packed(tmp_path: Path) -> None:
    """A job that started on one day and ended on the next; the second file is compressed."""
    start: dict[str, Any] = {"ctime": 0, "qtime": 0, "etime": 0, "start": 10}
    (tmp_path / "20260601").write_text(line("S", "1.head", 10, exec_vnode="(n1:ncpus=1)", **start))
    (tmp_path / "20260602.gz").write_bytes(
        gzip.compress(line("E", "1.head", 90_000, end=90_000, exec_vnode="(n1:ncpus=1)", **start).encode())
    )
    found = fo.history([tmp_path / "20260602.gz", tmp_path / "20260601"], CLUSTER)
    assert found.to_frame()["received"].tolist() == pytest.approx([89_990 / 3600 / 16])
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": dict([vnode("n1"), vnode("n2")])}))
    found = fo.history([tmp_path / "20260601", tmp_path / "20260602.gz"], nodes=tmp_path / "nodes.json")
    assert found.to_frame()["received"].tolist() == pytest.approx([89_990 / 3600 / 16])


def test_a_log_needs_no_import(tmp_path: Path) -> None:
    """With the vnodes, of which one is down today: the owners of the log are beside each other."""
    nodes = [vnode("n1", 8, "16gb"), vnode("n2", 8, "16gb", "down")]
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": dict(nodes)}))
    (tmp_path / "log").write_text(ended("1.head", 0, 0, 3600, "(n2:ncpus=8)", "1:ncpus=8", account="acct one"))
    found = fo.history(tmp_path / "log", nodes=tmp_path / "nodes.json", users="account")
    assert found.to_frame()["received"].to_dict() == pytest.approx({"acct one": 0.5})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("06/01/2026 00:00:00;E;1.head;user=ann\nwhat?", r"log, line 2: this is no record such as"),
        ("13/41/2026 00:00:00;E;1.head;user=ann", r'log, line 1: "13/41/2026 00:00:00" is not a time'),
        (ended("1.head", 0, 0, 9, "((", "1:ncpus=1"), r"log, line 1: job 1\.head: its chunks cannot be read"),
        (ended("1.head", 0, 0, 9, "(n9:ncpus=1)") + "\n" + ended("2.head", 0, 0, 9, "(n1:ncpus=1)"), r'line 1: .*it ran on "n9"'),
    ],
)
def test_bad_records_are_refused_or_counted(tmp_path: Path, text: str, message: str) -> None:
    """With the file and the line; a lenient history leaves them out, and says so."""
    (tmp_path / "log").write_text(text + "\n" + ended("7.head", 0, 0, 9, "(n1:ncpus=1)"))
    with pytest.raises(fo.InvalidInstance, match=message):
        fo.history(tmp_path / "log", CLUSTER)
    assert fo.history(tmp_path / "log", CLUSTER, lenient=True).setting.log.unjudged


def test_a_job_that_ended_and_never_started(tmp_path: Path) -> None:
    """Its start is in no record: it is counted as not judged, and not left out in silence."""
    bare = line("E", "9.head", 50, ctime=0, qtime=0, etime=0, end=50, exec_vnode="(n1:ncpus=1)")
    (tmp_path / "log").write_text(f"{bare}\n{ended('1.head', 0, 0, 9, '(n1:ncpus=1)')}")
    found = fo.history(tmp_path / "log", CLUSTER)
    assert [(each.why, each.jobs) for each in found.setting.log.unjudged] == [("it ended, and no record says when it started", 1)]


def test_queued_jobs_of_nobody(tmp_path: Path) -> None:
    """Older versions write no owner when a job is queued: if it never starts, it is counted, and nobody waits."""
    nameless = "06/01/2026 00:00:00;Q;9.head;queue=workq"
    (tmp_path / "log").write_text(f"{nameless}\n{ended('1.head', 0, 0, 9, '(n1:ncpus=1)')}")
    unjudged = fo.history(tmp_path / "log", CLUSTER).setting.log.unjudged
    assert [(each.why, each.jobs) for each in unjudged] == [("it was queued and never started, and its record does not say whose it is", 1)]
