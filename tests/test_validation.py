"""Checks of arguments: what is refused, and with which words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.instance import require_instance
from fairopt.validation import check_number_of_workers, check_seconds, check_time_limit, check_tolerance, check_whole_number

REFUSED: list[tuple[Callable[..., None], tuple[Any, ...], str]] = [
    (check_whole_number, ("seed", -1, 0), "seed is -1; give a whole number >= 0"),
    (check_whole_number, ("effort", 1.0, 1), "effort is 1.0; give a whole number >= 1"),
    (check_whole_number, ("seed", True, 0), "seed is True; give a whole number >= 0"),
    (check_whole_number, ("seed", None, 0), "seed is None; give a whole number >= 0"),
    (check_seconds, ("until", 0), "until is 0; give a number of seconds > 0"),
    (check_seconds, ("until", math.inf), "until is inf; give a number of seconds > 0"),
    (check_seconds, ("until", True), "until is True; give a number of seconds > 0"),
    (check_time_limit, (0,), "time_limit is 0; give a number of seconds > 0"),
    (check_time_limit, (-math.inf,), "time_limit is -inf; give a number of seconds > 0"),
    (check_time_limit, (math.nan,), "time_limit is nan; give a number of seconds > 0"),
    (check_time_limit, (10**400,), "time_limit is a number beyond 1e308; give a number of seconds > 0"),
    (check_tolerance, (10**5000,), "tolerance is a number beyond 1e308; give a number > 0 and < 1, such as 1e-8"),
    (check_whole_number, ("seed", -(10**5000), 0), "seed is a number beyond 1e308; give a whole number >= 0"),
    (check_time_limit, ("3",), "time_limit is '3'; give a number of seconds > 0"),
    (check_number_of_workers, (0,), "workers is 0; give a number of workers, or -1 for one on each core"),
    (check_number_of_workers, (-2,), "workers is -2; give a number of workers, or -1 for one on each core"),
    (check_number_of_workers, (2.0,), "workers is 2.0; give a number of workers, or -1 for one on each core"),
    (check_tolerance, (1,), "tolerance is 1; give a number > 0 and < 1, such as 1e-8"),
    (check_tolerance, (0.0,), "tolerance is 0.0; give a number > 0 and < 1, such as 1e-8"),
    (check_tolerance, (None,), "tolerance is None; give a number > 0 and < 1, such as 1e-8"),
]
TAKEN: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
    (check_whole_number, ("seed", np.int32(0), 0)),
    (check_whole_number, ("seed", 10**30, 0)),
    (check_seconds, ("until", np.float32(0.5))),
    (check_time_limit, (None,)),
    (check_time_limit, (math.inf,)),
    (check_time_limit, (np.int64(3),)),
    (check_number_of_workers, (-1,)),
    (check_number_of_workers, (np.int64(4),)),
    (check_tolerance, (np.float64(1e-8),)),
]


@pytest.mark.parametrize(("check", "arguments", "message"), REFUSED)
def test_what_is_refused(check: Callable[..., None], arguments: tuple[Any, ...], message: str) -> None:
    """The message names the argument and its value, and says what to give."""
    with pytest.raises(fo.Unsupported) as caught:
        check(*arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize(("check", "arguments"), TAKEN)
def test_what_is_taken(check: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Numbers of numpy are numbers; no limit on time is None or inf."""
    check(*arguments)


def test_the_end_of_a_message() -> None:
    """A bound from above and a meaning, where there are."""
    with pytest.raises(fo.Unsupported, match="a seed is 1024; give a whole number >= 0 and < 1,024, of a stream"):
        check_whole_number("a seed", 1024, 0, below=1024, meaning=", of a stream")


def test_an_instance_is_required() -> None:
    """A path is none."""
    require_instance(fo.Instance([[1]], [[1]]))
    with pytest.raises(fo.InvalidInstance, match=r"^expected an Instance, got str; build one with fairopt\.Instance or fairopt\.load$"):
        require_instance("cluster.yaml")


def test_an_endless_time_limit_is_none() -> None:
    """For every engine that a leximin, a total and a market choose."""
    instance = fo.Instance([[4, 8], [8, 4]], [[1, 2], [2, 1]])
    for notion in ("drfh", "efficiency", "proportional", "psdsf"):
        for solver in fo.SOLVERS:
            try:
                expected = fo.solve(instance, notion, solver=solver)
            except fo.Unsupported:
                continue
            found = fo.solve(instance, notion, solver=solver, time_limit=math.inf)
            np.testing.assert_allclose(found.tasks_per_user, expected.tasks_per_user, rtol=1e-6)
