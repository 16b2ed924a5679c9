"""Named limits: what they select, what is refused, and what merging, expansion and the pool make of them."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from instances import instance_of_everything
from reference.named_limits import rows_of_limits, with_limits

import fairopt as fo
from fairopt.instance.aggregation import expand, merge
from fairopt.instance.exact_merging import merge_exactly
from fairopt.program.queue_limits import limit_rows

LAB: dict[str, Any] = {
    **{"capacities": [[8, 64], [4, 32]], "demands": [[1, 4], [2, 4], [1, 8]], "counts": [2, 1]},
    **{"users": ["ann", "bob", "eve"], "servers": ["new", "old"], "resources": ["gpu", "cpu"]},
    "attributes": [{"model": "A100"}, {"model": "V100"}],
}


def lab(*limits: fo.Limit, **more: Any) -> fo.Instance:
    """Three users on two rows of servers."""
    return fo.Instance(**LAB, limits=limits, **more)


@pytest.mark.parametrize("seed", range(30))
def test_rows_are_those_of_the_labels(seed: int) -> None:
    """Each row has the name, the coefficients and the bound that its limit says."""
    instance = with_limits(instance_of_everything(seed), seed, number=4)
    found = {row.name: row for row in limit_rows(instance)}
    for expected in rows_of_limits(instance):
        row = found[expected.name]
        each = row.per_task(instance.kinds)
        use = np.where(row.servers, each[:, None], 0) if each.ndim == 1 else each
        np.testing.assert_array_equal(use, expected.use)
        assert row.bound == pytest.approx(expected.bound, rel=1e-15)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fo.Limit("", 1), "must be a string that is not blank"),
        (lambda: fo.Limit("a.b", 1), "its name has a dot"),
        (lambda: fo.Limit("x", -1), "must be finite and >= 0, got -1"),
        (lambda: fo.Limit("x", float("nan")), "must be finite and >= 0, got nan"),
        (lambda: fo.Limit("x", float("inf")), "must be finite and >= 0, got inf"),
        (lambda: fo.Limit("x", 1, resource="gpu", amounts={"ann": 1}), "it has a resource and amounts"),
        (lambda: fo.Limit("x", 1, amounts={"ann": -1}), 'the amount of "ann" must be finite and >= 0'),
        (lambda: fo.Limit("x", 1, each=cast(Any, "host")), "each is 'host'"),
        (lambda: fo.Limit("x", 1, users=[]), "its list of users is empty"),
        (lambda: lab(fo.Limit("x", 1, users=["anne"])), r'there is no user "anne" \(did you mean "ann"'),
        (lambda: lab(fo.Limit("x", 1, queues=["lab"])), 'there is no queue "lab"; there are no queues'),
        (lambda: lab(fo.Limit("x", 1, servers=["newer"])), 'there is no server "newer"'),
        (lambda: lab(fo.Limit("x", 1, resource="gpus")), 'there is no resource "gpus"'),
        (lambda: lab(fo.Limit("x", 1, servers="model = H100")), 'no server meets "model = H100"'),
        (lambda: lab(fo.Limit("x", 1, amounts={"anne": 1})), 'there is no user "anne"'),
        (lambda: lab(fo.Limit("x", 1, amounts=[1, 2])), r"the shape of its amounts is \(2,\)"),
        (lambda: lab(fo.Limit("x", 1), fo.Limit("x", 2)), 'there are two limits "x"'),
        (lambda: lab(fo.Limit("x", 1, each="queue")), "there are no queues"),
        (
            lambda: lab(fo.Limit("gpu of q", 1), queues=[fo.Queue("q", limit={"gpu": 3})]),
            'its row "gpu of q" has the name of the limit of gpu of queue "q"',
        ),
        (lambda: lab(fo.Limit("tasks", 1, each="user"), tasks=[5, 5, 5]), 'its row "tasks of ann" has the name of the row of the tasks of'),
        (
            lambda: lab(fo.Limit("x", 3, resource="gpu", queues=["q"]), queues=[fo.Queue("q", guarantee={"gpu": 4})], queue_of=["q"] * 3),
            'less than the guarantee of queue "q", 4',
        ),
        (lambda: lab(fo.Limit("x", 1, users=["ann"]), guarantees=[2, 0, 0]), 'less than the guarantee of user "ann", 2'),
        (lambda: lab(fo.Limit("x", 1, queues=["q"]), queues=[fo.Queue("q")]), "it selects nobody, as no user is below q"),
    ],
)
def test_what_is_wrong_is_refused(make: Any, message: str) -> None:
    """Each refusal names the limit and what is wrong."""
    with pytest.raises(fo.InvalidInstance, match=message):
        make()


def test_labels_survive() -> None:
    """Equality, pickles, fractions, changes by name, and the plain data of files."""
    limits = (
        fo.Limit("third", Fraction(1, 3), resource="gpu", users=["ann"]),
        fo.Limit("mine", 5, amounts=np.array([[1, 2], [0, 1], [0, 0]]), servers="model = A100"),
    )
    instance = lab(*limits)
    assert pickle.loads(pickle.dumps(instance)) == instance
    assert instance.in_fractions
    assert instance.exact.limits[0].bound == Fraction(1, 3)
    assert instance.limits[1].to_dict()["amounts"] == {"ann": {"new": 1, "old": 2}, "bob": {"old": 1}}
    assert instance.replace(limits={"third": {"bound": 2}}).limits[0] == fo.Limit("third", 2, resource="gpu", users=["ann"])
    assert instance.replace(limits={"third": None}).limits == instance.limits[1:]
    renamed = instance.replace(users=["a", "b", "e"], servers=["n", "o"])
    assert renamed.limits[0].users == ("a",)
    assert renamed.limits[1].to_dict()["amounts"] == {"a": {"n": 1, "o": 2}, "b": {"o": 1}}


def test_limits_of_one_user_merge_as_its_tasks() -> None:
    """Users of weights 1 and 3 with bounds 2 and 6 become one of bound 8; one of another bound stays apart."""
    instance = fo.Instance(
        [[100]], [[1]] * 4, weights=[1, 3, 1, 1], limits=[fo.Limit("a", 2, users=["user-1"]), fo.Limit("b", 6, users=["user-2"])]
    )
    assert [limit.bound for limit in merge(instance).instance.limits] == [8]
    assert [limit.bound for limit in merge_exactly(instance).instance.limits] == [8]
    assert merge(instance).instance.n_users == 2
    np.testing.assert_allclose(fo.solve(instance, "drfh").tasks_per_user, [2, 6, 46, 46])
    each = fo.Instance([[100]], [[1]] * 4, weights=[1, 1, 1, 2], limits=[fo.Limit("each", 2, each="user")])
    assert sorted(limit.bound for limit in merge(each).instance.limits) == [2, 6]


def test_users_merge_only_where_a_common_limit_counts_them_alike() -> None:
    """Of four equal users two are in a limit."""
    instance = fo.Instance([[8]], [[1]] * 4, limits=[fo.Limit("two", 2, users=["user-1", "user-2"])])
    assert merge(instance).instance.n_users == 2
    by_server = fo.Instance(
        [[8], [8]], [[1]] * 2, limits=[fo.Limit("one", 2, amounts={"user-1": {"server-1": 1}, "user-2": {"server-1": 2}})]
    )
    assert merge(by_server).instance.n_users == 2
    assert merge(by_server).instance.n_servers == 2


def test_a_limit_of_each_server_is_that_of_one() -> None:
    """A row of two servers holds twice the bound, and single servers hold it each."""
    instance = lab(fo.Limit("each", 3, resource="gpu", each="server"))
    assert [row.bound for row in limit_rows(instance)] == [6, 3]
    single, _ = expand(instance)
    assert [row.bound for row in limit_rows(single)] == [3, 3, 3]
    assert [row.bound for row in limit_rows(instance.pooled())] == [9]


def test_a_pool_adds_what_other_servers_have() -> None:
    """Of 20 gpu, 16 on new: at most 3 there and all 4 elsewhere; tasks there cannot be said of a pool."""
    assert [row.bound for row in limit_rows(lab(fo.Limit("new", 3, resource="gpu", servers=["new"])).pooled())] == [7]
    with pytest.raises(fo.InvalidInstance, match='limit "new" is about some servers alone'):
        lab(fo.Limit("new", 3, servers=["new"])).pooled()


def test_who_demands_nothing_needs_a_limit_on_every_server() -> None:
    """Tasks that take nothing are bounded by a limit of tasks or amounts, not by one of a resource."""
    free: dict[str, Any] = {"capacities": [[8], [8]], "demands": [[0], [1]]}
    bounded = fo.Instance(**free, limits=[fo.Limit("five", 5, users=["user-1"])])
    np.testing.assert_allclose(fo.solve(bounded, "max-min").tasks_per_user, [5, 16])
    np.testing.assert_allclose(fo.solve(bounded, "proportional").tasks_per_user, [5, 16])
    for limit in (fo.Limit("five", 5, resource="resource-1"), fo.Limit("five", 5, servers=["server-1"])):
        with pytest.raises(fo.InvalidInstance, match="could run any number of tasks"):
            fo.Instance(**free, limits=[limit])


def test_amounts_of_users_whom_a_limit_does_not_select_stay_out_where_users_merge() -> None:
    """b is like a, and has an amount in a limit of a and c: a takes no part in its place, in floats and in fractions."""
    three = fo.Instance([[9]], [[1]] * 3, users=["a", "b", "c"], limits=[fo.Limit("l", 2, amounts={"b": 1, "c": 1}, users=["a", "c"])])
    np.testing.assert_allclose(fo.solve(three, "drfh").tasks_per_user, [3.5, 3.5, 2])
    exact = fo.solve(three, "drfh", exact=True).exact
    assert exact is not None
    assert exact.tasks_per_user.tolist() == [Fraction(7, 2), Fraction(7, 2), 2]
    assert fo.solve(three, "efficiency", exact=True).tasks_per_user.sum() == 9


@pytest.mark.parametrize("seed", range(12))
def test_amounts_of_anybody_change_nothing_but_what_they_count(seed: int) -> None:
    """The same limit with the amounts of its own users and servers alone, and demands that differ a little, so that nobody merges."""
    rng = np.random.default_rng(seed)
    users, servers = [f"u{n}" for n in range(5)], ["s0", "s1", "s2"]
    selected, places = [u for u in users if rng.random() < 0.6] or ["u0"], [s for s in servers if rng.random() < 0.6] or ["s0"]
    amounts = {u: {s: int(rng.integers(0, 3)) for s in servers} for u in users if rng.random() < 0.8} | {selected[0]: {places[0]: 1}}
    own = {u: {s: a for s, a in each.items() if s in places} for u, each in amounts.items() if u in selected}
    limit = fo.Limit("l", int(rng.integers(1, 5)), users=selected, servers=places, amounts=amounts)
    alike = fo.Instance([[4]] * 3, [[1]] * 5, users=users, servers=servers, limits=[limit])
    apart = alike.replace(demands=1 + 1e-9 * np.arange(5)[:, None], limits=[limit.replace(amounts=own)])
    for notion in ("drfh", "proportional"):
        found, expected = (fo.solve(instance, notion).tasks_per_user for instance in (alike, apart))
        np.testing.assert_allclose(found, expected, atol=1e-6)
