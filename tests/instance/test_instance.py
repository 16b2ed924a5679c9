"""What an instance refuses, in which words, and what follows from one."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairopt as fo
from fairopt.analysis.properties.verdict import Witness

GOOD: dict[str, Any] = {
    "capacities": [[9, 18], [4, 4]],
    "demands": [[1, 4], [3, 1]],
    "users": ["alice", "bob"],
    "servers": ["A", "B"],
    "resources": ["cpu", "memory"],
}

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "NaN": ({"demands": [[1, np.nan], [3, 1]]}, 'the demand of "alice" for "memory" is nan; it must be finite and >= 0'),
    "infinity": ({"capacities": [[np.inf, 1], [4, 4]]}, 'the capacity of "A" for "cpu" is inf; it must be finite'),
    "negative": ({"capacities": [[9, 18], [-4, -1]]}, 'the capacity of "B" for "cpu" is -4; it must be finite and >= 0 (1 more like it)'),
    "magnitude": ({"capacities": [[1e300, 1], [1, 1]]}, "0 or between 1e-60 and 1e+60: measure in another unit"),
    "zero demand row": ({"demands": [[0, 0], [3, 1]]}, 'user "alice" demands nothing and has no task limit'),
    "negative weight": ({"weights": [1, -1]}, 'the weight of "bob" is -1; it must be finite and >= 0'),
    "weight per resource": ({"weights": [[1, 1], [1, -2]]}, 'the weight of "bob" for "memory" is -2'),
    "weights' shape": ({"weights": [1, 2, 3]}, "the shape of weights is (3,), expected (2,), one per user"),
    "half a server": ({"counts": [1, 1.5]}, 'the count of "B" is 1.5; it must be a whole number >= 0'),
    "almost a server": ({"counts": [1, 0.99999999]}, 'the count of "B" is 0.99999999; it must be a whole number >= 0'),
    "just too large": ({"capacities": [[1.0000001e60, 1], [1, 1]]}, 'for "cpu" is 1.0000001e+60; it must be 0 or between'),
    "NaN tasks": ({"tasks": [np.nan, 1]}, 'the number of tasks of "alice" is nan'),
    "negative tasks": ({"tasks": [1, -1]}, 'the number of tasks of "bob" is -1'),
    "tasks' shape": ({"tasks": [[1, 1]]}, "the shape of tasks is (1, 2), expected (2,): one per user"),
    "infinite rate": ({"rates": [[1, 1], [1, np.inf]]}, 'the rate of "bob" for "B" is inf'),
    "eligibility's shape": (
        {"eligibility": [[True, True, True]] * 2},
        "the shape of eligibility is (2, 3), expected (2, 2): (users, servers)",
    ),
    "eligibility's values": ({"eligibility": [[0.5, 1], [1, 1]]}, "for how fast a user runs on a server use rates"),
    "text": ({"demands": [["1", "4"], ["3", "1"]]}, "which is not a real number; give numbers only"),
    "booleans": ({"demands": [[True, False], [True, True]]}, "which is not a real number"),
    "ragged": ({"demands": [[1, 4], [3]]}, "the demands are not a rectangular array"),
    "flat": ({"demands": [1, 4]}, "the shape of demands is (2,), expected two dimensions: (users, resources)"),
    "nobody": ({"demands": np.empty((0, 2)), "users": []}, "there must be at least one row and one column"),
    "resources differ": ({"demands": [[1, 4, 1], [3, 1, 1]]}, "capacities have 2 resources (columns) but demands have 3"),
    "duplicate label": ({"users": ["alice", "alice"]}, 'the user label "alice" occurs twice'),
    "empty label": ({"servers": ["A", " "]}, "server label 2 is empty"),
    "missing label": ({"resources": ["cpu"]}, "the number of resource labels is 1, expected 2: one for each resource"),
    "number as label": ({"users": ["alice", 7]}, "user label 2 is 7, not a string"),
    "one string": ({"users": "ab"}, 'the user labels are one string, "ab"'),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_input_is_refused_with_the_place(case: str) -> None:
    """The message says what, where and what to do; the error is a ValueError too."""
    change, message = BAD[case]
    with pytest.raises(fo.InvalidInstance) as caught:
        fo.Instance(**{**GOOD, **change})
    assert message in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"demands": pd.DataFrame([[1, 4], [3, 1]], columns=["memory", "cpu"])}, "nothing is aligned by guess"),
        ({"demands": pd.DataFrame([[1, 4], [3, 1]], columns=["cpu", "memory"], index=["bob", "alice"])}, "nothing is aligned by guess"),
        ({"weights": pd.Series([1, 2], index=["bob", "alice"])}, "the index of the weights is ['bob', 'alice'], expected ['alice', 'bob']"),
        ({"counts": pd.Series([1, 2], index=["A", "C"])}, "the index of the counts"),
        ({"rates": pd.DataFrame([[1, 2], [1, 2]], columns=["B", "A"])}, "the columns of the rates"),
    ],
)
def test_frames_must_match(change: dict[str, Any], message: str) -> None:
    """Labels of frames and series are compared, never used to sort."""
    with pytest.raises(fo.InvalidInstance) as caught:
        fo.Instance(**{**GOOD, **change})
    assert message in str(caught.value)


def test_frames_bring_their_labels() -> None:
    """A frame's rows and columns are the labels; a default index says nothing."""
    capacities = pd.DataFrame([[9, 18]], index=["pool"], columns=["cpu", "memory"])
    demands = pd.DataFrame([[1, 4], [3, 1]], columns=["cpu", "memory"])
    instance = fo.Instance(capacities, demands, weights=pd.Series([1, 2]))
    assert (instance.servers, instance.users, instance.resources) == (("pool",), ("user-1", "user-2"), ("cpu", "memory"))


