"""An allocation: users, servers, levels, certificate and times.

Up to 20 users (or rows of servers) are shown one by one; more are summarised by minimum, quartiles and maximum.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.measures import takes_part
from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.models import CRITERIA, NOTIONS
from fairopt.reporting.tables.bounds import bound_blocks
from fairopt.reporting.tables.phrases import servers_in_rows, sharing_note
from fairopt.reporting.tables.queues import promised, queue_blocks
from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Column, Table, names, numbers, parts, percents, words
from fairopt.specs import asked
from fairopt.wording import ROUNDED, duration, figure, fractions, joined, plural

__all__ = ["QUANTILES", "Choice", "allocation_blocks", "weights_differ"]

_ROWS = 20  # more users or rows of servers than this are summarised
_FEW = 5  # names listed in a summary
_LEVELS = 6  # listed
_SHORT_BAR = 8
QUANTILES = {"min": 0.0, "quartile 1": 0.25, "median": 0.5, "quartile 3": 0.75, "max": 1.0}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which users are shown, and in which order.

    Attributes
    ----------
    users : tuple of str
        Only these; empty: all.
    sort : str
        "tasks", "share" or "weight", the largest first; "-tasks" and the like, the smallest first; "name"; empty: as in the file.
    top : int or None
        At most so many.
    """

    users: tuple[str, ...] = ()
    sort: str = ""
    top: int | None = None

    def require(self, instance: Instance) -> None:
        """Refuse the name of a user that is not there."""
        for name in self.users:
            instance.index(name)

    def positions(self, allocation: Allocation) -> IntArray:
        """Return the positions of the users.

        Raises
        ------
        Unsupported
            If the users have no numbers of this kind.
        """
        instance = allocation.instance
        chosen = np.array([instance.index(name) for name in dict.fromkeys(self.users)] if self.users else range(instance.n_users), np.int64)
        word = self.sort.removeprefix("-")
        if word == "name":
            chosen = np.array(sorted(chosen, key=lambda n: instance.users[n]), np.int64)
        elif word:
            values = {"tasks": allocation.tasks_per_user, "share": allocation.shares_to_show, "weight": instance.weights}[word]
            if values is None or values.ndim > 1:
                raise Unsupported(f"users have no single {word} here; sort them by tasks or by name")
            keys = np.array([float(f"{number:.9g}") for number in values[chosen]])  # what differs by rounding stays in order
            chosen = chosen[np.argsort(keys if self.sort != word else -keys, kind="stable")]
        return chosen[: self.top]

    def in_order(self, allocation: Allocation) -> list[str]:
        """Return the chosen names that the instance has, in order, without a limit on their number."""
        users = allocation.instance.users
        known = tuple(name for name in self.users if name in users)
        return [] if self.users and not known else [users[n] for n in Choice(known, self.sort).positions(allocation)]


def allocation_blocks(
    allocation: Allocation,
    seconds: Mapping[str, float] | None = None,
    *,
    everything: bool = False,
    choice: Choice | None = None,
    width: int,
) -> Iterator[Block]:
    """Yield users, servers, levels, certificate and times. With a choice, of the users only these."""
    instance, notion = allocation.instance, NOTIONS.get(allocation.notion, CRITERIA.get(allocation.notion))
    how = f"{allocation.certificate.qualifier} by {allocation.solver}".lstrip()
    title = notion.title if notion else allocation.notion
    yield Note(f" ({asked(allocation)}, {how}{sharing_note(allocation.sharing)})", title)
    users = list(_of_users(allocation, width, everything, choice))
    servers = _servers(allocation) if everything or instance.n_servers <= _ROWS else _summary_of_servers(allocation)
    for block in (*users, servers, *bound_blocks(allocation, everything=everything)):
        yield GAP
        yield block
    yield GAP
    levels = _levels_text(allocation)
    rounded = _rounded([*users, levels]) if allocation.exact is not None else ""
    times = "" if seconds is None else "Time: " + ", ".join(f"{what} {duration(value)}" for what, value in seconds.items())
    yield from filter(None, (_without_tasks(allocation), levels, allocation.proof, rounded, times))


