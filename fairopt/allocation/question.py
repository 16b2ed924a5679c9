"""The arguments that led to an allocation, with which it can be computed again for another instance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from fairopt.instance.tolerances import CERTIFIED

if TYPE_CHECKING:
    from fairopt.models import Notion
    from fairopt.solvers import Chooser, Placement

__all__ = ["Approximation", "Greedy", "Optimum"]


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The arguments of `fairopt.solve` that led to an allocation, for `fairopt.analysis.rerun`."""

    notion: Notion
    solver: str | None = None
    integral: bool = False
    tolerance: float = CERTIFIED
    exact: bool = False
    digits: int | None = None
    time_limit: float | None = None
    """Seconds; what is computed again has a limit of its own."""
    solver_options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Greedy:
    """The arguments of `fairopt.schedule` that led to an allocation, for `fairopt.analysis.rerun`."""

    notion: Notion
    placement: str | Placement | Chooser
    ties: Literal["index", "largest-demand", "random"]
    seed: int
    stop: Literal["exhausted", "first-block"]
    exact: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Approximation:
    """The arguments of `fairopt.schedule` that led to the allocation of a baseline, for `fairopt.analysis.rerun`.

    ``baseline`` is one of ``fairopt.BASELINES`` with its options; this room is below theirs.
    """

    notion: Notion
    baseline: Any
    integral: bool = False
