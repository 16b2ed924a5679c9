"""What YAML and JSON documents mean, and what is said about those that mean nothing."""

from __future__ import annotations

import copy
import difflib
import json
import re
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from pydantic import ValidationError
from strategies import instances

import fairopt as fo
from fairopt import formats
from fairopt.errors import InvalidInstance
from fairopt.formats import syntax, traces
from fairopt.formats.document import instance_from
from fairopt.formats.messages import Source, keep_invalid
from fairopt.formats.syntax import Parsed
from fairopt.instance import Instance

# The bad user of most cases below stands on line 5.
CLUSTER = """\
servers:
- {name: A, capacity: {cpu: 4, memory: 8}, attributes: {gpu: V100, cores: 4}}
- {name: B, capacity: {cpu: 4}}
users:
"""


def yaml(text: str) -> Instance:
    """Return the instance of a YAML text."""
    return instance_from(Parsed("c.yaml", text))


def refused(file: str, text: str) -> str:
    """Return the message with which a text is refused."""
    with pytest.raises(InvalidInstance) as caught:
        instance_from(Parsed(file, text))
    return str(caught.value)


# What documents mean ---------------------------------------------------------------------------------------------------------------


def test_every_key() -> None:
    """The example of the documentation, key by key."""
    instance = yaml("""
title: everything
description: at once
resources: [memory, cpu, gpu]
servers:
  - name: A
    capacity: {cpu: 9, memory: 12}
    count: 8
    hosts: a[1-3,5,7-10]
    attributes: {gpu_model: V100, cores: 4, ssd: true, load: 0.5}
  - {name: B, capacity: {memory: 1e1}, attributes: {gpu_model: T4}}
users:
  - name: alice
    demand: {cpu: 1, memory: 2}
    weight: {memory: 2, cpu: 1, gpu: 4}
    owner: lab/vision
    tasks: 100
    servers: [A, B]
    requires: gpu_model in V100|T4; cores >= 4
    rates: {A: 3.0}
  - {name: bob, demand: {memory: 1}, weight: {cpu: 1, memory: 1, gpu: 1}, tasks: .inf, rates: {A: 1, B: 2}, servers: [B]}
""")
    assert instance == Instance(
        [[12, 9, 0], [10, 0, 0]],
        [[2, 1, 0], [1, 0, 0]],
        weights=[[2, 1, 4], [1, 1, 1]],
        eligibility=[[1, 0], [0, 1]],
        counts=[8, 1],
        tasks=[100, np.inf],
        rates=[[3, 0], [1, 2]],
        hosts=[["a1", "a2", "a3", "a5", "a7", "a8", "a9", "a10"], []],
        attributes=[{"gpu_model": "V100", "cores": 4, "ssd": True, "load": 0.5}, {"gpu_model": "T4"}],
        owners=["lab/vision", None],
        users=["alice", "bob"],
        servers=["A", "B"],
        resources=["memory", "cpu", "gpu"],
    )


def test_resources_come_in_order_of_appearance() -> None:
    """Without a list of resources, the servers' capacities are one."""
    text = "servers: [{name: A, capacity: {b: 1}}, {name: B, capacity: {c: 1, a: 1, b: 1}}]\nusers: [{name: u, demand: {a: 1}}]"
    assert yaml(text).resources == ("b", "c", "a")


@pytest.mark.parametrize(
    ("written", "value"),
    [("1e3", 1000.0), ("1e-6", 1e-6), ("1E+2", 100.0), ("010", 10.0), ("0x10", 16.0), ("0o10", 8.0), (".5", 0.5), ("5.", 5.0), ("+1", 1.0)],
)
def test_numbers_of_yaml_1_2(written: str, value: float) -> None:
    """PyYAML alone reads the first two as text and 010 as eight."""
    assert yaml(CLUSTER + f"- {{name: a, demand: {{cpu: {written}}}}}").demands[0, 0] == value


@pytest.mark.parametrize("name", ["yes", "no", "on", "1:30", "2024-01-01", "1_000", "a b", "=", "é"])
def test_text_of_yaml_1_2_needs_no_quotes(name: str) -> None:
    """PyYAML alone reads most of these as true, false, a time, a date or a number."""
    assert yaml(CLUSTER + f"- {{name: {name}, demand: {{cpu: 1}}}}").users == (name,)


def test_aliases_stand_for_what_they_name() -> None:
    """Anchors and aliases are plain YAML."""
    instance = yaml(CLUSTER + "- {name: a, demand: &small {cpu: 1, memory: 2}}\n- {name: b, demand: *small}")
    assert instance.demands.tolist() == [[1, 2], [1, 2]]


def test_a_file_of_nested_aliases_is_read_in_no_time() -> None:
    """A "billion laughs": nine levels of nine aliases would be 10^9 lists if each were made anew."""
    lists = "\n".join(f"a{j}: &a{j} [{', '.join([f'*a{j - 1}' if j else 'x'] * 9)}]" for j in range(10))
    assert refused("c.yaml", lists).startswith("c.yaml: the aliases stand for more than 1,000,000 values")


