"""Two instances side by side: what differs, and who gains or loses by it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import fairopt as fo
from fairopt.analysis.differences import Differences

LAB = fo.Instance(
    [[8, 16], [4, 16]],
    [[1, 2], [2, 1], [0, 4]],
    users=["vision", "language", "simulation"],
    servers=["new", "old"],
    resources=["gpu", "cpu"],
    tasks=[np.inf, np.inf, 3],
)
QUEUES = LAB.replace(
    queues=[fo.Queue("research", weight=2, guarantee={"gpu": 4}), fo.Queue("teaching", limit={"gpu": 6})],
    queue_of=["research", "teaching", None],
)
FACTS = LAB.replace(
    counts=[2, 1],
    hosts=["n[1-2]", "o1"],
    attributes=[{"model": "A100", "memory": 80}, {"model": "V100"}],
    owners=["lab/v", None, None],
)
RATED = LAB.replace(rates=[[4, 2], [2, 1], [3, 3]])
PER_RESOURCE = (("vision", 1), ("language", 2), ("simulation", 1))
FREER = QUEUES.replace(queues={"teaching": {"limit": {"gpu": None}, "weight": 3}})
CHANGES: tuple[tuple[fo.Instance, fo.Instance, list[str]], ...] = (
    (LAB, LAB, []),
    (LAB, LAB.replace(counts={"new": 3}), ["servers.new.count: 1 -> 3"]),
    (LAB, LAB.replace(capacities={"old": {"cpu": 32}}), ["servers.old.capacity.cpu: 16 -> 32"]),
    (LAB, LAB.replace(weights={"vision": 3}), ["users.vision.weight: 1 -> 3"]),
    (
        LAB,
        LAB.replace(weights=[[1, 1], [2, 1], [1, 1]]),
        [f"users.{user}.weight: 1 -> gpu {gpu}, cpu 1" for user, gpu in PER_RESOURCE],
    ),
    (LAB, LAB.replace(demands={"vision": {"gpu": 2}}), ["users.vision.demand.gpu: 1 -> 2"]),
    (LAB, LAB.replace(tasks={"simulation": np.inf}), ["users.simulation.tasks: 3 -> no limit"]),
    (LAB, LAB.replace(parallelism={"vision": 1}), ["users.vision.parallelism: no limit -> 1"]),
    (LAB, LAB.replace(guarantees={"vision": 1}), ["users.vision.guarantee: 0 -> 1"]),
    (LAB, LAB.replace(eligibility={"vision": ["new"]}), ["users.vision.servers: new and old -> new"]),
    (RATED, RATED.replace(rates={"vision": {"old": 3}}), ["users.vision.rates: new 4, old 2 -> new 4, old 3"]),
    (QUEUES, QUEUES.replace(queues={"research": {"guarantee": {"gpu": 2}}}), ["queues.research.guarantee.gpu: 4 -> 2"]),
    (
        QUEUES,
        QUEUES.replace(queues={"teaching": {"limit": {"gpu": None}, "weight": 3}}),
        ["queues.teaching.weight: 1 -> 3", "queues.teaching.limit.gpu: 6 -> no limit"],
    ),
    (QUEUES, QUEUES.replace(queue_of={"vision": None}), ["users.vision.queue: research -> none"]),
    (FACTS, FACTS.replace(hosts={"new": "n[1,7]"}), ["servers.new.hosts: n[1-2] -> n[1,7]"]),
    (FACTS, FACTS.replace(counts={"new": 3}), ["servers.new.count: 2 -> 3"]),
    (FACTS, FACTS.replace(counts={"new": 3}, hosts={"new": "n[1-3]"}), ["servers.new.count: 2 -> 3"]),  # they come with the count
    (
        FACTS,
        FACTS.replace(owners={"vision": "lab/w", "language": "lab/v"}),
        ["users.vision.owner: lab/v -> lab/w", "users.language.owner: none -> lab/v"],
    ),
    (FACTS, FACTS.replace(attributes={"new": {"memory": "80", "ssd": True}}), ["servers.new.attributes.ssd: none -> true"]),
    (FACTS, FACTS.replace(attributes={"old": {"model": None}}), ["servers.old.attributes.model: V100 -> none"]),
)


@pytest.mark.parametrize(("before", "after", "expected"), CHANGES, ids=lambda value: str(value) if isinstance(value, list) else "")
def test_differences_are_found_and_can_be_made(before: fo.Instance, after: fo.Instance, expected: list[str]) -> None:
    """What is found is all that differs: made in the first instance, it gives the second one, and nothing gives the first."""
    found = Differences(before, after)
    assert [str(difference) for difference in found.all] == expected
    assert found.only(found.all) == after
    assert found.only([]) == before


def test_amounts_have_their_units() -> None:
    """In GiB and in bytes; "only" keeps the unit. A unit that only one instance knows is that of both; two units are refused."""
    for unit, size in (("GiB", 1), ("B", 2**30)):
        before = fo.Instance([[256 * size]], [[64 * size]], users=["a"], servers=["s1"], resources=["memory"], units={"memory": unit})
        after = before.replace(capacities=[[512 * size]])
        found = Differences(before, after)
        assert [str(each) for each in found.all] == ["servers.s1.capacity.memory: 256 GiB -> 512 GiB"]
        assert found.only(found.all) == after
        assert found.only([]) == before
        assert fo.what_if(before, after, notions=["drf"]).to_dict()["differences"][0]["unit"] == unit
        unknown = fo.Instance([[512 * size]], [[64 * size]], users=["a"], servers=["s1"], resources=["memory"])
        assert [str(each) for each in Differences(unknown, before).all] == ["servers.s1.capacity.memory: 512 GiB -> 256 GiB"]
    with pytest.raises(fo.InvalidInstance, match="memory is in B in the one instance and in GiB in the other, so"):
        fo.what_if(before, before.replace(capacities=[[256]], demands=[[64]], units={"memory": "GiB"}))


def test_entries_that_come_and_go() -> None:
    """A server, a user and a queue more, and one less; a new user stays where it may be."""
    after = fo.Instance(
        [[8, 16], [2, 4]],
        [[1, 2], [1, 1]],
        users=["vision", "guest"],
        servers=["new", "big"],
        resources=["gpu", "cpu"],
        eligibility=[[1, 1], [0, 1]],
        queues=[fo.Queue("guests")],
        queue_of=[None, "guests"],
    )
    found = Differences(LAB, after)
    told = [str(difference) for difference in found.all]
    assert told == [
        "servers.old is gone",
        "servers.big is new",
        "queues.guests is new",
        "users.language is gone",
        "users.simulation is gone",
        "users.guest is new",
    ]
    assert found.only(found.all) == after
    both = found.only([found.all[1]])
    assert both.servers == ("new", "old", "big")
    assert both == LAB.replace(capacities=[[8, 16], [4, 16], [2, 4]], counts=[1, 1, 1], eligibility=None, servers=["new", "old", "big"])
    guest = found.only([found.all[2], found.all[5]])
    assert guest.eligibility[guest.index("guest")].tolist() == [False, True]  # of "old", which has gone, nothing is said


def test_many_differences_are_grouped() -> None:
    """By what they are about; a difference alone in its group keeps its name."""
    after = LAB.replace(weights=[2, 3, 4], demands=[[2, 2], [3, 1], [1, 4]], counts={"old": 2})
    groups = Differences(LAB, after).groups()
    assert [what for what, _ in groups] == ["servers.old.count", "weight of 3 users", "demand of 3 users"]
    assert sum(len(own) for _, own in groups) == 7


def test_tasks_before_and_after_are_those_of_solve() -> None:
    """And each effect is that of one difference alone."""
    after = LAB.replace(counts={"new": 2}, weights={"vision": 3})
    found = fo.what_if(LAB, after, notions=["drfh", "tsf"], schedules=["drfh:best-fit"])
    for row in ("drfh", "tsf"):
        first, second, servers, weight = (
            fo.solve(instance, row).tasks_per_user
            for instance in (LAB, after, LAB.replace(counts={"new": 2}), LAB.replace(weights={"vision": 3}))
        )
        frame = found.to_frame().loc[row]
        np.testing.assert_allclose(frame["before"], first, rtol=1e-9)
        np.testing.assert_allclose(frame["after"], second, rtol=1e-9)
        np.testing.assert_allclose(frame["only servers.new.count"], servers - first, atol=1e-7)
        np.testing.assert_allclose(frame["only users.vision.weight"], weight - first, atol=1e-7)
    greedy = [fo.schedule(instance, "drfh", placement="best-fit").tasks_per_user.tolist() for instance in (LAB, after)]
    changes = found.changes("drfh:best-fit")
    assert [[change.before for change in changes], [change.after for change in changes]] == greedy
    assert {change.name: change.verdict for change in found.changes("drfh")} == {
        "vision": "gains",
        "language": "loses",
        "simulation": "as before",
    }


def test_users_of_one_instance_only() -> None:
    """They are new or gone, and have no change."""
    after = fo.Instance([[8, 16]], [[1, 2], [1, 1]], users=["guest", "vision"], servers=["new"], resources=["gpu", "cpu"])
    found = fo.what_if(LAB, after, effects=False)
    assert [(change.name, change.verdict) for change in found.changes("drfh")] == [
        ("vision", "loses"),
        ("language", "gone"),
        ("simulation", "gone"),
        ("guest", "new"),
    ]
    assert found.changes("drfh")[3].before is None
    assert found.summary("drfh") == "1 user loses, 1 is new, 2 are gone"
    with pytest.raises(fo.InvalidInstance, match="no user is in both instances"):
        fo.what_if(LAB, after.replace(users=["a", "b"]))


def test_a_difference_that_cannot_be_alone_says_so() -> None:
    """A user moves into a queue that is new."""
    after = LAB.replace(queues=[fo.Queue("lab", weight=2)], queue_of=["lab", None, None])
    found = fo.what_if(LAB, after)
    queue, user = found.effects["drfh"]
    assert queue.changes == pytest.approx(dict.fromkeys(LAB.users, 0.0), abs=1e-9)
    assert not user.changes
    assert 'there is no queue "lab"' in user.message


def test_a_row_without_an_allocation_says_why() -> None:
    """The others are there."""
    found = fo.what_if(LAB, LAB.replace(parallelism={"vision": 1}), notions=["drfh", "psdsf"])
    assert found.changes("psdsf") == ()
    assert found.summary("psdsf").startswith("no allocation of after: ")
    assert found.changes("drfh")


def test_plain_data_is_json() -> None:
    """Infinity is words."""
    data = json.loads(json.dumps(fo.what_if(LAB, LAB.replace(tasks={"simulation": np.inf})).to_dict(), allow_nan=False))
    assert data["differences"] == [{"path": "users.simulation.tasks", "before": 3, "after": "no limit"}]
    assert [user["name"] for user in data["rows"][0]["users"]] == list(LAB.users)


def test_many_users_are_those_that_change_most() -> None:
    """Each of 30 users runs on a server of its own; two servers become larger, one user goes, and one comes: all four are shown."""
    names = [f"u{n}" for n in range(30)]
    own = np.eye(30, dtype=bool)
    before = fo.Instance([[8]] * 30, [[1]] * 30, eligibility=own, users=names)
    capacities = [[8]] * 28 + [[16], [24]]
    after = fo.Instance(capacities, [[1]] * 30, eligibility=own, users=["comes", *names[1:]])
    found = fo.what_if(before, after, effects=False)
    assert {change.name: change.moved for change in found.changes("drfh") if change.moved} == {"u0": -8, "u28": 8, "u29": 16, "comes": 8}
    lines = str(found).splitlines()
    rows = [line.split() for line in lines if line.startswith(("u", "comes"))]
    assert [row for row in rows if row[0] in ("u0", "u28", "u29", "comes")] == [
        ["u0", "8"],
        ["u28", "8", "16", "+8"],
        ["u29", "8", "24", "+16"],
        ["comes", "8"],
    ]
    assert [row[0] for row in rows] == ["u0", *names[1:17], "u28", "u29", "comes"]
    assert "and 11 more users, whose changes are no larger" in lines


def test_a_queue_and_its_users_are_one_difference() -> None:
    """Neither can be without the other: its effect is that of leaving all of them out; so too for a queue that is new, and a resource."""
    base, path = fo.load("examples/research-queues.yaml"), "examples/research-queues.yaml"
    after = fo.load(path, changes=["queues.teaching=", "users.bob.weight=2"])
    found = fo.what_if(base, after)
    assert [what for what, _ in found.groups] == ["queues.teaching is gone, with 2 users in it", "users.bob.weight"]
    gone, weight = found.effects["drfh"]
    assert not gone.message
    assert not weight.message
    alone = fo.solve(fo.load(path, changes=["queues.teaching="]), "drfh")
    now = dict(zip(alone.instance.users, alone.tasks_per_user, strict=True))
    had = dict(zip(base.users, fo.solve(base, "drfh").tasks_per_user, strict=True))
    assert gone.changes == pytest.approx({user: now[user] - had[user] for user in now}, abs=1e-9)
    assert "1. queues.teaching is gone, with 2 users in it" in repr(found)
    back = fo.what_if(after, base)
    assert [what for what, _ in back.groups] == ["queues.teaching is new, with 2 users in it", "users.bob.weight"]
    nested = fo.what_if(base, fo.load(path, changes=["queues.vision="]))
    assert [what for what, _ in nested.groups] == ["queues.vision is gone, with 1 queue and 3 users in it"]
    less = fo.what_if(base, fo.load(path, changes=["resources.cpu=", "users.bob.weight=2"]))
    assert [what for what, _ in less.groups] == ["resources.cpu is gone", "users.bob.weight"]
    assert not any(effect.message for effect in less.effects["drfh"])


LIMITED = FACTS.replace(limits=[fo.Limit("long", 2, resource="gpu", users=["vision"]), fo.Limit("new", 3, servers="model = A100")])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"long": {"bound": 6}}, ["limits.long.bound: 2 -> 6"]),
        ({"new": {"servers": ["old"], "each": "user"}}, ["limits.new.servers: model = A100 -> old", "limits.new.each: none -> user"]),
        (
            {"long": {"resource": None, "amounts": {"vision": 2}}},
            ["limits.long.resource: gpu -> none", "limits.long.amounts: none -> vision 2"],
        ),
        ({"long": None}, ["limits.long is gone"]),
        ([*LIMITED.limits, fo.Limit("few", 1)], ["limits.few is new"]),
    ],
)
def test_limits_are_differences(change: object, told: list[str]) -> None:
    """They are told by name, and each can be made."""
    after = LIMITED.replace(limits=change)
    found = Differences(LIMITED, after)
    assert sorted(map(str, found.all)) == sorted(told)
    assert found.only(found.all) == after
    assert found.only([]) == LIMITED
    assert "The two instances are the same" not in repr(fo.what_if(LIMITED, after))


def test_a_shared_resource_that_goes_is_named_so() -> None:
    """A resource of the whole cluster is no resource of servers."""
    base = fo.Instance([[20]], [[1, 1], [1, 0]], users=["L", "C"], resources=["cpu", "ansys"], shared={"ansys": 10})
    none = fo.Instance([[20]], [[1], [1]], users=["L", "C"], resources=["cpu"])
    assert [what for what, _ in fo.what_if(base, none).groups] == ["shared.ansys is gone"]
    assert [what for what, _ in fo.what_if(none, base).groups] == ["shared.ansys is new"]
