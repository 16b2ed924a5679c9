"""stub"""
from __future__ import annotations
from dataclasses import dataclass
from fairopt.instance import FloatArray, Instance, safe_ratio
from fairopt.models.notion import ShareNotion
from fairopt.program import Equilibrium, Goal

__all__ = ["PSDSF"]


@dataclass(frozen=True, eq=False)
class PSDSF(ShareNotion):
    order: str = "sequential"
    seed: int = 0
    delay: int = 0
    name = "psdsf"
    title = "Per-server dominant-share fairness"
    source = "Khamse-Ashari, Lambadaris, Kesidis, Urgaonkar and Zhao (2017), definition 5"

    def share_per_task(self, instance: Instance) -> FloatArray:
        return safe_ratio(1.0, instance.rates)

    def goal(self, weights: FloatArray) -> Goal:
        return Equilibrium(weights, self.order, self.seed, self.delay)
