"""From records to an instance: nodes become servers, tasks become users.

**Servers.** Nodes with the same capacity on which the same users may run are one row, named after the first of them and how many more
there are: ``cn001 +79``. What runs on them is summed by row; a node that holds more than it has, which the sum may hide, is named in a
note.

**Users.** An owner (a namespace, an account) often runs several shapes of tasks, and a user has one. So each (owner, shape,
constraints) is a user, ``owner/shape``, whose tasks T[n] are those that run and those that wait. The weight phi of the owner is divided
among its shapes k in proportion to what each asks for in all,

    phi[k] = phi * T[k] w[k] / sum_l T[l] w[l],        w[k] = max_r d[k,r] / sum_i counts[i] c[i,r],

the dominant share of one task being w[k]. Then T[k] w[k] / phi[k] is the same for all shapes of an owner: under DRFH none of them is
satisfied before the others, and no weight is lost with one that is. The weighted shares of the owner's shapes add up to its own: with a
level s, sum_k w[k] x[k] = s phi. This is exact; what it equalises is the *sum* of the dominant shares of the owner's shapes, which is its
dominant share where all have one dominant resource, and more than it otherwise.

With ``demand="mean"`` an owner is one user whose task is the mean of its tasks, which may run wherever any of them may. That is
approximate: no such task exists, and it needs every resource that any of them needs.

Tasks that ask for nothing take nothing from anybody, and tasks that no server is large enough for can never start: both are left out and
counted. A task that runs where its constraints would not allow it any more may stay, and so its shape may run there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from fairopt.aggregation import number_distinct
from fairopt.analysis.rerun import given
from fairopt.errors import InvalidInstance
from fairopt.imports.result import Import, LeftOut
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, safe_ratio
from fairopt.wording import did_you_mean, joined, plural

__all__ = ["Account", "Demand", "Nodes", "Tasks", "assemble", "check_weights", "natural"]

Demand: TypeAlias = Literal["shapes", "mean"]

_FITS = 1 + 1e-9
SOMEWHERE = -1  # where a task runs, if the export does not say

T = TypeVar("T")


class _Placed(Protocol):
    @property
    def place(self) -> str:
        """Where it stands."""


P = TypeVar("P", bound=_Placed)


class _Record(Protocol):
    @property
    def part(self) -> _Placed:
        """Where it stands."""

    @property
    def name(self) -> str:
        """What it is called, once."""


R = TypeVar("R", bound=_Record)


class Account:
    """What was read and what was not, kept while exports are read.

    Parameters
    ----------
    lenient : bool
        Leave bad records out and count them, instead of refusing the export.
    """

    def __init__(self, lenient: bool) -> None:
        self.lenient = lenient
        self.left_out: list[LeftOut] = []
        self.notes: list[str] = []
        self.summary: dict[str, object] = {}

    def leave_out(self, what: str, where: str, why: str, number: float = 1.0) -> None:
        """Remember a record that is not in the instance."""
        self.left_out.append(LeftOut(what, where, why, number))

    def bad(self, what: str, where: str, message: str) -> None:
        """Refuse a record that cannot be right, or leave it out if that was asked for."""
        if not self.lenient:
            raise InvalidInstance(f"{where}: {message} (lenient=True, --lenient: leave out such records)")
        self.leave_out(what, where, message)

    def read(self, records: Iterable[P], reader: Callable[[P], T], what: str) -> list[T]:
        """Read every record; a bad one is refused, or left out if that was asked for."""
        results = []
        for record in records:
            try:
                results.append(reader(record))
            except InvalidInstance as error:
                if not self.lenient:
                    raise InvalidInstance(f"{error} (lenient=True, --lenient: leave out such records)") from None
                message = str(error)
                inner = message.removeprefix(record.place).lstrip(".: ")
                self.leave_out(what, record.place, re.sub(r"\[\d+\]", "[...]", inner))
        return results

    def unique(self, records: Iterable[R], what: str) -> list[R]:
        """Return the first record of each name; another one is bad."""
        seen: dict[str, R] = {}
        for record in records:
            if record.name in seen:
                first = seen[record.name].part.place
                self.bad(what, record.part.place, f'{what} "{record.name}" stands at {first} already; give each {what} once')
            else:
                seen[record.name] = record
        return list(seen.values())

    def note(self, text: str) -> None:
        """Say something of the whole, once."""
        if text not in self.notes:
            self.notes.append(text)


@dataclass(slots=True)
class Nodes:
    """The nodes that accept work: names, capacities (nodes, resources), and how many each stands for."""

    names: list[str]
    capacities: FloatArray
    counts: FloatArray | None = None


@dataclass(slots=True)
class Tasks:
    """Groups of identical tasks.

    Attributes
    ----------
    owner : list of str
        Whose they are, one entry a group.
    demands : array (groups, resources)
        Of one task.
    number : array (groups,)
        How many they are.
    allowed : bool array (places, nodes)
        Where tasks may run, a row for each kind of constraint.
    place : int array (groups,)
        Row of ``allowed``.
    where : list of str
        File and place of the group, for messages.
    running : list of (group, node, number)
        What runs where; a node that is `SOMEWHERE` is not known. The rest waits.
    placed : bool
        Whether the export says where tasks run at all.
    """

    owner: list[str]
    demands: FloatArray
    number: FloatArray
    allowed: BoolArray
    place: IntArray
    where: list[str]
    running: list[tuple[int, int, float]] = field(default_factory=list)
    placed: bool = True


def natural(name: str) -> list[tuple[bool, int, str]]:
    """Return a key that sorts node-2 before node-10.

    >>> sorted(["n10", "n2", "login"], key=natural)
    ['login', 'n2', 'n10']
    """
    return [
        (part.isdigit() and part.isascii(), int(part) if part.isdigit() and part.isascii() else 0, part)
        for part in re.split(r"(\d{1,18})", name)
    ]


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
        Weights that the caller gives, which take their place; every owner must exist.
    what : str
        What a task is called in the account: "pod", "job".
    """
    if demand not in ("shapes", "mean"):
        raise InvalidInstance(f'demand is "{demand}"{did_you_mean(str(demand), ["shapes", "mean"])}; give "shapes" or "mean"')
    if not nodes.names:
        raise InvalidInstance(f"no node of the {kind} export accepts work, so there is nothing to share; {_reasons(account)}")
    resources = list(units)
    order = np.array(sorted(range(len(nodes.names)), key=lambda i: natural(nodes.names[i])), int)
    rank = np.argsort(order)
    names = [nodes.names[i] for i in order]
    capacities = nodes.capacities[order]
    counts: FloatArray = np.ones(len(names)) if nodes.counts is None else nodes.counts[order]
    total = counts @ capacities

    shapes = _Shapes(tasks, rank, order)
    shapes.drop((shapes.demands == 0).all(axis=1), "asks for nothing", what, account)
    shapes.drop(~_fits(shapes, capacities), "larger than every server on which it may run, so it can never start", what, account)
    if not shapes.owner:
        raise InvalidInstance(f"no {what} of the {kind} export is left to allocate anything to; {_reasons(account)}")
    some_use = (shapes.demands > 0).any(axis=0) | (capacities > 0).any(axis=0)
    capacities, shapes.demands, total = capacities[:, some_use], shapes.demands[:, some_use], total[some_use]
    resources = [name for name, used in zip(resources, some_use, strict=True) if used]
    phi = _owner_weights(set(shapes.owner), weights or {}, own_weights or {})

    if demand == "mean":
        owners, demands, number, eligibility, held, somewhere = _means(shapes)
        labels, phi_of = owners, np.array([phi[owner] for owner in owners])
        account.note("an owner is one user with the mean of its tasks, which is approximate: no such task exists")
    else:
        sequence = shapes.sequence(names)
        owners = [shapes.owner[n] for n in sequence]
        demands, number, eligibility = shapes.demands[sequence], shapes.number[sequence], shapes.eligibility[sequence]
        held, somewhere = shapes.held[sequence], shapes.somewhere[sequence]
        labels = _labels(owners, demands, resources)
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
        account.note(f"{plural(row_counts[unused].sum(), 'server')} that no task here may use count in the capacity of the cluster")
    over = np.flatnonzero((held.T @ demands > counts[:, None] * capacities * _FITS).any(axis=1)) if demand == "shapes" else row[:0]
    if over.size:
        account.note(f"what runs asks for more than there is on {plural(over.size, 'node')} ({names[over[0]]}, for one)")
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


