"""Finish-time ratios, rho of `fairopt.models.finish_time`: of the users of an allocation, and summed up.

>>> import fairopt as fo
>>> from fairopt.models import FinishTime, Sharing
>>> cores = fo.Instance([[8]], [[1], [1]], users=["new", "late"])
>>> half = fo.solve(cores, "drfh")
>>> ratios = ratios_of_users(half, FinishTime(left=14400, elapsed=[0, 3600]))  # both finish after an hour; late has waited for one
>>> ratios.tolist(), columns_of_ratios([ratios])["finish_ratio_above_1"]
([1.0, 2.0], [1])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.owners import owners_of
from fairopt.errors import FairoptError
from fairopt.instance import FloatArray, Instance
from fairopt.instance.tolerances import CERTIFIED
from fairopt.models import FinishTime, Sharing

__all__ = ["columns_of_ratios", "ratios_of_owners", "ratios_of_users", "summed_up"]

_AT = {"largest": 1.0, "median": 0.5, "p90": 0.9}  # quantiles


def ratios_of_users(allocation: Allocation, notion: FinishTime) -> FloatArray | None:
    """Return the finish-time ratio of each user, (users,), by the work and times of a notion; None where it has no meaning (queues).

    inf: the user holds nothing, so that it never finishes; nan: it could do nothing alone.
    """
    try:
        notion.check(allocation.instance, cast(Sharing, allocation.sharing))
    except FairoptError:
        return None
    return notion.ratios(allocation.instance, allocation.tasks)


def columns_of_ratios(groups: Sequence[FloatArray]) -> dict[str, list[Any]]:
    """Return the columns ``finish_ratio_largest``, ``_median``, ``_p90`` (nan: of no job) and ``_above_1`` (jobs) of groups of ratios."""
    return {f"finish_ratio_{word}": column for word, column in summed_up(groups).items() if word != "jobs"}


def summed_up(groups: Sequence[FloatArray]) -> dict[str, list[Any]]:
    """Return of each group of ratios how many there are, their largest, median and 90th percentile, and how many exceed 1."""
    there = [ratios[~np.isnan(ratios)] for ratios in groups]
    quantiles = [_quantiles(each) if each.size else [np.nan] * len(_AT) for each in there]
    return {
        "jobs": [each.size for each in there],
        **{word: [each[k] for each in quantiles] for k, word in enumerate(_AT)},
        "above_1": [int((each > 1 + CERTIFIED).sum()) for each in there],
    }


def ratios_of_owners(instance: Instance, ratios: FloatArray) -> dict[str, float]:
    """Return the largest finish-time ratio among the users of each owner; nan: none of them could do anything alone."""
    owners = np.array(owners_of(instance), dtype=object)
    return {name: summed_up([ratios[owners == name]])["largest"][0] for name in dict.fromkeys(owners.tolist())}


def _quantiles(ratios: FloatArray) -> list[float]:
    """Return quantiles of numbers; inf where it is between a number and inf."""
    with np.errstate(invalid="ignore"):
        found = np.quantile(ratios, list(_AT.values()))
    return np.where(np.isnan(found), np.inf, found).tolist()  # type: ignore[no-any-return]