def test_defaults_and_what_follows() -> None:
    """Labels, weights, counts, tasks; totals; gamma with and without constraints."""
    instance = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], counts=[1, 3])
    assert instance.users == ("user-1", "user-2", "user-3")
    np.testing.assert_array_equal(instance.total_capacity, [45, 48, 100])
    np.testing.assert_array_equal(instance.eligibility, [[1, 0], [1, 0], [1, 1]])
    np.testing.assert_array_equal(instance.rates, [[6, 0], [6, 0], [6, 18]])
    confined = instance.replace(eligibility=[[1, 1], [1, 1], [1, 0]])
    np.testing.assert_array_equal(confined.rates, [[6, 0], [6, 0], [6, 0]])
    np.testing.assert_array_equal(confined.unconstrained_rates, instance.rates)


def test_arrays_are_read_only_and_copied() -> None:
    """Neither the instance nor the caller's array can change the other."""
    capacities = np.array([[1.0, 2.0]])
    instance = fo.Instance(capacities, [[1.0, 1.0]])
    capacities[0, 0] = 5
    assert instance.capacities[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        instance.capacities[0, 0] = 5
    with pytest.raises(AttributeError):
        instance.tasks = np.zeros(1)  # type: ignore[misc]


def test_unservable_users_are_named_and_get_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """They stay in the tables, are left out of every goal, and a warning names them."""
    instance = fo.Instance([[4, 0]], [[1, 0], [1, 1]], users=["alice", "bob"])
    assert instance.unservable == ("bob",)
    for notion in ("drf", "drfh", "cdrf", "tsf", "asset", "per-server-drf"):
        np.testing.assert_array_equal(fo.solve(instance, notion).tasks_per_user, [4, 0])
    np.testing.assert_array_equal(fo.solve(instance, "uniform").tasks_per_user, [2, 0])
    assert "no server is eligible for bob" in caplog.text


def test_what_was_given_is_kept_when_something_else_changes() -> None:
    """A row of count 0 makes its pairs ineligible; with servers in it they are eligible again, unless ruled out by hand."""
    empty = fo.Instance([[1], [1]], [[1]], counts=[1, 0])
    assert empty.eligibility.tolist() == [[True, False]]
    assert empty.replace(counts=[1, 2]).eligibility.tolist() == [[True, True]]
    ruled_out = empty.replace(eligibility=[[True, False]])
    assert ruled_out.replace(counts=[1, 2]).eligibility.tolist() == [[True, False]]
    with pytest.raises(TypeError, match='no "wieghts" \\(did you mean "weights"'):
        empty.replace(wieghts=[1])


def test_dataclasses_replace_says_what_to_use() -> None:
    """It knows the fields, and not the arguments that they are made of."""
    pool: Any = fo.Instance([[4]], [[1], [2]])  # as if it took the fields
    for changes in ({}, {"weights": [1, 3]}):
        with pytest.raises(TypeError, match=r"use instance.replace\(\.\.\.\)"):
            dataclasses.replace(pool, **changes)


def test_replace_by_label() -> None:
    """Each argument by the labels of its rows and columns; the other labels keep their values."""
    queues = [fo.Queue("research", guarantee={"cpu": 2}, limit={"memory": 20}), fo.Queue("teaching", weight=2)]
    labels: dict[str, Any] = {"users": ["alice", "bob"], "servers": ["new", "old"], "resources": ["cpu", "memory"]}
    lab = fo.Instance([[9, 18], [4, 4]], [[1, 4], [3, 1]], tasks=[5, np.inf], queues=queues, queue_of=["research", "teaching"], **labels)
    for by_label, whole in (
        ({"weights": {"bob": 3}}, {"weights": [1, 3]}),
        ({"tasks": {"bob": 7}}, {"tasks": [5, 7]}),
        ({"guarantees": {"alice": 1}}, {"guarantees": [1, 0]}),
        ({"parallelism": {"alice": 1}}, {"parallelism": [1, np.inf]}),
        ({"counts": {"new": 3}}, {"counts": [3, 1]}),
        ({"capacities": {"old": {"memory": 8}}}, {"capacities": [[9, 18], [4, 8]]}),
        ({"demands": {"bob": [2, 2]}}, {"demands": [[1, 4], [2, 2]]}),
        ({"eligibility": {"bob": ["new"]}}, {"eligibility": [[True, True], [True, False]]}),
        ({"eligibility": {"bob": {"new": False}}}, {"eligibility": [[True, True], [False, True]]}),
        ({"queue_of": {"bob": None}}, {"queue_of": ["research", None]}),
        ({"queues": {"teaching": {"weight": 4}}}, {"queues": [queues[0], fo.Queue("teaching", weight=4)]}),
        (
            {"queues": {"research": {"guarantee": {"memory": 1}, "limit": {"memory": None}}, "new": fo.Queue("new")}},
            {"queues": [fo.Queue("research", guarantee={"cpu": 2, "memory": 1}), queues[1], fo.Queue("new")]},
        ),
    ):
        changed = lab.replace(**by_label)
        assert changed == lab.replace(**whole), by_label
        assert changed != lab, by_label
    flat = lab.replace(queues=None, queue_of=None)
    each = flat.replace(weights=[[1, 1], [2, 2]]).replace(weights={"bob": {"cpu": 5}})
    assert each.weights.tolist() == [[1, 1], [5, 2]]
    rated = flat.replace(rates=[[1, 2], [3, 4]]).replace(rates={"alice": {"old": 9}})
    assert rated.rates.tolist() == [[1, 9], [3, 4]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": {"bbo": 3}}, 'weights: there is no user "bbo" (did you mean "bob"?)'),
        ({"counts": {"bob": 3}}, 'counts: there is no server "bob"; the servers are new and old'),
        ({"demands": {"bob": {"disk": 3}}}, 'demands of "bob": there is no resource "disk"; the resources are cpu and memory'),
        ({"demands": {"bob": [3]}}, 'demands of "bob": 1 values for 2 resources; give them by label'),
        ({"weights": {"bob": "3"}}, "weights of \"bob\" is '3'; give a number"),
        ({"weights": {"bob": -1}}, 'weight of "bob" is -1'),
        ({"eligibility": {"bob": {"new": 2}}}, 'eligibility of "bob", "new" is 2; give True or False'),
        ({"rates": {"bob": {"new": 2}}}, "the instance has no rates"),
        ({"users": {"bob": "rob"}}, "users cannot be a mapping"),
        ({"queues": {"lab": {"weight": 2}}}, 'queues: there is no queue "lab"; there are no queues'),
    ],
)
def test_replace_by_label_refuses_what_is_not_there(changes: dict[str, Any], message: str) -> None:
    """The message has the label."""
    lab = fo.Instance([[9, 18], [4, 4]], [[1, 4], [3, 1]], users=["alice", "bob"], servers=["new", "old"], resources=["cpu", "memory"])
    with pytest.raises(fo.InvalidInstance) as refused:
        lab.replace(**changes)
    assert message in str(refused.value)


