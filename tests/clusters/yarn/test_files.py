"""capacity-scheduler.xml and fair-scheduler.xml as queues of an import, worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clusters.yarn.test_importing import amount, asking, capacity, fair, node, running, with_queues, write

import fairopt as fo
from fairopt.clusters.json_export import Part
from fairopt.clusters.yarn.capacity_file import _LABELS, capacity_info
from fairopt.clusters.yarn.fair_file import fair_info
from fairopt.clusters.yarn.queue_fields import ALLOCATION, CAPACITY_QUEUE, DECLARED, FAIR_ANSWER, FAIR_QUEUE, SETTING, SETTING_OF_ALL
from fairopt.formats.xml_elements import parse_xml

DOMINANT = "resource-calculator = org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"


def capacity_file(*settings: str) -> str:
    """Return capacity-scheduler.xml with settings such as ``root.a.capacity = 40``; users have no limits unless they are given."""
    lines = [DOMINANT, *settings]
    if not any("user-limit-factor" in line for line in settings):
        lines.append("user-limit-factor = -1")
    pairs = [line.partition(" = ")[::2] for line in lines]
    body = [f"<property>\n<name>yarn.scheduler.capacity.{name}</name>\n<value>{value}</value>\n</property>" for name, value in pairs]
    return "\n".join(["<configuration>", *body, "</configuration>"])


def imported(
    folder: Path, text: str, apps: list[dict[str, Any]] | None = None, nodes: list[dict[str, Any]] | None = None, **more: Any
) -> fo.Import:
    """Import two nodes of 8 cores and 8 GiB, and a queue file."""
    asked = [asking(name, 99, 1) for name in "ab"] if apps is None else apps
    files = write(folder, nodes or [node("h1"), node("h2")], asked)
    (folder / "queues.xml").write_text(text)
    return fo.import_yarn(*files, folder / "queues.xml", **more)


def shares(found: fo.Import) -> dict[str, float]:
    """Return the containers that owners get, as the scheduler means its guarantees."""
    tasks = fo.solve(found.instance, "drfh", **found.options).tasks_per_user
    result: dict[str, float] = {}
    for owner, number in zip(found.owners, tasks.tolist(), strict=True):
        result[owner] = round(result.get(owner, 0.0) + number, 6)
    return result


def test_percentages_are_of_the_parent_and_weights_of_what_is_beside(tmp_path: Path) -> None:
    """Of 16: eng 75 % = 12, of which prod 60 % = 7.2 and at most 50 % of eng's 100 %; c and d by weights 3 and 1 of the other 4."""
    text = capacity_file(
        "root.queues = eng, ops",
        "root.eng.capacity = 75", "root.eng.maximum-capacity = 80", "root.eng.queues = prod,dev",
        "root.eng.prod.capacity = 60", "root.eng.dev.capacity = 40.0", "root.eng.dev.maximum-capacity = 50",
        "root.eng.prod.maximum-capacity = -1",
        "root.ops.capacity = 25", "root.ops.queues = c,d", "root.ops.c.capacity = 3w", "root.ops.d.capacity = 1w",
    )  # fmt: skip
    found = imported(tmp_path, text, [asking(name, 99, 1) for name in ("prod", "dev", "c", "d")])
    queues = {queue.name: queue for queue in found.instance.queues}
    assert dict(queues["eng"].guarantee) == {"cpu": 12, "memory": 12}
    assert dict(queues["eng"].limit) == pytest.approx({"cpu": 12.8, "memory": 12.8})
    assert dict(queues["eng.prod"].guarantee) == pytest.approx({"cpu": 7.2, "memory": 7.2})
    assert dict(queues["eng.prod"].limit) == {}
    assert dict(queues["eng.dev"].limit) == pytest.approx({"cpu": 6.4, "memory": 6.4})
    assert (dict(queues["ops.c"].guarantee), queues["ops.c"].weight) == ({"cpu": 3, "memory": 3}, 3)
    assert (queues["ops"].order, queues["ops.c"].order) == ("fair", "listed")  # a leaf is FIFO unless it says something else
    assert shares(found) == pytest.approx({"eng.prod": 7.2, "eng.dev": 4.8, "ops.c": 3, "ops.d": 1})


