"""load(save(x)) == x for every instance, in every format, to the last bit."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import hosts_of_rows

from fairopt import files, formats
from fairopt.errors import InvalidInstance
from fairopt.formats import syntax
from fairopt.instance import Instance
from fairopt.instance.fractions import plain_numbers
from fairopt.instance.labelled import changed_queues
from fairopt.instance.queues import Queue, Quota
from fairopt.tables.schema import is_comment

FORMATS = ["instance.yaml", "instance.yml", "instance.json", "instance", "instance.parquet", "instance.xlsx"]

# Text that YAML 1.1, YAML 1.2, CSV or a careless reader takes for something else.
ODD = [
    *("yes", "no", "on", "null", "~", "true", "NA", "nan", ".inf", "001", "1e3", "1e-6", "1_000", "0x1f", "0o17", "1:30", "2024-01-01"),
    *("a|b", "x, y", '"', "'", "#", "- a", ": ", "{", "[", "=", "<<", "&a", "*a", "!x", "%", "@", "`", "|", ">", "?", "-", "\\"),
    *(
        " lead",
        "trail ",
        "two  spaces",
        "tab\t",
        "line\nbreak",
        "\r",
        "a\r\nb",
        "é",
        "日本",
        "😀",
        "\u2028",
        "\x85",
        "\ufeff",
        "\x07",
        "\x7f",
    ),
    *("user", "weights", "=1+1", "+1", "@a", "'", "_x0041_", "_x000d_", "#N/A", "TRUE", "a" * 300, "word " * 60 + "end"),
]
RESERVED = {
    "name",
    "count",
    "hosts",
    "weight",
    "queue",
    "owner",
    "guarantee",
    "tasks",
    "parallelism",
    "requires",
    "servers",
}  # columns of the CSV tables

labels = (st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)).filter(
    lambda s: s.strip() != ""
)
csv_labels = labels.filter(lambda s: "\0" not in s and s == s.strip() and not is_comment(s) and s.casefold() not in RESERVED)
amounts = st.floats(1e-59, 9e59) | st.sampled_from([0.0, -0.0, 1.0, 0.1, 1e15, 1e16, 1e22, 1e-6])
positive = amounts.filter(lambda x: x > 0)
counts = st.sampled_from([0.0, 1.0, 8.0, 12583.0, 2.0**53])


@st.composite
def trees(draw: st.DrawFn, labels: st.SearchStrategy[str], servers: list[str], resources: list[str]) -> list[Queue]:
    """Queues with every feature, parents before or after their children."""

    def given() -> dict[str, Any]:
        some = st.dictionaries(st.sampled_from(resources), amounts, max_size=3)
        guarantee, limit = draw(some), draw(some)
        lent = {resource: draw(amounts) for resource in guarantee if draw(st.booleans())}
        return {"guarantee": guarantee, "limit": {r: max(a, guarantee.get(r, 0.0)) for r, a in limit.items()}, "lending_limit": lent}

    plain = [server for server in servers if "|" not in server]  # any others need YAML
    queues: list[Queue] = []
    for name in draw(st.lists(labels, max_size=4, unique=True)):
        quotas = [
            Quota(draw(st.lists(st.sampled_from(plain), min_size=1, unique=True)), **given(), name=draw(st.just("") | labels))
            for _ in range(draw(st.integers(0, 2)) if plain else 0)
        ]
        parent = draw(st.sampled_from([None, *(queue.name for queue in queues)]))
        queues.append(Queue(name, parent, draw(amounts), **given(), tier=draw(st.integers(-3, 3)), quotas=quotas))
    parents = {queue.parent for queue in queues}
    orders = {queue.name: {"order": draw(st.sampled_from(["fair", "listed"]))} for queue in queues if queue.name not in parents}
    return draw(st.permutations(changed_queues(orders, queues)))


@st.composite
def instances(draw: st.DrawFn, labels: st.SearchStrategy[str] = labels, *, cells: bool = False) -> Instance:
    """Every feature of an instance, each present or not; with ``cells``, facts that cells of tables can hold."""
    n, k, m = (draw(st.integers(1, 4)) for _ in range(3))

    def array(*shape: int, of: st.SearchStrategy[Any] = amounts) -> npt.NDArray[Any]:
        size = int(np.prod(shape))
        return np.array(draw(st.lists(of, min_size=size, max_size=size))).reshape(shape)

    def maybe(*shape: int, of: st.SearchStrategy[Any] = amounts) -> npt.NDArray[Any] | None:
        return array(*shape, of=of) if draw(st.booleans()) else None

    def names(number: int) -> list[str]:
        return draw(st.lists(labels, min_size=number, max_size=number, unique=True))

    demands, tasks, rates = array(n, m), maybe(n, of=amounts | st.just(np.inf)), maybe(n, k)
    if rates is None and tasks is None:
        demands[(demands == 0).all(axis=1), 0] = 1.0  # a user who demands nothing must have finitely many tasks
    elif rates is None and tasks is not None:
        tasks[(demands == 0).all(axis=1) & np.isinf(tasks)] = 3.0
    weights = maybe(n, m, of=positive) if draw(st.booleans()) else maybe(n)
    servers, resources = names(k), names(m)
    queues = draw(trees(labels, servers, resources))
    guarantees = maybe(n)
    if guarantees is not None and tasks is not None:
        guarantees = np.minimum(guarantees, tasks)
    number = maybe(k, of=counts)
    words = labels
    names_of_attributes = words.filter(lambda s: s not in (*RESERVED, *resources)) if cells else words
    by_server, speeds = None, None
    fits = not cells or not (any("|" in name for name in servers) or {name.casefold() for name in resources} & {"user", "servers", "speed"})
    if draw(st.booleans()) and fits:
        speeds = maybe(n, k)
        by_server = np.where(array(n, k, m, of=st.booleans()), demands[:, None], array(n, k, m, of=positive))
    values = words | (st.just("-") if cells else st.just("")) | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(-1e300, 1e300)
    return Instance(
        *(array(k, m), demands if by_server is None else by_server, weights),
        speeds=speeds,
        eligibility=maybe(n, k, of=st.booleans()),
        counts=number,
        hosts=draw(hosts_of_rows(np.ones(k) if number is None else number)) if draw(st.booleans()) else None,
        attributes=draw(st.lists(st.dictionaries(names_of_attributes, values, max_size=3), min_size=k, max_size=k)),
        owners=draw(st.lists(st.none() | words, min_size=n, max_size=n)),
        tasks=tasks,
        rates=rates,
        guarantees=guarantees,
        queues=queues,
        queue_of=[draw(st.sampled_from([None, *(queue.name for queue in queues)])) for _ in range(n)],
        users=names(n),
        servers=servers,
        resources=resources,
    )


def assert_identical(mine: Instance, theirs: Instance) -> None:
    """Compare bit by bit."""
    assert theirs == mine
    arrays = ("capacities", "demands_by_kind", "kind_of", "speeds_given", "weights", "eligibility", "counts", "tasks")
    for name in (*arrays, "rates_per_server", "guarantees"):
        a, b = getattr(mine, name), getattr(theirs, name)
        assert (a is None and b is None) or a.tobytes() == b.tobytes(), name


@pytest.mark.parametrize("name", FORMATS[:3])
@settings(max_examples=50)
@given(instance=instances())
def test_documents_lose_nothing(name: str, instance: Instance) -> None:
    """YAML and JSON hold every instance."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        formats.save(instance, path)
        assert_identical(instance, formats.load(path))


