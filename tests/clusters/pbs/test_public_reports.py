"""Clusters of public reports about PBS: from the text of its tools to the right numbers, worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.pbs_records import HEAD, import_records, job, vnode

import fairopt as fo
from fairopt.clusters.pbs.reading import read_listing

QUEUE = {"queue_type": "Execution", "started": "True", "enabled": "True"}


def many(user: str, select: str = "1:ncpus=1", **fields: Any) -> Any:
    """Return an array of twenty jobs that wait."""
    return job(f"{user}[]", select, user, "B", array="True", array_state_count="Queued:20 Running:0 Exiting:0 Expired:0 ", **fields)


def tasks(found: fo.Import) -> dict[str, float]:
    """Return the exact number of tasks of each owner."""
    held = dict.fromkeys(found.owners, 0.0)
    for owner, number in zip(found.owners, fo.solve(found.instance, "drfh").tasks_per_user, strict=True):
        held[owner] += number
    return held


def test_a_job_beyond_what_its_user_may_have(tmp_path: Path) -> None:
    """10 CPUs a user: a job of two chunks of 8 never starts, and has no part of them; one of 4 and one of 6 do."""
    queues = [("workq", QUEUE | {"max_run_res": {"ncpus": "[u:PBS_GENERIC=10]"}})]
    jobs = [job(1, "2:ncpus=8"), job(2, "1:ncpus=4"), job(3, "1:ncpus=6"), many("ben")]
    found = import_records(tmp_path, [vnode("a", 64)], jobs, queues)
    assert tasks(found) == pytest.approx({"ann": 2, "ben": 10})
    whose = "queue/workq of user ann cpu"
    assert [each.why for each in found.left_out] == [f"asks for more than all that {whose} allows, so it can never start"]
    assert not any("several chunks" in note for note in found.notes)


def test_a_job_beyond_what_its_user_may_have_that_runs(tmp_path: Path) -> None:
    """It started before the limit was set, and stays."""
    queues = [("workq", QUEUE | {"max_run_res": {"ncpus": "[u:PBS_GENERIC=4]"}})]
    runs = job(1, "1:ncpus=8", state="R", exec_vnode="(a:ncpus=8)")
    found = import_records(tmp_path, [vnode("a", 64)], [runs], queues)
    assert not found.left_out
    assert found.current is not None
    assert found.current.tasks.sum() == 1


@pytest.mark.parametrize("repeated", [True, False])
def test_every_list_of_jobs_counts(tmp_path: Path, repeated: bool) -> None:
    """Older versions write the name of the list before each job that they were asked for."""
    jobs = [json.dumps(record) for _, record in (job(1), job(2, user="ben"))]
    between = '}, "Jobs": {' if repeated else ", "
    (tmp_path / "jobs.json").write_text(f'{{"pbs_version": "18.1.2", "Jobs": {{"1.head": {jobs[0]}{between}"2.head": {jobs[1]}}}}}')
    assert list(read_listing(tmp_path / "jobs.json", "Jobs")) == ["1.head", "2.head"]


def test_values_of_variables_that_are_no_numbers(tmp_path: Path) -> None:
    """What looks like a number is written without quotes: foo=005."""
    text = json.dumps(HEAD | {"Jobs": dict([many("ann", Variable_List={"foo": "@"})])}).replace('"@"', "005")
    (tmp_path / "jobs.json").write_text(text)
    (tmp_path / "nodes.json").write_text(json.dumps(HEAD | {"nodes": dict([vnode("a")])}))
    assert tasks(fo.import_pbs(tmp_path / "nodes.json", tmp_path / "jobs.json")) == pytest.approx({"ann": 8})


def test_vnodes_of_a_large_host(tmp_path: Path) -> None:
    """A host of four vnodes of 8 CPUs, each of which a job has for itself: ann's of 4 CPUs leaves three to ben, and one of 12 takes two.

    With place=exclhost it has all of the host.
    """
    vnodes = [vnode(f"uv[{n}]", 8, resources={"host": "uv"}, Mom="uv", sharing="default_excl") for n in range(4)]
    runs = job(1, "1:ncpus=4", state="R", exec_vnode="(uv[0]:ncpus=4)")
    found = import_records(tmp_path, vnodes, [runs, many("ben", "1:ncpus=4")])
    assert tasks(found) == pytest.approx({"ann": 1, "ben": 3})
    assert "2 chunks take whole hosts or vnodes" in found.notes
    wide = import_records(tmp_path, vnodes, [job(1, "1:ncpus=12"), many("ben", "1:ncpus=4")])
    assert tasks(wide) == pytest.approx({"ann": 1, "ben": 2})
    alone = import_records(tmp_path, vnodes, [job(1, "1:ncpus=4", asked={"place": "exclhost"})])
    assert alone.instance.demands.tolist() == alone.instance.capacities.tolist()


def test_vnodes_of_reservations(tmp_path: Path) -> None:
    """b is of R12 now, c of one that it does not name, d will be of S3: ordinary jobs have a and d, those of R12 b, of S3 d, of M7 c.

    ben's job of R12 that asks for more than b has fits nowhere, though a is large enough.
    """
    vnodes = [
        vnode("a", 8),
        vnode("b", 4, state="resv-exclusive", resv="R12.head"),
        vnode("c", 2, state="resv-exclusive"),
        vnode("d", 2, resv=["S3.head"]),
    ]
    jobs = [
        many("ann"),
        many("ben", queue="R12"),
        many("cat", queue="S3"),
        many("dan", queue="M7"),
        job(9, "1:ncpus=6", "ben", queue="R12"),
    ]
    found = import_records(tmp_path, vnodes, jobs, [("workq", QUEUE)])
    reach = {
        owner: sorted({found.instance.servers[i] for i in found.instance.eligibility[n].nonzero()[0]})
        for n, owner in enumerate(found.owners)
    }
    assert reach == {"ann": ["a", "d"], "ben": ["b"], "cat": ["d"], "dan": ["c"]}
    assert [each.why for each in found.left_out if "larger" in each.why] != []
    assert "1 reserved vnode does not say for which reservation: open to jobs of those that no vnode names" in found.notes
    assert "1 vnode is in a reservation that is later, or has a part of it (pbs_rstat says which): open to all jobs" in found.notes


def test_nodes_in_the_older_way(tmp_path: Path) -> None:
    """Two chunks of 4 CPUs, and one of 2 on b; a property of nodes is not known, and is refused with its place."""
    asked = {"nodes": "2:ppn=4+b:ppn=2", "select": None}
    found = import_records(
        tmp_path, [vnode("a", 8), vnode("b", 8)], [job(1, asked=asked), job(2, asked={"nodes": "b:ppn=8", "select": None})]
    )
    sizes = sorted(zip(found.instance.demands[:, 0].tolist(), found.instance.tasks.tolist(), strict=True))
    assert sizes == [(2, 1), (4, 2), (8, 1)]
    with pytest.raises(
        fo.InvalidInstance, match=r'Resource_List.nodes: "1:fast" cannot be read: "fast" of nodes is not known here; ask for chunks instead'
    ):
        import_records(tmp_path, [vnode("a")], [job(1, asked={"nodes": "1:fast", "select": None})])


@pytest.mark.parametrize("head", ["<Data>", '<?xml version="1.0"?>\n<Data>'])
def test_answers_of_torque_are_refused_with_what_to_do(tmp_path: Path, head: str) -> None:
    """They are XML."""
    (tmp_path / "nodes.xml").write_text(f"{head}<Node><name>n1</name><np>8</np></Node></Data>")
    (tmp_path / "jobs.json").write_text("{}")
    with pytest.raises(fo.InvalidInstance, match="this is XML, as Torque writes it, and the answers of PBS Professional"):
        fo.import_pbs(tmp_path / "nodes.xml", tmp_path / "jobs.json")
