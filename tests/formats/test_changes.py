"""Changes to a file by names: `--set servers.new.count=4`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fairopt as fo
from fairopt.formats.changes import Changed
from fairopt.formats.syntax import Parsed

LEAVE = "leave the name behind it out"
TAG = "stands for more than plain data, which is not read; remove it"
BODY = "servers: [{name: s, capacity: {gpu: 1}}]\nusers: [{name: u, demand: {gpu: 1}}]\n"
QUEUES = "examples/research-queues.yaml"
LAB = "examples/gpu-lab"
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def refusal(*changes: str, file: str = QUEUES) -> str:
    """Return the message of changes that cannot be made."""
    with pytest.raises(fo.InvalidInstance) as refused:
        fo.load(file, changes=changes)
    return str(refused.value)


@pytest.mark.parametrize("file", [QUEUES, "yaml", "json", "folder"])
def test_a_change_is_the_same_in_every_format(file: str, tmp_path: Path) -> None:
    """Servers, users, queues: the numbers that are named, and no others."""
    base = fo.load(QUEUES)
    path = Path(file)
    if file != QUEUES:
        path = tmp_path / ("folder" if file == "folder" else f"lab.{file}")
        fo.save(base, path)
    changed = fo.load(
        path, changes=["servers.new.count+=2", "users.bob.weight=3", "queues.research.guarantee.gpu=8", "users.dan.demand.cpu*=2"]
    )
    expected = base.replace(
        counts={"new": 6}, weights={"bob": 3}, queues={"research": {"guarantee": {"gpu": 8}}}, demands={"dan": {"cpu": 32}}
    )
    assert changed == expected


def test_values_of_python() -> None:
    """A mapping of paths to values."""
    changed = fo.load(QUEUES, changes={"users.bob.weight": 3, "users.alice.requires": "model = V100", "users.ines.tasks": None})
    by_text = fo.load(QUEUES, changes=["users.bob.weight=3", "users.alice.requires=model = V100", "users.ines.tasks="])
    assert changed == by_text
    assert changed.eligibility[changed.index("alice")].tolist() == [False, True]
    assert changed.tasks[changed.index("ines")] == float("inf")


def test_entries_come_and_go(tmp_path: Path) -> None:
    """A server, a user and a quota; places of those after it are still known."""
    changed = fo.load(
        QUEUES, changes=["servers.big={capacity: {gpu: 8, cpu: 64, memory: 512}, count: 2}", "users.alice=", "queues.vision.quotas.1="]
    )
    assert changed.servers == ("new", "old", "big")
    assert changed.counts.tolist() == [4, 6, 2]
    assert changed.users[0] == "bob"
    assert not any(queue.quotas for queue in changed.queues)
    path = tmp_path / "small.yaml"
    path.write_text(
        "servers: [{name: s, capacity: {gpu: 1}, attributes: {model: A}}]\n"
        "users:\n- {name: a, demand: {gpu: 1}}\n- {name: b, demand: {gpu: 1}, requires: model = A}\n"
    )
    message = refusal("users.a=", "servers.s.attributes=", file=str(path))
    assert message.startswith(f'{path}, line 4 with users.a= and servers.s.attributes=: user "b", requires: ')


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("servers.nwe.count=2", 'there is no server "nwe" (did you mean "new"?)'),
        ("users.zzz.weight=2", 'there is no user "zzz"; the users are alice, bob, ines, carol, dan, course-1, course-2 and visitor'),
        ("server.new.count=2", 'there is no key "server" (did you mean "servers"?)'),
        ("servers.new.cuont=2", 'there is no key "cuont" (did you mean "count"?)'),
        ("users.alice.demand.gup=2", 'user "alice", demand, gup: there is no resource "gup" (did you mean "gpu"?)'),
        ("users.alice.weight=-1", 'user "alice", weight: expected a number >= 0, found -1'),
        ("servers.new.count=1.5", 'server "new", count: expected a whole number >= 0, found 1.5'),
        (
            "queues.teaching.limit.gpu=2",
            'queue "teaching", limit, gpu: the limit of gpu is 2, less than its guarantee of 8; raise or lower one',
        ),
        ("queues.vision.quotas.2.limit.gpu=8", 'there is no quota "2"; the quotas are model = A100'),
        ("servers.new=2", "name what to change of the server, such as servers.new.count=4, or give the whole entry: {...}"),
        ("servers=2", "name the server and what to change, such as servers.new.count=4"),
        ("servers.new.count.x=2", "count is a single value; write servers.new.count=VALUE"),
        ("users.alice.weight+=x", '+= needs a number, found the text "x"'),
        ("servers.new.capacity*=2", "*= needs a number to begin with, and capacity is a mapping"),
        ("users.alice.name=bob", "a change cannot rename; rename it in the file"),
        *(
            (
                f"{kind}.{name}={{name: other, {rest}}}",
                f'the {kind[:-1]} is called "{name}" in front of the = and "other" behind it; {LEAVE}',
            )
            for kind, rest in (("users", "demand: {gpu: 1}"), ("servers", "capacity: {gpu: 1}"), ("queues", "weight: 2"))
            for name in ("added", {"users": "alice", "servers": "new", "queues": "vision"}[kind])
        ),
        ('title=!!python/object/apply:os.system ["id"]', f'the tag "!!python/object/apply:os.system" {TAG}'),
        ("title=!!binary aGk=", f'the tag "!!binary" {TAG}'),
        ("users.alice.requires=!own model", f'the tag "!own" {TAG}'),
        ("users.alice.demand={gpu: !!timestamp 2024-01-01}", f'the tag "!!timestamp" {TAG}'),
        ("users.alice.demand={gpu: 1, gpu: 2}", 'the key "gpu" occurs twice in one mapping; remove one'),
        ("title=*base", "not valid YAML: found undefined alias; correct it there or just before"),
    ],
)
def test_messages_name_the_change_and_what_is_allowed(change: str, message: str) -> None:
    """The checks are those of the file."""
    assert refusal(change) == f"{QUEUES} with {change}: {message}"


def test_a_value_of_a_change_means_what_it_means_in_a_file(tmp_path: Path) -> None:
    """A file refuses the same tags with the same words; what is no YAML at all is text in a change; a name may be given twice."""
    path = tmp_path / "lab.yaml"
    for value in ('!!python/object/apply:os.system ["id"]', "!!binary aGk=", "!own x", "*base"):
        path.write_text(f"title: {value}\n{BODY}")
        with pytest.raises(fo.InvalidInstance) as of_file:
            fo.load(path)
        path.write_text(BODY)
        with pytest.raises(fo.InvalidInstance) as of_change:
            fo.load(path, changes=[f"title={value}"])
        assert str(of_change.value).partition(": ")[2] == str(of_file.value).partition(": ")[2]
    for written, text in (
        ("a: b", "a: b"),
        ('"gpu model" = A100', '"gpu model" = A100'),
        ("!!str 5", "5"),
        ('"!x"', "!x"),
        ("a\nb: c", "a\nb: c"),
    ):
        assert Changed(Parsed("lab.yaml", BODY), [f"title={written}"]).data["title"] == text
    control = "there is a control character, 7, which YAML does not allow; remove it"
    assert refusal("title=a\x07b") == f"{QUEUES} with title=a\\x07b: {control}"
    assert fo.load(path, changes=["users.5={name: 5, demand: {gpu: 1}}"]).users == ("u", "5")


def test_a_change_without_a_value() -> None:
    """No sign at all."""
    assert "a change is PATH=VALUE" in refusal("servers.new")


def test_names_with_dots_and_signs(tmp_path: Path) -> None:
    """The longest name that fits is meant."""
    names = ["node", "node.rack", "a=b", "gpu-1 +3"]
    base = fo.Instance([[4]] * 4, [[1]], servers=names, resources=["nvidia.com/gpu"], users=["x.weight"])
    path = tmp_path / "lab.yaml"
    fo.save(base, path)
    for name in names:
        assert fo.load(path, changes=[f"servers.{name}.count+=1"]) == base.replace(counts={name: 2})
    assert fo.load(path, changes=["users.x.weight.demand.nvidia.com/gpu=2"]) == base.replace(demands=[[2]])


def test_hosts_attributes_and_owners_are_changed(tmp_path: Path) -> None:
    """As everything else; a row whose count alone changes has no hosts any more, in whatever order the changes are."""
    base = fo.Instance(*([[4], [4]], [[1]]), counts=[2, 3], hosts=["a[1-2]", "b[1-3]"], servers=["a", "b"], users=["u"], resources=["cpu"])
    path = tmp_path / "lab.yaml"
    fo.save(base, path)
    changed = fo.load(path, changes=["servers.a.hosts=a[7,9]", "users.u.owner=lab/x", "servers.b.attributes.ssd=true"])
    assert changed == base.replace(hosts={"a": "a[7,9]"}, owners={"u": "lab/x"}, attributes={"b": {"ssd": True}})
    assert fo.load(path, changes=["servers.b.count-=1"]) == base.replace(counts={"b": 2})
    assert fo.load(path, changes=["servers.b.count-=1"]).hosts == (("a1", "a2"), ())
    assert fo.load(path, changes=["servers.b.count=3"]) == base
    for order in (1, -1):
        both = fo.load(path, changes=["servers.b.count=1", "servers.b.hosts=b2"][::order])
        assert both.hosts == (("a1", "a2"), ("b2",))
    with pytest.raises(fo.InvalidInstance) as caught:
        fo.load(path, changes=["servers.b.hosts=b[1-2]"])
    assert str(caught.value) == (
        f'{path} with servers.b.hosts=b[1-2]: server "b", hosts: 2 hosts are named (b[1-2]), but the count is 3; '
        "name all of them or none, or correct the count"
    )


def test_attributes_of_a_table_are_numbers_too() -> None:
    """Tables hold text; a change may be a number."""
    at_home = fo.load(LAB, changes={"servers.desktop.attributes.gpu_memory": 12})
    by_text = fo.load(LAB, changes=["servers.desktop.attributes.gpu_memory=12"])
    speech, desktop = at_home.index("speech"), at_home.servers.index("desktop")
    assert at_home == by_text
    assert fo.load(LAB).eligibility[speech, desktop]
    assert not at_home.eligibility[speech, desktop]


def test_the_cluster_of_a_trace_is_changed_too(tmp_path: Path) -> None:
    """A job asks for what only a changed server has."""
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("user,submit_s,run_s,gpu,cpu,memory,requires\nvision,0,60,1,1,1,gpu_memory >= 96\n")
    none = fo.load_trace(jobs, cluster=LAB)
    some = fo.load_trace(jobs, cluster=LAB, changes=["servers.dgx.attributes.gpu_memory=141"])
    assert none.eligibility is not None
    assert some.eligibility is not None
    assert none.eligibility.tolist() == [[False] * 6]
    assert some.eligibility.tolist() == [[True] + [False] * 5]


def test_a_queue_goes_with_all_that_is_in_it(tmp_path: Path) -> None:
    """The queues below it and their users; who is moved stays, before or after; a queue that comes back keeps its users."""
    base = fo.load(QUEUES)
    without = fo.load(QUEUES, changes=["queues.vision="])
    assert [queue.name for queue in without.queues] == ["research", "language", "teaching", "guests"]
    assert without.users == ("carol", "dan", "course-1", "course-2", "visitor")
    assert without == fo.load(QUEUES, changes={"queues.vision": None})
    data = base.to_dict()
    data["queues"] = [each for each in data["queues"] if each["name"] not in ("vision", "interns")]
    data["users"] = [each for each in data["users"] if each["name"] in without.users]
    (tmp_path / "without.json").write_text(json.dumps(data))
    assert without == fo.load(tmp_path / "without.json")
    for changes in (["users.bob.queue=language", "queues.vision="], ["queues.vision=", "users.bob.queue=language"]):
        moved = fo.load(QUEUES, changes=changes)
        assert moved.queue_of[moved.index("bob")] == "language"
        assert "alice" not in moved.users
    same = fo.load(QUEUES, changes=["queues.teaching=", "queues.teaching={weight: 1}"])
    assert same.users == base.users
    assert "there must be at least one" in refusal("queues.research=", "queues.teaching=", "queues.guests=")
    assert 'there is no queue "reserch" (did you mean "research"?)' in refusal("queues.reserch=")
    assert "with users.bob.weight=-1" in refusal("queues.vision=", "users.bob.queue=language", "users.bob.weight=-1")


def test_servers_and_resources_go_everywhere(tmp_path: Path) -> None:
    """Also from the lists of users, their rates, and quotas; a quota on nothing else goes too, and a user may be left without a server."""
    text = """