def test_absolute_amounts(tmp_path: Path) -> None:
    """In MiB and in the units of the file; together more than there is: in proportion; a maximum of nothing is none, one GPU counts."""
    nodes = [node("h1", totalResource=amount(8, 4)), node("h2")]
    text = capacity_file(
        "root.queues = a,b",
        "root.a.capacity = [memory=12288, vcores=12, yarn.io/gpu=3]", "root.a.maximum-capacity = [memory=14336,vcores=14,yarn.io/gpu=0]",
        "root.b.capacity = [memory=12Gi,vcores=4]", "root.b.maximum-capacity = [memory=0,vcores=0]",
    )  # fmt: skip
    found = imported(tmp_path, text, [asking("a", 9, 1, 1), asking("b", 9, 1)], nodes)
    first, second = found.instance.queues
    assert dict(first.guarantee) == {"cpu": 12, "memory": 8, "yarn.io/gpu": 0}  # 12 + 12 GiB of 16; the GPUs are more than its maximum of 0
    assert dict(first.limit) == {"cpu": 14, "memory": 14, "yarn.io/gpu": 0}
    assert (dict(second.guarantee), dict(second.limit)) == ({"cpu": 4, "memory": 8, "yarn.io/gpu": 0}, {})
    assert any('"a" is guaranteed more than its limit' in note for note in found.notes)


def test_amounts_that_exceed_the_queue_above(tmp_path: Path) -> None:
    """Hadoop's own test: a child with 100 GiB in a parent with 50. Here 9 and 3 in 8 become 6 and 2, and a note has both sums."""
    text = capacity_file(
        "root.queues = p,q", "root.p.queues = a,b",
        "root.p.capacity = [memory=8192,vcores=8]", "root.q.capacity = [memory=8192,vcores=8]",
        "root.p.a.capacity = [memory=9216,vcores=9]", "root.p.b.capacity = [memory=3072,vcores=3]",
    )  # fmt: skip
    found = imported(tmp_path, text, [asking(name, 99, 1) for name in ("a", "b", "q")])
    assert shares(found) == {"p.a": 6, "p.b": 2, "q": 8}
    assert sum('the queues in "root.p" state 12' in note and "it has 8: YARN refuses that" in note for note in found.notes) == 2


def test_vectors_mix_amounts_percentages_and_weights(tmp_path: Path) -> None:
    """Of 16 cores: a has 4, b 25 % of the other 12, and c and d 1 : 3 of the 9 left. Of 16 GiB: a 8, c and d 1 : 1 of the other 8."""
    text = capacity_file(
        "root.queues = a,b,c,d", "root.a.capacity = [memory=8192,vcores=4]", "root.b.capacity = [vcores=25%]",
        "root.c.capacity = [vcores=1w,memory=1w]", "root.d.capacity = [vcores=3w,memory=1w]", "root.b.maximum-capacity = [memory=50%]",
    )  # fmt: skip
    found = imported(tmp_path, text)
    assert [dict(queue.guarantee) for queue in found.instance.queues] == [
        {"memory": 8, "cpu": 4},
        {"cpu": 3, "memory": 0},
        {"cpu": 2.25, "memory": 4},
        {"cpu": 6.75, "memory": 4},
    ]
    assert dict(found.instance.queues[1].limit) == {"memory": 8}


def test_vectors_of_the_proposal(tmp_path: Path) -> None:
    """The example of YARN-11000, on 32 GiB and 32 cores: amounts first, then percentages of what they leave, then weights of the rest.

    Cores: 4 and 12 leave 16, all of them to p; there 2 leave 14, of which 86 % are 12.04, and the rest is 1.96. Memory: p has 16 GiB, and
    the others 1 : 3 of as much; in p 12 GiB leave 4, half of which are 2, and the rest is 2.
    """
    text = capacity_file(
        "root.queues = default,p,q", "root.default.capacity = [memory=1w,vcores=4]", "root.p.capacity = [memory=16384,vcores=100%]",
        "root.q.capacity = [memory=3w,vcores=12]", "root.p.queues = a,b,c", "root.p.a.capacity = [memory=1w,vcores=1w]",
        "root.p.b.capacity = [memory=50%,vcores=2]", "root.p.c.capacity = [memory=12288,vcores=86%]", "legacy-queue-mode.enabled = false",
    )  # fmt: skip
    apps = [asking(queue, 99, 1) for queue in ("default", "p.a", "p.b", "p.c", "q")]
    found = imported(tmp_path, text, apps, [node(f"h{n}") for n in range(4)])
    assert {queue.name: tuple(queue.guarantee[r] for r in ("cpu", "memory")) for queue in found.instance.queues} == {
        "default": (4, 4),
        "p": (16, 16),
        "p.a": pytest.approx((1.96, 2)),
        "p.b": (2, 2),
        "p.c": pytest.approx((12.04, 12)),
        "q": (12, 12),
    }
    assert not any("exceed the cluster" in note for note in found.notes)