@given(first=instances(csv_labels, cells=True), second=instances(csv_labels, cells=True))
def test_tables_lose_nothing_and_leave_nothing_behind(first: Instance, second: Instance) -> None:
    """The second instance is saved over the first, whose matrices it must not inherit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "instance")
        formats.save(first, path)
        assert_identical(first, formats.load(path))
        formats.save(second, path)
        assert_identical(second, formats.load(path))


@pytest.mark.parametrize("name", ["instance.parquet", "instance.xlsx"])
@settings(max_examples=20)  # these take their time
@given(first=instances(csv_labels, cells=True), second=instances(csv_labels, cells=True))
def test_typed_tables_lose_nothing(name: str, first: Instance, second: Instance) -> None:
    """Every bit of every number, and every label as text."""
    with tempfile.TemporaryDirectory() as folder:
        for instance in (first, second):
            formats.save(instance, Path(folder, name))
            assert_identical(instance, formats.load(Path(folder, name)))


@given(instance=instances())
def test_saved_yaml_means_the_same_to_yaml_1_1(instance: Instance) -> None:
    """Other programs read YAML by the older rules: text must stay text, and numbers numbers."""
    document = yaml.safe_load(syntax.to_yaml(instance.to_dict()))
    assert document == plain_numbers(instance.to_dict())


def test_yaml_is_readable(tmp_path: Path) -> None:
    """The innermost mappings on one line, whole numbers without a point, defaults left out."""
    instance = Instance(
        *([[9, 12.5], [4.0, 0]], [[1.0, 2], [0.1, 0]]),
        weights=[1, 2],
        eligibility=[[1, 0], [1, 0]],
        counts=[8, 1],
        tasks=[np.inf, 100],
        users=["alice", "bob"],
        servers=["A", "yes"],
        resources=["cpu", "memory"],
    )
    formats.save(instance, tmp_path / "cluster.yaml")
    assert (tmp_path / "cluster.yaml").read_text() == (
        "resources: [cpu, memory]\n"
        "servers:\n"
        "- name: A\n"
        "  capacity: {cpu: 9, memory: 12.5}\n"
        "  count: 8\n"
        "- name: 'yes'\n"
        "  capacity: {cpu: 4, memory: 0}\n"
        "users:\n"
        "- name: alice\n"
        "  demand: {cpu: 1, memory: 2}\n"
        "  servers: [A]\n"
        "- name: bob\n"
        "  demand: {cpu: 0.1, memory: 0}\n"
        "  weight: 2\n"
        "  tasks: 100\n"
        "  servers: [A]\n"
    )


def test_json_is_plain_json(tmp_path: Path) -> None:
    """No NaN, no Infinity: unlimited tasks are left out."""
    instance = Instance([[9.0]], [[1.0], [2.5]], tasks=[np.inf, 3])
    formats.save(instance, tmp_path / "cluster.json")
    document = json.loads((tmp_path / "cluster.json").read_text())
    assert document["users"] == [
        {"name": "user-1", "demand": {"resource-1": 1}},
        {"name": "user-2", "demand": {"resource-1": 2.5}, "tasks": 3},
    ]


def test_tables_hold_only_the_columns_that_say_something(tmp_path: Path) -> None:
    """No column of ones, no matrix, no table of queues."""
    formats.save(Instance([[9, 12]], [[1, 2]], resources=["cpu", "memory"]), tmp_path / "cluster")
    assert {path.name: path.read_text() for path in (tmp_path / "cluster").iterdir()} == {
        "servers.csv": "name,cpu,memory\nserver-1,9,12\n",
        "users.csv": "name,cpu,memory\nuser-1,1,2\n",
    }


def test_a_server_list_too_long_for_a_cell_becomes_a_matrix(tmp_path: Path) -> None:
    """Python's csv module reads cells of at most 131,072 characters."""
    eligibility = np.ones((2, 12000), bool)
    eligibility[1, :2000] = False
    instance = Instance(np.ones((12000, 1)), [[1], [2]], eligibility=eligibility)
    formats.save(instance, tmp_path / "cluster")
    assert (tmp_path / "cluster" / "eligibility.csv").exists()
    assert formats.load(tmp_path / "cluster") == instance