def test_no_server_is_not_all_servers() -> None:
    """An empty list is no server, as eligibility nowhere is saved."""
    assert yaml(CLUSTER + "- {name: a, demand: {cpu: 1}, servers: []}").unservable == ("a",)


# What is refused -------------------------------------------------------------------------------------------------------------------

NOT_DOCUMENTS = [
    ("", "c.yaml: the file is empty; describe the servers and the users in it"),
    ("# only this\n", 'c.yaml: the file holds no data; describe the servers and the users under the keys "servers" and "users"'),
    ("- a\n- b", 'c.yaml: the file holds a list of 2, not a mapping; its outermost keys must be "servers" and "users"'),
    ("hello", 'c.yaml: the file holds only \'hello\', not a mapping; its outermost keys must be "servers" and "users"'),
    (
        "a: [1,\n b: 2\n",
        "c.yaml, line 3: not valid YAML: while parsing a flow sequence, did not find expected ',' or ']'; correct it there or just before",
    ),
    (
        "users:\n\t- a",
        "c.yaml, line 2: not valid YAML: while scanning for the next token, found character that cannot start any token; "
        "correct it there or just before",
    ),
    ("a: 1\nb: \x07", "c.yaml, line 2: there is a control character, 7, which YAML does not allow; remove it"),
    (
        "a: 1\n---\nb: 2",
        "c.yaml, line 2: not valid YAML: expected a single document in the stream, but found another document; "
        "correct it there or just before",
    ),
    ("a: *x", "c.yaml, line 1: not valid YAML: found undefined alias; correct it there or just before"),
    ("a:\n  &x [*x]", "c.yaml, line 2: this alias refers to something that contains it; write the value out instead"),
    (
        "a: !!python/object/apply:os.system [ls]",
        'c.yaml, line 1: the tag "!!python/object/apply:os.system" stands for more than plain data, which is not read; remove it',
    ),
    ("a: !!set {b}", 'c.yaml, line 1: the tag "!!set" stands for more than plain data, which is not read; remove it'),
    ("a: 1\na: 2", 'c.yaml, line 2: the key "a" occurs twice in one mapping; remove one'),
    ("[a]: 1", "c.yaml, line 1: a key is a list or a mapping; keys are text"),
    ("a: !!int b", 'c.yaml, line 1: "b" cannot be read as a number; give digits only'),
    (
        "[" * 60_000,  # libyaml alone overflows the stack of the process
        "c.yaml, line 1: not valid YAML: lists or mappings nested more than 50 deep; correct it there or just before",
    ),
    (
        "é: [\n" + "[é, é: [\n" * 3_000,  # 2 on line 1, then 3 a line: the 50th is on line 17, and holds the 51st
        "c.yaml, line 17: not valid YAML: lists or mappings nested more than 50 deep; correct it there or just before",
    ),
    (
        "servers: []\nusers: [3]",
        "2 mistakes:\nc.yaml, line 1: servers: the list is empty; there must be at least one of the servers\n"
        "c.yaml, line 2: user 1: expected a mapping of keys to values, found 3",
    ),
    (CLUSTER.replace("users:", "users: []"), "c.yaml, line 4: users: the list is empty; there must be at least one of the users"),
    (CLUSTER, "c.yaml, line 4: users: expected a list, found nothing"),
    (CLUSTER.replace("users:", ""), 'c.yaml: "users" is missing; list the users under "users:"'),
    (
        CLUSTER.replace("users:", "user: []"),
        'c.yaml, line 4: user: unknown key "user" (did you mean "users"?)',
    ),
    ("title: 3\n" + CLUSTER + "- {name: a, demand: {cpu: 1}}", 'c.yaml, line 1: title: expected text, found 3; write it in quotes: "3"'),
    (
        "servers: {A: 3}\nusers: [{name: a, demand: {cpu: 1}}]",
        "c.yaml, line 1: servers: expected a list such as [A, B], found a mapping",
    ),
    (
        "resources: [cpu, memory, cpu]\n" + CLUSTER + "- {name: a, demand: {cpu: 1}}",
        'c.yaml, line 1: resources, item 3: "cpu" occurs twice (first on line 1); names must be unique: rename or remove one',
    ),
    (
        "resources: [cpu]\n" + CLUSTER + "- {name: a, demand: {cpu: 1}}",
        'c.yaml, line 3: server "A", capacity, memory: there is no resource "memory"; the resources are cpu',
    ),
    (
        "servers:\n- {name: a, capacity: {}}\nusers: [{name: a, demand: {}, tasks: 1}]",
        "c.yaml, line 1: servers: no server has a resource; give each a capacity such as {cpu: 9, memory: 12}",
    ),
    (CLUSTER + '- {name: "\\x1c", demand: {cpu: 1}}', "c.yaml: user label 1 is empty; give every user a name"),
]


@pytest.mark.parametrize(("text", "message"), NOT_DOCUMENTS)
def test_refused_documents(text: str, message: str) -> None:
    """What is wrong with the file as a whole."""
    assert refused("c.yaml", text) == message