def test_an_instance_with_rates_is_another() -> None:
    """Whichever of the two has them, and however many."""
    plain, rated = fo.Instance(**GOOD), fo.Instance(**GOOD, rates=[[1, 2], [3, 4]])
    assert plain != rated
    assert rated != plain
    assert rated == fo.Instance(**GOOD, rates=[[1, 2], [3, 4]])


def test_arguments_by_label() -> None:
    """Who is left out has the default."""
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"weights": {"bob": 3}}, {"weights": [1, 3]}),
        ({"weights": {"bob": {"memory": 3}}}, {"weights": [[1, 1], [1, 3]]}),
        ({"tasks": {"alice": 5}, "guarantees": {"alice": 2}}, {"tasks": [5, np.inf], "guarantees": [2, 0]}),
        ({"parallelism": {"bob": 1}, "counts": {"B": 4}}, {"parallelism": [np.inf, 1], "counts": [1, 4]}),
        ({"eligibility": {"bob": ["B"]}}, {"eligibility": [[True, True], [False, True]]}),
        ({"queues": [fo.Queue("q")], "queue_of": {"bob": "q"}}, {"queues": [fo.Queue("q")], "queue_of": [None, "q"]}),
    ]
    for by_label, whole in cases:
        assert fo.Instance(**GOOD, **by_label) == fo.Instance(**GOOD, **whole), by_label
        assert fo.Instance(**GOOD, **by_label) != fo.Instance(**GOOD), by_label


