"""Was a period fair? `history` puts what the jobs of a log received beside what the exact allocation would have given them.

At each change of the log, the exact allocation of the notion is that of the jobs that are there: submitted, and not ended. A stream of
equal tasks asks for those that wait and those that run. While no work waits, everybody has what it asks for, and that is what is due.
Where demands or speeds differ by server, work is compared, and is due as well while tasks run slower than they could elsewhere.

Source of the definitions: entitlements as exact allocations at each moment, without a memory, follow A. Ghodsi and others, Dominant
Resource Fairness (NSDI 2011), section 4, and its extension to heterogeneous servers; a notion with a memory is another notion.

>>> import pandas as pd
>>> from fairopt.instance import Instance
>>> jobs = pd.DataFrame({
...     "user": ["A", "B"], "submit": [0, 3600], "start": [0, 7200], "end": [7200, 10800], "tasks": [8, 8], "cpu": [1, 1]})
>>> found = history(jobs, Instance([[8]], [[1]], resources=["cpu"]))
>>> found
History(drfh: 2 owners on 1 server, 3 h; shortfall 0.5 of 3 share-hours)
>>> found.to_frame()[["entitled", "received", "shortfall", "surplus"]].to_numpy().tolist()
[[1.5, 2.0, 0.0, 0.5], [1.5, 1.0, 0.5, 0.0]]
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairopt.clusters.clock import length_of
from fairopt.errors import InvalidInstance, NoSolution
from fairopt.files.stores import Store
from fairopt.histories.changes import changes_of, check_capacity, refuse_excess
from fairopt.histories.job_log import JobLog
from fairopt.histories.log_formats import Exports
from fairopt.histories.reading import associated, cluster_of_log, read_cluster, read_log_file
from fairopt.histories.received import received
from fairopt.histories.result import History
from fairopt.histories.sampling import judge_in_rounds
from fairopt.histories.setting import Setting, setting_of
from fairopt.instance import Instance
from fairopt.instance.tolerances import NOTHING
from fairopt.models import Notion
from fairopt.processes.crew import Crew, check_workers
from fairopt.results import plain
from fairopt.specs import NotionSpec, read_notion
from fairopt.validation import check_whole_number
from fairopt.wording import plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["history"]


def history(
    log: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | pd.DataFrame | JobLog,
    cluster: Instance | str | os.PathLike[str] | None = None,
    notion: NotionSpec = "drfh",
    *,
    nodes: str | os.PathLike[str] | None = None,
    associations: str | os.PathLike[str] | None = None,
    licenses: str | os.PathLike[str] | None = None,
    windows: Sequence[tuple[Any, Any]] = (),
    every: float | str | None = None,
    moments: int | Literal["all"] | None = None,
    users: str | None = None,
    timezone: str | None = None,
    changes: Mapping[str, Any] | Sequence[str] = (),
    rules: Sequence[str] = (),
    seed: int = 0,
    resume: str | os.PathLike[str] | None = None,
    keep: str | os.PathLike[str] | None = None,
    lenient: bool = False,
    workers: int = 1,
    backend: str = "loky",
    address: str | None = None,
    done: Callable[[int, int], object] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> History:
    """Put what the jobs of a log received beside what the exact allocation of a notion would have given them.

    Parameters
    ----------
    log : path, paths, pandas.DataFrame or JobLog
        What ``sacct -P`` prints, accounting records of PBS or what ``condor_history -json`` prints (several files in any order), a log in
        the Standard Workload Format (.swf), pods as ``kubectl get pods -A -o json`` lists them (several files: the later one counts), or a
        table of jobs (.csv, .parquet or a frame); each may be compressed by gzip. The modules ``fairopt.slurm.sacct_log``,
        ``fairopt.clusters.pbs.log``, ``fairopt.clusters.htcondor.log``, ``fairopt.clusters.swf_log``, ``fairopt.kubernetes.pod_log`` and
        ``fairopt.histories.from_table`` describe what is read.
    cluster : Instance or path, optional
        Servers with their hosts, and the weights, queues, guarantees, owners and placement constraints of its users; their demands and
        numbers of tasks are not read. A job ran on the row that has its node among its hosts. It must know all owners of the log (by name,
        as a user, a queue or an owner, or by the queue of the job), or none; then weights are 1. Left out for a log of ``sacct``, PBS or
        HTCondor with ``nodes``, and for one in the Standard Workload Format, whose header says how many processors there were.
        Demands and speeds that differ by server say what a job would take and do elsewhere (`fairopt.histories.by_server`).
    nodes, associations, licenses : paths, optional
        Instead of a cluster, for a log of ``sacct``: ``scontrol show nodes``, ``sacctmgr -P show assoc tree``, ``scontrol show licenses``,
        as `fairopt.import_slurm` takes them. All nodes count, drained ones too, and every account and user of the log has its place
        (:mod:`fairopt.slurm.past`). For PBS, ``nodes`` is ``pbsnodes -a -F json``, for HTCondor ``condor_status -json``. Beside a
        cluster, ``associations`` say where accounts and users are that the cluster does not list.
    notion : str, tuple or Notion
        As `fairopt.compare` takes it.
    windows : sequence of (start, end)
        Periods that are judged, which do not overlap: seconds of the log, or dates such as "2026-11-22T15:00". Default: the whole log.
    every : float or str, optional
        Divide each period into windows of this length: seconds, or "1h", "7d". The last one is shorter.
    moments : int or "all", optional
        The most moments of contended time that are judged: every change if there are no more, else random ones, and then the shortfall and
        the surplus have a standard error. Default: every change of a short log, in which at most 8,000 streams of tasks are in all changes
        together. Of a longer one 100, then twice as many, and so on, until the standard errors of all shortfall and of all surplus are at
        most 0.5 % of what was due while work waited, or 80,000 streams are in all moments together. What is received is exact in any case.
    users : str, optional
        The owner of a job: "user" (default) or "account" of ``sacct``; "user", "group" or "queue" of .swf; "user", "group", "project",
        "account" or "queue" of PBS; "submitter", "user" or "group" of HTCondor; "namespace", "priority" or "label:KEY" of pods. A table
        names it.
    timezone : str, optional
        The time zone of local times, such as "Europe/Berlin", for logs in which clocks change.
    changes : mapping or sequence of str, optional
        Changes to the file of the cluster, as for `fairopt.load`.
    rules : sequence of str, optional
        Limits on tasks beside those of the cluster, such as ``"x[alice] + 2 * x[bob] <= 8"``.
    seed : int
        Of random moments.
    resume : path, optional
        A folder in which results are saved from part to part, so that a run that was stopped continues from there.
    keep : path, optional
        The former name of ``resume``.
    lenient : bool
        Leave bad records and jobs of unknown owners out, and count them, instead of refusing the log; allow more to be held than there is.
    workers, backend, address
        Workers that judge the moments, as `fairopt.study` takes them; the default is this process alone. Several workers compute the
        allocations of every 200 moments afresh, which is the same to rounding.
    done : function, optional
        Called from time to time with the number of judged moments, and that of all.
    stopped : function, optional
        Asked from time to time; True ends the work with `NoSolution`. With ``resume``, the same call goes on from there.

    Returns
    -------
    History

    Raises
    ------
    InvalidInstance, Unsupported
        With the file and the place in it: what is wrong, and what to do.
    NoSolution
        The work was stopped, or a moment has no allocation.
    """
    began = time.perf_counter()
    if moments == "all":
        moments = 0
    elif moments is not None:
        check_whole_number("moments", moments, 2, meaning=', or "all"')
    check_whole_number("seed", seed, 0)
    check_workers(workers, backend, address)
    name, chosen = read_notion(notion)
    told: tuple[str, ...] = ()
    places = None
    if cluster is None:
        cluster, places, told = cluster_of_log(log, Exports(nodes, associations, licenses, users, lenient))
    elif nodes is not None or licenses is not None:
        raise InvalidInstance("both a cluster and exports of one (nodes, licenses) describe the servers; leave one of the two out")
    instance = read_cluster(cluster, changes, rules)
    if associations is not None and nodes is None:
        instance, told = associated(log, instance, associations, users)
    jobs = read_log_file(log, instance, users=users, timezone=timezone, lenient=lenient, places=places)
    setting = setting_of(jobs, instance, chosen, lenient=lenient)
    periods = _windows(setting.log, windows, every)
    found = changes_of(setting)
    file = str(log) if isinstance(log, str | os.PathLike) else "the log"
    note = refuse_excess(check_capacity(setting, found, periods), lenient, file)
    given = resume if keep is None else keep
    store = None if given is None else Store(given)
    with Crew(workers, backend, address) as crew:
        judged = judge_in_rounds(
            setting,
            found,
            periods,
            chosen,
            moments,
            seed,
            store=store,
            crew=crew,
            done=(lambda k, number: None) if done is None else done,
            stopped=stopped or (lambda: False),
        )
    chosen_moments, number = judged.moments, judged.moments.change.size
    if not judged.is_whole:  # the time until the last moment that was judged
        until = float(chosen_moments.time[np.searchsorted(chosen_moments.moment, judged.number)])
        again = (
            f"the same again continues from there, with what {store.folder} has"
            if store is not None
            else "with resume= it could continue from there"
        )
        raise NoSolution(f"stopped after {judged.number:,} of {plural(number, 'moment')}, at {setting.log.clock.shown(until)}; {again}")
    notes = [*told, *setting.log.notes, *([note] if note else []), *_notes(setting, chosen), *([judged.note] if judged.note else [])]
    if number > judged.most > 0 and moments is not None:
        asked, of = plural(judged.most, "moment"), plural(len(periods), "window")
        notes.append(f"{asked} were asked for; each of {of} is judged at two at least, {number:,} in all")
    return History(
        notion=name,
        setting=setting,
        windows=tuple(periods),
        exact=tuple(chosen_moments.exact.tolist()),
        contended_changes=chosen_moments.states,
        moments=number,
        contended=tuple(float(chosen_moments.length[chosen_moments.window == w].sum()) for w in range(len(periods))),
        received=received(setting, found, periods, judged.edges, judged.hour_edges, judged.hour_of, judged.bin_edges),
        sums=judged.sums,
        bin_edges=judged.bin_edges,
        notes=tuple(notes),
        seconds=time.perf_counter() - began,
        question=plain(
            {
                "notion": notion, "windows": [(setting.log.clock.iso(a), setting.log.clock.iso(b)) for a, b in periods], "every": every,
                "moments": judged.most or "all", "users": users, "timezone": timezone, "changes": changes, "rules": rules, "seed": seed,
                "lenient": lenient,
            }
        ),
    )  # fmt: skip


def _windows(log: JobLog, windows: Sequence[tuple[Any, Any]], every: float | str | None) -> list[tuple[float, float]]:
    """Return the windows in order; refuse those that overlap."""
    clock, (first, last) = log.clock, log.span
    if isinstance(windows, str) or any(isinstance(each, str) or len(each) != 2 for each in windows):
        raise InvalidInstance("windows are pairs of a start and an end")
    if not first < last:
        raise InvalidInstance(f"the log covers no time: all its times are {clock.shown(first)}; export a longer period")
    read = [(clock.read(a, "the start of a window"), clock.read(b, "the end of a window")) for a, b in windows] or [(first, last)]
    for a, b in read:
        if not a < b:
            raise InvalidInstance(
                f"a window ends at {clock.shown(b)}, which is not after its start, {clock.shown(a)}; give the earlier time first "
                "(--window START/END)"
            )
        if b <= first or a >= last:
            raise InvalidInstance(
                f"no job is in the log from {clock.shown(a)} to {clock.shown(b)}; it goes from {clock.shown(first)} to {clock.shown(last)}"
            )
    read.sort()
    for one, other in itertools.pairwise(read):
        if other[0] < one[1]:
            raise InvalidInstance(
                f"the window from {clock.shown(other[0])} overlaps the one that ends at {clock.shown(one[1])}; "
                "let each begin where the one before ends, or later"
            )
    if every is None:
        return read
    length = length_of(every, "every")
    if sum((b - a) / length for a, b in read) > 10_000:
        raise InvalidInstance(f"windows of {length:g} s would be more than 10,000; give a longer one (every, --every)")
    cut = [(a + k * length, min(a + (k + 1) * length, b)) for a, b in read for k in range(int(np.ceil((b - a) / length - NOTHING)))]
    return cut


def _notes(setting: Setting, notion: Notion) -> list[str]:
    """Return what should be known of the numbers."""
    log, found = setting.log, []
    if not log.placed:
        unknown = plural(int((log.row < 0)[log.start < log.end].sum()), "record")
        found.append(f"the log does not say on which servers {unknown} ran: envy is not judged, and averages are placed where they fit")
    if setting.tasks.differ:
        found.append(
            "tasks differ by server: shares and tasks count work, and work counts as waiting while it runs slower than it could elsewhere"
        )
    several = int((np.bincount(setting.owner) > 1).sum())
    if several and not setting.tree:
        found.append(f"{plural(several, 'owner')} with tasks of several shapes: {notion.name} divides the weight of an owner among them")
    return found
