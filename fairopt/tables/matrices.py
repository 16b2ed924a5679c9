"""A table whose rows are users and whose columns are labels of servers or resources: its numbers, in the order of the instance."""

from __future__ import annotations

from collections.abc import Sequence

from fairopt.tables.cells import label_of
from fairopt.tables.mistakes import Mistakes
from fairopt.tables.schema import is_comment, spelled
from fairopt.tables.table import Table
from fairopt.tables.values import STAND_IN
from fairopt.wording import did_you_mean

__all__ = ["aligned"]


def aligned(table: Table, users: Sequence[str], columns: Sequence[str], *, shares: bool = False) -> list[dict[str, float]]:
    """Return the rows as mappings, in the order of the users. The labels must be exactly those users and columns, in any order.

    With ``shares``, a percentage is a number. A table that keeps mistakes keeps all of them, with `STAND_IN` as the number.

    Raises
    ------
    InvalidInstance
        With all mistakes, if the table does not keep them.

    Examples
    --------
    >>> from fairopt.tables.schema import Column, Schema
    >>> table = Table("rates.csv", Schema(Column("user"), matrix=True), ["user", "x", "y"], [["b", "a"], ["1", "2"], ["3", "4"]], [2, 3])
    >>> aligned(table, ["a", "b"], ["y", "x"])
    [{'y': 4.0, 'x': 2.0}, {'y': 3.0, 'x': 1.0}]
    >>> aligned(table, ["a", "c"], ["y", "x"])
    Traceback (most recent call last):
    fairopt.errors.InvalidInstance: 2 mistakes:
    rates.csv: there is no row for user "c"; add it
    rates.csv, line 2: there is no user "b"; remove the row, or add the user
    """
    kept, table.mistakes = table.mistakes, Mistakes() if table.mistakes is None else table.mistakes
    try:
        position, row_of = _labels(table, users, columns)
        cells = table.matrix()

        def value(user: str, column: str) -> float:
            if user not in row_of or column not in position:
                return STAND_IN
            row = row_of[user]
            return table.number(cells[position[column]][row], row, column, shares=shares)

        rows = [{column: value(user, column) for column in columns} for user in users]
        if kept is None:
            table.mistakes.refuse()
    finally:
        table.mistakes = kept
    return rows


def _labels(table: Table, users: Sequence[str], columns: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the position of each column, and the row of each user. A label that is missing or unknown is a mistake."""
    wanted = dict.fromkeys(columns)
    position = {spelled(label, wanted): j for j, label in enumerate(table.columns[1:])}
    given = {label: j for label, j in position.items() if label in wanted or not is_comment(label)}
    for label in given:
        if label not in wanted:
            hint = did_you_mean(label, [each for each in wanted if each not in given])
            table.wrong(None, f'there is no "{label}"{hint}; the columns must be those of the instance', label)
    for label in wanted:
        if label not in given:
            table.wrong(None, f'there is no column for "{label}"; add it')
    known, found = dict.fromkeys(users), dict[str, int]()
    for row, cell in enumerate(table.raw(table.schema.first)):
        user = label_of(cell, known)
        if user in found:
            table.wrong(row, f'user "{user}" has a row already; remove one')
        elif user in known:
            found[user] = row
        else:
            hint = did_you_mean(user, [each for each in known if each not in found]) or "; remove the row, or add the user"
            table.wrong(row, f'there is no user "{user}"{hint}')
    for user in known:
        if user not in found:
            table.wrong(None, f'there is no row for user "{user}"; add it')
    return given, found
