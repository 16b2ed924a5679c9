"""EF1, EFX and the maximin share of whole tasks."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from reference import witnesses

import fairopt as fo
from fairopt.analysis.properties.maximin_share import maximin_share
from fairopt.analysis.rerun import given

NAMES = ["ef1", "efx", "maximin-share"]
POOL = fo.Instance([[12]], [[1], [2]], users=["A", "B"])


def audited(instance: fo.Instance, tasks: list[list[float]], *, exact: bool = False) -> fo.Audit:
    """The three properties of given tasks."""
    return fo.audit(given(instance, tasks, "rdm", exact=exact), NAMES)


@pytest.mark.parametrize("exact", [False, True])
def test_by_hand(exact: bool) -> None:
    """A has 2 of 12, B 4 of 2 each, worth 8 to A: without a task of B still 6, 4 more than A runs. Alone A runs 12, so its share is 6."""
    found = audited(POOL, [[2], [4]], exact=exact)
    assert found.violated == NAMES
    assert [found[name].violation for name in NAMES] == [4, 4, 4]
    assert witnesses.check(found) == NAMES
    witness = found["ef1"].witness
    assert witness is not None
    assert witness.users == ("A", "B")
    assert witness.text == (
        '"A" runs 2 tasks. With what "B" holds where "A" may run, but without a task of it on server-1, "A" would run 6.'
    )
    share = found["maximin-share"].witness
    assert share is not None
    assert (
        share.text == '"A" runs 2 tasks. Alone it could run 12 whole tasks; cut into a bundle for each of 2 users, the worst for it has 6.'
    )
    if exact:
        assert found["ef1"].exact == Fraction(4)


def test_envy_of_one_task_is_none_up_to_one() -> None:
    """A runs 5, B 3 of 2 each, worth 6 to A: it envies by 1, and without one task of B not at all."""
    found = fo.audit(given(POOL, [[5], [3]], "rdm"), ["envy-freeness", "ef1", "efx"])
    assert found.violated == ["envy-freeness"]


def test_ef1_and_efx_differ_where_tasks_are_worth_different_amounts() -> None:
    """B's task on the second server is small: without the large one A has no envy, without the small one it has."""
    instance = fo.Instance([[6], [6]], [[[1], [1]], [[6], [1]]], users=["A", "B"], eligibility=[[1, 1], [1, 1]])
    found = audited(instance, [[0, 3], [1, 2]])
    assert found["ef1"].holds
    assert found["efx"].violation == 4  # 6 + 2 - 1 - 3


@pytest.mark.parametrize("seed", range(8))
def test_envy_task_by_task(seed: int) -> None:
    """With loops: each task of each other user taken away in turn; EF1 asks for one, EFX for all that are worth something."""
    rng = np.random.default_rng(seed)
    demands = rng.integers(1, 4, (3, 2))
    instance = fo.Instance(
        rng.integers(8, 20, (2, 2)), demands, weights=rng.integers(1, 3, 3), eligibility=[[1, 1], [1, rng.random() < 0.5], [1, 1]]
    )
    allocation = fo.schedule(instance, "max-min", placement="random", seed=seed)
    found = fo.audit(allocation, NAMES)
    assert set(witnesses.check(found)) <= {*NAMES}
    own = allocation.tasks_per_user
    worst = {"ef1": Fraction(0), "efx": Fraction(0)}
    for n, m in itertools.permutations(range(3), 2):
        ratio = Fraction(int(instance.weights[n]), int(instance.weights[m]))
        unit = ratio * min(Fraction(int(demands[m, r]), int(demands[n, r])) for r in range(2))
        goods = [unit for i in range(2) if instance.eligibility[n, i] for _ in range(int(allocation.tasks[m, i]))]
        envy = [sum(goods) - each - int(own[n]) for each in goods]
        if envy:
            worst["ef1"] = max(worst["ef1"], min(envy))
            worst["efx"] = max(worst["efx"], max(envy))
    for name, size in worst.items():
        assert (0.0 if found[name].holds else found[name].violation) == pytest.approx(float(size))


@pytest.mark.parametrize("seed", range(20))
def test_maximin_shares_by_enumeration(seed: int) -> None:
    """Every way to cut K tasks into bundles."""
    rng = np.random.default_rng(seed)
    weights = [Fraction(int(each)) for each in rng.integers(1, 5, 3)]
    alone, place = int(rng.integers(0, 12)), int(rng.integers(3))
    cuts = (cut for cut in itertools.product(range(alone + 1), repeat=3) if sum(cut) == alone)
    best = max(min(weights[place] / weight * part for weight, part in zip(weights, cut, strict=True)) for cut in cuts)
    assert maximin_share(alone, weights, place) == best


def test_rows_of_several_servers_and_few_tasks() -> None:
    """Three servers of 3 run one task of 2 each: K = 3, so each of two users could secure one; who has no more tasks lacks nothing."""
    instance = fo.Instance([[3]], [[2], [2]], counts=[3], users=["A", "B"])
    assert audited(instance, [[3], [0]])["maximin-share"].violation == 1
    assert audited(instance.replace(tasks=[3, 0]), [[3], [0]])["maximin-share"].holds


def test_limits_across_servers_leave_it_open() -> None:
    """Who has the share that follows from servers alone has its maximin share; of others it is not decided."""
    instance = fo.Instance([[8]], [[1], [1]], parallelism=[0.25, np.inf])
    assert audited(instance, [[2], [6]])["maximin-share"].statement.startswith("Undecided: limits across servers")
    assert audited(instance, [[2], [6]])["ef1"].holds is None
    assert audited(instance.replace(parallelism=[0.5, np.inf]), [[4], [4]])["maximin-share"].holds


@pytest.mark.parametrize(
    ("instance", "words"),
    [
        (POOL.replace(weights=[[1], [2]]), "Does not apply: with weights per resource"),
        (POOL.replace(speeds=[[1], [2]]), "Does not apply: with speeds"),
        (POOL.replace(limits=[fo.Limit("few", 9)]), "Does not apply"),
        (POOL.replace(queues=[fo.Queue("q")], queue_of=["q", "q"]), "Does not apply"),
    ],
)
def test_where_they_do_not_apply(instance: fo.Instance, words: str) -> None:
    """Said in a sentence."""
    found = audited(instance, [[2], [4]])
    assert all(found[name].holds is None for name in NAMES)
    assert all(found[name].statement.startswith("Does not apply") for name in NAMES)
    assert found["maximin-share"].statement.startswith(words)


def test_by_default_of_whole_tasks_only() -> None:
    """And of divisible ones they do not apply."""
    divisible = fo.solve(fo.Instance([[12]], [[5], [5]]), "drf")
    assert not {*NAMES} & {*fo.audit(divisible, effort=1)}
    assert all(fo.audit(divisible, NAMES)[name].statement.startswith("Does not apply: it is about whole tasks") for name in NAMES)
    whole = fo.audit(fo.schedule(POOL, "drf"), effort=1)
    assert {*NAMES} <= {*whole}
