"""Task share fairness: its measure, what is said of it, and CDRF without constraints."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest

import fairopt as fo
from fairopt.models import NOTIONS, ShareNotion


@pytest.mark.parametrize("notion", ["tsf", "cdrf"])
def test_one_task_is_one_task(notion: str) -> None:
    """A sentence counts as people do."""
    pool = fo.Instance([[1]], [[1.0], [0.5]], users=["a", "b"])
    said = [fo.NOTIONS[notion]().describe_measure(pool, user) for user in range(2)]
    assert said[0].startswith("the 1 task that it could run alone")
    assert said[1].startswith("the 2 tasks that it could run alone")


def instance_of(seed: int, *, constrained: bool) -> fo.Instance:
    """Whole numbers: three resources, four servers in rows of one to three, five users."""
    rng = np.random.default_rng(seed)
    return fo.Instance(
        rng.integers(3, 12, (4, 3)),
        rng.integers(1, 4, (5, 3)),
        counts=rng.integers(1, 4, 4),
        weights=rng.choice([1, 2, 3], 5),
        eligibility=rng.random((5, 4)) < 0.6 if constrained else None,
    )


def alone(instance: fo.Instance, user: int, servers: Iterable[int]) -> Fraction:
    """Return how many tasks a user could run alone on these servers, by its definition."""
    total = Fraction(0)
    for i in servers:
        most = [Fraction(int(c)) / Fraction(int(d)) for c, d in zip(instance.capacities[i], instance.demands[user], strict=True) if d]
        total += int(instance.counts[i]) * min(most)
    return total


@pytest.mark.parametrize("seed", range(12))
def test_the_measure_is_what_a_user_could_run_without_constraints(seed: int) -> None:
    """On all servers for tsf, on those where it may run for cdrf; without constraints both are one notion, with one answer."""
    for constrained in (False, True):
        instance = instance_of(seed, constrained=constrained)
        tsf, cdrf = (NOTIONS[name]() for name in ("tsf", "cdrf"))
        assert isinstance(tsf, ShareNotion)
        assert isinstance(cdrf, ShareNotion)
        everywhere = [float(1 / alone(instance, n, range(4))) for n in range(5)]
        np.testing.assert_allclose(tsf.share_per_task(instance), everywhere, rtol=1e-12)
        for n in np.flatnonzero(instance.servable).tolist():
            there = np.flatnonzero(instance.eligibility[n]).tolist()
            assert cdrf.share_per_task(instance)[n] == pytest.approx(float(1 / alone(instance, n, there)))
    free = instance_of(seed, constrained=False)
    found = [fo.solve(free, name).tasks_per_user for name in ("tsf", "cdrf")]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_fewer_declared_servers_raise_no_share() -> None:
    """Two servers of 4. a may run on both or says that it may run on the first alone; b runs on the first. Shares count 8 tasks in both."""
    both = fo.Instance([[4], [4]], [[1], [1]], users=["a", "b"], eligibility=[[1, 1], [1, 0]])
    one = both.replace(eligibility=[[1, 0], [1, 0]])
    assert fo.solve(both, "tsf").tasks_per_user == pytest.approx([4, 4])
    assert fo.solve(one, "tsf").tasks_per_user == pytest.approx([2, 2])
    alone_on_one = one.replace(weights=[1, 3])
    assert fo.solve(alone_on_one, "tsf").tasks_per_user == pytest.approx([1, 3])
    assert (
        fo.NOTIONS["tsf"]().describe_measure(one, 0).startswith("the 8 tasks that it could run alone, if it were free to use every server")
    )


def test_promises_without_and_with_constraints() -> None:
    """The sharing incentive against every server's slice holds without constraints only; the others in both."""
    free = fo.Instance([[4, 4], [4, 2]], [[1, 1], [1, 2]])
    bound = free.replace(eligibility=[[1, 0], [1, 1]])
    tsf = fo.NOTIONS["tsf"]()
    assert tsf.promise(fo.Property.SHARING_INCENTIVE, free, "rdm")
    assert tsf.promise(fo.Property.SHARING_INCENTIVE, bound, "rdm") is None
    for wanted in (fo.Property.ENVY_FREENESS, fo.Property.PARETO, fo.Property.STRATEGY_PROOFNESS):
        assert tsf.promise(wanted, bound, "rdm") == tsf.promise(wanted, free, "rdm") == "Wang, Li, Liang and Li (2016)"
