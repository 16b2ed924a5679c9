"""Throughputs in the JSON of Gavel's repository, as the table that it also publishes.

Under the kind of accelerator and the job (its type and scale) is the throughput of the job alone, and beside each other job::

    {"v100": {"('LM (batch size 5)', 1)": {"null": 80.1, "('A3C', 1)": [41.2, 3.9]}}}

A job of an instance runs by itself, so co-located pairs are left out and counted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part, read_json
from fairopt.files import first_line
from fairopt.formats.throughputs import THROUGHPUTS
from fairopt.tables import Table

__all__ = ["is_json", "read_throughputs"]

_COMMAND = 'Gavel\'s repository has it as {worker: {"(\'job type\', scale)": {"null": throughput}}}'
_JOB = re.compile(r"""\((['"])(.*)\1, (\d{1,6})\)""", re.DOTALL)
_TOGETHER = "two jobs on the same accelerators at once: each job of an instance runs by itself"


def is_json(path: str | os.PathLike[str]) -> bool:
    """Does a file begin as JSON does?"""
    return first_line(Path(path)).lstrip()[:1] in (b"{", b"[")


def read_throughputs(path: str | os.PathLike[str], account: Account) -> Table:
    """Return the throughputs of jobs alone as a table; pairs of jobs are left out and counted.

    Raises
    ------
    InvalidInstance
        With the file and the place in it.
    """
    found: list[tuple[str, str, str, int, float]] = []
    for worker, jobs in read_json(path, _COMMAND).entries().items():
        pairs: set[frozenset[str]] = set()
        for (name, scale), alone in account.read(jobs.entries().values(), _alone, "row"):
            found.append((f"{worker}, {name} x {scale}", worker, name, scale, alone))
        for job_key, part in jobs.entries().items():
            pairs |= {frozenset((job_key, other)) for other in _others(part)}
        if pairs:
            account.leave_out("co-located pair", jobs.place, _TOGETHER, len(pairs))
    places, workers, names, scales, speeds = (list(column) for column in zip(*found, strict=True)) if found else ([], [], [], [], [])
    return Table(str(path), THROUGHPUTS, ["worker", "job_type", "scale", "thr"], [workers, names, scales, speeds], places, "entry")


def _alone(part: Part) -> tuple[tuple[str, int], float]:
    """Return the job of an entry, and its throughput alone."""
    job = _JOB.fullmatch(str(part.key))
    if job is None:
        part.refuse("expected a job as ('job type', scale), such as \"('A3C', 1)\"")
    return (job[2], int(job[3])), part["null"].number()


def _others(part: Part) -> Iterator[str]:
    if isinstance(part.value, dict):
        yield from (other for other in part.value if other != "null")