def test_a_limit_of_0_is_a_limit(tmp_path: Path) -> None:
    """0 % stops a queue, and so does the least amount that YARN does not take for none."""
    text = capacity_file("root.queues = a,b", "root.a.capacity = 0", "root.a.maximum-capacity = 0", "root.b.capacity = 100")
    assert shares(imported(tmp_path, text)) == {"a": 0, "b": 16}
    text = capacity_file(
        "root.queues = a,b", "root.a.capacity = [memory=0]", "root.a.maximum-capacity = [memory=1]", "root.b.capacity = [memory=9]"
    )
    found = imported(tmp_path, text)
    assert shares(found) == {"b": 16}
    assert {(each.number, each.why) for each in found.left_out} == {
        (99, "is larger than all that the queue a may hold, so it can never start")
    }


@pytest.mark.parametrize(("factor", "expected"), [("1", 8), ("0.5", 4), ("1.5", 12), ("3", 16), ("-1", 16), ("", 8)])
def test_one_user_holds_at_most_its_factor_of_the_capacity(tmp_path: Path, factor: str, expected: float) -> None:
    """a has half of 16 cores, and b asks for nothing. Without a factor it is 1, as the documentation says."""
    lines = ["root.queues = a,b", "root.a.capacity = 50", "root.b.capacity = 50", f"root.a.user-limit-factor = {factor}"]
    found = imported(tmp_path, capacity_file(*lines), [asking("a", 99, 1)])
    assert shares(found) == {"a": expected}
    assert any("user-limit-factor" in note for note in found.notes) == (expected < 16)


def test_two_users_hold_their_limits_together_or_each(tmp_path: Path) -> None:
    """Half of 16, factor 0.75: 6 each. With queues as owners, 12 together."""
    lines = ["root.queues = a,b", "root.a.capacity = 50", "root.b.capacity = 50", "root.a.user-limit-factor = 0.75"]
    apps = [asking("x", 3, 1, queue="a", user="ada"), asking("y", 99, 1, queue="a", user="ben")]
    found = imported(tmp_path, capacity_file(*lines), apps)
    assert shares(found) == {"a": 12}
    assert any("several users work in a" in note for note in found.notes)
    assert shares(imported(tmp_path, capacity_file(*lines), apps, users="user")) == {"ada": 3, "ben": 6}


def test_a_least_percentage_divides_a_fifo_queue_among_its_users(tmp_path: Path) -> None:
    """Two users and 50 %: equal. Without it, the first application comes first."""
    lines = ["root.queues = a", "root.a.capacity = 100"]
    apps = [asking(f"application_1_{n}", 99, 1, queue="a", user=user) for n, user in enumerate(("ada", "ben"))]
    assert shares(imported(tmp_path, capacity_file(*lines), apps, users="user")) == {"ada": 16, "ben": 0}
    divided = capacity_file(*lines, "minimum-user-limit-percent = 50")
    assert shares(imported(tmp_path, divided, apps, users="user")) == {"ada": 8, "ben": 8}
    assert any("minimum-user-limit-percent divides a" in note for note in imported(tmp_path, divided, apps).notes)


def test_priorities_come_before_weights_beyond_the_guarantees(tmp_path: Path) -> None:
    """Guarantees 4 and 4 of 16; the rest goes to the queue of the higher priority; below the root in their order."""
    lines = [
        "root.queues = a,b",
        "root.a.capacity = [memory=4096,vcores=4]",
        "root.b.capacity = [memory=4096,vcores=4]",
        "root.b.priority = 5",
    ]
    assert shares(imported(tmp_path, capacity_file(*lines))) == {"a": 8, "b": 8}
    ordered = capacity_file(*lines, "root.ordering-policy = priority-utilization")
    assert shares(imported(tmp_path, ordered)) == {"a": 4, "b": 12}
    lines = [line.replace("root.", "root.top.") for line in lines] + ["root.queues = top", "root.top.capacity = 100"]
    assert shares(imported(tmp_path, capacity_file(*lines, "root.top.ordering-policy = priority-utilization"))) == {"top.a": 4, "top.b": 12}