SERVERS = [
    ("{name: S, capacity: {x: -1}}", 'server "S", capacity, x: expected a number >= 0, found -1'),
    ("{name: S, capacity: {x: .inf}}", 'server "S", capacity, x: expected a finite number, found inf'),
    ("{name: S, capacity: [1]}", 'server "S", capacity: expected a mapping such as {cpu: 9, memory: 12}, found a list'),
    ("{name: S}", 'server "S": "capacity" is missing; add capacity: {cpu: 9, memory: 12}'),
    ("{name: S, capacity: {x: 1}, count: 1.5}", 'server "S", count: expected a whole number >= 0, found 1.5'),
    ("{name: S, capacity: {x: 1}, count: -1}", 'server "S", count: expected a number >= 0, found -1'),
    ("{name: S, capacity: {x: 1}, coutn: 1}", 'server "S", coutn: unknown key "coutn" (did you mean "count"?)'),
    (
        "{name: S, capacity: {x: 1}, attributes: {a: [1]}}",
        'server "S", attributes, a: expected text, a finite number, true or false, found a list; give it such a value or leave the key out',
    ),
    (
        "{name: S, capacity: {x: 1}, attributes: {a: .nan}}",
        'server "S", attributes, a: expected text, a finite number, true or false, found nan; give it such a value or leave the key out',
    ),
    (
        "{name: S, capacity: {x: 1}, hosts: 7}",
        'server "S", hosts: expected names of hosts such as cn[1,3,5], or a list of names, found 7; '
        "give it such a value or leave the key out",
    ),
    (
        "{name: S, capacity: {x: 1}, hosts: [a, 7]}",
        'server "S", hosts: expected names of hosts such as cn[1,3,5], or a list of names, found a list; '
        "give it such a value or leave the key out",
    ),
    ("{name: S, capacity: {x: 1}, hosts: 'a[1-'}", 'server "S", hosts: "a[1-" has brackets that do not close'),
    (
        "{name: S, capacity: {x: 1}, count: 3, hosts: 'a[1-2]'}",
        'server "S", hosts: 2 hosts are named (a[1-2]), but the count is 3; name all of them or none, or correct the count',
    ),
    ("{name: S, capacity: {x: 1}, hosts: r1}", 'server "S", hosts: the host "r1" is in the row "R", too; a host is in one row, once'),
    (
        "{name: S, capacity: {x: 1}, count: 1000000000, hosts: 'a[1-1000000000]'}",
        'server "S", hosts: the ranges of "a[1-1000000000]" name more than 1,000,000 hosts with those before them',
    ),
    (
        "{name: R, capacity: {x: 1}}",
        'server "R", name: "R" occurs twice (first on line 4); names must be unique: rename or remove one',
    ),
]


@pytest.mark.parametrize(("server", "message"), SERVERS)
def test_refused_servers(server: str, message: str) -> None:
    """What is wrong with a server."""
    text = f"users:\n- {{name: a, demand: {{x: 1}}}}\nservers:\n- {{name: R, capacity: {{x: 1}}, hosts: r1}}\n- {server}\n"
    assert refused("c.yaml", text) == f"c.yaml, line 5: {message}"


