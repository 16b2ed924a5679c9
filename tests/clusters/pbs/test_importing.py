"""Instances of PBS clusters: small ones whose numbers are worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pbs_records import import_records, job, vnode

import fairopt as fo


def array(number: int, select: str, user: str, queued: int, running: int = 0, **fields: object) -> tuple[str, object]:
    """Return an array of which so many subjobs wait and run."""
    counts = f"Queued:{queued} Running:{running} Exiting:0 Expired:0 "
    return job(f"{number}[]", select, user, "B", array="True", array_state_count=counts, **fields)


def test_three_nodes_worked_out_by_hand(tmp_path: Path) -> None:
    """9 CPUs and 18 GiB on three hosts; tasks of (1, 4) and (3, 1): the example of DRF's paper, 3 and 2 tasks."""
    vnodes = [vnode(name, 3, "6gb") for name in ("n1", "n2", "n3")]
    found = import_records(tmp_path, vnodes, [array(1, "1:ncpus=1:mem=4gb", "ann", 100), array(2, "1:ncpus=3:mem=1gb", "ben", 100)])
    assert found.instance.users == ("ann", "ben")
    assert found.instance.counts.tolist() == [3]
    assert found.instance.hosts == (("n1", "n2", "n3"),)
    assert fo.solve(found.instance, "drfh").tasks_per_user == pytest.approx([3, 2])


def test_sizes_names_and_states_of_vnodes(tmp_path: Path) -> None:
    """Sizes of any suffix are GiB; what is offline, down or stale offers nothing; a busy vnode offers all that it has."""
    vnodes = [
        vnode("a", 4, "1048576kb", resources={"ngpus": 2, "scratch": "1tb", "fpga": 3}),
        vnode("b", 4, "1024mb", "job-busy"),
        vnode("c", 4, "1073741824b", "job-exclusive,resv-exclusive"),
        *(vnode(state, 4, "1gb", state) for state in ("offline", "state-unknown,down", "stale", "maintenance")),
    ]
    found = import_records(tmp_path, vnodes, [job(1, "1:ncpus=1:scratch=512gb:fpga=1")])
    assert found.instance.resources == ("cpu", "memory", "gpu", "fpga", "scratch")
    assert sorted(found.instance.capacities.tolist()) == [[4, 1, 0, 0, 0], [4, 1, 0, 0, 0], [4, 1, 2, 3, 1024]]  # one is reserved
    assert found.instance.counts.sum() == 3
    assert found.instance.demands.tolist() == [[1, 0, 0, 1, 512]]
    assert found.units["scratch"] == "GiB"
    assert len(found.left_out) == 4
    assert "1 reserved vnode does not say for which reservation: open to jobs of those that no vnode names" in found.notes


def test_vnodes_of_one_host_are_one_server(tmp_path: Path) -> None:
    """A chunk may lie on several of them; memory that one has from another counts once."""
    vnodes = [
        vnode("big", 0, "0b", resources={"host": "big"}),
        vnode("big[0]", 4, "64gb", resources={"host": "big"}),
        vnode("big[1]", 4, "@big[0]", resources={"host": "big"}),
    ]
    running = job(1, "1:ncpus=6:mem=8gb", state="R", exec_vnode="(big[0]:ncpus=4:mem=8388608kb+big[1]:ncpus=2)")
    found = import_records(tmp_path, vnodes, [running, job(2, "1:ncpus=6:mem=8gb")])
    assert found.instance.servers == ("big",)
    assert found.instance.capacities.tolist() == [[8, 64]]
    assert found.instance.demands.tolist() == [[6, 8]]
    assert found.instance.tasks.tolist() == [2]
    assert found.held.tolist() == [1]


def test_what_runs_says_where_and_what_waits_gets_what_runs_was_given(tmp_path: Path) -> None:
    """The queue gives chunks memory that their select does not state; without queues, running jobs show it."""
    jobs = [
        job(1, "2:ncpus=2", state="R", exec_vnode="(a:ncpus=2:mem=1048576kb)+(b:ncpus=2:mem=1048576kb)"),
        job(2, "2:ncpus=2"),
        job(3, "1:ncpus=3", "ben"),
    ]
    found = import_records(tmp_path, [vnode("a"), vnode("b")], jobs)
    assert found.instance.users == ("ann", "ben")
    assert found.instance.demands.tolist() == [[2, 1], [3, 0]]
    assert found.instance.tasks.tolist() == [4, 1]
    assert found.current is not None
    assert found.current.tasks_per_user.tolist() == [2, 0]
    queues = [("workq", {"queue_type": "Execution", "started": "True", "default_chunk": {"mem": "2gb", "arch": "linux"}})]
    given = import_records(tmp_path, [vnode("a"), vnode("b")], [job(3, "1:ncpus=3", "ben"), job(4, "ngpus=0", "ben")], queues)
    assert given.instance.demands.tolist() == [[3, 2], [1, 2]]


