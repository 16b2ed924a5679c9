"""Regrets in fractions against the definition, by loops in `fractions.Fraction`, and worst cases that are proofs."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from reference.exact import leximin, shares_per_task

import fairopt as fo
from fairopt.analysis.rerun import given
from fairopt.analysis.shortfalls import of_sorted, shortfall
from fairopt.errors import CertificateError


def short(best: Fraction, own: Fraction) -> Fraction:
    """The definition."""
    return (best - own) / max(best, own) if max(best, own) else Fraction(0)


def test_numbers_of_a_schedule() -> None:
    """Against the leximin by the simplex of the tests: the shares in order, position by position."""
    rng, differ = random.Random(2), 0
    for _ in range(12):
        instance = fo.Instance(
            [[rng.randint(4, 12) for _ in range(2)] for _ in range(2)], [[rng.randint(1, 4) for _ in range(2)] for _ in range(3)]
        )
        schedule = fo.schedule(instance, "drfh", exact=True)
        found = fo.regret(schedule)
        best, own = leximin(instance, "drfh"), schedule.exact.tasks_per_user  # type: ignore[union-attr]
        share = shares_per_task(instance, "drfh")
        a, b = (sorted(s * x for s, x in zip(share, tasks, strict=True)) for tasks in (best, own))
        numbers = [short(*pair) for pair in zip(a, b, strict=True)]
        assert found.exact is not None
        assert found.exact["level"] == numbers[0]
        assert found.exact["leximin"] == next((number for number in numbers if number), 0)
        assert found.exact["largest"] == max(*numbers, Fraction(0))
        assert found.exact["total"] == short(sum(best, Fraction(0)), sum(own, Fraction(0)))
        assert float(found.exact["largest"]) == pytest.approx(found.largest, abs=1e-9)
        differ += bool(numbers[0])
    assert differ > 3


def test_what_no_float_shows() -> None:
    """10^-40 of a task is a regret; a goal without a rational value has the total alone; floats have no fractions."""
    instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
    tiny = Fraction(1, 10**40)
    less = given(instance, np.array([[Fraction(3)], [2 - tiny]]), "rdm", exact=True)
    found = fo.regret(less, "drf")
    assert found.level == 0
    assert found.exact is not None
    assert found.exact["level"] == found.exact["leximin"] == tiny / 2
    assert fo.regret(less, "efficiency").exact["goal"] > 0  # type: ignore[index]
    assert fo.regret(fo.solve(instance, "drf"), "efficiency").exact is None
    assert "exact" in found.to_dict()


def test_every_goal() -> None:
    """Servers by themselves, trees, equal levels: the fractions are near the floats."""
    tree = fo.Instance([[8, 9]], [[1, 2], [2, 1], [1, 1]], queues=[fo.Queue("p", weight=2), fo.Queue("q")], queue_of=["p", "q", "q"])
    flat = fo.Instance([[8, 9], [5, 3]], [[1, 2], [2, 1], [1, 1]])
    for instance, notion in ((tree, "drfh"), (flat, "per-server-drf"), (flat, "tsf"), (flat, "uniform"), (flat, "efficiency")):
        found = fo.regret(fo.schedule(instance, "drfh", exact=True), notion)
        assert found.exact is not None
        assert len(found.exact) > 1
        for name, value in found.exact.items():
            assert float(value) == pytest.approx(getattr(found, name), abs=1e-8)


def test_a_worst_case_is_a_proof() -> None:
    """Against whole tasks and divisible ones: the number follows from both allocations, which keep every limit."""
    for integral in (True, False):
        worst = fo.worst_case("drfh:first-fit", "drfh", users=2, resources=1, tries=4, integral=integral, exact=True)
        assert worst.proved is not None
        assert float(worst.proved) == pytest.approx(worst.value, abs=1e-8)
        assert worst.to_dict()["exact"] == str(worst.proved)
        assert worst.schedule.exact is not None
    assert fo.worst_case("drfh:first-fit", "drfh", users=2, resources=1, tries=4).proved is None


def test_a_schedule_that_exceeds_a_limit_by_rounding_proves_nothing() -> None:
    """A function of one's own that gives 1e-10 of a task too much."""

    def too_much(instance: fo.Instance) -> np.ndarray:
        tasks = fo.solve(instance, "efficiency").tasks
        return tasks * (1 + 1e-10)

    with pytest.raises(CertificateError, match="exceeds a limit"):
        fo.worst_case(too_much, "drfh", users=2, tries=4, integral=False, exact=True)


def test_shortfall() -> None:
    """Floats that differ by rounding are equal, fractions are not."""
    assert shortfall(1.0, 1.0 + 1e-12) == 0
    assert shortfall(Fraction(1), 1 - Fraction(1, 10**40)) == Fraction(1, 10**40)
    assert of_sorted([Fraction(2), Fraction(1)], [Fraction(1), Fraction(2)]) == (0, 0, None, 0)


def test_a_comparison_in_fractions(tmp_path: Path) -> None:
    """Measures by hand, rows that are in fractions and rows that cannot be, and a table of one's own with thirds."""
    instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["a", "b"], servers=["pool"])
    own = tmp_path / "own.csv"
    own.write_text("user,pool\na,1/3\nb,2\n")
    found = fo.compare(
        instance, notions=["drfh", "efficiency"], schedules=["drfh:best-fit"], allocations={"own": own}, integral=True, exact=True
    )
    assert found["efficiency"].exact == {"tasks": Fraction(63, 11), "smallest_share": Fraction(6, 11), "efficiency": 1, "envy": 0}
    assert found["own"].exact == {
        "tasks": Fraction(7, 3),
        "smallest_share": Fraction(2, 27),
        "efficiency": Fraction(7, 3) / Fraction(63, 11),
        "envy": Fraction(1, 6),
    }
    assert found["drfh, whole tasks"].exact is None
    assert found["drfh:best-fit"].regret.exact["level"] == 0  # type: ignore[union-attr,index]
    data = found.to_dict()["rows"]
    assert [row["exact"]["envy"] for row in data if "exact" in row] == ["0", "0", "0", "1/6"]
    assert data[-1]["users"][0]["exact"]["tasks"] == "1/3"
    assert fo.compare(instance).rows[0].exact is None
