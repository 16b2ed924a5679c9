"""Events over time: a trace of jobs on a cluster, under a scheduler.

Two kinds of scheduler.

*Greedy*, "drfh:best-fit": whole tasks by progressive filling (`fairopt.schedule`), which goes on whenever a task ends, a job is
submitted, a user joins or a server is added. Nothing is taken back: tasks run to their ends on the server where they were started, also
where their user leaves or their server is removed. The share of a user is the sum over its running tasks, by the capacity of all servers
that there ever are; of its waiting tasks the first that fits is next.

*Exact, fluid*, "drfh": the exact allocation of the notion, computed anew at every event: the optimum that a heuristic is compared with.
Tasks are divided and moved at no cost, a relaxation that no scheduler can reach (`fairopt.simulation.fluid`).

>>> import fairopt as fo
>>> cluster = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], resources=["cpu", "memory"])
>>> trace = fo.Trace(
...     ["A", "B"], submit=[0, 50], tasks=[8, 2], demands=[[1, 4], [3, 1]], durations=[100, 100], resources=["cpu", "memory"])
>>> found = fo.simulate(trace, cluster, "drf:first-fit")
>>> found
Simulation(drf:first-fit, greedy: 2 users on 1 server; 2 of 2 jobs ended; mean use cpu 62.2 %, memory 75.6 %)
>>> found.jobs[["started_s", "finished_s"]].to_numpy().tolist()
[[0.0, 250.0], [50.0, 200.0]]
>>> fo.simulate(trace, cluster, "drf").jobs["finished_s"].round(1).tolist()
[211.1, 150.0]
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import FloatArray, Instance
from fairopt.models import Notion
from fairopt.simulation import Simulation
from fairopt.simulation.fluid import run_fluid
from fairopt.simulation.moments import regret_over_time
from fairopt.simulation.series import sample_flow, sample_times, sample_whole_tasks
from fairopt.simulation.streams import Streams, streams_of
from fairopt.simulation.whole_tasks import run_whole_tasks
from fairopt.specs import NotionSpec, ScheduleSpec, read_notion, read_schedule
from fairopt.trace import Trace
from fairopt.wording import plural, some

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["simulate"]

log = logging.getLogger(__name__)


def simulate(
    trace: Trace,
    cluster: Instance,
    scheduler: ScheduleSpec | NotionSpec = "drfh:best-fit",
    *,
    until: float | None = None,
    step: float | None = None,
    regret: int = 0,
    done: Callable[[float, int], object] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Simulation:
    """Follow a trace on a cluster.

    Parameters
    ----------
    trace : Trace
    cluster : Instance
        Servers, and the weights and placement constraints of its users. It must name all users of the trace, or none: weights are 1 then.
        Demands and numbers of tasks are those of the trace.
    scheduler : str, tuple, mapping, or notion
        Greedy: "criterion:placement" with options, ``("drfh", "best-fit")``, or a mapping of arguments of `fairopt.schedule`, as in
        `fairopt.compare`; every criterion of ``fo.NOTIONS`` and ``fo.CRITERIA`` that has a share, and every placement of ``fo.PLACEMENTS``
        that is a rule. Exact, fluid: a notion without a placement, "drfh", "psdsf", "proportional:alpha=2", or
        ``("proportional", {"alpha": 2})``.
    until : float, optional
        Seconds at which it ends; default: when nothing happens any more.
    step : float, optional
        Seconds between samples; default: at each event, or, where those are many, about a thousand.
    regret : int
        At how many times, evenly spread, to compare what runs with the exact allocation of that moment.
    done : function, optional
        Told the time and the number of tasks so far (greedy: started; fluid: ended), now and then.
    stopped : function, optional
        Asked now and then whether to end it here: what is known by then is kept.

    Returns
    -------
    Simulation

    Raises
    ------
    InvalidInstance, Unsupported
        Labels of trace and cluster that do not match; a scheduler that there is not, or that has no meaning over time.
    """
    began = time.perf_counter()
    if not isinstance(trace, Trace):
        raise InvalidInstance(f"expected a Trace, got {type(trace).__name__}; build one with fairopt.Trace or fairopt.load_trace")
    if not isinstance(cluster, Instance):
        raise InvalidInstance(f"expected an Instance, got {type(cluster).__name__}; build one with fairopt.Instance or fairopt.load")
    if np.isfinite(cluster.parallelism).any():  # of servers that come later, too
        raise Unsupported(
            "a simulation knows no limit on how many servers a user is on at once; "
            "leave the parallelism of the cluster's users out, or solve the instance of one moment"
        )
    for word, value in (("until", until), ("step", step)):
        if value is not None and not (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < np.inf):
            raise Unsupported(f"{word} is {value!r}; give a number of seconds > 0")
    if isinstance(regret, bool) or not isinstance(regret, int) or regret < 0:
        raise Unsupported(f"regret is {regret!r}; give a whole number >= 0, of times at which to compare")
    name, plan = _scheduler(scheduler)
    streams = streams_of(trace, cluster)
    last = float("inf") if until is None else float(until)
    hooks = (done or (lambda now, number: None), stopped or (lambda: False))
    if isinstance(plan, Notion):
        return _fluid(streams, name, plan, last, step, regret, hooks, began)
    return _whole_tasks(streams, name, plan, last, step, regret, hooks, began)


def _scheduler(spec: Any) -> tuple[str, Notion | dict[str, Any]]:
    """Return the name of a scheduler, and its notion or the arguments of `fairopt.schedule`."""
    greedy = (
        (isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[1], str))
        or (hasattr(spec, "keys") and "criterion" in spec)
        or (isinstance(spec, str) and ":" in spec and "=" not in spec.split(":")[1])
    )
    if not greedy:
        return read_notion(spec)
    name, plan = read_schedule(spec)
    return name, dict(plan)  # type: ignore[arg-type]  # an allocation is no such spec


Hooks = tuple[Callable[[float, int], object], Callable[[], bool]]


def _whole_tasks(
    streams: Streams, name: str, plan: dict[str, Any], until: float, step: float | None, regret: int, hooks: Hooks, began: float
) -> Simulation:
    trace = streams.trace
    start, server, known, too_large = run_whole_tasks(streams, plan, until, *hooks)
    takes_part = ~too_large[streams.stream]
    _warn(trace, takes_part, name)
    end = start + trace.task_durations
    job = trace.job_of
    over = end <= known
    ended = np.bincount(job[over], minlength=trace.n_jobs)
    first, last = np.full(trace.n_jobs, np.inf), np.full(trace.n_jobs, -np.inf)
    runs = np.isfinite(start)
    np.minimum.at(first, job[runs], start[runs])
    np.maximum.at(last, job[runs], end[runs])
    times = sample_times(np.concatenate([streams.times, start, end]), known, step)
    return Simulation(
        trace=trace,
        cluster=streams.cluster,
        scheduler=name,
        kind="greedy",
        users=streams.users,
        weights=streams.weights,
        until=known,
        complete=known == until,
        series=sample_whole_tasks(streams, times, start, end, server, takes_part),
        started=np.where(np.isfinite(first), first, np.nan),
        finished=np.where(ended == trace.tasks, last, np.nan),
        ended=ended.astype(float),
        takes_part=takes_part,
        task_start=start,
        task_server=server,
        regret=_regret(streams, plan, times, regret, start, end, server, takes_part),
        seconds=time.perf_counter() - began,
    )


def _regret(streams: Streams, plan: dict[str, Any], times: FloatArray, number: int, *tasks: Any) -> pd.DataFrame | None:
    if not number or not times.size:
        return None
    moments = np.linspace(times[0], times[-1], number + 1)[:-1] + (times[-1] - times[0]) / (2 * number)
    return regret_over_time(streams, plan["criterion"], moments, *tasks)


def _fluid(
    streams: Streams, name: str, notion: Notion, until: float, step: float | None, regret: int, hooks: Hooks, began: float
) -> Simulation:
    if regret:
        raise Unsupported("the fluid optimum has no regret against itself; leave regret out, or simulate a schedule")
    trace = streams.trace
    flow = run_fluid(streams, notion, until, step, *hooks)
    takes_part = streams.instance.servable[streams.stream]
    _warn(trace, takes_part, name)
    work = trace.job_work
    finite = np.where(np.isfinite(work), work, 0.0)
    part = np.divide(finite - np.minimum(flow.left, finite), finite, out=np.zeros(work.size), where=finite > 0)
    ended = np.where(np.isfinite(flow.finished), trace.tasks, part * trace.tasks)
    return Simulation(
        trace=trace,
        cluster=streams.cluster,
        scheduler=name,
        kind="exact, fluid",
        users=streams.users,
        weights=streams.weights,
        until=flow.known,
        complete=flow.known == until,
        series=sample_flow(streams, flow),
        started=flow.started,
        finished=flow.finished,
        ended=ended,
        takes_part=takes_part,
        details={"solved": flow.solved, "residual": flow.residual},
        seconds=time.perf_counter() - began,
    )


def _warn(trace: Trace, takes_part: np.ndarray, name: str) -> None:
    never = [trace.jobs[j] for j in np.flatnonzero(~takes_part)]
    if never:
        tasks = int(trace.tasks[~takes_part].sum())
        log.warning("%s: a task of job %s fits on no server where it may run: %s never started", name, some(never), plural(tasks, "task"))