# Writing ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_a_failed_save_leaves_the_old_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk costs neither the old file nor leaves a piece of the new one."""
    old, new = Instance([[1]], [[1]]), Instance([[2]], [[2]])
    formats.save(old, tmp_path / name)

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidInstance, match="cannot be written: No space left on device"):
        formats.save(new, tmp_path / name)
    assert formats.load(tmp_path / name) == old
    assert not list(tmp_path.rglob("*.tmp"))


def test_save_keeps_permissions_and_links(tmp_path: Path) -> None:
    """Replacing a file is not to be noticed by others who use it."""
    target, link = tmp_path / "target.yaml", tmp_path / "link.yaml"
    target.write_text("")
    target.chmod(0o640)
    link.symlink_to(target)
    formats.save(Instance([[1]], [[1]]), link)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert formats.load(target) == Instance([[1]], [[1]])


def test_paths_may_be_strings(tmp_path: Path) -> None:
    """As they come from a command line."""
    formats.save(Instance([[1]], [[1]]), str(tmp_path / "a.yaml"))
    assert formats.load(str(tmp_path / "a.yaml")) == Instance([[1]], [[1]])


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    """Windows editors put one there."""
    files.write_files({tmp_path / "a.txt": "\ufeffone"})
    assert files.read_text(tmp_path / "a.txt") == "one"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """As /dev/null must not be, even by root; a file beside it is written too."""
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.write_files({pipe: "one", file: "two"})
        assert os.read(reader, 99) == b"one"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert file.read_text() == "two"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "pipe"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "a.toml",
            "a.toml: fairopt does not write this kind of file; "
            "it takes .yaml, .yml, .json, .xlsx, or a folder of servers.csv and users.csv",
        ),
        ("no/a.yaml", "no/a.yaml cannot be written: there is no folder no; make it first"),
        ("no/folder", "no/folder cannot be made a folder: there is no folder no; make it first"),
        ("file", "file cannot be made a folder: there is a file of this name; choose another or remove it"),
        ("folder.yaml", "folder.yaml cannot be written: Is a directory"),
    ],
)
def test_what_save_refuses(path: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with what to do, and without a trace on the disk."""
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    Path("folder.yaml").mkdir()
    with pytest.raises(InvalidInstance) as caught:
        formats.save(Instance([[1]], [[1]]), path)
    assert str(caught.value) == message
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "folder.yaml"]


@pytest.mark.parametrize("name", FORMATS)
def test_half_a_surrogate_pair_is_no_text(name: str, tmp_path: Path) -> None:
    """A Python string can hold one, a UTF-8 file cannot."""
    with pytest.raises(InvalidInstance, match=r"the label 'a\\ud800' is not text that a file can hold"):
        formats.save(Instance([[1]], [[1]], users=["a\ud800"]), tmp_path / name)


def test_a_null_character_needs_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text file with one is taken for a binary file; YAML and JSON write it as an escape."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInstance) as caught:
        formats.save(Instance([[1]], [[1]], users=["a\0b"]), "cluster")
    assert str(caught.value) == "cluster: the user label 'a\\x00b' holds a null character; save as .yaml"
    assert not Path("cluster").exists()


@pytest.mark.parametrize("resource", sorted(RESERVED))
def test_a_resource_named_like_a_column_needs_yaml(resource: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says so, and YAML takes it."""
    monkeypatch.chdir(tmp_path)
    instance = Instance([[1]], [[1]], resources=[resource])
    with pytest.raises(InvalidInstance) as caught:
        formats.save(instance, "cluster")
    assert str(caught.value) == (f'cluster: a resource cannot be called "{resource}" in CSV tables, where that is a column; save as .yaml')
    formats.save(instance, "cluster.yaml")
    assert formats.load("cluster.yaml") == instance


def test_importing_formats_loads_no_reader() -> None:
    """`import fairopt` stays light."""
    code = "import sys, fairopt.formats; print([m for m in ('yaml', 'pydantic', 'pandas') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(enabled: bool, tmp_path: Path) -> None:
    """Also by a file that is refused."""
    path = tmp_path / "instance.yaml"
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        formats.save(Instance([[1]], [[1]]), path)
        formats.load(path)
        assert gc.isenabled() == enabled
        path.write_text("servers: [")
        with pytest.raises(InvalidInstance):
            formats.load(path)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