USERS = [
    ("{name: 001, demand: {cpu: 1}}", 'user 1, name: expected text, found 1; write it in quotes: "001"'),
    ("{name: true, demand: {cpu: 1}}", 'user 1, name: expected text, found true; write it in quotes: "true"'),
    ("{name: , demand: {cpu: 1}}", "user 1, name: expected text, found nothing; give it a value or leave the key out"),
    ("{name: ' ', demand: {cpu: 1}}", 'user " ", name: expected a name, found the text " "; give one that is not blank'),
    ("{demand: {cpu: 1}}", 'user 1: "name" is missing; add name: A'),
    ("3", "user 1: expected a mapping of keys to values, found 3"),
    ("{name: a, demnd: {cpu: 1}}", 'user "a", demnd: unknown key "demnd" (did you mean "demand"?)'),
    (
        "{name: a, demand: {cpu: 1}, 3: 4}",
        'user "a", 3: unknown key "3"; the keys here are name, demand, weight, queue, owner, guarantee, tasks, parallelism, servers, '
        "requires, on, rates",
    ),
    ("{name: a}", 'user "a": "demand" is missing; add demand: {cpu: 1, memory: 2}'),
    ("{name: a, demand: 3}", 'user "a", demand: expected a mapping such as {cpu: 1, memory: 2}, found 3'),
    ("{name: a, demand: {cpu: -1}}", 'user "a", demand, cpu: expected a number >= 0, found -1'),
    ("{name: a, demand: {cpu: .nan}}", 'user "a", demand, cpu: expected a finite number, found nan'),
    ("{name: a, demand: {cpu: 1e999}}", 'user "a", demand, cpu: expected a finite number, found inf'),
    (
        "{name: a, demand: {cpu: 2 gb}}",
        'user "a", demand, cpu: expected a number, found the text "2 gb"; gb is no unit; write 2GB',
    ),
    ("{name: a, demand: {cpu: '2'}}", 'user "a", demand, cpu: expected a number, found the text "2"; write digits without quotes or unit'),
    ("{name: a, demand: {cpu: true}}", 'user "a", demand, cpu: expected a number, found true'),
    ("{name: a, demand: {cpu: }}", 'user "a", demand, cpu: expected a number, found nothing; give it a value or leave the key out'),
    (
        "{name: a, demand: {cpu: 1" + "0" * 400 + "}}",
        'user "a", demand, cpu: expected a number that floating point can hold, '
        "found 100000000000000000...0000000000000000000; give a smaller one",
    ),
    ("{name: a, demand: {1: 1}}", 'user "a", demand, key 1: expected text, found 1; write it in quotes: "1"'),
    ("{name: a, demand: {cpus: 1}}", 'user "a", demand, cpus: there is no resource "cpus" (did you mean "cpu"?)'),
    ("{name: a, demand: {disk: 1}}", 'user "a", demand, disk: there is no resource "disk"; the resources are cpu and memory'),
    (
        "{name: a, demand: {cpu: 0}}",
        'user "a": demands nothing and has no task limit, so it could run any number of tasks; give it a demand > 0 or a number of tasks',
    ),
    ("{name: a, demand: {cpu: 1}, weight: -1}", 'user "a", weight: expected a number >= 0, found -1'),
    ("{name: a, demand: {cpu: 1}, weight: .nan}", 'user "a", weight: expected a finite number, found nan'),
    ("{name: a, demand: {cpu: 1}, weight: .inf}", 'user "a", weight: expected a finite number, found inf'),
    ("{name: a, demand: {cpu: 1}, weight: [1]}", 'user "a", weight: expected a number, found a list'),
    ("{name: a, demand: {cpu: 1}, weight: {cpu: 0, memory: 1}}", 'user "a", weight, cpu: expected a number > 0, found 0'),
    (
        "{name: a, demand: {cpu: 1}, weight: {cpu: 1}}",
        'user "a", weight: gives no weight for "memory"; give one for every resource (1 is neutral)',
    ),
    (
        "{name: a, demand: {cpu: 1}, weight: {cpu: 1, memory: 1, disk: 1}}",
        'user "a", weight, disk: there is no resource "disk"; the resources are cpu and memory',
    ),
    ("{name: a, demand: {cpu: 1}, tasks: -1}", 'user "a", tasks: expected a number >= 0, found -1'),
    ("{name: a, demand: {cpu: 1}, tasks: .nan}", 'user "a", tasks: expected a number >= 0, found nan'),
    ("{name: a, demand: {cpu: 1}, tasks: inf}", 'user "a", tasks: expected a number, found the text "inf"; leave it out for no limit'),
    ("{name: a, demand: {cpu: 1}, servers: A}", 'user "a", servers: expected a list such as [A, B], found the text "A"'),
    ("{name: a, demand: {cpu: 1}, servers: [B, C]}", 'user "a", servers, item 2: there is no server "C"; the servers are A and B'),
    ("{name: a, demand: {cpu: 1}, servers: [1]}", 'user "a", servers, item 1: expected text, found 1; write it in quotes: "1"'),
    (
        "{name: a, demand: {cpu: 1}, servers: [A, A]}",
        'user "a", servers, item 2: "A" occurs twice (first on line 5); names must be unique: rename or remove one',
    ),
    ("{name: a, demand: {cpu: 1}, rates: {A: -1}}", 'user "a", rates, A: expected a number >= 0, found -1'),
    ("{name: a, demand: {cpu: 1}, rates: {C: 1}}", 'user "a", rates, C: there is no server "C"; the servers are A and B'),
    ("{name: a, demand: {cpu: 1}, requires: 3}", 'user "a", requires: expected text, found 3; write it in quotes: "3"'),
    ("{name: a, demand: {cpu: 1}, requires: gpus = 1}", 'user "a", requires: no server has the attribute "gpus" (did you mean "gpu"?)'),
    (
        "{name: a, demand: {cpu: 1}, requires: gpu}",
        'user "a", requires: "gpu" has no operator; write attribute = value, or one of != in, not in, < <= > >=',
    ),
]


@pytest.mark.parametrize(("user", "message"), USERS)
def test_refused_users(user: str, message: str) -> None:
    """What is wrong with a user."""
    assert refused("c.yaml", CLUSTER + f"- {user}\n") == f"c.yaml, line 5: {message}"


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("", "name: a", 'user "a", name: "a" occurs twice (first on line 5); names must be unique: rename or remove one'),
        (
            "weight: {cpu: 1, memory: 1}",
            "name: b, weight: 2",
            'user "b", weight: has one weight for all resources, but "a" has one per resource; give all users the same kind',
        ),
        (
            "weight: {cpu: 1, memory: 1}",
            "name: b",
            'user "b": has one weight for all resources, but "a" has one per resource; give all users the same kind',
        ),
        ("rates: {A: 1}", "name: b", 'user "b": gives no rates, but user "a" does; give rates for all users or for none'),
    ],
)
def test_refused_pairs_of_users(first: str, second: str, message: str) -> None:
    """What is wrong with a user beside another."""
    text = f"{CLUSTER}- {{name: a, demand: {{cpu: 1}}, {first}}}\n- {{demand: {{cpu: 1}}, {second}}}\n"
    assert refused("c.yaml", text) == f"c.yaml, line 6: {message}"


