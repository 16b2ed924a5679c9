"""Pools of public reports and how-tos about HTCondor: from its ads to the right numbers, worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.htcondor_ads import import_ads, job, slot

import fairopt as fo


def many(number: int, owner: str, /, count: int = 60, **attributes: Any) -> list[dict[str, Any]]:
    """Return jobs of one cluster that wait."""
    return [job(number, owner, memory=1, **attributes) | {"ProcId": process} for process in range(count)]


def tasks(found: fo.Import) -> dict[str, float]:
    """Return the exact number of jobs of each owner that run."""
    return dict(zip(found.owners, fo.solve(found.instance, "drfh").tasks_per_user, strict=True))


def test_defaults_of_kinds_of_concurrency_limits(tmp_path: Path) -> None:
    """license.west and filer.south have limits of their own, other licences and filers those of their kind, and all else that of all."""
    config = "CONCURRENCY_LIMIT_DEFAULT = 15\nCONCURRENCY_LIMIT_DEFAULT_license = 30\nCONCURRENCY_LIMIT_DEFAULT_filer = 75\n"
    names = ["license.north", "license.west", "filer.north", "filer.south", "other"]
    jobs = [ad for n, name in enumerate(names) for ad in many(n, name.replace(".", "_"), 99, ConcurrencyLimits=name)]
    found = import_ads(tmp_path, [slot("slot1@w1", 500)], jobs, f"{config}license.west_LIMIT = 45\nfiler.south_LIMIT = 150\n")
    assert tasks(found) == pytest.approx({"license_north": 30, "license_west": 45, "filer_north": 75, "filer_south": 99, "other": 15})


def test_units_of_file_servers(tmp_path: Path) -> None:
    """100 units a server: a takes 1 of one, b 5 of it and 1 of another: both 100 / 6. A job of 150 units never starts, and takes none."""
    jobs = many(1, "a", ConcurrencyLimits="nfs18:1") + many(2, "b", ConcurrencyLimits="nfs18:5,NFS19")
    jobs += many(3, "c", 1, ConcurrencyLimits="nfs19:150")
    found = import_ads(tmp_path, [slot("slot1@w1", 100)], jobs, "NFS18_LIMIT = 100\nNFS19_LIMIT = 100\n")
    assert tasks(found) == pytest.approx({"a": 100 / 6, "b": 100 / 6})
    assert [each.why for each in found.left_out] == ["counts more than all of the limit concurrency/nfs19, so it can never start"]


@pytest.mark.parametrize("option", ["", "-all"])
def test_factors_of_users_in_both_tables(tmp_path: Path, option: str) -> None:
    """B's factor is 4 times that of A, so A has 80 of 100 cores; with -all a column of real priorities is before that of factors."""
    real = (" Real    ", "Priority ", "    50.00", "     0.50") if option else ("", "", "", "")
    table = (
        f"Last Priority Update: 11/28 10:00\n                   Effective  {real[0]} Priority   Res   Total Usage  Time Since Requested\n"
        f"User Name           Priority  {real[1]}  Factor   In Use (wghted-hrs) Last Usage Resources\n"
        "------------------ ------------ -------- --------- ------ ------------ ---------- ----------\n"
        f"A@x                       50.00{real[2]}       1.00      0         0.00    0+00:01          0\n"
        f"B@x                        2.00{real[3]}       4.00      0         0.00    0+00:01          0\n"
        "------------------ ------------ -------- --------- ------ ------------ ---------- ----------\n"
        "Number of users: 2                               0         0.00    0+23:59          0\n"
    )
    found = import_ads(tmp_path, [slot("slot1@w1", 100)], many(1, "A", 99) + many(2, "B", 99), priorities=table)
    assert tasks(found) == pytest.approx({"A": 80, "B": 20})


def test_machines_take_the_jobs_that_their_start_expression_names(tmp_path: Path) -> None:
    """w1 takes jobs of ada alone, w2 those that want backfill, w3 none, w4 all, w5 what nobody here knows, and so all."""
    slots = [
        slot("slot1@w1", 8, Start='/Expr(TARGET.Owner == "ada")/'),
        slot("slot1@w2", 4, Start="/Expr(TARGET.WantBackfill =?= true && TARGET.RequestCpus <= MaxCores)/", MaxCores=2),
        slot("slot1@w3", 2, Start=False),
        slot("slot1@w4", 2, Start=True),
        slot("slot1@w5", 1, Start="/Expr(TARGET.Sponsor == MachineSponsor)/", MachineSponsor="physics"),
    ]
    jobs = [*many(1, "ada"), *many(2, "ben", WantBackfill=True), *many(3, "cat")]
    found = import_ads(tmp_path, slots, jobs)
    reach = {
        owner: sorted({found.instance.servers[i] for i in found.instance.eligibility[n].nonzero()[0]})
        for n, owner in enumerate(found.owners)
    }
    assert reach == {"ada": ["w1", "w4", "w5"], "ben": ["w2", "w4", "w5"], "cat": ["w4", "w5"]}
    assert [each.why for each in found.left_out] == ["Start is false: offers nothing"]
    why = "attributes that these jobs, or the slots, do not have"
    assert f"Start of 1 slot has {why}: it does not count, so that these take any job" in found.notes
    assert tasks(found) == pytest.approx({"ada": 8, "ben": 4, "cat": 3})


def test_jobs_that_require_some_kind_of_gpu(tmp_path: Path) -> None:
    """w1 has an A100 and a V100, w2 two V100, w3 an A100 that is taken now: jobs that require 8.0 run on w1 and w3, two at once on none.

    As submit files write it: gpus_minimum_capability = 8.0.
    """
    new, old = {"Capability": 8.0, "DeviceName": "A100"}, {"Capability": 7.0, "DeviceName": "V100"}
    gpus: dict[str, list[Any]] = {"w1": [new, old], "w2": [old, old], "w3": [new]}
    slots = []
    for name, own in gpus.items():
        cards: dict[str, Any] = {f"GPUs_GPU_{name}_{k}": card for k, card in enumerate(own)}
        slots.append(slot(f"slot1@{name}", 8, TotalSlotGPUs=len(own), GPUs=0, AvailableGPUs=[], **cards))
    needs = "/Expr(TARGET.GPUs >= RequestGPUs && countMatches(MY.RequireGPUs, TARGET.AvailableGPUs) >= RequestGPUs)/"
    wish: dict[str, Any] = {"Requirements": needs, "RequireGPUs": "/Expr(Capability >= 8.0)/"}
    jobs = [
        *many(1, "ada", RequestGPUs=1, **wish),
        *many(2, "ben", RequestGPUs=1, **wish | {"RequireGPUs": '/Expr(DeviceName == "V100")/'}),
    ]
    found = import_ads(tmp_path, slots, [*jobs, *many(3, "cat", 1, RequestGPUs=2, **wish)])
    reach = {
        owner: sorted({found.instance.servers[i] for i in found.instance.eligibility[n].nonzero()[0]})
        for n, owner in enumerate(found.owners)
    }
    assert reach == {"ada": ["w1", "w3"], "ben": ["w1", "w2"]}
    assert not any("not understood" in note for note in found.notes)
    assert [each.number for each in found.left_out] == [1]
    assert any(note.startswith("1 slot has GPUs of several kinds, which count together") for note in found.notes)
