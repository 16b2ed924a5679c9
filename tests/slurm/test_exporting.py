"""Limits of Slurm: the scripts are carried out on associations, which are then imported again."""

from __future__ import annotations

import copy
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.real_data import DATA, needs
from support.sacctmgr import Sacctmgr

import fairopt as fo
from fairopt.analysis.measures import violations
from fairopt.analysis.rerun import given

EXPORTS = Path(__file__).parents[1] / "clusters" / "exports"
ASSOCIATIONS = EXPORTS / "slurm_associations.json"
LAB = DATA / "slurm-lab"


def imported(associations: Path = ASSOCIATIONS) -> fo.Instance:
    """Import the small cluster of the importer's tests."""
    return fo.import_slurm(
        EXPORTS / "slurm_nodes.json", EXPORTS / "slurm_jobs.json", associations, EXPORTS / "slurm_partitions.json"
    ).instance


def lab(users: int = 2, **options: Any) -> fo.Allocation:
    """Two shapes on two groups of servers, in accounts of their own: 8 cores and 16 GiB, 4 cores and 48 GiB."""
    names = ["chem", "gen", "vision"][:users]
    demands = [[8, 16, 0], [4, 48, 0], [4, 24, 1]][:users]
    instance = fo.Instance(
        [[32, 128, 0], [32, 256, 4]],
        demands,
        users=names,
        servers=["cn", "gn"],
        counts=[2, 1],
        resources=["cpu", "memory", "gpu"],
        **options,
    )
    return fo.solve(instance, "drfh")


def commands(script: str) -> list[list[str]]:
    """Return the commands of a script, as the shell splits them."""
    lines = (line.strip().removeprefix("if ").removesuffix(" || left=yes") for line in script.splitlines())
    return [words for line in lines if (words := shlex.split(line, comments=True)) and words[0] == "sacctmgr"]


def grp_tres(script: str) -> dict[str, dict[str, str]]:
    """Return GrpTRES by what it is of: "chem", "chem/ann", "chem/ann@gpu"."""
    limits = {}
    for words in commands(script):
        if words[2] == "modify":
            where = dict(word.split("=", 1) for word in words[5:-2])
            name = where["name"] if words[3] == "account" else f"{where['account']}/{where['name']}"
            name += f"@{where['partition']}" if where.get("partition") else ""
            limits[name] = dict(pair.split("=") for pair in words[-1].removeprefix("GrpTRES=").split(","))
    return limits


@pytest.mark.parametrize("level", ["account", "account-user"])
def test_reading_the_export_back_gives_the_limits_that_were_meant(level: Any, tmp_path: Path) -> None:
    """What each account and user holds in whole tasks is its limit after the script and another import."""
    instance = imported()
    found = fo.export_slurm(fo.solve(instance, "drfh"), level=level)
    slurm = Sacctmgr(ASSOCIATIONS)
    before = copy.deepcopy(slurm.limits)
    slurm.run(found.files["limits"])
    again = imported(slurm.to_json(tmp_path / "after.json"))
    held = found.allocation.tasks_per_user
    for node, queue in enumerate(again.queues, 1):
        of_user = "/" in queue.name
        if of_user and level == "account":
            assert queue.limit == {}
        else:
            below = instance.tree.below[instance.tree.index(queue.name)]
            amounts = held[below] @ instance.demands[below]
            assert [queue.limit[r] for r in instance.resources] == pytest.approx(amounts.tolist(), abs=1e-3), (node, queue.name)
    assert violations(again, found.allocation.tasks, "rdm", 1e-9) == []  # the whole tasks fit their own limits
    slurm.run(found.files["undo"])
    assert slurm.limits == before