def test_chunks_of_several_shapes_and_one_host(tmp_path: Path) -> None:
    """Two shapes are two users of the owner; with place=pack the chunks are one task."""
    jobs = [job(1, "1:ncpus=4:mem=8gb+3:ncpus=1"), job(2, "2:ncpus=2+1:ncpus=3", "ben", asked={"place": "pack"})]
    found = import_records(tmp_path, [vnode("a"), vnode("b")], jobs)
    assert found.instance.users == ("ann/4 cpu 8 memory", "ann/1 cpu", "ben")
    assert found.instance.tasks.tolist() == [1, 3, 1]
    assert found.instance.demands[2].tolist() == [7, 0]
    assert "2 jobs have chunks of different shapes, each a user of its own in the queue of the owner" in found.notes
    assert "1 job of several chunks, which need not start together here, nor on different hosts: a relaxation" in found.notes


def test_words_that_a_host_must_have(tmp_path: Path) -> None:
    """Hosts, truths in any form, lists of words; a truth that no host has is met nowhere, another word that none has does not count."""
    vnodes = [
        vnode("a", resources={"bigmem": "True", "model": "skylake,avx"}),
        vnode("b", resources={"bigmem": False}),
        vnode("c"),
    ]
    jobs = [
        job(1, "1:ncpus=1:bigmem=true", "u1"),
        job(2, "1:ncpus=1:bigmem=f", "u2"),
        job(3, "1:ncpus=1:model=avx", "u3"),
        job(4, "1:ncpus=1:host=b", "u4"),
        job(5, "1:ncpus=1:vnode=C", "u5"),
        job(6, "1:ncpus=1:os=sles", "u6"),
        job(7, "1:ncpus=1:fast=True", "u7"),
    ]
    found = import_records(tmp_path, vnodes, jobs)
    hosts = {host: i for i, own in enumerate(found.instance.hosts) for host in own}
    where = {
        user: "".join(host for host, i in sorted(hosts.items()) if found.instance.eligibility[n, i])
        for n, user in enumerate(found.instance.users)
    }
    assert where == {"u1": "a", "u2": "bc", "u3": "a", "u4": "b", "u5": "c", "u6": "abc"}
    assert "1 kind of task asks for os, a word that no vnode has: it does not count" in found.notes
    assert list(found.why_left_out) == [("job", "no server meets its constraints, so it can never start")]


def test_arrays_count_their_subjobs_once(tmp_path: Path) -> None:
    """Listed or not: three wait and two run, one of these is listed with its host."""
    listed = job("4[7]", "1:ncpus=1", state="R", array_id="4[].head", exec_vnode="(a:ncpus=1)")
    for jobs in ([array(4, "1:ncpus=1", "ann", 3, 2), listed], [array(4, "1:ncpus=1", "ann", 3, 2)]):
        found = import_records(tmp_path, [vnode("a")], jobs)
        assert found.instance.tasks.tolist() == [5]
        assert found.held.tolist() == [2]
    waits = job("5[]", state="Q", array="True", array_indices_submitted="0-9:3,20", array_indices_remaining="-")
    assert import_records(tmp_path, [vnode("a")], [waits]).instance.tasks.tolist() == [5]


def test_limits_of_arrays(tmp_path: Path) -> None:
    """At most three at once, one runs: two of those that wait may start, and the others are left out."""
    found = import_records(tmp_path, [vnode("a")], [array(4, "1:ncpus=1", "ann", 10, 1, max_run_subjobs=3)])
    assert found.instance.tasks.tolist() == [3]
    assert [(each.why, each.number) for each in found.left_out] == [
        ("beyond the limit of its array (max_run_subjobs): waits for other subjobs", 8)
    ]


def test_states_of_jobs(tmp_path: Path) -> None:
    """Exiting jobs hold, suspended ones wait, held, waiting, moved and ended ones are no demand."""
    jobs = [
        job(1, state="E", exec_vnode="(a:ncpus=1)"),
        job(2, state="S", resources_released="(a:ncpus=1)"),
        *(job(10 + n, state=state) for n, state in enumerate("HWTMFX")),
    ]
    found = import_records(tmp_path, [vnode("a")], jobs)
    assert found.instance.tasks.tolist() == [2]
    assert found.held.tolist() == [1]
    assert "1 suspended job gave back what it held: counted as waiting" in found.notes
    assert sum(each.number for each in found.left_out) == 6


