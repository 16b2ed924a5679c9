"""Hosts, attributes and owners: what an instance carries and no notion reads, through replacing, merging and pooling."""

from __future__ import annotations

import copy
import pickle
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.instance.aggregation import expand, merge
from fairopt.instance.exact_merging import merge_exactly

HOSTS = {"old": "cn[1,3]", "new": "gn1", "same": "cn[7-9]"}
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "old": {"model": "V100", "zone": "a", "cores": 4},
    "new": {"model": "A100"},
    "same": {"model": "V100", "zone": "b", "cores": "4"},
}


def lab(**facts: Any) -> fo.Instance:
    """Three rows, the first and the last alike; three users, the first two alike."""
    given: dict[str, Any] = {"hosts": HOSTS, "attributes": ATTRIBUTES, "owners": {"a/1": "lab/a", "a/2": "lab/a", "b": "lab/b"}}
    return fo.Instance(
        [[4], [8], [4]], [[1], [1], [3]], counts=[2, 1, 3], users=["a/1", "a/2", "b"], servers=["old", "new", "same"], **(given | facts)
    )


def test_what_is_given_is_there() -> None:
    """In the order of the rows."""
    assert lab().hosts == (("cn1", "cn3"), ("gn1",), ("cn7", "cn8", "cn9"))
    assert lab().attributes[1] == {"model": "A100"}
    assert lab().owners == ("lab/a", "lab/a", "lab/b")
    assert fo.Instance([[1]], [[1]]).owners == (None,)
    assert list(fo.Instance([[1]], [[1]]).attributes) == [{}]


def test_instances_with_other_facts_are_other_instances() -> None:
    """But 4 and "4" are the same attribute: a table cannot tell them apart, nor can a requirement."""
    assert lab() == lab()
    assert lab() != lab(hosts=None)
    assert lab() != lab(attributes=None)
    assert lab() != lab(owners=None)
    assert lab().replace(attributes={"old": {"cores": "4.0"}}) == lab()
    assert lab().replace(attributes={"old": {"cores": 5}}) != lab()


@pytest.mark.parametrize("same", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each)), lambda each: each.replace()])
def test_copies_have_the_same_facts(same: Any) -> None:
    """Attributes cannot be changed in the copy either."""
    copied = same(lab())
    assert copied == lab()
    with pytest.raises(TypeError):
        copied.attributes[0]["model"] = "T4"


@pytest.mark.parametrize("merged", [merge(lab()), merge_exactly(lab().replace(weights=[1, Fraction(1, 3), 1]))])
def test_merged_rows_keep_their_hosts(merged: Any) -> None:
    """All hosts, the attributes on which the rows agree, and the owner; and the answer is on the rows as they were."""
    instance = merged.instance
    assert instance.servers == ("old", "new")
    assert instance.hosts == (("cn1", "cn3", "cn7", "cn8", "cn9"), ("gn1",))
    assert instance.attributes == ({"model": "V100", "cores": 4}, {"model": "A100"})
    assert instance.users == ("a/1", "b")
    assert instance.owners == ("lab/a", "lab/b")
    assert merged.original.hosts == lab().hosts


def test_facts_keep_no_rows_apart() -> None:
    """Servers and users merge whatever they are called and whosoever they are."""
    other = lab(owners=["x", "y", "z"])
    assert merge(other).instance.owners == (None, "z")
    assert merge(other).instance.n_users == merge(lab(hosts=None, attributes=None, owners=None)).instance.n_users == 2


def test_the_hosts_of_a_merged_row_are_unknown_where_those_of_one_are() -> None:
    """All or none."""
    assert merge(lab(hosts={"old": "cn[1,3]"})).instance.hosts == ((), ())
    empty = lab(hosts={"same": "cn[7-9]"}).replace(counts={"old": 0})
    assert merge(empty).original.hosts == ((), (), ("cn7", "cn8", "cn9"))


def test_an_answer_has_the_rows_as_they_were() -> None:
    """Solving merges; the instance of the allocation is the one that was given."""
    allocation = fo.solve(lab(), "drfh")
    assert allocation.instance is not None
    assert allocation.instance == lab()
    assert allocation.tasks.shape == (3, 3)


def test_single_servers_have_one_host_each() -> None:
    """And the attributes of their row; none where the row names none."""
    single, row = expand(lab(hosts={"old": "cn[1,3]"}))
    assert single.hosts == (("cn1",), ("cn3",), (), (), (), ())
    assert [each["model"] for each in single.attributes] == ["V100", "V100", "A100", "V100", "V100", "V100"]
    assert row.tolist() == [0, 0, 1, 2, 2, 2]
    assert single.owners == lab().owners


