"""A comparison: tasks, measures, regrets, what users, queues and owners hold side by side, and why a row is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fairopt.allocation import Allocation, Optimum
from fairopt.allocation.holdings import QueueHoldings
from fairopt.analysis.comparison import Comparison, Row
from fairopt.analysis.finish_ratios import ratios_of_owners
from fairopt.analysis.owners import OwnerHoldings, owner_holdings
from fairopt.analysis.regrets import Regret
from fairopt.models import ShareNotion
from fairopt.reporting.tables.allocation import Choice, weights_differ
from fairopt.reporting.tables.phrases import counted, guarantees_met, min_share, size_of, without_tiny
from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Column, Format, Table, names, numbers, percents, words
from fairopt.show.terminal import fits
from fairopt.wording import figure, plural, printable

__all__ = ["MEASURES", "comparison_blocks", "measure_table", "owner_table", "regret_columns", "user_table"]

_QUANTILES = {"lowest": 0.0, "median": 0.5, "highest": 1.0}
MEASURES = """\
efficiency: weighted tasks, in % of the most possible with divisible tasks.
min share: smallest weighted dominant share.
envy: the largest, in tasks."""
_OF_TREE = {  # where siblings are compared, and not all users
    "min share: smallest weighted dominant share.": "guarantees: of queues and users, how many are met.",
    "envy: the largest, in tasks.": "Slices and envy of siblings: fairopt audit.",
}
_IN_FRACTIONS = {
    "efficiency: weighted tasks, in % of the most possible with divisible tasks.": (
        "efficiency: weighted tasks, as a part of the most possible with divisible tasks."
    )
}
_REGRETS = {
    "level": "level: shortfall of the lowest share.",
    "leximin": "leximin: sort both share lists; the gap at the first difference, and its rank.",
    "largest": "largest: the largest gap in those lists.",
    "goal": "goal: shortfall of the power mean that the notion maximises.",
    "condition": "condition: largest violation of the theorem that defines the equilibrium.",
    "queue": "queue: the largest gap of a queue's share.",
    "total": "total: shortfall of all tasks together (negative: more tasks than the exact allocation).",
}
_USERS = 20  # in rows; --all shows all
_QUEUES = 12  # side by side; --by queue shows all
_LINES = 3  # violations listed for one allocation


def comparison_blocks(
    comparison: Comparison, width: int, by: str = "user", choice: Choice | None = None, *, everything: bool = False
) -> Iterator[Block]:
    """Yield tasks, why rows failed, measures and regrets of all rows, then remarks on single rows.

    By owner or queue, it is also what each holds, side by side. Where there is no room for a column for each user, each is a row, with its
    tasks in each allocation side by side: 20 users, or ``everything``. With a choice it is these users, in the order of the
    first allocation.
    """
    instance = comparison.instance
    done, failed = ([row for row in comparison if (row.allocation is None) == lacks] for lacks in (False, True))
    number = plural(len(comparison), "allocation")
    some_failed = f"; {len(failed):,} failed" if failed else ""
    yield Note(f" of {size_of(instance, comparison.sharing)}{some_failed}", f"{len(done):,} of {number}" if failed else number)
    if done:
        tasks, all_fit = _tasks(comparison, done, width)
        some = choice if choice is not None and choice != Choice() else None
        if some is None and by == "user" and not all_fit:
            some = Choice(top=None if everything else _USERS)
        yield GAP
        yield tasks
        if failed:
            yield GAP
            yield from _notes(failed, comparison)
        tables = [
            *([_chosen(done, some)] if some is not None else []),
            *([owner_table(done)] if by == "owner" else []),
            *([_queues(done, width, everything)] if instance.queues and by == "user" else [_tree(done)] if by == "queue" else []),
            measure_table(comparison, done),
            _finish_ratios(comparison) if comparison.has_finish_ratios else None,
            _ratios_of_owners(done) if by == "owner" and comparison.has_finish_ratios else None,
            _regrets(done),
        ]
        for table in filter(None, tables):
            yield GAP
            yield table
        yield GAP
        yield _legend(done, by)
    yield from _notes(done or failed, comparison)


def _notes(rows: Sequence[Row], comparison: Comparison) -> Iterator[Note]:
    for row in rows:
        if row.regret is not None and row.regret.tiny:
            yield Note(without_tiny(row.regret), f"{printable(row.name)}: ")
        for line in _remarks(row, comparison):
            yield Note(line, f"{printable(row.name)}: ")


_PART = Format(percent=True, decimals=1, tiny=True)


def _percent(part: float | None) -> str:
    return _PART.write([part])[0]


def _kind(row: Row) -> str:
    return row.kind.replace(", whole tasks", "").replace("whole tasks, ", "")  # the name says "whole tasks"


def _tasks(comparison: Comparison, rows: list[Row], width: int) -> tuple[Table, bool]:
    """Return the tasks of each user, total and seconds, and True; of the lowest, the median and the highest, if the columns do not fit."""
    held = [row.allocation.work for row in rows if row.allocation is not None]
    what = "work" if comparison.of_work else "tasks"
    each = [_held(row.allocation) for row in rows if row.allocation is not None]

    def table(columns: Sequence[str], cells: Sequence[Any]) -> Table:
        middle = (numbers(title, (line[n] for line in cells), 4) for n, title in enumerate(columns))
        last = numbers("all", (row.measure(what) for row in rows), 4), numbers("seconds", (row.seconds for row in rows))
        return Table.of(names(what, (row.name for row in rows)), words("kind", map(_kind, rows)), *middle, *last)

    users = table(comparison.instance.users, each)
    if fits(users, width):
        return users, True
    return table(list(_QUANTILES), [np.quantile(own, list(_QUANTILES.values())) for own in held]), False


def _held(allocation: Allocation) -> list[Any]:
    """Return the tasks of each user, with speeds its work, in fractions where they are known so."""
    held: list[Any] = allocation.as_known.work.tolist()
    return held


def _chosen(rows: list[Row], choice: Choice) -> Table:
    """Return a row for each user of a choice, with its tasks in each allocation, and how many more users there are."""
    made = [row.allocation for row in rows if row.allocation is not None]
    instance, chosen = made[0].instance, choice.positions(made[0])
    more = instance.n_users - chosen.size
    hint = " (--all shows them)" if more and choice == Choice(top=_USERS) else ""
    rest = [f"and {plural(more, 'more user')}{hint}"] if more else []
    weights = [numbers("weight", [*instance.weights[chosen], *map(_nothing, rest)], 6)] if weights_differ(instance) else []
    held = [_held(allocation) for allocation in made]
    tasks = (numbers(row.name, [*(own[n] for n in chosen), *map(_nothing, rest)], 4) for row, own in zip(rows, held, strict=True))
    return Table.of(names("user", [*(instance.users[n] for n in chosen), *rest]), *weights, *tasks)


def _nothing(_: str) -> None:
    return None


def user_table(rows: Sequence[Row], values: Sequence[Any], title: str) -> Table:
    """Return a row for each user with a number of it in each allocation, such as its tasks or its share."""
    users = rows[0].allocation.instance.users if rows and rows[0].allocation is not None else ()
    return Table.of(names("user", users), *(numbers(row.name, own, 4) for row, own in zip(rows, values, strict=True)), title=title)


def _queues(rows: list[Row], width: int, everything: bool) -> Table:
    """Return the dominant share of what each queue holds; where not all fit, of queues in the root, or with ``everything`` in rows."""
    holdings = [row.allocation.queue_holdings()[1:] for row in rows if row.allocation is not None]

    def table(chosen: Sequence[int]) -> Table:
        columns = (numbers(holdings[0][j].name, (_share(own[j]) for own in holdings)) for j in chosen)
        return Table.of(names("queues", (row.name for row in rows)), *columns)

    every = range(len(holdings[0]))
    all_ = table(every[:_QUEUES])
    if everything and not (fits(table(every), width) and len(every) <= _QUEUES):
        return _tree(rows)
    return all_ if fits(table(every), width) else table([j for j in every if holdings[0][j].depth == 1][:_QUEUES])


def _share(held: Any) -> str:
    """Return the dominant share of what a queue holds; a mark stands behind it where its guarantee is not met."""
    return f"{_percent(float(held.dominant_share))}{'' if held.verdict in ('', 'met') else ' !'}"


def _done(held: QueueHoldings | OwnerHoldings) -> Any:
    """Return the tasks of a queue or an owner, with speeds their work."""
    return held.tasks if held.work is None else held.work


def _tree(rows: list[Row]) -> Table:
    """Return a row for each queue, in the order of the tree, with what it holds in each allocation side by side."""
    tree, found = rows[0].allocation.instance.tree, []  # type: ignore[union-attr]  # of rows that are done
    held = [{each.node: each for each in row.allocation.as_known.queue_holdings()} for row in rows if row.allocation is not None]
    left = list(reversed(tree.children(0)))
    while left:
        found.append(int(left.pop()))
        left += reversed(tree.children(found[-1]))
    first = [held[0][node] for node in found]
    columns: list[Column] = [names("queues", (each.name for each in first), indents=tuple(each.depth - 1 for each in first))]
    for row, own in zip(rows, held, strict=True):
        columns += [numbers(row.name, (_done(own[node]) for node in found), 4), numbers("", (_share(own[node]) for node in found))]
    return Table.of(*columns)


def owner_table(rows: list[Row]) -> Table:
    """Return a row for each owner of tasks, with what it holds in each allocation side by side."""
    holdings = [owner_holdings(row.allocation) for row in rows if row.allocation is not None]
    first = holdings[0]
    columns: list[Column] = [names("owners", (each.name for each in first)), numbers("users", (each.users for each in first), 9)]
    for row, own in zip(rows, holdings, strict=True):
        columns += [numbers(row.name, (_done(each) for each in own), 4), percents("", (each.dominant_share for each in own), 1, tiny=True)]
    return Table.of(*columns)


def measure_table(comparison: Comparison, rows: list[Row]) -> Table:
    """Return the part of each resource in use, and the measures."""
    cluster = [
        names("measures", (row.name for row in rows)),
        *(percents(thing, (row.use[thing] for row in rows), 1, tiny=True) for thing in rows[0].use),
        numbers("efficiency", (_percent(row.efficiency) if row.exact is None else row.measure("efficiency") for row in rows), 4),
    ]
    if comparison.instance.is_tree:  # the other measures compare all users, and a tree compares siblings
        return Table.of(*cluster, words("guarantees", (guarantees_met(row.allocation) for row in rows)))
    return Table.of(
        *cluster,
        numbers(min_share(comparison.instance), (row.measure("smallest_share") for row in rows), 4),
        numbers("Jain", (f"{row.jain:.3f}" for row in rows)),
        numbers("envy", (None if row.envy is None else row.measure("envy") for row in rows), 4),
    )


def _finish_ratios(comparison: Comparison) -> Table:
    """Return how much later than alone users finish in each allocation."""
    frame = comparison.finish_ratios_frame()
    frame = frame[frame["finish_ratio_largest"].notna()]
    return Table.of(
        names("finish-time ratio, of users", map(str, frame.index)),
        *(numbers(word, frame[f"finish_ratio_{word}"]) for word in ("median", "p90", "largest")),
        numbers("users above 1", frame["finish_ratio_above_1"], 6),
    )


def _ratios_of_owners(rows: list[Row]) -> Table:
    """Return a row for each owner of tasks, with the largest ratio of its users in each allocation side by side."""
    found = {
        row.name: ratios_of_owners(row.allocation.instance, row.finish_ratios)
        for row in rows
        if row.allocation is not None and row.finish_ratios is not None
    }
    owners = list(next(iter(found.values()), {}))
    return Table.of(
        names("largest finish-time ratio, of owners", owners),
        *(numbers(name, (ratios[owner] for owner in owners), 4) for name, ratios in found.items()),
    )


def regret_columns(regrets: Sequence[Regret | None]) -> list[Column]:
    """Return the regrets; only columns that apply to one of them."""
    known = [regret for regret in regrets if regret is not None]
    shown = [name for name in _REGRETS if any(getattr(regret, name) is not None for regret in known)]
    if any(regret.best_found for regret in known):
        shown.append("gap")
    return [numbers(name, (None if regret is None else _of_regret(regret, name) for regret in regrets)) for name in shown]


def _of_regret(regret: Regret, name: str) -> str | None:
    """Write a number of a regret: in fractions where it is known so, else in percent; with its position or queue in brackets."""
    if getattr(regret, name) is None or (name == "gap" and not regret.best_found):
        return None
    known = regret.exact or {}
    text = figure(known[name], 4) if name in known else _percent(getattr(regret, name))
    where = {"leximin": regret.position, "queue": regret.worst_queue}.get(name)
    return text if not where else f"{text} at rank {where}" if name == "leximin" else f"{text} ({where})"


def _regrets(rows: list[Row]) -> Table | None:
    compared = [(row, row.regret) for row in rows if row.regret is not None]
    if not compared:
        return None
    against = [f"{regret.notion}{', best found' if regret.best_found else ', whole' if regret.whole else ''}" for _, regret in compared]
    return Table.of(
        names("regret", (row.name for row, _ in compared)), words("against", against), *regret_columns([regret for _, regret in compared])
    )


def _legend(rows: list[Row], by: str) -> str:
    """Explain the columns that are shown."""
    regrets = [row.regret for row in rows if row.regret is not None]
    in_queues = any(row.allocation is not None and row.allocation.instance.queues for row in rows)
    in_tree = any(row.allocation is not None and row.allocation.instance.is_tree for row in rows)
    others = (_OF_TREE if in_tree else {}) | (_IN_FRACTIONS if any(row.exact is not None for row in rows) else {})
    what = counted(*(row.allocation.instance for row in rows if row.allocation is not None))
    lines = [others.get(line, line).replace("efficiency: weighted tasks", f"efficiency: {what}") for line in MEASURES.splitlines()]
    of_work = any(row.allocation is not None and row.allocation.instance.speeds_given is not None for row in rows)
    if of_work:
        lines = ["work: a task counts by its speed, the work that it does where it runs.", *lines]
        lines = [line.replace("largest, in tasks", "largest, in work") for line in lines]
    done = "work" if of_work else "tasks"
    if by == "owner":
        lines.append(f"owners: {done}, and the dominant share of what each holds (not divided by weights).")
    elif in_queues:
        tasks = f"{done}, and the " if by == "queue" else ""
        lines.append(f"queues: {tasks}dominant share of what each holds; !: below its guarantee although it asks for more.")
    if any(row.finish_ratios is not None for row in rows):
        lines.append("finish-time ratio: when a user finishes, over when alone on the slice of its weight; above 1: later than alone.")
    if regrets:
        lines.append(
            "regret: relative shortfall from the exact allocation, of whole tasks if it says so, else of divisible tasks (an upper bound)."
        )
    if regrets and any(row.kind == "greedy" for row in rows) and any(_on_top_of_guarantees(row) for row in rows):
        lines.append("Greedy schedules count guarantees as --guarantees clamp does; add it to measure their regret by the same rule.")
    shown = [name for name in _REGRETS if any(getattr(regret, name) is not None for regret in regrets)]
    in_a_tree = "leximin" not in shown  # there each user is compared with itself
    of_regrets = ["largest: the largest gap of a user's share." if name == "largest" and in_a_tree else _REGRETS[name] for name in shown]
    lines += [line.replace("all tasks", f"all {done}").replace("more tasks", f"more {done}") for line in of_regrets]
    if any(regret.best_found for regret in regrets):
        lines.append(
            "best found: the best allocation of whole tasks within the time limit, not proved optimal; the regret is a lower bound.\n"
            "gap: how far its lowest share (or goal) lies below a proved bound."
        )
    return "\n".join(lines)


def _on_top_of_guarantees(row: Row) -> bool:
    """Is it an exact allocation that divides the surplus on top of guarantees?"""
    if row.allocation is None or not isinstance(row.allocation.question, Optimum):
        return False
    instance, notion = row.allocation.instance, row.allocation.question.notion
    of_queues = any(queue.guarantee or any(quota.guarantee for quota in queue.quotas) for queue in instance.queues)
    return isinstance(notion, ShareNotion) and notion.guarantees == "surplus" and (of_queues or bool(instance.guarantees.any()))


def _remarks(row: Row, comparison: Comparison) -> list[str]:
    """Return why a row has no allocation or no regret (unless another row says so), and the limits that it exceeds."""
    lines = [row.message] if row.message else []
    if row.note and not any(other.message and row.note.endswith(other.message) for other in comparison):
        lines.append(row.note)
    if row.violations:
        more = len(row.violations) - _LINES
        listed = "; ".join(str(violation) for violation in row.violations[:_LINES])
        lines.append(f"not feasible: {listed}{f'; and {more:,} more' if more > 0 else ''}")
    return lines
