"""Throughputs of jobs on kinds of accelerators, in the table that Gavel publishes.

==============  ===================================================================================================
``job_type``    the job
``scale``       how many accelerators it is on at once
``worker``      their kind
``thr``         its throughput, such as steps per second; 0: it does not run there
==============  ===================================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.tables import Column, Rows, Schema
from fairopt.validation import FloatArray
from fairopt.wording import did_you_mean

__all__ = ["THROUGHPUTS", "throughputs_of", "workers_of"]

THROUGHPUTS = Schema(Column("job_type"), Column("worker"), Column("scale", "number"), Column("thr", "number"))


def workers_of(rows: Rows) -> list[str]:
    """Return the kinds of accelerators of a table, in the order of their first rows."""
    return list(dict.fromkeys(rows.text("worker")))


def throughputs_of(rows: Rows, kinds: Sequence[str]) -> dict[tuple[str, int], FloatArray]:
    """Return the throughput of each (job type, scale) on each of these kinds, (kinds,); nan where no row says it.

    Raises
    ------
    InvalidInstance
        No row is about one of the kinds, or rows are bad: with file and line.

    >>> from fairopt.tables.csv_files import parse
    >>> table = parse("t.csv", "job_type,scale,worker,thr\\nlstm,1,k80,4\\nlstm,1,v100,8\\nlstm,2,k80,6\\n", THROUGHPUTS)
    >>> throughputs_of(Rows(table), ["k80", "v100"])
    {('lstm', 1): array([4., 8.]), ('lstm', 2): array([ 6., nan])}
    """
    workers, scale, speed = rows.text("worker"), rows.numbers("scale"), rows.numbers("thr")
    types = rows.filled("job_type", "row needs a job type")
    rows.check((scale >= 1) & (scale == np.round(scale)), "the scale is not a whole number of accelerators >= 1", "scale")
    for kind in kinds:
        if kind not in workers:
            hint = did_you_mean(kind, set(workers)) or f"; the workers are {', '.join(sorted(set(workers)))}"
            raise InvalidInstance(f'{rows.table.file}: no row has the worker "{kind}"{hint}')

    column = {kind: j for j, kind in enumerate(kinds)}
    measured: dict[tuple[str, int], FloatArray] = {}
    for row in np.flatnonzero(rows.good()).tolist():
        if workers[row] not in column:
            continue
        found = measured.setdefault((types[row], int(scale[row])), np.full(len(kinds), np.nan))
        if np.isnan(found[column[workers[row]]]):
            found[column[workers[row]]] = speed[row]
        else:
            rows.wrong(row, f'{types[row]} x {scale[row]:g} on "{workers[row]}" has a row above already; remove one')
    rows.good()  # refuses or counts what the loop found
    return measured
