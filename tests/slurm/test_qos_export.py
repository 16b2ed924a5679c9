"""Limits of QOS, there and back: the script is carried out on QOS, which are then imported again."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from support.command_line import run
from support.sacctmgr import Sacctmgr
from support.slurm_records import job, node

import fairopt as fo
from fairopt.errors import InvalidInstance

QOS: dict[str, dict[str, dict[str, str]]] = {
    "normal": {},
    "small": {"MaxTRESPerUser": {"cpu": "8"}},
    "wide": {"GrpTRES": {"cpu": "12", "mem": "64G"}, "MaxTRESPerAccount": {"cpu": "10"}, "GrpJobs": {"": "50"}},
    "night.run": {"Preempt": {"normal": ""}},
}
# 32 CPUs. wide and free share the QOS wide; owned has a GrpTRES of 4 CPUs, and its jobs are in wide, too: Slurm does not look at the 4.
JOBS = {"plain": "normal", "capped": "small", "owned": "wide", "free": "wide"}
TREE = [("root", "", 1, {}), *((name, "root", 1, {"cpu": 4} if name == "owned" else {}) for name in JOBS)]


def cluster(folder: Path, slurm: Sacctmgr, **qos_of: str) -> fo.Import:
    """Import the cluster with these associations and QOS; ``qos_of`` are the QOS of the jobs of accounts, where they are others."""
    (folder / "nodes.json").write_text(json.dumps({"nodes": [node("n1", 32, real_memory=262144)]}))
    jobs = [
        job(n, "cpu=1,mem=1G,node=1", account=name, user_name="u", qos=qos, array_task_string="1-90")
        for n, (name, qos) in enumerate((JOBS | qos_of).items(), 1)
    ]
    (folder / "jobs.json").write_text(json.dumps({"jobs": jobs}))
    associations, qos = slurm.to_json(folder / "assoc.json"), slurm.to_qos_table(folder / "qos.txt")
    return fo.import_slurm(folder / "nodes.json", folder / "jobs.json", associations, qos=qos)


@pytest.fixture
def slurm(tmp_path: Path) -> Sacctmgr:
    """Four accounts with a user each."""
    parts = []
    for account, parent, shares, limits in TREE:
        total = [{"type": name, "name": "", "count": amount} for name, amount in limits.items()]
        for user in ("", "u") if parent else ("",):
            own = {"account": account, "user": user, "partition": "", "parent_account": "" if user else parent, "shares_raw": shares}
            parts.append({**own, "max": {"tres": {"total": [] if user else total}}})
    (tmp_path / "parts.json").write_text(json.dumps({"associations": parts}))
    made = Sacctmgr(tmp_path / "parts.json", copy.deepcopy(QOS))
    for account, _, _, limits in TREE:
        made.limits[account, "", ""] = {name: float(amount) for name, amount in limits.items()}
    return made


def tasks(instance: fo.Instance) -> dict[str, float]:
    """Return the exact tasks of each account."""
    found: dict[str, float] = {}
    for owner, number in zip(instance.owners, fo.solve(instance, "drfh").tasks_per_user.tolist(), strict=True):
        found[str(owner)] = found.get(str(owner), 0.0) + number
    return found


def test_a_qos_comes_before_accounts(tmp_path: Path, slurm: Sacctmgr) -> None:
    """12 CPUs for owned and free together, 8 for capped, and 12 for plain: the limit of 4 of owned holds none of its jobs."""
    found = cluster(tmp_path, slurm)
    assert tasks(found.instance) == pytest.approx({"plain": 12, "capped": 8, "owned": 6, "free": 6})
    assert any("limits of owned that a QOS of all their jobs has, too, are left out" in note for note in found.notes)
    without = cluster(tmp_path, slurm, owned="normal")
    assert tasks(without.instance) == pytest.approx({"plain": 10, "capped": 8, "owned": 4, "free": 10})
    assert not any("left out: Slurm takes" in note for note in without.notes)


def test_limits_of_qos_there_and_back(tmp_path: Path, slurm: Sacctmgr) -> None:
    """GrpTRES is what the tasks of a QOS hold together; the other limits stay; read again, everybody has the same; undo leaves nothing."""
    instance = cluster(tmp_path, slurm).instance
    instance = instance.replace(tasks=np.minimum(instance.tasks, 4))  # wide needs 8 of its 12 CPUs
    found = fo.export_slurm(
        fo.solve(instance, "drfh"), level="qos", qos=tmp_path / "qos.txt", associations=slurm.to_table(tmp_path / "a.txt")
    )
    assert found.less == ()
    assert not any("is not written" in note or "leaves limits as they are" in note for note in found.notes)
    before = copy.deepcopy((slurm.limits, slurm.qos))
    assert slurm.run(found.files["limits"]) == 0
    assert slurm.qos["wide"] == {
        "GrpTRES": {"cpu": "8", "mem": "8G"},
        "MaxTRESPerAccount": {"cpu": "10"},
        "GrpJobs": {"": "50"},
    }
    assert slurm.qos["small"] == QOS["small"]
    again = cluster(tmp_path, slurm).instance.replace(tasks=instance.tasks)
    assert tasks(again) == pytest.approx(tasks(instance))
    slurm.run(found.files["undo"])
    assert (slurm.limits, slurm.qos) == before


def test_what_slurm_lacks_is_added_and_taken_back(tmp_path: Path, slurm: Sacctmgr) -> None:
    """A QOS that is not there, and preemption that is not set; names with a dot are those of Slurm."""
    slurm.qos["night.run"] = {"Preempt": {"normal": "", "small": "", "wide": ""}, "GrpTRES": {"cpu": "6"}}
    instance = cluster(tmp_path, slurm, plain="night.run").instance
    assert [queue.tier for queue in instance.queues if queue.name == "plain/u/qos:night.run"] == [1]
    del slurm.qos["small"]
    del slurm.qos["night.run"]["Preempt"]
    before = copy.deepcopy(slurm.qos)
    found = fo.export_slurm(fo.solve(instance, "drfh"), level="qos", qos=slurm.to_qos_table(tmp_path / "qos.txt"))
    slurm.run(found.files["limits"])
    assert slurm.qos["small"] == QOS["small"]
    assert slurm.qos["night.run"] == {"Preempt": {"small": "", "wide": ""}, "GrpTRES": {"cpu": "6"}}
    assert any("Slurm has no QOS small: the script adds them" in note for note in found.notes)
    slurm.run(found.files["undo"])
    assert slurm.qos == before


def test_without_the_table_of_qos(tmp_path: Path, slurm: Sacctmgr) -> None:
    """They are taken to be as the instance says; --qos with another level is refused; the level of accounts says what it cannot hold."""
    imported = cluster(tmp_path, slurm)
    fo.save(imported.instance, tmp_path / "c.yaml")
    out = run("export", "slurm", tmp_path / "c.yaml", "--level", "qos", "-o", tmp_path / "limits.sh", "--undo", tmp_path / "undo.sh").stdout
    assert "sacctmgr -i modify qos where name=small set MaxTRESPerUser=cpu=8" in (tmp_path / "limits.sh").read_text()
    assert "QOS are taken to be as the instance says" in " ".join(out.split())
    before = copy.deepcopy(slurm.qos)
    slurm.run((tmp_path / "limits.sh").read_text())
    slurm.run((tmp_path / "undo.sh").read_text())
    assert slurm.qos == before
    exact = fo.solve(imported.instance, "drfh")
    assert any("the level qos limits these, too" in note for note in fo.export_slurm(exact).notes)
    for options, message in (({"qos": tmp_path / "qos.txt"}, "leave them out"), ({"level": "qos", "as_": "billing"}, "given as tres")):
        with pytest.raises(InvalidInstance, match=message):
            fo.export_slurm(exact, **options)
    flat = fo.solve(fo.Instance([[8]], [[1]], resources=["cpu"]), "drfh")
    assert any("the instance has no limits of QOS" in note for note in fo.export_slurm(flat, level="qos").notes)


def test_percentages_and_flags(tmp_path: Path, slurm: Sacctmgr) -> None:
    """With Relative, 25 is a quarter of the 32 CPUs; such limits are left as they are. Flags that nobody knows, and odd times, are said."""
    table = tmp_path / "qos.txt"
    exact = None
    for flags, tasks_of_capped in (("Relative", 8), ("DenyOnLimit,Relative", 8), ("", 15.5)):
        cluster(tmp_path, slurm)
        table.write_text(f"Name|Flags|GrpTRES|MaxTRESPU|MaxWall\nnormal||||\nwide|||cpu=1|\nsmall|{flags}||cpu=25|1-00:00:00\n")
        found = fo.import_slurm(tmp_path / "nodes.json", tmp_path / "jobs.json", slurm.to_json(tmp_path / "assoc.json"), qos=table)
        assert tasks(found.instance)["capped"] == pytest.approx(tasks_of_capped)
        exact = exact or fo.solve(found.instance, "drfh")
    table.write_text(table.read_text().replace("small|", "small|Relative,Odd"))
    assert exact is not None
    export = fo.export_slurm(exact, level="qos", qos=table)
    assert any("limits of the QOS small are percentages" in note for note in export.notes)
    assert "name=small" not in export.files["limits"]
    found = fo.import_slurm(tmp_path / "nodes.json", tmp_path / "jobs.json", qos=table)
    assert any("QOS have the flags Odd, which this import does not know" in note for note in found.notes)
    assert not any("no node here has" in note for note in found.notes)
    lost = tmp_path / "lost.txt"
    lost.write_text("Name|Flags|GrpTRES|MaxTRESPU\nnormal|||\nsmall|Relative|gres/nope=50,cpu=25|license/x=20\n")
    found = fo.import_slurm(tmp_path / "nodes.json", tmp_path / "jobs.json", qos=lost)
    assert "no node here has gres/nope and license/x: percentages of it in the QOS small do not count" in found.notes
    table.write_text(table.read_text().replace("1-00:00:00", "soon"))
    with pytest.raises(InvalidInstance, match=r"line 4: MaxWall: .*not a length of time"):
        fo.import_slurm(tmp_path / "nodes.json", tmp_path / "jobs.json", qos=table)