class _Shapes:
    """Groups of tasks that have the same owner, demand and constraints, as one each."""

    def __init__(self, tasks: Tasks, rank: IntArray, order: IntArray) -> None:
        allowed = tasks.allowed[:, order]
        same_place = number_distinct([allowed])
        number_of = {name: j for j, name in enumerate(dict.fromkeys(tasks.owner))}
        who = np.array([number_of[name] for name in tasks.owner], int)
        place = same_place[tasks.place]
        group = number_distinct([who[:, None], tasks.demands, place[:, None]]) if tasks.owner else np.empty(0, int)
        first = np.unique(group, return_index=True)[1]
        self.owner = [tasks.owner[j] for j in first]
        self.where = [tasks.where[j] for j in first]
        self.demands = tasks.demands[first]
        self.number: FloatArray = np.asarray(np.bincount(group, weights=tasks.number, minlength=first.size), float)
        self.eligibility = allowed[tasks.place[first]] if first.size else np.zeros((0, len(order)), bool)
        self.held = np.zeros((first.size, len(order)))
        self.somewhere = np.zeros(first.size)
        if tasks.running:
            task, node, number = (np.array(column) for column in zip(*tasks.running, strict=True))
            known = node >= 0
            np.add.at(self.held, (group[task[known]], rank[node[known]]), number[known])
            self.somewhere += np.bincount(group[task[~known]], weights=number[~known], minlength=first.size)
        self.eligibility = self.eligibility | (self.held > 0)  # what runs there may stay there

    def drop(self, bad: BoolArray, why: str, what: str, account: Account) -> None:
        """Leave out shapes."""
        for n in np.flatnonzero(bad):
            account.leave_out(what, self.where[n], why, float(self.number[n]))
        keep = np.flatnonzero(~bad)
        self.owner, self.where = [self.owner[n] for n in keep], [self.where[n] for n in keep]
        for name in ("demands", "number", "eligibility", "held", "somewhere"):
            setattr(self, name, getattr(self, name)[keep])

    def sequence(self, names: Sequence[str]) -> list[int]:
        """Return an order that depends on the shapes only: by owner, then the largest demand first, then by where it may run."""
        demands = (-self.demands).tolist()
        where = [tuple(np.flatnonzero(~row)) for row in self.eligibility]
        return sorted(range(len(self.owner)), key=lambda n: (natural(self.owner[n]), self.owner[n], demands[n], where[n]))