def test_limits_of_partitions_carry_the_placement(tmp_path: Path) -> None:
    """Each user in each partition where its tasks may run: what it holds there, and 0 where it holds nothing."""
    instance = imported()
    found = fo.export_slurm(fo.solve(instance, "drfh"), level="account-partition", partitions={"gn1": "gpu", "gn2": "gpu", "cn1 +1": "cpu"})
    slurm = Sacctmgr(ASSOCIATIONS)
    before = copy.deepcopy(slurm.limits)
    slurm.run(found.files["limits"])
    tasks = found.allocation.tasks
    for account, user in (("optics", "ada"), ("optics", "ben"), ("biology", "cyd"), ("biology", "dee")):
        below = instance.tree.below[instance.tree.index(f"{account}/{user}")]
        for partition, rows in (("cpu", [0]), ("gpu", [1, 2])):
            may = instance.eligibility[np.ix_(below, rows)].any()
            assert ((account, user, partition) in slurm.limits) == may
            if may:
                cpus, memory, gpus = tasks[np.ix_(below, rows)].sum(axis=1) @ instance.demands[below]
                limits = slurm.limits[account, user, partition]
                assert limits == pytest.approx({"cpu": cpus, "mem": memory * 1024, "gres/gpu": gpus})
    slurm.run(found.files["limits"])  # from a timer: associations that are there are no error
    slurm.run(found.files["undo"])
    assert slurm.limits == before


def test_an_association_for_one_partition_is_limited_as_what_it_is() -> None:
    """A queue account/user/partition, as the importer names it: its own limit, and at the level of partitions no second association."""
    tree = [fo.Queue("chem"), fo.Queue("chem/ann", "chem"), fo.Queue("chem/ann/gpu", "chem", limit={"cpu": 3})]
    instance = fo.Instance(
        [[8], [4]], [[1], [1]], servers=["c", "g"], resources=["cpu"], queues=tree, queue_of=["chem/ann", "chem/ann/gpu"], users=["x", "y"]
    )
    allocation = given(instance, np.array([[6.0, 0.0], [0.0, 3.0]]), "rdm")
    limits = grp_tres(fo.export_slurm(allocation, level="account-user").text)
    assert limits == {"chem": {"cpu": "9"}, "chem/ann": {"cpu": "6"}, "chem/ann@gpu": {"cpu": "3"}}
    found = fo.export_slurm(allocation, level="account-partition", partitions={"c": "cpu", "g": "gpu"})
    assert grp_tres(found.text) == {"chem": {"cpu": "9"}, "chem/ann@cpu": {"cpu": "6"}, "chem/ann@gpu": {"cpu": "3"}}
    assert [words[3:] for words in commands(found.text) if words[2] == "add"] == [
        ["user", "name=ann", "account=chem", "partition=cpu", "||", "true"]
    ]
    undo = found.files["undo"]
    assert grp_tres(undo)["chem/ann@gpu"] == {"cpu": "3"}
    assert [words[5:] for words in commands(undo) if words[2] == "delete"] == [["name=ann", "account=chem", "partition=cpu"]]


@pytest.mark.parametrize("answer", [False, True])
def test_undo_restores_the_limits_of_the_associations(answer: bool, tmp_path: Path) -> None:
    """Limits that were there come back, associations that were there stay, and what was added goes; from the table or from the answer."""
    slurm = Sacctmgr(ASSOCIATIONS)
    slurm.limits["optics", "", ""] = {"cpu": 12.0, "mem": 1000.0}
    slurm.limits["optics", "ada", "cpu"] = {"cpu": 3.0}
    before = copy.deepcopy(slurm.limits)
    now = slurm.to_json(tmp_path / "associations.json") if answer else slurm.to_table(tmp_path / "associations.txt")
    found = fo.export_slurm(fo.solve(imported(), "drfh"), level="account-partition", associations=now, partitions={"cn1 +1": "cpu"})
    assert not any(words[2:4] == ["add", "user"] and "name=ada" in words and "partition=cpu" in words for words in commands(found.text))
    slurm.run(found.files["limits"])
    assert slurm.limits != before
    slurm.run(found.files["undo"])
    assert slurm.limits == before


