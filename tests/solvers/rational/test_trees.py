"""Trees of queues in fractions: worked by hand, against the floats, and forged."""

# mypy: disable-error-code="arg-type, operator, union-attr"
# (fractions where the types say floats, and answers that are known to be in fractions)

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from instances import decimal_tree, instance_in_queues

import fairopt as fo
from fairopt.certificate.exact import prove
from fairopt.errors import CertificateError, Unsupported
from fairopt.instance.fractions import rational
from fairopt.program import Solution
from fairopt.program.exact import ExactProgram
from fairopt.solvers.backend import Deadline
from fairopt.solvers.rational.nested import solve_nested
from fairopt.solvers.rational.trees import solve_filling

F = Fraction
HAIR = rational(F(1, 10**40))
OPTIONS: list[dict[str, Any]] = [{}, {"guarantees": "clamp"}, {"queue_share": "sum"}, {"tree": "nested"}]


def shared(**more: Any) -> fo.Instance:
    """Ten units; lab (weight 2, two users of weights 1 and 2) and shop (weight 1)."""
    return fo.Instance(
        [[10]],
        [[1], [1], [1]],
        weights=[1, 2, 1],
        queues=[fo.Queue("lab", weight=2, **more), fo.Queue("shop")],
        queue_of=["lab", "lab", "shop"],
        users=["a", "b", "c"],
        resources=["cpu"],
    )


@pytest.mark.parametrize("tree", ["filling", "nested"])
def test_parts_by_weight(tree: str) -> None:
    """2/3 of ten for the lab, of which a third and two thirds."""
    found = fo.solve(shared(), "drfh", exact=True, tree=tree).exact
    assert found.tasks_per_user.tolist() == [F(20, 9), F(40, 9), F(10, 3)]


def test_guarantees_come_first() -> None:
    """Seven for the lab first, then three by weight on top of them; with a clamp shop catches up first, and has all three."""
    instance = shared(guarantee={"cpu": 7})
    surplus = fo.solve(instance, "drfh", exact=True)
    assert surplus.exact.tasks_per_user.tolist() == [F(3), F(6), F(1)]
    assert {level.part for level in surplus.levels} == {"the guarantees", "the surplus"}
    clamped = fo.solve(instance, "drfh", exact=True, guarantees="clamp")
    assert clamped.exact.tasks_per_user.tolist() == [F(7, 3), F(14, 3), F(3)]


def test_limits_of_queues_stop_them() -> None:
    """At most five for the lab: the shop has the rest."""
    found = fo.solve(shared(limit={"cpu": F(5)}), "drfh", exact=True)
    assert found.exact.tasks_per_user.tolist() == [F(5, 3), F(10, 3), F(5)]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of the floats
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_floats_are_near(options: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """On random trees with guarantees, limits, tiers, quotas and decimals; every answer is proved."""
    caplog.set_level(logging.CRITICAL)
    compared = 0
    for seed in range(6):
        instance = decimal_tree(instance_in_queues(seed, guarantees=options.get("tree") != "nested"))
        try:
            floats = fo.solve(instance, "tsf", **options)
        except Unsupported:
            continue
        exact = fo.solve(instance, "tsf", exact=True, **options)
        np.testing.assert_allclose(exact.shares, floats.shares, rtol=1e-9, atol=1e-9 * exact.shares.max())
        compared += 1
    assert compared >= 3


def solved(options: dict[str, Any]) -> tuple[ExactProgram, Solution]:
    """A program of a tree in fractions and its answer, which is proved."""
    nested = options.get("tree") == "nested"
    instance = instance_in_queues(5, guarantees=not nested)
    notion = fo.NOTIONS["tsf"]().changed(**options)
    program = notion.in_fractions(instance.exact, notion.formulate(instance, sharing="rdm", integral=False))
    solution = (solve_nested if nested else solve_filling)(program, Deadline(None))
    prove(program, solution)
    return program, solution


def level(solution: Solution, number: int, **changes: object) -> Solution:
    """The answer with one level changed."""
    stages = list(solution.stages)
    stages[number] = replace(stages[number], **changes)
    return replace(solution, stages=tuple(stages))


def proved(solution: Solution) -> int:
    """A level with prices that settles somebody."""
    return next(k for k, stage in enumerate(solution.stages) if stage.prices is not None and stage.users.size)


def nudged(value: Any, way: int) -> Any:
    """A level, of either kind of fraction, a hair higher or lower."""
    return value + way * (F(1, 10**40) if isinstance(value, F | int) else HAIR)


def moved(solution: Solution, by: object) -> Solution:
    """The answer with a hair less on its largest pair, at the end of the last part too."""
    x = solution.x.copy()
    x[int(np.argmax(x))] += by
    return replace(solution, x=x, parts=(*solution.parts[:-1], x) if solution.parts else ())


FORGED: dict[str, Callable[[Solution], Solution]] = {
    "a hair less": lambda s: moved(s, -HAIR),
    "a level higher": lambda s: level(s, proved(s), value=nudged(s.stages[proved(s)].value, 1)),
    "a level lower": lambda s: level(s, proved(s), value=nudged(s.stages[proved(s)].value, -1)),
    "no prices": lambda s: level(s, proved(s), prices=None),
    "prices of nothing": lambda s: level(s, proved(s), prices=s.stages[proved(s)].prices * rational(0)),
    "prices a hair higher": lambda s: level(s, proved(s), prices=s.stages[proved(s)].prices + HAIR),
    "the last level left out": lambda s: replace(s, stages=s.stages[:-1]),
    "no levels": lambda s: replace(s, stages=()),
}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("how", FORGED)
def test_forged_trees_are_refused(options: dict[str, Any], how: str) -> None:
    """By 10^-40."""
    program, solution = solved(options)
    with pytest.raises(CertificateError, match="fails its check"):
        prove(program, FORGED[how](solution))


def test_prices_are_those_of_a_unit_more() -> None:
    """A limit on a queue of weight 1/3: t rises by 3/7 where it rises by 1, and so does the level where it is raised."""
    limit: Any = {"resource-1": Fraction(3, 10)}
    higher: Any = {"resource-1": Fraction(4, 10)}
    queues = [fo.Queue("a", weight=Fraction(1, 3), limit=limit), fo.Queue("b", weight=Fraction(2, 3))]
    lab = fo.Instance([[7]], [[1], [1]], queues=queues, queue_of=["a", "b"])
    found = fo.solve(lab, "drfh", exact=True).exact
    raised = fo.solve(lab.replace(queues=[fo.Queue("a", weight=Fraction(1, 3), limit=higher), queues[1]]), "drfh", exact=True).exact
    assert found is not None
    assert raised is not None
    assert found.queue_prices["resource-1 of a"] == Fraction(3, 7) == (raised.levels[0] - found.levels[0]) / Fraction(1, 10)
