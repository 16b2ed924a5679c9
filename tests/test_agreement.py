"""A fixed sample of tests/agreement.py: every notion, every engine that can."""

from __future__ import annotations

import pytest
from agreement import compare

# At alpha = 10 the marginal worths of this instance lie 17 orders of magnitude apart: "cvxpy" leaves three users 9 % below what
# "interior-point" finds, which weighs nothing in the goal. The certificate sees it, and refuses the answer.
SPREAD = pytest.param(10, marks=pytest.mark.xfail(strict=True, reason="cvxpy does not finish users of little worth at alpha = 10"))


@pytest.mark.parametrize("seed", [*range(8), SPREAD])
def test_engines_agree_and_certify(seed: int) -> None:
    """No failure; shares equal to 1e-7; residuals below 1e-8."""
    for key, worst in compare([seed]).items():
        assert not worst.failures, (key, worst.failures)
        assert worst.residual <= 1e-8, key
        assert worst.difference <= 1e-7, key