def test_undo_can_be_run_again_until_no_association_is_left(tmp_path: Path) -> None:
    """Associations with running jobs stay, without limits; those that the first run has deleted do not stop the second one."""
    slurm = Sacctmgr(ASSOCIATIONS)
    before = copy.deepcopy(slurm.limits)
    table = slurm.to_table(tmp_path / "associations.txt")
    found = fo.export_slurm(fo.solve(imported(), "drfh"), level="account-partition", associations=table)
    slurm.run(found.files["limits"])
    added = [key for key in slurm.limits if key not in before]
    slurm.active = {added[1]}
    assert len(added) > 2
    assert slurm.run(found.files["undo"]) == 1
    assert {key: limits for key, limits in slurm.limits.items() if key not in before} == {added[1]: {}}
    slurm.active = set()
    assert slurm.run(found.files["undo"]) == slurm.run(found.files["undo"]) == 0
    assert slurm.limits == before


def test_limits_follow_demand_with_the_associations_of_before(tmp_path: Path) -> None:
    """Limits that an earlier round wrote count as limits of the cluster, unless every round takes the associations of before."""
    slurm = Sacctmgr(ASSOCIATIONS)
    first = slurm.to_json(tmp_path / "before.json")
    limits = {}
    for round_, associations in (("first", first), ("again", slurm.to_json(tmp_path / "now.json")), ("before", first)):
        instance = imported(associations)
        few = np.ones(instance.n_users) if round_ == "first" else np.full(instance.n_users, np.inf)
        found = fo.export_slurm(fo.solve(instance.replace(tasks=few), "drfh"), level="account-user", associations=associations)
        limits[round_] = int(grp_tres(found.text)["optics/ada"]["cpu"])
        slurm.run(found.files["limits"])
        slurm.to_json(tmp_path / "now.json")
    assert limits["before"] > limits["first"] == limits["again"]
    slurm.run(found.files["undo"])
    assert slurm.limits == Sacctmgr(ASSOCIATIONS).limits


def test_the_instance_knows_limits_to_restore() -> None:
    """A limit of a queue is put back, others are removed; the new limit is never above it."""
    allocation = lab(queues=[fo.Queue("chem", limit={"cpu": 20}), fo.Queue("gen")], queue_of=["chem", "gen"])
    found = fo.export_slurm(allocation, headroom=4.0)
    assert grp_tres(found.files["undo"]) == {
        "chem": {"cpu": "20", "gres/gpu": "-1", "mem": "-1"},
        "gen": {"cpu": "-1", "gres/gpu": "-1", "mem": "-1"},
    }
    limits = grp_tres(found.text)
    assert limits["chem"] == {"cpu": "20", "gres/gpu": "0", "mem": "128G"}  # 2 tasks of 8 cores and 16 GiB, times 4
    assert int(limits["gen"]["cpu"]) <= 96


def test_headroom_is_rounded_up_within_what_the_servers_have() -> None:
    """4 and 8 tasks: 32 and 32 cores; a tenth more is 35.2, and three times 96 and more is the cluster."""
    allocation = given(lab().instance, np.array([[4.0, 0.0], [4.0, 4.0]]), "rdm")
    assert [each["cpu"] for each in grp_tres(fo.export_slurm(allocation, headroom=1.1).text).values()] == ["36", "36"]
    assert [each["cpu"] for each in grp_tres(fo.export_slurm(allocation, headroom=5).text).values()] == ["96", "96"]
    with pytest.raises(fo.InvalidInstance, match=r"a factor >= 1"):
        fo.export_slurm(allocation, headroom=0.9)