def test_whole_hosts(tmp_path: Path) -> None:
    """place=excl, and vnodes whose jobs always have them for themselves: a task demands a host, four small chunks share one."""
    running = job(1, "1:ncpus=1", state="R", exec_vnode="(a:ncpus=1)", asked={"place": "excl"})
    jobs = [
        running,
        job(2, "4:ncpus=2", "ben", asked={"place": "free:excl"}),
        job(3, "4:ncpus=2", "carl", asked={"place": "scatter:exclhost"}),
    ]
    found = import_records(tmp_path, [vnode(name) for name in "abcd"], jobs)
    assert found.instance.demands.tolist() == [[8, 16]] * 3
    assert dict(zip(found.instance.users, found.instance.tasks.tolist(), strict=True)) == {"ann": 1, "ben": 1, "carl": 4}
    assert found.held.tolist() == [1, 0, 0]
    idle = import_records(tmp_path, [vnode("a")], [job(1, "3:ncpus=0", asked={"place": "excl"})])
    assert (idle.instance.demands.tolist(), idle.instance.tasks.tolist()) == ([[8, 16]], [1])
    forced = import_records(tmp_path, [vnode("a", sharing="force_exclhost")], [job(1)])
    assert forced.instance.demands.tolist() == [[8, 16]]
    shared = import_records(tmp_path, [vnode("a", sharing="default_excl")], [job(1, asked={"place": "pack:shared"})])
    assert shared.instance.demands.tolist() == [[1, 0]]


def test_queues_of_vnodes(tmp_path: Path) -> None:
    """A vnode with a queue takes its jobs only, and these run nowhere else; jobs of a stopped queue do not start."""
    jobs = [job(1, user="u1"), job(2, user="u2", queue="gpu"), job(3, user="u3", queue="off")]
    queues = [
        ("workq", {"queue_type": "Execution", "started": "True"}),
        ("gpu", {"queue_type": "Execution", "started": "True"}),
        ("off", {"queue_type": "Execution", "started": "False"}),
    ]
    found = import_records(tmp_path, [vnode("a"), vnode("b", queue="gpu")], jobs, queues)
    assert found.instance.users == ("u1", "u2")
    assert found.instance.eligibility.tolist() == [[True, False], [False, True]]
    assert [each.why for each in found.left_out] == ["its queue is stopped, so it could not start"]


@pytest.mark.parametrize(
    ("users", "owner"), [("user", "ann"), ("group", "phys"), ("project", "p1"), ("account", "acct"), ("queue", "workq")]
)
def test_owners(tmp_path: Path, users: str, owner: str) -> None:
    """Whoever the caller compares."""
    jobs = [job(1, egroup="phys", project="p1", Account_Name="acct")]
    assert import_records(tmp_path, [vnode("a")], jobs, users=users).owners == (owner,)


def test_names_that_look_like_numbers(tmp_path: Path) -> None:
    """Older versions write them without quotes, which is no JSON: an account 007, a project nan; texts with colons stay as they are."""
    import_records(tmp_path, [vnode("a")], [job(1, Account_Name="ACCOUNT", project="PROJECT", Variable_List={"A": 'x":00,'})])
    text = (tmp_path / "jobs.json").read_text()
    (tmp_path / "jobs.json").write_text(text.replace('"ACCOUNT"', "007").replace('"PROJECT"', "nan"))
    for users, owner in (("account", "007"), ("project", "nan")):
        assert fo.import_pbs(tmp_path / "nodes.json", tmp_path / "jobs.json", users=users).owners == (owner,)


def test_chunks_with_no_amount(tmp_path: Path) -> None:
    """What is no number of CPUs is refused, and not taken for a word."""
    with pytest.raises(fo.InvalidInstance, match=r'"ncpus=-1" is no amount, such as 8 or 16gb'):
        import_records(tmp_path, [vnode("a")], [job(1, "1:ncpus=-1")])


def test_vnodes_with_no_amount(tmp_path: Path) -> None:
    """What is no size of memory is refused, and not taken for a word."""
    with pytest.raises(fo.InvalidInstance, match=r'nodes\.a\.resources_available\.mem: "-1gb" is no amount, such as 8 or 16gb'):
        import_records(tmp_path, [vnode("a", 8, "-1gb")], [job(1)])


def test_an_unknown_owner_and_another_answer(tmp_path: Path) -> None:
    """What to give instead; which command makes the JSON, where the text of PBS is given."""
    with pytest.raises(fo.InvalidInstance, match=r'users is "team"; give user, group, .* or queue'):
        import_records(tmp_path, [vnode("a")], [job(1)], users="team")
    (tmp_path / "text").write_text("Job Id: 7.head\n    Job_Name = x\n    job_state = R\n")
    with pytest.raises(fo.InvalidInstance, match=r"this is not JSON.*qstat -f -t -F json > jobs.json"):
        fo.import_pbs(tmp_path / "nodes.json", tmp_path / "text")
    with pytest.raises(fo.InvalidInstance, match=r'no answer of PBS with "Jobs" \(it has timestamp, .*nodes\)'):
        fo.import_pbs(tmp_path / "nodes.json", tmp_path / "nodes.json")