def _of_users(allocation: Allocation, width: int, everything: bool, choice: Choice | None) -> Iterator[Block]:
    instance = allocation.instance
    if choice is not None and choice != Choice():
        chosen = choice.positions(allocation)
        yield _users(allocation, chosen)
        if instance.n_users > chosen.size:
            yield f"and {plural(instance.n_users - chosen.size, 'more user')}"
    elif instance.queues:
        yield from queue_blocks(allocation, width, everything=everything)
    elif everything or instance.n_users <= _ROWS:
        yield _users(allocation, np.arange(instance.n_users))
    else:
        yield from _summary_of_users(allocation)


# Users ---------------------------------------------------------------------------------------------------------------------------


def weights_differ(instance: Instance) -> bool:
    """Return whether users have weights, one each, that are not all 1."""
    return instance.weights.ndim == 1 and bool((instance.weights != 1).any())


def _users(allocation: Allocation, chosen: IntArray, title: str = "") -> Table:
    """Return a table of these users: weight (where it differs), tasks, share, dominant resource, level."""
    instance, exact = allocation.instance, allocation.exact
    radius = Fraction(0) if exact is None else Fraction(exact.radius or 0)
    columns: list[Column] = [names("user", (instance.users[n] for n in chosen))]
    if weights_differ(instance):
        weights = instance.weights if exact is None else instance.exact.weights
        columns.append(numbers("weight", weights[chosen], alike=True))
    tasks = allocation.tasks_per_user if exact is None else exact.tasks_per_user
    columns.append(numbers("tasks", tasks[chosen], alike=True, radius=radius))
    if instance.speeds_given is not None:
        work = allocation.work if exact is None else instance.exact.work(exact.tasks)
        columns.append(numbers("work", work[chosen], alike=True, radius=radius))
    if (shares := allocation.shares_to_show) is not None:
        columns.append(numbers(allocation.share_heading, (shares if exact is None else exact.shares)[chosen], alike=True, radius=radius))
    if instance.guarantees.any():
        known = allocation.as_known
        own, has = known.instance.guarantees, known.tasks_per_user
        columns.append(words("guarantee", (promised(own[n], has[n]) if own[n] else "" for n in chosen)))
    columns.append(names("dominant", (allocation.dominant_resources[n] for n in chosen)))
    complete, levels = allocation.complete, allocation.level_of_user
    stops = ["cannot run" if not instance.servable[n] else "all tasks" if complete[n] else str(levels[n] or "") for n in chosen]
    return Table.of(*columns, *([numbers("level", stops)] if any(stops) else []), title=title)


def _summary_of_users(allocation: Allocation) -> Iterator[Block]:
    """Yield quartiles, the users with the lowest shares, and the users who run all their tasks."""
    instance = allocation.instance
    values = {"tasks": allocation.tasks_per_user}
    if instance.speeds_given is not None:
        values["work"] = allocation.work
    if (shares := allocation.shares_to_show) is not None:
        values[allocation.share_heading] = shares
    if weights_differ(instance):
        values["weight"] = instance.weights
    # the numbers of a row have the same decimals
    rows = [numbers("", np.quantile(own, list(QUANTILES.values())), alike=True).texts for own in values.values()]
    quantiles = (numbers(title, (row[j] for row in rows)) for j, title in enumerate(QUANTILES))
    yield Table.of(names("", values), *quantiles, title=plural(instance.n_users, "user"))
    lowest = next((name for name in values if name.startswith("share")), "tasks")
    complete = [instance.users[n] for n in np.flatnonzero(allocation.complete)]
    wanting = np.flatnonzero(instance.servable & ~allocation.complete)
    ranked = wanting[np.argsort(values[lowest][wanting], kind="stable")]
    if ranked.size:
        yield _users(allocation, ranked[:_FEW], title=f"Lowest {lowest} among users who want more")
    running = plural(len(complete), "user runs all its tasks", "users run all their tasks")
    yield (f"{running}: {joined(complete, _FEW)}. " if complete else "") + "--all shows every user."


# Servers -------------------------------------------------------------------------------------------------------------------------