def test_headroom_in_partitions_is_within_the_limits_of_users_and_of_groups_of_servers() -> None:
    """Slurm holds neither: ann may have 8 cores in both partitions and holds 6; the account may have 6 on g and holds 4."""
    tree = [
        fo.Queue("chem", quotas=[fo.Quota(["g"], limit={"cpu": 6})]),
        fo.Queue("chem/ann", "chem", limit={"cpu": 8}),
        fo.Queue("chem/ben", "chem"),
    ]
    instance = fo.Instance(
        [[16], [16]],
        [[1]] * 3,
        eligibility=[[True, False], [False, True], [False, True]],
        users=["x", "y", "z"],
        servers=["c", "g"],
        resources=["cpu"],
        queues=tree,
        queue_of=["chem/ann", "chem/ann", "chem/ben"],
    )
    allocation = given(instance, np.array([[3.0, 0.0], [0.0, 3.0], [0.0, 1.0]]), "rdm")
    limits = grp_tres(fo.export_slurm(allocation, level="account-partition", headroom=2.0).text)
    assert {name: int(each["cpu"]) for name, each in limits.items()} == {
        "chem": 14,
        "chem/ann@c": 4,  # 3 of headroom in each partition, and 2 until the limit
        "chem/ann@g": 4,
        "chem/ben@g": 2,
    }
    found = fo.export_slurm(allocation, level="account-partition", headroom=2.0, partitions={"c": "all", "g": "all"})
    assert any("on a part of the nodes of a partition: with headroom, those of chem can be exceeded" in note for note in found.notes)


def test_billing_is_the_dominant_share_of_jobs() -> None:
    """Of 96 cores and 512 GiB: a job of 8 cores is 1/12, one of 48 GiB 3/32 of the cluster, of which 100,000 is billed."""
    allocation = given(lab().instance, np.array([[4.0, 0.0], [0.0, 3.0]]), "rdm")
    found = fo.export_slurm(allocation, as_="billing")
    assert grp_tres(found.text) == {"chem": {"billing": str(4 * 8333)}, "gen": {"billing": str(3 * 9375)}}
    weights = re.search(r'TRESBillingWeights="(.*)"', found.text)
    assert weights
    assert dict(pair.split("=") for pair in weights[1].split(",")) == {"CPU": "1041.66667", "Mem": "195.3125G", "GRES/gpu": "25000"}


def test_a_small_task_on_a_large_cluster_is_billed() -> None:
    """One of 300,000 cores is a third of one in 100,000: billed nothing, it would not be limited."""
    instance = fo.Instance([[100]], [[1], [4]], counts=[3000], users=["a", "b"], resources=["cpu"])
    found = fo.export_slurm(given(instance, np.array([[200_000.0], [25_000.0]]), "rdm"), as_="billing")
    assert 'TRESBillingWeights="CPU=333.333333"' in found.text
    assert grp_tres(found.text) == {"a": {"billing": str(200_000 * 333)}, "b": {"billing": str(25_000 * 1333)}}


def test_names_are_quoted_and_one_to_one(tmp_path: Path) -> None:
    """Names with spaces, quotes, line ends and commands are no commands; the shell sees one word each, and nothing is run."""
    users = ["Physics", "physics", "a b", "$(touch hacked)", "x'; touch hacked; '", "é\ntouch hacked\n"]
    instance = fo.Instance([[12]], [[1]] * 6, users=users, resources=["cpu"], servers=["row `touch hacked`\ntouch hacked"])
    found = fo.export_slurm(fo.solve(instance, "drfh"), partitions={"row `touch hacked`\ntouch hacked": "p\ntouch hacked"})
    assert len(set(found.names.values())) == len(found.names)
    assert found.names["physics"] == "physics"
    assert found.names["Physics"] == "physics-2"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sacctmgr").write_text('#!/bin/sh\necho "$#: $*" >> said\n')
    (tmp_path / "bin" / "sacctmgr").chmod(0o755)
    path = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    for text in found.files.values():
        subprocess.run(["sh", "-c", text], cwd=tmp_path, env=path, check=True)
    said = (tmp_path / "said").read_text().splitlines()
    assert len(said) == 12
    assert all(line.startswith("7: -i modify account where name=") for line in said)
    assert not (tmp_path / "hacked").exists()


