"""Jobs that run at different speeds on different accelerators, from a table of measured throughputs (Gavel).

**Throughputs**: ``job_type``, ``scale`` (accelerators that a job of this row is on at once), ``worker`` (their kind), and ``thr`` (steps
per second; 0: it does not run there). **Jobs**, optional: ``job_type``, ``scale_factor`` and ``priority_weight`` (left out: 1); without
them every (job type, scale) is one job of weight 1.

With R[m,j] the throughput of job m on s[m] accelerators of kind j, W[j] of which there are, X[m,j] the part of time that it is on them, and
w[m] its weight, Gavel allows X with

    sum_j X[m,j] <= 1      for each job,            sum_m s[m] X[m,j] <= W[j]      for each kind.

In an `Instance` that is: a user for each job, a server row for each kind with W[j] servers, and

    rates[m,j] = R[m,j] / s[m],      parallelism[m] = s[m],      x[m,j] = R[m,j] X[m,j],

so that tasks are *steps per second*, the time rows sum_m x[m,j] / (W[j] rates[m,j]) <= 1 are the second limits, and sum_j x[m,j] /
rates[m,j] <= s[m] are the first. A kind with fewer than s[m] accelerators is one where the job may not run.

With ``sharing="rdm"``, accelerators are a resource that is divided: a kind is one row with W[j] of them, a job demands s[m], has one task
and the speed R[m,j], and x[m,j] = X[m,j] is the part of time itself. The work of a job, sum_j R[m,j] X[m,j], is then in steps per second.
Both instances have the same optima; this one can also be scheduled, and divided beside other resources.

**Max-min** in Gavel (section 4.1) divides by what equal time gives, X'[m,j] = W[j] / sum_k W[k]:

    maximise  min over m of  (1 / w[m]) s[m] (sum_j R[m,j] X[m,j]) / (sum_j R[m,j] X'[m,j])
            = min over m of  x[m] / (w[m] sum_j W[j] rates[m,j]) sum_k W[k],

as s[m] cancels: the shares of ``"tsf"`` with weights w, times the number of accelerators. (TSF measures by what a user could run *without*
its limits.) TSF is their leximin, so that it is one of Gavel's optima, and of all the one in which nobody could have more. Proportional
fairness of the same jobs is ``"proportional"``.

Source: Narayanan, Santhanam, Kazhamiaka, Phanishayee and Zaharia, "Heterogeneity-aware cluster scheduling policies for deep learning
workloads", OSDI 2020; github.com/stanford-futuredata/gavel.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.gavel_json import is_json, read_throughputs
from fairopt.clusters.imported import Import
from fairopt.clusters.queue_tree import weighted
from fairopt.clusters.table_rows import TableRows
from fairopt.errors import InvalidInstance
from fairopt.formats.throughputs import THROUGHPUTS, throughputs_of
from fairopt.instance import FloatArray, Instance
from fairopt.tables import Column, Schema
from fairopt.wording import did_you_mean, plural

__all__ = ["import_gavel"]

JOBS = Schema(
    Column("job_type"),
    Column("scale_factor", "number", aliases=("scale",)),
    Column("priority_weight", "number", default=1.0, empty=1.0),
)


@keeps_question
def import_gavel(
    throughputs: str | os.PathLike[str],
    gpus: Mapping[str, int],
    jobs: str | os.PathLike[str] | None = None,
    *,
    weights: Mapping[str, float] | None = None,
    sharing: Literal["tdm", "rdm"] = "tdm",
    lenient: bool = False,
) -> Import:
    """Make an instance of jobs whose throughput on each kind of accelerator was measured.

    Parameters
    ----------
    throughputs : path
        A table, such as CSV, with the columns job_type, scale, worker, thr (steps per second), or the JSON of Gavel's repository
        (:mod:`fairopt.clusters.gavel_json`), without its pairs of jobs. Both also compressed by gzip.
    gpus : mapping
        How many accelerators there are of each kind, by the names in the column ``worker``; other rows of the table are not used.
    jobs : path, optional
        CSV: columns job_type, scale_factor (also: scale) and, where they are not all 1, priority_weight. The default is one job for each
        job type and scale in the table.
    weights : mapping, optional
        Weight by job type, instead of that of the table.
    sharing : {"tdm", "rdm"}
        Divide the time of accelerators, with rates and parallelism, or accelerators as a resource, with speeds.
    lenient : bool
        Leave bad rows out and count them, instead of refusing the tables.

    Returns
    -------
    Import
        Of "tdm", the instance brings rates, so that time is shared; tasks are steps per second, without limit. Of "rdm", a job is one
        task, and its work is in steps per second. ``owners`` are the job types.

    Raises
    ------
    InvalidInstance
        With the file, line and column: what is wrong, and what to do.

    Examples
    --------
    A translator gains most by the faster kind. With one card of each kind, both have half the time of each, and so steps of both.

    >>> import tempfile, fairopt as fo
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "throughputs.csv")
    ...     _ = table.write_text("job_type,scale,worker,thr\\nlstm,1,k80,4\\nlstm,1,v100,8\\ntranslator,1,k80,1\\ntranslator,1,v100,8\\n")
    ...     instance = import_gavel(table, {"k80": 1, "v100": 1}).instance
    ...     divided = import_gavel(table, {"k80": 1, "v100": 1}, sharing="rdm").instance
    >>> instance.rates_per_server, instance.parallelism
    (array([[4., 8.],
           [1., 8.]]), array([1., 1.]))
    >>> fo.solve(instance, "tsf").tasks_per_user.round(6), fo.solve(divided, "tsf").work.round(6)
    (array([6. , 4.5]), array([6. , 4.5]))
    """
    kinds, numbers = list(gpus), np.array([_whole(kind, number) for kind, number in gpus.items()], float)
    if not kinds:
        raise InvalidInstance('gpus names no kind of accelerator; give how many there are of each, such as {"v100": 8}')
    if sharing not in ("tdm", "rdm"):
        raise InvalidInstance(f'sharing is "{sharing}"; give "tdm", which divides time, or "rdm", which divides accelerators')
    account = Account(lenient)
    table = read_throughputs(throughputs, account) if is_json(throughputs) else throughputs
    measured = throughputs_of(TableRows(table, THROUGHPUTS, "row", account), kinds)
    names, asked, phi = _jobs(jobs, measured, account)
    if not asked:
        raise InvalidInstance(f"{jobs or throughputs}: no job is left, so nothing asks for accelerators")

    scales = np.array([size for _, size in asked], float)
    rates = np.nan_to_num(np.array([measured[job] for job in asked])) / scales[:, None]
    too_large = (scales[:, None] > numbers) & (rates > 0)
    if too_large.any():
        account.note(
            f"{plural(int(too_large.any(axis=1).sum()), 'job')} may not run on kinds with fewer accelerators than they use at once"
        )
    if (scales > 1).any():
        account.note("a job on several accelerators needs them at the same time, which is left to the scheduler's rounds: a relaxation")
    owners = tuple(name for name, _ in asked)
    given = weighted(weights or {}, {owner: (owner,) for owner in owners}, ())
    rates = np.where(too_large, 0.0, rates)
    divided: dict[str, Any] = (
        {
            "capacities": np.ones((len(kinds), 1)),
            "demands": np.ones((len(asked), 1)),
            "counts": numbers,
            "rates": rates,
            "parallelism": scales,
        }
        if sharing == "tdm"
        else {"capacities": numbers[:, None], "demands": scales[:, None], "speeds": rates * scales[:, None], "tasks": np.ones(len(asked))}
    )
    instance = Instance(
        **divided,
        weights=[given.get(owner, own) for owner, own in zip(owners, phi, strict=True)],
        owners=owners,
        users=names,
        servers=kinds,
        resources=["gpu"],
    )
    account.summary |= {"jobs": float(len(asked)), "accelerators": float(numbers.sum()), "owners": len(set(owners))}
    return Import(
        "gavel",
        instance,
        None,
        owners,
        np.zeros(len(asked)),
        units={"gpu": "accelerators"},
        summary=account.summary,
        left_out=tuple(account.left_out),
        notes=tuple(account.notes),
    )


def _whole(kind: str, number: object) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float | np.integer) or not 1 <= number < np.inf or number % 1:
        raise InvalidInstance(f'the number of "{kind}" is {number!r}; give a whole number >= 1')
    return float(number)


def _jobs(
    jobs: str | os.PathLike[str] | None, measured: Mapping[tuple[str, int], FloatArray], account: Account
) -> tuple[list[str], list[tuple[str, int]], list[float]]:
    """Return name, (job type, scale) and weight of each job."""
    if jobs is None:
        return [f"{name} x {size}" for name, size in measured], list(measured), [1.0] * len(measured)
    rows = TableRows(jobs, JOBS, "job", account)
    types = rows.text("job_type")
    scale = rows.numbers("scale_factor")
    meant = "" if "priority_weight" in rows else did_you_mean("priority_weight", rows.table.columns)
    if meant:  # without the column all weights are 1, which is hardly what was meant
        raise InvalidInstance(f'{jobs}: there is no column "priority_weight"{meant}; rename that column, or remove it for weights of 1')
    weight = rows.numbers("priority_weight")
    rows.check(weight > 0, "the weight is 0; it must be > 0", "priority_weight" if "priority_weight" in rows else None)
    known = np.array([(name, size) in measured for name, size in zip(types, scale.tolist(), strict=True)], bool)
    rows.check(known, "no throughput of this job type and scale is given for any of these kinds", "job_type")
    kept = np.flatnonzero(rows.good()).tolist()
    asked = [(types[row], int(scale[row])) for row in kept]
    return [f"{row + 1}: {types[row]} x {int(scale[row])}" for row in kept], asked, [float(weight[row]) for row in kept]
