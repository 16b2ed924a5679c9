"""Points at which everybody has a given level: t is the part of the levels that can be had, by linear programs of HiGHS too."""

from __future__ import annotations

import numpy as np
import pytest
from instances import instance_in_zones

import fairopt as fo
from fairopt.instance import FloatArray
from fairopt.solvers.backend import Deadline
from fairopt.solvers.large.placing import Placed, place
from fairopt.solvers.structure.scaling import ScaledProgram

NEVER = Deadline(None)


def leximin(seed: int) -> tuple[ScaledProgram, FloatArray]:
    """A scaled program and the levels of its users in the leximin by HiGHS, in parts of their reach."""
    program = fo.formulate(instance_in_zones(60, 12, 4, seed), "drfh")
    scaled = ScaledProgram.of(program)
    found = fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=NEVER)
    levels = np.zeros(len(program.users))
    for stage in found.stages:
        levels[stage.users] = stage.value
    capped = levels == 0
    weights = program.goal.weights
    levels[capped] = (program.per_user(program.utilities * found.x) / weights)[capped]
    return scaled, levels[scaled.member] / scaled.reach


def placed(scaled: ScaledProgram, levels: FloatArray, enough: float = 1.0) -> Placed:
    """Place them on empty servers."""
    return place(scaled, np.ones((scaled.n_slots, scaled.n_servers)), levels, NEVER, enough=enough)


@pytest.mark.parametrize("seed", range(4))
def test_levels_that_can_just_be_had(seed: int) -> None:
    """Those of a leximin, and no larger part of them; what a point has is what it says."""
    scaled, levels = leximin(seed)
    found = placed(scaled, levels)
    assert found.t == pytest.approx(1, abs=1e-9)
    assert (scaled.sum_by_user(scaled.W * found.x) >= levels * found.t * (1 - 1e-9)).all()
    used = np.array([np.bincount(scaled.server, weights=row * found.x, minlength=scaled.n_servers) for row in scaled.A])
    assert used.max() <= 1 + 1e-9
    assert placed(scaled, levels / 2).t >= 2 * (1 - 1e-9)
    assert placed(scaled, 1.25 * levels).t == pytest.approx(0.8, abs=1e-9)


def test_the_first_point_that_is_enough() -> None:
    """It has this part of the levels, and took fewer steps."""
    scaled, levels = leximin(0)
    found, end = placed(scaled, levels, 0.9), placed(scaled, levels)
    assert 0.9 <= found.t <= 1
    assert found.steps < end.steps
    assert placed(scaled, 2 * levels, 0.9).t <= 0.5 * (1 + 1e-9)  # there is none


@pytest.mark.parametrize("enough", [0.9, 1.0])
def test_nothing_is_known_at_the_deadline(enough: float) -> None:
    """No level is final yet."""
    scaled, levels = leximin(0)
    with pytest.raises(fo.NoSolution) as raised:
        place(scaled, np.ones((scaled.n_slots, scaled.n_servers)), levels, Deadline(0.0), enough=enough)
    assert raised.value.known["levels"] == []
