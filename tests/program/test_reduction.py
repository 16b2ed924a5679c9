"""Colour refinement against all partitions of tiny programs, and programs over classes against the whole programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import instances

import fairopt as fo
from fairopt.certificate import certify
from fairopt.models.drfh import DRFH
from fairopt.program import AlphaFair, Leximin, LimitKind, Limits, Program, Total, Tradeoff
from fairopt.program.reduction import Classes, Reduction
from fairopt.solvers import candidates
from fairopt.solvers.backend import Deadline
from fairopt.solving.policy import find, find_by_reduction


@st.composite
def tiny_programs(draw: st.DrawFn) -> Program:
    """Two users, two servers, up to four columns, up to three rows; few different numbers, so that much is alike."""
    pairs = draw(st.sampled_from([[0, 1, 2, 3], [0, 3], [0, 1, 3], [0, 2]]))
    few = st.sampled_from([1.0, 2.0])
    matrix = np.array(draw(st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=len(pairs), max_size=len(pairs)), max_size=3)))
    rows = matrix.reshape(-1, len(pairs))
    rows = np.vstack([rows[(rows > 0).any(axis=1)], np.ones((1, len(pairs)))])
    keys = np.arange(len(rows))
    return Program(
        name="tiny",
        title="",
        users=("a", "b"),
        servers=("s", "t"),
        resources=(),
        pair_users=np.array(pairs) // 2,
        pair_servers=np.array(pairs) % 2,
        utilities=np.array(draw(st.lists(few, min_size=len(pairs), max_size=len(pairs)))),
        limits=Limits.of(LimitKind.NAMED, sp.csr_array(rows), draw(st.lists(few, min_size=len(rows), max_size=len(rows))), keys),
        goal=Leximin(np.array(draw(st.lists(few, min_size=2, max_size=2)))),
        queue_limits=tuple(f"row {k}" for k in keys),
    )


def partitions(size: int) -> Iterator[tuple[int, ...]]:
    """All partitions of so many things, each as the class of each thing, numbered in order of first members."""

    def further(begun: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(begun) == size:
            yield begun
            return
        for number in range(max(begun, default=-1) + 2):
            yield from further((*begun, number))

    yield from further(())


def is_equitable(program: Program, users: Sequence[int], servers: Sequence[int], pairs: Sequence[int], limits: Sequence[int]) -> bool:
    """By the definition: what members of a class are, and what they meet, is the same for all of them."""
    matrix, goal = program.limits.matrix.toarray(), program.goal
    of_pair = [
        (pairs[p], program.utilities[p], users[n], servers[i], _met(matrix[:, p], limits))
        for p, (n, i) in enumerate(zip(program.pair_users, program.pair_servers, strict=True))
    ]
    of_limit = [(limits[j], program.limits.bounds[j], _met(matrix[j], pairs)) for j in range(len(limits))]
    of_user = [(users[n], goal.weights[n], _met(program.pair_users == n, pairs)) for n in range(len(users))]
    of_server = [(servers[i], _met(program.pair_servers == i, pairs)) for i in range(len(servers))]
    return all(len({each[0] for each in kind}) == len(set(kind)) for kind in (of_pair, of_limit, of_user, of_server))


def _met(values: Any, classes: Sequence[int]) -> frozenset[tuple[tuple[int, float], int]]:
    return frozenset(Counter((int(c), float(v)) for c, v in zip(classes, values, strict=True) if v).items())


@given(tiny_programs())
@settings(max_examples=60)
def test_the_partition_is_the_coarsest_of_all_that_are_equitable(program: Program) -> None:
    """Every equitable partition, found by trying all, splits each of its classes or leaves it."""
    found = Classes.of(program)
    mine = [each.tolist() for each in (found.users, found.servers, found.pairs, found.limits)]
    assert is_equitable(program, *mine)
    sizes = [len(each) for each in mine]
    for users in partitions(sizes[0]):
        for servers in partitions(sizes[1]):
            for pairs in partitions(sizes[2]):
                for limits in partitions(sizes[3]):
                    if is_equitable(program, users, servers, pairs, limits):
                        for coarse, fine in zip(mine, (users, servers, pairs, limits), strict=True):
                            assert len(set(zip(coarse, fine, strict=True))) == len(set(fine))


def grown(instance: fo.Instance, times: int) -> fo.Instance:
    """Return the instance with each row of users and of servers so many times: users beside copies of their servers."""
    users, servers = (np.repeat(np.arange(size), times) for size in (instance.n_users, instance.n_servers))
    return fo.Instance(
        instance.capacities[servers],
        instance.demands[users],
        weights=instance.weights[users],
        eligibility=instance.eligibility[np.ix_(users, servers)],
        counts=instance.counts[servers],
        tasks=instance.tasks[users],
    )


GOALS: list[Any] = [Leximin, Total, lambda w: AlphaFair(1.0, w), lambda w: AlphaFair(3.0, w), lambda w: Tradeoff(2.0, -1.0, w)]


@given(instances(max_users=3, max_servers=2), st.integers(0, len(GOALS) - 1), st.integers(2, 3))
@settings(max_examples=40)
def test_a_program_over_classes_has_the_same_answer(instance: fo.Instance, which: int, times: int) -> None:
    """Spread over the whole program, it is certified there, and the utilities are those of the whole program solved as it is."""
    formulated = fo.formulate(grown(instance, times), "max-min")
    program = replace(formulated, goal=GOALS[which](formulated.inner_goal.weights))
    if not program.n_pairs:
        return
    reduction = Reduction.of(program)
    assert reduction is not None
    assert reduction.program.n_pairs * times**2 <= program.n_pairs
    found, _ = find_by_reduction(program, None, 1e-8, Deadline(None))
    assert found.program is program
    assert certify(program, found.solution) == found.certificate
    assert found.certificate.worst <= 1e-8
    if which == 1:
        return  # the users of an optimal total are not unique
    whole = find(program, candidates(program, None), 1e-8, Deadline(None))
    mine, other = (program.per_user(program.utilities * each.solution.x) for each in (found, whole))
    near = 1e-6 + sum(each.certificate.distance or 0.0 for each in (found, whole))  # smooth goals are flat at the optimum
    np.testing.assert_allclose(mine, other, rtol=near, atol=1e-9)


def test_two_columns_of_one_user_and_one_kind_of_server() -> None:
    """Each of two users is worth more on its own of two equal servers: both columns stay, and nobody runs on the other's."""
    program = fo.formulate(fo.Instance([[4], [4]], [[1], [1]]), "max-min", utility=[[2, 1], [1, 2]])
    reduction = Reduction.of(program)
    assert reduction is not None
    assert (reduction.program.n_pairs, reduction.program.servers) == (2, ("server-1", "server-1 (2)"))
    found, _ = find_by_reduction(program, None, 1e-8, Deadline(None))
    assert program.table(found.solution.x).tolist() == [[4, 0], [0, 4]]


