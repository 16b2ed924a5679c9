"""Limits on how many servers a user is on at once, from the constructor to the certificate."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fairopt as fo
from fairopt.merging import expand, merge


def gpus(parallelism: tuple[float, ...] = (1.0, 2.0, np.inf)) -> fo.Instance:
    """Two kinds of accelerators, and three users with speeds of their own on them."""
    return fo.Instance(
        [[1], [1]],
        [[1], [1], [1]],
        rates=[[1, 4], [2, 3], [1, 1]],
        counts=[2, 1],
        parallelism=parallelism,
        users=["a", "b", "c"],
        servers=["slow", "fast"],
        resources=["gpu"],
    )


def test_rates_of_one_server() -> None:
    """Rho is what one server of a row holds, gamma counts[i] times that."""
    instance = fo.Instance([[9, 18], [2, 2]], [[1, 4], [3, 1]], counts=[3, 2])
    assert instance.rates_of_one.tolist() == [[4.5, 0.5], [3.0, 2 / 3]]
    assert np.allclose(instance.rates, instance.rates_of_one * [3, 2])


def test_alone_in_the_cluster() -> None:
    """The fastest server first: user a 4 on one; b 3 and one of 2; c all three."""
    instance = gpus()
    assert instance.at_most(instance.rates).tolist() == [4.0, 5.0, 3.0]
    assert instance.limited.tolist() == [True, True, False]


def test_row_of_the_program() -> None:
    """x / rho, summed over the servers of a user; no row where the servers themselves are no more."""
    text = fo.formulate(gpus((1.0, 3.0, np.inf)), "tsf").to_text()
    assert "servers of a : x[a, slow] + 0.25 x[a, fast] <= 1" in text
    assert "servers of b" not in text
    assert "servers of c" not in text


def test_bad_values() -> None:
    """Zero, negative numbers and NaN are refused, with the user."""
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(fo.InvalidInstance, match=r'parallelism of "b" is .*; it must be > 0 servers, or inf for no limit'):
            gpus((1.0, bad, 1.0))
    with pytest.raises(fo.InvalidInstance, match=r"shape of parallelism is \(2,\), expected \(3,\): one per user, in servers"):
        gpus((1.0, 2.0))


@pytest.mark.parametrize("name", ["cluster.yaml", "cluster.json", "tables"])
def test_files(tmp_path: Path, name: str) -> None:
    """Written and read again it is the same instance."""
    instance = gpus()
    fo.save(instance, tmp_path / name)
    again = fo.load(tmp_path / name)
    assert again == instance
    assert again.parallelism.tolist() == [1.0, 2.0, np.inf]
    assert again != instance.replace(parallelism=None)


def test_bad_file(tmp_path: Path) -> None:
    """The message names the line."""
    (tmp_path / "c.yaml").write_text("servers:\n- {name: s, capacity: {cpu: 4}}\nusers:\n- name: a\n  demand: {cpu: 1}\n  parallelism: 0\n")
    with pytest.raises(fo.InvalidInstance, match=r"line 6: .*parallelism.*> 0"):
        fo.load(tmp_path / "c.yaml")


def test_repr_says_so() -> None:
    """Two of the three users are limited."""
    assert "2 users with limited parallelism" in repr(gpus())


def test_merging() -> None:
    """Users of the same parallelism per weight become one with the sum; others stay apart."""
    instance = fo.Instance([[4], [4], [2]], [[1]] * 3, weights=[1, 2, 1], parallelism=[0.5, 1, 2])
    merged = merge(instance).instance
    assert merged.parallelism.tolist() == [1.5, 2.0]
    assert merged.counts.tolist() == [2, 1]
    assert expand(instance.replace(counts=[2, 1, 1]))[0].parallelism.tolist() == [0.5, 1, 2]


def test_pool() -> None:
    """One server of three times the capacity: the part of it that so many servers are."""
    instance = fo.Instance([[4, 8]], [[1, 1], [1, 8]], counts=[3], parallelism=[1.5, np.inf])
    assert instance.pooled().parallelism.tolist() == [0.5, np.inf]


@pytest.mark.parametrize("notion", ["psdsf", "bbf"])
def test_refused(notion: str) -> None:
    """Notions without a meaning for it say so, where it matters only."""
    pool = fo.Instance([[4]], [[1], [2]], parallelism=[0.5, 1])
    with pytest.raises(fo.Unsupported, match="parallelism"):
        fo.solve(pool, notion)
    assert fo.solve(pool.replace(parallelism=[1, 2]), notion).tasks_per_user.sum() > 0


def test_refused_by_schedules() -> None:
    """Nothing ignores the limit."""
    instance = gpus()
    trace = fo.Trace(["a"], [0.0], [1], [[1.0]], [10.0], resources=["gpu"])
    calls: tuple[Callable[[], object], ...] = (
        lambda: fo.schedule(instance, "tsf"),
        lambda: fo.precomputed_drf(fo.Instance([[4]], [[1]], parallelism=[0.5])),
        lambda: fo.simulate(trace, instance, "tsf"),
    )
    for call in calls:
        with pytest.raises(fo.Unsupported, match=r"parallelism|servers a user is on"):
            call()
