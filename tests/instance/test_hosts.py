"""Names of hosts: lists with ranges in brackets, there and back, and the hosts of an instance."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import hosts

import fairopt as fo
from fairopt.instance.hosts import folded, is_host, misplaced, unfolded


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cn[1-3,9]", ["cn1", "cn2", "cn3", "cn9"]),
        ("a,b[08-10]-x", ["a", "b08-x", "b09-x", "b10-x"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ],
)
def test_hosts(text: str, expected: list[str]) -> None:
    """Ranges keep their leading zeros."""
    assert unfolded(text) == expected


@pytest.mark.parametrize("text", ["cn[1-", "cn[a-b]", "cn[1-99999999]"])
def test_what_is_no_list_of_hosts(text: str) -> None:
    """Rather than names that do not exist."""
    with pytest.raises(ValueError, match=r"range|brackets"):
        unfolded(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n[1-5000][1-5000]", "more than 1,000,000 hosts"),
        ("n[1-99999999999]", "more than 1,000,000 hosts"),
        ("n[1-999999999999999999]" * 50, "more than 1,000,000 hosts"),
        ("n[1-" + "9" * 5000 + "]", "not a range"),
        ("n[" + "0" * 4000 + "1-1000000]", "not a range"),
        ("n[9-1]", "not a range"),
        ("n" + "[1]" * 3000, "more than 255 characters"),
        ("n" * 100_000 + "[1-1000000]", "more than 255 characters"),
        ("[" * 100_000, "brackets"),
    ],
)
def test_lists_of_too_many_hosts_are_refused_before_they_are_built(monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    """The hosts are counted, and the length of their names is known, before the first is written: no product is formed."""

    def no_product(*parts: object) -> None:
        raise AssertionError(f"the hosts of {text[:60]} are built")

    monkeypatch.setattr(itertools, "product", no_product)
    with pytest.raises(ValueError, match=message) as caught:
        unfolded(text)
    assert len(str(caught.value)) < 250


def test_a_list_of_as_many_hosts_as_allowed() -> None:
    """A million is the limit; one more is too many."""
    assert len(unfolded("n[1-1000][1-1000]")) == 1_000_000
    with pytest.raises(ValueError, match="more than 1,000,000 hosts"):
        unfolded("n[1-1000][1-1000],login")


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["cn1", "cn3", "cn5"], "cn[1,3,5]"),
        (["cn08", "cn09", "cn10", "cn11"], "cn[08-11]"),
        (["cn8", "cn9", "cn10"], "cn[8-10]"),
        (["cn9", "cn010"], "cn[9,010]"),  # the width of a range is that of its first number
        (["cn99", "cn100", "cn0101"], "cn[99-100,0101]"),
        (["r1n1", "r1n2", "r2n1", "r2n2"], "r[1-2]n[1-2]"),
        (["r1n1", "r1n2", "r2n1"], "r1n[1-2],r2n1"),
        (["r1n1", "r2n1", "r1n2", "r2n2"], "r[1-2]n1,r[1-2]n2"),  # in this order
        (["a1-ib", "a2-ib", "a1"], "a[1-2]-ib,a1"),
        (["b2", "a1", "b1"], "b2,a1,b1"),
        (["b2", "b1"], "b[2,1]"),
        (["7"], "7"),
        (["x1000000000000000000", "x1000000000000000001"], "x1000000000000000000,x1000000000000000001"),  # 19 digits
        ([], ""),
    ],
)
def test_folded(names: list[str], text: str) -> None:
    """As scontrol show hostlist writes them, in the order in which they are given."""
    assert folded(names) == text
    assert unfolded(text) == names


@given(hosts())
def test_folding_loses_nothing(names: list[str]) -> None:
    """Neither a zero in front, nor the order, nor a name."""
    assert unfolded(folded(names)) == names


@given(st.integers(1, 3), st.integers(1, 30), st.integers(1, 30), st.integers(1, 5))
def test_a_block_of_hosts_is_one_entry(first: int, racks: int, nodes: int, width: int) -> None:
    """However many there are: racks times nodes."""
    block = [f"r{r}n{n:0{width}d}-ib" for r in range(first, first + racks) for n in range(nodes)]
    assert len(folded(block)) <= len("r[100-100]n[00000-00000]-ib")
    assert unfolded(folded(block)) == block


@pytest.mark.parametrize("name", ["", "a b", "a,b", "a[1]", "a|b", "tab\t", "\0", "a" * 256])
def test_what_no_host_is_called(name: str) -> None:
    """What a list, a cell of a table or a line could not hold; so a list never means something else."""
    assert not is_host(name)


# Of an instance ------------------------------------------------------------------------------------------------------------------


def lab(**facts: Any) -> fo.Instance:
    """Two rows, of three servers and of one."""
    return fo.Instance([[4], [8]], [[1]], counts=[3, 1], servers=["old", "new"], **facts)


@pytest.mark.parametrize(
    "given",
    [
        ["cn[1,3,5]", "gn1"],
        ["cn1,cn3,cn5", ["gn1"]],
        [["cn1", "cn3", "cn5"], ("gn1",)],
        [["cn[1,3]", "cn5"], "gn1"],
        {"old": "cn[1,3,5]", "new": "gn1"},
        np.array(["cn[1,3,5]", "gn1"]),
    ],
)
def test_ways_to_give_hosts(given: Any) -> None:
    """Folded, as lists, by label."""
    assert lab(hosts=given).hosts == (("cn1", "cn3", "cn5"), ("gn1",))


@pytest.mark.parametrize("given", [None, [None, None], [[], ""], {}, [float("nan"), None]])
def test_no_hosts(given: Any) -> None:
    """None is known."""
    assert lab(hosts=given).hosts == ((), ())
    assert lab(hosts=given) == lab()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["cn[1-2]", "gn1"],
            'server "old": 2 hosts are named (cn[1-2]), but the count is 3; name all of them or none, or correct the count',
        ),
        ([None, "gn[1-2]"], 'server "new": 2 hosts are named (gn[1-2]), but the count is 1; name all of them or none'),
        (["cn[1-3]", "cn2"], 'server "new": the host "cn2" is in the row "old", too; a host is in one row, once'),
        (["cn1,cn2,cn1", None], 'server "old": the host "cn1" is named twice; a host is in one row, once'),
        (["cn[1-1000000000]", None], 'server "old": the ranges of "cn[1-1000000000]" name more than 1,000,000 hosts'),
        (["cn[1-", None], 'server "old": "cn[1-" has brackets that do not close'),
        ([["a b", "c", "d"], None], 'server "old": "a b" is no name of a host: it has a space, a bracket, | or more than 255 characters'),
        ([[1, 2, 3], None], 'server "old": the hosts are [1, 2, 3]; give names such as cn[1,3,5], or a list of names'),
        ([7, None], 'server "old": the hosts are 7; give names such as cn[1,3,5], or a list of names'),
        (["cn[1-3]"], "hosts has 1 entry for 2 servers; give one for each"),
        ("cn[1-3]", "hosts is 'cn[1-3]'; give a list with an entry for each server, None where there is none"),
        ({"odl": "cn[1-3]"}, 'hosts: there is no server "odl" (did you mean "old"?)'),
    ],
)
def test_hosts_that_cannot_be(given: Any, message: str) -> None:
    """Where, what, and what to do."""
    with pytest.raises(fo.InvalidInstance, match=re.escape(message)):
        lab(hosts=given)


def test_all_hosts_of_an_instance_are_limited_together() -> None:
    """A thousand rows of a million hosts each would fill the memory."""
    rows = ["a[1-600000]", "b[1-600000]"]
    with pytest.raises(fo.InvalidInstance, match="more than 1,000,000 hosts with those before them"):
        fo.Instance([[1], [1]], [[1]], counts=[600_000, 600_000], hosts=rows)


def test_a_host_that_is_named_twice_is_found_at_once() -> None:
    """Of 400,000 hosts the last one is the first once more."""
    names = tuple(f"n{j}" for j in range(400_000))
    assert [why for _, why in misplaced(((*names, "n0"),), [400_001], ["s"])] == [
        'the host "n0" is named twice; a host is in one row, once'
    ]