def test_a_pool_has_owners_and_no_hosts() -> None:
    """It is no server, and its users are the same."""
    pool = lab().pooled()
    assert pool.hosts == ((),)
    assert list(pool.attributes) == [{}]
    assert pool.owners == lab().owners


# Replacing -----------------------------------------------------------------------------------------------------------------------


def test_facts_are_replaced_by_label() -> None:
    """The others stay as they are; of attributes, by name."""
    changed = lab().replace(hosts={"new": ["gn2"]}, attributes={"old": {"zone": None, "ssd": True}}, owners={"b": None})
    assert changed.hosts == (("cn1", "cn3"), ("gn2",), ("cn7", "cn8", "cn9"))
    assert changed.attributes[0] == {"model": "V100", "cores": 4, "ssd": True}
    assert changed.owners == ("lab/a", "lab/a", None)
    assert lab().replace(hosts=None).hosts == ((), (), ())
    with pytest.raises(fo.InvalidInstance, match=re.escape('attributes: there is no server "odl" (did you mean "old"?)')):
        lab().replace(attributes={"odl": {"ssd": True}})


def test_a_row_whose_count_changes_has_no_hosts_any_more() -> None:
    """Nobody knows which of them are there; with the hosts given too, they are known."""
    assert lab().replace(counts={"old": 1}).hosts == ((), ("gn1",), ("cn7", "cn8", "cn9"))
    assert lab().replace(counts=[2, 4, 3]).hosts == (("cn1", "cn3"), (), ("cn7", "cn8", "cn9"))
    assert lab().replace(counts=None).hosts == ((), ("gn1",), ())
    assert lab().replace(counts={"old": 1}, hosts={"old": "cn3"}).hosts[0] == ("cn3",)
    with pytest.raises(fo.InvalidInstance, match="the count is 1"):
        lab().replace(counts={"old": 1}, hosts={"old": "cn[1,3]"})


def test_facts_go_with_labels_where_rows_are_given_anew() -> None:
    """Fewer rows, in another order; a row of a new label has none. Labels alone rename."""
    fewer = lab().replace(capacities=[[8], [2]], counts=[1, 1], servers=["new", "big"])
    assert fewer.hosts == (("gn1",), ())
    assert list(fewer.attributes) == [{"model": "A100"}, {}]
    renamed = lab().replace(servers=["x", "y", "z"], users=["p", "q", "r"])
    assert (renamed.hosts, renamed.attributes, renamed.owners) == (lab().hosts, lab().attributes, lab().owners)
    users = lab().replace(demands=np.ones((2, 1)), weights=None, tasks=None, parallelism=None, users=["b", "c"])
    assert users.owners == ("lab/b", None)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"owners": ["a", "b", " "]}, "the owner of \"b\" is ' '; it must be text that is not blank, or None"),
        ({"owners": ["a", "b", 3]}, 'the owner of "b" is 3; it must be text that is not blank, or None'),
        ({"owners": ["a"]}, "owners has 1 entry for 3 users; give one for each"),
        ({"owners": {"c": "a"}}, 'owners: there is no user "c"'),
        ({"attributes": [{"a": [1]}, {}, {}]}, 'server "old": its attribute "a" is [1]; give text, a finite number, true or false'),
        ({"attributes": [{"a": np.nan}, {}, {}]}, 'server "old": its attribute "a" is nan; give text, a finite number, true or false'),
        ({"attributes": [{" ": 1}, {}, {}]}, "server \"old\": the name of an attribute is ' '; it must be text that is not blank"),
        ({"attributes": ["a", {}, {}]}, "server \"old\": its attributes are 'a'; give a mapping such as"),
    ],
)
def test_facts_that_cannot_be(facts: dict[str, Any], message: str) -> None:
    """Where, what, and what to do."""
    with pytest.raises(fo.InvalidInstance, match=re.escape(message)):
        lab(**facts)


def test_plain_data_has_hosts_attributes_and_owners() -> None:
    """Folded; what is not known is left out."""
    data = lab(hosts={"same": HOSTS["same"]}, owners={"b": "lab/b"}).to_dict()
    assert [server.get("hosts") for server in data["servers"]] == [None, None, "cn[7-9]"]
    assert data["servers"][1]["attributes"] == {"model": "A100"}
    assert [user.get("owner") for user in data["users"]] == [None, None, "lab/b"]
    assert lab().to_frame("servers")["hosts"].to_dict() == HOSTS
    assert lab().to_frame("users")["owner"].tolist() == ["lab/a", "lab/a", "lab/b"]
    assert fo.Instance.from_frame(lab().to_frame("users"), lab().to_frame("servers")) == lab()