def test_a_user_may_have_any_label_and_an_account_that_of_a_server() -> None:
    """A question mark names a user as any other label does; where an account and a partition have one label, the account is told."""
    tree = [fo.Queue("-")]
    instance = fo.Instance([[4]], [[1]], users=["?"], servers=["-"], resources=["cpu"], queues=tree, queue_of=["-"])
    found = fo.export_slurm(fo.solve(instance, "drfh"), level="account-partition")
    assert grp_tres(found.text) == {"account": {"cpu": "4"}, "account/user@partition": {"cpu": "4"}}
    assert found.names == {"-": "account", "?": "user"}


def test_owners_in_the_root_are_accounts() -> None:
    """Whatever the labels of their users look like. Users of Slurm can be named by the caller."""
    labels: dict[str, Any] = {"users": ["phys/1 cpu", "phys/2 cpu", "chem"], "resources": ["cpu"], "servers": ["a", "b"]}
    instance = fo.Instance([[8], [8]], [[1], [2], [1]], owners=["phys", "phys", None], **labels)
    assert set(grp_tres(fo.export_slurm(fo.solve(instance.replace(owners=None), "psdsf")).text)) == {"phys-1-cpu", "phys-2-cpu", "chem"}
    allocation = fo.solve(instance, "psdsf")
    assert set(grp_tres(fo.export_slurm(allocation).text)) == {"phys", "chem"}
    with pytest.raises(fo.InvalidInstance, match="only an association of a user can have a partition"):
        fo.export_slurm(allocation, level="account-partition")
    found = fo.export_slurm(allocation, level="account-partition", users={"phys": "ann", "phys/2 cpu": "ben", "chem": "cyd"})
    assert {name for name in grp_tres(found.text) if "@" not in name} == {"phys", "chem"}
    assert {name.partition("@")[0] for name in grp_tres(found.text) if "@" in name} == {"phys/ann", "phys/ben", "chem/cyd"}
    with pytest.raises(fo.InvalidInstance, match=r'no account "bio"'):
        fo.export_slurm(allocation, users={"bio": "x"})


def test_an_owner_in_an_account_is_a_user_of_slurm() -> None:
    """Unless it is the account itself, whose users nobody names; a user without an owner is its own."""
    users = ["chem/1 cpu", "small", "large", "cyd"]
    instance = fo.Instance(
        [[8]], [[1], [1], [2], [1]], users=users, resources=["cpu"], queues=[fo.Queue("chem")], queue_of=["chem"] * 4, tasks=[1, 1, 1, 1]
    ).replace(owners=["chem", "ann", "ann", None])
    found = grp_tres(fo.export_slurm(fo.solve(instance, "drfh"), level="account-user", users={"chem": "dee"}).text)
    assert {name: limit["cpu"] for name, limit in found.items()} == {"chem": "5", "chem/dee": "1", "chem/ann": "3", "chem/cyd": "1"}


def test_an_account_of_another_cluster_is_refused(tmp_path: Path) -> None:
    """Accounts and users are checked against the table, and the table itself line by line."""
    table = Sacctmgr(ASSOCIATIONS).to_table(tmp_path / "associations.txt")
    with pytest.raises(fo.InvalidInstance, match=r'no account "chem".*from another cluster'):
        fo.export_slurm(lab(), associations=table)
    table.write_text("Account|User|Partition|GrpTRES\nchem||\n")
    with pytest.raises(fo.InvalidInstance, match=r"line 2: 3 cells for 4 columns"):
        fo.export_slurm(lab(), associations=table)
    table.write_text("Account|User|Partition|GrpTRES\nchem|||cpu\n")
    with pytest.raises(fo.InvalidInstance, match=r"line 2: GrpTRES: "):
        fo.export_slurm(lab(), associations=table)
    table.write_text("Account|User|Share\nchem||1\n")
    with pytest.raises(fo.InvalidInstance, match=r'no column "Partition"; export it again: sacctmgr -P show assoc'):
        fo.export_slurm(lab(), associations=table)
    table.write_text("nothing\n")
    with pytest.raises(fo.InvalidInstance, match=r'neither JSON nor text of Slurm: it starts with "nothing"'):
        fo.export_slurm(lab(), associations=table)


