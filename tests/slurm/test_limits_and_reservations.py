"""Shares and limits of Slurm beyond a plain tree: FairShare=parent, QOS, numbers of jobs, reservations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.slurm_records import import_records, job, node

import fairopt as fo
from fairopt.clusters.account import Account
from fairopt.slurm.qos import read_qos, tiers_of

ONE = "cpu=1,mem=1M,node=1"
TREE = "Account|User|Share|GrpJobs|MaxJobs\nroot||1||\n a||1||\n  a|ann|1||\n  a|ben|1||\n b||1|3|\n  b|ann|1||2\n"


def waiting(identity: int, account: str, user: str, tres: str = ONE, **more: Any) -> dict[str, Any]:
    """Make an array of 99 jobs that waits."""
    return job(identity, tres, account=account, user_name=user, array_job_id=identity, array_task_string="1-99", **more)


def tasks(found: fo.Import) -> dict[str, float]:
    """Return the exact number of tasks of each user."""
    return dict(zip(found.instance.users, fo.solve(found.instance, "drfh").tasks_per_user, strict=True))


def written(folder: Path, name: str, text: str) -> Path:
    """Write a file."""
    path = folder / name
    path.write_text(text)
    return path


def test_the_children_of_an_account_that_uses_its_parents_shares_compare_with_its_siblings(tmp_path: Path) -> None:
    """Of 60 CPUs ann (40), ben (50) and cat (30) would have 20, 25 and 15; the sub-account holds no more than its GrpTRES, 32."""
    rows = ["root||1|", " lab||1|", "  lab|ann|40|", "  sub||parent|cpu=32", "   sub|ben|50|", "   sub|cat|30|"]
    path = tmp_path / "associations.txt"
    path.write_text("\n".join(["Account|User|Share|GrpTRES", *rows]) + "\n")
    several = {"array_task_string": "1-99"}
    jobs = [
        job(n, "cpu=1,mem=1M,node=1", account=a, user_name=u, **several) for n, (a, u) in enumerate((("lab", "ann"), ("sub", "ben")), 1)
    ]
    jobs.append(job(3, "cpu=1,mem=1M,node=1", account="sub", user_name="cat", **several))
    found = import_records(tmp_path, [node("n1", 60)], jobs, associations=path)
    assert {queue.name: queue.parent for queue in found.instance.queues} == {
        "lab": None,
        "lab/ann": "lab",
        "sub/ben": "lab",
        "sub/cat": "lab",
    }
    assert [(limit.bound, limit.queues) for limit in found.instance.limits] == [(32, ("sub/ben", "sub/cat"))]
    tasks = dict(zip(found.instance.users, fo.solve(found.instance, "drfh").tasks_per_user, strict=True))
    assert tasks == pytest.approx({"lab/ann": 28, "sub/ben": 20, "sub/cat": 12})


def test_a_user_with_the_shares_of_its_account_comes_first_there(tmp_path: Path) -> None:
    """As Slurm's Fair Tree ranks it. Where all users of an account are such, they count alike."""
    path = tmp_path / "associations.txt"
    path.write_text("Account|User|Share\nroot||1\n lab||1\n  lab|ann|parent\n  lab|ben|5\n old||1\n  old|cat|parent\n  old|dan|parent\n")
    jobs = [job(n, account=a, user_name=u) for n, (a, u) in enumerate((("lab", "ann"), ("lab", "ben"), ("old", "cat"), ("old", "dan")))]
    found = import_records(tmp_path, [node("n1")], jobs, associations=path)
    weights = {queue.name: queue.weight for queue in found.instance.queues if "/" in queue.name}
    assert weights == {"lab/ann": 5000, "lab/ben": 5, "old/cat": 1, "old/dan": 1}
    assert [note for note in found.notes if "FairShare=parent" in note and ("1 user " in note or "2 users of" in note)] != []


QOS = "Name|Priority|Preempt|Flags|GrpTRES|MaxTRES|MaxTRESPU|MaxTRESPA|MaxWall|GrpJobs|GrpTRESMins\nnormal|0|||||||||\n"
QOS += "small|5|||cpu=20,node=3|cpu=4|cpu=8|cpu=12|01:00:00||cpu=9\n"


