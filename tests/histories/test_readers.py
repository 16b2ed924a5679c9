"""Logs of every kind: what is read, what is left out and counted, and what is refused in one sentence."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairopt as fo
from fairopt.errors import InvalidInstance
from fairopt.histories.job_log import JobLog
from fairopt.histories.reading import read_log_file

CLUSTER = fo.Instance(
    [[32, 128, 0], [32, 256, 4]],
    [[1, 1, 0]],
    counts=[3, 2],
    hosts=["cn[1,3,5]", "gn[1-2]"],
    servers=["cn1 +2", "gn1 +1"],
    users=["nobody"],
    resources=["cpu", "memory", "gpu"],
)
PROCESSORS = fo.Instance([[8]], [[1]], resources=["cpu"], users=["nobody"])
COLUMNS = "JobID|Account|User|Partition|State|Submit|Eligible|Start|End|Reason|AllocTRES|ReqTRES|NodeList|Constraints"


def line(number: str, submit: str, start: str, end: str, **more: str) -> str:
    """Return a job of sacct; times are minutes after noon."""
    cells = dict.fromkeys(COLUMNS.split("|"), "") | {"JobID": number, "Account": "chem", "User": "ada", "Partition": "batch"}
    times = {"Submit": submit, "Start": start, "End": end}
    cells |= {name: f"2026-11-22T12:{text}:00" if text.isdigit() else text for name, text in times.items()}
    given = "billing=4,cpu=4,mem=16G,node=1"
    ran = start.isdigit()
    cells |= {"AllocTRES": given if ran else "", "ReqTRES": given, "NodeList": "cn1" if ran else "None assigned"}
    cells |= {"State": "COMPLETED", "Eligible": cells["Submit"], "Reason": "None"} | more
    return "|".join(cells.values())


def sacct(folder: Path, *lines: str, lenient: bool = False, **options: Any) -> JobLog:
    """Read an export of sacct."""
    path = folder / "jobs.txt"
    path.write_text("\n".join([COLUMNS, *lines]) + "\n")
    return read_log_file(path, CLUSTER, lenient=lenient, **options)


def minutes(log: JobLog) -> list[tuple[float, float, float]]:
    """Return submission, start and end of each record, in minutes after noon."""
    noon = pd.Timestamp("2026-11-22T12:00:00").timestamp()
    return [tuple(float(t - noon) / 60 for t in each) for each in zip(log.submit, log.start, log.end, strict=True)]  # type: ignore[misc]


def test_jobs_of_slurm(tmp_path: Path) -> None:
    """What holds, where, and whose it is; steps are left out, and a job on two nodes is two tasks."""
    two = line("2", "00", "10", "20", AllocTRES="cpu=8,mem=32G,node=2,gres/gpu=2", NodeList="gn[1-2]", User="bob")
    log = sacct(tmp_path, line("1", "00", "05", "30"), line("1.batch", "00", "05", "30"), two)
    assert log.owners == ("chem/ada", "chem/bob")
    assert log.queues == ("chem",)
    assert minutes(log) == [(0, 5, 30), (0, 10, 20)]
    assert log.demands[log.shape].tolist() == [[4, 16, 0], [4, 16, 1]]
    assert log.tasks.tolist() == [1, 2]
    assert log.row.tolist() == [0, 1]
    assert sacct(tmp_path, line("1", "00", "05", "30"), users="account").owners == ("chem",)


def test_a_job_over_two_kinds_of_server_is_two_records(tmp_path: Path) -> None:
    """Its tasks are on the rows of its nodes."""
    log = sacct(tmp_path, line("1", "00", "05", "30", AllocTRES="cpu=12,mem=48G,node=3", NodeList="cn[1,5],gn1"))
    assert sorted(zip(log.row.tolist(), log.tasks.tolist(), strict=True)) == [(0, 2), (1, 1)]
    assert log.n_jobs == 1


def test_a_server_is_found_by_its_name_alone(tmp_path: Path) -> None:
    """Nothing is guessed from a label: cn2 is none of the hosts of "cn1 +2", which are cn1, cn3 and cn5."""
    log = sacct(tmp_path, line("1", "00", "05", "30", NodeList="cn3"), line("2", "00", "05", "30", NodeList="gn2"))
    assert log.row.tolist() == [0, 1]
    with pytest.raises(InvalidInstance, match=r'job "1": it ran on "cn2", which the cluster does not have .*; there are cn1, cn3'):
        sacct(tmp_path, line("1", "00", "05", "30", NodeList="cn2"), line("2", "00", "05", "30", NodeList="gn2"))


def test_a_cluster_of_an_older_file_names_its_single_servers(tmp_path: Path) -> None:
    """A row of one server is the host of its label; of a row of several, nobody knows which: the message says what to do."""
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join([COLUMNS, line("1", "00", "05", "30", NodeList="cn1"), line("2", "00", "05", "30", NodeList="gn2")]))
    older = CLUSTER.replace(hosts=None)
    log = read_log_file(path, older)
    assert log.row.tolist() == [-1, -1]
    what = 'the rows "cn1 +2" and "gn1 +1" do not name their servers: import the cluster again, or add hosts: to them in the file'
    assert [note for note in log.notes if "cn1" in note] == [
        f"no server of the cluster has the name of a node of the log, such as cn1: where jobs ran is not known; {what}"
    ]
    mixed = older.replace(counts=[1, 2], servers=["cn1", "gn1 +1"])
    with pytest.raises(InvalidInstance) as caught:
        read_log_file(path, mixed)
    what = 'the row "gn1 +1" does not name its servers: import the cluster again, or add hosts: to it in the file'
    assert f'job "2": it ran on "gn2", which the cluster does not have; {what}' in str(caught.value)
    assert read_log_file(path, older.replace(counts=[1, 2], servers=["cn1", "x"], hosts={"gn1 +1": "gn[1-2]"})).row.tolist() == [0, 1]


def test_a_table_names_hosts_or_rows() -> None:
    """A host is in its row; the label of a row of several servers stands for any of them."""
    frame = pd.DataFrame({"user": ["A"] * 3, "submit": 0, "start": 0, "end": 9, "cpu": 1, "server": ["cn5", "gn1 +1", "gn2"]})
    assert read_log_file(frame, CLUSTER).row.tolist() == [0, 1, 1]
    odd = CLUSTER.replace(servers=["gn1", "cn5"])  # in a table, as in an allocation, a label is the row of that label
    assert read_log_file(frame.assign(server=["cn5", "gn1", "gn2"]), odd).row.tolist() == [1, 0, 1]


def test_waits_that_are_not_judged(tmp_path: Path) -> None:
    """Held, dependent, before a limit, of unknown state, too large: counted with the reason and the hours."""
    log = sacct(
        tmp_path,
        line("1", "00", "30", "40", Eligible="2026-11-22T12:12:00"),  # held, or dependent, for 12 minutes
        line("2", "00", "30", "40", Reason="AssocGrpCpuLimit"),
        line("3", "00", "30", "40", State="GONE"),
        line("4", "00", "None", "Unknown", State="PENDING", Eligible="Unknown", Reason="JobHeldUser"),
        line("5", "00", "None", "Unknown", State="PENDING", ReqTRES="cpu=64,mem=16G,node=1"),
        line("6", "00", "None", "20", State="CANCELLED by 7"),
    )
    assert minutes(log) == [(12, 30, 40), (30, 30, 40), (0, 20, 20)]
    found = {each.why: (each.jobs, each.task_hours) for each in log.unjudged}
    assert found == {
        "not ready: held, or waits for another job or for a time": (2, pytest.approx(0.2)),
        "kept back by a limit (AssocGrpCpuLimit)": (1, pytest.approx(0.5)),
        "its state, GONE, is not known": (1, 0),
        "no server is large enough for one of its tasks": (1, 0),
    }


def test_arrays_and_pending_jobs(tmp_path: Path) -> None:
    """A record of an array that waits stands for its tasks, as far as its limit lets them run; it asks for what others were given."""
    log = sacct(tmp_path, line("7_1", "00", "05", "30", AllocTRES="cpu=8,mem=16G,node=1"), line("7_[2-9%3]", "00", "Unknown", "Unknown"))
    assert log.tasks.tolist() == [1, 3]
    assert log.demands[log.shape].tolist() == [[8, 16, 0], [8, 16, 0]]
    assert np.isinf(log.start[1])
    assert log.unjudged[0].jobs == 5


def test_requeued_and_resized_jobs(tmp_path: Path) -> None:
    """Each run is a stay; the wait for the next begins where the last ended. Two runs at a time cannot be."""
    log = sacct(tmp_path, line("1", "00", "20", "30"), line("1", "00", "05", "10"))
    assert sorted(minutes(log)) == [(0, 5, 10), (10, 20, 30)]
    assert "1 job was requeued, resized or suspended: each stay counts by itself" in log.notes
    with pytest.raises(InvalidInstance, match=r'jobs.txt, line \d: job "1": it is in the log twice at one time'):
        sacct(tmp_path, line("1", "00", "20", "40"), line("1", "00", "05", "30"))


def test_without_submissions_tasks_of_arrays_are_there_together(tmp_path: Path) -> None:
    """And of other jobs nothing is known but what they held."""
    rows = [line("1_1", "00", "05", "30"), line("1_2", "00", "10", "30"), line("2", "00", "10", "30")]
    cut = ["|".join(cell for k, cell in enumerate(row.split("|")) if k != 5) for row in [COLUMNS, *rows]]
    (tmp_path / "jobs.txt.gz").write_bytes(gzip.compress("\n".join(cut).encode()))
    log = read_log_file(tmp_path / "jobs.txt.gz", CLUSTER)
    assert minutes(log) == [(5, 5, 30), (5, 10, 30), (10, 10, 30)]
    assert log.unjudged[0].why == "the log does not say when it was submitted"


def test_clocks_that_change(tmp_path: Path) -> None:
    """In the hour that comes twice a job seems to end before it starts; with the time zone it does not."""
    times = {"Submit": "2026-10-25T02:40:00", "Eligible": "", "Start": "2026-10-25T02:50:00", "End": "2026-10-25T02:10:00"}
    with pytest.raises(InvalidInstance, match=r"it ends before it starts: .* if clocks were put back in between, give the time zone"):
        sacct(tmp_path, line("1", "00", "05", "30", **times))
    log = sacct(tmp_path, line("1", "00", "05", "30", **times), timezone="Europe/Berlin")
    assert (log.end - log.start).tolist() == [1200]
    with pytest.raises(InvalidInstance, match=r'there is no time zone "Europe/Berlim"'):
        sacct(tmp_path, line("1", "00", "05", "30"), timezone="Europe/Berlim")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([line("1", "00", "30", "10")], r'line 2: job "1": it ends before it starts: it starts at 2026-11-22 12:30 and ends at .* 12:10'),
        ([line("1", "20", "10", "30")], r"it starts before it is submitted"),
        ([line("1", "00", "05", "30")[:-20]], r"line 2: the line is cut off: 12 cells for 14 columns; export it again: sacct -a"),
        ([line("1", "00", "05", "30", Start="noon")], r'line 2: Start: "noon" is not a time such as 2026-11-22T15:02:00'),
        (
            [line("1", "00", "05", "30"), line("2", "00", "05", "30", NodeList="cn9")],
            r'line 3: job "2": it ran on "cn9", which the cluster',
        ),
        ([line("1", "00", "05", "30", AllocTRES="cpu=four")], r'line 2: "four" is not an amount'),
    ],
)
def test_bad_exports_of_slurm(tmp_path: Path, lines: list[str], message: str) -> None:
    """With the line; lenient: those that are wrong by themselves are left out and counted."""
    with pytest.raises(InvalidInstance, match=message):
        sacct(tmp_path, *lines)


def test_lenient_reading_counts_what_is_left_out(tmp_path: Path) -> None:
    """One bad record of two."""
    log = sacct(tmp_path, line("1", "00", "30", "10"), line("2", "00", "05", "30"), lenient=True)
    assert (log.n_jobs, [(each.why, each.jobs) for each in log.unjudged]) == (1, [("it ends before it starts", 1)])


def test_standard_workload_format(tmp_path: Path) -> None:
    """Waits and runs; a job cancelled before it ran waits until then; dependent jobs are not judged."""
    path = tmp_path / "log.swf"
    path.write_text(
        "; UnixStartTime: 1000000000\n; TimeZoneString: Europe/Berlin\n"
        "1  0 10 90 4 -1 -1 6 90 -1 1 7 1 -1 1 -1 -1 -1\n"
        "2 10 80 -1 -1 -1 -1 4 90 -1 5 8 1 -1 2 -1 -1 -1\n"
        "3 20 30 50 2 -1 -1 2 90 -1 1 8 1 -1 2 -1 1 -1\n"
        "4 30 -1 50 2 -1 -1 2 90 -1 1 8 1 -1 2 -1 -1 -1\n"
    )
    log = read_log_file(path, PROCESSORS)
    assert log.owners == ("user 7", "user 8")
    assert log.queues == ("queue 1", "queue 2")
    assert np.column_stack([log.submit, log.start, log.end, log.tasks]).tolist() == [[0, 10, 100, 4], [10, 90, 90, 4], [50, 50, 100, 2]]
    assert [(each.why, each.jobs) for each in log.unjudged] == [("its wait is unknown", 1), ("waited for another job", 1)]
    assert log.clock.shown(0.0) == "2001-09-09 03:46:40"
    with pytest.raises(InvalidInstance, match=r'says nothing of "gpu"'):
        read_log_file(path, CLUSTER)


def test_pods(tmp_path: Path) -> None:
    """Created, bound, ended; a pod that waits, one with gates, one of a DaemonSet."""

    def pod(name: str, phase: str, bound: str | None, ended: str | None, **spec: Any) -> dict[str, Any]:
        day = "2026-11-22T12:"
        status: dict[str, Any] = {"phase": phase}
        if bound:
            status["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": f"{day}{bound}:00Z"}]
        if ended:
            status["containerStatuses"] = [{"state": {"terminated": {"finishedAt": f"{day}{ended}:00Z"}}}]
        owners = [{"kind": "DaemonSet"}] if name == "agent" else []
        return {
            "metadata": {"name": name, "namespace": "shop", "creationTimestamp": f"{day}00:00Z", "ownerReferences": owners},
            "spec": {"containers": [{"resources": {"requests": {"cpu": "2", "memory": "4Gi"}}}], **spec},
            "status": status,
        }

    pods = [
        pod("a", "Succeeded", "05", "30", nodeName="cn3"),
        pod("b", "Running", "10", None, nodeName="gn1"),
        pod("c", "Pending", None, None),
        pod("d", "Pending", None, None, schedulingGates=[{"name": "quota"}]),
        pod("agent", "Running", "00", None, nodeName="cn1"),
    ]
    path = tmp_path / "pods.json"
    path.write_text(json.dumps({"kind": "List", "items": pods}))
    log = read_log_file([path, path], CLUSTER)
    assert log.owners == ("shop",)
    assert minutes(log) == [(0, 5, 30), (0, 10, np.inf), (0, np.inf, np.inf)]
    assert log.row.tolist() == [0, 1, -1]
    assert log.demands[log.shape].tolist() == [[2, 4, 0]] * 3
    assert [(each.why, each.jobs) for each in log.unjudged] == [("not ready: it has scheduling gates", 1)]


FRAME = pd.DataFrame({"user": ["A", "B"], "submit": [0, 5], "start": [0, 60], "end": [100, 90], "cpu": [4, 2]})


def test_tables_of_every_kind(tmp_path: Path) -> None:
    """CSV, compressed CSV, Parquet, a frame; seconds and dates; units."""
    FRAME.to_csv(tmp_path / "jobs.csv", index=False)
    FRAME.to_csv(tmp_path / "jobs.csv.gz", index=False)
    FRAME.to_parquet(tmp_path / "jobs.parquet")
    dated = FRAME.assign(**{name: pd.to_datetime(FRAME[name], unit="s") for name in ("submit", "start", "end")})
    dated.to_csv(tmp_path / "dated.csv", index=False)
    for source in (FRAME, tmp_path / "jobs.csv", tmp_path / "jobs.csv.gz", tmp_path / "jobs.parquet", dated, tmp_path / "dated.csv"):
        log = read_log_file(source, PROCESSORS)
        assert np.column_stack([log.submit, log.start, log.end]).tolist() == [[0, 0, 100], [5, 60, 90]]
        assert log.demands[log.shape].tolist() == [[4], [2]]
    assert read_log_file(dated, PROCESSORS).clock.shown(60.0) == "1970-01-01 00:01"
    (tmp_path / "units.csv").write_text("user,submit,start,end,cpu\nA,0,0,9,500m\n")
    assert read_log_file(tmp_path / "units.csv", PROCESSORS).demands.tolist() == [[0.5]]


def test_where_jobs_of_a_table_may_run(tmp_path: Path) -> None:
    """By names, and by attributes of the file of the cluster."""
    frame = FRAME.assign(servers=["gn1 +1", ""], why=["", "held"])
    log = read_log_file(frame, CLUSTER)
    assert log.allowed[log.place].tolist() == [[False, True], [True, True]]
    assert [(each.why, each.jobs) for each in log.unjudged] == [("held", 1)]
    file = tmp_path / "cluster.yaml"
    file.write_text(
        "resources: [cpu]\nservers:\n- {name: a, capacity: {cpu: 8}, attributes: {zone: x}}\n- {name: b, capacity: {cpu: 8}}\n"
        "users:\n- {name: nobody, demand: {cpu: 1}}\n"
    )
    found = fo.history(FRAME.assign(requires=["zone = x", ""]), file)
    assert found.setting.eligibility.tolist() == [[True, False], [True, True]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"the file is empty"),
        ("user,submit,start,end,cpu\n", r"there are no rows below the names of the columns"),
        ("user,submit,begin,end,cpu\nA,0,0,1,1\n", r'there is no column "start"'),
        ("user,submit,start,end,gpu\nA,0,0,1,1\n", r'the column "gpu" is no resource of the cluster'),
        ("user,submit,start,end\nA,0,0,1\n", r"there is no column for a resource"),
        ("user,submit,start,end,cpu\nA,0,9,1,1\n", r'line 2: job "1": it ends before it starts: it starts at 9 s and ends at 1 s'),
        (
            "user,submit,start,end,cpu\nA,0,0,1,1\nB,0,later,1,1\n",
            r'line 3, column "start": "later" is not a number of seconds, and other times are',
        ),
        ("user,submit,start,end,cpu\nA,0,0,1,much\n", r'line 2, column "cpu": expected a number, found the text "much"'),
        ("user,submit,start,end,cpu\nA,0,0,1,-1\n", r"a demand is not a finite number >= 0"),
        ("user,submit,start,end,cpu\nA,0,0,1,0\n", r"all its demands are zero"),
        ("user,submit,start,end,cpu,tasks\nA,0,0,1,1,0\n", r"its number of tasks is not a finite number > 0"),
        ("user,submit,start,end,cpu\n,0,0,1,1\n", r"the owner is empty"),
        ("user,submit,start,end,cpu\nA,,,1,1\n", r"it has neither a submission nor a start"),
        ("user,submit,start,end,cpu,server\nA,0,0,1,1,b\n", r'it ran on "b", which the cluster does not have'),
        ("user,submit,start,end,cpu\nA,0,0,1,1,7,8\n", r"jobs.csv"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, message: str) -> None:
    """The line, what is wrong, what to do."""
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    with pytest.raises(InvalidInstance, match=message):
        read_log_file(path, PROCESSORS)


def test_a_table_whose_last_line_is_cut(tmp_path: Path) -> None:
    """It is named as cut, whatever is missing of it; lenient, it is left out and counted. A short line that ends is no cut one."""
    path = tmp_path / "jobs.csv"
    path.write_text("user,submit,start,end,cpu\nA,0,0,1,1\nB,0,0")
    with pytest.raises(InvalidInstance, match=r"jobs.csv, line 3: the line is cut: it has 3 of 5 cells; write the log again"):
        read_log_file(path, PROCESSORS)
    found = read_log_file(path, PROCESSORS, lenient=True)
    assert found.owners == ("A",)
    assert [(each.why, each.jobs, each.first) for each in found.unjudged] == [("the line is cut", 1, f"{path}, line 3")]
    path.write_text("user,submit,start,end,cpu,why\nA,0,0,1,1")
    with pytest.raises(InvalidInstance, match="line 2: the line is cut: it has 5 of 6 cells"):
        read_log_file(path, PROCESSORS)
    path.write_text("user,submit,start,end,cpu,why\nA,0,0,1,1\n")
    assert read_log_file(path, PROCESSORS).n_jobs == 1


def test_logs_that_are_none(tmp_path: Path) -> None:
    """What they are instead."""
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"user,submit\n" * 100)[:-9])
    for source, message in (
        (tmp_path / "notes.txt", r"cannot tell what kind of log this is"),
        (tmp_path / "cut.csv.gz", r"cannot be unpacked"),
        (tmp_path / "absent.csv", r"there is no file"),
        (7, r"the log is int; give the path of a file"),
        ([], r"there is no log"),
    ):
        with pytest.raises(InvalidInstance, match=message):
            read_log_file(source, PROCESSORS)  # type: ignore[arg-type]
    with pytest.raises(InvalidInstance, match=r'users is "group"; leave it out: a column user names the owners in .*\.csv'):
        read_log_file(FRAME, PROCESSORS) and read_log_file(_saved(tmp_path), PROCESSORS, users="group")


def _saved(folder: Path) -> Path:
    FRAME.to_csv(folder / "jobs.csv", index=False)
    return folder / "jobs.csv"
