"""Proofs of the parts of a filling: what an early part fills stays full, and counts as that in later ones; nothing else does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Program, Solution, Stage


def two_tiers(tasks: float) -> Program:
    """The first tier, which has so many tasks, may use the second server alone; who comes later may use both: 4 and 6 of capacity."""
    queues = [fo.Queue("first", tier=1), fo.Queue("later")]
    instance = fo.Instance(
        [[4], [6]],
        [[1], [1]],
        eligibility=[[0, 1], [1, 1]],
        tasks=[tasks, np.inf],
        queues=queues,
        queue_of=["first", "later"],
        resources=["gpu"],
    )
    return fo.formulate(instance, "drfh")


def claimed(program: Program, first: float, later: tuple[float, float], prices: tuple[float, float]) -> Solution:
    """What is claimed: the first tier has this on its server, the others have that, and are stopped by these prices of both servers."""
    limits = len(program.limits)
    ends = (np.array([first, 0.0, 0.0]), np.array([first, *later]))

    def full(of_servers: tuple[float, float]) -> np.ndarray:
        return np.append(of_servers, np.zeros(limits - 2))

    share = program.utilities[0]
    stages = (
        Stage(first * share, np.array([0]), full((0.0, 1.0)) if first == 6 else None, 0),
        Stage(sum(later) * share, np.array([1]), full(prices), 1),
    )
    return Solution(ends[1], stages, parts=ends)


def test_the_claims_are_in_the_right_units() -> None:
    """Prices of both servers prove 4 for later where the first tier has all 6 of its server."""
    program = two_tiers(np.inf)
    assert program.pair_users.tolist() == [0, 1, 1]
    assert certify(program, claimed(program, 6.0, (4.0, 0.0), (1.0, 1.0))).worst <= 1e-12


def test_what_an_early_part_fills_needs_no_price_later() -> None:
    """The second server is full for good, so that the price of the first one alone proves 4."""
    program = two_tiers(np.inf)
    assert certify(program, claimed(program, 6.0, (4.0, 0.0), (1.0, 0.0))).worst <= 1e-12


@pytest.mark.parametrize("prices", [(1.0, 0.0), (1.0, 1.0)])
def test_what_it_leaves_needs_one(prices: tuple[float, float]) -> None:
    """The first tier has only 2 tasks: later can have 8, whatever is claimed of 4."""
    program = two_tiers(2.0)
    assert certify(program, claimed(program, 2.0, (4.0, 4.0), (1.0, 1.0))).worst <= 1e-12
    assert not certify(program, claimed(program, 2.0, (4.0, 0.0), prices)).worst <= 0.1


def test_a_price_below_0_needs_a_full_limit() -> None:
    """-1 for the second server is nothing where the first tier filled it; it proves nothing where there is room."""
    program = two_tiers(np.inf)
    assert certify(program, claimed(program, 6.0, (4.0, 0.0), (1.0, -1.0))).worst <= 1e-12
    program = two_tiers(2.0)
    assert not certify(program, claimed(program, 2.0, (4.0, 0.0), (1.0, -1.0))).worst <= 0.1


def changed(change: Callable[[Stage], Stage]) -> float:
    """Return the worst residual of a right answer with changed stages."""
    program = two_tiers(np.inf)
    right = claimed(program, 6.0, (4.0, 0.0), (1.0, 0.0))
    return certify(program, Solution(right.x, tuple(change(stage) for stage in right.stages), parts=right.parts)).worst


def test_no_prices_are_no_proof() -> None:
    """Nobody stops without a price, or a full limit on shares."""
    assert changed(lambda stage: stage) <= 1e-12
    assert not changed(lambda stage: Stage(stage.value, stage.users, None, stage.part)) <= 0.1


def test_what_a_guarantee_elsewhere_closes_is_open_in_the_surplus() -> None:
    """The guarantee is for server b, where the user may not run: it gets nothing by it, and then all 4 of server a."""
    queue = fo.Queue("q", quotas=[fo.Quota(["b"], guarantee={"cpu": 2})])
    instance = fo.Instance(
        [[4], [4]], [[1]], eligibility=[[1, 0]], servers=["a", "b"], resources=["cpu"], queues=[queue], queue_of=["q"], users=["u"]
    )
    assert fo.solve(instance, "drfh").tasks_per_user == pytest.approx([4.0])
    program = fo.formulate(instance, "drfh")
    ends = np.array([0.0]), np.array([3.0])
    for priced in range(len(program.limits)):
        prices = np.eye(len(program.limits))[priced]
        less = Solution(ends[1], (Stage(3 * program.utilities[0], np.array([0]), prices, 1),), parts=ends)
        assert not certify(program, less).worst <= 0.1
