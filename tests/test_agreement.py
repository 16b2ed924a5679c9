"""A fixed sample of tests/agreement.py: every notion, every engine that can."""

from __future__ import annotations

import pytest
from agreement import compare

# At alpha = 10 the marginal worths of this instance lie 17 orders of magnitude apart, so that an error of three users weighs nothing in the
# certificate's sum: "cvxpy" returns, certified, an allocation that gives each of them 9 % less than "interior-point" does.
BLIND = pytest.param(10, marks=pytest.mark.xfail(strict=True, reason="the certificate of alpha = 10 does not see users of little worth"))


@pytest.mark.parametrize("seed", [*range(8), BLIND])
def test_engines_agree_and_certify(seed: int) -> None:
    """No failure; shares equal to 1e-7; residuals below 1e-8."""
    for key, worst in compare([seed]).items():
        assert not worst.failures, (key, worst.failures)
        assert worst.residual <= 1e-8, key
        assert worst.difference <= 1e-7, key
