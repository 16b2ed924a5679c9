"""The cluster of a log of ``sacct``, from ``scontrol show nodes`` and the associations, without an import.

A history asks what was there, not what could start now. So all nodes count, drained and reserved ones too, and all that they have, whoever
asks for it today; and every account and user of the log has its place in the tree of the associations, whether it has jobs today or not.
Without the associations, the owners of the log are beside each other with weight 1.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.queue_tree import on_rows
from fairopt.clusters.shapes import natural
from fairopt.errors import InvalidInstance
from fairopt.instance import BoolArray, Instance
from fairopt.slurm.jobs import Job, read_job
from fairopt.slurm.licenses import Licenses, read_licenses
from fairopt.slurm.named_limits import NamedLimits
from fairopt.slurm.nodes import Node, read_node
from fairopt.slurm.pieces import card_type
from fairopt.slurm.queues import Associations
from fairopt.slurm.reading import read_records
from fairopt.slurm.sacct import Sacct
from fairopt.slurm.sacct_log import Places
from fairopt.slurm.shards import without_pieces
from fairopt.slurm.syntax import features
from fairopt.slurm.text import Record
from fairopt.wording import joined, named, plural

__all__ = ["cluster_of_log", "with_associations"]


def cluster_of_log(
    table: Sacct,
    nodes: str | os.PathLike[str],
    associations: str | os.PathLike[str] | None = None,
    licenses: str | os.PathLike[str] | None = None,
    *,
    users: str = "user",
    lenient: bool = False,
) -> tuple[Instance, Places, tuple[str, ...]]:
    """Return the cluster of a log, where its jobs may run, and notes on it.

    Parameters
    ----------
    table : Sacct
        The log: its accounts and users.
    nodes, associations, licenses : paths
        As `fairopt.import_slurm` takes them. Licences are named limits.
    users : {"user", "account"}
        The owners that the history compares.

    Raises
    ------
    InvalidInstance
        With the file and the place in it: what is wrong, and what to do.
    """
    account = Account(lenient)
    listed = without_pieces(account.unique(account.read(read_records(nodes, "nodes"), read_node, "node"), "node"))
    listed.sort(key=lambda node: natural(node.name))
    has = Counter(name for node in listed for name, amount in node.offers.items() if amount)
    if not has:
        raise InvalidInstance(f"{Path(nodes)}: no node has anything to share; export them again: scontrol show nodes > nodes.txt")
    resources = ["cpu", "memory", *sorted(set(has) - {"cpu", "memory"})]
    resources = [name for name in resources if name in has]
    licensed = Licenses(read_licenses(licenses, account), licenses, resources, account)
    jobs = _jobs_of(table)
    rows = _rows(listed, resources)
    servers = [f"{own[0].name} +{len(own) - 1}" if len(own) > 1 else own[0].name for own in rows]
    row_of = {node.name: server for server, own in zip(servers, rows, strict=True) for node in own}
    tree = None if associations is None else Associations(associations, jobs, licensed.resource, account)
    if tree is None:
        label = [f"{job.account}/{job.user}" if users == "user" else job.account for job in jobs]
        labels = list(dict.fromkeys(label))
        queue_of, queues = None, []
    else:
        forest = tree.forest(jobs, users, listed, account)
        queues = [on_rows(queue, row_of, [*resources, *licensed.amounts]) for queue in forest.queues]
        labels = list(dict.fromkeys(tree.queue_of(job) for job in jobs))
        queue_of = labels
    columns = [*resources, *licensed.amounts]
    cluster = Instance(
        np.array([[own[0].offers.get(name, 0.0) for name in resources] for own in rows]),
        np.ones((len(labels), len(columns))),
        counts=[len(own) for own in rows],
        hosts=[[node.name for node in own] for own in rows],
        shared=licensed.amounts,
        users=labels,
        servers=servers,
        resources=columns,
        queues=queues,
        queue_of=queue_of,
    )
    if tree is not None:
        named = NamedLimits({}, {}, tree, licensed.resource, listed, account)
        cluster = cluster.replace(limits=named.over(cluster, [""] * len(labels), {}))
    return cluster, _places(rows), tuple(account.notes)


def with_associations(
    cluster: Instance, table: Sacct, associations: str | os.PathLike[str], *, users: str = "user"
) -> tuple[Instance, tuple[str, ...]]:
    """Return a cluster that has every account and user of a log where the associations have them, and notes.

    What the cluster lists stays as it is there.
    """
    account, jobs = Account(False), _jobs_of(table)
    tree = Associations(associations, jobs, {}, account)
    there = {queue.name for queue in cluster.queues}
    new = [on_rows(queue, {}, cluster.resources) for queue in tree.forest(jobs, users, [], account).queues if queue.name not in there]
    if new:
        some = joined([named(queue.name) for queue in new], 3)
        account.note(
            f"the cluster does not list {plural(len(new), 'account or user', 'accounts and users')} ({some}): as in {associations}"
        )
    return cluster.replace(queues=[*cluster.queues, *new]), tuple(account.notes)


def _places(rows: list[list[Node]]) -> Places:
    """Return where jobs may run, and the pieces of cards: nodes of a row have the same partitions, types and features."""

    def allowed(partition: str, constraints: str, types: Sequence[str]) -> BoolArray:
        named = set(filter(None, partition.split(",")))
        try:
            met = features(constraints) if constraints else lambda has: True
        except ValueError:  # of counts of nodes, which a row does not have
            met = lambda has: True  # noqa: E731
        wanted = {card_type(name.removeprefix("gres/")) for name in types}
        return np.array(
            [
                (not named or not node.partitions or bool(named & set(node.partitions))) and met(node.features) and wanted <= node.types
                for node in (own[0] for own in rows)
            ],
            bool,
        )

    return Places(allowed, {node.name: node.pieces for own in rows for node in own if node.pieces})


def _jobs_of(table: Sacct) -> list[Job]:
    """Return a job of each account, user and partition of the log: whose jobs there are, and no more."""
    columns = [table.columns.get(name) for name in ("cluster", "account", "user", "partition")]
    cells: Any = [np.full(len(table.lines), "", object) if column is None else column for column in columns]
    found = dict.fromkeys(zip(*(each.tolist() for each in cells), strict=True))
    one: dict[str, Any] = {"job_id": "1", "job_state": "COMPLETED"}
    names = ("cluster", "account", "user_name", "partition")
    jobs = []
    for row in found:
        fields = {key: (value, key) for key, value in (one | dict(zip(names, row, strict=True))).items()}
        job = read_job(Record(fields, str(table.path), 1), "user")
        jobs.append(replace(job, account=row[1] or "(no account)", user=row[2] or "(no user)"))
    return jobs


def _rows(nodes: list[Node], resources: list[str]) -> list[list[Node]]:
    """Return nodes that have the same, together."""
    alike: dict[tuple[Any, ...], list[Node]] = {}
    for node in nodes:
        key = (*(node.offers.get(name, 0.0) for name in resources), tuple(sorted(node.types)), tuple(sorted(node.partitions)))
        key = (*key, tuple(sorted(node.features)))
        alike.setdefault(key, []).append(node)
    return list(alike.values())
