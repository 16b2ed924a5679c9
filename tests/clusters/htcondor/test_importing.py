"""Instances of HTCondor pools: small ones whose numbers are worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.htcondor_ads import import_ads, job, slot

import fairopt as fo

PARTITIONED = [
    slot("slot1@w1", 5, 8192, TotalSlotCpus=8, TotalSlotMemory=16384, TotalSlotGPUs=2, GPUs=1),
    slot("slot1_1@w1", 3, 8192, kind="Dynamic", State="Claimed", GPUs=1),
]


def where(found: fo.Import) -> dict[str, str]:
    """Return the hosts on which each owner may run."""
    hosts = {host: i for i, own in enumerate(found.instance.hosts) for host in own}
    return {
        owner: " ".join(host for host, i in sorted(hosts.items()) if found.instance.eligibility[n, i])
        for n, owner in enumerate(found.owners)
    }


def test_three_machines_worked_out_by_hand(tmp_path: Path) -> None:
    """9 CPUs and 18 GiB on three machines; tasks of (1, 4) and (3, 1): the example of DRF's paper, 3 and 2 tasks."""
    slots = [slot(f"slot1@w{n}", 3, 6144) for n in range(3)]
    jobs = [*(job(n, "ada", memory=4096) for n in range(9)), *(job(10 + n, "ben", cpus=3) for n in range(9))]
    found = import_ads(tmp_path, slots, jobs)
    assert found.instance.users == ("ada", "ben")
    assert found.instance.hosts == (("w0", "w1", "w2"),)
    assert fo.solve(found.instance, "drfh").tasks_per_user == pytest.approx([3, 2])


def test_dynamic_slots_are_parts_of_their_slot(tmp_path: Path) -> None:
    """A partitionable slot has all that it has, in use or not; what runs in its dynamic slots runs there."""
    found = import_ads(tmp_path, PARTITIONED, [job(1, status=2, cpus=3, memory=8192, RequestGPUs=1, RemoteHost="slot1_1@w1")])
    assert found.instance.capacities.tolist() == [[8, 16, 2]]
    assert found.instance.counts.sum() == 1
    assert found.current is not None
    assert found.current.tasks.tolist() == [[1]]
    alone = import_ads(tmp_path, PARTITIONED[1:], [job(1)])
    assert alone.instance.capacities.tolist() == [[3, 8, 1]]
    assert any("1 dynamic slot whose partitionable slot is not listed" in note for note in alone.notes)


def test_older_ads_without_types_and_names_of_any_case(tmp_path: Path) -> None:
    """PartitionableSlot instead of SlotType; attributes are compared without case."""
    ad = {"name": "slot1@w", "MACHINE": "w", "PartitionableSlot": True, "state": "Unclaimed", "totalslotcpus": 4, "TotalSlotMemory": 2048}
    found = import_ads(tmp_path, [ad], [{"clusterid": 1, "jobstatus": 1, "owner": "ada", "requestcpus": 2}])
    assert found.instance.capacities.tolist() == [[4, 2]]
    assert found.instance.demands.tolist() == [[2, 0]]


def test_a_static_slot_runs_one_job_at_a_time(tmp_path: Path) -> None:
    """Ten jobs of a core on two static slots of four cores, and one of their owner: two jobs run."""
    slots = [slot(f"slot{n}@w", 4, 4096, kind="Static") for n in (1, 2)] + [slot("slot3@w", 4, 4096, kind="Static", State="Owner")]
    found = import_ads(tmp_path, slots, [job(n) for n in range(10)])
    assert found.instance.counts.tolist() == [2]
    assert fo.solve(found.instance, "drfh").tasks_per_user == pytest.approx([2])
    assert [each.why for each in found.left_out] == ["in the state owner: offers nothing"]


def test_states_and_universes(tmp_path: Path) -> None:
    """Running, transferring and suspended jobs hold; held, removed and completed ones, and jobs outside of slots, are no demand."""
    jobs = [job(1, status=2), job(2, status=6), job(3, status=7), job(4), *(job(10 + n, status=n) for n in (3, 4, 5))]
    jobs += [job(20 + n, JobUniverse=n) for n in (7, 9, 12)]
    found = import_ads(tmp_path, [slot("slot1@w")], jobs)
    assert found.instance.tasks.tolist() == [4]
    assert found.held.tolist() == [3]
    assert sum(each.number for each in found.left_out) == 6
    parallel = import_ads(tmp_path, [slot("slot1@w")], [job(1, JobUniverse=11, MaxHosts=4)])
    assert parallel.instance.tasks.tolist() == [4]


