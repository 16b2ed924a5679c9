"""The certificate in fractions: an answer is proved, or refused with the reason. There are no residuals, as there is no rounding.

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
>>> fo.solve(instance, "drf", exact=True).certificate.exact
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairopt.certificate.exact_equilibrium import prove_equilibrium
from fairopt.certificate.exact_levels import prove_levels, prove_separately, prove_total
from fairopt.certificate.exact_trees import prove_filling, prove_nested
from fairopt.program import Equalize, Equilibrium, Leximin, Nested, Separate, Solution, Total, TreeFilling
from fairopt.program.exact import ExactProgram

__all__ = ["PROOFS", "prove"]

PROOFS: dict[type[Any], Callable[[ExactProgram, Solution], None]] = {
    Leximin: prove_levels,
    Equalize: prove_levels,
    Total: prove_total,
    Separate: prove_separately,
    Equilibrium: prove_equilibrium,
    TreeFilling: prove_filling,
    Nested: prove_nested,
}
"""Of each kind of goal, what proves an answer."""


def prove(program: ExactProgram, solution: Solution) -> None:
    """Prove an answer in rationals; its goal is one of `PROOFS`.

    Raises
    ------
    CertificateError
        With the reason.
    """
    PROOFS[type(program.goal)](program, solution)
