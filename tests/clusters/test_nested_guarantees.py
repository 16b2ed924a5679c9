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
    assert granted(listed, 20, "surplus")["a"] == pytest.approx(18)
    listed[1] = fo.Queue("q")
    assert granted(listed, 20, "surplus")["a"] == pytest.approx(12)


AMOUNTS = st.integers(0, 8)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), AMOUNTS, st.one_of(st.none(), AMOUNTS)), min_size=1, max_size=4),
    st.sampled_from(["clamp", "surplus"]),
)
def test_against_shares_that_rise_by_small_steps(beside: list[tuple[int, int, int | None]], meaning: str) -> None:
    """Of 16 cores: each queue has a child that is guaranteed 100, which is scaled to what the queue gets."""
    top = [
        (f"q{j}", None, float(w), float(g if m is None else min(g, m)), None if m is None else float(m))
        for j, (w, g, m) in enumerate(beside)
    ]
    listed = queues(*top, *((f"c{j}", f"q{j}", 1.0, 100.0, None) for j in range(len(beside))))
    found = granted(listed, 16, meaning)
    steps, level, size = 0, 0.0, 1 / 256
    while steps < 16 * 256 and sum(_at(top, level + size, meaning)) <= 16:
        steps, level = steps + 1, level + size
    for j, (low, high) in enumerate(zip(_at(top, level, meaning), _at(top, level + size, meaning), strict=True)):
        assert low - 1e-9 <= found[f"c{j}"] <= high + 1e-9


def _at(top: list[tuple[str, None, float, float, float | None]], level: float, meaning: str) -> list[float]:
    risen = [max(g, w * level) if meaning == "clamp" else g + w * level for _, _, w, g, _ in top]
    return [each if m is None else min(each, m) for each, (_, _, _, _, m) in zip(risen, top, strict=True)]
