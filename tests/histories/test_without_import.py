"""Histories of Slurm and of the Standard Workload Format without an import; jobs that change while they run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command_line import run

import fairopt as fo
from fairopt.errors import InvalidInstance

HEAD = "JobID|Account|User|Partition|State|Submit|Eligible|Start|End|Reason|AllocTRES|ReqTRES|NodeList|Constraints|Suspended|Elapsed\n"
NODES = """\
NodeName=n1 CPUTot=16 RealMemory=16384 Gres=(null) State=IDLE+DRAIN Partitions=p
NodeName=n2 CPUTot=16 RealMemory=16384 Gres=gpu:a100:4 State=IDLE+RESERVED Partitions=p
"""
TREE = "Account|User|Share\nroot||1\n lab||3\n  lab|ann|2\n  lab|ben|1\n idle||1\n  idle|cat|1\n"
POOL = fo.Instance([[16], [16]], [[1]], resources=["cpu"], servers=["n1", "n2"], users=["nobody"])


def job(number: str, who: str, submit: str, start: str, end: str, tres: str = "cpu=16,node=1", node: str = "n1", **more: str) -> str:
    """Return a row; times are of one day."""
    account, user = who.split("/")
    cells = {"State": "COMPLETED", "Reason": "None", "Asked": tres, "Suspended": "00:00:00", "Elapsed": ""} | more
    times = [f"2026-10-25T{time}" if ":" in time else time for time in (submit, submit, start, end)]
    rest = (cells["Reason"], tres, cells["Asked"], node, "", cells["Suspended"], cells["Elapsed"])
    return "|".join((number, account, user, "p", cells["State"], *times, *rest)) + "\n"


def written(folder: Path, name: str, text: str) -> Path:
    """Write a file."""
    (folder / name).write_text(text)
    return folder / name


def received(found: fo.History) -> dict[str, float]:
    """Return the share-hours that each owner received."""
    return dict(zip(found.owners, found.to_frame()["received"].tolist(), strict=True))


def test_a_log_needs_no_import(tmp_path: Path) -> None:
    """Drained and reserved nodes were there, GPUs that nobody asks for count, and an account without a job has its place in the tree.

    ann and ben want all CPUs of n1 and n2 in the first hour; ann, with two shares of three, is due 21.3 of 32 CPUs and has 16.
    """
    log = written(
        tmp_path,
        "jobs.txt",
        HEAD + job("1", "lab/ann", "00:00:00", "00:00:00", "01:00:00") + job("2", "lab/ben", "00:00:00", "00:00:00", "01:00:00", node="n2")
        + job("3", "lab/ann", "00:00:00", "01:00:00", "02:00:00")
        + job("4", "idle/cat", "01:30:00", "01:30:00", "02:00:00", "cpu=1,node=1", "n2"),
    )  # fmt: skip
    nodes, tree = written(tmp_path, "nodes.txt", NODES), written(tmp_path, "assoc.txt", TREE)
    found = fo.history(log, nodes=nodes, associations=tree, moments="all")
    table = found.to_frame()
    assert found.setting.cluster.resources == ("cpu", "memory", "gpu")
    assert dict(zip(found.owners, table["entitled"], strict=True)) == pytest.approx(
        {"lab/ann": 2 / 3 + 0.5, "lab/ben": 1 / 3, "idle/cat": 1 / 64}, abs=0.2
    )
    assert received(found) == pytest.approx({"lab/ann": 1.0, "lab/ben": 0.5, "idle/cat": 1 / 64})
    text = run("history", log, "--nodes", nodes, "--associations", tree, "--moments", "all", "--csv").stdout
    assert "idle/cat" in text
    alone = fo.history(log, nodes=nodes)
    assert set(alone.owners) == set(found.owners)
    assert alone.setting.weights.tolist() == [1, 1, 1]


def test_what_is_lacking_is_said(tmp_path: Path) -> None:
    """The nodes, or a cluster; both at once are one too many."""
    log = written(tmp_path, "jobs.txt", HEAD + job("1", "lab/ann", "00:00:00", "00:00:00", "01:00:00"))
    nodes = written(tmp_path, "nodes.txt", NODES)
    table = written(tmp_path, "jobs.csv", "user,submit,start,end,cpu\nann,0,0,9,1\n")
    for source, options, message in (
        (log, {}, "there is no cluster; give its nodes"),
        (log.with_name("nothing.log"), {}, "there is no file .*nothing.log"),
        (table, {"nodes": nodes}, "needs a cluster"),
        (log, {"nodes": nodes, "cluster": POOL}, "leave one of the two out"),
        (log, {"nodes": nodes, "users": "group"}, "give user or account"),
    ):
        with pytest.raises(InvalidInstance, match=message):
            fo.history(source, **options)
    assert "--cluster" in run("history", log, "--nodes", nodes, "--set", "users.a.weight=2", status=2).stderr


MOMENT = """\
resources: [cpu]
servers:
- {name: n1, capacity: {cpu: 16}}
- {name: n2, capacity: {cpu: 16}}
users:
- {name: lab/ann, queue: lab/ann, demand: {cpu: 16}}
queues:
- {name: lab, weight: 3}
- {name: lab/ann, parent: lab, weight: 2}
"""


def test_a_log_against_an_import_that_lacks_its_accounts(tmp_path: Path) -> None:
    """Only ann had a job when the cluster was imported; ben, and cat of the account idle, had some before.

    All three want both nodes. With the associations the lab is due 3/4, ann 2/3 of it; without them 3/4, and ben 1 of 3 shares; idle has
    the weight 1 that it has there, too.
    """
    rows = [
        job(f"{n}", who, "00:00:00", "00:00:00", "01:00:00", node=node) for n, who, node in ((1, "lab/ann", "n1"), (2, "lab/ben", "n2"))
    ]
    waits = [
        job(f"{n}", who, "00:00:00", "01:00:00", "02:00:00", node=node) for n, who, node in ((3, "idle/cat", "n1"), (4, "lab/ann", "n2"))
    ]
    more = [
        job(f"{n}", who, "00:00:00", "02:00:00", "03:00:00", node=node) for n, who, node in ((5, "idle/cat", "n1"), (6, "lab/ben", "n2"))
    ]
    log = written(tmp_path, "jobs.txt", HEAD + "".join((*rows, *waits, *more)))
    cluster, tree = written(tmp_path, "moment.yaml", MOMENT), written(tmp_path, "assoc.txt", TREE)
    right = fo.history(log, nodes=written(tmp_path, "nodes.txt", NODES), associations=tree, moments="all")
    both = fo.history(log, cluster, associations=tree, moments="all")
    assert received(both) == pytest.approx(received(right))
    assert both.to_frame()["entitled"].to_dict() == pytest.approx(right.to_frame()["entitled"].to_dict())
    assert any("the cluster does not list 3 accounts and users" in note for note in both.notes)

    alone = fo.history(log, cluster, moments="all")
    assert received(alone) == pytest.approx(received(right))
    by_hand = MOMENT + "- {name: lab/ben, parent: lab}\n- {name: idle}\n- {name: idle/cat, parent: idle}\n"
    same = fo.history(log, written(tmp_path, "by-hand.yaml", by_hand), moments="all")
    assert alone.to_frame()["entitled"].to_dict() == pytest.approx(same.to_frame()["entitled"].to_dict())
    assert any("1 account of the log is not in the cluster (idle): weight 1 beside the others" in note for note in alone.notes)
    assert any("1 user of the log is not in the cluster, such as lab/ben: weight 1 in its account" in note for note in alone.notes)
    by_account = fo.history(log, cluster, users="account", moments="all")
    assert received(by_account) == pytest.approx({"lab": 2.0, "idle": 1.0})
    assert "idle/cat" in run("history", log, "--cluster", cluster, "--associations", tree, "--csv").stdout
    with pytest.raises(InvalidInstance, match="associations are of Slurm"):
        fo.history(written(tmp_path, "jobs.csv", "user,submit,start,end,cpu\nann,0,0,9,1\n"), POOL, associations=tree)


def test_accounts_of_an_import_without_associations(tmp_path: Path) -> None:
    """The users of such a cluster are accounts, with weights: they are queues of the users in the log."""
    log = written(
        tmp_path,
        "jobs.txt",
        HEAD
        + "".join(
            job(f"{n}", who, "00:00:00", f"0{n}:00:00", f"0{n + 1}:00:00")
            for n, who in enumerate(("lab/ann", "lab/ben", "idle/cat", "new/dan"))
        ),
    )
    flat = fo.Instance([[16]], [[1], [1]], weights=[3, 1], resources=["cpu"], servers=["n1"], users=["lab", "idle"])
    found = fo.history(log, flat, moments="all")
    assert {queue.name: queue.weight for queue in found.setting.cluster.queues} == {"lab": 3, "idle": 1, "new": 1}
    assert received(found) == pytest.approx(dict.fromkeys(("lab/ann", "lab/ben", "idle/cat", "new/dan"), 1.0))
    by_account = fo.history(log, flat, users="account", moments="all")
    assert dict(zip(by_account.owners, by_account.setting.weights.tolist(), strict=True)) == {"lab": 3, "idle": 1, "new": 1}
    strange = POOL.replace(queues=[fo.Queue("other")])
    with pytest.raises(InvalidInstance, match="the cluster does not know the owner"):
        fo.history(log, strange)


SWF = "; MaxNodes: 4\n; MaxProcs: 64\n1 0 0 10 8 -1 -1 8 60 -1 1 7 1 -1 1 -1 -1 -1\n2 20 0 90 64 -1 -1 64 90 -1 1 8 1 -1 1 -1 -1 -1\n"


def test_a_log_in_the_standard_workload_format_against_its_own_cluster(tmp_path: Path) -> None:
    """Its header says how many processors there were; the import of a moment lacks users, whose weight is 1 beside the others."""
    log = written(tmp_path, "log.swf", SWF)
    right = pytest.approx({"user 7": 8 / 64 * 10 / 3600, "user 8": 90 / 3600})
    assert received(fo.history(log)) == right
    found = fo.history(log, fo.import_swf(log).instance)
    assert received(found) == right
    assert "1 owner of the log is not in the cluster: weight 1 beside the others" in found.notes


def test_a_job_in_several_parts_waits_from_one_to_the_next(tmp_path: Path) -> None:
    """From 0 to 60 s and from 90 to 130 s; with and without the line of all of it. Imports and traces have the job once."""
    parts = "1 {first} 0 60 10 -1 -1 10 200 -1 2 1 1 -1 1 1 -1 -1\n1 -1 30 40 10 -1 -1 10 200 -1 3 1 1 -1 1 1 -1 -1\n"
    whole = "1 0 0 100 10 -1 -1 10 200 -1 1 1 1 -1 1 1 -1 -1\n"
    rest = "2 60 0 30 10 -1 -1 10 30 -1 1 2 1 -1 1 1 -1 -1\n"
    for lines in (whole + parts.format(first=0), parts.format(first=0)):
        log = written(tmp_path, "log.swf", "; Version: 2.2\n; MaxProcs: 10\n" + lines + rest)
        found = fo.history(log, moments="all")
        assert received(found) == pytest.approx({"user 1": 100 / 3600, "user 2": 30 / 3600})
        assert found.to_frame()["waiting"].sum() == pytest.approx(30 / 3600)
        assert len(fo.trace_swf(log).jobs) == 2


def test_a_resized_job_holds_each_size_for_its_time(tmp_path: Path) -> None:
    """As Slurm writes it: the second record begins, by its submission, at the resize."""
    first = job("9", "lab/ann", "00:00:00", "00:10:00", "00:20:00", "cpu=32,node=2", "n[1-2]", State="RESIZING")
    log = written(tmp_path, "jobs.txt", HEAD + first + job("9", "lab/ann", "00:20:00", "00:10:00", "00:50:00", "cpu=8,node=1"))
    assert received(fo.history(log, POOL)) == pytest.approx({"lab/ann": (10 * 32 + 30 * 8) / 32 / 60})


def test_a_suspended_job_keeps_its_memory_and_its_gpus(tmp_path: Path) -> None:
    """An hour, 15 minutes of it suspended: of its CPUs 45 minutes count, of its GPUs an hour."""
    gpu = "cpu=16,mem=1G,node=1,gres/gpu=1"
    rows = job("1", "lab/ann", "00:00:00", "00:00:00", "01:00:00", Suspended="00:15:00")
    rows += job("2", "lab/ben", "00:00:00", "00:00:00", "01:00:00", gpu, "n2", Suspended="00:15:00")
    log, nodes = written(tmp_path, "jobs.txt", HEAD + rows), written(tmp_path, "nodes.txt", NODES)
    found = fo.history(log, nodes=nodes)
    assert received(found) == pytest.approx({"lab/ann": 0.5 * 0.75, "lab/ben": 0.5 * 0.75 + 0.25 * 0.25})
    assert "2 jobs were suspended for a time" in " ".join(found.notes)


@pytest.mark.parametrize(
    ("submit", "start", "end", "elapsed", "minutes"),
    [
        ("02:55:00", "02:05:00", "02:30:00", "", 25),  # it waits over the change of clocks
        ("02:05:00", "02:10:00", "02:30:00", "01:20:00", 80),  # it runs over it, which only Elapsed says
        ("02:05:00", "02:10:00", "02:30:00", "00:20:00", 20),
    ],
)
def test_the_hour_that_comes_twice(tmp_path: Path, submit: str, start: str, end: str, elapsed: str, minutes: float) -> None:
    """Of two times, the one that the others allow."""
    log = written(tmp_path, "jobs.txt", HEAD + job("1", "lab/ann", submit, start, end, Elapsed=elapsed))
    assert received(fo.history(log, POOL, timezone="Europe/Berlin")) == pytest.approx({"lab/ann": minutes / 60 / 2})


def test_times_in_seconds_since_1970(tmp_path: Path) -> None:
    """As SLURM_TIME_FORMAT=%s has them."""
    log = written(tmp_path, "jobs.txt", HEAD + job("1", "lab/ann", "1795627333", "1795627454", "1795629254"))
    found = fo.history(log, POOL)
    assert received(found) == pytest.approx({"lab/ann": 0.25})
    assert found.setting.log.clock.shown(found.setting.log.span[0]) == "2026-11-25 17:22:13"


def test_sacct_json_is_read(tmp_path: Path) -> None:
    """The same history as from the table; a job without times is refused by its place."""
    at = {
        "submission": 1795627333,
        "eligible": 1795627333,
        "start": 1795627454,
        "end": {"set": True, "infinite": False, "number": 1795629254},
    }
    tres = [
        {"type": "cpu", "name": "", "id": 1, "count": 16},
        {"type": "mem", "name": "", "id": 2, "count": 1024},
        {"type": "node", "name": "", "id": 4, "count": 1},
    ]
    one = {"job_id": 160, "account": "lab", "user": "ann", "partition": "p", "nodes": "n1", "constraints": "", "het": {"job_id": 0}}
    one |= {"state": {"current": ["COMPLETED"], "reason": "None"}, "time": {**at, "elapsed": 1800, "suspended": 0}}
    one |= {"tres": {"allocated": tres, "requested": tres}, "array": {"job_id": 158, "task_id": 1}}
    array = {"job_id": 158, "task": "2-9", "limits": {"max": {"running": {"tasks": 3}}}}
    waits = one | {"job_id": 158, "array": array, "nodes": "None assigned", "state": {"current": "PENDING", "reason": "Priority"}}
    waits |= {"time": {**at, "start": 0, "end": 0}, "tres": {"allocated": [], "requested": tres}}
    log = written(tmp_path, "jobs.json", json.dumps({"meta": {"Slurm": {"version": {"major": 22}}}, "errors": [], "jobs": [one, waits]}))
    found = fo.history(log, POOL)
    assert found.setting.log.jobs.tolist() == ["158_1", "158_[2-9%3]"]
    assert found.setting.log.tasks.tolist() == [1, 3]
    assert received(found) == pytest.approx({"lab/ann": 0.25})
    written(tmp_path, "jobs.json", json.dumps({"jobs": [{"job_id": 7, "account": "lab", "user": "ann"}, one]}))
    with pytest.raises(InvalidInstance, match=r'jobs\[0\]: job "7": it has neither a submission nor a start'):
        fo.history(log, POOL)
    assert fo.history(log, POOL, lenient=True).setting.log.n_jobs == 1


jobs = st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(1, 9), st.integers(0, 3), st.integers(0, 2))


@given(st.lists(jobs, min_size=1, max_size=12))
@settings(max_examples=30, deadline=None)
def test_share_hours_are_of_the_dominant_share_of_all_that_an_owner_holds(draws: list[tuple[str, int, int, int, int]]) -> None:
    """Against a loop over hours: the largest share of any resource, of all jobs of the owner together."""
    rows = [(user, start, start, start + length, cpu, gpu) for user, start, length, cpu, gpu in draws if cpu + gpu]
    if not rows:
        return
    frame = pd.DataFrame(rows, columns=["user", "submit", "start", "end", "cpu", "gpu"])
    frame[["submit", "start", "end"]] *= 3600
    total = np.array([100.0, 40.0])
    expected = dict.fromkeys(frame["user"], 0.0)
    for hour in range(20):
        for user in expected:
            mine = frame[(frame["user"] == user) & (frame["start"] <= hour * 3600) & (hour * 3600 < frame["end"])]
            expected[user] += float((mine[["cpu", "gpu"]].sum().to_numpy() / total).max())
    assert received(fo.history(frame, fo.Instance([total], [[1, 0]], resources=["cpu", "gpu"]))) == pytest.approx(expected)


def test_the_nodes_say_where_jobs_may_run(tmp_path: Path) -> None:
    """By partition and type of GPU, whether or not a job ran there: one of p may run on n2, too, which only the other used."""
    log = written(
        tmp_path,
        "jobs.txt",
        HEAD
        + job("1", "lab/ann", "00:00:00", "00:00:00", "01:00:00")
        + job("2", "lab/ben", "00:00:00", "00:00:00", "01:00:00", "cpu=4,node=1,gres/gpu=1", "n2", Asked="cpu=4,node=1,gres/gpu:a100=1"),
    )
    setting = fo.history(log, nodes=written(tmp_path, "nodes.txt", NODES)).setting
    assert dict(zip(setting.labels, setting.eligibility.tolist(), strict=True)) == {"lab/ann": [True, True], "lab/ben": [False, True]}
