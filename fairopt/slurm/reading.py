"""Slurm's exports as records: JSON of every version, and the text of ``scontrol``, ``sacctmgr`` and ``sshare``.

What a version can write: ``squeue --json`` and ``sinfo --json`` exist since 21.08 (``sinfo`` lists node by node until 22.05, and groups
nodes of one kind since 23.02), ``scontrol show ... --json`` since 23.02; the text exists in every version. ``sinfo`` does not say what is
kept for the system (``MemSpecLimit``, ``CoreSpecCount``), so that messages name ``scontrol``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fairopt.clusters.json_export import Part, parse_json
from fairopt.errors import InvalidInstance
from fairopt.files import read_text
from fairopt.instance.hosts import unfolded
from fairopt.slurm.job_text import job_blocks
from fairopt.slurm.syntax import finite, number, seconds, tres
from fairopt.slurm.text import ASSOCIATIONS, QOS, blocks, table
from fairopt.wording import figure

__all__ = ["command_for", "count_or_inf", "minutes", "parsed", "read_records", "tres_amounts"]

_SINCE_SCONTROL = (23, 2)
_COMMANDS = {  # from 23.02 on; before
    "nodes": ("scontrol show nodes --json > nodes.json", "scontrol show nodes > nodes.txt"),
    "jobs": ("squeue --json > jobs.json", "squeue --json > jobs.json"),
    "partitions": ("scontrol show partitions --json > partitions.json", "scontrol show partitions > partitions.txt"),
    "licenses": ("scontrol show licenses --json > licenses.json", "scontrol show licenses > licenses.txt"),
    "reservations": ("scontrol show reservations --json > reservations.json", "scontrol show reservations > reservations.txt"),
    "associations": ("sacctmgr -P show assoc tree > associations.txt", "sacctmgr -P show assoc tree > associations.txt"),
    "qos": ("sacctmgr -P show qos > qos.txt", "sacctmgr -P show qos > qos.txt"),
}
_TEXTS = {
    "nodes": ("NodeName", "scontrol show nodes > nodes.txt"),
    "partitions": ("PartitionName", "scontrol show partitions > partitions.txt"),
    "licenses": ("LicenseName", "scontrol show licenses > licenses.txt"),
    "reservations": ("ReservationName", "scontrol show reservations > reservations.txt"),
}
_TABLES = {"associations": ASSOCIATIONS, "qos": QOS}
_ALSO = {"qos": "QOS"}  # the name of a list in answers of other versions


def command_for(kind: str, version: tuple[int, int] | None = None) -> str:
    """Return the command that makes an export in this version of Slurm, or in any version if it is not known.

    >>> command_for("nodes", (22, 5)), command_for("nodes", (24, 5))
    ('scontrol show nodes > nodes.txt', 'scontrol show nodes --json > nodes.json')
    >>> command_for("partitions")
    'scontrol show partitions > partitions.txt (any version), or scontrol show partitions --json > partitions.json (23.02 and later)'
    """
    later, before = _COMMANDS[kind]
    if version is not None:
        return later if version >= _SINCE_SCONTROL else before
    if kind in _TEXTS:
        return f"{_TEXTS[kind][1]} (any version), or {later} (23.02 and later)"
    return later


def _version(export: Part) -> tuple[int, int] | None:
    """Return the version that an answer names: numbers in 22.05, texts later."""
    meta = export.value.get("meta") if isinstance(export.value, dict) else None
    for key in ("slurm", "Slurm"):
        try:
            version = meta[key]["version"]  # type: ignore[index]
            return int(version["major"]), int(version["minor"])
        except (KeyError, TypeError, ValueError):
            continue
    return None


def read_records(path: str | os.PathLike[str], kind: str, needed: Sequence[str] = ()) -> list[Part]:
    """Return the records of a kind of export, "nodes" or "licenses", of any version; ``needed`` are columns of a table.

    Raises
    ------
    InvalidInstance
        The file is no export of this kind; the message says how to make one.
    """
    path = Path(path)
    text = read_text(path)
    start = text.lstrip()
    records: list[Part] | None = None
    if kind in _TEXTS and start.startswith(f"{_TEXTS[kind][0]}="):
        records = blocks(text, str(path), _TEXTS[kind][0])
    elif kind == "jobs" and start.startswith("JobId="):
        records = job_blocks(text, str(path))
    elif kind == "reservations" and start.startswith("No reservations"):
        records = []
    elif kind in _TABLES and "|" in start.partition("\n")[0]:
        records = table(text, str(path), command_for(kind), _TABLES[kind], needed)
    elif start and start[0] not in "{[<":
        _refuse_text(path, kind, start)
    if records is None:
        export = parse_json(text, path, command_for(kind))
        if kind == "nodes" and isinstance(export.value, dict) and "sinfo" in export.value:
            records = _grouped(export["sinfo"])
        else:
            records = _of_answer(export, kind)
    if not records and kind in ("nodes", "jobs"):
        raise InvalidInstance(f"{path}: the list of {kind} is empty; export it again: {command_for(kind)}")
    return records


def _of_answer(export: Part, kind: str) -> list[Part]:
    command = command_for(kind, _version(export))
    if isinstance(export.value, dict) and kind not in export.value and _ALSO.get(kind) in export.value:
        kind = _ALSO[kind]
    if isinstance(export.value, dict) and kind not in export.value:
        for error in export.get("errors").value or []:
            export.refuse(f"Slurm answered with an error, {error}; export it again: {command}")
        has = ", ".join(list(export.value)[:6]) or "nothing"
        export.refuse(f'there are no "{kind}" in this answer (it has {has}): not an export of {kind}, or of an unknown version; {command}')
    return export[kind].items()


def _refuse_text(path: Path, kind: str, start: str) -> None:
    line = start.partition("\n")[0][:60]
    for other, (first, _) in _TEXTS.items():
        if start.startswith(f"{first}="):
            raise InvalidInstance(f"{path}: these are {other}, and {kind} are expected; export them: {command_for(kind)}")
    what = "neither JSON nor text of Slurm" if kind in (*_TEXTS, *_TABLES, "jobs") else "not JSON"
    raise InvalidInstance(f'{path}: this is {what}: it starts with "{line}"; export it again: {command_for(kind)}')


def _grouped(groups: Part) -> list[Part]:
    """Return nodes from ``sinfo --json`` of 23.02 and later: a group of identical nodes for each partition and state.

    A node that is in several partitions is in several groups.
    """
    records: dict[str, Part] = {}
    for group in groups.items():
        state = group["node"]["state"]
        gres, has = group.get("gres").get("total"), group.get("features")
        values: dict[str, Any] = {
            "cpus": _same(group["cpus"], "CPUs"),
            "real_memory": _same(group["memory"], "MiB of memory"),
            "threads": group.get("threads").get("minimum").value,
            "gres": gres.text(""),
            "features": has.get("total").value or "",
            "active_features": has.get("active").value or "",
            "state": state.value,
        }
        partition = group.get("partition").get("name").text("")
        listed = group["nodes"].get("nodes")
        for each in listed.items() if isinstance(listed.value, list) else [listed]:
            for name in parsed(each, unfolded):
                if name not in records:
                    records[name] = Part({**values, "name": name, "partitions": []}, group.file, group.above, group.key)
                if partition:
                    records[name].value["partitions"].append(partition)
    return list(records.values())


def _same(range_of: Part, what: str) -> float:
    least, most = finite(range_of["minimum"]), finite(range_of["maximum"])
    if least != most:
        range_of.refuse(
            f"the nodes of this group have {figure(least)} to {figure(most)} {what}; export them one by one: "
            f"{command_for('nodes', _SINCE_SCONTROL)}"
        )
    return least


def parsed(part: Part, parse: Callable[[str], Any]) -> Any:
    """Read a text of Slurm's own syntax; refuse it with its place."""
    try:
        return parse(part.text(""))
    except ValueError as error:
        if isinstance(error, InvalidInstance):
            raise
        part.refuse(str(error))


def tres_amounts(part: Part) -> dict[str, float]:
    """Return limits by TRES, from a text or a list of slurmrestd; those that are not set, or infinite, are left out."""
    if not isinstance(part.value, list):
        return dict(parsed(part, tres))
    found = {}
    for each in part.items():
        kind, name = each["type"].text(), each.get("name").text("")
        amount = count_or_inf(each["count"])
        if amount < math.inf:
            found[f"{kind}/{name}" if name else kind] = amount
    return found


def count_or_inf(part: Part) -> float:
    """Return a limit of a number; inf: there is none."""
    value = None if part.value == -1 else number(part)
    return math.inf if value is None else value


def minutes(part: Part) -> float:
    """Return a length of time, of a table as days-hours:minutes:seconds, of JSON in minutes; inf: there is none."""
    if isinstance(part.value, str):
        length = seconds(part.value)
        if length is None:
            part.refuse(f'"{part.value[:40]}" is not a length of time such as 1-00:00:00')
        return length / 60
    return count_or_inf(part)
