"""Finish-time ratios of the jobs of a simulation, and their summary (`fairopt.simulation.finish_times` defines them)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from fairopt.analysis.finish_ratios import summed_up
from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance
from fairopt.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ratios_by_user", "ratios_of", "summary_of_ratios"]

_KEPT: list[tuple[Trace, Instance, FloatArray]] = []


def ratios_of(trace: Trace, cluster: Instance, finished: FloatArray) -> FloatArray:
    """Return (end - submission) / (the same alone) of each job, (jobs,); 1 where both are 0; nan without an end."""
    alone = _ended_alone(trace, cluster) - trace.submit
    took = finished - trace.submit
    return np.asarray(np.where((took == 0) & (alone == 0), 1.0, np.divide(took, alone, out=np.full(took.size, np.nan), where=alone > 0)))


def _ended_alone(trace: Trace, cluster: Instance) -> FloatArray:
    """Return when each job would have ended alone. The last answer is kept, for all tables and all schedulers of a trace need the same."""
    from fairopt.simulation.finish_times import ended_alone
    from fairopt.simulation.streams import streams_of

    for of_trace, of_cluster, known in _KEPT:
        if of_trace is trace and of_cluster is cluster:
            return known
    found = ended_alone(streams_of(trace, cluster))
    _KEPT[:] = [(trace, cluster, found)]
    return found


def ratios_by_user(trace: Trace, users: Sequence[str], ratios: FloatArray) -> list[FloatArray]:
    """Return the ratios of the jobs of each user."""
    position = {name: n for n, name in enumerate(users)}
    owner = np.array([position[name] for name in trace.users], np.int64)[trace.user]
    ends = np.cumsum(np.bincount(owner, minlength=len(users)))
    return np.split(ratios[np.argsort(owner, kind="stable")], ends[:-1])


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
    if by == "all":
        return pd.DataFrame(summed_up([ratios]), index=pd.Index(["all"], name="jobs of"))
    return pd.DataFrame(summed_up(ratios_by_user(trace, users, ratios)), index=pd.Index(users, name="user"))