def test_jobs_that_are_not_in_the_queue_yet_are_counted(tmp_path: Path) -> None:
    """Of 100 jobs of cluster 7 those from 3 on, of 50 of cluster 8 those from 50 on (none), of cluster 9 an unknown number."""
    few = {"JobMaterializeLimit": 3}
    jobs = [job(7, ProcId=n, TotalSubmitProcs=100, JobMaterializeNextProcId=3, **few) for n in range(3)]
    jobs += [job(8, ProcId=49, TotalSubmitProcs=50, JobMaterializeNextProcId=50, **few), job(1, TotalSubmitProcs=1)]
    found = import_ads(tmp_path, [slot("slot1@w")], jobs)
    assert found.instance.tasks.sum() == 5
    said = "queued a few jobs at a time (max_materialize, max_idle): jobs that are not in the queue yet do not count as demand"
    assert f"1 cluster of jobs is {said}; 97 are still to come" in found.notes
    more = import_ads(tmp_path, [slot("slot1@w")], [*jobs, job(9, **few)])
    assert f"2 clusters of jobs are {said}; 97 are still to come; of 1 cluster the number is not known" in more.notes


def test_requests_that_are_expressions(tmp_path: Path) -> None:
    """The default of RequestMemory; one that is not understood is refused, and left out by a lenient import."""
    default = "/Expr(ifThenElse(MemoryUsage =!= undefined,MemoryUsage,(ImageSize + 1023) / 1024))/"
    usage = "/Expr(((ResidentSetSize + 1023) / 1024))/"
    jobs = [job(1, "ada", memory=default, ImageSize=2_000_000), job(2, "ben", memory=default, MemoryUsage=usage, ResidentSetSize=1_048_576)]
    found = import_ads(tmp_path, [slot("slot1@w")], jobs)
    assert found.instance.demands[:, 1].tolist() == pytest.approx([1954 / 1024, 1])
    odd = [job(1), job(2, memory="/Expr(random(5))/")]
    with pytest.raises(fo.InvalidInstance, match=r"jobs\.json: \[1\]\.RequestMemory: .*the function random is not known"):
        import_ads(tmp_path, [slot("slot1@w")], odd)
    assert import_ads(tmp_path, [slot("slot1@w")], odd, lenient=True).instance.tasks.tolist() == [1]


def test_requests_that_need_the_machine_are_said(tmp_path: Path) -> None:
    """A job that asks for all CPUs of a machine, and one whose memory is undefined: counted with the least, which a note says."""
    jobs = [job(1, cpus="/Expr(TARGET.TotalSlotCpus)/"), job(2, memory="/Expr(MemoryUsage * 2)/"), job(3, memory="/Expr(2 * 512)/")]
    found = import_ads(tmp_path, [slot("slot1@w")], jobs)
    told = [note for note in found.notes if "by what the ad does not have" in note]
    assert [note.partition(" by")[0] for note in told] == ["1 job states RequestCpus", "1 job states RequestMemory"]
    assert [note.rpartition(" ")[2] for note in told] == ["1", "0"]


def test_requirements_say_where(tmp_path: Path) -> None:
    """With all that slots have, not what is left; undefined for one slot is not met there; what cannot be evaluated is named."""
    slots = [
        slot("slot1@a", 1, 1024, TotalSlotCpus=8, TotalSlotMemory=65536, Arch="X86_64", HasLicence=True),
        slot("slot1@b", Arch="x86_64"),
        slot("slot1@c", Arch="aarch64", OpSysMajorVer=9),
    ]

    def requires(number: int, owner: str, text: str, **more: Any) -> Any:
        return job(number, owner, Requirements=f"/Expr({text})/", **more)

    jobs = [
        requires(1, "u1", '(TARGET.Arch == "X86_64") && (TARGET.Memory >= RequestMemory)', memory=32768),
        requires(2, "u2", "TARGET.HasLicence"),
        requires(3, "u3", 'Machine == "b" || OpSysMajorVer =?= 9'),
        requires(4, "u4", "TARGET.NoSuchThing"),
        requires(5, "u5", 'regexp("w.*", Machine)'),
        job(6, "u6", Requirements=True),
    ]
    found = import_ads(tmp_path, slots, jobs)
    assert where(found) == {"u1": "a", "u2": "a", "u3": "b c", "u4": "a b c", "u5": "a b c", "u6": "a b c"}
    assert "the Requirements of 1 job have attributes that no slot has: they do not count, so that these run anywhere" in found.notes
    assert any("an expression that is not understood (the function regexp is not known)" in note for note in found.notes)


def test_owners(tmp_path: Path) -> None:
    """Submitters as priorities name them, users, or groups."""
    jobs = [job(1, group="group_physics.hep"), job(2, "ben")]
    of = {users: import_ads(tmp_path, [slot("slot1@w")], jobs, users=users).owners for users in ("submitter", "user", "group")}
    assert of == {"submitter": ("ben", "group_physics.hep.ada"), "user": ("ada", "ben"), "group": ("(no group)", "group_physics.hep")}
    with pytest.raises(fo.InvalidInstance, match='users is "team"; give submitter, user or group'):
        import_ads(tmp_path, [slot("slot1@w")], jobs, users="team")


