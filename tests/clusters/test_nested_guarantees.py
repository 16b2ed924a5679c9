"""Guarantees in queues whose own is smaller: worked out by hand, and against shares that rise by small steps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairopt as fo
from fairopt.clusters.account import Account
from fairopt.clusters.nested_guarantees import scaled


def queues(*given: tuple[str, str | None, float, float, float | None]) -> list[fo.Queue]:
    """Return queues from name, parent, weight, guarantee and limit of cores."""
    return [
        fo.Queue(name, parent, weight, {"cpu": least} if least else {}, {} if most is None else {"cpu": most})
        for name, parent, weight, least, most in given
    ]


def granted(listed: list[fo.Queue], total: float, meaning: str) -> dict[str, float]:
    """Return the guarantees of cores after scaling."""
    return {queue.name: queue.guarantee.get("cpu", 0.0) for queue in scaled(listed, {"cpu": total}, meaning, "Test", Account(False))}


def test_a_queue_that_gets_enough_grants_all() -> None:
    """Of 20 cores, p has 10 by its weight: 6 and 4 in it stay, though p itself is guaranteed nothing."""
    listed = queues(("p", None, 1, 0, None), ("q", None, 1, 0, None), ("a", "p", 1, 6, None), ("b", "p", 1, 4, None))
    assert granted(listed, 20, "clamp") == {"p": 0, "q": 0, "a": 6, "b": 4}


def test_two_levels() -> None:
    """p has 10 of 20 by its weight; in it 12 and 8 become 6 and 4; in the first of these, 9 and 3 become 4.5 and 1.5."""
    listed = queues(
        ("p", None, 1, 0, None),
        ("q", None, 1, 0, None),
        ("a", "p", 1, 12, None),
        ("b", "p", 1, 8, None),
        ("x", "a", 1, 9, None),
        ("y", "a", 1, 3, None),
    )
    assert granted(listed, 20, "clamp") == pytest.approx({"p": 0, "q": 0, "a": 6, "b": 4, "x": 4.5, "y": 1.5})


def test_limits_and_surplus() -> None:
    """q is limited to 2 of 20, so p has 18; in the other meaning p has its 4, and a half of the 16 that are left, or all but 2."""
    listed = queues(("p", None, 1, 4, None), ("q", None, 1, 0, 2), ("a", "p", 1, 36, None))
    assert granted(listed, 20, "clamp")["a"] == pytest.approx(18)
    assert solved(listed, 20, "surplus") == pytest.approx({"a": 18, "q": 2})
    listed[1] = fo.Queue("q")
    assert granted(listed, 20, "surplus")["a"] == pytest.approx(4)
    assert solved(listed, 20, "surplus") == pytest.approx({"a": 12, "q": 8})


def solved(listed: list[fo.Queue], total: float, meaning: str) -> dict[str, float]:
    """Return what each leaf queue gets of the cores with the scaled guarantees, where all ask for more."""
    found = scaled(listed, {"cpu": total}, meaning, "Test", Account(False))
    leaves = [queue.name for queue in listed if queue.name not in {each.parent for each in listed}]
    lab = fo.Instance([[total]], [[1]] * len(leaves), users=leaves, resources=["cpu"], queues=found, queue_of=leaves)
    tasks = fo.solve(lab, f"drfh:guarantees={meaning}").tasks_per_user.tolist()
    return dict(zip(leaves, tasks, strict=True))


def test_guarantees_that_are_met_from_what_the_queue_above_gets_beyond_its_own() -> None:
    """Of 100, p is guaranteed 40 and gets 60 beside c with 20: 30 and 30 in it stay, and c has 40, as if p were guaranteed no more."""
    listed = queues(("p", None, 1, 40, None), ("c", None, 1, 20, None), ("a", "p", 1, 30, None), ("b", "p", 3, 30, None))
    account = Account(False)
    found = scaled(listed, {"cpu": 100}, "surplus", "Test", account)
    assert [queue.guarantee.get("cpu", 0) for queue in found] == pytest.approx([40, 20, 25, 15])
    lab = fo.Instance([[100]], [[1]] * 3, users=["a", "b", "c"], resources=["cpu"], queues=found, queue_of=["a", "b", "c"])
    assert fo.solve(lab, "drfh:guarantees=surplus").tasks_per_user == pytest.approx([30, 30, 40])
    assert account.notes[0].startswith("Test grants guarantees of cpu that exceed that of the queue above (in p, 60 of 40)")


AMOUNTS = st.integers(0, 8)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), AMOUNTS, st.one_of(st.none(), AMOUNTS)), min_size=1, max_size=4),
    st.sampled_from(["clamp", "surplus"]),
)
def test_against_shares_that_rise_by_small_steps(beside: list[tuple[int, int, int | None]], meaning: str) -> None:
    """Of 16 cores: each queue has a child that is guaranteed 100, and gets what the queue does."""
    top = [
        (f"q{j}", None, float(w), float(g if m is None else min(g, m)), None if m is None else float(m))
        for j, (w, g, m) in enumerate(beside)
    ]
    listed = queues(*top, *((f"c{j}", f"q{j}", 1.0, 100.0, None) for j in range(len(beside))))
    if sum(least for _, _, _, least, _ in top) > 16:
        return  # then it is another rule that divides what there is
    found = solved(listed, 16, meaning)
    steps, level, size = 0, 0.0, 1 / 256
    while steps < 16 * 256 and sum(_at(top, level + size, meaning)) <= 16:
        steps, level = steps + 1, level + size
    for j, (low, high) in enumerate(zip(_at(top, level, meaning), _at(top, level + size, meaning), strict=True)):
        assert low - 1e-6 <= found[f"c{j}"] <= high + 1e-6


def _at(top: list[tuple[str, None, float, float, float | None]], level: float, meaning: str) -> list[float]:
    risen = [max(g, w * level) if meaning == "clamp" else g + w * level for _, _, w, g, _ in top]
    return [each if m is None else min(each, m) for each, (_, _, _, _, m) in zip(risen, top, strict=True)]
