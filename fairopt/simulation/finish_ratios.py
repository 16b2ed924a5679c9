"""Finish-time ratios of the jobs of a simulation, and their summary (`fairopt.simulation.finish_times` defines them)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance
from fairopt.instance.tolerances import CERTIFIED
from fairopt.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ratios_of", "summary_of_ratios"]


def ratios_of(trace: Trace, cluster: Instance, finished: FloatArray) -> FloatArray:
    """Return (end - submission) / (the same alone) of each job, (jobs,); 1 where both are 0; nan without an end."""
    from fairopt.simulation.finish_times import ended_alone
    from fairopt.simulation.streams import streams_of

    alone = ended_alone(streams_of(trace, cluster)) - trace.submit
    took = finished - trace.submit
    return np.asarray(np.where((took == 0) & (alone == 0), 1.0, np.divide(took, alone, out=np.full(took.size, np.nan), where=alone > 0)))


def summary_of_ratios(trace: Trace, users: tuple[str, ...], ratios: FloatArray, by: Literal["user", "all"]) -> pd.DataFrame:
    """Return jobs that have a ratio, its largest, median and 90th percentile, and how many exceed 1, for each user or for all jobs.

    Raises
    ------
    Unsupported
        ``by`` is neither "user" nor "all".
    """
    import pandas as pd

    if by not in ("user", "all"):
        raise Unsupported(f'finish-time ratios are summed up by "user" or "all", not by "{by}"')
    owner = np.array(trace.users, object)[trace.user]
    groups = {"all": ratios} if by == "all" else {user: ratios[owner == user] for user in users}
    rows = []
    for each in groups.values():
        there = each[np.isfinite(each)]
        largest, median, p90 = (float(np.quantile(there, q)) if there.size else np.nan for q in (1.0, 0.5, 0.9))
        above = int((there > 1 + CERTIFIED).sum())
        rows.append({"jobs": int(there.size), "largest": largest, "median": median, "p90": p90, "above_1": above})
    return pd.DataFrame(rows, index=pd.Index(list(groups), name="user" if by == "user" else "jobs of"))