def test_labels_of_queues(tmp_path: Path) -> None:
    """a may use the label with 75 % of it, b has the rest and no more than that; c may not use it, and inherits nothing."""
    text = capacity_file(
        "root.queues = a,b,c", *(f"root.{name}.capacity = {part}" for name, part in (("a", 25), ("b", 25), ("c", 50))),
        "root.accessible-node-labels = *", "root.accessible-node-labels.gpu.capacity = 100",
        "root.a.accessible-node-labels.gpu.capacity = 75", "root.b.accessible-node-labels.gpu.capacity = 25",
        "root.b.accessible-node-labels.gpu.maximum-capacity = 50", "root.c.accessible-node-labels = ",
    )  # fmt: skip
    found = imported(
        tmp_path, text, [asking("a", 9, 1, label="gpu"), asking("b", 9, 1, label="gpu")], [node("h1"), node("h2", nodeLabels=["gpu"])]
    )
    a, b, c = found.instance.queues
    assert [(quota.name, dict(quota.guarantee), dict(quota.limit)) for quota in b.quotas] == [
        ("partition without label", {"cpu": 2, "memory": 2}, {}),
        ("partition gpu", {"cpu": 2, "memory": 2}, {"cpu": 4, "memory": 4}),
    ]
    assert [quota.name for quota in c.quotas] == ["partition without label"]
    assert dict(a.quotas[1].guarantee) == {"cpu": 6, "memory": 6}


def test_what_a_file_says_beyond_that_is_named_once(tmp_path: Path) -> None:
    """Settings that an instance does not have, those that nobody knows, queues in no list, and queues that are stopped."""
    text = capacity_file(
        "root.queues = a,b", "root.a.capacity = 60", "root.b.capacity = 30",
        "root.a.maximum-applications = 5", "root.b.maximum-applications = 6",
        "root.a.colour = red", "root.ghost.capacity = 5", "root.b.state = STOPPED", "root.a.acl_submit_applications = *", "shade = dark",
        "root.a.accessible-node-labels.gpu.capacity = 5", "root.a.user-settings.ada.weight = 2",
    ).replace("DominantResource", "DefaultResource")  # fmt: skip
    notes = imported(tmp_path, text).notes
    for expected in (
        "2 configured Capacity Scheduler queues have maximum-applications (how many applications it takes), which an instance does not",
        "1 configured Capacity Scheduler queue has the field colour, which this import does not know",
        "1 configured Capacity Scheduler queue has user-settings.NAME.weight",
        "1 Capacity Scheduler file has the field shade",
        "1 queue with settings in no list of queues: root.ghost",
        'the capacities of the queues in "root" add up to 90 %, not to 100 %',
        "1 queue stopped: b; they take no new applications",
        "only memory counts, as the resource-calculator is not the DominantResourceCalculator",
    ):
        assert sum(expected in note for note in notes) == 1, (expected, notes)
    assert not any("acl_" in note for note in notes)


FAIR = """<?xml version="1.0"?>
<allocations>
  <queue name="etl">
    <minResources>4096 mb, 4 vcores</minResources>
    <weight>2.0</weight>
    <schedulingPolicy>fifo</schedulingPolicy>
    <maxRunningApps>50</maxRunningApps>
  </queue>
  <pool name="eng" type="parent">
    <maxResources>vcores=75%, memory-mb=50%</maxResources>
    <queue name="dev"><maxResources>25% cpu, 50% memory</maxResources></queue>
    <queue name="prod"><maxResources>vcores=9</maxResources><weight>3</weight></queue>
  </pool>
  <queue name="adhoc"><minResources>vcores=1, yarn.io/gpu=1</minResources></queue>
  <user name="ada"><maxRunningApps>3</maxRunningApps></user>
  <queueMaxResourcesDefault>50%</queueMaxResourcesDefault>
  <defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>
</allocations>
"""