def test_lines_of_block_style() -> None:
    """The line is that of the key, however the document is laid out."""
    text = CLUSTER + "- name: a\n  demand:\n    cpu: 1\n\n    # a comment\n    memory: -2\n"
    assert refused("c.yaml", text) == 'c.yaml, line 10: user "a", demand, memory: expected a number >= 0, found -2'


JSON = """{
  "servers": [{"name": "A",\t"capacity": {"cpu": 4}}],
\t"users": [
    {"name": "alice", "demand": {"cpu": %s}},
    {"name": "bob", "demand": {"cpu": 1}%s}
  ]
}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (JSON % (-1, ""), 'c.json, line 4: user "alice", demand, cpu: expected a number >= 0, found -1'),
        (JSON % (1, ', "wieght": 2'), 'c.json, line 5: user "bob", wieght: unknown key "wieght" (did you mean "weight"?)'),
        (JSON % (1, ', "weight": 2, "weight": 3'), 'c.json, line 5: the key "weight" occurs twice in one mapping; remove one'),
        (
            JSON % ("NaN", ""),
            'c.json, line 4: NaN is not JSON; for no limit leave "tasks" or "parallelism" out, elsewhere give a finite number',
        ),
        (
            JSON % (1, ', "tasks": Infinity'),
            'c.json, line 5: Infinity is not JSON; for no limit leave "tasks" or "parallelism" out, elsewhere give a finite number',
        ),
        (JSON % ("1e999", ""), 'c.json, line 4: user "alice", demand, cpu: expected a finite number, found inf'),
        (
            JSON % (1, ', "a"'),
            "c.json, line 5: not valid JSON: expecting ':' delimiter (column 46); correct it there or just before",
        ),
        (JSON % ("1" * 5000, ""), "c.json: a whole number has thousands of digits; give a smaller one"),
        # YAML cannot place these, so there is no line.
        (JSON.replace("alice", "\\ud83d\\ude00") % (-1, ""), 'c.json, line 4: user "😀", demand, cpu: expected a number >= 0, found -1'),
        ('{"\\ud83d\\ude00": 1, "a": 1, "a": 1}', 'c.json: the key "a" occurs twice in one mapping; remove one'),
        (
            '{"\\ud83d\\ude00": NaN}',
            'c.json: NaN is not JSON; for no limit leave "tasks" or "parallelism" out, elsewhere give a finite number',
        ),
        ("[" * 100_000, "c.json: lists or mappings are nested too deeply; an instance has 6 levels"),
        (
            "[NaN, &a [*a]]",  # neither JSON nor, for the search of the line, a tree
            'c.json, line 1: NaN is not JSON; for no limit leave "tasks" or "parallelism" out, elsewhere give a finite number',
        ),
        ("", "c.json: the file is empty; describe the servers and the users in it"),
        ("[]", 'c.json: the file holds a list of 0, not a mapping; its outermost keys must be "servers" and "users"'),
        ("null", 'c.json: the file holds no data; describe the servers and the users under the keys "servers" and "users"'),
    ],
)
def test_refused_json(text: str, message: str) -> None:
    """The same messages, with lines, and what is wrong with JSON alone."""
    assert refused("c.json", text) == message


# Without end -------------------------------------------------------------------------------------------------------------------

GOOD = {"servers": [{"name": "A", "capacity": {"cpu": 4}}], "users": [{"name": "a", "demand": {"cpu": 1}}]}
MANY = 10_000


@pytest.fixture
def no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """No JSON text is read as YAML, which takes a hundred times as long, to find a line."""

    def compose(text: str) -> None:
        raise AssertionError("a tree is made of the whole text")

    monkeypatch.setattr(syntax, "compose", compose)


@pytest.mark.usefixtures("no_tree")
@pytest.mark.parametrize(
    ("document", "message"),
    [
        (GOOD | {f"k{j}": 1 for j in range(MANY)}, 'line 1: k0: unknown key "k0"; the keys here are title, description, resources'),
        (
            GOOD | {"users": [{**GOOD["users"][0], f"k{j}": 1} for j in range(MANY)]},
            'user "a", k0: unknown key "k0"; the keys here are name',
        ),
        (
            GOOD | {"users": [{**GOOD["users"][0], **{f"k{j}": 1 for j in range(MANY)}}]},
            'user "a", k0: unknown key "k0"; the keys here are',
        ),
    ],
)
def test_unknown_keys_without_end(monkeypatch: pytest.MonkeyPatch, document: dict[str, object], message: str) -> None:
    """The first is named and all are counted, but a few only are described."""
    described = []

    def watched(source: Source, error: ValidationError, *more: Any) -> None:
        described.append(error.error_count())
        keep_invalid(source, error, *more)

    monkeypatch.setattr("fairopt.formats.document.keep_invalid", watched)
    found = refused("c.json", json.dumps(document))
    assert message in found
    more = re.fullmatch(r"([\d,]+) mistakes:\n(?:[^\n]+\n){10}and (?:at least )?([\d,]+) more", found)
    assert more is not None
    assert 0 <= int(more[1].replace(",", "")) - MANY <= 1
    assert described == [100]


def test_unknown_keys_are_counted_with_what_else_is_wrong() -> None:
    """Keys that were not described count as those that were; what is wrong inside comes first."""
    users = [{"name": "a", "demand": {"cpu": -1}}, {"name": "b", "demand": {"cpu": 1}, "wieght": 2}]
    found = refused("c.json", json.dumps(GOOD | {"users": users} | {f"k{j}": 1 for j in range(500)}))
    assert found.startswith("502 mistakes:\n")
    assert 'user "b", wieght: unknown key "wieght" (did you mean "weight"?)\n' in found
    assert found.endswith("\nand 492 more")


def test_a_key_that_occurs_twice_among_many() -> None:
    """Each key is looked at once, not once for every other."""
    text = "{" + ",".join(f'"k{j}": 1' for j in range(MANY)) + ', "z": 1, "z": 2}'
    assert refused("c.json", text) == 'c.json, line 1: the key "z" occurs twice in one mapping; remove one'


@pytest.mark.usefixtures("no_tree")
@pytest.mark.parametrize(
    "document",
    [
        GOOD | {"k" * 3_000_000: 1},
        GOOD | {"users": [{"name": "n" * 3_000_000, "demand": {"cpu": -1}}]},
        GOOD | {"users": [{"name": "a", "demand": {"cpu": 1}, "servers": ["s" * 3_000_000]}]},
        GOOD | {"users": [{"name": "a", "demand": {"r" * 3_000_000: 1}}]},
        GOOD | {"users": [{"name": "a", "demand": {"cpu": 1}, "requires": "r" * 3_000_000}]},
    ],
)
def test_a_huge_name_is_neither_compared_nor_printed(monkeypatch: pytest.MonkeyPatch, document: dict[str, object]) -> None:
    """difflib takes a table of every character; a message of megabytes says nothing."""

    def compare(word: str, *rest: object, **options: object) -> list[str]:
        assert len(word) <= 200
        return []

    monkeypatch.setattr(difflib, "get_close_matches", compare)
    assert len(refused("c.json", json.dumps(document))) < 11_000


def test_yaml_beyond_what_it_is_good_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before it is read, with what to do."""
    monkeypatch.setattr(syntax, "_MOST_YAML", 1000)
    assert refused("c.yaml", "a: 1\n" * 201).endswith("write the instance as JSON, which is read at once")
    assert "unknown key" in refused("c.yaml", "a: 1\n" + "#\n" * 400)


