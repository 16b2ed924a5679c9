"""Answers in fractions where there is little to answer, for notions of one's own, and what is refused."""

# mypy: disable-error-code="arg-type, no-any-return, union-attr"
# (fractions where the types say floats, and answers that are known to be in fractions)

from __future__ import annotations

import logging
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance
from fairopt.instance.aggregation import unmerged
from fairopt.instance.fractions import rational
from fairopt.program import Solution, Stage
from fairopt.solving import formulate
from fairopt.solving.answer import levels_of

POOL = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
CORNERS = {
    "a resource that is nowhere": fo.Instance([[1, 0]], [[0, 1], [1, 1]]),
    "a user without demand": fo.Instance([[1, 1]], [[0, 0], [1, 1]], tasks=[Fraction(7, 3), np.inf]),
    "rows of no server": fo.Instance([[1, 1], [2, 2]], [[1, 1], [1, 2]], counts=[0, 3]),
    "no server at all": fo.Instance([[1, 1]], [[1, 1]], counts=[0]),
    "rates": fo.Instance([[1], [1]], [[1], [1]], rates=[[Fraction(1, 3), 2], [1, 0]]),
    "one server and a half at once": fo.Instance([[4], [2]], [[1], [1]], parallelism=[Fraction(3, 2), np.inf]),
    "weights per resource": fo.Instance([[4, 6]], [[1, 2], [2, 1]], weights=[[1, 2], [Fraction(1, 3), 1]]),
    "no tasks": fo.Instance([[4]], [[1], [1]], tasks=[0, np.inf]),
}


@pytest.mark.parametrize("corner", CORNERS)
def test_corners(corner: str, caplog: pytest.LogCaptureFixture) -> None:
    """As in floats, in fractions throughout, and through a pickle."""
    caplog.set_level(logging.CRITICAL)
    instance, solved = CORNERS[corner], 0
    for notion in ("drfh", "tsf", "cdrf", "efficiency", "uniform", "per-server-drf", "max-min", "asset"):
        try:
            floats = fo.solve(instance, notion)
        except Unsupported:
            continue
        exact = fo.solve(instance, notion, exact=True)
        np.testing.assert_allclose(exact.tasks_per_user, floats.tasks_per_user, rtol=1e-9, atol=1e-12)
        assert exact.exact is not None
        assert all(isinstance(value, Fraction) for value in (*exact.exact.tasks.ravel(), *exact.exact.shares.ravel()))
        again = pickle.loads(pickle.dumps(exact))
        assert again.exact.tasks.tolist() == exact.exact.tasks.tolist()
        assert exact.to_dict()["users"][0]["exact"]["tasks"] == str(exact.exact.tasks_per_user[0])
        solved += 1
    assert solved >= 2


class OfParts(fo.ShareNotion):
    """A third of the sum of parts."""

    name, title, source = "of-parts", "A third of the sum of parts", "the test"

    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return it, in whatever numbers the instance has."""
        return (instance.demands / instance.total_capacity).sum(axis=1) / 3


class OfFloats(OfParts):
    """The same with a float of its own."""

    name = "of-floats"

    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return it in floats."""
        return 0.1 * instance.demands.sum(axis=1)


def test_notions_of_ones_own() -> None:
    """A formula in numpy gives fractions for an instance in fractions; a float of its own is refused, with what to do."""
    assert fo.solve(POOL, OfParts(), exact=True).exact.shares.tolist() == [Fraction(7, 25)] * 2
    with pytest.raises(Unsupported, match=r'share_per_task of "of-floats" gives 0.5 for an instance in fractions.*Fraction\(1, 2\)'):
        fo.solve(POOL, OfFloats(), exact=True)


def test_utilities_are_fractions_too() -> None:
    """1/3 is 1/3; merged and not."""
    found = fo.solve(POOL, "max-min", utility=[[Fraction(1, 3)], [2]], exact=True)
    assert found.exact.shares.tolist() == [Fraction(36, 25)] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [({"integral": True}, "leave one of them out"), ({"solver": "highs"}, 'leave "highs" out')],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], message: str) -> None:
    """Whole tasks, and an engine of the caller's choice."""
    with pytest.raises(Unsupported, match=message):
        fo.solve(POOL, "drf", exact=True, **options)


def test_time_limits_hold() -> None:
    """What takes longer is an error, as in floats."""
    rng = np.random.default_rng(0)
    many = fo.Instance(rng.uniform(1, 2, (20, 3)), rng.uniform(1, 2, (80, 3)))
    with pytest.raises(fo.NoSolution, match="no answer within the time limit"):
        fo.solve(many, "drfh", exact=True, time_limit=1e-4)


@pytest.mark.parametrize(("same", "levels"), [(None, [["a"], ["b"], ["c"]]), (0.0, [["a", "b"], ["c"]])])
def test_each_step_of_a_proof_is_a_level_of_its_own(same: float | None, levels: list[list[str]]) -> None:
    """Also where its value is 0, as that of the step before: their prices differ."""
    instance = fo.Instance([[9, 18]], [[1, 4], [3, 1], [1, 1]], users=["a", "b", "c"])
    program = formulate(instance, "drf")
    values = ((0.0, 0, [1.0, 0.0]), (0.0, 1, [0.0, 1.0]), (0.5, 2, [1.0, 0.0]))
    stages = tuple(Stage(value, np.array([user]), np.array(prices)) for value, user, prices in values)
    found = levels_of(program, Solution(np.zeros(3), stages), unmerged(instance), "rdm", [{}] * 3, same=same)
    assert [list(level.users) for level in found] == levels
    assert [level.prices is not None and level.prices[0].tolist() for level in found] == [
        prices for value, user, prices in values if not (same == 0 and user == 1)
    ]


def test_answers_of_any_number_of_digits_are_proved_and_written() -> None:
    """Python refuses to write whole numbers of more than 4,300 digits: a level of 4,500 is one of a tree, too, and of a result."""
    capacity = Fraction(10**4500 + 1, 7 * 10**4499 + 3)
    users = {"queues": [fo.Queue("q", weight=2), fo.Queue("r")], "queue_of": ["q", "q", "r"]}
    for tree in (users, {}):
        found = fo.solve(fo.Instance([[capacity, 18]], [[1, 4], [3, 1], [2, 2]], **tree), "drfh", exact=True)
        text = found.to_dict()["users"][0]["exact"]["tasks"]
        assert len(text) > 4500
        assert str(rational(found.exact.tasks_per_user[0])) == text
