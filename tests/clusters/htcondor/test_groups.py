"""Group quotas and user priorities as a tree, and what they do to an exact allocation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.htcondor_ads import import_ads, job, slot

import fairopt as fo
from fairopt.clusters.account import Account
from fairopt.clusters.htcondor.groups import groups_of_config, read_config

CONFIG = """\
GROUP_NAMES = group_physics, \\
  group_chemistry, group_physics.hep
GROUP_QUOTA_group_physics = 12
GROUP_QUOTA_DYNAMIC_group_chemistry = 0.5
GROUP_QUOTA_DYNAMIC_group_physics.hep = 0.5
GROUP_ACCEPT_SURPLUS = False
GROUP_ACCEPT_SURPLUS_group_physics = $(YES)
YES = True
MATLAB_LIMIT = 3
"""


def many(first: int, owner: str, group: str = "", number: int = 20, **more: Any) -> list[Any]:
    """Return jobs of a core that wait."""
    return [job(100 * first + n, owner, group=group, memory=0, **more) for n in range(number)]


def solved(found: fo.Import) -> dict[str, float]:
    """Return the tasks of each owner at the optimum, with the guarantees as the import recommends."""
    tasks = fo.solve(found.instance, "drfh", **found.options).tasks_per_user
    return {owner: round(sum(t for t, own in zip(tasks, found.owners, strict=True) if own == owner), 6) for owner in found.owners}


def test_quotas_are_guarantees_and_limits(tmp_path: Path) -> None:
    """Of 16 cores: physics 12 and surplus, chemistry a half of the other 4 and no more; the rest belongs to those without a group."""
    jobs = [*many(1, "ada", "group_physics"), *many(2, "ben", "group_chemistry"), *many(3, "cyd")]
    found = import_ads(tmp_path, [slot("slot1@w", 16)], jobs, CONFIG)
    queues = {queue.name: queue for queue in found.instance.queues}
    assert (queues["group_physics"].guarantee, dict(queues["group_physics"].limit)) == ({"cpu": 12}, {})
    assert (queues["group_chemistry"].guarantee, queues["group_chemistry"].limit) == ({"cpu": 2}, {"cpu": 2})
    assert (queues["group_physics.hep"].guarantee, queues["group_physics.hep"].parent) == ({"cpu": 6}, "group_physics")
    assert queues["<none>"].weight == 2
    assert queues["cyd"].parent == "<none>"
    assert solved(found) == {"group_physics.ada": 12, "group_chemistry.ben": 2, "cyd": 2}
    assert (queues["group_physics.ada"].parent, queues["group_physics itself"].guarantee) == ("group_physics itself", {"cpu": 6})
    without = import_ads(tmp_path, [slot("slot1@w", 16)], [*many(1, "ada", "group_physics", 3), *many(2, "ben", "group_chemistry")], CONFIG)
    assert solved(without) == {"group_physics.ada": 3, "group_chemistry.ben": 2}


@pytest.mark.parametrize(("allowed", "quotas"), [(True, [20, 10, 0, 4, 8]), (False, [10, 5, 0, 4, 3])])
def test_quotas_that_add_up_to_more_than_there_is(tmp_path: Path, allowed: bool, quotas: list[float]) -> None:
    """20 and 10 of 15 cores: as in HTCondor's manual, they are scaled to 10 and 5 where oversubscription is off, and a part has 0.

    In physics, hep has 4 of 20 or of 10, and two parts of 0.75, which are scaled to halves, have the rest.
    """
    config = f"""\