def test_weights_of_nodes_come_near_the_placement() -> None:
    """Vision needs the GPU node; the others could run there too, and are placed elsewhere first."""
    found = fo.export_slurm(lab(3))
    weights = re.findall(r"Weight=(\d+) +# \d+ nodes?: (\w+)", found.text)
    assert weights == [("10", "cn"), ("20", "gn")]


def test_units_and_resources() -> None:
    """Memory in MB of 10^6 bytes becomes MiB rounded up; a resource without a name of its own is a generic one."""
    instance = fo.Instance([[100_000, 4]], [[1000, 1]], users=["a"], resources=["memory", "fpga"], servers=["s"])
    found = fo.export_slurm(fo.solve(instance, "drfh"), units={"memory": "MB"})
    assert grp_tres(found.text) == {"a": {"gres/fpga": "4", "mem": "3815M"}}
    found = fo.export_slurm(fo.solve(instance, "drfh"), resources={"fpga": "license/fpga"})
    assert "license/fpga=4" in found.text


@pytest.mark.parametrize(
    ("option", "value", "message"), [("level", "acount", r'did you mean "account"'), ("as_", "money", "tres or as billing")]
)
def test_bad_options(option: str, value: str, message: str) -> None:
    """What there is instead."""
    with pytest.raises(fo.InvalidInstance, match=message):
        fo.export_slurm(lab(), **{option: value})  # type: ignore[arg-type]


@needs("slurm-lab")
def test_the_real_cluster(tmp_path: Path) -> None:
    """40 nodes, six accounts: limits within the nodes, and the sum of the users of an account is the account."""
    before = LAB / "limits"
    instance = fo.import_slurm(
        before / "nodes.json", before / "jobs.json.gz", before / "associations.json", before / "partitions.json"
    ).instance
    found = fo.export_slurm(fo.solve(instance, "drfh"), level="account-user", associations=before / "sacctmgr-assoc.txt")
    limits = grp_tres(found.text)
    accounts = {name: each for name, each in limits.items() if "/" not in name}
    assert set(accounts) == {"physics", "genomics", "chem", "vision", "language", "stats"}
    for key, most in (("cpu", 1472), ("gres/gpu", 32)):
        assert sum(int(each[key]) for each in accounts.values()) <= most
        for name, each in accounts.items():
            assert int(each[key]) == sum(int(limit[key]) for other, limit in limits.items() if other.startswith(f"{name}/"))
    undo = grp_tres(found.files["undo"])
    assert undo["chem"] == {"cpu": "444", "gres/gpu": "-1", "mem": "888G"}
    assert undo["language"] == {"cpu": "24", "gres/gpu": "6", "mem": "192G"}


def test_limits_of_a_qos_stay_as_slurm_has_them() -> None:
    """An import calls them qos/NAME; the export does not change them, says so, and counts them when it is read back."""
    cluster = fo.Instance(
        [[16]],
        [[1], [1]],
        users=["u1", "u2"],
        servers=["x"],
        resources=["gpu"],
        tasks=[99, 99],
        queues=[fo.Queue("a")],
        queue_of={"u1": "a", "u2": "a"},
        limits=[fo.Limit("qos/long gpu", 4, resource="gpu", users=["u1"])],
    )
    found = fo.export_slurm(fo.solve(cluster, "drfh"))
    assert found.less == ()
    assert "the script leaves limits as they are that Slurm has beside those of accounts: qos/long gpu" in found.notes
    assert not any("is not written" in note for note in found.notes)
    renamed = cluster.replace(limits=[fo.Limit("long", 4, resource="gpu", users=["u1"])])
    assert "u2 8 of 12 tasks; long is not in it" in fo.export_slurm(fo.solve(renamed, "drfh")).less[0]
