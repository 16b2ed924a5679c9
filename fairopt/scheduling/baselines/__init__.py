"""Baselines: the approximations that papers compare with, one a file, asked for as schedules are: ``fo.schedule(instance, "drfh:pop")``.

`BASELINES` maps each identifier to its class. A baseline answers in fractions of tasks and claims no optimum; its class says what is proved
of it (``guarantee``). To add one of your own::

    fo.BASELINES["mine"] = Mine

======================  =====================================================================================
``baseline``            `Baseline`, what each of them is, and `Case`, what it is asked about
``approximating``       instance, notion and baseline -> `fairopt.Allocation`: refusals, the check of all limits
``parts``               parts of a program, solved exactly
``level_programs``      linear programs over levels
``bins``                bins of levels, filled one after another or in one program
``filling_pairs``       water-filling of pairs of users and servers
``rounding``            whole tasks from fractions
``pop``                 users dealt at random into parts
``geometric_binning``   bins that end at T, ratio T, ratio^2 T, ...
``equal_binning``       bins to each of which as many users belong
``water_filling``       a single pass, or to its fixed point
``partial_allocation``  parts of proportional fairness that make lies useless
``swan``                bounds on levels that rise by a ratio
``pooled``              the notion on the pooled cluster, rounded greedily
``pinning``             small demands on their first server, the others exactly
======================  =====================================================================================
"""

from __future__ import annotations

from typing import Any

from fairopt.registry import Registry
from fairopt.scheduling.baselines.baseline import Baseline, Case
from fairopt.scheduling.baselines.equal_binning import EqualBinning
from fairopt.scheduling.baselines.geometric_binning import GeometricBinning
from fairopt.scheduling.baselines.partial_allocation import PartialAllocation
from fairopt.scheduling.baselines.pinning import Pinning
from fairopt.scheduling.baselines.pooled import Pooled
from fairopt.scheduling.baselines.pop import POP
from fairopt.scheduling.baselines.swan import SWAN
from fairopt.scheduling.baselines.water_filling import WaterFilling

__all__ = ["BASELINES", "Baseline", "Case", "baseline_of"]

BASELINES: Registry[type[Baseline]] = Registry(
    "baseline",
    "",
    {baseline.name: baseline for baseline in (POP, GeometricBinning, EqualBinning, WaterFilling, PartialAllocation, SWAN, Pooled, Pinning)},
    lambda entry: (
        "" if isinstance(entry, type) and issubclass(entry, Baseline) else "it must be a subclass of fairopt.scheduling.baselines.Baseline"
    ),
)


def baseline_of(entry: Any, options: dict[str, Any]) -> tuple[Baseline | None, dict[str, Any]]:
    """Return the baseline that a placement names, and the options that are not its own; None if it names none.

    A seed is always taken: a study gives one to every row, and a baseline without chance needs none.

    >>> baseline_of("pop", {"parts": 4, "only": "gpu"})
    (POP(parts=4, seed=0, split=0.0), {'only': 'gpu'})
    >>> baseline_of("best-fit", {"metric": "l2"})
    (None, {'metric': 'l2'})
    """
    if isinstance(entry, str) and dict.__contains__(BASELINES, entry):
        entry = BASELINES[entry]
    if isinstance(entry, Baseline):
        return entry, options
    if not (isinstance(entry, type) and issubclass(entry, Baseline)):
        return None, options
    known = entry.option_names()
    own = {word: value for word, value in options.items() if word in known}
    return entry(**own), {word: value for word, value in options.items() if word not in known}
