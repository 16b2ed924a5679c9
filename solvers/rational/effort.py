"""How long a program takes in fractions, before it is solved: what is out of reach is refused.

Most of the time goes into one system of equations a level, with as many equations as there are users and full limits. Dixon's lifting takes
time in proportion to the cube of their number, and to the digits of their coefficients. Limits of a single pair do not count: each takes
one division.
"""

from __future__ import annotations

import numpy as np

from fairopt.program.exact import ExactProgram
from fairopt.solvers.rational.settings import SETTINGS

__all__ = ["seconds_of_a_level"]


def seconds_of_a_level(program: ExactProgram) -> float:
    """Return about how many seconds a level takes, on one core.

    >>> import fairopt as fo
    >>> notion, instance = fo.NOTIONS["drf"](), fo.Instance([[9, 18]], [[1, 4], [3, 1]])
    >>> program = notion.in_fractions(instance.exact, notion.formulate(instance, sharing="rdm", integral=False))
    >>> seconds_of_a_level(program) < 1e-3
    True
    """
    if program.program.is_separate:
        equations = max((program.bounds.size + len(program.program.users)) / max(1, np.unique(program.program.pair_servers).size), 1)
    else:
        shared = np.count_nonzero(np.diff(program.program.limits.matrix.indptr) > 1)
        equations = int(shared) + program.program.members.size
    step = max(1, program.data.size // SETTINGS.sample)
    some = program.data[::step].tolist()
    digits = sum(max(len(str(value.p)), len(str(value.q))) for value in some) / max(1, len(some))
    return float(SETTINGS.seconds_of_a_term * equations**3 * digits)
