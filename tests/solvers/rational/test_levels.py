"""Leximins in fractions against the rational simplex of the tests, which shares nothing with the library."""

# mypy: disable-error-code="arg-type, attr-defined, union-attr"
# (fractions where the types say floats, and answers that are known to be in fractions)

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from reference.exact import leximin

import fairopt as fo
from fairopt.errors import NoSolution
from fairopt.program.exact import ExactProgram
from fairopt.solvers.backend import Deadline
from fairopt.solvers.rational import level_programs, levels, totals


def whole_instance(seed: int) -> fo.Instance:
    """Whole numbers, small: ties, zero demands, placement constraints, counts, limits on tasks and on servers at once."""
    rng = np.random.default_rng(seed)
    n, k, m = (int(size) for size in rng.integers([1, 1, 1], [5, 4, 4]))
    demands = rng.integers(0, 4, (n, m))
    demands[demands.sum(axis=1) == 0, 0] = 1
    return fo.Instance(
        rng.integers(0, 9, (k, m)),
        demands,
        weights=rng.integers(1, 4, n),
        eligibility=rng.random((n, k)) < 0.8,
        counts=rng.integers(0, 3, k),
        tasks=np.where(rng.random(n) < 0.3, rng.integers(0, 6, n), np.inf),
        parallelism=np.where(rng.random(n) < 0.3, rng.integers(1, 3, n), np.inf),
    )


def program_of(instance: fo.Instance, notion: str) -> ExactProgram:
    """The program of a notion in fractions, row for row."""
    chosen = fo.NOTIONS[notion]()
    return chosen.in_fractions(instance.exact, chosen.formulate(instance, sharing="rdm", integral=False))


@pytest.mark.parametrize("notion", ["drfh", "cdrf", "tsf", "asset"])
def test_leximins_are_those_of_the_reference(notion: str) -> None:
    """x[n] as a fraction, to the last digit, merged and row for row."""
    levels_seen = 0
    for seed in range(15):
        instance = whole_instance(seed)
        expected = leximin(instance, notion)
        found = fo.solve(instance, notion, exact=True)
        assert found.exact is not None
        assert found.exact.tasks_per_user.tolist() == expected, seed
        assert found.certificate.exact
        levels_seen += len(found.exact.levels)
        program = program_of(instance, notion)
        solution = levels.solve_leximin(program, Deadline(None))
        assert [Fraction(int(x.p), int(x.q)) for x in program.per_user(solution.x)] == expected, seed
    assert levels_seen > 15


def test_floats_that_lead_astray_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever basis floats give, or none: the answer is the same."""
    instances = [whole_instance(seed) for seed in range(8)]
    expected = [leximin(instance, "drfh") for instance in instances]
    for wrong in ([], [0], [3, 1, 2]):
        monkeypatch.setattr(level_programs.LevelPrograms, "_float_basis", lambda self, start, rate, wrong=wrong: list(wrong))
        for instance, tasks in zip(instances, expected, strict=True):
            assert fo.solve(instance, "drfh", exact=True).exact.tasks_per_user.tolist() == tasks


def test_equal_levels_stop_everybody() -> None:
    """One level for all, with the rest left unused."""
    instance = fo.Instance([[6, 6]], [[1, 0], [1, 1], [0, 2]])
    allocation = fo.solve(instance, "drfh", formulation="equalize", exact=True)
    shares = allocation.exact.shares
    assert len(set(shares.tolist())) == 1
    assert shares[0] == Fraction(1, 2)


def test_totals_are_the_largest() -> None:
    """The optimum 63/11 of the two-user example, and prices that prove it."""
    program = program_of(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), "efficiency")
    solution = totals.solve_total(program, Deadline(None))
    assert sum(solution.x) == Fraction(63, 11).numerator / totals.rational(11)


def test_servers_take_turns() -> None:
    """Six tasks each, as the paper says, though ten would fit."""
    instance = fo.Instance([[2, 12], [12, 2]], [[Fraction(1, 5), 1], [1, Fraction(1, 5)]], tasks=[6, np.inf])
    program = program_of(instance, "per-server-drf")
    solution = totals.solve_separately(program, Deadline(None))
    assert [str(x) for x in program.per_user(solution.x)] == ["6", "6"]


def test_time_runs_out() -> None:
    """What is final by then is told."""

    class Passed(Deadline):
        left: Any = 0.0

    with pytest.raises(NoSolution, match="no answer within the time limit of 1 s"):
        levels.solve_leximin(program_of(whole_instance(1), "drfh"), Passed(1.0))