@pytest.mark.parametrize("indent", [None, 0, 3])
def test_lines_of_json_are_those_of_its_tree(indent: int | None) -> None:
    """The search along a path finds what the tree of the whole text has there, also past text that looks like JSON."""
    text = json.dumps({"a": ['{"x": 1}', {"b": '", "x": 2', 'x"': [], "x": {"y": [1, [2, 3], "z"]}}], "": None, "c": -1.5e3}, indent=indent)
    tree = Parsed("c.yaml", text)  # JSON is YAML, whose tree is made in any case
    parsed = Parsed("c.json", text)
    ways = [(), ("a",), ("a", 0), ("a", 1), ("a", 1, "x"), ("a", 1, "x", "y", 1, 0), ("a", 1, "x", "y", 2), ("a", 1, 'x"'), ("",), ("c",)]
    for path in [*ways, ("a", 2), ("a", 1, "no"), ("no", 1), ("c", 0), ("a", "x")]:
        assert parsed.place(path).removeprefix("c.json") == tree.place(path).removeprefix("c.yaml"), path
        assert parsed.literal(path) == tree.literal(path), path


def test_bad_rows_of_a_trace_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may have been meant is looked for in the first rows only: it compares with every server."""
    asked = []

    def hint(word: str, words: Iterable[str]) -> str:
        asked.append(word)
        return ""

    monkeypatch.setattr(traces, "did_you_mean", hint)
    rows = "".join(f"{j},a,{j},1,1,s{j}\n" for j in range(1, 500))
    (tmp_path / "jobs.csv").write_text("job,user,submit_s,cpu,run_s,servers\n0,a,0,1,1,A\n" + rows)
    cluster = Instance([[4.0]], [[1.0]], servers=["A"], resources=["cpu"])
    assert len(formats.load_trace(tmp_path / "jobs.csv", cluster=cluster, lenient=True).left_out) == 499
    assert len(asked) == 100


def test_no_message_is_very_long() -> None:
    """Whatever stood in the file; its beginning and its end are kept."""
    message = str(InvalidInstance("begin " + "x" * 10**6 + " end"))
    assert len(message) < 10_000
    assert message.startswith("begin x")
    assert message.endswith("x end")


def test_messages_keep_spaces_that_do_not_break() -> None:
    """They are not printable by Python's rule, and drive no terminal."""
    text = "reached up to 3\N{NO-BREAK SPACE}%"
    assert str(InvalidInstance(text)) == text


