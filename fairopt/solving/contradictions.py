"""What an error says where no allocation obeys the rules: an irreducible set of rules, limits, capacities and tasks."""

from __future__ import annotations

import numpy as np

from fairopt.errors import CertificateError, NoSolution
from fairopt.program import LimitKind, Program
from fairopt.program.rule_limits import rule_of
from fairopt.solvers import contradiction
from fairopt.solvers.backend import Deadline
from fairopt.wording import figure, joined

__all__ = ["with_contradiction"]


def with_contradiction(program: Program, error: NoSolution | CertificateError, deadline: Deadline) -> NoSolution | CertificateError:
    """Return the error of a program in which nothing is feasible, with what contradicts what; any other error as it is.

    Where rules lack little to be met, an engine may give an answer that breaks them, or give up, and say nothing of it. So under rules
    nothing is feasible, too, where prices prove it.
    """
    said = isinstance(error, NoSolution) and error.known.get("infeasible")
    if not said and (deadline.left == 0.0 or not (program.limits.kinds == LimitKind.RULE).any()):
        return error
    try:
        names = contradiction(program, deadline, proved=not said)
    except NoSolution:
        return NoSolution("no allocation obeys the rules; which of them contradict each other was not found in time", {}) if said else error
    if not names and not said:
        return error
    if not names and program.integral:
        rules = dict.fromkeys(rule_of(program.limit_name(int(k))) for k in np.flatnonzero(program.limits.kinds == LimitKind.RULE))
        listed = joined([f'"{rule}"' for rule in rules], len(rules))
        one = len(rules) == 1
        return NoSolution(f"no whole tasks obey the {'rule' if one else 'rules'} {listed}; divisible tasks do, without integral", {})
    if not names:
        return NoSolution("no allocation was found that obeys the rules; the rules may leave no room but rounding", {})
    bounds = {program.limit_name(k): program.limits.bounds[k] for k in np.flatnonzero(program.limits.kinds != LimitKind.RULE).tolist()}
    named = [f"{name} (at most {figure(bounds[name], 6)})" if name in bounds else f'the rule "{name}"' for name in names]
    cannot = "cannot be met" if len(named) == 1 else "cannot be met together; without any one of them the others can"
    return NoSolution(f"no allocation obeys the rules: {joined(named, len(named))} {cannot}", {"contradiction": names})