def test_a_qos_limits_its_jobs_of_all_of_a_user_and_of_an_account(tmp_path: Path) -> None:
    """8 CPUs a user, 12 an account, 20 in all, wherever the jobs are in the tree; without them each would have 64 / 5."""
    path = written(tmp_path, "qos.txt", QOS)
    jobs = [waiting(n, a, u, qos="small") for n, (a, u) in enumerate((("a", "ann"), ("a", "ben"), ("b", "ann"), ("c", "cat")), 1)]
    found = import_records(
        tmp_path, [node("n1")], [*jobs, waiting(9, "c", "dan", qos="normal")], associations=written(tmp_path, "t", TREE), qos=path
    )
    assert {limit.name: limit.bound for limit in found.instance.limits if limit.name.startswith("qos")} == {
        "qos/small cpu": 20,
        "qos/small of user ann cpu": 8,
        "qos/small of user ben cpu": 8,
        "qos/small of user cat cpu": 8,
        "qos/small of account a cpu": 12,
        "qos/small of account b cpu": 12,
        "qos/small of account c cpu": 12,
    }
    shared = tasks(found)
    assert shared["c/dan"] == pytest.approx(44)
    assert sum(shared.values()) == pytest.approx(64)
    assert shared["a/ann"] + shared["b/ann"] <= 8 + 1e-6
    assert any("limits of QOS on node are left out" in note for note in found.notes)
    assert any("GrpTRESMins" in note for note in found.notes)
    assert any("QOS differ in priority" in note for note in found.notes)


def test_a_job_that_breaks_a_limit_of_one_job_is_no_demand(tmp_path: Path) -> None:
    """More CPUs, or more time, than one job may have; the same from the answer of slurmrestd."""
    limits = {
        "max": {
            "tres": {"per": {"job": [{"type": "cpu", "name": "", "id": 1, "count": 4}]}},
            "wall_clock": {"per": {"job": {"set": True, "number": 60}}},
        }
    }
    answer = json.dumps(
        {"QOS": [{"name": "small", "limits": limits, "priority": {"set": True, "number": 5}, "preempt": {"list": []}, "flags": []}]}
    )
    jobs = [job(1, "cpu=5,mem=1M,node=1", qos="small"), job(2, ONE, qos="small", time_limit=90), job(3, ONE, qos="small", time_limit=30)]
    for name, text in (("qos.txt", QOS), ("qos.json", answer)):
        found = import_records(tmp_path, [node("n1")], jobs, qos=written(tmp_path, name, text))
        assert found.instance.tasks.tolist() == [1]
        assert sorted(each.why for each in found.left_out) == [
            f"breaks {limit} of the QOS small, so it can never start" for limit in ("MaxTRES", "MaxWall")
        ]


def test_the_qos_of_a_partition_comes_before_that_of_a_job(tmp_path: Path) -> None:
    """MaxTRESPU of the partition's QOS counts, not that of the job's, unless the flag OverPartQOS says so."""
    partitions = written(tmp_path, "partitions.txt", "PartitionName=batch QoS=part\n   Nodes=n1\n")
    for flags, most in (("", 3), ("OverPartQOS", 8)):
        qos = written(tmp_path, "qos.txt", f"Name|Flags|MaxTRESPU\npart||cpu=3\nsmall|{flags}|cpu=8\n")
        found = import_records(tmp_path, [node("n1")], [waiting(1, "a", "ann", qos="small")], qos=qos, partitions=partitions)
        assert tasks(found) == pytest.approx({"a": most})


