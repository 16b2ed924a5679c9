"""Queues in documents: what they mean, and what is said about those that mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app
from fairopt.formats.document import instance_from
from fairopt.formats.syntax import Parsed

# The bad queue of most cases below stands on line 7, the bad user on line 9.
TOP = """\
resources: [gpu, cpu]
servers:
- {name: A, capacity: {gpu: 8, cpu: 64}, attributes: {model: A100}}
- {name: B, capacity: {gpu: 4, cpu: 32}, attributes: {model: V100}}
queues:
- {name: research, guarantee: {gpu: 8}}
"""
USERS = "users:\n- {name: alice, queue: research, demand: {gpu: 1}}\n"


def refused(text: str, file: str = "c.yaml") -> str:
    """Return the message with which a text is refused."""
    with pytest.raises(fo.InvalidInstance) as caught:
        instance_from(Parsed(file, text))
    return str(caught.value)


def test_every_key() -> None:
    """The same instance by the constructor; what has no end is no limit."""
    instance = instance_from(
        Parsed(
            "c.yaml",
            TOP
            + """\
- name: vision
  parent: research
  weight: 0
  guarantee: {gpu: 2, cpu: 1.5}
  limit: {gpu: 6, cpu: .inf}
  lending_limit: {gpu: 1}
  tier: 2
  quotas:
  - {on: model = A100, guarantee: {gpu: 4}, limit: {gpu: 5}, lending_limit: {gpu: 0}}
  - {servers: [B, A], limit: {cpu: 9}, name: all}
  - {servers: [B, A], on: model = V100, limit: {cpu: 8.0}}
  - {servers: [B]}
