"""Bins of levels, and SWAN's iterations: the same as in fractions, and within their guarantee on flows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from reference import approximations
from support.baseline_cases import odd_cluster, random_flows

import fairopt as fo
from fairopt.scheduling.baselines import Case
from fairopt.scheduling.baselines.bins import bins_in_turn, first_end
from fairopt.scheduling.baselines.geometric_binning import counterexample, counterexample_of_flows
from fairopt.solving import checked


def case_of(instance: fo.Instance, notion: str) -> Case:
    """The case of a notion without options."""
    return Case.of(instance, *checked(instance, notion, None, {}))


@pytest.mark.parametrize("notion", ["drfh", "tsf"])
@pytest.mark.parametrize("seed", range(5))
def test_bins_in_turn(seed: int, notion: str) -> None:
    """G[b] = max sum of min(level, T[b]) where the bins below keep theirs."""
    instance = odd_cluster(seed)
    case = case_of(instance, notion)
    first = first_end(case, 0, "")
    ends = first * np.array([1.0, 1.5, 2.0, 4.0])
    expected, _ = approximations.in_bins(approximations.of_cluster(instance, notion), [Fraction(float(end)) for end in ends])
    x, totals = bins_in_turn(case, ends)
    assert totals == pytest.approx([float(total) for total in expected[: totals.size]], rel=1e-7)
    assert [float(total) for total in expected[totals.size :]] == pytest.approx([totals[-1]] * (4 - totals.size), rel=1e-7)
    level = case.levels(x)
    assert [np.minimum(level, end).sum() for end in ends] == pytest.approx([float(total) for total in expected], rel=1e-6)


@pytest.mark.parametrize("notion", ["drfh", "tsf"])
@pytest.mark.parametrize("seed", range(5))
def test_swan(seed: int, notion: str) -> None:
    """Level by level as the loop in fractions, where each linear program has one answer."""
    instance = odd_cluster(seed)
    case = case_of(instance, notion)
    first = first_end(case, 0, "")
    ends = [Fraction(first) * 2**k for k in range(12)]
    expected = approximations.swan(approximations.of_cluster(instance, notion), ends)
    found = fo.schedule(instance, f"{notion}:swan:ratio=2")
    assert found.shares == pytest.approx([float(level) for level in expected], rel=1e-5)


@pytest.mark.parametrize("ratio", [1.5, 2])
@pytest.mark.parametrize("name", ["geometric-binning", "swan"])
@pytest.mark.parametrize("seed", range(12))
def test_small_random_flows_are_within_the_ratio(seed: int, name: str, ratio: float) -> None:
    """As Hong et al. (2013) and Namyar et al. (2024) say of all: rate / ratio <= its max-min fair rate <= ratio rate."""
    network = random_flows(seed)
    exact = fo.solve(network, "max-min").tasks_per_user
    found = fo.schedule(network, "max-min", placement=name, ratio=ratio).tasks_per_user
    assert np.maximum(found / exact, exact / found).max() <= ratio * (1 + 1e-6)


def links_and_paths(network: fo.Instance) -> tuple[dict[str, int], dict[str, list[list[str]]]]:
    """What a network of single paths was made of."""
    links = {limit.name: int(limit.bound) for limit in network.limits}
    assert all(isinstance(limit.amounts, dict) or limit.amounts is not None for limit in network.limits)
    paths = {user: [[limit.name for limit in network.limits if user in dict(limit.amounts)]] for user in network.users}
    return links, paths


def test_flows_that_are_not_within_the_ratio() -> None:
    """By hand and in fractions. In the second bin three flows on each link of "long" have 2, their neighbours 1 and 2: 5 a group, no more.

    If "long" had 1 + e, each of its links would lose e for the three, and a group loses what its first flow loses: e - 2 e < 0. So "long"
    stays at 1, where its fair rate is 7 - 3 * 1.5 = 2.5: more than twice as much.
    """
    network = counterexample_of_flows()
    model = approximations.of_flows(*links_and_paths(network))
    fair = model.levels(approximations.leximin(model))
    assert fair == [Fraction(5, 2), *[Fraction(3, 2)] * 18]
    totals, level = approximations.in_bins(model, [Fraction(1), Fraction(2)])
    assert totals == [19, 31]
    assert level[0] == 1
    assert approximations.swan(model, [Fraction(2) ** k for k in range(3)])[0] == 1
    for name in ("geometric-binning", "swan"):
        found = fo.schedule(network, f"max-min:{name}:ratio=2:first=1")
        assert found["long"].tasks == pytest.approx(1.0)
    ten = counterexample_of_flows(10)
    assert fo.solve(ten, "max-min")["long"].tasks == pytest.approx(6.0)
    assert fo.schedule(ten, "max-min:swan:ratio=2:first=1")["long"].tasks == pytest.approx(1.0)


def test_several_resources_are_not_within_the_ratio() -> None:
    """By hand: with first = 1 the A and B have 1 each; then C and the A share the 17.5 that are left of r0, and C rises by 1, to 2."""
    instance = counterexample()
    assert fo.solve(instance, "drfh").tasks_per_user == pytest.approx([1.5] * 40 + [8.5])
    found = fo.schedule(instance, "drfh:geometric-binning:ratio=2:first=1").tasks_per_user
    assert found[40] == pytest.approx(2.0)
    assert found[40] / 8.5 == pytest.approx(0.235, abs=5e-4)
    assert found[:20].sum() == pytest.approx(36.5)


@pytest.mark.parametrize("name", ["geometric-binning:ratio=2", "equal-binning:bins=4"])
@pytest.mark.parametrize("seed", range(6))
def test_everybody_has_the_end_of_the_first_bin(seed: int, name: str) -> None:
    """It is at most the smallest level of the leximin, so all can fill it; who has fewer tasks has all of them."""
    network = random_flows(seed)
    for spec in (f"max-min:{name}", f"max-min:{name}:part=0.1"):
        found = fo.schedule(network, spec)
        assert (found.tasks_per_user >= found.details["ends"][0] * (1 - 1e-6)).all()


def test_one_program_decides_as_the_bins_in_turn() -> None:
    """Where a unit in a bin is worth little enough: two links, of which one flow takes both."""
    network = fo.Instance.from_paths({"a": 2, "b": 6}, {"f": [["a", "b"]], "g": [["a"]], "h": [["b"]]})
    for spec in ("max-min:geometric-binning:ratio=2", "max-min:geometric-binning:ratio=2:part=0.01"):
        assert fo.schedule(network, spec).tasks_per_user == pytest.approx([1, 1, 5])


def test_the_ends_of_equal_bins_are_quantiles() -> None:
    """Of the levels of water-filling, which are 1, 2, ..., 8 where each user has a server of its own."""
    instance = fo.Instance(np.arange(1.0, 9)[:, None], np.ones((8, 1)), eligibility=np.eye(8))
    found = fo.schedule(instance, "max-min:equal-binning:bins=7")
    assert found.details["ends"] == pytest.approx(np.quantile(np.arange(1, 9), np.arange(6) / 6))
    assert found.tasks_per_user == pytest.approx(np.arange(1.0, 9))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("max-min:geometric-binning:ratio=1", 'the option ratio of "geometric-binning" is 1; give a number above 1'),
        ("max-min:geometric-binning:first=3", 'the first bin of "geometric-binning" ends at the level 3, which not everybody can reach'),
        ("max-min:swan:first=30", 'the first bin of "swan" ends at the level 30, which not everybody can reach at once'),
        ("max-min:geometric-binning:ratio=1.0001", '"geometric-binning" would have'),
        ("max-min:equal-binning:bins=1", 'the option bins of "equal-binning" is 1; give a whole number from 2 to 1000'),
        ("proportional:geometric-binning", '"geometric-binning" approximates a leximin of shares, and "proportional" is none here'),
        ("efficiency:swan", '"swan" approximates a leximin of shares, and "efficiency" is none here'),
    ],
)
def test_what_is_refused(spec: str, message: str) -> None:
    """What, where, and what to do."""
    network = fo.Instance.from_paths({"a": 2, "b": 60}, {"f": [["a"]], "g": [["a"], ["b"]]})
    with pytest.raises(fo.Unsupported) as refused:
        fo.schedule(network, spec)
    assert str(refused.value).startswith(message)
