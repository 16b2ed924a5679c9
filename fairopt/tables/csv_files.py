"""CSV text to a table and back, with the line of every row.

Columns are separated by commas, semicolons or tabs: by what makes the first line hold the names that the schema needs, or by what a first
line ``sep=;`` says, as spreadsheet programs write it. Titles and comments above the names are left out. Where no comma separates columns,
numbers may have a decimal comma, and :mod:`fairopt.instance.numerals` says how they are read.

A text in which each line is a row of the same width, as in nearly every table, is split as a whole. Any other is read row by row, so that
messages name the line of a row that is too short or too long. No cell is converted by guess.

>>> from fairopt.tables.schema import Column
>>> table = parse("users.csv", "name;cpu\\nalice;0,5\\n", Schema(Column("name")))
>>> table.cells("name"), table.floats("cpu"), table.lines
(['alice'], array([0.5]), [2])
>>> to_csv(["name", "cpu"], [["A", 9.0], ["x, y", 0.1]])
'name,cpu\\nA,9\\n"x, y",0.1\\n'
"""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Iterable
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from fairopt.errors import InvalidInstance
from fairopt.files import read_old_text
from fairopt.files.limits import check_table
from fairopt.instance.fractions import plain_numbers
from fairopt.tables.mistakes import Mistakes
from fairopt.tables.schema import Schema
from fairopt.tables.table import Table
from fairopt.wording import plural

__all__ = ["parse", "read_csv", "to_csv"]

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_BATCH = 4096  # rows
_OTHER_ENDS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # of lines to str.splitlines, not in CSV
_DOCUMENTS = (".yaml", ".yml", ".json")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_SAID = re.compile(r"\W?sep=(.)\W?", re.IGNORECASE)
_MOST_TITLES = 20  # lines above the names of the columns


def read_csv(path: Path, schema: Schema, *, lenient: bool = False, mistakes: Mistakes | None = None) -> Table:
    """Read a file, also one that is packed (``.csv.gz``). Mistakes in rows and cells are raised, or kept.

    Raises
    ------
    InvalidInstance
        With the file and line.
    """
    text = read_old_text(path)
    if path.suffix.lower() in _DOCUMENTS:
        raise InvalidInstance(
            f"{path}: a table is expected here, and this is no CSV file; give one whose first line names the columns, "
            f'"{schema.first}" first'
        )
    return parse(str(path), text, schema, lenient=lenient, mistakes=mistakes)


def parse(file: str, text: str, schema: Schema, *, lenient: bool = False, mistakes: Mistakes | None = None) -> Table:
    """Return the table of a text. Where a program may be writing it, ``lenient`` leaves a last line out that is cut.

    Raises
    ------
    InvalidInstance
        With the file and line.
    """
    if text[:200].lstrip()[:1] == "<":
        raise InvalidInstance(f"{file}: this is a web page (a login page, perhaps) or XML, not CSV; download the table again")
    separator, opening, titles = _opening(text, schema)
    header, columns, start = _regular(file, text, opening, separator)
    before = titles + (1 + len(columns[0]) if columns else 0)  # lines that are read
    rows: list[list[str]] = []
    lines = list(range(titles + 2, before + 1))
    cut, line, last = "", before + 1, _last_line(text, start) if schema.grows else 0
    wrong = Mistakes() if mistakes is None else mistakes
    reader = csv.reader(  # io.StringIO would take four times the memory
        _lines(text, start), strict=True, delimiter=separator, skipinitialspace=f'{separator} "' in text
    )
    try:
        for cells in reader:
            while header and len(cells) > len(header) and not cells[-1].strip():
                cells.pop()
            if cells and not header:
                header, columns = cells, [[] for _ in cells]
                check_table(file, max(text.count("\n"), text.count("\r")), len(cells))
            elif cells and len(cells) == len(header):
                rows.append(cells)
                lines.append(line)
            elif cells and len(cells) < len(header) and reader.line_num == last:
                cut = f"{file}, line {line}"
                if not lenient:
                    raise InvalidInstance(
                        f"{cut}: the line is cut: it has {len(cells)} of {len(header)} cells; write the log again, or leave the line out "
                        "with lenient=True or --lenient"
                    )
            elif cells and len(cells) < len(header) and schema.loose:
                rows.append([*cells, *[""] * (len(header) - len(cells))])
                lines.append(line)
            elif any(map(str.strip, cells)):
                remedy = f"put cells that hold {_SEPARATORS.get(separator, separator)} in quotes"
                if len(cells) < len(header):
                    remedy = f"put {_SEPARATORS.get(separator, separator)} where cells are empty, or correct the line"
                    if len(cells) == 1:
                        remedy = f"delete the line if it is a note, or {remedy}"
                wrong.add(f"{file}, line {line}: the row has {plural(len(cells), 'cell')} for {len(header)} columns; {remedy}")
            if len(rows) == _BATCH:
                _add(columns, rows)
            line = before + reader.line_num + 1
    except csv.Error as error:
        place = f"{file}, line {before + reader.line_num}"
        raise InvalidInstance(f"{place}: not valid CSV: {error}; correct it there or just before") from None
    if mistakes is None:
        wrong.refuse()
    if not header:
        raise InvalidInstance(f'{file}: the file is empty; its first line must name the columns, "{schema.first}" first')
    if len(header) == 1 and schema.header_lacks(header):
        missing = "the first column is not" if schema.matrix else "there is no column"
        raise InvalidInstance(f'{file}: {missing} "{schema.first}"; separate columns by commas, semicolons or tabs')
    _add(columns, rows)
    table = Table(file, schema, header, columns, lines, texts=True, point=separator == ",", mistakes=mistakes)
    table.cut = cut
    if separator == "," and '"' not in text:
        table.decimal = "."  # a comma is in no cell
    return table