resources: [gpu, cpu]
units: {cpu: cores}
servers: [{name: a, capacity: {gpu: 2, cpu: 4}}, {name: b, capacity: {gpu: 1, cpu: 8}}]
queues: [{name: q, guarantee: {gpu: 1, cpu: 1}, quotas: [{servers: [a], limit: {gpu: 1}}, {servers: [a, b], limit: {gpu: 2, cpu: 3}}]}]
users:
- {name: x, queue: q, demand: {gpu: 1, cpu: 1}, servers: [a]}
- {name: y, queue: q, demand: {cpu: 1}, servers: [a, b]}
"""
    path = tmp_path / "small.yaml"
    path.write_text(text)
    left = fo.load(path, changes=["servers.a="])
    assert left.servers == ("b",)
    assert left.eligibility.tolist() == [[False], [True]]
    assert [quota.servers for quota in left.queues[0].quotas] == [("b",)]
    left = fo.load(path, changes=["resources.cpu=", "users.y="])
    assert (left.resources, left.users, left.units) == (("gpu",), ("x",), {})
    assert left.queues[0].guarantee == {"gpu": 1}
    assert [dict(quota.limit) for quota in left.queues[0].quotas] == [{"gpu": 1}, {"gpu": 2}]
    assert left == fo.load(path, changes={"resources.cpu": None, "users.y": None})
    with pytest.raises(fo.InvalidInstance, match=r"a resource has no value; nothing after = removes it"):
        fo.load(path, changes=["resources.cpu=4"])
    with pytest.raises(fo.InvalidInstance, match=r'there is no resource "cup" \(did you mean "cpu"\?\)'):
        fo.load(path, changes=["resources.cup="])


def test_python_removes_a_queue_as_a_change_does() -> None:
    """With the queues and users in it, but for a user who is moved elsewhere."""
    base = fo.load(QUEUES)
    for queue in base.queues:
        assert base.replace(queues={queue.name: None}) == fo.load(QUEUES, changes=[f"queues.{queue.name}="])
    moved = base.replace(queues={"research": None}, queue_of={"alice": "guests"})
    assert set(moved.users) == {"alice"} | {
        name for name, queue in zip(base.users, base.queue_of, strict=True) if queue in ("teaching", "guests")
    }
    assert moved.queue_of[moved.index("alice")] == "guests"


def test_named_limits_go_with_a_queue() -> None:
    """Python and the command line leave the same of them."""
    limits = [fo.Limit("both", 9, resource="gpu", queues=["research", "teaching"]), fo.Limit("one", 3, users=["alice"])]
    base = fo.load(QUEUES).replace(limits=limits)
    left = base.replace(queues={"research": None})
    assert [(limit.name, limit.queues) for limit in left.limits] == [("both", ("teaching",))]


def test_a_limit_of_queues_goes_with_its_users(tmp_path: Path) -> None:
    """Of "language" nobody is left, nor of the list of "two" below its queues; "three" still has bob; Python leaves the same."""
    limits = [
        fo.Limit("one", 9, queues=["language"]),
        fo.Limit("two", 9, queues=["language"], users=["carol", "bob"]),
        fo.Limit("three", 9, queues=["research"], users=["carol", "bob"]),
    ]
    base = fo.load(QUEUES).replace(limits=limits)
    fo.save(base, tmp_path / "limited.yaml")
    left = fo.load(tmp_path / "limited.yaml", changes=["users.carol=", "users.dan="])
    assert left.limits == (fo.Limit("three", 9, queues=["research"], users=["bob"]),)
    two = fo.Limit("two", 9, queues=["language", "research"], users=["carol", "ines"])
    assert base.replace(limits=[two], queue_of={"ines": "guests"}).replace(queues={"language": None}).limits == ()


def test_moving_somebody_out_of_a_limit_is_refused(tmp_path: Path) -> None:
    """That is a change of its own, so the limit may be a mistake."""
    fo.save(fo.load(QUEUES).replace(limits=[fo.Limit("one", 9, queues=["guests"])]), tmp_path / "limited.yaml")
    assert 'limit "one": it selects nobody' in refusal("users.visitor.queue=teaching", file=str(tmp_path / "limited.yaml"))


@pytest.mark.parametrize("part", ["servers: {new: {capacity: {cpu: 4}}}\nusers: []", "servers: []\nusers: [a]", "servers: 4\nusers: []"])
def test_a_document_of_another_shape_is_refused_as_without_changes(part: str, tmp_path: Path) -> None:
    """Nobody can change an entry where entries are no list; the message is that of the file itself."""
    path = tmp_path / "lab.yaml"
    path.write_text(f"resources: [cpu]\n{part}\n")
    said = []
    for changes in ((), ["users.a.weight=2"]):
        with pytest.raises(fo.InvalidInstance) as refused:
            fo.load(path, changes=changes)
        said.append(str(refused.value))
    assert said[0] == said[1]
