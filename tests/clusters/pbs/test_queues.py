"""Limits of queues and of the server as named limits, and what they do to an exact allocation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.pbs_records import import_records, job, vnode

import fairopt as fo
from fairopt.clusters.pbs.queues import holders

QUEUE = {"queue_type": "Execution", "started": "True", "enabled": "True"}


def many(user: str, select: str = "1:ncpus=1", **fields: Any) -> Any:
    """Return an array of ten jobs that wait."""
    return job(f"{user}[]", select, user, "B", array="True", array_state_count="Queued:10 Running:0 Exiting:0 Expired:0 ", **fields)


def solved(found: fo.Import) -> dict[str, float]:
    """Return the tasks of each owner at the optimum."""
    tasks = fo.solve(found.instance, "drfh").tasks_per_user
    return {
        owner: round(sum(t for t, own in zip(tasks, found.owners, strict=True) if own == owner), 6) for owner in dict.fromkeys(found.owners)
    }


def test_amounts_of_each_user_and_of_one(tmp_path: Path) -> None:
    """8 CPUs: everybody may hold 1, but ann 3, and all of the queue together 4; carl's queue has no limit."""
    bounds = {"ncpus": "[u:PBS_GENERIC=1],[u:ann=3], [o:PBS_ALL=4]"}
    queues = [("workq", QUEUE | {"max_run_res": bounds}), ("free", QUEUE)]
    found = import_records(tmp_path, [vnode("a")], [many("ann"), many("ben"), many("carl", queue="free")], queues)
    assert {limit.name: limit.bound for limit in found.instance.limits} == {
        "queue/workq cpu": 4,
        "queue/workq of user ann cpu": 3,
        "queue/workq of user ben cpu": 1,
    }
    assert solved(found) == {"ann": 3, "ben": 1, "carl": 4}


def test_a_resource_in_the_name_of_a_limit(tmp_path: Path) -> None:
    """What counts is not said to be unknown; of what does not count, the attribute is named, as it is where resources are a mapping."""
    dotted = {"max_run_res.ncpus": "[u:PBS_GENERIC=2]", "resources_assigned.ncpus": 1, "max_run_res_soft.ncpus": "[u:ben=1]"}
    found = import_records(tmp_path, [vnode("a")], [many("ann"), many("ben")], [("workq", QUEUE | dotted)], [("head", dotted)])
    assert solved(found) == {"ann": 2, "ben": 2}
    soft = "max_run_res_soft (limits beyond which jobs may be preempted), which an instance does not have: it does not count"
    assert [note for note in found.notes if " has " in note] == [f"1 queue has {soft}", f"1 server has {soft}"]


def test_limits_under_one_name(tmp_path: Path) -> None:
    """PBS writes each limit of an attribute under its name again, which JSON does not provide for: all of them count."""
    (tmp_path / "queues.json").write_text(
        '{"Queue": {"workq": {"max_run": "[o:PBS_ALL=6]", "max_run": "[u:ann=2]", "max_run": "[u:ben=1]"}}}'
    )
    bounds = holders(tmp_path / "queues.json", "Queue")["workq"].bounds
    assert bounds == {("", "o"): {"PBS_ALL": 6}, ("", "u"): {"ann": 2, "ben": 1}}


def test_numbers_of_jobs_groups_and_projects(tmp_path: Path) -> None:
    """A job of two chunks is two tasks, which count half a job each; both forms of names of attributes."""
    queues = [("workq", QUEUE | {"max_run": "[g:PBS_GENERIC=1],[p:p1=2]", "max_run_res.ncpus": "[p:PBS_GENERIC=100]"})]
    jobs = [many("ann", "2:ncpus=1", egroup="phys", project="p1"), many("ben", egroup="chem", project="p1")]
    found = import_records(tmp_path, [vnode("a")], jobs, queues)
    assert {limit.name: limit.bound for limit in found.instance.limits} == {
        "queue/workq of group phys jobs": 1,
        "queue/workq of group chem jobs": 1,
        "queue/workq of project p1 jobs": 2,
        "queue/workq of project p1 cpu": 100,
    }
    assert solved(found) == {"ann": 2, "ben": 1}
    several = import_records(tmp_path, [vnode("a")], [many("ann", "2:ncpus=1"), job(9, "1:ncpus=4"), many("ben")], queues)
    assert several.instance.users == ("ann/4 cpu workq", "ann/1 cpu workq in 2 tasks", "ben")


def test_older_forms(tmp_path: Path) -> None:
    """max_running, max_user_run, max_group_run, max_user_res; a limit of the queue and one of each."""
    fields = {"max_running": 5, "max_user_run": 3, "max_user_res": {"mem": "6gb"}}
    found = import_records(tmp_path, [vnode("a")], [many("ann", "1:ncpus=1:mem=3gb"), many("ben")], [("workq", QUEUE | fields)])
    assert solved(found) == {"ann": 2, "ben": 3}


def test_licences_of_the_server(tmp_path: Path) -> None:
    """A job asks for two licences of the cluster, of which there are four; without the server, that is said."""
    jobs = [many("ann", asked={"matlab": 2}), many("ben")]
    found = import_records(tmp_path, [vnode("a")], jobs, server=[("head", {"resources_available": {"matlab": 4}})])
    assert found.instance.limits == (fo.Limit("server matlab", 4, amounts={"ann": 2.0}),)
    assert solved(found) == {"ann": 2, "ben": 6}
    without = import_records(tmp_path, [vnode("a")], jobs)
    assert any("jobs ask for matlab beside their chunks (1 job)" in note for note in without.notes)


def test_a_number_of_chunks(tmp_path: Path) -> None:
    """``nodect`` counts chunks: at most four; a job of two chunks on one host is one task of two."""
    queues = [("workq", QUEUE | {"resources_available": {"nodect": 4, "arch": "linux"}})]
    jobs = [many("ann", "2:ncpus=1", asked={"place": "pack"}), many("ben", queue="free")]
    found = import_records(tmp_path, [vnode("a", 12)], jobs, [*queues, ("free", QUEUE)])
    assert solved(found) == {"ann": 2, "ben": 8}


def test_soft_limits_are_noted_and_bad_ones_are_refused(tmp_path: Path) -> None:
    """Soft limits order preemption."""
    found = import_records(tmp_path, [vnode("a")], [many("ann")], [("workq", QUEUE | {"max_run_soft": "[u:PBS_GENERIC=2]"})])
    assert any("1 queue has max_run_soft" in note for note in found.notes)
    with pytest.raises(fo.InvalidInstance, match=r"queues\.json: Queue\.workq\.max_run: .*\[u:PBS_GENERIC=8\]"):
        import_records(tmp_path, [vnode("a")], [many("ann")], [("workq", QUEUE | {"max_run": "[u]"})])


def test_routing_queues_start_no_jobs(tmp_path: Path) -> None:
    """Their jobs are on the way to another queue."""
    (tmp_path / "queues.json").write_text('{"Queue": {"in": {"queue_type": "Route", "started": "True"}}}')
    assert holders(tmp_path / "queues.json", "Queue")["in"].why == "in a routing queue, where jobs do not start"
