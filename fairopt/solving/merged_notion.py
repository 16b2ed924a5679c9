"""A notion on an instance whose identical rows are merged, with the notion's own data of the merged rows; in floats or in fractions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.instance import FloatArray, Instance
from fairopt.instance.aggregation import Merging, merge, unmerged
from fairopt.instance.exact_merging import merge_exactly, unmerged_exactly
from fairopt.instance.fractions import ExactArray
from fairopt.models import Notion

__all__ = ["MergedNotion", "with_utility"]


@dataclass(frozen=True, slots=True, eq=False)
class MergedNotion:
    """A notion and the instance of merged rows.

    Attributes
    ----------
    merging : Merging
    utility : array (users, servers) or (users, 1), optional
        Of the original rows, in fractions where these are asked for.
    notion, in_floats : Notion
        With the utility of the merged rows: as asked for, and in floats.
    """

    merging: Merging
    utility: FloatArray | ExactArray | None
    notion: Notion
    in_floats: Notion

    @classmethod
    def of(cls, instance: Instance, notion: Notion, alpha: float | None, *, exact: bool) -> MergedNotion:
        """Merge rows. ``alpha`` says how users of several weights are joined (`fairopt.instance.aggregation.merge`); None: no rows are."""
        if not exact:
            merging = unmerged(instance) if alpha is None else merge(instance, notion.utility, alpha)
            reduced = with_utility(notion, merging.restrict(notion.utility))
            return cls(merging, notion.utility, reduced, reduced)
        utility = notion.exact_utility
        merging = merge_exactly(instance, utility, by_weight=alpha == 1.0) if alpha in (0.0, 1.0) else unmerged_exactly(instance)
        rows = merging.restrict(utility)
        return cls(merging, utility, with_utility(notion, rows), with_utility(notion, None if rows is None else rows.astype(np.float64)))


def with_utility(notion: Notion, utility: FloatArray | None) -> Notion:
    """Return the notion with another utility, the notion itself where it has none."""
    return notion if utility is None else notion.changed(utility=utility)
