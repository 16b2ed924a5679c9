"""POP: users dealt at random into parts, each solved exactly on its part of everything."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from instances import instance_of_everything
from reference import approximations
from support.baseline_cases import small_cluster

import fairopt as fo
from fairopt.scheduling.baselines import Case
from fairopt.scheduling.baselines.pop import POP
from fairopt.solving import checked


@pytest.mark.parametrize("notion", ["drfh", "tsf", "cdrf"])
@pytest.mark.parametrize("split", [0, 0.6])
@pytest.mark.parametrize("seed", range(4))
def test_each_part_is_the_leximin_on_its_part(seed: int, split: float, notion: str) -> None:
    """Part k has the users dealt to it, b / K of what is shared, and of a user in several parts the same part of its tasks and weight."""
    instance = small_cluster(seed)
    chosen, how = checked(instance, notion, None, {})
    dealt = POP(3, seed, split).dealt(Case.of(instance, chosen, how))
    assert dealt.sum(axis=1).tolist() == [1.0] * 5
    assert (np.count_nonzero(dealt) > 5) == (split > 0) or split == 0
    expected = approximations.pop(approximations.of_cluster(instance, notion), [[Fraction(part) for part in row] for row in dealt.T])
    found = fo.schedule(instance, notion, placement="pop", parts=3, seed=seed, split=split)
    assert found.tasks_per_user == pytest.approx([float(each) for each in expected], rel=1e-7)


def test_links_are_divided_and_limits_of_each_user_are_not() -> None:
    """A link that one flow takes is a resource all the same; two tasks at most for each user are two in every part."""
    network = fo.Instance.from_paths({"a-b": 10, "c-d": 10}, {"f": [["a-b"]], "g": [["c-d"]]})
    assert fo.schedule(network, "max-min:pop").tasks_per_user.tolist() == [5.0, 5.0]
    pool = fo.Instance([[10]], [[1], [1]], limits=[fo.Limit("two", 2, each="user"), fo.Limit("both", 3)])
    assert fo.schedule(pool, "drfh:pop").tasks_per_user == pytest.approx([1.5, 1.5])
    assert fo.schedule(pool.replace(limits=[fo.Limit("two", 2, each="user")]), "drfh:pop").tasks_per_user == pytest.approx([2.0, 2.0])


def test_client_splitting_halves_the_largest_load() -> None:
    """Loads 8, 2 and 1 (tasks by share): five clients of 4, 2, 2, 2 and 1."""
    instance = fo.Instance([[100]], [[1], [1], [1]], tasks=[8, 2, 1])
    chosen, how = checked(instance, "drfh", None, {})
    dealt = POP(1000, 0, 2 / 3).dealt(Case.of(instance, chosen, how))
    assert [sorted(row[row > 0].tolist()) for row in dealt] == [[0.25, 0.25, 0.5], [1.0], [1.0]]


@pytest.mark.parametrize("notion", sorted(fo.NOTIONS))
def test_one_part_is_the_exact_answer(notion: str) -> None:
    """Of every notion."""
    instance = small_cluster(1).replace(weights=None)
    if notion in ("drf", "bbf"):
        instance = instance.pooled()
    options: dict[str, Any] = {"fds": {"beta": 2, "lam": -1}, "gfj": {"beta": 2, "lam": -1}}.get(notion, {})
    exact = fo.solve(instance, notion, **options)
    found = fo.schedule(instance, notion, placement="pop", parts=1, **options)
    assert found.tasks_per_user == pytest.approx(exact.tasks_per_user, rel=1e-5)
    assert found.shares == pytest.approx(exact.shares, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_no_limit_is_exceeded(seed: int) -> None:
    """Of instances with everything at once, or they are refused in a sentence."""
    instance = instance_of_everything(seed)
    if instance.is_tree or instance.rules:
        with pytest.raises(fo.Unsupported, match='"pop"'):
            fo.schedule(instance, "tsf:pop")
    else:
        assert fo.schedule(instance, "tsf:pop:parts=3:split=0.5", seed=seed).certificate.feasibility < 1e-8


def test_the_seed_decides() -> None:
    """The same deal for the same seed, and not the same for all."""
    instance = small_cluster(0)
    answers = {tuple(fo.schedule(instance, f"drfh:pop:seed={seed}").tasks_per_user.round(6)) for seed in (0, 1, 2, 3, 0, 1)}
    assert 1 < len(answers) <= 4


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("drfh:pop:parts=0", 'the option parts of "pop" is 0; give a whole number from 1 to 100000'),
        ("drfh:pop:parts=two", "the option parts of \"pop\" is 'two'; give a whole number from 1 to 100000"),
        ("drfh:pop:split=-1", 'the option split of "pop" is -1; give a number from 0 to 100'),
        ("drfh:pop:part=2", '"drfh" with "pop" takes no option "part" (did you mean "parts"?)'),
        ("drfh:popp", 'there is no placement "popp" (did you mean "pop"?)'),
        ("rpsdsf:pop", '"rpsdsf" is a criterion of greedy schedules and has no optimum for "pop" to approximate'),
        ("drfh:pop:ties=random", 'ties is about tasks that are placed one by one, and "pop" places none so; leave ties out'),
        ("finish-time:pop:split=1", '"finish-time" does not say what two halves of a user have; leave split out'),
    ],
)
def test_what_is_refused(spec: str, message: str) -> None:
    """What, where, and what to do."""
    with pytest.raises(fo.Unsupported) as refused:
        fo.schedule(fo.Instance([[9]], [[1], [2]], tasks=[5, 5]), spec)
    assert str(refused.value).startswith(message)