def test_tiers_of_many_qos(tmp_path: Path) -> None:
    """Sixty, each of which preempts all before it: sixty tiers, at once. Two that preempt each other are in one."""
    names = [f"q{n}" for n in range(60)]
    rows = [f"{name}|{n}|{','.join(names[:n])}" for n, name in enumerate(names)]
    found = read_qos(written(tmp_path, "qos.txt", "\n".join(["Name|Priority|Preempt", *rows]) + "\n"), Account(lenient=False))
    assert tiers_of(found) == {name: n for n, name in enumerate(names) if n}
    path = written(tmp_path, "qos.txt", "Name|Priority|Preempt\na|0|b\nb|5|a,c\nc|9|\n")
    assert tiers_of(read_qos(path, Account(lenient=False))) == {"a": 1, "b": 1}


def test_a_qos_that_preempts_others_is_a_tier(tmp_path: Path) -> None:
    """Its jobs come first, with and without the associations; a tier is above all that it preempts."""
    qos = written(tmp_path, "qos.txt", "Name|Priority|Preempt\nnormal|0|\nhigh|5|normal\ntop|9|high\n")
    jobs = [waiting(1, "a", "ann", qos="high"), waiting(2, "a", "ann"), waiting(3, "b", "ben", qos="normal")]
    jobs.append(job(4, "cpu=6,mem=1M,node=1", account="b", user_name="ben", qos="top"))
    nodes = [node("n1", 64)]
    tree = written(tmp_path, "t", "Account|User|Share\nroot||1\n a||1\n  a|ann|1\n b||1\n  b|ben|1\n")
    found = import_records(tmp_path, nodes, jobs, qos=qos, associations=tree)
    assert {queue.name: queue.tier for queue in found.instance.queues if queue.tier} == {"a/ann/qos:high": 1, "b/ben/qos:top": 2}
    held = {name.partition(" ")[0]: number for name, number in tasks(found).items()}
    assert held == pytest.approx({"a/ann/qos:high": 58, "b/ben/qos:top": 1, "a/ann": 0, "b/ben": 0}, abs=1e-6)
    export = fo.export_slurm(fo.solve(found.instance, "drfh"), level="account-user")
    limits = {line.partition("where ")[2] for line in export.files["limits"].splitlines() if line.startswith("sacctmgr")}
    assert len(limits) == 4
    assert "name=ann account=a partition= set GrpTRES=cpu=58,mem=58M" in limits
    flat = import_records(tmp_path, nodes, jobs, qos=qos)
    assert {queue.name: (queue.parent, queue.tier) for queue in flat.instance.queues} == {
        "a": (None, 0),
        "a/qos:high": ("a", 1),
        "b": (None, 0),
        "b/qos:top": ("b", 2),
    }


def test_without_the_limits_of_qos_a_note_says_where_they_are(tmp_path: Path) -> None:
    """Nothing that divides the cluster is dropped in silence."""
    found = import_records(tmp_path, [node("n1")], [job(1, qos="small")])
    assert [note for note in found.notes if "--qos" in note] != []


def test_limits_of_numbers_of_jobs_are_named_limits(tmp_path: Path) -> None:
    """3 jobs of b at once, 2 of b/ann; a job on two nodes is two tasks, each half a job."""
    two = {"node_count": 2, "tasks": 2}
    jobs = [waiting(1, "a", "ann"), waiting(2, "b", "ann", "cpu=2,mem=2M,node=2", **two), waiting(3, "b", "ben")]
    found = import_records(tmp_path, [node("n1"), node("n2")], jobs, associations=written(tmp_path, "t", TREE))
    assert {limit.name: (limit.bound, dict(limit.amounts)) for limit in found.instance.limits} == {
        "GrpJobs of b jobs": (3, {"b/ann": 0.5, "b/ben": 1}),
        "MaxJobs of b/ann jobs": (2, {"b/ann": 0.5}),
    }
    assert tasks(found)["b/ann"] / 2 + tasks(found)["b/ben"] == pytest.approx(3)


RESERVATIONS = """\
ReservationName=course StartTime=2026-11-25T17:00:00 EndTime=2026-11-25T19:00:00 Duration=02:00:00
   Nodes=n2 NodeCnt=1 CoreCnt=32 Features=(null) PartitionName=batch Flags={flags}
   TRES=cpu={cpus}
   Users=ann Groups=(null) Accounts=(null) Licenses=(null) State={state} BurstBuffer=(null) Watts=n/a
"""