def test_the_allocation_file_of_the_fair_scheduler(tmp_path: Path) -> None:
    """16 cores, 16 GiB and 4 GPUs: amounts in all ways, defaults, nested queues, and what is named."""
    found = imported(tmp_path, FAIR, [asking("root.etl", 9, 1)], [node("h1", totalResource=amount(8, 4)), node("h2")])
    assert found.instance.queues == (
        fo.Queue("adhoc", None, 1, {"cpu": 1, "memory": 0, "yarn.io/gpu": 1}, {"cpu": 8, "memory": 8, "yarn.io/gpu": 2}),
        fo.Queue("eng", None, 1, limit={"cpu": 12, "memory": 8}),
        fo.Queue("eng.dev", "eng", 1, limit={"cpu": 4, "memory": 8, "yarn.io/gpu": 0}),
        fo.Queue("eng.prod", "eng", 3, limit={"cpu": 9}),
        fo.Queue("etl", None, 2, {"cpu": 4, "memory": 4, "yarn.io/gpu": 0}, {"cpu": 8, "memory": 8, "yarn.io/gpu": 2}, order="listed"),
    )
    assert found.options == {"guarantees": "clamp"}
    for text in ("1 configured Fair Scheduler queue has maxRunningApps", "1 allocation file has user.maxRunningApps"):
        assert sum(text in note for note in found.notes) == 1, found.notes


def test_ways_to_write_amounts_of_gpus(tmp_path: Path) -> None:
    """With names, what is not named has no limit; without them, other resources have none of it."""
    nodes = [node("h1", totalResource=amount(8, 4)), node("h2", totalResource=amount(8, 0))]
    queue = "<queue name='a'><maxResources>{}</maxResources></queue>"
    for text, limit in (
        ("vcores=4", {"cpu": 4}),
        ("vcores=4, yarn.io/gpu=2, memory-mb=1024", {"cpu": 4, "yarn.io/gpu": 2, "memory": 1}),
        ("2048 mb, 4 vcores", {"cpu": 4, "memory": 2, "yarn.io/gpu": 0}),
        ("4 VCORES,2048.5 MB", {"cpu": 4, "memory": 2, "yarn.io/gpu": 0}),
        ("50%", {"cpu": 8, "memory": 8, "yarn.io/gpu": 2}),
        ("12.5% memory, 50% cpu", {"cpu": 8, "memory": 2, "yarn.io/gpu": 0}),
    ):
        file = f"<allocations>{queue.format(text)}</allocations>"
        found = imported(tmp_path, file, [asking("a", 9, 1, 1)], nodes)
        assert dict(found.instance.queues[0].limit) == limit, text


