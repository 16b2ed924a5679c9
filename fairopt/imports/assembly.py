"""From records to an instance: nodes become servers, tasks become users.

**Servers.** Nodes with the same capacity on which the same users may run are one row, named after the first node and the number of the
others: ``cn001 +79``. Running tasks are summed by row. The sum may hide a node that holds more than its capacity; a note names such nodes.

**Users.** An owner (a namespace, an account) often runs tasks of several shapes, but a user has one shape. So each (owner, shape,
constraints) is a user, ``owner/shape``; its tasks T[n] are those that run and those that wait. The weight phi of the owner is divided
among its shapes k in proportion to what each asks for in all,

    phi[k] = phi * T[k] w[k] / sum_l T[l] w[l],        w[k] = max_r d[k,r] / sum_i counts[i] c[i,r],

where w[k] is the dominant share of one task. Then T[k] w[k] / phi[k] is the same for all shapes of an owner. So under DRFH no shape runs
all its tasks before the others do, and no weight is lost. The weighted shares of the owner's shapes add up to its own: at a level s,
sum_k w[k] x[k] = s phi. This is exact. It equalises the *sum* of the dominant shares of the owner's shapes, which is the owner's dominant
share if all its shapes have the same dominant resource, and larger otherwise.

With ``demand="mean"`` an owner is one user whose task is the mean of its tasks; it may run wherever any of them may. That is an
approximation: no such task exists, and it needs every resource that any of them needs.

Tasks that ask for nothing, and tasks that are too large for every server, are left out and counted. If a task runs where its constraints
no longer allow it, it may stay, so its shape may run there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from fairopt.aggregation import number_distinct
from fairopt.analysis.rerun import given
from fairopt.errors import InvalidInstance
from fairopt.imports.account import Account
from fairopt.imports.result import Import
from fairopt.imports.shapes import FITS, Shapes, Tasks, labels_of, means_of, natural
from fairopt.instance import FloatArray, Instance, safe_ratio
from fairopt.wording import did_you_mean, joined, plural

__all__ = ["Demand", "Nodes", "assemble", "check_weights"]

Demand: TypeAlias = Literal["shapes", "mean"]


@dataclass(slots=True)
class Nodes:
    """The nodes that accept work: names, capacities (nodes, resources), and how many each stands for."""

    names: list[str]
    capacities: FloatArray
    counts: FloatArray | None = None


def assemble(
    kind: str,
    nodes: Nodes,
    tasks: Tasks,
    account: Account,
    *,
    units: Mapping[str, str],
    weights: Mapping[str, float] | None = None,
    own_weights: Mapping[str, float] | None = None,
    demand: Demand = "shapes",
    what: str = "task",
) -> Import:
    """Make the instance.

    Parameters
    ----------
    units : mapping
        The resources, in the order of the columns, and their units.
    weights : mapping, optional
        Weights by owner that the export gives; default 1.
    own_weights : mapping, optional
        Weights that the caller gives instead; every owner in it must exist.
    what : str
        What a task is called in the account: "pod", "job".
    """
    if demand not in ("shapes", "mean"):
        raise InvalidInstance(f'demand is "{demand}"{did_you_mean(str(demand), ["shapes", "mean"])}; give "shapes" or "mean"')
    if not nodes.names:
        raise InvalidInstance(f"no node of the {kind} export accepts work, so there is nothing to share; {account.reasons()}")
    resources = list(units)
    order = np.array(sorted(range(len(nodes.names)), key=lambda i: natural(nodes.names[i])), int)
    rank = np.argsort(order)
    names = [nodes.names[i] for i in order]
    capacities = nodes.capacities[order]
    counts: FloatArray = np.ones(len(names)) if nodes.counts is None else nodes.counts[order]
    total = counts @ capacities

    shapes = Shapes(tasks, rank, order)
    shapes.drop((shapes.demands == 0).all(axis=1), "asks for nothing", what, account)
    shapes.drop(~shapes.fits(capacities), "larger than every server on which it may run, so it can never start", what, account)
    if not shapes.owner:
        raise InvalidInstance(f"no {what} of the {kind} export is left, so nothing asks for resources; {account.reasons()}")
    some_use = (shapes.demands > 0).any(axis=0) | (capacities > 0).any(axis=0)
    capacities, shapes.demands, total = capacities[:, some_use], shapes.demands[:, some_use], total[some_use]
    resources = [name for name, used in zip(resources, some_use, strict=True) if used]
    phi = _owner_weights(set(shapes.owner), weights or {}, own_weights or {})

    if demand == "mean":
        owners, demands, number, eligibility, held, somewhere = means_of(shapes)
        labels, phi_of = owners, np.array([phi[owner] for owner in owners])
        account.note("each owner is one user with the mean of its tasks: an approximation, as no such task exists")
    else:
        sequence = shapes.sequence(names)
        owners = [shapes.owner[n] for n in sequence]
        demands, number, eligibility = shapes.demands[sequence], shapes.number[sequence], shapes.eligibility[sequence]
        held, somewhere = shapes.held[sequence], shapes.somewhere[sequence]
        labels = labels_of(owners, demands, resources)
        dominant = np.where(np.isfinite(number), number, 1.0) * safe_ratio(demands, total).max(axis=1)
        of_owner = dict.fromkeys(owners, 0.0)
        for owner, asked in zip(owners, dominant.tolist(), strict=True):
            of_owner[owner] += asked
        phi_of = np.array([phi[owner] * asked / of_owner[owner] for owner, asked in zip(owners, dominant.tolist(), strict=True)])

    row = number_distinct([capacities, eligibility.T])
    first = np.unique(row, return_index=True)[1]
    members, rows = np.bincount(row), first.size
    row_counts = np.bincount(row, weights=counts)
    instance = Instance(
        capacities[first],
        demands,
        weights=phi_of,
        eligibility=None if eligibility.all() else eligibility[:, first],
        counts=row_counts,
        tasks=number,
        users=labels,
        servers=[names[i] if members[j] == 1 else f"{names[i]} +{members[j] - 1}" for j, i in enumerate(first)],
        resources=resources,
    )
    unused = ~instance.eligibility.any(axis=0)
    if unused.any():
        idle = plural(row_counts[unused].sum(), "server that no task may use counts", "servers that no task may use count")
        account.note(f"{idle} in the capacity of the cluster")
    over = np.flatnonzero((held.T @ demands > counts[:, None] * capacities * FITS).any(axis=1)) if demand == "shapes" else row[:0]
    if over.size:
        account.note(f"running tasks ask for more than the capacity of {plural(over.size, 'node')}, such as {names[over[0]]}")
    placed = np.zeros((len(owners), rows))
    np.add.at(placed.T, row, held.T)
    running = placed.sum(axis=1) + somewhere
    current = None
    if rows == 1:
        placed[:, 0] = running
    if tasks.placed and (rows == 1 or not somewhere.any()):
        current = given(instance, placed, "rdm")
    elif running.any():
        account.note("the exports do not say on which node a task runs, so there is no current allocation")
    account.summary |= {"owners": len(set(owners)), "tasks running": float(running.sum())}
    if np.isfinite(number).all():
        account.summary["tasks waiting"] = float(np.maximum(number - running, 0.0).sum())
    return Import(
        kind,
        instance,
        current,
        tuple(owners),
        running,
        {name: units[name] for name in resources},
        dict(account.summary),
        tuple(account.left_out),
        tuple(account.notes),
    )


def _owner_weights(owners: set[str], given: Mapping[str, float], own: Mapping[str, float]) -> dict[str, float]:
    check_weights(owners, own)
    return {owner: own.get(owner, given.get(owner, 1.0)) for owner in owners}


def check_weights(owners: set[str], weights: Mapping[str, float]) -> None:
    """Refuse a weight of an unknown owner, and a weight that is not finite and > 0."""
    for owner, weight in weights.items():
        if owner not in owners:
            hint = did_you_mean(owner, owners) or f"; the owners are {joined(sorted(owners), 8)}"
            raise InvalidInstance(f'a weight is given for "{owner}", but there is no such owner{hint}')
        if not (np.isfinite(weight) and weight > 0):
            raise InvalidInstance(f'the weight of "{owner}" is {weight:g}; it must be finite and > 0')
