r"""The best that any policy could have done over a whole period: the leximin of sums over time, as one program.

Cut the period into intervals k of length L[k]. With everything known, x[n,i,k] are the seconds that tasks of stream n run on servers i in
interval k, and

    leximin over n of  (sum over i, k of s[n] x[n,i,k]) / phi[n]                     s[n]: the share of a task
    sum_n d[n,r] x[n,i,k] <= c[i,r] (seconds of servers i in k)                      for each i, r and k
    the same of what is over several servers, for its amount or bound times L[k]     for each resource of the cluster, named limit, and k
    sum_i x[n,i,k] <= T[n,k] L[k]                                                    for each n and k: a limit per user and time
    sum over i, k of x[n,i,k] <= W[n]                                                for each n: the work that it submits

Where demands or speeds differ by server, a task takes d[n,i,r], and work counts: s[n] is the share of a unit of work, and speed[n,i]
x[n,i,k] is in the place of x[n,i,k] in the goal and in the last row (`fairopt.simulation.by_server`).

T[n,k] are the tasks that n has submitted by the end of interval k. So a task runs no faster than one task, and never before its interval.
Times are servers here, and the answer is certified as every leximin is. No policy, whatever it knows, gives anybody more without giving
less to somebody who has no more: tasks are divided and moved at no cost, may wait or stop at will, and start up to an interval early.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fairopt.certificate import Certificate
from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, require_instance
from fairopt.instance.packing_rules import REWRITE, as_limits
from fairopt.instance.tolerances import CERTIFIED, TINY
from fairopt.models.share_notion import ShareNotion
from fairopt.program import Feature, Leximin, LimitKind, Limits, Program
from fairopt.show.equality import ComparesItself
from fairopt.simulation.fluid import instance_at, tasks_of
from fairopt.simulation.streams import Streams, streams_of
from fairopt.solvers import candidates
from fairopt.solvers.backend import Deadline
from fairopt.solving.policy import find
from fairopt.specs import NotionSpec, read_notion
from fairopt.trace import Trace
from fairopt.validation import check_seconds, check_whole_number
from fairopt.wording import named, plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PeriodBound", "period_bound"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PeriodBound(ComparesItself):
    """The leximin of sums over a period.

    Attributes
    ----------
    notion : str
    users : tuple of str
    weights : array (users,)
    received : array (users,)
        Seconds of the whole cluster: the integral of each user's share.
    certificate : Certificate
    intervals : int
    """

    notion: str
    users: tuple[str, ...]
    weights: FloatArray
    received: FloatArray
    certificate: Certificate
    intervals: int

    def to_frame(self) -> pd.DataFrame:
        """Return one row per user: weight, and the hours of the whole cluster that it could have had."""
        import pandas as pd

        return pd.DataFrame({"weight": self.weights, "share_h": self.received / 3600}, index=pd.Index(self.users, name="user"))

    def __repr__(self) -> str:
        size = f"{plural(len(self.users), 'user')}, {plural(self.intervals, 'interval')}"
        return f"PeriodBound({self.notion}: {size}; residual {self.certificate.worst:.0e})"


def period_bound(
    trace: Trace, cluster: Instance, notion: NotionSpec = "drfh", *, until: float, intervals: int = 100, time_limit: float | None = None
) -> PeriodBound:
    """Return the best that any policy could have done with a trace up to a time: the leximin of what users receive in all.

    Parameters
    ----------
    trace : Trace
    cluster : Instance
        As `fairopt.simulate` takes them, without queues, guarantees, and users who come and go.
    notion : str or notion
        A max-min notion of shares that are the same on every server: "drfh", "asset", "tsf".
    until : float
        End of the period, in seconds. It begins with the first submission.
    intervals : int
        At most so many. Events within an interval are taken as early as they can be, so that fewer intervals give a larger bound.
    time_limit : float, optional
        Seconds of solving.

    Returns
    -------
    PeriodBound

    Raises
    ------
    InvalidInstance, Unsupported
        The period ends before the first submission, the notion is no leximin of shares that add up over time, or the cluster has queues,
        guarantees, or users who come and go.
    NoSolution, CertificateError
        The time limit is reached, or no engine finds an answer that passes its check.

    Examples
    --------
    A is alone for 100 s, and B comes for the next 100 s. At each instant both get half from then on; over the whole period A could have
    left everything to B:

    >>> import fairopt as fo
    >>> cluster = fo.Instance([[1.0]], [[1]], users=["nobody"], resources=["cpu"])
    >>> trace = fo.Trace(["A", "B"], [0, 100], [1, 1], [[1], [1]], [200, 200], resources=["cpu"])
    >>> fo.period_bound(trace, cluster, until=200).received.round(6).tolist()
    [100.0, 100.0]
    """
    require_instance(cluster)
    cluster = as_limits(cluster, "the bound of a period", instead=REWRITE, tasks_of_others=True)
    check_seconds("until", until)
    check_whole_number("intervals", intervals, 1, meaning=", into which the period is cut")
    _, chosen = read_notion(notion)
    if not isinstance(chosen, ShareNotion) or chosen.goal(np.ones(1)).feature is not Feature.LEXIMIN:
        raise Unsupported(f'{named(chosen.name)} is no leximin of shares that add up over time; use "drfh", "asset" or "tsf"')
    streams = streams_of(trace, cluster)
    if streams.tree is not None or any(kind in ("join", "leave") for _, kind, _, _ in trace.events):
        raise Unsupported(
            "the bound of a period takes users with weights who are there all the time; leave queues, guarantees, joins and leaves out"
        )
    begin = float(trace.submit[0])
    if until <= begin:
        raise Unsupported(f"the period ends at {until:g} s, before the first job is submitted at {begin:g} s; give a later end")
    times = _cuts(streams, begin, until, intervals)
    program, seconds = _program(streams, chosen, times)
    found = find(program, candidates(program, "highs"), CERTIFIED, Deadline(time_limit))
    found.certificate.require(CERTIFIED, chosen.name, found.engine)
    shares = program.per_user(program.utilities * found.solution.x) * seconds
    received = np.asarray(np.bincount(streams.owner, weights=shares, minlength=len(streams.users)), float)
    return PeriodBound(chosen.name, streams.users, streams.weights, received, found.certificate, times.size - 1)


def _cuts(streams: Streams, begin: float, until: float, most: int) -> FloatArray:
    """Return the ends of the intervals: at events, or at some of them where there are too many."""
    events = np.unique(streams.times[(streams.times > begin) & (streams.times < until)])
    if events.size >= most:
        events = events[np.linspace(0, events.size - 1, most - 1).astype(int)] if most > 1 else events[:0]
    return np.concatenate([[begin], events, [until]])


def _program(streams: Streams, notion: ShareNotion, times: FloatArray) -> tuple[Program, float]:
    """Return the program, in parts of the whole period, and the seconds of the period."""
    trace, group = streams.trace, np.arange(streams.instance.n_servers)
    n, length = streams.owner.size, float(times[-1] - times[0])
    parts = np.diff(times) / length
    everybody = np.arange(n)
    most = np.maximum(tasks_of(streams, np.arange(trace.n_jobs)), 1.0)
    one = notion.restricted(streams.owner)
    instance = instance_at(streams, everybody, most, streams.instance.counts, group, group)
    one.check(instance, "rdm")
    assert isinstance(one, ShareNotion)
    one.refuse_last(instance, "the bound adds up a whole period; give every resource a weight > 0 in resource_weights")
    if one.share_per_task(instance).ndim == 2:
        raise Unsupported(f'the share of a task under "{one.name}" depends on the server; use "drfh", "asset" or "tsf"')
    single = one.formulate(instance.replace(tasks=None), sharing="rdm", integral=False)
    single_limits, rows = single.limits, streams.instance.n_servers
    of_servers, server, across = _rows_of_one_moment(instance, single)
    changed, counts = streams.counts_over_time()
    blocks, of_users, names = [], [], []
    bounds: list[FloatArray] = []
    limits_of_users: list[FloatArray] = []
    users: list[IntArray] = []
    servers: list[IntArray] = []
    for k in range(parts.size):
        blocks.append(single_limits.matrix)
        available = _servers(changed, counts, times[k], times[k + 1]) / np.maximum(streams.instance.counts, TINY)
        bounds.append(single_limits.bounds * np.append(available, 1.0)[server] * parts[k])
        users.append(single.pair_users)
        servers.append(single.pair_servers + k * rows)
        here = np.flatnonzero(trace.submit < times[k + 1])
        of_users.append(sp.csr_array((single.pair_users[None, :] == everybody[:, None]).astype(float)))
        limits_of_users.append(tasks_of(streams, here) * parts[k])
        names += [f"{single.users[m]} from {times[k]:g} s" for m in range(n)]
    pair_users, pair_servers = np.concatenate(users), np.concatenate(servers)
    order = np.lexsort((pair_servers, pair_users))
    keys = np.tile(single_limits.keys, (parts.size, 1))
    keys[np.tile(of_servers, parts.size), 0] += np.repeat(np.arange(parts.size), of_servers.sum()) * rows
    other = np.tile(~of_servers, parts.size)
    keys[other, 0] = len(names) + np.arange(other.sum())
    names += [f"{name} from {time:g} s" for time in times[:-1] for name in across]
    kinds = np.where(other, int(LimitKind.NAMED), int(LimitKind.CAPACITY))
    of_moments = Limits(sp.csr_array(sp.csr_array(sp.block_diag(blocks))[:, order]), np.concatenate(bounds), kinds, keys)
    by_time = sp.csr_array(sp.csr_array(sp.block_diag(of_users))[:, order])
    of_times = Limits.of(LimitKind.NAMED, by_time, np.concatenate(limits_of_users), np.arange(by_time.shape[0]))
    work = np.bincount(streams.stream, weights=np.minimum(trace.job_work, 1e15), minlength=n) / length
    speeds = np.tile(instance.speeds[single.pair_users, single.pair_servers], parts.size)[order]
    fastest = np.where(instance.eligibility, instance.speeds, 0.0).max(axis=1, initial=0.0)
    limited = np.flatnonzero(work < most * fastest)  # who has more work than it could do in the period needs no limit
    total = sp.csr_array((pair_users[order][None, :] == limited[:, None]) * speeds)
    of_work = Limits.of(LimitKind.TASKS, total, work[limited], limited)
    if instance.speeds_given is not None:  # tasks do other work on other servers: no limit on tasks
        of_work = Limits.of(LimitKind.NAMED, total, work[limited], len(names) + np.arange(limited.size))
        names += [f"the work of {instance.users[m]}" for m in limited]
    program = replace(
        single,
        servers=tuple(f"{name} from {time:g} s" for time in times[:-1] for name in single.servers),
        pair_users=pair_users[order],
        pair_servers=pair_servers[order],
        utilities=np.concatenate([single.utilities] * parts.size)[order],
        limits=Limits.stack([of_moments, of_times, of_work]),
        goal=Leximin(instance.weights),
        queue_limits=tuple(names),
    )
    return program, length


def _rows_of_one_moment(instance: Instance, program: Program) -> tuple[BoolArray, IntArray, list[str]]:
    """Return which limits are capacities of servers, and the names of the others; with which row of servers each limit grows, -1: none."""
    limits = program.limits
    of_servers = limits.kinds == LimitKind.CAPACITY
    names = [
        f"{instance.resources[key]} of the cluster" if kind == LimitKind.SHARED else program.queue_limits[key]
        for kind, key in zip(limits.kinds[~of_servers].tolist(), limits.keys[~of_servers, 0].tolist(), strict=True)
    ]
    each = {row.name: int(np.argmax(row.servers)) for one in instance.selections if one.limit.each == "server" for row in one.rows()}
    server = np.where(of_servers, limits.keys[:, 0], -1)
    server[~of_servers] = [each.get(name, -1) for name in names]
    return np.asarray(of_servers), server, names


def _servers(changed: FloatArray, counts: FloatArray, begin: float, end: float) -> FloatArray:
    """Return the largest number of servers of each row in an interval."""
    first = int(np.searchsorted(changed, begin, side="right")) - 1
    last = int(np.searchsorted(changed, end, side="left"))
    return np.asarray(counts[first : max(last, first + 1)].max(axis=0), float)
