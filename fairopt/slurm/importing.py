"""A Slurm cluster, from its JSON (21.08 to 25.11, of commands and of slurmrestd) or from the text of ``scontrol`` and ``sacctmgr``.

**Nodes** (``scontrol show nodes``, ``sinfo --json``). CPUs as configured less those kept for the system, memory (``real_memory`` less
``specialized_memory``) in GiB, and a resource for each generic one (``gpu``). A node that is down, drained, failing or not responding
offers nothing; jobs on it count as demand, but not as running.

**Jobs** (``squeue --json``). Running, configuring and suspended jobs hold what they were allocated (``tres_alloc_str``); what they ask for
(``tres_req_str``, ``tres_per_*``) says which types of GPU they need. Pending ones demand what :mod:`fairopt.slurm.sizes` says. An
array counts once for each of its remaining tasks, as far as its limit (``--array=1-20%2``) lets them run at once. A job that is held or
waits for another job is not demand. The components of a heterogeneous job count as jobs of their own.

**Pieces of GPUs** (``gres/shard``, ``gres/mps``) and their GPUs are one device: :mod:`fairopt.slurm.pieces`.

**Where.** The partitions of the job (a node lists its own; ``partitions`` adds those that another answer lists), unless they are left out;
its features with ``&``, ``|`` and parentheses, the types of its GPUs, required and excluded nodes.

**Queues.** With the associations, every account is a queue in the account above it, every user of an account is a queue in it
(``account/user``), and the shapes of its jobs are users of the instance. Shares are the weight of a queue among the queues beside it,
``GrpTRES`` its limit. Slurm knows no guarantees. Without the associations, every owner is a queue of weight 1.

**Tiers** are of QOS that preempt others, and of partitions of a higher ``PriorityTier``: :mod:`fairopt.slurm.tiers`.

**Limits of a QOS** (``sacctmgr -P show qos``) and of numbers of jobs are named limits: :mod:`fairopt.slurm.named_limits`.

**Reservations**, maintenance included, keep nodes for their jobs: :mod:`fairopt.slurm.reservations`.

**Licences** (``scontrol show licenses``) are named limits, ``license/ansys``, or resources of the cluster: :mod:`fairopt.slurm.licenses`.

**Over time.** With ``sacct`` and a window, what is held is an average: :mod:`fairopt.slurm.sacct_window`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.assembly import Demand, Nodes, assemble
from fairopt.clusters.fields import Seen
from fairopt.clusters.imported import Import
from fairopt.clusters.queue_tree import Forest
from fairopt.clusters.running import Name
from fairopt.clusters.shapes import SOMEWHERE, Tasks
from fairopt.clusters.speeds import Speeds, read_speeds
from fairopt.errors import InvalidInstance
from fairopt.instance import BoolArray
from fairopt.instance.queues import Queue
from fairopt.slurm.doubts import note_hidden_jobs, note_missing_columns, note_missing_nodes, note_qos, note_states
from fairopt.slurm.fields import ASSOCIATION, JOB, LICENSE, NODE, PARTITION, QOS, RESERVATION, seeing
from fairopt.slurm.jobs import Job, read_job
from fairopt.slurm.licenses import Licenses, read_licenses
from fairopt.slurm.named_limits import NamedLimits
from fairopt.slurm.nodes import Node, Partition, allowed_nodes, read_node, read_partitions, total_tres
from fairopt.slurm.own_limits import OwnLimits
from fairopt.slurm.policies import note_policies, with_whole_nodes
from fairopt.slurm.qos import read_qos, tiers_of
from fairopt.slurm.queues import Associations
from fairopt.slurm.reading import read_records
from fairopt.slurm.reservations import Reservations
from fairopt.slurm.sacct_window import average_jobs
from fairopt.slurm.shards import Shards, without_pieces
from fairopt.slurm.sizes import Size, Sizes
from fairopt.slurm.text import LIMITS
from fairopt.slurm.tiers import Tiers, partition_tiers
from fairopt.wording import joined, plural

__all__ = ["import_slurm"]


@keeps_question
def import_slurm(
    nodes: str | os.PathLike[str],
    jobs: str | os.PathLike[str],
    associations: str | os.PathLike[str] | None = None,
    partitions: str | os.PathLike[str] | None = None,
    *,
    licenses: str | os.PathLike[str] | None = None,
    qos: str | os.PathLike[str] | None = None,
    reservations: str | os.PathLike[str] | None = None,
    speeds: str | os.PathLike[str] | None = None,
    sacct: str | os.PathLike[str] | None = None,
    window: tuple[str, str] | None = None,
    users: str = "account",
    ignore_partitions: bool = False,
    count_licenses: bool = False,
    weights: Mapping[str, float] | None = None,
    demand: Demand = "shapes",
    lenient: bool = False,
) -> Import:
    """Make an instance of a Slurm cluster.

    Parameters
    ----------
    nodes : path
        ``scontrol show nodes``, as text or with ``--json`` (23.02 and later), ``sinfo --json`` (21.08 and later), or what slurmrestd
        answers.
    jobs : path
        ``squeue --json`` (21.08 and later), what slurmrestd answers, or ``scontrol show jobs`` as text.
    associations : path, optional
        The tree of accounts and users, their shares (weights) and ``GrpTRES`` (limits): ``sacctmgr -P show assoc tree``,
        ``sshare -a -l -P`` (which has no limits), or what slurmrestd answers. Without them all weights are 1.
    partitions : path, optional
        ``scontrol show partitions``, as text or with ``--json``: the nodes of each partition, where the nodes do not say, and the memory of
        jobs that name none.
    licenses : path, optional
        ``scontrol show licenses``, as text or with ``--json``. Without them the licences of jobs are left out.
    qos : path, optional
        ``sacctmgr -P show qos``, or what slurmrestd answers: limits of the jobs of a QOS (:mod:`fairopt.slurm.qos`), as named limits.
    reservations : path, optional
        ``scontrol show reservations``, as text or with ``--json`` (:mod:`fairopt.slurm.reservations`). Without them a node that is reserved
        is open to the jobs of the reservation that it names.
    speeds : path, optional
        A table of how much work a task does on nodes with a type of GPU or a feature (:mod:`fairopt.clusters.speeds`); default: 1. Slurm
        knows none: a job with ``--gpus=1`` takes whichever type its constraints allow.
    sacct : path, optional
        ``sacct -a -X -P -S START -E END -o JobID,Account,User,Partition,Start,End,AllocTRES,ReqTRES,NodeList,Constraints``. What is held is
        then the average over the window, not what runs at the moment of ``jobs``.
    window : (str, str), optional
        Start and end of that average, in local time: ``("2026-11-22T15:00:00", "2026-11-22T16:00:00")``.
    users : {"account", "user"}
        The owner of a job. The tree of the associations is the same for both.
    ignore_partitions : bool
        Let every job run on the nodes of all partitions: how fair could the cluster be without them?
    count_licenses : bool
        Make licences resources of the cluster (`Instance.shared`), which count in dominant shares, instead of named limits, which do not.
    weights : mapping, optional
        Weight by owner, instead of shares.
    demand : {"shapes", "mean"}
        A user for each queue and shape (exact), or one for each queue with the mean of its tasks (approximate).
    lenient : bool
        Leave bad records out and count them, instead of refusing the export.

    Raises
    ------
    InvalidInstance
        With the file and the place in it: what is wrong, and what to do.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> node = {"name": "cn1", "cpus": 64, "real_memory": 131072, "state": ["IDLE"], "partitions": ["batch"], "gres": "gpu:a100:4(S:0-3)"}
    >>> job = {"job_id": 7, "account": "physics", "user_name": "ada", "partition": "batch", "job_state": ["PENDING"],
    ...        "tres_req_str": "cpu=8,mem=16G,node=1,gres/gpu=1"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, data in (("nodes", [node]), ("jobs", [job])):
    ...         _ = Path(folder, name + ".json").write_text(json.dumps({name: data}))
    ...     imported = import_slurm(Path(folder, "nodes.json"), Path(folder, "jobs.json"))
    >>> imported.instance.resources, imported.instance.capacities, imported.instance.demands
    (('cpu', 'memory', 'gpu'), array([[ 64., 128.,   4.]]), array([[ 8., 16.,  1.]]))
    """
    if users not in ("account", "user"):
        raise InvalidInstance(f'users is "{users}"; give "account" or "user"')
    if (sacct is None) != (window is None):
        lacking = "a window to average over, such as 2026-11-22T15:00:00 2026-11-22T16:00:00" if window is None else "the export of sacct"
        raise InvalidInstance(f"an average needs the export of sacct and a window: give {lacking}, or neither")
    account = Account(lenient)
    seen = Seen()
    read = seeing(read_records(nodes, "nodes"), NODE, seen)
    listed = account.unique(account.read(read, read_node, "node"), "node")
    up: list[Node] = []
    for node in listed:
        if node.closed:
            account.leave_out("node", f"{node.part.place} ({node.name})", f"{node.closed}: offers nothing")
        else:
            up.append(node)
    reserved = Reservations(reservations, listed, account)
    limiting = read_qos(qos, account, total_tres(listed))
    member = read_partitions(listed, partitions)
    known = {node.name for node in listed}
    note_states(listed, account)
    note_missing_nodes(member, known, account)

    def checked(some: Iterable[tuple[Job, float]]) -> list[tuple[Job, float]]:
        good = [each for each in some if _is_known(each[0], known, member, nodes, account)]
        return [(replace(job, partitions=()), part) for job, part in good] if ignore_partitions else good

    read_jobs = account.read(seeing(read_records(jobs, "jobs"), JOB, seen), lambda part: read_job(part, users), "job")
    listed_jobs = account.unique(_of_one_cluster(read_jobs, listed, account), "job")
    states = Counter(job.state for job in listed_jobs)
    account.summary |= {"nodes": len(read), "jobs": len(listed_jobs), **{f"jobs {state}": n for state, n in states.items()}}
    licensed = read_licenses(licenses, account)
    own_limits = OwnLimits(limiting, member, licensed, associations, listed_jobs, account)
    able = own_limits.able(_able_to_run(_widened(listed_jobs), account), account)
    if not ignore_partitions:
        able = with_whole_nodes(able, member)
        note_policies(able, member, account)
    note_qos(able, member, None if qos is None else limiting, account)
    note_hidden_jobs(listed, listed_jobs, account)
    kept = checked((job, float(job.holds)) for job in able)
    asked = [job.copies for job, _ in kept]
    if sacct is not None and window is not None:
        ran = checked(average_jobs(sacct, window, [job for job, _ in kept], users, account))
        kept = [(job, 0.0) for job, _ in kept] + ran
        asked += [0.0] * len(ran)

    offered = reserved.offered(up, [job for job, _ in kept], account)
    allowed: dict[tuple[Any, ...], BoolArray] = {}
    place_of: list[tuple[Any, ...]] = [(job.constraints, reserved.key(job)) for job, _ in kept]
    for (job, _), place in zip(kept, place_of, strict=True):
        if place not in allowed:
            allowed[place] = allowed_nodes(job, offered, member, reserved.opens)
    all_sizes = Sizes((job for job, _ in kept), offered, member, account)
    on_nodes = [all_sizes.of(job, allowed[place]) for (job, _), place in zip(kept, place_of, strict=True)]
    all_sizes.note()
    shards = Shards(listed, account)
    anywhere, allowed = allowed, {}
    for j, (job, _) in enumerate(kept):
        pieces = shards.asked(job, on_nodes[j])
        place = (*place_of[j], pieces)
        if place not in allowed:
            allowed[place] = shards.where(pieces, anywhere[place_of[j]], offered)
        place_of[j] = place
    on_nodes = shards.sizes([job for job, _ in kept], on_nodes, [allowed[place] for place in place_of], offered)
    offered = without_pieces(offered)
    generic = sorted({name for size in on_nodes for name in size.demand} - {"cpu", "memory"})
    resources = ["cpu", "memory", *generic]
    of_cluster = Licenses(licensed, licenses, resources, account)
    sizes = of_cluster.sizes([job for job, _ in kept], on_nodes)
    index = {node.name: i for i, node in enumerate(offered)}
    running = []
    for j, (job, part) in enumerate(kept):
        if part:
            amount = part * sizes[j].tasks
            running += [(j, index[host], share * amount) for host, share in job.on.items() if host in index]
            running += [] if job.on else [(j, SOMEWHERE, amount)]
    names = None if sacct is not None else [_name(kept[j][0], sizes[j].tasks) for j, _, _ in running]
    _note_relaxations(kept, sizes, offered, index, account)

    columns = [*resources, *of_cluster.amounts]
    asking = [job for job, _ in kept]
    tiers = Tiers(tiers_of(limiting), {} if ignore_partitions else partition_tiers(asking, member, account))
    row = {place: j for j, place in enumerate(allowed)}
    tree = Associations(associations, listed_jobs, of_cluster.resource, account, tiers) if associations is not None else None
    shards.note({name for each in limiting.values() for some in each.limits for name in some.tres} | (tree.limited if tree else set()))
    named = NamedLimits(limiting, member, tree, of_cluster.resource, offered, account)
    queue = [tree.queue_of(job) for job in asking] if tree is not None else _queues_of_tiers(asking, tiers)
    whose = {} if queue is None else {name: (job.account, job.user) for name, (job, _) in zip(queue, kept, strict=True)}
    found = assemble(
        "slurm",
        Nodes([node.name for node in offered], np.array([[node.offers.get(r, 0.0) for r in resources] for node in offered])),
        Tasks(
            owner=[job.owner for job, _ in kept],
            demands=np.array([[size.demand.get(r, 0.0) for r in columns] for size in sizes]).reshape(-1, len(columns)),
            number=np.array([copies * size.tasks for copies, size in zip(asked, sizes, strict=True)], float),
            allowed=np.array(list(allowed.values()), bool).reshape(len(allowed), len(offered)),
            place=np.array([row[place] for place in place_of], int),
            where=[job.where for job, _ in kept],
            running=running,
            names=names,
            queue=queue,
            kind=[named.kind(job, size.tasks) for (job, _), size in zip(kept, sizes, strict=True)],
        ),
        account,
        units={r: {"cpu": "CPUs", "memory": "GiB"}.get(r, "") for r in columns},
        shared=of_cluster.amounts,
        forest=tree.forest(asking, users, offered, account) if tree is not None else _forest_of_tiers(asking, queue, tiers),
        own_weights=weights,
        demand=demand,
        what="job",
        speeds=None if speeds is None else _speeds(speeds, offered, {job.owner for job, _ in kept}, account, columns),
        limits=lambda instance, kinds: named.over(instance, kinds, whose),
    )
    others = (
        (partitions, "partitions", PARTITION),
        (associations, "associations", ASSOCIATION),
        (qos, "qos", QOS),
        (licenses, "licenses", LICENSE),
        (reservations, "reservations", RESERVATION),
    )
    for path, kind, fields in others:
        if path is not None:
            records = seeing(read_records(path, kind), fields, seen)
            note_missing_columns(records, kind if kind != "qos" else "QOS", LIMITS.get(kind, {}), account)
    found = found.with_instance(named.freed(found.instance))
    found = replace(found, notes=(*account.notes, *seen.notes()))
    return found if count_licenses or not of_cluster.amounts else of_cluster.as_limits(found)


def _name(job: Job, tasks: float) -> Name:
    """Return the name of a job for a plan: all its tasks stop together, and so do the components of a heterogeneous job."""
    gang = job.heterogeneous or (job.name if tasks > 1 or len(job.on) > 1 else "")
    return Name(job.name, gang)


def _speeds(path: str | os.PathLike[str], nodes: Sequence[Node], owners: set[str], account: Account, resources: Sequence[str]) -> Speeds:
    """Read a table of speeds: a kind is a type of generic resource or a feature, which are the attributes of a node, too."""
    kinds: dict[str, set[str]] = {}
    attributes: list[dict[str, str]] = []
    for node in nodes:
        generic = [kind.partition(":") for kind in sorted(node.types)]
        for word in (*node.features, *node.types, *(kind for _, _, kind in generic)):
            kinds.setdefault(word, set()).add(node.name)
        attributes.append(dict.fromkeys(sorted(node.features), "true") | {name: kind for name, _, kind in generic})
    return read_speeds(path, [node.name for node in nodes], kinds, attributes, owners, account, resources)


def _widened(jobs: list[Job]) -> list[Job]:
    """Give the tasks of an array the partitions of the array: a task that runs names only the partition in which it runs."""
    widest: dict[str, tuple[str, ...]] = {}
    for job in jobs:
        if job.array and len(job.partitions) > len(widest.get(job.array, ())):
            widest[job.array] = job.partitions
    return [replace(job, partitions=widest.get(job.array, job.partitions)) for job in jobs]


def _able_to_run(jobs: list[Job], account: Account) -> list[Job]:
    """Return the jobs that hold something or could, and leave out the others: tasks of an array beyond its limit, too."""
    at_once = {job.array: job.at_once for job in jobs if job.array and job.at_once}
    room = at_once | {array: at_once[array] - n for array, n in Counter(job.array for job in jobs if job.holds).items() if array in at_once}
    able = []
    for job in jobs:
        if job.why:
            account.leave_out("job", job.where, job.why)
            continue
        if not job.holds and job.array in room:
            copies = min(job.copies, max(room[job.array], 0.0))
            room[job.array] -= copies
            if copies < job.copies:
                why = f"beyond the limit of its array, %{at_once[job.array]:.0f}: waits for other tasks of the array"
                account.leave_out("job", job.where, why, job.copies - copies)
            job = replace(job, copies=copies)
        if job.copies:
            able.append(job)
    return able


def _queues_of_tiers(jobs: Sequence[Job], tiers: Tiers) -> list[str] | None:
    """Return the queue of each job where there are no associations and some jobs are in tiers above others; else None."""
    found = [tiers.queue_of(job.owner, job) for job in jobs]
    return [name for name, _ in found] if any(tier for _, tier in found) else None


def _forest_of_tiers(jobs: Sequence[Job], queues: Sequence[str] | None, tiers: Tiers) -> Forest | None:
    """Return queues of owners, with a queue in them for each tier."""
    if queues is None:
        return None
    owners = dict.fromkeys(job.owner for job in jobs)
    inner = dict.fromkeys((*tiers.queue_of(job.owner, job), job.owner) for job in jobs)
    found = [*map(Queue, owners), *(Queue(name, owner, tier=tier) for name, tier, owner in inner if tier)]
    return Forest(tuple(found), system="Slurm", of_owner={owner: (owner,) for owner in owners})


def _of_one_cluster(jobs: list[Job], nodes: Sequence[Node], account: Account) -> list[Job]:
    """Return the jobs of the cluster of the nodes, where the nodes say theirs; else refuse jobs of several clusters."""
    clusters = {job.part.get("cluster").text("") for job in jobs} - {""}
    own = {node.part.get("cluster_name").text("") for node in nodes} - {""}
    if len(clusters) < 2 or not own & clusters:
        if len(clusters) > 1:
            other = next(job for job in jobs if job.part.get("cluster").text("") != min(clusters))
            other.part.refuse(
                f"there are jobs of the clusters {joined(sorted(clusters), 3)}; export those of one, and its nodes: squeue --json "
                f"-M {min(clusters)}"
            )
        return jobs
    kept = []
    for job in jobs:
        cluster = job.part.get("cluster").text("")
        if cluster in own | {""}:
            kept.append(job)
        else:
            account.leave_out("job", job.where, f"of the cluster {cluster}, and the nodes are of {joined(sorted(own), 3)}", job.copies)
    return kept


def _is_known(job: Job, known: set[str], member: Mapping[str, Partition], nodes: str | os.PathLike[str], account: Account) -> bool:
    """Return whether the partitions of a job, and the nodes on which it runs, are those of this cluster."""
    unknown = next((partition for partition in job.partitions if partition not in member), None)
    strange = next((host for host in job.on if host not in known), None)
    if unknown is not None and len(member) > 0:
        where = job.part.get("partition").place
        account.bad("job", where, f'no node is in the partition "{unknown}"; export nodes and jobs of the same cluster')
    elif strange is not None:
        account.bad("job", job.part.get("nodes").place, f'runs on node "{strange}", which {nodes} does not list; export both again')
    else:
        return True
    return False


def _note_relaxations(
    kept: list[tuple[Job, float]], sizes: list[Size], offered: list[Node], index: Mapping[str, int], account: Account
) -> None:
    several = sum(size.several for size in sizes)
    if several:
        account.note(f"{plural(several, 'job')} on several nodes, divided into tasks that need not start together: a relaxation")
    suspended = sum(job.state == "SUSPENDED" for job, _ in kept)
    if suspended:
        jobs = plural(suspended, "suspended job keeps its", "suspended jobs keep their")
        account.note(f"{jobs} memory and generic resources: counted as running, with CPUs, too")
    together = len({job.heterogeneous for job, _ in kept if job.heterogeneous})
    if together:
        account.note(f"{plural(together, 'heterogeneous job')}, whose components count as jobs that need not start together: a relaxation")
    mixed = sum(len({kind.partition(":")[0] for kind in node.types}) < len(node.types) for node in offered)
    if mixed and any(job.types for job, _ in kept):
        account.note(
            f"{plural(mixed, 'node')} with several types of one generic resource, which count together: a job of one type may seem to fit "
            "where there is less of it"
        )
    several_types = {job.types for job, _ in kept if len(job.types) > 1}
    lost = {types for types in several_types if not any({*types} <= node.types for node in offered)}
    if lost:
        apart = plural(sum(job.types in lost for job, _ in kept), "job asks", "jobs ask")
        account.note(
            f"{apart} for several types of a generic resource that no node has together: counted as on nodes that have one of them, a "
            "relaxation"
        )
    homeless = sum(bool(job.on) and not any(host in index for host in job.on) for job, _ in kept)
    if homeless:
        account.note(f"{plural(homeless, 'job')} on nodes that offer nothing: asked for, but not held")
