"""Single-resource fairness: if there is only one resource, it is shared max-min fairly.

The allocation must be the leximin of d[n] x[n] / phi[n] (Wang, Li and Liang 2014, section III-C; Khamse-Ashari et al. 2017, section II-A).
"""

from __future__ import annotations

from fairopt.analysis.properties.bottleneck_fairness import judge_resource
from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.verdict import Verdict, does_not_apply

__all__ = ["NAME", "check"]

NAME = "single-resource-fairness"


def check(case: Case) -> Verdict:
    """Judge the resource, if there is only one."""
    instance = case.instance
    if instance.rates_per_server is not None:
        return does_not_apply(NAME, "Does not apply: the instance brings rates, and what is shared is time.")
    if instance.n_resources > 1:
        return does_not_apply(NAME, f"Does not apply: there are {instance.n_resources} resources.")
    return judge_resource(case, NAME, 0, "")
