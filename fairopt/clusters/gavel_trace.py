"""Jobs of Gavel over time, for a simulation on the cluster that `fairopt.import_gavel` makes of its throughputs.

A job is one task of as many accelerators as its scale, and its work is its number of steps. The user of a job is its type and scale, as
`import_gavel` with ``sharing="rdm"`` names them; the speed of that user on a kind of accelerator is its throughput there. So a job that
stays on one kind runs for total_steps / thr seconds.
"""

from __future__ import annotations

import os

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.table_rows import TableRows
from fairopt.errors import InvalidInstance
from fairopt.tables import Column, Schema
from fairopt.trace import Trace
from fairopt.wording import did_you_mean, joined, named, plural

__all__ = ["trace_gavel"]

JOBS = Schema(
    Column("job_type"),
    Column("scale_factor", "number", aliases=("scale",)),
    Column("total_steps", "number"),
    Column("arrival_s", "number", aliases=("arrival_time",)),
    Column("trace", default=""),
)


def trace_gavel(jobs: str | os.PathLike[str], trace: str | None = None, *, lenient: bool = False) -> Trace:
    """Return jobs of Gavel as a trace, for `fairopt.simulate`.

    Parameters
    ----------
    jobs : path
        A table with the columns job_type, scale_factor (also: scale), total_steps, arrival_s (also: arrival_time), and, if it holds several
        traces, trace.
    trace : str, optional
        Which of them; it may be left out if there is one.
    lenient : bool
        Leave bad rows out and count them, instead of refusing the table.

    Raises
    ------
    InvalidInstance
        With the file, line and column: what is wrong, and what to do.

    Examples
    --------
    Two jobs on one V100: the first is there alone for 10 seconds, does 80 of its 240 steps, and shares the rest.

    >>> import tempfile, fairopt as fo
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table, jobs = Path(folder, "throughputs.csv"), Path(folder, "jobs.csv")
    ...     _ = table.write_text("job_type,scale,worker,thr\\nlstm,1,v100,8\\ntranslator,1,v100,2\\n")
    ...     _ = jobs.write_text("job_type,scale_factor,total_steps,arrival_s\\nlstm,1,240,0\\ntranslator,1,20,10\\n")
    ...     cluster = fo.import_gavel(table, {"v100": 1}, sharing="rdm").instance
    ...     trace = trace_gavel(jobs)
    >>> fo.simulate(trace, cluster, "tsf").finished
    array([40., 30.])
    """
    account = Account(lenient)
    rows = TableRows(jobs, JOBS, "job", account)
    types, of_trace = rows.filled("job_type", "job needs a type"), rows.text("trace")
    scale, steps, arrival = rows.numbers("scale_factor"), rows.numbers("total_steps"), rows.numbers("arrival_s")
    rows.check((scale >= 1) & (scale == np.round(scale)), "the scale is not a whole number of accelerators >= 1", "scale_factor")
    there = list(dict.fromkeys(of_trace))
    if trace is not None and trace not in there:
        hint = did_you_mean(trace, there) or f"; there are {joined([named(name) for name in there], 5)}"
        raise InvalidInstance(f"{jobs}: there is no trace {named(trace)}{hint}")
    if trace is None and len(there) > 1:
        raise InvalidInstance(f"{jobs}: the table holds {plural(len(there), 'trace')}; choose one, such as trace={there[0]!r}")
    kept = np.flatnonzero(rows.good() & np.array([name == (trace or there[0]) for name in of_trace], bool))
    if not kept.size:
        raise InvalidInstance(f"{jobs}: no job is left")
    kept = kept[np.argsort(arrival[kept], kind="stable")]
    return Trace(
        [f"{types[row]} x {int(scale[row])}" for row in kept.tolist()],
        arrival[kept],
        np.ones(kept.size),
        scale[kept][:, None],
        steps[kept],
        resources=["gpu"],
        left_out=[f"{each.where}: {each.why}" for each in account.left_out],
    )
