"""The small languages of Slurm against their manual pages."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fairopt.clusters.json_export import Part
from fairopt.slurm.syntax import array_size, features, gres, mebibytes, number, tres


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cpu=1,mem=62.50G,node=1,billing=1", {"cpu": 1, "mem": 64000, "node": 1, "billing": 1}),
        ("cpu=64,mem=500000M", {"cpu": 64, "mem": 500000}),
        ("cpu=4K,mem=2T,gres/gpu:a100=2", {"cpu": 4096, "mem": 2 * 2**20, "gres/gpu:a100": 2}),
        ("", {}),
    ],
)
def test_tres(text: str, expected: dict[str, float]) -> None:
    """Memory is in MiB."""
    assert tres(text) == expected


def test_memory_without_a_unit_is_in_mebibytes() -> None:
    """As everywhere in Slurm."""
    assert (mebibytes("2048"), mebibytes("2G"), mebibytes("1024K")) == (2048, 2048, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu:a100:4(S:0-3)", [("gpu", "a100", 4)]),
        ("gpu:4", [("gpu", "", 4)]),
        ("gpu:h100:2(S:0),gpu:h100:2(S:1)", [("gpu", "h100", 2), ("gpu", "h100", 2)]),
        ("gpu", [("gpu", "", 1)]),
        ("gres/gpu:a100=2", [("gpu", "a100", 2)]),
        ("gres:gpu:2", [("gpu", "", 2)]),
        ("bandwidth:lustre:no_consume:4G", [("bandwidth", "lustre", 4 * 2**30)]),
        ("", []),
    ],
)
def test_generic_resources(text: str, expected: list[tuple[str, str, float]]) -> None:
    """Name, type, number; which cores they are near to is of no interest."""
    assert gres(text) == expected


@pytest.mark.parametrize(
    ("text", "has", "expected"),
    [
        ("a&b", {"a"}, False),
        ("a&b", {"a", "b"}, True),
        ("a|b", {"b"}, True),
        ("a&(b|c)", {"a", "c"}, True),
        ("a&(b|c)", {"b", "c"}, False),
        ("[a|b]", {"b"}, True),
        ("a100-80gb&gpu-1", {"a100-80gb", "gpu-1"}, True),
    ],
)
def test_features(text: str, has: set[str], expected: bool) -> None:
    """AND, OR, parentheses."""
    assert features(text)(has) is expected


@pytest.mark.parametrize("text", ["a&b|c", "a*2", "!a", "(a", "a&", "a)"])
def test_features_that_are_ambiguous_are_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match=r"ambiguous|cannot|close|lacks"):
        features(text)


@pytest.mark.parametrize("text", ["(" * 5000 + "a" + ")" * 5000, "[" * 101 + "a" + "]" * 101])
def test_features_in_too_many_parentheses_are_refused(text: str) -> None:
    """Rather than a RecursionError."""
    with pytest.raises(ValueError, match="more than 100 parentheses"):
        features(text)
    assert features("(" * 100 + "a" + ")" * 100)({"a"})


@pytest.mark.parametrize("text", ["0-99999999999999999999", "1" * 5000, "10-1", "1-5:0"])
def test_what_is_no_list_of_array_tasks(text: str) -> None:
    """Numbers that no array has, and ranges that go backwards."""
    with pytest.raises(ValueError, match="not a list") as caught:
        array_size(text)
    assert len(str(caught.value)) < 250


def test_the_largest_array() -> None:
    """It is counted, not built."""
    assert array_size("0-999999999999999999") == 10**18


@pytest.mark.parametrize("read", [tres, gres])
def test_amounts_beyond_all_measure_are_refused(read: Callable[[str], object]) -> None:
    """Rather than infinite: a float holds no number of 400 digits."""
    with pytest.raises(ValueError, match="more than any node has"):
        read("gpu=" + "1" * 400)


def test_array_size() -> None:
    """Ranges, steps, lists, and a limit on how many run at a time."""
    assert [array_size(text) for text in ("5", "1-10", "0-15:5", "1,3,5-7%2", "[2-4]")] == [1, 10, 4, 5, 3]
    with pytest.raises(ValueError, match="not a list"):
        array_size("1-10,...")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (4, 4.0),
        (None, None),
        ({"set": True, "infinite": False, "number": 4}, 4.0),
        ({"set": False, "infinite": False, "number": 0}, None),
        ({"set": True, "infinite": True, "number": 0}, float("inf")),
    ],
)
def test_numbers_of_all_versions(value: object, expected: float | None) -> None:
    """Plain in 21.08, with their state later."""
    assert number(Part(value, "jobs.json")) == expected