def on(found: fo.Import, user: str) -> set[str]:
    """Return the servers on which a user may run."""
    instance = found.instance
    row = instance.users.index(user)
    return {host for i, own in enumerate(instance.hosts) for host in own if instance.eligibility[row, i]}


@pytest.mark.parametrize(
    ("flags", "ann", "inside"),
    [("", {"n1"}, {"n2"}), ("FLEX", {"n1"}, {"n1", "n2"}), ("MAGNETIC", {"n1", "n2"}, {"n2"}), ("MAINT,IGNORE_JOBS", {"n1"}, {"n2"})],
)
def test_nodes_of_a_reservation_are_for_its_jobs(tmp_path: Path, flags: str, ann: set[str], inside: set[str]) -> None:
    """Alone, unless flags say otherwise."""
    listed = written(tmp_path, "reservations.txt", RESERVATIONS.format(flags=flags, cpus=64, state="ACTIVE"))
    jobs = [waiting(1, "a", "ann"), waiting(2, "b", "ben"), waiting(3, "c", "cat", resv_name="course")]
    nodes = [node("n1", 32), node("n2", 64, state=["IDLE", "RESERVED"])]
    found = import_records(tmp_path, nodes, jobs, reservations=listed)
    assert (on(found, "a"), on(found, "b"), on(found, "c")) == (ann, {"n1"}, inside)


def test_a_reserved_node_without_jobs_of_its_reservation_offers_nothing(tmp_path: Path) -> None:
    """Maintenance, too, in all words that versions have for it; a reservation that is not active keeps nothing."""
    jobs = [waiting(1, "a", "ann")]
    for state in (["IDLE", "RESERVED"], ["IDLE", "MAINTENANCE"], ["MIXED", "MAINT"], ["IDLE$"], ["IDLE*"]):
        found = import_records(tmp_path, [node("n1"), node("n2", state=state)], jobs)
        assert found.instance.hosts == (("n1",),), state
    later = written(tmp_path, "reservations.txt", RESERVATIONS.format(flags="", cpus=64, state="INACTIVE"))
    found = import_records(tmp_path, [node("n1"), node("n2")], [*jobs, waiting(2, "b", "ben", resv_name="course")], reservations=later)
    assert (found.instance.hosts, found.instance.users) == ((("n1", "n2"),), ("a",))
    assert any("not active" in note for note in found.notes)


def test_reservations_in_json_are_active_where_their_nodes_are_reserved(tmp_path: Path) -> None:
    """JSON has no state. Without the export, reserved nodes that name no reservation are for jobs of any, those in maintenance for none."""
    common: dict[str, Any] = {"groups": "", "accounts": "", "users": "ann", "tres": "cpu=64", "start_time": {"set": True, "number": 1}}
    listed = [{"name": "course", "node_list": "n2", "flags": ["SPEC_NODES"]}, {"name": "later", "node_list": "n1", "flags": []}]
    path = written(tmp_path, "reservations.json", json.dumps({"reservations": [common | each for each in listed]}))
    jobs = [waiting(1, "a", "ann"), waiting(2, "b", "ben", resv_name="course"), waiting(3, "c", "cat", resv_name="later")]
    nodes = [node("n1"), node("n2", state=["IDLE", "RESERVED"]), node("n3", state=["IDLE", "MAINTENANCE", "RESERVED"])]
    for given, users in ((path, ("a", "b")), (None, ("a", "b", "c"))):
        found = import_records(tmp_path, nodes, jobs, reservations=given)
        assert found.instance.users == users
        assert (on(found, "a"), on(found, "b")) == ({"n1"}, {"n2"})
        assert found.instance.hosts == (("n1",), ("n2",))