def test_what_is_not_reduced() -> None:
    """Whole numbers, goals of servers, and programs where nothing is alike."""
    twins = fo.Instance([[4], [4]], [[1], [1]])
    assert Reduction.of(fo.formulate(twins, "drfh")) is not None
    assert Reduction.of(fo.formulate(twins, "drfh", integral=True)) is None
    assert Reduction.of(fo.formulate(twins, "psdsf")) is None
    assert Reduction.of(fo.formulate(twins, "per-server-drf")) is None
    assert (
        Reduction.of(
            fo.formulate(
                fo.Instance(
                    [[4], [5]],
                    [
                        [
                            1,
                        ],
                        [2],
                    ],
                ),
                "drfh",
            )
        )
        is None
    )


def test_steep_goals_keep_users_apart() -> None:
    """The weight of a class, phi k^alpha, would be no number: only servers are taken together."""
    program = fo.formulate(fo.Instance([[4], [4], [4]], [[1], [1], [2]]), "max-min")
    reduction = Reduction.of(replace(program, goal=AlphaFair(1000.0, np.ones(3))))
    assert reduction is not None
    assert (len(reduction.program.users), len(reduction.program.servers)) == (3, 1)


def test_a_program_of_tables() -> None:
    """100,000 pairs stay tables on the way there; the answer is that of the merged instance."""

    class ByName(DRFH):
        def share_per_task(self, instance: fo.Instance) -> Any:
            return super().share_per_task(instance) / np.array([2.0 if user == "user-7" else 1.0 for user in instance.users])

    rng = np.random.default_rng(5)
    kinds = rng.uniform(1, 9, (4, 2))
    capacities, demands = kinds[rng.integers(4, size=500)], rng.uniform(0.1, 1, (5, 2))[rng.integers(5, size=200)]
    instance = fo.Instance(capacities, demands)
    allocation = fo.solve(instance, ByName)
    weights = np.where(np.array(instance.users) == "user-7", 2.0, 1.0)
    same = fo.solve(instance.replace(weights=weights), "drfh")
    np.testing.assert_allclose(allocation.tasks_per_user, same.tasks_per_user, rtol=1e-8)


@pytest.mark.parametrize("tree", ["filling", "nested"])
def test_users_of_a_queue_are_taken_together(tree: Any) -> None:
    """And those of other queues are not, though they are alike; guarantees and limits of queues keep their prices."""
    queues = [fo.Queue("a", weight=2, limit={"cpu": 9}), fo.Queue("b", guarantee={"cpu": 4} if tree == "filling" else {})]
    instance = fo.Instance([[8], [8]], [[1]] * 6, resources=["cpu"], queues=queues, queue_of=["a"] * 3 + ["b"] * 2 + [None])
    program = fo.formulate(instance, "drfh", tree=tree)
    reduction = Reduction.of(program)
    assert reduction is not None
    assert reduction.classes.users.tolist() == [0, 0, 0, 1, 1, 2]
    found, _ = find_by_reduction(program, None, 1e-8, Deadline(None))
    whole = fo.solve(instance, "drfh", tree=tree)
    np.testing.assert_allclose(program.per_user(found.solution.x), whole.tasks_per_user, atol=1e-9)