def _use(allocation: Allocation) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
    """Return what a server shares out (resources or time), the part in use on each row (rows, things) and in the cluster (things,)."""
    instance = allocation.instance
    if allocation.sharing == "tdm":
        time = allocation.time_utilization
        of_cluster = (time @ instance.counts) / max(instance.counts.sum(), 1.0)
        return ("time",), time[:, None], np.array([of_cluster])
    capacity = instance.row_capacity.sum(axis=0)
    of_cluster = np.divide(allocation.usage.sum(axis=0), capacity, out=np.zeros_like(capacity), where=capacity > 0)
    return instance.server_resources, allocation.utilization, of_cluster


def _servers(allocation: Allocation) -> Table:
    """Return a table with a row for each row of servers."""
    instance = allocation.instance
    things, used, of_cluster = _use(allocation)
    several = instance.n_servers > 1
    columns = [
        parts(
            thing,
            [
                *(used[i, r] if _offers(allocation, i, r) else None for i in range(instance.n_servers)),
                *([of_cluster[r]] if several else []),
            ],
        )
        for r, thing in enumerate(things)
    ]
    counts = [*instance.counts, *([instance.counts.sum()] if several else [])]
    servers = names("server", [*instance.servers, *(["all"] if several else [])])
    return Table.of(servers, numbers("count", counts, 6), *columns, totals=int(several))


def _offers(allocation: Allocation, server: int, thing: int) -> bool:
    """Return whether this row of servers has any of this resource; every row has time."""
    return allocation.sharing == "tdm" or bool(allocation.instance.row_capacity[server, thing] > 0)


def _summary_of_servers(allocation: Allocation) -> Table:
    instance = allocation.instance
    things, used, of_cluster = _use(allocation)
    rows = []
    for r in range(len(things)):
        offering = [used[i, r] for i in range(instance.n_servers) if _offers(allocation, i, r)]
        rows.append(np.quantile(offering, list(QUANTILES.values())).tolist() if offering else [None] * len(QUANTILES))
    quantiles = (percents(title, (row[j] for row in rows), 1) for j, title in enumerate(QUANTILES))
    return Table.of(names("", things), parts("in use", of_cluster, _SHORT_BAR), *quantiles, title=servers_in_rows(instance))


# Levels, certificate and times -------------------------------------------------------------------------------------------------------


def _without_tasks(allocation: Allocation) -> str:
    """Return which users that could run a task run none of the whole tasks."""
    if not allocation.certificate.whole_tasks:
        return ""
    instance = allocation.instance
    idle = [instance.users[n] for n in np.flatnonzero(takes_part(instance) & (allocation.tasks_per_user <= 0))]
    return f"{plural(len(idle), 'user runs', 'users run')} no task: {joined(idle, _FEW)}." if idle else ""


def _levels_text(allocation: Allocation) -> str:
    levels = allocation.levels
    if not levels:
        return ""
    lines = []
    exact = allocation.exact
    values = [figure(level.value, 6) for level in levels] if exact is None else fractions(exact.levels)
    for part, of_part in itertools.groupby(zip(values, levels, strict=True), key=lambda each: each[1].part):
        texts = [f"{number} ({plural(len(level.users), 'user')})" for number, level in of_part]
        one = len(texts) == 1
        if len(texts) > _LEVELS:
            texts = [*texts[: _LEVELS - 1], f"... {len(texts) - _LEVELS:,} more", texts[-1]]
        lines.append(f"{'Level' if one else 'Levels'}{f' of {part}' if part else ''}: {', '.join(texts)}")
    return "\n".join(lines)


def _rounded(blocks: Iterable[Block]) -> str:
    """Return the legend of the sign of rounded fractions if a table shows it; else "". Names may have the sign, too."""
    texts = [block for block in blocks if isinstance(block, str)]
    for table in blocks:
        if isinstance(table, Table):
            texts += [text for column in table.columns if column.kind != "names" for text in column.texts]
    return f"{ROUNDED} a decimal in place of a long fraction; --json has the fraction" if any(ROUNDED in text for text in texts) else ""