def test_a_reservation_of_some_cpus_leaves_the_rest_of_a_node(tmp_path: Path) -> None:
    """8 of 64."""
    listed = written(tmp_path, "reservations.txt", RESERVATIONS.format(flags="SPEC_NODES", cpus=8, state="ACTIVE"))
    found = import_records(tmp_path, [node("n2", 64, state=["MIXED", "RESERVED"])], [waiting(1, "a", "ann")], reservations=listed)
    assert found.instance.capacities[0, 0] == 56
    assert any("part of the CPUs" in note for note in found.notes)


def left_out(found: fo.Import) -> dict[str, str]:
    """Return why each job is left out, by its number."""
    return {each.where.partition("(job ")[2].rstrip(")"): each.why for each in found.left_out}


OWN = "Account|User|Share|GrpTRES|MaxTRES|MaxTRESPerNode|MaxWall\nroot||1|cpu=60|||\n a||1|cpu=8,gres/gpu=2|cpu=6|cpu=3|02:00:00\n"
OWN += "  a|ann|1|cpu=7|cpu=7||\n  a|ben|1||||\n b||1|cpu=0|||\n  b|cat|1||||\n"


def test_a_job_that_breaks_a_limit_of_its_associations_by_itself_has_no_part_of_them(tmp_path: Path) -> None:
    """ann may have jobs of 7 CPUs where her account has 6; what is not set is that of the account; all accounts are below the root.

    GrpTRES=cpu=0 closes cat's job out: it stays, with nothing. The same from the answer of slurmrestd.
    """
    fits = {
        1: ("a", "ann", "cpu=7,mem=1M,node=3", {}),
        2: ("a", "ben", "cpu=3,mem=1M,node=1", {"time_limit": 120}),
        3: ("b", "cat", ONE, {}),
    }
    breaks: dict[int, tuple[Any, ...]] = {
        4: ("a", "ann", "cpu=8,mem=1M,node=3", {}, "GrpTRES of a/ann"),
        5: ("a", "ben", "cpu=7,mem=1M,node=3", {}, "MaxTRES of a"),
        6: ("a", "ben", "cpu=4,mem=1M,node=1", {}, "MaxTRESPerNode of a"),
        7: ("a", "ben", ONE, {"time_limit": 121}, "MaxWall of a"),
        8: ("a", "ben", "cpu=1,mem=1M,node=1,gres/gpu=3", {}, "GrpTRES of a"),
        9: ("c", "dan", "cpu=61,mem=1M,node=1", {}, "GrpTRES of root"),
    }
    jobs = [job(n, tres, account=a, user_name=u, **more) for n, (a, u, tres, more, *_) in {**fits, **breaks}.items()]

    def listed(amounts: str) -> list[dict[str, Any]]:
        pairs = [each.split("=") for each in amounts.split(",") if each]
        return [{"type": name.partition("/")[0], "name": name.partition("/")[2], "count": int(value)} for name, value in pairs]

    answer, over = [], {"a": "root", "b": "root", "root": ""}
    for row in OWN.splitlines()[1:]:
        account, user, share, together, of_job, of_node, wall = (cell.strip() for cell in row.split("|"))
        most = {"total": listed(together), "per": {"job": listed(of_job), "node": listed(of_node)}}
        clock = {"set": bool(wall), "number": 120 if wall else 0}
        limits = {"tres": most, "jobs": {"per": {"wall_clock": clock, "count": {"set": False, "number": 0}}}}
        record = {"account": account, "user": user, "partition": "", "shares_raw": int(share), "max": limits, "flags": []}
        answer.append(record | {"parent_account": "" if user else over[account]})
    for name, text in (("associations.txt", OWN), ("associations.json", json.dumps({"associations": answer}))):
        found = import_records(tmp_path, [node("n1", gres="gpu:4")], jobs, associations=written(tmp_path, name, text))
        assert left_out(found) == {str(n): f"breaks {limit}, so it can never start" for n, (*_, limit) in breaks.items()}
        assert tasks(found)["b/cat"] == 0
        assert sorted(found.owners) == ["a", "a", "b"]


