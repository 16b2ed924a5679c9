"""CSV text to a table and back, with the line of every row.

It uses Python's csv module rather than pandas, for two reasons: messages name the line of a row that is too short or too long, and no
cell is converted by guess.

>>> from fairopt.tables.schema import Column
>>> table = parse("users.csv", "name,cpu\\nalice,two\\n", Schema(Column("name")))
>>> table.cells("name"), table.lines
(['alice'], [2])
>>> to_csv(["name", "cpu"], [["A", 9.0], ["x, y", 0.1]])
'name,cpu\\nA,9\\n"x, y",0.1\\n'
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fairopt.errors import InvalidInstance
from fairopt.files import read_text
from fairopt.instance.fractions import plain_numbers
from fairopt.limits import check_table
from fairopt.tables.schema import Schema
from fairopt.tables.table import Table
from fairopt.wording import plural

__all__ = ["parse", "read_csv", "to_csv"]

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_DOCUMENTS = (".yaml", ".yml", ".json")


def read_csv(path: Path, schema: Schema, *, lenient: bool = False) -> Table:
    """Read a file, also one that is packed (``.csv.gz``).

    Raises
    ------
    InvalidInstance
        With the file and line.
    """
    text = read_text(path)
    if path.suffix.lower() in _DOCUMENTS:
        raise InvalidInstance(
            f"{path}: a table is expected here, and this is no CSV file; give one whose first line names the columns, "
            f'"{schema.first}" first'
        )
    return parse(str(path), text, schema, lenient=lenient)


def parse(file: str, text: str, schema: Schema, *, lenient: bool = False) -> Table:
    """Return the table of a text. Where a program may be writing it, ``lenient`` leaves a last line out that is cut.

    Raises
    ------
    InvalidInstance
        With the file and line.
    """
    if text[:200].lstrip()[:1] == "<":
        raise InvalidInstance(f"{file}: this is a web page (a login page, perhaps) or XML, not CSV; download the table again")
    header: list[str] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    cut, line = "", 1
    reader = csv.reader((line[0] for line in _LINE.finditer(text)), strict=True)  # io.StringIO would take four times the memory
    try:
        for cells in reader:
            if cells and not header:
                header = cells
                check_table(file, max(text.count("\n"), text.count("\r")), len(cells))
            elif len(cells) == len(header):
                rows.append(cells)
                lines.append(line)
            elif cells and len(cells) < len(header) and schema.grows and reader.line_num == _last_line(text):
                cut = f"{file}, line {line}"
                if not lenient:
                    raise InvalidInstance(
                        f"{cut}: the line is cut: it has {len(cells)} of {len(header)} cells; write the log again, or leave the line out "
                        "with lenient=True or --lenient"
                    )
            elif cells and len(cells) < len(header) and schema.loose:
                rows.append([*cells, *[""] * (len(header) - len(cells))])
                lines.append(line)
            elif cells:
                raise InvalidInstance(
                    f"{file}, line {line}: the row has {plural(len(cells), 'cell')} for {len(header)} columns; put cells that hold commas "
                    "in quotes"
                )
            line = reader.line_num + 1
    except csv.Error as error:
        raise InvalidInstance(f"{file}, line {reader.line_num}: not valid CSV: {error}; correct it there or just before") from None
    if not header:
        raise InvalidInstance(f'{file}: the file is empty; its first line must name the columns, "{schema.first}" first')
    if len(header) == 1 and schema.header_lacks(header):
        missing = "the first column is not" if schema.matrix else "there is no column"
        raise InvalidInstance(f'{file}: {missing} "{schema.first}"; separate columns by commas')
    table = Table(file, schema, header, [list(cells) for cells in zip(*rows, strict=True)], lines, texts=True)
    table.cut = cut
    return table


def _last_line(text: str) -> int:
    """Return the number of the last line if it does not end; else 0."""
    return 0 if text.endswith(("\n", "\r")) else sum(1 for _ in _LINE.finditer(text))


def to_csv(columns: list[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return CSV text; numbers are as short as they can be without loss."""
    return "".join(",".join(_cell(plain_numbers(value)) for value in row) + "\n" for row in [columns, *rows])


def _cell(value: object) -> str:
    text = str(value)  # Python's csv.writer leaves a lone carriage return unquoted, which its reader then refuses
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') or text != text.strip() else text
