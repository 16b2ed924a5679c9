"""The Alibaba GPU cluster of 2023 (openb), from its tables of nodes and pods.

**Nodes**: ``cpu_milli``, ``memory_mib``, ``gpu`` (whole cards), ``model``, and a name ``sn``, or ``count`` for tables of
configurations. CPU is in cores, memory in GiB.

**Pods**: ``cpu_milli``, ``memory_mib``, ``num_gpu``, ``gpu_milli`` (thousandths of one card), ``qos``, ``gpu_spec...`` (models that it
may use, separated by |, empty: any) and, in tables of classes, ``n_tasks``. A task is a pod and asks for num_gpu * gpu_milli / 1000
cards. There are no users in these tables: a user is a class of pods (quality of service, shape and models), each with the same weight,
or a quality of service.

Parts of several cards add up here, though a pod must get its part from one card: **the optimum is a relaxation**, an upper bound of what
cards allow (`fairopt.arrivals` places pods on cards). The tables do not say on which node a pod ran. All pods count as present at once;
``at`` takes only those that existed at a time.

Source: Weng et al., USENIX ATC 2023; github.com/hkust-adsl/kubernetes-scheduler-simulator.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.assembly import Demand, Nodes, assemble
from fairopt.clusters.imported import Import
from fairopt.clusters.shapes import Tasks
from fairopt.clusters.table_rows import TableRows
from fairopt.errors import InvalidInstance
from fairopt.tables import Column, Schema
from fairopt.wording import plural

__all__ = ["import_openb"]

NODES = Schema(
    *(Column(name, "number") for name in ("cpu_milli", "memory_mib", "gpu")),
    Column("model"),
    Column("count", "number", default=1.0),
    Column("sn", default=""),
)
PODS = Schema(
    *(Column(name, "number") for name in ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")),
    Column("qos"),
    Column("n_tasks", "number", default=1.0),
    Column("name", default=""),
    Column("creation_time", "number", default=0.0),
    Column("deletion_time", "number", default=np.inf, empty=np.inf),
)


@keeps_question
def import_openb(
    nodes: str | os.PathLike[str],
    pods: str | os.PathLike[str],
    *,
    users: str = "class",
    at: float | None = None,
    weights: Mapping[str, float] | None = None,
    demand: Demand = "shapes",
    lenient: bool = False,
) -> Import:
    """Make an instance of the openb cluster.

    Parameters
    ----------
    nodes, pods : path
        CSV, or CSV compressed by gzip.
    users : {"class", "qos"}
        Every class of pods is a user, or every quality of service is the owner of its classes.
    at : float, optional
        Seconds: only pods that existed at this time.
    weights : mapping, optional
        Weight by owner; default 1.
    demand : {"shapes", "mean"}
        A user for each owner and shape (exact), or one for each owner with the mean of its pods (approximate).
    lenient : bool
        Leave bad rows out and count them, instead of refusing the tables.

    Raises
    ------
    InvalidInstance
        With the file, line and column: what is wrong, and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\\na,96000,393216,8,G2\\nb,64000,262144,0,\\n")
    ...     _ = Path(folder, "pods.csv").write_text(
    ...         "name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos,gpu_spec\\np,6000,12288,1,500,LS,G2|T4\\n")
    ...     imported = import_openb(Path(folder, "nodes.csv"), Path(folder, "pods.csv"))
    >>> imported.instance.demands, imported.instance.eligibility
    (array([[ 6. , 12. ,  0.5]]), array([[ True, False]]))
    """
    if users not in ("class", "qos"):
        raise InvalidInstance(f'users is "{users}"; give "class" or "qos"')
    account = Account(lenient)
    table = TableRows(nodes, NODES, "node", account)
    capacities = np.column_stack([table.numbers("cpu_milli") / 1000, table.numbers("memory_mib") / 1024, table.numbers("gpu")])
    models = np.array(table.text("model"))
    counts = table.numbers("count")
    table.check(counts == np.round(counts), "the count is not a whole number", "count")
    if "sn" in table:
        names = table.text("sn")
    else:
        names = [
            f"{model or 'no GPU'} {c:g} cpu {m:g} memory {g:g} gpu" for (c, m, g), model in zip(capacities.tolist(), models, strict=True)
        ]
    _check_unique(table, names, "sn" if "sn" in table else "model")
    used = np.flatnonzero(table.good())

    rows = TableRows(pods, PODS, "pod", account)
    spec = next((name for name in rows.table.columns if name.startswith("gpu_spec")), None)
    cards = rows.numbers("num_gpu") * rows.numbers("gpu_milli") / 1000
    demands = np.column_stack([rows.numbers("cpu_milli") / 1000, rows.numbers("memory_mib") / 1024, cards])
    number = rows.numbers("n_tasks")
    shared = (rows.numbers("gpu_milli") > 0) & (rows.numbers("gpu_milli") < 1000)
    rows.check(
        ~(shared & (rows.numbers("num_gpu") > 1)),
        "asks for parts of several cards; gpu_milli must be 1000 if num_gpu is above 1",
        "gpu_milli",
    )
    if "name" in rows:
        _check_unique(rows, rows.text("name"), "name")
    present = np.ones(len(rows), bool)
    if "creation_time" in rows and "deletion_time" in rows:
        made, deleted = rows.numbers("creation_time"), rows.numbers("deletion_time")
        rows.check(deleted >= made, "the pod is deleted before it is created", "deletion_time")
        if at is not None:
            present = (made <= at) & (at < deleted)
    elif at is not None:
        raise InvalidInstance(
            f"{pods}: there are no columns creation_time and deletion_time, so the pods at a time are unknown; leave at out"
        )
    qos = rows.filled("qos", "pod needs a quality of service")
    good = rows.good()
    kept = np.flatnonzero(good & present)
    if at is not None:
        account.summary["at"] = at

    specs = ["|".join(sorted(set(filter(None, text.split("|"))))) for text in (rows.text(spec) if spec else [""] * len(rows))]
    places = list(dict.fromkeys(specs[j] for j in kept))
    row = {place: j for j, place in enumerate(places)}
    owners = qos
    if users == "class":
        owners = [
            f"{quality} {c:g} cpu {m:g} memory" + (f" {g:g} gpu" if g else "") + (f" {place}" if place else "")
            for quality, (c, m, g), place in zip(qos, demands.tolist(), specs, strict=True)
        ]
    account.summary |= {"nodes": float(counts.sum()), "pods": float(number[kept].sum())}
    if (shared & good).any():
        account.note(
            f"{plural(number[shared & good & present].sum(), 'pod')} share a card: parts of several cards add up here, so the optimum "
            "is a relaxation, an upper bound of what cards allow"
        )
    account.note("the tables do not say on which node a pod ran: all pods count as waiting, and there is no current allocation")
    return assemble(
        "openb",
        Nodes(
            [names[i] for i in used],
            capacities[used],
            counts[used],
            [(names[i],) if "sn" in table and counts[i] == 1 else () for i in used],
        ),
        Tasks(
            owner=[owners[j] for j in kept],
            demands=demands[kept],
            number=number[kept],
            allowed=np.array([[not place or model in place.split("|") for model in models[used]] for place in places], bool).reshape(
                len(places), used.size
            ),
            place=np.array([row[specs[j]] for j in kept], int),
            where=[rows.place(j) for j in kept.tolist()],
            placed=False,
        ),
        account,
        units={"cpu": "cores", "memory": "GiB", "gpu": "cards"},
        own_weights=weights,
        demand=demand,
        what="pod",
    )


def _check_unique(table: TableRows, names: list[str], column: str) -> None:
    seen: dict[str, int] = {}
    first = np.array([seen.setdefault(name, row) == row for row, name in enumerate(names)], bool)
    table.check(first, "there is a row with this name above; remove one", column)
