"""Simulation of a trace of jobs on a cluster under a scheduler.

There are five kinds of scheduler.

*Greedy*, "drfh:best-fit": whole tasks by progressive filling (`fairopt.schedule`). Filling continues when a task ends, a job is submitted,
a user joins or a server is added. No task is stopped: a task runs to its end on its server, even if its user leaves or its server is
removed. The share of a user is the sum over its running tasks, relative to the capacity of all servers that ever exist. The next task of a
user is its first waiting task that fits.

*As clusters schedule*, "fifo", "backfill", "fairtree:half_life=7d", "priority:half_life=1d": whole tasks by the published rules of batch
systems, Slurm and HTCondor (`fairopt.simulation.baselines`). They also start gangs, all of whose tasks begin at one instant.

*Exact, fluid*, "drfh": the exact allocation of the notion, recomputed at every event. It is the optimum for comparing heuristics. Tasks are
divided and moved at no cost, a relaxation that no scheduler can reach (`fairopt.simulation.fluid`).

*With a memory, fluid*, "drfh:half_life=1h", "drfh:follow=0.5:half_life=7d" and "karma:alpha=0.5": users who have had little come first.
The first is the leximin of cumulative shares, which fade with a half-life, exact at every event and after each ``period``
(`fairopt.simulation.memory`); with "half_life=inf" it is dynamic DRF. Under the second the weights follow the usage, as KAI's do
(`fairopt.simulation.following`). The third is Karma's trade in credits, in rounds (`fairopt.simulation.karma`).

*Asynchronous, fluid*, "psdsf:period=1": the distributed procedure of the PS-DSF paper. Each server acts alone, once in every period, and
knows only how many tasks each user runs on the other servers (`fairopt.solvers.equilibrium.asynchronous`). The procedure is not exact; the
output shows the distance to the exact allocation (`fairopt.simulation.asynchronous`). Tasks are divided and moved here, too.

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
>>> fo.simulate(trace, cluster, "psdsf:period=5").jobs["finished_s"].round(1).tolist()
[214.3, 153.2]
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from fairopt.errors import FairoptError, InvalidInstance, Unsupported
from fairopt.files import read_bytes
from fairopt.files.stores import Store
from fairopt.instance import FloatArray, Instance, require_instance
from fairopt.instance.by_server import refuse_by_server
from fairopt.instance.packing_rules import REWRITE, as_limits
from fairopt.models import FinishTime, Notion
from fairopt.registry import line_at_fault
from fairopt.results import plain
from fairopt.simulation import Simulation
from fairopt.simulation.asynchronous import run_asynchronous
from fairopt.simulation.baselines.events import run_baseline
from fairopt.simulation.baselines.options import Baseline
from fairopt.simulation.billing import BillingLike
from fairopt.simulation.finish_times import FinishTimeOptimum
from fairopt.simulation.flow_samples import check_step
from fairopt.simulation.fluid import Flow, Optimum, OwnAllocations, run_fluid
from fairopt.simulation.following import Following, FollowingOptimum
from fairopt.simulation.karma import Karma, KarmaRounds
from fairopt.simulation.keeping import Keeper, Request, state_part
from fairopt.simulation.memory import Memory, RememberedOptimum
from fairopt.simulation.memory_in_trees import RememberedTree
from fairopt.simulation.moments import regret_over_time
from fairopt.simulation.past_usage import UsageLike
from fairopt.simulation.plans import Asynchronous, knowing, refuse_rules_of, scheduler_of
from fairopt.simulation.series import sample_flow, sample_times, sample_whole_tasks
from fairopt.simulation.streams import Streams, streams_of
from fairopt.simulation.whole_tasks import run_whole_tasks
from fairopt.solving import notion_of
from fairopt.specs import NotionSpec, OwnScheduler, ScheduleSpec
from fairopt.trace import Trace
from fairopt.validation import check_seconds, check_whole_number
from fairopt.wording import joined, plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["simulate", "stated"]

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


def simulate(
    trace: Trace,
    cluster: Instance,
    scheduler: ScheduleSpec | NotionSpec = "drfh:best-fit",
    *,
    until: float | None = None,
    step: float | None = None,
    regret: int = 0,
    resume: str | os.PathLike[str] | None = None,
    keep: str | os.PathLike[str] | None = None,
    usage: UsageLike | None = None,
    billing: BillingLike = None,
    done: Callable[[float, int], object] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Simulation:
    """Follow a trace on a cluster.

    Parameters
    ----------
    trace : Trace
    cluster : Instance
        Servers, and the weights, queues, guarantees and placement constraints of its users. It must name all users of the trace, or none;
        then weights are 1. Demands and numbers of tasks come from the trace. In a tree, a user of the trace is one leaf, whatever the
        shapes of its tasks. Demands and speeds by server of its users say how their tasks differ from server to server
        (`fairopt.simulation.by_server`).
    scheduler : str, tuple, mapping, or notion
        Greedy: "criterion:placement" with options, ``("drfh", "best-fit")``, or a mapping of arguments of `fairopt.schedule`, as in
        `fairopt.compare`. The criterion is one of ``fo.NOTIONS`` or ``fo.CRITERIA`` that has a share, the placement one of
        ``fo.PLACEMENTS``, or a function as for `fairopt.schedule` (its first argument is the position of the user in `Simulation.users`).

        As clusters schedule, each task on the first server where it fits: "fifo", in the order of submission, where a job that does not
        fit blocks all behind it; "backfill", EASY backfill by the estimates of the trace (Lifka 1995; Mu'alem and Feitelson 2001);
        "fairtree:half_life=7d", Slurm's fair tree, with backfill unless ``backfill=no`` is given; "priority:half_life=1d", HTCondor's user
        priorities, where guarantees of queues are group quotas, served by use / quota; "maui:interval=1d:depth=7:decay=0.8", the fairshare
        of Maui and Moab, by targets minus use in windows (`fairopt.simulation.baselines.windows`), with backfill as fairtree. The last two
        count what a user holds of one resource, ``unit=gpu``; default: the resource called cpu, cpus, core or cores, in any case, or the
        only one. Half-lives are seconds, or have a unit, s, m, h, d or w. Limits of queues hold; only these know gangs.

        A baseline, fluid: "drfh:pop:parts=2", one of ``fo.BASELINES``, asked at every event as a function of your own is.

        Your own, fluid: a function of an Instance that returns an Allocation or tasks (users, servers), or its name in a file,
        "mine.py:in_turn". It is asked at every event, with the jobs and servers of that moment.

        Exact, fluid: a notion without a placement, "drfh", "psdsf", "proportional:alpha=2", or ``("proportional", {"alpha": 2})``. Under
        "finish-time" work and times of the jobs follow from the trace (`fairopt.simulation.finish_times`).

        With a memory, fluid: "drfh:half_life=1h", a max-min notion of shares that are the same on every server, here with a half-life of
        an hour ("inf": nothing is forgotten: dynamic DRF), recomputed at every event and after each ``period`` (default: a hundredth of the
        half-life; of an infinite one, a thousandth of the time over which jobs are submitted); in a tree of queues, node by node.
        "drfh:follow=0.5:half_life=7d": the weights of any notion follow the usage (`fairopt.simulation.following`).
        "karma:alpha=0.5", for one resource: the guaranteed part of a fair share, and ``period``, the seconds of a round (default: such a
        thousandth).

        Asynchronous, fluid: "psdsf:period=0.1", or ``("psdsf", {"period": 0.1})``. Options: ``period``, the seconds between two actions of
        a server; ``phases`` ("random": each server has its own times; "sweep": all servers act at the same times, one after the other;
        "at-once": all servers act at the same times, and none sees the actions of the others); ``seed`` of random phases; ``sharing``
        ("rdm", or "tdm": servers divide their time).
    until : float, optional
        End of the simulation, in seconds. Default: no further event.
    step : float, optional
        Seconds between samples. Default: one sample at each event (and each period of asynchronous servers), thinned to about a thousand if
        there are many.
    regret : int
        Number of evenly spaced times at which the running tasks are compared with the exact allocation of that moment. (Asynchronous
        servers are compared at every sample.)
    resume : path, optional
        A folder, made if it is not there, in which the state is kept from time to time and at the end, so that a simulation that was
        stopped goes on from there: the same call again has the same results, bit for bit, as one in one go. The scheduler is named by a
        string. What a function of your own remembers by itself is not kept.
    keep : path, optional
        The former name of ``resume``.
    usage : path or mapping, optional
        What owners had used before, for schedulers with a memory: the file of ``sshare -a -l -P`` or of ``condor_userprio -allusers``, a
        table with the columns ``name`` and ``usage``, or amounts by name, in seconds of billing, already faded; with windows several
        amounts each, the present window first (`fairopt.simulation.past_usage`).
    billing : str, mapping or path, optional
        What a task is billed a second, ``"cpu=1,gres/gpu=8"``, in which usage is counted before and during the simulation
        (`fairopt.simulation.billing`). Default: with ``usage`` the cores; else as each scheduler counts by itself.
    done : function, optional
        Called from time to time with the simulated time and the number of tasks so far (greedy: started; fluid: ended).
    stopped : function, optional
        Called from time to time; True ends the simulation, and the results so far are returned.

    Returns
    -------
    Simulation

    Raises
    ------
    InvalidInstance, Unsupported
        The labels of trace and cluster do not match. The scheduler does not exist, or has no meaning over time. Asynchronous servers have
        tasks that never end, and ``until`` is missing. A greedy criterion meets a gang, or "fifo", "backfill" or "fairtree" a guarantee.
        "priority" has no ``unit``, and the resources do not say which one is the cores.
        The folder keeps a simulation of another trace or cluster, with other options, or of another version of fairopt.
    """
    began = time.perf_counter()
    if not isinstance(trace, Trace):
        raise InvalidInstance(f"expected a Trace, got {type(trace).__name__}; build one with fairopt.Trace or fairopt.load_trace")
    require_instance(cluster)
    name, plan = scheduler_of(scheduler)
    refuse_rules_of(cluster, name, plan)
    cluster = as_limits(cluster, "a simulation", instead=REWRITE, tasks_of_others=True)
    if np.isfinite(cluster.parallelism).any():  # also for servers that are added later
        raise Unsupported(
            "a simulation cannot limit how many servers a user is on at once; "
            "leave the parallelism of the cluster's users out, or solve the instance of one moment"
        )
    for word, value in (("until", until), ("step", step)):
        if value is not None:
            check_seconds(word, value)
    check_whole_number("regret", regret, 0, meaning=", of times at which to compare")
    if regret and isinstance(plan, dict):
        notion_of(plan["criterion"])  # refuse before the simulation starts
    if isinstance(plan, Asynchronous | Karma):
        what = f'"{name}" takes jobs that are the same everywhere'
        refuse_by_server(cluster, what, "simulate a notion, or a greedy schedule such as drfh:fastest")
    streams = streams_of(trace, cluster)
    plan = knowing(name, plan, streams, usage, billing)
    last = float("inf") if until is None else float(until)
    if step is not None and streams.times.size:
        check_step(step, min(last, float(streams.times[-1])) - float(streams.times[0]))
    keeper = _keeper(resume if keep is None else keep, trace, cluster, scheduler, (until, step, *stated(usage, billing)))
    calls = _Calls()
    hooks = (calls.of(done or (lambda now, number: None)), calls.of(stopped or (lambda: False)), keeper)
    if isinstance(plan, Asynchronous):
        run: Callable[..., Simulation] = _asynchronous
    else:
        run = _fluid if isinstance(plan, Notion | OwnScheduler | Memory | Following | Karma) else _whole_tasks
    try:
        with keeper:
            found = run(streams, name, plan, last, step, regret, hooks, began)
        question = {"schedulers": [scheduler if isinstance(scheduler, str) else name], "until_s": until, "step_s": step, "regret": regret}
        known = {word: value for word, value in (("usage", usage), ("billing", billing)) if value is not None}
        return replace(found, question=plain(question | known))
    except (FairoptError, MemoryError):
        raise
    except Exception as error:
        if keeper.found is None or keeper.went_on or calls.raised is error or line_at_fault(error):
            raise
        raise keeper.refusal(error) from error


def stated(usage: UsageLike | None, billing: BillingLike) -> list[object]:
    """Return what identifies usage and billing, for a state that is kept; nothing if there are none."""
    if usage is None and billing is None:
        return []
    return [read_bytes(Path(each)) if isinstance(each, str | os.PathLike) and Path(each).is_file() else each for each in (usage, billing)]


class _Calls:
    """Calls functions of a caller, and remembers what they raised: that is not the fault of a state that was kept."""

    raised: Exception | None = None

    def of(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return the function, watched."""

        def call(*arguments: P.args, **named: P.kwargs) -> T:
            try:
                return function(*arguments, **named)
            except Exception as error:
                self.raised = error
                raise

        return call


def _keeper(resume: str | os.PathLike[str] | None, trace: Trace, cluster: Instance, scheduler: Any, options: tuple[object, ...]) -> Keeper:
    """Return what keeps the state; without a folder, nothing does."""
    if resume is None:
        return Keeper()
    if not isinstance(scheduler, str):
        raise Unsupported("a run can be resumed only if its scheduler is named by a string, which identifies its state; leave resume out")
    return Keeper(Store(resume), state_part(scheduler), Request.of(trace, cluster, scheduler, options))


Hooks = tuple[Callable[[float, int], object], Callable[[], bool], Keeper]


def _whole_tasks(
    streams: Streams, name: str, plan: dict[str, Any] | Baseline, until: float, step: float | None, regret: int, hooks: Hooks, began: float
) -> Simulation:
    trace = streams.trace
    if isinstance(plan, Baseline):
        start, server, known, takes_part = run_baseline(streams, plan, until, *hooks)
    else:
        start, server, known, too_large = run_whole_tasks(streams, plan, until, *hooks)
        takes_part = ~too_large[streams.stream]
    _warn(trace, takes_part, name)
    end = start + streams.seconds(server)
    job = trace.job_of
    over = np.isfinite(end) & (end <= known)
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
        complete=bool(known == until),
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


def _regret(streams: Streams, plan: dict[str, Any] | Baseline, times: FloatArray, number: int, *tasks: Any) -> pd.DataFrame | None:
    if not number or not times.size:
        return None
    criterion = "drfh" if isinstance(plan, Baseline) else plan["criterion"]
    moments = np.linspace(times[0], times[-1], number + 1)[:-1] + (times[-1] - times[0]) / (2 * number)
    return regret_over_time(streams, criterion, moments, *tasks)


def _fluid(
    streams: Streams,
    name: str,
    notion: Notion | OwnScheduler | Memory | Following | Karma,
    until: float,
    step: float | None,
    regret: int,
    hooks: Hooks,
    began: float,
) -> Simulation:
    own = isinstance(notion, OwnScheduler | Karma)
    if regret and own:
        raise Unsupported(
            "the regret over time is that of schedules of whole tasks; leave regret out, and simulate a notion to compare with"
        )
    if regret:
        raise Unsupported("the fluid optimum has no regret against itself; leave regret out, or simulate a schedule")
    optimum = _optimum(streams, notion)
    flow = run_fluid(streams, optimum, until, step, *hooks)
    details = {"solved": flow.solved, "residual": flow.residual}
    if isinstance(optimum, RememberedOptimum | RememberedTree):
        details |= {"half_life": optimum.memory.half_life, "period": optimum.period}
    elif isinstance(optimum, FollowingOptimum):
        details |= {"follow": optimum.following.strength, "half_life": optimum.following.half_life, "period": optimum.period}
    elif isinstance(optimum, KarmaRounds):
        details |= {"alpha": optimum.alpha, "period": optimum.period}
    kind = "rounds, fluid" if isinstance(notion, Karma) else f"{notion.kind}, fluid" if isinstance(notion, OwnScheduler) else "exact, fluid"
    return _flowed(streams, name, kind, flow, until, began, series=sample_flow(streams, flow), details=details)


def _optimum(streams: Streams, notion: Notion | OwnScheduler | Memory | Following | Karma) -> Optimum:
    if isinstance(notion, Karma):
        return KarmaRounds(streams, notion)
    if isinstance(notion, OwnScheduler):
        return OwnAllocations(streams, notion)
    if isinstance(notion, Following):
        return FollowingOptimum(streams, notion)
    if isinstance(notion, Memory):
        return RememberedOptimum(streams, notion) if streams.tree is None else RememberedTree(streams, notion)
    if isinstance(notion, FinishTime):
        return FinishTimeOptimum(streams, notion)
    return Optimum(streams, notion)


def _asynchronous(
    streams: Streams, name: str, plan: Asynchronous, until: float, step: float | None, regret: int, hooks: Hooks, began: float
) -> Simulation:
    if regret:
        raise Unsupported("asynchronous servers are compared with the exact allocation at every sample; leave regret out")
    found = run_asynchronous(streams, plan.turns, plan.sharing, until, step, *hooks)
    flow = found.flow
    details = asdict(plan.turns) | {"sharing": plan.sharing, "actions": found.actions, "solved": flow.solved, "residual": flow.residual}
    series = sample_flow(streams, flow, found.exact)
    return _flowed(
        streams, name, "asynchronous, fluid", flow, until, began,
        series=series, regret=found.regret, settling=found.settling, details=details,
    )  # fmt: skip


def _flowed(streams: Streams, name: str, kind: str, flow: Flow, until: float, began: float, **more: Any) -> Simulation:
    """Return the simulation that a flow describes."""
    trace = streams.trace
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
        kind=kind,
        users=streams.users,
        weights=streams.weights,
        until=flow.known,
        complete=bool(flow.known == until),
        started=flow.started,
        finished=flow.finished,
        ended=ended,
        takes_part=takes_part,
        **more,
        seconds=time.perf_counter() - began,
    )


def _warn(trace: Trace, takes_part: np.ndarray, name: str) -> None:
    never = [trace.jobs[j] for j in np.flatnonzero(~takes_part)]
    if never:
        tasks = int(trace.tasks[~takes_part].sum())
        gangs = ", or a gang does not fit as a whole" if trace.gangs[~takes_part].any() else ""
        log.warning(
            "%s: a task of job %s fits on no server where it may run%s: %s never started",
            name, joined(never, 5), gangs, plural(tasks, "task"),
        )  # fmt: skip
