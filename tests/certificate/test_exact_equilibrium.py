"""The proof of an equilibrium in fractions refuses forged answers, and agrees with the theorem by brute force."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from reference.exact import is_equilibrium

import fairopt as fo
from fairopt.certificate.exact import prove
from fairopt.errors import CertificateError
from fairopt.instance.fractions import rational, rationals
from fairopt.program import Solution
from fairopt.program.exact import ExactProgram

Instance: Any = fo.Instance  # array types do not know Fractions

FIGURE_2 = Instance([[9, 12, 100], [12, 12, 0]], [[1.5, 1, 10], [1, 2, 10], [0.5, 1, 0], [1, 0.5, 0]])


def program_of(instance: fo.Instance, sharing: str = "rdm") -> ExactProgram:
    """PS-DSF in fractions."""
    notion = fo.NOTIONS["psdsf"]()
    return notion.in_fractions(instance.exact, notion.formulate(instance, sharing=sharing, integral=False))  # type: ignore[arg-type]


def test_figure_2() -> None:
    """The paper's tasks pass, and nothing else does: a hair more, less, or elsewhere."""
    program = program_of(FIGURE_2)
    pairs = list(zip(program.program.pair_users.tolist(), program.program.pair_servers.tolist(), strict=True))
    tasks: Any = [{(0, 0): Fraction(18, 5), (1, 0): Fraction(18, 5), (2, 1): 8, (3, 1): 8}.get(pair, 0) for pair in pairs]
    x = rationals(tasks)
    prove(program, Solution(x))
    hair = rational(Fraction(1, 10**40))
    for p, sign in itertools.product(range(len(pairs)), (1, -1)):
        forged = x.copy()
        forged[p] = forged[p] + sign * hair
        with pytest.raises(CertificateError):
            prove(program, Solution(forged))
    moved = x.copy()
    moved[pairs.index((2, 0))], moved[pairs.index((2, 1))] = rational(1), rational(7)
    with pytest.raises(CertificateError):
        prove(program, Solution(moved))


def test_as_by_definition() -> None:
    """Of all tasks on a grid, exactly those pass that the theorem names."""
    passed = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        eligibility = [[True, True], [True, False]]
        instance = Instance(
            rng.integers(1, 4, (2, 2)), [[1, 1], [1, 0]], tasks=[np.inf, 1 if seed % 2 else np.inf], eligibility=eligibility
        )
        program = program_of(instance)
        for halves in itertools.product(range(7), repeat=3):
            values = [Fraction(value, 2) for value in halves]
            x = [[values[0], values[1]], [values[2], Fraction(0)]]
            pairs = zip(program.program.pair_users, program.program.pair_servers, strict=True)
            try:
                prove(program, Solution(rationals([x[n][i] for n, i in pairs])))
                proved = True
            except CertificateError:
                proved = False
            assert proved == is_equilibrium(instance, x)
            passed += proved
    assert passed > 2
