"""Every goal that has equations of its own is polished by them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.choosing import choose
from fairopt.solvers.polishing import long_polishes, polishes

CLUSTER = fo.Instance([[9, 12, 100], [12, 12, 40]], [[1, 2, 10], [2, 1, 1], [1, 3, 1]], weights=[1, 1, 2])


def solved(program: Program) -> Solution:
    """Return what the first engine finds."""
    return choose(program, None).solve(program, tolerance=1e-9, deadline=Deadline(None))


@pytest.mark.parametrize(
    ("notion", "by"), [("drfh", "level equations"), ("proportional", "active sets"), ("psdsf", "active sets")], ids=lambda each: str(each)
)
def test_an_answer_that_is_off_by_a_millionth_is_mended(notion: str, by: str) -> None:
    """With the method that its goal has, to rounding."""
    program = fo.formulate(CLUSTER, notion)
    exact = solved(program)
    off = replace(exact, x=exact.x * (1 - 1e-6 * np.linspace(0.5, 1, exact.x.size)))
    found = list(polishes(program, off))
    assert {method for method, _ in found} == {by}
    assert certify(program, off).worst > 1e-7
    assert min(certify(program, polished).worst for _, polished in found) < 1e-11


def test_whole_tasks_are_not_polished() -> None:
    """Nor is a sum, which has no equations of its own."""
    whole = fo.formulate(CLUSTER, "drfh", integral=True)
    solution = solved(fo.formulate(CLUSTER, "drfh"))
    assert list(polishes(whole, solution)) == []
    total = fo.formulate(CLUSTER, "efficiency")
    assert list(polishes(total, solved(total))) == []


@pytest.mark.parametrize("notion", ["drfh", "proportional", "psdsf"])
def test_after_the_deadline_nothing_is_polished(notion: str) -> None:
    """Neither with rules nor without."""
    program = fo.formulate(CLUSTER, notion)
    assert list(polishes(program, solved(program), Deadline(0.0))) == []
    if notion == "proportional":
        ruled = fo.formulate(CLUSTER.replace(rules=["x['user-1'] >= 1"]), notion)
        assert list(polishes(ruled, solved(ruled)))
        assert list(polishes(ruled, solved(ruled), Deadline(0.0))) == []


def test_leximins_have_a_long_polish() -> None:
    """Other prices of the same levels; other goals have none, nor is there time for it after the deadline."""
    program = fo.formulate(CLUSTER, "drfh")
    exact = solved(program)
    found = list(long_polishes(program, exact, Deadline(None)))
    assert {method for method, _ in found} == {"least prices"}
    assert max(certify(program, polished).worst for _, polished in found) < 1e-12
    assert list(long_polishes(program, exact, Deadline(0.0))) == []
    total = fo.formulate(CLUSTER, "efficiency")
    assert list(long_polishes(total, solved(total), Deadline(None))) == []
