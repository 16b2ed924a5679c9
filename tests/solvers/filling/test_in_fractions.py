"""Progressive filling in fractions: its pieces by hand. (Whole schedules against loops on paper: tests/scheduling/test_in_fractions.py.)"""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.program.filling import Filling, Measure, Rule
from fairopt.scheduling.arrays import filling_of as arrays_of
from fairopt.scheduling.queues import queues_of
from fairopt.solvers.filling.in_fractions import draw, fill_in_fractions, rounds, seconds_expected
from fairopt.solvers.filling.placements import BestFit, FirstFit
from fairopt.solvers.filling.precomputed_in_fractions import fill_lowest_in_fractions, precompute_in_fractions
from fairopt.solvers.filling.servers_in_fractions import Servers
from fairopt.solvers.filling.tree_in_fractions import Tree

Instance: Any = fo.Instance  # array types do not know Fractions


def filling_of(instance: fo.Instance, criterion: str = "drfh", sharing: str = "rdm") -> Filling:
    """The input in fractions."""
    chosen = {**fo.NOTIONS, **fo.CRITERIA}[criterion]()
    exact = instance.exact
    return arrays_of(exact, chosen, sharing, "index", queues=queues_of(exact, exact, chosen))[0]  # type: ignore[arg-type]


TWO = Instance([[Fraction(4, 3), 2], [2, 1]], [[Fraction(1, 3), 1], [1, 0]], counts=[1, 2])


@pytest.mark.parametrize(
    ("rule", "score"),
    [
        (Rule.TIGHTEST, 3 * Fraction(4, 16) + 2 * Fraction(3, 4)),
        (Rule.DOT, -(Fraction(1, 4) + Fraction(1, 2))),
        (Rule.L1, abs(3 - Fraction(3, 2))),
    ],
)
def test_scores(rule: Rule, score: Fraction) -> None:
    """Of the first server for the first user, by hand: in parts of an average server (16/9 and 4/3), of the server, or of one another."""
    state = Servers(filling_of(TWO))
    parts = {Rule.L1: Fraction(16, 9) / Fraction(4, 3)}.get(rule, Fraction(1))
    assert state.score(rule, 0, 0) == score * parts


def test_closest_and_room() -> None:
    """By the worth of a task, and by what is left."""
    instance = Instance([[2], [4]], [[1]])
    state = Servers(filling_of(instance, "psdsf"))
    assert state.measure is Measure.SERVER
    assert state.smallest_share(0, state.fitting(0)) == 0
    state.place(0, 0)
    assert (state.share_at(0, 0), state.share_at(0, 1)) == (Fraction(1, 2), Fraction(1, 4))
    assert state.smallest_share(0, state.fitting(0)) == Fraction(1, 4)
    residual = Servers(filling_of(instance, "rpsdsf"))
    residual.place(0, 1)
    assert residual.room(0, 1) == 3
    assert residual.share_at(0, 1) == Fraction(1, 3)


def test_nothing_is_drawn_without_a_choice() -> None:
    """One of one draws no random number."""
    rng, same = np.random.default_rng(1), np.random.default_rng(1)
    assert draw(rng, 1) == 0
    assert rng.random() == same.random()


def test_rounds_end_when_all_are_closed() -> None:
    """Every server comes once a round, until it is closed."""
    seen = []
    for i, closed in rounds(3, False, np.random.default_rng(0)):
        seen.append(i)
        if len(seen) > 3:
            closed()
    assert sorted(seen) == [0, 0, 1, 1, 2, 2]


def test_filling() -> None:
    """Step by step by hand; a tree of one queue gives the same."""
    filled = fill_in_fractions(filling_of(TWO), FirstFit(), random_ties=False, seed=0, first_block=False)
    assert list(zip(filled.users.tolist(), filled.servers.tolist(), strict=True)) == [(0, 0), (1, 0), (1, 1), (0, 1), (1, 2), (0, 2)]
    tree = TWO.replace(queues=[fo.Queue("all")], queue_of=["all", "all"])
    same = fill_in_fractions(filling_of(tree), FirstFit(), random_ties=False, seed=0, first_block=False)
    assert same.tasks.tolist() == filled.tasks.tolist()


def test_expected_seconds_grow() -> None:
    """With servers that are scored, and with tasks."""
    small, large = (filling_of(Instance([[number]], [[1]], counts=[number])) for number in (10, 1000))
    assert seconds_expected(small, FirstFit()) < seconds_expected(large, FirstFit()) < seconds_expected(large, BestFit())


def test_precomputed_by_hand() -> None:
    """The paper's section 6.1, and an end that is filled."""
    demands = [[Fraction(2)], [Fraction(4)], [Fraction(10)]]
    share = [Fraction(row[0], 35) for row in demands]
    (cycle,) = precompute_in_fractions([Fraction(35)], demands, share, [inf] * 3)
    assert cycle.turns == Fraction(7, 6)
    assert cycle.tasks.tolist() == [5, 2, 1]
    assert fill_lowest_in_fractions([Fraction(35)], demands, share, [inf] * 3, cycle.tasks.tolist()) == [6, 3, 1]


def test_a_walk_down_the_tree() -> None:
    """A guarantee of 2 first, then by weight 1 : 3, and never beyond the limit of 3: nine units, of which the last one stays free."""
    queues = [fo.Queue("a", guarantee={"gpu": 2}), fo.Queue("b", weight=3, limit={"gpu": 3})]
    instance = Instance([[9]], [[1], [1]], resources=["gpu"], tasks=[5, 9], queues=queues, queue_of=["a", "b"])
    filling = filling_of(instance)
    assert filling.queues is not None
    servers = Servers(filling)
    tree, order = Tree(servers, filling, filling.queues), []
    while turn := tree.next(servers.fitting, lambda tied: tied[0]):
        assert turn[1] == [True]
        order.append(turn[0])
        tree.place(turn[0], 0)
    assert order[:2] == [0, 0]
    assert (order.count(0), order.count(1)) == (5, 3)
    assert servers.free == [[1]]
