"""Two instances side by side: what differs, who gains, who loses, and through which difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from fairopt.analysis.comparison import Row
from fairopt.analysis.differences import Difference
from fairopt.analysis.what_ifs import UserChange, WhatIf, largest_changes, signed
from fairopt.reporting.tables.allocation import Choice
from fairopt.reporting.tables.phrases import counted, guarantees_met, min_share
from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Table, ids, names, numbers, words
from fairopt.wording import figure, percent, plural, printable

__all__ = ["effect_blocks", "measure_tables", "what_if_blocks"]

_USERS = 20  # of each allocation, those with the largest changes
_DIFFERENCES = 20
_LONGEST = 14  # characters of the name of an instance above a column
_SIDE_BY_SIDE = 2  # allocations in a table of measures
_LEGEND = """\
efficiency: {}, in % of the most possible with divisible tasks of each instance."""
_MIN_SHARE = "min share: smallest weighted dominant share."
_OF_TREE = "guarantees: of queues and users, how many are met. Slices and envy of siblings: fairopt audit."
_ONLY = "only {}: gain in tasks by what that line says, alone. Gains need not add up: differences may work together."


def what_if_blocks(found: WhatIf, *, everything: bool = False, choice: Choice | None = None) -> Iterator[Block]:
    """Yield what differs, then a table of users for each allocation (with a choice, these), then the measures of both."""
    sides = _sides(found)
    if sides[0] != printable(found.names[0]):
        yield f"before: {printable(found.names[0])}\nafter: {printable(found.names[1])}"
        yield GAP
    groups = _groups(found)
    if groups:
        yield _differences(sides, groups, len(groups) if everything else _DIFFERENCES)
    else:
        yield "The two instances are the same."
    yield from effect_blocks(found, everything=everything, choice=choice)


def effect_blocks(found: WhatIf, *, everything: bool = False, choice: Choice | None = None) -> Iterator[Block]:
    """Yield what the differences do: a table of users for each allocation (with a choice, these), then the measures of both."""
    sides, groups = _sides(found), _groups(found)
    for row in found.rows:
        changes = found.changes(row)
        yield GAP
        if changes:
            chosen = choice is not None and choice != Choice()
            some: Sequence[UserChange] = changes if everything else largest_changes(changes, _USERS)
            if choice is not None and chosen:
                some = _chosen(found, row, changes, choice)
            yield _users(found, row, some, sides)
            if len(some) < len(changes):
                left_out = "" if chosen else ", whose changes are no larger (--all shows them)"
                yield f"and {plural(len(changes) - len(some), 'more user')}{left_out}"
        yield Note(found.summary(row), f"{printable(row)}: ")
    yield GAP
    for table in measure_tables(found, found.rows):
        yield table
        yield GAP
    numbered = [str(j) for j in range(1, len(groups) + 1)]
    legend = [_ONLY.format(" and only ".join(numbered) if len(numbered) < 3 else f"1, ..., only {numbered[-1]}")] if found.effects else []
    yield "\n".join(
        [*legend, _LEGEND.format(counted(found.before.instance, found.after.instance)), _OF_TREE if _in_tree(found) else _MIN_SHARE]
    )
    for row, effects in found.effects.items():
        for number, effect in enumerate(effects, 1):
            if effect.message:
                yield Note(effect.message, f"{printable(row)}, only {number}: ")


def _sides(found: WhatIf) -> list[str]:
    """Return the titles of columns: the names of the instances, or before and after where these are too long."""
    sides = [printable(name) for name in found.names]
    return sides if max(map(len, sides)) <= _LONGEST else ["before", "after"]


def _groups(found: WhatIf) -> list[tuple[str, tuple[Difference, ...]]]:
    """Return the differences whose effects are computed one by one, each with its name."""
    return list(found.groups)


def _differences(sides: Sequence[str], groups: Sequence[tuple[str, tuple[Difference, ...]]], most: int) -> Table:
    rows = []
    for j, (what, own) in enumerate(islice(groups, most), 1):
        one = own[0] if len(own) == 1 and own[0].key else None
        rows.append((str(j), what, *(("", "") if one is None else one.shown)))
    if len(groups) > most:
        rows.append(("", f"and {len(groups) - most:,} more", "", ""))
    number, what_differs, *values = zip(*rows, strict=True)
    return Table.of(
        ids("", number), words("what differs", what_differs), *(words(side, own) for side, own in zip(sides, values, strict=True))
    )


def _users(found: WhatIf, row: str, changes: Sequence[UserChange], sides: Sequence[str]) -> Table:
    """Return the tasks of users before and after, and their changes by each difference alone."""
    effects = found.effects.get(row, ())
    return Table.of(
        names(row, (change.name for change in changes)),
        numbers(sides[0], (change.before for change in changes), 4),
        numbers(sides[1], (change.after for change in changes), 4),
        numbers("change", map(_change, changes)),
        numbers("", map(_relative, changes)),
        *(numbers(f"only {j}", (signed(effect.changes.get(each.name)) for each in changes)) for j, effect in enumerate(effects, 1)),
    )


def _change(change: UserChange) -> str:
    return change.verdict if change.change is None else signed(change.change, 4) if change.verdict != "as before" else "0"


def _relative(change: UserChange) -> str:
    if change.relative is None or change.verdict == "as before":
        return ""
    return f"{'+' if change.relative > 0 else ''}{percent(change.relative)}"


def _chosen(found: WhatIf, row: str, changes: Sequence[UserChange], choice: Choice) -> Sequence[UserChange]:
    """Return the users of a choice, in the order that they have before; users who are new come last."""
    allocation = found.before[row].allocation
    if allocation is None:
        return changes
    named = {change.name: change for change in changes}
    before = choice.in_order(allocation)
    new = [name for name in named if name not in allocation.instance.users and (not choice.users or name in choice.users)]
    return [named[name] for name in [*before, *new] if name in named][: choice.top]


def measure_tables(found: WhatIf, rows: Sequence[str]) -> Iterator[Table]:
    """Yield the measures of these allocations, those of both instances beside each other; in a tree none that compares all users."""
    sides, in_tree = _sides(found), _in_tree(found)
    own = ["guarantees"] if in_tree else [min_share(found.before.instance, found.after.instance), "Jain", "envy"]
    for first in range(0, len(rows), _SIDE_BY_SIDE):
        shown = rows[first : first + _SIDE_BY_SIDE]
        columns = [(name, side, each[name]) for name in shown for side, each in zip(sides, (found.before, found.after), strict=True)]
        things = list(dict.fromkeys(thing for _, _, row in columns for thing in row.use))
        yield Table.of(
            names("measures", ["tasks", *things, "efficiency", *own]),
            *(
                numbers(
                    side,
                    [
                        figure(row.tasks, 4),
                        *(percent(row.use.get(thing), 1) for thing in things),
                        percent(row.efficiency, 1),
                        *([guarantees_met(row.allocation)] if in_tree else _of_users(row)),
                    ],
                    above=name,
                )
                for name, side, row in columns
            ),
        )


def _of_users(row: Row) -> list[str]:
    """Return the measures that compare all users."""
    return [
        figure(row.smallest_share, 4),
        "" if row.allocation is None else f"{row.jain:.3f}",
        "" if row.envy is None else figure(row.envy.tasks, 4),
    ]


def _in_tree(found: WhatIf) -> bool:
    return found.before.instance.is_tree or found.after.instance.is_tree
