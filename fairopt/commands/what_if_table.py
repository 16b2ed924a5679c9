"""Two instances side by side as text: what differs, who gains, who loses, and through which difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairopt.analysis.differences import Difference
from fairopt.analysis.what_ifs import UserChange, WhatIf, largest_changes, signed
from fairopt.commands.allocation_table import Choice
from fairopt.commands.comparison_table import low_share
from fairopt.commands.tables import add_numbers, label, simple_table
from fairopt.wording import figure, percent, plural

__all__ = ["print_what_if"]

_USERS = 20  # of each allocation, those with the largest changes
_DIFFERENCES = 20
_LONGEST = 14  # characters of the name of an instance above a column
_SIDE_BY_SIDE = 2  # allocations in a table of measures
_LEGEND = """\
efficiency: weighted tasks, in % of the most possible with divisible tasks of each instance.
low share: smallest weighted dominant share."""
_ONLY = "only {}: gain in tasks if this were the only difference. Gains need not add up: differences may work together."


def print_what_if(console: Console, found: WhatIf, *, everything: bool = False, choice: Choice | None = None) -> None:
    """Print what differs, then a table of users for each allocation (with a choice, these), then the measures of both."""
    sides = [label(name).plain for name in found.names]
    if max(map(len, sides)) > _LONGEST:
        console.print(Text(f"before: {sides[0]}\nafter: {sides[1]}\n"))
        sides = ["before", "after"]
    groups = [(effect.what, effect.differences) for effect in next(iter(found.effects.values()), ())]
    if not groups:
        groups = [(each.what, (each,)) for each in found.differences]
    if not groups:
        console.print(Text("The two instances are the same."))
    else:
        console.print(_differences(sides, groups, len(groups) if everything else _DIFFERENCES))
    for row in found.rows:
        changes = found.changes(row)
        console.print()
        if changes:
            chosen = choice is not None and choice != Choice()
            some = (
                _chosen(found, row, changes, choice)
                if choice is not None and chosen
                else changes
                if everything
                else largest_changes(changes, _USERS)
            )
            for j, table in enumerate(_users(found, row, some, sides, console.width)):
                console.print(*([""] if j else []), table, sep="\n")
            if len(some) < len(changes):
                left_out = "" if chosen else ", whose changes are no larger (--all shows them)"
                console.print(Text(f"and {plural(len(changes) - len(some), 'more user')}{left_out}"))
        console.print(Text.assemble((f"{label(row).plain}: ", "bold"), label(found.summary(row)).plain))
    console.print()
    for table in _measures(found, sides):
        console.print(table)
        console.print()
    numbers = [str(j) for j in range(1, len(groups) + 1)]
    legend = [_ONLY.format(" and only ".join(numbers) if len(numbers) < 3 else f"1, ..., only {numbers[-1]}")] if found.effects else []
    console.print(Text("\n".join([*legend, _LEGEND])))
    for row, effects in found.effects.items():
        for number, effect in enumerate(effects, 1):
            if effect.message:
                console.print(Text.assemble((f"{label(row).plain}, only {number}: ", "bold"), label(effect.message).plain))


def _differences(sides: Sequence[str], groups: Sequence[tuple[str, tuple[Difference, ...]]], most: int) -> Table:
    table = simple_table("", "what differs", *sides)
    for j, (what, own) in enumerate(islice(groups, most), 1):
        one = own[0] if len(own) == 1 and own[0].key else None
        values = ("", "") if one is None else one.shown
        table.add_row(str(j), label(what), *map(label, values))
    if len(groups) > most:
        table.add_row("", f"and {len(groups) - most:,} more", "", "")
    return table


def _users(found: WhatIf, row: str, changes: Sequence[UserChange], sides: Sequence[str], width: int) -> Iterator[Table]:
    """Yield a table of tasks before and after, and the changes by each difference alone beside them, or below where there is no room."""
    effects = found.effects.get(row, ())
    cells = [
        [
            figure(change.before, 4),
            figure(change.after, 4),
            change.verdict if change.change is None else signed(change.change, 4) if change.verdict != "as before" else "0",
            _relative(change),
        ]
        for change in changes
    ]
    alone = [[signed(effect.changes.get(change.name)) for effect in effects] for change in changes]
    columns, numbered = [*sides, "change", ""], [f"only {j + 1}" for j in range(len(effects))]
    names = [label(change.name) for change in changes]
    first = max(len(name.plain) for name in [label(row), *names])
    room = width - first - 1
    taken = _width(columns, cells)
    whole, parts = [*columns], [*cells]
    at = 0
    if effects and taken + _width(numbered, alone) <= room:
        whole, parts, at = [*columns, *numbered], [[*one, *two] for one, two in zip(cells, alone, strict=True)], len(effects)
    yield _of_users(row, names, whole, parts)
    while at < len(effects):
        end = at + 1
        while end < len(effects) and _width(numbered[at : end + 1], [line[at : end + 1] for line in alone]) <= room:
            end += 1
        yield _of_users(row, names, numbered[at:end], [line[at:end] for line in alone])
        at = end


def _relative(change: UserChange) -> str:
    if change.relative is None or change.verdict == "as before":
        return ""
    return f"{'+' if change.relative > 0 else ''}{percent(change.relative)}"


def _width(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> int:
    """Return how many characters columns take, with the space after each."""
    return sum(max(len(column), *(len(line[j]) for line in cells)) + 2 for j, column in enumerate(columns))


def _of_users(row: str, names: Sequence[Text], columns: Sequence[str], cells: Sequence[Sequence[str]]) -> Table:
    table = simple_table(label(row).plain)
    add_numbers(table, *columns)
    for name, line in zip(names, cells, strict=True):
        table.add_row(name, *line)
    return table


def _chosen(found: WhatIf, row: str, changes: Sequence[UserChange], choice: Choice) -> Sequence[UserChange]:
    """Return the users of a choice, in the order that they have before; users who are new come last."""
    allocation = found.before[row].allocation
    if allocation is None:
        return changes
    named = {change.name: change for change in changes}
    before = choice.in_order(allocation)
    new = [name for name in named if name not in allocation.instance.users and (not choice.users or name in choice.users)]
    return [named[name] for name in [*before, *new] if name in named][: choice.top]


def _measures(found: WhatIf, sides: Sequence[str]) -> Iterator[Table]:
    """Yield tables of the measures of all allocations, those of both instances beside each other."""
    for first in range(0, len(found.rows), _SIDE_BY_SIDE):
        table = simple_table("measures")
        columns = []
        for name in found.rows[first : first + _SIDE_BY_SIDE]:
            for side, row in zip(sides, (found.before[name], found.after[name]), strict=True):
                add_numbers(table, f"{label(name).plain}\n{side}")
                columns.append(row)
        things = list(dict.fromkeys(thing for row in columns for thing in row.use))
        table.add_row("tasks", *(figure(row.tasks, 4) for row in columns))
        for thing in things:
            table.add_row(label(thing), *(percent(row.use.get(thing), 1) for row in columns))
        table.add_row("efficiency", *(percent(row.efficiency, 1) for row in columns))
        table.add_row(low_share(found.before.instance, found.after.instance), *(figure(row.smallest_share, 4) for row in columns))
        table.add_row("Jain", *("" if row.allocation is None else f"{row.jain:.3f}" for row in columns))
        table.add_row("envy", *("" if row.envy is None else figure(row.envy.tasks, 4) for row in columns))
        yield table
