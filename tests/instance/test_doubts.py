"""What is implausible in an instance: each kind where it is, with its numbers, and nothing where it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.instance.doubts import doubts

UNITS = "are the units the same? Exact allocations divide such a task"
QUEUES = [fo.Queue("qa", weight=3), fo.Queue("qb")]


def said(*args: Any, **more: Any) -> list[str]:
    """Return the doubts about an instance."""
    return list(doubts(fo.Instance(*args, **more)))


# Tasks that no server holds -----------------------------------------------------------------------------------------------------


def test_a_task_larger_than_every_server_where_it_may_run() -> None:
    """64,000 of 1,024. A server that the user may not use does not help, nor one of which there is none."""
    names: dict[str, Any] = {"users": ["vision"], "resources": ["gpu", "memory"]}
    whole = f"no server holds a whole task of vision: memory 64,000 of at most 1,024; {UNITS}"
    assert said([[8, 1024], [8, 512]], [[2, 64000]], **names) == [whole]
    assert said([[8, 1024], [8, 64000]], [[2, 64000]], eligibility=[[True, False]], **names) == [whole]
    assert said([[8, 1024], [8, 64000]], [[2, 64000]], counts=[1, 0], **names) == [whole]
    assert said([[8, 1024], [8, 64000]], [[2, 64000]], **names) == []
    in_bytes = said([[8, 2.0**30]], [[2, 2.0**40]], units={"memory": "B"}, **names)
    assert in_bytes[0].startswith("no server holds a whole task of vision: memory 1,024 GiB of at most 1 GiB;")


def test_rounding_makes_no_task_too_large() -> None:
    """Three tenths are 0.30000000000000004."""
    assert said([[0.3]], [[0.1 + 0.2]]) == []


def test_no_server_has_enough_of_all_resources() -> None:
    """One has the GPUs, one the memory."""
    found = said([[8, 8], [1, 512]], [[4, 64]], users=["a"])
    assert found == [f"no server holds a whole task of a: each lacks some of what it needs; {UNITS}"]


def test_many_users_are_counted_and_the_first_is_explained() -> None:
    """Five names, and how many more."""
    (sentence,) = said([[4]], [[8]] * 12 + [[1]], resources=["gpu"])
    assert "task of user-1, user-2, user-3, user-4, user-5 and 7 more: of user-1, gpu 8 of at most 4;" in sentence


def test_who_has_no_tasks_no_server_or_rates_is_left_out() -> None:
    """A user without tasks needs no server; rates say how many tasks run, whatever the capacities; solving names who may run nowhere."""
    assert said([[4]], [[8]], tasks=[0]) == []
    assert said([[4]], [[8]], rates=[[0.5]]) == []
    assert said([[4]], [[8]], eligibility=[[False]]) == []
    assert said([[4]], [[8]], counts=[0]) == []


@pytest.mark.parametrize("seed", range(20))
def test_against_a_loop_over_pairs(seed: int) -> None:
    """The same users as a double loop finds, and the same largest part of each resource that one user alone can use."""
    rng = np.random.default_rng(seed)
    instance = fo.Instance(
        rng.integers(0, 9, (5, 3)) * [1, 1, 300.0],
        np.column_stack([rng.integers(1, 8, 9), rng.integers(0, 7, (9, 2))]),
        eligibility=rng.random((9, 5)) < 0.6,
        counts=rng.integers(0, 3, 5),
    )
    pairs = [[i for i in range(5) if instance.eligibility[n, i]] for n in range(9)]
    large = [n for n in range(9) if pairs[n] and not any((instance.capacities[i] >= instance.demands[n]).all() for i in pairs[n])]
    most = np.zeros(3)
    for n in set(range(9)) - set(large):
        for i in pairs[n]:
            parts = [instance.demands[n, r] / instance.capacities[i, r] if instance.demands[n, r] else 0 for r in range(3)]
            most = np.maximum(most, np.array(parts) / max(parts))
    found = doubts(instance)
    assert any("whole task" in sentence for sentence in found) == bool(large)
    if large:
        first = [f"user-{n + 1}" for n in large][:1][0]
        assert f"whole task of {first}" in found[0]
    little = [f"resource-{r + 1}" for r in range(3) if 0 < most[r] < 0.01]
    told = [sentence for sentence in found if " used to " in sentence]
    assert [sentence.partition(" is used")[0] for sentence in told] == little


# Resources of which little can be used ------------------------------------------------------------------------------------------


def test_a_resource_in_two_units() -> None:
    """Servers in MB, users in GB: 4 tasks fill the GPUs and use 256 of 1,048,576; 8 tasks of 96 without GPUs fill the cores: 0.0732 %."""
    found = said([[8, 128, 1048576]], [[2, 16, 64], [0, 16, 96]], resources=["gpu", "cpu", "memory"])
    assert found == ["memory is used to 0.0732 % at most, whoever fills a server alone; do servers and users have the same unit?"]


def test_few_tasks_and_limits_are_no_doubt() -> None:
    """One task of 1 of 1,000 GPUs uses 0.1 %, and could use all; a resource that nobody demands is not used either."""
    assert said([[1000, 7]], [[1, 0]], tasks=[1]) == []
    assert said([[1000, 1000]], [[1, 5], [1, 5]], queues=[fo.Queue("q", limit={"resource-1": 1})], queue_of=["q", "q"]) == []
    assert said([[100, 10]], [[1, 10]]) == []  # exactly 1 %
    assert len(said([[101, 10]], [[1, 10]])) == 1


def test_one_who_uses_it_is_enough() -> None:
    """A user with little else."""
    assert said([[8, 1048576]], [[2, 64], [0, 64]]) == []


# Weights ------------------------------------------------------------------------------------------------------------------------


def test_a_weight_without_a_sibling() -> None:
    """The weight of the queue decides, or of a queue above it; with somebody beside it the weight counts."""
    one, two = [[8.0]], [[1.0], [1.0]]
    alone = said(one, two, users=["a", "b"], weights=[4, 1], queues=QUEUES, queue_of=["qa", "qb"])
    assert alone == ["the weight 4 of a has no effect, because a is alone in the queue qa; the weight of the queue qa counts instead"]
    inner = [*QUEUES, fo.Queue("inner", "qa")]
    below = said(one, two, users=["a", "b"], weights=[4, 1], queues=inner, queue_of=["inner", "qb"])
    assert below == ["the weight 4 of a has no effect, because a is alone in the queue inner; the weight of the queue qa counts instead"]
    assert said(one, two, weights=[4, 1], queues=QUEUES, queue_of=["qa", "qa"]) == [
        "the weight 3 of the queue qa has no effect, because nobody else in the cluster competes with it; no weight changes what it gets"
    ]
    assert said(one, two, weights=[4, 1]) == []
    assert said(one, two, weights=[4, 0], queues=QUEUES, queue_of=["qa", "qb"])[0].startswith("the weight 4 of user-1")
    assert said(one, two, weights=[1, 0], queues=QUEUES, queue_of=["qa", "qb"]) == []
    nobody = "the weight 2 of user-1 has no effect, because user-1 is alone in the cluster; no weight changes what it gets"
    assert said(one, [[1.0]], weights=[2]) == [nobody]


def test_a_queue_of_another_tier_decides_nothing() -> None:
    """qa is served first: neither its weight nor that of ann, alone in it, changes what she gets."""
    lab: dict[str, Any] = {"users": ["ann", "ben"], "weights": [3, 1], "queue_of": ["qa", "qb"]}
    tiered = said([[4]], [[1], [1]], queues=[fo.Queue("qa", weight=2, tier=1), fo.Queue("qb")], **lab)
    assert tiered == ["the weight 3 of ann has no effect, because ann is alone in the queue qa; no weight changes what it gets"]


def test_solving_confirms_which_weights_count() -> None:
    """Of 8: with and without the weight that has no effect, and with another weight of the queue."""

    def tasks(own: float, of_queue: float) -> list[float]:
        queues = [fo.Queue("qa", weight=of_queue), fo.Queue("qb")]
        lab = fo.Instance([[8.0]], [[1.0], [1.0]], weights=[own, 1], queues=queues, queue_of=["qa", "qb"])
        return [round(each, 6) for each in fo.solve(lab, "drfh").tasks_per_user.tolist()]

    assert tasks(1, 3) == tasks(4, 3) == [6, 2]
    assert tasks(1, 1) == [4, 4]


def test_many_weights_are_counted() -> None:
    """In one short line: three, and how many more."""
    queues = [fo.Queue(f"q{k}") for k in range(8)]
    (sentence,) = said([[8]], [[1]] * 8, weights=[2] * 8, queues=queues, queue_of=[queue.name for queue in queues])
    who = "user-1, user-2, user-3 and 5 more"
    assert sentence == f"the weights of {who} have no effect: each is alone in its queue, so the queue's weight counts"


# Names --------------------------------------------------------------------------------------------------------------------------


def test_names_that_differ_in_case_or_spaces() -> None:
    """Users, servers, queues and resources, each among themselves."""
    found = said(
        [[1, 1], [1, 1]],
        [[1, 1]] * 4,
        users=["vision", "Vision", "vision ", "nlp"],
        servers=["A", "a"],
        resources=["gpu", "GPU"],
        queues=[fo.Queue("x y"), fo.Queue("X  y")],
        queue_of=["x y", "X  y", None, None],
    )
    same = "differ in case or spaces only; is each meant to be one of its own?"
    assert found == [
        f'the users "vision", "Vision" and "vision " {same}',
        f'the servers "A" and "a" {same}',
        f'the queues "x y" and "X  y" {same}',
        f'the resources "gpu" and "GPU" {same}',
    ]


def test_a_name_with_a_space_at_an_end() -> None:
    """Also one that does not look like a space."""
    assert said([[1]], [[1], [1]], users=["vision ", "b"]) == ['a space begins or ends the name of the user "vision "; remove it']
    assert said([[1]], [[1]], users=["vision\N{NO-BREAK SPACE}"]) == [
        'a space begins or ends the name of the user "vision\\xa0"; remove it'
    ]
    assert said([[1]], [[1]], users=["the red team"]) == []
