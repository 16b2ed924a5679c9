"""A log from Slurm's accounting: what ``sacct`` lists of each job.

``sacct -a -X -P -D -S START -E END -o COLUMNS > jobs.txt`` with the COLUMNS ``JobID,Account,User,Partition,State,Submit,Eligible,Start,``
``End,Reason,AllocTRES,ReqTRES,NodeList,Constraints``. Needed are JobID, Account, User, Start, End and AllocTRES; each of the others makes
the answer better. `fairopt.slurm.sacct` reads the table.

* A job *holds* what it was allocated (``AllocTRES``), divided by its nodes: a task for each node, a relaxation, as the tasks need not
  start together. A job that never started asks for what jobs with the same ``ReqTRES`` were given, else for that.
* It *waits* from ``Submit``, or from ``Eligible`` where that is later: before, it was held, or waited for another job or for a time.
  Without ``Submit`` the wait is not known, but for arrays: their tasks are there together, so that all wait when the first starts.
* If the last ``Reason`` of its wait is neither priority nor resources but, say, a limit, its waiting time is excluded.
* With ``-D``, a job that was requeued is listed once for each run. A job that was resized is listed once for each size.
* A job that was suspended (``Suspended``) kept its memory and its generic resources for that time, and not its CPUs. When that was is not
  in the log; it counts at the end.
* Times are local, or seconds since 1970 (``SLURM_TIME_FORMAT=%s``). Where clocks are put back, ``Elapsed`` tells the two hours apart.
* Where it may run is not in the log; partition, features and types of GPUs say it where the nodes are given. Else, if the cluster file does
  not say it, jobs of a partition, constraints and types of GPU may run
  wherever one of them ran.

Memory is in GiB, and GPUs are ``gpu``, as `fairopt.import_slurm` names them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fairopt.clusters.clock import Clock
from fairopt.clusters.json_export import Part
from fairopt.clusters.log_records import Records, Unjudged, distinct, nowhere, row_places, unknown_server
from fairopt.errors import InvalidInstance
from fairopt.files.limits import check_array
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.hosts import unfolded
from fairopt.slurm.decks import decks_of, job_in_cards
from fairopt.slurm.jobs import ENDED, HOLDS, NOT_READY, WAITS, amounts_of
from fairopt.slurm.licenses import PREFIX, licenses_in
from fairopt.slurm.pieces import unlike_cards
from fairopt.slurm.reading import parsed
from fairopt.slurm.sacct import EMPTY, Sacct, read_sacct
from fairopt.slurm.syntax import array_size, seconds, tres
from fairopt.wording import joined, named, plural

__all__ = ["Places", "read_sacct_log"]

NEEDED = ("JobID", "Account", "User", "Start", "End", "AllocTRES")
_KNOWN = (*HOLDS, *WAITS, *ENDED, "REQUEUED")
_QUEUEING = ("", "None", "Priority", "Resources", "Unknown")
_UNREADY = "not ready: held, or waits for another job or for a time"
_IN_ARRAY = "beyond the limit of its array, so it waits for other tasks of the array"


@dataclass(frozen=True, slots=True)
class Places:
    """What the nodes say of the jobs of a log.

    Attributes
    ----------
    allowed : function
        Partition, constraints and types of generic resources of a job, such as "gres/gpu:a100", to the rows of servers on which it may
        run, (rows,).
    pieces : mapping
        How many pieces a card has (`fairopt.slurm.pieces`), by node.
    """

    allowed: Callable[[str, str, Sequence[str]], BoolArray]
    pieces: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def read_sacct_log(
    path: Path,
    cluster: Instance,
    *,
    users: str = "user",
    timezone: str | None = None,
    lenient: bool = False,
    places: Places | None = None,
) -> Records:
    """Read what ``sacct -P`` printed, or that compressed by gzip.

    Parameters
    ----------
    users : {"user", "account"}
        The owner of a job: a user of an account, "account/user", or the account. Its queue is the account.
    places : Places, optional
        Default: jobs may run wherever one of the same kind ran, unless the cluster says it.

    Raises
    ------
    InvalidInstance
        With the file and line: what is wrong, and what to do.
    """
    table = read_sacct(path, NEEDED)
    number, get, where = len(table.lines), table.columns, table.where
    empty = np.full(number, "", object)
    account, user = (np.where(get[name] == "", f"(no {name})", get[name]) for name in ("account", "user"))
    clock = Clock.dates("UTC" if timezone is None and _is_epoch(get["start"]) else timezone)
    submit, eligible, start, end = (_dates(get.get(name, empty), clock, table, name) for name in ("submit", "eligible", "start", "end"))
    given, asked = get["alloctres"], get.get("reqtres", empty)
    never = np.isin(given, EMPTY)
    suspended = np.nan_to_num(_lengths(get.get("suspended", empty)))
    start = np.where(never, np.nan, start)
    start = _from_resize(get["jobid"], submit, start, end)
    with np.errstate(invalid="ignore"):
        start = clock.later_of_two(start, start < submit)
        end = clock.later_of_two(end, end < start)
        lasted = _lengths(get.get("elapsed", empty)) + suspended
        end = clock.later_of_two(end, np.abs(end + 3600 - start - lasted) < 1)
    listed, node_names, hosts_of = _nodes(get.get("nodelist", empty), table)
    of_list, decks = decks_of(hosts_of, {} if places is None else places.pieces)
    demands, shape, nodes_given, lacking = _demands(given, asked, never, cluster, table, of_list[listed], decks)
    lacking += _no_lengths(table)
    records = Records(
        job=get["jobid"],
        user=np.array([f"{a}/{u}" for a, u in zip(account, user, strict=True)], object) if users == "user" else account,
        queue=account,
        submit=submit,
        start=start,
        end=end,
        tasks=np.ones(number),
        shape=shape,
        demands=demands,
        row=np.full(number, -1),
        place=np.full(number, -1),
        allowed=np.zeros((0, cluster.n_servers), bool),
        why=empty.copy(),
        where=where,
        clock=clock,
        lenient=lenient,
        inferred=True,
        accounts=True,
        notes=[*lacking, *table.notes],
    )
    _arrays(records, "submit" in get)
    _waits(records, eligible, "eligible" in get, get.get("reason", empty))
    state = np.array([word.partition(" ")[0].rstrip("+") for word in get.get("state", empty)], object)
    strange = ~np.isin(state, ("", *_KNOWN))
    for word in np.unique(state[strange].astype(str)):
        records.leave_out(state == word, f"its state, {word}, is not known")
    keys = [get.get(name, empty) for name in ("partition", "constraints")] + [_types(asked)]
    extra: dict[str, Any] = {"listed": listed, "nodes": nodes_given, "key": np.array(list(map("\n".join, zip(*keys, strict=True))), object)}
    no_times = np.isnan(records.submit) & np.isnan(records.start) & np.isnan(records.end)
    strange |= ~records.refuse(no_times, "it has neither a submission nor a start")
    good = ~strange & ~np.array(["." in name for name in records.job], bool)
    records.keep(good)
    extra["suspended"] = suspended
    _place(records, {name: cells[good] for name, cells in extra.items()}, node_names, hosts_of, cluster, places)
    return records


def _is_epoch(cells: Any) -> bool:
    """Return whether times are seconds since 1970, as SLURM_TIME_FORMAT=%s has them."""
    some = [cell for cell in cells.tolist() if cell not in EMPTY]
    return bool(some) and all(cell.isdigit() and 9 <= len(cell) <= 11 for cell in some)


def _lengths(cells: Any) -> FloatArray:
    """Return lengths of time in seconds, nan where there is none."""
    import pandas as pd

    code, found = pd.factorize(cells)
    lengths = [np.nan if (length := seconds(str(text))) is None else length for text in found]
    return np.array(lengths, float)[code]


def _no_lengths(table: Sacct) -> list[str]:
    """Return notes on cells that should be lengths of time and are none."""
    notes = []
    for name in ("suspended", "elapsed"):
        cells = table.columns.get(name)
        bad = [] if cells is None else [text for text in cells[np.isnan(_lengths(cells))].tolist() if text not in EMPTY]
        if bad:
            notes.append(
                f'{plural(len(bad), "row has", "rows have")} "{bad[0][:20]}" as {table.names[name]}, which is no length of time: 0'
            )
    return notes


def _from_resize(job: Any, submit: FloatArray, start: FloatArray, end: FloatArray) -> FloatArray:
    """Return starts, that of a resized job from its resize on.

    Its record from then on has the start of the job and, as the time of submission, that of the resize, at which the record before ends.
    """
    import pandas as pd

    late = np.flatnonzero(submit > start)
    if not late.size:
        return start
    code = pd.factorize(job)[0]
    ends = set(zip(code.tolist(), end.tolist(), strict=True))
    resized = [n for n in late.tolist() if (code[n], submit[n]) in ends]
    found = start.copy()
    found[resized] = submit[resized]
    return found


def _dates(cells: Any, clock: Clock, table: Sacct, name: str) -> FloatArray:
    texts = np.where(np.isin(cells, EMPTY), None, cells)
    if _is_epoch(cells):
        return np.array([np.nan if text is None else float(text) for text in list(texts)]) - (clock.zero or 0.0)
    try:
        return clock.seconds(texts)
    except (ValueError, TypeError):
        for row, text in enumerate(texts):
            try:
                clock.seconds([text])
            except (ValueError, TypeError):
                raise InvalidInstance(
                    f'{table.where(row)}: {name.title()}: "{str(text)[:40]}" is not a time such as 2026-11-22T15:02:00'
                ) from None
        raise InvalidInstance(
            f"{table.path}: some times of {name.title()} have a time zone, and others have none; export it again"
        ) from None


def _demands(
    given: Any, asked: Any, never: BoolArray, cluster: Instance, table: Sacct, deck: IntArray, decks: Sequence[Sequence[Mapping[str, int]]]
) -> tuple[FloatArray, IntArray, FloatArray, list[str]]:
    """Return demands of whole jobs, the row of each job in them, its number of nodes, and notes on what the cluster does not have.

    ``decks[deck[n]]`` are the pieces of cards on the nodes of job n.
    """
    import pandas as pd

    request, requests = pd.factorize(asked)
    learned: dict[int, str] = {}
    counted = pd.DataFrame({"request": request[~never], "given": given[~never]}).value_counts(sort=True)
    for wanted, text in counted.index:
        learned.setdefault(int(wanted), str(text))
    texts = np.where(never, np.array([learned.get(k, str(text)) for k, text in enumerate(requests)], object)[request], given)
    text_of, different = pd.factorize(texts)
    code, both = pd.factorize(text_of * len(decks) + deck)
    found = [(str(different[each // len(decks)]), decks[each % len(decks)]) for each in both.tolist()]
    demands, nodes = np.zeros((len(found), cluster.n_resources)), np.ones(len(found))
    first = np.unique(code, return_index=True)[1]
    times, lacking, differ = np.bincount(code, minlength=len(found)), Counter[str](), 0
    for j, (text, there) in enumerate(found):
        part = Part(text, table.where(first[j]), None, "AllocTRES")
        amounts, licenses = amounts_of(part), licenses_in(part)
        nodes[j] = max(amounts.pop("node", 0.0), 1.0)
        amounts, several = job_in_cards(amounts, nodes[j], text, there)
        differ += int(times[j]) * several
        for name in {name for name, amount in amounts.items() if amount} - {*cluster.resources}:
            lacking[f"gres/{name}" if name not in ("cpu", "memory") else name] += int(times[j])
        for name in licenses.keys() - {each.removeprefix(PREFIX) for each in cluster.resources}:
            lacking[f"{PREFIX}{name}"] += int(times[j])
        demands[j] = [amounts.get(name, licenses.get(name.removeprefix(PREFIX), 0.0)) for name in cluster.resources]
    notes = [
        f"{plural(jobs, 'job has', 'jobs have')} {name}, which the cluster does not have: it does not count"
        for name, jobs in lacking.items()
    ]
    notes += [unlike_cards(differ, "ran, or may run,")] if differ else []
    return demands, np.asarray(code, np.int64), nodes[code], notes


def _types(asked: Any) -> Any:
    """Return the types of generic resources that each job asks for."""
    import pandas as pd

    code, found = pd.factorize(asked)
    types = [",".join(sorted(name for name in _tres(str(text)) if name.startswith("gres/") and ":" in name)) for text in found]
    return np.array(types, object)[code]


def _tres(text: str) -> dict[str, float]:
    try:
        return tres(text)
    except ValueError:
        return {}


def _nodes(lists: Any, table: Sacct) -> tuple[IntArray, list[str], list[list[str]]]:
    """Return which list of nodes each job has, all names of nodes, and the nodes of each list."""
    import pandas as pd

    code, found = pd.factorize(np.where(np.isin(lists, EMPTY), "", lists))
    hosts_of, first = [], np.unique(code, return_index=True)[1]
    for j, text in enumerate(found):
        part = Part(str(text), table.where(first[j]), None, "NodeList")
        hosts_of.append(list(parsed(part, unfolded)) if text else [])
    return np.asarray(code, np.int64), list(dict.fromkeys(name for each in hosts_of for name in each)), hosts_of


def _arrays(records: Records, submitted: bool) -> None:
    """Count the tasks of arrays that wait together, and find when an array was there at the latest."""
    copies, beyond = np.ones(len(records.job)), 0.0
    array = np.array([name.partition("_")[0] if "_" in name else "" for name in records.job], object)
    for n in np.flatnonzero([("[" in name) for name in records.job]):
        text = str(records.job[n]).partition("_")[2]
        size = float(parsed(Part(text.strip("[]"), records.where(int(n)), None, "JobID"), array_size))
        limit = text.partition("%")[2].strip("[] ")
        copies[n] = min(size, float(limit)) if limit.isdigit() and len(limit) < 10 and float(limit) > 0 else size
        beyond += size - copies[n]
    records.tasks = copies
    if beyond:
        records.unjudged.append(Unjudged(_IN_ARRAY, int(beyond), 0.0, "JobID"))
    if submitted:
        return
    import pandas as pd

    frame = pd.DataFrame({"array": array, "start": records.start})
    first = frame.groupby("array")["start"].transform("min").to_numpy()
    records.submit = np.where(array != "", first, np.nan)
    records.notes.append("the log has no column Submit: only tasks of arrays are known to wait, from the first start in their array")


def _waits(records: Records, eligible: FloatArray, known: bool, reason: Any) -> None:
    """Let a wait begin when the job is ready, and say which waiting times are excluded."""
    waiting = np.isnan(records.start)
    until = np.fmin(np.where(waiting, records.end, records.start), np.inf)
    from_then = np.fmax(records.submit, np.minimum(eligible, until))
    late = np.where(np.isnan(records.submit), 0.0, from_then - records.submit)
    late = np.where(np.isfinite(late), late, 0.0)
    if (late > 0).any():
        hours = float((late * records.tasks).sum() / 3600)
        records.unjudged.append(Unjudged(_UNREADY, int((late > 0).sum()), hours, records.where(int(np.argmax(late > 0)))))
    records.submit = np.where(np.isnan(records.submit), records.submit, from_then)
    if known:
        records.why[waiting & np.isnan(eligible)] = _UNREADY
    for word in np.unique(reason.astype(str)):
        if word in _QUEUEING or (known and word in NOT_READY):
            continue
        limit = any(part in word for part in ("Limit", "Grp", "Max", "QOS", "Assoc"))
        why = _UNREADY if word in NOT_READY else f"kept back by a limit ({word})" if limit else f"waited for another reason ({word})"
        records.why[(reason == word) & (records.why == "")] = why


def _place(
    records: Records, extra: dict[str, Any], names: list[str], hosts_of: list[list[str]], cluster: Instance, places: Places | None
) -> None:
    """Divide jobs by their nodes, and find the rows of servers on which they ran."""
    import pandas as pd

    known, unknown = row_places(cluster, names)
    used = {name for j in np.unique(extra["listed"]) for name in hosts_of[j]}
    if known and unknown and used & set(unknown):
        missing = [any(name in unknown for name in nodes) for nodes in hosts_of]
        bad = np.array(missing, bool)[extra["listed"]]
        if bad.any():
            name = next(name for name in hosts_of[extra["listed"][int(np.argmax(bad))]] if name in unknown)
            good = records.refuse(bad, f"{unknown_server(name, cluster)}, or give the nodes instead of the cluster (--nodes)")
            records.keep(good)
            extra = {key: cells[good] for key, cells in extra.items()}
            if not good.any():
                return
    elif names and not known:
        records.notes.append(nowhere(names[0], cluster, "jobs"))
    rows: list[list[tuple[int, int]]] = []
    for nodes in hosts_of:
        found = [known[name] for name in nodes if name in known]
        rows.append(sorted(Counter(found).items()) or [(-1, 0)])
    listed = extra["listed"]
    parts = np.array([len(each) for each in rows], np.int64)[listed]
    row_of = np.concatenate([np.array([row for row, _ in each]) for each in rows])
    count_of = np.concatenate([np.array([count for _, count in each]) for each in rows])
    first = np.cumsum([0, *(len(each) for each in rows)])[listed]
    index = np.repeat(np.arange(len(listed)), parts)
    within = np.arange(index.size) - np.repeat(np.cumsum(parts) - parts, parts)
    total = np.where([bool(hosts_of[j]) for j in range(len(hosts_of))], [len(each) for each in hosts_of], 0)[listed]
    nodes = np.where(total > 0, total, extra["nodes"]).astype(float)
    counts = count_of[first[index] + within].astype(float)
    several = nodes > 1
    if several.any():
        records.notes.append(f"{plural(int(several.sum()), 'job')} on several nodes, a task on each: they need not start together")
    for name in ("job", "user", "queue", "submit", "start", "end", "tasks", "shape", "why"):
        setattr(records, name, getattr(records, name)[index])
    where = records.where
    records.where = lambda n: where(int(index[n]))
    records.row = row_of[first[index] + within]
    per_task = records.demands[records.shape] / nodes[index][:, None]
    records.demands, records.shape = distinct(per_task)
    records.tasks = records.tasks * np.where(counts > 0, counts, nodes[index])
    records.place = np.zeros(len(index), np.int64)
    extra = {name: cells[index] for name, cells in extra.items()}
    extra["key"] = _without_cpus(records, extra["suspended"], extra["key"], cluster)
    code, found = pd.factorize(extra["key"])
    records.place = np.asarray(code, np.int64)
    check_array(where(0).partition(", ")[0], "kinds of jobs and servers", len(found), cluster.n_servers, of_bytes=1)
    if places is not None:
        records.inferred = False
        kinds = [
            (partition, constraints, types.split(",") if types else [])
            for partition, constraints, types in (key.split("\n") for key in found)
        ]
        records.allowed = np.array([places.allowed(*kind) for kind in kinds], bool).reshape(len(found), cluster.n_servers)
        nowhere_now = ~records.allowed.any(axis=1)
        if (lost := np.isin(code, np.flatnonzero(nowhere_now))).any():
            one = kinds[int(code[int(np.argmax(lost))])]
            records.notes.append(
                f"no node has what {plural(int(lost.sum()), 'record')} of jobs asked for (partition, constraints, types of GPUs, such as "
                f"{joined([named(word) for word in (*one[:2], *one[2]) if word], 3)}): counted as allowed on every node"
            )
        records.allowed[nowhere_now] = True
        return
    records.allowed = np.zeros((len(found), cluster.n_servers), bool)
    ran = records.row >= 0
    records.allowed[records.place[ran], records.row[ran]] = True
    records.allowed[~records.allowed.any(axis=1)] = True


def _without_cpus(records: Records, suspended: FloatArray, key: Any, cluster: Instance) -> Any:
    """Divide records of jobs that were suspended: with all they had, then without CPUs; return ``key`` for all records."""
    ran = np.isfinite(records.start) & (suspended > 0)
    last = np.flatnonzero(ran & np.isfinite(records.end))
    if not last.size:
        return key
    resources = [name != "cpu" for name in cluster.resources]
    rest = records.demands * np.array(resources, float)
    keeps = last[rest[records.shape[last]].any(axis=1)]
    cut = records.end[last] - np.minimum(suspended[last], records.end[last] - records.start[last])
    ends = records.end.copy()
    ends[last] = cut
    for name in ("job", "user", "queue", "tasks", "why", "row", "place"):
        column = getattr(records, name)
        setattr(records, name, np.concatenate([column, column[keeps]]))
    number = len(records.demands)
    records.demands, shape = distinct(np.concatenate([records.demands, rest]))
    records.shape = shape[np.concatenate([records.shape, records.shape[keeps] + number])]
    records.submit = np.concatenate([records.submit, ends[keeps]])
    records.start = np.concatenate([records.start, ends[keeps]])
    records.end = np.concatenate([ends, records.end[keeps]])
    where, rows = records.where, np.concatenate([np.arange(key.size), keeps])
    records.where = lambda n: where(int(rows[n]))
    jobs = plural(len(set(records.job[last].tolist())), "job was", "jobs were")
    records.notes.append(f"{jobs} suspended for a time: without CPUs at the end of the run, as the log does not say when")
    return np.concatenate([key, key[keeps]])
