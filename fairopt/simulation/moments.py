"""How far the running tasks are from the exact allocation of that moment: `fairopt.regret` at some times of a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.analysis.regrets import regret
from fairopt.analysis.rerun import given
from fairopt.errors import CertificateError, NoSolution
from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.simulation.fluid import instance_at
from fairopt.simulation.streams import Streams
from fairopt.solving import notion_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["regret_over_time"]


def regret_over_time(
    streams: Streams, criterion: Any, times: FloatArray, start: FloatArray, end: FloatArray, server: IntArray, takes_part: BoolArray
) -> pd.DataFrame:
    """Return one row per time: the numbers of `fairopt.regret` for the notion, against the optimum of divisible tasks.

    At each time, a stream has the tasks that run or wait. Its owner's weight is divided equally among the owner's streams. The optimum may
    stop running tasks, and the schedule may not. So the optimum is a bound that the schedule may not be able to reach.

    Raises
    ------
    Unsupported
        The criterion is not a notion that can be solved.
    """
    import pandas as pd

    notion = notion_of(criterion)
    trace, whole = streams.trace, streams.instance
    job = trace.job_of
    stream, counted = streams.stream[job], takes_part[job]
    row = np.repeat(np.arange(whole.n_servers), whole.counts.astype(int))[server]
    changed, counts = streams.counts_over_time()
    every = np.arange(whole.n_servers)
    lines: list[dict[str, float]] = []
    for time in times:
        here = counted & (trace.submit[job] <= time) & ~(end <= time)
        runs = here & (start <= time)
        limits = np.bincount(stream[here], minlength=streams.owner.size).astype(float)
        active = np.flatnonzero(limits)
        line: dict[str, float] = {"time_s": float(time)}
        if active.size:
            held = np.zeros((streams.owner.size, whole.n_servers))
            np.add.at(held, (stream[runs], row[runs]), 1.0)
            now = counts[np.searchsorted(changed, time, side="right") - 1]
            instance = instance_at(streams, active, limits[active], now, every, every)
            try:
                found = regret(given(instance, held[active], "rdm"), notion.restricted(streams.owner[active]))
            except (NoSolution, CertificateError):
                found = None
            for word in ("level", "leximin", "largest", "total", "goal", "condition"):
                value = None if found is None else getattr(found, word)
                if value is not None:
                    line[word] = float(value)
        lines.append(line)
    return pd.DataFrame(lines)
