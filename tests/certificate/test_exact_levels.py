"""The proof in fractions refuses forged answers, whatever is forged."""

# mypy: disable-error-code="arg-type, call-arg, index, operator"
# (fractions where the types say floats, and answers that are known to be in fractions)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate.exact import prove
from fairopt.errors import CertificateError
from fairopt.instance.fractions import rational
from fairopt.program import Solution
from fairopt.program.exact import ExactProgram
from fairopt.solvers import solve_exactly
from fairopt.solvers.backend import Deadline

CLUSTER = fo.Instance(
    [[9, 12, 100], [12, 12, 0], [3, 1, 2]],
    [[1, 2, 10], [1, 2, 1], [1, 2, 0], [2, 1, 1]],
    weights=[1, 1, 2, 1],
    tasks=[np.inf, np.inf, np.inf, Fraction(1, 3)],
)
HAIR = rational(Fraction(1, 10**40))
Forge = Callable[[Solution], Solution]


def solved(notion: str, instance: fo.Instance = CLUSTER) -> tuple[ExactProgram, Solution]:
    """A program in fractions and its answer, which is proved."""
    chosen = fo.NOTIONS[notion]()
    program = chosen.in_fractions(instance.exact, chosen.formulate(instance, sharing="rdm", integral=False))
    solution = solve_exactly(program, Deadline(None))
    prove(program, solution)
    return program, solution


def stage(solution: Solution, number: int, **changes: object) -> Solution:
    """The answer with one stage changed."""
    stages = list(solution.stages)
    stages[number] = replace(stages[number], **changes)
    return replace(solution, stages=tuple(stages))


def moved(solution: Solution, pair: int, by: object) -> Solution:
    """The answer with a little more on one pair."""
    x = solution.x.copy()
    x[pair] = x[pair] + by
    return replace(solution, x=x)


FORGED: dict[str, Forge] = {
    "a hair more": lambda s: moved(s, int(np.argmax(s.x)), HAIR),
    "a hair less": lambda s: moved(s, int(np.argmax(s.x)), -HAIR),
    "less than nothing": lambda s: moved(s, int(np.argmin(s.x)), -HAIR),
    "a level raised": lambda s: stage(s, 0, value=s.stages[0].value + HAIR),
    "a level lowered": lambda s: stage(s, -1, value=s.stages[-1].value - HAIR),
    "no level": lambda s: replace(s, stages=()),
    "the last level left out": lambda s: replace(s, stages=s.stages[:-1]),
    "levels in another order": lambda s: replace(s, stages=s.stages[::-1]),
    "a level twice": lambda s: replace(s, stages=(*s.stages, s.stages[-1])),
    "no prices": lambda s: stage(s, 0, prices=None),
    "prices of nothing": lambda s: stage(s, 0, prices=s.stages[0].prices * rational(0)),
    "prices of too few limits": lambda s: stage(s, 0, prices=s.stages[0].prices[:-1]),
    "a price below 0": lambda s: stage(s, 0, prices=s.stages[0].prices - HAIR),
    "prices a hair too high": lambda s: stage(s, 0, prices=s.stages[0].prices + HAIR),
    "everybody settled at once": lambda s: replace(
        s, stages=(replace(s.stages[0], users=np.concatenate([each.users for each in s.stages])),)
    ),
}


@pytest.mark.parametrize("how", FORGED)
def test_a_forged_leximin_is_refused(how: str) -> None:
    """By 10^-40 is enough."""
    program, solution = solved("drfh")
    assert len(solution.stages) > 1
    with pytest.raises(CertificateError, match='the answer in fractions for "drfh" fails its check'):
        prove(program, FORGED[how](solution))


@pytest.mark.parametrize("notion", ["efficiency", "uniform", "per-server-drf"])
def test_forged_answers_of_other_goals_are_refused(notion: str) -> None:
    """Tasks a hair lower, or with prices that prove nothing."""
    program, solution = solved(notion)
    with pytest.raises(CertificateError):
        prove(program, moved(solution, int(np.argmax(solution.x)), -HAIR))
    if solution.prices is not None:
        for prices in (None, solution.prices * rational(2), solution.prices - HAIR, solution.prices[:-1]):
            with pytest.raises(CertificateError):
                prove(program, replace(solution, prices=prices))
    else:
        with pytest.raises(CertificateError):
            prove(program, stage(solution, 0, value=solution.stages[0].value + HAIR))


def test_the_answer_to_another_question_is_refused() -> None:
    """The leximin of an instance that differs by 10^-40."""
    capacities = CLUSTER.exact.capacities
    other = CLUSTER.replace(capacities=capacities + Fraction(1, 10**40) * (capacities > 0))
    program, _ = solved("drfh")
    _, solution = solved("drfh", other)
    with pytest.raises(CertificateError, match="is used of"):
        prove(program, solution)


def test_an_equal_level_that_is_no_leximin_is_no_leximin() -> None:
    """Proved as one equal level, refused as a leximin: somebody pays nothing."""
    instance = fo.Instance([[6, 6]], [[1, 0], [1, 1], [0, 2]])
    equal = fo.NOTIONS["drfh"](formulation="equalize")
    program = equal.in_fractions(instance.exact, equal.formulate(instance, sharing="rdm", integral=False))
    solution = solve_exactly(program, Deadline(None))
    prove(program, solution)
    leximin = fo.NOTIONS["drfh"]()
    as_leximin = leximin.in_fractions(instance.exact, leximin.formulate(instance, sharing="rdm", integral=False))
    with pytest.raises(CertificateError, match="pays nothing"):
        prove(as_leximin, solution)