# Files --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.yaml", b"a\0b", "c.yaml is a binary file, not text; give a YAML, JSON or CSV file"),
        ("c.yaml", "a: 1".encode("utf-16"), "c.yaml is written in UTF-16; save it as UTF-8"),
        ("c.json", b"{}\n\xe9", "c.json, line 2: byte 0xe9 is not UTF-8 text; save the file as UTF-8"),
        (
            "c.toml",
            b"",
            "c.toml: fairopt does not read this kind of file; it takes .yaml, .yml, .json, .xlsx, .ods, "
            "or a folder of servers.csv and users.csv",
        ),
        (
            "c.csv",
            b"",
            "c.csv: fairopt does not read this kind of file; it takes .yaml, .yml, .json, .xlsx, .ods, "
            "or a folder of servers.csv and users.csv; "
            "give the folder that it is in, .",
        ),
        (
            "c",
            b"",
            "c: fairopt does not read this kind of file; it takes .yaml, .yml, .json, .xlsx, .ods, "
            "or a folder of servers.csv and users.csv",
        ),
    ],
)
def test_refused_files(name: str, content: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong before the text is read."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    with pytest.raises(InvalidInstance) as caught:
        formats.load(name)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("clutser.yaml", 'there is no file clutser.yaml (did you mean "cluster.yaml"?)'),
        ("no/cluster.yaml", "there is no file no/cluster.yaml"),
        (
            "cluster",
            "there is no file or folder cluster; give an instance file (.yaml, .yml, .json, .xlsx, .ods) "
            "or a folder of CSV or Parquet tables",
        ),
        ("folder.yaml", "folder.yaml is a folder, not a file; give the path of a file in it"),
        ("a\0b.yaml", r"a\x00b.yaml cannot be read: embedded null byte"),
    ],
)
def test_missing_files(name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong with the path."""
    monkeypatch.chdir(tmp_path)
    Path("cluster.yaml").write_text("")
    Path("folder.yaml").mkdir()
    with pytest.raises(InvalidInstance) as caught:
        formats.load(name)
    assert str(caught.value) == message


def test_windows_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    """As Windows editors write them."""
    text = CLUSTER + "- {name: a, demand: {cpu: 1}}\n"
    (tmp_path / "c.yaml").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert formats.load(tmp_path / "c.yaml") == yaml(text)


# The schema ------------------------------------------------------------------------------------------------------------------------


def test_the_schema_is_json_and_describes_every_key() -> None:
    """Editors show the descriptions."""
    schema = json.loads(json.dumps(formats.schema()))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["required"] == ["users"]
    assert schema["anyOf"] == [{"required": ["servers"]}, {"required": ["shared"]}]
    for entry in (schema, *(schema["$defs"][name] for name in ("Server", "User", "Queue", "Quota"))):
        assert entry["additionalProperties"] is False
        assert all(value["description"] for value in entry["properties"].values())


IN_QUEUES = "{servers: [{name: A, capacity: {x: 1}}], queues: [%s], users: [{name: a, queue: q, guarantee: 1, demand: {x: 1}}]}"


@pytest.mark.parametrize(
    ("document", "valid"),
    [
        ("{servers: [{name: A, capacity: {x: 1}, count: 2}], users: [{name: a, demand: {x: 1}, weight: 2, tasks: .inf}]}", True),
        ("{servers: [{name: A, capacity: {x: 1}}], users: [{name: a, demand: {x: 1}, weight: {x: 2}, rates: {A: 1}}]}", True),
        ("{servers: [{name: A, capacity: {x: 1}, attributes: {a: b, c: 1, d: true}}], users: [{name: a, demand: {x: 1}}]}", True),
        ("{servers: [{name: A, capacity: {x: -1}}], users: [{name: a, demand: {x: 1}}]}", False),
        ("{servers: [{name: A, capacity: {x: 1}, count: 1.5}], users: [{name: a, demand: {x: 1}}]}", False),
        ("{servers: [{name: 1, capacity: {x: 1}}], users: [{name: a, demand: {x: 1}}]}", False),
        ("{servers: [{name: A, capacity: {x: 1}, size: 1}], users: [{name: a, demand: {x: 1}}]}", False),
        ("{servers: [{name: A, capacity: {x: 1}}], users: [{name: a, demand: {x: 1}, weight: 0}]}", True),
        ("{servers: [{name: A, capacity: {x: 1}}], users: [{name: a, demand: {x: 1}, weight: -1}]}", False),
        ("{servers: [{name: A, capacity: {x: 1}}], users: []}", False),
        (IN_QUEUES % "{name: q, limit: {x: .inf}, tier: 1, quotas: [{servers: [A], guarantee: {x: 1}}]}", True),
        (IN_QUEUES % "{name: q, parent: , weight: 0}", True),
        (IN_QUEUES % "{name: q, tier: 1.5}", False),
        (IN_QUEUES % "{name: q, limit: {x: -1}}", False),
        (IN_QUEUES % "{name: q, quotas: [{guarantee: {x: 1}}]}", False),
        (IN_QUEUES % "{name: q, queue: p}", False),
    ],
)
def test_the_schema_agrees_with_load(document: str, valid: bool) -> None:
    """What one accepts or refuses the other does (but for names that must exist, which no schema can say)."""
    jsonschema = pytest.importorskip("jsonschema")
    parsed = Parsed("c.yaml", document)
    assert jsonschema.Draft202012Validator(formats.schema()).is_valid(parsed.data) == valid
    if valid:
        instance_from(parsed)
    else:
        refused("c.yaml", document)


NUMBERS = [
    ("9" * 4000, True),
    ("0x" + "f" * 3500, True),
    ("0o" + "7" * 4500, True),
    ("9" * 5000, False),
    ("0x" + "f" * 4000, False),
    ("0o" + "7" * 9000, False),
]


@pytest.mark.parametrize(("number", "shown"), NUMBERS, ids=lambda each: str(each)[:3])
@pytest.mark.parametrize("place", ["{cpu: NUMBER}", "{? NUMBER : 1}"], ids=["value", "key"])
def test_numbers_with_thousands_of_digits(number: str, shown: bool, place: str) -> None:
    """Python writes no whole number of more than 4,300 digits: beyond that, all notations are refused alike, and before that, too."""
    text = f"servers:\n- {{name: s, capacity: {place.replace('NUMBER', number)}}}\nusers: [{{name: u, demand: {{cpu: 1}}}}]"
    message = refused("c.yaml", text)
    assert message.startswith("c.yaml, line 2: ")
    if not shown:
        assert message == "c.yaml, line 2: a whole number has thousands of digits; give a smaller one"
    elif place.startswith("{cpu"):
        assert "expected a number that floating point can hold, found " in message
    else:
        assert "expected text" in message


@pytest.mark.parametrize("escape", [r"\ud800", r"\uDFFF", r"\\\ud83d", r"\ude00\ud83d", r"\ud83d\ud83d\ude00"])
@pytest.mark.parametrize("where", ["name", "key"])
def test_half_of_a_character_is_refused_as_such(escape: str, where: str) -> None:
    """An escape of JSON that is half of a surrogate pair, in a name or in a key."""
    name, key = (f"a{escape}b", "demand") if where == "name" else ("a", f"demand{escape}")
    text = f'{{"servers": [{{"name": "s", "capacity": {{"cpu": 4}}}}],\n "users": [{{"name": "{name}", "{key}": {{"cpu": 1}}}}]}}'
    half = re.search(r"\\u[dD][0-9a-fA-F]{3}", escape)
    assert half is not None
    assert refused("c.json", text) == f"c.json, line 2: {half[0]} is half of a character (of a surrogate pair); write the character itself"


def test_whole_characters_and_backslashes_are_read() -> None:
    """A surrogate pair is one character, and an escaped backslash escapes nothing."""
    text = r'{"servers": [{"name": "s", "capacity": {"cpu": 4}}], "users": [{"name": "\ud83d\ude00 \\ud800", "demand": {"cpu": 1}}]}'
    assert instance_from(Parsed("c.json", text)).users == ("\U0001f600 \\ud800",)


@pytest.mark.parametrize(
    ("amounts", "message"),
    [("{u: .nan}", "that of u is nan"), ("{u: {s: -1}}", "that of u on s is -1"), ("{u: two}", "that of u is 'two'")],
)
def test_an_amount_of_a_limit_that_is_no_amount_is_named(amounts: str, message: str, tmp_path: Path) -> None:
    """Not only the mapping that it is in."""
    file = tmp_path / "lab.yaml"
    limit = f"limits: [{{name: l, bound: 1, amounts: {amounts}}}]"
    file.write_text(f"servers: [{{name: s, capacity: {{gpu: 1}}}}]\nusers: [{{name: u, demand: {{gpu: 1}}}}]\n{limit}\n")
    with pytest.raises(InvalidInstance, match=f"expected numbers >= 0 by user.*{message}"):
        formats.load(file)


@given(instance=instances())
@settings(max_examples=40)
def test_plain_data_is_read_back(instance: fo.Instance) -> None:
    """As `to_dict` gives it; the data stays as it is."""
    data = instance.to_dict()
    before = copy.deepcopy(data)
    assert fo.Instance.from_dict(data) == instance
    assert data == before


def test_plain_data_with_fractions_queues_and_rules() -> None:
    """Without loss."""
    capacities: Any = [[Fraction(1, 3)]]
    demands: Any = [[Fraction(1, 7)], [Fraction(2, 7)]]
    lab = fo.Instance(
        capacities,
        demands,
        users=["a", "b"],
        queues=[fo.Queue("q", weight=2)],
        queue_of=["q", None],
        rules=["x[a] >= x[b]"],
        limits=[fo.Limit("few", 5, amounts={"a": 1})],
    )
    assert fo.Instance.from_dict(lab.to_dict()) == lab


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "the data is a list, not a mapping"),
        ({"users": [{"name": "a", "demand": {"cpu": 1}}]}, 'the data: "servers" is missing'),
        (
            {"servers": [{"name": "s", "capacity": {"cpu": -1}}], "users": [{"name": "a", "demand": {"cpu": 1}}]},
            'the data: server "s", capacity, cpu: expected a number >= 0, found -1',
        ),
    ],
)
def test_plain_data_that_is_no_instance(data: Any, words: str) -> None:
    """The message has the place, without a file."""
    with pytest.raises(fo.InvalidInstance, match=re.escape(words)):
        fo.Instance.from_dict(data)
