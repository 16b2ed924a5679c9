"""``scontrol show jobs``, for versions of Slurm without JSON, as records with the names that ``squeue --json`` has.

What a job that runs asked for is in ``ReqTRES`` (23.02 and later); before, ``TRES`` has what it was given, and it counts as asked for.

>>> text = "JobId=7 ArrayJobId=7 ArrayTaskId=1-9%2 JobName=x\\n UserId=ada(10) Account=lab JobState=PENDING\\n TRES=cpu=2,mem=1G,node=1\\n"
>>> job = job_blocks(text, "jobs.txt")[0]
>>> job["user_name"].text(), job["array_task_string"].text(), job["array_max_tasks"].number(), job["tres_req_str"].text()
('ada', '1-9%2', 2.0, 'cpu=2,mem=1G,node=1')
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from fairopt.clusters.json_export import Part
from fairopt.slurm.syntax import mebibytes, seconds
from fairopt.slurm.text import Record, others_in, value_of

__all__ = ["job_blocks"]


def _number(text: str) -> int | str:
    """Return the first number of a range; other texts as they are, for the reader to refuse."""
    first = text.partition("-")[0]
    return int(first) if re.fullmatch(r"\d{1,18}", first, re.ASCII) else text


def _memory(text: str) -> float | str | None:
    try:
        return mebibytes(text) or None  # 0: none is named, or all of it; TRES says it
    except ValueError:
        return text


def _minutes(text: str) -> float | None:
    length = seconds(text)
    return None if length is None else length / 60


_FIELDS: dict[str, tuple[str, Callable[[str], Any]]] = {  # the name in the text: the name in the JSON, and how it is read
    "JobId": ("job_id", _number),
    "ArrayJobId": ("array_job_id", _number),
    "ArrayTaskThrottle": ("array_max_tasks", _number),
    "HetJobId": ("het_job_id", _number),
    "HetJobOffset": ("het_job_offset", _number),
    "UserId": ("user_name", lambda text: re.sub(r"\(\d+\)$", "", text)),
    "Account": ("account", str),
    "QOS": ("qos", str),
    "JobState": ("job_state", str),
    "Reason": ("state_reason", str),
    "Partition": ("partition", str),
    "NodeList": ("nodes", str),
    "ReqNodeList": ("required_nodes", str),
    "ExcNodeList": ("excluded_nodes", str),
    "NumNodes": ("node_count", _number),
    "NumCPUs": ("cpus", _number),
    "NumTasks": ("tasks", _number),
    "Features": ("features", str),
    "Licenses": ("licenses", str),
    "Reservation": ("resv_name", str),
    "TimeLimit": ("time_limit", _minutes),
    "MinMemoryNode": ("memory_per_node", _memory),
    "MinMemoryCPU": ("memory_per_cpu", _memory),
    "OverSubscribe": ("shared", lambda text: "none" if text == "NO" else None),
    "ReqTRES": ("tres_req_str", str),
    "AllocTRES": ("tres_alloc_str", str),
    "TresPerJob": ("tres_per_job", str),
    "TresPerNode": ("tres_per_node", str),
    "TresPerTask": ("tres_per_task", str),
    "CpusPerTres": ("cpus_per_tres", str),
    "MemPerTres": ("memory_per_tres", str),
}
_ALSO = ("ArrayTaskId", "TRES", "NtasksPerN:B:S:C", "ReqB:S:C:T")
_ANY = "*"  # of a field that the job does not set, such as CoreSpec
_KNOWN = re.compile(rf"(?<!\S)({'|'.join(map(re.escape, (*_FIELDS, *_ALSO)))})=(\S*)")
_NAME = re.compile(r"(?<!\S)JobName=.*?(?=\sUserId=|$)")  # as its user chose it, with words that look like fields


def job_blocks(text: str, file: str) -> list[Part]:
    """Return the records of ``scontrol show jobs``, in blocks or one per line."""
    found: list[tuple[int, dict[str, str], dict[str, str]]] = []
    for line, content in enumerate(text.splitlines(), 1):
        if content.startswith("JobId="):
            found.append((line, {}, {}))
        if found:
            for name, value in _KNOWN.findall(_NAME.sub("", content)):
                found[-1][1].setdefault(name, value)
            others = others_in(_NAME.sub("", content), (*_FIELDS, *_ALSO))
            found[-1][2].update({name: value for name, value in others.items() if value != _ANY})
    return [_record(fields, file, line, others) for line, fields, others in found]


def _record(fields: dict[str, str], file: str, line: int, others: dict[str, str]) -> Part:
    missing: dict[str, tuple[Any, str]] = {key: (None, name) for name, (key, _) in _FIELDS.items() if not key.startswith("memory_per_")}
    values = dict(missing)
    for name, text in fields.items():
        if name in _FIELDS and value_of("", text) is not None:
            key, read = _FIELDS[name]
            value = read(text)
            if value is not None:
                values[key] = (value, name)
    task = fields.get("ArrayTaskId", "")
    if task:
        values["array_task_id" if task.isdigit() else "array_task_string"] = (int(task) if task.isdigit() else task, "ArrayTaskId")
        throttle = task.partition("%")[2]
        if throttle.isdigit() and values["array_max_tasks"][0] is None:
            values["array_max_tasks"] = (float(throttle), "ArrayTaskId")
    if "TRES" in fields:
        runs = fields.get("JobState") not in ("PENDING", None)
        for key in ("tres_req_str", "tres_alloc_str") if runs else ("tres_req_str",):
            if values[key][0] is None:
                values[key] = (value_of("", fields["TRES"]), "TRES")
    for name, key, position in (("NtasksPerN:B:S:C", "tasks_per_node", 0), ("ReqB:S:C:T", "threads_per_core", 3)):
        parts = fields.get(name, "").split(":")
        if len(parts) > position and parts[position].isdigit():
            values[key] = (float(parts[position]), name)
    return Record(values, file, line, others)