def test_a_limit_of_a_qos_comes_before_that_of_an_association(tmp_path: Path) -> None:
    """Of one job, of its time and of several jobs, by TRES; that of the partition's QOS comes before that of the job's own."""
    associations = written(tmp_path, "associations.txt", OWN)
    partitions = written(tmp_path, "partitions.txt", "PartitionName=batch QoS=part\n   Nodes=n1\n")
    qos = written(
        tmp_path, "qos.txt", "Name|MaxTRES|MaxWall|GrpTRES|MaxTRESPerNode\npart|cpu=20|||\nlong|cpu=2|1-00:00:00|cpu=30|cpu=30\nshort||||\n"
    )
    jobs = [
        job(1, "cpu=20,mem=1M,node=1", account="a", user_name="ann", qos="long", time_limit=600),
        job(2, "cpu=21,mem=1M,node=1", account="a", user_name="ann", qos="long"),
        job(3, "cpu=1,mem=1M,node=1,gres/gpu=3", account="a", user_name="ann", qos="long"),
        job(4, "cpu=8,mem=1M,node=1", account="a", user_name="ann", qos="short"),
    ]
    found = import_records(tmp_path, [node("n1", gres="gpu:4")], jobs, associations=associations, partitions=partitions, qos=qos)
    assert left_out(found) == {
        "2": "breaks MaxTRES of the QOS part, so it can never start",
        "3": "breaks GrpTRES of a, so it can never start",
        "4": "breaks GrpTRES of a/ann, so it can never start",
    }


def test_a_job_in_several_partitions_starts_where_it_breaks_no_limit(tmp_path: Path) -> None:
    """Of 4 CPUs and in both partitions, in any order: in the one without the limit of 2. Of 1 CPU: in both, which is noted."""
    partitions = written(tmp_path, "partitions.txt", "PartitionName=small QoS=few\n   Nodes=n1\nPartitionName=batch QoS=N/A\n   Nodes=n2\n")
    qos = written(tmp_path, "qos.txt", "Name|MaxTRES|MaxWall|GrpTRES\nfew|cpu=2||cpu=3\n")
    four, one = "cpu=4,mem=1M,node=1", "cpu=1,mem=1M,node=1"
    jobs = [
        job(1, four, user_name="ann", partition="small,batch"),
        job(2, four, user_name="ann", partition="batch,small"),
        job(3, four, user_name="ben", partition="small"),
        job(4, one, user_name="ben", partition="small,batch"),
    ]
    nodes = [node("n1", partitions=["small"]), node("n2")]
    found = import_records(tmp_path, nodes, jobs, partitions=partitions, qos=qos, users="user")
    assert left_out(found) == {"3": "breaks MaxTRES of the QOS few, so it can never start"}
    ann = found.owners.index("ann")
    assert found.instance.tasks[ann] == 2
    assert [hosts for hosts, able in zip(found.instance.hosts, found.instance.eligibility[ann], strict=True) if able] == [("n2",)]
    many = "1 job in several partitions of different QOS: the limits of the first partition count for them"
    assert many in found.notes


def test_a_job_that_needs_more_licences_than_there_are(tmp_path: Path) -> None:
    """It has no part of them, unless it may take others; the licences that an account may have are a limit, too."""
    licenses = written(tmp_path, "licenses.txt", "LicenseName=ansys\n    Total=4 Used=0\nLicenseName=flex\n    Total=9 Used=0\n")
    associations = written(tmp_path, "t", "Account|User|Share|GrpTRES\nroot||1|\n a||1|license/flex=2\n  a|u|1|\n")
    jobs = [job(n, ONE, licenses=text) for n, text in enumerate(("ansys:5", "ansys:4", "ansys:5|flex:1", "flex:3"), 1)]
    found = import_records(tmp_path, [node("n1")], jobs, licenses=licenses, associations=associations)
    assert left_out(found) == {
        "1": "breaks the number of licences ansys, so it can never start",
        "4": "breaks GrpTRES of a, so it can never start",
    }


