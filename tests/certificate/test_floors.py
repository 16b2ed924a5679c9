"""What an answer says of guarantees is proved: a part, a price or a point that is wrong is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.certificate.exact import prove
from fairopt.certificate.floors import _gap
from fairopt.program import Program, Solution
from fairopt.program.agents import AgentProgram
from fairopt.program.exact import ExactProgram
from fairopt.program.guarantees import Floors
from fairopt.solvers import solve_exactly
from fairopt.solvers.backend import Deadline
from fairopt.solving import notion_of


def overcommitted() -> fo.Instance:
    """Of 4 GPUs, A, with a user inside who is guaranteed 2, and B are guaranteed 4 each."""
    queues = [fo.Queue("A", guarantee={"gpu": 4}), fo.Queue("B", guarantee={"gpu": 4})]
    return fo.Instance([[4]], [[1], [1]], guarantees=[2, 0], queues=queues, queue_of=["A", "B"], resources=["gpu"])


def in_floats() -> tuple[Program, Solution, Floors]:
    """The program, its answer, and the floors."""
    program = fo.formulate(overcommitted(), "drfh")
    found = fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=Deadline(None))
    assert found.promised is not None
    return program, found, found.promised


def in_fractions() -> tuple[ExactProgram, Solution, Floors]:
    """The same in fractions."""
    instance, notion = overcommitted(), notion_of("drfh")
    program = notion.in_fractions(instance.exact, notion.formulate(instance, sharing="rdm", integral=False))
    found = solve_exactly(program, Deadline(None))
    assert found.promised is not None
    return program, found, found.promised


def wrong(promised: Floors) -> list[Floors | None]:
    """Claims that are not right: no floors, other parts, no proof of them, and no fillings alone."""
    parts = (promised.parts[0], promised.parts[1] * 2, *promised.parts[2:])
    return [
        None,
        Floors(alone=promised.alone),
        replace(promised, parts=parts),
        replace(promised, stages=promised.stages[:1]),
        replace(promised, stages=()),
        replace(promised, alone={}, together=None),
    ]


def test_floors_are_proved() -> None:
    """What each holds and could hold, in floats and in fractions."""
    program, found, promised = in_floats()
    assert certify(program, found).worst <= 1e-10
    assert promised.amounts == pytest.approx([2, 2, 2])
    exact, answer, floors = in_fractions()
    prove(exact, answer)
    assert floors.amounts == [2, 2, 2]


@pytest.mark.parametrize("number", range(6))
def test_wrong_floors_are_refused(number: int) -> None:
    """By the certificate, and by the proof."""
    program, found, promised = in_floats()
    assert certify(program, replace(found, promised=wrong(promised)[number])).worst > 1e-3
    exact, answer, floors = in_fractions()
    with pytest.raises(fo.CertificateError):
        prove(exact, replace(answer, promised=wrong(floors)[number]))


@pytest.mark.parametrize("number", range(3))
def test_a_wrong_filling_of_all_guarantees_is_refused(number: int) -> None:
    """A and B ask for 4 each on large servers. Half of that, levels that are missing, and no ends of parts are no such filling."""
    program, found, promised = in_floats()
    together = promised.together
    assert together is not None
    assert together.parts[-1].sum() == pytest.approx(8)
    halves = tuple(part / 2 for part in together.parts)
    wrong = (replace(together, parts=halves, x=halves[-1]), replace(together, stages=together.stages[:1]), replace(together, parts=()))
    assert certify(program, replace(found, promised=replace(promised, together=wrong[number]))).worst > 1e-3


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_wrong_prices_of_a_level_with_floors_are_refused(factor: float) -> None:
    """The prices of limits and of floors belong together."""
    program, found, _ = in_floats()
    assert any(stage.floors for stage in found.stages)

    def off(stage: Any) -> Any:
        if not stage.floors:
            return stage
        prices = stage.prices.copy()
        prices[: len(program.limits)] *= factor
        return replace(stage, prices=prices)

    assert certify(program, replace(found, stages=tuple(off(stage) for stage in found.stages))).worst > 1e-3


def test_limits_that_are_raised_too_far_are_refused() -> None:
    """A limit of a later part may only be what earlier parts gave."""
    program, found, _ = in_floats()
    bounds = [None if each is None else each + np.full(each.size, 0.5) for each in found.extra_bounds]
    assert any(each is not None for each in bounds)
    assert certify(program, replace(found, extra_bounds=tuple(bounds))).worst > 1e-3


def test_a_price_that_is_short_is_charged_or_raised() -> None:
    """Column 0 may carry 10 and costs 1 of the limit of 10; column 1 another limit of 1,000 alone.

    Short by 0.1, column 0 is charged for 10, that is 1; or the price of its own limit is raised by a tenth of it: by 1, too. Short where it
    costs nothing it is charged.
    """
    one = np.ones(1)
    program = AgentProgram([(np.array([0]), one), (np.array([1]), one)], np.array([10.0, 1000.0]), [], 2, False)
    prices = np.array([1.0, 1.0])
    assert _gap(program, prices, np.array([0.1, 0.0]), prices, 0.0) == pytest.approx(1.0)
    assert _gap(program, prices, np.array([0.1, 0.0]), prices, -0.5) == pytest.approx(0.5)
    assert _gap(program, np.array([0.0, 1.0]), np.array([0.1, 0.0]), np.array([0.0, 1.0]), 0.0) == pytest.approx(1.0)
