"""Jobs of PBS: whose they are, what they do now, and their chunks as tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairopt.clusters.json_export import Part
from fairopt.clusters.pbs.nodes import truth
from fairopt.clusters.pbs.reading import is_true, number_of, parsed, text_of
from fairopt.clusters.pbs.syntax import SAYS_NOTHING, Chunk, amount, chunks, indices, renamed, select_of_nodes, state_counts, vnodes_of

__all__ = ["OWNERS", "Job", "Task", "chunks_of", "one_chunk", "owners_of", "packed", "read_job", "tasks_of", "wide_of"]

OWNERS = ("user", "group", "project", "account", "queue")
_HOLDS, _WAITS, _SUSPENDED, _ARRAY = ("R", "E"), ("Q",), ("S", "U"), "B"
_WHY = {
    "H": "held: it could not start",
    "W": "waits for a time: it could not start",
    "T": "is being moved to another queue or server",
    "M": "moved to another server",
    "X": "ended: holds nothing and asks for nothing",
    "F": "ended: holds nothing and asks for nothing",
    "C": "ended: holds nothing and asks for nothing",
}
_TIMES = ("walltime", "cput", "pcput", "min_walltime", "max_walltime", "soft_walltime")
_OF_ONE = ("mem", "vmem", "pmem", "pvmem", "ncpus", "ngpus")  # of the chunks, together
_NOT_WIDE = {*_TIMES, *_OF_ONE, "place", "select", "schedselect", "nodect", "nodes", "nice", "file", *SAYS_NOTHING}
_SUBJOB = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Job:
    """A job, an array that stands for its subjobs, or a subjob.

    Attributes
    ----------
    name : str
    whose : dict
        Its user, group, project, account and queue.
    suspended : bool
    why : str
        Why it is not demand; else empty.
    select, place : str
        As PBS has them.
    wide : dict
        What it asks for of the cluster as a whole, beside its chunks.
    exec : list
        What each of its chunks holds, by vnode.
    array : str
        The array that it is, or that it is a subjob of; else empty.
    is_array : bool
    waiting, running : float
        How many jobs it stands for that wait, and that hold what they were given.
    at_once : float
        How many subjobs of the array may run at once; 0: any number.
    """

    part: Part
    name: str
    whose: dict[str, str]
    suspended: bool
    why: str
    select: str
    place: str
    wide: dict[str, float]
    exec: list[list[tuple[str, dict[str, float]]]]
    array: str
    is_array: bool
    waiting: float
    running: float
    at_once: float

    @property
    def where(self) -> str:
        """Its place in the file, for messages."""
        return f"{self.part.place} (job {self.name})"


@dataclass(frozen=True, slots=True)
class Task:
    """Tasks of a job that are alike: how many, what each demands, the words that its host must have, and the vnodes on which they run."""

    number: int
    amounts: dict[str, float]
    words: dict[str, str]
    on: tuple[str, ...] = ()


def read_job(part: Part) -> Job:
    """Read a job."""
    state = part["job_state"].text().strip().upper()
    if state not in (*_HOLDS, *_WAITS, *_SUSPENDED, _ARRAY, *_WHY):
        part["job_state"].refuse(f'there is no state "{state[:20]}" of a job; the version of this export may be newer')
    name = str(part.key)
    is_array = is_true(part.get("array"), False)
    of_array = text_of(part.get("array_id"), "") or (_SUBJOB.sub("[]", name, count=1) if _SUBJOB.search(name) else "")
    holds = state in _HOLDS and not is_array
    waiting, running = float(not holds), float(holds)
    if is_array:
        of_array = name
        counts = parsed(part["array_state_count"], state_counts) if "array_state_count" in part else {}
        remaining = part.get("array_indices_remaining")
        listed = remaining if text_of(remaining, "").strip() not in ("", "-") else part.get("array_indices_submitted")
        waiting = float(counts["queued"] if "queued" in counts else parsed(listed, indices) if text_of(listed, "") else 0)
        running = float(counts.get("running", 0) + counts.get("exiting", 0))
    asked = part.get("Resource_List")
    given = part.get("exec_vnode")
    return Job(
        part=part,
        name=name,
        whose=owners_of({key: text_of(each) for key, each in part.entries().items() if key in _WHOSE and each.value is not None}),
        suspended=state in _SUSPENDED,
        why=_WHY.get(state, ""),
        select=_select(part.get("schedselect") if "schedselect" in part else asked.get("select"), asked),
        place=text_of(asked.get("place"), "").lower(),
        wide=wide_of({name: text_of(each) for name, each in asked.entries().items() if isinstance(each.value, str | int | float)}),
        exec=parsed(given, vnodes_of) if holds and given.value is not None else [],
        array=of_array,
        is_array=is_array,
        waiting=waiting,
        running=running,
        at_once=number_of(part.get("max_run_subjobs"), 0.0),
    )


_WHOSE = ("euser", "Job_Owner", "egroup", "group_list", "project", "Account_Name", "queue")


def owners_of(fields: Mapping[str, str]) -> dict[str, str]:
    """Return whose a job is, by kind of owner.

    >>> owners_of({"Job_Owner": "ann@login1", "queue": "short"})["user"]
    'ann'
    """
    return {
        "user": fields.get("euser") or fields.get("Job_Owner", "").partition("@")[0] or "(no user)",
        "group": fields.get("egroup") or fields.get("group_list", "").partition("@")[0] or "(no group)",
        "project": fields.get("project") or "(no project)",
        "account": fields.get("Account_Name") or "(no account)",
        "queue": fields.get("queue") or "(no queue)",
    }


def _select(part: Part, asked: Part) -> str:
    """Return the chunks of a job; one of CPUs, memory and GPUs in all where it states none, nor nodes in the older way."""
    if part.value is not None:
        text = text_of(part)
        parsed(part, chunks)
        return text
    if asked.get("nodes").value is not None:
        return str(parsed(asked["nodes"], select_of_nodes))
    return one_chunk({name: text_of(each) for name, each in asked.entries().items() if name in _OF_ONE and each.value is not None})


def one_chunk(asked: Mapping[str, str]) -> str:
    """Return the chunk of a job that states none: what it asks for in all.

    >>> one_chunk({"ncpus": "4", "mem": "8gb", "walltime": "01:00:00"})
    '1:mem=8gb:ncpus=4'
    """
    return ":".join(["1", *(f"{name}={asked[name]}" for name in _OF_ONE if name in asked)])


def wide_of(asked: Mapping[str, str]) -> dict[str, float]:
    """Return the amounts that a job asks for beside its chunks."""
    found = {renamed(name): amount(text, name) for name, text in asked.items() if name not in _NOT_WIDE}
    return {name: number for name, number in found.items() if number}


def tasks_of(job: Job, defaults: Mapping[str, str], learned: Sequence[Mapping[str, float]] = ()) -> list[Task]:
    """Return the tasks of a job: a chunk is a task, and a job whose chunks lie on one host (``place=pack``) is one.

    Parameters
    ----------
    defaults : mapping
        What a chunk has that does not state it.
    learned : sequence of mappings
        What each chunk of another job with the same chunks was given.
    """
    return packed(chunks_of(job.select, job.exec, defaults, learned), job.place)


def packed(found: list[Task], place: str) -> list[Task]:
    """Return the tasks of a job whose chunks are these: one, if they must lie on one host."""
    if "pack" in place.split(":") and sum(task.number for task in found) > 1:
        amounts: dict[str, float] = {}
        words: dict[str, str] = {}
        for task in found:
            words |= task.words
            for name, each in task.amounts.items():
                amounts[name] = amounts.get(name, 0.0) + task.number * each
        return [Task(1, amounts, words, found[0].on[:1])]
    return found


def chunks_of(
    select: str,
    given: Sequence[Sequence[tuple[str, Mapping[str, float]]]],
    defaults: Mapping[str, str],
    learned: Sequence[Mapping[str, float]] = (),
) -> list[Task]:
    """Return the chunks of a job as tasks; where it runs, what they were given counts, else what they ask for."""
    stated = [_with_defaults(chunk, defaults) for chunk in chunks(select)]
    total = sum(chunk.number for chunk in stated)
    held: list[tuple[str, dict[str, float]]] = []
    for vnodes in given:
        amounts: dict[str, float] = {}
        for _, each in vnodes:
            for name, number in each.items():
                amounts[name] = amounts.get(name, 0.0) + number
        held.append((vnodes[0][0], amounts))
    if held and len(held) != total:  # chunks were released, or are stated in another way
        return [Task(1, amounts, {}, (vnode,)) for vnode, amounts in held]
    result, position = [], 0
    for chunk in stated:
        words = {name: truth(word) for name, word in chunk.words.items()}
        if not held:
            amounts = dict(learned[position]) if len(learned) == total else chunk.amounts
            result.append(Task(chunk.number, amounts, words))
        else:
            alike: dict[tuple[tuple[str, float], ...], list[str]] = {}
            for vnode, amounts in held[position : position + chunk.number]:
                alike.setdefault(tuple(sorted((chunk.amounts | amounts).items())), []).append(vnode)
            result += [Task(len(on), dict(key), words, tuple(on)) for key, on in alike.items()]
        position += chunk.number
    return result


def _with_defaults(chunk: Chunk, defaults: Mapping[str, str]) -> Chunk:
    """Return a chunk with what it does not state: by default a CPU."""
    amounts, words = dict(chunk.amounts), dict(chunk.words)
    for name, value in {"ncpus": "1", **defaults}.items():
        if name in SAYS_NOTHING or renamed(name) in amounts or name in words:
            continue
        number = amount(value, name)
        if number is None:
            words[name] = value.lower()
        else:
            amounts[renamed(name)] = number
    return Chunk(chunk.number, amounts, words)