users:
- {name: alice, queue: vision, demand: {gpu: 1}, weight: 0, guarantee: 3, tasks: 3}
- {name: bob, demand: {gpu: 1}, queue: }
""",
        )
    )
    vision = fo.Queue(
        *("vision", "research", 0, {"gpu": 2, "cpu": 1.5}, {"gpu": 6}, {"gpu": 1}, 2),
        quotas=[
            fo.Quota(["A"], {"gpu": 4}, {"gpu": 5}, {"gpu": 0}, "model = A100"),
            fo.Quota(["B", "A"], limit={"cpu": 9}, name="all"),
            fo.Quota(["B"], limit={"cpu": 8}, name="model = V100"),
            fo.Quota(["B"]),
        ],
    )
    assert instance.queues == (fo.Queue("research", guarantee={"gpu": 8}), vision)
    assert instance.queue_of == ("vision", None)
    assert instance.guarantees.tolist() == [3, 0]
    assert instance.weights.tolist() == [0, 1]


QUEUES = [
    # Numbers
    ("{name: q, weight: -1}", 'queue "q", weight: expected a number >= 0, found -1'),
    ("{name: q, weight: .nan}", 'queue "q", weight: expected a finite number, found nan'),
    ("{name: q, weight: {gpu: 1}}", 'queue "q", weight: expected a number, found a mapping'),
    (
        "{name: q, weight: 1e-80}",
        'queue "q": its weight is 1e-80; it must be 0 or between 1e-60 and 1e+60: multiply all weights by one number',
    ),
    ("{name: q, tier: 1.5}", 'queue "q", tier: expected a whole number, found 1.5'),
    ("{name: q, tier: high}", 'queue "q", tier: expected a whole number, found the text "high"'),
    ("{name: q, guarantee: {gpu: -1}}", 'queue "q", guarantee, gpu: expected a number >= 0, found -1'),
    ("{name: q, guarantee: {gpu: .inf}}", 'queue "q", guarantee, gpu: expected a finite number, found inf'),
    ("{name: q, limit: {gpu: .nan}}", 'queue "q", limit, gpu: expected a number >= 0, found nan'),
    ("{name: q, guarantee: 8}", 'queue "q", guarantee: expected a mapping such as {cpu: 4}, found 8'),
    (
        "{name: q, guarantee: {gpu: 8 gb}}",
        'queue "q", guarantee, gpu: expected a number, found the text "8 gb"; gb is no unit; write 8GB',
    ),
    # Names
    ("{weight: 1}", 'queue 2: "name" is missing; add name: A'),
    ("{name: 7}", 'queue 2, name: expected text, found 7; write it in quotes: "7"'),
    ("{name: research}", 'queue "research", name: "research" occurs twice (first on line 6); names must be unique: rename or remove one'),
    ("{name: q, wieght: 1}", 'queue "q", wieght: unknown key "wieght" (did you mean "weight"?)'),
    (
        "{name: q, demand: 1}",
        'queue "q", demand: unknown key "demand"; the keys here are name, parent, weight, guarantee, limit, lending_limit, tier, quotas, '
        "order",
    ),
    ("{name: q, limit: {gpus: 1}}", 'queue "q", limit, gpus: there is no resource "gpus" (did you mean "gpu"?)'),
    ("{name: q, lending_limit: {disk: 1}}", 'queue "q", lending_limit, disk: there is no resource "disk"; the resources are gpu and cpu'),
    # The tree
    ("{name: q, parent: reserch}", 'queue "q", parent: there is no queue "reserch" (did you mean "research"?); leave it out for the root'),
    ("{name: q, parent: root}", 'queue "q", parent: there is no queue "root"; the queues are research and q; leave it out for the root'),
    ("{name: q, parent: q}", 'queue "q", parent: the parents of queues go round in a circle: q -> q; one must be in the root'),
    # What does not fit together
    (
        "{name: q, guarantee: {gpu: 8}, limit: {gpu: 4}}",
        'queue "q", limit, gpu: the limit of gpu is 4, less than its guarantee of 8; raise or lower one',
    ),
    (
        "{name: q, lending_limit: {gpu: 4}}",
        'queue "q", lending_limit, gpu: it has a lending limit of gpu but no guarantee of it to lend; give it a guarantee',
    ),
    # Quotas
    ("{name: q, quotas: {gpu: 8}}", 'queue "q", quotas: expected a list such as [{on: model = A100, limit: {gpu: 8}}], found a mapping'),
    ("{name: q, quotas: [8]}", 'queue "q", quotas, item 1: expected a mapping of keys to values, found 8'),
    (
        "{name: q, quotas: [{limit: {gpu: 8}}]}",
        'queue "q", quotas, item 1: names no servers; '
        "add on: model = A100, or servers: [A], or give the queue itself a guarantee or a limit",
    ),
    (
        "{name: q, quotas: [{servers: [A, C]}]}",
        'queue "q", quotas, item 1, servers, item 2: there is no server "C"; the servers are A and B',
    ),
    (
        "{name: q, quotas: [{servers: [A, A]}]}",
        'queue "q", quotas, item 1, servers, item 2: "A" occurs twice (first on line 7); names must be unique: rename or remove one',
    ),
    (
        "{name: q, quotas: [{servers: []}]}",
        'queue "q", quotas, item 1, servers: no server is in this group; '
        "compare it with the attributes of the servers, or remove the quota",
    ),
    (
        "{name: q, quotas: [{on: model = H100}]}",
        'queue "q", quotas, item 1, on: no server is in this group; compare it with the attributes of the servers, or remove the quota',
    ),
    (
        "{name: q, quotas: [{on: model = V100, servers: [A]}]}",
        'queue "q", quotas, item 1, on: no server is in this group; compare it with the attributes of the servers, or remove the quota',
    ),
    ("{name: q, quotas: [{on: modl = A100}]}", 'queue "q", quotas, item 1, on: no server has the attribute "modl" (did you mean "model"?)'),
    (
        "{name: q, quotas: [{on: A100}]}",
        'queue "q", quotas, item 1, on: "A100" has no operator; write attribute = value, or one of != in, not in, < <= > >=',
    ),
    (
        "{name: q, quotas: [{on: model = A100, limit: {gpu: -1}}]}",
        'queue "q", quotas, item 1, limit, gpu: expected a number >= 0, found -1',
    ),
    (
        "{name: q, quotas: [{on: model = A100, limit: {gpu: 1}, guarantee: {gpu: 2}}]}",
        'queue "q", quotas, item 1, limit, gpu: the limit of gpu is 1, less than its guarantee of 2; raise or lower one',
    ),
    (
        "{name: q, quotas: [{on: model = A100, guarantee: {gpu: 1e70}}]}",
        'queue "q", quotas, item 1: the guarantee of gpu is 1e+70; it must be 0 or between 1e-60 and 1e+60: measure in another unit',
    ),
    (
        "{name: q, quotas: [{on: model = A100, limits: {gpu: 1}}]}",
        'queue "q", quotas, item 1, limits: unknown key "limits" (did you mean "limit"?)',
    ),
]


@pytest.mark.parametrize(("queue", "message"), QUEUES)
def test_refused_queues(queue: str, message: str) -> None:
    """What is wrong with a queue."""
    assert refused(f"{TOP}- {queue}\n{USERS}") == f"c.yaml, line 7: {message}"


@pytest.mark.parametrize(
    ("user", "message"),
    [
        (
            "queue: reserch",
            'user "a", queue: there is no queue "reserch" (did you mean "research"?); leave it out for the root',
        ),
        ("queue: [research]", 'user "a", queue: expected text, found a list'),
        ("guarantee: -1", 'user "a", guarantee: expected a number >= 0, found -1'),
        ("guarantee: .inf", 'user "a", guarantee: expected a finite number, found inf'),
        ("guarantee: {gpu: 1}", 'user "a", guarantee: expected a number, found a mapping'),
        ("guarantee: 4, tasks: 3", 'user "a", guarantee: 4 tasks are guaranteed, but it has 3; raise or lower one'),
    ],
)
def test_refused_users(user: str, message: str) -> None:
    """What is wrong with a user in a queue."""
    assert refused(f"{TOP}{USERS}- {{name: a, demand: {{gpu: 1}}, {user}}}\n") == f"c.yaml, line 9: {message}"


def test_a_user_in_a_queue_where_there_are_none() -> None:
    """The message says where queues stand."""
    text = "servers: [{name: A, capacity: {x: 1}}]\nusers: [{name: a, queue: q, demand: {x: 1}}]"
    assert refused(text) == (
        'c.yaml, line 2: user "a", queue: there is no queue "q"; there are no queues; add it under "queues:", or in queues.csv; '
        "leave it out for the root"
    )


def test_the_line_of_a_circle_is_that_of_a_queue_in_it() -> None:
    """Not that of a queue which leads to it."""
    queues = "- {name: a, parent: b}\n- name: b\n  parent: c\n- {name: c, parent: b}\n"
    assert refused(TOP + queues + USERS) == (
        'c.yaml, line 9: queue "b", parent: the parents of queues go round in a circle: b -> c -> b; one must be in the root'
    )


def test_lines_of_json() -> None:
    """As of YAML."""
    text = """{
  "servers": [{"name": "A", "capacity": {"gpu": 8}}],
  "queues": [
    {"name": "q",
     "quotas": [{"servers": ["A"],
                 "limit": {"gpu": -2}}]}
  ],
  "users": [{"name": "alice", "demand": {"gpu": 1}}]
}"""
    assert refused(text, "c.json") == 'c.json, line 6: queue "q", quotas, item 1, limit, gpu: expected a number >= 0, found -2'


def test_unknown_keys_without_end() -> None:
    """All are counted, in quotas too."""
    keys = ", ".join(f"k{j}: 1" for j in range(300))
    message = refused(f"{TOP}- {{name: q, quotas: [{{on: model = A100, {keys}}}]}}\n{USERS}")
    assert message.startswith("300 mistakes:\n")
    assert 'c.yaml, line 7: queue "q", quotas, item 1, k0: unknown key "k0"; the keys here are on, servers, name' in message
    assert message.endswith("\nand 290 more")


def test_the_command_line_says_it_without_a_traceback(tmp_path: Path) -> None:
    """Exit status 2."""
    path = tmp_path / "c.yaml"
    path.write_text(f"{TOP}- {{name: q, parent: q}}\n{USERS}")
    result = CliRunner().invoke(app, ["solve", str(path)])
    assert result.exit_code == 2
    assert "line 7" in result.stderr
    assert "Traceback" not in result.output


def test_yaml_of_queues_is_readable(tmp_path: Path) -> None:
    """What has its default is left out, and the groups of quotas are lists of servers."""
    quotas = [fo.Quota(["A"], limit={"gpu": 4}, name="model = A100")]
    instance = fo.Instance(
        *([[8]], [[1], [1]]),
        queues=[fo.Queue("research", weight=2, guarantee={"gpu": 8}), fo.Queue("vision", "research", quotas=quotas)],
        queue_of=["vision", None],
        guarantees=[2, 0],
        weights=[0, 1],
        users=["alice", "bob"],
        servers=["A"],
        resources=["gpu"],
    )
    fo.save(instance, tmp_path / "c.yaml")
    assert (tmp_path / "c.yaml").read_text() == (
        "resources: [gpu]\n"
        "servers:\n"
        "- name: A\n"
        "  capacity: {gpu: 8}\n"
        "queues:\n"
        "- name: research\n"
        "  weight: 2\n"
        "  guarantee: {gpu: 8}\n"
        "- name: vision\n"
        "  parent: research\n"
        "  quotas:\n"
        "  - servers: [A]\n"
        "    limit: {gpu: 4}\n"
        "    name: model = A100\n"
        "users:\n"
        "- name: alice\n"
        "  demand: {gpu: 1}\n"
        "  weight: 0\n"
        "  queue: vision\n"
        "  guarantee: 2\n"
        "- name: bob\n"
        "  demand: {gpu: 1}\n"
    )
    assert fo.load(tmp_path / "c.yaml") == instance
