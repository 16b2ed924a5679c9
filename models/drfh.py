"""Dominant resource fairness in heterogeneous servers (DRFH).

The *global* dominant share of one task of user n compares its demand with the capacity of the cluster:

    w[n] = max_r d[n,r] / sum_i counts[i] c[i,r].

DRFH is the leximin of s[n] = w[n] x[n] / phi[n] over all allocations (Wang, Li and Liang 2014, problem (6); for limited tasks and weights
section V-A). With placement constraints it is the C-DRFH of Khamse-Ashari et al. (2017). With weights per resource,
w[n] = max_r d[n,r] / (phi[n,r] sum_i counts[i] c[i,r]).

``formulation="equalize"`` is the paper's linear program (7), max g subject to sum_i g[n,i] = g for all n: a single LP. It has the same
optimum as the leximin if all demands are positive, tasks are unlimited and there are no placement constraints. Otherwise it stops all users
at the first bottleneck, and its optimum need not be Pareto optimal. That of the leximin always is.

>>> import fairopt as fo
>>> instance = fo.Instance([[2, 12], [12, 2]], [[.2, 1], [1, .2]])
>>> allocation = fo.solve(instance, "drfh")
>>> allocation.tasks_per_user.round(9), allocation.shares.round(4)
(array([10., 10.]), array([0.7143, 0.7143]))
>>> fo.solve(instance, "drfh", formulation="equalize").tasks_per_user.round(9)
array([10., 10.])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance
from fairopt.models.counting import dominant_part
from fairopt.models.notion import Condition, Property
from fairopt.models.share_notion import ShareNotion, dominant_share, share_of_work
from fairopt.program import Equalize, Goal, Leximin

__all__ = ["DRFH"]

_PAPER = "Wang, Li and Liang (2014)"


@dataclass(frozen=True)
class DRFH(ShareNotion):
    """DRFH: leximin of the global dominant shares max_r d[n,r] / C[r] * x[n] / phi[n], C the capacity of the cluster.

    Parameters
    ----------
    formulation : {"leximin", "equalize"}
        "equalize" is the paper's single LP. It has the same optimum if there are no zero demands, placement constraints or limits on
        tasks.
    """

    formulation: Literal["leximin", "equalize"] = "leximin"

    name = "drfh"
    title = "Dominant resource fairness, heterogeneous servers"
    source = "Wang, Li and Liang (2014), problem (6)"
    references = ("WangLiLiang2014",)
    symmetric = True
    by_server = True
    satisfies: ClassVar = {
        Property.ENVY_FREENESS: f"{_PAPER}, proposition 1",
        Property.PARETO: f"{_PAPER}, proposition 2",
        Property.STRATEGY_PROOFNESS: f"{_PAPER}, proposition 3",
        Property.SINGLE_RESOURCE_FAIRNESS: f"{_PAPER}, proposition 5",
        Property.BOTTLENECK_FAIRNESS: f"{_PAPER}, proposition 6",
        Property.POPULATION_MONOTONICITY: f"{_PAPER}, proposition 7",
    }
    conditions = frozenset({Condition.RESOURCES, Condition.EVERYWHERE, Condition.POSITIVE, Condition.ENDLESS})
    weights_per_resource = True
    share_is_part = True
    default_queue_share: ClassVar = "dominant"
    counts_resources: ClassVar = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.formulation not in ("leximin", "equalize"):
            raise Unsupported(f'drfh has no formulation "{self.formulation}"; it has "leximin" and "equalize"')

    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return max_r m[r] d[n,r] / sum_i counts[i] c[i,r]."""
        if instance.differs_by_server:
            return share_of_work(instance, self.counting(instance))
        return dominant_share(instance, instance.total_capacity, self.counting(instance))

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return the dominant share of the cluster as text."""
        return dominant_part(instance, user, "the whole cluster", self.counting(instance))

    def goal(self, weights: FloatArray) -> Goal:
        """Return the leximin, or the goal of one equal level."""
        return Equalize(weights) if self.formulation == "equalize" else Leximin(weights)