def test_custom_resources_of_machines(tmp_path: Path) -> None:
    """MachineResources names them; a job asks for one with Request and its name."""
    slots = [slot("slot1@w", MachineResources="Cpus Memory Disk Swap Licences", TotalSlotLicences=6)]
    found = import_ads(tmp_path, slots, [job(1, RequestLicences=2)])
    assert found.instance.resources == ("cpu", "memory", "licences")
    assert found.instance.demands.tolist() == [[1, 1, 2]]
    by_cpus = job(1, cpus=2, RequestLicences="/Expr(RequestCpus * 3)/")
    assert import_ads(tmp_path, slots, [by_cpus]).instance.demands.tolist() == [[2, 1, 6]]


def test_jobs_of_several_access_points(tmp_path: Path) -> None:
    """Each access point counts its jobs for itself, so two of one number are two jobs; the same job twice is refused."""
    jobs = [job(1, owner, GlobalJobId=f"{point}#1.0#1700000000") for owner, point in (("ada", "ap1"), ("ben", "ap2"))]
    found = import_ads(tmp_path, [slot("slot1@w")], jobs)
    assert (found.owners, found.instance.tasks.tolist()) == (("ada", "ben"), [1, 1])
    with pytest.raises(fo.InvalidInstance, match=r'job "1\.0 of ap1" is listed twice'):
        import_ads(tmp_path, [slot("slot1@w")], jobs[:1] * 2)


def test_jobs_on_slots_that_are_not_listed(tmp_path: Path) -> None:
    """They are asked for and not held, which is said with their number."""
    jobs = [job(n, status=2, RemoteHost=f"slot1_{n}@{name}") for n, name in ((1, "w"), (2, "gone"), (3, "gone"))]
    found = import_ads(tmp_path, [slot("slot1@w")], jobs)
    assert (found.held.tolist(), found.instance.tasks.tolist()) == ([1], [3])
    assert "2 jobs run on slots that are not listed, or offer nothing: asked for there, but not held" in found.notes


def test_whole_numbers_of_slots_stay_whole(tmp_path: Path) -> None:
    """What a slot has is compared with kinds (=?=), and divided as whole numbers: 7 / 2 is 3."""
    slots = [slot("slot1@a", 7), slot("slot1@b", 4)]
    jobs = [job(1, "u1", Requirements="/Expr(TARGET.Cpus =?= 4)/"), job(2, "u2", Requirements="/Expr(TARGET.Cpus / 2 == 3)/")]
    assert where(import_ads(tmp_path, slots, jobs)) == {"u1": "b", "u2": "a"}


def test_attributes_of_slots_that_are_expressions(tmp_path: Path) -> None:
    """They are the same text in all slots, and say what each of them has."""
    slots = [slot(f"slot1@{name}", cpus, Large="/Expr(Cpus > 8)/") for name, cpus in (("a", 16), ("b", 4))]
    assert where(import_ads(tmp_path, slots, [job(1, "u1", Requirements="/Expr(TARGET.Large)/")])) == {"u1": "a"}


def test_lists_of_several_access_points(tmp_path: Path) -> None:
    """Before 8.7.10, condor_q -global writes a list for each of them, one after the other; a mistake names the list."""
    import_ads(tmp_path, [slot("slot1@w")], [job(9)])
    lists = [json.dumps([job(1, Requirements='a ["]\\n["'), job(2)], indent=1), "[\n]", json.dumps([job(3) | {"GlobalJobId": "b#3.0#0"}])]
    (tmp_path / "jobs.json").write_text("\n".join(lists) + "\n")
    assert fo.import_htcondor(tmp_path / "slots.json", tmp_path / "jobs.json").instance.tasks.tolist() == [3]
    (tmp_path / "jobs.json").write_text("[]\n[{]\n")
    with pytest.raises(fo.InvalidInstance, match=r"jobs\.json, list 2 of 2, line 1, column 3: this is not JSON"):
        fo.import_htcondor(tmp_path / "slots.json", tmp_path / "jobs.json")


def test_lines_of_json_and_an_empty_queue(tmp_path: Path) -> None:
    """condor_q -jsonl writes an ad in each line, and nothing where no job is."""
    import_ads(tmp_path, [slot("slot1@w")], [job(1)])
    (tmp_path / "lines").write_text('{"ClusterId": 1, "JobStatus": 1, "Owner": "ada"}\n{"ClusterId": 2, "JobStatus": 1, "Owner": "ada"}\n')
    assert fo.import_htcondor(tmp_path / "slots.json", tmp_path / "lines").instance.tasks.tolist() == [2]
    (tmp_path / "none").write_text("")
    with pytest.raises(fo.InvalidInstance, match="there is no job in the queue, or the export failed"):
        fo.import_htcondor(tmp_path / "slots.json", tmp_path / "none")