GROUP_NAMES = physics, chemistry, geology, physics.hep, physics.bio, physics.astro
GROUP_QUOTA_physics = 20
GROUP_QUOTA_chemistry = 10
GROUP_QUOTA_DYNAMIC_geology = 0.5
GROUP_QUOTA_physics.hep = 4
GROUP_QUOTA_DYNAMIC_physics.bio = 0.75
GROUP_QUOTA_DYNAMIC_physics.astro = 0.75
NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION = {allowed}
"""
    found = import_ads(tmp_path, [slot("slot1@w", 15)], many(1, "ada", "physics.bio"), config)
    queues = {queue.name: queue.guarantee.get("cpu", 0) for queue in found.instance.queues}
    assert [queues[name] for name in ("physics", "chemistry", "geology", "physics.hep", "physics.bio")] == quotas
    assert any("HTCondor scales them: chemistry 10 to 5 and physics 20 to 10" in note for note in found.notes) != allowed


def test_groups_without_a_quota_are_said(tmp_path: Path) -> None:
    """HTCondor gives them nothing where they accept no surplus."""
    jobs = [*many(1, "ada", "g"), *many(2, "ben")]
    found = import_ads(tmp_path, [slot("slot1@w", 16)], jobs, "GROUP_NAMES = g\nGROUP_ACCEPT_SURPLUS = False\n")
    assert solved(found) == {"g.ada": 0, "ben": 16}
    assert "g: without a quota, and accepts no surplus: its jobs get nothing" in found.notes
    open_to_all = import_ads(tmp_path, [slot("slot1@w", 16)], jobs, "GROUP_NAMES = g\nGROUP_ACCEPT_SURPLUS = True\n")
    assert not any("without a quota" in note for note in open_to_all.notes)


def test_priority_factors_are_weights(tmp_path: Path) -> None:
    """A factor of 500 is twice the weight of 1,000: of 12 cores 8 and 4; a ceiling of 3 is a limit. All three forms say the same."""
    jobs = [*many(1, "ada"), *many(2, "ben")]
    table = "Last Priority Update:  5/28 12:00\n\nada@example   5000.00   1000.00    4  100.0\nben@example   900.00   500.00    4  100.0\n"
    rows = (("ada", 5000, 1000), ("ben", 9, 500))
    long = "".join(
        f'Name{k} = "{name}@example"\nPriority{k} = {priority}.0\nPriorityFactor{k} = {factor}.0\n'
        for k, (name, priority, factor) in enumerate(rows, 1)
    )
    ads = [
        {"Name": "ada@example", "Priority": 5000.0, "PriorityFactor": 1000.0, "Ceiling": -1},
        {"Name": "ben@example", "Priority": 9.0, "PriorityFactor": 500.0},
    ]
    for priorities in (table, long, ads):
        found = import_ads(tmp_path, [slot("slot1@w", 12)], jobs, priorities=priorities)
        assert solved(found) == {"ada": 4, "ben": 8}
    ads[1]["Ceiling"] = 3
    assert solved(import_ads(tmp_path, [slot("slot1@w", 12)], jobs, priorities=ads)) == {"ada": 9, "ben": 3}


def test_groups_of_priorities(tmp_path: Path) -> None:
    """Their quotas and their policy of surplus; a submitter without a priority has the factor of 1,000, which is said."""
    ads = [
        {"Name": "<none>", "IsAccountingGroup": True, "PriorityFactor": 1000.0, "EffectiveQuota": 0.0},
        {"Name": "g", "IsAccountingGroup": True, "PriorityFactor": 1000.0, "SubtreeQuota": 4.0, "SurplusPolicy": "no"},
        {"Name": "g.ada@example", "Priority": 500.0, "PriorityFactor": 1000.0},
    ]
    found = import_ads(tmp_path, [slot("slot1@w", 12)], [*many(1, "ada", "g"), *many(2, "ben")], priorities=ads)
    assert solved(found) == {"g.ada": 4, "ben": 8}
    assert "ben: not among the user priorities; their factor is taken as 1,000" in found.notes


def test_a_group_in_one_without_a_quota(tmp_path: Path) -> None:
    """It is refused with both names, and not with a traceback."""
    ads = [{"Name": "g.hep", "IsAccountingGroup": True, "SubtreeQuota": 4.0}]
    with pytest.raises(fo.InvalidInstance, match=r'the group "g\.hep" has a quota, and the group "g" that it is in has none'):
        import_ads(tmp_path, [slot("slot1@w")], many(1, "ada", "g.hep"), priorities=ads)


def test_names_of_groups_in_several_spellings(tmp_path: Path) -> None:
    """Case does not count: one group, whose quota counts once."""
    config = "GROUP_NAMES = Physics, physics.hep\nGROUP_QUOTA_physics = 8\nGROUP_QUOTA_PHYSICS.HEP = 4\n"
    (tmp_path / "config").write_text(config)
    groups = groups_of_config(read_config(tmp_path / "config"), tmp_path / "config", Account(False))
    assert [(group.name, group.parent, group.quota) for group in groups] == [("Physics", "", 8), ("Physics.hep", "Physics", 4)]


def test_a_group_whose_parent_is_not_listed(tmp_path: Path) -> None:
    """HTCondor ignores it, and so do quotas: its jobs are beside those without a group, and are not limited to 0."""
    config = "GROUP_NAMES = g, bio.lab, bio.lab.x\nGROUP_QUOTA_g = 4\nGROUP_QUOTA_bio.lab = 6\nGROUP_ACCEPT_SURPLUS = False\n"
    found = import_ads(tmp_path, [slot("slot1@w", 12)], [*many(1, "ada", "g"), *many(2, "ben", "bio.lab"), *many(3, "cyd")], config)
    assert solved(found) == {"g.ada": 4, "bio.lab.ben": 4, "cyd": 4}
    assert any(note.startswith("GROUP_NAMES lists bio.lab and bio.lab.x, but not the group above") for note in found.notes)


def test_concurrency_limits(tmp_path: Path) -> None:
    """Three licences, of which a job of ada needs one: three of them run; without the configuration, that is said."""
    jobs = [*many(1, "ada", ConcurrencyLimits="matlab"), *many(2, "ben")]
    found = import_ads(tmp_path, [slot("slot1@w", 16)], jobs, "MATLAB_LIMIT = 3\n")
    assert solved(found) == {"ada": 3, "ben": 13}
    small = import_ads(
        tmp_path,
        [slot("slot1@w", 16)],
        many(1, "ada", ConcurrencyLimits="small.a"),
        "CONCURRENCY_LIMIT_DEFAULT = 9\nCONCURRENCY_LIMIT_DEFAULT_SMALL = 2\n",
    )
    assert solved(small) == {"ada": 2}
    chosen = many(1, "ada", ConcurrencyLimits='/Expr(RequestCpus > 4 ? "large" : "matlab")/')
    assert solved(import_ads(tmp_path, [slot("slot1@w", 16)], chosen, "MATLAB_LIMIT = 3\n")) == {"ada": 3}
    with pytest.raises(fo.InvalidInstance, match=r"ConcurrencyLimits: the expression .* is UNDEFINED, and no list of limits"):
        import_ads(tmp_path, [slot("slot1@w", 16)], [job(1, ConcurrencyLimits="/Expr(TARGET.Licence)/")])
    assert any("count in the concurrency limit matlab" in note for note in import_ads(tmp_path, [slot("slot1@w", 16)], jobs).notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GROUP_NAMES = g\nGROUP_QUOTA_g = many", r'GROUP_QUOTA_g is "many", which is no number >= 0'),
        (
            "GROUP_NAMES = g\nGROUP_QUOTA_DYNAMIC_g = 1.5",
            r"GROUP_QUOTA_DYNAMIC_g is 1\.5; a dynamic quota is a part of the pool, at most 1",
        ),
        ("GROUP_NAMES = g\nGROUP_ACCEPT_SURPLUS_g = perhaps", r'GROUP_ACCEPT_SURPLUS_G is "perhaps", which is neither true nor false'),
        ("GROUP_QUOTA_g = 5", r"there are quotas, and no GROUP_NAMES"),
        ("GROUP_NAMES = $(B)\nB = $(GROUP_NAMES)x", r"the macro group_names refers to itself"),
    ],
)
def test_configurations_that_are_wrong(tmp_path: Path, text: str, message: str) -> None:
    """With the file and the macro."""
    (tmp_path / "config").write_text(text)
    with pytest.raises(fo.InvalidInstance, match=message):
        groups_of_config(read_config(tmp_path / "config"), tmp_path / "config", Account(False))


def test_macros_that_refer_to_themselves(tmp_path: Path) -> None:
    """A configuration adds to what was there before."""
    (tmp_path / "config").write_text(
        "DAEMON_LIST = MASTER\nDAEMON_LIST = $(DAEMON_LIST) SCHEDD\nGROUP_NAMES = a\nGROUP_NAMES = $(group_names), b\n"
    )
    assert [group.name for group in groups_of_config(read_config(tmp_path / "config"), "config", Account(False))] == ["a", "b"]


def test_a_file_without_priorities(tmp_path: Path) -> None:
    """What to give instead."""
    with pytest.raises(fo.InvalidInstance, match="there is no user priority in this file"):
        import_ads(tmp_path, [slot("slot1@w")], [job(1)], priorities="nothing")
