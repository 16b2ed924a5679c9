"""What makes it doubtful whether exports of Slurm say all: states that nobody knows, jobs that are hidden, columns that are missing.

Who is no operator may see only a part of a cluster (``PrivateData`` in slurm.conf): the own jobs, accounts and nodes. The exports do not
say so; but nodes say how many of their CPUs are in use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.slurm.jobs import Job
from fairopt.slurm.nodes import Node, Partition
from fairopt.slurm.syntax import finite
from fairopt.slurm.text import Record
from fairopt.wording import figure, joined, named, plural

__all__ = ["note_hidden_jobs", "note_missing_columns", "note_missing_nodes", "note_qos", "note_states"]

_MOST = 5  # names in a note
_HIDDEN = 0.2  # more in use than jobs hold, by this part: moments of two exports differ by less


def note_states(nodes: Iterable[Node], account: Account) -> None:
    """Say which states of nodes are not known, and how many nodes say none."""
    for state, number in Counter(state for node in nodes for state in node.strange).items():
        what = f"the state {named(state)}, which is not known" if state else "no state"
        account.note(f"{plural(number, 'node has', 'nodes have')} {what}: counted as accepting work, as far as it says nothing else")


def note_hidden_jobs(nodes: Sequence[Node], jobs: Iterable[Job], account: Account) -> None:
    """Say if nodes have more CPUs in use than the jobs hold."""
    used = sum(finite(node.part.get("alloc_cpus")) for node in nodes)
    there = {node.name for node in nodes}
    held = 0.0
    for job in jobs:
        if job.holds:
            cpus = (job.request.amounts if job.given is None else job.given).get("cpu", 0.0)
            held += cpus * sum(share for name, share in job.on.items() if name in there)
    if used > held * (1 + _HIDDEN) and used - held >= 1:
        account.note(
            f"nodes say that {figure(used)} CPUs are in use, and the jobs hold {figure(held)}: jobs may be hidden from who exported them "
            "(PrivateData), or nodes and jobs are of different times; export both at once, as an operator"
        )


def note_missing_nodes(partitions: Mapping[str, Partition], nodes: Collection[str], account: Account) -> None:
    """Say how many nodes of partitions are not among the nodes."""
    missing = set().union(*(each.nodes for each in partitions.values())) - set(nodes)
    if missing:
        account.note(
            f"{plural(len(missing), 'node')} of partitions ({joined(sorted(missing), 3)}) {'is' if len(missing) == 1 else 'are'} not among "
            "the nodes: they do not count; nodes may be hidden from who exported them (PrivateData)"
        )


def note_missing_columns(records: Sequence[Part], what: str, needed: Mapping[str, str], account: Account) -> None:
    """Say which limits a table has no column for; ``needed`` are the names of columns in Slurm by those in the JSON."""
    if not records or not isinstance(records[0], Record):
        return
    missing = [name for key, name in needed.items() if key not in records[0].names]
    if missing:
        account.note(f"the {what} have no columns {joined(missing, 8)}: what these say does not count")


def note_qos(jobs: Sequence[Job], member: Mapping[str, Partition], listed: Collection[str] | None, account: Account) -> None:
    """Say which QOS of jobs may limit them, where the limits of these are not known; ``listed``: the QOS that are, None: no table is given.

    Without a table, the QOS that every job has unless it asks for another, ``normal``, is no reason to say so.
    """
    names = Counter(name for job in jobs for name in {job.qos, member[job.partition].qos if job.partition in member else ""} if name)
    if listed is None:
        if set(names) - {"normal"}:
            account.note(
                f"{plural(sum(names.values()), 'job is', 'jobs are')} in the QOS {joined(sorted(names), _MOST)}, whose limits do not "
                "count: they are in sacctmgr -P show qos (--qos)"
            )
        return
    strange = {name: number for name, number in names.items() if name not in listed}
    if strange:
        account.note(
            f"{plural(sum(strange.values()), 'job is', 'jobs are')} in the QOS {joined(sorted(strange), _MOST)}, which the table of QOS "
            "does not have: limits of these do not count; export it again: sacctmgr -P show qos"
        )
