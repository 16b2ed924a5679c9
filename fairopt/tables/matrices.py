"""A table whose rows are users and whose columns are labels of servers or resources: its numbers, in the order of the instance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairopt.tables.cells import label_of
from fairopt.tables.schema import is_comment, spelled
from fairopt.tables.table import Table
from fairopt.wording import did_you_mean

__all__ = ["aligned"]


def aligned(table: Table, users: Sequence[str], columns: Sequence[str], *, shares: bool = False) -> Iterator[dict[str, float]]:
    """Yield the rows of a matrix as mappings, in the order of the users. Its labels must be exactly those users and columns.

    With ``shares``, a percentage is a number.

    >>> from fairopt.tables.schema import Column, Schema
    >>> table = Table("rates.csv", Schema(Column("user"), matrix=True), ["user", "x", "y"], [["b", "a"], ["1", "2"], ["3", "4"]], [2, 3])
    >>> list(aligned(table, ["a", "b"], ["y", "x"]))
    [{'y': 4.0, 'x': 2.0}, {'y': 3.0, 'x': 1.0}]
    """
    wanted = dict.fromkeys(columns)
    column_of = {spelled(label, wanted): j for j, label in enumerate(table.columns) if j}
    given = {label: j for label, j in column_of.items() if label in wanted or not is_comment(label)}
    for label in given:
        if label not in wanted:
            hint = did_you_mean(label, [each for each in wanted if each not in given])
            table.refuse(f'there is no "{label}"{hint}; the columns must be those of the instance', None, label)
    for label in wanted:
        if label not in given:
            table.refuse(f'there is no column for "{label}"; add it')
    known, found = dict.fromkeys(users), dict[str, int]()
    for row, cell in enumerate(table.raw(table.columns[0])):
        user = label_of(cell, known)
        if user in found:
            table.refuse(f'user "{user}" has a row already; remove one', row)
        if user not in known:
            hint = did_you_mean(user, [each for each in known if each not in found]) or "; remove the row, or add the user"
            table.refuse(f'there is no user "{user}"{hint}', row)
        found[user] = row
    for user in known:
        if user not in found:
            table.refuse(f'there is no row for user "{user}"; add it')
    cells = [table.plain_at(given[column]) for column in columns]
    for user in users:
        row = found[user]
        yield {
            column: table.number(column_cells[row], row, column, shares=shares) for column, column_cells in zip(columns, cells, strict=True)
        }
