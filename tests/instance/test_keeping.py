"""What queues keep of their guarantees: z of the root against every row of the family, by brute force in fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from instances import instance_in_queues, with_lenders
from reference.kept import all_rows, kept_of

import fairopt as fo
from fairopt.instance.keeping import keepings_of


def number(value: float) -> Fraction:
    """Return the fraction that a float is written as."""
    return Fraction(str(value))


def lab(queues: list[fo.Queue], queue_of: list[str | None], capacity: float = 100, **options: Any) -> fo.Instance:
    """One server with cores; each user takes one core a task."""
    return fo.Instance([[capacity]], np.ones((len(queue_of), 1)), resources=["cpu"], queues=queues, queue_of=queue_of, **options)


def test_a_queue_in_a_queue_counts_within_what_that_one_keeps() -> None:
    """Parent keeps 30, child 20: 30 while both are idle; with 15 of the parent's own users 15 + 20; with 5 of the child no more."""
    parent = fo.Queue("parent", guarantee={"cpu": 30}, lending_limit={"cpu": 0})
    child = fo.Queue("child", "parent", guarantee={"cpu": 25}, lending_limit={"cpu": 5})
    (keeping,) = keepings_of(lab([child, parent], ["child", "parent", None]))
    assert [keeping.nodes, keeping.kept, keeping.above] == [(2, 1), (30, 20), (-1, 0)]
    for held, counted in (([0, 0, 0], 30), ([15, 0, 0], 35), ([15, 5, 0], 35), ([15, 22, 0], 37), ([5, 5, 40], 70)):
        assert keeping.counted(held)[-1] == counted
    assert keeping.rooms([15, 5, 40]) == [25, 40, 25]  # 100 - 35 - 40; the child has 15 more of its own
    assert keeping.rooms([5, 5, 40]) == [35, 50, 30]  # the parent has 5 more
    assert keeping.keepers([15, 5, 40]) == (1,)
    assert keeping.keepers([5, 5, 40]) == (0,)
    assert keeping.keepers([5, 5, 40], inside=1) == ()  # of the child's users: the parent and the child do not keep anything from them


def test_kept_parts_that_do_not_fit_are_scaled() -> None:
    """80 and 40 of 100: 5/6 of each, exactly; with the child inside the parent they fit."""
    keep: dict[str, Any] = {"guarantee": {"cpu": 80}, "lending_limit": {"cpu": 0}}
    less: dict[str, Any] = {"guarantee": {"cpu": 40}, "lending_limit": {"cpu": 0}}
    (keeping,) = keepings_of(lab([fo.Queue("a", **keep), fo.Queue("b", **less)], ["a", "b"]).exact)
    assert keeping.said == (80, 40)
    assert keeping.kept == keeping.asked == (Fraction(200, 3), Fraction(100, 3))
    assert keeping.left((0, 1)) == 0
    (keeping,) = keepings_of(lab([fo.Queue("a", **keep), fo.Queue("b", "a", **less)], ["a", "b"]))
    assert keeping.kept == keeping.said == (80, 40)


@pytest.mark.parametrize(
    ("queues", "tasks", "expected"),
    [
        ({"A": (8, 0, None), "B": (8, 8, None)}, [8, 8], [4, 4]),  # A asks for what it keeps as B asks for its guarantee
        ({"A": (8, 0, None), "B": (8, 8, None)}, [0, 8], [0, 4]),  # also while A is idle
        ({"A": (8, 0, None), "B": (8, 8, None)}, [8, 2], [6, 2]),  # B asks for 2, A keeps 6
        ({"A": (8, 0, None), "B": (8, 8, None)}, [0, 2], [0, 2]),
        ({"A": (8, 5, None), "B": (8, 8, None)}, [0, 8], [0, 5]),  # A keeps 3, as it says
        ({"A": (6, 0, None), "A1": (6, 0, "A"), "B": (6, 6, None)}, [0, 8, 0], [0, 4, 0]),  # the inner one within the outer one
        ({"A": (0, 0, None), "A1": (4, 0, "A"), "A2": (4, 4, "A"), "B": (8, 8, None)}, [0, 8, 8], [0, 2, 4]),
    ],
)
def test_what_is_kept_is_asked_for(queues: dict[str, Any], tasks: list[float], expected: list[float]) -> None:
    """8 GPUs; guarantee, lending limit and parent of each queue; who has no child has a user. Worked out by hand."""
    made = [
        fo.Queue(name, parent, guarantee={"cpu": most} if most else {}, lending_limit={"cpu": lent} if most else {})
        for name, (most, lent, parent) in queues.items()
    ]
    inner = [name for name in queues if not any(name == parent for *_, parent in queues.values())]
    users = [*inner, *(name for name in queues if name not in inner)][: len(tasks)]
    instance = lab(made, [*users], 8, tasks=tasks)
    assert fo.solve(instance, "drfh").tasks_per_user == pytest.approx(expected)
    assert fo.solve(instance, "drfh", exact=True).exact.tasks_per_user.tolist() == expected  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", range(60))