def test_arguments_by_label_need_labels_that_are_there() -> None:
    """With a hint."""
    with pytest.raises(fo.InvalidInstance, match=r'^tasks: there is no user "bbo" \(did you mean "bob"\?\)$'):
        fo.Instance(**GOOD, tasks={"bbo": 3})


def test_equality_pickle_and_repr() -> None:
    """Equal data is equal; a pickle comes back; the repr tells what is inside."""
    instance = fo.Instance(**GOOD, tasks=[3, np.inf], counts=[2, 1], eligibility=[[1, 1], [1, 0]])
    assert instance == fo.Instance(**GOOD, tasks=[3, np.inf], counts=[2, 1], eligibility=[[1, 1], [1, 0]])
    assert instance != instance.replace(tasks=[3, 4])
    assert instance != "something else"
    assert pickle.loads(pickle.dumps(instance)) == instance
    assert repr(instance) == (
        "Instance(2 users, 3 servers in 2 rows, 2 resources: 22 cpu, 40 memory; 1 user cannot run on every server; "
        "1 user with finitely many tasks)"
    )


def _pickled(data: Any) -> Any:
    return pickle.loads(pickle.dumps(data))


def _arrays(data: Any) -> dict[str, np.ndarray[Any, Any]]:
    values = {field.name: getattr(data, field.name) for field in fields(data)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("again", [_pickled, copy.copy, copy.deepcopy, fo.Instance.replace])
def test_arrays_of_a_copy_are_read_only_too(again: Callable[[fo.Instance], fo.Instance]) -> None:
    """However it was made: an instance that a worker process received cannot change under it."""
    instance = fo.Instance(**GOOD, tasks=[3, np.inf], rates=[[1, 2], [3, 4]], eligibility=[[1, 1], [1, 0]])
    other = again(instance)
    assert other == instance
    assert len(_arrays(other)) == 12
    for name, array in _arrays(other).items():
        assert not array.flags.writeable, name


@pytest.mark.parametrize("again", [_pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", ["allocation", "trace", "frontier", "witness"])
def test_arrays_of_copied_results_are_read_only_too(kind: str, again: Callable[[Any], Any]) -> None:
    """Of all data whose arrays are read-only: what is inside an allocation, its instance, is so as well."""
    instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
    make: dict[str, Callable[[], Any]] = {
        "allocation": lambda: fo.solve(instance, "proportional"),
        "trace": lambda: fo.Trace(["a", "b"], [0, 1], [2, 1], [[1], [1]], [5, 6], eligibility=[[True], [True]]),
        "frontier": lambda: fo.frontier(instance, alphas=[], notions=[]),
        "witness": lambda: Witness("", tasks=np.ones((2, 1)), instance=instance),
    }
    data = make[kind]()
    other = again(data)
    arrays = _arrays(other) | (_arrays(other.instance) if hasattr(other, "instance") else {})
    assert arrays
    assert set(_arrays(other)) == set(_arrays(data))
    for name, array in arrays.items():
        assert not array.flags.writeable, name
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


def test_a_user_without_demand_runs_all_its_tasks() -> None:
    """Zero demand and finitely many tasks: nobody pays for them."""
    instance = fo.Instance([[4]], [[0], [1]], tasks=[7, np.inf])
    np.testing.assert_array_equal(instance.zero_demand, [True, False])
    np.testing.assert_array_equal(instance.effortless, instance.zero_demand)
    for notion in ("drf", "drfh", "cdrf", "uniform"):
        expected = [7, 2] if notion == "uniform" else [7, 4]
        np.testing.assert_array_equal(fo.solve(instance, notion).tasks_per_user, expected)


def test_capacities_over_eighteen_orders_of_magnitude() -> None:
    """1e-6 to 1e12 in one instance, and the answer is still exact: each user alone on its own server."""
    instance = fo.Instance([[1e-6, 0], [0, 1e12]], [[1e-9, 0], [0, 1e7]])
    allocation = fo.solve(instance, "drfh")
    np.testing.assert_allclose(allocation.tasks_per_user, [1e3, 1e5], rtol=1e-12)
    assert allocation.certificate.worst <= 1e-12


def test_pooled_adds_servers_and_keeps_users() -> None:
    """Counts are counted; eligibility goes; weights, tasks and labels stay."""
    instance = fo.Instance(
        [[9, 12], [12, 0]],
        [[1, 0], [1, 2]],
        weights=[1, 2],
        eligibility=[[True, False], [True, True]],
        counts=[1, 3],
        tasks=[4, np.inf],
        users=["a", "b"],
        resources=["cpu", "memory"],
    )
    pool = instance.pooled()
    assert pool == fo.Instance(
        [[45, 12]],
        [[1, 0], [1, 2]],
        weights=[1, 2],
        tasks=[4, np.inf],
        users=["a", "b"],
        servers=["pool"],
        resources=["cpu", "memory"],
    )
    assert pool.pooled() == pool


def test_rates_cannot_be_pooled() -> None:
    """A speed on each server is no capacity."""
    with pytest.raises(fo.InvalidInstance, match="do not add up to the capacity of one pool"):
        fo.Instance([[1], [1]], [[1]], rates=[[1, 2]]).pooled()
