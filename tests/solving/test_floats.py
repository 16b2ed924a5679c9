"""What a refusal says where double precision does not hold an answer: why, in numbers of the data, and what to ask instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import Certificate
from fairopt.errors import CertificateError
from fairopt.solvers import candidates
from fairopt.solving.floats import require


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
