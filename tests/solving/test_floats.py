"""What a refusal says where double precision does not hold an answer: why, in numbers of the data, and what to ask instead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import Certificate, certify
from fairopt.errors import CertificateError, NoSolution
from fairopt.program import Solution
from fairopt.solvers import candidates
from fairopt.solving import floats
from fairopt.solving.floats import require
from fairopt.solving.policy import Found, find


@pytest.mark.parametrize(
    ("orders", "notion", "options", "says"),
    [
        (6, "drfh", {}, "the largest is 1,000,000 times the smallest"),  # weights, by construction
        (0, "drfh", {}, "ratios above 1e12"),  # nothing in the weights explains it
        (13, "drfh", {}, "ratios above 1e12"),
        (6, "proportional", {"alpha": 4}, "by a factor above 1,000"),  # 1e12 is 1,000^4
    ],
)
def test_a_refusal_blames_what_is_far_apart(orders: int, notion: str, options: dict[str, Any], says: str) -> None:
    """Every engine that can was tried, and the best answer misses the tolerance."""
    instance = fo.Instance(np.ones((30, 2)), np.ones((40, 2)), weights=np.logspace(0, orders, 40))
    program = fo.formulate(instance, notion, **options)
    missed = Certificate(0.0, 0.0, 1e-3)
    with pytest.raises(CertificateError, match=says) as refused:
        require(missed, program, candidates(program, None), 1e-8)
    assert str(refused.value).count("exact=True") <= 1


@pytest.mark.parametrize("has_time", [True, False])
def test_an_answer_that_time_left_unfinished_is_no_answer(has_time: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of what everybody could have: with time left it fails its check, and without it the limit is named."""
    ruled = fo.Instance([[9]], [[1], [1]], users=["a", "b"], servers=["s"], rules=["x[a] >= 2 * x[b]"])

    def half(*given: Any) -> Found:
        found = find(*given)
        x = found.solution.x / 2
        monkeypatch.setattr("fairopt.solvers.backend.Deadline.left", float("inf") if has_time else 0.0)
        return replace(found, solution=Solution(x), certificate=certify(found.program, Solution(x)))

    monkeypatch.setattr(floats, "find", half)
    monkeypatch.setattr("fairopt.solving.small_fractions.in_small_fractions", lambda found, *_: found)
    with pytest.raises(CertificateError if has_time else NoSolution, match="fails its check" if has_time else "time limit of 60 s"):
        fo.solve(ruled, "proportional", time_limit=60)