def test_guarantees_beyond_the_pool_are_met_in_parts(seed: int) -> None:
    """Trees whose guarantees exceed what there is, against linear programs in fractions."""
    rng = np.random.default_rng(seed)
    names = [f"q{k}" for k in range(int(rng.integers(1, 7)))]
    queues = []
    for k, name in enumerate(names):
        parent = None if k == 0 or rng.random() < 0.4 else names[int(rng.integers(k))]
        most, lent = int(rng.integers(1, 9)), int(rng.integers(0, 4))
        promised = {"cpu": most} if rng.random() < 0.8 else {}
        limit = {"cpu": most + int(rng.integers(0, 4))} if rng.random() < 0.3 else {}
        lending = {"cpu": min(lent, most)} if promised and lent < 3 else {}
        queues.append(fo.Queue(name, parent, float(rng.integers(0, 3)), promised, limit, lending))
    users = [names[int(rng.integers(len(names)))] if rng.random() < 0.9 else None for _ in range(int(rng.integers(1, 6)))]
    tasks = [float(rng.integers(1, 9)) if rng.random() < 0.7 else np.inf for _ in users]
    own = np.minimum([float(rng.integers(0, 3)) if rng.random() < 0.3 else 0.0 for _ in users], tasks)
    weights = rng.integers(0, 3, len(users))
    instance = lab(queues, users, int(rng.integers(2, 16)), tasks=tasks, weights=weights, guarantees=own).exact
    expected = [{q: amount for q, amount in kept.amounts.items() if amount} for kept in kept_of(instance, Fraction)]
    found = [
        {node - 1: kept for node, kept in zip(each.nodes, each.kept, strict=True) if kept} for each in keepings_of(instance)
    ]  # fmt: skip
    assert found == [each for each in expected if each]


def test_a_row_of_servers_counts_as_often_as_it_is_there() -> None:
    """3 of 2 GPUs and 1 of 4: of the group of the first two rows 10, of the cluster 11."""
    on_new = fo.Quota(["new", "newer"], {"gpu": 5}, lending_limit={"gpu": 1}, name="model = A100")
    queues = [fo.Queue("a", guarantee={"gpu": 2}, lending_limit={"gpu": 1}, quotas=[on_new]), fo.Queue("b")]
    instance = fo.Instance(
        *([[2], [4], [1]], [[1], [1]]), counts=[3, 1, 1], servers=["new", "newer", "old"], resources=["gpu"], queues=queues,
        queue_of=["a", "b"],
    )  # fmt: skip
    assert [(each.group, each.capacity, each.kept) for each in keepings_of(instance)] == [("", 11, (1,)), ("model = A100", 10, (4,))]


def test_who_keeps_nothing_is_not_there() -> None:
    """No lending limit; all is lent; a resource that the cluster does not have."""
    nothing = [fo.Queue("a", guarantee={"cpu": 3}), fo.Queue("b", guarantee={"cpu": 3}, lending_limit={"cpu": 3})]
    assert keepings_of(lab(nothing, ["a", "b"])) == ()
    assert keepings_of(lab([fo.Queue("a", guarantee={"cpu": 3}, lending_limit={"cpu": 0})], ["a"], capacity=0)) == ()


@pytest.mark.parametrize("seed", range(40))
def test_z_is_the_whole_family(seed: int) -> None:
    """At random points: what is scaled, by how much the worst row is exceeded, and how much a user may have more."""
    instance = with_lenders(instance_in_queues(seed), seed)
    exact = instance.exact
    keepings = {(each.resource, tuple(np.flatnonzero(each.servers).tolist())): each for each in keepings_of(exact)}
    scaled = {
        (each.resource, tuple(each.servers)): each for each in kept_of(instance, number) if any(each.amounts.values()) and each.capacity
    }
    assert keepings.keys() == scaled.keys()
    rng = np.random.default_rng(seed)
    for key, keeping in keepings.items():
        amounts = {node - 1: kept for node, kept in zip(keeping.nodes, keeping.kept, strict=True)}
        assert amounts == {q: amount for q, amount in scaled[key].amounts.items() if amount}
        rows = [row for row in all_rows(instance, number) if (row.resource, tuple(row.servers)) == key]
        for _ in range(5):
            held = [Fraction(int(value), 3) for value in rng.integers(0, max(int(2 * keeping.capacity), 2), instance.n_users)]
            sums = keeping.held(np.array(held, object))
            left = [row.bound - sum((held[n] for n in row.users), Fraction(0)) for row in rows]
            whole = keeping.capacity - sum(held)  # the row of the empty set
            assert keeping.capacity - keeping.counted(sums)[-1] == min(*left, whole)
            for n in range(instance.n_users):
                own = [room for room, row in zip(left, rows, strict=True) if n in row.users]
                assert keeping.rooms(sums)[keeping.nearest[n]] == min([*own, whole])
                keepers = keeping.keepers(sums, int(keeping.nearest[n]))
                outside = [m for m in range(instance.n_users) if not any(exact.tree.below[keeping.nodes[k], m] for k in keepers)]
                assert n in outside
                assert keeping.left(keepers) - sum((held[m] for m in outside), Fraction(0)) == min([*own, whole])