def _opening(text: str, schema: Schema) -> tuple[str, int, int]:
    """Return what separates columns, where the names of the columns begin, and how many lines are above them.

    Lines above may be titles, of one cell, or comments.
    """
    said, first, above = "", 0, list[dict[str, list[str]]]()
    lines = list(islice(_LINE.finditer(text), 2 * _MOST_TITLES))  # a name may hold ends of lines
    for number, match in enumerate(lines[:_MOST_TITLES]):
        if not number and (sign := _SAID.fullmatch(match[0].rstrip("\r\n"))):
            said, first = sign[1], match.end()
            continue
        rest = [line[0] for line in lines[number:]]
        rows = {separator: _cells(rest, separator) for separator in (said or _SEPARATORS)}
        for separator, cells in rows.items():
            titles = all(sum(bool(cell.strip()) for cell in each[separator]) < 2 or each[separator][0].strip()[:1] == "#" for each in above)
            if cells and titles and not schema.header_lacks(cells):
                return separator, match.start(), number
        above.append(rows)
    opening = next((rows for rows in above if any(rows.values())), {})
    return said or max(_SEPARATORS, key=lambda separator: len(opening.get(separator, []))), first, int(first > 0)


def _cells(lines: list[str], separator: str) -> list[str]:
    """Return the cells of the row that begins with the first of these lines; none if it is not a whole row."""
    with contextlib.suppress(csv.Error):
        return next(csv.reader(lines, strict=True, delimiter=separator, skipinitialspace=True), [])
    return []


def _regular(file: str, text: str, opening: int, separator: str) -> tuple[list[str], list[list[str]], int]:
    """Return the header, the columns of the lines that have an end, and where these end; nothing if one is not a row of the same width.

    This takes a fifth of the time of rows, of which each is an object.
    """
    end = text.rfind("\n") + 1
    body = text[opening:end].replace("\r\n", "\n")
    if end == len(text) and body.endswith("\n\n"):
        body = body.rstrip("\n") + "\n"
    if "\r" not in body and "\n\n" not in body:
        with contextlib.suppress(csv.Error):  # which is met again, with its line
            header = next(csv.reader([body[: body.find("\n")]], strict=True, delimiter=separator))
            if header:
                check_table(file, max(text.count("\n"), text.count("\r")), len(header))
                columns = _split(body, len(header), separator)
                if '"' in body:
                    columns = _unquoted(columns) or ([] if f'{separator} "' in body else _quoted(body, len(header), separator))
                if columns:
                    return header, columns, end
    return [], [], opening


def _split(body: str, width: int, separator: str) -> list[list[str]]:
    """Return the columns of lines, quotes and all; nothing if one has not this width, or a cell that Python's csv module may refuse."""
    number, part = body.count("\n"), (csv.field_size_limit() + 1) // 2  # a cell beyond the limit spans one of these parts of the text
    if body.count(separator) != number * (width - 1):
        return []
    if any(body.find(separator, i, i + part) < 0 and body.find("\n", i, i + part) < 0 for i in range(0, len(body), part)):
        return []
    cells = body.replace("\n", f"\n{separator}").split(separator)
    del cells[-1]
    last = "".join(cells[width - 1 :: width])
    if last.count("\n") != number:
        return []
    return [*(cells[j::width] for j in range(width, 2 * width - 1)), last.split("\n")[1:-1]]


def _unquoted(columns: list[list[str]]) -> list[list[str]]:
    """Return columns of which each has all of its cells in quotes, or none, without the quotes; nothing of any others."""
    found = []
    for cells in columns:
        text = "\n".join(cells)
        number = text.count('"')
        if number:
            between = text.count('"\n"')  # each of which ends a cell and begins the next
            if number != 2 * len(cells) or between != len(cells) - 1 or text[:1] != '"' or text[-1:] != '"':
                return []
            cells = text.replace('"', "").split("\n")
        found.append(cells)
    return found


def _quoted(body: str, width: int, separator: str) -> list[list[str]]:
    """Return the columns of lines with quotes; nothing if one has not this width, or ends in the middle of a cell."""
    reader = csv.reader(body[:-1].split("\n"), strict=True, delimiter=separator)
    next(reader)
    columns: list[list[str]] = [[] for _ in range(width)]
    while rows := list(islice(reader, _BATCH)):
        if set(map(len, rows)) != {width}:
            return []
        _add(columns, rows)
    return columns if len(columns[0]) + 1 == body.count("\n") else []


def _add(columns: list[list[str]], rows: list[list[str]]) -> None:
    """Move rows into columns; a few at a time, because Python's garbage collector looks at all rows again and again."""
    for column, cells in zip(columns, zip(*rows, strict=True), strict=True) if rows else ():
        column.extend(cells)
    rows.clear()


def _lines(text: str, start: int) -> Iterable[str]:
    """Return the lines from a start on, with their ends."""
    if start or any(end in text for end in _OTHER_ENDS):
        return map(itemgetter(0), _LINE.finditer(text, start))
    return text.splitlines(keepends=True)


def _last_line(text: str, start: int) -> int:
    """Return the number of the last line, counted from a start, if it does not end; else 0."""
    return 0 if text.endswith(("\n", "\r")) else sum(1 for _ in _LINE.finditer(text, start))


def to_csv(columns: list[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return CSV text; numbers are as short as they can be without loss."""
    return "".join(",".join(_cell(plain_numbers(value)) for value in row) + "\n" for row in [columns, *rows])


def _cell(value: object) -> str:
    text = str(value)  # Python's csv.writer leaves a lone carriage return unquoted, which its reader then refuses
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') or text != text.strip() else text