def test_budgets_of_associations_over_time_are_noted(tmp_path: Path) -> None:
    """The same of a table and of the answer of slurmrestd."""
    minutes = {"tres": {"group": {"minutes": [{"type": "cpu", "name": "", "count": 90}]}, "total": []}}
    answer = [{"account": "a", "user": "u", "partition": "", "shares_raw": 1, "parent_account": "", "max": minutes, "flags": []}]
    for name, text in (("t", "Account|User|Share|GrpTRESMins\na|u|1|cpu=90\n"), ("t.json", json.dumps({"associations": answer}))):
        found = import_records(tmp_path, [node("n1")], [job(1)], associations=written(tmp_path, name, text))
        assert "GrpTRESMins of associations are budgets over time, which an instance does not have" in found.notes


RESERVATION = "ReservationName=r StartTime=2026-11-22T10:00:00 EndTime=2026-11-23T10:00:00\n   Nodes=n1 NodeCnt=1 Flags=FLAGS\n"
RESERVATION += "   Users=USERS Groups=(null) Accounts=ACCOUNTS Licenses=(null) State=ACTIVE\n"


@pytest.mark.parametrize(
    ("users", "accounts", "held"),
    [
        ("ann", "a", {"a/ann": 8, "b/ann": 0, "a/ben": 0}),
        ("ann", "(null)", {"a/ann": 4, "b/ann": 4, "a/ben": 0}),
        ("-ben", "(null)", {"a/ann": 4, "b/ann": 4, "a/ben": 0}),
        ("(null)", "-b", {"a/ann": 4, "a/ben": 4, "b/ann": 0}),
    ],
)
def test_who_may_run_in_a_magnetic_reservation(tmp_path: Path, users: str, accounts: str, held: dict[str, float]) -> None:
    """Its users in its accounts, or all but those with a minus; here the reservation has the only node."""
    text = RESERVATION.replace("FLAGS", "MAGNETIC,SPEC_NODES,STICKY").replace("USERS", users).replace("ACCOUNTS", accounts)
    jobs = [waiting(n, *name.split("/")) for n, name in enumerate(held, 1)]
    associations = "Account|User|Share\nroot||1\n a||2\n  a|ann|1\n  a|ben|1\n b||1\n  b|ann|1\n"
    if held["b/ann"]:  # a and b alike
        associations = associations.replace("a||2", "a||1")
    found = import_records(
        tmp_path,
        [node("n1", 8, state=["IDLE", "RESERVED"])],
        jobs,
        reservations=written(tmp_path, "reservations.txt", text),
        associations=written(tmp_path, "associations.txt", associations),
    )
    placed = dict.fromkeys(held, 0.0) | dict(zip(found.instance.queue_of, fo.solve(found.instance).tasks_per_user, strict=True))
    assert placed == pytest.approx(held, abs=1e-6)
    assert "reservations have the flags STICKY, which this import does not know: they do not count" in found.notes


def test_jobs_of_several_clusters(tmp_path: Path) -> None:
    """Those of the cluster of the nodes count; where the nodes do not say theirs, there is no answer."""
    jobs = [waiting(1, "a", "ann", cluster="east"), waiting(1, "a", "ann", cluster="west")]
    with pytest.raises(fo.InvalidInstance, match="jobs of the clusters east and west; export those of one, and its nodes"):
        import_records(tmp_path, [node("n1")], jobs)
    found = import_records(tmp_path, [node("n1", cluster_name="west")], jobs)
    assert [(each.why, each.number) for each in found.left_out] == [("of the cluster east, and the nodes are of west", 99)]
    rows = "".join(f"7|{name}|a|ann|batch|2026-11-22T10:00:00|2026-11-22T11:00:00|cpu=8,mem=8G,node=1||n1|\n" for name in ("east", "west"))
    sacct = written(tmp_path, "sacct.txt", f"JobID|Cluster|Account|User|Partition|Start|End|AllocTRES|ReqTRES|NodeList|Constraints\n{rows}")
    window = ("2026-11-22T10:00:00", "2026-11-22T11:00:00")
    found = import_records(tmp_path, [node("n1")], [waiting(1, "a", "ann")], sacct=sacct, window=window)
    assert any(note.startswith("the log has jobs of the clusters east and west, which count as those of one") for note in found.notes)
