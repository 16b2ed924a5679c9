"""Slurm's exports as text, read as records with the names that its JSON has.

========================================  ===============================================
``scontrol show nodes``                   ``NodeName=cn1 ...``, in blocks or one per line
``scontrol show partitions``              ``PartitionName=batch ...``
``scontrol show licenses``                ``LicenseName=ansys ...``
``scontrol show reservations``            ``ReservationName=course ...``
``sacctmgr -P show assoc [tree]``         a table with ``|`` between columns
``sacctmgr -P show qos``                  the same
``sshare -a -l -P``                       the same; an account is indented below its parent
========================================  ===============================================

A `Record` gives the fields of a line under the names of the JSON, and names the line and the field of the text in messages.

>>> node = blocks("NodeName=cn1 CPUTot=64\\n   RealMemory=many\\n", "nodes.txt", "NodeName")[0]
>>> node["name"].text(), node["cpus"].number()
('cn1', 64.0)
>>> node["real_memory"].number()
Traceback (most recent call last):
fairopt.errors.InvalidInstance: nodes.txt, line 1: RealMemory: expected a number, found the text "many"
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fairopt.clusters.json_export import Part
from fairopt.errors import InvalidInstance
from fairopt.wording import plural

__all__ = ["ASSOCIATIONS", "LIMITS", "NOTHING", "OVER_TIME", "PARENT", "QOS", "Record", "blocks", "others_in", "table", "tree", "value_of"]

PARENT = 0x7FFFFFFF  # shares_raw of an association that uses those of its parent
NOTHING = ("(null)", "N/A", "n/a", "None", "None assigned", "Unknown", "UNLIMITED")
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_FIELDS = {  # of scontrol: the name in the text, the name in the JSON
    "NodeName": "name",
    "CPUTot": "cpus",
    "CPUEfctv": "effective_cpus",
    "CPUAlloc": "alloc_cpus",
    "RealMemory": "real_memory",
    "MemSpecLimit": "specialized_memory",
    "ThreadsPerCore": "threads",
    "Gres": "gres",
    "State": "state",
    "Partitions": "partitions",
    "AvailableFeatures": "features",
    "ActiveFeatures": "active_features",
    "PartitionName": "name",
    "Nodes": "nodes",
    "DefMemPerCPU": "default_memory_per_cpu",
    "DefMemPerNode": "default_memory_per_node",
    "MaxCPUsPerNode": "maximum_cpus_per_node",
    "PriorityTier": "priority_tier",
    "PreemptMode": "preemption_mode",
    "OverSubscribe": "oversubscribe",
    "Shared": "oversubscribe",
    "QoS": "qos",
    "ReservationName": "reservation",
    "StartTime": "start_time",
    "EndTime": "end_time",
    "Flags": "flags",
    "TRES": "tres",
    "Users": "users",
    "Groups": "groups",
    "Accounts": "accounts",
    **{name: name for name in ("LicenseName", "Total", "Reserved", "LastDeficit")},
}
ASSOCIATIONS = {  # columns of sacctmgr and sshare
    "cluster": "cluster",
    "account": "account",
    "user": "user",
    "partition": "partition",
    "share": "shares_raw",
    "rawshares": "shares_raw",
    "par name": "parent_account",
    "parentname": "parent_account",
    "grptres": "grp_tres",
    "grpjobs": "grp_jobs",
    "maxjobs": "max_jobs",
    "maxtres": "max_tres",
    "maxtrespj": "max_tres",
    "maxtresperjob": "max_tres",
    "maxtrespernode": "max_tres_per_node",
    "maxtrespn": "max_tres_per_node",
    "maxwall": "max_wall",
    "maxwalldurationperjob": "max_wall",
}
OVER_TIME = ("GrpTRESMins", "GrpTRESRunMins", "GrpWall", "MaxTRESMins")
"""Columns of associations that are budgets over time."""
ASSOCIATIONS |= {name.lower(): name for name in OVER_TIME}
QOS = {  # columns of sacctmgr show qos
    "name": "name",
    "priority": "priority",
    "preempt": "preempt",
    "flags": "flags",
    "grptres": "GrpTRES",
    "maxtrespu": "MaxTRESPU",
    "maxtresperuser": "MaxTRESPU",
    "maxtrespa": "MaxTRESPA",
    "maxtresperaccount": "MaxTRESPA",
    "maxtres": "MaxTRES",
    "maxtrespj": "MaxTRES",
    "maxtresperjob": "MaxTRES",
    "maxtrespernode": "MaxTRESPerNode",
    "maxtrespn": "MaxTRESPerNode",
    "maxwall": "MaxWall",
    "grpjobs": "GrpJobs",
    "maxjobspu": "MaxJobsPU",
    "maxjobsperuser": "MaxJobsPU",
    "maxjobspa": "MaxJobsPA",
    "maxjobsperaccount": "MaxJobsPA",
    "mintres": "MinTRES",
    "mintrespj": "MinTRES",
    "grptresmins": "GrpTRESMins",
    "grptresrunmins": "GrpTRESRunMins",
    "grpwall": "GrpWall",
    "maxtresmins": "MaxTRESMins",
    "maxtresrunminspu": "MaxTRESRunMinsPU",
    "maxtresrunminspa": "MaxTRESRunMinsPA",
    "usagethres": "UsageThres",
}
LIMITS = {  # columns of tables without which limits are missing, by their names in the JSON
    "associations": {"grp_tres": "GrpTRES", "grp_jobs": "GrpJobs", "max_jobs": "MaxJobs", "max_tres": "MaxTRES", "max_wall": "MaxWall"},
    "qos": {
        **{
            name: name
            for name in ("GrpTRES", "GrpJobs", "MaxTRESPU", "MaxJobsPU", "MaxTRESPA", "MaxJobsPA", "MaxTRES", "MinTRES", "MaxWall")
        },
        "preempt": "Preempt",
        "flags": "Flags",
    },
}
_NUMBERS = {
    "cpus",
    "effective_cpus",
    "alloc_cpus",
    "real_memory",
    "specialized_memory",
    "default_memory_per_cpu",
    "default_memory_per_node",
    "maximum_cpus_per_node",
    "priority_tier",
}
_NUMBERS |= {"grp_jobs", "max_jobs", "priority", "GrpJobs", "MaxJobsPU", "MaxJobsPA"}
_NUMBERS |= {"shares_raw", "tasks", "threads", "Total", "Reserved", "LastDeficit"}


_ANY = re.compile(r"(?<!\S)([A-Za-z][\w:/]*)=(\S*)")
_FREE = re.compile(r"(?<!\S)(?:OS|Reason|Comment|AdminComment|SystemComment|Extra|JobName|Command|WorkDir|Std\w+|SubmitLine)=\S*")


class Record(Part):
    """Fields of a line of text, under the names that the JSON has; messages name them as the text does.

    Parameters
    ----------
    fields : mapping
        The value of each field, and its name in the text, by its name in the JSON.
    file : str
    line : int
    others : mapping, optional
        The texts of the other fields, by their names in the text.
    """

    __slots__ = ("names", "others")

    def __init__(self, fields: Mapping[str, tuple[Any, str]], file: str, line: int, others: Mapping[str, str] | None = None) -> None:
        super().__init__({key: value for key, (value, _) in fields.items()}, f"{file}, line {line}")
        self.names = {key: name for key, (_, name) in fields.items()}
        self.others = others or {}

    def get(self, key: str) -> Part:
        """As of a Part."""
        return Part(self.value.get(key), self.file, self, self.names.get(key, key))


def value_of(key: str, text: str) -> Any:
    """Return what a text says: None where it says nothing, a whole number where the field is one."""
    text = text.strip()
    if not text or text in NOTHING:
        return None
    return int(text) if key in _NUMBERS and _WHOLE.fullmatch(text) else text


def blocks(text: str, file: str, first: str) -> list[Part]:
    """Return the records of ``scontrol show``; each begins with the field ``first``.

    Values may have spaces (``OS``, ``Reason``), so only known fields are looked for; the first of a name counts.
    """
    known = re.compile(rf"(?<!\S)({'|'.join(map(re.escape, _FIELDS))})=(\S*)")
    found: list[tuple[int, dict[str, tuple[Any, str]], dict[str, str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(f"{first}="):
            found.append((number, {}, {}))
        if found:
            for name, value in known.findall(line):
                key = _FIELDS[name]
                found[-1][1].setdefault(key, (value_of(key, value), name))
            found[-1][2].update(others_in(line, _FIELDS))
    missing = {key: (None, name) for name, key in _FIELDS.items()}
    return [Record(missing | fields, file, number, others) for number, fields, others in found]


def others_in(line: str, known: Collection[str]) -> dict[str, str]:
    """Return the texts of fields that are not known, but for what follows a text of people, which may look like fields.

    >>> others_in("   Weight=10 Owner=N/A Comment=use a=b", ["State"])
    {'Weight': '10', 'Owner': 'N/A', 'Comment': 'use'}
    """
    free = _FREE.search(line)
    line = line if free is None else line[: free.end()]
    return {name: value for name, value in _ANY.findall(line) if name not in known}


def table(text: str, file: str, command: str, columns: Mapping[str, str], needed: Sequence[str] = ()) -> list[Part]:
    """Return the rows of a table with ``|`` between its columns, whose first line names them.

    Parameters
    ----------
    command : str
        Makes such a table, for messages.
    columns : mapping
        The name in the JSON of each column that is read, by its name in small letters: `ASSOCIATIONS`.
    needed : sequence of str
        Columns that must be there, or others of the same meaning.

    Raises
    ------
    InvalidInstance
        A column is missing, or a row has another number of cells than the first line.
    """
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    head = [name.strip() for name in lines[0][1].split("|")]
    there = {columns.get(name.lower()) for name in head}
    for name in needed:
        if columns[name.lower()] not in there:
            raise InvalidInstance(f'{file}, line {lines[0][0]}: there is no column "{name}"; export it again: {command}')
    records: list[Part] = []
    for number, line in lines[1:]:
        cells = line.split("|")
        if len(cells) != len(head):
            raise InvalidInstance(
                f"{file}, line {number}: {plural(len(cells), 'cell')} for {plural(len(head), 'column')}; export it again: {command}"
            )
        fields: dict[str, tuple[Any, str]] = {}
        others: dict[str, str] = {}
        for name, cell in zip(head, cells, strict=True):
            key = columns.get(name.lower())
            if key is None:
                others[name] = cell
            if key == "account":
                fields["depth"] = (len(cell) - len(cell.lstrip()), "depth")
            if key is not None:
                fields[key] = (PARENT if key == "shares_raw" and cell.strip() == "parent" else value_of(key, cell), name)
        records.append(Record(fields, file, number, others))
    return records


def tree(records: list[Part]) -> bool:
    """Give each account the parent that the indentation shows, and return whether the table shows any parents.

    >>> text = "Account|User|RawShares\\nroot||\\n physics||2\\n  optics||1\\n   optics|ada|1\\n"
    >>> rows = table(text, "sshare.txt", "sshare -a -l -P", ASSOCIATIONS)
    >>> tree(rows), [row["parent_account"].text() for row in rows if "parent_account" in row]
    (True, ['root', 'physics'])
    """
    if any("parent_account" in record for record in records):
        return True
    above: list[tuple[int, str]] = []  # accounts on the way down to the present line
    for record in records:
        if record.get("user").text(""):
            continue
        account, depth = record["account"].text(), record.value["depth"]
        while above and above[-1][0] >= depth:
            above.pop()
        if above:
            record.value["parent_account"] = above[-1][1]
        above.append((depth, account))
    return any("parent_account" in record for record in records)