def test_a_root_queue_in_the_allocation_file_and_memory_alone(tmp_path: Path) -> None:
    """Its queues are those below it; the policy fair, which is the default, compares memory."""
    text = "<allocations><queue name='root'><maxResources>50%</maxResources><queue name='a'/><queue name='b'/></queue></allocations>"
    found = imported(tmp_path, text)
    assert [queue.name for queue in found.instance.queues] == ["a", "b"]
    assert any("only memory counts, as the policy fair compares queues by memory alone" in note for note in found.notes)
    assert (found.options, found.notion) == ({"only": "memory"}, "drfh:only=memory")
    assert any("1 configured Fair Scheduler queue has root.maxResources" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<configuration/>", r"line 1: no queue is listed; the property yarn.scheduler.capacity.root.queues must name"),
        ("<scheduler/>", "ask for JSON"),
        ("<?xml version='1.0'?>\n<x/>", r"line 2: there are no queues in <x>; give capacity-scheduler.xml"),
        ("<!DOCTYPE a><configuration/>", "line 1: the file declares a document type"),
        (capacity_file("root.queues = a"), r'the queue "root.a" has no capacity; add the property'),
        (capacity_file("root.queues = a", "root.a.capacity = lots"), r'line 10: the capacity of "root.a" is "lots"; give a percentage'),
        (capacity_file("root.queues = a", "root.a.capacity = 120"), r'the capacity of "root.a" is "120"'),
        (capacity_file("root.queues = a", "root.a.capacity = [cores]"), r'"cores" is no amount of a resource'),
        (capacity_file("root.queues = a,a", "root.a.capacity = 5"), r"a queue is listed twice"),
        (capacity_file("root.queues = a", "root.a.capacity = 5", "root.a.user-limit-factor = -2"), r"give a number >= -1"),
        (capacity_file("root.queues = a", "root.a.capacity = ${x}"), r'no property of this file is "x"'),
        (capacity_file("root.queues = a", "root.a.capacity = 5", "root.a.maximum-capacity = 4w"), r'maximum-capacity of "root.a" is "4w"'),
        ("<allocations/>", "there is no queue in this file"),
        ("<allocations><queue name='a.b'/></allocations>", r'the name of this queue is "a.b"'),
        ("<allocations><queue name='a'><weight>-1</weight></queue></allocations>", r'the weight is "-1"; give a number >= 0'),
        ("<allocations><queue name='a'><minResources>4 cores</minResources></queue></allocations>", r'"4 cores" is no amount'),
        ("<allocations><queue name='a'><minResources>-5 mb, 4 vcores</minResources></queue></allocations>", "is no amount"),
        ("<allocations><queue name='a'/><queue name='root'/></allocations>", 'beside the queue "root" there are other queues'),
        ("<allocations><queue name='Root'/><queue name='a'/></allocations>", 'beside the queue "root" there are other queues'),
        ("<allocations><queue name='ROOT'/></allocations>", "there is no queue in this file"),
        ("<allocations>" + "<queue name='a'>" * 120 + "</queue>" * 120 + "</allocations>", "levels below the root"),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """With the file, the line, and what to do."""
    with pytest.raises(fo.InvalidInstance, match=message):
        imported(tmp_path, text)


def test_a_value_may_name_other_properties(tmp_path: Path) -> None:
    """As in every configuration of Hadoop; a circle is refused."""
    text = capacity_file("root.queues = a", "root.a.capacity = ${part}").replace(
        "</configuration>", "<property><name>part</name><value>100</value></property></configuration>"
    )
    assert dict(imported(tmp_path, text).instance.queues[0].guarantee) == {"cpu": 16, "memory": 16}
    with pytest.raises(fo.InvalidInstance, match="names properties without end"):
        imported(tmp_path, text.replace("100", "${part}"))


def test_every_setting_is_declared_once_and_those_that_are_read_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name has one use; what the readers look at is what is declared as read."""
    for fields in DECLARED:
        names = [name for field in fields.fields for name in field.names]
        assert len(names) == len(set(names)), fields.record

    class Counting(dict[str, Any]):
        used: set[str] = set()

        def get(self, key: str, default: Any = None) -> Any:
            self.used.add(key)
            return super().get(key, default)

        def __contains__(self, key: object) -> bool:
            self.used.add(str(key))
            return super().__contains__(key)

    import fairopt.clusters.yarn.capacity_file as module
    from fairopt.clusters.account import Account
    from fairopt.clusters.yarn.resources import Offer

    offers = [Offer("h", (), {"cpu": 8.0, "memory": 8.0}), Offer("g", ("gpu",), {"cpu": 8.0, "memory": 8.0})]
    settings = module._settings
    monkeypatch.setattr(module, "_settings", lambda root: Counting(settings(root)))
    capacity_info(parse_xml(capacity_file("root.queues = a", "root.a.capacity = 100"), "f"), offers, Account(False))
    of_queue = {key.removeprefix("root.a.") for key in Counting.used if key.startswith("root.a.")}
    assert {key.replace(f"{_LABELS}.gpu.", f"{_LABELS}.LABEL.") for key in of_queue} == set(SETTING.of("read"))
    of_all = {key for key in Counting.used if not key.startswith("root")} - {"priority"}
    assert of_all == set(SETTING_OF_ALL.of("read"))
    account = Account(False)
    fair_info(parse_xml(FAIR, "f"), offers, account)
    read = {*FAIR_QUEUE.of("read"), *ALLOCATION.of("read")}
    assert not any(f"has {name} (" in note for name in read for note in account.notes)


def test_the_answer_about_queues_is_read_as_it_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of both schedulers; fields that are noted or that nobody declared are named with their number, a limit of 2^31 - 1 is none."""
    used: dict[str, set[str]] = {"a": set(), "f": set()}
    get = Part.get

    def counting(part: Part, key: str) -> Part:
        name = part.value.get("queueName") if isinstance(part.value, dict) else None
        if name in used:
            used[name].add(key)
        return get(part, key)

    monkeypatch.setattr(Part, "get", counting)
    first = capacity("a", 50, 80, userLimitFactor=1.0, maxParallelApps=2**31 - 1, defaultPriority=3, colour="red", numApplications=7)
    info = {
        "type": "capacityScheduler",
        "orderingPolicyInfo": "priority-utilization",
        "queues": {"queue": [first, capacity("b", 50, queuePriority=2)]},
    }
    notes = with_queues(tmp_path, info, [running(1, "a")]).notes
    assert [note.partition(",")[0] for note in notes if "Capacity Scheduler queue" in note] == [
        "1 Capacity Scheduler queue has defaultPriority (the priority of applications that state none)",
        "1 Capacity Scheduler queue has the field colour",
    ]
    of_partitions = {"partitionName", "configuredMinResource", "effectiveMinResource", "configuredMaxResource"}  # older answers have one
    assert used["a"] - of_partitions == set(CAPACITY_QUEUE.of("read"))
    root: dict[str, Any] = {"queueName": "root", "childQueues": {"queue": [fair("f", steadyFairResources={}, maxApps=5), fair("g")]}}
    notes = with_queues(tmp_path, {"type": "fairScheduler", "rootQueue": root}, [running(1, "f")]).notes
    assert sum("1 Fair Scheduler queue has maxApps" in note for note in notes) == 1
    root["childQueues"] = {"queue": [fair("f", weight=2), fair("g", weight=1)]}
    with_queues(tmp_path, {"type": "fairScheduler", "rootQueue": root}, [running(1, "f")])
    assert used["f"] - {"queuePath", "queue", "state"} == set(FAIR_ANSWER.of("read"))


def test_containers_that_are_too_large_for_their_queue_have_no_part_of_it(tmp_path: Path) -> None:
    """Of 16: a may hold 4, and b containers of 2 GiB and 3 cores; what is larger never starts, and what runs stays."""
    runs = running(1, "a") | {"allocatedMB": 6144}
    asked = [asking("x", 9, 5, queue="a"), asking("y", 9, 2, queue="a"), asking("z", 9, 2.5, queue="b"), asking("w", 9, 2, queue="b")]
    reasons = {
        "x": "is larger than all that the queue a may hold, so it can never start",
        "z": "is larger than the largest container of the queue b (maximum-allocation), which YARN refuses",
    }
    capacity_queues = [
        "root.queues = a,b", "root.a.capacity = 20", "root.a.maximum-capacity = 25", "root.a.user-limit-factor = -1",
        "root.b.capacity = 80", "root.b.user-limit-factor = -1",
    ]  # fmt: skip
    for largest in (
        ["root.b.maximum-allocation-mb = 2048", "root.b.maximum-allocation-vcores = 3"],
        ["root.b.maximum-allocation = memory-mb=2048,vcores=3"],
    ):
        found = imported(tmp_path, capacity_file(*capacity_queues, *largest), [*asked, runs])
        assert {each.where.rpartition("(")[2].rstrip(")"): each.why for each in found.left_out} == reasons
        assert {each.number for each in found.left_out} == {9}
        assert shares(found)["b"] == pytest.approx(6.4)
    fair_queues = (
        "<allocations><queue name='a'><maxResources>4096 mb, 4 vcores</maxResources></queue>"
        "<queue name='b'><maxContainerAllocation>2048 mb, 3 vcores</maxContainerAllocation></queue></allocations>"
    )
    found = imported(tmp_path, fair_queues, asked)
    assert {each.where.rpartition("(")[2].rstrip(")"): each.why for each in found.left_out} == reasons
    assert shares(found) == pytest.approx({"a": 2, "b": 6})


def test_a_user_below_its_limit_gets_a_container_that_is_larger_than_the_limit(tmp_path: Path) -> None:
    """Half of 16 with the factor 0.25 is 2: one container of 3 GiB for each of two users, whoever the owners are; small ones have 2."""
    lines = ["root.queues = a,b", "root.a.capacity = 50", "root.b.capacity = 50", "root.a.user-limit-factor = 0.25"]
    apps = [asking(user, 9, 3, queue="a", user=user) for user in ("ada", "ben")]
    found = imported(tmp_path, capacity_file(*lines), apps)
    assert shares(found) == pytest.approx({"a": 2})
    assert any(note.startswith("18 containers are larger than what one user may hold in the queue") for note in found.notes)
    by_user = imported(tmp_path, capacity_file(*lines), [*apps, asking("cat", 9, 1, queue="a", user="cat")], users="user")
    assert shares(by_user) == pytest.approx({"ada": 1, "ben": 1, "cat": 2})
    nothing = ["root.queues = a,b", "root.a.capacity = 0", "root.b.capacity = 100", "root.a.user-limit-factor = 1"]
    assert shares(imported(tmp_path, capacity_file(*nothing), apps[:1])) == pytest.approx({"a": 1})
