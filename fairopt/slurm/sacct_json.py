"""``sacct --json``, and the jobs of slurmdbd that slurmrestd answers (21.08 to 25.11), as the columns that ``sacct -P`` prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fairopt.clusters.json_export import Part, parse_json
from fairopt.errors import InvalidInstance
from fairopt.slurm.sacct_fields import notes_of_jobs
from fairopt.slurm.syntax import finite, number, words

__all__ = ["json_columns"]


def json_columns(text: str, path: Path, command: str) -> tuple[dict[str, list[str]], list[str], tuple[str, ...]]:
    """Return the cells of each column, by its name in small letters, the place of each job, and notes on fields that do not count.

    What a job lacks are empty cells.

    Raises
    ------
    InvalidInstance
        With the file: it is no such answer, or has no job. With the job: a field is not what it should be.
    """
    export = parse_json(text, path, command)
    if not isinstance(export.value, dict) or not isinstance(export.value.get("jobs"), list):
        export.refuse(f'there are no "jobs" in this answer: not an export of sacct; export it again: {command}')
    jobs = export["jobs"].items()
    if not jobs:
        raise InvalidInstance(f"{path}: there is no job; export it again: {command}")
    return {name: [read(job) for job in jobs] for name, read in _COLUMNS.items()}, [job.place for job in jobs], notes_of_jobs(jobs)


def _identity(job: Part) -> str:
    """Return the number of a job as sacct prints it: 158_3, 158_[4-9%2], 131+0."""
    array, het = job.get("array"), job.get("het")
    of_array, task = number(array.get("job_id")), array.get("task").text("")
    if of_array and (one := number(array.get("task_id"))) is not None:
        return f"{of_array:.0f}_{one:.0f}"
    if of_array and task:
        most = number(array.get("limits").get("max").get("running").get("tasks")) or 0.0
        limit = f"%{most:.0f}" if most and "%" not in task else ""
        return f"{of_array:.0f}_[{task.strip('[]')}{limit}]"
    first = number(het.get("job_id"))
    if first:
        return f"{first:.0f}+{finite(het.get('job_offset')):.0f}"
    return f"{number(job['job_id']):.0f}"


def _tres(part: Part) -> str:
    """Return amounts as a TRES string; memory in MiB."""
    amounts = []
    for each in part.items() if isinstance(part.value, list) else []:
        kind, name, amount = each["type"].text(), each.get("name").text(""), number(each["count"])
        if amount is not None and amount >= 0:
            amounts.append(f"{kind}/{name}={amount:.0f}" if name else f"{kind}={amount:.0f}{'M' if kind == 'mem' else ''}")
    return ",".join(amounts)


def _time(name: str) -> Callable[[Part], str]:
    def read(job: Part) -> str:
        value = number(job.get("time").get(name))
        return f"{value:.0f}" if value and 0 < value < 1e11 else ""  # 0 and 2^32 - 2: not yet

    return read


def _length(name: str) -> Callable[[Part], str]:
    def read(job: Part) -> str:
        value = int(number(job.get("time").get(name)) or 0.0)
        return f"{value // 3600}:{value // 60 % 60:02d}:{value % 60:02d}"

    return read


def _state(job: Part) -> str:
    listed = words(job.get("state").get("current"))
    return next((word for word in listed if word != "COMPLETING"), "")


_COLUMNS: dict[str, Callable[[Part], str]] = {
    "jobid": _identity,
    "cluster": lambda job: job.get("cluster").text(""),
    "account": lambda job: job.get("account").text("") or job.get("association").get("account").text(""),
    "user": lambda job: job.get("user").text("") or job.get("association").get("user").text(""),
    "partition": lambda job: job.get("partition").text(""),
    "state": _state,
    "submit": _time("submission"),
    "eligible": _time("eligible"),
    "start": _time("start"),
    "end": _time("end"),
    "reason": lambda job: job.get("state").get("reason").text(""),
    "alloctres": lambda job: _tres(job.get("tres").get("allocated")),
    "reqtres": lambda job: _tres(job.get("tres").get("requested")),
    "nodelist": lambda job: job.get("nodes").text(""),
    "constraints": lambda job: job.get("constraints").text(""),
    "suspended": _length("suspended"),
    "elapsed": _length("elapsed"),
}
