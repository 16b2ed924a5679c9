"""Logs in the Standard Workload Format: the header comments, and a line of 18 numbers for each job."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from fairopt.clusters.account import Account
from fairopt.errors import InvalidInstance
from fairopt.files import read_text
from fairopt.files.limits import check_table
from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.wording import plural

__all__ = [
    "ALLOCATED", "ESTIMATE", "JOB", "MEMORY", "OWNERS", "PARTS", "REQUESTED", "RUN", "STATUS", "SUBMIT", "USED_MEMORY", "WAIT",
    "limit", "read_log",
]  # fmt: skip

_FIELDS = 18
JOB, SUBMIT, WAIT, RUN, ALLOCATED, USED_MEMORY, REQUESTED, ESTIMATE, MEMORY = 0, 1, 2, 3, 4, 6, 7, 8, 9  # columns
STATUS = 10
OWNERS = {"user": 11, "group": 12, "queue": 14}  # the columns of owners
PARTS = (2, 3, 4)  # the status of a part of an execution
_LARGEST = 1e60


def read_log(path: Path, account: Account, *, parts: bool = False) -> tuple[dict[str, str], FloatArray, IntArray]:
    """Return the header comments, the jobs (jobs, 18) and their lines.

    A job that was interrupted has a line for all of it, and one for each part of its execution (status 2 to 4), or these alone. With
    ``parts`` it is its parts, which are submitted when the part before ended; else it is one line, the first part where none is for all.
    """
    text = read_text(path)
    if text.lstrip()[:1] in ("<", "{", "["):
        raise InvalidInstance(f"{path}: this is a web page or JSON, not a log in the Standard Workload Format; download it again")
    check_table(str(path), text.count("\n"), 1)  # the fields of a job are numbers in an array
    header: dict[str, str] = {}
    rows: list[str] = []
    lines: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        bare = line.strip()
        if bare.startswith(";"):
            key, colon, value = bare.lstrip("; \t").partition(":")
            if colon and re.fullmatch(r"[A-Za-z]+", key.strip()):
                header.setdefault(key.strip(), value.strip())
        elif bare:
            rows.append(bare)
            lines.append(number)
    version = header.get("Version", "2")
    if not re.match(r"[12](\.|$|\s)", version):
        raise InvalidInstance(f"{path}: the version of this log is {version}; versions 1 and 2 are known")
    read = _at_once(rows)
    jobs, where = _line_by_line(path, rows, lines, account) if read is None else (read, np.array(lines, np.int64))
    jobs, where = _of_executions(jobs, where, parts)
    rules: tuple[tuple[Callable[[FloatArray], BoolArray], str], ...] = (
        (lambda jobs: np.asarray(~(np.abs(jobs) < _LARGEST).all(axis=1)), "a field is not a finite number, or is huge"),
        (_negative, "a time or a duration is negative (-1 means unknown)"),
        (_repeated, "there is a job with this number above"),
        (_late, "it is submitted earlier than a job above it; sort the log by submit time"),
    )
    for rule, message in rules:
        bad = rule(jobs)
        for row in np.flatnonzero(bad):
            account.bad("job", f"{path}, line {where[row]}", message)
        jobs, where = jobs[~bad], where[~bad]
    if not len(jobs):
        raise InvalidInstance(f"{path}: there is no job; a log has a line of {_FIELDS} numbers for each")
    return header, jobs, where


def _negative(jobs: FloatArray) -> BoolArray:
    return np.asarray((jobs[:, [WAIT, RUN]] < -1).any(axis=1) | (jobs[:, SUBMIT] < 0))


def _late(jobs: FloatArray) -> BoolArray:
    """Return which lines are submitted before one above them; a later part is as its job was."""
    submit = np.where(_repeats(jobs[:, JOB]), -1.0, jobs[:, SUBMIT])
    return np.asarray((submit >= 0) & (submit < np.maximum.accumulate(submit)))


def _repeated(jobs: FloatArray) -> BoolArray:
    return _repeats(jobs[:, JOB]) & ~np.isin(jobs[:, STATUS], PARTS)


def _of_executions(jobs: FloatArray, where: IntArray, parts: bool) -> tuple[FloatArray, IntArray]:
    """Return the lines that count of jobs that ran in several parts, each part with the time from which it waited."""
    partial = np.isin(jobs[:, STATUS], PARTS)
    if not partial.any():
        return jobs, where
    whole = np.isin(jobs[:, JOB], jobs[~partial, JOB])  # it has a line for all of it
    if not parts:
        first = ~np.isin(np.arange(len(jobs)), np.flatnonzero(partial)[_repeats(jobs[partial, JOB])])
        keep = np.where(partial, ~whole & first, True)
        return jobs[keep], where[keep]
    in_parts = np.isin(jobs[:, JOB], jobs[partial, JOB])
    keep = partial | ~in_parts
    jobs, where = jobs[keep].copy(), where[keep]
    ended: dict[float, float] = {}
    for row in np.flatnonzero(np.isin(jobs[:, STATUS], PARTS)).tolist():
        job, submit = float(jobs[row, JOB]), float(jobs[row, SUBMIT])
        if job in ended:  # it waits from the end of the part before
            submit = jobs[row, SUBMIT] = ended[job]
        ended[job] = submit + max(float(jobs[row, WAIT]), 0.0) + max(float(jobs[row, RUN]), 0.0)
    return jobs, where


def _repeats(numbers: FloatArray) -> BoolArray:
    repeats = np.ones(numbers.size, bool)
    repeats[np.unique(numbers, return_index=True)[1]] = False
    return repeats


def _at_once(rows: list[str]) -> FloatArray | None:
    """Return the jobs of lines that are all right; None if one is not."""
    import pandas as pd

    try:
        frame = pd.read_csv(
            io.StringIO("\n".join(rows)),
            sep=r"\s+",
            header=None,
            dtype=float,
            quoting=3,
            keep_default_na=False,
        )
    except (ValueError, pd.errors.ParserError):  # also of no lines
        return None
    jobs = frame.to_numpy()
    return None if jobs.shape != (len(rows), _FIELDS) or np.isnan(jobs).any() else jobs


def _line_by_line(path: Path, rows: list[str], lines: list[int], account: Account) -> tuple[FloatArray, IntArray]:
    """Return the jobs of the lines whose fields are 18 numbers, and these lines."""
    kept, where = [], []
    for row, line in zip(rows, lines, strict=True):
        words = row.split()
        if len(words) != _FIELDS:
            account.bad(
                "line",
                f"{path}, line {line}",
                f"{plural(len(words), 'field')} instead of {_FIELDS}: the line is cut off, or this is another format",
            )
            continue
        try:
            kept.append([float(word) for word in words])
            where.append(line)
        except ValueError:
            account.bad("job", f"{path}, line {line}", "a field is not a number")
    return np.array(kept, float).reshape(-1, _FIELDS), np.array(where, np.int64)


def limit(path: Path, header: Mapping[str, str], key: str, given: int | None, option: str) -> int | None:
    """Return a number that the caller gives, else one of the header comments; None if there is neither."""
    if given is not None:
        if not 1 <= given < _LARGEST:
            raise InvalidInstance(f"{option[2:]} is {str(given)[:60]}; give a whole number >= 1 that is not huge ({option})")
        return given
    if key not in header:
        return None
    match = re.match(r"\d[\d,]*", header[key])
    digits = match[0].replace(",", "") if match else ""
    value = int(digits or 0) if len(digits) < 60 else 0
    if value < 1:
        raise InvalidInstance(f"{path}: the comment says {key}: {header[key][:60]}, which is not a number >= 1; give {option}")
    return value
