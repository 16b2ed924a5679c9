"""Tasks that are placed as they come: the same servers as by plain loops, with and without cards."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.solvers.filling import arrival_kernel
from fairopt.solvers.filling.arrival_order import check_arrivals, place_arrivals
from fairopt.solvers.filling.placements import BestFit, FirstFit, Placement, RandomRoundRobin, WorstFit


def by_loops(instance: fo.Instance, turns: list[int], cards: int | None) -> list[int]:
    """First fit in tenths: of a server the first card with room for a part, the first empty ones for whole cards."""
    row = np.repeat(np.arange(instance.n_servers), instance.counts.astype(int))
    free = [np.round(instance.capacities[i] * 10).astype(int) for i in row]
    left = [[10] * int(instance.capacities[i, cards]) if cards is not None else [] for i in row]
    found = []
    for n in turns:
        demand = np.round(instance.demands[n] * 10).astype(int)
        asked = int(demand[cards]) if cards is not None else 0
        for i, r in enumerate(row):
            if not instance.eligibility[n, r] or (demand > free[i]).any():
                continue
            taken = [j for j, room in enumerate(left[i]) if (room >= asked if asked <= 10 else room == 10)]
            number = 1 if 0 < asked <= 10 else asked // 10
            if cards is not None and len(taken) < number:
                continue
            for j in taken[:number]:
                left[i][j] -= min(asked, 10)
            free[i] = free[i] - demand
            found.append(i)
            break
        else:
            found.append(-1)
    return found


@pytest.mark.parametrize("cards", [None, 0])
@pytest.mark.parametrize("seed", range(15))
def test_first_fit_is_that_of_plain_loops(seed: int, cards: int | None) -> None:
    """Parts of a card and whole cards, constraints, rows of several servers."""
    rng = np.random.default_rng(seed)
    asked = rng.choice([0, 0.2, 0.5, 0.7, 1, 2], 5)
    instance = fo.Instance(
        np.column_stack([rng.integers(1, 4, 3), rng.integers(2, 6, 3)]),
        np.column_stack([asked, rng.integers(1, 9, 5) / 10]),
        counts=[1, 2, 1],
        eligibility=rng.random((5, 3)) < 0.8,
    )
    turns = rng.integers(0, 5, 40)
    assert place_arrivals(instance, turns, FirstFit(), cards=cards).tolist() == by_loops(instance, turns.tolist(), cards)


def test_worst_fit_spreads_and_best_fit_packs() -> None:
    """Two equal servers: the second task goes to the empty one, or to the one that is tight."""
    instance = fo.Instance([[4.0], [4.0]], [[1.0]])
    assert place_arrivals(instance, np.zeros(4, int), WorstFit()).tolist() == [0, 1, 0, 1]
    assert place_arrivals(instance, np.zeros(4, int), BestFit("tightest")).tolist() == [0, 0, 0, 0]


def test_parts_of_several_cards_are_no_card() -> None:
    """Halves on two cards leave no whole one under worst-fit, which takes the emptiest; first-fit keeps one whole."""
    instance = fo.Instance([[2.0]], [[0.5], [1.0]])
    turns = np.array([0, 0, 1])
    assert place_arrivals(instance, turns, FirstFit(), cards=0).tolist() == [0, 0, 0]
    assert place_arrivals(instance, turns, WorstFit(), cards=0).tolist() == [0, 0, -1]


@pytest.mark.parametrize(
    ("instance", "placement", "cards", "message"),
    [
        (fo.Instance([[1]], [[1]], rates=[[2]]), FirstFit(), None, "time is shared"),
        (fo.Instance([[1]], [[1]], parallelism=[0.5]), FirstFit(), None, "limited to 0.5 at once"),
        (fo.Instance([[1]], [[1]]), RandomRoundRobin(), None, "chooses by the shares of several users"),
        (fo.Instance([[1.5]], [[1]]), FirstFit(), 0, "cards are whole"),
        (fo.Instance([[2]], [[1.5]]), FirstFit(), 0, "a part of one card, or whole ones"),
    ],
)
def test_what_cannot_be_placed_is_refused(instance: fo.Instance, placement: Placement, cards: int | None, message: str) -> None:
    """Before anything is computed."""
    with pytest.raises(fo.FairoptError, match=message):
        check_arrivals(instance, placement, cards)


def test_a_task_takes_the_cards_that_its_placement_says() -> None:
    """Of cards with 0.5, 0.9 and 1 left: the first with room, the emptiest, and the fullest otherwise; whole ones are empty cards."""
    for rule, expected in ((FirstFit.rule, 0), (WorstFit.rule, 2), (BestFit("tightest").rule, 0)):
        left = np.array([0.5, 0.9, 1.0])
        arrival_kernel._take(int(rule), left, 0.4)
        assert int((np.array([0.5, 0.9, 1.0]) - left).argmax()) == expected
