"""What jobs of Slurm held on average over a window of time, from ``sacct``.

What runs at one moment is a matter of chance: a scheduler that is fair over an hour may look unfair now. A job that ran for a part f of the
window [a, b], f = (min(end, b) - max(start, a)) / (b - a), counts as f jobs.

Columns that are read: ``JobID``, ``Account``, ``User``, ``Partition``, ``Start``, ``End``, ``AllocTRES``, ``ReqTRES``, ``NodeList``,
``Constraints``, ``Cluster``, ``NTasks``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.errors import InvalidInstance
from fairopt.slurm.jobs import Job, read_job
from fairopt.slurm.sacct import read_sacct
from fairopt.slurm.syntax import finite
from fairopt.wording import plural

__all__ = ["average_jobs", "window_of"]

_NEEDED = ("JobID", "Account", "User", "Partition", "Start", "End", "AllocTRES", "NodeList")


def window_of(texts: tuple[str, str]) -> tuple[datetime, datetime]:
    """Return the start and the end of a window.

    >>> window_of(("2026-11-22T15:02:00", "2026-11-22 15:03"))
    (datetime.datetime(2026, 11, 22, 15, 2), datetime.datetime(2026, 11, 22, 15, 3))

    Raises
    ------
    InvalidInstance
    """
    start, end = (_time(text, "the window", "2026-11-22T15:00:00") for text in texts)
    if not start < end:
        raise InvalidInstance(f"the window ends at {end.isoformat()}, which is not after its start, {start.isoformat()}; give START END")
    return start, end


def _time(text: str, what: str, example: str) -> datetime:
    try:
        if text.isdigit() and text.isascii() and 9 <= len(text) <= 11:
            return datetime.fromtimestamp(int(text))
        time = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        raise InvalidInstance(f'{what}: "{text[:40]}" is not a time such as {example}') from None
    if time.tzinfo is not None:
        raise InvalidInstance(f'{what}: "{text[:40]}" has a time zone, and sacct writes local times without one; give local times')
    return time


def average_jobs(
    path: str | os.PathLike[str], texts: tuple[str, str], listed: Iterable[Job], users: str, account: Account
) -> list[tuple[Job, float]]:
    """Return the jobs that ran in a window, and for which part of it.

    Parameters
    ----------
    listed : the jobs of ``squeue``
        What they ask for, and where they may run, is known in more detail; so it is taken from there where the job, or another task of its
        array, is there.
    """
    window = window_of(texts)
    of_number: dict[str, Job] = {}
    for job in listed:
        component = f"{job.heterogeneous}+{finite(job.part.get('het_job_offset')):.0f}" if job.heterogeneous else ""
        of_number |= {number: job for number in (job.array, job.name, component) if number}
    clusters = {job.part.get("cluster").text("") for job in of_number.values()} - {""}

    def read(part: Part) -> tuple[Job, float] | None:
        number = part["job_id"].text()
        cluster = part.get("cluster").text("")
        if clusters and cluster and cluster not in clusters:
            part.get("cluster").refuse(
                f'the job is of the cluster "{cluster}", and squeue lists jobs of "{min(clusters)}"; export both of one'
            )
        if "." in number or part.get("start").value is None or not part.get("tres_alloc_str").value:
            return None  # a step of a job, or a job that has not started
        times = [_time(part[key].text(), part[key].place, "2026-11-22T15:02:00") for key in ("start", "end") if key in part]
        start, end = times[0], times[1] if len(times) > 1 else window[1]  # a job that still runs has no end
        seconds = (min(end, window[1]) - max(start, window[0])).total_seconds()
        if seconds <= 0:
            return None
        part.value["job_state"] = "RUNNING"  # as it was in the window
        job = read_job(part, users)
        known = of_number.get(number) or of_number.get(number.partition("_")[0])
        if known is not None and (known.account, known.user) == (job.account, job.user):
            asked = {name: getattr(known, name) for name in ("request", "partitions", "features", "required", "excluded")}
            job = replace(job, **asked)
        return job, seconds / (window[1] - window[0]).total_seconds()

    table = read_sacct(Path(path), _NEEDED)
    for note in table.notes:
        account.note(note)
    rows = table.records()
    ran = [each for each in account.read(rows, read, "job") if each is not None]
    span = f"{window[0].isoformat()} to {window[1].isoformat()}"
    if not ran:
        raise InvalidInstance(
            f"{path}: none of the {plural(len(rows), 'row')} is a job that ran from {span}; give a window in which jobs ran"
        )
    account.summary["jobs in the window"] = len(ran)
    account.note(f"tasks held are the average from {span}; tasks asked for are those of squeue, and at least as many as ran on average")
    return ran