def _fits(shapes: _Shapes, capacities: FloatArray) -> BoolArray:
    """Which shapes have a server that holds one task, or run already, (shapes,)."""
    exists = ((shapes.demands == 0) | (capacities > 0).any(axis=0)).all(axis=1)
    fits = ((shapes.held > 0).any(axis=1) | (shapes.somewhere > 0)) & exists
    kinds = number_distinct([capacities])
    distinct = capacities[np.unique(kinds, return_index=True)[1]]
    large: BoolArray = np.all(shapes.demands[:, None, :] <= distinct[None] * _FITS, axis=2)  # (shapes, kinds of node)
    for kind in range(len(distinct)):
        fits |= large[:, kind] & shapes.eligibility[:, kinds == kind].any(axis=1)
    return np.asarray(fits)


def _means(shapes: _Shapes) -> tuple[list[str], FloatArray, FloatArray, BoolArray, FloatArray, FloatArray]:
    """Return one user an owner: the mean of its tasks, which may run where any of them may."""
    owners = sorted(set(shapes.owner), key=natural)
    position = {name: j for j, name in enumerate(owners)}
    belongs = np.zeros((len(owners), len(shapes.owner)))
    belongs[[position[name] for name in shapes.owner], np.arange(len(shapes.owner))] = 1.0
    number = belongs @ shapes.number
    demands = (belongs * shapes.number) @ shapes.demands / number[:, None]
    return owners, demands, number, (belongs @ shapes.eligibility) > 0, belongs @ shapes.held, belongs @ shapes.somewhere


def _owner_weights(owners: set[str], given: Mapping[str, float], own: Mapping[str, float]) -> dict[str, float]:
    check_weights(owners, own)
    return {owner: own.get(owner, given.get(owner, 1.0)) for owner in owners}


def check_weights(owners: set[str], weights: Mapping[str, float]) -> None:
    """Refuse a weight of an owner that there is not, and one that is no weight."""
    for owner, weight in weights.items():
        if owner not in owners:
            hint = did_you_mean(owner, owners) or f"; the owners are {joined(sorted(owners), 8)}"
            raise InvalidInstance(f'a weight is given for "{owner}", and there is no such owner{hint}')
        if not (np.isfinite(weight) and weight > 0):
            raise InvalidInstance(f'the weight of "{owner}" is {weight:g}; it must be finite and > 0')


def _labels(owners: list[str], demands: FloatArray, resources: list[str]) -> list[str]:
    """Return ``owner``, or ``owner/shape`` where it has several; the same shape under other constraints is numbered."""
    of_owner: dict[str, list[int]] = {}
    for n, owner in enumerate(owners):
        of_owner.setdefault(owner, []).append(n)
    labels, taken = [""] * len(owners), set(owners)
    last: dict[str, int] = {}  # the number of the last label of each base
    for owner, users in of_owner.items():
        if len(users) == 1:
            labels[users[0]] = owner
            continue
        # A resource of which every shape of the owner asks the same does not tell them apart.
        differs = (demands[users] != demands[users[0]]).any(axis=0)
        for n in users:
            asked = [
                (f"{value:.4g} {name}", tells) for value, name, tells in zip(demands[n].tolist(), resources, differs, strict=True) if value
            ]
            label = base = f"{owner}/{' '.join([text for text, tells in asked if tells] or [text for text, _ in asked])}"
            while label in taken:
                last[base] = last.get(base, 1) + 1
                label = f"{base} ({last[base]})"
            taken.add(label)
            labels[n] = label
    return labels


def _reasons(account: Account) -> str:
    groups = dict.fromkeys((each.what, each.why) for each in account.left_out)
    listed = [f"{plural(sum(e.number for e in account.left_out if (e.what, e.why) == key), key[0])}: {key[1]}" for key in groups]
    return f"left out: {'; '.join(listed[:5])}" if listed else "the export lists none"
