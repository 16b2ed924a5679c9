"""Rules as rows of a program: lower bounds and equations are rows <= of the other sign, and two of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.rule_rows import rule_rows
from fairopt.instance.rules import Sense
from fairopt.program.limits import LimitKind, Limits

if TYPE_CHECKING:
    from fairopt.program.program import Program

__all__ = ["SIGNS", "name_of", "obeying", "rule_limits", "rule_of"]

_FROM_BELOW = " (from below)"
SIGNS: dict[Sense, tuple[int, ...]] = {"<=": (1,), "==": (1, -1), ">=": (-1,)}


def rule_limits(rules: Sequence[tuple[str, FloatArray, Sense, float]], n_pairs: int, first: int) -> tuple[Limits, tuple[str, ...]]:
    """Return rules as rows, and their names; ``first`` is the position of the first name."""
    rows = [
        (name_of(name, sense, sign), np.asarray(each, np.float64) * sign, float(bound) * sign)
        for name, each, sense, bound in rules
        for sign in SIGNS[sense]
    ]
    if not rows:
        return Limits.none(n_pairs), ()
    matrix = sp.csr_array(np.array([values for _, values, _ in rows]))
    matrix.eliminate_zeros()
    keys = np.full((len(rows), 2), -1, np.int64)
    keys[:, 0] = first + np.arange(len(rows))
    kinds = np.full(len(rows), int(LimitKind.RULE), np.int64)
    return Limits(matrix, np.array([bound for _, _, bound in rows]) + 0.0, kinds, keys), tuple(name for name, _, _ in rows)


def name_of(rule: str, sense: Sense, sign: int) -> str:
    """Return the name of a row of a rule: its text; of the second row of an equation with a word more."""
    return f"{rule}{_FROM_BELOW}" if sense == "==" and sign < 0 else rule


def rule_of(name: str) -> str:
    """Return the rule that a row is named after."""
    return name.removesuffix(_FROM_BELOW)


def obeying(program: Program, instance: Instance, row: IntArray | None = None) -> Program:
    """Return the program with the rules of an instance.

    Parameters
    ----------
    row : int array (servers,), optional
        Of each server of the program the row of the instance that it belongs to; default: they are the same.
    """
    if not instance.rules:
        return program
    users, servers = program.pair_users, program.pair_servers if row is None else row[program.pair_servers]
    rows = [(each.rule.text, each.coefficients(instance, users, servers), each.rule) for each in rule_rows(instance)]
    return program.with_rows([(text, values, rule.sense, float(rule.bound)) for text, values, rule in rows])
